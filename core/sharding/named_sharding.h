// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/layout.h"
#include "core/sharding/partition_spec.h"

#include <string>
#include <vector>

namespace meshwright {

/// A mesh and how an array lies on it, as `jax.sharding.NamedSharding`.
struct NamedSharding {
    Mesh mesh;
    PartitionSpec spec;

    friend bool operator==(const NamedSharding&, const NamedSharding&) = default;
};

/// `NamedSharding(mesh=data=4,model=2, spec=P('data', None))`.
std::string namedShardingText(const NamedSharding& sharding);

/// An array as placement sees it. A committed array stays where its sharding puts it; an uncommitted one (zeros, aranges,
/// constants) may be moved to wherever the computation runs.
struct PlacedArray {
    std::string name;
    Shape shape;
    NamedSharding sharding;
    bool committed = true;
};

/// Where a computation over several arrays runs, and which of them have to be moved there first.
struct ComputationPlacement {
    std::vector<DeviceId> devices; ///< in order
    std::vector<std::size_t> moved; ///< indices of the uncommitted arrays that live elsewhere
};

/// Finds the devices that a computation over `arrays` runs on: those of its committed arrays, or of the first array when none is committed.
///
/// Problems: MW1120 two committed arrays have different sets of devices, MW1121 the same devices in a different order.
/// Source: jax-ml/jax, jax/_src/interpreters/pxla.py (`_get_and_check_device_assignment`).
Result<ComputationPlacement> placeComputation(const std::vector<PlacedArray>& arrays);

/// The layout of an array placed by a user. Problems: MW1101 to MW1104 as `shardShape` with `Uneven::Refuse`.
Result<Layout> placedLayout(const Shape& shape, const NamedSharding& sharding);

/// The same for a sharding that a spec may not be able to say, with parts of axes say. Problems: MW1104, for each dimension that does not divide.
/// Precondition: as many dims as the shape has.
Result<Layout> placedLayout(const Shape& shape, const TensorSharding& sharding, const Mesh& mesh);

} // namespace meshwright
