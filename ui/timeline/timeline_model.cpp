// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_model.h"

#include "sim/report/read_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <tuple>

namespace meshwright::ui {

namespace {

ModelGroup groupOf(GroupSource source)
{
    const std::vector<TimelineRow>& rows = source.part->timeline().rows();
    std::vector<std::uint32_t> order(rows.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto key = [&](std::uint32_t row) { return std::pair(rows[row].device == sim::kHostRow, rows[row].device); };
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });

    ModelGroup group;
    std::set<std::int64_t> devices;
    for (const std::uint32_t row : order) {
        const std::int64_t device = rows[row].device;
        const bool isFirst = devices.insert(device).second;
        const std::string whose = source.standsForAll ? "each device"
            : device == sim::kHostRow                 ? "host"
                                                      : fmt::format("device {}", device);
        group.rows.push_back({row, whose, rows[row].stream, device, isFirst});
    }
    group.name = std::move(source.name);
    group.title = std::move(source.title);
    group.part = std::move(source.part);
    return group;
}

} // namespace

TimelineModel::TimelineModel(std::vector<GroupSource> sources)
{
    for (GroupSource& source : sources) {
        m_groups.push_back(groupOf(std::move(source)));
        const std::vector<ModelRow>& rows = m_groups.back().rows;
        std::vector<std::uint32_t>& places = m_placeOfRow.emplace_back(rows.size());
        for (std::uint32_t place = 0; place < rows.size(); ++place)
            places[rows[place].row] = place;
    }
}

std::size_t TimelineModel::sliceCount() const
{
    return std::accumulate(m_groups.begin(), m_groups.end(), std::size_t{0},
        [](std::size_t sum, const ModelGroup& group) { return sum + group.part->sliceCount(); });
}

std::size_t TimelineModel::byteCount() const
{
    return std::accumulate(m_groups.begin(), m_groups.end(), std::size_t{0},
        [](std::size_t sum, const ModelGroup& group) { return sum + group.part->byteCount(); });
}

std::vector<SliceCategory> TimelineModel::categories() const
{
    std::set<SliceCategory> all;
    for (const ModelGroup& group : m_groups)
        all.insert(group.part->categories().begin(), group.part->categories().end());
    return {all.begin(), all.end()};
}

const ModelRow& TimelineModel::rowOf(SliceId id) const
{
    return m_groups[id.group].rows[m_placeOfRow[id.group][partOf(id).rowOf(id.slice)]];
}

std::vector<std::optional<std::uint32_t>> TimelineModel::findName(const std::string& name) const
{
    std::vector<std::optional<std::uint32_t>> found;
    for (const ModelGroup& group : m_groups)
        found.push_back(name.empty() ? std::nullopt : group.part->timeline().find(name));
    return found;
}

std::optional<SliceId> TimelineModel::firstNamed(const std::string& name) const
{
    const auto names = findName(name);
    for (std::uint32_t group = 0; group < m_groups.size(); ++group) {
        if (!names[group])
            continue;
        const TimelinePart& part = *m_groups[group].part;
        std::optional<std::uint32_t> first;
        for (std::uint32_t slice = 0; slice < part.sliceCount(); ++slice) {
            if (part.name(slice) == *names[group] && (!first || part.start(slice) < part.start(*first)))
                first = slice;
        }
        if (first)
            return SliceId{group, *first};
    }
    return std::nullopt;
}

} // namespace meshwright::ui
