// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/program/program_canvas.h"

#include "ui/theme/theme.h"
#include "ui/widgets/painter.h"

#include <QApplication>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace meshwright::ui {

namespace {

constexpr double kLeastScale = 0.02;
constexpr double kMostScale = 2.5;
constexpr double kFirstScale = 0.75; ///< of a graph that is too large to be read as a whole
constexpr double kReadableScale = 0.55;
constexpr double kRoom = 24.0; ///< around what is fitted, pixels
constexpr double kKeyFactor = 1.25;
constexpr float kPaleShare = 0.55F;

QPointF toQt(Point point)
{
    return {point.x, point.y};
}

} // namespace

ProgramCanvas::ProgramCanvas(QWidget* parent)
    : QWidget(parent)
{
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    setAccessibleName(tr("Graph of the program"));
    setAccessibleDescription(tr("The table beside it lists the same nodes"));
}

void ProgramCanvas::setGraph(GraphDrawing drawing, LayeredLayout layout)
{
    m_drawing = std::move(drawing);
    m_layout = std::move(layout);
    m_current.reset();
    fit();
    if (m_scale < kReadableScale) { // its left end, where the arguments are
        m_scale = kFirstScale;
        m_topLeft = {-kRoom / m_scale, (m_layout.height - height() / m_scale) / 2.0};
        m_isFitted = false;
    }
}

void ProgramCanvas::exchangeGraph(GraphDrawing drawing, LayeredLayout layout, std::optional<Kept> kept)
{
    if (m_isFitted)
        return setGraph(std::move(drawing), std::move(layout));
    const QPointF before = kept ? frameOf(kept->before).center() : QPointF();
    m_drawing = std::move(drawing);
    m_layout = std::move(layout);
    m_current.reset();
    if (kept)
        m_topLeft += (frameOf(kept->now).center() - before) / m_scale;
    keepInReach();
    update();
}

void ProgramCanvas::setDrawing(GraphDrawing drawing)
{
    m_drawing = std::move(drawing);
    update();
}

void ProgramCanvas::setCurrent(std::optional<std::size_t> node)
{
    m_current = node;
    update();
}

void ProgramCanvas::fit()
{
    const double x = (width() - 2.0 * kRoom) / std::max(1.0, m_layout.width);
    const double y = (height() - 2.0 * kRoom) / std::max(1.0, m_layout.height);
    m_scale = std::clamp(std::min(x, y), kLeastScale, 1.0);
    m_topLeft = {(m_layout.width - width() / m_scale) / 2.0, (m_layout.height - height() / m_scale) / 2.0};
    m_isFitted = true;
    update();
}

void ProgramCanvas::zoom(double factor)
{
    zoomAt(factor, QRectF(rect()).center());
}

void ProgramCanvas::zoomAt(double factor, QPointF place)
{
    const double scale = std::clamp(m_scale * factor, kLeastScale, kMostScale);
    m_topLeft += place / m_scale - place / scale;
    m_scale = scale;
    m_isFitted = false;
    keepInReach();
    update();
}

void ProgramCanvas::pan(QPointF by)
{
    m_topLeft -= by / m_scale;
    m_isFitted = false;
    keepInReach();
    update();
}

/// Some of the graph stays in sight.
void ProgramCanvas::keepInReach()
{
    const double wide = width() / m_scale;
    const double high = height() / m_scale;
    m_topLeft.setX(std::clamp(m_topLeft.x(), -wide * 0.75, std::max(0.0, m_layout.width - wide * 0.25)));
    m_topLeft.setY(std::clamp(m_topLeft.y(), -high * 0.75, std::max(0.0, m_layout.height - high * 0.25)));
}

QRectF ProgramCanvas::frameOf(std::size_t node) const
{
    const LayeredNode& size = m_layout.sizes[node];
    const QPointF at = (toQt(m_layout.topLefts[node]) - m_topLeft) * m_scale;
    return {at, QSizeF(size.width, size.height) * m_scale};
}

QPointF ProgramCanvas::middleOf(std::size_t node) const
{
    return frameOf(node).center() / m_scale + m_topLeft;
}

QPoint ProgramCanvas::placeOf(std::size_t node) const
{
    return frameOf(node).center().toPoint();
}

void ProgramCanvas::bringIntoView(std::size_t node)
{
    const QRectF frame = frameOf(node);
    if (QRectF(rect()).adjusted(kRoom, kRoom, -kRoom, -kRoom).contains(frame))
        return;
    pan(QRectF(rect()).center() - frame.center());
}

std::optional<std::size_t> ProgramCanvas::nodeAt(QPointF place) const
{
    for (std::size_t node = m_drawing.nodes.size(); node-- > 0;) {
        if (frameOf(node).contains(place))
            return node;
    }
    return {};
}

void ProgramCanvas::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    const Theme theme = themeOf(palette());
    painter.fillRect(rect(), qtColour(ColourRole::Background, theme));
    const GraphWindow window{
        {m_topLeft.x(), m_topLeft.y()}, static_cast<double>(width()), static_cast<double>(height()), m_scale};
    paintItems(painter, drawGraph(m_drawing, m_layout, window).items, theme);
    if (!isEnabled()) {
        QColor veil = qtColour(ColourRole::Background, theme);
        veil.setAlphaF(kPaleShare);
        painter.fillRect(rect(), veil);
    }
    if (hasFocus()) {
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(qtColour(ColourRole::Accent, theme), 1.0));
        painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
        if (m_current) {
            painter.setPen(QPen(qtColour(ColourRole::Accent, theme), 1.0, Qt::DashLine));
            painter.drawRect(frameOf(*m_current).adjusted(-4.0, -4.0, 4.0, 4.0));
        }
    }
}

void ProgramCanvas::resizeEvent(QResizeEvent*)
{
    if (m_isFitted)
        fit();
}

/// A touchpad scrolls by pixels: that moves the graph. A wheel zooms.
void ProgramCanvas::wheelEvent(QWheelEvent* event)
{
    if (!event->pixelDelta().isNull() && !(event->modifiers() & Qt::ControlModifier))
        pan(event->pixelDelta());
    else
        zoomAt(std::pow(2.0, event->angleDelta().y() / 480.0), event->position());
    event->accept();
}

void ProgramCanvas::mousePressEvent(QMouseEvent* event)
{
    m_pressed = m_last = event->position();
    m_isDragged = false;
}

void ProgramCanvas::mouseMoveEvent(QMouseEvent* event)
{
    if (event->buttons() == Qt::NoButton) {
        setCursor(nodeAt(event->position()) ? Qt::PointingHandCursor : Qt::ArrowCursor);
        return;
    }
    if ((event->position() - m_pressed).manhattanLength() >= QApplication::startDragDistance())
        m_isDragged = true;
    if (m_isDragged) {
        setCursor(Qt::ClosedHandCursor);
        pan(event->position() - m_last);
        m_last = event->position();
    }
}

void ProgramCanvas::mouseReleaseEvent(QMouseEvent* event)
{
    setCursor(Qt::ArrowCursor);
    if (m_isDragged || event->button() != Qt::LeftButton)
        return;
    if (const auto node = nodeAt(event->position())) {
        m_current = node;
        Q_EMIT nodeChosen(*node);
    } else {
        Q_EMIT nothingChosen();
    }
}

void ProgramCanvas::mouseDoubleClickEvent(QMouseEvent* event)
{
    mousePressEvent(event);
    if (const auto node = nodeAt(event->position()))
        Q_EMIT nodeOpened(*node);
}

/// The nearest node on an edge to the left or right; above or below the nearest one of the same rank.
std::optional<std::size_t> ProgramCanvas::neighbour(Way way) const
{
    std::optional<std::size_t> best;
    double least = 0.0;
    const auto offer = [&](std::size_t node, double distance) {
        if (!best || distance < least) {
            best = node;
            least = distance;
        }
    };
    const double y = middleOf(*m_current).y();
    if (way == Way::Left || way == Way::Right) {
        for (const DrawnGraphEdge& edge : m_drawing.edges) {
            const std::size_t here = way == Way::Left ? edge.to : edge.from;
            const std::size_t there = way == Way::Left ? edge.from : edge.to;
            if (here == *m_current)
                offer(there, std::abs(middleOf(there).y() - y));
        }
        return best;
    }
    for (std::size_t node = 0; node < m_drawing.nodes.size(); ++node) {
        const double distance = (middleOf(node).y() - y) * (way == Way::Up ? -1.0 : 1.0);
        if (m_layout.ranks[node] == m_layout.ranks[*m_current] && distance > 0.0)
            offer(node, distance);
    }
    return best;
}

void ProgramCanvas::go(Way way)
{
    if (m_drawing.nodes.empty())
        return;
    const auto next = m_current ? neighbour(way) : std::optional<std::size_t>(0);
    if (!next)
        return;
    m_current = next;
    bringIntoView(*next);
    Q_EMIT nodeChosen(*next);
    update();
}

void ProgramCanvas::keyPressEvent(QKeyEvent* event)
{
    switch (event->key()) {
    case Qt::Key_Left:
        return go(Way::Left);
    case Qt::Key_Right:
        return go(Way::Right);
    case Qt::Key_Up:
        return go(Way::Up);
    case Qt::Key_Down:
        return go(Way::Down);
    case Qt::Key_W:
    case Qt::Key_Plus:
        return zoom(kKeyFactor);
    case Qt::Key_S:
    case Qt::Key_Minus:
        return zoom(1.0 / kKeyFactor);
    case Qt::Key_0:
        return fit();
    case Qt::Key_F:
        if (m_current)
            pan(QRectF(rect()).center() - frameOf(*m_current).center());
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_current)
            Q_EMIT nodeOpened(*m_current);
        return;
    default:
        QWidget::keyPressEvent(event);
    }
}

void ProgramCanvas::focusInEvent(QFocusEvent* event)
{
    update();
    QWidget::focusInEvent(event);
}

void ProgramCanvas::focusOutEvent(QFocusEvent* event)
{
    update();
    QWidget::focusOutEvent(event);
}

bool ProgramCanvas::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    if (const auto node = nodeAt(help->pos()))
        QToolTip::showText(
            help->globalPos(), QString::fromStdString(m_drawing.nodes[*node].tooltip), this, frameOf(*node).toAlignedRect());
    else
        QToolTip::hideText();
    return true;
}

} // namespace meshwright::ui

#include "moc_program_canvas.cpp"
