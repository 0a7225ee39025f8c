// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/collective/collective_plan.h"
#include "sim/network/machine_links.h"
#include "sim/network/ticks.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace meshwright::sim {

/// Groups of devices that do the same collective at once: all of one size, one after the other.
struct DeviceGroups {
    std::uint32_t size = 1; ///< devices of a group
    std::vector<std::uint32_t> members; ///< each device at most once

    std::size_t count() const { return members.size() / size; }
};

/// The links that a message takes, and where it goes.
struct LanePath {
    std::uint32_t firstLink = 0; ///< into RoutedLane::links
    std::uint32_t linkCount = 0;
    std::uint32_t target = 0; ///< a slot of the lane
    std::uint32_t step = 0; ///< of PlanLane::stepBytes, for the first message that takes it
    Ticks wire = 0; ///< latency of all its hops
};

/// One member of a line in one lane. Which line it belongs to is slot / line length.
struct LaneSlot {
    std::uint32_t device = 0;
    std::uint32_t firstPath = 0; ///< into RoutedLane::paths
    std::uint32_t pathCount
        = 0; ///< one: all messages take it, step by step. More: they take them in turn, each at its step (of a Tree
    ///< round and round, a piece to each)
    std::uint32_t sends = 0; ///< messages in all
    std::uint32_t freeSends = 0; ///< of them, without waiting for any to arrive
    std::uint32_t need = 1; ///< arrivals that allow the next send
    std::uint32_t receives = 0; ///< messages that arrive in all
};

/// A lane of a plan on the devices and links of a machine.
struct RoutedLane {
    PlanLane plan;
    std::uint32_t lineLength = 1;
    Ticks latency = 0; ///< PlanLane::latencySeconds, and what detours add
    double plannedBytesPerSecond = 0.0; ///< of a hop when all lines run, as closed forms take it
    double linkBytesPerSecond = 0.0; ///< the most that a line gets over a hop, as if alone
    std::vector<LaneSlot> slots; ///< line by line
    std::vector<LanePath> paths;
    std::vector<LinkId> links;
    bool downward = false; ///< Tree: from the root; the lane before it is the same tree upward

    std::size_t lineCount() const { return slots.size() / lineLength; }

    /// The path and the step of the bytes of a slot's message number `send`.
    const LanePath& pathOf(const LaneSlot& slot, std::uint32_t send) const
    {
        return paths[slot.firstPath + (slot.pathCount == 1 ? 0 : send % slot.pathCount)];
    }
    std::uint32_t stepOf(const LaneSlot& slot, std::uint32_t send) const
    {
        if (slot.pathCount == 1)
            return paths[slot.firstPath].step + send;
        return plan.shape == LaneShape::Tree ? send / slot.pathCount : pathOf(slot, send).step;
    }
};

/// A collective on devices and links.
struct RoutedCollective {
    DeviceGroups groups;
    std::vector<std::vector<RoutedLane>> phases; ///< of a pipelined plan one
};

/// Lays a collective on a machine. `request.axes` must describe the groups as `MeshPlacement::groupAxesOfDevices` does.
///
/// Failed links of a torus are gone round over a neighbouring line, or the long way round a single ring.
/// Problems: MW1741 a failed link leaves no way between two devices.
Result<RoutedCollective> routeCollective(const CollectiveRequest& request, DeviceGroups groups, const MachineLinks& links);

/// The same lane by lane, so that not all must be held at once: `take` gets the phase and its lanes one after the other; the two
/// directions of a Tree follow each other. Returns the number of phases. Problems: as above, after all lanes were given.
Result<std::uint32_t> routeLanes(const CollectiveRequest& request, const DeviceGroups& groups, const MachineLinks& links,
    const std::function<void(std::uint32_t phase, RoutedLane lane)>& take);

} // namespace meshwright::sim
