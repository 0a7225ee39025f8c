// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"
#include "core/sharding/partition_spec.h"
#include "core/sharding/shape.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// What JAX would say of a mistake in a spec: for whoever looks a message up. What it says of programs, `check` says in words of its own:
/// different devices (MW1120), a result that differs where its out_spec says that it does not (MW1266), Shardy's meshes and shardings (those
/// of the text reader).
struct PeerError {
    std::string kind; ///< "not_divisible", "rank_too_small", "duplicate_axis", ..: stable
    std::string exception; ///< "ValueError"
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

} // namespace meshwright
