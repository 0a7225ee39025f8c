// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace meshwright {

/// A count as people type it: `4096`, `4k`, `0.5M`, `2G`, `1e6`, `1,048,576`; k, M, G and T count in 1,024s, so that 0.5M is 524,288 and 1T
/// is 2^40. Nothing for anything else, beyond 64 bits, or where a fraction leaves no whole number (`0.1k`).
std::optional<std::int64_t> parseCount(std::string_view text);

/// An amount of memory as people type it: `512`, `512B`, `64kB` and `2GB` in 1,000s, `512MiB` and `16GiB` in 1,024s; a letter alone (`512M`)
/// counts in 1,024s. Lower case and fractions (`1.5GiB`) are taken too. Nothing for anything else, beyond 64 bits, or where bytes are left over.
std::optional<std::int64_t> parseBytes(std::string_view text);

} // namespace meshwright
