// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/network_cost.h"

#include <utility>

namespace meshwright::sim {

namespace {

CollectiveKind networkKind(OpKind kind)
{
    switch (kind) {
    case OpKind::AllReduce:
        return CollectiveKind::AllReduce;
    case OpKind::AllGather:
        return CollectiveKind::AllGather;
    case OpKind::ReduceScatter:
        return CollectiveKind::ReduceScatter;
    case OpKind::AllToAll:
        return CollectiveKind::AllToAll;
    default:
        return CollectiveKind::Permute;
    }
}

/// What the library does by itself.
CollectiveAlgorithm usualAlgorithm(CollectiveKind kind, const CollectiveLibrary* library)
{
    const bool axisByAxis = kind == CollectiveKind::AllReduce && library != nullptr && library->reducesAxisByAxis;
    return axisByAxis ? CollectiveAlgorithm::BothWays : CollectiveAlgorithm::Automatic;
}

} // namespace

CollectiveRequest requestOn(const MeshPlacement& placement, OpKind kind, const AxisRefs& axes, std::int64_t payloadBytes,
    const ForcedAlgorithms& algorithms)
{
    return requestFor(placement, networkKind(kind), placement.groupAxes(axes), payloadBytes, algorithms);
}

CollectiveRequest requestFor(const MeshPlacement& placement, CollectiveKind kind, std::vector<GroupAxis> groups,
    std::int64_t payloadBytes, const ForcedAlgorithms& algorithms)
{
    CollectiveRequest request{kind, payloadBytes, std::move(groups), PermutePattern::Any};
    request.library = placement.library();
    request.algorithm = usualAlgorithm(request.kind, request.library);
    if (const auto forced = algorithms.find(request.kind); forced != algorithms.end())
        request.algorithm = forced->second;
    return request;
}

CollectiveEstimate estimateOn(const MeshPlacement& placement, OpKind kind, const AxisRefs& axes, std::int64_t payloadBytes)
{
    if (kind == OpKind::AllSlice)
        return {0.0, 0, "none", "", 0.0, {}};
    return estimateCollective(requestOn(placement, kind, axes, payloadBytes));
}

double NetworkCost::cost(const CollectiveQuery& query) const
{
    constexpr double kStepSeconds = 1e-12; // less than any latency
    if (query.kind == OpKind::AllSlice)
        return kStepSeconds / 2;
    const auto [groups, isNew] = m_groups.try_emplace(query.axes);
    if (isNew)
        groups->second = m_placement.groupAxes(query.axes);
    const CollectiveKind kind = networkKind(query.kind);
    return collectiveSeconds({kind, query.payloadBytes, groups->second, PermutePattern::Any,
               usualAlgorithm(kind, m_placement.library()), m_placement.library()})
        + kStepSeconds;
}

} // namespace meshwright::sim
