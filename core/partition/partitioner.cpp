// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partitioner.h"

#include "core/partition/body_lowering.h"
#include "core/partition/explicit_reshards.h"
#include "core/partition/local_indexing.h"
#include "core/partition/op_layout.h"
#include "core/partition/reshard_passes.h"
#include "core/program/eight_bits.h"
#include "core/program/other_op.h"
#include "core/program/shape_rules.h"
#include "core/program/transform.h"
#include "core/reshard/reshard_steps.h"
#include "core/sharding/partition_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace meshwright {

bool sameLayout(const TensorSharding& a, const TensorSharding& b)
{
    const bool samePartial = a.unreduced == b.unreduced && (a.unreduced.empty() || a.unreducedKind == b.unreducedKind);
    return a.mesh == b.mesh && samePartial
        && std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
            [](const DimSharding& x, const DimSharding& y) { return x.axes == y.axes; });
}

bool samePlacement(TensorSharding a, TensorSharding b)
{
    a.unreduced.clear();
    b.unreduced.clear();
    return sameLayout(a, b);
}

bool isCombined(const Function& function, const Op& op, const OpShardingRule& rule, std::size_t factor)
{
    switch (op.kind) {
    case OpKind::DotGeneral:
    case OpKind::AttentionGrad:
    case OpKind::Reduce:
    case OpKind::DynamicSlice: // what of the slice lies in a piece
    case OpKind::Convolution:
        return true;
    case OpKind::Scatter:
    case OpKind::VariadicScatter:
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

namespace {

/// True for the dimensions along which an op's elements move, and the partitioner can move them between devices.
bool isExchangedDim(const Function& function, const Op& op, std::size_t dim)
{
    switch (op.kind) {
    case OpKind::Slice:
    case OpKind::Reverse:
        return true;
    case OpKind::Pad:
        return op.as<PadAttributes>().interior[dim] == 0;
    case OpKind::Concatenate:
        return op.as<ConcatenateAttributes>().dim == dim;
    case OpKind::Convolution:
    case OpKind::ReduceWindow:
        return slidingWindow(function, op, dim).has_value();
    default:
        return false;
    }
}

/// What splits the window of a convolution: not every device would have all of its pieces.
void keepWindowsWhole(const Op& op, OpShardingRule& rule)
{
    const auto dims = convolutionDims(op.as<OtherAttributes>().attributes);
    for (const std::size_t dim : dims ? dims->kernel.spatial : std::vector<std::size_t>()) {
        for (const std::size_t factor : rule.operands[1][dim])
            rule.factors[factor].kind = FactorKind::NeedReplication;
    }
}

/// Slices at places that are only known when they run: along a cut dimension, each device gives what of the slice it has.
void splitCutDims(const Function& function, const Op& op, OpShardingRule& rule)
{
    const Shape& whole = function[op.operands.front()].type.shape;
    const Shape& part = function[op.results.front()].type.shape;
    for (std::size_t dim = 0; dim < whole.size(); ++dim) {
        if (whole[dim] == part[dim])
            continue;
        rule.factors[rule.operands.front()[dim].front()].kind = FactorKind::Reduction;
        rule.results.front()[dim] = {rule.factors.size()};
        rule.factors.push_back({part[dim], FactorKind::NeedReplication, true});
    }
}

/// What of one array each device takes part of, wherever that is: whole.
void keepOperandWhole(OpShardingRule& rule, std::size_t operand, const DimFactors& except)
{
    for (std::size_t dim = 0; dim < rule.operands[operand].size(); ++dim) {
        for (const std::size_t factor : rule.operands[operand][dim]) {
            if (std::find(except[dim].begin(), except[dim].end(), factor) == except[dim].end())
                rule.factors[factor].kind = FactorKind::NeedReplication;
        }
    }
}

/// Factors that only one side of a reshape has: each of their parts goes to several places on the other side.
void keepRegroupedWhole(OpShardingRule& rule)
{
    const auto has = [](const DimFactors& dims, std::size_t factor) {
        return std::any_of(dims.begin(), dims.end(),
            [&](const auto& factors) { return std::find(factors.begin(), factors.end(), factor) != factors.end(); });
    };
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        if (rule.factors[f].size != 1 && has(rule.operands.front(), f) != has(rule.results.front(), f))
            rule.factors[f].kind = FactorKind::NeedReplication;
    }
}

/// What an op of this kind needs whole that its rule, which is made for propagation, lets be split.
void keepWhole(const Function& function, const Op& op, OpShardingRule& rule)
{
    const auto needs = [&](const std::vector<std::size_t>& factors) {
        for (const std::size_t factor : factors)
            rule.factors[factor].kind = FactorKind::NeedReplication;
    };
    switch (op.kind) {
    case OpKind::Constant: // it is cut from the whole
        for (const auto& factors : rule.results.front())
            needs(factors);
        break;
    case OpKind::Reshape:
        keepRegroupedWhole(rule);
        break;
    case OpKind::DynamicUpdateSlice:
        keepOperandWhole(rule, 1, rule.operands[0]);
        break;
    case OpKind::Convolution:
        keepWindowsWhole(op, rule);
        break;
    case OpKind::TopK: // also where it takes all
        needs(rule.operands.front().back());
        break;
    default:
        break;
    }
    if (const auto dims = scatterDims(op)) { // windows that do not begin with the first element would reach into the next piece
        for (const std::size_t dim : dims->indexMap) {
            if (std::find(dims->collapsed.begin(), dims->collapsed.end(), dim) == dims->collapsed.end())
                needs(rule.operands.front()[dim]);
        }
        for (const std::size_t dim : dims->collapsed) { // no index counts along it: only the first piece has what is updated
            if (std::find(dims->indexMap.begin(), dims->indexMap.end(), dim) == dims->indexMap.end())
                needs(rule.operands.front()[dim]);
        }
    }
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        if (rule.factors[f].kind == FactorKind::Reduction && !isCombined(function, op, rule, f))
            rule.factors[f].kind = FactorKind::NeedReplication;
    }
}

} // namespace

std::optional<OpShardingRule> computableRule(const Function& function, OpId id, bool exchanges)
{
    const Op& op = function[id];
    auto rule = ownShardingRule(function, id);
    if (!rule)
        rule = shardingRule(function, id);
    if (!rule)
        return rule;
    if (exchanges && op.kind == OpKind::DynamicSlice)
        splitCutDims(function, op, *rule);
    if (exchanges && op.kind == OpKind::Concatenate)
        rule->factors[rule->results.front()[op.as<ConcatenateAttributes>().dim].front()].kind = FactorKind::Permutation;
    keepWhole(function, op, *rule);
    for (std::size_t f = 0; f < rule->factors.size(); ++f) {
        if (rule->factors[f].kind != FactorKind::Permutation)
            continue;
        const DimFactors& dims = rule->operands.front();
        const auto dim = static_cast<std::size_t>(std::find_if(dims.begin(), dims.end(), [&](const auto& factors) {
            return !factors.empty() && factors.front() == f;
        }) - dims.begin());
        if (!exchanges || dim == dims.size() || !isExchangedDim(function, op, dim))
            rule->factors[f].kind = FactorKind::NeedReplication;
    }
    return rule;
}

namespace {

/// By value: what has its elements next, of several the first.
std::vector<ValueId> nextValues(const Function& function)
{
    std::vector<ValueId> next(function.values.size());
    const auto set = [&](ValueId from, ValueId to) {
        if (!next[from.at()].valid())
            next[from.at()] = to;
    };
    forEachOp(function, [&](OpId id) {
        const Op& op = function[id];
        const OpClass kind = opInfo(op.kind).opClass;
        if (op.kind == OpKind::Convert || op.kind == OpKind::Scale || kind == OpClass::Shaping || kind == OpClass::Constraint)
            set(op.operands.front(), op.results.front());
        else if (op.kind == OpKind::DynamicUpdateSlice)
            set(op.operands[1], op.results.front());
        else if (!op.bodies.empty()) {
            const Block& body = function[op.bodies.back()]; // of While the last one; the branches of Case have names of their own
            for (std::size_t i = 0; i < std::min(body.results.size(), op.results.size()); ++i)
                set(body.results[i], op.results[i]);
        }
    });
    return next;
}

} // namespace

Result<DeviceFunction> Partitioner::run()
{
    checkShardings();
    if (!m_problems.empty())
        return m_problems;

    for (const ValueId argument : m_source.arguments())
        addArgument(argument);
    markSums();
    m_becomes = nextValues(m_source);
    partitionBlock(m_source.body());
    std::vector<ValueId> results;
    for (std::size_t i = 0; i < m_source.results().size(); ++i) {
        const ValueId result = m_source.results()[i];
        results.push_back(obtain(result, declaredResult(i), phaseOf(result), "return"));
    }
    if (!m_problems.empty())
        return m_problems;
    m_device.function.donations = m_source.donations;
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (isOverwrittenArgument(results[i], i)) {
            const ValueId argument = results[i];
            results[i] = copied(argument);
            describe(results[i], *m_device.function[argument].sharding, globalShape(m_source.results()[i]));
        }
    }
    m_builder.setResults(std::move(results), m_source.resultNames);
    eraseDeadOps(m_device.function);
    m_device.globalShapes.resize(m_device.function.values.size());
    return std::move(m_device);
}

/// How a result leaves the function: as it is asked to, else as its value lies.
TensorSharding Partitioner::declaredResult(std::size_t result) const
{
    const ValueId value = m_source.results()[result];
    if (result >= m_source.resultShardings.size() || !m_source.resultShardings[result])
        return declaredEven(value);
    return evened(layoutOnly(*m_source.resultShardings[result]), globalShape(value));
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
    for (UnequalPieces& unequal : unequalPieces(value.type.shape, *value.sharding)) {
        if (isOnlyConstrained(id))
            return; // the layout is of what is made of it, which is left whole
        unequal.array = valueText(m_source, id);
        m_problems.push_back(notDivisible(unequal));
        m_problems.back().place.path = value.annotation;
    }
}

/// True for a value that nobody placed: its layout is that of a constraint on it.
bool Partitioner::isOnlyConstrained(ValueId value) const
{
    const OpId producer = m_source[value].producer;
    if (producer.valid() && m_source[producer].kind == OpKind::ShardingConstraint)
        return false;
    bool isOnly = false;
    forEachOp(m_source, [&](OpId id) {
        const Op& op = m_source[id];
        isOnly = isOnly
            || (op.kind == OpKind::ShardingConstraint && op.operands.front() == value
                && op.as<ConstraintAttributes>().origin == m_source[value].annotation);
    });
    return isOnly;
}

/// True of a result that is an argument as it came, and in whose place another result is to be.
bool Partitioner::isOverwrittenArgument(ValueId local, std::size_t result) const
{
    const Function& function = m_device.function;
    return std::any_of(function.donations.begin(), function.donations.end(),
        [&](const Donation& donation) { return function.arguments()[donation.argument] == local && donation.result != result; });
}

Phase Partitioner::phaseOf(ValueId value) const
{
    const OpId producer = m_source[value].producer;
    if (producer.valid())
        return m_source[producer].phase;
    return m_source[value].role == Role::Gradient ? Phase::Backward : Phase::Forward;
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
    const TensorSharding layout = declaredEven(value);
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
    const bool isBits = isLeaf(value) && m_source[m_source[value].producer].kind == OpKind::RandomBits;
    if (isBits && !isEven(wanted, globalShape(value))) // bits go by an element's place in the array without padding
        obtain(value, evened(wanted, globalShape(value)), phase, consumer, reason, mayMove);
    else if ((isLeaf(value) || isBroadcastScalar(value)) && wanted.unreduced.empty())
        return remake(value, wanted, phase);

    const Version* best = nullptr;
    Route bestRoute;
    bool isOnMesh = isLeaf(value) || isBroadcastScalar(value);
    for (const Version& version : m_versions[value.at()]) {
        if (!isVisible(version, phase) || version.layout.mesh != wanted.mesh)
            continue;
        isOnMesh = true;
        if (!withoutAxes(wanted.unreduced, version.layout.unreduced).empty()
            || (!wanted.unreduced.empty() && wanted.unreducedKind != version.layout.unreducedKind))
            continue;
        Route route = routeBetween(value, version.layout, wanted);
        if (best == nullptr || route.cost < bestRoute.cost) {
            best = &version;
            bestRoute = std::move(route);
        }
    }
    if (best == nullptr && isOnMesh)
        return madePartial(value, wanted, phase, consumer, reason, mayMove);
    if (best == nullptr) {
        m_problems.push_back(
            {"MW1212", fmt::format("{} is on another mesh than {} needs it", valueText(m_source, value), consumer),
                "use one mesh for all values of a function"});
        return m_builder.splat(localType(value, wanted), 0.0); // of the right type, so that all problems are found
    }
    if (bestRoute.communicates && wanted.unreduced.empty() && best->layout.unreduced.empty()
        && (isWidened(value) || m_isCounted[value.at()]))
        return makeAgain(value, wanted, phase, consumer, reason, mayMove);
    if (m_options.localOnly && !mayMove && bestRoute.communicates)
        m_problems.push_back({"MW1221",
            fmt::format("{} needs {} as {}, but it is sharded as {}", consumer, valueText(m_source, value),
                layoutText(wanted, meshOf(wanted)), layoutText(best->layout, meshOf(wanted))),
            "insert reshards first, or partition the program without --only"});
    return emitRoute(value, *best, bestRoute, phase, consumer, reason);
}

/// The collectives from one layout to another, and what devices pad and cut before and after them.
Partitioner::Route Partitioner::routeBetween(ValueId value, const TensorSharding& from, const TensorSharding& to)
{
    Route route;
    route.moves = paddedMoves(globalShape(value), from, to);
    TensorSharding at = from;
    for (const PaddedMove& move : route.moves) {
        const ReshardPlan& plan = m_planner.plan(move.before, byteSize(m_source[value].type.dtype), at, move.to, meshOf(to));
        route.plans.push_back(&plan);
        route.cost += plan.cost;
        route.communicates = route.communicates || !plan.steps.empty();
        at = move.to;
    }
    return route;
}

/// A device's piece of an array that is padded, or cut, to another size along dimensions that are whole.
ValueId Partitioner::resized(ValueId local, const TensorSharding& layout, const Shape& whole)
{
    const TensorType type = m_device.function[local].type; // a copy: the table of values grows
    const Shape wanted = localShape(whole, layout);
    if (type.shape == wanted)
        return local;
    const std::size_t rank = wanted.size();
    SliceAttributes slice{Shape(rank, 0), type.shape, Shape(rank, 1)};
    PadAttributes pad{Shape(rank, 0), Shape(rank, 0), Shape(rank, 0)};
    for (std::size_t dim = 0; dim < rank; ++dim) {
        slice.limits[dim] = std::min(type.shape[dim], wanted[dim]);
        pad.high[dim] = wanted[dim] - slice.limits[dim];
    }
    DeviceOps ops = deviceOps(layout);
    if (slice.limits != type.shape)
        local = ops.make(OpKind::Slice, {local}, slice, layout, wholeOfPieces(slice.limits, layout));
    if (slice.limits != wanted) {
        const ValueId zero = ops.zeros({type.dtype, {}}, wholeLayout(0, layout.mesh));
        local = ops.make(OpKind::Pad, {local, zero}, std::move(pad), layout, whole);
    }
    return local;
}

/// Parts of a value that is whole: the value on the first device along the unreduced axes, and what changes nothing on the others.
ValueId Partitioner::madePartial(ValueId value, const TensorSharding& wanted, Phase phase, const std::string& consumer,
    const std::string& reason, bool mayMove)
{
    TensorSharding plain = wanted;
    plain.unreduced.clear();
    const ValueId whole = obtain(value, plain, phase, consumer, reason, mayMove);
    const TensorType piece = localType(value, plain);
    const Phase before = m_builder.phase();
    m_builder.setPhase(phase);
    DeviceOps ops = deviceOps(plain);
    const TensorSharding scalar = wholeLayout(0, wanted.mesh);
    const ValueId isFirst
        = ops.make(OpKind::Compare, {ops.pieceNumber(wanted.unreduced, wanted.mesh), ops.integer(0, DType::S32, wanted.mesh)},
            CompareAttributes{CompareDirection::Equal}, scalar, {});
    const ValueId nothing = ops.nothing(wanted.unreducedKind, {piece.dtype, {}}, scalar);
    const ValueId local = ops.make(OpKind::Select,
        {ops.everywhere(isFirst, piece.shape, plain), whole, ops.everywhere(nothing, piece.shape, plain)}, {}, wanted,
        globalShape(value));
    m_builder.setPhase(before);
    m_versions[value.at()].push_back({wanted, local, phase, false});
    return local;
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

/// True for numbers of 8 bits that are cast and scaled by one number.
bool Partitioner::isWidened(ValueId value) const
{
    const bool isWide = byteSize(m_source[value].type.dtype) > 1;
    while (byteSize(m_source[value].type.dtype) > 1) {
        const OpId producer = m_source[value].producer;
        if (!producer.valid())
            return false;
        const Op& op = m_source[producer];
        if (op.kind != OpKind::Convert && (op.kind != OpKind::Scale || !isBroadcastScalar(op.operands[1])))
            return false;
        value = op.operands[0];
    }
    return isWide && isFloating(m_source[value].type.dtype);
}

/// Moves the 8-bit numbers and widens them where they are needed; makes what follows from places alone.
ValueId Partitioner::makeAgain(ValueId value, const TensorSharding& wanted, Phase phase, const std::string& consumer,
    const std::string& reason, bool mayMove)
{
    const Op op = m_source[m_source[value].producer];
    std::vector<ValueId> operands;
    for (const ValueId operand : op.operands) {
        const bool isMade = isWidened(operand) || m_isCounted[operand.at()];
        operands.push_back(isMade && find(operand, wanted, phase) == nullptr
                ? makeAgain(operand, wanted, phase, consumer, reason, mayMove)
                : obtain(operand, wanted, phase, consumer, reason, mayMove));
    }
    const Phase before = m_builder.phase();
    m_builder.setPhase(phase);
    const ValueId local = m_builder.add(op.kind, std::move(operands), op.attributes);
    m_builder.setPhase(before);
    describe(local, wanted, globalShape(value));
    m_versions[value.at()].push_back({wanted, local, phase, false});
    return local;
}

ValueId Partitioner::emitRoute(
    ValueId value, const Version from, const Route& route, Phase phase, const std::string& consumer, const std::string& reason)
{
    // A partial sum is reduced in the phase that made it, and its sum takes its place.
    const bool reduces = !from.layout.unreduced.empty();
    const Phase at = reduces ? from.phase : phase;
    const Phase before = m_builder.phase();
    m_builder.setPhase(at);
    ValueId local = from.local;
    TensorSharding layout = from.layout;
    for (std::size_t i = 0; i < route.moves.size(); ++i) {
        const PaddedMove& move = route.moves[i];
        local = resized(local, layout, move.before);
        if (!route.plans[i]->steps.empty()) // collectives go by pieces of equal size
            describe(local, layout, move.before);
        for (const ReshardStep& step : route.plans[i]->steps) {
            CollectiveAttributes attributes = step.attributes;
            attributes.cause = causeOf(value, layout, step.result, consumer, reason);
            local = m_builder.add(step.kind, {local}, std::move(attributes));
            m_device.function[local].role = m_source[value].role;
            m_device.function[local].name = m_source[value].name;
            describe(local, step.result, move.before);
            layout = step.result;
        }
        local = resized(local, layout, move.after);
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
    cause.value = gradientOf(value); // a layer's too, which may have a name of its own
    if (cause.value.empty())
        cause.value = describeUnnamed(value);
    const bool reduces = from.unreduced != to.unreduced;
    if (reduces)
        value = summedAt(value);
    const OpId producer = m_source[value].producer;
    cause.op = reduces && producer.valid() ? std::string(opName(m_source[producer])) : consumer;
    if (reduces)
        cause.reason = fmt::format("{} sums over a dimension that {} splits, so every device holds a partial sum", cause.op,
            axesText(from.unreduced, mesh));
    else
        cause.reason = fmt::format(
            "{} needs {} as {}, but it is sharded as {}", consumer, cause.value, layoutText(to, mesh), layoutText(from, mesh));
    if (!reason.empty())
        cause.reason += ": " + reason;
    cause.annotation = annotationOf(value, reduces ? from.unreduced : movedAxes(from, to));
    return cause;
}

/// Where a partial sum was made, before it went as one through other sums, scales, conversions and loops.
ValueId Partitioner::summedAt(ValueId value) const
{
    const auto isPartial = [this](ValueId operand) {
        const auto& versions = m_versions[operand.at()];
        return !versions.empty() && !versions.front().layout.unreduced.empty() && m_source[operand].producer.valid();
    };
    while (m_source[value].producer.valid()) {
        const Op& op = m_source[m_source[value].producer];
        const bool isLoop = op.kind == OpKind::Repeat;
        const auto operand = std::ranges::find_if(op.operands, isPartial);
        if (!isLoop && operand == op.operands.end())
            break;
        value = isLoop ? m_source[op.bodies.front()].results[m_source[value].index] : *operand;
    }
    return value;
}

/// The value's name, or that of what is passed to a manual computation for it; empty when there is none.
std::string Partitioner::nameOf(ValueId value) const
{
    if (!m_source[value].name.empty())
        return m_source[value].name;
    const auto passed = m_passed.find(value);
    return passed == m_passed.end() ? std::string() : nameOf(passed->second);
}

/// True for what has the elements of its operand, in another shape or type.
bool Partitioner::isCopy(ValueId value) const
{
    const OpId producer = m_source[value].producer;
    return producer.valid()
        && (m_source[producer].kind == OpKind::Convert || opInfo(m_source[producer].kind).opClass == OpClass::Shaping
            || opInfo(m_source[producer].kind).opClass == OpClass::Constraint);
}

/// The name of the gradient that a value becomes: through copies, into a stack of layers, out of a loop. Empty: none.
std::string Partitioner::gradientOf(ValueId value) const
{
    constexpr int kMostSteps = 12;
    for (int step = 0; step < kMostSteps && value.valid(); ++step) {
        if (m_source[value].role == Role::Gradient && !m_source[value].name.empty())
            return m_source[value].name;
        value = m_becomes[value.at()];
    }
    return {};
}

std::string Partitioner::describeUnnamed(ValueId value) const
{
    const OpId producer = m_source[value].producer;
    if (const std::string name = nameOf(value); !name.empty())
        return name;
    if (const std::string gradient = gradientOf(value); !gradient.empty())
        return gradient;
    if (const auto passed = m_passed.find(value); passed != m_passed.end())
        return describeUnnamed(passed->second);
    if (!producer.valid()) {
        const bool isOfFunction = m_source[value].block == BlockId(std::int32_t{0});
        return isOfFunction ? fmt::format("argument {}", m_source[value].index) : "a loop's value";
    }
    if (const auto part = eightBitPartOf(m_source, value); part && part->source != value)
        return eightBitText(part->part, describeUnnamed(part->source));
    if (opInfo(m_source[producer].kind).opClass == OpClass::Constraint)
        return describeUnnamed(m_source[producer].operands[m_source[value].index]);
    if (m_source[producer].kind == OpKind::Repeat)
        return valueText(m_source, value);
    for (ValueId operand : m_source[producer].operands) {
        while (nameOf(operand).empty() && isCopy(operand))
            operand = m_source[m_source[operand].producer].operands.front();
        if (const std::string name = nameOf(operand); !name.empty())
            return fmt::format("{}({}, ..)", opName(m_source[producer]), name);
    }
    const std::string made = valueText(m_source, value);
    return made == opName(m_source[producer]) ? "the result of " + made : made;
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
