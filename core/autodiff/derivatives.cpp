// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/derivatives.h"

#include "core/autodiff/parts_derivatives.h"
#include "core/autodiff/varying.h"
#include "core/program/element_functions.h"
#include "core/program/other_op.h"

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

/// True for kept ops that are a function of each element with a known derivative.
bool hasSlope(const Op& op)
{
    const ElementFunction* element = op.kind == OpKind::Other ? elementFunction(op.as<OtherAttributes>()) : nullptr;
    return element != nullptr && element->slope != nullptr && op.operands.size() == 1;
}

/// Transposes unless the permutation changes nothing.
ValueId permuted(Builder& builder, ValueId value, const Dims& permutation)
{
    return std::is_sorted(permutation.begin(), permutation.end()) ? value : builder.transpose(value, permutation);
}

class Derivative {
public:
    Derivative(const DerivativeContext& context, ValueId cotangent)
        : m_context(context)
        , m_op(context.op)
        , m_b(context.backward)
        , m_ct(cotangent)
    {
    }

    std::vector<ValueId> run()
    {
        m_result.resize(m_op.operands.size());
        switch (opInfo(m_op.kind).opClass) {
        case OpClass::Unary:
            m_result[0] = unary();
            break;
        case OpClass::Binary:
            binary();
            break;
        case OpClass::Ternary:
            ternary();
            break;
        case OpClass::Parts:
            m_result = partsCotangents(m_context, m_ct);
            break;
        case OpClass::Shaping:
            m_result[0] = shaping();
            break;
        case OpClass::Contraction:
            if (m_op.kind == OpKind::Reduce)
                m_result[0] = reduction();
            else
                product();
            break;
        case OpClass::Constraint:
            if (m_op.kind == OpKind::PropagationBarrier) {
                m_result[0] = m_ct;
                break;
            }
            m_result[0] = m_b.constrain(m_ct, m_op.as<ConstraintAttributes>().sharding, m_op.as<ConstraintAttributes>().origin);
            break;
        case OpClass::Other:
            m_result[0] = hasSlope(m_op) ? times(m_ct, elementFunction(m_op.as<OtherAttributes>())->slope(m_b, primal(0)))
                : isVaried(m_op)         ? summed(deviceGroups(variedAxes(m_op, *m_context.mesh), *m_context.mesh))
                                         : exchanged();
            break;
        default:
            assert(!"no derivative");
        }
        return m_result;
    }

private:
    bool wants(std::size_t operand) const { return m_context.wanted[operand]; }
    ValueId primal(std::size_t operand) { return m_context.primal(m_op.operands[operand]); }
    ValueId result() { return m_context.primal(m_op.results.front()); }
    const TensorType& operandType(std::size_t operand) const { return m_context.forward[m_op.operands[operand]].type; }

    ValueId times(ValueId a, ValueId b) { return m_b.binary(OpKind::Multiply, a, b); }
    ValueId over(ValueId a, ValueId b) { return m_b.binary(OpKind::Divide, a, b); }
    ValueId minus(ValueId a, ValueId b) { return m_b.binary(OpKind::Subtract, a, b); }
    ValueId plus(ValueId a, ValueId b) { return m_b.binary(OpKind::Add, a, b); }
    ValueId negated(ValueId a) { return m_b.unary(OpKind::Negate, a); }
    /// `value` at every element, in the type of `like`.
    ValueId splat(ValueId like, double value) { return m_b.splat(TensorType(m_b.type(like)), value); }
    ValueId zeros() { return splat(m_ct, 0.0); }

    ValueId unary();
    void binary();
    void maximum();
    void power();
    void ternary();
    ValueId shaping();
    ValueId unbroadcast();
    ValueId reduction();
    void product();
    ValueId productCotangent(std::size_t operand);
    ValueId summed(const Groups& groups);
    ValueId exchanged();
    ValueId reached(const BodyCollective& extreme, ValueId cotangent);
    ValueId scattered(BodyCollective gather, ValueId cotangent = {});
    ValueId ungathered(const BodyCollective& gather);

    const DerivativeContext& m_context;
    const Op& m_op;
    Builder& m_b;
    ValueId m_ct;
    std::vector<ValueId> m_result;
};

ValueId Derivative::unary()
{
    switch (m_op.kind) {
    case OpKind::Negate:
        return negated(m_ct);
    case OpKind::Abs:
        return times(m_ct, m_b.unary(OpKind::Sign, primal(0)));
    case OpKind::Exp:
        return times(m_ct, result());
    case OpKind::Log:
        return over(m_ct, primal(0));
    case OpKind::Log1p: {
        const ValueId x = primal(0);
        return over(m_ct, plus(x, splat(x, 1.0)));
    }
    case OpKind::Tanh: {
        const ValueId y = result();
        return times(m_ct, minus(splat(y, 1.0), times(y, y)));
    }
    case OpKind::Logistic: {
        const ValueId y = result();
        return times(m_ct, times(y, minus(splat(y, 1.0), y)));
    }
    case OpKind::Sqrt: {
        const ValueId y = result();
        return over(m_ct, plus(y, y));
    }
    case OpKind::Rsqrt: { // d(x^-1/2) = -1/2 x^-3/2 = -1/2 y^3
        const ValueId y = result();
        return times(m_ct, times(splat(y, -0.5), times(y, times(y, y))));
    }
    case OpKind::Sine:
        return times(m_ct, m_b.unary(OpKind::Cosine, primal(0)));
    case OpKind::Cosine:
        return negated(times(m_ct, m_b.unary(OpKind::Sine, primal(0))));
    case OpKind::Tan: {
        const ValueId y = result();
        return times(m_ct, plus(splat(y, 1.0), times(y, y)));
    }
    case OpKind::Cbrt: {
        const ValueId y = result();
        return over(m_ct, times(splat(y, 3.0), times(y, y)));
    }
    case OpKind::Expm1: {
        const ValueId y = result();
        return times(m_ct, plus(y, splat(y, 1.0)));
    }
    case OpKind::Square: {
        const ValueId x = primal(0);
        return times(m_ct, plus(x, x));
    }
    case OpKind::Erf:
    case OpKind::Erfc: { // 2/sqrt(pi) exp(-x^2), and its opposite
        const ValueId x = primal(0);
        const double slope = (m_op.kind == OpKind::Erf ? 2.0 : -2.0) / std::sqrt(std::numbers::pi);
        return times(m_ct, times(splat(x, slope), m_b.unary(OpKind::Exp, negated(times(x, x)))));
    }
    case OpKind::ErfInv: { // erf'(y) = 2/sqrt(pi) exp(-y^2)
        const ValueId y = result();
        const double half = std::sqrt(std::numbers::pi) / 2.0;
        return times(m_ct, times(splat(y, half), m_b.unary(OpKind::Exp, times(y, y))));
    }
    case OpKind::Convert:
        return m_b.convert(m_ct, operandType(0).dtype);
    default:
        assert(!"no derivative");
        return {};
    }
}

void Derivative::binary()
{
    switch (m_op.kind) {
    case OpKind::Add:
        m_result = {m_ct, m_ct};
        break;
    case OpKind::Subtract:
        m_result[0] = m_ct;
        if (wants(1))
            m_result[1] = negated(m_ct);
        break;
    case OpKind::Multiply:
        if (m_op.operands[0] == m_op.operands[1]) {
            m_result[0] = m_result[1] = times(m_ct, primal(0));
            break;
        }
        if (wants(0))
            m_result[0] = times(m_ct, primal(1));
        if (wants(1))
            m_result[1] = times(m_ct, primal(0));
        break;
    case OpKind::Divide: { // d(a / b) = da / b - (a / b) db / b
        const ValueId scaled = over(m_ct, primal(1));
        m_result[0] = scaled;
        if (wants(1))
            m_result[1] = negated(times(scaled, result()));
        break;
    }
    case OpKind::Remainder: // a - b trunc(a / b)
        m_result[0] = m_ct;
        if (wants(1)) {
            const ValueId quotient = over(primal(0), primal(1));
            const ValueId whole = m_b.unary(OpKind::Floor, m_b.unary(OpKind::Abs, quotient));
            m_result[1] = negated(times(m_ct, times(m_b.unary(OpKind::Sign, quotient), whole)));
        }
        break;
    case OpKind::Maximum:
    case OpKind::Minimum:
        maximum();
        break;
    case OpKind::Power:
        power();
        break;
    case OpKind::Atan2: { // (b da - a db) / (a^2 + b^2)
        const ValueId a = primal(0);
        const ValueId b = primal(1);
        const ValueId scaled = over(m_ct, plus(times(a, a), times(b, b)));
        if (wants(0))
            m_result[0] = times(scaled, b);
        if (wants(1))
            m_result[1] = negated(times(scaled, a));
        break;
    }
    default:
        assert(!"no derivative");
    }
}

void Derivative::maximum()
{
    const bool isMaximum = m_op.kind == OpKind::Maximum;
    const ValueId a = primal(0);
    const ValueId b = primal(1);
    const ValueId none = zeros();
    const ValueId shared = m_b.select(m_b.compare(CompareDirection::Equal, a, b), times(m_ct, splat(m_ct, 0.5)), none);
    if (wants(0))
        m_result[0] = m_b.select(m_b.compare(isMaximum ? CompareDirection::Greater : CompareDirection::Less, a, b), m_ct, shared);
    if (wants(1))
        m_result[1] = m_b.select(m_b.compare(isMaximum ? CompareDirection::Less : CompareDirection::Greater, a, b), m_ct, shared);
}

void Derivative::power()
{
    const ValueId x = primal(0);
    if (wants(0)) { // y x^(y - 1); 0 for y = 0, even where x is 0
        const ValueId y = primal(1);
        const ValueId one = splat(y, 1.0);
        const ValueId isZero = m_b.compare(CompareDirection::Equal, y, splat(y, 0.0));
        const ValueId lowered = m_b.select(isZero, one, minus(y, one));
        m_result[0] = times(m_ct, times(y, m_b.binary(OpKind::Power, x, lowered)));
    }
    if (wants(1)) { // log(x) x^y; 0 where x is 0
        const ValueId isZero = m_b.compare(CompareDirection::Equal, x, splat(x, 0.0));
        const ValueId logarithm = m_b.unary(OpKind::Log, m_b.select(isZero, splat(x, 1.0), x));
        m_result[1] = times(m_ct, times(logarithm, result()));
    }
}

void Derivative::ternary()
{
    if (m_op.kind == OpKind::Select) {
        if (wants(1))
            m_result[1] = m_b.select(primal(0), m_ct, zeros());
        if (wants(2))
            m_result[2] = m_b.select(primal(0), zeros(), m_ct);
        return;
    }
    // Clamp: to the value where it lies between the bounds, else to the bound that it went over, as in JAX.
    const ValueId lower = primal(0);
    const ValueId value = primal(1);
    const ValueId upper = primal(2);
    const auto where = [&](ValueId mask) { return m_b.select(mask, m_ct, zeros()); };
    const auto greater = [&](ValueId a, ValueId b) { return m_b.compare(CompareDirection::Greater, a, b); };
    if (wants(0))
        m_result[0] = where(m_b.binary(OpKind::And, greater(lower, value), greater(upper, lower)));
    if (wants(1))
        m_result[1] = where(m_b.binary(OpKind::And, greater(value, lower), greater(upper, value)));
    if (wants(2))
        m_result[2] = where(greater(value, upper));
}

ValueId Derivative::shaping()
{
    if (m_op.kind == OpKind::BroadcastInDim)
        return unbroadcast();
    if (m_op.kind == OpKind::Reshape)
        return m_b.reshape(m_ct, operandType(0).shape);
    const Dims& permutation = m_op.as<TransposeAttributes>().permutation;
    Dims inverse(permutation.size());
    for (std::size_t i = 0; i < permutation.size(); ++i)
        inverse[permutation[i]] = i;
    return permuted(m_b, m_ct, inverse);
}

/// Sums over what the broadcast added or stretched.
ValueId Derivative::unbroadcast()
{
    const auto& attributes = m_op.as<BroadcastAttributes>();
    const Shape& shape = operandType(0).shape;
    Dims kept; // of the result, in the operand's order
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == attributes.shape[attributes.dims[i]])
            kept.push_back(attributes.dims[i]);
    }
    const ValueId sum = m_b.reduce(ReduceKind::Sum, m_ct, remainingDims(attributes.shape.size(), kept));
    Dims ascending = kept;
    std::sort(ascending.begin(), ascending.end());
    Dims permutation;
    for (const std::size_t dim : kept)
        permutation.push_back(static_cast<std::size_t>(std::find(ascending.begin(), ascending.end(), dim) - ascending.begin()));
    return m_b.reshape(permuted(m_b, sum, permutation), shape);
}

ValueId Derivative::reduction()
{
    const auto& attributes = m_op.as<ReduceAttributes>();
    const Shape& shape = operandType(0).shape;
    const Dims kept = remainingDims(shape.size(), attributes.dims);
    const auto spread = [&](ValueId value) { return m_b.broadcast(value, shape, kept); };

    if (attributes.kind == ReduceKind::Sum)
        return spread(m_ct);
    const ValueId x = primal(0);
    if (attributes.kind == ReduceKind::Product) {
        // The product of the others: of all that are not zero, divided by the element, where no other one is zero.
        const ValueId isZero = m_b.compare(CompareDirection::Equal, x, splat(x, 0.0));
        const ValueId nonZero = m_b.select(isZero, splat(x, 1.0), x);
        const ValueId whole = m_b.reduce(ReduceKind::Product, nonZero, attributes.dims);
        const ValueId zeroCount = m_b.convert(isZero, m_b.type(x).dtype);
        const ValueId otherZeros = minus(spread(m_b.reduce(ReduceKind::Sum, zeroCount, attributes.dims)), zeroCount);
        const ValueId alone = m_b.compare(CompareDirection::Equal, otherZeros, splat(x, 0.0));
        const ValueId others = m_b.select(alone, over(spread(whole), nonZero), splat(x, 0.0));
        return times(spread(m_ct), others);
    }
    // Max and min: to the elements that reach it, in equal parts.
    const ValueId reached = m_b.compare(CompareDirection::Equal, x, spread(result()));
    const ValueId count = m_b.reduce(ReduceKind::Sum, m_b.convert(reached, m_b.type(m_ct).dtype), attributes.dims);
    return m_b.select(reached, spread(over(m_ct, count)), splat(x, 0.0));
}

void Derivative::product()
{
    for (std::size_t operand = 0; operand < 2; ++operand) {
        if (wants(operand))
            m_result[operand] = productCotangent(operand);
    }
}

/// The cotangent of one operand is a product of the result's cotangent with the other operand. The order of the two is chosen so
/// that the dimensions come out in place, where one of the orders does that.
ValueId Derivative::productCotangent(std::size_t operand)
{
    const auto& forward = m_op.as<DotAttributes>();
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
    std::sort(pairs.begin(), pairs.end(), [&](std::size_t a, std::size_t b) { return ownBatch[a] < ownBatch[b]; });

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
        [&](std::size_t a, std::size_t b) { return otherContracting[a] < otherContracting[b]; });
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

    const ValueId rounded = m_b.convert(m_ct, ownType.dtype);
    const ValueId factor = primal(other);
    DotAttributes attributes;
    attributes.operandType = forward.operandType;
    attributes.resultType = forward.resultType;
    attributes.lhsBatch = cotangentFirst ? ctBatch : batchOfOther;
    attributes.rhsBatch = cotangentFirst ? batchOfOther : ctBatch;
    attributes.lhsContracting = cotangentFirst ? ctContracting : otherFree;
    attributes.rhsContracting = cotangentFirst ? otherFree : ctContracting;
    const ValueId raw
        = cotangentFirst ? m_b.dot(rounded, factor, std::move(attributes)) : m_b.dot(factor, rounded, std::move(attributes));

    Dims permutation(chosen.size());
    for (std::size_t i = 0; i < chosen.size(); ++i)
        permutation[chosen[i]] = i;
    return m_b.convert(permuted(m_b, raw, permutation), ownType.dtype);
}

ValueId Derivative::summed(const Groups& groups)
{
    BodyCollective sum;
    sum.groups = groups;
    return groups.front().size() == 1 ? m_ct : addBodyCollective(m_b, sum, m_ct, *m_context.mesh);
}

/// The transpose of a collective. Its operand differs over all axes that it touches; whether its result does is told by its groups.
ValueId Derivative::exchanged()
{
    const Mesh& mesh = *m_context.mesh;
    BodyCollective collective = valueOf(bodyCollective(m_context.forward, m_op, mesh));
    const bool overAxes = axesOfGroups(collective.groups, mesh).has_value();
    switch (collective.kind) {
    case OpKind::AllReduce: { // one value for all, or with groups of no axes one for each device
        const ValueId whole = overAxes ? m_ct : summed(collective.groups);
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
    return addBodyCollective(m_b, collective, m_ct, mesh);
}

/// Max and min over devices: to those that reach it, in equal parts.
ValueId Derivative::reached(const BodyCollective& extreme, ValueId cotangent)
{
    const ValueId reaches = m_b.compare(CompareDirection::Equal, primal(0), result());
    BodyCollective sum;
    sum.groups = extreme.groups;
    const ValueId count = addBodyCollective(m_b, sum, m_b.convert(reaches, m_b.type(cotangent).dtype), *m_context.mesh);
    return m_b.select(reaches, over(cotangent, count), zeros());
}

ValueId Derivative::scattered(BodyCollective gather, ValueId cotangent)
{
    gather.kind = OpKind::ReduceScatter;
    gather.split = gather.join;
    return addBodyCollective(m_b, gather, cotangent.valid() ? cotangent : m_ct, *m_context.mesh);
}

/// The gathered value is one for all, and so is its cotangent: each device takes the part that it gave. Where the cotangent is a sum over
/// these devices, only the parts need to be summed.
ValueId Derivative::ungathered(const BodyCollective& gather)
{
    const auto sum = deviceSumOf(m_b.function(), m_ct, m_context.mesh);
    if (sum && haveSameGroups(sum->collective.groups, gather.groups))
        return scattered(gather, sum->operand);
    const Shape& piece = operandType(0).shape;
    std::vector<ValueId> operands{m_ct};
    for (std::size_t dim = 0; dim < piece.size(); ++dim)
        operands.push_back(dim == gather.join ? addPlaceInGroup(m_b, gather.groups, *m_context.mesh, piece[dim])
                                              : m_b.splat({DType::S32, {}}, 0.0));
    return m_b.add(OpKind::DynamicSlice, std::move(operands), DynamicSliceAttributes{piece});
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
    return combiner == ReduceKind::Sum || (isExtreme && baseName(op.as<OtherAttributes>().name) == "all_reduce");
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
    switch (op.kind) {
    case OpKind::Constant:
    case OpKind::Iota:
    case OpKind::RandomBits:
    case OpKind::Sign:
    case OpKind::Floor:
    case OpKind::Ceil:
    case OpKind::RoundNearestEven:
    case OpKind::RoundNearestAway:
    case OpKind::IsFinite:
    case OpKind::Compare:
        return Differentiability::Flat;
    case OpKind::Convert:
        return isFloating(function[op.operands.front()].type.dtype) ? Differentiability::Smooth : Differentiability::Flat;
    case OpKind::BitcastConvert:
        return isFloating(function[op.operands.front()].type.dtype) ? Differentiability::Unknown : Differentiability::Flat;
    default:
        break;
    }
    switch (opInfo(op.kind).opClass) {
    case OpClass::Parts:
        return hasPartsDerivative(op) ? Differentiability::Smooth : Differentiability::Unknown;
    case OpClass::Barrier:
    case OpClass::Collective:
    case OpClass::Transfer:
        return Differentiability::Unknown;
    case OpClass::Other:
        return hasSlope(op) || isVaried(op) || isSmoothCollective(function, op) ? Differentiability::Smooth
                                                                                : Differentiability::Unknown;
    case OpClass::Control:
        return op.kind == OpKind::Repeat || op.kind == OpKind::Computation ? Differentiability::Smooth
                                                                           : Differentiability::Unknown;
    default:
        return Differentiability::Smooth;
    }
}

std::vector<ValueId> operandCotangents(const DerivativeContext& context, ValueId cotangent)
{
    assert(context.op.results.size() == 1 && context.op.kind != OpKind::Repeat);
    std::vector<ValueId> cotangents = Derivative(context, cotangent).run();
    for (std::size_t i = 0; i < cotangents.size(); ++i) {
        if (!context.wanted[i])
            cotangents[i] = {};
    }
    return cotangents;
}

} // namespace meshwright
