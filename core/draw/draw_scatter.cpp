// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_scatter.h"

#include "core/draw/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace meshwright {

namespace {

using namespace chart;

constexpr double kMark = 4.5; ///< radius, pixels

class ScatterPainter {
public:
    explicit ScatterPainter(const ScatterDrawing& drawing)
        : m_drawing(drawing)
    {
        for (std::size_t i = 0; i < drawing.points.size(); ++i) {
            const ScatterPoint& point = drawing.points[i];
            const bool far = point.kind == ScatterPoint::Kind::OutOfReach && drawing.limit && point.x > 1.5 * *drawing.limit;
            if (!far && std::isfinite(point.x) && std::isfinite(point.y) && point.y > 0.0)
                m_shown.push_back(i);
        }
    }

    DisplayList draw()
    {
        m_list.title = m_drawing.title;
        m_list.width = m_drawing.width;
        m_list.height = m_drawing.height;
        double top = addHeading(m_list, m_drawing.title, m_drawing.width);
        if (m_shown.empty()) {
            m_list.items.push_back({TextShape{{m_drawing.width / 2.0, (top + m_drawing.height) / 2.0}, "no values", kTextSize,
                TextAnchor::Middle, ColourRole::MutedText}});
            return std::move(m_list);
        }
        m_list.items.push_back(
            {TextShape{{kMargin, top + 6.0}, m_drawing.yTitle, kSmallSize, TextAnchor::Start, ColourRole::MutedText}});
        top += kLineHeight + 4.0;
        makeArea(top);
        addAxes();
        addLimit();
        addFront();
        for (const std::size_t index : m_shown)
            addMark(index);
        addLabels();
        addLegend(m_list, {kMargin, m_list.height - kMargin - legendHeight(m_list.width - 2.0 * kMargin, legend())},
            m_list.width - 2.0 * kMargin, legend());
        return std::move(m_list);
    }

private:
    const ScatterPoint& point(std::size_t index) const { return m_drawing.points[index]; }

    void makeArea(double top)
    {
        double yLeast = std::numeric_limits<double>::infinity();
        double yMost = 0.0;
        double xMost = 0.0;
        for (const std::size_t index : m_shown) {
            yLeast = std::min(yLeast, point(index).y);
            yMost = std::max(yMost, point(index).y);
            xMost = std::max(xMost, point(index).x);
        }
        // A limit far away would squeeze the points: it is then only said.
        if (m_drawing.limit && *m_drawing.limit <= 3.0 * xMost)
            xMost = std::max(xMost, *m_drawing.limit);
        m_area.logarithmic = yMost > 20.0 * yLeast;
        m_area.yFrom = m_area.logarithmic ? yLeast / 1.3 : 0.0;
        m_area.yTo = m_area.logarithmic ? yMost * 1.3 : yMost * 1.08;
        m_area.xTo = xMost > 0.0 ? xMost * 1.06 : 1.0;
        const double bottom = 24.0 + kLineHeight + 6.0 + legendHeight(m_list.width - 2.0 * kMargin, legend()) + kMargin;
        m_area.height = std::max(40.0, m_list.height - top - bottom);
        const auto most = static_cast<std::size_t>(std::max(2.0, m_area.height / 40.0));
        m_ticks = m_area.logarithmic ? logarithmicTicks(m_area.yFrom, m_area.yTo, most, m_drawing.yQuantity)
                                     : linearTicks(m_area.yFrom, m_area.yTo, most, m_drawing.yQuantity);
        m_area.topLeft = {kMargin + widestLabel(m_ticks) + 6.0, top};
        m_area.width = std::max(40.0, m_list.width - m_area.topLeft.x - kMargin);
    }

    void addAxes()
    {
        addYAxis(m_list, m_area, m_ticks);
        const auto across = static_cast<std::size_t>(std::max(2.0, m_area.width / 80.0));
        addXAxis(m_list, m_area, linearTicks(m_area.xFrom, m_area.xTo, across, m_drawing.xQuantity));
        m_list.items.push_back({TextShape{{m_area.topLeft.x + m_area.width / 2.0, m_area.bottom() + 30.0}, m_drawing.xTitle,
            kSmallSize, TextAnchor::Middle, ColourRole::MutedText}});
    }

    void addLimit()
    {
        if (!m_drawing.limit || *m_drawing.limit > m_area.xTo)
            return;
        const double x = m_area.x(*m_drawing.limit);
        m_list.items.push_back({LineShape{{x, m_area.topLeft.y}, {x, m_area.bottom()}, ColourRole::Error, 1.5, true}});
        m_taken.push_back({{x - 1.0, m_area.topLeft.y}, 2.0, m_area.height, {}});
        const bool left = x + estimatedWidth(m_drawing.limitText, kSmallSize) + 6.0 > m_area.right();
        const TextShape text{{left ? x - 6.0 : x + 6.0, m_area.topLeft.y + 7.0}, m_drawing.limitText, kSmallSize,
            left ? TextAnchor::End : TextAnchor::Start, ColourRole::Error};
        take(text);
        m_list.items.push_back({text});
    }

    void addFront()
    {
        std::vector<Point> front;
        for (const std::size_t index : m_shown) {
            if (point(index).kind == ScatterPoint::Kind::Front)
                front.push_back({m_area.x(point(index).x), m_area.y(point(index).y)});
        }
        std::sort(front.begin(), front.end(), [](Point a, Point b) { return a.x != b.x ? a.x < b.x : a.y > b.y; });
        std::vector<Point> stairs;
        for (const Point& at : front) {
            if (!stairs.empty())
                stairs.push_back({at.x, stairs.back().y});
            stairs.push_back(at);
        }
        if (stairs.size() > 1)
            m_list.items.push_back({PolylineShape{stairs, ColourRole::Compute, 1.5, true}});
    }

    static ShapeStyle styleOf(ScatterPoint::Kind kind)
    {
        ShapeStyle style;
        style.fill = kind == ScatterPoint::Kind::Front ? ColourRole::Compute : ColourRole::Background;
        style.outline = kind == ScatterPoint::Kind::Front ? ColourRole::Compute
            : kind == ScatterPoint::Kind::Behind          ? ColourRole::Outline
                                                          : ColourRole::Error;
        style.outlineWidth = 1.5;
        return style;
    }

    void addMark(std::size_t index)
    {
        const ScatterPoint& one = point(index);
        const Point at{m_area.x(one.x), m_area.y(one.y)};
        const double radius = one.marked ? kMark + 2.0 : kMark;
        RectShape shape{{at.x - radius, at.y - radius}, 2.0 * radius, 2.0 * radius, styleOf(one.kind),
            one.kind == ScatterPoint::Kind::OutOfReach ? 0.0 : radius};
        if (one.marked) {
            shape.style.outline = ColourRole::AllReduce;
            shape.style.outlineWidth = 3.0;
        }
        m_taken.push_back(shape);
        m_list.items.push_back({shape, fmt::format("point:{}", index), one.tooltip});
    }

    static RectShape boxOf(const TextShape& text)
    {
        const double width = estimatedWidth(text.text, text.size, text.bold);
        const double x = text.anchor == TextAnchor::End ? text.at.x - width
            : text.anchor == TextAnchor::Middle         ? text.at.x - width / 2.0
                                                        : text.at.x;
        return {{x, text.at.y - text.size / 2.0 - 1.0}, width, text.size + 2.0, {}};
    }

    void take(const TextShape& text) { m_taken.push_back(boxOf(text)); }

    bool isFree(const RectShape& box) const
    {
        const bool inside = box.topLeft.x >= m_area.topLeft.x && box.topLeft.x + box.width <= m_area.right()
            && box.topLeft.y >= m_area.topLeft.y && box.topLeft.y + box.height <= m_area.bottom();
        return inside && std::none_of(m_taken.begin(), m_taken.end(), [&](const RectShape& other) {
            return box.topLeft.x < other.topLeft.x + other.width && other.topLeft.x < box.topLeft.x + box.width
                && box.topLeft.y < other.topLeft.y + other.height && other.topLeft.y < box.topLeft.y + box.height;
        });
    }

    /// The best point's label first; a label without a free place is left out.
    void addLabels()
    {
        std::vector<std::size_t> order = m_shown;
        std::stable_partition(order.begin(), order.end(), [&](std::size_t index) { return point(index).marked; });
        for (const std::size_t index : order) {
            const ScatterPoint& one = point(index);
            if (one.label.empty() || one.kind != ScatterPoint::Kind::Front)
                continue;
            const Point at{m_area.x(one.x), m_area.y(one.y)};
            for (const auto& [dx, dy, anchor] :
                {std::tuple(10.0, 0.0, TextAnchor::Start), std::tuple(-10.0, 0.0, TextAnchor::End),
                    std::tuple(0.0, -14.0, TextAnchor::Middle), std::tuple(0.0, 14.0, TextAnchor::Middle),
                    std::tuple(8.0, -12.0, TextAnchor::Start), std::tuple(-8.0, 12.0, TextAnchor::End)}) {
                const TextShape text{{at.x + dx, at.y + dy}, one.label, kSmallSize, anchor, ColourRole::Text, one.marked};
                if (!isFree(boxOf(text)))
                    continue;
                take(text);
                m_list.items.push_back({text});
                break;
            }
        }
    }

    std::vector<LegendEntry> legend() const
    {
        std::vector<LegendEntry> entries;
        const auto add = [&](ScatterPoint::Kind kind, const std::string& words) {
            if (std::any_of(m_shown.begin(), m_shown.end(), [&](std::size_t index) { return point(index).kind == kind; }))
                entries.push_back({words, styleOf(kind)});
        };
        add(ScatterPoint::Kind::Front, "Pareto front: no other is better in both");
        add(ScatterPoint::Kind::Behind, "another is better in both");
        add(ScatterPoint::Kind::OutOfReach, m_drawing.outOfReach);
        return entries;
    }

    const ScatterDrawing& m_drawing;
    DisplayList m_list;
    std::vector<std::size_t> m_shown;
    PlotArea m_area;
    std::vector<Tick> m_ticks;
    std::vector<RectShape> m_taken; ///< where marks and labels are
};

} // namespace

DisplayList drawScatter(const ScatterDrawing& drawing)
{
    return ScatterPainter(drawing).draw();
}

} // namespace meshwright
