// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"

#include <filesystem>
#include <vector>

namespace meshwright {

/// A file that a study names.
struct StudyFile {
    std::filesystem::path file; ///< as `Study::resolved` has it
    const char* path = ""; ///< where the study names it: "train.data"
};

/// The files that a study names: its program, data and labels, a profile of the hardware.
std::vector<StudyFile> filesOf(const Study& study);

} // namespace meshwright
