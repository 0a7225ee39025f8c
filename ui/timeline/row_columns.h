// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/timeline_part.h"

#include <cstdint>
#include <vector>

namespace meshwright::ui {

enum class ColumnKind : std::uint8_t {
    Empty, ///< no slice in it
    Partial, ///< edges of slices that are themselves drawn, or one slice narrower than a column
    Folded, ///< several slices, at least one narrower than a column
    Solid, ///< one slice, at least a column wide, covers its middle
};

/// What one column of pixels of a row shows.
struct Column {
    ColumnKind kind = ColumnKind::Empty;
    SliceCategory category = SliceCategory::Compute; ///< the one with most time in the column
    std::uint8_t busy = 0; ///< share of its time that slices cover, 255 being all; at least 1 unless empty

    friend bool operator==(const Column&, const Column&) = default;
};

/// A slice that has columns of its own: those from `left` up to `right`, clipped to the picture.
struct DrawnSlice {
    std::uint32_t slice = 0; ///< in its part
    std::int32_t left = 0;
    std::int32_t right = 0;

    friend bool operator==(const DrawnSlice&, const DrawnSlice&) = default;
};

/// One row of a timeline as columns of pixels. Work is bounded by the number of columns, not of slices: where slices are narrower than columns,
/// sums come from the row's pyramid.
struct RowColumns {
    std::vector<Column> columns;
    std::vector<DrawnSlice> slices; ///< from left to right, without those that are folded

    /// Shows `window` (seconds) in `width` columns. Where the pyramid is used, `coarseness` columns (the device pixels of a pixel) look alike,
    /// and slices narrower than twice that may be folded although they would have a column of their own.
    /// Preconditions: window.length() > 0, width >= 1, coarseness >= 1.
    void fill(const TimelinePart& part, std::uint32_t row, TimeWindow window, int width, double coarseness = 1.0);
};

} // namespace meshwright::ui
