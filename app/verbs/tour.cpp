// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/interrupt.h"
#include "app/verbs/verbs.h"

#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/support/text.h"
#include "sim/session/report_of.h"

#include <fmt/format.h>

namespace meshwright::cli {

namespace {

/// A step and the three parts that add up to it: computing, waiting for collectives, and waiting for the host to start kernels.
std::string oneSimulation(const sim::SimulatedStudy& study)
{
    const sim::Simulation& s = study.simulation;
    return fmt::format("  {:<35} step {:>8}  compute {:>8}  collectives {:>8}  host {:>8}  bound by {}\n", s.machine,
        formatSeconds(s.stepSeconds), formatSeconds(s.computeSeconds), formatSeconds(s.exposedSeconds),
        formatSeconds(s.launchSeconds), s.boundBy.text());
}

Result<std::string> simulations(const std::filesystem::path& file, const sim::Catalogue& catalogue)
{
    std::string text;
    const std::vector<std::vector<std::string>> machines = {{}, {"hardware={chip: h100, hosts: 1, per_host: 8}"}};
    for (const auto& settings : machines) {
        const auto study = loadStudy(file, settings);
        if (!study)
            return study.error();
        const auto simulated = sim::simulateStudy(*study, catalogue);
        if (!simulated)
            return simulated.error();
        text += oneSimulation(*simulated);
    }
    return text;
}

std::string collectiveSummary(const TrainingResult& result)
{
    std::string text;
    for (const CountedCollective& counted : result.phases.front().collectives) {
        constexpr std::int64_t kScalarBytes = 8;
        if (counted.use.payloadBytes <= kScalarBytes)
            continue; // loss and accuracy
        text += fmt::format("  {:<11} over {:<6} {:>9}  {:<9} {}\n", opName(counted.use.kind), counted.use.axes,
            formatBytes(counted.use.payloadBytes), phaseName(counted.use.phase), counted.use.cause.value);
    }
    return text;
}

/// The report of a study, with what training it measured.
Result<Done> writeTourReport(
    const std::string& file, const std::filesystem::path& study, const sim::Catalogue& catalogue, const TrainingResult& trained)
{
    const auto text = readFile(study);
    if (!text)
        return text.error();
    sim::Session session(catalogue);
    const auto analysis = session.analyse({*text, study.string(), {}});
    return writeFileAtomically(file, sim::reportHtml(sim::reportOf(*analysis, {.training = sim::measuredTraining(trained)})));
}

} // namespace

int runTour(const TourOptions& options, Output& output)
{
    const std::filesystem::path examples = resourcesDirectory() / "examples";
    const auto study = loadStudy(examples / "digits.yaml");
    if (!study)
        return fail(study.error(), output);
    const auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return fail(catalogue.error(), output);

    InterruptWatcher interrupt;
    output.narrate("training the handwritten digits on 8 virtual devices ...");
    const auto trained = sim::trainStudy(*study, {.verify = true}, {}, interrupt.token());
    if (!trained)
        return interrupt.fail(trained.error(), output);
    if (trained->interrupted)
        return interrupt.exitCode();
    const auto small = simulations(examples / "digits.yaml", *catalogue);
    const auto wide = simulations(examples / "wide_mlp.yaml", *catalogue);
    if (!small || !wide)
        return fail(small ? wide.error() : small.error(), output);

    const TrainingResult& t = *trained;
    std::string text = fmt::format("Trained: {} (64 -> 256 -> 256 -> 10, 1,797 images of 8x8)\n", study->name);
    text += fmt::format("  mesh {} of {} threads, batch {}, {} steps in {}: {} samples/s\n", t.phases.front().mesh, t.devices,
        study->batch, t.phases.front().steps,
        formatSeconds(static_cast<double>(t.phases.front().steps * study->batch) / t.samplesPerSecond),
        formatCount(t.samplesPerSecond));
    text += fmt::format("  loss {:.4f} -> {:.4f}; {:.1f} % of {} held-out images recognised\n", t.losses.front(), t.losses.back(),
        100.0 * t.heldOutAccuracy.value_or(0.0), t.heldOutExamples);
    text += fmt::format("  equal to one device: {} ({} steps checked, largest error {:.1e} of the tensor's scale)\n",
        t.verification->passed ? "yes" : "NO", t.verification->checkedSteps.size(), t.verification->maxRelError());
    text += fmt::format("  memory of a device, as planned before the run: {}\n\n", formatBytes(t.stepArenaBytes));
    text += "Its specs cause these collectives in every step, beside two scalars (the study never mentions \"data parallel\"):\n"
        + collectiveSummary(t);
    text += "\nThe same program, simulated on other hardware:\n" + *small;
    text += "\nAnd at width 8192 (784 -> 8192 x 3 -> 10, batch 32768, bf16 products), where the answer flips:\n" + *wide;
    text += "\nNext: meshwright show --mesh data=4,model=2 --shape 8192x8192 --spec \"P('data', 'model')\"\n"
            "      meshwright simulate resources/examples/*.yaml          (README.md has the tour)\n";
    Result<Done> written = Done{};
    if (!options.report.empty())
        written = writeTourReport(options.report, examples / "digits.yaml", *catalogue, t);
    if (!options.report.empty() && written)
        text += fmt::format(
            "      {}   (all of it about the digits on a page; meshwright report writes one for any study)\n", options.report);
    output.result(text);
    if (!written)
        return failAfterResult(written.error(), output);
    return t.verification->passed ? kExitOk : kExitMismatch;
}

} // namespace meshwright::cli
