// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/collective_cost.h"
#include "core/program/op.h"
#include "core/sharding/tensor_sharding.h"

#include <vector>

namespace meshwright {

/// One collective of a change of layout.
struct ReshardStep {
    OpKind kind = OpKind::AllGather; ///< AllReduce, AllGather, AllSlice, ReduceScatter, AllToAll or CollectivePermute
    CollectiveAttributes attributes; ///< without a cause
    TensorSharding result; ///< the layout after the step
    std::int64_t bytesPerDevice = 0; ///< payload: the operand's local bytes; for all-gather the result's
};

struct ReshardPlan {
    std::vector<ReshardStep> steps; ///< empty when both layouts are the same
    double cost = 0.0; ///< by the CollectiveCost that was used
    std::int64_t peakBytes = 0; ///< the largest sum of a step's operand and result on one device
};

/// The cheapest sequence of collectives that turns one layout of an array into another, partial sums included: a shortest path over
/// layouts whose edges are single collectives, the number of steps deciding ties. No layout on the way takes more local bytes than the
/// larger of both ends.
///
/// `shape` is the whole array's, with elements of `elementBytes`. Both layouts lie on `mesh` and divide the shape evenly; axes unreduced in
/// `to` must be unreduced in `from`.
/// Source: openxla/shardy, shardy/dialect/sdy/transforms/export/reshard_to_collectives.cc for the collectives and when they apply;
/// the search is Dijkstra's.
ReshardPlan planReshard(const Shape& shape, std::int64_t elementBytes, const TensorSharding& from, const TensorSharding& to,
    const Mesh& mesh, const CollectiveCost& cost);

/// The position that every mesh position receives from when an array moves from one layout to another with pieces of the same shape.
/// A permutation; positions whose piece stays receive from themselves.
std::vector<std::int64_t> permuteSources(
    const Shape& shape, const TensorSharding& from, const TensorSharding& to, const Mesh& mesh);

} // namespace meshwright
