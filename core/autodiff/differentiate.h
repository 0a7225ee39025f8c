// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

#include <vector>

namespace meshwright {

/// A function split into its forward and its backward run.
struct Differentiated {
    /// "f.fwd": the arguments of f; the results of f, then the residuals (the values that the backward run reads).
    Function forward;
    /// "f.bwd": the residuals, then one cotangent for each floating result of f in `seeds`; one cotangent for each argument in `wrt`.
    /// Every op of it has phase Backward. `restrictedTo` its results gives the input-gradient and the weight-gradient parts.
    Function backward;
};

/// Reverse-mode derivative of `function` with respect to the arguments `wrt` (indices), seeded at the results `seeds`.
///
/// Contains no collective and asks nothing about shardings: propagation finds the layouts of the backward run. A ShardingConstraint's
/// cotangent is constrained alike. A residual that is cheap to make again from nothing (constants, iotas, broadcasts of constants) is made
/// again. Repeat becomes a forward repeat with stacked residuals and a reversed one.
/// Cotangents of arguments are named "grad.NAME" and have the role Gradient.
///
/// Problems: MW1310 no derivative is known for an op on the way (named), MW1311 an argument or result is not floating.
Result<Differentiated> differentiate(
    const Function& function, const std::vector<std::size_t>& wrt, const std::vector<std::size_t>& seeds);

} // namespace meshwright
