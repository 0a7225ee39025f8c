// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partitioner.h"

#include "core/partition/body_lowering.h"
#include "core/partition/explicit_reshards.h"
#include "core/partition/local_indexing.h"
#include "core/partition/op_layout.h"
#include "core/partition/reshard_passes.h"
#include "core/partition/reshard_steps.h"
#include "core/program/other_op.h"
#include "core/program/shape_rules.h"
#include "core/program/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace meshwright {

bool sameLayout(const TensorSharding& a, const TensorSharding& b)
{
    return a.mesh == b.mesh && a.unreduced == b.unreduced
        && std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
            [](const DimSharding& x, const DimSharding& y) { return x.axes == y.axes; });
}

bool samePlacement(TensorSharding a, TensorSharding b)
{
    a.unreduced.clear();
    b.unreduced.clear();
    return sameLayout(a, b);
}

TensorSharding evened(TensorSharding layout, const Shape& shape)
{
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        auto& axes = layout.dims[dim].axes;
        while (!axes.empty() && shape[dim] % shardCount(axes) != 0)
            axes.pop_back();
    }
    return layout;
}

bool isCombined(const Function& function, const Op& op, const OpShardingRule& rule, std::size_t factor)
{
    switch (op.kind) {
    case OpKind::DotGeneral:
    case OpKind::Reduce:
        return true;
    case OpKind::Other:
        return baseName(op.as<OtherAttributes>().name) == "convolution";
    case OpKind::Scatter:
        return reductionOf(function, op).has_value();
    case OpKind::Gather: { // what indices count along
        const auto& indexed = op.as<GatherAttributes>().dims.indexMap;
        const DimFactors& dims = rule.operands.front();
        for (std::size_t dim = 0; dim < dims.size(); ++dim) {
            if (std::find(dims[dim].begin(), dims[dim].end(), factor) != dims[dim].end())
                return std::find(indexed.begin(), indexed.end(), dim) != indexed.end();
        }
        return false;
    }
    default:
        return false;
    }
}

std::optional<OpShardingRule> computableRule(const Function& function, OpId id)
{
    auto rule = shardingRule(function, id);
    for (std::size_t f = 0; rule && f < rule->factors.size(); ++f) {
        FactorKind& kind = rule->factors[f].kind;
        if (kind == FactorKind::Permutation || (kind == FactorKind::Reduction && !isCombined(function, function[id], *rule, f)))
            kind = FactorKind::NeedReplication;
    }
    // Windows that do not begin with the first element would reach into the piece of another device.
    if (rule && function[id].kind == OpKind::Scatter) {
        const IndexingDims& dims = function[id].as<ScatterAttributes>().dims;
        for (const std::size_t dim : dims.indexMap) {
            if (std::find(dims.collapsed.begin(), dims.collapsed.end(), dim) != dims.collapsed.end())
                continue;
            for (const std::size_t factor : rule->operands.front()[dim])
                rule->factors[factor].kind = FactorKind::NeedReplication;
        }
    }
    return rule;
}

Result<DeviceFunction> Partitioner::run()
{
    checkShardings();
    if (!m_problems.empty())
        return m_problems;

    for (const ValueId argument : m_source.arguments())
        addArgument(argument);
    partitionBlock(m_source.body());
    std::vector<ValueId> results;
    for (const ValueId result : m_source.results())
        results.push_back(obtain(result, declared(result), phaseOf(result), "return"));
    if (!m_problems.empty())
        return m_problems;
    m_builder.setResults(std::move(results), m_source.resultNames);
    m_device.function.donations = m_source.donations;
    eraseDeadOps(m_device.function);
    m_device.globalShapes.resize(m_device.function.values.size());
    return std::move(m_device);
}

const Mesh& Partitioner::meshOfOp(const Op& op) const
{
    return meshOf(*m_source[op.results.empty() ? op.operands.front() : op.results.front()].sharding);
}

void Partitioner::checkShardings()
{
    for (const ValueId argument : m_source.arguments())
        checkDivides(argument);
    for (const ValueId result : m_source.results())
        checkDivides(result);
    forEachOp(m_source, [&](OpId op) {
        for (const ValueId result : m_source[op].results) {
            if (!m_source[result].sharding)
                m_problems.push_back(
                    {"MW1210", fmt::format("{} has no sharding: the function is not propagated", valueText(m_source, result))});
        }
    });
}

/// Arrays that users place, and what leaves the function, must divide evenly.
void Partitioner::checkDivides(ValueId id)
{
    const Value& value = m_source[id];
    if (!value.sharding) {
        m_problems.push_back(
            {"MW1210", fmt::format("{} has no sharding: the function is not propagated", valueText(m_source, id))});
        return;
    }
    if (value.annotation.empty())
        return; // chosen by propagation: what does not divide is left whole
    for (std::size_t dim = 0; dim < value.type.shape.size(); ++dim) {
        const std::int64_t pieces = shardCount(value.sharding->dims[dim].axes);
        if (value.type.shape[dim] % pieces != 0)
            m_problems.push_back({"MW1211",
                fmt::format(
                    "{}: dim {} of size {} is not divisible by {}", valueText(m_source, id), dim, value.type.shape[dim], pieces),
                "choose a size that divides, or leave the dimension whole", Place{{}, 0, 0, value.annotation}});
    }
}

Phase Partitioner::phaseOf(ValueId value) const
{
    const OpId producer = m_source[value].producer;
    return producer.valid() ? m_source[producer].phase : Phase::Forward;
}

TensorType Partitioner::localType(ValueId value, const TensorSharding& layout) const
{
    return {m_source[value].type.dtype, localShape(globalShape(value), layout)};
}

/// Notes what a value of the device function is: its layout and the whole array's shape.
void Partitioner::describe(ValueId local, const TensorSharding& layout, const Shape& shape)
{
    m_device.function[local].sharding = layout;
    m_device.globalShapes.resize(m_device.function.values.size());
    m_device.globalShapes[local.at()] = shape;
}

void Partitioner::define(ValueId value, const TensorSharding& layout, ValueId local)
{
    const Value& from = m_source[value];
    Value& to = m_device.function[local];
    to.name = from.name;
    to.role = from.role;
    to.annotation = from.annotation;
    describe(local, layout, from.type.shape);
    m_versions[value.at()].push_back({layout, local, phaseOf(value), true});
}

void Partitioner::addArgument(ValueId value)
{
    const TensorSharding layout = declared(value);
    define(value, layout, m_builder.argument(localType(value, layout)));
}

/// Made from nothing, or from a key, in any layout. A constant of many elements is not: it is cut from the whole.
bool Partitioner::isLeaf(ValueId value) const
{
    const OpId producer = m_source[value].producer;
    if (!producer.valid() || opInfo(m_source[producer].kind).opClass != OpClass::Leaf)
        return false;
    return m_source[producer].kind != OpKind::Constant || m_source[producer].as<ConstantAttributes>().data.isSplat();
}

bool Partitioner::isBroadcastScalar(ValueId value) const
{
    const OpId producer = m_source[value].producer;
    return producer.valid() && m_source[producer].kind == OpKind::BroadcastInDim
        && globalShape(m_source[producer].operands.front()).empty();
}

const Version* Partitioner::find(ValueId value, const TensorSharding& layout, Phase phase) const
{
    for (const Version& version : m_versions[value.at()]) {
        if (isVisible(version, phase) && sameLayout(version.layout, layout))
            return &version;
    }
    return nullptr;
}

bool Partitioner::isVisible(const Version& version, Phase phase) const
{
    return version.canonical || version.phase == phase || m_options.regather == Regather::Keep;
}

/// The value in a layout. `mayMove` says that something in the program asks for the change itself.
ValueId Partitioner::obtain(ValueId value, const TensorSharding& wanted, Phase phase, const std::string& consumer,
    const std::string& reason, bool mayMove)
{
    if (const Version* version = find(value, wanted, phase))
        return version->local;
    if (isLeaf(value) || isBroadcastScalar(value))
        return remake(value, wanted, phase);

    const Version* best = nullptr;
    const ReshardPlan* bestPlan = nullptr;
    bool wholeOnMesh = false;
    for (const Version& version : m_versions[value.at()]) {
        if (!isVisible(version, phase) || version.layout.mesh != wanted.mesh)
            continue;
        wholeOnMesh = true;
        if (!withoutAxes(wanted.unreduced, version.layout.unreduced).empty())
            continue;
        const ReshardPlan& plan
            = m_planner.plan(globalShape(value), byteSize(m_source[value].type.dtype), version.layout, wanted, meshOf(wanted));
        if (bestPlan == nullptr || plan.cost < bestPlan->cost) {
            best = &version;
            bestPlan = &plan;
        }
    }
    if (best == nullptr) {
        m_problems.push_back(whyUnreachable(value, wanted, consumer, wholeOnMesh));
        return m_versions[value.at()].front().local;
    }
    if (m_options.localOnly && !mayMove && !bestPlan->steps.empty())
        m_problems.push_back({"MW1221",
            fmt::format("{} needs {} as {}, it lies as {}", consumer, valueText(m_source, value),
                layoutText(wanted, meshOf(wanted)), layoutText(best->layout, meshOf(wanted))),
            "insert reshards first, or partition the program without --only"});
    return emitPlan(value, *best, *bestPlan, phase, consumer, reason);
}

Problem Partitioner::whyUnreachable(ValueId value, const TensorSharding& wanted, const std::string& consumer, bool isOnMesh) const
{
    if (isOnMesh)
        return {"MW1220",
            fmt::format("{} needs {} as a partial sum over {}, and it is whole", consumer, valueText(m_source, value),
                axesText(wanted.unreduced, meshOf(wanted))),
            "leave the unreduced axes out: the value is already the sum"};
    return {"MW1212", fmt::format("{} is on another mesh than {} needs it", valueText(m_source, value), consumer),
        "use one mesh for all values of a function"};
}

/// Constants, iotas, random bits and broadcast scalars are made again in any layout rather than moved.
ValueId Partitioner::remake(ValueId value, const TensorSharding& wanted, Phase phase)
{
    const OpId producer = m_source[value].producer;
    std::vector<ValueId> operands;
    for (const ValueId operand : m_source[producer].operands)
        operands.push_back(
            obtain(operand, TensorSharding::replicatedOf(globalShape(operand).size()), phase, opName(m_source[producer].kind)));
    const Phase before = m_builder.phase();
    m_builder.setPhase(phase);
    const OpAttributes attributes = localAttributes(m_source[producer], operands, {wanted});
    const ValueId local = m_builder.add(m_source[producer].kind, std::move(operands), attributes);
    m_builder.setPhase(before);
    describe(local, wanted, globalShape(value));
    m_versions[value.at()].push_back({wanted, local, phase, true});
    return local;
}

ValueId Partitioner::emitPlan(ValueId value, const Version from, const ReshardPlan& plan, Phase phase,
    const std::string& consumer, const std::string& reason)
{
    // A partial sum is reduced in the phase that made it, and its sum takes its place.
    const bool reduces = !from.layout.unreduced.empty();
    const Phase at = reduces ? from.phase : phase;
    const Phase before = m_builder.phase();
    m_builder.setPhase(at);
    ValueId local = from.local;
    TensorSharding layout = from.layout;
    for (const ReshardStep& step : plan.steps) {
        CollectiveAttributes attributes = step.attributes;
        attributes.cause = causeOf(value, layout, step.result, consumer, reason);
        local = m_builder.add(step.kind, {local}, std::move(attributes));
        m_device.function[local].role = m_source[value].role;
        m_device.function[local].name = m_source[value].name;
        describe(local, step.result, globalShape(value));
        layout = step.result;
    }
    m_builder.setPhase(before);
    m_versions[value.at()].push_back({layout, local, at, reduces});
    return local;
}

Cause Partitioner::causeOf(ValueId value, const TensorSharding& from, const TensorSharding& to, const std::string& consumer,
    const std::string& reason) const
{
    const Mesh& mesh = meshOf(to);
    Cause cause;
    cause.value = m_source[value].name.empty() ? describeUnnamed(value) : m_source[value].name;
    const OpId producer = m_source[value].producer;
    const bool reduces = from.unreduced != to.unreduced;
    cause.op = reduces && producer.valid() ? std::string(opName(m_source[producer])) : consumer;
    if (reduces)
        cause.reason = fmt::format("{} sums over a dimension that {} splits, so every device holds a partial sum", cause.op,
            axesText(from.unreduced, mesh));
    else
        cause.reason = fmt::format(
            "{} needs {} as {}, it lies as {}", consumer, cause.value, layoutText(to, mesh), layoutText(from, mesh));
    if (!reason.empty())
        cause.reason += ": " + reason;
    cause.annotation = annotationOf(value, reduces ? from.unreduced : movedAxes(from, to));
    return cause;
}

/// The value's name, or that of what is passed to a manual computation for it; empty when there is none.
std::string Partitioner::nameOf(ValueId value) const
{
    if (!m_source[value].name.empty())
        return m_source[value].name;
    const auto passed = m_passed.find(value);
    return passed == m_passed.end() ? std::string() : nameOf(passed->second);
}

std::string Partitioner::describeUnnamed(ValueId value) const
{
    const OpId producer = m_source[value].producer;
    if (const std::string name = nameOf(value); !name.empty())
        return name;
    if (!producer.valid())
        return "a loop's value";
    for (const ValueId operand : m_source[producer].operands) {
        if (const std::string name = nameOf(operand); !name.empty())
            return fmt::format("{}({}, ..)", opName(m_source[producer]), name);
    }
    return fmt::format("the result of {}", opName(m_source[producer]));
}

AxisRefs Partitioner::movedAxes(const TensorSharding& from, const TensorSharding& to)
{
    AxisRefs axes;
    for (std::size_t dim = 0; dim < from.dims.size(); ++dim) {
        if (from.dims[dim].axes == to.dims[dim].axes)
            continue;
        axes.insert(axes.end(), from.dims[dim].axes.begin(), from.dims[dim].axes.end());
        axes.insert(axes.end(), to.dims[dim].axes.begin(), to.dims[dim].axes.end());
    }
    return axes;
}

/// The user's annotation behind one of these axes on the value, or on an operand of the op that made it.
std::string Partitioner::annotationOf(ValueId value, const AxisRefs& axes) const
{
    if (!m_source[value].annotation.empty())
        return m_source[value].annotation;
    if (m_options.report == nullptr)
        return {};
    std::vector<ValueId> suspects{value};
    if (const OpId producer = m_source[value].producer; producer.valid())
        suspects.insert(suspects.end(), m_source[producer].operands.begin(), m_source[producer].operands.end());
    for (const ValueId suspect : suspects) {
        const ShardingReason* first = nullptr; // in order of dimension
        for (const ShardingReason* reason : m_reasons[suspect.at()]) {
            const bool meant
                = std::any_of(axes.begin(), axes.end(), [&](const AxisRef& axis) { return overlaps(axis, reason->axis); });
            if (meant && !reason->annotation.empty() && (first == nullptr || reason->dim < first->dim))
                first = reason;
        }
        if (first != nullptr)
            return first->annotation;
    }
    return {};
}

} // namespace meshwright
