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
/// what was at `path` before is still there. `-` is standard output. What a link points at is replaced, not the link; a device or a pipe
/// (`/dev/stdout`, `>(gzip > trace.gz)`) is written to as it is.
///
/// Problems: MW1005 the file cannot be written (no such folder, no permission, a directory, disk full).
Result<Done> writeFileAtomically(const std::filesystem::path& path, std::string_view content);

/// Whether `writeFileAtomically` could write there now, so that hours of work do not end in a file that cannot be. Changes nothing;
/// an empty path and `-` are always good. Problems: MW1005.
Result<Done> checkWritable(const std::filesystem::path& path);

/// Whether files could be written in a folder that is there or would be made. Changes nothing; an empty path is good. Problems: MW1005.
Result<Done> checkFolderWritable(const std::filesystem::path& folder);

} // namespace meshwright
