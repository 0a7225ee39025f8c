// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/network/fluid.h"
#include "sim/network/routed_collective.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace meshwright::sim {

inline constexpr std::uint32_t kNothing = 0xffffffffU;

/// What an op waits for.
enum class StepLag : std::uint8_t {
    None, ///< an op of the same iteration
    Iteration, ///< of the iteration before; in the first for nothing
    Loop, ///< of the last iteration of the loop before; only the first iteration waits
};
struct StepDependency {
    std::uint32_t op = 0;
    StepLag lag = StepLag::None;
};

/// The ops of one kind of device, in arrays. An op starts when all that it waits for is over.
class StepProgram {
public:
    /// Computes for so long at speed 1. Returns the op's number. `together`: all devices of the kind are to begin it at once (see
    /// StepRun::isOutOfStep); only in a loop that does not repeat.
    std::uint32_t compute(Ticks ticks, std::span<const StepDependency> after, bool together = false);

    /// Takes part in a collective of a site with the other members of the device's group. Their ops meet by `meeting`, a number that
    /// each program of the loop uses once for that site; it starts when all are ready.
    std::uint32_t collective(std::uint32_t site, std::uint32_t meeting, std::span<const StepDependency> after);

    std::size_t size() const { return m_ticks.size(); }
    bool computes(std::uint32_t op) const { return m_site[op] == kNothing; }
    Ticks ticks(std::uint32_t op) const { return m_ticks[op]; }
    bool isTogether(std::uint32_t op) const { return std::ranges::binary_search(m_together, op); }
    std::uint32_t site(std::uint32_t op) const { return m_site[op]; }
    std::uint32_t meeting(std::uint32_t op) const { return m_meeting[op]; }
    std::span<const StepDependency> dependencies(std::uint32_t op) const
    {
        return std::span(m_dependencies).subspan(m_first[op], m_first[op + 1] - m_first[op]);
    }

private:
    std::uint32_t add(Ticks ticks, std::uint32_t site, std::uint32_t meeting, std::span<const StepDependency> after);

    std::vector<Ticks> m_ticks;
    std::vector<std::uint32_t> m_site;
    std::vector<std::uint32_t> m_meeting;
    std::vector<std::uint32_t> m_first{0};
    std::vector<std::uint32_t> m_together; ///< ops, ascending
    std::vector<StepDependency> m_dependencies;
};

/// The same ops a number of times. In a loop that repeats every op waits for something of its own or the iteration before.
struct StepLoop {
    std::vector<StepProgram> programs; ///< for each kind of device
    std::int64_t repeat = 1;
};

/// One lane of one phase of a collective: its lines as flows.
struct LaneFlows {
    struct Use {
        std::uint32_t link = 0;
        std::uint32_t amount = 0; ///< into `amounts`
    };

    std::uint32_t phase = 0;
    std::uint32_t linesPerGroup = 1;
    FlowTemplate shape; ///< but for the uses
    std::vector<std::int64_t> amounts; ///< the different ones, as LinkUse::amount
    std::vector<Use> uses;
    std::vector<std::uint32_t> firstUse; ///< for each line, and the end

    std::span<const Use> usesOf(std::size_t line) const
    {
        return std::span(uses).subspan(firstUse[line], firstUse[line + 1] - firstUse[line]);
    }
};

/// The same loops with each run of computing as one op: ops of which each waits for nothing but the one before it, and of which nothing else
/// waits for any but the last. They end when they did, at speed 1 to the tick.
std::vector<StepLoop> joinRuns(std::span<const StepLoop> loops);

/// Where collectives happen: which groups, and what flows between their members.
struct StepSite {
    DeviceGroups groups;
    std::uint32_t phases = 0;
    std::vector<LaneFlows> lanes; ///< by phase
    Ticks start = 0; ///< that pass before the first message leaves; `lanes` have them in their latencies
    std::shared_ptr<const RoutedCollective> messages = {}; ///< the same collective as messages; only Fidelity::Message needs it
};

/// A collective that takes so long and no link: what a closed form says.
StepSite delaySite(DeviceGroups groups, Ticks ticks);

/// Lets all that the site's flows or messages do begin so much later. Negative: so much of the flows' latencies is left out, phase by phase, as
/// far as there are latencies; messages begin at once.
void delayStart(StepSite& site, Ticks ticks);

/// The flows of a collective that is routed.
StepSite flowsOf(const RoutedCollective& collective);

/// Routes a collective for its flows only, in a fraction of the memory. As `routeCollective`. Problems: MW1741.
Result<StepSite> routeFlows(const CollectiveRequest& request, DeviceGroups groups, const MachineLinks& links);

/// What a machine does in a step: each device runs the programs of its kind, loop after loop.
struct StepWork {
    const MachineLinks* links = nullptr; ///< must outlive it
    std::vector<std::uint32_t> kindOf; ///< for each device; kNothing: it does nothing
    std::vector<double> speed; ///< for each device, of the speed that `ticks` are for; empty: all 1
    std::vector<StepSite> sites;
    std::vector<StepLoop> loops;
};

/// A step of which equal parts are one.
struct FoldedStep {
    std::vector<std::uint32_t> classOf; ///< for each device; kNothing: it does nothing
    std::vector<std::uint32_t> representative; ///< for each class of devices, its first device
    std::vector<std::int64_t> members; ///< for each class of devices

    struct GroupClass {
        std::uint32_t site = 0;
        std::vector<std::uint32_t> deviceClasses; ///< of its members, each once
    };
    std::vector<GroupClass> groups; ///< the collectives of `fluid`, in this order
    std::vector<std::vector<std::uint32_t>> groupOf; ///< for each site and class of devices; kNothing
    FluidSet fluid;
};

/// Folds devices, groups, flows and links by partition refinement until all members of a class see the same numbers of neighbours of
/// each class, so that one member stands for all: a run of the folded step gives every device the times of a run of the whole, to
/// the tick. `fold` false: every device, group, flow and link stays its own class.
///
/// Colours are 64-bit hashes of what is seen; that two different ones agree by chance is less likely than 1 in 10^5 at a million devices.
/// Source: C. Berkholz, P. Bonsma, M. Grohe, "Tight lower and upper bounds for the complexity of canonical colour refinement",
/// Theory of Computing Systems 60, 2017 (equitable partitions).
FoldedStep foldStep(const StepWork& work, bool fold = true);

} // namespace meshwright::sim
