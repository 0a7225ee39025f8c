// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cmath>
#include <cstdint>

namespace meshwright::sim {

/// Simulated time in whole picoseconds: 64 bits hold 106 days, and sums do not depend on their order.
using Ticks = std::int64_t;

inline constexpr double kTicksPerSecond = 1e12;

/// 13 days: what takes longer, or for ever, takes so long. Two such times and what has passed before them still add up in 64 bits.
inline constexpr Ticks kLongestTicks = Ticks{1} << 60;

/// The nearest tick, up to kLongestTicks. Precondition: seconds >= 0, or no number.
inline Ticks ticksOf(double seconds)
{
    const double ticks = seconds * kTicksPerSecond;
    return ticks < static_cast<double>(kLongestTicks) ? std::llround(ticks) : kLongestTicks;
}

inline double secondsOf(Ticks ticks)
{
    return static_cast<double>(ticks) / kTicksPerSecond;
}

} // namespace meshwright::sim
