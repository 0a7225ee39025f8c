// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"
#include "core/train/trainer.h"

#include <vector>

namespace meshwright::sim {

/// What one device needs to train these phases, in bytes, as planned: its arenas, two functions' at a time where one hands its arrays to the next.
/// `evaluatesInPhases`: accuracy is measured between steps too.
std::int64_t deviceTrainingBytes(const std::vector<TrainingPhase>& phases, bool evaluatesInPhases = false);

/// Whether what is planned for each device fits the memory that a device may use, before anything runs.
/// Problems: MW1513 it does not: how much is needed, when, for what, and what would fit (a smaller batch and more devices are tried; arrays
/// that lie whole on every device are named).
Result<Done> checkDeviceMemory(const Study& study, const std::vector<TrainingPhase>& phases, std::int64_t limitBytes);

/// The same for one function on a mesh. Problems: MW1513.
Result<Done> checkDeviceMemory(const ScheduledFunction& function, const Mesh& mesh, std::int64_t limitBytes);

} // namespace meshwright::sim
