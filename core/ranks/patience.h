// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace meshwright {

/// Gives the core away, at first for as little as it can be: with more devices than cores, whoever is waited for needs one.
class Patience {
public:
    void wait()
    {
        wait([](std::chrono::microseconds time) { std::this_thread::sleep_for(time); });
    }

    /// The same with another way to sleep, which may end sooner.
    template <typename Sleep>
    void wait(const Sleep& sleep)
    {
        constexpr int kYields = 64;
        constexpr std::chrono::microseconds kMost(200);
        if (m_yields < kYields) {
            ++m_yields;
            std::this_thread::yield();
            return;
        }
        sleep(m_sleep);
        m_sleep = std::min(2 * m_sleep, kMost);
    }

private:
    int m_yields = 0;
    std::chrono::microseconds m_sleep{10};
};

} // namespace meshwright
