// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/manifest.h"
#include "core/runtime/host_array.h"

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

/// Writes `folder`/step-NNN as a whole: into a folder beside it, which is flushed to the disk and then renamed; one that is there already is
/// replaced. Whenever the process or the machine dies, the folder holds complete checkpoints only, and remains of unfinished ones that are
/// not looked at and are removed by the next call. Returns the checkpoint's path.
///
/// Problems: those of reading the pieces; MW1640 something cannot be written (no permission, disk full), or an array's type is none of safetensors'. What was there
/// before is still there then.
Result<std::filesystem::path> writeCheckpoint(
    const std::filesystem::path& folder, const SavedState& state, const std::vector<ArrayToSave>& arrays);

/// Reads the pieces that `writeCheckpoint` reads of these arrays, in its order, and throws them away: what the other processes of a job do
/// where reading a piece takes all of them and one of them writes. Problems: those of reading.
Result<Done> readAsWritten(const std::vector<ArrayToSave>& arrays);

/// The checkpoints of a folder, the newest (most steps) first.
std::vector<std::filesystem::path> checkpointsIn(const std::filesystem::path& folder);

/// Of the folder's checkpoints up to `written`, which is one of them, removes all but the `kept` newest. Those of more steps, which a run that went on from an
/// earlier one has left behind, stay and do not count. Precondition: kept >= 1.
void removeOldCheckpoints(const std::filesystem::path& written, std::size_t kept);

} // namespace meshwright
