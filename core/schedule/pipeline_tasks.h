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

/// Carries tasks out for `playTasks`. `number` is the task's among those of its stage; times are of the stage's devices, by position.
class TaskPlayer {
public:
    virtual ~TaskPlayer() = default;

    /// What the task waits for comes then: a message, or the last part of what stages share.
    virtual void receive(const Task& task, std::size_t number, const std::vector<double>& arrivals) = 0;

    /// Returns when the devices are done.
    virtual const std::vector<double>& carryOut(const Task& task, std::size_t number) = 0;

    /// It was carried out, and sends on what it made.
    virtual void send(const Task&, std::size_t) { }
};

/// The tasks of a step, by stage in the order in which it takes them: each when what it waits for has been sent. Messages take no time.
void playTasks(const PipelineShape& shape, const std::vector<std::vector<Task>>& tasks, TaskPlayer& player);

} // namespace meshwright
