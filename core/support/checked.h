// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <optional>
#include <span>

namespace meshwright {

/// a * b, or nothing when it does not fit 64 bits.
inline std::optional<std::int64_t> checkedMultiply(std::int64_t a, std::int64_t b)
{
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product))
        return std::nullopt;
    return product;
}

/// The product of all factors (1 for none), or nothing when it does not fit 64 bits.
inline std::optional<std::int64_t> checkedProduct(std::span<const std::int64_t> factors)
{
    std::int64_t product = 1;
    for (const std::int64_t factor : factors) {
        const auto next = checkedMultiply(product, factor);
        if (!next)
            return std::nullopt;
        product = *next;
    }
    return product;
}

/// The smallest integer that is at least `value / divisor`. Preconditions: value >= 0, divisor > 0.
inline std::int64_t ceilDiv(std::int64_t value, std::int64_t divisor)
{
    assert(value >= 0 && divisor > 0);
    return value / divisor + (value % divisor != 0 ? 1 : 0);
}

/// True for 1, 2, 4, ...
constexpr bool isPowerOfTwo(std::int64_t n)
{
    return n > 0 && std::has_single_bit(static_cast<std::uint64_t>(n));
}

/// The smallest k with 2^k >= n; 0 for n < 2.
constexpr std::int64_t ceilLog2(std::int64_t n)
{
    return n <= 1 ? 0 : static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
}

/// A count as a real number.
constexpr double asDouble(std::int64_t count)
{
    return static_cast<double>(count);
}

} // namespace meshwright
