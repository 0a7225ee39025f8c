// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/interrupt.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>

namespace meshwright::cli {

namespace {

sigset_t watchedSignals()
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR2); // wakes the watcher at the end
    return set;
}

} // namespace

InterruptWatcher::InterruptWatcher()
{
    const sigset_t set = watchedSignals();
    pthread_sigmask(SIG_BLOCK, &set, &m_before); // threads made from now on inherit it
    m_thread = std::thread([this] {
        const sigset_t watched = watchedSignals();
        int signal = 0;
        while (sigwait(&watched, &signal) == 0 && !m_ends) {
            if (signal == SIGUSR2)
                continue; // somebody else's
            if (m_source.stop_requested())
                _exit(128 + signal);
            m_exitCode = 128 + signal;
            m_source.request_stop();
        }
    });
}

InterruptWatcher::~InterruptWatcher()
{
    m_ends = true;
    pthread_kill(m_thread.native_handle(), SIGUSR2);
    m_thread.join();
    pthread_sigmask(SIG_SETMASK, &m_before, nullptr);
}

int InterruptWatcher::fail(const Problems& problems, Output& output) const
{
    const bool isOnlyStopped = m_exitCode != 0
        && std::all_of(problems.begin(), problems.end(), [](const Problem& problem) { return problem.id == "MW1507"; });
    if (!isOnlyStopped)
        return cli::fail(problems, output);
    if (output.onFailure) // other processes may not have been asked to stop
        output.onFailure(problems);
    output.narrate("interrupted");
    return m_exitCode;
}

} // namespace meshwright::cli
