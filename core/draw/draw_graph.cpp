// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_graph.h"

#include "core/draw/chart.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace meshwright {

namespace {

constexpr double kNodeWidth = 196.0;
constexpr double kNodeHeight = 44.0;
constexpr double kEntryHeight = 15.0; ///< of an edge's label
constexpr double kGraphMargin = 24.0;
constexpr double kTextMargin = 10.0;
constexpr double kNodeTitleSize = 12.0;
constexpr double kNodeDetailSize = 11.0;
constexpr double kSpecSize = 10.0;
constexpr double kLeastText = 6.0; ///< pixels: smaller letters cannot be read
constexpr double kLeastDetail = 0.2; ///< scale: below it nodes are plain rectangles, and lines go straight
constexpr double kBar = 4.0;
constexpr double kFarStub = 40.0;
constexpr double kStackStep = 4.0;
const LayeredSpacing kGraphSpacing;

struct SeenFrame {
    double left = 0.0;
    double top = 0.0;
    double right = 0.0;
    double bottom = 0.0;
};

class GraphPainter {
public:
    GraphPainter(const GraphDrawing& drawing, const LayeredLayout& layout, const GraphWindow& window)
        : m_drawing(drawing)
        , m_layout(layout)
        , m_window(window)
        , m_scale(window.scale)
    {
        m_list.width = window.width;
        m_list.height = window.height;
        m_list.title = drawing.title;
    }

    static LayeredGraph layeredGraph(const GraphDrawing& drawing)
    {
        LayeredGraph graph;
        std::vector<int> entries(drawing.nodes.size(), 0);
        for (const DrawnGraphEdge& edge : drawing.edges) {
            graph.edges.push_back({edge.from, edge.to});
            ++entries[edge.to];
        }
        for (const int count : entries)
            graph.nodes.push_back({kNodeWidth, std::max(kNodeHeight, (count + 1) * kEntryHeight)});
        return graph;
    }

    DisplayList drawn()
    {
        for (const bool isLit : {false, true}) {
            for (std::size_t i = 0; i < m_drawing.edges.size(); ++i) {
                if ((m_drawing.edges[i].emphasis >= GraphEmphasis::Lit) == isLit)
                    drawEdge(i);
            }
        }
        for (std::size_t i = 0; i < m_drawing.nodes.size(); ++i)
            drawNode(i);
        return std::move(m_list);
    }

private:
    Point placed(Point point) const
    {
        return {(point.x - m_window.topLeft.x) * m_scale, (point.y - m_window.topLeft.y) * m_scale};
    }

    bool isSeen(const SeenFrame& frame) const
    {
        return frame.right >= 0.0 && frame.left <= m_window.width && frame.bottom >= 0.0 && frame.top <= m_window.height;
    }

    void add(DisplayItem item) { m_list.items.push_back(std::move(item)); }

    void addText(Point at, const std::string& text, double size, TextAnchor anchor, Paint paint, bool bold = false)
    {
        if (size * m_scale >= kLeastText && !text.empty())
            add({TextShape{at, text, size * m_scale, anchor, paint, bold}});
    }

    static ColourRole lineRole(GraphEmphasis emphasis)
    {
        return emphasis >= GraphEmphasis::Lit  ? ColourRole::Accent
            : emphasis == GraphEmphasis::Faint ? ColourRole::Grid
                                               : ColourRole::Outline;
    }

    void drawEdge(std::size_t index)
    {
        const DrawnGraphEdge& edge = m_drawing.edges[index];
        std::vector<Point> way;
        for (const Point& point : m_layout.ways[index])
            way.push_back(placed(point));
        SeenFrame frame{way.front().x, way.front().y, way.back().x, way.front().y};
        for (const Point& point : way) {
            frame.top = std::min(frame.top, point.y);
            frame.bottom = std::max(frame.bottom, point.y);
        }
        frame.top -= kEntryHeight * m_scale;
        if (!isSeen(frame))
            return;
        const bool isLit = edge.emphasis >= GraphEmphasis::Lit;
        const bool isMoved = edge.moved.has_value() && edge.emphasis == GraphEmphasis::Plain;
        const double width = isLit ? 2.5 : isMoved ? 2.0 : 1.0;
        const ColourRole role = isMoved ? *edge.moved : lineRole(edge.emphasis);
        const bool isFar = m_layout.ranks[edge.to] - m_layout.ranks[edge.from] > kGraphSpacing.longestRouted;
        const Point end = way.back();
        if (isFar && !isLit) {
            add({LineShape{way.front(), {way.front().x + kFarStub * m_scale, way.front().y}, role, width, true}});
            add({LineShape{way[way.size() - 2], end, role, width, true}});
        } else if (m_scale < kLeastDetail) {
            add({LineShape{way.front(), end, role, width}});
        } else {
            add({PolylineShape{std::move(way), role, width}});
        }
        drawLabel(edge, end);
    }

    void drawLabel(const DrawnGraphEdge& edge, Point end)
    {
        const double room = kGraphSpacing.approach - 12.0;
        addText({end.x - 8.0 * m_scale, end.y - 9.0 * m_scale}, chart::fitted(edge.label, room, kSpecSize), kSpecSize,
            TextAnchor::End, edge.emphasis == GraphEmphasis::Faint ? ColourRole::MutedText : ColourRole::Text);
    }

    ShapeStyle styleOf(const DrawnGraphNode& node) const
    {
        ShapeStyle style;
        style.fill = node.kind == GraphNodeKind::Collective ? Paint(node.role) : Paint(ColourRole::Surface);
        style.outline = lineRole(node.emphasis);
        style.outlineWidth = node.emphasis == GraphEmphasis::Selected ? 3.0 : node.emphasis == GraphEmphasis::Lit ? 2.0 : 1.0;
        return style;
    }

    void drawNode(std::size_t index)
    {
        const DrawnGraphNode& node = m_drawing.nodes[index];
        const Point at = placed(m_layout.topLefts[index]);
        const double width = kNodeWidth * m_scale;
        const double height = m_layout.sizes[index].height * m_scale;
        if (!isSeen({at.x, at.y, at.x + width, at.y + height}))
            return;
        const ShapeStyle style = styleOf(node);
        const bool isPlain = m_scale < kLeastDetail;
        if (node.kind == GraphNodeKind::Body && !isPlain) {
            for (const double step : {2.0 * kStackStep, kStackStep})
                add({RectShape{{at.x + step * m_scale, at.y - step * m_scale}, width, height, style}});
        }
        const double radius = isPlain || node.kind == GraphNodeKind::Op || node.kind == GraphNodeKind::Body ? 0.0
            : node.kind == GraphNodeKind::Argument                                                          ? 6.0 * m_scale
                                                   : std::min(kNodeHeight, m_layout.sizes[index].height) / 2.0 * m_scale;
        add({RectShape{at, width, height, style, radius}, node.id, node.tooltip});
        if (node.isSplit && node.kind != GraphNodeKind::Collective) {
            ShapeStyle bar;
            bar.fill = ColourRole::Accent;
            add({RectShape{at, kBar * m_scale, height, bar}, node.id, node.tooltip});
        }
        drawWords(node, at, height);
    }

    void drawWords(const DrawnGraphNode& node, Point at, double height)
    {
        const bool isRound = node.kind == GraphNodeKind::Collective;
        const double room = kNodeWidth - 2.0 * kTextMargin - (isRound ? 8.0 : 0.0);
        const double x = at.x + (isRound ? kNodeWidth / 2.0 : kTextMargin) * m_scale;
        const TextAnchor anchor = isRound ? TextAnchor::Middle : TextAnchor::Start;
        const Paint strong = isRound ? textPaintOn(node.role) : Paint(ColourRole::Text);
        const Paint weak = isRound ? textPaintOn(node.role) : Paint(ColourRole::MutedText);
        const double middle = at.y + height / 2.0;
        addText({x, middle - 8.0 * m_scale}, chart::fitted(node.title, room, kNodeTitleSize, true), kNodeTitleSize, anchor,
            strong, true);
        addText({x, middle + 9.0 * m_scale}, chart::fitted(node.detail, room, kNodeDetailSize), kNodeDetailSize, anchor, weak);
    }

    const GraphDrawing& m_drawing;
    const LayeredLayout& m_layout;
    const GraphWindow& m_window;
    double m_scale;
    DisplayList m_list;
};

} // namespace

LayeredLayout graphLayout(const GraphDrawing& drawing)
{
    return layeredLayout(GraphPainter::layeredGraph(drawing), kGraphSpacing);
}

GraphWindow wholeGraph(const LayeredLayout& layout)
{
    return {{-kGraphMargin, -kGraphMargin}, layout.width + 2.0 * kGraphMargin, layout.height + 2.0 * kGraphMargin, 1.0};
}

DisplayList drawGraph(const GraphDrawing& drawing, const LayeredLayout& layout, const GraphWindow& window)
{
    assert(window.scale > 0.0 && layout.ranks.size() == drawing.nodes.size());
    return GraphPainter(drawing, layout, window).drawn();
}

} // namespace meshwright
