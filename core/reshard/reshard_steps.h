// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/reshard/reshard.h"
#include "core/sharding/axis_sets.h"

#include <optional>
#include <span>

/// What all planners of changes of layout share.
namespace meshwright {

/// The parts that axes must be cut into so that any two parts are equal or disjoint, by axis and then from major to minor. Nothing
/// when some axis has no such grid (its halves are used here and its thirds there).
std::optional<AxisRefs> commonParts(std::span<const AxisRef> axes);

/// All axes that two layouts name in their dimensions and unreduced sets.
AxisRefs axesNamed(const TensorSharding& a, const TensorSharding& b);

/// `axes` cut into those of `parts` that it consists of, major to minor.
AxisRefs cutInto(const AxisRefs& axes, const AxisRefs& parts);

/// The layout alone: axes and unreduced parts, without openness, priorities and replicated sets.
TensorSharding layoutOnly(const TensorSharding& sharding);

/// The axes of `axes` that `others` do not cover, in mesh order and merged.
AxisRefs withoutAxes(const AxisRefs& axes, const AxisRefs& others);

/// Bytes of one device's piece, padding included.
std::int64_t localBytes(const Shape& shape, std::int64_t elementBytes, const TensorSharding& layout);

/// The array whose layout changes.
struct ReshardedArray {
    const Shape& shape;
    std::int64_t elementBytes = 0;
};

/// Completes a step: axes, result shape and sources of `attributes` where they follow from the layouts, and its payload. Given are, as the
/// kind needs them, `axes` (all-reduce), `perDim` and `moves`. The meshes differ at most in the order of their devices.
ReshardStep reshardStep(OpKind kind, CollectiveAttributes attributes, const ReshardedArray& array, const TensorSharding& from,
    const Mesh& fromMesh, const TensorSharding& to, const Mesh& toMesh);

/// The axes that a permute between two layouts re-assigns, in mesh order.
AxisRefs permutedAxes(const TensorSharding& from, const TensorSharding& to, bool sameOrder);

/// What a cost says of one collective of a plan.
double collectiveCost(const CollectiveCost& cost, OpKind kind, const AxisRefs& axes, std::int64_t payloadBytes, const Mesh& mesh);

/// Sums up cost and peak of steps that start at `from`.
ReshardPlan planOf(std::vector<ReshardStep> steps, const ReshardedArray& array, const TensorSharding& from, const Mesh& mesh,
    const CollectiveCost& cost);

} // namespace meshwright
