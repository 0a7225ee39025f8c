// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"
#include "core/timeline/timeline.h"

#include <string>
#include <string_view>

namespace meshwright {

/// What an op of this name is called that makes a value of this text (`valueText`): "dot_general act.layers.1.product", "floor(act.h1, ..)".
std::string opLabel(std::string_view op, const std::string& made);

/// What an instruction is called in timelines, measured or predicted: "dot_general act.layers.1.product", "fused act.layers.1 (4 ops)",
/// "all_reduce grad.layers.0.w"; of values without a name "floor(act.h1, ..)", "fused divide(act.h1, ..) (4 ops)".
std::string instructionLabel(const Function& function, const Instruction& instruction);

/// What a task of a pipeline is called: "forward, microbatch 3", "weight gradients, chunk 1, microbatch 3"; an update by its function.
std::string taskLabel(const Task& task, const PipelineShape& shape);

/// The category of an op's slices; Compute for everything that is not a collective.
SliceCategory categoryOf(OpKind kind);

} // namespace meshwright
