// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/tensor_sharding.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshwright {

/// All that a `jax.sharding.PartitionSpec` can say. `PartitionSpec` of ours is the part that places arrays.
struct JaxSpec {
    struct Entry {
        std::vector<std::string> axes; ///< major to minor
        bool unconstrained = false; ///< P.UNCONSTRAINED: left to propagation; then without axes

        friend bool operator==(const Entry&, const Entry&) = default;
    };
    std::vector<Entry> dims; ///< may be fewer than the array has
    std::vector<std::string> unreduced; ///< the value is a partial result over these
    std::vector<std::string> reduced; ///< the value is whole over these, its cotangent is a partial result
    ReduceKind unreducedKind = ReduceKind::Sum;

    friend bool operator==(const JaxSpec&, const JaxSpec&) = default;
};

/// As JAX prints it: `P('a', None, UNCONSTRAINED, unreduced={'c'}, reduced={'d'}, unreduced_kind=sum)`.
std::string jaxSpecText(const JaxSpec& spec);

/// Reads what JAX prints and what users write: `P(..)`, `PartitionSpec(..)`, `jax.P(..)`, a bare tuple or list, `P.UNCONSTRAINED`.
///
/// Problems, with a column: MW1105 the text is not a PartitionSpec (a tuple within a tuple, None within a set), MW1103 an axis is both in an
/// entry and in `unreduced` or `reduced`, or twice in one of those.
Result<JaxSpec> parseJaxSpec(std::string_view text);

/// A spec on a mesh; `reduced` axes replicate, and are kept beside the sharding.
struct SpecSharding {
    TensorSharding sharding;
    AxisRefs reduced;
};

/// The sharding of an array of `rank` dimensions (or as many as the spec has); axes of size 1 are dropped.
/// Problems: MW1101, MW1102, MW1103 as `shardShape`.
Result<SpecSharding> onMesh(const JaxSpec& spec, std::optional<std::size_t> rank, const Mesh& mesh);

/// The spec that says the same; an open dimension without axes is unconstrained, others close, and what is explicitly replicated is
/// left out. Problems: MW1161 a part of an axis occurs.
Result<JaxSpec> jaxSpecOf(const TensorSharding& sharding, const AxisRefs& reduced, const Mesh& mesh);

/// The problem that a part of an axis has no name in a notation; it advises how to split the axis.
Problem noNameForPart(const AxisRef& part, const Mesh& mesh, std::string_view notation);

/// How JAX treats the axes of a mesh.
enum class AxisType : std::uint8_t { Auto, Explicit, Manual };

/// `Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto))`; missing types are Auto.
std::string jaxMeshText(const Mesh& mesh, std::span<const AxisType> types = {});

/// A mesh and what its text says of the types of its axes.
struct TypedMesh {
    Mesh mesh;
    std::vector<AxisType> types; ///< empty: not said
};

/// Reads what versions of JAX print: the form of `jaxMeshText`, `Mesh(axis_sizes=(2, 4), axis_names=('x', 'y'), axis_types=(..))`,
/// `Mesh(device_ids=[[0 1] [2 3]], axis_names=('x', 'y'))`, `AbstractMesh(..)`, `OrderedDict([('x', 2)])` inside any of them, and `x=2,y=4`;
/// and PyTorch's `DeviceMesh('cuda', [[0, 1], [2, 3]], mesh_dim_names=('x', 'y'))` (dimensions without names are dim_0, dim_1 and so on) and
/// `DeviceMesh((x=2, y=4), ..)`.
/// Problems: MW1119 the text is not a mesh; those of `Mesh::create`.
Result<TypedMesh> parseTypedMesh(std::string_view text);

/// The same without the types.
Result<Mesh> parseJaxMesh(std::string_view text);

/// What remains of a spec in a value's type: only axes of type Explicit, padded to `rank`. Missing types are Auto.
/// Source: jax-ml/jax, jax/_src/core.py (`modify_spec_for_auto_manual`).
JaxSpec specInType(const JaxSpec& spec, const Mesh& mesh, std::span<const AxisType> types, std::size_t rank);

/// A value's type as JAX prints it in explicit mode: `f32[8@X,4@(y,z)]{V:a, U:b, R:c}`.
struct JaxType {
    std::string dtype;
    Shape shape;
    JaxSpec spec;
    std::vector<std::string> varying; ///< manual axes over which the value differs
    std::string memorySpace = {}; ///< "host" of `f32<host>[8]`; empty: the device's

    friend bool operator==(const JaxType&, const JaxType&) = default;
};

/// Source: jax-ml/jax, jax/_src/core.py (`str_short_aval`).
std::string jaxTypeText(const JaxType& type);

/// Problems, with a column: MW1167 the text is no such type, MW1103.
Result<JaxType> parseJaxType(std::string_view text);

/// True for the names of element types, long or short: float32, f32, bf16, i8, bool.
bool isDtypeName(std::string_view name);

} // namespace meshwright
