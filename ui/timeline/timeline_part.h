// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/timeline/timeline.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

namespace meshwright::ui {

inline constexpr std::size_t kSliceCategoryCount = 10;

/// True for categories in which devices exchange data.
bool isCommunication(SliceCategory category);

/// True for the categories in which nothing is done: waiting for others or for a core.
bool isWaiting(SliceCategory category);

/// A half-open span of time, in seconds (or in the units of an axis, where that is said).
struct TimeWindow {
    double begin = 0.0;
    double end = 0.0;

    double length() const { return end - begin; }
    friend bool operator==(const TimeWindow&, const TimeWindow&) = default;
};

/// What a stretch of a row is filled with.
struct Bucket {
    std::uint8_t busy = 0; ///< share of its time that slices cover, 255 being all; 0 only when there is none
    std::uint8_t main = 0; ///< the SliceCategory with most time in it; with kWhole when one slice covers it from end to end

    static constexpr std::uint8_t kWhole = 0x80;

    bool isWhole() const { return (main & kWhole) != 0; }
    std::uint8_t category() const { return main & 0x7fU; }
};

/// The slices of one row over its extent at several resolutions: level 0 has about four slices to a bucket, each further level buckets of
/// twice the length, the last 1024 buckets. All buckets of a level have the same length.
struct RowPyramid {
    double begin = 0.0; ///< seconds
    double baseSeconds = 0.0; ///< length of a bucket of level 0
    std::vector<std::vector<Bucket>> levels; ///< empty: the row is short enough to be drawn slice by slice

    double bucketSeconds(std::size_t level) const { return baseSeconds * static_cast<double>(std::uint64_t{1} << level); }
};

/// The slices of one timeline laid out for drawing: 16 bytes a slice, and pyramids of about one byte a slice. Names, bytes and details stay
/// in the timeline, slice i being `timeline().slices()[i]`. Never changes; shared by threads.
class TimelinePart {
public:
    /// Rows below this number of slices have no pyramid.
    static constexpr std::size_t kSmallestPyramid = 4096;

    /// Null when `stop` was asked for before it was done. A timeline that is not sorted is copied and sorted first.
    static std::shared_ptr<const TimelinePart> build(std::shared_ptr<const Timeline> timeline, const std::stop_token& stop = {});

    const Timeline& timeline() const { return *m_timeline; }
    std::size_t sliceCount() const { return m_starts.size(); }
    std::size_t rowCount() const { return m_pyramids.size(); }
    double endSeconds() const { return m_endSeconds; }

    /// The slices of a row are those from `rowBegin(row)` up to `rowEnd(row)`, in order of time.
    std::uint32_t rowBegin(std::uint32_t row) const { return m_rowBegin[row]; }
    std::uint32_t rowEnd(std::uint32_t row) const { return m_rowBegin[row + 1]; }
    const RowPyramid& pyramid(std::uint32_t row) const { return m_pyramids[row]; }

    double start(std::uint32_t slice) const { return m_starts[slice]; }
    double end(std::uint32_t slice) const { return m_starts[slice] + static_cast<double>(m_durations[slice]); }
    SliceCategory category(std::uint32_t slice) const { return static_cast<SliceCategory>(m_looks[slice] & 0xfU); }
    std::uint32_t name(std::uint32_t slice) const { return m_looks[slice] >> 4U; }
    std::uint32_t rowOf(std::uint32_t slice) const { return m_timeline->slices()[slice].row; }
    std::int32_t collective(std::uint32_t slice) const { return m_timeline->slices()[slice].collective; }
    const std::string& nameText(std::uint32_t slice) const { return m_timeline->text(name(slice)); }

    /// The categories that occur, by their numbers.
    const std::vector<SliceCategory>& categories() const { return m_categories; }

    /// The first slice of a row that ends after `seconds`; rowEnd when there is none. O(log n).
    std::uint32_t firstEndingAfter(std::uint32_t row, double seconds) const;

    /// The first slice of a row that starts at or after `seconds`, looked for from `from` on in growing strides. O(log of the distance).
    std::uint32_t firstStartingFrom(std::uint32_t row, double seconds, std::uint32_t from) const;
    std::uint32_t firstStartingFrom(std::uint32_t row, double seconds) const;

    /// The slice of a row at a moment.
    std::optional<std::uint32_t> sliceAt(std::uint32_t row, double seconds) const;

    /// Memory of the arrays above, without the timeline's own tables.
    std::size_t byteCount() const;

private:
    TimelinePart() = default;
    bool fill(const std::stop_token& stop);
    void buildPyramid(std::uint32_t row);

    std::shared_ptr<const Timeline> m_timeline;
    std::vector<double> m_starts; ///< seconds
    std::vector<float> m_durations; ///< seconds; not negative
    std::vector<std::uint32_t> m_looks; ///< name << 4 | category
    std::vector<std::uint32_t> m_rowBegin;
    std::vector<RowPyramid> m_pyramids;
    std::vector<SliceCategory> m_categories;
    double m_endSeconds = 0.0;
};

} // namespace meshwright::ui
