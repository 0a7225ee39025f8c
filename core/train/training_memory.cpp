// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/training_memory.h"

#include "core/train/pipeline_program.h"

#include <algorithm>
#include <string_view>

namespace meshwright {

namespace {

/// The most that phases need, where two functions' arenas are there at a time. `bytesOf` gives what a function of a phase needs.
template <typename BytesOf>
std::int64_t mostBytes(const std::vector<TrainingPhase>& phases, bool evaluatesInPhases, const BytesOf& bytesOf)
{
    std::int64_t most = bytesOf(phases.back(), "step") + bytesOf(phases.back(), "evaluate");
    std::int64_t before = bytesOf(phases.front(), "init");
    for (const TrainingPhase& phase : phases) {
        const std::int64_t own = bytesOf(phase, "step");
        most = std::max(most, before + own);
        if (evaluatesInPhases)
            most = std::max(most, own + bytesOf(phase, "evaluate"));
        before = own;
    }
    return most;
}

} // namespace

std::int64_t plannedTrainingBytes(const std::vector<TrainingPhase>& phases, bool evaluatesInPhases)
{
    return mostBytes(phases, evaluatesInPhases, [](const TrainingPhase& phase, std::string_view name) {
        if (isPipelined(phase.scheduled))
            return name == "step" ? plannedPipelineBytes(phase.scheduled) : std::int64_t{0};
        const ScheduledStage& stage = phase.scheduled.stages.front();
        return stage.mesh().deviceCount() * stage.find(name)->buffers.arenaBytes;
    });
}

std::int64_t plannedDeviceBytes(const std::vector<TrainingPhase>& phases, bool evaluatesInPhases)
{
    return mostBytes(phases, evaluatesInPhases, [](const TrainingPhase& phase, std::string_view name) {
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
