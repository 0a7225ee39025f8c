// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/builder.h"
#include "core/program/program.h"

#include <functional>
#include <vector>

namespace meshwright {

/// What the derivative of one op may use: the op in the forward function, and the place where backward ops go.
struct DerivativeContext {
    const Function& forward;
    const Op& op;
    Builder& backward;
    std::vector<bool> wanted; ///< for each operand: is its cotangent asked for
    std::function<ValueId(ValueId)> primal; ///< a forward value, made readable in the backward function
    const Mesh* mesh = nullptr; ///< of the manual computation that the op is in; none: it is in none
    std::vector<ValueId> cotangents = {}; ///< of an op with several results: of each; invalid: zero
};

/// How an op passes changes of its operands on.
enum class Differentiability : std::uint8_t {
    Smooth, ///< `operandCotangents` knows the op
    Flat, ///< its derivative is zero wherever it exists (floor, sign, comparisons, everything that is not floating)
    Unknown, ///< no derivative is known
};
Differentiability differentiability(const Function& function, const Op& op);

/// The cotangents of the operands of an op with one result (of fused attention, the first; of a Fourier transform, both parts: see
/// DerivativeContext::cotangents), from that of its result; invalid where none was wanted or where the operand is not floating. Ops are added at the end of the backward block. An operand that occurs twice has two entries, to be added.
///
/// At ties, maximum and minimum give half to each side and a max or min reduction divides evenly, as in JAX.
/// In a manual computation the cotangent of a value is its device's part: complete, and the same over all axes over which the value is
/// (varying.h). Collectives give their transposes: a gather a reduce-scatter, a permutation its inverse; of a maximum over devices those
/// that reach it have a part each.
/// Preconditions: the op is Smooth and neither Repeat nor a computation; collectives stand in a manual computation.
std::vector<ValueId> operandCotangents(const DerivativeContext& context, ValueId cotangent);

/// The sum of two cotangents of one value. Two sums over the same devices become one sum of both.
ValueId addedCotangents(Builder& backward, ValueId a, ValueId b, const Mesh* mesh);

} // namespace meshwright
