// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/row_layout.h"
#include "ui/timeline/time_axis.h"
#include "ui/timeline/timeline_model.h"

#include <cstdint>
#include <optional>

namespace meshwright::ui {

/// The slice before (-1) or after (1) one on its row; nothing at the ends.
std::optional<SliceId> neighbourOf(const TimelineModel& model, SliceId id, int step);

/// The slice nearest in time on the closest row above (-1) or below (1) that has any, other groups included, collapsed ones left out.
std::optional<SliceId> onNextRow(const TimelineModel& model, const TimeAxis& axis, const RowLayout& layout, SliceId id, int step);

/// The slice of a row that is nearest to a moment. Nothing when the row is empty.
std::optional<std::uint32_t> nearestOf(const TimelinePart& part, std::uint32_t row, double seconds);

/// Of the slices of a row that touch a window (seconds), the longest.
std::optional<std::uint32_t> longestIn(const TimelinePart& part, std::uint32_t row, TimeWindow window);

/// For an exchange, the slice of the same device in which computing waits until it ends; for such a wait, the exchange. Nothing where none was
/// waited for.
std::optional<SliceId> waitingCounterpart(const TimelineModel& model, SliceId id);

} // namespace meshwright::ui
