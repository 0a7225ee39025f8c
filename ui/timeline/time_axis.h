// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/timeline_model.h"
#include "ui/timeline/timeline_part.h"

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright::ui {

/// What the horizontal axis of the view counts. Either seconds, the same for all groups; or shares of the step, 0 to 1, each group's own step
/// being stretched to the whole axis.
class TimeAxis {
public:
    TimeAxis() = default;
    TimeAxis(const TimelineModel& model, bool isStretched);

    bool isStretched() const { return m_isStretched; }
    double end() const { return m_end; } ///< of the axis, in its units; > 0

    double secondsPerUnit(std::uint32_t group) const { return m_secondsPerUnit[group]; }
    TimeWindow toSeconds(std::uint32_t group, TimeWindow window) const;
    TimeWindow fromSeconds(std::uint32_t group, TimeWindow seconds) const;

    TimeWindow whole() const { return {0.0, m_end}; }

    /// The window moved, and shortened if it must be, to lie within the axis; not shorter than a thousand-millionth of it.
    TimeWindow clamped(TimeWindow window) const;

    /// `window` with its length times `factor`, the moment `at` staying where it is.
    TimeWindow zoomed(TimeWindow window, double at, double factor) const;

    TimeWindow moved(TimeWindow window, double by) const;

private:
    bool m_isStretched = false;
    double m_end = 1.0;
    std::vector<double> m_secondsPerUnit;
};

struct Tick {
    double at = 0.0; ///< seconds, or shares
    std::string text;
};

/// Marks of a ruler. Where the window is so far from 0 that each label would need many figures, they say how far they are from `base`.
struct Ticks {
    std::vector<Tick> marks;
    double step = 0.0;
    std::string base; ///< "1.234567 s +"; empty: labels count from 0
};

/// At most `most` marks at round places (1, 2 or 5 times a power of ten). Precondition: window.length() > 0, most >= 1.
Ticks timeTicks(TimeWindow seconds, int most);
Ticks shareTicks(TimeWindow shares, int most);

/// A moment to the figure that a pixel of `resolution` seconds can show: "12.3456 ms".
std::string exactTime(double seconds, double resolution);

} // namespace meshwright::ui
