// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/timeline_model.h"

#include <string>
#include <vector>

namespace meshwright::ui {

struct Fact {
    std::string label; ///< "Duration"
    std::string value; ///< "1.23 ms, 4.5 % of the step"
};

/// Everything that is known of one slice, in words.
struct SliceFacts {
    std::string name;
    SliceCategory category = SliceCategory::Compute;
    std::vector<Fact> facts;
    std::string how; ///< the formula with its inputs, or the cause; empty: none
};

SliceFacts factsOf(const TimelineModel& model, SliceId id);

/// Two or three lines for a tool tip.
std::string shortFacts(const TimelineModel& model, SliceId id);

/// The same for a span of a row (seconds) in which slices are too short to be drawn; empty when it holds none.
std::string foldedFacts(const TimelineModel& model, std::uint32_t group, std::uint32_t place, TimeWindow seconds);

/// "45.2 GB/s".
std::string bandwidthText(double bytesPerSecond);

/// "12.3 %".
std::string shareText(double share);

} // namespace meshwright::ui
