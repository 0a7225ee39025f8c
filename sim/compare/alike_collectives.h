// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/simulate/simulation.h"

#include <cstddef>
#include <string>
#include <vector>

namespace meshwright::sim {

/// Collectives of a step that differ only in the layer, the piece of a pipeline or the chunk of a loss that they are of.
struct AlikeCollectives {
    std::vector<std::size_t> members; ///< their places in the step, ascending; never empty
    SimulatedCollective
        all; ///< of several: the sums of their calls and times, "act.layers.*.ffn" as the value, and all else of the first
};

/// The spec, the annotation or the array that a cause names; empty where that is a value that the engine made and named: `%29`, `residual.43`.
std::string writtenCause(const std::string& annotation);

/// In the order of their first members.
std::vector<AlikeCollectives> alikeCollectives(const std::vector<SimulatedCollective>& step);

} // namespace meshwright::sim
