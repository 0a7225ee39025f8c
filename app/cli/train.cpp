// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/fault_flags.h"
#include "app/cli/interrupt.h"
#include "app/cli/progress_line.h"
#include "app/cli/verbs.h"

#include "core/support/file.h"
#include "sim/report/results.h"
#include "sim/report/trace.h"
#include "sim/session/engine.h"

#include <fmt/format.h>

namespace meshwright::cli {

namespace {

sim::TrainChoices choicesOf(const TrainOptions& options, FaultOptions faults)
{
    sim::TrainChoices choices{.verify = options.verify, .record = !options.trace.empty(), .permits = options.permits};
    choices.faults = std::move(faults);
    choices.stallSeconds = options.faults.stallTimeout;
    if (!options.checkpoint.empty())
        choices.checkpoints = CheckpointPlan{options.checkpoint, options.every, static_cast<std::size_t>(options.keep)};
    choices.resume = options.resume;
    return choices;
}

/// An argument as a shell takes it.
std::string quoted(const std::string& argument)
{
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:+%@";
    if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos)
        return argument;
    std::string text = "'";
    for (const char c : argument)
        text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

/// The command that goes on from the last complete checkpoint; empty when there is none.
std::string resumeCommand(const TrainOptions& options)
{
    const std::string& folder = options.checkpoint.empty() ? options.resume : options.checkpoint;
    if (folder.empty() || !CheckpointReader::open(folder))
        return "";
    std::string command = "meshwright train " + quoted(options.study);
    for (const std::string& setting : options.settings)
        command += " --set " + quoted(setting);
    if (!options.checkpoint.empty())
        command += fmt::format(
            " --checkpoint {}{}", quoted(options.checkpoint), options.every > 0 ? fmt::format(" --every {}", options.every) : "");
    return command + " --resume " + quoted(folder);
}

} // namespace

int runTrain(const TrainOptions& options, Output& output)
{
    auto faults = faultOptions(options.faults);
    if (!faults)
        return fail(faults.error(), output);
    const auto study = loadStudy(options.study, options.settings);
    if (!study)
        return fail(study.error(), output);

    InterruptWatcher interrupt;
    ProgressLine line(output.quiet);
    const auto result = sim::trainStudy(
        *study, choicesOf(options, *std::move(faults)), [&](const TrainingProgress& progress) { line.show(progress); },
        interrupt.token());
    if (!result) {
        const int code = fail(result.error(), output);
        if (const std::string command = code == kExitFailed ? resumeCommand(options) : ""; !command.empty())
            output.narrate("go on with: " + command);
        return code;
    }

    if (!result->warnings.empty())
        output.narrate(describe(result->warnings));
    if (result->checkpoint)
        output.narrate(fmt::format("checkpoint: {}", result->checkpoint->string()));
    if (!options.trace.empty()) {
        const std::string trace
            = sim::traceJson({{"measured (virtual clock)", &result->virtualTime}, {"measured (wall clock)", &result->wall}});
        if (const auto written = writeFileAtomically(options.trace, trace); !written)
            return fail(written.error(), output);
    }
    if (!options.result.empty()) {
        if (const auto written = writeFileAtomically(options.result, sim::trainingJson(*result)); !written)
            return fail(written.error(), output);
    }
    output.result(output.format == Format::Json ? sim::trainingJson(*result) : sim::trainingText(*result));
    if (result->interrupted)
        return interrupt.exitCode();
    return result->verification && !result->verification->passed ? kExitMismatch : kExitOk;
}

} // namespace meshwright::cli
