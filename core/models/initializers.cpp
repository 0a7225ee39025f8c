// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/initializers.h"

#include <cmath>
#include <numbers>

namespace meshwright {

namespace {

/// A standard normal between -2 and 2, as `jax.random.truncated_normal(key, -2, 2, shape)`.
ValueId truncatedNormal(Builder& builder, ValueId key, const Shape& shape, bool partitionable, const Stretch& stretch)
{
    const TensorType type{DType::F32, shape};
    const double edge = std::erf(std::numbers::sqrt2_v<float>);
    const ValueId u = uniform(builder, key, shape, -edge, edge, partitionable, stretch);
    const ValueId value
        = builder.binary(OpKind::Multiply, builder.splat(type, std::numbers::sqrt2), builder.unary(OpKind::ErfInv, u));
    const double inside = std::nextafter(2.0F, 0.0F);
    return builder.binary(
        OpKind::Minimum, builder.splat(type, inside), builder.binary(OpKind::Maximum, builder.splat(type, -inside), value));
}

} // namespace

bool isRandom(Initializer initializer)
{
    return initializer != Initializer::Zeros && initializer != Initializer::Ones;
}

ValueId randomWords(Builder& builder, ValueId key, const Shape& shape, bool partitionable, const Stretch& stretch)
{
    TensorType all{DType::U32, shape};
    if (stretch.count > 0)
        all.shape.insert(all.shape.begin(), stretch.count);
    const ValueId words = builder.add(OpKind::RandomBits, {key}, RandomBitsAttributes{all, partitionable});
    if (stretch.count == 0)
        return words;
    std::vector<ValueId> operands(all.shape.size() + 1, builder.splat({DType::S32, {}}, 0.0));
    operands[0] = words;
    operands[1] = stretch.number;
    all.shape.front() = 1;
    return builder.reshape(builder.add(OpKind::DynamicSlice, std::move(operands), DynamicSliceAttributes{all.shape}), shape);
}

ValueId uniform(
    Builder& builder, ValueId key, const Shape& shape, double low, double high, bool partitionable, const Stretch& stretch)
{
    constexpr double kFractionShift = 32 - 23;
    constexpr double kBitsOfOne = 0x3F800000;
    const TensorType words{DType::U32, shape};
    const TensorType type{DType::F32, shape};
    const ValueId bits = randomWords(builder, key, shape, partitionable, stretch);
    const ValueId fraction = builder.binary(OpKind::ShiftRightLogical, bits, builder.splat(words, kFractionShift));
    const ValueId pattern = builder.binary(OpKind::Or, fraction, builder.splat(words, kBitsOfOne));
    const ValueId oneToTwo = builder.add(OpKind::BitcastConvert, {pattern}, ConvertAttributes{DType::F32});
    const ValueId zeroToOne = builder.binary(OpKind::Subtract, oneToTwo, builder.splat(type, 1.0));
    // The bounds and their difference are rounded to f32, as JAX does.
    const auto lowRounded = static_cast<float>(low);
    const float width = static_cast<float>(high) - lowRounded;
    const ValueId floor = builder.splat(type, static_cast<double>(lowRounded));
    const ValueId scaled = builder.binary(OpKind::Multiply, zeroToOne, builder.splat(type, static_cast<double>(width)));
    return builder.binary(OpKind::Maximum, floor, builder.binary(OpKind::Add, scaled, floor));
}

ValueId normal(Builder& builder, ValueId key, const Shape& shape, bool partitionable, const Stretch& stretch)
{
    const ValueId u = uniform(builder, key, shape, static_cast<double>(std::nextafter(-1.0F, 0.0F)), 1.0, partitionable, stretch);
    const ValueId rootTwo = builder.splat({DType::F32, shape}, std::numbers::sqrt2);
    return builder.binary(OpKind::Multiply, rootTwo, builder.unary(OpKind::ErfInv, u));
}

ValueId initialized(Builder& builder, Initializer initializer, ValueId key, const TensorType& type, std::int64_t fanIn,
    bool partitionable, const Stretch& stretch)
{
    const TensorType drawn{DType::F32, type.shape};
    const auto fan = static_cast<double>(fanIn);
    const auto scaledTruncated = [&](double variance) {
        // The standard deviation of a standard normal cut off at -2 and 2, as in jax/_src/nn/initializers.py.
        constexpr double kTruncatedDeviation = .87962566103423978;
        const ValueId value = truncatedNormal(builder, key, type.shape, partitionable, stretch);
        return builder.binary(OpKind::Multiply, value, builder.splat(drawn, std::sqrt(variance) / kTruncatedDeviation));
    };
    ValueId value;
    switch (initializer) {
    case Initializer::Zeros:
        return builder.splat(type, 0.0);
    case Initializer::Ones:
        return builder.splat(type, 1.0);
    case Initializer::Normal:
        value = normal(builder, key, type.shape, partitionable, stretch);
        break;
    case Initializer::NormalOverSqrtFanIn:
        value = builder.binary(
            OpKind::Divide, normal(builder, key, type.shape, partitionable, stretch), builder.splat(drawn, std::sqrt(fan)));
        break;
    case Initializer::LecunNormal:
        value = scaledTruncated(1.0 / fan);
        break;
    case Initializer::HeNormal:
        value = scaledTruncated(2.0 / fan);
        break;
    }
    return builder.convert(value, type.dtype);
}

} // namespace meshwright
