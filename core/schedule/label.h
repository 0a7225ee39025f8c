// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"
#include "core/timeline/timeline.h"

#include <string>

namespace meshwright {

/// What a value in memory is called: its name, or what made it: "dot_general". What a loop stacks is called as in one of its turns.
std::string bufferLabel(const Function& function, ValueId value);

/// What an instruction is called in timelines, measured or predicted: "dot_general act.layers.1.product", "fused act.layers.1 (4 ops)",
/// "all_reduce grad.layers.0.w".
std::string instructionLabel(const Function& function, const Instruction& instruction);

/// What a task of a pipeline is called: "forward, microbatch 3", "weight gradients, chunk 1, microbatch 3"; an update by its function.
std::string taskLabel(const Task& task, const PipelineShape& shape);

/// The category of an op's slices; Compute for everything that is no collective.
SliceCategory categoryOf(OpKind kind);

} // namespace meshwright
