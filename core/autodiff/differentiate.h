// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

#include <functional>
#include <vector>

namespace meshwright {

/// What becomes of what an op makes and the backward run reads.
enum class Residual : std::uint8_t {
    Kept, ///< on the device
    Again, ///< the backward run makes it again, where it reads it
    Whole, ///< the backward run makes it again, with all that it is made of, though nothing may read it: PyTorch's checkpoint runs its function whole
    Offloaded, ///< kept in the host's memory
};
using ResidualChoice = std::function<Residual(OpId)>; ///< none: all is kept

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
/// cotangent is constrained alike. What is made, element by element or by changes of shape, of values that have fewer elements together (a
/// mask of labels, a broadcast, what is made of constants and iotas) is not a residual but made again. Repeat becomes a forward repeat with stacked residuals and
/// a reversed one; what the body takes from outside is not stacked but read where it is. Nothing is computed for cotangents that are
/// absent; an argument that no seed depends on gets zeros. Residuals are in the order of their definition.
/// Cotangents of arguments are named "grad.NAME" and have the role Gradient, each a value of its own; those of results "ct.NAME".
/// What one iteration of a loop adds to the gradient of an array that the loop takes is "grad.NAME.each".
/// Where a derivative does not exist the rules are JAX's (derivatives.h). All ops have one but BitcastConvert between floating types and
/// those of programs on shards (collectives outside of manual computations, Send, Receive).
///
/// `residualOf` chooses for each op of `function` what becomes of what it makes and the backward run reads. Ops that are carried out again
/// (recomputation) make it a second time from their operands, so that it is not a residual; constraints on them are repeated too. What is
/// Whole passes an optimization barrier with its cotangent, by which it stays (`staysOnDevices`, transform.h). What is
/// offloaded is moved to the host's memory behind the op and back where the backward run reads it (placement.h): the residual lies there.
/// Ops with blocks are not carried out again; of a Repeat that is offloaded, the carries of each iteration are.
///
/// Problems: MW1310 no derivative is known for an op on the way (named), MW1311 an argument or result is not floating; MW1260, MW1261 as
/// `bodyCollective`.
Result<Differentiated> differentiate(const Function& function, const std::vector<std::size_t>& wrt,
    const std::vector<std::size_t>& seeds, const ResidualChoice& residualOf = {}, const std::vector<NamedMesh>& meshes = {});

} // namespace meshwright
