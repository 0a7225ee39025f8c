// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"
#include "sim/hardware/machine.h"

#include <string>
#include <vector>

namespace meshwright::sim {

/// Seconds of a step that a mesh axis is waited for.
struct AxisLoad {
    std::string axis;
    double seconds = 0.0;
};

/// One order of a mesh's axes, and how they lie on the machine then.
struct PlacedOrder {
    std::vector<MeshAxis> mesh; ///< major to minor
    std::string where; ///< "fsdp: x; tensor: y"
    std::vector<double>
        bytesPerSecond; ///< of an all-gather of kOrderBytes over each axis: what a device receives a second; 0 for an axis of size 1
    double slowdown = 1.0; ///< of the loads together, against the quickest order
};

inline constexpr std::int64_t kOrderBytes = std::int64_t{64} << 20;

/// Every order of the axes, each placed as `placeMesh` (create_device_mesh) does, the quickest for these loads first, of equal ones the given
/// order first. Orders that cannot be placed are left out. Preconditions: at most 6 axes.
std::vector<PlacedOrder> placedOrders(
    const std::vector<MeshAxis>& mesh, const std::vector<AxisLoad>& loads, const Machine& machine);

/// The same as sentences: on which links each axis lies with what bandwidth, and what another order would cost or save.
std::vector<std::string> orderSentences(
    const std::vector<MeshAxis>& mesh, const std::vector<AxisLoad>& loads, const Machine& machine);

} // namespace meshwright::sim
