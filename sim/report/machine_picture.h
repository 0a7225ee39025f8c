// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/draw_topology.h"
#include "sim/collective/placement.h"

namespace meshwright::sim {

/// The most devices that are drawn: building and drawing the picture of so many takes well under 100 ms.
inline constexpr std::int64_t kLargestDrawnMachine = std::int64_t{1} << 15;

/// The picture of a machine and, when there is a placement, of the mesh on it: for `drawTopology`, whose size, selection and hovered axis are the
/// caller's. `placement` is of this machine or null. A switch of each rail of the network and the one above them are drawn as one network.
///
/// A mesh axis uses the links between the members of its groups: along a torus every link of the stretch that a group spans, the wrap link
/// too when it spans the whole ring; a port of each member into a switch. A mesh with a device order of its own is routed from each member to
/// the next of its group, dimension by dimension, as `MeshPlacement::groupAxes` does. Bandwidths of axes are those of `groupAxes`: shared links divided.
///
/// Problems: MW1810 more than kLargestDrawnMachine devices.
Result<TopologyDrawing> machinePicture(const Machine& machine, const MeshPlacement* placement);

} // namespace meshwright::sim
