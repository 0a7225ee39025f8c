// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"
#include "core/sharding/partition_spec.h"
#include "core/sharding/shape.h"

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace meshwright {

/// A mesh axis or a part of one. An axis of size n is seen as `[pre, size, n / (pre * size)]`, of which this is the middle;
/// the whole axis has pre = 1 and size = n. Shardy writes `"a":(pre)size`.
struct AxisRef {
    std::int32_t axis = 0; ///< index into Mesh::axes()
    std::int64_t pre = 1; ///< >= 1
    std::int64_t size = 1; ///< > 1 except for whole axes of size 1; pre * size divides the axis

    friend auto operator<=>(const AxisRef&, const AxisRef&) = default;
};
using AxisRefs = std::vector<AxisRef>; ///< major to minor

/// The whole of a mesh axis. Precondition: the mesh has it.
AxisRef wholeAxis(const Mesh& mesh, std::size_t axis);

/// True when both cover some common part: same axis, and the intervals [pre, pre * size) intersect.
bool overlaps(const AxisRef& a, const AxisRef& b);

/// True when a device's place along one says nothing of its place along the other: parts of different axes, or digits of one way to factor an
/// axis. x:(1)2 and x:(3)2 of an axis of 6 do not overlap and yet are not independent: no sharding can have both.
bool areIndependent(const AxisRef& a, const AxisRef& b);

/// True when each of `some` is independent of each of `others`.
bool areIndependent(const AxisRefs& some, const AxisRefs& others);

/// True when `prefix` is the major part of `whole` or all of it: same axis, same pre, size at most as large.
bool isPrefixOf(const AxisRef& prefix, const AxisRef& whole);

/// Appends `more` to `axes`, merging it with the last entry where it continues that entry (`a:(1)2` then `a:(2)4` is `a:(1)8`).
void appendMerging(AxisRefs& axes, const AxisRef& more);

/// The major part of a list of axes, and what is left of the list.
struct SplitAxes {
    AxisRefs taken;
    AxisRefs left;

    friend bool operator==(const SplitAxes&, const SplitAxes&) = default;
};

/// Cuts the major part that makes `pieces` pieces off a list of axes, through the middle of an axis if need be; nothing when no cut
/// makes that number. Precondition: pieces >= 1.
/// Source: openxla/xla, xla/hlo/ir/named_sharding.h (`DimensionSharding::Slice`).
std::optional<SplitAxes> takeMajor(const AxisRefs& axes, std::int64_t pieces);

/// The number of pieces that a list of axes makes: the product of the sizes.
std::int64_t shardCount(const AxisRefs& axes);

/// How one dimension is split.
struct DimSharding {
    AxisRefs axes; ///< major to minor, canonical: neighbours that continue each other are merged
    bool open = false; ///< propagation may append axes at the minor end
    int priority = 0; ///< of the user's annotation; smaller is propagated first

    friend bool operator==(const DimSharding&, const DimSharding&) = default;
};

/// How partial values combine into the whole.
enum class ReduceKind : std::uint8_t { Sum, Max, Min, Product, And, Or };

/// "sum", "max" and so on.
const char* reduceKindName(ReduceKind kind);

/// The layout of a value inside a program, relative to one of the program's meshes (alone: to the mesh that the context names).
///
/// An axis, or overlapping parts of one, occurs at most once in dims, replicated and unreduced together. Axes that occur nowhere
/// replicate implicitly. Devices that differ along an `unreduced` axis hold partial values, to be combined by `unreducedKind`.
/// Source: openxla/shardy, docs/sharding_representation.md.
struct TensorSharding {
    std::vector<DimSharding> dims; ///< one for each dimension
    AxisRefs replicated; ///< explicitly: no open dimension may take them; in mesh order
    AxisRefs unreduced; ///< in mesh order
    ReduceKind unreducedKind = ReduceKind::Sum; ///< means nothing while unreduced is empty
    std::int32_t mesh = 0; ///< index into the meshes of the program that the value is in

    /// Nothing sharded, every dimension closed.
    static TensorSharding replicatedOf(std::size_t rank);
    /// Nothing sharded, every dimension open: as a value without any annotation.
    static TensorSharding openOf(std::size_t rank);

    /// True when no axis splits a dimension and nothing is unreduced.
    bool isReplicated() const;

    friend bool operator==(const TensorSharding&, const TensorSharding&) = default;
};

/// The closed sharding that a spec says, for an array of `rank` dimensions; axes of size 1 are dropped.
/// Problems: MW1101, MW1102, MW1103 as `shardShape`.
Result<TensorSharding> toTensorSharding(const PartitionSpec& spec, std::size_t rank, const Mesh& mesh);

/// The spec that says the same; nothing when a part of an axis occurs (a spec cannot say that).
std::optional<PartitionSpec> toSpec(const TensorSharding& sharding, const Mesh& mesh);

/// A spec and the mesh that it is on.
struct SpecOnMesh {
    Mesh mesh;
    PartitionSpec spec;
};

/// The same placement as a spec, always: where a part of an axis splits a dimension, the axis is cut into axes of their own, `data` of 8 into
/// `data_0` of 2 and `data_1` of 4 say. The devices stay where they are. Unreduced axes place nothing and are not said; parts that no cuts
/// can tell apart ((1)2 beside (3)4 of an axis of 12) give nothing.
std::optional<SpecOnMesh> toSpecOnCutMesh(const TensorSharding& sharding, const Mesh& mesh);

/// `"a"` or `"a":(2)4`, as Shardy writes it.
std::string axisText(const AxisRef& axis, const Mesh& mesh);

/// As Shardy writes it: `[{"data"}, {?}], replicated={"x"}, unreduced={"y"}`; `unreduced=max{"y"}` for partial values that are not sums.
std::string shardyText(const TensorSharding& sharding, const Mesh& mesh);

/// True when both say the same of a value: the same mesh, axes, openness and partial sums. What is explicitly replicated makes no
/// difference, and shardings that replicate everything are equal on all meshes and at all ranks.
/// Source: openxla/xla, xla/hlo/ir/named_sharding.h (`NamedSharding::operator==`).
bool sameSharding(const TensorSharding& a, const Mesh& meshA, const TensorSharding& b, const Mesh& meshB);

/// What a person reads: `P('data', None)` where a spec can say it, Shardy's text otherwise; ` partial over model` is added
/// for unreduced axes.
std::string layoutText(const TensorSharding& sharding, const Mesh& mesh);

/// The shape of one device's piece: ceil(size / pieces) for each dimension, as GSPMD pads.
/// Preconditions: as many dims as the shape has.
Shape localShape(const Shape& global, const TensorSharding& sharding);

/// The dimensions that their pieces do not divide.
std::vector<UnequalPieces> unequalPieces(const Shape& shape, const TensorSharding& sharding);

/// True when every dimension has as many elements in every piece.
bool isEven(const TensorSharding& sharding, const Shape& shape);

/// The coordinate of a mesh position along a list of axes taken as one, major to minor: 0 .. shardCount(axes) - 1.
std::int64_t shardIndex(std::int64_t position, const AxisRefs& axes, const Mesh& mesh);

/// The parts of the mesh that are in none of the given lists, in mesh order, each as large as possible.
AxisRefs unusedAxes(std::span<const AxisRef> used, const Mesh& mesh);

/// The mesh positions that differ only along `axes`, one group for each setting of the rest; in each group ordered by
/// the coordinate along `axes` (first axis most major), the groups ordered by their first position.
std::vector<std::vector<std::int64_t>> deviceGroups(const AxisRefs& axes, const Mesh& mesh);

} // namespace meshwright
