// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/terminal/output.h"

#include <atomic>
#include <csignal>
#include <stop_token>
#include <thread>

namespace meshwright::cli {

/// While it lives, Ctrl-C and SIGTERM ask for a stop instead of ending the program; a second one ends it at once.
class InterruptWatcher {
public:
    InterruptWatcher();
    ~InterruptWatcher();
    InterruptWatcher(const InterruptWatcher&) = delete;
    InterruptWatcher& operator=(const InterruptWatcher&) = delete;

    std::stop_token token() const { return m_source.get_token(); }

    /// The exit code after `problems`, which are printed: that of the signal, without a word, when there is nothing else than that the run was
    /// stopped (MW1507).
    int fail(const Problems& problems, Output& output) const;

    /// The exit code that the first signal asks for, 130 or 143; 0 when there was none.
    int exitCode() const { return m_exitCode; }

private:
    std::stop_source m_source;
    std::atomic<int> m_exitCode = 0;
    std::atomic<bool> m_ends = false; ///< of the watcher
    sigset_t m_before{};
    std::thread m_thread;
};

} // namespace meshwright::cli
