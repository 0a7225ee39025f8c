// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/random_programs/program_generator.h"

/// Ops on elements, and what is made from nothing.
namespace meshwright::tests::draw {

inline void binary(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.number(random);
    const DType dtype = generator.dtypeOf(a);
    const ValueId b = generator.like(random, TensorType(generator.type(a)));
    const double room = ProgramGenerator::room(dtype);
    const auto made = [&](OpKind kind, double most, auto largest) {
        const ValueId x = generator.within(a, most);
        const ValueId y = generator.within(b, most);
        generator.keep(generator.builder.binary(kind, x, y), largest(generator.largest(x), generator.largest(y)));
    };
    const auto sum = [](double x, double y) { return x + y; };
    const auto more = [](double x, double y) { return std::max(x, y); };
    const auto bits = [](double x, double y) { return std::exp2(std::ceil(std::log2(std::max(x, y) + 1))); };
    switch (pick(random, 0, 8)) {
    case 0:
        return made(OpKind::Add, room / 2, sum);
    case 1:
        return isUnsigned(dtype) ? made(OpKind::Add, room / 2, sum) : made(OpKind::Subtract, room / 2, sum);
    case 2:
    case 3:
        return made(OpKind::Multiply, std::sqrt(room), [](double x, double y) { return x * y; });
    case 4:
        return made(OpKind::Maximum, room, more);
    case 5:
        return made(OpKind::Minimum, room, more);
    case 6:
        if (isInteger(dtype) && !isUnsigned(dtype)) {
            const OpKind kinds[] = {OpKind::And, OpKind::Or, OpKind::Xor};
            return made(kinds[pick(random, 0, 2)], room / 4, bits);
        }
        return made(OpKind::Maximum, room, more);
    default:
        if (isInteger(dtype)) {
            const ValueId divisor = generator.splat(TensorType(generator.type(a)), static_cast<double>(pick(random, 2, 5)));
            const OpKind kind = chance(random, 50) ? OpKind::Divide : OpKind::Remainder;
            generator.keep(generator.builder.binary(kind, a, divisor), generator.largest(a));
        }
    }
}

inline void unary(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.number(random);
    if (isUnsigned(generator.dtypeOf(a)))
        return;
    const OpKind kinds[] = {OpKind::Negate, OpKind::Abs, OpKind::Sign};
    generator.keep(generator.builder.unary(kinds[pick(random, 0, 2)], a), generator.largest(a));
}

inline void chosen(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.number(random);
    const TensorType type = generator.type(a);
    const auto direction = static_cast<CompareDirection>(pick(random, 0, 5));
    const ValueId truth = generator.keep(generator.builder.compare(direction, a, generator.like(random, type)), 1);
    const ValueId other = generator.like(random, type);
    generator.keepMoved(generator.builder.select(truth, other, a), {a, other});
}

inline void rounded(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.converted(generator.number(random), DType::F32);
    const OpKind kinds[] = {OpKind::Floor, OpKind::Ceil, OpKind::RoundNearestEven, OpKind::RoundNearestAway};
    generator.keep(generator.builder.unary(kinds[pick(random, 0, 3)], a), generator.largest(a));
}

inline void truths(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.any(random);
    const ValueId b = generator.like(random, {DType::Pred, Shape(generator.shapeOf(a))});
    const OpKind kinds[] = {OpKind::And, OpKind::Or, OpKind::Xor};
    const ValueId other = generator.like(random, TensorType(generator.type(b)));
    const ValueId made = generator.builder.binary(kinds[pick(random, 0, 2)], b, other);
    generator.keep(chance(random, 50) ? generator.builder.unary(OpKind::Not, made) : made, 1);
}

inline void clamp(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.number(random);
    const TensorType type = generator.type(a);
    const std::int64_t least = isUnsigned(type.dtype) ? 1 : pick(random, -5, 0);
    const ValueId low = generator.splat(type, static_cast<double>(least));
    const ValueId high = generator.splat(type, static_cast<double>(pick(random, 1, 6)));
    generator.keep(generator.builder.add(OpKind::Clamp, {low, a, high}), generator.largest(a) + 6);
}

inline void convert(ProgramGenerator& generator, Random& random)
{
    const DType types[]
        = {DType::S32, DType::F32, DType::S64, DType::F64, DType::BF16, DType::F16, DType::S8, DType::S16, DType::U8, DType::U32};
    const DType dtype = types[pick(random, 0, 9)];
    ValueId a = generator.number(random);
    if (isUnsigned(dtype) && !isUnsigned(generator.dtypeOf(a)))
        a = generator.note(generator.builder.unary(OpKind::Abs, a), generator.largest(a));
    a = generator.converted(a, dtype);
    generator.keep(a, generator.largest(a));
}

/// Of numbers that are not exact.
inline void mathematics(ProgramGenerator& generator, Random& random)
{
    const DType dtype = chance(random, 80) ? DType::F32 : DType::F64;
    const ValueId a = generator.within(generator.converted(generator.number(random), dtype), 3);
    const auto positive = [&] {
        return generator.builder.binary(
            OpKind::Add, generator.builder.unary(OpKind::Abs, a), generator.splat(TensorType(generator.type(a)), 1));
    };
    const OpKind kinds[]
        = {OpKind::Exp, OpKind::Tanh, OpKind::Logistic, OpKind::Sine, OpKind::Cosine, OpKind::Expm1, OpKind::Cbrt, OpKind::Erf};
    const OpKind ofPositive[] = {OpKind::Sqrt, OpKind::Rsqrt, OpKind::Log, OpKind::Log1p};
    const OpKind hyperbolic[] = {OpKind::Sinh, OpKind::Cosh, OpKind::Asinh};
    switch (pick(random, 0, 4)) {
    case 0:
        generator.keep(generator.builder.unary(ofPositive[pick(random, 0, 3)], positive()), 3, false);
        return;
    case 1:
        generator.keep(generator.builder.unary(hyperbolic[pick(random, 0, 2)], a), 12, false);
        return;
    case 2:
        generator.keep(generator.builder.binary(chance(random, 50) ? OpKind::Atan2 : OpKind::Power, positive(), a), 64, false);
        return;
    default:
        generator.keep(generator.builder.unary(kinds[pick(random, 0, 7)], a), 21, false);
    }
}

inline void iota(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.wide(random);
    const TensorType type = generator.type(a);
    if (type.shape.empty())
        return;
    const std::size_t dim = ProgramGenerator::anyOf(random, type.shape.size());
    const ValueId numbers = generator.builder.iota(type, dim);
    const ValueId x = generator.within(a, 1e6);
    generator.keep(
        generator.builder.binary(OpKind::Add, x, numbers), generator.largest(x) + static_cast<double>(type.shape[dim]));
}

/// Random bits of a key, few of them so that they stay small.
inline void randomBits(ProgramGenerator& generator, Random& random)
{
    const Shape shape = generator.shape(random, 1);
    if (generator.isManual || elementCount(shape) == 0)
        return;
    const TensorType type{DType::U32, shape};
    const auto keepFew = [&](ValueId bits) {
        const ValueId few
            = generator.note(generator.builder.binary(OpKind::ShiftRightLogical, bits, generator.splat(type, 28)), 15);
        generator.keep(generator.converted(few, DType::S32), 15);
    };
    if (chance(random, 50)) {
        const ValueId key = generator.listed(random, {DType::U32, {2}}, 0, 1000);
        keepFew(generator.builder.add(OpKind::RandomBits, {key}, RandomBitsAttributes{type, chance(random, 70)}));
        return;
    }
    const bool isThreefry = chance(random, 50);
    const bool isLong = !isThreefry && chance(random, 50);
    const char* const algorithm = isThreefry ? "THREE_FRY" : chance(random, 50) ? "PHILOX" : "DEFAULT";
    const ValueId state = generator.listed(random, {DType::U64, {isLong ? 3 : 2}}, 0, 1000);
    const std::vector<ValueId> made = generator.builder.addMany(OpKind::Other, {state},
        OtherAttributes{"stablehlo.rng_bit_generator",
            {keptAttribute("rng_algorithm", fmt::format("#stablehlo<rng_algorithm {}>", algorithm), {})},
            {generator.type(state), type}, 0});
    keepFew(made[1]);
    if (chance(random, 50))
        generator.keep(generator.builder.convert(made[0], DType::S32), 1000 + static_cast<double>(elementCount(shape)));
}

inline void constant(ProgramGenerator& generator, Random& random)
{
    const ValueId made = generator.constant(random, {chance(random, 70) ? DType::S32 : DType::F32, generator.shape(random, 1)});
    generator.keep(made, generator.largest(made));
}

/// The identity of several values, behind which none is computed before all are.
inline void barrier(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.any(random);
    const ValueId b = generator.any(random);
    const std::vector<ValueId> made = generator.builder.addMany(OpKind::OptimizationBarrier, {a, b});
    generator.keepMoved(made[0], {a});
    if (chance(random, 50))
        generator.keepMoved(made[1], {b});
}

inline constexpr DrawOp kElementOps[] = {binary, binary, binary, unary, rounded, chosen, truths, truths, clamp, convert,
    mathematics, mathematics, mathematics, mathematics, iota, randomBits, constant, barrier};

} // namespace meshwright::tests::draw
