// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/minimap.h"
#include "ui/timeline/slice_facts.h"
#include "ui/timeline/timeline_canvas.h"

#include "core/support/text.h"
#include "ui/theme/theme.h"

#include <QPainter>
#include <QPainterPath>
#include <QScrollBar>
#include <QTimer>

#include <algorithm>
#include <cmath>

namespace meshwright::ui {

namespace {

/// Frames around slices of one name that are drawn at most; more than fit on a screen side by side.
constexpr std::size_t kMostFrames = 4000;
constexpr double kLeastFramedRow = 20.0; ///< pixels: a frame inside it leaves room for the text

QFont withPixels(QFont font, int pixels, bool bold = false)
{
    font.setPixelSize(pixels);
    font.setBold(bold);
    return font;
}

QColor withAlpha(QColor colour, int alpha)
{
    colour.setAlpha(alpha);
    return colour;
}

/// A frame just inside of a rectangle, of whole pixels wherever it lies.
void fillFrame(QPainter& painter, const QRectF& area, double width, QColor colour)
{
    const double inside = std::max(0.0, area.height() - 2.0 * width);
    painter.fillRect(QRectF(area.left(), area.top(), area.width(), width), colour);
    painter.fillRect(QRectF(area.left(), area.bottom() - width, area.width(), width), colour);
    painter.fillRect(QRectF(area.left(), area.top() + width, width, inside), colour);
    painter.fillRect(QRectF(area.right() - width, area.top() + width, width, inside), colour);
}

/// A picture made of device pixels, copied to them without scaling.
void drawDevicePixels(QPainter& painter, QPointF at, const QImage& image, double ratio)
{
    painter.save();
    painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
    painter.scale(1.0 / ratio, 1.0 / ratio);
    painter.drawImage(QPointF(std::round(at.x() * ratio), std::round(at.y() * ratio)), image);
    painter.restore();
}

} // namespace

QColor TimelineCanvas::colour(ColourRole role) const
{
    return qtColour(role, themeOf(palette()));
}

void TimelineCanvas::ensureRows()
{
    const double ratio = devicePixelRatioF();
    const Theme theme = themeOf(palette());
    if (m_hasRows && m_scene.ratio == ratio && m_scene.theme == theme)
        return;
    m_scene.ratio = ratio;
    m_scene.theme = theme;
    m_scene.font = font();
    m_painter.paint(m_scene, m_picture);
    m_hasRows = true;
    // Names that were too many to lay out at once follow with the next pictures.
    if (!m_picture.hasAllLabels)
        QTimer::singleShot(0, this, [this] { invalidateRows(); });
}

void TimelineCanvas::paintEvent(QPaintEvent*)
{
    ensureRows();
    QPainter painter(this);
    painter.fillRect(QRect(0, 0, width(), kTop), colour(ColourRole::Surface));
    if (m_scroll->isVisible())
        painter.fillRect(m_scroll->geometry(), colour(ColourRole::Surface));
    drawDevicePixels(painter, QPointF(0.0, kTop), m_picture.image, m_scene.ratio);
    paintMinimap(painter);
    for (const Ruler& ruler :
        m_scene.model->isEmpty() ? std::vector<Ruler>{} : rulers()) { // without slices there is no time to measure
        if (!ruler.group || ruler.area.top() >= kTop)
            paintRuler(painter, ruler);
    }
    painter.fillRect(QRect(0, kTop - 1, m_scene.size.width(), 1), colour(ColourRole::Grid));

    painter.save();
    painter.setClipRect(QRect(0, kTop, m_scene.size.width(), m_scene.size.height()));
    if (m_headingCursor) {
        painter.setPen(QPen(colour(ColourRole::Accent), 2.0));
        painter.drawRect(QRectF(headingRect(*m_headingCursor)).adjusted(1.0, 1.0, -1.0, -1.0));
    }
    painter.setClipRect(rowsRect());
    paintMatches(painter);
    paintNamed(painter, m_hoveredName, colour(ColourRole::Text));
    paintNamed(painter, m_selectedName, colour(ColourRole::Accent));
    paintSelection(painter);
    painter.restore();
    paintArea(painter);
    paintGuide(painter);
    if (m_isDimmed)
        painter.fillRect(rect(), withAlpha(colour(ColourRole::Surface), 150));
    paintMessage(painter);
    if (m_showsFocus && hasFocus()) {
        painter.setPen(colour(ColourRole::Accent));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
    }
}

void TimelineCanvas::paintMinimap(QPainter& painter)
{
    const QRect area = minimapRect();
    const QSize pixels = (QSizeF(area.size()) * m_scene.ratio).toSize();
    if (m_minimap.size() != pixels)
        m_minimap = minimapImage(*m_scene.model, m_scene.axis, m_scene.theme, pixels);
    drawDevicePixels(painter, area.topLeft(), m_minimap, m_scene.ratio);

    const double perUnit = area.width() / m_scene.axis.end();
    if (m_matches) {
        painter.setPen(QPen(colour(ColourRole::Error), 1.0));
        double drawn = -1.0;
        std::size_t marks = 0;
        const std::size_t stride = m_matches->slices.size() / kMostFrames + 1;
        for (std::size_t i = 0; i < m_matches->slices.size() && marks < kMostFrames; i += stride) {
            const SliceId id = m_matches->slices[i];
            const double at = m_scene.model->partOf(id).start(id.slice) / m_scene.axis.secondsPerUnit(id.group);
            const double x = area.left() + std::floor(at * perUnit) + 0.5;
            if (x == drawn)
                continue;
            drawn = x;
            ++marks;
            painter.drawLine(QPointF(x, area.bottom() - 5.0), QPointF(x, area.bottom() + 1.0));
        }
    }
    const double left = area.left() + m_scene.window.begin * perUnit;
    const double right = std::max(left + 2.0, area.left() + m_scene.window.end * perUnit);
    const QColor shade = withAlpha(colour(ColourRole::Surface), 190);
    painter.fillRect(QRectF(area.left(), area.top(), left - area.left(), area.height()), shade);
    painter.fillRect(QRectF(right, area.top(), area.right() + 1.0 - right, area.height()), shade);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(colour(ColourRole::Grid));
    painter.drawRect(QRectF(area).adjusted(0.5, 0.5, -0.5, -0.5));
    painter.setPen(QPen(colour(ColourRole::Accent), 1.5));
    painter.drawRect(QRectF(left, area.top(), right - left, area.height()).adjusted(0.75, 0.75, -0.75, -0.75));

    painter.setFont(withPixels(font(), 11));
    painter.setPen(colour(ColourRole::MutedText));
    painter.drawText(QRect(0, area.top(), kGutterWidth - 8, area.height()), Qt::AlignRight | Qt::AlignVCenter, tr("whole step"));
}

QString TimelineCanvas::lengthText(TimeWindow window) const
{
    if (m_scene.axis.isStretched())
        return QString::number(100.0 * window.length(), 'g', 3) + tr(" %");
    return QString::fromStdString(formatSeconds(window.length()));
}

std::vector<TimelineCanvas::Ruler> TimelineCanvas::rulers() const
{
    std::vector<Ruler> all = {{std::nullopt, QRectF(rulerRect()), 11}};
    if (!m_scene.axis.isStretched())
        return all;
    for (std::uint32_t group = 0; group < m_scene.model->groups().size(); ++group) {
        const QRectF heading = headingRect(group);
        const QRectF area(kGutterWidth, heading.top() + RowLayout::kHeadingHeight, rowsRect().width(), RowLayout::kRulerHeight);
        all.push_back({group, area, 10});
    }
    return all;
}

void TimelineCanvas::paintRuler(QPainter& painter, const Ruler& ruler) const
{
    const QRectF& area = ruler.area;
    const Ticks ticks = ticksOf(m_scene, ruler.group);
    const double perUnit = ruler.group ? m_scene.axis.secondsPerUnit(*ruler.group) : 1.0;
    const QRectF plate = guidePlate(ruler);
    painter.setFont(withPixels(font(), ruler.fontPixels));
    painter.setPen(colour(ColourRole::MutedText));
    const QString base = !ticks.base.empty() ? QString::fromStdString(ticks.base)
        : ruler.group                        ? QString()
                                             : tr("shown: %1").arg(lengthText(m_scene.window));
    painter.drawText(QRectF(0.0, area.top(), kGutterWidth - 8.0, area.height()), Qt::AlignRight | Qt::AlignVCenter, base);
    painter.setPen(colour(ruler.group ? ColourRole::MutedText : ColourRole::Text));
    const QFontMetricsF metrics(painter.font());
    for (const Tick& tick : ticks.marks) {
        const double x = std::floor(m_scene.x(tick.at / perUnit));
        if (x < area.left())
            continue;
        painter.fillRect(QRectF(x, area.bottom() - 5.0, 1.0, 5.0), colour(ColourRole::Outline));
        const QString text = QString::fromStdString(tick.text);
        const QRectF place(x + 4.0, area.top(), metrics.horizontalAdvance(text), area.height() - 2.0);
        if (place.right() <= area.right() && !place.adjusted(-4.0, 0.0, 4.0, 0.0).intersects(plate))
            painter.drawText(place.adjusted(0.0, 0.0, 2.0, 0.0), Qt::AlignLeft | Qt::AlignVCenter, text);
    }
}

template <typename Visit>
void TimelineCanvas::forEachDrawn(Visit visit) const
{
    for (const DrawnRow& row : m_picture.rows) {
        const LayoutLine& line = m_scene.layout.lines()[row.line];
        const double top = kTop + line.top - m_scene.scrolled;
        for (const DrawnSlice& slice : row.slices) {
            const auto frame = [&] {
                return QRectF(
                    kGutterWidth + slice.left / m_scene.ratio, top, (slice.right - slice.left) / m_scene.ratio, line.height);
            };
            visit(line.group, slice.slice, frame);
        }
    }
}

void TimelineCanvas::paintNamed(
    QPainter& painter, const std::vector<std::optional<std::uint32_t>>& names, QColor frameColour) const
{
    if (names.empty())
        return;
    std::size_t frames = 0;
    forEachDrawn([&](std::uint32_t group, std::uint32_t slice, const auto& frame) {
        if (frames < kMostFrames && m_scene.model->groups()[group].part->name(slice) == names[group]) {
            fillFrame(painter, frame(), 1.0, frameColour);
            ++frames;
        }
    });
}

void TimelineCanvas::paintMatches(QPainter& painter) const
{
    if (!m_matches)
        return;
    std::size_t marks = 0;
    const QColor mark = colour(ColourRole::Error);
    forEachDrawn([&](std::uint32_t group, std::uint32_t slice, const auto& frame) {
        if (marks == kMostFrames || !m_matches->hasName(group, m_scene.model->groups()[group].part->name(slice)))
            return;
        ++marks;
        // In the gap below the row, clear of its text.
        const QRectF place = frame();
        painter.fillRect(QRectF(place.left(), place.bottom(), place.width(), RowLayout::kGap), mark);
    });
}

void TimelineCanvas::paintSelection(QPainter& painter) const
{
    if (!m_selected)
        return;
    if (!lineOf(*m_selected))
        return;
    const QColor accent = colour(ColourRole::Accent);
    const QRectF frame = rectOf(*m_selected);
    // A slice that is too short to be seen still shows where it is.
    const double widen = std::max(0.0, 3.0 - frame.width()) / 2.0;
    const QRectF shown
        = frame.adjusted(-widen, 0.0, widen, 0.0).intersected(QRectF(rowsRect()).adjusted(-20.0, -20.0, 20.0, 20.0));
    if (shown.isEmpty())
        return;
    const bool isLow = shown.height() < kLeastFramedRow; // the frame goes around the text, which fills the row
    constexpr double kAround = RowLayout::kGap;
    fillFrame(painter, isLow ? shown.adjusted(-kAround, -kAround, kAround, kAround) : shown, 2.0, accent);
    if (!isLow && shown.width() > 8.0)
        fillFrame(painter, shown.adjusted(2.0, 2.0, -2.0, -2.0), 1.0, colour(ColourRole::Background));

    if (!m_counterpart)
        return;
    // From the exchange to the wait that it ends.
    const bool selectedIsWait = m_scene.model->partOf(*m_selected).category(m_selected->slice) == SliceCategory::Wait;
    if (!lineOf(*m_counterpart))
        return;
    const QRectF other = rectOf(*m_counterpart);
    const QRectF& from = selectedIsWait ? other : frame;
    const QRectF& to = selectedIsWait ? frame : other;
    const bool upwards = to.center().y() < from.center().y();
    const double x = from.right() - 1.0;
    const QPointF start(x, from.center().y());
    const QPointF end(x, upwards ? to.bottom() - 2.0 : to.top() + 2.0);
    const double head = upwards ? 6.0 : -6.0;
    painter.setRenderHint(QPainter::Antialiasing, true);
    for (const auto& [shade, width] :
        {std::pair(colour(ColourRole::Background), 4.0), std::pair(colour(ColourRole::Text), 2.0)}) {
        painter.setPen(QPen(shade, width, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
        painter.drawLine(start, end);
        painter.drawPolyline(QPolygonF({end + QPointF(-4.0, head), end, end + QPointF(4.0, head)}));
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
}

void TimelineCanvas::paintArea(QPainter& painter) const
{
    if (!m_area)
        return;
    const QColor accent = colour(ColourRole::Accent);
    const double left = m_scene.x(m_area->window.begin);
    const double right = m_scene.x(m_area->window.end);
    painter.save();
    painter.setClipRect(rowsRect().united(rulerRect()));
    const auto shade = [&](double top, double height) {
        painter.fillRect(QRectF(left, top, right - left, height), withAlpha(accent, 50));
        painter.fillRect(QRectF(left, top, 1.0, height), accent);
        painter.fillRect(QRectF(right - 1.0, top, 1.0, height), accent);
    };
    if (m_area->rows.empty())
        shade(kTop, m_scene.size.height());
    painter.setClipRect(QRect(kGutterWidth, kTop, rowsRect().width(), rowsRect().height()));
    for (const auto& [group, place] : m_area->rows) {
        if (const auto index = m_scene.layout.lineOf(group, place)) {
            const LayoutLine& line = m_scene.layout.lines()[*index];
            shade(kTop + line.top - m_scene.scrolled, line.height);
        }
    }
    painter.setClipRect(rulerRect());
    const QRectF ruler(left, rulerRect().top(), right - left, kRulerHeight - 1.0);
    painter.fillRect(ruler, accent);
    painter.setFont(withPixels(font(), 11, true));
    painter.setPen(colour(ColourRole::Background));
    const QString length = lengthText(m_area->window);
    if (QFontMetricsF(painter.font()).horizontalAdvance(length) + 6.0 <= ruler.width())
        painter.drawText(ruler, Qt::AlignCenter, length);
    painter.restore();
}

void TimelineCanvas::paintGuide(QPainter& painter) const
{
    if (!m_guide || m_drag == Drag::Pan || m_drag == Drag::Minimap)
        return;
    const double x = std::floor(m_scene.x(*m_guide)) + 0.5;
    painter.setPen(withAlpha(colour(ColourRole::Text), 150));
    painter.drawLine(QPointF(x, kTop), QPointF(x, kTop + m_scene.size.height()));

    for (const Ruler& ruler : rulers()) {
        const QRectF plate = guidePlate(ruler);
        if (plate.top() < kMinimapHeight || (ruler.group && plate.top() < kTop))
            continue;
        painter.setFont(withPixels(font(), ruler.fontPixels));
        painter.fillRect(plate, colour(ColourRole::Text));
        painter.setPen(colour(ColourRole::Background));
        painter.drawText(plate, Qt::AlignCenter, guideText(ruler));
    }
}

QString TimelineCanvas::guideText(const Ruler& ruler) const
{
    const double perUnit = ruler.group ? m_scene.axis.secondsPerUnit(*ruler.group) : 1.0;
    const double at = std::max(0.0, *m_guide * perUnit);
    const double resolution = m_scene.unitsPerPixel() * perUnit;
    if (ruler.group || !m_scene.axis.isStretched())
        return QString::fromStdString(exactTime(at, resolution));
    const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(100.0 * resolution))), 0, 9);
    return tr("%1 %").arg(100.0 * at, 0, 'f', decimals);
}

QRectF TimelineCanvas::guidePlate(const Ruler& ruler) const
{
    if (!m_guide || m_drag == Drag::Pan || m_drag == Drag::Minimap)
        return {};
    const double width = QFontMetricsF(withPixels(font(), ruler.fontPixels)).horizontalAdvance(guideText(ruler)) + 10.0;
    const double right = std::max(ruler.area.left(), ruler.area.right() - width);
    const double left = std::clamp(m_scene.x(*m_guide) - width / 2.0, ruler.area.left(), right);
    return {left, ruler.area.top() + 2.0, width, ruler.area.height() - 6.0};
}

void TimelineCanvas::paintMessage(QPainter& painter) const
{
    if (m_message.isEmpty())
        return;
    painter.setFont(withPixels(font(), 13));
    const QRect rows(0, kTop, m_scene.size.width(), m_scene.size.height());
    const QRect area = painter.boundingRect(rows.adjusted(40, 0, -40, 0), Qt::AlignCenter | Qt::TextWordWrap, m_message);
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setPen(colour(ColourRole::Grid));
    painter.setBrush(colour(ColourRole::Surface));
    painter.drawRoundedRect(QRectF(area).adjusted(-14.0, -10.0, 14.0, 10.0), 4.0, 4.0);
    painter.setPen(colour(ColourRole::Text));
    painter.drawText(area, Qt::AlignCenter | Qt::TextWordWrap, m_message);
}

} // namespace meshwright::ui
