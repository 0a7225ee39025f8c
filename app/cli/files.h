// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/output.h"
#include "core/program/program.h"
#include "core/text/program_text.h"

#include <string>

namespace meshwright::cli {

/// Reads a program's text from a file, or from standard input for `-`. Problems: those of `readFile` and `readProgram`.
/// `places`, if any, gets where everything stands.
Result<Program> readProgramFile(const std::string& file, ProgramPlaces* places = nullptr);

/// Writes a verb's result to a file; to standard output when `file` is empty or `-`. Returns the exit code.
int writeResult(const std::string& text, const std::string& file, Output& output);

} // namespace meshwright::cli
