// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

namespace meshwright {

/// What a number of a chart counts; says how it is written.
enum class Quantity : std::uint8_t {
    Plain, ///< `0.25`, `1e-6`
    Count, ///< `12.3 k`
    Seconds, ///< `4.56 ms`
    Bytes, ///< `1.50 GiB`
};

/// One value with its unit, as the figures of the rest of the program: `formatSeconds`, `formatBytes`, `formatCount`; a plain number with four
/// significant figures. Not a number: `nan`.
std::string quantityText(double value, Quantity quantity);

/// The smallest of 1, 2, 5 times a power of ten that is not below `least` > 0: the step of an axis.
double niceStep(double least);

} // namespace meshwright
