// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/network/ring.h"

#include <algorithm>
#include <cassert>
#include <numeric>

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

double ringAllReduceSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link, Directions directions)
{
    return 2.0 * ringAllGatherSeconds(arrayBytes, k, link, directions);
}

double ringAllToAllSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link, Directions directions)
{
    check(arrayBytes, k, link);
    const auto n = static_cast<double>(k);
    if (directions == Directions::One)
        return (n - 1.0) * link.latencySeconds + (n - 1.0) / 2.0 * arrayBytes / link.bytesPerSecond;
    return static_cast<double>(k / 2) * link.latencySeconds + ringAllToAllPieces(k) * arrayBytes / (n * link.bytesPerSecond);
}

double ringBroadcastSeconds(double arrayBytes, std::int64_t k, std::int64_t chunks, const LinkSpec& link, Directions directions)
{
    const double half = directions == Directions::One ? 1.0 : 0.5;
    return lineBroadcastSeconds(half * arrayBytes, k, chunks, link);
}

double ringPermuteSeconds(double arrayBytes, std::int64_t k, std::int64_t shift, const LinkSpec& link, Directions directions)
{
    check(arrayBytes, k, link);
    assert(shift >= 0 && shift < k);
    if (shift == 0)
        return 0.0;
    const auto s = static_cast<double>(shift);
    const auto n = static_cast<double>(k);
    if (directions == Directions::One)
        return s * link.latencySeconds + s * arrayBytes / link.bytesPerSecond;
    return std::max(s, n - s) * link.latencySeconds + s * (n - s) / n * arrayBytes / link.bytesPerSecond;
}

double unequalRingAllReduceSeconds(double arrayBytes, std::span<const std::int64_t> hops, const LinkSpec& link, RingSends sends)
{
    const auto k = static_cast<std::int64_t>(hops.size());
    check(arrayBytes, k, link);
    const auto n = static_cast<double>(k);
    const double links = sends == RingSends::Waiting
        ? static_cast<double>(*std::ranges::max_element(hops))
        : static_cast<double>(std::accumulate(hops.begin(), hops.end(), std::int64_t{0})) / n;
    return 2.0 * (n - 1.0) * (links * link.latencySeconds + arrayBytes / (n * link.bytesPerSecond));
}

double lineAllGatherSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link)
{
    return ringAllGatherSeconds(arrayBytes, k, link, Directions::One);
}

double lineAllReduceSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link)
{
    return 2.0 * lineAllGatherSeconds(arrayBytes, k, link);
}

double lineChainAllReduceSeconds(double arrayBytes, std::int64_t k, std::int64_t chunks, const LinkSpec& link)
{
    check(arrayBytes, k, link);
    assert(chunks >= 1);
    if (k == 1)
        return 0.0;
    const double chunkSeconds = arrayBytes / (static_cast<double>(chunks) * link.bytesPerSecond);
    return 2.0 * static_cast<double>(k - 1) * (link.latencySeconds + chunkSeconds)
        + static_cast<double>(chunks - 1) * chunkSeconds;
}

double lineAllToAllSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link)
{
    check(arrayBytes, k, link);
    const auto n = static_cast<double>(k);
    return (n - 1.0) * link.latencySeconds + 2.0 * ringAllToAllPieces(k) * arrayBytes / (n * link.bytesPerSecond);
}

double lineBroadcastSeconds(double arrayBytes, std::int64_t k, std::int64_t chunks, const LinkSpec& link)
{
    check(arrayBytes, k, link);
    assert(chunks >= 1);
    if (k == 1)
        return 0.0;
    return static_cast<double>(k - 1) * link.latencySeconds
        + static_cast<double>(k - 2 + chunks) * arrayBytes / (static_cast<double>(chunks) * link.bytesPerSecond);
}

double lineShiftSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link)
{
    check(arrayBytes, k, link);
    return k == 1 ? 0.0 : static_cast<double>(k - 1) * link.latencySeconds + arrayBytes / link.bytesPerSecond;
}

double foldedRingAllGatherSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link)
{
    LinkSpec folded = link;
    if (k >= 3)
        folded.latencySeconds *= 2.0;
    return ringAllGatherSeconds(arrayBytes, k, folded, Directions::One);
}

} // namespace meshwright::sim
