// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/tile_table.h"

namespace meshwright {

#ifdef MESHWRIGHT_HAS_AVX2_TILES
const TileTable& avx2TileTable();
#endif

const TileTable& tileTable()
{
#ifdef MESHWRIGHT_HAS_AVX2_TILES
    static const TileTable& chosen = __builtin_cpu_supports("avx2") ? avx2TileTable() : baselineTileTable();
    return chosen;
#else
    return baselineTileTable();
#endif
}

} // namespace meshwright
