// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/verbs.h"

#include "core/support/file.h"
#include "core/support/text.h"
#include "sim/report/results.h"
#include "sim/report/trace.h"
#include "sim/session/engine.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::cli {

namespace {

/// What the flags say of the network, over what the study says. Problems: MW1903, MW1740.
Problems applyNetwork(const SimulateOptions& options, Study& study)
{
    Problems problems;
    if (!options.fidelity.empty() && !sim::findFidelity(options.fidelity))
        problems.push_back({"MW1903", fmt::format("--fidelity: \"{}\" is not allowed here", options.fidelity),
            "one of: closed, fluid, message"});
    else if (!options.fidelity.empty())
        study.network.fidelity = options.fidelity;
    if (options.algorithm.empty())
        return problems;
    if (const auto algorithms = sim::parseAlgorithms(options.algorithm); !algorithms) {
        append(problems, algorithms.error());
        return problems;
    }
    study.network.algorithms.clear();
    for (const std::string& part : split(options.algorithm, ',')) {
        const std::size_t equals = part.find('=');
        if (equals == std::string::npos)
            study.network.algorithms.emplace_back("", part);
        else
            study.network.algorithms.emplace_back(part.substr(0, equals), part.substr(equals + 1));
    }
    return problems;
}

} // namespace

int runSimulate(const SimulateOptions& options, Output& output)
{
    const auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return fail(catalogue.error(), output);

    Study none;
    if (Problems flags = applyNetwork(options, none); !flags.empty())
        return fail(flags, output);

    std::vector<sim::SimulatedStudy> studies;
    Problems problems;
    for (const std::string& path : options.studies) {
        auto study = loadStudy(path, options.settings);
        if (!study) {
            append(problems, study.error());
            continue;
        }
        applyNetwork(options, *study);
        auto simulated = sim::simulateStudy(*study, *catalogue);
        if (!simulated)
            append(problems, simulated.error());
        else
            studies.push_back(*std::move(simulated));
    }
    if (!problems.empty())
        return fail(problems, output);

    if (!options.trace.empty()) {
        std::vector<sim::NamedTimeline> timelines;
        for (const sim::SimulatedStudy& study : studies) {
            if (study.simulation.timeline.slices().empty())
                return fail({Problem{"MW1913",
                                fmt::format("\"{}\" has no timeline to write: its step is predicted by formulas", study.name),
                                "leave --trace out; a study in one stage and one microbatch has a timeline", Place{study.file}}},
                    output);
        }
        for (const sim::SimulatedStudy& study : studies)
            timelines.push_back({fmt::format("{} on {}", study.name, study.simulation.machine), &study.simulation.timeline});
        if (const auto written = writeFileAtomically(options.trace, sim::traceJson(timelines)); !written)
            return fail(written.error(), output);
    }
    if (output.format == Format::Json)
        output.result(sim::simulationJson(studies));
    else if (output.format == Format::Csv)
        output.result(sim::simulationCsv(studies));
    else
        output.result(studies.size() == 1 ? sim::simulationText(studies.front()) : sim::simulationTable(studies));
    const bool allFit
        = std::all_of(studies.begin(), studies.end(), [](const sim::SimulatedStudy& study) { return study.simulation.fits; });
    return allFit ? kExitOk : kExitInfeasible;
}

} // namespace meshwright::cli
