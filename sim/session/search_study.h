// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"
#include "sim/search/search.h"
#include "sim/search/search_request.h"
#include "sim/session/engine.h"

#include <stop_token>
#include <string>
#include <vector>

namespace meshwright::sim {

/// The best plans of a study's model on its hardware; the study's own mesh, specs and pipeline do not count. The best few go through the simulator, and
/// then stand in the order of its times; those of a transformer where `options.simulate` is set (`planSimulator`). A program file is searched op by op
/// (`searchProgramOf`).
///
/// Problems: those of `machineOf` (engine.h) and of `searchProgramOf`; MW1747, MW1709 of the machine.
Result<SearchResult> searchStudy(const Study& study, const Catalogue& catalogue, const Calibration& calibration,
    const std::vector<FixedChoice>& fixed, const SearchOptions& options);

/// What `searchStudy` refuses, before it searches.
Problems checkSearch(const Study& study, const Catalogue& catalogue, const Calibration& calibration);

/// The best layouts of a study's program, op by op: of a program file, or of the training step that the study's model is built into (in one stage).
/// Problems: those of `machineOf`, `plainProgramOf` (engine.h) and `searchProgram`.
Result<SearchResult> searchProgramOf(const Study& study, const Catalogue& catalogue, const SearchOptions& options);

/// A study that simulates such a plan, whose program is in `file`. Precondition: plan.program.
std::string studyOfProgram(const Study& study, const FoundPlan& plan, const std::string& file);

/// An MLP's study with the mesh and the specs of a plan in place of its own. Precondition: study.mlp(), and the plan is of it.
Study studyOfPlan(Study study, const FoundPlan& plan);

/// Simulates plans of a transformer as the studies that `studyText` writes: to the digits of `simulate` of the written file. `stop` is heeded all along.
/// What it refers to must live as long.
PlanSimulator planSimulator(const SearchWork& work, const Catalogue& catalogue, const std::stop_token& stop = {});

/// Simulates layouts for `SearchOptions::floor`. What it refers to must live as long.
FloorSimulator floorSimulator(const SearchWork& work, const Catalogue& catalogue, const std::stop_token& stop = {});

/// Likewise for `SearchOptions::pass`.
PassSimulator passSimulator(const SearchWork& work, const Catalogue& catalogue, const std::stop_token& stop = {});

/// Simulates the layers of a transformer on one device, each of its `layerGroups` as a model of its own. `stop` is heeded all along.
LayerTimer layerTimer(const Catalogue& catalogue, const std::stop_token& stop = {});

/// Simulates a plan as the study that `studyText` writes, as `simulate` reads it, but with a stack by its name and the network that the cluster states.
/// Problems: those of `studyText` and of `simulateStudy` (engine.h); `stoppedProblem` where it was stopped.
Result<SimulatedStudy> simulatedPlan(const FoundPlan& plan, const SearchWork& work, const SearchMachine& machine,
    const std::string& stack, const Catalogue& catalogue, const std::stop_token& stop, const std::string& fidelity = {});

/// The same of the study's text.
Result<SimulatedStudy> simulatedText(const std::string& text, const SearchMachine& machine, const std::string& stack,
    const Catalogue& catalogue, const std::stop_token& stop, const std::string& fidelity = {});

/// A plan of a transformer as a study that `check` and `simulate` read. Precondition: its recomputation is a name of `recomputationOf`.
/// Problems: those of `parseSpec`.
Result<std::string> studyText(const FoundPlan& plan, const SearchWork& work, const SearchMachine& machine);

/// The same with a recomputation that may have no name, in place of the plan's.
Result<std::string> studyText(
    const FoundPlan& plan, const Recomputation& recomputation, const SearchWork& work, const SearchMachine& machine);

/// A plan as the study that it was searched for, in the plan's layout: mesh, specs, pipeline and recomputation are the plan's; name, optimizer, dropout,
/// training and network stay. Precondition: study.mlp() or study.transformer(), and the plan is of it.
/// Problems: those of `searchMachineOf` and `parseSpec`.
Result<std::string> planText(
    const Study& study, const FoundPlan& plan, const Catalogue& catalogue, const Calibration& calibration);

/// The plan whose layout a transformer's study has: its degrees and choices, without times. Whoever wants the study in the words of a framework asks for it.
/// Problems: those of `searchMachineOf`; MW1758 the model is not a transformer, or no plan that `searchStudy` may find has this mesh with these specs.
Result<FoundPlan> planOf(const Study& study, const Catalogue& catalogue, const Calibration& calibration);

/// What of a transformer's study is searched. Precondition: study.transformer().
SearchWork workOf(const Study& study);

/// The machine of a study as the search sees it. Problems: those of `machineOf` (engine.h) and of search_request.h.
Result<SearchMachine> searchMachineOf(const Study& study, const Catalogue& catalogue, const Calibration& calibration);

} // namespace meshwright::sim
