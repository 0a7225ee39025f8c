// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright {

/// Sizes of an array's dimensions, outermost first. A scalar has the empty shape.
using Shape = std::vector<std::int64_t>;

/// The number of elements; 1 for a scalar. Precondition: it fits 64 bits (shapes are checked where they enter).
inline std::int64_t elementCount(const Shape& shape)
{
    std::int64_t count = 1;
    for (const std::int64_t size : shape)
        count *= size;
    return count;
}

/// `784x8192`, or `scalar`.
std::string shapeText(const Shape& shape);

/// What to do with a dimension that does not divide by its number of pieces.
enum class Uneven : std::uint8_t {
    Refuse, ///< a problem, as when JAX places an array
    Pad, ///< the pieces are rounded up, as GSPMD does with values inside a program
};

} // namespace meshwright
