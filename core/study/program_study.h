// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

#include <string>
#include <string_view>

namespace meshwright {

/// How the text of a study begins that stands for a file of another kind, under that file's name: nothing of it has a line there.
inline constexpr std::string_view kMadeStudy = "# made from ";

/// True for a program in MLIR's text, not a study: by the end of its file's name, or by how the text begins.
bool isProgramText(const std::string& file, std::string_view text);

/// The function that is meant where none is named: the only one, or @main, where others begin too. Empty: it must be named.
std::string entryFunctionOf(const Program& program);

/// The study of a program that was given in place of one, as YAML: `model: {program: FILE}`, on the mesh that the program's own text has, if it has
/// one. Whoever reads studies reads programs by it; settings such as `hardware=h100x8` and `mesh=data=8` say the rest. What is wrong with the program
/// is for whoever builds the study.
/// Problems: MW1492 the text came from no file (`file` is empty, `-` or "standard input"): a study names its program by a file.
Result<std::string> programStudyText(const std::string& file, std::string_view text);

} // namespace meshwright
