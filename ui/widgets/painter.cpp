// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/painter.h"

#include "ui/theme/theme.h"

#include <QPainter>
#include <QPainterPath>

namespace meshwright::ui {

namespace {

class ShapePainter {
public:
    ShapePainter(QPainter& painter, Theme theme)
        : m_painter(painter)
        , m_theme(theme)
        , m_font(painter.font())
    {
    }

    void operator()(const RectShape& rect)
    {
        const QRectF frame(rect.topLeft.x, rect.topLeft.y, rect.width, rect.height);
        styled(rect.style, [&] {
            if (rect.cornerRadius > 0.0)
                m_painter.drawRoundedRect(frame, rect.cornerRadius, rect.cornerRadius);
            else
                m_painter.drawRect(frame);
        });
    }

    void operator()(const PolygonShape& polygon)
    {
        const QPolygonF corners = points(polygon.corners);
        styled(polygon.style, [&] { m_painter.drawPolygon(corners, Qt::OddEvenFill); });
    }

    void operator()(const LineShape& line)
    {
        if (setPen(line.paint, line.width, line.dashed))
            m_painter.drawLine(QPointF(line.from.x, line.from.y), QPointF(line.to.x, line.to.y));
    }

    void operator()(const PolylineShape& line)
    {
        if (setPen(line.paint, line.width, line.dashed))
            m_painter.drawPolyline(points(line.points));
    }

    void operator()(const TextShape& text)
    {
        if (!setPen(text.paint, 1.0, false))
            return;
        m_font.setPixelSize(std::max(1, qRound(text.size)));
        m_font.setBold(text.bold);
        m_painter.setFont(m_font);
        const QString words = QString::fromStdString(text.text);
        const QFontMetricsF metrics(m_font);
        const double width = text.anchor == TextAnchor::Start ? 0.0 : metrics.horizontalAdvance(words);
        const double left = text.at.x - (text.anchor == TextAnchor::Middle ? width / 2.0 : width);
        m_painter.drawText(QPointF(left, text.at.y + metrics.capHeight() / 2.0), words);
    }

private:
    static QPolygonF points(const std::vector<Point>& from)
    {
        QPolygonF to;
        to.reserve(static_cast<qsizetype>(from.size()));
        for (const Point& point : from)
            to << QPointF(point.x, point.y);
        return to;
    }

    bool setPen(const Paint& paint, double width, bool dashed)
    {
        const auto colour = colourOf(paint, m_theme);
        if (!colour)
            return false;
        QPen pen(qtColour(*colour), width, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin);
        if (dashed)
            pen.setDashPattern({4.0 / width, 3.0 / width});
        m_painter.setPen(pen);
        m_painter.setBrush(Qt::NoBrush);
        return true;
    }

    /// The shape filled, then hatched, then outlined.
    template <typename Draw>
    void styled(const ShapeStyle& style, Draw draw)
    {
        m_painter.setPen(Qt::NoPen);
        if (const auto fill = colourOf(style.fill, m_theme)) {
            m_painter.setBrush(qtColour(*fill));
            draw();
        }
        if (const auto hatch = colourOf(style.hatchPaint, m_theme); hatch && style.hatch != Hatch::None) {
            m_painter.setBrush(QBrush(qtColour(*hatch), patternOf(style.hatch)));
            draw();
        }
        if (setPen(style.outline, style.outlineWidth, false))
            draw();
    }

    static Qt::BrushStyle patternOf(Hatch hatch)
    {
        return hatch == Hatch::Rising ? Qt::BDiagPattern : hatch == Hatch::Falling ? Qt::FDiagPattern : Qt::DiagCrossPattern;
    }

    QPainter& m_painter;
    Theme m_theme;
    QFont m_font;
};

} // namespace

void paint(QPainter& painter, const DisplayList& list, Theme theme)
{
    if (const auto background = colourOf(list.background, theme))
        painter.fillRect(QRectF(0.0, 0.0, list.width, list.height), qtColour(*background));
    paintItems(painter, list.items, theme);
}

void paintItems(QPainter& painter, const std::vector<DisplayItem>& items, Theme theme)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    ShapePainter shapes(painter, theme);
    for (const DisplayItem& item : items)
        std::visit(shapes, item.shape);
    painter.restore();
}

} // namespace meshwright::ui
