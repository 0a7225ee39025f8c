// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

#include <vector>

namespace meshwright::ui {

/// The collectives of a step, in the order in which all views count them: those of the simulation, without one those of the schedule, whose times,
/// formulas and labels are empty. Precondition: analysis.scheduled.
std::vector<sim::SimulatedCollective> stepCollectives(const sim::Analysis& analysis);

} // namespace meshwright::ui
