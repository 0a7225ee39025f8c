// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partitioner.h"

#include "core/partition/body_lowering.h"
#include "core/partition/explicit_reshards.h"
#include "core/partition/local_indexing.h"
#include "core/partition/op_layout.h"
#include "core/partition/reshard_passes.h"
#include "core/program/other_op.h"
#include "core/program/shape_problems.h"
#include "core/program/shape_rules.h"
#include "core/program/transform.h"
#include "core/reshard/reshard_steps.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace meshwright {

void Partitioner::partitionBlock(const Block& block)
{
    for (const OpId id : block.ops) {
        const Op& op = m_source[id];
        m_builder.setPhase(op.phase);
        if (isCounted(op))
            m_isCounted[op.results.front().at()] = true;
        if (op.kind == OpKind::Repeat)
            partitionRepeat(op);
        else if (op.kind == OpKind::While)
            partitionWhile(op);
        else if (op.kind == OpKind::Case)
            partitionCase(op);
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

/// True for what makes a list of numbers that follow from places alone, element by element.
bool Partitioner::isCounted(const Op& op) const
{
    return isElementwise(op.kind) && globalShape(op.results.front()).size() == 1
        && std::all_of(op.operands.begin(), op.operands.end(),
            [this](ValueId operand) { return isLeaf(operand) || isBroadcastScalar(operand) || m_isCounted[operand.at()]; });
}

void Partitioner::partitionConstraint(const Op& op, const char* consumer, const std::string& origin)
{
    const ValueId result = op.results.front();
    const TensorSharding layout = declared(result);
    alias(op, obtain(op.operands.front(), layout, op.phase, consumer, origin, true), layout);
}

/// A result is this value of the device function.
void Partitioner::alias(ValueId result, Phase phase, ValueId local, const TensorSharding& layout)
{
    m_versions[result.at()].push_back({layout, local, phase, true});
    if (m_device.function[local].name.empty())
        m_device.function[local].name = m_source[result].name;
}

/// A collective on a whole array: the identity with another layout, or the sum of partial values.
void Partitioner::partitionCollective(const Op& op)
{
    const ValueId operand = op.operands.front();
    const ValueId result = op.results.front();
    if (m_versions[operand.at()].empty() || !isEven(m_versions[operand.at()].front().layout, globalShape(operand)))
        obtain(operand, declaredEven(operand), op.phase, opName(op.kind));
    const auto& versions = m_versions[operand.at()];
    const auto even = std::find_if(
        versions.begin(), versions.end(), [&](const Version& version) { return isEven(version.layout, globalShape(operand)); });
    const Version from = even == versions.end() ? versions.front() : *even;
    const bool reduces = op.kind == OpKind::AllReduce || op.kind == OpKind::ReduceScatter;
    CollectiveAttributes attributes = op.as<CollectiveAttributes>();
    TensorSharding to = declaredEven(result);
    if (!samePlacement(from.layout, *m_source[operand].sharding)
        || !samePlacement(to, *m_source[result].sharding)) // it leads from another layout, or to pieces of different sizes
        return partitionConstraint(op, opName(op.kind), {});
    to.unreducedKind = from.layout.unreducedKind;
    to.unreduced = from.layout.unreduced;
    if (reduces)
        to.unreduced = withoutAxes(to.unreduced, attributes.axes);
    if (op.kind == OpKind::AllReduce) {
        attributes.axes = withoutAxes(from.layout.unreduced, to.unreduced);
        if (attributes.axes.empty())
            return alias(op, from.local, from.layout); // the whole value is the sum already
    }
    ReshardStep step = reshardStep(op.kind, std::move(attributes), {globalShape(operand), byteSize(m_source[operand].type.dtype)},
        from.layout, meshOf(from.layout), to, meshOf(to));
    define(result, to, m_builder.add(op.kind, {from.local}, std::move(step.attributes)));
}

/// Barriers are for compilers: on devices nothing is left of them but the layouts of their results, and those that keep what nobody reads.
void Partitioner::partitionBarrier(const Op& op)
{
    if (!staysOnDevices(op)) {
        for (std::size_t i = 0; i < op.results.size(); ++i)
            pass(op.operands[i], op.results[i], op);
        return;
    }
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < op.results.size(); ++i)
        operands.push_back(obtain(op.operands[i], declared(op.results[i]), op.phase, opName(op.kind)));
    const std::vector<ValueId> made = m_builder.addMany(op.kind, std::move(operands), {});
    Function& device = m_builder.function();
    device[device[made.front()].producer].kept = op.kept;
    for (std::size_t i = 0; i < made.size(); ++i)
        define(op.results[i], declared(op.results[i]), made[i]);
}

/// A value takes the place of another one, in the layout of the latter.
void Partitioner::pass(ValueId from, ValueId to, const Op& op)
{
    const TensorSharding layout = declared(to);
    alias(to, op.phase, obtain(from, layout, op.phase, opName(op.kind)), layout);
}

void Partitioner::partitionByRule(OpId id)
{
    const Op& op = m_source[id];
    if (refusePart(op))
        return;
    auto rule = computableRule(m_source, id, pads());
    if (const auto* other = std::get_if<OtherAttributes>(&op.attributes); other != nullptr && isShardMapBorder(*other))
        m_problems.push_back({"MW1241",
            fmt::format("@{} in \"{}\" is the border of a shard_map in the form before Shardy; it is not partitioned",
                callTarget(*other), m_source.name),
            "print the program with Shardy: jax.config.update('jax_use_shardy_partitioner', True)"});
    if (!rule) {
        if (gatheredBytes(op) > 0)
            warnOfWhole(op, "it has no sharding rule");
        partitionWhole(op);
        return;
    }
    OpLayout layout = layoutFor(id, *rule);
    const std::optional<std::size_t> counted = exchangeContext(op, *rule, layout);
    std::vector<ValueId> operands;
    std::vector<TensorSharding> wanted;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const std::int32_t mesh = m_source[op.operands[i]].sharding->mesh;
        wanted.push_back(i == counted ? wholeLayout(1, mesh) : layoutUnder(layout, rule->operands[i], *rule, mesh));
        operands.push_back(obtain(op.operands[i], wanted.back(), op.phase, std::string(opName(op)), layout.reason));
    }
    std::vector<TensorSharding> layouts;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
        TensorSharding result = layoutUnder(layout, rule->results[i], *rule, m_source[op.results[i]].sharding->mesh);
        AxisRefs splitting;
        for (const DimSharding& dim : result.dims)
            splitting.insert(splitting.end(), dim.axes.begin(), dim.axes.end());
        for (const AxisRef& axis : withoutAxes(layout.reduced, splitting)) // along the others it is made apart
            result.unreduced.push_back(axis);
        std::sort(result.unreduced.begin(), result.unreduced.end());
        result.unreducedKind = reductionOf(m_source, op).value_or(ReduceKind::Sum);
        layouts.push_back(std::move(result));
    }
    if (const auto done = emitOnPieces(op, std::move(operands), wanted, layouts, layout.reduced); !done) {
        warnOfWhole(op, done.error().front().message);
        partitionWhole(op);
    }
}

/// What each device does with its pieces. Problems: those of `emitOp`.
Result<Done> Partitioner::emitOnPieces(const Op& op, std::vector<ValueId> operands, const std::vector<TensorSharding>& wanted,
    const std::vector<TensorSharding>& layouts, const AxisRefs& reduced)
{
    maskPadding(op, operands, wanted);
    if (emitGather(op, operands, wanted, layouts, reduced) || emitExchange(op, operands, wanted, layouts)
        || emitRing(op, operands, wanted, layouts))
        return Done{};
    scatterToPieces(op, operands, wanted, reduced);
    const auto slid = slidOp(op, operands, wanted);
    return emitOp(slid ? *slid : op, std::move(operands), layouts);
}

/// What every device must gather of an op's operands to have them whole.
std::int64_t Partitioner::gatheredBytes(const Op& op) const
{
    std::int64_t bytes = 0;
    for (const ValueId operand : op.operands) {
        const Value& value = m_source[operand];
        bytes += localShape(value.type.shape, *value.sharding) == value.type.shape ? 0 : value.type.bytes();
    }
    return bytes;
}

/// Right and slow.
void Partitioner::warnOfWhole(const Op& op, const std::string& why)
{
    Problem warning;
    warning.id = "MW1218";
    warning.severity = Severity::Warning;
    warning.message = fmt::format("{} is not computed on shards: every device gathers {} and does all of the work", opName(op),
        formatBytes(gatheredBytes(op)));
    if (!op.results.empty())
        warning.message += fmt::format(" for {}", valueText(m_source, op.results.front()));
    warning.rule = why;
    warning.fix = "leave the dimensions that the op changes unsharded, or write it with other ops";
    m_device.warnings.push_back(std::move(warning));
}

/// Gathers along split dimensions. False for everything else, and for those that are computed as they are.
bool Partitioner::emitGather(const Op& op, const std::vector<ValueId>& operands, const std::vector<TensorSharding>& wanted,
    const std::vector<TensorSharding>& layouts, const AxisRefs& reduced)
{
    if (op.kind != OpKind::Gather)
        return false;
    const auto& gather = op.as<GatherAttributes>();
    const Shape& whole = globalShape(op.operands[0]);
    if (reduced.empty() && splitIndexedDims(wanted[0], gather.dims, whole, gather.sliceSizes).empty())
        return false;
    m_builder.setPhase(op.phase);
    DeviceOps ops = deviceOps(wanted[0]);
    const OpAttributes local = localAttributes(op, operands, layouts);
    const ValueId result
        = LocalIndexing(ops).gather({operands[0], wanted[0], whole}, {operands[1], wanted[1], globalShape(op.operands[1])},
            std::get<GatherAttributes>(local), gather, layouts.front(), globalShape(op.results.front()));
    define(op.results.front(), layouts.front(), result);
    return true;
}

/// What a scatter takes on a device: indices that count from the beginning of its piece, and where devices have updates of their own (along
/// `reduced`), the arrays that these are combined with in the first of them only.
void Partitioner::scatterToPieces(
    const Op& op, std::vector<ValueId>& operands, const std::vector<TensorSharding>& wanted, const AxisRefs& reduced)
{
    const auto dims = scatterDims(op);
    if (!dims)
        return;
    m_builder.setPhase(op.phase);
    const std::size_t inputs = op.results.size(); // then the indices, then the updates of each input
    DeviceOps ops = deviceOps(wanted.front());
    LocalIndexing indexing(ops);
    const auto operand = [&](std::size_t i) {
        return LocalIndexing::Operand{operands[i], wanted[i], globalShape(op.operands[i])};
    };
    operands[inputs] = indexing.scatterIndices(operand(0), operand(inputs), *dims);
    for (std::size_t i = 0; i < inputs && !reduced.empty(); ++i) {
        if (!isZero(op.operands[i]))
            operands[i] = indexing.inFirstOnly(operand(i), *reductionOf(m_source, op), reduced);
    }
}

/// An op without a rule is computed by every device on whole arrays.
void Partitioner::partitionWhole(const Op& op)
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
    if (const auto done = emitOp(op, std::move(operands), layouts); !done) {
        append(m_problems, done.error());
        std::for_each(op.results.begin(), op.results.end(), [this](ValueId result) { makeUp(result); });
    }
}

/// The op itself on a device's pieces. Problems, and nothing is emitted: those of `resultTypes`, MW1302 where what it makes of the pieces are
/// no pieces of its results.
Result<Done> Partitioner::emitOp(const Op& op, std::vector<ValueId> operands, const std::vector<TensorSharding>& layouts)
{
    m_builder.setPhase(op.phase);
    OpAttributes attributes = localAttributes(op, operands, layouts);
    std::vector<TensorType> given;
    for (const ValueId operand : operands)
        given.push_back(m_builder.type(operand));
    const auto made = resultTypes(op.kind, attributes, given);
    if (!made)
        return made.error();
    for (std::size_t i = 0; i < op.results.size(); ++i) {
        if (const TensorType piece = localType(op.results[i], layouts[i]); (*made)[i] != piece)
            return wrongShape(
                opName(op), fmt::format("computes {} from its shards, not {}", typeText((*made)[i]), typeText(piece)));
    }
    const std::vector<ValueId> results = op.bodies.empty() ? m_builder.addMany(op.kind, operands, std::move(attributes))
                                                           : emitWithBodies(op, operands, std::move(attributes), *made);
    for (std::size_t i = 0; i < results.size(); ++i)
        define(op.results[i], layouts[i], results[i]);
    return Done{};
}

/// Blocks are copied as they are: what they compute on is whole, or single elements.
std::vector<ValueId> Partitioner::emitWithBodies(
    const Op& op, const std::vector<ValueId>& operands, OpAttributes attributes, const std::vector<TensorType>& types)
{
    const OpId id = m_builder.beginOp(op.kind, operands, std::move(attributes));
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
    return m_builder.endOp(id, types);
}

namespace {

void setInteger(KeptAttributes& attributes, std::string_view name, std::int64_t value)
{
    for (KeptAttribute& attribute : attributes) {
        if (attribute.name == name) {
            attribute.integers = {value};
            attribute.text = fmt::format("{} : i64", value);
        }
    }
}

/// Of the groups of a convolution, those that lie in a device's pieces.
void keepOwnGroups(OtherAttributes& convolution, const Shape& input, const Shape& kernel)
{
    const auto dims = convolutionDims(convolution.attributes);
    if (!dims)
        return;
    const std::int64_t features = kernel[dims->kernel.outer];
    const std::int64_t batch = convolution.results.front().shape[dims->result.outer];
    if (dims->featureGroups > 1 && features > 0)
        setInteger(convolution.attributes, "feature_group_count", input[dims->input.inner] / features);
    if (dims->batchGroups > 1 && batch > 0)
        setInteger(convolution.attributes, "batch_group_count", input[dims->input.outer] / batch);
}

} // namespace

/// Attributes that name a shape name the local one on shards.
OpAttributes Partitioner::localAttributes(
    const Op& op, const std::vector<ValueId>& operands, const std::vector<TensorSharding>& layouts) const
{
    OpAttributes attributes = op.attributes;
    if (auto* other = std::get_if<OtherAttributes>(&attributes)) {
        for (std::size_t i = 0; i < op.results.size(); ++i)
            other->results[i] = localType(op.results[i], layouts[i]);
        if (op.kind == OpKind::Convolution)
            keepOwnGroups(*other, m_device.function[operands[0]].type.shape, m_device.function[operands[1]].type.shape);
        return attributes;
    }
    if (layouts.size() != 1)
        return attributes;
    const Shape shape = localShape(globalShape(op.results.front()), layouts.front());
    if (auto* constant = std::get_if<ConstantAttributes>(&attributes)) {
        assert(constant->data.isSplat() || layouts.front().isReplicated()); // others are cut from the whole
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

/// The partial layout in which a value exists, if its sum has not been made yet and nothing but one op uses it.
const Version* Partitioner::partialVersion(ValueId value) const
{
    const auto& versions = m_versions[value.at()];
    if (versions.size() != 1 || versions.front().layout.unreduced.empty()
        || versions.front().layout.unreducedKind != ReduceKind::Sum)
        return nullptr;
    return m_uses[value.at()] == 1 ? &versions.front() : nullptr;
}

/// Adds two partial sums over the same axes as they are (one reduction instead of two), also where the program says that the sum is one, or a partial sum to a
/// carry that only accumulates.
bool Partitioner::keepPartial(const Op& op)
{
    if (op.kind != OpKind::Add)
        return !op.results.empty() && m_sinks[op.results.front().at()] && sinkReduction(op);
    const ValueId lhs = op.operands[0];
    const ValueId rhs = op.operands[1];
    const TensorSharding sum = declaredEven(op.results.front());
    if (!sum.unreduced.empty() && sum.unreducedKind == ReduceKind::Sum) {
        const ValueId a = obtain(lhs, sum, op.phase, opName(op.kind));
        return emitOp(op, {a, obtain(rhs, sum, op.phase, opName(op.kind))}, {sum}).has_value();
    }
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

/// A partial sum scaled, converted or reshaped as it is, because what follows only adds it to a carry.
bool Partitioner::sinkReduction(const Op& op)
{
    const Version* partial = partialVersion(op.operands.front());
    const std::size_t scaled = partial != nullptr ? 0 : op.operands.size() - 1;
    if (partial == nullptr)
        partial = partialVersion(op.operands[scaled]);
    if (partial == nullptr)
        return false;
    TensorSharding layout = partial->layout;
    if (op.kind == OpKind::Reshape) {
        const OpId id = m_source[op.results.front()].producer;
        auto rule = computableRule(m_source, id, pads());
        if (!rule)
            return false;
        const OpLayout chosen = layoutFor(id, *rule);
        if (!samePlacement(layout, layoutUnder(chosen, rule->operands.front(), *rule, layout.mesh)))
            return false;
        const TensorSharding before = layout;
        layout = layoutUnder(chosen, rule->results.front(), *rule, layout.mesh);
        layout.unreduced = before.unreduced;
        layout.unreducedKind = before.unreducedKind;
        if (!isEven(before, globalShape(op.operands.front())) || !isEven(layout, globalShape(op.results.front())))
            return false;
    }
    TensorSharding plain = layout;
    plain.unreduced.clear();
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < op.operands.size(); ++i)
        operands.push_back(i == scaled ? m_versions[op.operands[i].at()].front().local
                                       : obtain(op.operands[i], plain, op.phase, opName(op.kind)));
    return emitOp(op, std::move(operands), {layout}).has_value();
}

bool Partitioner::emitPartialSum(const Op& op)
{
    const Version& a = m_versions[op.operands[0].at()].front();
    const Version& b = m_versions[op.operands[1].at()].front();
    return emitOp(op, {a.local, b.local}, {a.layout}).has_value();
}

} // namespace meshwright
