// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/element_functions.h"

#include "core/program/other_op.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace meshwright {

namespace {

/// Writes formulas of one value into a program.
struct Formula {
    Builder& builder;
    ValueId x;

    ValueId number(double value) const { return builder.splat(TensorType(builder.type(x)), value); }
    ValueId unary(OpKind kind, ValueId a) const { return builder.unary(kind, a); }
    ValueId binary(OpKind kind, ValueId a, ValueId b) const { return builder.binary(kind, a, b); }
    ValueId square() const { return binary(OpKind::Multiply, x, x); }
    /// (a - x)(b + x): exact near the ends, where 1 - x^2 loses digits.
    ValueId between(double a, double b) const
    {
        return binary(OpKind::Multiply, binary(OpKind::Subtract, number(a), x), binary(OpKind::Add, number(b), x));
    }
    ValueId inverse(ValueId a) const { return binary(OpKind::Divide, number(1.0), a); }
    /// The mean of f(x) and f(-x), or half their difference.
    ValueId half(OpKind function, OpKind combine) const
    {
        const ValueId there = unary(function, x);
        const ValueId back = unary(function, unary(OpKind::Negate, x));
        return binary(OpKind::Multiply, number(0.5), binary(combine, there, back));
    }
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const std::array<ElementFunction, 15> kFunctions = {{
    {"acos", [](double x) { return std::acos(x); },
        [](Builder& b, ValueId x) {
            const Formula f{b, x};
            return f.unary(OpKind::Negate, f.unary(OpKind::Rsqrt, f.between(1.0, 1.0)));
        }},
    {"acosh", [](double x) { return std::acosh(x); },
        [](Builder& b, ValueId x) {
            const Formula f{b, x};
            return f.unary(OpKind::Rsqrt, f.unary(OpKind::Negate, f.between(1.0, 1.0)));
        }},
    {"asin", [](double x) { return std::asin(x); },
        [](Builder& b, ValueId x) {
            const Formula f{b, x};
            return f.unary(OpKind::Rsqrt, f.between(1.0, 1.0));
        }},
    {"asinh", [](double x) { return std::asinh(x); },
        [](Builder& b, ValueId x) {
            const Formula f{b, x};
            return f.unary(OpKind::Rsqrt, f.binary(OpKind::Add, f.square(), f.number(1.0)));
        }},
    {"atan", [](double x) { return std::atan(x); },
        [](Builder& b, ValueId x) {
            const Formula f{b, x};
            return f.inverse(f.binary(OpKind::Add, f.square(), f.number(1.0)));
        }},
    {"atanh", [](double x) { return std::atanh(x); },
        [](Builder& b, ValueId x) {
            const Formula f{b, x};
            return f.inverse(f.between(1.0, 1.0));
        }},
    {"cosh", [](double x) { return std::cosh(x); },
        [](Builder& b, ValueId x) {
            return Formula{b, x}.half(OpKind::Expm1, OpKind::Subtract);
        }},
    {"sinh", [](double x) { return std::sinh(x); },
        [](Builder& b, ValueId x) {
            return Formula{b, x}.half(OpKind::Exp, OpKind::Add);
        }},
    {"tan", [](double x) { return std::tan(x); },
        [](Builder& b, ValueId x) {
            const Formula f{b, x};
            const ValueId tan = f.unary(OpKind::Tan, x);
            return f.binary(OpKind::Add, f.binary(OpKind::Multiply, tan, tan), f.number(1.0));
        }},
    {"lgamma", [](double x) { return std::lgamma(x); }, nullptr},
    // of real numbers
    {"real", [](double x) { return x; }, nullptr},
    {"imag", [](double) { return 0.0; }, nullptr},
    {"is_inf", [](double x) { return std::isinf(x) ? 1.0 : 0.0; }, nullptr},
    {"is_pos_inf", [](double x) { return x == kInfinity ? 1.0 : 0.0; }, nullptr},
    {"is_neg_inf", [](double x) { return x == -kInfinity ? 1.0 : 0.0; }, nullptr},
}};

} // namespace

std::span<const ElementFunction> elementFunctions()
{
    return kFunctions;
}

const ElementFunction* elementFunction(const OtherAttributes& other)
{
    if (otherClass(other) != OtherClass::Elementwise)
        return nullptr;
    const auto found = std::ranges::find(kFunctions, baseName(other.name), &ElementFunction::name);
    return found == kFunctions.end() ? nullptr : &*found;
}

} // namespace meshwright
