// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partition.h"

#include "core/partition/body_lowering.h"
#include "core/partition/explicit_reshards.h"
#include "core/partition/local_indexing.h"
#include "core/partition/op_layout.h"
#include "core/partition/reshard_passes.h"
#include "core/partition/reshard_steps.h"
#include "core/program/builder.h"
#include "core/program/other_op.h"
#include "core/program/shape_rules.h"
#include "core/program/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

namespace meshwright {

namespace {

/// One layout in which a value exists on the devices.
struct Version {
    TensorSharding layout;
    ValueId local; ///< in the device function
    Phase phase = Phase::Forward;
    bool canonical = true; ///< as its op made it, or its reduced sum: to be used in every phase
};

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

/// The layout alone: axes and unreduced parts, without openness, priorities and replicated sets.
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

/// Drops axes from the minor end of every dimension that they do not divide.
TensorSharding evened(TensorSharding layout, const Shape& shape)
{
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        auto& axes = layout.dims[dim].axes;
        while (!axes.empty() && shape[dim] % shardCount(axes) != 0)
            axes.pop_back();
    }
    return layout;
}

/// True when what the devices make of their pieces along a factor is to be combined: of the elements of an array that a factor splits, each
/// device takes part with its own.
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

/// The rule by which an op can be computed on pieces: what needs elements of a neighbour, or a sum that the op is not part of, is whole.
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

class Partitioner {
public:
    Partitioner(const Function& source, const std::vector<NamedMesh>& meshes, const PartitionOptions& options)
        : m_source(source)
        , m_meshes(meshes)
        , m_options(options)
        , m_cost(options.cost != nullptr ? *options.cost : m_defaultCost)
        , m_planner(m_cost, options.style)
        , m_builder(m_device.function)
        , m_versions(source.values.size())
        , m_uses(useCounts(source))
        , m_accumulates(source.values.size(), false)
        , m_sinks(source.values.size(), false)
    {
        m_device.function.name = source.name;
        if (options.report != nullptr) {
            m_reasons.resize(source.values.size());
            for (const ShardingReason& reason : options.report->reasons)
                m_reasons[reason.value.at()].push_back(&reason);
        }
    }

    Result<DeviceFunction> run()
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

private:
    const Mesh& meshOf(const TensorSharding& layout) const { return m_meshes[static_cast<std::size_t>(layout.mesh)].mesh; }
    const Mesh& meshOfOp(const Op& op) const
    {
        return meshOf(*m_source[op.results.empty() ? op.operands.front() : op.results.front()].sharding);
    }
    const Shape& globalShape(ValueId value) const { return m_source[value].type.shape; }

    void checkShardings()
    {
        for (const ValueId argument : m_source.arguments())
            checkDivides(argument);
        for (const ValueId result : m_source.results())
            checkDivides(result);
        forEachOp(m_source, [&](OpId op) {
            for (const ValueId result : m_source[op].results) {
                if (!m_source[result].sharding)
                    m_problems.push_back({"MW1210",
                        fmt::format("{} has no sharding: the function is not propagated", valueText(m_source, result))});
            }
        });
    }

    /// Arrays that users place, and what leaves the function, must divide evenly.
    void checkDivides(ValueId id)
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
                    fmt::format("{}: dim {} of size {} is not divisible by {}", valueText(m_source, id), dim,
                        value.type.shape[dim], pieces),
                    "choose a size that divides, or leave the dimension whole", Place{{}, 0, 0, value.annotation}});
        }
    }

    /// The layout that propagation gave a value.
    TensorSharding declared(ValueId value) const { return evened(layoutOnly(*m_source[value].sharding), globalShape(value)); }

    Phase phaseOf(ValueId value) const
    {
        const OpId producer = m_source[value].producer;
        return producer.valid() ? m_source[producer].phase : Phase::Forward;
    }

    TensorType localType(ValueId value, const TensorSharding& layout) const
    {
        return {m_source[value].type.dtype, localShape(globalShape(value), layout)};
    }

    /// Notes what a value of the device function is: its layout and the whole array's shape.
    void describe(ValueId local, const TensorSharding& layout, const Shape& shape)
    {
        m_device.function[local].sharding = layout;
        m_device.globalShapes.resize(m_device.function.values.size());
        m_device.globalShapes[local.at()] = shape;
    }

    void define(ValueId value, const TensorSharding& layout, ValueId local)
    {
        const Value& from = m_source[value];
        Value& to = m_device.function[local];
        to.name = from.name;
        to.role = from.role;
        to.annotation = from.annotation;
        describe(local, layout, from.type.shape);
        m_versions[value.at()].push_back({layout, local, phaseOf(value), true});
    }

    void addArgument(ValueId value)
    {
        const TensorSharding layout = declared(value);
        define(value, layout, m_builder.argument(localType(value, layout)));
    }

    // ---- bringing a value into the layout that something needs

    /// Made from nothing, or from a key, in any layout. A constant of many elements is not: it is cut from the whole.
    bool isLeaf(ValueId value) const
    {
        const OpId producer = m_source[value].producer;
        if (!producer.valid() || opInfo(m_source[producer].kind).opClass != OpClass::Leaf)
            return false;
        return m_source[producer].kind != OpKind::Constant || m_source[producer].as<ConstantAttributes>().data.isSplat();
    }

    bool isBroadcastScalar(ValueId value) const
    {
        const OpId producer = m_source[value].producer;
        return producer.valid() && m_source[producer].kind == OpKind::BroadcastInDim
            && globalShape(m_source[producer].operands.front()).empty();
    }

    const Version* find(ValueId value, const TensorSharding& layout, Phase phase) const
    {
        for (const Version& version : m_versions[value.at()]) {
            if (isVisible(version, phase) && sameLayout(version.layout, layout))
                return &version;
        }
        return nullptr;
    }

    bool isVisible(const Version& version, Phase phase) const
    {
        return version.canonical || version.phase == phase || m_options.regather == Regather::Keep;
    }

    /// The value in a layout. `mayMove` says that something in the program asks for the change itself.
    ValueId obtain(ValueId value, const TensorSharding& wanted, Phase phase, const std::string& consumer,
        const std::string& reason = {}, bool mayMove = false)
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
            const ReshardPlan& plan = m_planner.plan(
                globalShape(value), byteSize(m_source[value].type.dtype), version.layout, wanted, meshOf(wanted));
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

    Problem whyUnreachable(ValueId value, const TensorSharding& wanted, const std::string& consumer, bool isOnMesh) const
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
    ValueId remake(ValueId value, const TensorSharding& wanted, Phase phase)
    {
        const OpId producer = m_source[value].producer;
        std::vector<ValueId> operands;
        for (const ValueId operand : m_source[producer].operands)
            operands.push_back(obtain(
                operand, TensorSharding::replicatedOf(globalShape(operand).size()), phase, opName(m_source[producer].kind)));
        const Phase before = m_builder.phase();
        m_builder.setPhase(phase);
        const OpAttributes attributes = localAttributes(m_source[producer], operands, {wanted});
        const ValueId local = m_builder.add(m_source[producer].kind, std::move(operands), attributes);
        m_builder.setPhase(before);
        describe(local, wanted, globalShape(value));
        m_versions[value.at()].push_back({wanted, local, phase, true});
        return local;
    }

    ValueId emitPlan(ValueId value, const Version from, const ReshardPlan& plan, Phase phase, const std::string& consumer,
        const std::string& reason)
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

    Cause causeOf(ValueId value, const TensorSharding& from, const TensorSharding& to, const std::string& consumer,
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
    std::string nameOf(ValueId value) const
    {
        if (!m_source[value].name.empty())
            return m_source[value].name;
        const auto passed = m_passed.find(value);
        return passed == m_passed.end() ? std::string() : nameOf(passed->second);
    }

    std::string describeUnnamed(ValueId value) const
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

    static AxisRefs movedAxes(const TensorSharding& from, const TensorSharding& to)
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
    std::string annotationOf(ValueId value, const AxisRefs& axes) const
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

    // ---- ops

    void partitionBlock(const Block& block)
    {
        for (const OpId id : block.ops) {
            const Op& op = m_source[id];
            m_builder.setPhase(op.phase);
            if (op.kind == OpKind::Repeat)
                partitionRepeat(op);
            else if (op.kind == OpKind::ShardingConstraint)
                partitionConstraint(op, "sharding_constraint", op.as<ConstraintAttributes>().origin);
            else if (op.kind == OpKind::Reshard)
                partitionConstraint(op, "reshard", {});
            else if (isCollective(op.kind))
                partitionCollective(op);
            else if (op.kind == OpKind::PropagationBarrier || op.kind == OpKind::OptimizationBarrier)
                partitionBarrier(op);
            else if (op.kind == OpKind::Computation)
                partitionComputation(op);
            else if (m_manual.mesh >= 0 && isBodyCollective(op))
                partitionBodyCollective(op);
            else if (m_manual.mesh >= 0 && isPartitionId(op))
                partitionDeviceId(op);
            else if (!op.results.empty() && (isLeaf(op.results.front()) || isBroadcastScalar(op.results.front())))
                continue; // made where it is needed
            else if (!keepPartial(op))
                partitionByRule(id);
        }
    }

    void partitionConstraint(const Op& op, const char* consumer, const std::string& origin)
    {
        const ValueId result = op.results.front();
        const TensorSharding layout = declared(result);
        alias(op, obtain(op.operands.front(), layout, op.phase, consumer, origin, true), layout);
    }

    void alias(const Op& op, ValueId local, const TensorSharding& layout) { alias(op.results.front(), op.phase, local, layout); }

    /// A result is this value of the device function.
    void alias(ValueId result, Phase phase, ValueId local, const TensorSharding& layout)
    {
        m_versions[result.at()].push_back({layout, local, phase, true});
        if (m_device.function[local].name.empty())
            m_device.function[local].name = m_source[result].name;
    }

    /// A collective on a whole array: the identity with another layout, or the sum of partial values.
    void partitionCollective(const Op& op)
    {
        const ValueId operand = op.operands.front();
        const ValueId result = op.results.front();
        if (m_versions[operand.at()].empty())
            obtain(operand, declared(operand), op.phase, opName(op.kind));
        const Version from = m_versions[operand.at()].front();
        const bool reduces = op.kind == OpKind::AllReduce || op.kind == OpKind::ReduceScatter;
        CollectiveAttributes attributes = op.as<CollectiveAttributes>();
        if (attributes.pieces) {
            m_problems.push_back({"MW1265",
                fmt::format("{} in \"{}\" exchanges what devices have already: the program is one on shards", opName(op.kind),
                    m_source.name),
                "partition the program that it was made from"});
            makeUp(result);
            return;
        }
        TensorSharding to = declared(result);
        to.unreducedKind = from.layout.unreducedKind;
        to.unreduced = from.layout.unreduced;
        if (reduces)
            to.unreduced = withoutAxes(to.unreduced, attributes.axes);
        if (op.kind == OpKind::AllReduce) {
            attributes.axes = withoutAxes(from.layout.unreduced, to.unreduced);
            if (attributes.axes.empty())
                return alias(op, from.local, from.layout); // the whole value is the sum already
        }
        ReshardStep step = reshardStep(op.kind, std::move(attributes),
            {globalShape(operand), byteSize(m_source[operand].type.dtype)}, from.layout, meshOf(from.layout), to, meshOf(to));
        step.attributes.kind = op.as<CollectiveAttributes>().kind;
        define(result, to, m_builder.add(op.kind, {from.local}, std::move(step.attributes)));
    }

    /// Barriers are for compilers: on devices nothing is left of them but the layouts of their results.
    void partitionBarrier(const Op& op)
    {
        for (std::size_t i = 0; i < op.results.size(); ++i)
            pass(op.operands[i], op.results[i], op);
    }

    /// A value takes the place of another one, in the layout of the latter.
    void pass(ValueId from, ValueId to, const Op& op)
    {
        const TensorSharding layout = declared(to);
        alias(to, op.phase, obtain(from, layout, op.phase, opName(op.kind)), layout);
    }

    /// A named computation is its ops.
    void partitionComputation(const Op& op)
    {
        if (isManual(op))
            return partitionManual(op);
        const Block& body = m_source[op.bodies.front()];
        for (std::size_t i = 0; i < op.operands.size(); ++i)
            pass(op.operands[i], body.arguments[i], op);
        partitionBlock(body);
        m_builder.setPhase(op.phase);
        for (std::size_t i = 0; i < op.results.size(); ++i)
            pass(body.results[i], op.results[i], op);
    }

    // ---- manual computations

    /// Its body is what every device runs already, over the manual axes; along the others it is partitioned like everything else. Values
    /// inside are pieces of what lies outside, and belong to arrays of their own whose shapes are those in the text.
    void partitionManual(const Op& op)
    {
        const ComputationAttributes& computation = op.as<ComputationAttributes>();
        const Block& body = m_source[op.bodies.front()];
        const auto& shardings = computation.inShardings.empty() ? computation.outShardings : computation.inShardings;
        if (shardings.empty())
            return;
        const Mesh& mesh = meshOf(shardings.front());
        const Manual outer = m_manual;
        m_manual.mesh = shardings.front().mesh;
        m_manual.axes.insert(m_manual.axes.end(), computation.manualAxes.begin(), computation.manualAxes.end());
        std::sort(m_manual.axes.begin(), m_manual.axes.end());
        const bool hasAutomatic = hasAutomaticAxes(mesh);

        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            const TensorSharding layout = evened(layoutOnly(computation.inShardings[i]), globalShape(op.operands[i]));
            const ValueId argument = body.arguments[i];
            m_passed[argument] = op.operands[i];
            ValueId local
                = obtain(op.operands[i], layout, op.phase, "manual_computation", fmt::format("in_sharding {}", i), true);
            const TensorSharding inside = withoutManualAxes(layout, computation.manualAxes);
            if (hasAutomatic) { // inside it may be moved, by what it is there
                local = copied(local);
                describe(local, inside, globalShape(argument));
            }
            m_versions[argument.at()].push_back({inside, local, op.phase, true});
        }
        partitionBlock(body);
        m_builder.setPhase(op.phase);
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            const TensorSharding layout = evened(layoutOnly(computation.outShardings[i]), globalShape(op.results[i]));
            const ValueId local = obtain(body.results[i], withoutManualAxes(layout, computation.manualAxes), op.phase,
                "manual_computation", fmt::format("out_sharding {}", i), true);
            define(op.results[i], layout, copied(local));
        }
        m_manual = outer;
    }

    bool hasAutomaticAxes(const Mesh& mesh) const
    {
        for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
            if (mesh.axes()[axis].size > 1
                && !std::binary_search(m_manual.axes.begin(), m_manual.axes.end(), static_cast<std::int32_t>(axis)))
                return true;
        }
        return false;
    }

    /// A value of its own for what a device has, as it lies somewhere else; buffers are shared where they can be.
    ValueId copied(ValueId local)
    {
        return m_builder.add(OpKind::Reshape, {local}, ReshapeAttributes{m_device.function[local].type.shape});
    }

    /// A collective that the body says itself.
    void partitionBodyCollective(const Op& op)
    {
        const Mesh& mesh = m_meshes[static_cast<std::size_t>(m_manual.mesh)].mesh;
        const auto collective = bodyCollective(m_source, op, mesh);
        if (!collective)
            append(m_problems, collective.error());
        else if (auto problem = crossesAutomaticAxes(*collective, op, m_manual.axes, mesh))
            m_problems.push_back(*std::move(problem));
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            TensorSharding layout = declared(op.operands[i]);
            layout.mesh = m_manual.mesh;
            if (!m_problems.empty()) {
                makeUp(op.results[i]);
                continue;
            }
            for (const std::size_t dim : exchangedDims(*collective))
                layout.dims[dim].axes.clear();
            const ValueId operand = obtain(op.operands[i], layout, op.phase, std::string(opName(op)));
            CollectiveAttributes attributes = loweredCollective(
                *collective, mesh, localShape(globalShape(op.results[i]), layout), describeUnnamed(op.operands[i]));
            define(op.results[i], layout, m_builder.add(collective->kind, {operand}, std::move(attributes)));
        }
    }

    static std::vector<std::size_t> exchangedDims(const BodyCollective& collective)
    {
        switch (collective.kind) {
        case OpKind::AllGather:
            return {collective.join};
        case OpKind::ReduceScatter:
            return {collective.split};
        case OpKind::AllToAll:
            return {collective.split, collective.join};
        default:
            return {};
        }
    }

    /// Something of the value's type, so that all problems are found.
    void makeUp(ValueId value)
    {
        m_versions[value.at()].push_back(
            {declared(value), m_builder.splat(localType(value, declared(value)), 0.0), m_builder.phase(), true});
    }

    /// Each device's id: its place in a list of all ids that is spread over the mesh.
    void partitionDeviceId(const Op& op)
    {
        const Mesh& mesh = m_meshes[static_cast<std::size_t>(m_manual.mesh)].mesh;
        TensorSharding spread = TensorSharding::replicatedOf(1);
        spread.mesh = m_manual.mesh;
        TensorSharding whole = spread;
        std::vector<std::uint32_t> ids;
        for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
            ids.push_back(static_cast<std::uint32_t>(mesh.deviceAt(position)));
        for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
            if (mesh.axes()[axis].size > 1)
                spread.dims.front().axes.push_back(wholeAxis(mesh, axis));
        }
        const Shape shape{mesh.deviceCount()};
        ValueId id;
        if (std::is_sorted(ids.begin(), ids.end()) && ids.front() == 0) {
            id = m_builder.iota({DType::U32, {1}}, 0);
        } else {
            auto blob = std::make_shared<const std::string>(
                reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::uint32_t));
            const ValueId all = m_builder.add(OpKind::Constant, {}, ConstantAttributes{{DType::U32, shape}, {std::move(blob)}});
            describe(all, whole, shape);
            CollectiveAttributes slice;
            slice.axes = spread.dims.front().axes;
            slice.perDim = {slice.axes};
            id = m_builder.add(OpKind::AllSlice, {all}, std::move(slice));
        }
        describe(id, spread, shape);
        TensorSharding scalar = TensorSharding::replicatedOf(0);
        scalar.mesh = m_manual.mesh;
        define(op.results.front(), scalar, m_builder.reshape(id, {}));
    }

    void partitionByRule(OpId id)
    {
        const Op& op = m_source[id];
        const auto rule = computableRule(m_source, id);
        if (const auto* other = std::get_if<OtherAttributes>(&op.attributes); other != nullptr && isShardMapBorder(*other))
            m_problems.push_back({"MW1241",
                fmt::format("@{} in \"{}\" is the border of a shard_map in the form before Shardy; it is not partitioned",
                    callTarget(*other), m_source.name),
                "print the program with Shardy: jax.config.update('jax_use_shardy_partitioner', True)"});
        if (!rule) {
            partitionWhole(op);
            return;
        }
        const OpLayout layout = chooseOpLayout(m_source, id, *rule, meshOfOp(op));
        std::vector<ValueId> operands;
        std::vector<TensorSharding> wanted;
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            wanted.push_back(layoutUnder(layout, rule->operands[i], *rule, m_source[op.operands[i]].sharding->mesh));
            operands.push_back(obtain(op.operands[i], wanted.back(), op.phase, std::string(opName(op)), layout.reason));
        }
        std::vector<TensorSharding> layouts;
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            TensorSharding result = layoutUnder(layout, rule->results[i], *rule, m_source[op.results[i]].sharding->mesh);
            for (const AxisRef& axis : layout.reduced)
                result.unreduced.push_back(axis);
            std::sort(result.unreduced.begin(), result.unreduced.end());
            result.unreducedKind = reductionOf(m_source, op).value_or(ReduceKind::Sum);
            layouts.push_back(std::move(result));
        }
        if (!emitIndexed(op, operands, wanted, layouts, layout.reduced))
            emitOp(op, std::move(operands), layouts);
    }

    /// Gathers and scatters along split dimensions, or of split updates. False for everything else, and for those that are computed as they are.
    bool emitIndexed(const Op& op, const std::vector<ValueId>& operands, const std::vector<TensorSharding>& wanted,
        const std::vector<TensorSharding>& layouts, const AxisRefs& reduced)
    {
        if (op.kind != OpKind::Gather && op.kind != OpKind::Scatter)
            return false;
        const bool isGather = op.kind == OpKind::Gather;
        const IndexingDims& dims = isGather ? op.as<GatherAttributes>().dims : op.as<ScatterAttributes>().dims;
        const Shape& whole = globalShape(op.operands.front());
        const Shape slices = isGather ? op.as<GatherAttributes>().sliceSizes : scatteredSlices(dims, whole);
        if (reduced.empty() && splitIndexedDims(wanted.front(), dims, whole, slices).empty())
            return false;
        m_builder.setPhase(op.phase);
        LocalIndexing indexing(m_builder, meshOf(wanted.front()),
            [this](ValueId value, const TensorSharding& layout, const Shape& shape) { describe(value, layout, shape); });
        const auto operand = [&](std::size_t i) {
            return LocalIndexing::Operand{operands[i], wanted[i], globalShape(op.operands[i])};
        };
        const OpAttributes local = localAttributes(op, operands, layouts);
        const ValueId result = isGather ? indexing.gather(operand(0), operand(1), std::get<GatherAttributes>(local),
                                   op.as<GatherAttributes>(), layouts.front(), globalShape(op.results.front()))
                                        : indexing.scatter(operand(0), operand(1), operands[2],
                                            std::get<ScatterAttributes>(local), reduced, isZero(op.operands.front()));
        define(op.results.front(), layouts.front(), result);
        return true;
    }

    /// An op without a rule is computed by every device on whole arrays.
    void partitionWhole(const Op& op)
    {
        std::vector<ValueId> operands;
        const auto whole = [&](ValueId value) {
            TensorSharding layout = TensorSharding::replicatedOf(globalShape(value).size());
            layout.mesh = m_source[value].sharding->mesh;
            return layout;
        };
        for (const ValueId operand : op.operands)
            operands.push_back(
                obtain(operand, whole(operand), op.phase, std::string(opName(op)), "it is computed on whole arrays only"));
        std::vector<TensorSharding> layouts;
        for (const ValueId result : op.results)
            layouts.push_back(whole(result));
        emitOp(op, std::move(operands), layouts);
    }

    void emitOp(const Op& op, std::vector<ValueId> operands, const std::vector<TensorSharding>& layouts)
    {
        m_builder.setPhase(op.phase);
        const std::vector<ValueId> results = op.bodies.empty()
            ? m_builder.addMany(op.kind, operands, localAttributes(op, operands, layouts))
            : emitWithBodies(op, operands, layouts);
        for (std::size_t i = 0; i < results.size(); ++i)
            define(op.results[i], layouts[i], results[i]);
    }

    /// Blocks are copied as they are: what they compute on is whole, or single elements.
    std::vector<ValueId> emitWithBodies(
        const Op& op, const std::vector<ValueId>& operands, const std::vector<TensorSharding>& layouts)
    {
        const OpId id = m_builder.beginOp(op.kind, operands, localAttributes(op, operands, layouts));
        std::vector<ValueId> mapping(m_source.values.size());
        for (const BlockId body : op.bodies)
            copyBody(m_builder, m_source, body, id, mapping);
        for (std::size_t value = 0; value < mapping.size(); ++value) {
            if (!mapping[value].valid())
                continue;
            TensorSharding layout = TensorSharding::replicatedOf(m_source.values[value].type.shape.size());
            layout.mesh = m_source.values[value].sharding ? m_source.values[value].sharding->mesh : 0;
            describe(mapping[value], layout, m_source.values[value].type.shape);
        }
        std::vector<TensorType> types;
        for (std::size_t i = 0; i < op.results.size(); ++i)
            types.push_back(localType(op.results[i], layouts[i]));
        return m_builder.endOp(id, types);
    }

    /// Attributes that name a shape name the local one on shards.
    OpAttributes localAttributes(
        const Op& op, const std::vector<ValueId>& operands, const std::vector<TensorSharding>& layouts) const
    {
        OpAttributes attributes = op.attributes;
        if (auto* other = std::get_if<OtherAttributes>(&attributes)) {
            for (std::size_t i = 0; i < op.results.size(); ++i)
                other->results[i] = localType(op.results[i], layouts[i]);
            return attributes;
        }
        if (layouts.size() != 1)
            return attributes;
        const Shape shape = localShape(globalShape(op.results.front()), layouts.front());
        if (auto* constant = std::get_if<ConstantAttributes>(&attributes)) {
            assert(constant->data.isSplat() || layouts.front().isReplicated());
            constant->type.shape = shape;
        } else if (auto* iota = std::get_if<IotaAttributes>(&attributes)) {
            iota->type.shape = shape;
        } else if (auto* bits = std::get_if<RandomBitsAttributes>(&attributes)) {
            bits->type.shape = shape;
        } else if (auto* broadcast = std::get_if<BroadcastAttributes>(&attributes)) {
            broadcast->shape = shape;
        } else if (auto* reshape = std::get_if<ReshapeAttributes>(&attributes)) {
            reshape->shape = shape;
        } else if (auto* slice = std::get_if<SliceAttributes>(&attributes)) {
            for (std::size_t dim = 0; dim < shape.size(); ++dim) { // what is split is not cut
                if (shape[dim] != globalShape(op.results.front())[dim])
                    slice->limits[dim] = shape[dim];
            }
        } else if (auto* dynamic = std::get_if<DynamicSliceAttributes>(&attributes)) {
            dynamic->sizes = shape;
        } else if (auto* gather = std::get_if<GatherAttributes>(&attributes)) {
            const Shape& from = m_device.function[operands.front()].type.shape;
            for (std::size_t dim = 0; dim < from.size(); ++dim)
                gather->sliceSizes[dim] = std::min(gather->sliceSizes[dim], from[dim]);
        }
        return attributes;
    }

    // ---- sums that stay partial

    /// The partial layout in which a value exists, if its sum has not been made yet and nothing but one op uses it.
    const Version* partialVersion(ValueId value) const
    {
        const auto& versions = m_versions[value.at()];
        if (versions.size() != 1 || versions.front().layout.unreduced.empty()
            || versions.front().layout.unreducedKind != ReduceKind::Sum)
            return nullptr;
        return m_uses[value.at()] == 1 ? &versions.front() : nullptr;
    }

    /// Adds two partial sums over the same axes as they are (one reduction instead of two), or a partial sum to a carry that only accumulates.
    bool keepPartial(const Op& op)
    {
        if (op.kind != OpKind::Add)
            return !op.results.empty() && m_sinks[op.results.front().at()] && sinkReduction(op);
        const ValueId lhs = op.operands[0];
        const ValueId rhs = op.operands[1];
        const bool lhsAccumulates = m_accumulates[lhs.at()];
        const bool rhsAccumulates = m_accumulates[rhs.at()];
        if (lhsAccumulates != rhsAccumulates) {
            const ValueId carry = lhsAccumulates ? lhs : rhs;
            const Version* partial = partialVersion(lhsAccumulates ? rhs : lhs);
            Version& accumulator = m_versions[carry.at()].front();
            if (partial == nullptr || !samePlacement(partial->layout, accumulator.layout))
                return false;
            accumulator.layout.unreduced = partial->layout.unreduced;
            m_device.function[accumulator.local].sharding = accumulator.layout;
            return emitPartialSum(op);
        }
        const Version* a = partialVersion(lhs);
        const Version* b = partialVersion(rhs);
        return a != nullptr && b != nullptr && sameLayout(a->layout, b->layout) && emitPartialSum(op);
    }

    /// A partial sum scaled or converted as it is, because what follows only adds it to a carry.
    bool sinkReduction(const Op& op)
    {
        const Version* partial = partialVersion(op.operands.front());
        const std::size_t scaled = partial != nullptr ? 0 : op.operands.size() - 1;
        if (partial == nullptr)
            partial = partialVersion(op.operands[scaled]);
        if (partial == nullptr)
            return false;
        const TensorSharding layout = partial->layout;
        TensorSharding plain = layout;
        plain.unreduced.clear();
        std::vector<ValueId> operands;
        for (std::size_t i = 0; i < op.operands.size(); ++i)
            operands.push_back(i == scaled ? m_versions[op.operands[i].at()].front().local
                                           : obtain(op.operands[i], plain, op.phase, opName(op.kind)));
        emitOp(op, std::move(operands), {layout});
        return true;
    }

    bool emitPartialSum(const Op& op)
    {
        const Version& a = m_versions[op.operands[0].at()].front();
        const Version& b = m_versions[op.operands[1].at()].front();
        emitOp(op, {a.local, b.local}, {a.layout});
        return true;
    }

    // ---- loops

    bool isZero(ValueId value) const
    {
        OpId producer = m_source[value].producer;
        if (producer.valid() && m_source[producer].kind == OpKind::BroadcastInDim)
            producer = m_source[m_source[producer].operands.front()].producer;
        if (!producer.valid() || m_source[producer].kind != OpKind::Constant)
            return false;
        const auto& data = m_source[producer].as<ConstantAttributes>().data.value;
        return data == ConstantData{0.0}.value || data == ConstantData{std::int64_t{0}}.value;
    }

    /// A carry that begins at zero, and to which the body only adds: it may stay a partial sum.
    bool onlyAccumulates(const Op& repeat, std::size_t carry) const
    {
        const Block& body = m_source[repeat.bodies.front()];
        const ValueId argument = body.arguments[carry];
        const ValueId next = body.results[carry];
        const OpId producer = m_source[next].producer;
        if (!isZero(repeat.operands[carry]) || m_uses[argument.at()] != 1 || m_uses[next.at()] != 1 || !producer.valid()
            || m_source[producer].kind != OpKind::Add)
            return false;
        const auto& operands = m_source[producer].operands;
        return std::find(operands.begin(), operands.end(), argument) != operands.end();
    }

    bool isConstantEverywhere(ValueId value) const
    {
        OpId producer = m_source[value].producer;
        if (producer.valid() && m_source[producer].kind == OpKind::BroadcastInDim && isBroadcastScalar(value))
            producer = m_source[m_source[producer].operands.front()].producer;
        return producer.valid() && m_source[producer].kind == OpKind::Constant
            && m_source[producer].as<ConstantAttributes>().data.isSplat();
    }

    /// The operand in which an op is linear, when everything else of it is constant: scaling, and another floating type.
    std::optional<std::size_t> linearOperand(const Op& op) const
    {
        if (op.kind == OpKind::Convert && isFloating(m_source[op.operands.front()].type.dtype)
            && isFloating(m_source[op.results.front()].type.dtype))
            return 0;
        if ((op.kind == OpKind::Multiply || op.kind == OpKind::Divide) && isConstantEverywhere(op.operands[1]))
            return 0;
        if (op.kind == OpKind::Multiply && isConstantEverywhere(op.operands[0]))
            return 1;
        return std::nullopt;
    }

    /// Marks what may stay a partial sum on its way to an accumulating carry.
    void markSinks(const Op& repeat, std::size_t carry)
    {
        const Block& body = m_source[repeat.bodies.front()];
        const Op& add = m_source[m_source[body.results[carry]].producer];
        ValueId term = add.operands[0] == body.arguments[carry] ? add.operands[1] : add.operands[0];
        while (m_source[term].producer.valid() && m_uses[term.at()] == 1) {
            const Op& op = m_source[m_source[term].producer];
            const auto linear = linearOperand(op);
            if (!linear)
                return;
            m_sinks[term.at()] = true;
            term = op.operands[*linear];
        }
    }

    /// The layout of a stacked array whose slices lie as `slice`: dimension 0 whole.
    static TensorSharding stackedLayout(const TensorSharding& slice)
    {
        TensorSharding stacked = slice;
        stacked.dims.insert(stacked.dims.begin(), DimSharding{});
        return stacked;
    }

    void partitionRepeat(const Op& op)
    {
        const auto& attributes = op.as<RepeatAttributes>();
        const Block& body = m_source[op.bodies.front()];
        std::vector<ValueId> operands;
        std::vector<TensorSharding> argumentLayouts;
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            const TensorSharding layout = declared(body.arguments[i]);
            const bool isStacked = i >= attributes.carries && i < attributes.carries + attributes.stacked;
            operands.push_back(obtain(op.operands[i], isStacked ? stackedLayout(layout) : layout, op.phase, "repeat"));
            argumentLayouts.push_back(layout);
        }

        const OpId repeat = m_builder.beginRepeat(attributes, std::move(operands));
        const std::vector<ValueId> locals = m_device.function[m_builder.block()].arguments;
        for (std::size_t i = 0; i < locals.size(); ++i) {
            define(body.arguments[i], argumentLayouts[i], locals[i]);
            m_accumulates[body.arguments[i].at()] = i < attributes.carries && onlyAccumulates(op, i);
            if (m_accumulates[body.arguments[i].at()])
                markSinks(op, i);
        }
        partitionBlock(body);
        std::vector<ValueId> yielded;
        std::vector<TensorSharding> layouts;
        for (std::size_t i = 0; i < body.results.size(); ++i) {
            TensorSharding layout = declared(body.results[i]);
            if (i < attributes.carries)
                layout = m_versions[body.arguments[i].at()].front().layout;
            yielded.push_back(obtain(body.results[i], layout, phaseOf(body.results[i]), "the loop"));
            layouts.push_back(i < attributes.carries ? layout : stackedLayout(layout));
        }
        m_builder.setResults(std::move(yielded));
        const std::vector<ValueId> results = m_builder.endRepeat(repeat);
        m_builder.setPhase(op.phase);
        for (std::size_t i = 0; i < results.size(); ++i)
            define(op.results[i], layouts[i], results[i]);
    }

    const Function& m_source;
    const std::vector<NamedMesh>& m_meshes;
    const PartitionOptions& m_options;
    BytesThenStepsCost m_defaultCost;
    const CollectiveCost& m_cost;
    ReshardPlanner m_planner;
    DeviceFunction m_device;
    Builder m_builder;
    std::vector<std::vector<Version>> m_versions; ///< by value of the source
    std::vector<std::size_t> m_uses;
    std::vector<std::vector<const ShardingReason*>> m_reasons; ///< by value of the source, as they came; empty without a report
    std::vector<bool> m_accumulates; ///< by value of the source: carries that may stay partial
    std::vector<bool> m_sinks; ///< by value of the source: scaled or converted on the way to such a carry, before its sum is made
    /// The manual computations around the ops at work.
    struct Manual {
        std::int32_t mesh = -1; ///< none
        std::vector<std::int32_t> axes; ///< ascending
    };
    Manual m_manual;
    std::map<ValueId, ValueId> m_passed; ///< to the blocks of manual computations, by their arguments
    Problems m_problems;
};

} // namespace

Result<DeviceFunction> partition(const Function& function, const std::vector<NamedMesh>& meshes, const PartitionOptions& options)
{
    if (hasManualComputation(function)) { // its author has placed the collectives
        const Function settled = withBodiesOnTheirMeshes(function);
        return Partitioner(settled, meshes, options).run();
    }
    if (options.style != ReshardStyle::Shardy || options.localOnly)
        return Partitioner(function, meshes, options).run();

    const BytesThenStepsCost defaultCost;
    Function explicitly = function;
    constraintsToReshards(explicitly);
    dropUnevenAxes(explicitly);
    explicitly = reshardsToCollectives(insertExplicitReshards(explicitly, meshes), meshes,
        options.cost != nullptr ? *options.cost : defaultCost,
        {.style = ReshardStyle::Shardy, .fuseReductions = true, .evenOnly = true});
    PartitionOptions rest = options;
    rest.report = nullptr; // it speaks of the values of the function before
    return Partitioner(explicitly, meshes, rest).run();
}

Result<PartitionedProgram> propagateAndPartition(Program program, const PartitionOptions& options)
{
    PartitionedProgram result;
    Problems problems;
    DeviceStage stage;
    stage.meshes = program.meshes;
    for (Function& function : program.functions) {
        auto report = propagate(function, program.meshes);
        if (!report) {
            append(problems, report.error());
            continue;
        }
        PartitionOptions withReport = options;
        withReport.report = &*report;
        auto device = partition(function, program.meshes, withReport);
        if (!device) {
            append(problems, device.error());
            continue;
        }
        stage.functions.push_back(*std::move(device));
        result.reports.push_back(*std::move(report));
    }
    if (!problems.empty())
        return problems;
    result.device.collectiveCost = options.cost != nullptr ? options.cost->id() : BytesThenStepsCost().id();
    result.device.stages.push_back(std::move(stage));
    result.propagated = std::move(program);
    return result;
}

} // namespace meshwright
