// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// The tasks of one training step: stage after stage, of each stage in the order in which it takes them; at the end the stage's update.
/// The stages in `sharing` have parameters that others of them have too: before the update they share gradients and add these up; with
/// `sharesNorm` all stages share the norm.
/// A task waits only for tasks that some order of all tasks has before it, so that stages which block in receiving never wait for each other
/// in a circle.
/// Precondition: one chunk where the order splits the backward pass.
/// Source: the schedules of GPipe, PipeDream-flush and Megatron-LM (Narayanan et al., SC 21, arXiv 2104.04473, section 2.2); see `zeroBubbleOrder`.
std::vector<Task> pipelineTasks(
    const PipelineShape& shape, bool sharesNorm = false, const std::vector<std::size_t>& sharing = {});

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
