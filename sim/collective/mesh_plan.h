// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/device_mesh.h"
#include "sim/collective/collective.h"
#include "sim/collective/placement.h"
#include "sim/hardware/machine.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwright::sim {

/// Which order of the devices is wanted.
enum class DeviceOrderBy : std::uint8_t {
    Jax, ///< as jax.experimental.mesh_utils.create_device_mesh: rings on single boards
    Axes, ///< mesh axes on physical axes, as simulations take it
};

/// A logical mesh to be put on a machine, or on several that are alike.
struct MeshRequest {
    Mesh mesh; ///< of one slice (TPU) or host (GPU); a device order of its own is not looked at
    std::vector<std::int64_t> outer = {}; ///< slices or hosts that each axis spans, those more major; empty: there is one
    DeviceOrderBy order = DeviceOrderBy::Jax;
    bool allowSplit = true; ///< parts of a physical axis may go to several mesh axes, where whole ones do not do
    bool contiguousSubmeshes = false; ///< every host owns a contiguous part of the mesh; of one slice in JAX's order only
};

/// The part of a mesh axis that lies along one physical axis.
struct PhysicalShare {
    std::string axis; ///< "x", "core", "gpu"
    std::int64_t devices = 1; ///< distinct places of a group along it
    std::int64_t length = 1; ///< of the physical axis
    bool wraps = false; ///< the group closes to a ring there
};

/// How one axis of the mesh lies within a slice, and what collectives over it alone get.
struct PlannedAxis {
    std::string name;
    std::int64_t size = 1; ///< in one slice
    std::vector<PhysicalShare> shares; ///< empty for size 1
    std::vector<GroupAxis> group; ///< the same as networks see it
    std::optional<bool> wraps; ///< all torus parts longer than two close to rings; nothing where there is none
    double bytesPerSecond = 0.0; ///< that a device receives in a large all-gather over the axis; 0 for size 1
    double hopSeconds = 0.0; ///< the longest of a hop or step
    std::int64_t outer = 1; ///< slices
};

/// The order of devices of a mesh, and what it is worth.
struct MeshPlan {
    std::string machine; ///< of one slice
    std::int64_t slices = 1;
    double betweenSlicesBytesPerSecond = 0.0; ///< one device's share of the network between slices; 0: one slice, or not known
    DeviceArray order; ///< over all slices; ids as JAX counts them, slice by slice
    DeviceArray orderInSlice; ///< of the first slice alone
    std::vector<MeshAxis> axes; ///< over all slices
    std::vector<PlannedAxis> planned;
    std::string jax; ///< the lines of Python that make the mesh
    std::vector<std::string> notes; ///< what one should know besides
};

/// Puts the mesh on the machine.
///
/// Where create_device_mesh needs parts of physical axes, they are allowed (unless the request forbids it), and the Python says so. A mesh smaller than the machine takes the
/// box of placeMesh.
/// Preconditions: `outer` is empty or has a size >= 1 for each axis.
/// Problems: MW1177 contiguous submeshes over several slices, in another order than JAX's, or on a part of the machine; those of placeMesh (MW1720, MW1722) and of createDeviceMesh and createHybridDeviceMesh.
Result<MeshPlan> planMesh(const MeshRequest& request, const Machine& machine);

/// How the mesh of a plan lies within one slice, for pictures.
/// Precondition: `plan` is of this request and machine.
Result<MeshPlacement> placementOf(const MeshPlan& plan, const MeshRequest& request, const Machine& machine);

} // namespace meshwright::sim
