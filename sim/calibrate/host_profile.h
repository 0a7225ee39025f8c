// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// A measured time for a size in bytes.
struct SizedTime {
    double bytes = 0.0;
    double seconds = 0.0;
};

/// What this computer does, as its virtual devices see it: CPU time of one device while as many as there are permits compute. A profile file is a
/// hardware file (`meshwright_hardware: 1`, as JSON, so that a study may name it as `hardware: {profile: host.json}`) with these figures
/// under `host`.
struct HostProfile {
    std::string name; ///< `this computer, 2 cores`
    int permits = 1; ///< devices that compute at once: the shared pool
    std::vector<std::int64_t> sides; ///< of the grid of products, rising
    std::vector<double> productFlopsPerSecond; ///< [(m * sides + n) * sides + k], of one device, all > 0
    double aloneFlopsPerSecond = 0.0; ///< of a large product while nothing else runs
    double kernelSeconds = 0.0; ///< to start one
    std::vector<SizedTime> streams; ///< element-wise additions: bytes read and written; rising
    double simpleSecondsPerElement = 0.0; ///< of an addition in cache
    double mathSecondsPerElement = 0.0; ///< of an exponential in cache
    double divideSecondsPerElement = 0.0; ///< of a division in cache
    double reduceSecondsPerElement = 0.0; ///< of the operand: sums along the last dimension
    double reduceColumnsSecondsPerElement = 0.0; ///< and along another
    double spread = 0.0; ///< by how much of the mean the slowest of `devices` equal ones is slower, over several runs together
    double barrierSeconds = 0.0; ///< wall, `devices` devices meeting once
    int devices = 8; ///< that took part in barrier and collectives
    std::vector<SizedTime> allReduce; ///< payload of a device; CPU time of a device
    std::vector<SizedTime> allGather; ///< bytes of the result
    std::int64_t memoryBytes = 0; ///< that programs can have

    /// FLOP/s of a product, between the points of the grid (in logarithms), as the nearest point outside. Preconditions: sizes >= 1.
    double productRate(double m, double n, double k) const;
};

/// Between measured sizes in logarithms; outside in proportion to the bytes above, as the smallest below. `times` is not empty.
double secondsFor(const std::vector<SizedTime>& times, double bytes);

std::string hostProfileJson(const HostProfile& profile);

/// Problems: MW1711 the file is no profile of a computer, or a figure is missing or no number above 0; those of `readFile`.
Result<HostProfile> parseHostProfile(std::string_view text, const std::string& file);
Result<HostProfile> readHostProfile(const std::filesystem::path& path);

} // namespace meshwright::sim
