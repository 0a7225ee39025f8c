// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/verbs/verbs.h"

namespace meshwright::cli {

/// `propagate --mode explicit`: the program with its types, or the type errors with the legal results and their costs.
/// Problems: those of `checkExplicitTypes`, MW1923.
int runExplicit(const PropagateOptions& options, Output& output);

/// The type errors of a program's text in explicit mode; what is wrong with the text itself otherwise.
Problems explicitProblems(std::string_view text, const std::string& file);

/// `propagate --mode gspmd`: the program with `mhlo.sharding` on every value that gets one. Problems: those of `tileAnnotations`, MW1923.
int runGspmd(const PropagateOptions& options, Output& output);

} // namespace meshwright::cli
