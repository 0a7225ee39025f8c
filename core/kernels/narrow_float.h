// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <bit>
#include <cstdint>

namespace meshwright {

/// The nearest bfloat16 (ties to even) as its bits; a NaN stays one.
inline std::uint16_t bfloat16Bits(float value)
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
    const bool isNan = (bits & 0x7fffffffU) > 0x7f800000U;
    return static_cast<std::uint16_t>((isNan ? bits | 0x400000U : rounded) >> 16);
}

inline float fromBfloat16(std::uint16_t bits)
{
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// The nearest IEEE half (ties to even) as its bits.
inline std::uint16_t halfBits(float value)
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U)
        return static_cast<std::uint16_t>(sign | 0x7e00U);
    if (magnitude >= 0x477ff000U) // 65520 and above round to infinity
        return static_cast<std::uint16_t>(sign | 0x7c00U);
    if (magnitude < 0x38800000U) { // below the smallest normal half: a multiple of 2^-24, which the sum with 0.5 rounds to
        const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
        return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F)));
    }
    const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
}

inline float fromHalf(std::uint16_t bits)
{
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1fU;
    const std::uint32_t fraction = bits & 0x3ffU;
    if (exponent == 0) { // zero or subnormal: fraction * 2^-24
        const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
    }
    if (exponent == 31)
        return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13));
    return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (fraction << 13));
}

} // namespace meshwright
