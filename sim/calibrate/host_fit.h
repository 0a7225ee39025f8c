// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/calibrate/host_profile.h"

#include <span>

namespace meshwright::sim {

/// What was measured of some work: seconds = the sum of amounts times costs.
struct HostSample {
    HostCosts amounts{};
    double seconds = 0.0; ///< > 0
    double weight = 1.0; ///< > 0: how much it counts
};

/// The costs from `first` to `last`, none below 0, for which the weighted sum of squares of the samples' relative errors is least; the other costs stay
/// as they are. A sample that is far off the others, as one that was disturbed, counts less. Costs of what no sample has become 0.
///
/// Without `distrusts` all count alike, whatever they are off.
void fitCosts(std::span<const HostSample> samples, HostCost first, HostCost last, HostCosts& costs, bool distrusts = true);

} // namespace meshwright::sim
