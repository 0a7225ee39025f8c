// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/compare/comparable.h"
#include "sim/compare/compare.h"
#include "sim/session/session.h"

#include <string>
#include <vector>

namespace meshwright::sim {

/// The arrays of a propagated function as they lie on the mesh: all that have a name, and the arguments and results of those that have none
/// ("arg0", "result0"). Of several with one name the first.
std::vector<ComparedArray> comparedArrays(const Function& function, const std::vector<NamedMesh>& meshes);

/// The same of the stages of a pipeline: see `arraysOf`.
std::vector<ComparedArray> comparedArrays(const ScheduledProgram& pipeline);

/// What of an analysed study can be compared: of one with a pipeline what its stages have and do. Without hardware times and memory are absent. Precondition: built.
Comparable comparableOf(const Analysis& analysis);

/// What of a program can be compared: it is propagated and partitioned. Names begin with the function's where there are several.
/// Problems: those of `propagateAndPartition`; MW1222 the program has no mesh.
Result<Comparable> comparableOf(Program program, const std::string& file);

/// Compares two studies, with the reason for another step time where both were simulated. Precondition: as `comparableOf`.
Comparison compareStudies(const Analysis& before, const Analysis& after);

} // namespace meshwright::sim
