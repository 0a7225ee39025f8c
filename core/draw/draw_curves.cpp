// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_curves.h"

#include "core/draw/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace meshwright {

namespace {

using namespace chart;

constexpr double kTickSpaceX = 70.0; ///< pixels between labels, about
constexpr double kTickSpaceY = 36.0;

struct Range {
    double from = std::numeric_limits<double>::infinity();
    double to = -std::numeric_limits<double>::infinity();

    void add(double value)
    {
        from = std::min(from, value);
        to = std::max(to, value);
    }
    bool empty() const { return from > to; }
};

class CurvesPainter {
public:
    explicit CurvesPainter(const CurvesDrawing& drawing)
        : m_drawing(drawing)
    {
        for (const Curve& curve : drawing.curves) {
            assert(curve.x.size() == curve.y.size());
            for (std::size_t i = 0; i < curve.x.size(); ++i) {
                if (drawable(curve, i)) {
                    m_x.add(curve.x[i]);
                    m_y.add(curve.y[i]);
                }
            }
        }
    }

    DisplayList draw()
    {
        DisplayList list;
        list.title = m_drawing.title;
        list.width = m_drawing.width;
        list.height = m_drawing.height;
        double top = addHeading(list, m_drawing.title, m_drawing.width);
        const auto legend = legendEntries();
        const double room = m_drawing.width - 2.0 * kMargin;
        if (m_x.empty()) {
            list.items.push_back({TextShape{{m_drawing.width / 2.0, (top + m_drawing.height) / 2.0}, "no values", kTextSize,
                TextAnchor::Middle, ColourRole::MutedText}});
            return list;
        }
        if (!m_drawing.yTitle.empty()) {
            list.items.push_back(
                {TextShape{{kMargin, top + 6.0}, m_drawing.yTitle, kSmallSize, TextAnchor::Start, ColourRole::MutedText}});
            top += kLineHeight;
        }
        const double bottom
            = 24.0 + (m_drawing.xTitle.empty() ? 0.0 : kLineHeight) + (legend.size() > 1 ? legendHeight(room, legend) : 0.0);
        PlotArea area;
        area.height = std::max(20.0, m_drawing.height - top - bottom - 8.0);
        area.logarithmic = m_drawing.logarithmic;
        setRangeY(area);
        const auto most = static_cast<std::size_t>(std::max(2.0, area.height / kTickSpaceY));
        const auto yTicks = area.logarithmic ? logarithmicTicks(area.yFrom, area.yTo, most, m_drawing.yQuantity)
                                             : linearTicks(area.yFrom, area.yTo, most, m_drawing.yQuantity);
        area.topLeft = {kMargin + widestLabel(yTicks) + 6.0, top};
        area.width = std::max(20.0, m_drawing.width - area.topLeft.x - kMargin);
        area.xFrom = m_x.from;
        area.xTo = m_x.to;

        addYAxis(list, area, yTicks);
        const auto across = static_cast<std::size_t>(std::max(2.0, area.width / kTickSpaceX));
        addXAxis(list, area, linearTicks(area.xFrom, area.xTo, across, m_drawing.xQuantity));
        for (std::size_t i = 0; i < m_drawing.marks.size(); ++i)
            addMark(list, area, i);
        for (std::size_t i = 0; i < m_drawing.curves.size(); ++i)
            addCurve(list, area, i);
        double y = area.bottom() + 24.0;
        if (!m_drawing.xTitle.empty()) {
            list.items.push_back({TextShape{{area.topLeft.x + area.width / 2.0, y + 6.0}, m_drawing.xTitle, kSmallSize,
                TextAnchor::Middle, ColourRole::MutedText}});
            y += kLineHeight;
        }
        if (legend.size() > 1)
            addLegend(list, {kMargin, y}, room, legend);
        return list;
    }

private:
    bool drawable(const Curve& curve, std::size_t i) const
    {
        return std::isfinite(curve.x[i]) && std::isfinite(curve.y[i]) && (!m_drawing.logarithmic || curve.y[i] > 0.0);
    }

    void setRangeY(PlotArea& area) const
    {
        area.yFrom = m_y.from;
        area.yTo = m_y.to;
        if (area.logarithmic) {
            // At least one power of ten, and a little air.
            area.yFrom = m_y.from / 1.3;
            area.yTo = m_y.to * 1.3;
            if (area.yTo / area.yFrom < 10.0) {
                const double widen = std::sqrt(10.0 / (area.yTo / area.yFrom));
                area.yFrom /= widen;
                area.yTo *= widen;
            }
            return;
        }
        if (m_drawing.fromZero)
            area.yFrom = std::min(0.0, area.yFrom);
        double air = 0.05 * (area.yTo - area.yFrom);
        if (!(air > 0.0))
            air = area.yTo == 0.0 ? 1.0 : 0.1 * std::fabs(area.yTo);
        area.yTo += air;
        if (!(m_drawing.fromZero && area.yFrom == 0.0))
            area.yFrom -= air;
    }

    /// The points of one unbroken stretch, at most four for each column of pixels.
    static std::vector<Point> thinned(const std::vector<Point>& points)
    {
        std::vector<Point> kept;
        const auto keep = [&](const Point& point) {
            if (kept.empty() || !(kept.back() == point))
                kept.push_back(point);
        };
        for (std::size_t first = 0; first < points.size();) {
            std::size_t end = first + 1;
            while (end < points.size() && std::floor(points[end].x) == std::floor(points[first].x))
                ++end;
            const auto begin = points.begin() + static_cast<std::ptrdiff_t>(first);
            const auto stop = points.begin() + static_cast<std::ptrdiff_t>(end);
            auto [lowest, highest] = std::minmax_element(begin, stop, [](Point a, Point b) { return a.y < b.y; });
            keep(*begin);
            keep(*std::min(lowest, highest));
            keep(*std::max(lowest, highest));
            keep(*(stop - 1));
            first = end;
        }
        return kept;
    }

    void addCurve(DisplayList& list, const PlotArea& area, std::size_t index) const
    {
        const Curve& curve = m_drawing.curves[index];
        const std::string id = fmt::format("curve:{}", index);
        const std::string tooltip = tooltipOf(curve);
        std::vector<Point> stretch;
        const auto flush = [&] {
            if (stretch.size() == 1) { // a lone point between two gaps
                ShapeStyle dot;
                dot.fill = curve.paint;
                list.items.push_back({RectShape{{stretch[0].x - 2.0, stretch[0].y - 2.0}, 4.0, 4.0, dot, 2.0}, id, tooltip});
            } else if (stretch.size() > 1) {
                list.items.push_back({PolylineShape{thinned(stretch), curve.paint, 2.0, curve.dashed}, id, tooltip});
            }
            stretch.clear();
        };
        for (std::size_t i = 0; i < curve.x.size(); ++i) {
            if (drawable(curve, i))
                stretch.push_back({area.x(curve.x[i]), area.y(curve.y[i])});
            else
                flush();
        }
        flush();
    }

    /// Its text stands on the side with more room, each a line lower than the one before.
    void addMark(DisplayList& list, const PlotArea& area, std::size_t index) const
    {
        const CurveMark& mark = m_drawing.marks[index];
        if (!(mark.x >= area.xFrom && mark.x <= area.xTo))
            return;
        const std::string id = fmt::format("mark:{}", index);
        const double x = area.x(mark.x);
        const bool isLeft = x > area.topLeft.x + area.width / 2.0;
        const double room = (isLeft ? x - area.topLeft.x : area.right() - x) - 8.0;
        list.items.push_back(
            {PolylineShape{{{x, area.topLeft.y}, {x, area.bottom()}}, ColourRole::MutedText, 1.0, true}, id, mark.text});
        list.items.push_back({TextShape{{x + (isLeft ? -4.0 : 4.0), area.topLeft.y + 6.0 + 14.0 * static_cast<double>(index % 4)},
                                  fitted(mark.text, room, kSmallSize), kSmallSize, isLeft ? TextAnchor::End : TextAnchor::Start,
                                  ColourRole::MutedText},
            id, mark.text});
    }

    std::string tooltipOf(const Curve& curve) const
    {
        Range range;
        std::size_t count = 0;
        std::size_t last = 0;
        for (std::size_t i = 0; i < curve.x.size(); ++i) {
            if (!drawable(curve, i))
                continue;
            range.add(curve.y[i]);
            last = i;
            ++count;
        }
        if (count == 0)
            return curve.name + "\nno values";
        std::string text = fmt::format("{}\n{} values, {} to {}\nlast: {} at {}{}", curve.name, count,
            quantityText(range.from, m_drawing.yQuantity), quantityText(range.to, m_drawing.yQuantity),
            quantityText(curve.y[last], m_drawing.yQuantity), m_drawing.xTitle.empty() ? std::string() : m_drawing.xTitle + " ",
            quantityText(curve.x[last], m_drawing.xQuantity));
        if (count < curve.x.size())
            text += fmt::format(
                "\n{} left out: not finite{}", curve.x.size() - count, m_drawing.logarithmic ? ", or not above 0" : "");
        return text;
    }

    std::vector<LegendEntry> legendEntries() const
    {
        std::vector<LegendEntry> entries;
        for (std::size_t i = 0; i < m_drawing.curves.size(); ++i) {
            const Curve& curve = m_drawing.curves[i];
            ShapeStyle line;
            line.outline = curve.paint;
            line.outlineWidth = 2.0;
            entries.push_back({curve.name, line, true, curve.dashed, fmt::format("curve:{}", i), tooltipOf(curve)});
        }
        return entries;
    }

    const CurvesDrawing& m_drawing;
    Range m_x;
    Range m_y;
};

} // namespace

DisplayList drawCurves(const CurvesDrawing& drawing)
{
    assert(drawing.width > 0.0 && drawing.height > 0.0);
    return CurvesPainter(drawing).draw();
}

} // namespace meshwright
