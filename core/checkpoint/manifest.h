// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/type.h"
#include "core/sharding/layout.h"
#include "core/support/result.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// The fix for a checkpoint that is damaged.
inline constexpr const char* kRestore = "restore it from a copy, or use an older checkpoint";

/// Bytes that one checksum covers; the last of a piece may cover fewer.
inline constexpr std::int64_t kChecksumBlockBytes = 1 << 16;

/// How far the training was.
struct SavedState {
    std::int64_t step = 0; ///< updates done
    std::uint64_t seed
        = 0; ///< of rows and initial values: what is drawn at a step depends on it and the step's number alone (threefry-2x32)
    std::string mesh; ///< "data=4,model=2"
    std::string optimizer; ///< "sgd", "adam", ...
    std::vector<double> losses; ///< of the steps so far
    std::vector<double> accuracies;
    std::map<std::string, std::string> settings
        = {}; ///< of the study, by path, that another training has otherwise ("model.mlp.loss": "mse"); empty: not known

    friend bool operator==(const SavedState&, const SavedState&) = default;
};

/// A distinct piece of an array: a tensor of its own in one of the files, row-major.
struct CheckpointPiece {
    IndexBox box; ///< of the whole array
    std::size_t file = 0; ///< index into Checkpoint::files
    std::int64_t offset = 0; ///< from the file's start
    std::vector<std::uint32_t> checksums; ///< CRC-32 of each kChecksumBlockBytes

    friend bool operator==(const CheckpointPiece&, const CheckpointPiece&) = default;
};

struct CheckpointArray {
    std::string name;
    TensorType type; ///< of the whole array
    std::string sharding; ///< as it lay on the mesh, in Shardy's notation
    std::vector<CheckpointPiece> pieces; ///< disjoint; together the whole array

    friend bool operator==(const CheckpointArray&, const CheckpointArray&) = default;
};

struct CheckpointFile {
    std::string name; ///< in the checkpoint's folder
    std::int64_t bytes = 0;
    std::int64_t headerBytes = 0; ///< before the first piece; 0: written by a version that did not say
    std::uint32_t headerChecksum = 0; ///< CRC-32 of these

    friend bool operator==(const CheckpointFile&, const CheckpointFile&) = default;
};

/// What `checkpoint.json` says: schema `meshwright.checkpoint/1`.
struct Checkpoint {
    SavedState state;
    std::vector<CheckpointFile> files;
    std::vector<CheckpointArray> arrays;

    friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

/// The manifest's text, with a checksum of itself.
std::string manifestText(const Checkpoint& checkpoint);

/// Problems: MW1641 no manifest of a checkpoint, or it says what cannot be (a box outside its array, pieces that do not make up the array);
/// MW1642 its checksum is wrong; MW1643 it was written by a newer version.
Result<Checkpoint> readManifest(std::string_view text, const std::string& file);

} // namespace meshwright
