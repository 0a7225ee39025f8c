// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/row_columns.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace meshwright::ui {

namespace {

/// A bucket of the pyramid may stand for so many columns before the slices themselves are added up, which takes far longer.
constexpr double kCoarsest = 2.0;

/// In one column this many slices are added up one by one; the rest comes from the pyramid.
constexpr std::uint32_t kAddedOneByOne = 8;

constexpr double kPerByte = 1.0 / 255.0;

/// Time of each category in one column, in columns.
class Sum {
public:
    void clear()
    {
        m_shares.fill(0.0F);
        m_total = 0.0F;
        m_main = 0;
    }

    void add(std::size_t category, float share)
    {
        m_shares[category] += share;
        m_total += share;
        if (m_shares[category] > m_shares[m_main])
            m_main = category;
    }

    float total() const { return m_total; }

    Column column(ColumnKind kind) const
    {
        const int busy = std::clamp(static_cast<int>(255.0F * m_total + 0.5F), 1, 255);
        return {kind, static_cast<SliceCategory>(m_main), static_cast<std::uint8_t>(busy)};
    }

private:
    std::array<float, kSliceCategoryCount> m_shares{};
    float m_total = 0.0F;
    std::size_t m_main = 0; ///< the category with most time
};

/// Fills the columns of one row, from left to right.
class Filler {
public:
    Filler(const TimelinePart& part, std::uint32_t row, TimeWindow window, RowColumns& into)
        : m_part(part)
        , m_pyramid(part.pyramid(row))
        , m_row(row)
        , m_window(window)
        , m_into(into)
        , m_width(static_cast<std::int32_t>(into.columns.size()))
        , m_perSecond(static_cast<double>(m_width) / window.length())
    {
    }

    /// Looks at every slice from `slice` on that begins in the window, except in columns with very many.
    void fromSlices(std::uint32_t slice)
    {
        const std::uint32_t last = m_part.rowEnd(m_row);
        for (; slice < last && m_part.start(slice) < m_window.end; ++slice) {
            if (m_added >= kAddedOneByOne && !m_pyramid.levels.empty())
                slice = skippedTo(slice);
            addSlice(slice);
        }
        writeSum();
    }

    /// Looks at the buckets of one level, and at slices only where one fills a whole bucket. `stride` columns at a time look alike.
    void fromPyramid(std::size_t level, std::int32_t stride)
    {
        const double bucketSeconds = m_pyramid.bucketSeconds(level);
        const double bucketsPerColumn = 1.0 / (m_perSecond * bucketSeconds);
        const double origin = (m_window.begin - m_pyramid.begin) / bucketSeconds;
        const auto limit = static_cast<double>(m_pyramid.levels[level].size());
        for (std::int32_t column = 0; column < m_width; column += stride) {
            const std::int32_t beyond = std::min(column + stride, m_width);
            const double from = std::max(0.0, origin + bucketsPerColumn * column);
            const double to = std::min(limit, origin + bucketsPerColumn * beyond);
            if (from < to && !(isSolid(column) && isSolid(beyond - 1)))
                addBuckets(column, beyond, level, from, to);
        }
    }

private:
    bool isSolid(std::int32_t column) const { return m_into.columns[static_cast<std::size_t>(column)].kind == ColumnKind::Solid; }
    double placeOf(double seconds) const { return (seconds - m_window.begin) * m_perSecond; }

    /// Gives a slice, from and to these places, the columns whose middles it covers.
    void draw(std::uint32_t slice, double from, double to)
    {
        const double limit = m_width;
        const auto left = static_cast<std::int32_t>(std::clamp(std::ceil(from - 0.5), 0.0, limit));
        const auto right = static_cast<std::int32_t>(std::clamp(std::ceil(to - 0.5), 0.0, limit));
        if (left >= right)
            return;
        const Column solid{ColumnKind::Solid, m_part.category(slice), 255};
        std::fill(m_into.columns.begin() + left, m_into.columns.begin() + right, solid);
        m_into.slices.push_back({slice, left, right});
    }

    void addSlice(std::uint32_t slice)
    {
        const double from = placeOf(m_part.start(slice));
        const double to = placeOf(m_part.end(slice));
        const bool isNarrow = to - from < 1.0;
        if (!isNarrow)
            draw(slice, from, to);
        const double nextColumn = std::floor(from) + 1.0;
        addShare(slice, from, std::min(to, nextColumn), isNarrow);
        if (to > nextColumn && std::floor(to) < to)
            addShare(slice, std::floor(to), to, isNarrow);
    }

    /// Adds what lies within one column.
    void addShare(std::uint32_t slice, double from, double to, bool isNarrow)
    {
        const double column = std::floor(from);
        if (column < 0.0 || column >= m_width)
            return;
        if (static_cast<std::int32_t>(column) != m_column) {
            writeSum();
            m_column = static_cast<std::int32_t>(column);
            m_sum.clear();
            m_added = 0;
            m_narrow = 0;
        }
        m_sum.add(static_cast<std::size_t>(m_part.category(slice)), static_cast<float>(to - from));
        ++m_added;
        m_narrow += isNarrow ? 1 : 0;
    }

    void writeSum()
    {
        if (m_added == 0 || isSolid(m_column))
            return;
        const bool isFolded = m_added > 1 && m_narrow > 0;
        m_into.columns[static_cast<std::size_t>(m_column)] = m_sum.column(isFolded ? ColumnKind::Folded : ColumnKind::Partial);
    }

    /// The last slice that begins in the current column, those before it having been added from the pyramid's buckets.
    std::uint32_t skippedTo(std::uint32_t slice)
    {
        const double columnEnd = m_window.begin + (m_column + 1) / m_perSecond;
        const std::uint32_t beyond = m_part.firstStartingFrom(m_row, columnEnd, slice);
        if (beyond < slice + kAddedOneByOne)
            return slice;
        const double perBucket = m_perSecond * m_pyramid.baseSeconds; // columns
        const double from = (m_part.start(slice) - m_pyramid.begin) / m_pyramid.baseSeconds;
        const double to = (m_part.start(beyond - 1) - m_pyramid.begin) / m_pyramid.baseSeconds;
        forEachBucket(m_pyramid.levels.front(), from, to, [&](std::size_t, const Bucket& bucket, double share) {
            m_sum.add(bucket.category(), static_cast<float>(share * perBucket));
        });
        return beyond - 1;
    }

    /// Calls visit(index, bucket, busy share of it between the two places, in buckets).
    template <typename Visit>
    static void forEachBucket(const std::vector<Bucket>& buckets, double from, double to, Visit visit)
    {
        const auto last = std::min(static_cast<std::size_t>(std::ceil(to)), buckets.size());
        for (auto i = static_cast<std::size_t>(from); i < last; ++i) {
            const auto left = static_cast<double>(i);
            visit(i, buckets[i], (std::min(to, left + 1.0) - std::max(from, left)) * kPerByte * buckets[i].busy);
        }
    }

    void addBuckets(std::int32_t column, std::int32_t beyond, std::size_t level, double from, double to)
    {
        const double perBucket = m_perSecond * m_pyramid.bucketSeconds(level) / (beyond - column); // of these columns
        m_sum.clear();
        forEachBucket(m_pyramid.levels[level], from, to, [&](std::size_t i, const Bucket& bucket, double share) {
            if (bucket.isWhole())
                drawWhole(m_pyramid.begin + (static_cast<double>(i) + 0.5) * m_pyramid.bucketSeconds(level));
            m_sum.add(bucket.category(), static_cast<float>(share * perBucket));
        });
        if (m_sum.total() <= 0.0F)
            return;
        const Column folded = m_sum.column(ColumnKind::Folded);
        for (; column < beyond; ++column) {
            if (!isSolid(column))
                m_into.columns[static_cast<std::size_t>(column)] = folded;
        }
    }

    /// Draws the slice at a moment if it is wide enough and has not just been drawn.
    void drawWhole(double seconds)
    {
        const auto slice = m_part.sliceAt(m_row, seconds);
        if (!slice || (!m_into.slices.empty() && m_into.slices.back().slice == *slice))
            return;
        const double from = placeOf(m_part.start(*slice));
        const double to = placeOf(m_part.end(*slice));
        if (to - from >= 1.0)
            draw(*slice, from, to);
    }

    const TimelinePart& m_part;
    const RowPyramid& m_pyramid;
    std::uint32_t m_row;
    TimeWindow m_window;
    RowColumns& m_into;
    std::int32_t m_width;
    double m_perSecond; ///< columns
    std::int32_t m_column = 0; ///< that m_sum is of, where slices are added
    Sum m_sum;
    std::uint32_t m_added = 0; ///< slices in m_sum, those from the pyramid not counted
    std::uint32_t m_narrow = 0; ///< of them, those narrower than a column
};

} // namespace

void RowColumns::fill(const TimelinePart& part, std::uint32_t row, TimeWindow window, int width, double coarseness)
{
    assert(window.length() > 0.0 && width >= 1 && coarseness >= 1.0);
    columns.assign(static_cast<std::size_t>(width), {});
    slices.clear();
    Filler filler(part, row, window, *this);

    const std::uint32_t first = part.firstEndingAfter(row, window.begin);
    const std::uint32_t beyond = part.firstStartingFrom(row, window.end);
    const RowPyramid& pyramid = part.pyramid(row);
    const auto stride = static_cast<std::int32_t>(coarseness);
    const double strideSeconds = stride * window.length() / width;
    const bool isDense = beyond > first && beyond - first > static_cast<std::uint32_t>(width);
    if (!isDense || pyramid.levels.empty() || pyramid.baseSeconds > kCoarsest * strideSeconds)
        return filler.fromSlices(first);
    std::size_t level = 0;
    while (level + 1 < pyramid.levels.size() && pyramid.bucketSeconds(level + 1) <= strideSeconds)
        ++level;
    filler.fromPyramid(level, stride);
}

} // namespace meshwright::ui
