// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"
#include "sim/calibrate/host_profile.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace meshwright::sim {

/// What the instructions of a step are sorted by.
enum class HostClass : std::uint8_t { Products, Elementwise, Reductions, Optimizer, Collectives, Waiting };
inline constexpr std::size_t kHostClasses = 6;

/// "products", "element-wise", "reductions", "optimizer", "collectives" or "waiting".
const char* hostClassName(HostClass hostClass);

/// The class of an instruction that is not a loop.
HostClass hostClassOf(const Function& function, const Instruction& instruction);

/// One instruction of a step as it comes up, with what it does: its seconds are the sum of its amounts, each times the profile's cost of one.
struct HostWork {
    const Instruction* instruction = nullptr; ///< of a collective: its end
    HostClass hostClass = HostClass::Elementwise;
    HostCosts amounts{}; ///< by HostCost
    bool isAsynchronous = false; ///< a collective that goes on until its CollectiveDone comes up
    bool isWait = false; ///< that CollectiveDone: nothing is done, and no amounts
    bool meets = false; ///< a collective with other devices

    double seconds(const HostCosts& costs) const;
};

/// The time of a device among others that do the same in the same time.
class DeviceClock {
public:
    /// Without `overlaps` collectives are done before what comes after them.
    explicit DeviceClock(bool overlaps = true)
        : m_overlaps(overlaps)
    {
    }

    /// The next work, and what it takes.
    void add(const HostWork& work, double seconds);

    double seconds() const { return m_clock; }
    double computing() const { return m_computing; } ///< without what meets others
    double meetings() const { return m_meetings; }

private:
    bool m_overlaps;
    double m_clock = 0.0;
    double m_streamFree = 0.0; ///< of the collectives, of which a device has one under way
    double m_computing = 0.0;
    double m_meetings = 0.0;
    std::map<OpId, double> m_ends;
};

/// Calls `visit` for everything that a device does in one step (SchedulePolicy::Host), in order, loops unrolled.
///
/// Bytes of a computing instruction count by where they are to be found: near, far or in memory, after how many other bytes have gone through
/// the same core since they were last touched. The step before is taken into account, and that a core works for several devices in
/// turn, which change where they meet. Bytes of a collective count by what the whole group touches.
/// Of `profile` only cacheBytes and permits are read.
void forEachWork(const ScheduledFunction& scheduled, const Mesh& mesh, const HostProfile& profile,
    const std::function<void(const HostWork&)>& visit);

} // namespace meshwright::sim
