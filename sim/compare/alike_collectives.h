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

/// In the order of their first members.
std::vector<AlikeCollectives> alikeCollectives(const std::vector<SimulatedCollective>& step);

} // namespace meshwright::sim
