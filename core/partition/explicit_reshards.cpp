// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/explicit_reshards.h"

#include "core/partition/reshard_inserter.h"
#include "core/program/transform.h"
#include "core/reshard/reshard_steps.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

/// The axes that `axes` has behind `prefix`; nothing when it does not begin with it.
std::optional<AxisRefs> behind(const AxisRefs& prefix, const AxisRefs& axes)
{
    AxisRefs named = prefix;
    named.insert(named.end(), axes.begin(), axes.end());
    const auto parts = commonParts(named);
    if (!parts)
        return std::nullopt;
    const AxisRefs shorter = cutInto(prefix, *parts);
    const AxisRefs longer = cutInto(axes, *parts);
    if (shorter.size() > longer.size() || !std::equal(shorter.begin(), shorter.end(), longer.begin()))
        return std::nullopt;
    AxisRefs rest;
    for (auto axis = longer.begin() + std::ssize(shorter); axis != longer.end(); ++axis)
        appendMerging(rest, *axis);
    return rest;
}

/// The longest end of `axes` that lies in `within`, and what is before it.
SplitAxes splitEnd(const AxisRefs& axes, const AxisRefs& within)
{
    AxisRefs named = axes;
    named.insert(named.end(), within.begin(), within.end());
    const auto parts = commonParts(named);
    AxisRefs cut = parts ? cutInto(axes, *parts) : axes;
    auto first = cut.end();
    const auto isWithin = [&](const AxisRef& axis) {
        return std::any_of(within.begin(), within.end(), [&](const AxisRef& other) { return overlaps(axis, other); });
    };
    while (parts && first != cut.begin() && isWithin(*std::prev(first)))
        --first;
    SplitAxes split;
    for (auto axis = cut.begin(); axis != cut.end(); ++axis)
        appendMerging(axis < first ? split.taken : split.left, *axis);
    return split;
}

} // namespace

bool ReshardInserter::splitsNothing(const MaybeSharding& sharding)
{
    return !sharding || sharding->isReplicated();
}

AxisRefs ReshardInserter::unreducedOf(const MaybeSharding& sharding)
{
    return sharding ? sharding->unreduced : AxisRefs{};
}

Function ReshardInserter::run()
{
    for (const ValueId argument : m_source.arguments()) {
        const ValueId copy = m_builder.argument(m_source[argument].type);
        copyNotes(argument, copy);
        m_now[argument.at()] = copy;
    }
    insertInBlock(m_source.body());
    std::vector<ValueId> results;
    for (std::size_t i = 0; i < m_source.results().size(); ++i) {
        const ValueId result = m_source.results()[i];
        const MaybeSharding target = m_source.resultShardings.empty() ? std::nullopt : m_source.resultShardings[i];
        results.push_back(bring(m_now[result.at()], target, "return"));
    }
    m_builder.setResults(std::move(results), m_source.resultNames);
    m_target.resultShardings = m_source.resultShardings;
    m_target.kept = m_source.kept;
    m_target.resultsKept = m_source.resultsKept;
    m_target.donations = m_source.donations;
    return std::move(m_target);
}

const ReshardInserter::MaybeSharding& ReshardInserter::shardingOf(ValueId value) const
{
    OpId producer = m_target[value].producer;
    while (!m_target[value].sharding && producer.valid() && m_target[producer].kind == OpKind::PropagationBarrier) {
        value = m_target[producer].operands.front();
        producer = m_target[value].producer;
    }
    return m_target[value].sharding;
}

void ReshardInserter::copyNotes(ValueId from, ValueId to)
{
    const Value& source = m_source[from];
    Value& target = m_target[to];
    target.name = source.name;
    target.role = source.role;
    target.sharding = source.sharding;
    target.annotation = source.annotation;
    target.kept = source.kept;
}

bool ReshardInserter::isSameLayout(const MaybeSharding& a, const MaybeSharding& b) const
{
    if (splitsNothing(a) || splitsNothing(b))
        return splitsNothing(a) && splitsNothing(b);
    if (meshOf(*a) != meshOf(*b) || a->unreduced != b->unreduced)
        return false;
    return std::equal(a->dims.begin(), a->dims.end(), b->dims.begin(), b->dims.end(),
        [](const DimSharding& x, const DimSharding& y) { return x.axes == y.axes; });
}

ValueId ReshardInserter::emit(
    OpKind kind, ValueId operand, CollectiveAttributes attributes, TensorSharding layout, const Asker& asker)
{
    if (kind == OpKind::Reshard)
        attributes.resultShape = m_target[operand].type.shape;
    attributes.cause = causeOf(kind, operand, layout, asker);
    const ValueId result = m_builder.add(kind, {operand}, std::move(attributes));
    m_target[result].sharding = std::move(layout);
    m_target[result].role = m_target[operand].role;
    return result;
}

Cause ReshardInserter::causeOf(OpKind kind, ValueId operand, const TensorSharding& to, const Asker& asker) const
{
    Cause cause;
    cause.value = nameOf(operand);
    cause.op = asker.op;
    cause.annotation = m_target[operand].annotation;
    const MaybeSharding& from = shardingOf(operand);
    const std::string before = from ? layoutText(*from, meshOf(*from)) : "P()";
    const std::string after = layoutText(to, meshOf(to));
    if (kind == OpKind::AllReduce)
        cause.reason = asker.makes ? fmt::format("{} adds up over a dimension that is split: every device has a part", asker.op)
                                   : fmt::format("{} holds partial sums, {} needs them added up", cause.value, asker.op);
    else
        cause.reason = asker.makes
            ? fmt::format("{} makes {} as {}, but {} is needed", asker.op, cause.value, before, after)
            : fmt::format("{} needs {} as {}, but it is sharded as {}", asker.op, cause.value, after, before);
    return cause;
}

std::string ReshardInserter::nameOf(ValueId value) const
{
    while (m_target[value].name.empty()) {
        const OpId producer = m_target[value].producer;
        if (!producer.valid()) {
            const auto& arguments = m_target.arguments();
            const bool isArgument = std::find(arguments.begin(), arguments.end(), value) != arguments.end();
            return isArgument ? fmt::format("%arg{}", m_target[value].index) : "a value that its block gets";
        }
        if (!isCollective(m_target[producer].kind))
            return fmt::format("the result of {}", opName(m_target[producer]));
        value = m_target[producer].operands.front();
    }
    return m_target[value].name;
}

ValueId ReshardInserter::reduce(ValueId value, const AxisRefs& leftPartial, const std::string& consumer)
{
    AxisRefs axes = withoutAxes(unreducedOf(shardingOf(value)), leftPartial);
    if (axes.empty())
        return value;
    TensorSharding reduced = *shardingOf(value);
    reduced.unreduced = withoutAxes(reduced.unreduced, axes);
    CollectiveAttributes attributes;
    attributes.axes = std::move(axes);
    attributes.kind = reduced.unreducedKind;
    return emit(OpKind::AllReduce, value, std::move(attributes), std::move(reduced), {consumer});
}

ValueId ReshardInserter::makeUnreduced(ValueId value, const TensorSharding& target, const std::string& consumer)
{
    const MaybeSharding from
        = shardingOf(value) ? shardingOf(value) : MaybeSharding(replicated(m_target[value].type.shape.size(), target.mesh));
    const AxisRefs added = withoutAxes(target.unreduced, from->unreduced);
    if (added.empty() || meshOf(*from) != meshOf(target))
        return value;
    CollectiveAttributes fromDims;
    AxisRefs sharded;
    TensorSharding before = *from; // as it has to lie before anything becomes partial
    bool moves = false;
    for (std::size_t dim = 0; dim < target.dims.size(); ++dim) {
        const auto dropped = behind(target.dims[dim].axes, from->dims[dim].axes);
        AxisRefs partial = dropped ? splitEnd(*dropped, added).left : AxisRefs{};
        before.dims[dim].axes = target.dims[dim].axes;
        for (const AxisRef& axis : partial)
            appendMerging(before.dims[dim].axes, axis);
        sharded.insert(sharded.end(), partial.begin(), partial.end());
        fromDims.perDim.push_back(std::move(partial));
        moves = moves || before.dims[dim].axes != from->dims[dim].axes;
    }
    if (moves) {
        before.replicated.clear();
        value = emit(OpKind::Reshard, value, {}, before, {consumer});
    }
    const AxisRefs fromReplicas = withoutAxes(added, sharded);
    if (!fromReplicas.empty()) {
        CollectiveAttributes attributes;
        attributes.axes = fromReplicas;
        before.replicated = target.replicated;
        before.unreduced.insert(before.unreduced.end(), fromReplicas.begin(), fromReplicas.end());
        before.unreduced = inMeshOrder(std::move(before.unreduced));
        value = emit(OpKind::Reshard, value, std::move(attributes), before, {consumer});
    }
    fromDims.axes = sharded;
    if (!sharded.empty())
        value = emit(OpKind::Reshard, value, std::move(fromDims), target, {consumer});
    return value;
}

TensorSharding ReshardInserter::replicated(std::size_t rank, std::int32_t mesh) const
{
    TensorSharding sharding = TensorSharding::replicatedOf(rank);
    sharding.mesh = mesh;
    return sharding;
}

ValueId ReshardInserter::bring(ValueId value, const MaybeSharding& target, const std::string& consumer)
{
    if (shardingOf(value))
        value = reduce(value, unreducedOf(target), consumer);
    if (target)
        value = makeUnreduced(value, *target, consumer);
    value = throughWhole(value, target, consumer);
    if (!m_full || isSameLayout(shardingOf(value), target))
        return value;
    const TensorSharding wanted = target ? *target : replicated(m_target[value].type.shape.size(), shardingOf(value)->mesh);
    return emit(OpKind::Reshard, value, {}, wanted, {consumer});
}

bool ReshardInserter::isOnOneDevice(const MaybeSharding& sharding) const
{
    return sharding && m_meshes[static_cast<std::size_t>(sharding->mesh)].isMaximal;
}

ReshardInserter::MaybeSharding ReshardInserter::placeOf(const Op& op) const
{
    for (const ValueId result : op.results) {
        if (m_source[result].sharding)
            return m_source[result].sharding;
    }
    return std::nullopt;
}

ValueId ReshardInserter::throughWhole(ValueId value, const MaybeSharding& target, const std::string& consumer)
{
    const MaybeSharding from = shardingOf(value);
    const bool leaves = isOnOneDevice(from);
    const bool enters = isOnOneDevice(target);
    if (!m_full || !target || (!leaves && !enters) || (leaves && enters && from->mesh == target->mesh))
        return value;
    const std::size_t rank = m_target[value].type.shape.size();
    if (leaves || !splitsNothing(from)) {
        std::int32_t mesh = !leaves ? from->mesh : target->mesh;
        while (leaves && enters && m_meshes[static_cast<std::size_t>(mesh)].isMaximal) {
            mesh = (mesh + 1) % static_cast<std::int32_t>(m_meshes.size());
            if (mesh == target->mesh)
                return value; // there is no other mesh
        }
        value = emit(OpKind::Reshard, value, {}, replicated(rank, mesh), {consumer});
    }
    return enters ? emit(OpKind::Reshard, value, {}, replicated(rank, target->mesh), {consumer}) : value;
}

void ReshardInserter::insertInBlock(const Block& block)
{
    for (const OpId id : block.ops) {
        const Op& op = m_source[id];
        m_builder.setPhase(op.phase);
        switch (op.kind) {
        case OpKind::Repeat:
            insertInRepeat(op);
            break;
        case OpKind::While:
            insertInWhile(op);
            break;
        case OpKind::Case:
            insertInCase(op);
            break;
        case OpKind::Computation:
            insertInComputation(op);
            break;
        case OpKind::OptimizationBarrier:
            insertInBarrier(op);
            break;
        default:
            if (op.kind == OpKind::Reshard && addsUnreduced(op))
                m_now[op.results.front().at()] = makeUnreduced(
                    m_now[op.operands.front().at()], *m_source[op.results.front()].sharding, opName(OpKind::Reshard));
            else
                insertAround(id);
        }
    }
}

bool ReshardInserter::addsUnreduced(const Op& op) const
{
    const MaybeSharding& to = m_source[op.results.front()].sharding;
    const MaybeSharding& from = shardingOf(m_now[op.operands.front().at()]);
    return to && from && !withoutAxes(to->unreduced, from->unreduced).empty();
}

void ReshardInserter::insertAround(OpId id)
{
    const Op& op = m_source[id];
    if (isCollective(op.kind) && op.kind != OpKind::Reshard)
        return copyOp(m_builder, m_source, id, m_now);
    const std::string name(opName(op));
    std::vector<ValueId> operands;
    const AxisRefs leftPartial = op.results.empty() ? AxisRefs{} : unreducedOf(m_source[op.results.front()].sharding);
    const MaybeSharding where = placeOf(op);
    for (const ValueId operand : op.operands)
        operands.push_back(throughWhole(reduce(m_now[operand.at()], leftPartial, name), where, name));

    Placed placed;
    if (const auto rule = shardingRule(m_source, id); rule && !isOnOneDevice(where) && !hasCustomRule(op))
        placed = place(id, *rule, operands);
    for (std::size_t i = 0; i < placed.operands.size(); ++i) {
        if (placed.operands[i])
            operands[i] = emit(OpKind::Reshard, operands[i], {}, *placed.operands[i], {name});
    }
    const std::vector<ValueId> results = addOp(op, std::move(operands));
    for (std::size_t i = 0; i < results.size(); ++i) {
        copyNotes(op.results[i], results[i]);
        m_now[op.results[i].at()] = finishResult(op, i, results[i], placed);
    }
}

std::vector<ValueId> ReshardInserter::addOp(const Op& op, std::vector<ValueId> operands)
{
    const OpId copy(m_target.ops.size());
    std::vector<ValueId> results;
    if (op.bodies.empty()) {
        results = m_builder.addMany(op.kind, std::move(operands), op.attributes);
    } else {
        m_builder.beginOp(op.kind, std::move(operands), op.attributes);
        for (const BlockId body : op.bodies)
            copyBody(m_builder, m_source, body, copy, m_now);
        results = m_builder.endOp(copy, typesOf(op.results));
    }
    m_target[copy].kept = op.kept;
    return results;
}

std::vector<TensorType> ReshardInserter::typesOf(const std::vector<ValueId>& values) const
{
    std::vector<TensorType> types;
    for (const ValueId value : values)
        types.push_back(m_source[value].type);
    return types;
}

ValueId ReshardInserter::finishResult(const Op& op, std::size_t index, ValueId result, const Placed& placed)
{
    const std::string name(opName(op));
    const MaybeSharding wanted = shardingOf(result);
    const TensorSharding whole = replicated(m_target[result].type.shape.size(), placed.mesh);
    const bool moves = index < placed.results.size() && placed.results[index];
    if (moves)
        m_target[result].sharding = placed.results[index];
    ValueId value = result;
    AxisRefs splitting; // along these the result is made apart
    for (const DimSharding& dim : shardingOf(result).value_or(whole).dims)
        splitting.insert(splitting.end(), dim.axes.begin(), dim.axes.end());
    if (const AxisRefs reduced = withoutAxes(placed.reduced, splitting); !reduced.empty()) {
        CollectiveAttributes attributes;
        attributes.axes = reduced;
        attributes.kind = reductionOf(m_source, op).value_or(ReduceKind::Sum);
        value = emit(OpKind::AllReduce, value, std::move(attributes), shardingOf(result).value_or(whole), {name, true});
    }
    if (moves)
        value = emit(OpKind::Reshard, value, {}, wanted.value_or(whole), {name, true});
    return value;
}

Function insertExplicitReshards(const Function& function, const std::vector<NamedMesh>& meshes, ReshardDepth depth)
{
    return ReshardInserter(function, meshes, depth).run();
}

void constraintsToReshards(Function& function)
{
    for (Op& op : function.ops) {
        if (op.kind != OpKind::ShardingConstraint || op.results.empty())
            continue;
        Value& result = function[op.results.front()];
        if (!result.sharding)
            result.sharding = op.as<ConstraintAttributes>().sharding;
        CollectiveAttributes attributes;
        attributes.resultShape = result.type.shape;
        op.kind = OpKind::Reshard;
        op.attributes = std::move(attributes);
    }
}

void dropUnevenAxes(Function& function)
{
    for (Value& value : function.values) {
        for (std::size_t dim = 0; value.sharding && dim < value.sharding->dims.size(); ++dim) {
            AxisRefs& axes = value.sharding->dims[dim].axes;
            while (!axes.empty() && value.type.shape[dim] % shardCount(axes) != 0)
                axes.pop_back();
        }
    }
}

} // namespace meshwright
