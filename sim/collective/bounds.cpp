// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/bounds.h"

#include <algorithm>
#include <cassert>

namespace meshwright::sim {

double allGatherTrafficBound(double arrayBytes, std::int64_t n, double totalBytesPerSecond)
{
    assert(n >= 1 && totalBytesPerSecond > 0.0);
    return static_cast<double>(n - 1) * arrayBytes / totalBytesPerSecond;
}

double allReduceTrafficBound(double arrayBytes, std::int64_t n, double totalBytesPerSecond)
{
    return 2.0 * allGatherTrafficBound(arrayBytes, n, totalBytesPerSecond);
}

double allGatherDeviceBound(double arrayBytes, std::int64_t n, double enteringBytesPerSecond)
{
    return allGatherTrafficBound(arrayBytes, n, static_cast<double>(n) * enteringBytesPerSecond);
}

double allReduceDeviceBound(double arrayBytes, std::int64_t n, double leavingBytesPerSecond)
{
    return 2.0 * allGatherDeviceBound(arrayBytes, n, leavingBytesPerSecond);
}

double allGatherCutBound(double arrayBytes, std::int64_t n, std::int64_t side, double cutBytesPerSecond)
{
    assert(side >= 1 && side < n && cutBytesPerSecond > 0.0);
    return static_cast<double>(std::max(side, n - side)) / static_cast<double>(n) * arrayBytes / cutBytesPerSecond;
}

double allReduceCutBound(double arrayBytes, double cutBytesPerSecond)
{
    assert(cutBytesPerSecond > 0.0);
    return arrayBytes / cutBytesPerSecond;
}

double allToAllCutBound(double arrayBytes, std::int64_t n, std::int64_t side, double cutBytesPerSecond)
{
    assert(side >= 1 && side < n && cutBytesPerSecond > 0.0);
    return static_cast<double>(side) * static_cast<double>(n - side) * arrayBytes / (static_cast<double>(n) * cutBytesPerSecond);
}

double latencyBound(double diameterHops, double hopSeconds)
{
    return diameterHops * hopSeconds;
}

} // namespace meshwright::sim
