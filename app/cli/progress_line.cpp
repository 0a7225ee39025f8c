// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/progress_line.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace meshwright::cli {

ProgressLine::ProgressLine(bool quiet)
    : m_quiet(quiet)
    , m_onTerminal(isatty(STDERR_FILENO) == 1)
{
}

void ProgressLine::show(const TrainingProgress& progress)
{
    if (m_quiet)
        return;
    const bool isLast = progress.step == progress.steps;
    const std::string text = fmt::format("step {}/{}  loss {:.5g}  accuracy {:.1f} %  {} samples/s", progress.step, progress.steps,
        progress.loss, 100.0 * progress.accuracy, formatCount(progress.samplesPerSecond));
    if (m_onTerminal) {
        showOnTerminal(progress, text);
    } else if (isLast || progress.step >= m_next) {
        fmt::print(stderr, "{}\n", text);
        m_next = progress.step + std::max<std::int64_t>(1, progress.steps / 10);
    }
}

void ProgressLine::showOnTerminal(const TrainingProgress& progress, const std::string& text)
{
    const bool isLast = progress.step == progress.steps;
    const auto now = Clock::now();
    const bool isDue = now - m_start > std::chrono::seconds(1) && now - m_shown > std::chrono::milliseconds(100);
    if (!isDue && !(isLast && m_shown != Clock::time_point{}))
        return;
    constexpr std::int64_t kWidth = 24;
    const auto done = static_cast<std::size_t>(kWidth * progress.step / std::max<std::int64_t>(1, progress.steps));
    fmt::print(stderr, "\r\033[K[{}{}] {}{}", std::string(done, '='), std::string(kWidth - done, ' '), text, isLast ? "\n" : "");
    m_shown = now;
}

} // namespace meshwright::cli
