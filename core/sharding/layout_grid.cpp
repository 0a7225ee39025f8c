// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/layout_grid.h"

#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace meshwright {

namespace {

bool isEmpty(const IndexBox& box)
{
    return std::any_of(box.begin(), box.end(), [](const IndexRange& range) { return range.size() == 0; });
}

bool hasElements(const Layout& layout)
{
    return std::none_of(layout.shape.begin(), layout.shape.end(), [](std::int64_t size) { return size == 0; });
}

void sortAndDeduplicate(auto& values)
{
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
}

IndexRange rowRange(const IndexBox& box)
{
    return box.size() < 2 ? IndexRange{0, 1} : box[box.size() - 2];
}

IndexRange columnRange(const IndexBox& box)
{
    return box.empty() ? IndexRange{0, 1} : box.back();
}

LayoutGrid gridOf(const Layout& layout, const std::vector<std::size_t>& shards, IndexBox leading)
{
    LayoutGrid grid;
    grid.leading = std::move(leading);
    for (const std::size_t shard : shards) {
        grid.rows.push_back(rowRange(layout.shards[shard].box));
        grid.columns.push_back(columnRange(layout.shards[shard].box));
    }
    sortAndDeduplicate(grid.rows);
    sortAndDeduplicate(grid.columns);
    grid.cells.resize(grid.rows.size() * grid.columns.size());
    const auto indexOf = [](const std::vector<IndexRange>& ranges, const IndexRange& range) {
        return static_cast<std::size_t>(std::lower_bound(ranges.begin(), ranges.end(), range) - ranges.begin());
    };
    for (const std::size_t shard : shards) {
        const IndexBox& box = layout.shards[shard].box;
        grid.cells[indexOf(grid.rows, rowRange(box)) * grid.columns.size() + indexOf(grid.columns, columnRange(box))] = shard;
    }
    return grid;
}

} // namespace

std::vector<LayoutGrid> layoutGrids(const Layout& layout)
{
    const bool skipEmpty = hasElements(layout);
    const std::size_t leadingRank = layout.shape.size() > 2 ? layout.shape.size() - 2 : 0;
    std::map<IndexBox, std::vector<std::size_t>> slabs;
    for (std::size_t i = 0; i < layout.shards.size(); ++i) {
        const IndexBox& box = layout.shards[i].box;
        if (!skipEmpty || !isEmpty(box))
            slabs[IndexBox(box.begin(), box.begin() + static_cast<std::ptrdiff_t>(leadingRank))].push_back(i);
    }
    std::vector<LayoutGrid> grids;
    for (const auto& [leading, shards] : slabs)
        grids.push_back(gridOf(layout, shards, leading));
    return grids;
}

std::vector<DeviceId> emptyHandedDevices(const Layout& layout)
{
    std::vector<DeviceId> devices;
    if (!hasElements(layout))
        return devices;
    for (const Shard& shard : layout.shards) {
        if (isEmpty(shard.box))
            devices.insert(devices.end(), shard.devices.begin(), shard.devices.end());
    }
    sortAndDeduplicate(devices);
    return devices;
}

std::vector<DeviceId> devicesOf(const Layout& layout)
{
    std::vector<DeviceId> devices;
    for (const Shard& shard : layout.shards)
        devices.insert(devices.end(), shard.devices.begin(), shard.devices.end());
    sortAndDeduplicate(devices);
    return devices;
}

std::string gridText(const std::string& name, const LayoutGrid& grid, const Layout& layout)
{
    if (layout.shape.empty())
        return name;
    std::vector<std::string> parts;
    for (std::size_t dim = 0; dim < layout.shape.size(); ++dim) {
        const bool whole = dim >= grid.leading.size() || grid.leading[dim] == IndexRange{0, layout.shape[dim]};
        parts.push_back(whole ? ":" : fmt::format("{}:{}", grid.leading[dim].start, grid.leading[dim].stop));
    }
    return fmt::format("{}[{}]", name, join(parts, ", "));
}

std::string deviceListText(std::vector<DeviceId> devices, std::size_t most)
{
    std::sort(devices.begin(), devices.end());
    if (devices.size() <= most)
        return fmt::format("{}", fmt::join(devices, ","));
    const std::span<const DeviceId> first(devices.data(), most);
    return fmt::format("{},...({})", fmt::join(first, ","), devices.size());
}

} // namespace meshwright
