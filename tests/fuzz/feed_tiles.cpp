// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/tile_assignment.h"

#include "tests/fuzz/targets.h"
#include "tests/tile_placement.h"

namespace meshwright::fuzz {

/// XLA's tile strings, alone and in tuples.
void feedTiles(std::string_view text)
{
    const auto all = parseTileShardings(text);
    if (!all)
        return;
    constexpr std::int64_t kMostTiles = 1 << 12;
    for (const TileSharding& tiles : *all) {
        if (tiles.kind == TileKind::Tiled && tiles.tiles.count() > kMostTiles)
            return;
        const auto again = parseTileSharding(tileText(tiles));
        require(again && *again == tiles, "tiles that are written read as themselves");
        const TileSharding simple = normalized(tiles);
        require(normalized(simple) == simple, "the simplest form is its own simplest form");
        require(tests::samePlacement(simple, tiles), "the simplest form places the same");
        if (const auto mesh = meshOfTiles(tiles); mesh && tiles.kind == TileKind::Tiled)
            require(fromTiles(tiles, tiles.rank(), *mesh).has_value(), "the mesh that explains tiles explains them");
    }
}

} // namespace meshwright::fuzz
