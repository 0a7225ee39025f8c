// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/explicit_reshards.h"

#include "core/partition/factor_choice.h"
#include "core/partition/op_layout.h"
#include "core/partition/reshard_steps.h"
#include "core/program/builder.h"
#include "core/program/shape_rules.h"
#include "core/program/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace meshwright {

namespace {

using MaybeSharding = std::optional<TensorSharding>;

bool splitsNothing(const MaybeSharding& sharding)
{
    return !sharding || sharding->isReplicated();
}

AxisRefs unreducedOf(const MaybeSharding& sharding)
{
    return sharding ? sharding->unreduced : AxisRefs{};
}

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

class Inserter {
public:
    Inserter(const Function& source, const std::vector<NamedMesh>& meshes, ReshardDepth depth)
        : m_source(source)
        , m_meshes(meshes)
        , m_full(depth == ReshardDepth::Full)
        , m_builder(m_target)
        , m_now(source.values.size())
    {
        m_target.name = source.name;
    }

    Function run()
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

private:
    const Mesh& meshOf(const TensorSharding& sharding) const { return m_meshes[static_cast<std::size_t>(sharding.mesh)].mesh; }

    /// Where nothing else is said, what comes out of a propagation barrier lies as it went in.
    const MaybeSharding& shardingOf(ValueId value) const
    {
        OpId producer = m_target[value].producer;
        while (!m_target[value].sharding && producer.valid() && m_target[producer].kind == OpKind::PropagationBarrier) {
            value = m_target[producer].operands.front();
            producer = m_target[value].producer;
        }
        return m_target[value].sharding;
    }

    void copyNotes(ValueId from, ValueId to)
    {
        const Value& source = m_source[from];
        Value& target = m_target[to];
        target.name = source.name;
        target.role = source.role;
        target.sharding = source.sharding;
        target.annotation = source.annotation;
        target.kept = source.kept;
    }

    /// Both say the same of where elements lie; no sharding is the replicated one.
    bool isSameLayout(const MaybeSharding& a, const MaybeSharding& b) const
    {
        if (splitsNothing(a) || splitsNothing(b))
            return splitsNothing(a) && splitsNothing(b);
        if (meshOf(*a) != meshOf(*b) || a->unreduced != b->unreduced)
            return false;
        return std::equal(a->dims.begin(), a->dims.end(), b->dims.begin(), b->dims.end(),
            [](const DimSharding& x, const DimSharding& y) { return x.axes == y.axes; });
    }

    // ---- ops that change layouts

    /// Who asks for another layout: an op that uses the value, or the one that makes it otherwise than it is wanted.
    struct Asker {
        std::string op;
        bool makes = false;
    };

    ValueId emit(OpKind kind, ValueId operand, CollectiveAttributes attributes, TensorSharding layout, const Asker& asker)
    {
        if (kind == OpKind::Reshard)
            attributes.resultShape = m_target[operand].type.shape;
        attributes.cause = causeOf(kind, operand, layout, asker);
        const ValueId result = m_builder.add(kind, {operand}, std::move(attributes));
        m_target[result].sharding = std::move(layout);
        m_target[result].role = m_target[operand].role;
        return result;
    }

    Cause causeOf(OpKind kind, ValueId operand, const TensorSharding& to, const Asker& asker) const
    {
        Cause cause;
        cause.value = nameOf(operand);
        cause.op = asker.op;
        cause.annotation = m_target[operand].annotation;
        const MaybeSharding& from = shardingOf(operand);
        const std::string before = from ? layoutText(*from, meshOf(*from)) : "P()";
        const std::string after = layoutText(to, meshOf(to));
        if (kind == OpKind::AllReduce)
            cause.reason = asker.makes
                ? fmt::format("{} adds up over a dimension that is split: every device has a part", asker.op)
                : fmt::format("{} holds partial sums, {} needs them added up", cause.value, asker.op);
        else
            cause.reason = asker.makes
                ? fmt::format("{} makes {} as {}, it is wanted as {}", asker.op, cause.value, before, after)
                : fmt::format("{} needs {} as {}, it lies as {}", asker.op, cause.value, after, before);
        return cause;
    }

    /// The value's name, or what it was made from.
    std::string nameOf(ValueId value) const
    {
        while (m_target[value].name.empty()) {
            const OpId producer = m_target[value].producer;
            if (!producer.valid())
                return "a loop's value";
            if (!isCollective(m_target[producer].kind))
                return fmt::format("the result of {}", opName(m_target[producer]));
            value = m_target[producer].operands.front();
        }
        return m_target[value].name;
    }

    /// Adds up the partial sums that the target does not leave partial.
    ValueId reduce(ValueId value, const AxisRefs& leftPartial, const std::string& consumer)
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

    /// Gives a value the unreduced axes that the target has and it has not: axes that replicate, and ends of dimensions.
    ValueId makeUnreduced(ValueId value, const TensorSharding& target, const std::string& consumer)
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

    TensorSharding replicated(std::size_t rank, std::int32_t mesh) const
    {
        TensorSharding sharding = TensorSharding::replicatedOf(rank);
        sharding.mesh = mesh;
        return sharding;
    }

    /// The value as something outside of any rule wants it.
    ValueId bring(ValueId value, const MaybeSharding& target, const std::string& consumer)
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

    // ---- values on one device

    bool isOnOneDevice(const MaybeSharding& sharding) const
    {
        return sharding && m_meshes[static_cast<std::size_t>(sharding->mesh)].isMaximal;
    }

    /// Where an op is computed, as far as it matters to values on one device: as its first result that has a sharding.
    MaybeSharding placeOf(const Op& op) const
    {
        for (const ValueId result : op.results) {
            if (m_source[result].sharding)
                return m_source[result].sharding;
        }
        return std::nullopt;
    }

    /// The way to one device and back from it goes by the whole array on all devices. The value, on one device when the target is, and not
    /// on one when it is not.
    ValueId throughWhole(ValueId value, const MaybeSharding& target, const std::string& consumer)
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

    // ---- ops

    void insertInBlock(const Block& block)
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

    bool addsUnreduced(const Op& op) const
    {
        const MaybeSharding& to = m_source[op.results.front()].sharding;
        const MaybeSharding& from = shardingOf(m_now[op.operands.front().at()]);
        return to && from && !withoutAxes(to->unreduced, from->unreduced).empty();
    }

    void insertAround(OpId id)
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

    /// The op on these operands. Its blocks, if any, compute on single elements or on what nothing is known of: they stay as they are.
    std::vector<ValueId> addOp(const Op& op, std::vector<ValueId> operands)
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

    std::vector<TensorType> typesOf(const std::vector<ValueId>& values) const
    {
        std::vector<TensorType> types;
        for (const ValueId value : values)
            types.push_back(m_source[value].type);
        return types;
    }

    /// How an op is computed on shards, where that differs from how its tensors lie.
    struct Placed {
        std::vector<MaybeSharding> operands; ///< those that have to be brought into another layout
        std::vector<MaybeSharding> results; ///< the layouts that it makes, where they are not the wanted ones
        AxisRefs reduced; ///< every result is a partial sum over these, beyond its own unreduced axes
        std::int32_t mesh = 0;
    };

    ValueId finishResult(const Op& op, std::size_t index, ValueId result, const Placed& placed)
    {
        const std::string name(opName(op));
        const MaybeSharding wanted = shardingOf(result);
        const TensorSharding whole = replicated(m_target[result].type.shape.size(), placed.mesh);
        const bool moves = index < placed.results.size() && placed.results[index];
        if (moves)
            m_target[result].sharding = placed.results[index];
        ValueId value = result;
        if (!placed.reduced.empty()) {
            CollectiveAttributes attributes;
            attributes.axes = placed.reduced;
            attributes.kind = reductionOf(m_source, op).value_or(ReduceKind::Sum);
            value = emit(OpKind::AllReduce, value, std::move(attributes), shardingOf(result).value_or(whole), {name, true});
        }
        if (moves)
            value = emit(OpKind::Reshard, value, {}, wanted.value_or(whole), {name, true});
        return value;
    }

    /// The mesh of an op's tensors, the most frequent device order of those that are split; nothing when axes differ or none has a sharding.
    std::optional<std::int32_t> commonMesh(const std::vector<MaybeSharding>& shardings) const
    {
        const Mesh* axesOf = nullptr;
        std::optional<std::int32_t> common;
        for (const bool split : {true, false}) {
            for (const MaybeSharding& sharding : shardings) {
                if (!sharding || splitsNothing(sharding) == split || (!split && axesOf != nullptr))
                    continue;
                if (axesOf != nullptr && axesOf->axes() != meshOf(*sharding).axes())
                    return std::nullopt;
                if (axesOf == nullptr)
                    common = sharding->mesh;
                axesOf = &meshOf(*sharding);
            }
        }
        std::map<std::int32_t, int> counts;
        int most = 0;
        for (const MaybeSharding& sharding : shardings) {
            if (splitsNothing(sharding))
                continue;
            if (++counts[sharding->mesh] > most) {
                most = counts[sharding->mesh];
                common = sharding->mesh;
            }
        }
        if (axesOf == nullptr || axesOf->axes().empty())
            return std::nullopt;
        return common;
    }

    Placed place(OpId id, const OpShardingRule& rule, const std::vector<ValueId>& operands)
    {
        const Op& op = m_source[id];
        std::vector<MaybeSharding> shardings;
        std::vector<std::int64_t> elements;
        ShardingProjection projection;
        for (std::size_t i = 0; i < operands.size(); ++i) {
            shardings.push_back(shardingOf(operands[i]));
            elements.push_back(m_target[operands[i]].type.elements());
            projection.operands.push_back(project(shardings.back(), rule.operands[i], rule, MissingSharding::Closed));
        }
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            shardings.push_back(m_source[op.results[i]].sharding);
            elements.push_back(m_source[op.results[i]].type.elements());
            projection.results.push_back(project(shardings.back(), rule.results[i], rule, MissingSharding::Closed));
        }
        Placed placed;
        const auto mesh = commonMesh(shardings);
        if (!mesh)
            return placed;
        placed.mesh = *mesh;
        if (!isFullFor(op)) {
            if (op.kind == OpKind::DotGeneral)
                preferOperandsOfDot(rule, projection, elements, shardings, placed);
            reduceDeclared(op, rule, projection, placed);
            return placed;
        }
        const auto agreed = agreedFactorAxes(projection, rule);
        const AxesPerFactor axes = agreed ? *agreed
            : hasOverflow(projection) && op.kind == OpKind::Reshape
            ? redistributed(projection, rule)
            : chooseFactorAxes(projection, rule, elements, m_meshes[static_cast<std::size_t>(*mesh)].mesh);
        for (std::size_t i = 0; i < shardings.size(); ++i) {
            const bool isOperand = i < operands.size();
            auto& list = isOperand ? placed.operands : placed.results;
            const std::size_t index = isOperand ? i : i - operands.size();
            const DimFactors& dims = isOperand ? rule.operands[index] : rule.results[index];
            TensorFactorShardings& tensor = isOperand ? projection.operands[index] : projection.results[index];
            list.push_back(relaid(shardings[i], tensor, dims, rule, axes, *mesh));
        }
        setReduced(op, rule, axes, placed);
        return placed;
    }

    /// The tensor's layout under new axes for its factors; nothing when it lies so already.
    MaybeSharding relaid(const MaybeSharding& sharding, TensorFactorShardings& tensor, const DimFactors& dims,
        const OpShardingRule& rule, const AxesPerFactor& axes, std::int32_t mesh) const
    {
        const bool otherOrder = !splitsNothing(sharding)
            && meshOf(*sharding).deviceOrder() != m_meshes[static_cast<std::size_t>(mesh)].mesh.deviceOrder();
        bool changed = otherOrder;
        for (std::size_t f = 0; f < rule.factors.size(); ++f) {
            auto& factor = tensor.factors[f];
            if (!factor || (factor->axes == axes[f] && factor->overflow.empty()))
                continue;
            changed = true;
            factor->axes = axes[f];
            factor->overflow.clear();
        }
        if (!changed)
            return std::nullopt;
        TensorSharding layout = backProject(tensor, dims, rule, sharding ? sharding : replicated(dims.size(), mesh), mesh);
        layout.mesh = mesh;
        for (DimSharding& dim : layout.dims)
            dim.priority = 0;
        // Where the factors differ only in what no sharding can say, nothing moves.
        if (!otherOrder && isSameLayout(sharding, layout))
            return std::nullopt;
        return layout;
    }

    void setReduced(const Op& op, const OpShardingRule& rule, const AxesPerFactor& axes, Placed& placed) const
    {
        if (op.results.empty())
            return;
        AxisRefs reduced;
        for (std::size_t f = 0; f < rule.factors.size(); ++f) {
            if (rule.factors[f].kind == FactorKind::Reduction)
                reduced.insert(reduced.end(), axes[f].begin(), axes[f].end());
        }
        placed.reduced = withoutAxes(reduced, unreducedOf(m_source[op.results.front()].sharding));
    }

    // ---- the light version

    /// Of a concatenation even the light version makes pieces that fit, when it does not lie as one of its operands.
    bool isFullFor(const Op& op) const
    {
        return m_full
            || (op.kind == OpKind::Concatenate && std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId operand) {
                   return m_source[operand].sharding != m_source[op.results.front()].sharding;
               }));
    }

    /// Only a result that is declared partial has what is left of its sum reduced.
    void reduceDeclared(const Op& op, const OpShardingRule& rule, const ShardingProjection& projection, Placed& placed) const
    {
        if (op.results.empty() || unreducedOf(m_source[op.results.front()].sharding).empty())
            return;
        AxesPerFactor axes(rule.factors.size());
        for (std::size_t f = 0; f < rule.factors.size(); ++f) {
            for (const TensorFactorShardings& operand : projection.operands) {
                if (operand.factors[f])
                    axes[f] = operand.factors[f]->axes;
            }
        }
        setReduced(op, rule, axes, placed);
    }

    /// A product whose operands agree keeps their layout when its result, not larger than the operand that it disagrees with, wants the axes of
    /// the sum there: moving the result is less than scattering the sum and gathering an operand.
    void preferOperandsOfDot(const OpShardingRule& rule, ShardingProjection& projection,
        const std::vector<std::int64_t>& elements, const std::vector<MaybeSharding>& shardings, Placed& placed) const
    {
        if (!shardings[2])
            return;
        const auto& lhs = projection.operands[0].factors;
        const auto& rhs = projection.operands[1].factors;
        auto& result = projection.results[0].factors;
        std::optional<std::size_t> conflict;
        AxisRefs wanted;
        AxisRefs reduced;
        AxisRefs free;
        for (std::size_t f = 0; f < rule.factors.size(); ++f) {
            const bool both = lhs[f] && rhs[f];
            const AxisRefs& axes = lhs[f] ? lhs[f]->axes : rhs[f]->axes;
            if (both && lhs[f]->axes != rhs[f]->axes)
                return;
            if (both && rule.factors[f].kind == FactorKind::Reduction) {
                reduced.insert(reduced.end(), axes.begin(), axes.end());
                continue;
            }
            if (!both) {
                for (const AxisRef& axis : axes) {
                    if (std::any_of(free.begin(), free.end(), [&](const AxisRef& other) { return overlaps(axis, other); }))
                        return;
                    free.push_back(axis);
                }
            }
            if (result[f]->axes == axes)
                continue;
            const std::int64_t operandElements = both ? std::max(elements[0], elements[1]) : lhs[f] ? elements[0] : elements[1];
            if (axes.empty() || conflict || elements[2] > operandElements)
                return;
            conflict = f;
            wanted = axes;
        }
        if (!conflict || result[*conflict]->axes.empty() || result[*conflict]->axes != reduced)
            return;
        result[*conflict]->axes = wanted;
        placed.results = {backProject(projection.results[0], rule.results[0], rule, shardings[2], shardings[2]->mesh)};
    }

    // ---- reshapes whose factors share no divisor with the axes

    static bool hasOverflow(const ShardingProjection& projection)
    {
        const auto overflows = [](const TensorFactorShardings& tensor) {
            return std::any_of(tensor.factors.begin(), tensor.factors.end(),
                [](const auto& factor) { return factor && !factor->overflow.empty(); });
        };
        return std::any_of(projection.operands.begin(), projection.operands.end(), overflows)
            || std::any_of(projection.results.begin(), projection.results.end(), overflows);
    }

    static AxisRefs allAxes(const TensorFactorShardings& tensor)
    {
        AxisRefs axes;
        for (const auto& factor : tensor.factors) {
            if (!factor)
                continue;
            axes.insert(axes.end(), factor->axes.begin(), factor->axes.end());
            axes.insert(axes.end(), factor->overflow.begin(), factor->overflow.end());
        }
        return axes;
    }

    /// Gives every axis of the side with more pieces to the factors one after the other, as much of it as each can take, on both sides; what
    /// both can say then is taken.
    static AxesPerFactor redistributed(ShardingProjection projection, const OpShardingRule& rule)
    {
        TensorFactorShardings& operand = projection.operands[0];
        TensorFactorShardings& result = projection.results[0];
        const AxisRefs before = allAxes(operand);
        const AxisRefs after = allAxes(result);
        const AxisRefs& axes = shardCount(before) >= shardCount(after) ? before : after;
        redistribute(operand, rule.operands[0], rule, axes);
        redistribute(result, rule.results[0], rule, axes);
        ShardingProjection legal;
        const std::size_t ranks[] = {rule.operands[0].size(), rule.results[0].size()};
        legal.operands = {project(backProject(operand, rule.operands[0], rule, TensorSharding::replicatedOf(ranks[0]), 0),
            rule.operands[0], rule, MissingSharding::Closed)};
        legal.results = {project(backProject(result, rule.results[0], rule, TensorSharding::replicatedOf(ranks[1]), 0),
            rule.results[0], rule, MissingSharding::Closed)};
        AxesPerFactor common;
        for (std::size_t f = 0; f < rule.factors.size(); ++f)
            common.push_back(commonFactorPrefix(legal, f));
        return common;
    }

    static void redistribute(
        TensorFactorShardings& tensor, const DimFactors& dims, const OpShardingRule& rule, const AxisRefs& axes)
    {
        std::vector<std::pair<FactorSharding*, std::int64_t>> factors; // and what of its size is not split yet
        for (const auto& dim : dims) {
            for (const std::size_t index : dim) {
                FactorSharding& factor = *tensor.factors[index];
                factor.axes.clear();
                factor.overflow.clear();
                factors.emplace_back(&factor, rule.factors[index].size);
            }
        }
        for (AxisRef axis : axes) {
            for (auto& [factor, rest] : factors) {
                const std::int64_t common = std::gcd(rest, axis.size);
                if (common == 1)
                    continue;
                factor->axes.push_back({axis.axis, axis.pre, common});
                rest /= common;
                axis = {axis.axis, axis.pre * common, axis.size / common};
            }
        }
    }

    // ---- loops

    void insertInRepeat(const Op& op)
    {
        const auto& attributes = op.as<RepeatAttributes>();
        const Block& body = m_source[op.bodies.front()];
        std::vector<ValueId> operands;
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            const bool isStacked = i >= attributes.carries && i < attributes.carries + attributes.stacked;
            operands.push_back(bring(m_now[op.operands[i].at()],
                isStacked ? stacked(m_source[body.arguments[i]].sharding) : m_source[body.arguments[i]].sharding, "repeat"));
        }
        const OpId repeat = m_builder.beginRepeat(attributes, std::move(operands));
        std::vector<MaybeSharding> yielded;
        for (std::size_t i = 0; i < body.results.size(); ++i)
            yielded.push_back(
                i < attributes.carries ? m_source[body.arguments[i]].sharding : sliceOf(m_source[op.results[i]].sharding));
        fillBody(body, yielded, "the loop");
        m_builder.endRepeat(repeat);
        noteResults(op, repeat);
    }

    /// Fills the builder's current block, whose arguments are there, with what `body` does; what it yields is brought to these layouts.
    void fillBody(const Block& body, const std::vector<MaybeSharding>& yielded, const std::string& consumer)
    {
        const std::vector<ValueId> arguments = m_target[m_builder.block()].arguments;
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            copyNotes(body.arguments[i], arguments[i]);
            m_now[body.arguments[i].at()] = arguments[i];
        }
        insertInBlock(body);
        std::vector<ValueId> results;
        for (std::size_t i = 0; i < body.results.size(); ++i)
            results.push_back(bring(m_now[body.results[i].at()], yielded[i], consumer));
        m_builder.setResults(std::move(results));
    }

    void addBody(OpId target, BlockId body, const std::vector<MaybeSharding>& yielded, const std::string& consumer)
    {
        m_builder.beginBody(target, typesOf(m_source[body].arguments));
        fillBody(m_source[body], yielded, consumer);
        m_builder.setBlock(m_target[target].block);
    }

    /// Ends an op with blocks, whose results have the types that they had.
    void finishOp(const Op& op, OpId copy)
    {
        m_builder.endOp(copy, typesOf(op.results));
        noteResults(op, copy);
    }

    void noteResults(const Op& op, OpId copy)
    {
        m_target[copy].kept = op.kept;
        const std::vector<ValueId>& results = m_target[copy].results;
        for (std::size_t i = 0; i < results.size(); ++i) {
            copyNotes(op.results[i], results[i]);
            m_now[op.results[i].at()] = results[i];
        }
    }

    std::vector<MaybeSharding> shardingsOf(const std::vector<ValueId>& values) const
    {
        std::vector<MaybeSharding> shardings;
        for (const ValueId value : values)
            shardings.push_back(m_source[value].sharding);
        return shardings;
    }

    void insertInWhile(const Op& op)
    {
        const Block& body = m_source[op.bodies.back()];
        std::vector<ValueId> operands;
        for (std::size_t i = 0; i < op.operands.size(); ++i)
            operands.push_back(bring(m_now[op.operands[i].at()], m_source[body.arguments[i]].sharding, "while"));
        const OpId loop = m_builder.beginOp(op.kind, std::move(operands), op.attributes);
        addBody(loop, op.bodies.front(), {std::nullopt}, "the loop's condition");
        addBody(loop, op.bodies.back(), shardingsOf(op.results), "the loop");
        finishOp(op, loop);
    }

    /// Its operands come as its results are to lie.
    void insertInBarrier(const Op& op)
    {
        std::vector<ValueId> operands;
        for (std::size_t i = 0; i < op.operands.size(); ++i)
            operands.push_back(bring(m_now[op.operands[i].at()], m_source[op.results[i]].sharding, opName(op.kind)));
        const OpId barrier = m_builder.beginOp(op.kind, std::move(operands), op.attributes);
        finishOp(op, barrier);
    }

    void insertInCase(const Op& op)
    {
        std::vector<ValueId> operands;
        for (const ValueId operand : op.operands)
            operands.push_back(bring(m_now[operand.at()], m_source[operand].sharding, "case"));
        const OpId branches = m_builder.beginOp(op.kind, std::move(operands), op.attributes);
        for (const BlockId body : op.bodies)
            addBody(branches, body, shardingsOf(op.results), "case");
        finishOp(op, branches);
    }

    /// What goes into a computation lies as it says; inside, the manual axes split nothing.
    void insertInComputation(const Op& op)
    {
        const auto& computation = op.as<ComputationAttributes>();
        const Block& body = m_source[op.bodies.front()];
        const std::string name = computation.name.empty() ? "manual_computation" : computation.name;
        std::vector<ValueId> operands;
        for (std::size_t i = 0; i < op.operands.size(); ++i)
            operands.push_back(bring(m_now[op.operands[i].at()],
                computation.inShardings.empty() ? m_source[body.arguments[i]].sharding : computation.inShardings[i], name));
        const OpId block = m_builder.beginOp(op.kind, std::move(operands), op.attributes);
        std::vector<MaybeSharding> yielded = shardingsOf(op.results);
        for (MaybeSharding& sharding : yielded) {
            if (sharding)
                sharding = withoutManualAxes(*sharding, computation.manualAxes);
        }
        addBody(block, op.bodies.front(), yielded, name);
        finishOp(op, block);
    }

    /// The layout of an array whose slices lie so: dimension 0 whole; and back.
    static MaybeSharding stacked(MaybeSharding slice)
    {
        if (slice)
            slice->dims.insert(slice->dims.begin(), DimSharding{});
        return slice;
    }
    static MaybeSharding sliceOf(MaybeSharding whole)
    {
        if (whole)
            whole->dims.erase(whole->dims.begin());
        return whole;
    }

    const Function& m_source;
    const std::vector<NamedMesh>& m_meshes;
    bool m_full;
    Function m_target;
    Builder m_builder;
    std::vector<ValueId> m_now; ///< by value of the source: what uses of it get from here on
};

} // namespace

Function insertExplicitReshards(const Function& function, const std::vector<NamedMesh>& meshes, ReshardDepth depth)
{
    return Inserter(function, meshes, depth).run();
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
