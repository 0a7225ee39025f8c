// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/tensor_sharding.h"

#include <optional>
#include <string>
#include <string_view>

namespace meshwright {

/// Reads what `shardyText` writes: `[{"a"}, {"b":(1)2, ?}p1], replicated={"c"}, unreduced={"d"}`. Names may also stand in single
/// quotes or without any. Axes of size 1 are kept as they are written.
///
/// Problems, each with its column: MW1140 the text is not of that form, MW1102 unknown axis, and all that `shardingProblems` finds.
/// Source: openxla/shardy, docs/sharding_representation.md.
Result<TensorSharding> parseShardy(std::string_view text, const Mesh& mesh);

/// The same where it is known whether a mesh without axes is one device by its id (maximal). One that is not goes with every mesh, and
/// its shardings say which dimensions are open.
Result<TensorSharding> parseShardy(std::string_view text, const Mesh& mesh, bool isMaximal);

/// A mesh as Shardy writes it, and whether it is one device by its id, for maximal shardings.
struct ShardyMesh {
    Mesh mesh;
    bool isMaximal = false;
};

/// Reads what stands in the brackets of `mesh<..>` and `sdy.mesh @name = <..>`: `["a"=2, "b"=4], device_ids=[0, 2, 1, 3]`.
/// Problems: MW1119 the text is not of that form, with its column; those of `Mesh::create`.
Result<ShardyMesh> parseShardyMesh(std::string_view text);

/// What is wrong with a sharding on a mesh, by Shardy's rules; empty when it is sound. With a `rank`, that of the array.
///
/// Problems: MW1103 an axis occurs twice, MW1141 a part of an axis is none (`pre` < 1, `size` < 2, pre * size does not divide the axis,
/// or it is the whole axis), MW1142 two parts of an axis overlap, or one is the whole, or no grid of the axis has both,
/// MW1143 `replicated` or `unreduced` is not in mesh order, MW1144 two neighbours continue each other and are not merged,
/// MW1145 not one entry for each dimension, MW1146 a mesh without axes with a sharding that is not `[]`,
/// MW1147 a priority on a dimension that is empty and closed. All are reported.
/// Source: openxla/shardy, shardy/dialect/sdy/ir/verifiers.cc.
Problems shardingProblems(const TensorSharding& sharding, const Mesh& mesh, std::optional<std::size_t> rank = std::nullopt);

/// A sharding with its mesh, which the text names too.
struct MeshedSharding {
    Mesh mesh;
    TensorSharding sharding;

    friend bool operator==(const MeshedSharding&, const MeshedSharding&) = default;
};

/// XLA's named form: `{mesh['a'=2,'b'=4], [{'a'}, {?}], unreduced={'b'}}`; another device order as `, device_ids=(0,2,1,3)` after the
/// axes; `{maximal_mesh[device_id=3], []}` for a mesh of one device without axes.
/// Source: openxla/xla, xla/hlo/ir/mesh_and_axis.h and named_sharding.h.
std::string xlaNamedText(const TensorSharding& sharding, const Mesh& mesh);

/// Reads XLA's named form. Problems: MW1140 the text is not of that form, those of `Mesh::create` and of `parseShardy`.
Result<MeshedSharding> parseXlaNamed(std::string_view text);

} // namespace meshwright
