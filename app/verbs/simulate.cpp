// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/study_file.h"
#include "app/verbs/verbs.h"

#include "core/support/file.h"
#include "core/support/text.h"
#include "sim/chakra/folder.h"
#include "sim/chakra/step_traces.h"
#include "sim/report/results.h"
#include "sim/report/trace.h"
#include "sim/session/engine.h"
#include "sim/simulate/step_graph.h"

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

/// Problems: MW1904, MW1903.
Problems whatToSimulate(const SimulateOptions& options)
{
    Problems problems;
    const auto missing = [&](const char* what, const char* fix) {
        problems.push_back({"MW1904", fmt::format("{} is missing", what), fix});
    };
    const bool replays = !options.chakraIn.empty();
    if (!replays && options.studies.empty())
        missing("STUDY", "`meshwright simulate --help` shows examples");
    if (replays && options.hardware.empty())
        missing("--hw", "name the hardware to replay the traces on: --hw h100x8");
    if (replays && (!options.studies.empty() || !options.settings.empty() || !options.chakra.empty()))
        problems.push_back({"MW1903", "--chakra-in cannot be combined with a study or its options",
            "replay traces and simulate studies in separate commands"});
    if (!options.chakra.empty() && options.studies.size() > 1)
        problems.push_back(
            {"MW1903", fmt::format("--chakra writes the traces of one step, and there are {} studies", options.studies.size()),
                "simulate one study at a time, each with its own folder"});
    return problems;
}

/// Problems: those of `StepTraces::create` and `writeChakraFolder`.
Result<Done> writeTraces(const sim::StepGraph& graph, const sim::SimulatedStudy& study, const std::string& folder, Output& output)
{
    const auto traces = sim::StepTraces::create(graph);
    if (!traces)
        return inFile(traces.error(), study.file);
    auto written = sim::writeChakraFolder(*traces, folder);
    if (written)
        output.narrate(
            fmt::format("wrote the traces of {} ranks, {} nodes in all, to {}", traces->ranks(), traces->nodes(), folder));
    return written;
}

} // namespace

int runSimulate(const SimulateOptions& options, Output& output)
{
    const auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return fail(catalogue.error(), output);

    Study none;
    Problems flags = applyNetwork(options, none);
    append(flags, whatToSimulate(options));
    if (!flags.empty())
        return fail(flags, output);
    if (!options.chakraIn.empty())
        return runReplay(options, *catalogue, sim::networkOf(none), output);

    std::vector<sim::SimulatedStudy> studies;
    sim::StepGraph graph;
    Problems problems;
    std::vector<std::string> settings = options.settings;
    if (!options.hardware.empty())
        settings.insert(settings.begin(), "hardware=" + options.hardware);
    for (const std::string& path : options.studies) {
        auto study = readStudyFile(path, settings, output);
        if (!study) {
            append(problems, study.error());
            continue;
        }
        applyNetwork(options, *study);
        auto simulated = sim::simulateStudy(*study, *catalogue,
            {.graph = options.chakra.empty() ? nullptr : &graph, .timeline = !options.trace.empty()}, options.proves);
        if (!simulated)
            append(problems, simulated.error());
        else
            studies.push_back(*std::move(simulated));
    }
    if (!problems.empty())
        return fail(problems, output);

    Problems unwritten; // a full disk, say; the result is shown all the same
    if (!options.chakra.empty()) {
        if (const auto written = writeTraces(graph, studies.front(), options.chakra, output); !written) {
            if (written.error().front().id != "MW1007")
                return fail(written.error(), output);
            unwritten = written.error();
        }
    }
    if (!options.trace.empty()) {
        std::vector<sim::NamedTimeline> timelines;
        for (const sim::SimulatedStudy& study : studies)
            timelines.push_back(
                {fmt::format("{} on {}", sim::titleOf(study), study.simulation.machine), &study.simulation.timeline});
        if (const auto written = writeFileAtomically(options.trace, sim::traceJson(timelines)); !written)
            append(unwritten, written.error());
    }
    if (output.format == Format::Json)
        output.result(sim::simulationJson(studies));
    else if (output.format == Format::Csv)
        output.result(sim::simulationCsv(studies));
    else
        output.result(studies.size() == 1 ? sim::simulationText(studies.front()) : sim::simulationTable(studies));
    if (!unwritten.empty())
        return failAfterResult(unwritten, output);
    const bool allFit
        = std::all_of(studies.begin(), studies.end(), [](const sim::SimulatedStudy& study) { return study.simulation.fits; });
    return allFit ? kExitOk : kExitInfeasible;
}

} // namespace meshwright::cli
