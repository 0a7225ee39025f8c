// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/eight_bits.h"

#include <algorithm>
#include <numeric>

namespace meshwright {

namespace {

constexpr std::int64_t kBlock = 128;

/// How many elements along each dimension have one scale.
Shape blocksOf(const Shape& shape, const std::vector<std::size_t>& contracted, SharedScale shared, OperandOf operand)
{
    if (shared == SharedScale::Array)
        return shape;
    Shape blocks(shape.size(), 1);
    if (shared == SharedScale::Row) {
        for (const std::size_t dim : contracted)
            blocks[dim] = shape[dim];
        return blocks;
    }
    blocks[contracted.back()] = std::gcd(shape[contracted.back()], kBlock);
    if (operand == OperandOf::Weight) {
        for (std::size_t dim = shape.size(); dim-- > 0;) {
            if (std::find(contracted.begin(), contracted.end(), dim) == contracted.end()) {
                blocks[dim] = std::gcd(shape[dim], kBlock);
                break;
            }
        }
    }
    return blocks;
}

/// The largest power of two by which `largest` times it is not over `limit`, as f32. Its bits without a fraction, so it has no derivative.
ValueId scaleFor(Builder& b, ValueId largest, double limit)
{
    const TensorType type{DType::F32, b.type(largest).shape};
    const double least = b.type(largest).dtype == DType::F16 ? limit * 0x1p-14 : 0x1p-100; // scales are finite, of zeros too
    const ValueId some = b.binary(OpKind::Maximum, b.convert(largest, DType::F32), b.splat(TensorType(type), least));
    const ValueId ratio = b.binary(OpKind::Divide, b.splat(TensorType(type), limit), some);
    const ValueId bits = b.add(OpKind::BitcastConvert, {ratio}, ConvertAttributes{DType::S32});
    const ValueId exponent = b.binary(OpKind::And, bits, b.splat({DType::S32, type.shape}, double{0x7f800000}));
    return b.add(OpKind::BitcastConvert, {exponent}, ConvertAttributes{DType::F32});
}

bool isEightBits(DType type)
{
    return type == DType::F8E4M3FN || type == DType::F8E5M2;
}

const Op* producerOf(const Function& function, ValueId value, OpKind kind)
{
    const OpId producer = function[value].producer;
    return producer.valid() && function[producer].kind == kind ? &function[producer] : nullptr;
}

} // namespace

ValueId roundedToEightBits(
    Builder& b, ValueId value, const std::vector<std::size_t>& contracted, SharedScale shared, OperandOf operand)
{
    const TensorType whole = b.type(value);
    const Shape blocks = blocksOf(whole.shape, contracted, shared, operand);
    Shape split;
    std::vector<std::size_t> among; // dimensions of `split` along which numbers have one scale
    std::vector<std::size_t> kept;
    for (std::size_t dim = 0; dim < blocks.size(); ++dim) {
        const bool cuts = blocks[dim] > 1 && blocks[dim] < whole.shape[dim];
        if (cuts) {
            kept.push_back(split.size());
            split.push_back(whole.shape[dim] / blocks[dim]);
        }
        (blocks[dim] > 1 || whole.shape[dim] == 1 ? among : kept).push_back(split.size());
        split.push_back(cuts ? blocks[dim] : whole.shape[dim]);
    }
    const ValueId numbers = b.reshape(value, split);
    const bool isWide = shared == SharedScale::Array && operand == OperandOf::Gradient;
    constexpr double kLargestE4M3 = 448.0;
    constexpr double kLargestE5M2 = 57344.0;
    const ValueId scale
        = scaleFor(b, b.reduce(ReduceKind::Max, b.unary(OpKind::Abs, numbers), among), isWide ? kLargestE5M2 : kLargestE4M3);
    const ValueId back = b.binary(OpKind::Divide, b.splat(TensorType(b.type(scale)), 1.0), scale);
    const auto times = [&](ValueId of, ValueId factor) {
        return b.binary(OpKind::Scale, of, b.broadcast(b.convert(factor, whole.dtype), Shape(split), kept));
    };
    const ValueId narrow = b.convert(times(numbers, scale), isWide ? DType::F8E5M2 : DType::F8E4M3FN);
    return b.reshape(times(b.convert(narrow, whole.dtype), back), Shape(whole.shape));
}

std::optional<EightBitValue> eightBitValue(const Function& function, ValueId value)
{
    const auto shaped = [&](ValueId at) {
        const Op* reshape = producerOf(function, at, OpKind::Reshape);
        return reshape == nullptr ? at : reshape->operands.front();
    };
    const Op* back = producerOf(function, shaped(value), OpKind::Scale);
    const Op* widened = back == nullptr ? nullptr : producerOf(function, back->operands[0], OpKind::Convert);
    const Op* narrowed = widened == nullptr ? nullptr : producerOf(function, widened->operands[0], OpKind::Convert);
    const Op* scaled = narrowed == nullptr ? nullptr : producerOf(function, narrowed->operands[0], OpKind::Scale);
    if (scaled == nullptr || !isEightBits(function[narrowed->results[0]].type.dtype))
        return std::nullopt;
    const ValueId numbers = scaled->operands[0];
    const Op* spread = producerOf(function, scaled->operands[1], OpKind::BroadcastInDim);
    const std::size_t cuts = function[numbers].type.shape.size() - function[value].type.shape.size();
    const bool isWide = function[narrowed->results[0]].type.dtype == DType::F8E5M2;
    const bool isOne = spread == nullptr || function[spread->operands[0]].type.shape.empty();
    EightBitValue found{
        cuts > 0 ? shaped(numbers) : numbers, SharedScale::Row, isWide ? OperandOf::Gradient : OperandOf::Activation};
    if (isOne)
        found.shared = SharedScale::Array;
    else if (cuts > 0)
        found.shared = SharedScale::Block;
    if (cuts > 1)
        found.operand = OperandOf::Weight;
    return found;
}

ValueId eightBitSource(const Function& function, ValueId value)
{
    while (!isEightBits(function[value].type.dtype)) {
        const OpId producer = function[value].producer;
        if (!producer.valid())
            return {};
        const Op& op = function[producer];
        const OpClass opClass = opInfo(op.kind).opClass;
        if (op.kind != OpKind::Convert && op.kind != OpKind::Scale && opClass != OpClass::Shaping
            && opClass != OpClass::Constraint && opClass != OpClass::Collective)
            return {};
        value = op.operands.front();
    }
    return value;
}

namespace {

/// Behind changes of shape, constraints, collectives and casts that are none to or from 8 bits, up to a value with a name.
ValueId unwrapped(const Function& function, ValueId value)
{
    for (OpId producer = function[value].producer; producer.valid() && function[value].name.empty();
         producer = function[value].producer) {
        const Op& op = function[producer];
        const OpClass opClass = opInfo(op.kind).opClass;
        const bool isCast = op.kind == OpKind::Convert && !isEightBits(function[value].type.dtype)
            && !isEightBits(function[op.operands.front()].type.dtype);
        if (!isCast && opClass != OpClass::Shaping && opClass != OpClass::Constraint && opClass != OpClass::Collective)
            break;
        value = op.operands.front();
    }
    return value;
}

/// The array whose largest magnitude a value is; invalid: it is none.
ValueId arrayOfLargest(const Function& function, ValueId value)
{
    const Op* reduce = producerOf(function, unwrapped(function, value), OpKind::Reduce);
    if (reduce == nullptr || reduce->as<ReduceAttributes>().kind != ReduceKind::Max)
        return {};
    const Op* magnitude = producerOf(function, unwrapped(function, reduce->operands.front()), OpKind::Abs);
    return magnitude == nullptr ? ValueId() : unwrapped(function, magnitude->operands.front());
}

/// The array whose scale, or its inverse, a value is: as `scaleFor` makes it.
ValueId arrayOfScale(const Function& function, ValueId value)
{
    const auto behind = [&](const Op* op, OpKind kind, std::size_t operand) {
        return op == nullptr || op->operands.size() <= operand
            ? nullptr
            : producerOf(function, unwrapped(function, op->operands[operand]), kind);
    };
    value = unwrapped(function, value);
    if (const Op* inverse = producerOf(function, value, OpKind::Divide))
        value = unwrapped(function, inverse->operands[1]);
    const Op* scale = producerOf(function, value, OpKind::BitcastConvert);
    const Op* ratio = behind(behind(behind(scale, OpKind::And, 0), OpKind::BitcastConvert, 0), OpKind::Divide, 0);
    const Op* some = behind(ratio, OpKind::Maximum, 1);
    return some == nullptr ? ValueId() : arrayOfLargest(function, some->operands.front());
}

} // namespace

std::optional<EightBitPartOf> eightBitPartOf(const Function& function, ValueId value)
{
    if (const ValueId array = arrayOfScale(function, value); array.valid())
        return EightBitPartOf{EightBitPart::Scale, array};
    if (const ValueId array = arrayOfLargest(function, value); array.valid())
        return EightBitPartOf{EightBitPart::Largest, array};
    const ValueId numbers = eightBitSource(function, value);
    if (!numbers.valid())
        return std::nullopt;
    ValueId array = unwrapped(function, numbers); // as many collectives as it went through
    if (const Op* narrowed = producerOf(function, array, OpKind::Convert))
        array = unwrapped(function, narrowed->operands.front());
    if (const Op* scaled = producerOf(function, array, OpKind::Scale))
        array = unwrapped(function, scaled->operands.front());
    const bool isNarrow = isEightBits(function[unwrapped(function, value)].type.dtype);
    return EightBitPartOf{isNarrow ? EightBitPart::Numbers : EightBitPart::Rounded, array};
}

std::string eightBitText(EightBitPart part, const std::string& source)
{
    switch (part) {
    case EightBitPart::Numbers:
        return source + " in 8 bits";
    case EightBitPart::Rounded:
        return source + " rounded to 8 bits";
    case EightBitPart::Largest:
        return "largest of " + source;
    case EightBitPart::Scale:
        break;
    }
    return "scale of " + source;
}

bool isEightBitProduct(const Function& function, const Op& dot)
{
    return eightBitSource(function, dot.operands[0]).valid() && eightBitSource(function, dot.operands[1]).valid();
}

} // namespace meshwright
