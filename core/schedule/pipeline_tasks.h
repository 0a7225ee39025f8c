// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// The tasks of one training step: stage after stage, of each stage in the order in which it takes them; at the end the stage's update.
/// The stages in `sharing` have parameters that others of them have too: they take "shared" before, after which they exchange what each knows of
/// these parameters' gradients, and "total", which adds it up.
/// A task waits only for tasks that some order of all tasks has before it, so that stages which block in receiving never wait for each other
/// in a circle. Functions are "forward.C" and "backward.C" with C the chunk, with a split backward pass "weights.C" too, and "update"; with `sharesNorm`, before the update, "norm", after which
/// the stages add up what each knows of the norm of all gradients.
/// Precondition: one chunk where the order splits the backward pass.
/// Source: the schedules of GPipe, PipeDream-flush and Megatron-LM (Narayanan et al., SC 21, arXiv 2104.04473, section 2.2); see `zeroBubbleOrder`.
std::vector<Task> pipelineTasks(
    const PipelineShape& shape, bool sharesNorm = false, const std::vector<std::size_t>& sharing = {});

/// What the functions of BackwardWeight tasks are called, before the chunk.
inline constexpr std::string_view kWeightFunction = "weights";

/// The function of an Update task that comes before the update itself.
inline constexpr std::string_view kNormFunction = "norm";

/// The functions of Update tasks of gradients that several stages have a part of; the array that a stage gives of a parameter's, and its copy of
/// what stage `from` gave.
inline constexpr std::string_view kSharedFunction = "shared";
inline constexpr std::string_view kTotalFunction = "total";
std::string sharedArray(const std::string& parameter);
std::string sharedArray(const std::string& parameter, std::size_t from);
/// The parameter of what a stage gives; empty for other arrays.
std::string_view sharedParameter(std::string_view array);

/// The forward tasks alone, in the order in which each stage takes them.
std::vector<Task> forwardTasks(const PipelineShape& shape);

/// Where a microbatch's values are kept between its forward and its last backward task on one piece: slots are taken anew when that has
/// freed them.
struct SlotPlan {
    std::vector<std::vector<std::int64_t>> slotOf; ///< by piece, by microbatch
    std::vector<std::int64_t> slots; ///< by piece: the most microbatches that it holds at once
};
SlotPlan slotPlan(const PipelineShape& shape, const std::vector<Task>& tasks);

} // namespace meshwright
