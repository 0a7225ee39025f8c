// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/interrupt.h"
#include "app/terminal/metrics_file.h"
#include "app/terminal/progress_line.h"
#include "app/terminal/rank_job.h"
#include "app/verbs/fault_flags.h"
#include "app/verbs/study_file.h"
#include "app/verbs/verbs.h"

#include "core/support/file.h"
#include "core/support/json_text.h"
#include "core/support/text.h"
#include "core/train/training_function.h"
#include "sim/calibrate/host_measure.h"
#include "sim/calibrate/host_predict.h"
#include "sim/calibrate/host_reference.h"
#include "sim/report/results.h"
#include "sim/report/trace.h"
#include "sim/session/engine.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <csignal>

namespace meshwright::cli {

namespace {

sim::TrainChoices choicesOf(const TrainOptions& options, FaultOptions faults, EngineKind engine)
{
    sim::TrainChoices choices{.verify = options.verify,
        .prove = options.proves,
        .record = !options.trace.empty(),
        .typical = options.predict,
        .permits = options.permits};
    choices.engine = engine;
    choices.faults = std::move(faults);
    choices.stallSeconds = options.faults.stallTimeout;
    if (!options.checkpoint.empty())
        choices.checkpoints = CheckpointPlan{options.checkpoint, options.every, static_cast<std::size_t>(options.keep)};
    choices.resume = options.resume;
    if (options.deviceMemory > 0)
        choices.deviceMemoryBytes = options.deviceMemory;
    return choices;
}

/// A typical one of the last steps, predicted from a profile of this computer; nothing when none was measured.
Result<std::optional<sim::HostComparison>> compare(
    const Study& study, const TrainingResult& result, const sim::HostProfile& profile)
{
    const auto phases = sim::trainingPhases(study);
    if (!phases)
        return phases.error();
    if (result.typicalTime.slices().empty() || result.interrupted)
        return std::optional<sim::HostComparison>();
    const ScheduledProgram& scheduled = phases->back().scheduled;
    return std::optional(sim::HostComparison{wholeMesh(phases->back()).text(), sim::predictHost(scheduled, profile),
        sim::measuredHost(scheduled, result.typicalTime)});
}

Result<sim::HostProfile> profileOf(const TrainOptions& options, Output& output, const std::stop_token& stop)
{
    if (!options.profile.empty())
        return sim::readHostProfile(options.profile);
    output.narrate("measuring this computer (give --profile to use an earlier measurement)");
    return sim::measureHost({.permits = options.permits}, stop);
}

/// `predicted` added to the JSON object of a result.
std::string withPrediction(const std::string& json, const sim::HostComparison& comparison)
{
    auto object = parsedJson(json);
    object["prediction"] = parsedJson(sim::hostComparisonJson(comparison));
    return jsonText(object);
}

/// The command that goes on from the last complete checkpoint; empty when there is none.
std::string resumeCommand(const TrainOptions& options, const Ranks* ranks)
{
    const std::string& folder = options.checkpoint.empty() ? options.resume : options.checkpoint;
    if (folder.empty() || !CheckpointReader::open(folder))
        return "";
    std::string command = launcherText(ranks) + "meshwright train " + shellQuoted(options.study);
    for (const std::string& setting : options.settings)
        command += " --set " + shellQuoted(setting);
    if (!options.checkpoint.empty())
        command += fmt::format(" --checkpoint {}{}", shellQuoted(options.checkpoint),
            options.every > 0 ? fmt::format(" --every {}", options.every) : "");
    return command + " --resume " + shellQuoted(folder);
}

/// As one of several processes, or alone. All have the same options, which decide what is computed; the first one writes the files.
int trainAs(const std::shared_ptr<Ranks>& ranks, const TrainOptions& options, Output& output)
{
    const bool isFirst = ranks == nullptr || ranks->isFirst();
    auto faults = faultOptions(options.faults);
    if (!faults)
        return fail(faults.error(), output);
    const auto engine = parseEngine(options.engine);
    if (!engine)
        return fail(engine.error(), output);
    Problems warnings;
    auto study = readStudyFile(options.study, options.settings, output, &warnings);
    if (!study)
        return fail(study.error(), output);
    if (isFirst)
        output.warn(warnings);
    if (!options.metrics.empty())
        study->train.gradientNorm = true;
    const auto metrics = MetricsFile::open(isFirst ? options.metrics : "", !options.resume.empty());
    if (!metrics)
        return fail(metrics.error(), output);

    InterruptWatcher interrupt;
    std::optional<sim::HostProfile> profile;
    if (options.predict && isFirst) {
        auto found = profileOf(options, output, interrupt.token());
        if (!found)
            return interrupt.fail(found.error(), output);
        profile = *std::move(found);
    }
    ProgressLine line(output.quiet || output.silent);
    sim::TrainChoices choices = choicesOf(options, *std::move(faults), *engine);
    choices.ranks = ranks;
    std::unique_ptr<sim::HostReference> reference;
    if (profile) {
        auto made = sim::HostReference::create(profile->permits);
        if (!made)
            return fail(made.error(), output);
        reference = *std::move(made);
        choices.besides = [&reference, &interrupt] { static_cast<void>(reference->run(interrupt.token())); };
    }
    const auto write = [&](const TrainingProgress& progress) {
        // A training is worth more than its metrics.
        if (const auto written = (*metrics)->write(progress); !written) {
            output.warn(written.error());
            output.narrate("the training continues without metrics");
        }
    };
    std::optional<TrainingProgress> last; // what is held out is measured behind the last step
    const auto result = sim::trainStudy(
        *study, choices,
        [&](const TrainingProgress& progress) {
            line.show(progress);
            if (progress.step == progress.steps)
                last = progress;
            else
                write(progress);
        },
        interrupt.token());
    if (last) {
        if (result && !result->heldOut.empty() && result->heldOut.back().step == last->step)
            last->heldOut = result->heldOut.back();
        write(*last);
    }
    if (!result) {
        const int code = interrupt.fail(result.error(), output);
        if (const std::string command = code == kExitFailed ? resumeCommand(options, ranks.get()) : ""; !command.empty())
            output.narrate("resume with: " + command);
        return code;
    }
    Problems unwritten; // a finished result is shown whatever could not be written beside it
    if (const auto written = (*metrics)->finish(); !written)
        append(unwritten, written.error());
    // Of several processes the signal may have come to another one.
    const int interrupted = interrupt.exitCode() != 0 ? interrupt.exitCode() : 128 + SIGTERM;
    if (!isFirst)
        return result->interrupted ? interrupted : kExitOk;

    if (!result->warnings.empty())
        output.warn(result->warnings);
    if (result->checkpoint)
        output.narrate(fmt::format("checkpoint: {}", result->checkpoint->string()));
    if (!options.trace.empty()) {
        std::vector<sim::NamedTimeline> timelines
            = {{"measured (virtual clock)", &result->virtualTime}, {"measured (wall clock)", &result->wall}};
        if (!result->initialisation.rows().empty())
            timelines.push_back({"initialisation (wall clock)", &result->initialisation});
        if (const auto written = writeFileAtomically(options.trace, sim::traceJson(timelines)); !written)
            append(unwritten, written.error());
    }
    std::string json = sim::trainingJson(*result);
    std::string text = sim::trainingText(*result);
    if (profile) {
        const auto comparison = compare(*study, *result, sim::atSpeed(*profile, reference->speed()));
        if (!comparison)
            append(unwritten, comparison.error());
        else if (!*comparison)
            output.narrate("no complete step was measured to compare with the prediction");
        else {
            json = withPrediction(json, **comparison);
            text += sim::hostComparisonText(**comparison);
        }
    }
    if (!options.result.empty()) {
        if (const auto written = writeFileAtomically(options.result, json); !written)
            append(unwritten, written.error());
    }
    output.result(output.format == Format::Json ? json : text);
    if (!unwritten.empty())
        return failAfterResult(unwritten, output);
    if (result->interrupted)
        return interrupted;
    return result->verification && !result->verification->passed ? kExitMismatch : kExitOk;
}

} // namespace

int runTrain(const TrainOptions& options, Output& output)
{
    return runTogether(
        output, options.study, [&](const std::shared_ptr<Ranks>& ranks, Output& own) { return trainAs(ranks, options, own); });
}

} // namespace meshwright::cli
