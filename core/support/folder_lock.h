// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <filesystem>

namespace meshwright {

/// A folder that one process at a time writes to, held until this value is gone.
///
/// A file in the folder, `.meshwright-lock`, says who holds it. The system's lock on that file (flock) decides: it ends with its process,
/// so a file that a killed process has left holds nobody up, and the next one takes it over.
class FolderLock {
public:
    /// Problems: MW1008 another process holds the folder; MW1005, MW1007 the lock's file cannot be made.
    static Result<FolderLock> take(const std::filesystem::path& folder);
    FolderLock(FolderLock&& other) noexcept;
    FolderLock& operator=(FolderLock&&) = delete;
    ~FolderLock();

private:
    FolderLock(std::filesystem::path file, int descriptor);

    std::filesystem::path m_file;
    int m_descriptor;
};

} // namespace meshwright
