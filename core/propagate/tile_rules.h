// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/tile_assignment.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace meshwright {

/// A tiled sharding taken apart: how many tiles along each dimension of the array, how many devices hold each tile, and the devices,
/// row-major over the dimensions and then the copies. Nothing is tiled when all of `tiles` are 1.
struct Tiling {
    Shape tiles;
    std::int64_t copies = 1;
    std::vector<DeviceId> devices;
    bool asList = true; ///< its devices were written as a list

    std::int64_t count() const { return elementCount(tiles); }
    friend bool operator==(const Tiling& a, const Tiling& b)
    {
        return a.tiles == b.tiles && a.copies == b.copies && a.devices == b.devices;
    }
};

/// Nothing for shardings that are not tiled, or have manual or unreduced groups.
std::optional<Tiling> tilingOf(const TileSharding& sharding);

/// The sharding in XLA's simplest form; copies of a tile are in order of their ids, as XLA sorts them.
TileSharding shardingOf(const Tiling& tiling);

/// The tiling of an array whose dimension i is `source[i]` of the tiled one, or a new one (-1). Dimensions that go nowhere are replicated.
/// Source: openxla/xla, xla/hlo/utils/hlo_sharding_util.cc (`PartiallyReplicateTiledShardingOnDims`, `TransposeSharding`).
Tiling carried(const Tiling& tiling, const std::vector<int>& source);

/// The tiling of the array's other shape; nothing where tiles would not stay tiles: dimensions of size 1 come and go, a dimension is cut
/// where its tiles divide, dimensions merge of which only the most major is tiled. Sizes need not be even.
/// Preconditions: as many elements, a tile count for each dimension of `from`.
/// Source: as above (`ReshapeSharding`).
std::optional<Tiling> reshapedTiling(const Tiling& tiling, const Shape& from, const Shape& to);

/// The same tiles in the reverse order along some dimensions.
/// Source: as above (`ReverseSharding`).
Tiling reversedTiling(const Tiling& tiling, const std::vector<std::size_t>& dims);

/// Only the tiles from `begin` to before `end` along a dimension, on their devices.
Tiling tilesBetween(const Tiling& tiling, std::size_t dim, std::int64_t begin, std::int64_t end);

/// The coarsest tiling that refines both: of each dimension the larger number of tiles, which the other must divide. Nothing when the
/// devices do not agree, or there are none for some tile.
/// Source: as above (`MergeShardingIfCompatible`).
std::optional<Tiling> mergedTiling(const Tiling& a, const Tiling& b);

/// True when each tile of `fine` lies in the tile of `coarse` that its devices hold.
bool refines(const Tiling& fine, const Tiling& coarse);

} // namespace meshwright
