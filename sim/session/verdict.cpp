// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/verdict.h"

#include "core/diagnose/fix_program.h"
#include "sim/session/search_study.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace meshwright::sim {

namespace {

bool isIn(const Problems& problems, const Problem& problem)
{
    return std::ranges::any_of(problems, [&](const Problem& other) {
        return other.id == problem.id && other.message == problem.message && other.place == problem.place;
    });
}

/// Adds what is not known yet: of two verbs that say the same, the first one's severity stays.
void addNew(Problems& problems, Problems more)
{
    for (Problem& problem : more) {
        if (!isIn(problems, problem))
            problems.push_back(std::move(problem));
    }
}

Problems withSeverity(Problems problems, Severity severity)
{
    for (Problem& problem : problems)
        problem.severity = severity;
    return problems;
}

/// The phases of a study, the first one known already. What is wrong with one is said, and the others are looked at.
std::vector<std::shared_ptr<const BuiltPhase>> phasesOf(const Analysis& analysis, Problems& problems)
{
    std::vector<std::shared_ptr<const BuiltPhase>> phases = {analysis.built};
    for (std::size_t i = 1; i < analysis.study->phases.size(); ++i) {
        auto built = buildPhase(*analysis.study, i);
        if (!built) {
            addNew(problems, built.error());
            continue;
        }
        phases.push_back(std::make_shared<const BuiltPhase>(*std::move(built)));
        addNew(problems, phases.back()->warnings);
        addNew(problems, lintsOfPhase(*analysis.study, *phases.back()));
    }
    return phases;
}

/// What only the search refuses.
Problems searchProblems(const Study& study, const Catalogue& catalogue)
{
    const Result<Calibration>& calibration = defaultCalibration();
    return calibration ? checkSearch(study, catalogue, *calibration) : calibration.error();
}

} // namespace

Verdict verdictOf(const StudySource& source, const Catalogue& catalogue, bool proves)
{
    const auto analysis = analysed(source, catalogue, {}, proves);
    Verdict verdict{analysis->problems, {}, analysis->study, {}};
    if (analysis->proof)
        verdict.proof = *analysis->proof;
    if (!analysis->study || hasErrors(checkFiles(*analysis->study)))
        return verdict;
    const Study& study = *analysis->study;
    std::vector<std::shared_ptr<const BuiltPhase>> phases;
    if (analysis->built)
        phases = phasesOf(*analysis, verdict.problems);
    for (std::size_t i = 1; verdict.proof && i < phases.size(); ++i)
        add(*verdict.proof, proofOf(*phases[i]));
    if (!study.trains())
        addNew(verdict.notFor, withSeverity(untrainable(study, phases), Severity::Note));
    else if (analysis->built)
        addNew(verdict.problems, untrainable(study, phases));
    if (!study.hardware)
        addNew(verdict.notFor, withSeverity(machineOf(study, catalogue).error(), Severity::Note));
    else if (analysis->machine)
        addNew(verdict.notFor, withSeverity(searchProblems(study, catalogue), Severity::Note));
    std::erase_if(verdict.notFor, [&](const Problem& problem) { return isIn(verdict.problems, problem); });
    return verdict;
}

Verdict verdictOf(const Program& program, const std::string& file, bool proves)
{
    Verdict verdict;
    Proof proof;
    for (const Function& function : program.functions) {
        const auto prepared = prepareRun(program, function.name);
        if (!prepared)
            addNew(verdict.problems, inFile(prepared.error(), file));
        else if (proves)
            add(proof, proofOf(prepared->partitioned));
    }
    if (!proof.functions.empty())
        verdict.proof = std::move(proof);
    if (program.meshes.empty()) {
        verdict.notFor = withSeverity({noMesh(file)}, Severity::Note);
        return verdict;
    }
    const auto partitioned = propagateAndPartition(program);
    addNew(verdict.problems, inFile(partitioned ? lintProgram(*partitioned) : partitioned.error(), file));
    return verdict;
}

Problem noMesh(const std::string& file)
{
    return {"MW1222", "the program has no mesh to partition it over", "add one: sdy.mesh @mesh = <[\"data\"=4]>", Place{file}};
}

} // namespace meshwright::sim
