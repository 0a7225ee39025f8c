// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/transformer_config.h"

namespace meshwright {

/// GPT-3 175B, with a vocabulary that divides: the model that the benchmarks lay out.
/// Source: T. Brown et al., "Language Models are Few-Shot Learners", arXiv:2005.14165, table 2.1.
inline TransformerConfig gpt3()
{
    TransformerConfig model;
    model.name = "GPT-3 175B";
    model.layers = 96;
    model.hidden = 12288;
    model.heads = model.keyValueHeads = 96;
    model.headDim = 128;
    model.ffn = 49152;
    model.vocabulary = 51200;
    model.maxPositions = 2048;
    model.norm = NormKind::LayerNorm;
    model.position = PositionKind::Learned;
    model.tiedEmbeddings = true;
    return model;
}

} // namespace meshwright
