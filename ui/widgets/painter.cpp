// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/painter.h"

#include "ui/theme/theme.h"

#include <QPaintEngine>
#include <QPainter>
#include <QPainterPath>

#include <cmath>

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
        const auto path = [&] {
            QPainterPath outline;
            outline.addRoundedRect(frame, rect.cornerRadius, rect.cornerRadius);
            return outline;
        };
        styled(rect.style, path, [&] {
            if (rect.cornerRadius > 0.0)
                m_painter.drawRoundedRect(frame, rect.cornerRadius, rect.cornerRadius);
            else
                m_painter.drawRect(frame);
        });
    }

    void operator()(const PolygonShape& polygon)
    {
        const QPolygonF corners = points(polygon.corners);
        const auto path = [&] {
            QPainterPath outline;
            outline.addPolygon(corners);
            return outline;
        };
        styled(polygon.style, path, [&] { m_painter.drawPolygon(corners, Qt::OddEvenFill); });
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
    template <typename PathOf, typename Draw>
    void styled(const ShapeStyle& style, PathOf pathOf, Draw draw)
    {
        m_painter.setPen(Qt::NoPen);
        if (const auto fill = colourOf(style.fill, m_theme)) {
            m_painter.setBrush(qtColour(*fill));
            draw();
        }
        if (const auto hatch = colourOf(style.hatchPaint, m_theme); hatch && style.hatch != Hatch::None) {
            if (m_painter.paintEngine()->type() == QPaintEngine::Pdf) {
                drawHatchLines(pathOf(), style.hatch, qtColour(*hatch));
            } else {
                m_painter.setBrush(QBrush(qtColour(*hatch), patternOf(style.hatch)));
                draw();
            }
        }
        if (setPen(style.outline, style.outlineWidth, false))
            draw();
    }

    /// Qt's PDF engine draws patterns far too fine, whatever the scale: there the lines are drawn one by one, on the grid of the whole picture.
    void drawHatchLines(const QPainterPath& path, Hatch hatch, const QColor& colour)
    {
        constexpr double kSpacing = 8.0;
        const QRectF frame = path.boundingRect();
        m_painter.save();
        m_painter.setClipPath(path, Qt::IntersectClip);
        m_painter.setPen(QPen(colour, 1.0));
        const auto from = [](double least) { return std::ceil(least / kSpacing) * kSpacing; };
        if (hatch != Hatch::Falling) { // x + y is the same all along a line
            for (double sum = from(frame.left() + frame.top()); sum < frame.right() + frame.bottom(); sum += kSpacing)
                m_painter.drawLine(QPointF(sum - frame.bottom(), frame.bottom()), QPointF(sum - frame.top(), frame.top()));
        }
        if (hatch != Hatch::Rising) { // x - y is
            for (double difference = from(frame.left() - frame.bottom()); difference < frame.right() - frame.top();
                 difference += kSpacing)
                m_painter.drawLine(
                    QPointF(difference + frame.top(), frame.top()), QPointF(difference + frame.bottom(), frame.bottom()));
        }
        m_painter.restore();
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
