// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "core/timeline/timeline.h"

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright {

/// How slices of a category look: no two categories alike. Hatched: waiting, for other devices or for a core, and transfers, which share the
/// colour of permutes.
struct SliceLook {
    ColourRole role = ColourRole::Compute;
    Hatch hatch = Hatch::None;

    friend bool operator==(const SliceLook&, const SliceLook&) = default;
};
SliceLook sliceLook(SliceCategory category);

/// Which part of a timeline `drawTimeline` shows, and how.
struct TimelineDrawing {
    std::string title = {}; ///< over the picture; empty: no heading
    std::string platform = "device"; ///< before device ids
    double fromSeconds = 0.0;
    double toSeconds = 0.0; ///< <= fromSeconds: the end of the timeline
    std::vector<std::uint32_t> rows = {}; ///< which rows, from top to bottom; empty: all
    std::size_t mostRows = 32; ///< the rest is counted in a note
    std::size_t mostSlices = 3000; ///< shapes of slices; narrower ones are folded until there are no more
    bool legend = true;
    double width = 900.0; ///< pixels; the height follows from the rows
    double rowHeight = 22.0;
};

/// A picture of a part of a timeline: a ruler, a row for each device and stream, slices in the colours of their categories with their names
/// where they fit. Neighbouring slices narrower than a pixel or so are folded to one shape, in the category that takes most of their time, which
/// is as high as it is busy.
///
/// Items: `slice:N` (N the index into `timeline.slices()`; for folded ones `folded:N`, N the first), tooltips with name, start, duration, bytes
/// and detail. The number of items is bounded whatever the number of slices. Precondition: the timeline is sorted (`Timeline::sort`).
DisplayList drawTimeline(const Timeline& timeline, const TimelineDrawing& drawing);

} // namespace meshwright
