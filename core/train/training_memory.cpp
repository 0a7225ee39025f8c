// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/training_memory.h"

#include "core/schedule/pipeline_tasks.h"

#include <algorithm>
#include <string_view>

namespace meshwright {

namespace {

/// In a device's own memory, and with `host` in its host's too.
std::int64_t arenasOf(const ScheduledFunction& function, bool host)
{
    return function.buffers.arenaBytes + (host ? function.buffers.hostBytes : 0);
}

/// What a device of each stage needs.
std::vector<std::int64_t> bytesOfStages(const ScheduledProgram& scheduled, bool host)
{
    const SlotPlan slots = slotPlan(scheduled.pipeline, scheduled.tasks);
    std::vector<std::int64_t> all;
    for (std::size_t stage = 0; stage < scheduled.stages.size(); ++stage) {
        std::int64_t bytes = 0;
        std::size_t chunk = 0;
        for (const ScheduledFunction& function : scheduled.stages[stage].functions) {
            const bool isForward = function.device.function.name == functionOf(TaskKind::Forward, chunk);
            const std::int64_t kept = isForward ? slots.slots[chunk++ * scheduled.stages.size() + stage] : 0;
            bytes += arenasOf(function, host) * (1 + kept);
        }
        all.push_back(bytes);
    }
    return all;
}

/// The memory that all devices together need for a step of a pipeline: the arenas of all functions, and what passes between them for every
/// microbatch that is under way, taken as large as the forward arena.
std::int64_t plannedPipelineBytes(const ScheduledProgram& scheduled)
{
    const std::vector<std::int64_t> stages = bytesOfStages(scheduled, true);
    std::int64_t bytes = 0;
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
        bytes += scheduled.stages[stage].mesh().deviceCount() * stages[stage];
    return bytes;
}

/// The same of one device of the stage that needs the most.
std::int64_t plannedStageBytes(const ScheduledProgram& scheduled)
{
    const std::vector<std::int64_t> stages = bytesOfStages(scheduled, false);
    return *std::max_element(stages.begin(), stages.end());
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
        return stage.mesh().deviceCount() * arenasOf(*stage.find(name), true);
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
    return isPipelined(phase.scheduled) ? plannedStageBytes(phase.scheduled)
                                        : phase.scheduled.stages.front().find("step")->buffers.arenaBytes;
}

} // namespace meshwright
