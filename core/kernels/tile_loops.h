// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Shared by the sources of a tile table, which are compiled once for each instruction set. MESHWRIGHT_TILE_SET is the set's name, and the namespace of all that
// they define, so that no code for a newer processor is linked into common functions.

#include "core/kernels/tile_table.h"

namespace meshwright::MESHWRIGHT_TILE_SET {

using Byte = std::uint8_t; // a truth value

// The loops may write in place: element i of the result depends on elements i of the operands only, which is what ivdep says.
template <typename Out, typename In, typename F>
void map1(std::byte* out, const std::byte* a, std::int64_t count, F f)
{
    auto* o = reinterpret_cast<Out*>(out);
    const auto* x = reinterpret_cast<const In*>(a);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i)
        o[i] = f(x[i]);
}

template <typename Out, typename In, typename F>
void map2(std::byte* out, const std::byte* a, const std::byte* b, std::int64_t count, F f)
{
    auto* o = reinterpret_cast<Out*>(out);
    const auto* x = reinterpret_cast<const In*>(a);
    const auto* y = reinterpret_cast<const In*>(b);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i)
        o[i] = f(x[i], y[i]);
}

/// Calls `f` with a value of the lane's element type.
template <typename F>
auto withLane(Lane lane, F f)
{
    switch (lane) {
    case Lane::F64:
        return f(double{});
    case Lane::S32:
        return f(std::int32_t{});
    case Lane::U32:
        return f(std::uint32_t{});
    case Lane::S64:
        return f(std::int64_t{});
    case Lane::U64:
        return f(std::uint64_t{});
    case Lane::Pred:
        return f(Byte{});
    case Lane::F32:
        break;
    }
    return f(float{});
}

} // namespace meshwright::MESHWRIGHT_TILE_SET
