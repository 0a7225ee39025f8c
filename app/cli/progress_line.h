// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/train/trainer.h"

#include <chrono>
#include <cstdint>

namespace meshwright::cli {

/// Says on standard error how far training is: one line that is written over on a terminal, otherwise a line now and then.
class ProgressLine {
public:
    explicit ProgressLine(bool quiet);

    void show(const TrainingProgress& progress);

private:
    using Clock = std::chrono::steady_clock;

    void showOnTerminal(const TrainingProgress& progress, const std::string& text);

    bool m_quiet;
    bool m_onTerminal;
    Clock::time_point m_start = Clock::now();
    Clock::time_point m_shown;
    std::int64_t m_next = 1;
};

} // namespace meshwright::cli
