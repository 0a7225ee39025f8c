// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/time_axis.h"
#include "ui/timeline/timeline_model.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace meshwright::ui {

/// Time of one category in an area. Seconds and bytes are those of one device, the mean of all that the area holds; a slice that reaches over
/// the area's edge counts with the share that is inside.
struct CategoryTotal {
    SliceCategory category = SliceCategory::Compute;
    std::int64_t slices = 0; ///< of all devices
    double seconds = 0.0;
    double bytes = 0.0;

    /// Zero when the category moves no bytes.
    double bytesPerSecond() const { return seconds > 0.0 ? bytes / seconds : 0.0; }
};

/// Time of all slices of one name and category, as CategoryTotal has it.
struct NameTotal {
    std::string name;
    CategoryTotal total;
};

/// What a group's devices do in an area, as means of one device; of an area that has none, what the host does.
struct GroupTotals {
    std::string name; ///< of the group
    TimeWindow seconds;
    std::int64_t devices = 0; ///< 0: the host's
    std::vector<CategoryTotal> categories; ///< that occur, in the order of their numbers
    std::vector<NameTotal> longest; ///< the names that take most time, at most kLongest, the longest first
    double computeSeconds = 0.0; ///< in which any of the device's rows computes
    double communicationSeconds = 0.0; ///< in which any exchanges data
    double overlapSeconds = 0.0; ///< in which both happen
    double idleSeconds = 0.0; ///< in which no row has a slice, not even one of waiting

    static constexpr std::size_t kLongest = 12;

    double exposedSeconds() const { return communicationSeconds - overlapSeconds; }
    /// Whether the categories take more than the time there is.
    bool overlaps() const
    {
        double sum = 0.0;
        for (const CategoryTotal& total : categories)
            sum += total.seconds;
        return sum > 1.001 * seconds.length();
    }
};

/// A part of the view: a span of the axis, on some rows.
struct TimelineArea {
    TimeWindow window; ///< units of the axis
    std::vector<std::pair<std::uint32_t, std::uint32_t>> rows; ///< (group, place in the group); empty: all

    friend bool operator==(const TimelineArea&, const TimelineArea&) = default;
};

/// The totals of every group that has rows in the area; what of the area lies after the end of a group's step does not count. About 20 ns for each slice inside. Nothing when `stop` was asked for before it was done.
std::optional<std::vector<GroupTotals>> totalsOf(
    const TimelineModel& model, const TimeAxis& axis, const TimelineArea& area, const std::stop_token& stop = {});

/// How many slices `totalsOf` would look at.
std::size_t slicesIn(const TimelineModel& model, const TimeAxis& axis, const TimelineArea& area);

} // namespace meshwright::ui
