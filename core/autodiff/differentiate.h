// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

#include <functional>
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
/// Contains no collective of its own and asks nothing about shardings: propagation finds the layouts of the backward run. A manual
/// computation (which needs the program's `meshes`) becomes a forward one that returns its residuals as well and a backward one with the
/// transposes of its collectives: a gather gives a reduce-scatter, a reduce-scatter a gather, an all-to-all the reverse one, a permutation its
/// inverse, and a value that is the same over an axis gets the sum over it of cotangents from uses that are not. A named one is inlined. A ShardingConstraint's
/// cotangent is constrained alike. A residual that is cheap to make again from nothing (constants, iotas, what is made of them element by
/// element) is made again, and a broadcast is made again from what it spreads. Repeat becomes a forward repeat with stacked residuals and
/// a reversed one; what the body takes from outside is not stacked but read where it is. Nothing is computed for cotangents that are
/// absent; an argument that no seed depends on gets zeros. Residuals are in the order of their definition.
/// Cotangents of arguments are named "grad.NAME" and have the role Gradient, each a value of its own; those of results "ct.NAME".
/// What one iteration of a loop adds to the gradient of an array that the loop takes is "grad.NAME.each".
/// Where a derivative does not exist the rules are JAX's (derivatives.h). All ops have one but BitcastConvert between floating types and
/// those of programs on shards (collectives outside of manual computations, Send, Receive).
///
/// Ops of which `again` says so are carried out a second time in the backward run, from their operands, so that their results are no
/// residuals (recomputation; constraints on them are repeated too). It is asked about ops of `function` without blocks.
///
/// Problems: MW1310 no derivative is known for an op on the way (named), MW1311 an argument or result is not floating; MW1260, MW1261 as
/// `bodyCollective`.
using CarriedOutAgain = std::function<bool(OpId)>;
Result<Differentiated> differentiate(const Function& function, const std::vector<std::size_t>& wrt,
    const std::vector<std::size_t>& seeds, const CarriedOutAgain& again = {}, const std::vector<NamedMesh>& meshes = {});

} // namespace meshwright
