// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/time_axis.h"

#include "core/draw/quantity.h"
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace meshwright::ui {

namespace {

constexpr double kShortestShare = 1e-9;
constexpr int kMostFigures = 6;

struct Unit {
    const char* name;
    double size;
};

constexpr std::array kTimeUnits = {Unit{"s", 1.0}, Unit{"ms", 1e-3}, Unit{"µs", 1e-6}, Unit{"ns", 1e-9}, Unit{"ps", 1e-12}};
constexpr Unit kPercent{"%", 0.01};

/// The largest unit of which `value` is at least one.
Unit timeUnitOf(double value)
{
    for (const Unit& unit : kTimeUnits) {
        if (value >= 0.9999995 * unit.size)
            return unit;
    }
    return kTimeUnits.back();
}

int decimalsFor(double step, const Unit& unit)
{
    return std::max(0, static_cast<int>(std::ceil(-std::log10(step / unit.size) - 1e-9)));
}

int figuresBeforePoint(double value, const Unit& unit)
{
    return value < unit.size ? 1 : 1 + static_cast<int>(std::floor(std::log10(value / unit.size)));
}

std::string text(double value, int decimals, const Unit& unit)
{
    return fmt::format("{:.{}f} {}", value / unit.size, decimals, unit.name);
}

template <typename UnitOf>
Ticks ticksWith(TimeWindow window, int most, UnitOf unitOf)
{
    Ticks ticks;
    ticks.step = niceStep(window.length() / most);
    Unit unit = unitOf(window.end);
    int decimals = decimalsFor(ticks.step, unit);
    double base = 0.0;
    const char* sign = "";
    if (decimals > 0 && figuresBeforePoint(window.end, unit) + decimals > kMostFigures) {
        const double coarse = 10.0 * niceStep(window.length());
        base = std::floor(window.begin / coarse) * coarse;
        ticks.base = text(base, decimalsFor(coarse, unit), unit) + " +";
        unit = unitOf(window.end - base);
        decimals = decimalsFor(ticks.step, unit);
        sign = "+";
    }
    const auto first = static_cast<std::int64_t>(std::ceil((window.begin - base) / ticks.step - 1e-9));
    for (std::int64_t i = first; base + static_cast<double>(i) * ticks.step <= window.end + 1e-9 * ticks.step; ++i) {
        const double offset = static_cast<double>(i) * ticks.step;
        ticks.marks.push_back({base + offset, sign + text(offset, decimals, unit)});
    }
    return ticks;
}

} // namespace

TimeAxis::TimeAxis(const TimelineModel& model, bool isStretched)
    : m_isStretched(isStretched)
{
    double longest = 0.0;
    for (const ModelGroup& group : model.groups())
        longest = std::max(longest, group.part->endSeconds());
    if (longest <= 0.0)
        longest = 1.0;
    for (const ModelGroup& group : model.groups()) {
        const double end = group.part->endSeconds();
        m_secondsPerUnit.push_back(!isStretched ? 1.0 : end > 0.0 ? end : longest);
    }
    m_end = isStretched ? 1.0 : longest;
}

TimeWindow TimeAxis::toSeconds(std::uint32_t group, TimeWindow window) const
{
    const double scale = m_secondsPerUnit[group];
    return {window.begin * scale, window.end * scale};
}

TimeWindow TimeAxis::fromSeconds(std::uint32_t group, TimeWindow seconds) const
{
    const double scale = m_secondsPerUnit[group];
    return {seconds.begin / scale, seconds.end / scale};
}

TimeWindow TimeAxis::clamped(TimeWindow window) const
{
    const double length = std::clamp(window.length(), kShortestShare * m_end, m_end);
    const double middle = (window.begin + window.end) / 2.0;
    const double begin = std::clamp(middle - length / 2.0, 0.0, m_end - length);
    return {begin, begin + length};
}

TimeWindow TimeAxis::zoomed(TimeWindow window, double at, double factor) const
{
    const double length = std::clamp(window.length() * factor, kShortestShare * m_end, m_end);
    const double before = (at - window.begin) / window.length();
    const double begin = at - before * length;
    return clamped({begin, begin + length});
}

TimeWindow TimeAxis::moved(TimeWindow window, double by) const
{
    const double begin = std::clamp(window.begin + by, 0.0, m_end - window.length());
    return {begin, begin + window.length()};
}

Ticks timeTicks(TimeWindow seconds, int most)
{
    return ticksWith(seconds, most, timeUnitOf);
}

Ticks shareTicks(TimeWindow shares, int most)
{
    return ticksWith(shares, most, [](double) { return kPercent; });
}

std::string exactTime(double seconds, double resolution)
{
    const Unit unit = timeUnitOf(std::max(std::abs(seconds), resolution));
    return text(seconds, std::min(9, decimalsFor(resolution, unit)), unit);
}

} // namespace meshwright::ui
