// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"
#include "core/sharding/tensor_sharding.h"
#include "core/support/result.h"
#include "sim/collective/collective.h"
#include "sim/hardware/machine.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace meshwright::sim {

/// A part of a logical mesh axis: `size` devices along a physical axis, each `stride` further than the one before.
struct AxisPart {
    std::size_t physicalAxis = 0;
    std::int64_t size = 1;
    std::int64_t stride = 1;

    friend bool operator==(const AxisPart&, const AxisPart&) = default;
};

/// Where every device of a logical mesh sits on a machine.
class MeshPlacement {
public:
    const Mesh& mesh() const { return m_mesh; }
    const Topology& topology() const { return m_topology; }
    const CollectiveLibrary* library() const { return m_library.get(); } ///< of the machine's chip; may be null

    /// The parts that make up a mesh axis, major to minor; empty for an axis of size 1, and when the mesh has a device order of its own.
    const std::vector<AxisPart>& parts(std::size_t meshAxis) const { return m_parts[meshAxis]; }

    /// How many places of each physical axis are used, from 0 on; all of them when the mesh has an order of its own.
    const std::vector<std::int64_t>& used() const { return m_used; }

    /// The machine's device at a position of the mesh. Precondition: 0 <= position < mesh().deviceCount().
    DeviceId deviceAt(std::int64_t position) const;

    /// The device of every position: what `jax.make_mesh` would be given as its devices.
    std::vector<DeviceId> deviceOrder() const;

    /// How the groups of a collective over `axes` lie on the machine; all groups lie alike. Members s places apart along a torus axis
    /// share its links with the groups between them: their link has 1/s of the bandwidth and s times the latency (two members opposite on a ring have both ways round: twice that bandwidth). Groups that are no
    /// boxes of the machine (a device order of its own, a sub-axis that cuts across parts) become one scattered axis: a logical ring
    /// in mesh order, routed axis by axis, with the bandwidth that the busiest link leaves to each of its users and the longest hop.
    /// Axes of size 1 are left out. Preconditions: the axes are of this mesh and do not overlap.
    std::vector<GroupAxis> groupAxes(std::span<const AxisRef> axes) const;

    /// The same for groups of devices of the machine, each in the order of its ring; all of one size.
    std::vector<GroupAxis> groupAxesOfDevices(const std::vector<std::vector<DeviceId>>& groups) const;

    /// `data: x; model: y` and, where only a part of the machine is used, ` (4x2 of 4x4)`.
    std::string text() const;

private:
    friend Result<MeshPlacement> placeMesh(const Mesh& mesh, const Machine& machine);

    GroupAxis groupAxis(std::size_t physicalAxis, std::int64_t size, std::int64_t stride) const;
    bool partsOf(const AxisRef& axis, std::vector<AxisPart>& parts) const;
    std::vector<GroupAxis> groupAxesOf(std::vector<AxisPart> parts) const;
    GroupAxis scattered(const std::vector<std::vector<DeviceId>>& groups) const;

    Mesh m_mesh;
    Topology m_topology;
    std::shared_ptr<const CollectiveLibrary> m_library;
    std::vector<std::vector<AxisPart>> m_parts; ///< for each mesh axis
    std::vector<std::int64_t> m_used;
};

/// Puts a mesh on a machine. A mesh with a device order of its own keeps it: its ids are the machine's. Otherwise mesh axes get physical
/// axes from the last (the one that communicates most) to the first, as jax.experimental.mesh_utils.create_device_mesh does: first the
/// devices that are closest (the two of a chip, the GPUs of a host), as many as divide the axis; then of all ways to factor what is left
/// over the other physical axes the one that takes the least of the network between hosts or slices, then whole axes of the largest total size, then the most of them, then the most from
/// axes of which nothing is taken yet, then the largest from the first axis. Within a split physical axis later mesh axes are more
/// minor (neighbours). A smaller mesh than the machine uses a box that starts at device 0, as compact as there is.
///
/// Problems: MW1720 the mesh has more devices than the machine; MW1721 its device order names a device that the machine lacks; MW1722
/// it has fewer, and no box of the machine has so many.
/// Source: jax-ml/jax, jax/_src/mesh_utils.py.
Result<MeshPlacement> placeMesh(const Mesh& mesh, const Machine& machine);

} // namespace meshwright::sim
