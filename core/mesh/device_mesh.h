// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshwright {

/// Kinds of devices that JAX arranges in ways of their own; `Other` are kept in the order of the list.
enum class DeviceKind : std::uint8_t { TpuV2, TpuV3, TpuV4, TpuV5e, TpuV5p, TpuV6e, TpuV7x, Gpu, Other };

/// JAX's `device_kind` ("TPU v5 lite", "TPU7x") or a short name ("v5e", "tpu-v7x", "gpu").
/// Problems: MW1170 there is no such kind.
Result<DeviceKind> deviceKindOf(std::string_view name);
/// "TPU v5 lite", as JAX has it.
const char* deviceKindName(DeviceKind kind);

/// A device and where it sits.
struct PlacedDevice {
    DeviceId id = 0;
    std::array<std::int64_t, 3> chip = {0, 0, 0}; ///< x, y, z
    std::int64_t core = 0; ///< on its chip
    std::int64_t slice = 0; ///< devices of one slice share the fast network
    std::int64_t process = 0;
};

/// An array of devices, row-major.
struct DeviceArray {
    std::vector<std::int64_t> shape;
    std::vector<DeviceId> devices;

    friend bool operator==(const DeviceArray&, const DeviceArray&) = default;
};

/// As numpy prints it: `[[0 1]` and ` [2 3]]` on two lines; lines of at most 75 characters, and of more than 1000 devices the first and last
/// three along each axis. No newline at the end. Source: numpy/numpy, numpy/_core/arrayprint.py.
std::string arrayText(const DeviceArray& array);

/// The devices of a TPU slice of `topology` chips as `jax.devices()` lists them: host by host (2x2 chips, where the slice has them), ids
/// and hosts counted with x first, then y, then z; each chip has one device, or two on v2, v3 and v7x.
/// Problems: MW1171 a size below 1, more than three sizes, or more than kLargestMesh devices.
Result<std::vector<PlacedDevice>> tpuDevices(DeviceKind kind, std::span<const std::int64_t> topology);

/// The devices by their coordinates: x, y, z; on v2 and v3 x, y, core; on v7x (and v5p with two devices a chip) x, y, z, core.
/// Problems: MW1172 the devices do not fill a box without holes, two share a place, or the kind has one device a chip and these have more.
Result<DeviceArray> physicalMesh(DeviceKind kind, const std::vector<PlacedDevice>& devices);

/// Which part of each physical axis each logical axis gets: `sizes[physical][logical]`. The product of a row is the physical axis, that of
/// a column the logical one.
struct TorusAssignment {
    std::vector<std::vector<std::int64_t>> sizes;
    bool splits = false; ///< some physical axis serves more than one logical axis

    /// The physical axes that serve a logical one with more than one device, ascending.
    std::vector<std::size_t> axesOf(std::size_t logical) const;

    friend bool operator==(const TorusAssignment&, const TorusAssignment&) = default;
};

/// What `assignToTorus` may do.
struct TorusOptions {
    bool allowSplit = false; ///< give parts of a physical axis to several logical axes, where whole axes do not do
    bool coresFirst = false; ///< the last physical axis is the fastest (cores of one chip): prefer it
};

/// Gives each logical axis (least network-intensive first) whole physical axes of a torus, the last logical axis first, each as many
/// physical axes as possible; parts of them, if allowed, where that fails.
///
/// Problems: MW1173 the logical axes need another number of devices, MW1174 no whole physical axes make a logical axis.
/// Source: jax-ml/jax, jax/_src/mesh_utils.py (`_create_device_mesh_for_nd_torus`).
Result<TorusAssignment> assignToTorus(
    std::span<const std::int64_t> physical, std::span<const std::int64_t> logical, const TorusOptions& options = {});

/// Every way to take `size` from what is left of the physical axes: `taken[physical]`, in order of the physical axes that serve each prime
/// factor, the smallest prime first. Precondition: `assigned` (the product of what is taken already) divides the physical axes.
std::vector<std::vector<std::int64_t>> feasibleAssignments(
    std::span<const std::int64_t> physical, std::span<const std::int64_t> assigned, std::int64_t size);

/// True when JAX prefers `first` over `second` for one logical axis: more devices on whole physical axes, then more whole axes, then more
/// on axes that are taken in part already, then the larger list.
/// Source: jax-ml/jax, jax/_src/mesh_utils.py (`_prefer_first_logical_axis_assignment`).
bool prefersFirst(std::span<const std::int64_t> first, std::span<const std::int64_t> second,
    std::span<const std::int64_t> physical, std::span<const std::int64_t> assigned);

/// The devices in the shape of the logical mesh. Preconditions: the assignment fits both shapes.
DeviceArray applyAssignment(
    const DeviceArray& physical, std::span<const std::int64_t> logical, const TorusAssignment& assignment);

/// The transpose of the physical axes after which every host owns a contiguous part of the logical mesh. Sizes of 1 in `logical` do not count.
/// Problems: MW1175 there is none for these shapes.
/// Source: jax-ml/jax, jax/_src/mesh_utils.py (`_TRANSPOSE_TRICKS`).
Result<std::vector<std::size_t>> contiguousTranspose(
    std::span<const std::int64_t> physical, std::span<const std::int64_t> logical);

struct DeviceMeshOptions {
    bool contiguousSubmeshes = false;
    bool allowSplit = false; ///< `allow_split_physical_axes`
};

/// An order of devices in which the logical mesh (least network-intensive axis first) runs well on the physical one, as
/// `jax.experimental.mesh_utils.create_device_mesh`: rings on single boards, whole axes of the torus elsewhere.
///
/// Problems: MW1173 the logical mesh needs another number of devices; MW1172, MW1174 and MW1175.
Result<DeviceArray> createDeviceMesh(std::span<const std::int64_t> logical, DeviceKind kind,
    const std::vector<PlacedDevice>& devices, const DeviceMeshOptions& options = {});

/// What the slow outer network connects.
enum class Granule : std::uint8_t { Slice, Process };

/// A mesh over several slices: axis i has `inner[i]` devices in each slice and spans `outer[i]` slices, the slices being more major.
///
/// Problems: MW1176 the shapes have different ranks, or another number of slices than `outer` needs; those of `createDeviceMesh`.
/// Source: jax-ml/jax, jax/_src/mesh_utils.py (`create_hybrid_device_mesh`).
Result<DeviceArray> createHybridDeviceMesh(std::span<const std::int64_t> inner, std::span<const std::int64_t> outer,
    DeviceKind kind, const std::vector<PlacedDevice>& devices, Granule granule = Granule::Slice,
    const DeviceMeshOptions& options = {});

} // namespace meshwright
