// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/chart.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace meshwright::chart {

namespace {

constexpr double kSwatch = 11.0;
constexpr double kLineSwatch = 20.0;
constexpr double kSwatchGap = 6.0; ///< between a swatch and its text
constexpr double kEntryGap = 18.0; ///< between two entries

/// A unit that numbers up to `largest` are readable in.
struct Unit {
    double size = 1.0;
    std::string name;
};

Unit unitFor(double largest, Quantity quantity)
{
    static constexpr std::array kBytes = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    static constexpr std::array kCounts = {"", "k", "M", "G", "T", "P"};
    switch (quantity) {
    case Quantity::Plain:
        return {};
    case Quantity::Count:
    case Quantity::Bytes: {
        const double base = quantity == Quantity::Bytes ? 1024.0 : 1000.0;
        Unit unit;
        std::size_t index = 0;
        while (largest >= unit.size * base && index + 1 < kBytes.size()) {
            unit.size *= base;
            ++index;
        }
        unit.name = quantity == Quantity::Bytes ? kBytes[index] : kCounts[index];
        return unit;
    }
    case Quantity::Seconds:
        if (largest >= 1.0)
            return {1.0, "s"};
        if (largest >= 1e-3)
            return {1e-3, "ms"};
        return largest >= 1e-6 ? Unit{1e-6, "µs"} : Unit{1e-9, "ns"};
    }
    return {};
}

std::string numberText(double value, double step)
{
    if (value == 0.0)
        return "0";
    const double size = std::max(std::fabs(value), step);
    if (size >= 1e7 || step < 1e-6)
        return fmt::format("{:.4g}", value);
    const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
    return fmt::format("{:.{}f}", value, decimals);
}

std::string tickText(double value, double step, const Unit& unit)
{
    const std::string number = numberText(value, step);
    return unit.name.empty() || number == "0" ? number : number + " " + unit.name;
}

double swatchWidth(const LegendEntry& entry)
{
    return entry.isLine ? kLineSwatch : kSwatch;
}

double entryWidth(const LegendEntry& entry)
{
    return swatchWidth(entry) + kSwatchGap + estimatedWidth(entry.text, kSmallSize);
}

/// Calls `place(entry, x, y)` for each entry, relative to the legend's corner; yields the height.
template <typename Place>
double flow(double width, const std::vector<LegendEntry>& entries, Place place)
{
    double x = 0.0;
    double y = 0.0;
    for (const LegendEntry& entry : entries) {
        const double needed = entryWidth(entry);
        if (x > 0.0 && x + needed > width) {
            x = 0.0;
            y += kLineHeight;
        }
        place(entry, x, y);
        x += needed + kEntryGap;
    }
    return entries.empty() ? 0.0 : y + kLineHeight;
}

} // namespace

std::vector<Tick> linearTicks(double from, double to, std::size_t most, Quantity quantity)
{
    const Unit unit = unitFor(std::max(std::fabs(from), std::fabs(to)), quantity);
    const double range = (to - from) / unit.size;
    if (!(range > 0.0) || !std::isfinite(range))
        return {{from, tickText(from / unit.size, 1.0, unit)}};
    const double step = niceStep(range / static_cast<double>(std::max<std::size_t>(2, most)));
    std::vector<Tick> ticks;
    const double first = std::ceil(from / unit.size / step - 1e-6);
    for (double i = first; i * step <= to / unit.size + 1e-6 * step; i += 1.0)
        ticks.push_back({i * step * unit.size, tickText(i == 0.0 ? 0.0 : i * step, step, unit)});
    return ticks;
}

std::vector<Tick> logarithmicTicks(double from, double to, std::size_t most, Quantity quantity)
{
    const double low = std::floor(std::log10(from));
    const double high = std::ceil(std::log10(to));
    const bool withFractions = std::floor(std::log10(to) + 1e-9) - std::ceil(std::log10(from) - 1e-9) < 1.0;
    const double every = std::max(1.0, std::ceil((high - low) / static_cast<double>(std::max<std::size_t>(2, most))));
    std::vector<Tick> ticks;
    for (double power = low; power <= high; power += 1.0) {
        for (const double factor : {1.0, 2.0, 5.0}) {
            const double value = factor * std::pow(10.0, power);
            if (value < from * (1.0 - 1e-9) || value > to * (1.0 + 1e-9) || (factor > 1.0 && !withFractions))
                continue;
            const bool labelled = withFractions || std::fmod(std::fabs(power), every) == 0.0;
            if (!labelled && every > 10.0)
                continue; // marks would run together
            const std::string text = quantity == Quantity::Plain
                ? (power >= -3.0 && power <= 4.0 ? fmt::format("{:g}", value) : fmt::format("{:.0e}", value))
                : quantityText(value, quantity);
            ticks.push_back({value, labelled ? text : std::string()});
        }
    }
    return ticks;
}

double PlotArea::x(double value) const
{
    return xTo > xFrom ? topLeft.x + width * (value - xFrom) / (xTo - xFrom) : topLeft.x + width / 2.0;
}

double PlotArea::y(double value) const
{
    if (!(yTo > yFrom))
        return topLeft.y + height / 2.0;
    const double share
        = logarithmic ? (std::log(value) - std::log(yFrom)) / (std::log(yTo) - std::log(yFrom)) : (value - yFrom) / (yTo - yFrom);
    return bottom() - height * share;
}

void addYAxis(DisplayList& list, const PlotArea& area, const std::vector<Tick>& ticks)
{
    for (const Tick& tick : ticks) {
        const double y = area.y(tick.value);
        list.items.push_back({LineShape{{area.topLeft.x, y}, {area.right(), y}, ColourRole::Grid}});
        if (!tick.text.empty())
            list.items.push_back(
                {TextShape{{area.topLeft.x - 6.0, y}, tick.text, kSmallSize, TextAnchor::End, ColourRole::MutedText}});
    }
}

void addXAxis(DisplayList& list, const PlotArea& area, const std::vector<Tick>& ticks)
{
    const double y = area.bottom();
    list.items.push_back({LineShape{{area.topLeft.x, y}, {area.right(), y}, ColourRole::Outline}});
    double free = -1e9;
    for (const Tick& tick : ticks) {
        const double x = area.x(tick.value);
        list.items.push_back({LineShape{{x, y}, {x, y + 4.0}, ColourRole::Outline}});
        // The outermost labels stay inside the picture.
        const double half = estimatedWidth(tick.text, kSmallSize) / 2.0;
        const double middle = std::clamp(x, area.topLeft.x - 20.0 + half, std::max(area.topLeft.x, area.right() + 8.0 - half));
        if (tick.text.empty() || middle - half < free)
            continue;
        list.items.push_back({TextShape{{middle, y + 13.0}, tick.text, kSmallSize, TextAnchor::Middle, ColourRole::MutedText}});
        free = middle + half + 6.0;
    }
}

double widestLabel(const std::vector<Tick>& ticks)
{
    double widest = 0.0;
    for (const Tick& tick : ticks)
        widest = std::max(widest, estimatedWidth(tick.text, kSmallSize));
    return widest;
}

double addHeading(DisplayList& list, const std::string& text, double width)
{
    if (text.empty())
        return kMargin;
    list.items.push_back({TextShape{{kMargin, kMargin + kHeadingHeight / 2.0 - 4.0},
        fitted(text, width - 2.0 * kMargin, kHeadingSize, true), kHeadingSize, TextAnchor::Start, ColourRole::Text, true}});
    return kMargin + kHeadingHeight;
}

double addLegend(DisplayList& list, Point topLeft, double width, const std::vector<LegendEntry>& entries)
{
    return flow(width, entries, [&](const LegendEntry& entry, double x, double y) {
        const Point at{topLeft.x + x, topLeft.y + y + kLineHeight / 2.0};
        if (entry.isLine) {
            list.items.push_back({LineShape{{at.x, at.y}, {at.x + kLineSwatch, at.y}, entry.swatch.outline,
                                      entry.swatch.outlineWidth, entry.dashed},
                entry.id, entry.tooltip});
        } else {
            list.items.push_back(
                {RectShape{{at.x, at.y - kSwatch / 2.0}, kSwatch, kSwatch, entry.swatch, 2.0}, entry.id, entry.tooltip});
        }
        list.items.push_back({TextShape{{at.x + swatchWidth(entry) + kSwatchGap, at.y}, entry.text, kSmallSize}});
    });
}

double legendHeight(double width, const std::vector<LegendEntry>& entries)
{
    return flow(width, entries, [](const LegendEntry&, double, double) {});
}

ShapeStyle filled(ColourRole role, Hatch hatch)
{
    ShapeStyle style;
    style.fill = role;
    style.hatch = hatch;
    style.hatchPaint = hatchPaintOn(role);
    return style;
}

std::string fitted(std::string_view text, double width, double size, bool bold)
{
    if (estimatedWidth(text, size, bold) <= width)
        return std::string(text);
    const double character = estimatedWidth("m", size, bold);
    const auto room = static_cast<std::ptrdiff_t>(std::floor(width / character)) - 1;
    if (room < 4)
        return {};
    // Cut between characters: count the bytes that begin one.
    std::ptrdiff_t count = 0;
    std::size_t at = 0;
    while (at < text.size()) {
        const bool begins = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
        if (begins && count++ == room)
            break;
        ++at;
    }
    return std::string(text.substr(0, at)) + "…";
}

void addTextOn(std::vector<DisplayItem>& items, const RectShape& shape, const std::string& text, ColourRole role, double size,
    TextAnchor anchor)
{
    constexpr double kPadding = 4.0;
    if (shape.height < size + 1.0)
        return;
    const std::string words = fitted(text, shape.width - 2.0 * kPadding, size);
    if (words.empty())
        return;
    const double y = shape.topLeft.y + shape.height / 2.0;
    const double x = anchor == TextAnchor::Middle ? shape.topLeft.x + shape.width / 2.0 : shape.topLeft.x + kPadding;
    Paint paint = textPaintOn(role);
    if (shape.style.hatch != Hatch::None) {
        const double width = std::min(estimatedWidth(words, size) + 4.0, shape.width);
        const double left = anchor == TextAnchor::Middle ? x - width / 2.0 : x - 2.0;
        const double height = std::min(size + 3.0, shape.height);
        items.push_back({RectShape{{left, y - height / 2.0}, width, height, filled(role), 2.0}});
    }
    items.push_back({TextShape{{x, y}, words, size, anchor, paint}});
}

void addPlate(std::vector<DisplayItem>& items, Point middle, const std::string& text, Paint paint, double size, bool bold)
{
    const double width = estimatedWidth(text, size, bold) + 8.0;
    const double height = size + 6.0;
    ShapeStyle style;
    style.fill = ColourRole::Surface;
    style.outline = ColourRole::Grid;
    items.push_back({RectShape{{middle.x - width / 2.0, middle.y - height / 2.0}, width, height, style, 3.0}});
    items.push_back({TextShape{middle, text, size, TextAnchor::Middle, paint, bold}});
}

} // namespace meshwright::chart
