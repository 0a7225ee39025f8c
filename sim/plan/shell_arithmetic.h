// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace meshwright::sim {

/// `8 * (2 + 1)`: what a shell's `$((..))` comes to. Nothing where it is not one of whole numbers, or does not fit 64 bits.
std::optional<std::int64_t> valueOfArithmetic(std::string_view text);

} // namespace meshwright::sim
