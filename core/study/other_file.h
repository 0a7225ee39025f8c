// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace meshwright {

/// A file that is neither a study nor a program nor a log with messages.
struct OtherFile {
    std::string what; ///< "the output of nccl-tests"
    std::string use; ///< "`meshwright calibrate --nccl links.txt -o links.json` makes a profile of hardware from it"
};

/// What the text of a file is by its beginning, and the command that opens it: measurements of nccl-tests, a profiler's trace, a dump of HLO,
/// the index of a checkpoint, a result of Meshwright. Nothing for a study, and for what is not known. `file` is its name for the command.
std::optional<OtherFile> otherFileOf(std::string_view text, std::string_view file);

} // namespace meshwright
