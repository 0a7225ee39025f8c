// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/ring.h"

#include <cassert>

namespace meshwright::sim {

namespace {

void check([[maybe_unused]] double arrayBytes, [[maybe_unused]] std::int64_t k, [[maybe_unused]] const LinkSpec& link)
{
    assert(arrayBytes >= 0.0 && k >= 1 && link.bytesPerSecond > 0.0 && link.latencySeconds >= 0.0);
}

/// Link-hops that an all-to-all puts on the busiest link of a ring that sends both ways, in pieces of B/k.
double ringAllToAllPieces(std::int64_t k)
{
    const auto n = static_cast<double>(k);
    return k % 2 == 0 ? n * n / 8.0 : (n * n - 1.0) / 8.0;
}

} // namespace

double ringAllGatherSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link, Directions directions)
{
    check(arrayBytes, k, link);
    const auto n = static_cast<double>(k);
    const double whole = (n - 1.0) / n * arrayBytes / link.bytesPerSecond;
    if (directions == Directions::One)
        return (n - 1.0) * link.latencySeconds + whole;
    return static_cast<double>(k / 2) * link.latencySeconds + whole / 2.0;
}

double ringAllToAllSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link, Directions directions)
{
    check(arrayBytes, k, link);
    const auto n = static_cast<double>(k);
    if (directions == Directions::One)
        return (n - 1.0) * link.latencySeconds + (n - 1.0) / 2.0 * arrayBytes / link.bytesPerSecond;
    return static_cast<double>(k / 2) * link.latencySeconds + ringAllToAllPieces(k) * arrayBytes / (n * link.bytesPerSecond);
}

double ringPermuteSeconds(double arrayBytes, std::int64_t k, std::int64_t shift, const LinkSpec& link)
{
    check(arrayBytes, k, link);
    assert(shift >= 0 && shift < k);
    return static_cast<double>(shift) * (link.latencySeconds + arrayBytes / link.bytesPerSecond);
}

double lineAllGatherSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link)
{
    return ringAllGatherSeconds(arrayBytes, k, link, Directions::One);
}

double lineAllToAllSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link)
{
    check(arrayBytes, k, link);
    const auto n = static_cast<double>(k);
    return (n - 1.0) * link.latencySeconds + 2.0 * ringAllToAllPieces(k) * arrayBytes / (n * link.bytesPerSecond);
}

} // namespace meshwright::sim
