// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_part.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <tuple>

namespace meshwright::ui {

namespace {

constexpr std::size_t kSmallestLevel = 1024;
constexpr std::uint32_t kNameLimit = 1U << 28U;

bool isSorted(const std::vector<Slice>& slices)
{
    return std::is_sorted(slices.begin(), slices.end(),
        [](const Slice& a, const Slice& b) { return std::tie(a.row, a.startSeconds) < std::tie(b.row, b.startSeconds); });
}

/// Seconds of each category in one bucket, and whether a single slice covers it.
struct BucketTimes {
    std::array<float, kSliceCategoryCount> seconds{};
    bool isWhole = false;

    Bucket packed(double bucketSeconds) const
    {
        float sum = 0.0F;
        for (const float part : seconds)
            sum += part;
        Bucket bucket;
        if (sum <= 0.0F)
            return bucket;
        const auto main = std::max_element(seconds.begin(), seconds.end()) - seconds.begin();
        bucket.busy
            = static_cast<std::uint8_t>(std::clamp(std::lround(255.0 * static_cast<double>(sum) / bucketSeconds), 1L, 255L));
        bucket.main = static_cast<std::uint8_t>(main);
        if (isWhole)
            bucket.main |= Bucket::kWhole;
        return bucket;
    }
};

std::vector<Bucket> packed(const std::vector<BucketTimes>& times, double bucketSeconds)
{
    std::vector<Bucket> level;
    level.reserve(times.size());
    for (const BucketTimes& bucket : times)
        level.push_back(bucket.packed(bucketSeconds));
    return level;
}

/// Joins neighbours; their number is even. Two whole buckets may belong to two slices that touch: then the pair still counts as whole, for
/// whoever draws it looks the slice up.
void halve(std::vector<BucketTimes>& times)
{
    for (std::size_t i = 0; i < times.size() / 2; ++i) {
        const BucketTimes& a = times[2 * i];
        const BucketTimes& b = times[2 * i + 1];
        BucketTimes joined;
        for (std::size_t category = 0; category < kSliceCategoryCount; ++category)
            joined.seconds[category] = a.seconds[category] + b.seconds[category];
        joined.isWhole = a.isWhole && b.isWhole;
        times[i] = joined;
    }
    times.resize(times.size() / 2);
}

/// A power of two, so that levels halve, next to a quarter of the number of slices.
std::size_t baseBuckets(std::size_t slices)
{
    const double wanted = static_cast<double>(slices) / 4.0;
    const double power = std::round(std::log2(wanted / static_cast<double>(kSmallestLevel)));
    return kSmallestLevel << static_cast<std::size_t>(std::max(0.0, power));
}

} // namespace

bool isCommunication(SliceCategory category)
{
    switch (category) {
    case SliceCategory::AllReduce:
    case SliceCategory::AllGather:
    case SliceCategory::ReduceScatter:
    case SliceCategory::AllToAll:
    case SliceCategory::Permute:
    case SliceCategory::Transfer:
        return true;
    default:
        return false;
    }
}

bool isWaiting(SliceCategory category)
{
    return category == SliceCategory::Wait || category == SliceCategory::WaitForCore;
}

std::shared_ptr<const TimelinePart> TimelinePart::build(std::shared_ptr<const Timeline> timeline, const std::stop_token& stop)
{
    if (!isSorted(timeline->slices())) {
        auto sorted = std::make_shared<Timeline>(*timeline);
        sorted->sort();
        timeline = std::move(sorted);
    }
    const std::shared_ptr<TimelinePart> part(new TimelinePart());
    part->m_timeline = std::move(timeline);
    return part->fill(stop) ? part : nullptr;
}

bool TimelinePart::fill(const std::stop_token& stop)
{
    const std::vector<Slice>& slices = m_timeline->slices();
    const std::size_t rows = m_timeline->rows().size();
    m_starts.reserve(slices.size());
    m_durations.reserve(slices.size());
    m_looks.reserve(slices.size());
    m_pyramids.resize(rows);
    m_rowBegin.reserve(rows + 1);
    std::array<bool, kSliceCategoryCount> occurs{};

    std::size_t next = 0;
    for (std::size_t row = 0; row < rows; ++row) {
        if (stop.stop_requested())
            return false;
        m_rowBegin.push_back(static_cast<std::uint32_t>(next));
        for (; next < slices.size() && slices[next].row == row; ++next) {
            const Slice& slice = slices[next];
            assert(slice.name < kNameLimit);
            m_starts.push_back(slice.startSeconds);
            m_durations.push_back(static_cast<float>(std::max(0.0, slice.durationSeconds)));
            m_looks.push_back(slice.name << 4U | static_cast<std::uint32_t>(slice.category));
            m_endSeconds = std::max(m_endSeconds, slice.startSeconds + slice.durationSeconds);
            occurs[static_cast<std::size_t>(slice.category)] = true;
        }
    }
    assert(next == slices.size());
    m_rowBegin.push_back(static_cast<std::uint32_t>(next));
    for (std::uint32_t row = 0; row < rows; ++row) {
        if (stop.stop_requested())
            return false;
        buildPyramid(row);
    }
    for (std::size_t category = 0; category < kSliceCategoryCount; ++category) {
        if (occurs[category])
            m_categories.push_back(static_cast<SliceCategory>(category));
    }
    return true;
}

void TimelinePart::buildPyramid(std::uint32_t row)
{
    const std::uint32_t first = rowBegin(row);
    const std::uint32_t last = rowEnd(row);
    if (last - first < kSmallestPyramid)
        return;
    const double begin = start(first);
    const double extent = end(last - 1) - begin;
    if (!(extent > 0.0))
        return;

    std::vector<BucketTimes> times(baseBuckets(last - first));
    const double bucketSeconds = extent / static_cast<double>(times.size());
    const auto bucketOf = [&](double seconds) {
        const double at = std::floor((seconds - begin) / bucketSeconds);
        return static_cast<std::size_t>(std::clamp(at, 0.0, static_cast<double>(times.size() - 1)));
    };
    for (std::uint32_t slice = first; slice < last; ++slice) {
        const double from = start(slice) - begin;
        const double to = end(slice) - begin;
        const auto category = static_cast<std::size_t>(this->category(slice));
        const std::size_t lastBucket = bucketOf(end(slice));
        for (std::size_t bucket = bucketOf(start(slice)); bucket <= lastBucket; ++bucket) {
            const double left = bucketSeconds * static_cast<double>(bucket);
            const double right = bucketSeconds * static_cast<double>(bucket + 1);
            times[bucket].seconds[category] += static_cast<float>(std::max(0.0, std::min(to, right) - std::max(from, left)));
            times[bucket].isWhole = times[bucket].isWhole || (from <= left && to >= right);
        }
    }

    RowPyramid& pyramid = m_pyramids[row];
    pyramid.begin = begin;
    pyramid.baseSeconds = bucketSeconds;
    while (true) {
        pyramid.levels.push_back(packed(times, pyramid.bucketSeconds(pyramid.levels.size())));
        if (times.size() <= kSmallestLevel)
            return;
        halve(times);
    }
}

std::uint32_t TimelinePart::firstStartingFrom(std::uint32_t row, double seconds) const
{
    const auto first = m_starts.begin() + rowBegin(row);
    const auto last = m_starts.begin() + rowEnd(row);
    return static_cast<std::uint32_t>(std::lower_bound(first, last, seconds) - m_starts.begin());
}

std::uint32_t TimelinePart::firstStartingFrom(std::uint32_t row, double seconds, std::uint32_t from) const
{
    const std::uint32_t last = rowEnd(row);
    std::uint32_t stride = 1;
    std::uint32_t low = from;
    while (low < last && m_starts[low] < seconds) {
        from = low + 1;
        low = last - low > stride ? low + stride : last;
        stride *= 2;
    }
    const auto at = std::lower_bound(m_starts.begin() + from, m_starts.begin() + low, seconds);
    return static_cast<std::uint32_t>(at - m_starts.begin());
}

std::uint32_t TimelinePart::firstEndingAfter(std::uint32_t row, double seconds) const
{
    const auto first = m_starts.begin() + rowBegin(row);
    const auto last = m_starts.begin() + rowEnd(row);
    auto at = static_cast<std::uint32_t>(std::upper_bound(first, last, seconds) - m_starts.begin());
    // Slices do not overlap, so only the one before can still be under way.
    if (at > rowBegin(row) && end(at - 1) > seconds)
        --at;
    return at;
}

std::optional<std::uint32_t> TimelinePart::sliceAt(std::uint32_t row, double seconds) const
{
    const std::uint32_t slice = firstEndingAfter(row, seconds);
    if (slice == rowEnd(row) || start(slice) > seconds)
        return std::nullopt;
    return slice;
}

std::size_t TimelinePart::byteCount() const
{
    std::size_t bytes = m_starts.size() * sizeof(double) + m_durations.size() * sizeof(float)
        + m_looks.size() * sizeof(std::uint32_t) + m_rowBegin.size() * sizeof(std::uint32_t);
    for (const RowPyramid& pyramid : m_pyramids) {
        bytes += sizeof(RowPyramid);
        for (const std::vector<Bucket>& level : pyramid.levels)
            bytes += level.size() * sizeof(Bucket);
    }
    return bytes;
}

} // namespace meshwright::ui
