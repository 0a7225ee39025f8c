// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/terminal/output.h"

#include "core/ranks/ranks.h"

#include <functional>
#include <memory>
#include <string>

namespace meshwright::cli {

/// Does a verb as one of the processes that a launcher (mpirun) started together, or alone: then the ranks are null. Only the first process
/// prints, or the second when the first one is lost; a process that fails tells it first, and all of them end.
/// `input` is the file that the verb reads: launchers give standard input (`-`) to the first process alone, and here all get it.
/// Returns the exit code. Problems: those of `joinJob`.
int runTogether(Output& output, const std::string& input,
    const std::function<int(const std::shared_ptr<Ranks>& ranks, Output& output)>& verb);

/// "mpirun -n 4 ", what goes before a command that is to be given again; empty when alone.
std::string launcherText(const Ranks* ranks);

} // namespace meshwright::cli
