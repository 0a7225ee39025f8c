// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace meshwright {

/// A key of JAX's counter-based random numbers (`jax.random.key_data`), or one block of them.
using RandomKey = std::array<std::uint32_t, 2>;

/// One block of Threefry-2x32 with 20 rounds: two words that depend on the key and the counter only.
/// Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11.
constexpr RandomKey threefry2x32(const RandomKey& key, const RandomKey& counter)
{
    constexpr std::array<std::array<int, 4>, 2> kRotations = {{{13, 15, 26, 6}, {17, 29, 16, 24}}};
    const std::array<std::uint32_t, 3> schedule = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDAU};

    std::uint32_t x = counter[0] + schedule[0];
    std::uint32_t y = counter[1] + schedule[1];
    for (std::uint32_t group = 0; group < 5; ++group) {
        for (const int rotation : kRotations[group % 2]) {
            x += y;
            y = std::rotl(y, rotation) ^ x;
        }
        x += schedule[(group + 1) % 3];
        y += schedule[(group + 2) % 3] + group + 1;
    }
    return {x, y};
}

/// Element `index` of `count` random words, as `jax.random.bits(key, (count,))` has them. With `partitionable` (JAX's default since
/// 0.5) an element does not depend on the count. Precondition: index < count; without `partitionable` count < 2^32.
constexpr std::uint32_t randomWord(const RandomKey& key, std::uint64_t index, std::uint64_t count, bool partitionable)
{
    if (partitionable) {
        const RandomKey words = threefry2x32(key, {static_cast<std::uint32_t>(index >> 32), static_cast<std::uint32_t>(index)});
        return words[0] ^ words[1];
    }
    // The counters 0, 1, .. are cut into two halves (a zero is added when their number is odd), and a block takes one of each.
    const std::uint64_t half = (count + 1) / 2;
    const std::uint64_t first = index % half;
    const std::uint64_t second = first + half < count ? first + half : 0;
    return threefry2x32(key, {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(second)})[index < half ? 0 : 1];
}

/// `jax.random.key(seed)`.
constexpr RandomKey keyOfSeed(std::uint64_t seed)
{
    return {static_cast<std::uint32_t>(seed >> 32), static_cast<std::uint32_t>(seed)};
}

/// `jax.random.split(key, count)`.
inline std::vector<RandomKey> splitKey(const RandomKey& key, std::size_t count, bool partitionable)
{
    std::vector<RandomKey> keys;
    keys.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        if (partitionable)
            keys.push_back(threefry2x32(key, {static_cast<std::uint32_t>(i >> 32), static_cast<std::uint32_t>(i)}));
        else
            keys.push_back({randomWord(key, 2 * i, 2 * count, false), randomWord(key, 2 * i + 1, 2 * count, false)});
    }
    return keys;
}

/// `jax.random.fold_in(key, data)`.
constexpr RandomKey foldIn(const RandomKey& key, std::uint32_t data)
{
    return threefry2x32(key, {0, data});
}

/// The numbers 0 .. count - 1 as `jax.random.permutation(key, count)` has them: sorted by random words, as often as makes equal words harmless.
/// Precondition: 0 <= count < 2^32. Source: jax/_src/random.py, `_shuffle`.
std::vector<std::int64_t> randomPermutation(const RandomKey& key, std::int64_t count, bool partitionable);

} // namespace meshwright
