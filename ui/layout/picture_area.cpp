// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/layout/picture_area.h"

#include <QKeyEvent>
#include <QScrollBar>
#include <QWheelEvent>

#include <cmath>

namespace meshwright::ui {

namespace {

constexpr double kZoomStep = 1.25; ///< of a key press, and of a notch of the wheel
constexpr double kDegreesOfNotch = 120.0; ///< in eighths of a degree, as Qt counts them

/// A place in a rectangle as shares of its sides, and back.
QPointF sharesOf(const QRectF& frame, QPointF place)
{
    return {(place.x() - frame.left()) / frame.width(), (place.y() - frame.top()) / frame.height()};
}

QPointF placeAt(const QRectF& frame, QPointF shares)
{
    return {frame.left() + shares.x() * frame.width(), frame.top() + shares.y() * frame.height()};
}

} // namespace

PictureArea::PictureArea(QWidget* parent)
    : QScrollArea(parent)
    , m_view(new PictureView)
{
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::NoFocus); // the picture inside takes it
    setWidget(m_view);
    m_view->installEventFilter(this);
    viewport()->installEventFilter(this);
    connect(m_view, &PictureView::hovered, this, &PictureArea::showFocused);
}

QSizeF PictureArea::wantedSize() const
{
    return QSizeF(maximumViewportSize()) * m_zoom;
}

void PictureArea::setPicture(DisplayList picture)
{
    m_view->setPicture(std::move(picture));
    resizeView();
}

void PictureArea::resizeView()
{
    const QSize room = maximumViewportSize();
    const QSize wanted = m_view->sizeHint();
    // Bars take room from each other: only where the picture overflows one way is the other way's room smaller.
    const int bar = style()->pixelMetric(QStyle::PM_ScrollBarExtent);
    const bool barAtRight = wanted.height() > room.height();
    const bool barBelow = wanted.width() > room.width();
    m_view->resize(wanted.expandedTo(room - QSize(barAtRight ? bar : 0, barBelow ? bar : 0)));
}

QRectF PictureArea::frameInView(const std::string& id) const
{
    const auto& items = m_view->picture().items;
    const auto item = std::find_if(
        items.begin(), items.end(), [&](const DisplayItem& candidate) { return !id.empty() && candidate.id == id; });
    return item == items.end() ? QRectF() : frameOf(*item).translated(m_view->origin());
}

void PictureArea::zoomTo(double zoom, QPointF anchor)
{
    zoom = std::clamp(zoom, 1.0, kLargestZoom);
    if (std::fabs(zoom - m_zoom) < 1e-9)
        return;
    // Margins and texts do not grow, so the piece under the pointer is a better mark than the share of the whole.
    const QPointF before = anchor - QPointF(m_view->pos());
    const DisplayItem* item = m_view->picture().itemAt(m_view->toPicture(before));
    const std::string id = item != nullptr ? item->id : std::string();
    const QPointF shares = sharesOf(item != nullptr ? frameInView(id) : QRectF(m_view->rect()), before);
    m_zoom = zoom;
    Q_EMIT redrawWanted();
    const QRectF frame = frameInView(id);
    const QPointF after = placeAt(frame.isEmpty() ? QRectF(m_view->rect()) : frame, shares);
    horizontalScrollBar()->setValue(qRound(after.x() - anchor.x()));
    verticalScrollBar()->setValue(qRound(after.y() - anchor.y()));
    Q_EMIT zoomChanged(m_zoom);
}

void PictureArea::zoomAtMiddle(double factor)
{
    zoomTo(m_zoom * factor, QRectF(viewport()->rect()).center());
}

void PictureArea::zoomIn()
{
    zoomAtMiddle(kZoomStep);
}

void PictureArea::zoomOut()
{
    zoomAtMiddle(1.0 / kZoomStep);
}

void PictureArea::fit()
{
    zoomTo(1.0, {});
}

bool PictureArea::eventFilter(QObject* watched, QEvent* event)
{
    switch (event->type()) {
    case QEvent::Wheel: {
        auto* wheel = static_cast<QWheelEvent*>(event);
        if (!(wheel->modifiers() & Qt::ControlModifier))
            break;
        const QPointF anchor = viewport()->mapFromGlobal(wheel->globalPosition());
        zoomTo(m_zoom * std::pow(kZoomStep, wheel->angleDelta().y() / kDegreesOfNotch), anchor);
        wheel->accept();
        return true;
    }
    case QEvent::KeyPress:
        m_byKeyboard = true;
        break;
    case QEvent::MouseMove:
    case QEvent::MouseButtonPress:
        m_byKeyboard = false;
        break;
    default:
        break;
    }
    return QScrollArea::eventFilter(watched, event);
}

void PictureArea::keyPressEvent(QKeyEvent* event)
{
    switch (event->key()) {
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        return zoomIn();
    case Qt::Key_Minus:
        return zoomOut();
    case Qt::Key_0:
        return fit();
    default:
        event->ignore(); // arrow keys are the picture's, not ours to scroll by
    }
}

void PictureArea::resizeEvent(QResizeEvent* event)
{
    QScrollArea::resizeEvent(event);
    resizeView();
    Q_EMIT redrawWanted();
}

void PictureArea::showFocused(const QString& id)
{
    if (!m_byKeyboard || id.isEmpty())
        return;
    const QPoint place = m_view->placeOf(id);
    ensureVisible(place.x(), place.y());
}

} // namespace meshwright::ui

#include "moc_picture_area.cpp"
