// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/manifest.h"
#include "core/kernels/host_array.h"
#include "core/support/folder_lock.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace meshwright {

/// A checkpoint is a folder: one safetensors file for each device that has something to write, `device-00003.safetensors`, with the pieces that it
/// writes, each under its array's name; and `checkpoint.json`, the manifest. Of replicas one device writes the piece. A folder of checkpoints
/// has them as `step-000000030`.
inline constexpr const char* kManifestName = "checkpoint.json";

/// A distinct piece that devices hold.
struct PieceToSave {
    IndexBox box;
    std::vector<std::int64_t> holders; ///< not empty
    std::function<Result<HostArray>(std::int64_t holder)> read; ///< the piece, of the box's shape
};

struct ArrayToSave {
    std::string name;
    TensorType type; ///< of the whole array
    std::string sharding; ///< in Shardy's notation
    std::vector<PieceToSave> pieces;
};

/// A folder that checkpoints are written to, by this process alone while this value lives.
///
/// Only what is ours there is replaced or removed: a folder with the name of a step that holds a manifest and nothing but the files that the
/// manifest names (of a damaged manifest: files with the names of checkpoints' files). Links are no such folders.
class CheckpointFolder {
public:
    /// Makes the folder where it is missing, takes it, and removes what killed writers have left of unfinished checkpoints.
    ///
    /// Problems: MW1008 another process writes to it; MW1640 it cannot be made or written to.
    static Result<CheckpointFolder> open(const std::filesystem::path& path);

    /// Whether checkpoints of the steps from `first` to `last` find their places free, or taken by what may be replaced.
    /// Problems: MW1649 something else is in the way.
    Result<Done> checkPlaces(std::int64_t first, std::int64_t last) const;

    /// Writes step-NNN as a whole: into a folder beside it, which is flushed to the disk and then renamed; one of ours that is there already is
    /// replaced. Whenever the process or the machine dies, what has the name of a step is complete. Returns the checkpoint's path.
    ///
    /// `approve`, if any, is asked when all is written and before it gets its name.
    ///
    /// Problems: those of reading the pieces and of `approve`; MW1649; MW1640 something cannot be written (no permission, disk full), or an array's
    /// type is none of safetensors'. What was there before is still there then.
    Result<std::filesystem::path> write(
        const SavedState& state, const std::vector<ArrayToSave>& arrays, const std::function<Result<Done>()>& approve = {}) const;

    /// The steps of its checkpoints, the newest first.
    std::vector<std::int64_t> steps() const;

    /// Of our checkpoints up to `written`, which is one of them, removes all but the `kept` newest. Those of more steps, which a run that went
    /// on from an earlier one has left behind, stay and do not count. Precondition: kept >= 1.
    void removeOld(const std::filesystem::path& written, std::size_t kept) const;

private:
    CheckpointFolder(std::filesystem::path path, FolderLock lock)
        : m_path(std::move(path))
        , m_lock(std::move(lock))
    {
    }

    std::filesystem::path m_path;
    FolderLock m_lock;
};

/// Reads the pieces that `CheckpointFolder::write` reads of these arrays, in its order, and throws them away: what the other processes of a job do
/// where reading a piece takes all of them and one of them writes. Problems: those of reading.
Result<Done> readAsWritten(const std::vector<ArrayToSave>& arrays);

/// The checkpoints of a folder, the newest (most steps) first.
std::vector<std::filesystem::path> checkpointsIn(const std::filesystem::path& folder);

} // namespace meshwright
