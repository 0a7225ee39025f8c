// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_steps.h"

#include <algorithm>
#include <cmath>

namespace meshwright::ui {

std::optional<SliceId> neighbourOf(const TimelineModel& model, SliceId id, int step)
{
    const TimelinePart& part = model.partOf(id);
    const std::uint32_t row = part.rowOf(id.slice);
    if (step > 0)
        return id.slice + 1 < part.rowEnd(row) ? std::optional(SliceId{id.group, id.slice + 1}) : std::nullopt;
    return id.slice > part.rowBegin(row) ? std::optional(SliceId{id.group, id.slice - 1}) : std::nullopt;
}

std::optional<std::uint32_t> nearestOf(const TimelinePart& part, std::uint32_t row, double seconds)
{
    const std::uint32_t after = part.firstEndingAfter(row, seconds);
    if (after == part.rowBegin(row))
        return after < part.rowEnd(row) ? std::optional(after) : std::nullopt;
    const std::uint32_t before = after - 1;
    if (after == part.rowEnd(row))
        return before;
    return part.start(after) - seconds < seconds - part.end(before) ? after : before;
}

std::optional<SliceId> onNextRow(const TimelineModel& model, const TimeAxis& axis, const RowLayout& layout, SliceId id, int step)
{
    const TimelinePart& part = model.partOf(id);
    const double middle = (part.start(id.slice) + part.end(id.slice)) / 2.0 / axis.secondsPerUnit(id.group);
    const ModelRow& row = model.rowOf(id);
    const auto place = static_cast<std::uint32_t>(&row - model.groups()[id.group].rows.data());
    const auto line = layout.lineOf(id.group, place);
    if (!line)
        return std::nullopt;
    const std::vector<LayoutLine>& lines = layout.lines();
    for (std::size_t next = *line + static_cast<std::size_t>(step); next < lines.size(); next += static_cast<std::size_t>(step)) {
        if (lines[next].isHeading())
            continue;
        const ModelGroup& group = model.groups()[lines[next].group];
        const double seconds = middle * axis.secondsPerUnit(lines[next].group);
        if (const auto slice = nearestOf(*group.part, group.rows[*lines[next].place].row, seconds))
            return SliceId{lines[next].group, *slice};
    }
    return std::nullopt;
}

std::optional<std::uint32_t> longestIn(const TimelinePart& part, std::uint32_t row, TimeWindow window)
{
    constexpr std::uint32_t kMostLooks = 5000;
    const std::uint32_t first = part.firstEndingAfter(row, window.begin);
    const std::uint32_t last = std::min(part.firstStartingFrom(row, window.end), first + kMostLooks);
    std::optional<std::uint32_t> longest;
    for (std::uint32_t slice = first; slice < last; ++slice) {
        if (!longest || part.end(slice) - part.start(slice) > part.end(*longest) - part.start(*longest))
            longest = slice;
    }
    return longest;
}

std::optional<SliceId> waitingCounterpart(const TimelineModel& model, SliceId id)
{
    const TimelinePart& part = model.partOf(id);
    const bool isWait = part.category(id.slice) == SliceCategory::Wait;
    if (!isWait && !isCommunication(part.category(id.slice)))
        return std::nullopt;
    const double end = part.end(id.slice);
    const double tolerance = 1e-5 * (end - part.start(id.slice));
    const ModelRow& own = model.rowOf(id);
    for (const ModelRow& row : model.groups()[id.group].rows) {
        if (row.deviceId != own.deviceId || row.row == own.row)
            continue;
        const auto other = part.sliceAt(row.row, end - tolerance);
        if (!other || std::abs(part.end(*other) - end) > tolerance)
            continue;
        const SliceCategory category = part.category(*other);
        if (isWait ? isCommunication(category) : category == SliceCategory::Wait)
            return SliceId{id.group, *other};
    }
    return std::nullopt;
}

} // namespace meshwright::ui
