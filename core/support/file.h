// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace meshwright {

/// The largest file that is read whole into memory, in bytes.
inline constexpr std::uint64_t kLargestTextFileBytes = std::uint64_t{1} << 31;

/// The most that is read of a device, which may have no end (/dev/zero), in bytes.
inline constexpr std::uint64_t kLargestDeviceBytes = std::uint64_t{1} << 24;

/// The whole content of a file, or of standard input for `-`.
///
/// Problems: MW1001 there is no such file, MW1002 it is not a regular file (a directory, say), MW1003 it cannot be read,
/// MW1004 it is larger than `largestBytes` (of a device: kLargestDeviceBytes).
Result<std::string> readFile(const std::filesystem::path& path, std::uint64_t largestBytes = kLargestTextFileBytes);

/// What is wrong when `path` cannot be written; `error` is the system's (errno).
///
/// MW1007 there is no room (the disk, the quota or the largest size of a file), else MW1005.
Problem cannotWriteFile(const std::filesystem::path& path, int error);

/// A file that did not exist before, being written: a link or a file that stands in its place is never followed or truncated.
class NewFile {
public:
    /// `mode`: its permissions, less the user's umask. Messages call it `named`, or by its path where that is empty.
    /// Problems: those of `cannotWriteFile`.
    static Result<NewFile> create(std::filesystem::path path, mode_t mode = 0666, std::filesystem::path named = {});
    NewFile(NewFile&& other) noexcept;
    NewFile& operator=(NewFile&&) = delete;
    ~NewFile();

    const std::filesystem::path& path() const { return m_path; }
    int descriptor() const { return m_descriptor; }

    /// Problems: those of `cannotWriteFile`.
    Result<Done> write(const void* bytes, std::size_t count);

    /// Puts what was written on the disk. Problems: those of `cannotWriteFile`.
    Result<Done> flush();

private:
    NewFile(std::filesystem::path path, std::filesystem::path named, int descriptor);

    std::filesystem::path m_path;
    std::filesystem::path m_named;
    int m_descriptor;
};

/// Puts a folder's entries on the disk: a rename lasts only then.
void flushFolder(const std::filesystem::path& folder);

/// Writes `content` to `path` as a whole: to a temporary file beside it, which is then renamed. When it fails, or the process is killed,
/// what was at `path` before is still there. A file that is replaced keeps its permissions. `-` is standard output. What a link points
/// at is replaced, not the link; a device or a pipe (`/dev/stdout`, `>(gzip > trace.gz)`) is written to as it is. Temporary files that
/// killed writers have left in the folder are removed.
///
/// Problems: MW1005 the file cannot be written (no such folder, no permission, a directory), MW1007 there is no room.
Result<Done> writeFileAtomically(const std::filesystem::path& path, std::string_view content);

/// A file that grows line by line: a line is there as soon as it was written, and is there as a whole or not at all.
class GrowingFile {
public:
    /// Goes on behind what is there, or (`isNew`) begins with nothing. Problems: those of `cannotWriteFile`.
    static Result<GrowingFile> open(std::filesystem::path path, bool isNew);
    GrowingFile(GrowingFile&& other) noexcept;
    GrowingFile& operator=(GrowingFile&&) = delete;
    ~GrowingFile();

    /// Problems: those of `cannotWriteFile`.
    Result<Done> append(std::string_view line);

private:
    GrowingFile(std::filesystem::path path, int descriptor);

    std::filesystem::path m_path;
    int m_descriptor;
};

/// Whether `writeFileAtomically` could write there now, so that hours of work do not end in a file that cannot be. Changes nothing;
/// an empty path and `-` are always good. Problems: those of `cannotWriteFile`.
Result<Done> checkWritable(const std::filesystem::path& path);

/// Whether files could be written in a folder that is there or would be made. Changes nothing; an empty path is good. Problems: MW1005.
Result<Done> checkFolderWritable(const std::filesystem::path& folder);

/// Takes the numbers 0, 1 and 2 where the program was started without standard streams (`2>&-`), so that no file of ours gets such
/// a number and the words meant for the stream. What is read or written there fails. Call first in `main`.
void reserveStandardStreams();

} // namespace meshwright
