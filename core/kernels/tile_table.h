// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"

#include <cstddef>
#include <cstdint>

namespace meshwright {

/// The types that arithmetic is done in. Narrower types are widened when they are loaded and rounded after every op.
enum class Lane : std::uint8_t { F32, F64, S32, U32, S64, U64, Pred };

inline Lane laneOf(DType dtype)
{
    switch (dtype) {
    case DType::Pred:
        return Lane::Pred;
    case DType::S8:
    case DType::S16:
    case DType::S32:
        return Lane::S32;
    case DType::U8:
    case DType::U16:
    case DType::U32:
        return Lane::U32;
    case DType::S64:
        return Lane::S64;
    case DType::U64:
        return Lane::U64;
    case DType::F16:
    case DType::BF16:
    case DType::F8E4M3FN:
    case DType::F8E5M2:
    case DType::F32:
        return Lane::F32;
    case DType::F64:
        return Lane::F64;
    default: // not computed with
        break;
    }
    return Lane::F32;
}

inline std::int64_t laneBytes(Lane lane)
{
    return lane == Lane::Pred ? 1 : lane == Lane::F32 || lane == Lane::S32 || lane == Lane::U32 ? 4 : 8;
}

/// The type whose memory holds the lane as it is.
inline DType laneType(Lane lane)
{
    constexpr DType kTypes[] = {DType::F32, DType::F64, DType::S32, DType::U32, DType::S64, DType::U64, DType::Pred};
    return kTypes[static_cast<std::size_t>(lane)];
}

inline bool isNarrow(DType dtype)
{
    return laneType(laneOf(dtype)) != dtype;
}

/// One op over `count` elements that lie one after the other. `out` may be the same memory as an operand of the same width.
using TileStep = void (*)(std::byte* out, const std::byte* a, const std::byte* b, const std::byte* c, std::int64_t count);

/// Combines `count` elements into one, in a fixed order that depends on nothing but the count.
using RowReduction = void (*)(std::byte* out, const std::byte* in, std::int64_t count);

/// Combines `count` elements, from `offset` bytes on, of `members` operands (at least one) in their order: the bits of one `combine` after the other.
using MemberStep
    = void (*)(std::byte* out, const std::byte* const* operands, std::size_t members, std::int64_t offset, std::int64_t count);

/// The words `first` .. `first + count - 1` that `randomWord` draws with JAX's partitionable numbers.
using RandomStep = void (*)(std::uint32_t* out, std::uint32_t key0, std::uint32_t key1, std::uint64_t first, std::int64_t count);

/// Ops of one or two operands that passes make of steps for other types, directions or orders; `TileTable::op` has none for them. Complex numbers
/// are pairs of arrays by the time that anything is run.
constexpr bool isMadeOfOtherSteps(OpKind kind)
{
    return kind == OpKind::Convert || kind == OpKind::BitcastConvert || kind == OpKind::Compare || kind == OpKind::Complex;
}

/// Loops over contiguous elements, compiled for one instruction set. The arithmetic is IEEE's, without contraction, and every element is
/// computed by the same formula wherever it lies in a tile: results are equal bit for bit for all instruction sets and alignments.
struct TileTable {
    const char* name; ///< "baseline", "avx2"
    /// Of operands of this type in its lane; numbers among the op's attributes are further operands, s32. Nullptr: not computed.
    TileStep (*op)(OpKind kind, DType operands);
    TileStep (*compare)(const CompareAttributes& compare, Lane operands);
    TileStep (*convert)(Lane from, DType to); ///< into its lane; floats are held at the bounds of the integers
    TileStep (*select)(std::int64_t width); ///< a: truth values; b, c: elements of 1, 4 or 8 bytes
    TileStep (*fill)(std::int64_t width); ///< repeats a[0]; 1, 2, 4 or 8 bytes
    TileStep (*load)(DType narrow); ///< narrow elements into their lane
    TileStep (*store)(DType narrow); ///< rounds lanes into narrow elements
    TileStep (*combine)(ReduceKind kind, Lane lane); ///< out = a combined with b, as reductions and collectives do
    MemberStep (*combineMembers)(ReduceKind kind, Lane lane);
    RowReduction (*reduceRow)(ReduceKind kind, Lane lane); ///< pairwise over blocks, for accuracy
    RandomStep randomWords;
};

/// The fastest table that this processor can run.
const TileTable& tileTable();

/// The one for any processor; for tests.
const TileTable& baselineTileTable();

} // namespace meshwright
