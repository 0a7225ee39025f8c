// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/validate/validate.h"

namespace meshwright::sim {

/// Simulates the training steps of records as programs: as the studies that a search writes for such plans, with the network and the software that
/// the records state. Both must live as long.
StepSimulator stepSimulator(const Catalogue& catalogue, const Calibration& calibration);

} // namespace meshwright::sim
