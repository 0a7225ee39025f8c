// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

#include <cstdint>
#include <vector>

namespace meshwright::ui {

/// The collectives of a step, in the order in which all views count them: those of the simulation, without one those of the schedule, whose times,
/// formulas and labels are empty. Precondition: analysis.scheduled.
std::vector<sim::SimulatedCollective> stepCollectives(const sim::Analysis& analysis);

/// For each slice of the simulated timeline which collective it is a call of: an index into `simulation.collectives`, or kNoCollective.
///
/// A slice is told by its name, the axes of its row, its bytes and its formula. Where these leave several collectives, their calls follow each other on a
/// row as the program has them: collectives of one phase and as many calls are in one loop and take turns.
std::vector<std::int32_t> collectivesOfSlices(const sim::Simulation& simulation);
inline constexpr std::int32_t kNoCollective = -1;

} // namespace meshwright::ui
