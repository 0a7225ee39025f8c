// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reshard/reshard_steps.h"

#include "core/sharding/layout.h"

#include <algorithm>
#include <map>
#include <set>

namespace meshwright {

namespace {

void append(AxisRefs& all, const AxisRefs& more)
{
    all.insert(all.end(), more.begin(), more.end());
}

/// The axes of a collective: parts that continue each other are one.
void appendMerged(AxisRefs& all, const AxisRefs& more)
{
    for (const AxisRef& axis : more)
        appendMerging(all, axis);
}

} // namespace

std::optional<AxisRefs> commonParts(std::span<const AxisRef> axes)
{
    std::map<std::int32_t, std::set<std::int64_t>> cuts;
    for (const AxisRef& axis : axes)
        cuts[axis.axis].insert({axis.pre, axis.pre * axis.size});
    AxisRefs parts;
    for (const auto& [axis, places] : cuts) {
        for (auto cut = places.begin(); std::next(cut) != places.end(); ++cut) {
            const std::int64_t start = *cut;
            const std::int64_t end = *std::next(cut);
            // Of a gap too: x:(1)2 and x:(3)2 of an axis of 6 are of no one grid.
            if (end % start != 0)
                return std::nullopt;
            const AxisRef part{axis, start, end / start};
            const bool used = std::any_of(axes.begin(), axes.end(),
                [&, axis = axis](const AxisRef& a) { return a.axis == axis && a.pre <= start && end <= a.pre * a.size; });
            if (used)
                parts.push_back(part);
        }
    }
    return parts;
}

AxisRefs axesNamed(const TensorSharding& a, const TensorSharding& b)
{
    AxisRefs named;
    for (const TensorSharding* sharding : {&a, &b}) {
        for (const DimSharding& dim : sharding->dims)
            append(named, dim.axes);
        append(named, sharding->unreduced);
    }
    return named;
}

AxisRefs cutInto(const AxisRefs& axes, const AxisRefs& parts)
{
    AxisRefs result;
    for (const AxisRef& axis : axes) {
        for (const AxisRef& part : parts) {
            if (overlaps(part, axis))
                result.push_back(part);
        }
    }
    return result;
}

TensorSharding layoutOnly(const TensorSharding& sharding)
{
    TensorSharding layout = TensorSharding::replicatedOf(sharding.dims.size());
    for (std::size_t dim = 0; dim < sharding.dims.size(); ++dim)
        layout.dims[dim].axes = sharding.dims[dim].axes;
    layout.unreduced = sharding.unreduced;
    layout.unreducedKind = sharding.unreducedKind;
    layout.mesh = sharding.mesh;
    return layout;
}

AxisRefs withoutAxes(const AxisRefs& axes, const AxisRefs& others)
{
    AxisRefs both = axes;
    append(both, others);
    const auto parts = commonParts(both);
    AxisRefs left;
    for (const AxisRef& part : parts ? cutInto(axes, *parts) : axes) {
        if (std::none_of(others.begin(), others.end(), [&](const AxisRef& other) { return overlaps(part, other); }))
            left.push_back(part);
    }
    return inMeshOrder(std::move(left));
}

std::int64_t localBytes(const Shape& shape, std::int64_t elementBytes, const TensorSharding& layout)
{
    return elementCount(localShape(shape, layout)) * elementBytes;
}

AxisRefs permutedAxes(const TensorSharding& from, const TensorSharding& to, bool sameOrder)
{
    AxisRefs named;
    for (std::size_t dim = 0; dim < from.dims.size(); ++dim) {
        if (sameOrder && from.dims[dim].axes == to.dims[dim].axes)
            continue;
        append(named, from.dims[dim].axes);
        append(named, to.dims[dim].axes);
    }
    auto parts = commonParts(named);
    return parts ? inMeshOrder(*std::move(parts)) : AxisRefs{};
}

namespace {

/// What a device holds: which elements, and which of their partial values.
using Held = std::pair<IndexBox, std::int64_t>;

Held heldAt(const Shape& shape, const TensorSharding& layout, const Mesh& mesh, std::int64_t position)
{
    return {shardBox(shape, layout, mesh, position), shardIndex(position, layout.unreduced, mesh)};
}

/// Every position's group among those that exchange over `axes`; without axes all positions are one.
std::vector<std::size_t> groupNumbers(const AxisRefs& axes, const Mesh& mesh)
{
    std::vector<std::size_t> numbers(static_cast<std::size_t>(mesh.deviceCount()), 0);
    if (axes.empty())
        return numbers;
    const auto groups = deviceGroups(axes, mesh);
    for (std::size_t group = 0; group < groups.size(); ++group) {
        for (const std::int64_t position : groups[group])
            numbers[static_cast<std::size_t>(position)] = group;
    }
    return numbers;
}

/// The positions of `fromMesh` that every one of its positions receives from: itself where it can, else one of its group.
std::vector<std::int64_t> permuteSourcesAcross(const Shape& shape, const TensorSharding& from, const Mesh& fromMesh,
    const TensorSharding& to, const Mesh& toMesh, const std::vector<std::size_t>& groupOf)
{
    const auto count = static_cast<std::size_t>(fromMesh.deviceCount());
    std::map<DeviceId, std::int64_t> positionOf; // in toMesh
    for (std::int64_t position = 0; position < fromMesh.deviceCount(); ++position)
        positionOf[toMesh.deviceAt(position)] = position;
    std::map<Held, std::size_t> pieces; // numbered
    const auto pieceAt = [&](const TensorSharding& sharding, const Mesh& mesh, std::int64_t position) {
        return pieces.try_emplace(heldAt(shape, sharding, mesh, position), pieces.size()).first->second;
    };
    std::vector<std::size_t> held(count);
    std::vector<std::size_t> wanted(count);
    std::vector<std::int64_t> sources(count, -1);
    std::vector<char> sends(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
        const auto position = static_cast<std::int64_t>(i);
        held[i] = pieceAt(from, fromMesh, position);
        wanted[i] = pieceAt(to, toMesh, positionOf[fromMesh.deviceAt(position)]);
        if (held[i] == wanted[i]) {
            sources[i] = position;
            sends[i] = 1;
        }
    }
    for (const bool anywhere : {false, true}) {
        const auto groupAt = [&](std::size_t position) { return anywhere ? 0 : groupOf[position]; };
        std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> holders; // of a piece in a group, the lowest last
        for (std::size_t i = count; i-- > 0;) {
            if (sends[i] == 0)
                holders[{held[i], groupAt(i)}].push_back(i);
        }
        for (std::size_t i = 0; i < count; ++i) {
            const auto found = sources[i] < 0 ? holders.find({wanted[i], groupAt(i)}) : holders.end();
            if (found == holders.end() || found->second.empty())
                continue;
            sources[i] = static_cast<std::int64_t>(found->second.back());
            sends[found->second.back()] = 1;
            found->second.pop_back();
        }
    }
    return sources;
}

bool staysInGroups(const std::vector<std::int64_t>& sources, const std::vector<std::size_t>& groupOf)
{
    for (std::size_t position = 0; position < sources.size(); ++position) {
        if (sources[position] >= 0 && groupOf[static_cast<std::size_t>(sources[position])] != groupOf[position])
            return false;
    }
    return true;
}

} // namespace

ReshardStep reshardStep(OpKind kind, CollectiveAttributes attributes, const ReshardedArray& array, const TensorSharding& from,
    const Mesh& fromMesh, const TensorSharding& to, const Mesh& toMesh)
{
    attributes.kind = from.unreducedKind;
    switch (kind) {
    case OpKind::AllReduce:
        break;
    case OpKind::AllToAll:
        attributes.axes.clear();
        for (const AxisMove& move : attributes.moves)
            appendMerged(attributes.axes, move.axes);
        break;
    case OpKind::CollectivePermute:
        attributes.resultShape = localShape(array.shape, to);
        attributes.axes = permutedAxes(from, to, fromMesh == toMesh);
        {
            const auto groupOf = groupNumbers(attributes.axes, fromMesh);
            attributes.sources = permuteSourcesAcross(array.shape, from, fromMesh, to, toMesh, groupOf);
            if (!staysInGroups(attributes.sources, groupOf)) // another order of devices: between all of them
                attributes.axes.clear();
        }
        break;
    default:
        attributes.axes.clear();
        for (const AxisRefs& axes : attributes.perDim)
            appendMerged(attributes.axes, axes);
    }
    const TensorSharding& payload = kind == OpKind::AllGather ? to : from;
    return {kind, std::move(attributes), to, localBytes(array.shape, array.elementBytes, payload)};
}

double collectiveCost(const CollectiveCost& cost, OpKind kind, const AxisRefs& axes, std::int64_t payloadBytes, const Mesh& mesh)
{
    const std::int64_t group = kind == OpKind::CollectivePermute ? mesh.deviceCount() : shardCount(axes);
    return cost.cost({kind, axes, group, payloadBytes});
}

ReshardPlan planOf(std::vector<ReshardStep> steps, const ReshardedArray& array, const TensorSharding& from, const Mesh& mesh,
    const CollectiveCost& cost)
{
    ReshardPlan plan;
    std::int64_t before = localBytes(array.shape, array.elementBytes, from);
    plan.peakBytes = before;
    for (const ReshardStep& step : steps) {
        const std::int64_t after = localBytes(array.shape, array.elementBytes, step.result);
        plan.cost += collectiveCost(cost, step.kind, step.attributes.axes, step.payloadBytes, mesh);
        plan.peakBytes = std::max(plan.peakBytes, before + after);
        before = after;
    }
    plan.steps = std::move(steps);
    return plan;
}

} // namespace meshwright
