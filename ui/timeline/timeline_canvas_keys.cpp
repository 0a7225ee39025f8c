// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_canvas.h"

#include "ui/timeline/timeline_steps.h"

#include <QKeyEvent>
#include <QScrollBar>

#include <algorithm>
#include <cmath>

namespace meshwright::ui {

namespace {

constexpr double kZoomOfKey = 1.5;
constexpr double kMoveOfKey = 0.15; ///< of the window

} // namespace

void TimelineCanvas::step(int direction, bool onRow)
{
    if (m_scene.model->isEmpty())
        return;
    std::optional<SliceId> next;
    if (m_selected) {
        next = onRow ? neighbourOf(*m_scene.model, *m_selected, direction)
                     : onNextRow(*m_scene.model, m_scene.axis, m_scene.layout, *m_selected, direction);
    } else {
        for (const LayoutLine& line : m_scene.layout.lines()) {
            if (line.isHeading() || next)
                continue;
            const ModelGroup& group = m_scene.model->groups()[line.group];
            if (const auto slice = nearestOf(*group.part, group.rows[*line.place].row, m_scene.seconds(line.group).begin))
                next = SliceId{line.group, *slice};
        }
    }
    if (!next)
        return;
    select(next);
    reveal(*next);
}

void TimelineCanvas::moveHeadingCursor(int direction)
{
    const auto groups = static_cast<int>(m_scene.model->groups().size());
    if (groups == 0)
        return;
    const int at = m_headingCursor ? static_cast<int>(*m_headingCursor) + direction : 0;
    m_headingCursor = static_cast<std::uint32_t>(std::clamp(at, 0, groups - 1));
    setAccessibleDescription(QString::fromStdString(m_scene.model->groups()[*m_headingCursor].title));
    update();
}

bool TimelineCanvas::keyOnHeading(QKeyEvent& event)
{
    if (!m_headingCursor)
        return false;
    switch (event.key()) {
    case Qt::Key_Left:
        setCollapsed(*m_headingCursor, true);
        return true;
    case Qt::Key_Right:
        setCollapsed(*m_headingCursor, false);
        return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
        setCollapsed(*m_headingCursor, !isCollapsed(*m_headingCursor));
        return true;
    case Qt::Key_Up:
        moveHeadingCursor(-1);
        return true;
    case Qt::Key_Down:
        moveHeadingCursor(1);
        return true;
    case Qt::Key_Escape:
        m_headingCursor.reset();
        update();
        return true;
    default:
        return false;
    }
}

bool TimelineCanvas::zoomKey(QKeyEvent& event)
{
    const double length = m_scene.window.length();
    const bool isUndo = event.key() == Qt::Key_Backspace || event.key() == Qt::Key_Left || event.key() == Qt::Key_Right;
    if (isUndo && (event.key() == Qt::Key_Backspace || event.modifiers() == Qt::AltModifier)) {
        const bool forward = event.key() == Qt::Key_Right || (event.modifiers() & Qt::ShiftModifier);
        forward ? redoZoom() : undoZoom();
        return true;
    }
    switch (event.key()) {
    case Qt::Key_W:
        zoomAt(pointerOrMiddle(), 1.0 / kZoomOfKey, ZoomGesture::Keys);
        return true;
    case Qt::Key_S:
        zoomAt(pointerOrMiddle(), kZoomOfKey, ZoomGesture::Keys);
        return true;
    case Qt::Key_A:
        show(m_scene.axis.moved(m_scene.window, -kMoveOfKey * length), ZoomGesture::Keys);
        return true;
    case Qt::Key_D:
        show(m_scene.axis.moved(m_scene.window, kMoveOfKey * length), ZoomGesture::Keys);
        return true;
    case Qt::Key_Home:
        show(m_scene.axis.moved(m_scene.window, -m_scene.axis.end()));
        return true;
    case Qt::Key_End:
        show(m_scene.axis.moved(m_scene.window, m_scene.axis.end()));
        return true;
    case Qt::Key_0:
        fit();
        return true;
    case Qt::Key_F:
        frameSelection();
        return true;
    default:
        return false;
    }
}

bool TimelineCanvas::stepKey(QKeyEvent& event)
{
    switch (event.key()) {
    case Qt::Key_Period:
    case Qt::Key_Right:
        step(1, true);
        return true;
    case Qt::Key_Comma:
    case Qt::Key_Left:
        step(-1, true);
        return true;
    case Qt::Key_Down:
        step(1, false);
        return true;
    case Qt::Key_Up:
        step(-1, false);
        return true;
    case Qt::Key_PageDown:
        m_scroll->triggerAction(QAbstractSlider::SliderPageStepAdd);
        return true;
    case Qt::Key_PageUp:
        m_scroll->triggerAction(QAbstractSlider::SliderPageStepSub);
        return true;
    case Qt::Key_G:
        moveHeadingCursor(1);
        return true;
    case Qt::Key_M:
        if (m_selected) {
            const TimelinePart& part = m_scene.model->partOf(*m_selected);
            setArea(TimelineArea{
                m_scene.axis.fromSeconds(m_selected->group, {part.start(m_selected->slice), part.end(m_selected->slice)}), {}});
        }
        return true;
    case Qt::Key_Escape:
        if (m_area)
            setArea(std::nullopt);
        else
            select(std::nullopt);
        return true;
    default:
        return false;
    }
}

void TimelineCanvas::keyPressEvent(QKeyEvent* event)
{
    const bool isPlain = !(event->modifiers() & (Qt::ControlModifier | Qt::MetaModifier));
    if (event->matches(QKeySequence::Find))
        Q_EMIT searchRequested();
    else if (!isPlain)
        QWidget::keyPressEvent(event);
    else if (event->key() == Qt::Key_F3 || event->key() == Qt::Key_N)
        Q_EMIT matchRequested(event->modifiers() & Qt::ShiftModifier ? -1 : 1);
    else if (event->key() == Qt::Key_V)
        Q_EMIT clockRequested();
    else if (event->key() == Qt::Key_T)
        Q_EMIT scaleRequested();
    else if (event->key() == Qt::Key_Question)
        Q_EMIT helpRequested();
    else if (!keyOnHeading(*event) && !zoomKey(*event) && !stepKey(*event))
        QWidget::keyPressEvent(event);
}

} // namespace meshwright::ui
