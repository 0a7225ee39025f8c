// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>

namespace meshwright {

/// One block of Philox-4x32 with 10 rounds: four words that depend on the key and the counter only.
/// Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11.
constexpr std::array<std::uint32_t, 4> philox4x32(
    const std::array<std::uint32_t, 2>& key, const std::array<std::uint32_t, 4>& counter)
{
    std::array<std::uint32_t, 4> x = counter;
    for (std::uint32_t round = 0; round < 10; ++round) {
        const std::uint64_t a = x[0] * std::uint64_t{0xD2511F53};
        const std::uint64_t b = x[2] * std::uint64_t{0xCD9E8D57};
        const std::uint32_t ofA = key[0] + round * 0x9E3779B9U;
        const std::uint32_t ofB = key[1] + round * 0xBB67AE85U;
        x = {static_cast<std::uint32_t>(b >> 32) ^ x[1] ^ ofA, static_cast<std::uint32_t>(b),
            static_cast<std::uint32_t>(a >> 32) ^ x[3] ^ ofB, static_cast<std::uint32_t>(a)};
    }
    return x;
}

} // namespace meshwright
