// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace meshwright::sim {

enum class LinkKind : std::uint8_t { Ici, OnChip, NvLink, PeerLink, Pcie, Nic };

/// "ICI", "on-chip", "NVLink", "peer link", "PCIe" or "NIC".
const char* linkKindName(LinkKind kind);

/// One direction of one link, as one device gets it.
struct LinkSpec {
    double bytesPerSecond = 0.0; ///< one direction; > 0
    double latencySeconds = 0.0; ///< per hop (the alpha of the alpha-beta model); >= 0
    LinkKind kind = LinkKind::Ici;

    friend bool operator==(const LinkSpec&, const LinkSpec&) = default;
};

enum class AxisKind : std::uint8_t {
    Torus, ///< neighbours along the axis share a link each way
    Switch, ///< every device has one port into one switch
    FullMesh, ///< a link each way between every two
    Network, ///< hosts joined by a switch for each rail (device i of every host) and one above the rails
};

/// One coordinate of the machine: the devices that differ only in it, and what joins them.
struct PhysicalAxis {
    std::string name; ///< `x`, `y`, `z`, `core`, `gpu` or `host`
    AxisKind kind = AxisKind::Torus;
    std::int64_t length = 1; ///< >= 1
    bool wraps = false; ///< Torus: the last device is also next to the first; only when length >= 3
    LinkSpec
        link; ///< Torus, FullMesh: of one link; Switch, Network: of one port, the latency is that of a whole step through the switch
    double inSwitchBytesPerSecond
        = 0.0; ///< Switch, Network: operand bytes per second of an all-reduce that the switch adds up; 0: it cannot
    std::int64_t perLeaf = 0; ///< Network: hosts whose ports of a rail meet in one leaf switch; 0: all
    double oversubscription = 1.0; ///< Network: ports down for each port up of a leaf; >= 1

    friend bool operator==(const PhysicalAxis&, const PhysicalAxis&) = default;
};

/// How the devices of a machine are joined: a product of axes. Two devices of one chip are an axis of their own (`core`), and each
/// has an equal share of the chip's links. Sizes grow with the axes only.
class Topology {
public:
    Topology() = default;

    /// `strides[i]` is how far apart the ids of neighbours along axis i are.
    /// Preconditions: as many strides as axes, lengths >= 1, the ids 0 .. product - 1 occur once each.
    Topology(std::vector<PhysicalAxis> axes, std::vector<std::int64_t> strides);

    /// Outermost first.
    const std::vector<PhysicalAxis>& axes() const { return m_axes; }

    /// The network between hosts or slices; null: there is none.
    const PhysicalAxis* network() const;

    /// The same with another network in its place. Precondition: there is one, of the same length.
    Topology withNetwork(const PhysicalAxis& network) const;

    /// How far apart the ids of neighbours along the axis are.
    std::int64_t stride(std::size_t axis) const { return m_strides[axis]; }
    std::int64_t deviceCount() const { return m_deviceCount; }

    /// One coordinate for each axis. Precondition: 0 <= device < deviceCount().
    std::vector<std::int64_t> coordinates(DeviceId device) const;
    std::int64_t coordinate(DeviceId device, std::size_t axis) const;

    /// Precondition: as many coordinates as axes, each inside.
    DeviceId deviceAt(std::span<const std::int64_t> coordinates) const;

    /// All that a device can send at once, in bytes per second.
    double injectionBytesPerSecond(DeviceId device) const;

    /// `4x2 chips, wraparound on x`, `2 slices of 16x16 chips, no wraparound` or `4 hosts of 8 GPUs`.
    std::string text() const;

    friend bool operator==(const Topology&, const Topology&) = default;

private:
    std::vector<PhysicalAxis> m_axes;
    std::vector<std::int64_t> m_strides;
    std::int64_t m_deviceCount = 1;
};

} // namespace meshwright::sim
