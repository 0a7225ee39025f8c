// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/devices/collectives.h"
#include "core/timeline/timeline.h"

#include <string>
#include <vector>

namespace meshwright {

/// What one device did for one instruction. All devices of a run make the same list of these.
struct Recorded {
    std::uint32_t instruction = 0; ///< index into the instructions' descriptions
    double askedCore = 0.0; ///< wall, when it was ready to compute; equal to `times.started` when it had a core already
    CollectiveTimes times; ///< compute: from `started` to `finished`
};

/// Makes all times so much later.
void shiftTimes(std::vector<Recorded>& records, double seconds);

/// What the timelines say of an instruction.
struct RecordedInstruction {
    std::string name;
    std::string detail;
    SliceCategory category = SliceCategory::Compute;
    std::int64_t bytes = 0;
    std::int64_t bytesInUse = 0; ///< of the device's arena while it runs, as planned
    const Collective* collective = nullptr; ///< that meets others; else nullptr
    bool isAsynchronous = false; ///< goes on beside what comes after it, until an instruction that waits for it
    bool isWait = false; ///< for `collective`
};

/// Slices as they happened, from the start of the run.
Timeline measuredTimeline(
    const std::vector<std::vector<Recorded>>& devices, const std::vector<RecordedInstruction>& instructions, double startSeconds);

/// The same run with a core for every device.
Timeline replayedTimeline(
    const std::vector<std::vector<Recorded>>& devices, const std::vector<RecordedInstruction>& instructions);

} // namespace meshwright
