// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/topology.h"

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright::sim {

enum class CollectiveKind : std::uint8_t { AllReduce, AllGather, ReduceScatter, AllToAll, Permute, Broadcast };

/// "all-reduce", "all-gather" and so on.
const char* collectiveKindName(CollectiveKind kind);

/// Who sends to whom in a permute.
enum class PermutePattern : std::uint8_t {
    Shift, ///< every device to the next of its group, the last to the first
    Any, ///< not known: as if each half of the group sent all it has to the other half
};

/// How the devices of a group lie along one physical axis.
enum class GroupKind : std::uint8_t {
    Torus, ///< neighbours share a link (a ring when it wraps, else a line)
    Switch, ///< ports of one switch
    FullMesh, ///< a link between every two
    Network, ///< hosts
    Scattered, ///< in no such order: a logical ring whose hops share links
};

struct GroupAxis {
    std::int64_t size = 1; ///< devices of the group along it, >= 1
    GroupKind kind = GroupKind::Torus;
    bool wraps = false; ///< Torus: the group closes to a ring
    LinkSpec link; ///< as the group gets it: a group whose members are s apart has 1/s of the bandwidth and s hops of latency
    double inSwitchBytesPerSecond = 0.0; ///< Switch: as PhysicalAxis
    std::size_t physicalAxis = 0; ///< index into Topology::axes(); of a scattered group the first
    double enteringBytesPerSecond = 0.0; ///< Scattered: all that a device can receive at once
    std::string name; ///< of the physical axis, for texts

    friend bool operator==(const GroupAxis&, const GroupAxis&) = default;
};

struct CollectiveRequest {
    CollectiveKind kind = CollectiveKind::AllReduce;
    std::int64_t payloadBytes = 0; ///< per device, >= 0: the operand's local bytes; for an all-gather the result's
    std::vector<GroupAxis> axes; ///< of one group; groups that differ elsewhere run at the same time
    PermutePattern pattern = PermutePattern::Shift;
};

struct CollectiveEstimate {
    double seconds = 0.0;
    std::int64_t wireBytesPerDevice = 0; ///< what a device sends, forwarding for others in the network not counted; rounded up
    std::string algorithm; ///< `ring, both directions`; `none` for a group of one
    std::string formula; ///< in symbols, then the inputs
    double lowerBoundSeconds = 0.0; ///< no schedule on these links is faster; <= seconds
};

/// The time of one collective when its group has the links for itself; the quickest of the algorithms that the hardware uses:
/// torus axes one after the other or all at once (both directions on rings, lines otherwise); through a switch a ring, double binary
/// trees or, where the switch can, its own adding; full meshes directly; across hosts first inside, then between them.
///
/// Preconditions: sizes >= 1, payload >= 0, rates > 0; switch and network axes are not mixed with torus axes; a scattered axis is alone.
/// Source: the formulas of ring.h, torus.h, switch.h and bounds.h.
CollectiveEstimate estimateCollective(const CollectiveRequest& request);

} // namespace meshwright::sim
