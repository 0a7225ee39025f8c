// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/checkpoint.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace meshwright {

/// Bytes of one file that one device needs.
struct ReadFromFile {
    std::size_t file = 0; ///< index into Checkpoint::files
    std::int64_t ranges = 0; ///< stretches of the file
    std::int64_t bytes = 0;

    friend bool operator==(const ReadFromFile&, const ReadFromFile&) = default;
};

/// What is looked at before a checkpoint of a folder of them is taken.
enum class CheckpointCheck : std::uint8_t {
    Sizes, ///< the manifest, the files' sizes and their headers
    Content, ///< every byte: all of the checkpoint is read once more
};

/// A checkpoint being read: boxes of its arrays, wherever their bytes lie. Reads whole checksum blocks and checks each.
class CheckpointReader {
public:
    /// `path` is a checkpoint, or a folder of checkpoints: then the newest complete one is opened, `passedOver()` says which newer ones are not.
    /// `check` is for those of a folder; a checkpoint that is named is read in any case, and what is wrong in it is said then.
    ///
    /// Problems: MW1001 there is nothing, MW1644 the folder holds no complete checkpoint; of the checkpoint itself those of `readManifest`,
    /// MW1645 a file is missing or has another size than the manifest says, and MW1642 a header is damaged.
    static Result<std::unique_ptr<CheckpointReader>> open(
        const std::filesystem::path& path, CheckpointCheck check = CheckpointCheck::Sizes);
    ~CheckpointReader();
    CheckpointReader(const CheckpointReader&) = delete;
    CheckpointReader& operator=(const CheckpointReader&) = delete;

    const std::filesystem::path& path() const;
    const Checkpoint& checkpoint() const;
    const Problems& passedOver() const; ///< warnings

    /// The array of a name; nothing when there is none.
    std::optional<std::size_t> find(std::string_view name) const;

    /// A box of an array, row-major. Preconditions: the array exists, the box lies within it.
    /// Problems: MW1003 the file cannot be read, MW1642 a block's checksum is wrong.
    Result<HostArray> read(std::size_t array, const IndexBox& box);

    /// The bytes that were read from files so far (whole blocks, each time that they were read).
    std::int64_t bytesRead() const;

    /// What a box needs, file by file; stretches that touch count as one.
    std::vector<ReadFromFile> needs(std::size_t array, const IndexBox& box) const;

private:
    class Implementation;
    explicit CheckpointReader(std::unique_ptr<Implementation> implementation);
    std::unique_ptr<Implementation> m_implementation;
};

} // namespace meshwright
