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

/// The nearest number of 8 bits (ties to even) with so many of fraction and this bias of the exponent, as its bits; beyond the largest finite one
/// `beyond`, as in JAX's ml_dtypes.
template <unsigned FractionBits, std::uint32_t Bias, std::uint8_t Largest, std::uint8_t Beyond, std::uint8_t NotANumber>
std::uint8_t eightBits(float value)
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint8_t>((bits >> 24) & 0x80U);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U)
        return sign | NotANumber;
    constexpr unsigned kDropped = 23 - FractionBits;
    constexpr std::uint32_t kLeastNormal = (128U - Bias) << 23;
    std::uint32_t rounded = 0;
    if (magnitude < kLeastNormal) { // a multiple of the least number, which the sum with a number of that spacing rounds to
        constexpr float kSpaced = std::bit_cast<float>((128U - Bias + kDropped) << 23);
        rounded = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + kSpaced) - std::bit_cast<std::uint32_t>(kSpaced);
    } else {
        const std::uint32_t even = magnitude + ((1U << (kDropped - 1)) - 1U) + ((magnitude >> kDropped) & 1U);
        rounded = (even - ((127U - Bias) << 23)) >> kDropped;
    }
    return rounded > Largest ? sign | Beyond : static_cast<std::uint8_t>(sign | rounded);
}

template <unsigned FractionBits, int Bias>
float fromEightBits(std::uint8_t bits)
{
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x80U) << 24;
    const std::uint32_t exponent = (bits & 0x7fU) >> FractionBits;
    const std::uint32_t fraction = bits & ((1U << FractionBits) - 1U);
    if (exponent == 0) {
        constexpr float kLeast
            = std::bit_cast<float>(static_cast<std::uint32_t>(128 - Bias - static_cast<int>(FractionBits)) << 23);
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * kLeast));
    }
    return std::bit_cast<float>(
        sign | ((exponent + static_cast<std::uint32_t>(127 - Bias)) << 23) | (fraction << (23 - FractionBits)));
}

/// 4 bits of exponent, 3 of fraction, no infinity: 448 is the largest, and all beyond is not a number.
inline std::uint8_t e4m3Bits(float value)
{
    return eightBits<3, 7, 0x7e, 0x7f, 0x7f>(value);
}
inline float fromE4m3(std::uint8_t bits)
{
    return (bits & 0x7fU) == 0x7fU ? std::bit_cast<float>(0x7fc00000U | (static_cast<std::uint32_t>(bits & 0x80U) << 24))
                                   : fromEightBits<3, 7>(bits);
}

/// 5 bits of exponent, 2 of fraction: a half without its last 8 bits.
inline std::uint8_t e5m2Bits(float value)
{
    return eightBits<2, 15, 0x7b, 0x7c, 0x7e>(value);
}
inline float fromE5m2(std::uint8_t bits)
{
    return fromHalf(static_cast<std::uint16_t>(bits << 8));
}

} // namespace meshwright
