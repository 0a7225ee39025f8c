// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_timeline.h"

#include "core/draw/chart.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>
#include <set>

namespace meshwright {

namespace {

using namespace chart;

constexpr double kNarrowest = 1.5; ///< pixels; narrower slices are folded
constexpr double kTimeRulerHeight = 20.0;
constexpr double kTickSpace = 80.0;
constexpr double kRowPadding = 2.0; ///< above and below the slices of a row
constexpr double kLeastFoldedShare = 0.3; ///< of the height, so that a folded shape can be seen
constexpr std::size_t kMostDetail = 400; ///< characters of a slice's detail in its tooltip

constexpr std::array kCategories = {SliceCategory::Compute, SliceCategory::AllReduce, SliceCategory::AllGather,
    SliceCategory::ReduceScatter, SliceCategory::AllToAll, SliceCategory::Permute, SliceCategory::Transfer, SliceCategory::Wait,
    SliceCategory::WaitForCore, SliceCategory::Host};

/// Slices that are drawn as one shape.
struct Fold {
    std::size_t first = 0; ///< index of a slice
    std::size_t count = 0;
    double busySeconds = 0.0;
    std::array<double, kCategories.size()> secondsByCategory{};

    void add(std::size_t index, const Slice& slice, double seconds)
    {
        if (count++ == 0)
            first = index;
        busySeconds += seconds;
        secondsByCategory[static_cast<std::size_t>(slice.category)] += seconds;
    }
    SliceCategory mainCategory() const
    {
        const auto most = std::max_element(secondsByCategory.begin(), secondsByCategory.end());
        return static_cast<SliceCategory>(most - secondsByCategory.begin());
    }
};

class TimelinePainter {
public:
    TimelinePainter(const Timeline& timeline, const TimelineDrawing& drawing)
        : m_timeline(timeline)
        , m_drawing(drawing)
        , m_rows(drawing.rows)
    {
        if (m_rows.empty()) {
            m_rows.resize(timeline.rows().size());
            std::iota(m_rows.begin(), m_rows.end(), 0U);
        }
        if (m_rows.size() > drawing.mostRows) {
            m_rowsLeft = m_rows.size() - drawing.mostRows;
            m_rows.resize(drawing.mostRows);
        }
        m_area.xFrom = drawing.fromSeconds;
        m_area.xTo = drawing.toSeconds > drawing.fromSeconds ? drawing.toSeconds : timeline.endSeconds();
    }

    DisplayList draw()
    {
        DisplayList list;
        list.title = m_drawing.title;
        list.width = m_drawing.width;
        const double top = addHeading(list, m_drawing.title, m_drawing.width);
        double labels = 0.0;
        for (const std::uint32_t row : m_rows)
            labels = std::max(labels, estimatedWidth(labelOf(row), kSmallSize));
        labels = std::min(labels, m_drawing.width * 0.3);
        m_area.topLeft = {kMargin + labels + 8.0, top + kTimeRulerHeight};
        m_area.width = std::max(10.0, m_drawing.width - m_area.topLeft.x - kMargin);
        m_area.height = std::max(1.0, static_cast<double>(m_rows.size()) * m_drawing.rowHeight);
        const double budget = static_cast<double>(std::max<std::size_t>(1, m_drawing.mostSlices))
            / static_cast<double>(std::max<std::size_t>(1, m_rows.size()));
        m_foldWidth = std::max(kNarrowest, 2.0 * m_area.width / std::max(1.0, budget));

        addFrame(list, labels);
        for (std::size_t i = 0; i < m_rows.size(); ++i)
            addRow(list, m_rows[i], m_area.topLeft.y + static_cast<double>(i) * m_drawing.rowHeight);
        double y = m_area.bottom() + 8.0;
        if (m_rowsLeft > 0) {
            list.items.push_back({TextShape{{kMargin, y + kLineHeight / 2.0}, fmt::format("{} more rows", m_rowsLeft), kSmallSize,
                TextAnchor::Start, ColourRole::MutedText}});
            y += kLineHeight;
        }
        if (m_drawing.legend)
            y += addLegend(list, {kMargin, y}, m_drawing.width - 2.0 * kMargin, legendEntries());
        list.height = std::ceil(y + kMargin - 4.0);
        return list;
    }

private:
    std::string labelOf(std::uint32_t row) const
    {
        const TimelineRow& which = m_timeline.rows()[row];
        return fmt::format("{} {} {}", m_drawing.platform, which.device, which.stream);
    }

    /// Stripes, labels, ruler and the faint lines of its ticks.
    void addFrame(DisplayList& list, double labelWidth)
    {
        for (std::size_t i = 0; i < m_rows.size(); ++i) {
            const double y = m_area.topLeft.y + static_cast<double>(i) * m_drawing.rowHeight;
            if (i % 2 == 0) {
                ShapeStyle stripe;
                stripe.fill = ColourRole::Surface;
                list.items.push_back({RectShape{{kMargin, y}, m_drawing.width - 2.0 * kMargin, m_drawing.rowHeight, stripe}});
            }
            list.items.push_back({TextShape{{kMargin + labelWidth + 1.0, y + m_drawing.rowHeight / 2.0},
                fitted(labelOf(m_rows[i]), labelWidth + 1.0, kSmallSize), kSmallSize, TextAnchor::End, ColourRole::MutedText}});
        }
        const auto most = static_cast<std::size_t>(std::max(2.0, m_area.width / kTickSpace));
        for (const Tick& tick : linearTicks(m_area.xFrom, m_area.xTo, most, Quantity::Seconds)) {
            const double x = m_area.x(tick.value);
            list.items.push_back({LineShape{{x, m_area.topLeft.y - 4.0}, {x, m_area.bottom()}, ColourRole::Grid}});
            const double half = estimatedWidth(tick.text, kSmallSize) / 2.0;
            const double middle = std::clamp(x, m_area.topLeft.x, std::max(m_area.topLeft.x, m_area.right() + 8.0 - half));
            list.items.push_back(
                {TextShape{{middle, m_area.topLeft.y - 12.0}, tick.text, kSmallSize, TextAnchor::Middle, ColourRole::MutedText}});
        }
        list.items.push_back({LineShape{m_area.topLeft, {m_area.right(), m_area.topLeft.y}, ColourRole::Outline}});
    }

    void addRow(DisplayList& list, std::uint32_t row, double y)
    {
        const std::vector<Slice>& slices = m_timeline.slices();
        auto at = std::lower_bound(
            slices.begin(), slices.end(), row, [](const Slice& slice, std::uint32_t wanted) { return slice.row < wanted; });
        Fold fold;
        double foldAt = -1.0; // which stretch of m_foldWidth pixels the fold is in
        const auto flush = [&] {
            addFold(list, fold, foldAt, y);
            fold = {};
        };
        for (; at != slices.end() && at->row == row; ++at) {
            const double start = std::max(at->startSeconds, m_area.xFrom);
            const double stop = std::min(at->startSeconds + at->durationSeconds, m_area.xTo);
            if (stop < start || at->startSeconds >= m_area.xTo)
                continue;
            m_seen.insert(at->category);
            const auto index = static_cast<std::size_t>(at - slices.begin());
            const double left = m_area.x(start);
            const double width = m_area.x(stop) - left;
            const double place = std::floor((left - m_area.topLeft.x) / m_foldWidth);
            if (fold.count > 0 && (width >= m_foldWidth || place != foldAt))
                flush();
            if (width >= m_foldWidth) {
                addSlice(list, index, left, width, y);
            } else {
                fold.add(index, *at, stop - start);
                foldAt = place;
            }
        }
        if (fold.count > 0)
            flush();
    }

    void addSlice(DisplayList& list, std::size_t index, double left, double width, double y) const
    {
        const Slice& slice = m_timeline.slices()[index];
        const SliceLook look = sliceLook(slice.category);
        RectShape shape{{left, y + kRowPadding}, width, m_drawing.rowHeight - 2.0 * kRowPadding, filled(look.role, look.hatch)};
        if (width > 3.0) { // a thin edge keeps neighbours of one category apart
            shape.style.outline = ColourRole::Background;
            shape.style.outlineWidth = 0.5;
        }
        list.items.push_back({shape, fmt::format("slice:{}", index), tooltip(slice)});
        addTextOn(list.items, shape, m_timeline.text(slice.name), look.role, kSmallSize);
    }

    void addFold(DisplayList& list, const Fold& fold, double place, double y) const
    {
        const double left = m_area.topLeft.x + place * m_foldWidth;
        if (fold.count == 1) {
            const Slice& slice = m_timeline.slices()[fold.first];
            const double from = m_area.x(std::max(slice.startSeconds, m_area.xFrom));
            return addSlice(list, fold.first, from, std::max(0.75, fold.busySeconds * secondsToPixels()), y);
        }
        const double share = std::clamp(fold.busySeconds * secondsToPixels() / m_foldWidth, kLeastFoldedShare, 1.0);
        const double most = m_drawing.rowHeight - 2.0 * kRowPadding;
        const SliceLook look = sliceLook(fold.mainCategory());
        const double width = std::min(m_foldWidth, m_area.right() - left);
        const RectShape shape{{left, y + kRowPadding + most * (1.0 - share)}, width, most * share, filled(look.role, look.hatch)};
        list.items.push_back({shape, fmt::format("folded:{}", fold.first),
            fmt::format("{} slices too short to draw, {} together\nmost of it {}", fold.count, formatSeconds(fold.busySeconds),
                categoryName(fold.mainCategory()))});
    }

    double secondsToPixels() const { return m_area.xTo > m_area.xFrom ? m_area.width / (m_area.xTo - m_area.xFrom) : 0.0; }

    std::string tooltip(const Slice& slice) const
    {
        std::string text = fmt::format("{}\n{}, {} long, at {}", m_timeline.text(slice.name), categoryName(slice.category),
            formatSeconds(slice.durationSeconds), formatSeconds(slice.startSeconds));
        if (slice.bytes > 0)
            text += "\n" + formatBytes(slice.bytes);
        if (const std::string& detail = m_timeline.text(slice.detail); !detail.empty())
            text += "\n" + (detail.size() > kMostDetail ? fitted(detail, estimatedWidth("m", 10.0) * kMostDetail, 10.0) : detail);
        return text;
    }

    std::vector<LegendEntry> legendEntries() const
    {
        std::vector<LegendEntry> entries;
        for (const SliceCategory category : kCategories) {
            if (!m_seen.contains(category))
                continue;
            const SliceLook look = sliceLook(category);
            entries.push_back({categoryName(category), filled(look.role, look.hatch)});
        }
        return entries;
    }

    const Timeline& m_timeline;
    const TimelineDrawing& m_drawing;
    std::vector<std::uint32_t> m_rows;
    std::size_t m_rowsLeft = 0;
    PlotArea m_area;
    double m_foldWidth = kNarrowest;
    std::set<SliceCategory> m_seen;
};

} // namespace

SliceLook sliceLook(SliceCategory category)
{
    switch (category) {
    case SliceCategory::Compute:
        return {ColourRole::Compute, Hatch::None};
    case SliceCategory::AllReduce:
        return {ColourRole::AllReduce, Hatch::None};
    case SliceCategory::AllGather:
        return {ColourRole::AllGather, Hatch::None};
    case SliceCategory::ReduceScatter:
        return {ColourRole::ReduceScatter, Hatch::None};
    case SliceCategory::AllToAll:
        return {ColourRole::AllToAll, Hatch::None};
    case SliceCategory::Permute:
        return {ColourRole::Permute, Hatch::None};
    case SliceCategory::Transfer:
        return {ColourRole::Permute, Hatch::Falling};
    case SliceCategory::Wait:
        return {ColourRole::Idle, Hatch::Rising};
    case SliceCategory::WaitForCore:
        return {ColourRole::Idle, Hatch::Crossed};
    case SliceCategory::Host:
        return {ColourRole::HostTransfer, Hatch::None};
    }
    return {};
}

DisplayList drawTimeline(const Timeline& timeline, const TimelineDrawing& drawing)
{
    assert(drawing.width > 0.0 && drawing.rowHeight > 2.0 * kRowPadding);
    return TimelinePainter(timeline, drawing).draw();
}

} // namespace meshwright
