// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/calibrate/host_profile.h"

#include <stop_token>

namespace meshwright::sim {

struct HostMeasurement {
    int permits = 0; ///< devices that compute at once; 0: one for each core
    int devices = 8; ///< of the barrier and the collectives, at least 2
    bool quick = false; ///< a coarser grid of products, in about a second
};

/// Measures this computer with the programs' own kernels on virtual devices: each figure is the least of a few runs. Under 10 s.
/// Problems: those of the runtime; MW1507 `stop` was asked for.
Result<HostProfile> measureHost(const HostMeasurement& measurement, const std::stop_token& stop = {});

} // namespace meshwright::sim
