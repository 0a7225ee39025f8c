// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/switch.h"

#include "core/support/checked.h"

#include <bit>
#include <cassert>

namespace meshwright::sim {

namespace {

double whole(double arrayBytes, const LinkSpec& port)
{
    assert(arrayBytes >= 0.0 && port.bytesPerSecond > 0.0 && port.latencySeconds >= 0.0);
    return arrayBytes / port.bytesPerSecond;
}

/// (n-1)/n as a number.
double otherShare(std::int64_t n)
{
    assert(n >= 1);
    return static_cast<double>(n - 1) / static_cast<double>(n);
}

double floorLog2(std::int64_t n)
{
    return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(n)) - 1);
}

} // namespace

double switchRingAllGatherSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port)
{
    return static_cast<double>(n - 1) * port.latencySeconds + otherShare(n) * whole(arrayBytes, port);
}

double switchRingAllReduceSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port)
{
    return 2.0 * switchRingAllGatherSeconds(arrayBytes, n, port);
}

double doublingAllGatherSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port)
{
    assert(isPowerOfTwo(n));
    return floorLog2(n) * port.latencySeconds + otherShare(n) * whole(arrayBytes, port);
}

double halvingDoublingAllReduceSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port)
{
    const auto core = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
    const double fold = core == n ? 0.0 : 2.0 * (port.latencySeconds + whole(arrayBytes, port));
    return 2.0 * doublingAllGatherSeconds(arrayBytes, core, port) + fold;
}

double recursiveDoublingAllReduceSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port)
{
    assert(isPowerOfTwo(n));
    return floorLog2(n) * (port.latencySeconds + whole(arrayBytes, port));
}

double binomialBroadcastSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port)
{
    return asDouble(ceilLog2(n)) * (port.latencySeconds + whole(arrayBytes, port));
}

double chainBroadcastSeconds(double arrayBytes, std::int64_t n, std::int64_t chunks, const LinkSpec& port)
{
    assert(chunks >= 1);
    if (n == 1)
        return 0.0;
    const auto hops = static_cast<double>(n - 1);
    const auto pieces = static_cast<double>(chunks);
    return hops * port.latencySeconds + (hops - 1.0 + pieces) * (whole(arrayBytes, port) / pieces);
}

double doubleTreeAllReduceSeconds(double arrayBytes, std::int64_t n, double chunkBytes, const LinkSpec& port)
{
    if (n == 1)
        return 0.0;
    return 2.0 * whole(arrayBytes, port) + 4.0 * asDouble(ceilLog2(n)) * (port.latencySeconds + whole(chunkBytes, port));
}

double inSwitchAllReduceSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port)
{
    return n == 1 ? 0.0 : port.latencySeconds + whole(arrayBytes, port);
}

double pairwiseAllToAllSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port)
{
    return switchRingAllGatherSeconds(arrayBytes, n, port);
}

double bruckAllToAllSeconds(double arrayBytes, std::int64_t n, const LinkSpec& port)
{
    assert(isPowerOfTwo(n));
    return floorLog2(n) * (port.latencySeconds + whole(arrayBytes, port) / 2.0);
}

double fatTreeAllToAllSeconds(
    double arrayBytes, std::int64_t n, const LinkSpec& port, std::int64_t perLeaf, double oversubscription)
{
    assert(perLeaf >= 1 && perLeaf <= n && oversubscription >= 1.0);
    const auto devices = static_cast<double>(n);
    const double staying = static_cast<double>(perLeaf - 1) / devices;
    const double leaving = static_cast<double>(n - perLeaf) / devices;
    return static_cast<double>(n - 1) * port.latencySeconds + (staying + leaving * oversubscription) * whole(arrayBytes, port);
}

double directAllGatherSeconds(double arrayBytes, std::int64_t n, const LinkSpec& link)
{
    return n == 1 ? 0.0 : link.latencySeconds + whole(arrayBytes, link) / static_cast<double>(n);
}

double directAllReduceSeconds(double arrayBytes, std::int64_t n, const LinkSpec& link)
{
    return 2.0 * directAllGatherSeconds(arrayBytes, n, link);
}

} // namespace meshwright::sim
