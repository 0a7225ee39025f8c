// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/interrupt.h"
#include "app/cli/verbs.h"

#include "core/support/file.h"
#include "core/support/text.h"
#include "sim/report/results.h"
#include "sim/report/trace.h"
#include "sim/session/engine.h"

#include <fmt/format.h>

#include <unistd.h>

#include <chrono>

namespace meshwright::cli {

namespace {

/// Says how far training is: one line that is written over on a terminal, otherwise a line now and then.
class ProgressLine {
public:
    explicit ProgressLine(bool quiet)
        : m_quiet(quiet)
    {
    }

    void show(const TrainingProgress& progress)
    {
        if (m_quiet)
            return;
        const bool isLast = progress.step == progress.steps;
        const std::string text = fmt::format("step {}/{}  loss {:.5g}  accuracy {:.1f} %  {} samples/s", progress.step,
            progress.steps, progress.loss, 100.0 * progress.accuracy, formatCount(progress.samplesPerSecond));
        if (!m_onTerminal) {
            if (isLast || progress.step >= m_next) {
                fmt::print(stderr, "{}\n", text);
                m_next = progress.step + std::max<std::int64_t>(1, progress.steps / 10);
            }
            return;
        }
        const auto now = Clock::now();
        const bool isDue = now - m_start > std::chrono::seconds(1) && now - m_shown > std::chrono::milliseconds(100);
        if (isDue || (isLast && m_shown != Clock::time_point{})) {
            constexpr std::int64_t kWidth = 24;
            const auto done = static_cast<std::size_t>(kWidth * progress.step / std::max<std::int64_t>(1, progress.steps));
            fmt::print(
                stderr, "\r\033[K[{}{}] {}{}", std::string(done, '='), std::string(kWidth - done, ' '), text, isLast ? "\n" : "");
            m_shown = now;
        }
    }

private:
    using Clock = std::chrono::steady_clock;
    bool m_quiet;
    bool m_onTerminal = isatty(STDERR_FILENO) == 1;
    Clock::time_point m_start = Clock::now();
    Clock::time_point m_shown;
    std::int64_t m_next = 1;
};

} // namespace

int runTrain(const TrainOptions& options, Output& output)
{
    const auto study = loadStudy(options.study, options.settings);
    if (!study)
        return fail(study.error(), output);

    InterruptWatcher interrupt;
    ProgressLine line(output.quiet);
    const auto result = sim::trainStudy(
        *study, {.verify = options.verify, .record = !options.trace.empty(), .permits = options.permits},
        [&](const TrainingProgress& progress) { line.show(progress); }, interrupt.token());
    if (!result)
        return fail(result.error(), output);

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
