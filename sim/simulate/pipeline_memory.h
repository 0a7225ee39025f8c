// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/simulate/simulation.h"

#include <cstddef>
#include <vector>

namespace meshwright::sim {

/// What a device of a pipeline stage holds, in bytes by kind: arrays that live through the step, what one microbatch leaves of a piece between its
/// tasks, and what a function needs besides while it runs.
struct StageMemory {
    std::vector<LiveValue> arrays; ///< parameters, states, sums of gradients
    struct Kept {
        LiveValue value;
        bool onHost = false; ///< in the host's memory
        TaskKind from = TaskKind::Forward; ///< the task that makes it
        TaskKind until = TaskKind::Backward; ///< the last one that reads it

        bool isKeptBy(const Task& task) const { return task.kind == from; }
        bool isLeftBy(const Task& task) const { return task.kind == until; }
    };
    std::vector<std::vector<Kept>> kept; ///< for each chunk
    std::vector<std::int64_t> working; ///< for each function of the stage
    std::vector<std::int64_t> workingOnHost; ///< likewise, in the host's memory
};
StageMemory stageMemory(const ScheduledStage& stage, std::int64_t chunks);

/// Bytes in use while a stage takes its tasks: a moment for each task, and one for the end. Times are 0.
std::vector<MemoryPoint> memoryOfTasks(const ScheduledProgram& pipeline, std::size_t stage);

/// The most that a device of any stage has in its host's memory.
std::int64_t mostHostBytes(const ScheduledProgram& pipeline);

/// The stage of which a device needs most, and how much.
struct FullestStage {
    std::size_t stage = 0;
    std::int64_t bytes = 0;
    std::size_t moment = 0; ///< of `memoryOfTasks`
};
FullestStage fullestStage(const ScheduledProgram& pipeline);

} // namespace meshwright::sim
