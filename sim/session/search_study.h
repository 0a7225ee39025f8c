// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"
#include "sim/search/search.h"
#include "sim/search/search_request.h"

#include <string>
#include <vector>

namespace meshwright::sim {

/// The best plans of a study's model on its hardware; the study's own mesh, specs and pipeline do not count. The best few of an MLP go through the
/// simulator, and then stand in the order of its times.
///
/// Problems: those of `machineOf` (engine.h); MW1752 the model is a program file, whose plans are not searched; MW1747, MW1709 of the machine.
Result<SearchResult> searchStudy(const Study& study, const Catalogue& catalogue, const Calibration& calibration,
    const std::vector<FixedChoice>& fixed, const SearchOptions& options);

/// An MLP's study with the mesh and the specs of a plan in place of its own. Precondition: study.mlp(), and the plan is of it.
Study studyOfPlan(Study study, const FoundPlan& plan);

/// A plan of a transformer as a study that `check` and `simulate` read.
/// Problems: MW1754 the study file cannot say it: its chip, or its recomputation.
Result<std::string> studyText(const FoundPlan& plan, const SearchWork& work, const SearchMachine& machine);

/// What of a transformer's study is searched. Precondition: study.transformer().
SearchWork workOf(const Study& study);

/// The machine of a study as the search sees it. Problems: those of `machineOf` (engine.h) and of search_request.h.
Result<SearchMachine> searchMachineOf(const Study& study, const Catalogue& catalogue, const Calibration& calibration);

} // namespace meshwright::sim
