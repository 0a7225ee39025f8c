// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/session.h"

#include "sim/session/closed_form.h"
#include "sim/session/machine_lints.h"

#include <algorithm>
#include <array>

namespace meshwright::sim {

namespace {

/// Parameters and their family first: what people look for.
std::size_t rankOf(Role role)
{
    constexpr std::array kOrder
        = {Role::Parameter, Role::OptimizerState, Role::Gradient, Role::Input, Role::Activation, Role::Metric};
    return static_cast<std::size_t>(std::find(kOrder.begin(), kOrder.end(), role) - kOrder.begin());
}

std::vector<ProgramArray> arraysOf(const BuiltPhase& built)
{
    const Function& function = *built.partitioned.propagated.find(built.mainFunction);
    const Mesh& mesh = built.partitioned.device.stages.front().mesh();
    std::vector<ProgramArray> arrays;
    const auto add = [&](ValueId id) {
        const Value& value = function[id];
        if (!value.name.empty() && value.sharding)
            arrays.push_back(
                {value.name, value.role, value.type, *value.sharding, layoutText(*value.sharding, mesh), value.annotation, id});
    };
    for (const Block& block : function.blocks) {
        for (const ValueId id : block.arguments)
            add(id);
        for (const OpId op : block.ops) {
            for (const ValueId id : function[op].results)
                add(id);
        }
    }
    std::stable_sort(arrays.begin(), arrays.end(),
        [](const ProgramArray& a, const ProgramArray& b) { return rankOf(a.role) < rankOf(b.role); });
    return arrays;
}

template <typename T>
std::shared_ptr<const T> kept(Result<T> result, Problems& problems)
{
    if (!result) {
        append(problems, result.error());
        return nullptr;
    }
    return std::make_shared<const T>(*std::move(result));
}

} // namespace

const ProgramArray* Analysis::findArray(const std::string& name) const
{
    const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const ProgramArray& array) { return array.name == name; });
    return found == arrays.end() ? nullptr : &*found;
}

std::string Analysis::reasonOf(const ProgramArray& array) const
{
    const auto& functions = built->partitioned.propagated.functions;
    const auto function
        = std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.name == built->mainFunction; });
    const auto index = static_cast<std::size_t>(function - functions.begin());
    return explainSharding(*function, built->partitioned.reports[index], mesh(), array.value);
}

namespace {

/// Puts the mesh on the machine and predicts the step. Precondition: built, with a machine that is large enough.
void placeAndSimulate(Analysis& analysis)
{
    analysis.placement = kept(placementOf(*analysis.study, analysis.mesh(), *analysis.machine), analysis.problems);
    if (analysis.placement)
        analysis.simulated = kept(simulateStep(*analysis.built, *analysis.scheduled, *analysis.machine), analysis.problems);
}

} // namespace

namespace {

/// The prediction of a study whose step is told by formulas; that it is only simulated is a warning.
void addClosedForm(Analysis& analysis, const Catalogue& catalogue, bool isLargeEnough)
{
    const Study& study = *analysis.study;
    if (isLargeEnough)
        analysis.placement = kept(placementOf(study, valueOf(meshOf(study)), *analysis.machine), analysis.problems);
    if (analysis.placement)
        analysis.simulated = kept(closedFormStep(study, catalogue), analysis.problems);
    else if (const auto plan = planOf(study); !plan) // the formulas must have a use for every axis
        append(analysis.problems, plan.error());
    if (analysis.simulated)
        append(analysis.problems, lintsOnMachine(analysis));
    Problems only = buildPhase(study).error();
    for (Problem& problem : only)
        problem.severity = Severity::Warning;
    append(analysis.problems, std::move(only));
}

} // namespace

Session::Session(Catalogue catalogue)
    : m_catalogue(std::move(catalogue))
{
}

std::shared_ptr<const Analysis> Session::analyse(const StudySource& source, const std::stop_token& stop)
{
    {
        const std::lock_guard lock(m_mutex);
        const auto found = std::find_if(
            m_remembered.begin(), m_remembered.end(), [&](const auto& analysis) { return analysis->source == source; });
        if (found != m_remembered.end()) {
            std::rotate(found, found + 1, m_remembered.end());
            return m_remembered.back();
        }
    }
    auto analysis = analysed(source, m_catalogue, stop);
    if (analysis) {
        const std::lock_guard lock(m_mutex);
        if (m_remembered.size() == kRememberedAnalyses)
            m_remembered.erase(m_remembered.begin());
        m_remembered.push_back(analysis);
    }
    return analysis;
}

std::shared_ptr<const Analysis> analysed(const StudySource& source, const Catalogue& catalogue, const std::stop_token& stop)
{
    auto analysis = std::make_shared<Analysis>();
    analysis->source = source;
    analysis->problems = examineStudy(source.text, source.file, source.settings);
    if (hasErrors(analysis->problems) || stop.stop_requested())
        return stop.stop_requested() ? nullptr : analysis;
    const auto study = std::make_shared<const Study>(valueOf(readStudy(source.text, source.file, source.settings)));
    analysis->study = study;
    const Problems missing = checkFiles(*study);
    append(analysis->problems, missing);

    bool isLargeEnough = false;
    if (study->hardware)
        analysis->machine = kept(machineOf(*study, catalogue), analysis->problems);
    if (analysis->machine) {
        Problems tooLarge = checkMeshFits(*study, analysis->machine->deviceCount());
        isLargeEnough = tooLarge.empty();
        append(analysis->problems, std::move(tooLarge));
    }
    if (stop.stop_requested())
        return nullptr;
    if (hasErrors(missing))
        return analysis;
    if (isOnlySimulated(*study)) {
        addClosedForm(*analysis, catalogue, isLargeEnough);
        return analysis;
    }
    analysis->built = kept(buildPhase(*study), analysis->problems);
    if (stop.stop_requested())
        return nullptr;
    if (!analysis->built)
        return analysis;
    append(analysis->problems, analysis->built->warnings);
    analysis->arrays = arraysOf(*analysis->built);
    analysis->scheduled = std::make_shared<const ScheduledFunction>(scheduleStep(*analysis->built));
    if (isLargeEnough && !stop.stop_requested())
        placeAndSimulate(*analysis);
    // Behind what explains why something is missing.
    append(analysis->problems, lintsOfPhase(*study, *analysis->built));
    if (analysis->simulated)
        append(analysis->problems, lintsOnMachine(*analysis));
    return stop.stop_requested() ? nullptr : analysis;
}

} // namespace meshwright::sim
