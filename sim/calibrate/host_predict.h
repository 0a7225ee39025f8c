// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"
#include "core/timeline/timeline.h"
#include "sim/calibrate/host_profile.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace meshwright::sim {

/// What the instructions of a step are sorted by.
enum class HostClass : std::uint8_t { Products, Elementwise, Reductions, Optimizer, Collectives, Waiting };
inline constexpr std::size_t kHostClasses = 6;

/// "products", "element-wise", "reductions", "optimizer", "collectives" or "waiting".
const char* hostClassName(HostClass hostClass);

/// Seconds in virtual time of one step, by class; of a device, the mean over the devices.
struct HostSeconds {
    std::array<double, kHostClasses> byClass{};
    double total = 0.0; ///< of the step: the sum, in virtual time the end of the last device

    double of(HostClass hostClass) const { return byClass[static_cast<std::size_t>(hostClass)]; }
};

/// A step of this computer's virtual devices, predicted beside what was measured.
struct HostComparison {
    std::string mesh;
    HostSeconds predicted;
    HostSeconds measured;

    /// |predicted / measured - 1| of the totals; 0 when nothing was measured.
    double error() const;
};

/// What a scheduled step (SchedulePolicy::Host) takes in virtual time on the computer of the profile: products by their rate on the grid,
/// everything else by the larger of its bytes and its elements' arithmetic, each kernel with its start; collectives by their payload, of
/// which a gather or an exchange moves what an all-gather does and the others add up as an all-reduce. Devices do the same, and wait for the slowest of them by its spread.
/// Bytes and calls of the collectives are the program's own.
HostSeconds predictHost(const ScheduledFunction& scheduled, const Mesh& mesh, const HostProfile& profile);

/// A recorded step's virtual timeline, sorted by the same classes: its slices carry the labels of the schedule's instructions.
HostSeconds measuredHost(const ScheduledFunction& scheduled, const Timeline& virtualTime);

/// As people read it, and as JSON: `{"classes": [{"class", "predicted_s", "measured_s"}], "predicted_s", "measured_s", "error"}`.
std::string hostComparisonText(const HostComparison& comparison);
std::string hostComparisonJson(const HostComparison& comparison);

} // namespace meshwright::sim
