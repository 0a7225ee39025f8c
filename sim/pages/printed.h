// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

namespace meshwright::pages {

enum class Likeness : std::uint8_t { Equal, Close, Different };

/// "equal", "close" or "different".
const char* likenessName(Likeness likeness);

/// Compares what a cell printed here with what the page says that it printed. White space at the ends of lines does not count, nor do
/// the lines of %timeit and %time. Close: the words are equal, but for how
/// versions of JAX print the same, and each number differs by at most `kCloseRelative` of the larger one.
Likeness comparePrinted(const std::string& here, const std::string& page);

inline constexpr double kCloseRelative = 2e-4; ///< what 32-bit sums in another order differ by

} // namespace meshwright::pages
