// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_bars.h"

#include "core/draw/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace meshwright {

namespace {

using namespace chart;

constexpr double kLeastPart = 1.0; ///< pixels that a part above 0 has at least
constexpr double kBarHeight = 16.0; ///< in a list
constexpr double kBarPitch = 24.0;
constexpr double kLabelGap = 8.0;

double valueOf(const BarPart& part)
{
    return std::isfinite(part.value) ? std::max(0.0, part.value) : 0.0;
}

double sumOf(const std::vector<BarPart>& parts)
{
    double sum = 0.0;
    for (const BarPart& part : parts)
        sum += valueOf(part);
    return sum;
}

std::string shareText(double value, double whole)
{
    const double percent = whole > 0.0 ? 100.0 * value / whole : 0.0;
    return percent > 0.0 && percent < 1.0 ? "< 1 %" : fmt::format("{:.0f} %", percent);
}

std::string tooltipOf(const BarPart& part, double whole, Quantity quantity)
{
    std::string text
        = fmt::format("{}\n{} ({})", part.name, quantityText(valueOf(part), quantity), shareText(valueOf(part), whole));
    if (!part.detail.empty())
        text += "\n" + part.detail;
    return text;
}

/// Widths in proportion to the values, together `width`; parts above 0 keep at least kLeastPart.
std::vector<double> widthsOf(const std::vector<BarPart>& parts, double width)
{
    const double sum = sumOf(parts);
    std::vector<double> widths;
    double total = 0.0;
    for (const BarPart& part : parts) {
        const double value = valueOf(part);
        widths.push_back(value > 0.0 ? std::max(kLeastPart, width * value / sum) : 0.0);
        total += widths.back();
    }
    // What the smallest gained the largest gives.
    if (total > width)
        *std::max_element(widths.begin(), widths.end()) -= total - width;
    return widths;
}

std::string idOf(const BarPart& part)
{
    return part.id.empty() ? "part:" + part.name : part.id;
}

} // namespace

DisplayList drawStackedBar(const StackedBarDrawing& drawing)
{
    assert(drawing.width > 0.0 && drawing.barHeight > 0.0);
    DisplayList list;
    list.title = drawing.title;
    list.width = drawing.width;
    double y = addHeading(list, drawing.title, drawing.width);
    const double room = std::max(1.0, drawing.width - 2.0 * kMargin);
    const double whole = sumOf(drawing.parts);

    RectShape frame{{kMargin, y}, room, drawing.barHeight, {}};
    if (whole <= 0.0) {
        frame.style.outline = ColourRole::Grid;
        list.items.push_back({frame});
    }
    const std::vector<double> widths = whole > 0.0 ? widthsOf(drawing.parts, room) : std::vector<double>();
    double x = kMargin;
    std::vector<LegendEntry> legend;
    for (std::size_t i = 0; i < drawing.parts.size(); ++i) {
        const BarPart& part = drawing.parts[i];
        const std::string figure = quantityText(valueOf(part), drawing.quantity);
        const std::string tooltip = tooltipOf(part, whole, drawing.quantity);
        legend.push_back({fmt::format("{} {} ({})", part.name, figure, shareText(valueOf(part), whole)),
            filled(part.role, part.hatch), false, false, idOf(part), tooltip});
        if (i >= widths.size() || widths[i] <= 0.0)
            continue;
        RectShape shape{{x, y}, widths[i], drawing.barHeight, filled(part.role, part.hatch)};
        list.items.push_back({shape, idOf(part), tooltip});
        const std::string full = fmt::format("{} {}", part.name, figure);
        const bool fits = estimatedWidth(full, kTextSize) + 8.0 <= shape.width;
        if (fits || estimatedWidth(part.name, kTextSize) + 8.0 <= shape.width)
            addTextOn(list.items, shape, fits ? full : part.name, part.role, kTextSize);
        x += widths[i];
        if (x < kMargin + room - 0.5)
            list.items.push_back({LineShape{{x, y}, {x, y + drawing.barHeight}, ColourRole::Background}});
    }
    y += drawing.barHeight + 8.0;
    y += addLegend(list, {kMargin, y}, room, legend);
    list.height = std::ceil(y + kMargin - 4.0);
    return list;
}

namespace {

class BarsPainter {
public:
    explicit BarsPainter(const BarsDrawing& drawing)
        : m_drawing(drawing)
        , m_bars(shortened(drawing))
    {
        double longestLabel = 0.0;
        double longestFigure = 0.0;
        for (const Bar& bar : m_bars) {
            m_largest = std::max(m_largest, sumOf(bar.parts));
            longestLabel = std::max(longestLabel, estimatedWidth(bar.label, kTextSize));
            longestFigure = std::max(longestFigure, estimatedWidth(figureOf(bar), kSmallSize));
        }
        const double room = drawing.width - 2.0 * kMargin;
        m_labelWidth = std::min(longestLabel, 0.42 * room);
        const double figure = std::min(longestFigure, 0.34 * room);
        m_barWidth = std::max(20.0, room - m_labelWidth - figure - 2.0 * kLabelGap);
    }

    DisplayList draw()
    {
        DisplayList list;
        list.title = m_drawing.title;
        list.width = m_drawing.width;
        double y = addHeading(list, m_drawing.title, m_drawing.width);
        for (std::size_t i = 0; i < m_bars.size(); ++i) {
            addBar(list, m_bars[i], i, y);
            y += kBarPitch;
        }
        if (m_bars.empty()) {
            list.items.push_back({TextShape{
                {kMargin, y + kLineHeight / 2.0}, "nothing to show", kTextSize, TextAnchor::Start, ColourRole::MutedText}});
            y += kLineHeight;
        }
        const auto legend = legendEntries();
        if (m_drawing.legend && legend.size() > 1)
            y += 4.0 + addLegend(list, {kMargin, y + 4.0}, m_drawing.width - 2.0 * kMargin, legend);
        list.height = std::ceil(y + kMargin - 4.0);
        return list;
    }

private:
    /// The bars that are shown, the last one standing for those left out.
    static std::vector<Bar> shortened(const BarsDrawing& drawing)
    {
        if (drawing.bars.size() <= drawing.mostBars || drawing.mostBars == 0)
            return drawing.bars;
        std::vector<Bar> bars(drawing.bars.begin(), drawing.bars.begin() + static_cast<std::ptrdiff_t>(drawing.mostBars) - 1);
        const std::size_t left = drawing.bars.size() - bars.size();
        Bar rest;
        rest.label = fmt::format("{} more", left);
        rest.id = "bars:rest";
        BarPart part;
        part.name = "together";
        part.role = ColourRole::Idle;
        for (std::size_t i = bars.size(); i < drawing.bars.size(); ++i)
            part.value += sumOf(drawing.bars[i].parts);
        rest.parts.push_back(part);
        bars.push_back(rest);
        return bars;
    }

    std::string figureOf(const Bar& bar) const
    {
        const std::string figure = quantityText(sumOf(bar.parts), m_drawing.quantity);
        return bar.note.empty() ? figure : figure + ", " + bar.note;
    }

    void addBar(DisplayList& list, const Bar& bar, std::size_t index, double y) const
    {
        const double middle = y + kBarPitch / 2.0;
        const double left = kMargin + m_labelWidth + kLabelGap;
        const double sum = sumOf(bar.parts);

        // The whole row can be hovered and clicked.
        std::string tooltip = bar.tooltip.empty() ? bar.label + "\n" + figureOf(bar) : bar.tooltip;
        list.items.push_back({RectShape{{kMargin, y}, m_drawing.width - 2.0 * kMargin, kBarPitch, {}},
            bar.id.empty() ? fmt::format("bar:{}", index) : bar.id, tooltip});
        list.items.push_back({TextShape{
            {left - kLabelGap, middle}, fitted(bar.label, m_labelWidth + 1.0, kTextSize), kTextSize, TextAnchor::End}});
        double x = left;
        if (sum > 0.0 && m_largest > 0.0) {
            const auto widths = widthsOf(bar.parts, std::max(2.0, m_barWidth * sum / m_largest));
            for (std::size_t i = 0; i < bar.parts.size(); ++i) {
                if (widths[i] <= 0.0)
                    continue;
                list.items.push_back({RectShape{
                    {x, middle - kBarHeight / 2.0}, widths[i], kBarHeight, filled(bar.parts[i].role, bar.parts[i].hatch)}});
                x += widths[i];
            }
        }
        const double figureLeft = x + kLabelGap;
        list.items.push_back(
            {TextShape{{figureLeft, middle}, fitted(figureOf(bar), m_drawing.width - kMargin - figureLeft, kSmallSize),
                kSmallSize, TextAnchor::Start, ColourRole::MutedText}});
    }

    /// In the order in which parts stand in the bars; those that are nowhere above 0 left out.
    std::vector<LegendEntry> legendEntries() const
    {
        std::vector<LegendEntry> entries;
        std::vector<bool> isSeen;
        for (const Bar& bar : m_bars) {
            for (const BarPart& part : bar.parts) {
                const auto known = std::find_if(
                    entries.begin(), entries.end(), [&](const LegendEntry& entry) { return entry.text == part.name; });
                const auto index = static_cast<std::size_t>(known - entries.begin());
                if (known == entries.end()) {
                    entries.push_back({part.name, filled(part.role, part.hatch)});
                    isSeen.push_back(false);
                }
                isSeen[index] = isSeen[index] || valueOf(part) > 0.0;
            }
        }
        std::vector<LegendEntry> seen;
        for (std::size_t i = 0; i < entries.size(); ++i) {
            if (isSeen[i])
                seen.push_back(entries[i]);
        }
        return seen;
    }

    const BarsDrawing& m_drawing;
    std::vector<Bar> m_bars;
    double m_largest = 0.0;
    double m_labelWidth = 0.0;
    double m_barWidth = 0.0;
};

} // namespace

DisplayList drawBars(const BarsDrawing& drawing)
{
    assert(drawing.width > 0.0);
    return BarsPainter(drawing).draw();
}

} // namespace meshwright
