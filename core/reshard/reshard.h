// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"
#include "core/reshard/collective_cost.h"
#include "core/sharding/tensor_sharding.h"

#include <map>
#include <optional>
#include <vector>

namespace meshwright {

/// One collective of a change of layout.
struct ReshardStep {
    OpKind kind = OpKind::AllGather; ///< AllReduce, AllGather, AllSlice, ReduceScatter, AllToAll or CollectivePermute
    CollectiveAttributes attributes; ///< without a cause
    TensorSharding result; ///< the layout after the step
    std::int64_t payloadBytes = 0; ///< of one call: the operand's local bytes; for all-gather the result's
};

struct ReshardPlan {
    std::vector<ReshardStep> steps; ///< empty when both layouts are the same
    double cost = 0.0; ///< by the CollectiveCost that was used
    std::int64_t peakBytes = 0; ///< the largest sum of a step's operand and result on one device; without steps the array's piece
};

/// The cheapest sequence of collectives that turns one layout of an array into another, partial sums included: a shortest path over
/// layouts whose edges are single collectives, the number of steps deciding ties.
/// No layout on the way takes more local bytes than the larger of both ends, unless every way needs more. Where both ends divide the array
/// evenly, so does every layout on the way. Never dearer than what `planShardyReshard` gives, where that one too does so.
///
/// `shape` is the whole array's, with elements of `elementBytes`. Both layouts lie on `mesh` and divide the shape evenly; axes unreduced in
/// `to` must be unreduced in `from`.
/// Source: openxla/shardy, shardy/dialect/sdy/transforms/export/reshard_to_collectives.cc for the collectives and when they apply;
/// the search is Dijkstra's, with what Shardy's sequence costs as a bound.
ReshardPlan planReshard(const Shape& shape, std::int64_t elementBytes, const TensorSharding& from, const TensorSharding& to,
    const Mesh& mesh, const CollectiveCost& cost);

/// Shardy's own sequence, step for step: slice what is sliced for nothing; at most one permute; all-to-alls, first those that land in order;
/// gather the rest; and once more where sizes share no divisor. Partial sums are reduced first; where the slice that follows uses up
/// all reduced axes, both become a reduce-scatter.
///
/// The meshes may differ in the order of their devices, which takes a permute; with other axes there is no sequence (nothing), unless
/// `to` splits nothing over as many devices. Steps before the permute have layouts on `from`'s mesh, then on `to`'s; a replicated result stays on
/// `from`'s mesh. `cost` only fills in ReshardPlan::cost. Where the layouts cut an axis in ways that no grid has (halves here, thirds there),
/// of which Shardy says nothing, the parts are gathered first.
/// Source: openxla/shardy, shardy/dialect/sdy/transforms/export/reshard_to_collectives.cc.
std::optional<ReshardPlan> planShardyReshard(const Shape& shape, std::int64_t elementBytes, const TensorSharding& from,
    const Mesh& fromMesh, const TensorSharding& to, const Mesh& toMesh, const CollectiveCost& cost);

/// What bringing everything together first costs: reduce, gather all, slice. The price of an "involuntary full rematerialization".
ReshardPlan planByFullGather(const Shape& shape, std::int64_t elementBytes, const TensorSharding& from, const TensorSharding& to,
    const Mesh& mesh, const CollectiveCost& cost);

/// Whose sequences of collectives changes of layout become.
enum class ReshardStyle : std::uint8_t { Cheapest, Shardy };

/// Plans changes of layout on one mesh, each distinct one once.
class ReshardPlanner {
public:
    /// The cost must outlive the planner.
    ReshardPlanner(const CollectiveCost& cost, ReshardStyle style)
        : m_cost(cost)
        , m_style(style)
    {
    }

    /// As `planReshard`, or as `planShardyReshard` where that makes even pieces of even ones. The reference stays good.
    const ReshardPlan& plan(
        const Shape& shape, std::int64_t elementBytes, const TensorSharding& from, const TensorSharding& to, const Mesh& mesh);

private:
    const CollectiveCost& m_cost;
    ReshardStyle m_style;
    std::map<std::vector<std::int64_t>, ReshardPlan> m_plans;
};

} // namespace meshwright
