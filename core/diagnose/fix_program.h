// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/partition.h"
#include "core/support/result.h"

namespace meshwright {

/// The lints of all functions of a partitioned program and what its partitioner warns of (`lintFunction`); `place.path` begins with the function's name.
Problems lintProgram(const PartitionedProgram& partitioned);

/// A program after everything was fixed that needs no decision of its author.
struct FixedProgram {
    Program program;
    Problems fixed; ///< in the order in which they were; `fix` says what was done
};

/// Fixes the lints of a program one after the other, as `Lint::edits` say, until none is left that goes without another coming. A program that
/// cannot be partitioned stays as it is.
FixedProgram fixedProgram(Program program);

} // namespace meshwright
