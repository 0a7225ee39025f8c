// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/terminal/output.h"
#include "core/program/program.h"
#include "core/text/program_text.h"

#include <span>
#include <string>
#include <string_view>

namespace meshwright::cli {

/// Reads a program's text from a file, or from standard input for `-`; warnings go to standard error. `places`, if any, gets where everything
/// stands. Problems: those of `readFile` and `readProgram`; MW1320 it is a study, MW1732 it has no
/// function.
Result<Program> readProgramFile(const std::string& file, Output& output, ProgramPlaces* places = nullptr);

/// What is said of a program's file `name` that has no function: it was cut short, or is another file than was meant.
Problem noFunction(const std::string& name);

/// Writes a verb's result to a file; to standard output when `file` is empty or `-`, and when the file cannot be written after all (the disk
/// is full). Returns the exit code.
int writeResult(const std::string& text, const std::string& file, Output& output);

/// The format that `--format` asked for or, when it was not given, the one that the ending of `file` (empty or `-`: none) names.
/// Problems: MW1903 the ending names none of `allowed`.
Result<Format> formatOfFile(const std::string& file, bool formatGiven, Format asked, std::span<const Format> allowed);

} // namespace meshwright::cli
