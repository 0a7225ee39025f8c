// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/tile_table.h"

namespace meshwright {

namespace baseline {
const TileTable& table();
}
#ifdef MESHWRIGHT_HAS_AVX2_TILES
namespace avx2 {
const TileTable& table();
}
#endif

const TileTable& baselineTileTable()
{
    return baseline::table();
}

const TileTable& tileTable()
{
#ifdef MESHWRIGHT_HAS_AVX2_TILES
    static const TileTable& chosen = __builtin_cpu_supports("avx2") ? avx2::table() : baseline::table();
    return chosen;
#else
    return baseline::table();
#endif
}

} // namespace meshwright
