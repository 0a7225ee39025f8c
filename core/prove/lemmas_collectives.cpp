// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/known_numbers.h"
#include "core/prove/lemmas.h"

#include "core/program/body_collective.h"
#include "core/sharding/shard_indices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <unordered_map>

namespace meshwright {

std::string axesKey(const AxisRefs& axes)
{
    std::string text;
    for (const AxisRef& axis : canonical(axes))
        text += fmt::format("{}:{}:{} ", axis.axis, axis.pre, axis.size);
    return text;
}

namespace {

/// A table that sends each part of a sum over these axes to where it is the same part, and all parts of one sum to one place.
bool keepsParts(const std::vector<std::int64_t>& sources, const AxisRefs& partial, const Mesh& mesh)
{
    const std::vector<std::int64_t> partOf = shardIndices(partial, mesh);
    const std::vector<std::int64_t> restOf = shardIndices(unusedAxes(partial, mesh), mesh);
    std::unordered_map<std::int64_t, std::int64_t> senders; // by the receivers' place; -1: none
    if (sources.size() != partOf.size())
        return false;
    for (std::size_t receiver = 0; receiver < sources.size(); ++receiver) {
        if (sources[receiver] >= mesh.deviceCount())
            return false;
        const auto sender = static_cast<std::size_t>(sources[receiver]);
        const std::int64_t from = sources[receiver] < 0 ? -1 : restOf[sender];
        if ((from >= 0 && partOf[sender] != partOf[receiver]) || senders.emplace(restOf[receiver], from).first->second != from)
            return false;
    }
    return true;
}

} // namespace

/// An exchange of pieces that a manual computation says: the value of each device is another one than before, and varies with the device.
std::optional<Standing> exchangedPieces(
    Site& site, const BodyCollective& collective, const std::optional<AxisRefs>& axes, std::size_t operandIndex)
{
    Framed operand = framed(site, operandIndex);
    const Mesh& mesh = site.walk.mesh();
    const bool passes = operand.partial.empty()
        || (collective.kind == OpKind::CollectivePermute && keepsParts(collective.sources, operand.partial, mesh));
    if (!passes)
        return site.refuse("it exchanges pieces of a partial result");
    const auto computed = [&] {
        const std::vector<std::int32_t> axesOf = axesTouched(collective, mesh);
        return std::vector<std::int64_t>(axesOf.begin(), axesOf.end());
    };
    const std::vector<std::int64_t> touched
        = collective.sources.empty() ? computed() : site.walk.ofTable(collective.sources, "touched", computed);
    for (const AxisRef& axis : placeAxes(*site.operands[operandIndex])) {
        if (std::find(touched.begin(), touched.end(), axis.axis) != touched.end())
            return site.refuse("it exchanges pieces along an axis that splits its operand");
    }
    const bool joins = collective.kind == OpKind::AllGather || collective.kind == OpKind::AllToAll;
    const bool splits = collective.kind == OpKind::ReduceScatter || collective.kind == OpKind::AllToAll;
    for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
        operand.dims[dim].fill = kNoGlobal;
        if (!(joins && dim == collective.join) && !(splits && dim == collective.split))
            continue;
        if (operand.isCopy(dim)) // those of different devices differ
            operand.unclaim(dim);
        if (!operand.isWhole(dim))
            return site.refuse("a dimension along which it exchanges pieces is split");
    }
    Shape shape = operand.shape;
    if (joins)
        shape[collective.join] *= collective.groupSize();
    if (splits)
        shape[collective.split] /= collective.groupSize();
    std::uint64_t varies = site.walk.globals[operand.global].varies;
    const bool levels = axes && (collective.kind == OpKind::AllReduce || collective.kind == OpKind::AllGather);
    for (const std::int64_t axis : touched) {
        const std::uint64_t bit = std::uint64_t{1} << std::min<std::int64_t>(axis, 63);
        const bool isAll = levels && std::any_of(axes->begin(), axes->end(), [&](const AxisRef& ref) {
            return ref.axis == axis && ref.pre == 1 && ref.size == mesh.axes()[static_cast<std::size_t>(axis)].size;
        });
        varies = isAll ? varies & ~bit : varies | bit;
    }
    const bool reduces = collective.kind == OpKind::AllReduce || collective.kind == OpKind::ReduceScatter;
    const GlobalId global
        = site.walk.globals.number(fmt::format("exchange {} {} {} {} {} {} {}", opName(collective.kind),
                                       reduces ? reduceKindName(collective.reduction) : "", splits ? collective.split : 0,
                                       joins ? collective.join : 0, axes ? axesKey(*axes) : fmt::format("{}", collective.groups),
                                       site.walk.globals.listText(collective.sources), operand.text()),
            shape, site.dtype(), varies);
    Standing made = standingOf(global, shape, operand.dims, site.localResult(operandIndex), operand.mesh);
    made.partial = operand.partial;
    made.kind = operand.kind;
    return made;
}

namespace {

/// Devices meet by the mesh that the operand is claimed to lie on.
bool isOnMainMesh(const Site& site)
{
    const auto& claimed = site.walk.function[site.value(0)].sharding;
    return (!claimed || claimed->mesh == 0) && (!hasMesh(*site.operands[0]) || site.operands[0]->mesh == 0);
}

std::optional<Standing> exchangedPieces(Site& site)
{
    const auto& attributes = site.op.as<CollectiveAttributes>();
    if (!isOnMainMesh(site))
        return site.refuse("its operand is on another mesh");
    BodyCollective collective{site.op.kind, attributes.kind, attributes.pieces->split, attributes.pieces->join,
        attributes.pieces->groups, attributes.sources};
    std::optional<AxisRefs> axes;
    if (collective.groups.empty() && site.op.kind != OpKind::CollectivePermute) {
        axes = attributes.axes;
        collective.groups = deviceGroups(attributes.axes, site.walk.mesh());
    } else if (!collective.groups.empty()) {
        axes = axesOfGroups(collective.groups, site.walk.mesh());
    }
    if (site.op.kind == OpKind::CollectivePermute
        && (collective.sources.size() != static_cast<std::size_t>(site.walk.mesh().deviceCount())
            || !sendsWithinGroups(site.walk, attributes, site.walk.mesh())))
        return site.refuse("a device receives from one that is not in its group");
    return meshwright::exchangedPieces(site, collective, axes, 0);
}

/// The layouts that the partitioner claims must say the same as the standing: devices exchange by them.
bool isAsClaimed(Site& site)
{
    const Standing& operand = *site.operands[0];
    const auto& layout = site.walk.function[site.value(0)].sharding;
    if (!layout || layout->mesh != operand.mesh || operand.mesh != 0
        || !isExchangeAsClaimed(site.walk.function, *site.walk.wholes, site.op)) {
        site.refuse("the layouts of its operand and its result do not fit its axes");
        return false;
    }
    if (site.op.kind != OpKind::AllSlice && variesAlong(site.walk, operand.global, site.op.as<CollectiveAttributes>().axes)) {
        site.refuse("devices that exchange pieces have different values");
        return false;
    }
    const auto isOfCalls = [&](const AxisRef& axis) { return axis.axis == site.walk.calls; };
    for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
        const StandingDim& along = operand.dims[dim];
        AxisRefs axes = along.axes; // within a call
        std::erase_if(axes, isOfCalls);
        if (along.from >= 0 && (along.window || axes != canonical(layout->dims[dim].axes))) {
            site.refuse(fmt::format("its operand is split differently along dimension {} than its layout says", dim));
            return false;
        }
    }
    return true;
}

} // namespace

std::optional<Standing> allReduceLemma(Site& site, std::size_t)
{
    const auto& attributes = site.op.as<CollectiveAttributes>();
    if (attributes.pieces)
        return exchangedPieces(site);
    Standing made = *site.operands[0];
    if (!isOnMainMesh(site))
        return site.refuse("its operand is on another mesh");
    for (StandingDim& dim : made.dims)
        dim.fill = kNoGlobal;
    if (made.partial.empty() && site.walk.globals.isIdentity(made.global, attributes.kind) && made.isUniform())
        return made;
    const bool isSameKind = made.kind == attributes.kind && !made.partial.empty();
    const auto left = isSameKind ? setWithout(made.partial, attributes.axes) : std::nullopt;
    if (left) {
        made.partial = *left;
        return made;
    }
    if (made.partial.empty() && isIdempotent(attributes.kind) && disjoint(attributes.axes, placeAxes(made))
        && !variesAlong(site.walk, made.global, attributes.axes))
        return made; // the same from all
    return site.refuse(made.partial.empty() ? "its operand is not a partial result: it would be counted several times"
                                            : "its operand is partial over other axes, or by another reduction");
}

std::optional<Standing> allGatherLemma(Site& site, std::size_t)
{
    const auto& attributes = site.op.as<CollectiveAttributes>();
    if (attributes.pieces)
        return exchangedPieces(site);
    if (!isAsClaimed(site))
        return std::nullopt;
    Standing made = *site.operands[0];
    for (std::size_t dim = 0; dim < made.dims.size(); ++dim) {
        if (made.dims[dim].from >= 0)
            made.dims[dim].axes = *withoutEnd(made.dims[dim].axes, attributes.perDim[dim]);
        if (!disjoint(attributes.perDim[dim], made.partial))
            return site.refuse("it gathers along an axis over which its operand is partial");
    }
    for (const AxisRefs& axes : attributes.perDim) {
        if (!disjoint(axes, placeAxes(made)))
            return site.refuse("it gathers along an axis that splits another dimension too");
    }
    return made;
}

std::optional<Standing> allSliceLemma(Site& site, std::size_t)
{
    const auto& attributes = site.op.as<CollectiveAttributes>();
    if (attributes.pieces || !isAsClaimed(site))
        return site.refuse(site.refusal.empty() ? "it slices pieces" : site.refusal);
    Standing made = *site.operands[0];
    for (std::size_t dim = 0; dim < made.dims.size(); ++dim) {
        if (!attributes.perDim[dim].empty() && !disjoint(attributes.perDim[dim], made.partial))
            return site.refuse("it slices along an axis over which its operand is partial");
        if (made.dims[dim].from >= 0)
            made.dims[dim].axes = followedBy(made.dims[dim].axes, attributes.perDim[dim]);
    }
    return made;
}

std::optional<Standing> reduceScatterLemma(Site& site, std::size_t)
{
    const auto& attributes = site.op.as<CollectiveAttributes>();
    if (attributes.pieces)
        return exchangedPieces(site);
    if (!isAsClaimed(site))
        return std::nullopt;
    Standing made = *site.operands[0];
    AxisRefs scattered;
    for (std::size_t dim = 0; dim < made.dims.size(); ++dim) {
        scattered.insert(scattered.end(), attributes.perDim[dim].begin(), attributes.perDim[dim].end());
        if (made.dims[dim].from >= 0)
            made.dims[dim].axes = followedBy(made.dims[dim].axes, attributes.perDim[dim]);
        made.dims[dim].fill = kNoGlobal;
    }
    const bool isSameKind = made.kind == attributes.kind && !made.partial.empty();
    const auto left = isSameKind ? setWithout(made.partial, scattered) : std::nullopt;
    if (!left)
        return site.refuse("its operand is not partial over its axes by its reduction");
    made.partial = *left;
    return made;
}

std::optional<Standing> allToAllLemma(Site& site, std::size_t)
{
    const auto& attributes = site.op.as<CollectiveAttributes>();
    if (attributes.pieces)
        return exchangedPieces(site);
    if (!isAsClaimed(site))
        return std::nullopt;
    Standing made = *site.operands[0];
    for (const AxisMove& move : attributes.moves) {
        if (!disjoint(move.axes, made.partial))
            return site.refuse("it moves pieces along an axis over which its operand is partial");
        StandingDim& from = made.dims[move.from];
        StandingDim& to = made.dims[move.to];
        if (from.from >= 0) {
            const auto left = withoutEnd(from.axes, move.axes);
            if (!left)
                return site.refuse(fmt::format("its axes do not split dimension {}", move.from));
            from.axes = *left;
        }
        if (!disjoint(move.axes, placeAxes(made)))
            return site.refuse("it moves an axis that splits another dimension too");
        if (to.from >= 0)
            to.axes = followedBy(to.axes, move.axes);
    }
    return made;
}

bool sendsWithinGroups(const Walk& walk, const CollectiveAttributes& permute, const Mesh& mesh)
{
    const AxisRefs others = permute.axes.empty() ? AxisRefs() : unusedAxes(permute.axes, mesh);
    const auto leaves = [&](const std::vector<std::int64_t>& groupOf, std::int64_t sender, std::size_t receiver) {
        return sender >= mesh.deviceCount() || (sender >= 0 && groupOf[static_cast<std::size_t>(sender)] != groupOf[receiver]);
    };
    const std::string question = fmt::format("groups of {} over {}", mesh.text(), axesKey(permute.axes));
    return walk.ofTable(permute.sources, question,
                   [&] {
                       const std::vector<std::int64_t> groupOf = shardIndices(others, mesh);
                       for (std::size_t receiver = 0; receiver < permute.sources.size(); ++receiver) {
                           if (leaves(groupOf, permute.sources[receiver], receiver))
                               return std::vector<std::int64_t>();
                       }
                       return std::vector<std::int64_t>{1};
                   })
               .size()
        == 1;
}

/// Devices take what other devices have: the standing is that of the sender, at the receiver's place.
std::optional<Standing> permuteLemma(Site& site, std::size_t)
{
    const auto& attributes = site.op.as<CollectiveAttributes>();
    const Standing& operand = *site.operands[0];
    const Mesh& mesh = site.walk.mesh(operand.mesh);
    const auto& claimedIn = site.walk.function[site.value(0)].sharding;
    const auto& claimed = site.walk.function[site.op.results[0]].sharding;
    const auto& sources = attributes.sources;
    if (attributes.pieces)
        return exchangedPieces(site);
    if (!claimed || !claimedIn || claimed->dims.size() != operand.dims.size() || claimedIn->mesh != operand.mesh
        || sources.size() != static_cast<std::size_t>(mesh.deviceCount()))
        return site.refuse("its operand or its result has no layout on the mesh of its table");
    if (site.local(0) != site.localResult())
        return site.refuse("its pieces are of different sizes");
    if (!sendsWithinGroups(site.walk, attributes, mesh))
        return site.refuse("a device receives from one that is not in its group");
    Standing made = operand;
    made.mesh = claimed->mesh;
    const auto ofCalls = [&](AxisRefs axes) { // of which its layout says nothing
        std::erase_if(axes, [&](const AxisRef& axis) { return axis.axis != site.walk.calls; });
        return axes;
    };
    made.partial = canonicalSet(followedBy(ofCalls(operand.partial), claimed->unreduced));
    if (made.partial.empty() != operand.partial.empty())
        return site.refuse("partial results become whole, or the other way round");
    const Mesh& to = site.walk.mesh(claimed->mesh);
    AxisRefs varying; // along which devices have different values
    for (std::size_t axis = 0; axis < to.axes().size(); ++axis) {
        if (variesAlong(site.walk, operand.global, {wholeAxis(to, axis)}))
            varying.push_back(wholeAxis(to, axis));
    }
    if (!varying.empty() && claimed->mesh != operand.mesh)
        return site.refuse("it goes to another mesh, and devices have different values");
    for (std::size_t dim = 0; dim < made.dims.size(); ++dim) {
        if (made.dims[dim].from < 0)
            continue;
        made.dims[dim].axes = followedBy(ofCalls(operand.dims[dim].axes), canonical(claimed->dims[dim].axes));
        if (made.dims[dim].window || shardCount(made.dims[dim].axes) != shardCount(operand.dims[dim].axes))
            return site.refuse(fmt::format("dimension {} has another number of pieces than its layout says", dim));
    }
    if (!disjoint(made.partial, placeAxes(made)))
        return site.refuse("it is claimed to be partial over an axis that splits it");
    std::unordered_map<DeviceId, std::int64_t> positionOf; // on another mesh
    for (std::int64_t position = 0; claimed->mesh != operand.mesh && position < to.deviceCount(); ++position)
        positionOf[to.deviceAt(position)] = position;
    const auto indicesOn = [](const Mesh& on, const AxisRefs& axes) { return shardIndices(axes, on); };
    const std::vector<std::int64_t> restOf = indicesOn(mesh, unusedAxes(operand.partial, mesh));
    const std::vector<std::int64_t> restAfter = indicesOn(to, unusedAxes(made.partial, to));
    const std::vector<std::int64_t> partOf = indicesOn(mesh, operand.partial);
    const std::vector<std::int64_t> varied = indicesOn(to, varying);
    std::vector<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> pieces; // by dimension: before and after
    for (std::size_t dim = 0; dim < made.dims.size(); ++dim) {
        if (made.dims[dim].from >= 0)
            pieces.emplace_back(indicesOn(mesh, operand.dims[dim].axes), indicesOn(to, made.dims[dim].axes));
    }
    std::map<std::int64_t, std::int64_t> groupFrom; // with partial results: which group of senders each group of receivers has
    std::set<std::pair<std::int64_t, std::int64_t>> parts;
    for (std::size_t receiver = 0; receiver < sources.size(); ++receiver) {
        if (sources[receiver] < 0 || sources[receiver] >= mesh.deviceCount())
            return site.refuse("a device receives nothing");
        const auto sender = static_cast<std::size_t>(sources[receiver]);
        auto position = receiver;
        if (claimed->mesh != operand.mesh) {
            const auto found = positionOf.find(mesh.deviceAt(static_cast<std::int64_t>(receiver)));
            if (found == positionOf.end())
                return site.refuse("a device receives nothing");
            position = static_cast<std::size_t>(found->second);
        }
        if (!varying.empty() && varied[sender] != varied[position])
            return site.refuse("it goes to devices that have different values");
        for (const auto& [before, after] : pieces) {
            if (before[sender] != after[position])
                return site.refuse(fmt::format("device {} receives another piece than its own from device {}",
                    mesh.deviceAt(static_cast<std::int64_t>(receiver)), mesh.deviceAt(sources[receiver])));
        }
        if (made.partial.empty())
            continue;
        const std::int64_t group = restAfter[position];
        const auto known = groupFrom.emplace(group, restOf[sender]).first;
        if (known->second != restOf[sender] || !parts.emplace(group, partOf[sender]).second)
            return site.refuse("the parts of one result go to different groups of devices");
    }
    if (shardCount(made.partial) != shardCount(operand.partial))
        return site.refuse("the parts of one result go to groups of other sizes");
    return made;
}

} // namespace meshwright
