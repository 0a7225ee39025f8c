// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/random_programs/draft.h"

/// Ops on elements, and what is made from nothing.
namespace meshwright::tests::draw {

inline void binary(Draft& draft, Random& random)
{
    const ValueId a = draft.number(random);
    const DType dtype = draft.dtypeOf(a);
    const ValueId b = draft.like(random, TensorType(draft.type(a)));
    const double room = Draft::room(dtype);
    const auto made = [&](OpKind kind, double most, auto largest) {
        const ValueId x = draft.within(a, most);
        const ValueId y = draft.within(b, most);
        draft.keep(draft.builder.binary(kind, x, y), largest(draft.largest(x), draft.largest(y)));
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
            const ValueId divisor = draft.splat(TensorType(draft.type(a)), static_cast<double>(pick(random, 2, 5)));
            const OpKind kind = chance(random, 50) ? OpKind::Divide : OpKind::Remainder;
            draft.keep(draft.builder.binary(kind, a, divisor), draft.largest(a));
        }
    }
}

inline void unary(Draft& draft, Random& random)
{
    const ValueId a = draft.number(random);
    if (isUnsigned(draft.dtypeOf(a)))
        return;
    const OpKind kinds[] = {OpKind::Negate, OpKind::Abs, OpKind::Sign};
    draft.keep(draft.builder.unary(kinds[pick(random, 0, 2)], a), draft.largest(a));
}

inline void chosen(Draft& draft, Random& random)
{
    const ValueId a = draft.number(random);
    const TensorType type = draft.type(a);
    const auto direction = static_cast<CompareDirection>(pick(random, 0, 5));
    const ValueId truth = draft.keep(draft.builder.compare(direction, a, draft.like(random, type)), 1);
    const ValueId other = draft.like(random, type);
    draft.keepMoved(draft.builder.select(truth, other, a), {a, other});
}

inline void rounded(Draft& draft, Random& random)
{
    const ValueId a = draft.converted(draft.number(random), DType::F32);
    const OpKind kinds[] = {OpKind::Floor, OpKind::Ceil, OpKind::RoundNearestEven, OpKind::RoundNearestAway};
    draft.keep(draft.builder.unary(kinds[pick(random, 0, 3)], a), draft.largest(a));
}

inline void truths(Draft& draft, Random& random)
{
    const ValueId a = draft.any(random);
    const ValueId b = draft.like(random, {DType::Pred, Shape(draft.shapeOf(a))});
    const OpKind kinds[] = {OpKind::And, OpKind::Or, OpKind::Xor};
    const ValueId other = draft.like(random, TensorType(draft.type(b)));
    const ValueId made = draft.builder.binary(kinds[pick(random, 0, 2)], b, other);
    draft.keep(chance(random, 50) ? draft.builder.unary(OpKind::Not, made) : made, 1);
}

inline void clamp(Draft& draft, Random& random)
{
    const ValueId a = draft.number(random);
    const TensorType type = draft.type(a);
    const std::int64_t least = isUnsigned(type.dtype) ? 1 : pick(random, -5, 0);
    const ValueId low = draft.splat(type, static_cast<double>(least));
    const ValueId high = draft.splat(type, static_cast<double>(pick(random, 1, 6)));
    draft.keep(draft.builder.add(OpKind::Clamp, {low, a, high}), draft.largest(a) + 6);
}

inline void convert(Draft& draft, Random& random)
{
    const DType types[]
        = {DType::S32, DType::F32, DType::S64, DType::F64, DType::BF16, DType::F16, DType::S8, DType::S16, DType::U8, DType::U32};
    const DType dtype = types[pick(random, 0, 9)];
    ValueId a = draft.number(random);
    if (isUnsigned(dtype) && !isUnsigned(draft.dtypeOf(a)))
        a = draft.note(draft.builder.unary(OpKind::Abs, a), draft.largest(a));
    a = draft.converted(a, dtype);
    draft.keep(a, draft.largest(a));
}

/// Of numbers that are not exact.
inline void mathematics(Draft& draft, Random& random)
{
    const DType dtype = chance(random, 80) ? DType::F32 : DType::F64;
    const ValueId a = draft.within(draft.converted(draft.number(random), dtype), 3);
    const auto positive = [&] {
        return draft.builder.binary(OpKind::Add, draft.builder.unary(OpKind::Abs, a), draft.splat(TensorType(draft.type(a)), 1));
    };
    const OpKind kinds[]
        = {OpKind::Exp, OpKind::Tanh, OpKind::Logistic, OpKind::Sine, OpKind::Cosine, OpKind::Expm1, OpKind::Cbrt, OpKind::Erf};
    const OpKind ofPositive[] = {OpKind::Sqrt, OpKind::Rsqrt, OpKind::Log, OpKind::Log1p};
    const char* const others[] = {"chlo.sinh", "chlo.cosh", "chlo.asinh"};
    switch (pick(random, 0, 4)) {
    case 0:
        draft.keep(draft.builder.unary(ofPositive[pick(random, 0, 3)], positive()), 3, false);
        return;
    case 1:
        draft.keep(draft.builder.add(OpKind::Other, {a}, OtherAttributes{others[pick(random, 0, 2)], {}, {draft.type(a)}, 0}), 12,
            false);
        return;
    case 2:
        draft.keep(draft.builder.binary(chance(random, 50) ? OpKind::Atan2 : OpKind::Power, positive(), a), 64, false);
        return;
    default:
        draft.keep(draft.builder.unary(kinds[pick(random, 0, 7)], a), 21, false);
    }
}

inline void iota(Draft& draft, Random& random)
{
    const ValueId a = draft.wide(random);
    const TensorType type = draft.type(a);
    if (type.shape.empty())
        return;
    const std::size_t dim = Draft::anyOf(random, type.shape.size());
    const ValueId numbers = draft.builder.iota(type, dim);
    const ValueId x = draft.within(a, 1e6);
    draft.keep(draft.builder.binary(OpKind::Add, x, numbers), draft.largest(x) + static_cast<double>(type.shape[dim]));
}

/// Random bits of a key, few of them so that they stay small.
inline void randomBits(Draft& draft, Random& random)
{
    const Shape shape = draft.shape(random, 1);
    if (draft.isManual || elementCount(shape) == 0)
        return;
    const ValueId key = draft.listed(random, {DType::U32, {2}}, 0, 1000);
    const TensorType type{DType::U32, shape};
    const ValueId bits = draft.builder.add(OpKind::RandomBits, {key}, RandomBitsAttributes{type, chance(random, 70)});
    const ValueId few = draft.note(draft.builder.binary(OpKind::ShiftRightLogical, bits, draft.splat(type, 28)), 15);
    draft.keep(draft.converted(few, DType::S32), 15);
}

inline void constant(Draft& draft, Random& random)
{
    const ValueId made = draft.constant(random, {chance(random, 70) ? DType::S32 : DType::F32, draft.shape(random, 1)});
    draft.keep(made, draft.largest(made));
}

/// The identity of several values, behind which none is computed before all are.
inline void barrier(Draft& draft, Random& random)
{
    const ValueId a = draft.any(random);
    const ValueId b = draft.any(random);
    const std::vector<ValueId> made = draft.builder.addMany(OpKind::OptimizationBarrier, {a, b});
    draft.keepMoved(made[0], {a});
    if (chance(random, 50))
        draft.keepMoved(made[1], {b});
}

inline constexpr DrawOp kElementOps[] = {binary, binary, binary, unary, rounded, chosen, truths, truths, clamp, convert,
    mathematics, mathematics, mathematics, mathematics, iota, randomBits, constant, barrier};

} // namespace meshwright::tests::draw
