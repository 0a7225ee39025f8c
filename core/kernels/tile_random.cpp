// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/tile_steps.h"

namespace meshwright::MESHWRIGHT_TILE_SET {
namespace {

inline std::uint32_t rotated(std::uint32_t bits, int by)
{
    return bits << by | bits >> (32 - by);
}

/// `threefry2x32` (core/support/threefry.h, which also has the source), both words combined, for counters with the same upper half.
void threefryRun(
    std::uint32_t* out, std::uint32_t key0, std::uint32_t key1, std::uint32_t upper, std::uint32_t lower, std::int64_t count)
{
    constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    const std::uint32_t schedule[] = {key0, key1, key0 ^ key1 ^ 0x1BD11BDAU};
    for (std::int64_t i = 0; i < count; ++i) {
        std::uint32_t x = upper + schedule[0];
        std::uint32_t y = lower + static_cast<std::uint32_t>(i) + schedule[1];
#pragma GCC unroll 5
        for (std::uint32_t group = 0; group < 5; ++group) {
#pragma GCC unroll 4
            for (int round = 0; round < 4; ++round) {
                x += y;
                y = rotated(y, kRotations[group % 2][round]) ^ x;
            }
            x += schedule[(group + 1) % 3];
            y += schedule[(group + 2) % 3] + group + 1;
        }
        out[i] = x ^ y;
    }
}

} // namespace

void randomWordsStep(std::uint32_t* out, std::uint32_t key0, std::uint32_t key1, std::uint64_t first, std::int64_t count)
{
    while (count > 0) {
        const auto lower = static_cast<std::uint32_t>(first);
        const auto left = static_cast<std::int64_t>((std::uint64_t{1} << 32) - lower);
        const std::int64_t run = count < left ? count : left;
        threefryRun(out, key0, key1, static_cast<std::uint32_t>(first >> 32), lower, run);
        out += run;
        first += static_cast<std::uint64_t>(run);
        count -= run;
    }
}

} // namespace meshwright::MESHWRIGHT_TILE_SET
