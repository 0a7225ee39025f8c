// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/tile_steps.h"

#define MESHWRIGHT_TEXT_OF(name) #name
#define MESHWRIGHT_NAME_OF(set) MESHWRIGHT_TEXT_OF(set)

namespace meshwright::MESHWRIGHT_TILE_SET {

const TileTable& table()
{
    static constexpr TileTable kTable{MESHWRIGHT_NAME_OF(MESHWRIGHT_TILE_SET), findOp, findCompare, findConvert, findSelect,
        findFill, findLoad, findStore, findCombine, findCombineMembers, findReduceRow, randomWordsStep};
    return kTable;
}

} // namespace meshwright::MESHWRIGHT_TILE_SET
