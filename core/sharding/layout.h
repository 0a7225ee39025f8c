// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/tensor_sharding.h"

#include <map>
#include <vector>

namespace meshwright {

/// The half-open range [start, stop) of one dimension.
struct IndexRange {
    std::int64_t start = 0;
    std::int64_t stop = 0;

    std::int64_t size() const { return stop - start; }
    friend auto operator<=>(const IndexRange&, const IndexRange&) = default;
};

/// One range for each dimension: a rectangular part of an array.
using IndexBox = std::vector<IndexRange>;

/// `[0:128, 64:96]`, `[]` for a scalar.
std::string boxText(const IndexBox& box);

/// One distinct piece of an array and the devices that hold it.
struct Shard {
    IndexBox box;
    std::vector<DeviceId> devices; ///< in mesh order; more than one: replicas

    friend bool operator==(const Shard&, const Shard&) = default;
};

/// Where every element of an array lies.
struct Layout {
    Shape shape; ///< of the whole array
    Shape shardShape; ///< of the largest piece
    std::vector<Shard> shards; ///< distinct boxes, ordered by their starts, row-major
    bool fullyReplicated = false; ///< every device holds the whole array
};

/// The size of a box along each dimension.
Shape extentsOf(const IndexBox& box);

/// Where a box begins in the array, along each dimension.
Shape startsOf(const IndexBox& box);

/// Where `part` begins within `holder`, along each dimension.
Shape startIn(const IndexBox& part, const IndexBox& holder);

/// The common part of two boxes of one rank; empty ranges where they do not meet.
IndexBox intersection(const IndexBox& a, const IndexBox& b);

/// The number of elements in a box.
std::int64_t boxElements(const IndexBox& box);

/// The box that the device at mesh position `position` holds. Tiles have size ceil(n / pieces); the last ones may be short or empty.
IndexBox shardBox(const Shape& shape, const TensorSharding& sharding, const Mesh& mesh, std::int64_t position);

/// The layout of an array under a sharding (unreduced axes count as replicas here).
/// Preconditions: sharding.dims.size() == shape.size().
Layout layoutOf(const Shape& shape, const TensorSharding& sharding, const Mesh& mesh);

/// True when both put the same box on every device, whatever the names of the meshes' axes: JAX's `is_equivalent_to`.
/// The order of devices that JAX compares is `deviceOrder()`, which must be equal too.
bool equivalent(const Shape& shape, const TensorSharding& a, const Mesh& meshA, const TensorSharding& b, const Mesh& meshB);

} // namespace meshwright
