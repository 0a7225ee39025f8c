// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/interrupt.h"
#include "app/cli/metrics_file.h"
#include "app/cli/progress_line.h"
#include "app/cli/verbs.h"

#include "core/support/file.h"
#include "sim/report/results.h"
#include "sim/report/trace.h"
#include "sim/session/engine.h"

#include <fmt/format.h>

namespace meshwright::cli {

namespace {

sim::TrainChoices choicesOf(const TrainOptions& options)
{
    sim::TrainChoices choices{.verify = options.verify, .record = !options.trace.empty(), .permits = options.permits};
    if (!options.checkpoint.empty())
        choices.checkpoints = CheckpointPlan{options.checkpoint, options.every, static_cast<std::size_t>(options.keep)};
    choices.resume = options.resume;
    return choices;
}

} // namespace

int runTrain(const TrainOptions& options, Output& output)
{
    auto study = loadStudy(options.study, options.settings);
    if (!study)
        return fail(study.error(), output);
    if (!options.metrics.empty())
        study->train.gradientNorm = true;
    const auto metrics = MetricsFile::open(options.metrics, !options.resume.empty());
    if (!metrics)
        return fail(metrics.error(), output);

    InterruptWatcher interrupt;
    ProgressLine line(output.quiet);
    const auto result = sim::trainStudy(
        *study, choicesOf(options),
        [&](const TrainingProgress& progress) {
            line.show(progress);
            (*metrics)->write(progress);
        },
        interrupt.token());
    if (!result)
        return fail(result.error(), output);
    if (const auto written = (*metrics)->finish(); !written)
        return fail(written.error(), output);

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
