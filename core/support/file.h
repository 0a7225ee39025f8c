// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace meshwright {

/// The largest file that is read whole into memory, in bytes.
inline constexpr std::uint64_t kLargestTextFileBytes = std::uint64_t{1} << 31;

/// The whole content of a file, or of standard input for `-`.
///
/// Problems: MW1001 there is no such file, MW1002 it is not a regular file (a directory, say), MW1003 it cannot be read,
/// MW1004 it is larger than kLargestTextFileBytes.
Result<std::string> readFile(const std::filesystem::path& path);

/// Writes `content` to `path` as a whole: to a temporary file beside it, which is then renamed. When it fails,
/// what was at `path` before is still there. `-` is standard output.
///
/// Problems: MW1005 the file cannot be written (no such folder, no permission, a directory, disk full).
Result<Done> writeFileAtomically(const std::filesystem::path& path, std::string_view content);

} // namespace meshwright
