// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/tile_table.h"

namespace meshwright::MESHWRIGHT_TILE_SET {

/// What the table of an instruction set is made of; see `TileTable` for each.
const TileTable& table();

TileStep findOp(OpKind kind, DType operands);
TileStep findCompare(const CompareAttributes& compare, Lane operands);
TileStep findSelect(std::int64_t width);
TileStep findConvert(Lane from, DType to);
TileStep findFill(std::int64_t width);
TileStep findLoad(DType narrow);
TileStep findStore(DType narrow);
TileStep findCombine(ReduceKind kind, Lane lane);
MemberStep findCombineMembers(ReduceKind kind, Lane lane);
RowReduction findReduceRow(ReduceKind kind, Lane lane);
void randomWordsStep(std::uint32_t* out, std::uint32_t key0, std::uint32_t key1, std::uint64_t first, std::int64_t count);

} // namespace meshwright::MESHWRIGHT_TILE_SET
