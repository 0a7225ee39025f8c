// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/picture_view.h"

#include "ui/theme/theme.h"
#include "ui/widgets/painter.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

namespace meshwright::ui {

namespace {

constexpr float kDisabledVeil = 0.6F; ///< how much of the background lies over a picture that is out of date

struct FrameOf {
    static QRectF around(const std::vector<Point>& points)
    {
        QPolygonF polygon;
        for (const Point& point : points)
            polygon << QPointF(point.x, point.y);
        return polygon.boundingRect();
    }

    QRectF operator()(const RectShape& rect) const { return {rect.topLeft.x, rect.topLeft.y, rect.width, rect.height}; }
    QRectF operator()(const PolygonShape& polygon) const { return around(polygon.corners); }
    QRectF operator()(const PolylineShape& line) const { return around(line.points); }
    QRectF operator()(const LineShape& line) const { return around({line.from, line.to}); }
    QRectF operator()(const TextShape&) const { return {}; }
};

/// Each id once, in drawing order.
QStringList idsOf(const DisplayList& picture)
{
    QStringList ids;
    QSet<QString> seen;
    for (const DisplayItem& item : picture.items) {
        const QString id = QString::fromStdString(item.id);
        if (!id.isEmpty() && !seen.contains(id)) {
            seen.insert(id);
            ids.append(id);
        }
    }
    return ids;
}

/// The first item with this id; null for the empty one.
const DisplayItem* findItem(const DisplayList& picture, const QString& id)
{
    if (id.isEmpty())
        return nullptr;
    const auto found = std::find_if(
        picture.items.begin(), picture.items.end(), [&](const DisplayItem& item) { return item.id == id.toStdString(); });
    return found == picture.items.end() ? nullptr : &*found;
}

} // namespace

QRectF frameOf(const DisplayItem& item)
{
    return std::visit(FrameOf{}, item.shape);
}

PictureView::PictureView(QWidget* parent)
    : QWidget(parent)
{
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
}

void PictureView::setPicture(DisplayList picture)
{
    if (picture == m_picture)
        return;
    const bool resized = picture.width != m_picture.width || picture.height != m_picture.height;
    m_picture = std::move(picture);
    setAccessibleName(QString::fromStdString(m_picture.title));
    if (!findItem(m_picture, m_focused))
        m_focused.clear();
    if (resized)
        updateGeometry();
    update();
}

QPoint PictureView::placeOf(const QString& id) const
{
    const DisplayItem* item = findItem(m_picture, id);
    return item ? (frameOf(*item).center() + origin()).toPoint() : QPoint();
}

QSize PictureView::sizeHint() const
{
    return {qCeil(m_picture.width), qCeil(m_picture.height)};
}

QPointF PictureView::origin() const
{
    return {std::max(0.0, std::floor((width() - m_picture.width) / 2.0)),
        std::max(0.0, std::floor((height() - m_picture.height) / 2.0))};
}

Point PictureView::toPicture(QPointF position) const
{
    return {position.x() - origin().x(), position.y() - origin().y()};
}

void PictureView::paintEvent(QPaintEvent*)
{
    const Theme theme = themeOf(palette());
    QPainter painter(this);
    if (const auto background = colourOf(m_picture.background, theme))
        painter.fillRect(rect(), qtColour(*background));
    painter.translate(origin());
    paintItems(painter, m_picture.items, theme);
    if (const auto background = colourOf(m_picture.background, theme); background && !isEnabled()) {
        // Over all, not shape by shape: shapes that lie on each other must not shine through.
        QColor veil = qtColour(*background);
        veil.setAlphaF(kDisabledVeil);
        painter.fillRect(QRectF(rect()).translated(-origin()), veil);
    }
    if (const DisplayItem* item = hasFocus() ? findItem(m_picture, m_focused) : nullptr) {
        painter.setPen(QPen(qtColour(ColourRole::Accent, theme), 2.0));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(frameOf(*item).adjusted(-1.0, -1.0, 1.0, 1.0));
    }
}

void PictureView::setHovered(const QString& id)
{
    if (m_hovered == id)
        return;
    m_hovered = id;
    setCursor(id.isEmpty() ? Qt::ArrowCursor : Qt::PointingHandCursor);
    Q_EMIT hovered(id);
}

void PictureView::mouseMoveEvent(QMouseEvent* event)
{
    const DisplayItem* item = m_picture.itemAt(toPicture(event->position()));
    setHovered(item ? QString::fromStdString(item->id) : QString());
}

void PictureView::mousePressEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton)
        return;
    const DisplayItem* item = m_picture.itemAt(toPicture(event->position()));
    m_focused = item ? QString::fromStdString(item->id) : QString();
    update();
    Q_EMIT clicked(m_focused, event->modifiers());
}

void PictureView::leaveEvent(QEvent*)
{
    setHovered({});
}

void PictureView::moveFocus(int step)
{
    const QStringList ids = idsOf(m_picture);
    if (ids.isEmpty())
        return;
    const int at = static_cast<int>(ids.indexOf(m_focused));
    const int count = static_cast<int>(ids.size());
    m_focused = ids[at < 0 ? (step > 0 ? 0 : count - 1) : (at + step + count) % count];
    setHovered(m_focused);
    update();
}

void PictureView::keyPressEvent(QKeyEvent* event)
{
    switch (event->key()) {
    case Qt::Key_Right:
    case Qt::Key_Down:
        return moveFocus(1);
    case Qt::Key_Left:
    case Qt::Key_Up:
        return moveFocus(-1);
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
        if (!m_focused.isEmpty())
            Q_EMIT clicked(m_focused, event->modifiers());
        return;
    default:
        QWidget::keyPressEvent(event);
    }
}

void PictureView::focusOutEvent(QFocusEvent* event)
{
    update();
    QWidget::focusOutEvent(event);
}

bool PictureView::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const DisplayItem* item = m_picture.itemAt(toPicture(help->pos()));
    if (item && !item->tooltip.empty())
        QToolTip::showText(help->globalPos(), QString::fromStdString(item->tooltip), this,
            (frameOf(*item).translated(origin())).toAlignedRect());
    else
        QToolTip::hideText();
    return true;
}

} // namespace meshwright::ui

#include "moc_picture_view.cpp"
