// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <vector>

namespace meshwright {

/// How much to make explicit.
enum class ReshardDepth : std::uint8_t {
    Full, ///< every op can be computed on shards
    Light, ///< only reductions of partial sums, concatenations, and products whose result would be reduced and scattered on the larger side
};

/// A propagated function in which every change of layout is an op of its own, as Shardy makes it: Reshard and AllReduce on whole arrays (the
/// result's sharding says the layout). Each op is then computable as its operands and results lie; ops whose tensors are on meshes of
/// different axes stay as they are, and ops with a custom rule. What goes to one device or comes from it goes by the whole array on all. What
/// enters a loop, a branch or a computation lies as its blocks take it. Shardings are final: a value without one is replicated.
///
/// A Reshard whose result has more unreduced axes is free: its `perDim` are the axes that split dimensions before (Shardy's
/// sharded_to_unreduced), its `axes` those that replicated (replicated_to_unreduced). Of other Reshards both are empty.
/// Causes name the value that moves and the op that wants it so.
/// Source: openxla/shardy, shardy/dialect/sdy/transforms/export/insert_explicit_reshards.cc.
Function insertExplicitReshards(
    const Function& function, const std::vector<NamedMesh>& meshes, ReshardDepth depth = ReshardDepth::Full);

/// Sharding constraints as Reshards: what they are once propagation is over.
void constraintsToReshards(Function& function);

/// Takes axes off the minor end of dimensions that they do not divide, for all values: pieces of one size on every device.
void dropUnevenAxes(Function& function);

} // namespace meshwright
