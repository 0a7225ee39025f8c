// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/runtime/pipeline.h"
#include "core/runtime/recording.h"

#include <map>
#include <string>
#include <vector>

namespace meshwright {

/// What one device did for one task. Times are wall seconds.
struct TaskRecord {
    Task task;
    double began = 0.0;
    double received = 0.0; ///< what it needs from another stage is there
    double computed = 0.0;
    double sent = 0.0;
    std::int64_t bytes = 0; ///< sent on
    std::size_t first = 0; ///< the records of the task's function that belong to it: from here
    std::size_t last = 0; ///< to before here
};

/// The last complete recorded step of a pipeline.
struct PipelineRecords {
    struct StageFunctions {
        std::vector<std::int64_t> devices; ///< virtual ones, by position
        std::map<std::string, const LoadedFunction*> byName;
        const std::vector<Task>* tasks = nullptr; ///< in the order in which its devices take them
    };
    PipelineShape shape;
    double startSeconds = 0.0;
    std::vector<StageFunctions> stages;
    std::vector<const std::vector<TaskRecord>*> tasks; ///< by virtual device

    // Of several processes, after `gatherRecords`.
    std::vector<std::vector<TaskRecord>> tasksElsewhere = {}; ///< by virtual device
    std::map<const LoadedFunction*, std::vector<std::vector<Recorded>>> instructions = {}; ///< by position

    const std::vector<Recorded>& instructionsOf(const LoadedFunction& function, std::size_t position) const
    {
        const auto gathered = instructions.find(&function);
        return gathered != instructions.end() ? gathered->second[position]
                                              : function.records(static_cast<std::int64_t>(position));
    }
};

/// Brings what the devices of all processes have recorded to the first one. Clocks of processes begin where they will: each run begins at 0 on
/// the way. False on all but the first one, and where the job has ended.
bool gatherRecords(const VirtualDevices& devices, PipelineRecords& records);

/// Slices as they happened, from the start of the run.
Timeline measuredTimeline(const PipelineRecords& records);

/// The same run with a core for every device (see `LoadedPipeline::virtualTimeline`).
Timeline replayedTimeline(const PipelineRecords& records, const LoadedPipeline::TaskSeconds& taskSeconds);

/// The same, with the times of the functions' typical runs.
Timeline typicalTimelineOf(const PipelineRecords& records);

} // namespace meshwright
