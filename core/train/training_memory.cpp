// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/training_memory.h"

#include "core/train/pipeline_program.h"

#include <algorithm>
#include <string_view>

namespace meshwright {

namespace {

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
        return stage.mesh().deviceCount() * stage.find(name)->buffers.arenaBytes;
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
