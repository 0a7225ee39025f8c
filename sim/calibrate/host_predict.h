// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"
#include "core/timeline/timeline.h"
#include "sim/calibrate/host_work.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace meshwright::sim {

/// Seconds in virtual time of one step, by class; of a device, the mean over the devices.
struct HostSeconds {
    std::array<double, kHostClasses> byClass{};
    double total = 0.0; ///< of the step: the sum, in virtual time the end of the last device

    /// What the classes so far leave of it is waiting: the time in which a device does nothing else. (A collective that goes on beside the
    /// computing is no loss.)
    void setTotal(double seconds);

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

/// What a scheduled step (SchedulePolicy::Host) takes in virtual time on the computer of the profile: every instruction by what it does
/// (`forEachWork`) times what that costs there, collectives beside the computing where the schedule has them so, and waiting for the slowest of
/// equal devices.
///
/// Without `overlaps` collectives are done before what comes after them, as in the replay of a pipeline's tasks.
HostSeconds predictHost(const ScheduledFunction& scheduled, const Mesh& mesh, const HostProfile& profile, bool overlaps = true);

/// The same of a whole training step: of the function "step", or of a pipeline's tasks in their order, each when its message has come. Messages take no
/// time. Precondition: the program has a function "step", or tasks.
HostSeconds predictHost(const ScheduledProgram& scheduled, const HostProfile& profile);

/// A step's virtual timeline (of a typical one, see LoadedFunction::typicalTimeline), sorted by the same classes: its slices carry the labels of the
/// instructions of the schedule.
HostSeconds measuredHost(const ScheduledProgram& scheduled, const Timeline& virtualTime);

/// As people read it, and as JSON: `{"classes": [{"class", "predicted_s", "measured_s"}], "predicted_s", "measured_s", "error"}`.
std::string hostComparisonText(const HostComparison& comparison);
std::string hostComparisonJson(const HostComparison& comparison);

} // namespace meshwright::sim
