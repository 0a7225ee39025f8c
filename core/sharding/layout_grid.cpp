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

IndexRange rangeOf(const IndexBox& box, std::optional<std::size_t> dim)
{
    return dim ? box[*dim] : IndexRange{0, 1};
}

/// `tiles` has the shown range of every dimension; those of rows and columns are widened to the whole array here.
LayoutGrid gridOf(const Layout& layout, const std::vector<std::size_t>& shards, std::optional<std::size_t> rowDim,
    std::optional<std::size_t> columnDim, IndexBox tiles)
{
    LayoutGrid grid;
    grid.rowDim = rowDim;
    grid.columnDim = columnDim;
    grid.shown = std::move(tiles);
    for (const auto dim : {rowDim, columnDim}) {
        if (dim)
            grid.shown[*dim] = {0, layout.shape[*dim]};
    }
    for (const std::size_t shard : shards) {
        grid.rows.push_back(rangeOf(layout.shards[shard].box, rowDim));
        grid.columns.push_back(rangeOf(layout.shards[shard].box, columnDim));
    }
    sortAndDeduplicate(grid.rows);
    sortAndDeduplicate(grid.columns);
    grid.cells.resize(grid.rows.size() * grid.columns.size());
    const auto indexOf = [](const std::vector<IndexRange>& ranges, const IndexRange& range) {
        return static_cast<std::size_t>(std::lower_bound(ranges.begin(), ranges.end(), range) - ranges.begin());
    };
    for (const std::size_t shard : shards) {
        const IndexBox& box = layout.shards[shard].box;
        grid.cells[indexOf(grid.rows, rangeOf(box, rowDim)) * grid.columns.size()
            + indexOf(grid.columns, rangeOf(box, columnDim))]
            = shard;
    }
    return grid;
}

/// The shards that drawings show: those with elements, or all of an array that has none.
std::vector<std::size_t> shownShards(const Layout& layout)
{
    const bool skipEmpty = hasElements(layout);
    std::vector<std::size_t> shards;
    for (std::size_t i = 0; i < layout.shards.size(); ++i) {
        if (!skipEmpty || !isEmpty(layout.shards[i].box))
            shards.push_back(i);
    }
    return shards;
}

} // namespace

std::vector<LayoutGrid> layoutGrids(const Layout& layout)
{
    const std::size_t rank = layout.shape.size();
    const auto rowDim = rank > 1 ? std::optional(rank - 2) : std::nullopt;
    const auto columnDim = rank > 0 ? std::optional(rank - 1) : std::nullopt;
    const auto leadingRank = static_cast<std::ptrdiff_t>(rank > 2 ? rank - 2 : 0);
    std::map<IndexBox, std::vector<std::size_t>> slabs;
    for (const std::size_t shard : shownShards(layout)) {
        const IndexBox& box = layout.shards[shard].box;
        slabs[IndexBox(box.begin(), box.begin() + leadingRank)].push_back(shard);
    }
    std::vector<LayoutGrid> grids;
    for (const auto& [leading, shards] : slabs)
        grids.push_back(gridOf(layout, shards, rowDim, columnDim, layout.shards[shards.front()].box));
    return grids;
}

LayoutGrid cutThrough(const Layout& layout, const LayoutCut& cut)
{
    assert(cut.rowDim != cut.columnDim && cut.rowDim < layout.shape.size() && cut.columnDim < layout.shape.size());
    assert(cut.at.size() == layout.shape.size());
    std::vector<std::size_t> shards;
    for (const std::size_t shard : shownShards(layout)) {
        const IndexBox& box = layout.shards[shard].box;
        bool isCut = true;
        for (std::size_t dim = 0; dim < box.size(); ++dim) {
            const bool isFree = dim == cut.rowDim || dim == cut.columnDim || box[dim].size() == 0;
            isCut = isCut && (isFree || (box[dim].start <= cut.at[dim] && cut.at[dim] < box[dim].stop));
        }
        if (isCut)
            shards.push_back(shard);
    }
    assert(!shards.empty());
    return gridOf(layout, shards, cut.rowDim, cut.columnDim, layout.shards[shards.front()].box);
}

std::vector<IndexRange> tilesAlong(const Layout& layout, std::size_t dim)
{
    std::vector<IndexRange> tiles;
    for (const std::size_t shard : shownShards(layout))
        tiles.push_back(layout.shards[shard].box[dim]);
    sortAndDeduplicate(tiles);
    return tiles;
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
        const IndexRange& shown = grid.shown[dim];
        parts.push_back(shown == IndexRange{0, layout.shape[dim]} ? ":" : fmt::format("{}:{}", shown.start, shown.stop));
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
