// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

using DeviceId = std::int64_t;

struct MeshAxis {
    std::string name;
    std::int64_t size = 1; ///< >= 1

    friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

/// The largest number of devices that a mesh may have.
inline constexpr std::int64_t kLargestMesh = std::int64_t{1} << 24;

/// A logical array of devices with a name for each axis, as `jax.sharding.Mesh`.
///
/// The first axis is the most major. *Position* k (row-major over the axes) holds device `deviceAt(k)`; without an
/// explicit order that is device k. A mesh without axes has one device.
class Mesh {
public:
    /// The mesh of one device, without axes.
    Mesh() = default;

    /// A mesh over `axes`; `order[k]` is the device at position k, and an empty order means 0, 1, 2 and so on.
    ///
    /// Problems: MW1110 an axis name is empty or no identifier, MW1111 two axes have the same name, MW1112 an axis size is below 1,
    /// MW1113 more than kLargestMesh devices, MW1114 the order does not list as many devices as the axes need,
    /// MW1115 the order names a device twice or a negative one. All are reported.
    static Result<Mesh> create(std::vector<MeshAxis> axes, std::vector<DeviceId> order = {});

    /// A mesh from an array of devices of shape `deviceShape` (`devices` row-major) and one name for each of its dimensions,
    /// as `Mesh(np.array(devices).reshape(...), names)` in JAX.
    ///
    /// Problems: MW1116 the rank of the array differs from the number of names; and those of `create`.
    static Result<Mesh> fromArray(
        std::span<const std::int64_t> deviceShape, std::vector<DeviceId> devices, std::span<const std::string> names);

    const std::vector<MeshAxis>& axes() const { return m_axes; }
    std::vector<std::string> axisNames() const;

    /// The index of the axis of this name.
    std::optional<std::size_t> findAxis(std::string_view name) const;

    /// The size of the axis of this name.
    std::optional<std::int64_t> axisSize(std::string_view name) const;

    std::int64_t deviceCount() const { return m_deviceCount; }

    /// The device at a position. Precondition: 0 <= position < deviceCount().
    DeviceId deviceAt(std::int64_t position) const;

    /// True when position k holds device k.
    bool hasDefaultOrder() const { return m_order.empty(); }

    /// The device of every position.
    std::vector<DeviceId> deviceOrder() const;

    /// How far apart, in positions, two neighbours along an axis are: the product of the sizes of the axes after it.
    std::int64_t stride(std::size_t axis) const;

    /// The coordinate of a position along an axis.
    std::int64_t coordinate(std::int64_t position, std::size_t axis) const;

    /// `data=4,model=2`, or `one device` without axes.
    std::string text() const;

    friend bool operator==(const Mesh&, const Mesh&) = default;

private:
    std::vector<MeshAxis> m_axes;
    std::vector<DeviceId> m_order; ///< empty: the default order
    std::int64_t m_deviceCount = 1;
};

/// Reads `data=4,model=2` (an empty text is the mesh of one device).
///
/// Problems: MW1117 the text is not of that form; and those of `Mesh::create`.
Result<Mesh> parseMesh(std::string_view text, std::vector<DeviceId> order = {});

/// Reads `0,1,2,3,6,7,4,5`. Problems: MW1118 an entry is not an integer.
Result<std::vector<DeviceId>> parseDeviceOrder(std::string_view text);

} // namespace meshwright
