// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <string>
#include <vector>

namespace meshwright {

/// Appends `func.func` with everything in it, indented as inside a module. Part of `writeProgram`.
void writeFunction(std::string& out, const Program& program, const Function& function);

/// For each of the function's values its name in that text; empty for dead ones.
std::vector<std::string> namesInText(const Program& program, const Function& function);

} // namespace meshwright
