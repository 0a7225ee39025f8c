// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/zoom_history.h"

namespace meshwright::ui {

ZoomHistory::ZoomHistory(TimeWindow window)
    : m_steps{window}
{
}

void ZoomHistory::show(TimeWindow window, ZoomGesture gesture, std::int64_t nowMs)
{
    if (window == this->window())
        return;
    const bool joins = m_at > 0 && gesture != ZoomGesture::Jump && gesture == m_lastGesture && nowMs - m_lastMs < kOneStepMs;
    m_steps.resize(m_at + 1);
    if (joins) {
        m_steps.back() = window;
    } else {
        if (m_steps.size() == kMostSteps)
            m_steps.erase(m_steps.begin());
        m_steps.push_back(window);
    }
    m_at = m_steps.size() - 1;
    m_lastGesture = gesture;
    m_lastMs = nowMs;
}

void ZoomHistory::undo()
{
    if (canUndo())
        --m_at;
    m_lastGesture = ZoomGesture::Jump;
}

void ZoomHistory::redo()
{
    if (canRedo())
        ++m_at;
    m_lastGesture = ZoomGesture::Jump;
}

} // namespace meshwright::ui
