// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <vector>

namespace meshwright {

struct FunctionSlice {
    Function function;
    std::vector<ValueId> arguments; ///< of the source, for each argument of the function
    std::vector<OpId> ops; ///< of the source, for each op of the function's body
};

/// The part of a function's body between some values, which become its first arguments (those that are needed), and others, which become its
/// results; what it needs of the function's own arguments follows in their order. Names, layouts and groups are kept.
FunctionSlice sliced(const Function& source, const std::vector<ValueId>& from, const std::vector<ValueId>& to);

} // namespace meshwright
