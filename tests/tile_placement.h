// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/tile_assignment.h"
#include "core/support/checked.h"

#include <algorithm>
#include <map>

/// What tiles mean, device by device: a second way to the layouts that specs have.
namespace meshwright::tests {

/// True when both put the same tile on every device, and its devices play the same part. All that replicate are equal, and so are the parts of a
/// sum.
inline bool samePlacement(const TileSharding& first, const TileSharding& second)
{
    const TileSharding a = normalized(first);
    const TileSharding b = normalized(second);
    if (a.kind != TileKind::Tiled || b.kind != TileKind::Tiled)
        return a.kind == b.kind && (a.kind != TileKind::Maximal || a.device == b.device);
    if (a.tiles.dims() != b.tiles.dims() || a.subgroups != b.subgroups)
        return false;
    // Which of the replicas a device is makes no difference, nor which part of a sum the replicas have.
    const bool replicates = !a.subgroups.empty() && a.subgroups.back() == Subgroup::Replicated;
    const std::int64_t replicas = replicates ? a.tiles.dims().back() : 1;
    const std::size_t behind = replicates ? 1 : 0;
    const bool sums = a.subgroups.size() > behind && a.subgroups[a.subgroups.size() - 1 - behind] == Subgroup::Unreduced;
    const std::int64_t parts = sums ? a.tiles.dims()[a.tiles.dims().size() - 1 - behind] : 1;
    const auto placed = [&](const TileSharding& sharding) {
        const std::vector<DeviceId> devices = sharding.tiles.devices();
        std::vector<std::vector<DeviceId>> groups;
        for (auto group = devices.begin(); group != devices.end(); group += replicas) {
            groups.emplace_back(group, group + replicas);
            std::sort(groups.back().begin(), groups.back().end());
        }
        for (auto sum = groups.begin(); sum != groups.end(); sum += parts)
            std::sort(sum, sum + parts);
        return groups;
    };
    return placed(a) == placed(b);
}

/// Where an array lies; `devices` are all devices, in order, for those shardings that do not name theirs. Tiles have size
/// ceil(n / tiles); the last ones may be short or empty. Manual and unreduced groups hold the same range.
/// Problems: MW1154 another rank, MW1156 an unknown sharding has no layout.
inline Result<Layout> tileLayout(const Shape& shape, const TileSharding& sharding, const std::vector<DeviceId>& devices)
{
    Layout layout;
    layout.shape = shape;
    layout.shardShape = shape;
    if (sharding.kind == TileKind::Unknown)
        return Problem{"MW1156", "an unknown sharding has no layout", "give the sharding, or {replicated}"};
    if (sharding.kind != TileKind::Tiled) {
        Shard all;
        for (const std::int64_t size : shape)
            all.box.push_back({0, size});
        all.devices = sharding.kind == TileKind::Maximal ? std::vector{sharding.device} : devices;
        layout.shards.push_back(std::move(all));
        layout.fullyReplicated = true;
        return layout;
    }
    if (sharding.rank() != shape.size())
        return tileProblems(sharding, shape, sharding.tiles.count());

    const Shape& dims = sharding.tiles.dims();
    for (std::size_t dim = 0; dim < shape.size(); ++dim)
        layout.shardShape[dim] = ceilDiv(shape[dim], dims[dim]);
    const std::vector<DeviceId> order = sharding.tiles.devices();
    std::map<IndexBox, std::vector<DeviceId>> holders;
    std::int64_t group = 1;
    for (std::size_t dim = shape.size(); dim < dims.size(); ++dim)
        group *= dims[dim];
    for (std::size_t at = 0; at < order.size(); ++at) {
        std::int64_t rest = static_cast<std::int64_t>(at) / group;
        IndexBox box(shape.size());
        for (std::size_t dim = shape.size(); dim > 0; --dim) {
            const std::int64_t tile = layout.shardShape[dim - 1];
            const std::int64_t start = std::min(shape[dim - 1], rest % dims[dim - 1] * tile);
            box[dim - 1] = {start, std::min(shape[dim - 1], start + tile)};
            rest /= dims[dim - 1];
        }
        holders[box].push_back(order[at]);
    }
    for (auto& [box, held] : holders)
        layout.shards.push_back({box, std::move(held)});
    layout.fullyReplicated = layout.shards.size() == 1;
    return layout;
}

} // namespace meshwright::tests
