// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

/// What the kernels of products have in common. Each of them is compiled for its own instructions, so nothing here may become a function that
/// the linker shares with code for all processors: everything is of its file, or inlined.
namespace meshwright {

namespace {

[[maybe_unused]] constexpr std::int64_t kStreamedBytes = std::int64_t{4}
    << 20; ///< results that are larger are not kept in caches

constexpr std::int64_t ceilOf(std::int64_t a, std::int64_t b)
{
    return (a + b - 1) / b;
}

/// The size of equal pieces of `total`, at most `most` each but for being whole grains.
constexpr std::int64_t pieceOf(std::int64_t total, std::int64_t most, std::int64_t grain)
{
    return ceilOf(ceilOf(total, ceilOf(total, most)), grain) * grain;
}

/// An operand as lines (rows of the left side, columns of the right one) along which products are summed. One of the steps is 1.
template <typename T>
struct Lines {
    const T* data;
    std::int64_t lineStep;
    std::int64_t depthStep;

    const T* at(std::int64_t line, std::int64_t depth) const { return data + line * lineStep + depth * depthStep; }
    Lines from(std::int64_t line, std::int64_t depth) const { return {at(line, depth), lineStep, depthStep}; }
};

template <std::size_t Distance, typename Vector, std::size_t... Lane>
[[gnu::always_inline]] inline void exchange(Vector& a, Vector& b, std::index_sequence<Lane...>)
{
    constexpr std::size_t kLanes = sizeof...(Lane);
    const Vector low
        = __builtin_shufflevector(a, b, static_cast<int>((Lane & Distance) == 0 ? Lane : Lane - Distance + kLanes)...);
    const Vector high
        = __builtin_shufflevector(a, b, static_cast<int>((Lane & Distance) == 0 ? Lane + Distance : Lane + kLanes)...);
    a = low;
    b = high;
}

template <std::size_t Distance, typename Vector, std::size_t... Row>
[[gnu::always_inline]] inline void exchangeAll(Vector* rows, std::index_sequence<Row...> all)
{
    (((Row & Distance) == 0 ? exchange<Distance>(rows[Row], rows[(Row + Distance) % sizeof...(Row)], all) : void()), ...);
    if constexpr (Distance > 1)
        exchangeAll<Distance / 2>(rows, all);
}

/// Transposes as many vectors as one has lanes.
template <std::size_t Lanes, typename Vector>
[[gnu::always_inline]] inline void turn(Vector* rows)
{
    exchangeAll<Lanes / 2>(rows, std::make_index_sequence<Lanes>());
}

} // namespace

} // namespace meshwright
