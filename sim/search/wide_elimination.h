// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/search/elimination.h"

#include <cstddef>
#include <limits>
#include <stop_token>

namespace meshwright::sim {

struct WideLimits {
    double budgetBytes = std::numeric_limits<double>::infinity();
    std::size_t entries = std::size_t{1} << 20; ///< of a table that a variable is minimised over
    int rounds = 12; ///< in a row without gain, after which the choices stay
    int morePoints = 0; ///< assignments of less memory that are looked for besides, at growing prices of memory
    std::stop_token stop = {}; ///< asked: what there is so far
};

/// Good assignments, and a bound, of choice graphs whose exact tables would be too wide.
///
/// The bound: mini-buckets. Where a variable's table would be too wide, its functions are shared out among several tables, each minimised
/// over a copy of the variable; copies are made to agree on average by what they cost (moment matching). The assignment: read off those tables, then
/// improved in rounds that hold some variables as they are, so that all others can be eliminated exactly together; no round makes it worse. A
/// budget becomes a price of memory, searched for by halving.
/// `exact` only when the quickest assignment reaches the bound: always where no table was too wide and memory does not bind. `front` has what was met within the
/// budget and not beaten, or is empty.
/// Sources: R. Dechter, I. Rish, "Mini-buckets: a general scheme for bounded inference", JACM 50(2), 2003; A. Ihler et al., "Join-graph based cost-shifting
/// schemes", UAI 2012.
EliminationResult eliminateWide(const ChoiceGraph& graph, const WideLimits& limits);

} // namespace meshwright::sim
