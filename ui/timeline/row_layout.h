// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/timeline_model.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace meshwright::ui {

/// A line of the view: the heading of a group, or one of its rows.
struct LayoutLine {
    std::uint32_t group = 0;
    std::optional<std::uint32_t> place; ///< of the row in its group; nothing: the group's heading
    double top = 0.0; ///< pixels from the top of all lines
    double height = 0.0; ///< for a row: of what is drawn, without the gap below it

    bool isHeading() const { return !place.has_value(); }
    double bottom() const { return top + height; }
    friend bool operator==(const LayoutLine&, const LayoutLine&) = default;
};

/// Where lines are, from top to bottom. Rows share the height that there is; with many rows they keep a least height and scroll.
class RowLayout {
public:
    static constexpr double kHeadingHeight = 24.0;
    static constexpr double kRulerHeight = 18.0; ///< added to headings whose group has a ruler of its own
    static constexpr double kLeastRow = 14.0; ///< gap included
    static constexpr double kMostRow = 56.0;
    static constexpr double kGap = 2.0;
    static constexpr double kDeviceGap = 3.0; ///< more, above the first row of a device

    RowLayout() = default;
    RowLayout(const TimelineModel& model, const std::set<std::uint32_t>& collapsed, bool hasOwnRulers, double availableHeight);

    const std::vector<LayoutLine>& lines() const { return m_lines; }
    double height() const { return m_height; }

    /// The line at a height; nothing in gaps and below the last.
    std::optional<std::size_t> lineAt(double y) const;
    std::optional<std::size_t> lineOf(std::uint32_t group, std::uint32_t place) const;

    /// Lines that reach into a span of heights, as the numbers of the first and one past the last.
    std::pair<std::size_t, std::size_t> linesIn(double top, double bottom) const;

    /// The height at which every row has its greatest height.
    static double naturalHeight(const TimelineModel& model, bool hasOwnRulers);

    friend bool operator==(const RowLayout&, const RowLayout&) = default;

private:
    std::vector<LayoutLine> m_lines;
    double m_height = 0.0;
    double m_headingHeight = kHeadingHeight;
};

} // namespace meshwright::ui
