// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/plan_answer.h"

#include "core/support/text.h"
#include "core/support/units.h"

#include <fmt/format.h>

#include <cmath>

namespace meshwright::sim {

TrainingTime trainingTimeOf(const FoundPlan& plan, double tokensPerStep, double tokens, double stateBytes,
    const PlanningData& data, const std::optional<ChipPrice>& price)
{
    const double chips = static_cast<double>(plan.chips);
    TrainingTime time;
    time.stepSeconds = plan.seconds();
    time.tokensPerSecond = tokensPerStep / time.stepSeconds;
    time.mfu = plan.mfu;
    time.goodput = goodputOf(data.chipSecondsPerFailure().value / chips,
        stateBytes / (data.storageBytesPerSecond().value * chips), data.restartSeconds().value);
    time.days = std::ceil(tokens / tokensPerStep) * time.stepSeconds / time.goodput.share / kSecondsPerDay;
    if (price)
        time.dollars = time.days * 24.0 * chips * price->dollarsPerHour;
    return time;
}

std::string PlanAnswer::rangeText() const
{
    const std::string low = formatDays(daysLow);
    const std::string high = formatDays(daysHigh);
    if (time.days < daysLow || time.days > daysHigh)
        return fmt::format(
            "{} to {}, as runs were {} than simulated: {}", low, high, time.days < daysLow ? "slower" : "quicker", rangeFrom);
    return fmt::format("between {} and {}: {}", low, high, rangeFrom);
}

std::string formatDays(double days)
{
    if (days >= 1000.0)
        return formatWhole(std::llround(days)) + " days";
    constexpr double kMinute = 60.0;
    const double seconds = days * kSecondsPerDay;
    if (seconds < kMinute)
        return formatSeconds(seconds);
    if (seconds < 60.0 * kMinute)
        return fmt::format("{:.1f} minutes", seconds / kMinute);
    return days < 2.0 ? fmt::format("{:.1f} hours", 24.0 * days) : fmt::format("{:.1f} days", days);
}

std::string formatDollars(double dollars)
{
    if (dollars >= 1e9)
        return fmt::format("${:.2f} G", dollars / 1e9);
    if (dollars >= 1e6)
        return fmt::format("${:.2f} M", dollars / 1e6);
    return dollars >= 1e4 ? fmt::format("${:.1f} k", dollars / 1e3) : fmt::format("${:.0f}", dollars);
}

} // namespace meshwright::sim
