// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/derivatives.h"

#include "core/autodiff/attention_derivative.h"
#include "core/autodiff/fft_derivative.h"
#include "core/autodiff/parts_derivatives.h"
#include "core/autodiff/varying.h"
#include "core/program/eight_bits.h"
#include "core/program/other_op.h"
#include "core/program/placement.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace meshwright {

namespace {

using Dims = std::vector<std::size_t>;
using Groups = std::vector<std::vector<std::int64_t>>;

/// The operand and the groups of a value that is a sum over devices.
struct DeviceSum {
    ValueId operand;
    BodyCollective collective;
};
std::optional<DeviceSum> deviceSumOf(const Function& function, ValueId value, const Mesh* mesh)
{
    const OpId producer = function[value].producer;
    if (mesh == nullptr || !producer.valid() || !isBodyCollective(function[producer]))
        return std::nullopt;
    BodyCollective collective = valueOf(bodyCollective(function, function[producer], *mesh));
    if (collective.kind != OpKind::AllReduce || collective.reduction != ReduceKind::Sum)
        return std::nullopt;
    return DeviceSum{function[producer].operands.front(), std::move(collective)};
}

/// The same groups as in `b`, whatever their order.
bool haveSameGroups(Groups a, Groups b)
{
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    return a == b;
}

bool contains(const Dims& dims, std::size_t dim)
{
    return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

/// 0 .. rank - 1 without the dims in `without`.
Dims remainingDims(std::size_t rank, const Dims& without)
{
    Dims dims;
    for (std::size_t dim = 0; dim < rank; ++dim) {
        if (!contains(without, dim))
            dims.push_back(dim);
    }
    return dims;
}

/// Transposes unless the permutation changes nothing.
ValueId permuted(Builder& builder, ValueId value, const Dims& permutation)
{
    return std::is_sorted(permutation.begin(), permutation.end()) ? value : builder.transpose(value, permutation);
}

/// Writes the derivative of one op. The rows of the table below are made of it.
struct Derivative {
    const DerivativeContext& context;
    const Op& op;
    Builder& b;
    ValueId ct; ///< of the result
    std::vector<ValueId> made; ///< the operands' cotangents
    ValueId eightBitCt = {}; ///< of a product of 8-bit numbers that have one scale, once it is made

    Derivative(const DerivativeContext& of, ValueId cotangent)
        : context(of)
        , op(of.op)
        , b(of.backward)
        , ct(cotangent)
        , made(of.op.operands.size())
    {
    }

    bool wants(std::size_t operand) const { return context.wanted[operand]; }
    ValueId primal(std::size_t operand) { return context.primal(op.operands[operand]); }
    ValueId result() { return context.primal(op.results.front()); }
    const TensorType& operandType(std::size_t operand) const { return context.forward[op.operands[operand]].type; }

    ValueId unary(OpKind kind, ValueId a) { return b.unary(kind, a); }
    ValueId times(ValueId x, ValueId y) { return b.binary(OpKind::Multiply, x, y); }
    ValueId over(ValueId x, ValueId y) { return b.binary(OpKind::Divide, x, y); }
    ValueId minus(ValueId x, ValueId y) { return b.binary(OpKind::Subtract, x, y); }
    ValueId plus(ValueId x, ValueId y) { return b.binary(OpKind::Add, x, y); }
    ValueId negated(ValueId a) { return b.unary(OpKind::Negate, a); }
    /// `value` at every element, in the type of `like`.
    ValueId splat(ValueId like, double value) { return b.splat(TensorType(b.type(like)), value); }
    ValueId zeros() { return splat(ct, 0.0); }
    /// (c - x)(d + x): exact near the ends, where 1 - x^2 loses digits.
    ValueId between(ValueId x, double c, double d) { return times(minus(splat(x, c), x), plus(splat(x, d), x)); }
    ValueId onePlusSquare(ValueId x) { return plus(times(x, x), splat(x, 1.0)); }
    /// The mean of f(x) and f(-x), or half their difference.
    ValueId half(ValueId x, OpKind function, OpKind combine)
    {
        return times(splat(x, 0.5), b.binary(combine, unary(function, x), unary(function, negated(x))));
    }
    ValueId bell(ValueId x, double scale) { return times(splat(x, scale), unary(OpKind::Exp, negated(times(x, x)))); }

    void multiply();
    void maximum();
    void power();
    void select();
    void clamp();
    ValueId unconverted();
    ValueId untransposed();
    ValueId unbroadcast();
    ValueId reduction();
    void product();
    ValueId productCotangent(std::size_t operand);
    ValueId widened(ValueId value);
    DType typeOfCotangent(std::size_t operand, DType otherwise) const;
    ValueId summed(const Groups& groups);
    ValueId exchanged();
    ValueId reached(const BodyCollective& extreme, ValueId cotangent);
    ValueId scattered(BodyCollective gather, ValueId cotangent = {});
    ValueId ungathered(const BodyCollective& gather);
};

void Derivative::multiply()
{
    if (op.operands[0] == op.operands[1]) {
        made[0] = made[1] = times(ct, primal(0));
        return;
    }
    if (wants(0))
        made[0] = times(ct, primal(1));
    if (wants(1))
        made[1] = times(ct, primal(0));
}

void Derivative::maximum()
{
    const bool isMaximum = op.kind == OpKind::Maximum;
    const ValueId a = primal(0);
    const ValueId c = primal(1);
    const ValueId none = zeros();
    const ValueId shared = b.select(b.compare(CompareDirection::Equal, a, c), times(ct, splat(ct, 0.5)), none);
    if (wants(0))
        made[0] = b.select(b.compare(isMaximum ? CompareDirection::Greater : CompareDirection::Less, a, c), ct, shared);
    if (wants(1))
        made[1] = b.select(b.compare(isMaximum ? CompareDirection::Less : CompareDirection::Greater, a, c), ct, shared);
}

void Derivative::power()
{
    const ValueId x = primal(0);
    if (wants(0)) { // y x^(y - 1); 0 for y = 0, even where x is 0
        const ValueId y = primal(1);
        const ValueId one = splat(y, 1.0);
        const ValueId isZero = b.compare(CompareDirection::Equal, y, splat(y, 0.0));
        const ValueId lowered = b.select(isZero, one, minus(y, one));
        made[0] = times(ct, times(y, b.binary(OpKind::Power, x, lowered)));
    }
    if (wants(1)) { // log(x) x^y; 0 where x is 0
        const ValueId isZero = b.compare(CompareDirection::Equal, x, splat(x, 0.0));
        const ValueId logarithm = b.unary(OpKind::Log, b.select(isZero, splat(x, 1.0), x));
        made[1] = times(ct, times(logarithm, result()));
    }
}

void Derivative::select()
{
    if (wants(1))
        made[1] = b.select(primal(0), ct, zeros());
    if (wants(2))
        made[2] = b.select(primal(0), zeros(), ct);
}

/// To the value where it lies between the bounds, else to the bound that it went over, as in JAX.
void Derivative::clamp()
{
    const ValueId lower = primal(0);
    const ValueId value = primal(1);
    const ValueId upper = primal(2);
    const auto where = [&](ValueId mask) { return b.select(mask, ct, zeros()); };
    const auto greater = [&](ValueId x, ValueId y) { return b.compare(CompareDirection::Greater, x, y); };
    if (wants(0))
        made[0] = where(b.binary(OpKind::And, greater(lower, value), greater(upper, lower)));
    if (wants(1))
        made[1] = where(b.binary(OpKind::And, greater(value, lower), greater(upper, value)));
    if (wants(2))
        made[2] = where(greater(value, upper));
}

/// A cotangent is never of 8 bits: it keeps the type that what is rounded to them has.
ValueId Derivative::unconverted()
{
    const DType type = operandType(0).dtype;
    return byteSize(type) == 1 ? ct : b.convert(ct, type);
}

ValueId Derivative::untransposed()
{
    const Dims& permutation = op.as<TransposeAttributes>().permutation;
    Dims inverse(permutation.size());
    for (std::size_t i = 0; i < permutation.size(); ++i)
        inverse[permutation[i]] = i;
    return permuted(b, ct, inverse);
}

/// Sums over what the broadcast added or stretched.
ValueId Derivative::unbroadcast()
{
    const auto& attributes = op.as<BroadcastAttributes>();
    const Shape& shape = operandType(0).shape;
    Dims kept; // of the result, in the operand's order
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == attributes.shape[attributes.dims[i]])
            kept.push_back(attributes.dims[i]);
    }
    const ValueId sum = b.reduce(ReduceKind::Sum, ct, remainingDims(attributes.shape.size(), kept));
    Dims ascending = kept;
    std::sort(ascending.begin(), ascending.end());
    Dims permutation;
    for (const std::size_t dim : kept)
        permutation.push_back(static_cast<std::size_t>(std::find(ascending.begin(), ascending.end(), dim) - ascending.begin()));
    return b.reshape(permuted(b, sum, permutation), shape);
}

ValueId Derivative::reduction()
{
    const auto& attributes = op.as<ReduceAttributes>();
    const Shape& shape = operandType(0).shape;
    const Dims kept = remainingDims(shape.size(), attributes.dims);
    const auto spread = [&](ValueId value) { return b.broadcast(value, shape, kept); };

    if (attributes.kind == ReduceKind::Sum)
        return spread(ct);
    const ValueId x = primal(0);
    if (attributes.kind == ReduceKind::Product) {
        // The product of the others: of all that are not zero, divided by the element, where no other one is zero.
        const ValueId isZero = b.compare(CompareDirection::Equal, x, splat(x, 0.0));
        const ValueId nonZero = b.select(isZero, splat(x, 1.0), x);
        const ValueId whole = b.reduce(ReduceKind::Product, nonZero, attributes.dims);
        const ValueId zeroCount = b.convert(isZero, b.type(x).dtype);
        const ValueId otherZeros = minus(spread(b.reduce(ReduceKind::Sum, zeroCount, attributes.dims)), zeroCount);
        const ValueId alone = b.compare(CompareDirection::Equal, otherZeros, splat(x, 0.0));
        const ValueId others = b.select(alone, over(spread(whole), nonZero), splat(x, 0.0));
        return times(spread(ct), others);
    }
    // Max and min: to the elements that reach it, in equal parts.
    const ValueId reached = b.compare(CompareDirection::Equal, x, spread(result()));
    const ValueId count = b.reduce(ReduceKind::Sum, b.convert(reached, b.type(ct).dtype), attributes.dims);
    return b.select(reached, spread(over(ct, count)), splat(x, 0.0));
}

void Derivative::product()
{
    for (std::size_t operand = 0; operand < 2; ++operand) {
        if (wants(operand))
            made[operand] = productCotangent(operand);
    }
}

/// A cast argument, such as a parameter, gets a cotangent in the type that it had before the cast: the product that makes it, and sums of it over devices,
/// are not rounded to the type of the cast.
DType Derivative::typeOfCotangent(std::size_t operand, DType otherwise) const
{
    const Function& forward = context.forward;
    ValueId value = op.operands[operand];
    while (forward[value].producer.valid()) {
        const Op& producer = forward[forward[value].producer];
        if (producer.kind != OpKind::Convert && producer.kind != OpKind::Scale
            && opInfo(producer.kind).opClass != OpClass::Shaping && opInfo(producer.kind).opClass != OpClass::Constraint)
            return otherwise;
        value = producer.operands.front();
    }
    const DType before = forward[value].type.dtype;
    return isFloating(before) && byteSize(before) > byteSize(otherwise) ? before : otherwise;
}

/// A forward value that is made of 8-bit numbers, widened here: those are what is kept of it.
ValueId Derivative::widened(ValueId value)
{
    if (byteSize(context.forward[value].type.dtype) == 1)
        return context.primal(value);
    const Op last = context.forward[context.forward[value].producer];
    std::vector<ValueId> operands = {widened(last.operands.front())};
    for (std::size_t i = 1; i < last.operands.size(); ++i)
        operands.push_back(context.primal(last.operands[i]));
    return b.add(last.kind, std::move(operands), last.attributes);
}

/// The cotangent of one operand is a product of the result's cotangent with the other operand. The order of the two is chosen so
/// that the dimensions come out in place, where one of the orders does that.
ValueId Derivative::productCotangent(std::size_t operand)
{
    const auto& forward = op.as<DotAttributes>();
    const std::size_t other = 1 - operand;
    const Dims& ownBatch = operand == 0 ? forward.lhsBatch : forward.rhsBatch;
    const Dims& otherBatch = operand == 0 ? forward.rhsBatch : forward.lhsBatch;
    const Dims& ownContracting = operand == 0 ? forward.lhsContracting : forward.rhsContracting;
    const Dims& otherContracting = operand == 0 ? forward.rhsContracting : forward.lhsContracting;

    const auto freeDims = [](std::size_t rank, Dims batch, const Dims& contracting) {
        batch.insert(batch.end(), contracting.begin(), contracting.end());
        return remainingDims(rank, batch);
    };
    const TensorType ownType = operandType(operand);
    const Dims ownFree = freeDims(ownType.shape.size(), ownBatch, ownContracting);
    const Dims otherFree = freeDims(operandType(other).shape.size(), otherBatch, otherContracting);

    // The result's dimensions: batch, free ones of the left operand, free ones of the right one.
    const std::size_t batchCount = ownBatch.size();
    const std::size_t otherStart = batchCount + (operand == 0 ? ownFree.size() : 0);

    // Batch dimensions in the order that they have in the operand.
    Dims pairs(batchCount);
    std::iota(pairs.begin(), pairs.end(), std::size_t{0});
    std::sort(pairs.begin(), pairs.end(), [&](std::size_t x, std::size_t y) { return ownBatch[x] < ownBatch[y]; });

    Dims ctBatch;
    Dims batchOfOther;
    Dims placesBatch; // where each dimension of the new product lies in the operand
    for (const std::size_t pair : pairs) {
        ctBatch.push_back(pair);
        batchOfOther.push_back(otherBatch[pair]);
        placesBatch.push_back(ownBatch[pair]);
    }
    Dims ctContracting(otherFree.size());
    std::iota(ctContracting.begin(), ctContracting.end(), otherStart);
    // What is left of the cotangent are the operand's free dimensions; of the other one, its contracting ones in ascending order.
    Dims contractedInOrder(otherContracting.size());
    std::iota(contractedInOrder.begin(), contractedInOrder.end(), std::size_t{0});
    std::sort(contractedInOrder.begin(), contractedInOrder.end(),
        [&](std::size_t x, std::size_t y) { return otherContracting[x] < otherContracting[y]; });
    Dims placesContracted;
    for (const std::size_t i : contractedInOrder)
        placesContracted.push_back(ownContracting[i]);

    const auto places = [&](bool cotangentFirst) {
        Dims all = placesBatch;
        const Dims& first = cotangentFirst ? ownFree : placesContracted;
        const Dims& second = cotangentFirst ? placesContracted : ownFree;
        all.insert(all.end(), first.begin(), first.end());
        all.insert(all.end(), second.begin(), second.end());
        return all;
    };
    const Dims reversedPlaces = places(false);
    const bool cotangentFirst = !std::is_sorted(reversedPlaces.begin(), reversedPlaces.end());
    const Dims chosen = places(cotangentFirst);

    ValueId rounded = b.convert(ct, ownType.dtype);
    ValueId factor;
    // A product of 8-bit numbers gives products of 8-bit numbers. What has scales along other dimensions than are summed up here is rounded again.
    const auto own8 = eightBitValue(context.forward, op.operands[operand]);
    const auto other8 = eightBitValue(context.forward, op.operands[other]);
    if (own8 && other8) {
        const bool isOne = other8->shared == SharedScale::Array;
        if (!isOne || !eightBitCt.valid())
            eightBitCt = roundedToEightBits(b, rounded, ctContracting, other8->shared, OperandOf::Gradient);
        rounded = eightBitCt;
        if (!isOne)
            factor = roundedToEightBits(b, context.primal(other8->source), otherFree, other8->shared, other8->operand);
    }
    if (!factor.valid())
        factor = own8 && other8 ? widened(op.operands[other]) : primal(other);
    DotAttributes attributes;
    attributes.operandType = forward.operandType;
    attributes.resultType = typeOfCotangent(operand, forward.resultType);
    attributes.lhsBatch = cotangentFirst ? ctBatch : batchOfOther;
    attributes.rhsBatch = cotangentFirst ? batchOfOther : ctBatch;
    attributes.lhsContracting = cotangentFirst ? ctContracting : otherFree;
    attributes.rhsContracting = cotangentFirst ? otherFree : ctContracting;
    const ValueId raw
        = cotangentFirst ? b.dot(rounded, factor, std::move(attributes)) : b.dot(factor, rounded, std::move(attributes));

    Dims permutation(chosen.size());
    for (std::size_t i = 0; i < chosen.size(); ++i)
        permutation[chosen[i]] = i;
    return b.convert(permuted(b, raw, permutation), ownType.dtype);
}

ValueId Derivative::summed(const Groups& groups)
{
    BodyCollective sum;
    sum.groups = groups;
    return groups.front().size() == 1 ? ct : addBodyCollective(b, sum, ct, *context.mesh);
}

/// The transpose of a collective. Its operand differs over all axes that it touches; whether its result does is told by its groups.
ValueId Derivative::exchanged()
{
    const Mesh& mesh = *context.mesh;
    BodyCollective collective = valueOf(bodyCollective(context.forward, op, mesh));
    const bool overAxes = axesOfGroups(collective.groups, mesh).has_value();
    switch (collective.kind) {
    case OpKind::AllReduce: { // one value for all, or with groups of no axes one for each device
        const ValueId whole = overAxes ? ct : summed(collective.groups);
        return collective.reduction == ReduceKind::Sum ? whole : reached(collective, whole);
    }
    case OpKind::AllGather:
        return overAxes ? ungathered(collective) : scattered(collective);
    case OpKind::ReduceScatter:
        collective.kind = OpKind::AllGather;
        collective.join = collective.split;
        break;
    case OpKind::AllToAll:
        std::swap(collective.split, collective.join);
        break;
    default: {
        std::vector<std::int64_t> inverse(collective.sources.size(), -1);
        for (std::size_t target = 0; target < collective.sources.size(); ++target) {
            if (collective.sources[target] >= 0)
                inverse[static_cast<std::size_t>(collective.sources[target])] = static_cast<std::int64_t>(target);
        }
        collective.sources = std::move(inverse);
    }
    }
    return addBodyCollective(b, collective, ct, mesh);
}

/// Max and min over devices: to those that reach it, in equal parts.
ValueId Derivative::reached(const BodyCollective& extreme, ValueId cotangent)
{
    const ValueId reaches = b.compare(CompareDirection::Equal, primal(0), result());
    BodyCollective sum;
    sum.groups = extreme.groups;
    const ValueId count = addBodyCollective(b, sum, b.convert(reaches, b.type(cotangent).dtype), *context.mesh);
    return b.select(reaches, over(cotangent, count), zeros());
}

ValueId Derivative::scattered(BodyCollective gather, ValueId cotangent)
{
    gather.kind = OpKind::ReduceScatter;
    gather.split = gather.join;
    return addBodyCollective(b, gather, cotangent.valid() ? cotangent : ct, *context.mesh);
}

/// The gathered value is one for all, and so is its cotangent: each device takes the part that it gave. Where the cotangent is a sum over
/// these devices, only the parts need to be summed.
ValueId Derivative::ungathered(const BodyCollective& gather)
{
    const auto sum = deviceSumOf(b.function(), ct, context.mesh);
    if (sum && haveSameGroups(sum->collective.groups, gather.groups))
        return scattered(gather, sum->operand);
    const Shape& piece = operandType(0).shape;
    std::vector<ValueId> operands{ct};
    for (std::size_t dim = 0; dim < piece.size(); ++dim)
        operands.push_back(
            dim == gather.join ? addPlaceInGroup(b, gather.groups, *context.mesh, piece[dim]) : b.splat({DType::S32, {}}, 0.0));
    return b.add(OpKind::DynamicSlice, std::move(operands), DynamicSliceAttributes{piece});
}

/// The sum of two sums over the same devices as one; invalid when they are none.
ValueId oneDeviceSum(Builder& backward, ValueId a, ValueId b, const Mesh* mesh)
{
    const auto first = deviceSumOf(backward.function(), a, mesh);
    const auto second = deviceSumOf(backward.function(), b, mesh);
    if (!first || !second || !haveSameGroups(first->collective.groups, second->collective.groups))
        return {};
    return addBodyCollective(
        backward, first->collective, addedCotangents(backward, first->operand, second->operand, mesh), *mesh);
}

} // namespace

ValueId addedCotangents(Builder& backward, ValueId a, ValueId b, const Mesh* mesh)
{
    if (const ValueId sum = oneDeviceSum(backward, a, b, mesh); sum.valid())
        return sum;
    // One of them may have such a sum as its last term.
    for (const auto& [whole, other] : {std::pair(a, b), std::pair(b, a)}) {
        const OpId producer = backward.function()[whole].producer;
        if (mesh == nullptr || !producer.valid() || backward.function()[producer].kind != OpKind::Add)
            continue;
        const std::vector<ValueId> terms = backward.function()[producer].operands;
        for (std::size_t term = 0; term < 2; ++term) {
            if (const ValueId sum = oneDeviceSum(backward, terms[term], other, mesh); sum.valid())
                return backward.binary(OpKind::Add, terms[1 - term], sum);
        }
    }
    return backward.binary(OpKind::Add, a, b);
}

namespace {

/// A collective of one array that moves, sums, or takes the largest or smallest.
bool isSmoothCollective(const Function& function, const Op& op)
{
    if (!isBodyCollective(op) || op.operands.size() != 1)
        return false;
    const auto combiner = op.bodies.empty() ? ReduceKind::Sum : combinerIn(function, op.bodies.front());
    const bool isExtreme = combiner == ReduceKind::Max || combiner == ReduceKind::Min;
    return combiner == ReduceKind::Sum || (isExtreme && op.kind == OpKind::OwnAllReduce);
}

using D = Derivative;
using Known = Differentiability;

/// What is known of an op whose results are floating. Smooth ones say how the operands' cotangents come from the result's: `one` for those whose
/// only operand has one, `all` for others.
struct DerivativeRow {
    OpKind kind;
    Known known = Known::Smooth;
    ValueId (*one)(D& d, ValueId of) = nullptr;
    void (*all)(D& d) = nullptr;
    Known (*depends)(const Function& function, const Op& op) = nullptr; ///< what is known of this very op
    enum class Of : std::uint8_t { Nothing, Operand, Result } of = Of::Nothing; ///< what `one` is called with
};

constexpr DerivativeRow flat(OpKind kind)
{
    return {kind, Known::Flat};
}
constexpr DerivativeRow unknown(OpKind kind)
{
    return {kind, Known::Unknown};
}
constexpr DerivativeRow one(OpKind kind, ValueId (*write)(D& d, ValueId))
{
    return {kind, Known::Smooth, write};
}
constexpr DerivativeRow ofX(OpKind kind, ValueId (*write)(D& d, ValueId x))
{
    return {kind, Known::Smooth, write, nullptr, nullptr, DerivativeRow::Of::Operand};
}
constexpr DerivativeRow ofY(OpKind kind, ValueId (*write)(D& d, ValueId y))
{
    return {kind, Known::Smooth, write, nullptr, nullptr, DerivativeRow::Of::Result};
}
constexpr DerivativeRow all(OpKind kind, void (*write)(D& d))
{
    return {kind, Known::Smooth, nullptr, write};
}
constexpr DerivativeRow parts(OpKind kind)
{
    return {kind, Known::Smooth, nullptr, [](D& d) { d.made = partsCotangents(d.context, d.ct); },
        [](const Function&, const Op& op) { return hasPartsDerivative(op) ? Known::Smooth : Known::Unknown; }};
}
bool takesFloats(const Function& function, const Op& op)
{
    return isFloating(function[op.operands.front()].type.dtype);
}

constexpr double kTwoOverRootPi = 2.0 * std::numbers::inv_sqrtpi;

/// Of all kinds up to OptimizationBarrier; the others have theirs by class.
constexpr std::array<DerivativeRow, static_cast<std::size_t>(OpKind::OptimizationBarrier) + 1> kDerivatives = {{
    flat(OpKind::Constant),
    flat(OpKind::Iota),
    flat(OpKind::RandomBits),
    one(OpKind::Negate, [](D& d, ValueId) { return d.negated(d.ct); }),
    // At 0 that of x, as JAX has it.
    ofX(OpKind::Abs, [](D& d, ValueId x) {
        return d.b.select(d.b.compare(CompareDirection::GreaterEqual, x, d.splat(x, 0.0)), d.ct, d.negated(d.ct));
    }),
    flat(OpKind::Sign),
    ofY(OpKind::Exp, [](D& d, ValueId y) { return d.times(d.ct, y); }),
    ofX(OpKind::Log, [](D& d, ValueId x) { return d.over(d.ct, x); }),
    ofX(OpKind::Log1p, [](D& d, ValueId x) { return d.over(d.ct, d.plus(x, d.splat(x, 1.0))); }),
    ofY(OpKind::Tanh, [](D& d, ValueId y) { return d.times(d.ct, d.minus(d.splat(y, 1.0), d.times(y, y))); }),
    ofY(OpKind::Logistic, [](D& d, ValueId y) { return d.times(d.ct, d.times(y, d.minus(d.splat(y, 1.0), y))); }),
    ofY(OpKind::Sqrt, [](D& d, ValueId y) { return d.over(d.ct, d.plus(y, y)); }),
    // d(x^-1/2) = -1/2 x^-3/2 = -1/2 y^3
    ofY(OpKind::Rsqrt, [](D& d, ValueId y) { return d.times(d.ct, d.times(d.splat(y, -0.5), d.times(y, d.times(y, y)))); }),
    ofX(OpKind::Sine, [](D& d, ValueId x) { return d.times(d.ct, d.unary(OpKind::Cosine, x)); }),
    ofX(OpKind::Cosine, [](D& d, ValueId x) { return d.negated(d.times(d.ct, d.unary(OpKind::Sine, x))); }),
    ofY(OpKind::Tan, [](D& d, ValueId y) { return d.times(d.ct, d.plus(d.splat(y, 1.0), d.times(y, y))); }),
    ofX(OpKind::Asin, [](D& d, ValueId x) { return d.times(d.ct, d.unary(OpKind::Rsqrt, d.between(x, 1.0, 1.0))); }),
    ofX(OpKind::Acos, [](D& d, ValueId x) { return d.times(d.ct, d.negated(d.unary(OpKind::Rsqrt, d.between(x, 1.0, 1.0)))); }),
    ofX(OpKind::Atan, [](D& d, ValueId x) { return d.times(d.ct, d.over(d.splat(x, 1.0), d.onePlusSquare(x))); }),
    ofX(OpKind::Sinh, [](D& d, ValueId x) { return d.times(d.ct, d.half(x, OpKind::Exp, OpKind::Add)); }),
    ofX(OpKind::Cosh, [](D& d, ValueId x) { return d.times(d.ct, d.half(x, OpKind::Expm1, OpKind::Subtract)); }),
    ofX(OpKind::Asinh, [](D& d, ValueId x) { return d.times(d.ct, d.unary(OpKind::Rsqrt, d.onePlusSquare(x))); }),
    ofX(OpKind::Acosh, [](D& d, ValueId x) { return d.times(d.ct, d.unary(OpKind::Rsqrt, d.negated(d.between(x, 1.0, 1.0)))); }),
    ofX(OpKind::Atanh, [](D& d, ValueId x) { return d.times(d.ct, d.over(d.splat(x, 1.0), d.between(x, 1.0, 1.0))); }),
    ofY(OpKind::Cbrt, [](D& d, ValueId y) { return d.over(d.ct, d.times(d.splat(y, 3.0), d.times(y, y))); }),
    ofY(OpKind::Expm1, [](D& d, ValueId y) { return d.times(d.ct, d.plus(y, d.splat(y, 1.0))); }),
    ofX(OpKind::Square, [](D& d, ValueId x) { return d.times(d.ct, d.plus(x, x)); }),
    flat(OpKind::Floor),
    flat(OpKind::Ceil),
    flat(OpKind::RoundNearestEven),
    flat(OpKind::RoundNearestAway),
    flat(OpKind::IsFinite),
    flat(OpKind::IsInf),
    flat(OpKind::IsPosInf),
    flat(OpKind::IsNegInf),
    flat(OpKind::Not),
    flat(OpKind::PopulationCount),
    flat(OpKind::CountLeadingZeros),
    ofX(OpKind::Erf, [](D& d, ValueId x) { return d.times(d.ct, d.bell(x, kTwoOverRootPi)); }), // 2/sqrt(pi) exp(-x^2)
    ofX(OpKind::Erfc, [](D& d, ValueId x) { return d.times(d.ct, d.bell(x, -kTwoOverRootPi)); }),
    // erf'(y) = 2/sqrt(pi) exp(-y^2)
    ofY(OpKind::ErfInv, [](D& d, ValueId y) { return d.times(d.ct, d.times(d.splat(y, std::sqrt(std::numbers::pi) / 2.0), d.unary(OpKind::Exp, d.times(y, y)))); }),
    ofX(OpKind::LogGamma, [](D& d, ValueId x) { return d.times(d.ct, d.unary(OpKind::Digamma, x)); }),
    unknown(OpKind::Digamma),
    one(OpKind::Real, [](D& d, ValueId) { return d.ct; }), // of real numbers, as all here
    flat(OpKind::Imag),
    one(OpKind::Conjugate, [](D& d, ValueId) { return d.ct; }),
    one(OpKind::ReducePrecision, [](D& d, ValueId) { return d.b.add(OpKind::ReducePrecision, {d.ct}, d.op.attributes); }),
    {OpKind::Convert, Known::Smooth, [](D& d, ValueId) { return d.unconverted(); }, nullptr,
        [](const Function& function, const Op& op) { return takesFloats(function, op) ? Known::Smooth : Known::Flat; }},
    {OpKind::BitcastConvert, Known::Unknown, nullptr, nullptr,
        [](const Function& function, const Op& op) { return takesFloats(function, op) ? Known::Unknown : Known::Flat; }},
    all(OpKind::Add,
        [](D& d) {
            d.made = {d.ct, d.ct};
        }),
    all(OpKind::Subtract,
        [](D& d) {
            d.made[0] = d.ct;
            if (d.wants(1))
                d.made[1] = d.negated(d.ct);
        }),
    all(OpKind::Multiply, [](D& d) { d.multiply(); }),
    all(OpKind::Scale, [](D& d) { d.made[0] = d.ct; }),
    all(OpKind::Divide,
        [](D& d) { // d(x / y) = dx / y - (x / y) dy / y
            d.made[0] = d.over(d.ct, d.primal(1));
            if (d.wants(1))
                d.made[1] = d.negated(d.times(d.made[0], d.result()));
        }),
    all(OpKind::Remainder,
        [](D& d) { // x - y trunc(x / y)
            d.made[0] = d.ct;
            if (d.wants(1)) {
                const ValueId quotient = d.over(d.primal(0), d.primal(1));
                const ValueId whole = d.unary(OpKind::Floor, d.unary(OpKind::Abs, quotient));
                d.made[1] = d.negated(d.times(d.ct, d.times(d.unary(OpKind::Sign, quotient), whole)));
            }
        }),
    all(OpKind::Maximum, [](D& d) { d.maximum(); }),
    all(OpKind::Minimum, [](D& d) { d.maximum(); }),
    all(OpKind::Power, [](D& d) { d.power(); }),
    all(OpKind::Atan2,
        [](D& d) { // (y dx - x dy) / (x^2 + y^2)
            const ValueId x = d.primal(0);
            const ValueId y = d.primal(1);
            const ValueId scaled = d.over(d.ct, d.plus(d.times(x, x), d.times(y, y)));
            if (d.wants(0))
                d.made[0] = d.times(scaled, y);
            if (d.wants(1))
                d.made[1] = d.negated(d.times(scaled, x));
        }),
    unknown(OpKind::NextAfter),
    unknown(OpKind::Complex),
    flat(OpKind::And),
    flat(OpKind::Or),
    flat(OpKind::Xor),
    flat(OpKind::ShiftLeft),
    flat(OpKind::ShiftRightLogical),
    flat(OpKind::ShiftRightArithmetic),
    flat(OpKind::Compare),
    all(OpKind::Select, [](D& d) { d.select(); }),
    all(OpKind::Clamp, [](D& d) { d.clamp(); }),
    one(OpKind::BroadcastInDim, [](D& d, ValueId) { return d.unbroadcast(); }),
    one(OpKind::Reshape, [](D& d, ValueId) { return d.b.reshape(d.ct, d.operandType(0).shape); }),
    one(OpKind::Transpose, [](D& d, ValueId) { return d.untransposed(); }),
    parts(OpKind::Slice),
    parts(OpKind::Pad),
    parts(OpKind::Concatenate),
    parts(OpKind::Reverse),
    parts(OpKind::DynamicSlice),
    parts(OpKind::DynamicUpdateSlice),
    parts(OpKind::Gather),
    parts(OpKind::Scatter),
    one(OpKind::Reduce, [](D& d, ValueId) { return d.reduction(); }),
    all(OpKind::DotGeneral, [](D& d) { d.product(); }),
    one(OpKind::ShardingConstraint,
        [](D& d, ValueId) {
            auto [sharding, origin] = d.op.as<ConstraintAttributes>();
            sharding.unreduced.clear(); // of a sum of parts every device has the whole cotangent
            return d.b.constrain(d.ct, sharding, origin);
        }),
    one(OpKind::PropagationBarrier, [](D& d, ValueId) { return d.ct; }),
    // The cotangent stands behind a barrier too, as in JAX.
    DerivativeRow{OpKind::OptimizationBarrier, Known::Smooth,
        [](D& d, ValueId) {
            const ValueId passed = d.b.add(OpKind::OptimizationBarrier, {d.ct}, {});
            d.b.function()[d.b.function()[passed].producer].kept = d.op.kept;
            return passed;
        },
        nullptr,
        [](const Function&, const Op& op) { return op.operands.size() == 1 ? Known::Smooth : Known::Unknown; }},
}};

constexpr bool areDerivativesInOrder()
{
    for (std::size_t i = 0; i < kDerivatives.size(); ++i) {
        const DerivativeRow& row = kDerivatives[i];
        const bool isWritten = row.one != nullptr || row.all != nullptr;
        if (row.kind != static_cast<OpKind>(i) || (row.known == Known::Smooth && !isWritten))
            return false;
    }
    return true;
}
static_assert(areDerivativesInOrder(), "every OpKind has its derivative or says that it has none, in the order of the kinds");

/// Kept ops: marks of values that vary over devices, and the collectives of manual computations.
constexpr DerivativeRow kKeptDerivative{OpKind::Other, Known::Smooth,
    [](D& d, ValueId) {
        const Mesh& mesh = *d.context.mesh;
        return isVaried(d.op) ? d.summed(deviceGroups(variedAxes(d.op, mesh), mesh)) : d.exchanged();
    },
    nullptr,
    [](const Function& function, const Op& op) {
        return isVaried(op) || isSmoothCollective(function, op) ? Known::Smooth : Known::Unknown;
    }};

constexpr DerivativeRow kMoveDerivative = one(OpKind::CustomCall, [](D& d, ValueId) { return d.ct; });

constexpr DerivativeRow kFftDerivative = all(OpKind::FftOfPairs, [](D& d) { d.made = fftCotangents(d.context); });

constexpr DerivativeRow kAttentionDerivative
    = all(OpKind::Attention, [](D& d) { d.made = attentionCotangents(d.context, d.ct); });

const DerivativeRow& rowOf(const Op& op)
{
    static constexpr DerivativeRow kUnknown = unknown(OpKind::Other);
    static constexpr DerivativeRow kOfBlock{OpKind::Repeat}; // `differentiate` goes into it
    const auto at = static_cast<std::size_t>(op.kind);
    if (at < kDerivatives.size())
        return kDerivatives[at];
    if (op.kind == OpKind::Repeat || op.kind == OpKind::Case || op.kind == OpKind::Computation)
        return kOfBlock;
    if (op.kind == OpKind::Attention)
        return kAttentionDerivative;
    if (op.kind == OpKind::FftOfPairs)
        return kFftDerivative;
    if (movedTo(op))
        return kMoveDerivative;
    return isKept(op.kind) ? kKeptDerivative : kUnknown;
}

} // namespace

Differentiability differentiability(const Function& function, const Op& op)
{
    const auto hasResult = [&](bool (*isThat)(DType)) {
        return std::any_of(
            op.results.begin(), op.results.end(), [&](ValueId result) { return isThat(function[result].type.dtype); });
    };
    if (op.kind != OpKind::Repeat && hasResult(isComplex))
        return Differentiability::Unknown;
    if (op.kind != OpKind::Repeat && !hasResult(isFloating))
        return Differentiability::Flat;
    const auto isComplexOne = [&](ValueId operand) { return isComplex(function[operand].type.dtype); };
    if (opInfo(op.kind).opClass != OpClass::Control && std::any_of(op.operands.begin(), op.operands.end(), isComplexOne))
        return Differentiability::Unknown;
    const DerivativeRow& row = rowOf(op);
    return row.depends != nullptr ? row.depends(function, op) : row.known;
}

std::vector<ValueId> operandCotangents(const DerivativeContext& context, ValueId cotangent)
{
    assert((context.op.results.size() == 1 || context.op.kind == OpKind::Attention || context.op.kind == OpKind::FftOfPairs)
        && context.op.kind != OpKind::Repeat);
    Derivative derivative(context, cotangent);
    const DerivativeRow& row = rowOf(context.op);
    if (row.one != nullptr)
        derivative.made[0] = row.one(derivative,
            row.of == DerivativeRow::Of::Operand      ? derivative.primal(0)
                : row.of == DerivativeRow::Of::Result ? derivative.result()
                                                      : ValueId());
    else
        row.all(derivative);
    for (std::size_t i = 0; i < derivative.made.size(); ++i) {
        if (!context.wanted[i])
            derivative.made[i] = {};
    }
    return std::move(derivative.made);
}

} // namespace meshwright
