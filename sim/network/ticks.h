// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cmath>
#include <cstdint>

namespace meshwright::sim {

/// Simulated time in whole picoseconds: 64 bits hold 106 days either way, and sums do not depend on their order.
using Ticks = std::int64_t;

inline constexpr double kTicksPerSecond = 1e12;

/// The nearest tick. Precondition: |seconds| < 9e6.
inline Ticks ticksOf(double seconds)
{
    return std::llround(seconds * kTicksPerSecond);
}

inline double secondsOf(Ticks ticks)
{
    return static_cast<double>(ticks) / kTicksPerSecond;
}

} // namespace meshwright::sim
