// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/train/training_phase.h"

#include <cstdint>
#include <vector>

namespace meshwright {

/// The memory that all devices together need at the most to train these phases, in bytes, as planned: their arenas, two functions' at a time
/// where one hands its arrays to the next. Scratch memory and data come on top.
/// `evaluatesInPhases`: accuracy is measured between steps too.
std::int64_t plannedTrainingBytes(const std::vector<TrainingPhase>& phases, bool evaluatesInPhases = false);

/// The same of one device; of a pipeline, of the stage that needs the most.
std::int64_t plannedDeviceBytes(const std::vector<TrainingPhase>& phases, bool evaluatesInPhases = false);

/// What a device needs for one step of a phase; of a pipeline, of the stage that needs the most.
std::int64_t plannedStepBytes(const TrainingPhase& phase);

} // namespace meshwright
