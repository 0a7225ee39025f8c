// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/quantity.h"
#include "sim/simulate/simulation.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright::sim {

/// A part of a figure of a step.
struct FigureCause {
    std::string what; ///< "all-reduce of layers.2's output over model", "products"
    double amount = 0.0; ///< of the figure, in its unit
    std::optional<std::size_t> collective = {}; ///< its place in Simulation::collectives; of several that are alike the first's
    std::string array = {}; ///< the value that moves, or lies in memory; empty: none
    std::string annotation = {}; ///< the spec behind it; empty: none
};

/// A figure of a step and why it is as large: the amounts of its causes, the largest first, add up to its value.
struct ExplainedFigure {
    std::string name; ///< "step time"
    Quantity quantity = Quantity::Seconds;
    double value = 0.0;
    std::vector<FigureCause> causes;
};

/// Step time (products, other computing, the wait for each collective, those that are alike together, the bubble), exposed communication (the wait for each collective) and peak
/// memory (`live`, those of a kind beyond the largest kLiveTold together, and the gaps between them) of one simulated step.
std::vector<ExplainedFigure> explainFigures(const Simulation& simulation, const std::vector<LiveValue>& live);

inline constexpr std::size_t kLiveTold = 40; ///< values in memory that are told one by one

} // namespace meshwright::sim
