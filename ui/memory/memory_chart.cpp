// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/memory/memory_chart.h"

#include "ui/theme/theme.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

namespace meshwright::ui {

MemoryChart::MemoryChart(QWidget* parent)
    : PictureView(parent)
{
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void MemoryChart::setMemory(MemoryDrawing memory)
{
    m_memory = std::move(memory);
    m_memory.title.clear(); // the view's headline says more
    setGuide({});
    redraw();
}

void MemoryChart::redraw()
{
    m_memory.width = std::max(minimumSizeHint().width(), width());
    m_memory.height = std::max(minimumSizeHint().height(), height());
    DisplayList picture = drawMemory(m_memory);
    picture.title = "Memory of a device over the step"; // its accessible name
    setPicture(std::move(picture));
}

void MemoryChart::resizeEvent(QResizeEvent* event)
{
    PictureView::resizeEvent(event);
    redraw();
}

void MemoryChart::paintEvent(QPaintEvent* event)
{
    PictureView::paintEvent(event);
    if (!m_moment || !isEnabled())
        return;
    const MemoryFrame frame = memoryFrame(m_memory);
    const double x = std::floor(frame.xOf(m_seconds)) + 0.5; // on one column of pixels
    const double y = frame.yOf(static_cast<double>(totalBytes(m_memory.moments[*m_moment])));
    const Theme theme = themeOf(palette());
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(qtColour(ColourRole::Accent, theme), 1.0));
    painter.drawLine(QPointF(x, frame.topLeft.y), QPointF(x, frame.topLeft.y + frame.height));
    painter.setPen(QPen(qtColour(ColourRole::Background, theme), 1.5));
    painter.setBrush(qtColour(ColourRole::Accent, theme));
    painter.drawEllipse(QPointF(x, y), 4.5, 4.5);
}

void MemoryChart::setGuide(std::optional<double> seconds)
{
    const auto moment = seconds && !m_memory.moments.empty() ? std::optional(momentAt(m_memory, *seconds)) : std::nullopt;
    if (moment == m_moment && (!moment || *seconds == m_seconds))
        return;
    m_moment = moment;
    m_seconds = moment ? *seconds : 0.0;
    update();
    Q_EMIT momentChanged();
}

void MemoryChart::mouseMoveEvent(QMouseEvent* event)
{
    PictureView::mouseMoveEvent(event);
    const MemoryFrame frame = memoryFrame(m_memory);
    const double x = event->position().x();
    const bool isInside = x >= frame.topLeft.x && x <= frame.topLeft.x + frame.width;
    setGuide(isInside ? std::optional(frame.secondsAt(x)) : std::nullopt);
}

void MemoryChart::leaveEvent(QEvent* event)
{
    PictureView::leaveEvent(event);
    setGuide({});
}

/// To the next or the last moment of another time; from nowhere to the first or the last.
void MemoryChart::stepGuide(int step)
{
    const auto& moments = m_memory.moments;
    if (moments.empty())
        return;
    if (!m_moment)
        return setGuide(step > 0 ? moments.front().seconds : moments.back().seconds);
    auto at = static_cast<std::ptrdiff_t>(*m_moment);
    const double from = moments[*m_moment].seconds;
    while (at + step >= 0 && at + step < static_cast<std::ptrdiff_t>(moments.size())) {
        at += step;
        if (moments[static_cast<std::size_t>(at)].seconds != from)
            break;
    }
    setGuide(moments[static_cast<std::size_t>(at)].seconds);
}

void MemoryChart::keyPressEvent(QKeyEvent* event)
{
    if (event->key() == Qt::Key_Left || event->key() == Qt::Key_Right)
        return stepGuide(event->key() == Qt::Key_Right ? 1 : -1);
    if (event->key() == Qt::Key_Escape && m_moment)
        return setGuide({});
    PictureView::keyPressEvent(event);
}

} // namespace meshwright::ui

#include "moc_memory_chart.cpp"
