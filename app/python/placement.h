// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/layout.h"
#include "core/support/result.h"

#include <memory>
#include <string>
#include <vector>

namespace meshwright::python {

/// Where the pieces of an array lie: a mesh, and how the dimensions are split over it. Placements that say the same are one object.
struct Placement {
    Mesh mesh;
    TensorSharding sharding; ///< on `mesh`; closed
    bool isNamed = false; ///< the axes have the user's names
    int number = 0; ///< its own, for keys of caches

    std::int64_t deviceCount() const { return mesh.deviceCount(); }
    /// What the device at a position of the mesh holds of an array. Precondition: as many dimensions as the sharding has.
    IndexBox boxAt(const Shape& shape, std::int64_t position) const { return shardBox(shape, sharding, mesh, position); }
    /// Which of the parts of a sum over unreduced axes it holds; 0 where no axis is unreduced.
    std::int64_t partAt(std::int64_t position) const { return shardIndex(position, sharding.unreduced, mesh); }
    std::int64_t partCount() const { return shardCount(sharding.unreduced); }
};
using PlacementPointer = std::shared_ptr<const Placement>;

/// The one placement that says this.
PlacementPointer placementOf(Mesh mesh, TensorSharding sharding, bool isNamed);

/// A whole array of `rank` dimensions on one device.
PlacementPointer onDevice(DeviceId device, std::size_t rank);

/// A spec with the entries of a PartitionSpec on a mesh. Problems: those of `onMesh`, and MW1104 where sizes do not divide.
Result<PlacementPointer> namedPlacement(const Mesh& mesh, const std::string& spec, const Shape& shape);

/// A positional sharding by its text or the operations that make it, `PositionalSharding(8).reshape(4, 2)`; `devices` are those that its
/// numbers 0, 1 and so on stand for. Problems: those of `parseSharding`; MW1101 of another rank; MW1104.
Result<PlacementPointer> positionalPlacement(const std::string& text, const std::vector<DeviceId>& devices, const Shape& shape);

/// True when both put the same box of the array, or the same part of its sum, on each device, and list the devices in one order.
bool sameLayout(const Shape& shape, const Placement& a, const Placement& b);

} // namespace meshwright::python
