// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/timeline_part.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace meshwright::ui {

/// What changed the window: changes of the same kind that follow each other closely are one step of the history.
enum class ZoomGesture : std::uint8_t { Wheel, Keys, Drag, Jump };

/// The windows that were shown, for undo and redo of zooming.
class ZoomHistory {
public:
    static constexpr std::int64_t kOneStepMs = 700;
    static constexpr std::size_t kMostSteps = 200;

    explicit ZoomHistory(TimeWindow window = {0.0, 1.0});

    TimeWindow window() const { return m_steps[m_at]; }

    /// Shows another window. A Jump is always a step of its own; other gestures join the step before when it was of the same kind and
    /// less than kOneStepMs ago. `nowMs` counts from any fixed moment.
    void show(TimeWindow window, ZoomGesture gesture, std::int64_t nowMs);

    bool canUndo() const { return m_at > 0; }
    bool canRedo() const { return m_at + 1 < m_steps.size(); }
    void undo();
    void redo();

private:
    std::vector<TimeWindow> m_steps;
    std::size_t m_at = 0;
    ZoomGesture m_lastGesture = ZoomGesture::Jump;
    std::int64_t m_lastMs = 0;
};

} // namespace meshwright::ui
