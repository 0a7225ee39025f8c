// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/layout.h"
#include "core/sharding/partition_spec.h"

namespace meshwright {

/// A mesh and how an array lies on it, as `jax.sharding.NamedSharding`.
struct NamedSharding {
    Mesh mesh;
    PartitionSpec spec;

    friend bool operator==(const NamedSharding&, const NamedSharding&) = default;
};

/// The layout of an array placed by a user. Problems: MW1101 to MW1104 as `shardShape` with `Uneven::Refuse`.
Result<Layout> placedLayout(const Shape& shape, const NamedSharding& sharding);

/// The same for a sharding that a spec may not be able to say, with parts of axes say. Problems: MW1104, for each dimension that does not divide.
/// Precondition: as many dims as the shape has.
Result<Layout> placedLayout(const Shape& shape, const TensorSharding& sharding, const Mesh& mesh);

} // namespace meshwright
