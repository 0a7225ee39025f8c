// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/training_memory.h"

#include "core/runtime/pipeline.h"

#include <algorithm>
#include <string_view>

namespace meshwright {

namespace {

/// In a device's own memory and its host's.
std::int64_t arenasOf(const ScheduledFunction& function)
{
    return function.buffers.arenaBytes + function.buffers.hostBytes;
}

/// The memory that all devices together need for a step of a pipeline, in which each function has an arena of its own.
std::int64_t plannedPipelineBytes(const ScheduledProgram& scheduled)
{
    const std::vector<std::int64_t> stages = plannedStageBytes(scheduled);
    std::int64_t bytes = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const ScheduledStage& stage = scheduled.stages[s];
        std::int64_t largest = 0;
        std::int64_t all = 0;
        for (const ScheduledFunction& function : stage.functions) {
            largest = std::max(largest, function.buffers.arenaBytes);
            all += arenasOf(function);
        }
        bytes += stage.mesh().deviceCount() * (stages[s] - largest + all);
    }
    return bytes;
}

/// The most that phases need, where two functions' arenas are there at a time. `bytesOf` gives what a function of a phase needs.
template <typename BytesOf>
PlannedPeak peakOf(const std::vector<TrainingPhase>& phases, bool evaluatesInPhases, const BytesOf& bytesOf)
{
    PlannedPeak most;
    const auto together = [&](const char* first, std::int64_t firstBytes, const char* second, std::int64_t secondBytes) {
        if (firstBytes + secondBytes > most.bytes)
            most = {firstBytes + secondBytes, first, firstBytes, second};
    };
    const char* before = "init";
    std::int64_t beforeBytes = bytesOf(phases.front(), before);
    for (const TrainingPhase& phase : phases) {
        const std::int64_t own = bytesOf(phase, "step");
        together(before, beforeBytes, "step", own);
        if (evaluatesInPhases || &phase == &phases.back())
            together("step", own, "evaluate", bytesOf(phase, "evaluate"));
        before = "step";
        beforeBytes = own;
    }
    return most;
}

} // namespace

std::int64_t plannedTrainingBytes(const std::vector<TrainingPhase>& phases, bool evaluatesInPhases)
{
    const auto bytesOf = [](const TrainingPhase& phase, std::string_view name) {
        if (isPipelined(phase.scheduled))
            return name == "step" ? plannedPipelineBytes(phase.scheduled) : std::int64_t{0};
        const ScheduledStage& stage = phase.scheduled.stages.front();
        return stage.mesh().deviceCount() * arenasOf(*stage.find(name));
    };
    return peakOf(phases, evaluatesInPhases, bytesOf).bytes;
}

PlannedPeak plannedDevicePeak(const std::vector<TrainingPhase>& phases, bool evaluatesInPhases)
{
    return peakOf(phases, evaluatesInPhases, [](const TrainingPhase& phase, std::string_view name) {
        if (name == "step")
            return plannedStepBytes(phase);
        return isPipelined(phase.scheduled) ? std::int64_t{0} : phase.scheduled.stages.front().find(name)->buffers.arenaBytes;
    });
}

std::int64_t plannedStepBytes(const TrainingPhase& phase)
{
    return isPipelined(phase.scheduled) ? std::ranges::max(plannedStageBytes(phase.scheduled))
                                        : phase.scheduled.stages.front().find("step")->buffers.arenaBytes;
}

} // namespace meshwright
