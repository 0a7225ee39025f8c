// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/positional_sharding.h"

#include <algorithm>
#include <map>

namespace meshwright::tests {

/// Where an array lies, as JAX places it: its tile (i, j) on the devices of cell (i, j). The array may lack leading dimensions of size 1;
/// a sharding whose dimensions are all 1 fits every rank. Problem: the array does not fit.
inline Result<Layout> positionalLayout(const PositionalSharding& sharding, const Shape& arrayShape)
{
    Shape tiles = sharding.shape();
    if (sharding.isFullyReplicated())
        tiles.assign(arrayShape.size(), 1);
    while (tiles.size() > arrayShape.size() && tiles.front() == 1)
        tiles.erase(tiles.begin());
    Layout layout;
    layout.shape = arrayShape;
    for (std::size_t dim = 0; dim < arrayShape.size(); ++dim) {
        if (tiles.size() != arrayShape.size() || arrayShape[dim] % tiles[dim] != 0)
            return Problem{"MW1104", "the sharding does not fit the array"};
        layout.shardShape.push_back(arrayShape[dim] / tiles[dim]);
    }

    std::map<IndexBox, std::vector<DeviceId>> holders;
    for (std::int64_t cell = 0; cell < elementCount(sharding.shape()); ++cell) {
        IndexBox box(tiles.size());
        std::int64_t rest = cell;
        for (std::size_t dim = tiles.size(); dim > 0; --dim) {
            const std::int64_t start = rest % tiles[dim - 1] * layout.shardShape[dim - 1];
            box[dim - 1] = {start, start + layout.shardShape[dim - 1]};
            rest /= tiles[dim - 1];
        }
        const std::vector<DeviceId> held = sharding.devicesAt(cell);
        holders[box].insert(holders[box].end(), held.begin(), held.end());
    }
    for (auto& [box, held] : holders) { // in the order in which the devices were given
        std::ranges::sort(held, {}, [&](DeviceId device) { return std::ranges::find(sharding.devices(), device); });
        layout.shards.push_back({box, std::move(held)});
    }
    layout.fullyReplicated = layout.shards.size() == 1;
    return layout;
}

} // namespace meshwright::tests
