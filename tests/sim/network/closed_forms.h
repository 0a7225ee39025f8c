// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/collective/ring.h"
#include "sim/collective/switch.h"
#include "sim/collective/torus.h"

/// Formulas that the product does not need, and that its estimates and simulations must agree with. Symbols, units and preconditions
/// as in ring.h and switch.h.
namespace meshwright::tests {

/// Reduce-scatter, then all-gather.
inline double ringAllReduceSeconds(double arrayBytes, std::int64_t k, const sim::LinkSpec& link, sim::Directions directions)
{
    return 2.0 * sim::ringAllGatherSeconds(arrayBytes, k, link, directions);
}

/// Reduce-scatter, then all-gather.
inline double lineAllReduceSeconds(double arrayBytes, std::int64_t k, const sim::LinkSpec& link)
{
    return 2.0 * sim::lineAllGatherSeconds(arrayBytes, k, link);
}

/// Reduce-scatter, then all-gather.
inline double torusAllReduceSeconds(double arrayBytes, std::span<const sim::TorusAxis> axes, sim::Directions directions)
{
    return 2.0 * sim::torusAllGatherSeconds(arrayBytes, axes, directions);
}

/// From one end of a line, in m chunks: (k-1) alpha + (k-2+m) B/(m w).
inline double lineBroadcastSeconds(double arrayBytes, std::int64_t k, std::int64_t chunks, const sim::LinkSpec& link)
{
    if (k == 1)
        return 0.0;
    return static_cast<double>(k - 1) * link.latencySeconds
        + static_cast<double>(k - 2 + chunks) * arrayBytes / (static_cast<double>(chunks) * link.bytesPerSecond);
}

/// Both ways round: half of the data each.
inline double ringBroadcastSeconds(
    double arrayBytes, std::int64_t k, std::int64_t chunks, const sim::LinkSpec& link, sim::Directions directions)
{
    return lineBroadcastSeconds(directions == sim::Directions::One ? arrayBytes : arrayBytes / 2.0, k, chunks, link);
}

/// Cyclic shift by one on a line; the last device's message travels back: (k-1) alpha + B/w.
inline double lineShiftSeconds(double arrayBytes, std::int64_t k, const sim::LinkSpec& link)
{
    return k == 1 ? 0.0 : static_cast<double>(k - 1) * link.latencySeconds + arrayBytes / link.bytesPerSecond;
}

/// A link between every two: alpha + B/(n w).
inline double directAllToAllSeconds(double arrayBytes, std::int64_t n, const sim::LinkSpec& link)
{
    return link.latencySeconds + arrayBytes / (static_cast<double>(n) * link.bytesPerSecond);
}

/// g groups of m: rings inside the groups, then between them (`outer` is the port of each device):
/// 2(m-1)(a_a + B/(m w_a)) + 2(g-1)(a_e + B/(m g w_e)).
inline double hierarchicalAllReduceSeconds(
    double arrayBytes, std::int64_t groups, std::int64_t perGroup, const sim::LinkSpec& inner, const sim::LinkSpec& outer)
{
    return sim::switchRingAllReduceSeconds(arrayBytes, perGroup, inner)
        + sim::switchRingAllReduceSeconds(arrayBytes / static_cast<double>(perGroup), groups, outer);
}

} // namespace meshwright::tests
