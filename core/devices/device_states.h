// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace meshwright {

/// How a device is at some moment of a run.
struct DeviceState {
    std::int64_t device = 0;
    bool isWaiting = false;
    bool hasFinished = false;
    std::uint32_t waits = 0; ///< how often it has begun to wait
    std::string place = {}; ///< what it waits in: "all_reduce of loss"
    std::string doing = {}; ///< what it was about to do; empty: not known
};

/// A group of devices that several processes have, as one of these sees it.
struct Meeting {
    std::int64_t number = 0; ///< the same on all of them
    std::int64_t begun = 0; ///< how often all of its members that are here have come to meet the others
    bool isAwaited = false; ///< not all of the others have come, the last time, as far as is known here
};

/// MW1506: nobody can move, although not all have finished. `states` are of all devices.
Problem stuckProblem(std::span<const DeviceState> states);

/// Since when devices have been waiting, by looks at them now and then.
class StallWatch {
public:
    using Clock = std::chrono::steady_clock;

    explicit StallWatch(double limitSeconds)
        : m_limit(limitSeconds)
    {
    }

    /// True when a device has waited for longer than the limit.
    bool look(std::span<const DeviceState> states);

    /// MW1522: who has not arrived, and who waits for them since the last look; nothing when nobody does. MW1506 when nobody is missing, and all
    /// who have not finished have waited for longer than the limit.
    std::optional<Problem> problem(std::span<const DeviceState> states) const;

private:
    struct Wait {
        std::uint32_t waits = 0;
        Clock::time_point since;
    };
    std::chrono::duration<double> m_limit;
    std::map<std::int64_t, Wait> m_waits; ///< by device
};

/// On the way to another process.
std::string writtenStates(std::span<const DeviceState> states);
std::vector<DeviceState> readStates(const std::string& text);

} // namespace meshwright
