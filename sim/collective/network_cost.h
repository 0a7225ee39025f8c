// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/reshard/collective_cost.h"
#include "sim/collective/placement.h"

#include <map>

namespace meshwright::sim {

/// Algorithms that a user forces, by kind of collective; kinds that are not named choose by themselves.
using ForcedAlgorithms = std::map<CollectiveKind, CollectiveAlgorithm>;

/// A collective of a program over axes of a placed mesh, as networks see it. Of a permute it is not known who sends to whom.
/// Precondition: not an all-slice.
CollectiveRequest requestOn(const MeshPlacement& placement, OpKind kind, const AxisRefs& axes, std::int64_t payloadBytes,
    const ForcedAlgorithms& algorithms = {});

/// The same for groups that lie in any way: `groups` as `MeshPlacement::groupAxesOfDevices` has them.
CollectiveRequest requestFor(const MeshPlacement& placement, CollectiveKind kind, std::vector<GroupAxis> groups,
    std::int64_t payloadBytes, const ForcedAlgorithms& algorithms = {});

/// The time of a collective of a program over axes of a placed mesh, when its groups have the links for themselves. Of a permute it is not
/// known who sends to whom. An all-slice moves nothing.
CollectiveEstimate estimateOn(const MeshPlacement& placement, OpKind kind, const AxisRefs& axes, std::int64_t payloadBytes);

/// Chooses sequences of collectives by the seconds that they take on a machine. Remembers how groups lie: for one thread at a time.
class NetworkCost final : public CollectiveCost {
public:
    /// The placement must outlive the cost.
    explicit NetworkCost(const MeshPlacement& placement)
        : m_placement(placement)
    {
    }

    std::string id() const override { return "network"; }
    double cost(const CollectiveQuery& query) const override; ///< seconds, and a little for each step that decides ties

private:
    const MeshPlacement& m_placement;
    mutable std::map<AxisRefs, std::vector<GroupAxis>> m_groups;
};

} // namespace meshwright::sim
