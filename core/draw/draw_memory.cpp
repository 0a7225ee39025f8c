// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_memory.h"

#include "core/draw/chart.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace meshwright {

namespace {

using namespace chart;

constexpr double kMomentSpace = 80.0;
constexpr double kBytesSpace = 28.0;
constexpr double kLimitHeight = 16.0; ///< of the words about the limit, over the plot
constexpr double kAxisHeight = 24.0; ///< of the labels under the plot
constexpr double kFarLimit = 3.0; ///< a limit that is so many times the peak is not drawn to scale
constexpr double kLeastGap = 0.005; ///< of the peak: gaps between buffers below that are not worth a word

std::string shareText(std::int64_t bytes, std::int64_t whole)
{
    return whole > 0 ? fmt::format("{:.0f} %", 100.0 * static_cast<double>(bytes) / static_cast<double>(whole)) : std::string();
}

std::int64_t largestSum(const MemoryDrawing& drawing)
{
    std::int64_t largest = 0;
    for (const DrawnMemoryMoment& moment : drawing.moments)
        largest = std::max(largest, totalBytes(moment));
    return largest;
}

bool limitIsFar(const MemoryDrawing& drawing, std::int64_t peak)
{
    return static_cast<double>(drawing.limitBytes) > kFarLimit * static_cast<double>(peak);
}

std::vector<Tick> yTicks(double mostBytes, double height)
{
    return linearTicks(0.0, mostBytes, static_cast<std::size_t>(std::max(2.0, height / kBytesSpace)), Quantity::Bytes);
}

ShapeStyle styleOf(const DrawnMemoryKind& kind)
{
    return filled(kind.role, kind.hatch);
}

std::vector<LegendEntry> legendEntries(const MemoryDrawing& drawing)
{
    std::vector<LegendEntry> entries;
    for (auto kind = drawing.kinds.rbegin(); kind != drawing.kinds.rend(); ++kind) // as they are stacked
        entries.push_back({kind->name, styleOf(*kind)});
    return entries;
}

class MemoryPainter {
public:
    explicit MemoryPainter(const MemoryDrawing& drawing)
        : m_drawing(drawing)
        , m_frame(memoryFrame(drawing))
    {
        m_area = {m_frame.topLeft, m_frame.width, m_frame.height, 0.0, m_frame.endSeconds, 0.0, m_frame.mostBytes};
        if (!drawing.moments.empty())
            m_peakMoment = drawing.peakMoment.value_or(firstLargest());
    }

    DisplayList draw()
    {
        DisplayList list;
        list.title = m_drawing.title;
        list.width = m_drawing.width;
        list.height = m_drawing.height;
        addHeading(list, m_drawing.title, m_drawing.width);
        addYAxis(list, m_area, yTicks(m_frame.mostBytes, m_frame.height));
        if (m_drawing.moments.empty()) {
            list.items.push_back({TextShape{{m_area.topLeft.x + m_area.width / 2.0, m_area.topLeft.y + m_area.height / 2.0},
                "nothing in use", kTextSize, TextAnchor::Middle, ColourRole::MutedText}});
        } else {
            findColumns();
            addReserve(list);
            addAreas(list);
            addLabels(list);
        }
        const auto across = static_cast<std::size_t>(std::max(2.0, m_area.width / kMomentSpace));
        addXAxis(list, m_area, linearTicks(0.0, m_frame.endSeconds, across, Quantity::Seconds));
        if (!m_drawing.moments.empty()) {
            addLimit(list);
            addPeak(list);
        }
        if (m_drawing.legend)
            addLegend(
                list, {kMargin, m_area.bottom() + kAxisHeight + 4.0}, m_drawing.width - 2.0 * kMargin, legendEntries(m_drawing));
        return list;
    }

private:
    std::size_t firstLargest() const
    {
        const auto largest = std::max_element(m_drawing.moments.begin(), m_drawing.moments.end(),
            [](const DrawnMemoryMoment& a, const DrawnMemoryMoment& b) { return totalBytes(a) < totalBytes(b); });
        return static_cast<std::size_t>(largest - m_drawing.moments.begin());
    }

    /// Columns of pixels that show the same moment.
    struct Run {
        double left = 0.0;
        double right = 0.0;
        std::size_t moment = 0;
    };

    /// Each column shows the largest moment that begins in it or reaches into it.
    void findColumns()
    {
        const auto columns = static_cast<std::size_t>(std::max(1.0, std::floor(m_area.width)));
        const auto& moments = m_drawing.moments;
        std::size_t next = 0; // the first moment that has not begun
        std::size_t current = 0;
        for (std::size_t column = 0; column < columns; ++column) {
            const double left = m_area.topLeft.x + static_cast<double>(column);
            const bool last = column + 1 == columns;
            std::size_t shown = current;
            for (; next < moments.size() && (last || m_frame.xOf(moments[next].seconds) < left + 1.0); ++next) {
                current = next;
                if (next == 0 || totalBytes(moments[next]) > totalBytes(moments[shown]))
                    shown = next;
            }
            const double right = last ? m_area.right() : left + 1.0;
            if (!m_runs.empty() && m_runs.back().moment == shown)
                m_runs.back().right = right;
            else
                m_runs.push_back({left, right, shown});
        }
    }

    double topOf(const Run& run, std::size_t kind) const
    {
        const auto& bytes = m_drawing.moments[run.moment].bytesByKind;
        const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(kind) + 1;
        return m_frame.yOf(static_cast<double>(std::accumulate(bytes.begin(), end, std::int64_t{0})));
    }

    /// From the top of the stack down, each to the ground: no seams between neighbours.
    void addAreas(DisplayList& list) const
    {
        for (std::size_t kind = m_drawing.kinds.size(); kind-- > 0;) {
            PolygonShape shape;
            shape.style = styleOf(m_drawing.kinds[kind]);
            shape.corners.push_back({m_area.topLeft.x, m_area.bottom()});
            for (const Run& run : m_runs) {
                const double y = topOf(run, kind);
                if (shape.corners.back().y == y) {
                    shape.corners.back().x = run.right;
                    continue;
                }
                shape.corners.push_back({run.left, y});
                shape.corners.push_back({run.right, y});
            }
            shape.corners.push_back({m_area.right(), m_area.bottom()});
            list.items.push_back({shape, "kind:" + m_drawing.kinds[kind].name, kindTooltip(kind)});
        }
    }

    std::string kindTooltip(std::size_t kind) const
    {
        std::int64_t most = 0;
        for (const DrawnMemoryMoment& moment : m_drawing.moments)
            most = std::max(most, moment.bytesByKind[kind]);
        const DrawnMemoryMoment& peak = m_drawing.moments[m_peakMoment];
        return fmt::format("{}\nat the peak {} ({})\nat most {}", m_drawing.kinds[kind].name, formatBytes(peak.bytesByKind[kind]),
            shareText(peak.bytesByKind[kind], totalBytes(peak)), formatBytes(most));
    }

    /// The name of a kind where its band has most room, if it fits there.
    void addLabels(DisplayList& list) const
    {
        for (std::size_t kind = 0; kind < m_drawing.kinds.size(); ++kind) {
            const std::string& name = m_drawing.kinds[kind].name;
            const double width = estimatedWidth(name, kSmallSize) + 12.0;
            RectShape best{{}, 0.0, 0.0, styleOf(m_drawing.kinds[kind])};
            for (std::size_t first = 0; first < m_runs.size(); ++first)
                widen(best, kind, first, width);
            if (best.width > 0.0)
                addTextOn(list.items, best, name, m_drawing.kinds[kind].role, kSmallSize);
        }
    }

    /// Makes `best` the largest rectangle from run `first` on, in the band and wide enough for a line of text, if that is larger.
    void widen(RectShape& best, std::size_t kind, std::size_t first, double least) const
    {
        constexpr double kLineRoom = kSmallSize + 4.0;
        double top = m_area.topLeft.y;
        double bottom = m_area.bottom();
        for (std::size_t i = first; i < m_runs.size(); ++i) {
            top = std::max(top, topOf(m_runs[i], kind));
            bottom = std::min(bottom, kind == 0 ? m_area.bottom() : topOf(m_runs[i], kind - 1));
            if (bottom - top < kLineRoom)
                return;
            const double width = m_runs[i].right - m_runs[first].left;
            if (width >= least && width * (bottom - top) > best.width * best.height) {
                best.topLeft = {m_runs[first].left, top};
                best.width = width;
                best.height = bottom - top;
            }
        }
    }

    bool limitIsDrawn() const
    {
        return m_drawing.limitBytes > 0 && static_cast<double>(m_drawing.limitBytes) <= m_frame.mostBytes;
    }

    /// What the runtime keeps, as a band under the limit; the areas lie over it.
    void addReserve(DisplayList& list) const
    {
        if (!limitIsDrawn() || m_drawing.reserveBytes <= 0)
            return;
        const double top = m_frame.yOf(static_cast<double>(m_drawing.limitBytes));
        const double bottom = m_frame.yOf(static_cast<double>(m_drawing.limitBytes - m_drawing.reserveBytes));
        ShapeStyle style;
        style.fill = ColourRole::Surface;
        style.hatch = Hatch::Rising;
        style.hatchPaint = ColourRole::Grid;
        list.items.push_back({RectShape{{m_area.topLeft.x, top}, m_area.width, bottom - top, style}});
    }

    std::string limitTooltip() const
    {
        return fmt::format("memory of a device {}\nreserve {}\nusable {}", formatBytes(m_drawing.limitBytes),
            formatBytes(m_drawing.reserveBytes), formatBytes(m_drawing.limitBytes - m_drawing.reserveBytes));
    }

    void addLimit(DisplayList& list) const
    {
        if (m_drawing.limitBytes <= 0)
            return;
        const std::int64_t usable = m_drawing.limitBytes - m_drawing.reserveBytes;
        const auto line = [&](std::int64_t bytes, bool dashed) {
            const double y = m_frame.yOf(static_cast<double>(bytes));
            list.items.push_back({LineShape{{m_area.topLeft.x, y}, {m_area.right(), y}, ColourRole::Error, 1.5, dashed},
                "memory:limit", limitTooltip()});
        };
        if (limitIsDrawn()) {
            line(m_drawing.limitBytes, false);
            if (m_drawing.reserveBytes > 0)
                line(usable, true);
        }
        const std::string text
            = fmt::format("{}{}{}", limitIsDrawn() ? "" : "↑ not to scale: ", formatBytes(m_drawing.limitBytes),
                m_drawing.reserveBytes > 0 ? fmt::format(" a device, {} usable", formatBytes(usable)) : " a device");
        const double width = std::min(m_area.width, estimatedWidth(text, kSmallSize) + 8.0);
        const double top = m_area.topLeft.y - kLimitHeight;
        list.items.push_back({RectShape{{m_area.right() - width, top}, width, kLimitHeight, {}}, "memory:limit", limitTooltip()});
        list.items.push_back({TextShape{{m_area.right(), top + kLimitHeight / 2.0 - 2.0}, fitted(text, m_area.width, kSmallSize),
            kSmallSize, TextAnchor::End, limitIsDrawn() ? ColourRole::Error : ColourRole::MutedText}});
    }

    std::string peakTooltip(const DrawnMemoryMoment& peak) const
    {
        std::string text = fmt::format("peak {} at {}", formatBytes(m_drawing.peakBytes), formatSeconds(peak.seconds));
        for (std::size_t kind = m_drawing.kinds.size(); kind-- > 0;) {
            if (peak.bytesByKind[kind] > 0)
                text += fmt::format("\n{} {}", m_drawing.kinds[kind].name, formatBytes(peak.bytesByKind[kind]));
        }
        if (m_drawing.peakBytes > totalBytes(peak))
            text += fmt::format("\ngaps between buffers {}", formatBytes(m_drawing.peakBytes - totalBytes(peak)));
        return text;
    }

    void addPeak(DisplayList& list) const
    {
        const DrawnMemoryMoment& peak = m_drawing.moments[m_peakMoment];
        const std::int64_t used = totalBytes(peak);
        const std::int64_t needed = std::max(m_drawing.peakBytes, used);
        const double x = std::clamp(m_frame.xOf(peak.seconds) + 0.5, m_area.topLeft.x + 0.5, m_area.right() - 0.5);
        const double y = m_frame.yOf(static_cast<double>(needed));
        if (needed > used) // the buffers' gaps
            list.items.push_back({LineShape{{x, y}, {x, m_frame.yOf(static_cast<double>(used))}, ColourRole::Text, 1.0, true}});
        std::string text = fmt::format("peak {}", formatBytes(needed));
        if (static_cast<double>(needed - used) > kLeastGap * static_cast<double>(needed))
            text += fmt::format(", {} of it gaps", formatBytes(needed - used));

        // Beside the mark, on the side with room, above it where that is inside the plot.
        const double half = estimatedWidth(text, kSmallSize, true) / 2.0 + 4.0;
        const bool leftwards = x + 2.0 * half + 14.0 > m_area.right();
        const double middle = std::max(m_area.topLeft.x + half, leftwards ? x - half - 10.0 : x + half + 10.0);
        const double high = y - 23.0 < m_area.topLeft.y ? y + 14.0 : y - 14.0;
        addPlate(list.items, {middle, high}, text, ColourRole::Text, kSmallSize, true);
        ShapeStyle dot;
        dot.fill = ColourRole::Text;
        dot.outline = ColourRole::Background;
        dot.outlineWidth = 2.0;
        list.items.push_back({RectShape{{x - 6.0, y - 6.0}, 12.0, 12.0, dot, 6.0}, "memory:peak", peakTooltip(peak)});
    }

    const MemoryDrawing& m_drawing;
    MemoryFrame m_frame;
    PlotArea m_area;
    std::size_t m_peakMoment = 0;
    std::vector<Run> m_runs;
};

} // namespace

double MemoryFrame::xOf(double seconds) const
{
    return endSeconds > 0.0 ? topLeft.x + width * std::clamp(seconds / endSeconds, 0.0, 1.0) : topLeft.x;
}

double MemoryFrame::yOf(double bytes) const
{
    return topLeft.y + height * (1.0 - bytes / mostBytes);
}

double MemoryFrame::secondsAt(double x) const
{
    return width > 0.0 ? endSeconds * std::clamp((x - topLeft.x) / width, 0.0, 1.0) : 0.0;
}

MemoryFrame memoryFrame(const MemoryDrawing& drawing)
{
    MemoryFrame frame;
    frame.endSeconds = drawing.endSeconds;
    const std::int64_t peak = std::max({drawing.peakBytes, largestSum(drawing), std::int64_t{1}});
    const std::int64_t highest = limitIsFar(drawing, peak) ? peak : std::max(peak, drawing.limitBytes);
    frame.mostBytes = static_cast<double>(highest) * (highest == peak ? 1.2 : 1.04);
    const double legend = drawing.legend ? legendHeight(drawing.width - 2.0 * kMargin, legendEntries(drawing)) + 4.0 : 0.0;
    frame.topLeft.y = drawing.title.empty() ? kMargin : kMargin + kHeadingHeight;
    if (drawing.limitBytes > 0)
        frame.topLeft.y += kLimitHeight;
    frame.height = std::max(20.0, drawing.height - frame.topLeft.y - kAxisHeight - legend - kMargin / 2.0);
    frame.topLeft.x = kMargin + widestLabel(yTicks(frame.mostBytes, frame.height)) + 6.0;
    frame.width = std::max(20.0, drawing.width - frame.topLeft.x - kMargin);
    return frame;
}

std::size_t momentAt(const MemoryDrawing& drawing, double seconds)
{
    assert(!drawing.moments.empty());
    const auto after = std::upper_bound(drawing.moments.begin(), drawing.moments.end(), seconds,
        [](double wanted, const DrawnMemoryMoment& moment) { return wanted < moment.seconds; });
    return after == drawing.moments.begin() ? 0 : static_cast<std::size_t>(after - drawing.moments.begin()) - 1;
}

std::int64_t totalBytes(const DrawnMemoryMoment& moment)
{
    return std::accumulate(moment.bytesByKind.begin(), moment.bytesByKind.end(), std::int64_t{0});
}

DisplayList drawMemory(const MemoryDrawing& drawing)
{
    assert(drawing.width > 0.0 && drawing.height > 0.0);
    return MemoryPainter(drawing).draw();
}

} // namespace meshwright
