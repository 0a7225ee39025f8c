// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace meshwright {

/// A count as people type it: `4096`, `4k`, `1M`, `2G`; k, M and G count in 1,024s. Nothing for anything else, or beyond 64 bits.
std::optional<std::int64_t> parseCount(std::string_view text);

/// An amount of memory as people type it: `512`, `512B`, `64kB` and `2GB` in 1,000s, `512MiB` and `16GiB` in 1,024s; a letter alone (`512M`)
/// counts in 1,024s. Lower case is taken too. Nothing for anything else, or beyond 64 bits.
std::optional<std::int64_t> parseBytes(std::string_view text);

} // namespace meshwright
