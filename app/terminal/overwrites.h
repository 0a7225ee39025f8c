// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/terminal/output.h"
#include "core/study/study_files.h"

#include <filesystem>
#include <string>
#include <vector>

namespace meshwright::cli {

/// Whether two paths lead to one file, also by a link or where neither is there yet. False of what is not a file: a device, a folder.
bool isSameFile(const std::filesystem::path& a, const std::filesystem::path& b);

/// Which outputs are the file `input`, that `what` names: "STUDY", "train.data". Problems: MW1952.
Problems overwrites(const std::vector<WrittenPath>& writes, const std::filesystem::path& input, const std::string& what);

/// The same of the files that a study names. Problems: MW1952.
Problems overwrites(const std::vector<WrittenPath>& writes, const Study& study);

/// Which outputs are one file. Problems: MW1952.
Problems collisions(const std::vector<WrittenPath>& writes);

} // namespace meshwright::cli
