// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/train/trainer.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace meshwright::cli {

/// Says on standard error how far a training or a sweep is: one line that is written over on a terminal, otherwise a line now and then.
class ProgressLine {
public:
    explicit ProgressLine(bool quiet);

    void show(const TrainingProgress& progress);

    /// `text` says what there is after `done` of `all` (steps, points).
    void show(std::int64_t done, std::int64_t all, const std::string& text);

    double seconds() const; ///< since it was made

private:
    using Clock = std::chrono::steady_clock;

    void showOnTerminal(std::int64_t done, std::int64_t all, const std::string& text);

    bool m_quiet;
    bool m_onTerminal;
    Clock::time_point m_start = Clock::now();
    Clock::time_point m_shown;
    std::int64_t m_next = 1;
};

} // namespace meshwright::cli
