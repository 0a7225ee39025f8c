// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <functional>
#include <optional>
#include <stop_token>
#include <thread>

namespace meshwright {

/// The longest wait that is taken: clocks count nanoseconds in 63 bits.
inline constexpr double kLongestWaitSeconds = 1e9;

/// What work that was stopped before it had its result says; without an id, since nobody did anything wrong.
inline Problem stoppedProblem()
{
    return {"", "stopped before it was done"};
}

/// Asks for a stop when somebody else does, or when a time is over: one token for whoever works against both.
class TimedStop {
public:
    /// `seconds` from now; nothing: only `outer` stops.
    explicit TimedStop(std::stop_token outer, std::optional<double> seconds = {});
    TimedStop(const TimedStop&) = delete;
    TimedStop& operator=(const TimedStop&) = delete;

    std::stop_token token() const { return m_source.get_token(); }

private:
    std::stop_source m_source;
    std::stop_callback<std::function<void()>> m_outer;
    std::jthread m_timer; ///< last: it ends before what it uses
};

} // namespace meshwright
