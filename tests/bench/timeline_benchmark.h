// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/timeline/timeline.h"

#include <QSize>

#include <cstdint>
#include <memory>
#include <string>

namespace meshwright::ui {

/// How quick the timeline view is. A frame is an input event and everything until its pixels are drawn: hit test, rows, overlays, details.
struct TimelineBenchmark {
    std::int64_t slices = 0;
    double frameMsMedian = 0.0;
    double frameMsMax = 0.0;
    double bytesPerSlice = 0.0; ///< of the view's arrays and pyramids; names and details stay in the timeline
    std::int64_t frames = 0;
};

/// About `slices` lognormal slices on 64 rows in 8 categories with 2048 names; the same for the same number.
std::shared_ptr<const Timeline> benchmarkTrace(std::int64_t slices);

/// Opens the real view with its rows and rulers at `size` pixels, zooms from the whole trace to a few slices and back, moves, hovers, selects
/// slices and spans of time, as a user does, and times every frame. Needs a QApplication; offscreen is enough. Precondition: slices >= 64.
TimelineBenchmark benchmarkTimeline(std::int64_t slices, QSize size = {1600, 900});

/// `{"slices": 1000000, "frame_ms_median": 3.21, "frame_ms_max": 9.87, "bytes_per_slice": 16.9}`
std::string timelineBenchmarkJson(const TimelineBenchmark& result);

} // namespace meshwright::ui
