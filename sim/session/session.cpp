// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/session.h"

#include "core/program/transform.h"
#include "core/support/find.h"
#include "sim/session/machine_lints.h"

#include <algorithm>
#include <array>

namespace meshwright::sim {

std::size_t rankOf(Role role)
{
    constexpr std::array kOrder
        = {Role::Parameter, Role::OptimizerState, Role::Gradient, Role::Input, Role::Activation, Role::Metric};
    return static_cast<std::size_t>(std::find(kOrder.begin(), kOrder.end(), role) - kOrder.begin());
}

namespace {

std::vector<ProgramArray> arraysOf(const BuiltPhase& built)
{
    const Function& function = *built.partitioned.propagated.find(built.mainFunction);
    const Mesh& mesh = built.partitioned.device.stages.front().mesh();
    std::vector<ProgramArray> arrays;
    for (const ValueId id : namedValues(function)) {
        const Value& value = function[id];
        arrays.push_back(
            {value.name, value.role, value.type, *value.sharding, layoutText(*value.sharding, mesh), value.annotation, id});
    }
    std::stable_sort(arrays.begin(), arrays.end(),
        [](const ProgramArray& a, const ProgramArray& b) { return rankOf(a.role) < rankOf(b.role); });
    return arrays;
}

} // namespace

const ProgramArray* Analysis::findArray(const std::string& name) const
{
    return findBy(arrays, name, &ProgramArray::name);
}

std::string Analysis::reasonOf(const ProgramArray& array) const
{
    const auto& functions = built->partitioned.propagated.functions;
    const auto function
        = std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.name == built->mainFunction; });
    const auto index = static_cast<std::size_t>(function - functions.begin());
    return explainSharding(*function, built->partitioned.reports[index], mesh(), array.value);
}

Session::Session(Catalogue catalogue)
    : m_catalogue(std::move(catalogue))
{
}

/// Null: it is not among the latest.
std::shared_ptr<const Analysis> Session::remembered(const StudySource& source)
{
    const std::lock_guard lock(m_mutex);
    const auto found = std::find_if(
        m_remembered.begin(), m_remembered.end(), [&](const auto& analysis) { return analysis->source == source; });
    if (found == m_remembered.end())
        return nullptr;
    std::rotate(found, found + 1, m_remembered.end());
    return m_remembered.back();
}

/// In the place of an earlier one of the same study.
void Session::remember(std::shared_ptr<const Analysis> analysis)
{
    const std::lock_guard lock(m_mutex);
    std::erase_if(m_remembered, [&](const auto& earlier) { return earlier->source == analysis->source; });
    if (m_remembered.size() == kRememberedAnalyses)
        m_remembered.erase(m_remembered.begin());
    m_remembered.push_back(std::move(analysis));
}

std::shared_ptr<const Analysis> Session::analyse(const StudySource& source, const std::stop_token& stop, bool proves)
{
    auto analysis = remembered(source);
    if (analysis && (!proves || analysis->proof || !analysis->built))
        return analysis;
    if (!analysis) {
        analysis = analysed(source, m_catalogue, stop, proves);
    } else {
        auto proved = std::make_shared<Analysis>(*analysis);
        proveStep(*proved, stop);
        analysis = proved->proof ? std::move(proved) : nullptr;
    }
    if (analysis)
        remember(analysis);
    return analysis;
}

std::shared_ptr<const Analysis> analysed(
    const StudySource& source, const Catalogue& catalogue, const std::stop_token& stop, bool proves)
{
    auto analysis = std::make_shared<Analysis>();
    analysis->source = source;
    Problems& problems = analysis->problems;
    StudyReading reading = readStudyInPart(source.text, source.file, source.settings);
    problems = std::move(reading.problems);
    if (hasErrors(problems) || stop.stop_requested())
        return stop.stop_requested() ? nullptr : analysis;
    analysis->study = std::make_shared<const Study>(std::move(reading.study));
    const Study& study = *analysis->study;
    const Problems missing = checkFiles(study);
    append(problems, missing);
    if (study.hardware)
        findMachine(*analysis, study, catalogue);
    if (stop.stop_requested())
        return nullptr;
    if (hasErrors(missing))
        return analysis;
    if (auto simulated = predictStep(*analysis, study, {.timeline = true}, stop))
        analysis->simulated = std::make_shared<const SimulatedStudy>(*std::move(simulated));
    if (stop.stop_requested())
        return nullptr;
    if (proves)
        proveStep(*analysis, stop);
    // Behind what explains why something is missing.
    if (analysis->built) {
        analysis->arrays = arraysOf(*analysis->built);
        append(problems, lintsOfPhase(study, *analysis->built));
    }
    if (analysis->simulated)
        append(problems, lintsOnMachine(*analysis));
    return stop.stop_requested() ? nullptr : analysis;
}

} // namespace meshwright::sim
