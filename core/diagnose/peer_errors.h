// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"
#include "core/sharding/partition_spec.h"
#include "core/sharding/shape.h"

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// What JAX, XLA or Shardy would say of a mistake: for whoever looks a message up, and to recognise our problems in their words.
/// All of it is what these programs check when arrays are placed, specs are made and modules verified; the rules are our own checks'.
struct PeerError {
    std::string kind; ///< "not_divisible", "rank_too_small", "duplicate_axis", ..: stable
    std::string exception; ///< "ValueError"; empty for Shardy and XLA
    std::vector<std::string> messages; ///< the same mistake in the words of each place that finds it; never empty
};
/// Nothing: accepted.
using PeerVerdict = std::optional<PeerError>;

/// Where JAX meets a sharding.
enum class PeerPlace : std::uint8_t {
    Array, ///< device_put, arguments and results of jit
    Type, ///< the type of a value in explicit mode
    ShardMapIn,
    ShardMapOut,
};

/// An array and the sharding that is asked for it. Without a shape only the spec is looked at; without a mesh only its form.
struct PeerRequest {
    std::string spec; ///< "P('x', None)" as a user writes it, mistakes included
    std::optional<Mesh> mesh = {};
    std::optional<Shape> shape = {};
    PeerPlace place = PeerPlace::Array;
    std::string argument = "NamedSharding"; ///< whose spec it is: "in_shardings"
    bool meshInUse = true; ///< false: a bare spec, and no mesh is set
};
/// Source: jax-ml/jax, jax/_src/{named_sharding,partition_spec,sharding,pjit,shard_map}.py.
PeerVerdict jaxVerdict(const PeerRequest& request);

/// A global array put together from one piece on each of `devices`, all of shape `piece` (when it is known).
/// Source: jax-ml/jax, jax/_src/array.py (`_check_and_rearrange`).
PeerVerdict assemblyVerdict(const Shape& shape, const PartitionSpec& spec, const Mesh& mesh, std::span<const DeviceId> devices,
    const std::optional<Shape>& piece);

/// Two committed arrays in one computation.
PeerVerdict combinationVerdict(std::span<const DeviceId> a, std::span<const DeviceId> b, const std::string& platform);

/// The axes over which a value of shard_map's body may differ, from those of its argument `x`: `2*x` keeps them, `psum(x,'a')` takes a away.
std::set<std::string> varyingAxes(std::string_view body, std::set<std::string> ofArgument);

/// A result of shard_map that varies over some axes, under an out_spec.
PeerVerdict replicationVerdict(const PartitionSpec& outSpec, const std::set<std::string>& varying, const Mesh& mesh);

/// ppermute over several axes of a mesh with explicit axes.
PeerVerdict permuteVerdict(std::span<const std::string> axes, const Mesh& mesh);

/// The arguments of XLA's iota tile assignment; `reshape` and `perm` may be left out (empty).
PeerVerdict iotaVerdict(const Shape& dims, const Shape& reshape, std::span<const std::size_t> perm, std::size_t subgroups);

/// The sizes that create_device_mesh was given as they were written, on a TPU topology with one device for each chip.
PeerVerdict deviceMeshVerdict(std::span<const std::string> sizes, const Shape& topology, bool contiguousSubmeshes);

/// A mesh of a module, by Shardy's rules (device ids are 0..n-1). Source: openxla/shardy, shardy/dialect/sdy/ir/verifiers.cc.
PeerVerdict shardyMeshVerdict(const std::vector<MeshAxis>& axes, std::span<const DeviceId> deviceIds);

/// A sharding of a tensor in a module with these meshes.
PeerVerdict shardyVerdict(
    std::string_view sharding, const std::string& meshName, const std::map<std::string, Mesh>& meshes, std::size_t rank);

} // namespace meshwright
