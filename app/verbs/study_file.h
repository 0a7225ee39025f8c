// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/terminal/output.h"
#include "core/study/study.h"
#include "sim/session/session.h"

#include <string>
#include <vector>

namespace meshwright::cli {

/// The study of a file's text (`studySourceOf`): a launch line becomes the study of the training that it starts, and standard error says what of it was
/// taken for what. Problems: those of `studySourceOf`; MW1952 the verb is to write a file that the study names.
/// `warnings`, if any, gets what only some releases of the framework train; else standard error says that too.
Result<sim::StudySource> sourceOf(sim::StudySource given, const Output& output, Problems* warnings = nullptr);

/// Of such a file, or of standard input for `-`. Problems: those of `readFile` besides; MW1952 the verb is to write this file.
Result<sim::StudySource> readSource(const std::string& file, std::vector<std::string> settings, const Output& output);

/// The study in such a file, and the files that it names are there. Problems: those of `readSource`, `readStudy` and `checkFiles`.
/// `warnings`, if any, gets what `check` warns of.
Result<Study> readStudyFile(
    const std::string& file, std::vector<std::string> settings, const Output& output, Problems* warnings = nullptr);

} // namespace meshwright::cli
