// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/progress_line.h"

#include "app/terminal/output.h"
#include "core/support/escape.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <string>

namespace meshwright::cli {

ProgressLine::ProgressLine(bool quiet)
    : m_quiet(quiet)
    , m_onTerminal(isatty(STDERR_FILENO) == 1)
{
}

void ProgressLine::show(const TrainingProgress& progress)
{
    show(progress.step, progress.steps,
        fmt::format("step {}/{}  loss {:.5g}  accuracy {:.1f} %  {} samples/s", progress.step, progress.steps, progress.loss,
            100.0 * progress.accuracy, formatCount(progress.samplesPerSecond)));
}

void ProgressLine::show(std::int64_t done, std::int64_t all, const std::string& text)
{
    if (m_quiet)
        return;
    if (m_onTerminal) {
        showOnTerminal(done, all, text);
    } else if (done == all || done >= m_next) {
        say(printable(text) + "\n");
        m_next = done + std::max<std::int64_t>(1, all / 10);
    }
}

double ProgressLine::seconds() const
{
    return std::chrono::duration<double>(Clock::now() - m_start).count();
}

void ProgressLine::showOnTerminal(std::int64_t done, std::int64_t all, const std::string& text)
{
    const bool isLast = done == all;
    const auto now = Clock::now();
    const bool isDue = now - m_start > std::chrono::seconds(1) && now - m_shown > std::chrono::milliseconds(100);
    if (!isDue && !(isLast && m_shown != Clock::time_point{}))
        return;
    constexpr std::int64_t kWidth = 24;
    const auto filled = static_cast<std::size_t>(kWidth * done / std::max<std::int64_t>(1, all));
    say(fmt::format(
        "\r\033[K[{}{}] {}{}", std::string(filled, '='), std::string(kWidth - filled, ' '), printable(text), isLast ? "\n" : ""));
    m_shown = now;
}

} // namespace meshwright::cli
