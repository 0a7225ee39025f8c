// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/row_layout.h"

#include <algorithm>
#include <cmath>

namespace meshwright::ui {

namespace {

struct Counts {
    double rows = 0.0;
    double devices = 0.0;
};

Counts countsOf(const TimelineModel& model, const std::set<std::uint32_t>& collapsed)
{
    Counts counts;
    for (std::uint32_t group = 0; group < model.groups().size(); ++group) {
        if (collapsed.contains(group))
            continue;
        for (const ModelRow& row : model.groups()[group].rows) {
            counts.rows += 1.0;
            counts.devices += row.isFirstOfDevice ? 1.0 : 0.0;
        }
    }
    return counts;
}

} // namespace

RowLayout::RowLayout(
    const TimelineModel& model, const std::set<std::uint32_t>& collapsed, bool hasOwnRulers, double availableHeight)
    : m_headingHeight(kHeadingHeight + (hasOwnRulers ? kRulerHeight : 0.0))
{
    const Counts counts = countsOf(model, collapsed);
    const double headings = m_headingHeight * static_cast<double>(model.groups().size());
    const double forRows = availableHeight - headings - counts.devices * kDeviceGap;
    const double rowHeight = std::clamp(std::floor(forRows / std::max(1.0, counts.rows)), kLeastRow, kMostRow);

    double top = 0.0;
    for (std::uint32_t group = 0; group < model.groups().size(); ++group) {
        m_lines.push_back({group, std::nullopt, top, m_headingHeight});
        top += m_headingHeight;
        if (collapsed.contains(group))
            continue;
        const std::vector<ModelRow>& rows = model.groups()[group].rows;
        for (std::uint32_t place = 0; place < rows.size(); ++place) {
            top += rows[place].isFirstOfDevice ? kDeviceGap : 0.0;
            m_lines.push_back({group, place, top, rowHeight - kGap});
            top += rowHeight;
        }
    }
    m_height = top;
}

std::pair<std::size_t, std::size_t> RowLayout::linesIn(double top, double bottom) const
{
    const auto first
        = std::partition_point(m_lines.begin(), m_lines.end(), [&](const LayoutLine& line) { return line.bottom() <= top; });
    const auto last = std::partition_point(first, m_lines.end(), [&](const LayoutLine& line) { return line.top < bottom; });
    return {static_cast<std::size_t>(first - m_lines.begin()), static_cast<std::size_t>(last - m_lines.begin())};
}

std::optional<std::size_t> RowLayout::lineAt(double y) const
{
    const auto [first, last] = linesIn(y, std::nextafter(y, 1e300));
    return first < last ? std::optional(first) : std::nullopt;
}

std::optional<std::size_t> RowLayout::lineOf(std::uint32_t group, std::uint32_t place) const
{
    for (std::size_t i = 0; i < m_lines.size(); ++i) {
        if (m_lines[i].group == group && m_lines[i].place == place)
            return i;
    }
    return std::nullopt;
}

double RowLayout::naturalHeight(const TimelineModel& model, bool hasOwnRulers)
{
    return RowLayout(model, {}, hasOwnRulers, 1e9).height();
}

} // namespace meshwright::ui
