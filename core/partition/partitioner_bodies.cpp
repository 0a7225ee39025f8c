// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partitioner.h"

#include "core/partition/body_lowering.h"
#include "core/partition/explicit_reshards.h"
#include "core/partition/local_indexing.h"
#include "core/partition/op_layout.h"
#include "core/partition/reshard_passes.h"
#include "core/program/other_op.h"
#include "core/program/shape_rules.h"
#include "core/program/transform.h"
#include "core/reshard/reshard_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace meshwright {

/// A named computation is its ops.
void Partitioner::partitionComputation(const Op& op)
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

/// Its body is what every device runs already, over the manual axes; along the others it is partitioned like everything else. Values
/// inside are pieces of what lies outside, and belong to arrays of their own whose shapes are those in the text.
void Partitioner::partitionManual(const Op& op)
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
        ValueId local = obtain(op.operands[i], layout, op.phase, "manual_computation", fmt::format("in_sharding {}", i), true);
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

bool Partitioner::hasAutomaticAxes(const Mesh& mesh) const
{
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        if (mesh.axes()[axis].size > 1
            && !std::binary_search(m_manual.axes.begin(), m_manual.axes.end(), static_cast<std::int32_t>(axis)))
            return true;
    }
    return false;
}

/// A value of its own for what a device has, as it lies somewhere else; buffers are shared where they can be.
ValueId Partitioner::copied(ValueId local)
{
    if (m_device.function[local].type.dtype == DType::Token)
        return local;
    return m_builder.add(OpKind::Reshape, {local}, ReshapeAttributes{m_device.function[local].type.shape});
}

/// A collective that the body says itself.
void Partitioner::partitionBodyCollective(const Op& op)
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
        layout.unreduced.clear(); // what the body exchanges is whole: a maximum of sums is not a sum of maxima
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

std::vector<std::size_t> Partitioner::exchangedDims(const BodyCollective& collective)
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
void Partitioner::makeUp(ValueId value)
{
    m_versions[value.at()].push_back(
        {declared(value), m_builder.splat(localType(value, declared(value)), 0.0), m_builder.phase(), true});
}

/// Each device's id: its place in a list of all ids that is spread over the mesh.
void Partitioner::partitionDeviceId(const Op& op)
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
        auto blob
            = std::make_shared<const std::string>(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::uint32_t));
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

bool Partitioner::isZero(ValueId value) const
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
bool Partitioner::onlyAccumulates(const Op& repeat, std::size_t carry) const
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

bool Partitioner::isConstantEverywhere(ValueId value) const
{
    OpId producer = m_source[value].producer;
    if (producer.valid() && m_source[producer].kind == OpKind::BroadcastInDim && isBroadcastScalar(value))
        producer = m_source[m_source[producer].operands.front()].producer;
    return producer.valid() && m_source[producer].kind == OpKind::Constant
        && m_source[producer].as<ConstantAttributes>().data.isSplat();
}

/// The operand in which an op is linear, when everything else of it is constant: scaling, another floating type, another shape.
std::optional<std::size_t> Partitioner::linearOperand(const Op& op) const
{
    if (op.kind == OpKind::Reshape)
        return 0;
    if (op.kind == OpKind::Convert && isFloating(m_source[op.operands.front()].type.dtype)
        && isFloating(m_source[op.results.front()].type.dtype))
        return 0;
    const bool divides = op.kind == OpKind::Divide && isFloating(m_source[op.results.front()].type.dtype); // integers are rounded
    if ((op.kind == OpKind::Multiply || divides) && isConstantEverywhere(op.operands[1]))
        return 0;
    if (op.kind == OpKind::Multiply && isConstantEverywhere(op.operands[0]))
        return 1;
    return std::nullopt;
}

/// Whether a term that only one op reads is a sum that devices may make in part, but for scaling and conversions: to a wider type, and in backward passes
/// to any, as frameworks round each device's part of a gradient.
bool Partitioner::leadsToSum(ValueId term) const
{
    while (m_source[term].producer.valid() && m_uses[term.at()] == 1) {
        const Op& op = m_source[m_source[term].producer];
        const bool isSum = op.kind == OpKind::Reduce && op.as<ReduceAttributes>().kind == ReduceKind::Sum;
        if (isSum || op.kind == OpKind::DotGeneral || op.kind == OpKind::Scatter || op.kind == OpKind::Add)
            return true;
        const auto linear = linearOperand(op);
        const bool narrows = op.kind == OpKind::Convert && op.phase != Phase::Backward
            && byteSize(m_source[op.operands.front()].type.dtype) >= byteSize(m_source[term].type.dtype);
        if (!linear || narrows)
            return false;
        term = op.operands[*linear];
    }
    return false;
}

/// Marks what scales and converts a term.
void Partitioner::markWay(ValueId term)
{
    while (m_source[term].producer.valid() && m_uses[term.at()] == 1) {
        const Op& op = m_source[m_source[term].producer];
        const auto linear = linearOperand(op);
        if (!linear)
            return;
        m_sinks[term.at()] = true;
        term = op.operands[*linear];
    }
}

/// Marks what a gradient goes through to its own type and shape, also that of its rows in a loop: devices send it in those.
void Partitioner::markConversion(ValueId gradient)
{
    const OpId id = m_source[gradient].producer;
    if (!id.valid())
        return;
    const Op& op = m_source[id];
    const std::size_t result = m_source[gradient].index;
    if (op.kind == OpKind::Repeat && result >= op.as<RepeatAttributes>().carries)
        return markConversion(m_source[op.bodies.front()].results[result]);
    const bool passes = op.kind == OpKind::Convert || op.kind == OpKind::Reshape;
    if (!passes || op.phase != Phase::Backward || !leadsToSum(op.operands.front()))
        return;
    m_sinks[gradient.at()] = true;
    markWay(op.operands.front());
}

/// Marks what may stay a partial sum on its way to the sum of two of them, as the gradients of an array that is used twice, or to a gradient in its own type.
void Partitioner::markSums()
{
    forEachOp(m_source, [&](OpId id) {
        const Op& op = m_source[id];
        for (const ValueId result : op.results) {
            if (m_source[result].role == Role::Gradient)
                markConversion(result);
        }
        if (op.kind == OpKind::Add && std::ranges::all_of(op.operands, [this](ValueId term) { return leadsToSum(term); }))
            std::ranges::for_each(op.operands, [this](ValueId term) { markWay(term); });
    });
}

/// The same on its way to an accumulating carry.
void Partitioner::markSinks(const Op& repeat, std::size_t carry)
{
    const Block& body = m_source[repeat.bodies.front()];
    const Op& add = m_source[m_source[body.results[carry]].producer];
    markWay(add.operands[0] == body.arguments[carry] ? add.operands[1] : add.operands[0]);
}

/// The layout of a stacked array whose slices lie as `slice`: dimension 0 whole.
TensorSharding Partitioner::stackedLayout(const TensorSharding& slice)
{
    TensorSharding stacked = slice;
    stacked.dims.insert(stacked.dims.begin(), DimSharding{});
    return stacked;
}

/// How a value lies in a loop's body that lies outside, or comes out stacked, as `outside`: as a part of a sum, where the program says that this is a sum.
TensorSharding Partitioner::unreducedAs(ValueId outside, TensorSharding layout, bool isStacked) const
{
    const TensorSharding said = declared(outside);
    if (!said.unreduced.empty() && samePlacement(isStacked ? stackedLayout(layout) : layout, said)) {
        layout.unreduced = said.unreduced;
        layout.unreducedKind = said.unreducedKind;
    }
    return layout;
}

/// The pieces of a partial sum's slices that are enough for all that read the stack behind the loop: what is reduced in a turn is scattered then, as the
/// gradients of a layer are whose optimizer states are split. Nothing where more is needed of any.
std::optional<TensorSharding> Partitioner::scatteredSlice(ValueId stack, ValueId slice) const
{
    const Version* partial = partialVersion(slice);
    if (partial == nullptr || !declared(stack).unreduced.empty())
        return std::nullopt;
    std::optional<TensorSharding> wanted;
    for (const OpId id : m_source[m_source[stack].block].ops) {
        const Op& reader = m_source[id];
        const auto at = std::ranges::find(reader.operands, stack);
        if (at == reader.operands.end())
            continue;
        auto rule = computableRule(m_source, id, pads());
        if (!rule)
            return std::nullopt;
        const TensorSharding layout = layoutUnder(layoutFor(id, *rule),
            rule->operands[static_cast<std::size_t>(at - reader.operands.begin())], *rule, partial->layout.mesh);
        if (wanted && !sameLayout(*wanted, layout))
            return std::nullopt;
        wanted = layout;
    }
    const auto& results = m_source[m_source[stack].block].results;
    if (!wanted || !wanted->dims.front().axes.empty() || std::ranges::find(results, stack) != results.end()
        || m_source[stack].sharding->mesh != partial->layout.mesh || !isEven(*wanted, globalShape(stack)))
        return std::nullopt;
    wanted->dims.erase(wanted->dims.begin());
    bool isScattered = false;
    for (std::size_t dim = 0; dim < wanted->dims.size(); ++dim) {
        AxisRefs more = wanted->dims[dim].axes;
        const AxisRefs& own = partial->layout.dims[dim].axes;
        if (more.size() < own.size() || !std::equal(own.begin(), own.end(), more.begin()))
            return std::nullopt;
        more.erase(more.begin(), more.begin() + static_cast<std::ptrdiff_t>(own.size()));
        if (!withoutAxes(more, partial->layout.unreduced).empty())
            return std::nullopt;
        isScattered = isScattered || !more.empty();
    }
    return isScattered ? wanted : std::nullopt;
}

void Partitioner::partitionRepeat(const Op& op)
{
    const auto& attributes = op.as<RepeatAttributes>();
    const Block& body = m_source[op.bodies.front()];
    std::vector<ValueId> operands;
    std::vector<TensorSharding> argumentLayouts;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        TensorSharding layout = declaredEven(body.arguments[i]);
        if (i < attributes.carries && declared(op.operands[i]).unreduced == declared(body.results[i]).unreduced)
            layout = unreducedAs(op.operands[i], layout, false);
        const bool isStacked = i >= attributes.carries && i < attributes.carries + attributes.stacked;
        operands.push_back(obtain(op.operands[i], isStacked ? stackedLayout(layout) : layout, op.phase, "repeat"));
        argumentLayouts.push_back(layout);
    }

    for (std::size_t i = attributes.carries; i < op.operands.size(); ++i)
        passTo(op.bodies, i, op.operands[i]);
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
        TensorSharding layout = declaredEven(body.results[i]);
        if (i < attributes.carries)
            layout = m_versions[body.arguments[i].at()].front().layout;
        else if (const auto slice = scatteredSlice(op.results[i], body.results[i]))
            layout = *slice;
        else
            layout = unreducedAs(op.results[i], layout, true);
        yielded.push_back(obtain(body.results[i], layout, phaseOf(body.results[i]), "the loop"));
        layouts.push_back(i < attributes.carries ? layout : stackedLayout(layout));
    }
    m_builder.setResults(std::move(yielded));
    const std::vector<ValueId> results = m_builder.endRepeat(repeat);
    m_builder.setPhase(op.phase);
    for (std::size_t i = 0; i < results.size(); ++i)
        define(op.results[i], layouts[i], results[i]);
}

/// The next block of `made`, an op that the builder has begun. Its arguments are `outside` and lie as they do there; what it yields lies as
/// `yields` says.
void Partitioner::partitionBody(
    BlockId body, OpId made, const std::vector<ValueId>& outside, const std::vector<TensorSharding>& yields)
{
    const Block& block = m_source[body];
    std::vector<TensorType> types;
    for (const ValueId local : outside)
        types.push_back(m_device.function[local].type);
    const std::vector<ValueId> locals = m_builder.beginBody(made, types);
    for (std::size_t i = 0; i < locals.size(); ++i)
        define(block.arguments[i], declaredEven(block.arguments[i]), locals[i]);
    partitionBlock(block);
    const std::string consumer = opName(m_device.function[made].kind);
    std::vector<ValueId> yielded;
    for (std::size_t i = 0; i < block.results.size(); ++i)
        yielded.push_back(obtain(block.results[i], yields[i], phaseOf(block.results[i]), consumer));
    m_builder.setResults(std::move(yielded));
}

/// Carries have one layout, in which they begin, go round and end. All devices have the condition's result, and so agree on when to end.
void Partitioner::partitionWhile(const Op& op)
{
    const std::size_t carries = op.as<WhileAttributes>().carries;
    const Block& body = m_source[op.bodies.back()];
    std::vector<ValueId> operands;
    std::vector<TensorSharding> layouts;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const TensorSharding layout = declaredEven(body.arguments[i]);
        operands.push_back(obtain(op.operands[i], layout, op.phase, opName(op.kind)));
        if (i < carries)
            layouts.push_back(layout);
        else
            passTo(op.bodies, i, op.operands[i]);
    }
    const OpId made = m_builder.beginOp(op.kind, operands, op.attributes);
    partitionBody(op.bodies.front(), made, operands, {declaredEven(m_source[op.bodies.front()].results.front())});
    partitionBody(op.bodies.back(), made, operands, layouts);
    finish(op, made, layouts);
}

/// What the branches use has one layout in all of them, and so has what they make.
void Partitioner::partitionCase(const Op& op)
{
    std::vector<ValueId> operands;
    for (const ValueId operand : op.operands)
        operands.push_back(obtain(operand, declaredEven(operand), op.phase, opName(op.kind)));
    std::vector<TensorSharding> layouts;
    for (const ValueId result : op.results)
        layouts.push_back(declaredEven(result));
    const OpId made = m_builder.beginOp(op.kind, operands, op.attributes);
    operands.erase(operands.begin());
    for (std::size_t i = 0; i < operands.size(); ++i)
        passTo(op.bodies, i, op.operands[i + 1]);
    for (const BlockId body : op.bodies)
        partitionBody(body, made, operands, layouts);
    finish(op, made, layouts);
}

/// Argument i of these blocks is a value of the outside.
void Partitioner::passTo(const std::vector<BlockId>& bodies, std::size_t i, ValueId outside)
{
    for (const BlockId body : bodies)
        m_passed[m_source[body].arguments[i]] = outside;
}

/// The results of an op whose blocks are partitioned.
void Partitioner::finish(const Op& op, OpId made, const std::vector<TensorSharding>& layouts)
{
    std::vector<TensorType> types;
    for (std::size_t i = 0; i < op.results.size(); ++i)
        types.push_back(localType(op.results[i], layouts[i]));
    const std::vector<ValueId> results = m_builder.endOp(made, types);
    m_builder.setPhase(op.phase);
    for (std::size_t i = 0; i < results.size(); ++i)
        define(op.results[i], layouts[i], results[i]);
}

} // namespace meshwright
