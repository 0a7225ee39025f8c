// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/timed_stop.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace meshwright {

TimedStop::TimedStop(std::stop_token outer, std::optional<double> seconds)
    : m_outer(std::move(outer), [this] { m_source.request_stop(); })
{
    if (!seconds)
        return;
    const auto until = std::chrono::steady_clock::now()
        + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>(std::clamp(*seconds, 0.0, kLongestWaitSeconds)));
    m_timer = std::jthread([this, until](const std::stop_token& ends) {
        std::mutex mutex;
        std::condition_variable_any wakes;
        std::unique_lock lock(mutex);
        wakes.wait_until(lock, ends, until, [] { return false; });
        if (!ends.stop_requested())
            m_source.request_stop();
    });
}

} // namespace meshwright
