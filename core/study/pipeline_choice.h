// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright {

/// Microbatches of a step: each is a task of every stage, or a turn of a loop.
inline constexpr std::int64_t kMostStepMicrobatches = 1 << 16;

/// Pieces times microbatches.
inline constexpr std::int64_t kMostPipelineTasks = 1 << 20;

/// True when a step is cut into stages or microbatches.
bool isPipelined(const PipelineChoice& pipeline);

/// How a step is cut: the study's pipeline, or the microbatches of `train.accumulate`, which are those of a pipeline of one stage.
PipelineChoice stepPipeline(const Study& study);

/// The pieces that a model's layers are cut into: stages * chunks.
std::int64_t pieceCount(const PipelineChoice& pipeline);

/// The layers of each piece: as the study says, else as even as can be, where the first ones have one more. Of more pieces than layers the last has the
/// head alone, and of two more the first has the embedding alone, as Llama 3 405B was trained: 126 layers in 128 pieces.
/// Preconditions: `layers` and the pieces are at least 1, and at most two more pieces than layers.
std::vector<std::int64_t> layersOfPieces(const PipelineChoice& pipeline, std::int64_t layers);

} // namespace meshwright
