// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/topology.h"

#include "core/support/counted.h"
#include "core/support/find.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace meshwright::sim {

const char* linkKindName(LinkKind kind)
{
    switch (kind) {
    case LinkKind::Ici:
        return "ICI";
    case LinkKind::OnChip:
        return "on-chip";
    case LinkKind::NvLink:
        return "NVLink";
    case LinkKind::PeerLink:
        return "peer link";
    case LinkKind::Pcie:
        return "PCIe";
    case LinkKind::Nic:
        return "NIC";
    }
    return "";
}

Topology::Topology(std::vector<PhysicalAxis> axes, std::vector<std::int64_t> strides)
    : m_axes(std::move(axes))
    , m_strides(std::move(strides))
{
    assert(m_axes.size() == m_strides.size());
    for (const PhysicalAxis& axis : m_axes) {
        assert(axis.length >= 1 && axis.link.bytesPerSecond > 0.0 && axis.link.latencySeconds >= 0.0);
        assert(!axis.wraps || axis.length >= 3);
        m_deviceCount *= axis.length;
    }
}

std::int64_t Topology::coordinate(DeviceId device, std::size_t axis) const
{
    return device / m_strides[axis] % m_axes[axis].length;
}

std::vector<std::int64_t> Topology::coordinates(DeviceId device) const
{
    assert(device >= 0 && device < m_deviceCount);
    std::vector<std::int64_t> result;
    for (std::size_t axis = 0; axis < m_axes.size(); ++axis)
        result.push_back(coordinate(device, axis));
    return result;
}

DeviceId Topology::deviceAt(std::span<const std::int64_t> coordinates) const
{
    assert(coordinates.size() == m_axes.size());
    DeviceId device = 0;
    for (std::size_t axis = 0; axis < m_axes.size(); ++axis) {
        assert(coordinates[axis] >= 0 && coordinates[axis] < m_axes[axis].length);
        device += coordinates[axis] * m_strides[axis];
    }
    return device;
}

double Topology::injectionBytesPerSecond(DeviceId device) const
{
    double sum = 0.0;
    for (std::size_t i = 0; i < m_axes.size(); ++i) {
        const PhysicalAxis& axis = m_axes[i];
        if (axis.length == 1)
            continue;
        const std::int64_t place = coordinate(device, i);
        const bool atEnd = !axis.wraps && (place == 0 || place == axis.length - 1);
        std::int64_t links = 1;
        if (axis.kind == AxisKind::Torus)
            links = atEnd ? 1 : 2;
        else if (axis.kind == AxisKind::FullMesh)
            links = axis.length - 1;
        sum += static_cast<double>(links) * axis.link.bytesPerSecond;
    }
    return sum;
}

const PhysicalAxis* Topology::network() const
{
    return findBy(m_axes, AxisKind::Network, &PhysicalAxis::kind);
}

Topology Topology::withNetwork(const PhysicalAxis& network) const
{
    Topology result = *this;
    PhysicalAxis& own = *std::ranges::find(result.m_axes, AxisKind::Network, &PhysicalAxis::kind);
    assert(own.length == network.length);
    own = network;
    return result;
}

std::string Topology::text() const
{
    std::vector<std::string> lengths;
    std::vector<std::string> wrapped;
    std::string joined; // by the network
    std::string islands;
    for (const PhysicalAxis& axis : m_axes) {
        if (axis.kind == AxisKind::Torus && axis.link.kind != LinkKind::OnChip) {
            lengths.push_back(std::to_string(axis.length));
            if (axis.wraps)
                wrapped.push_back(axis.name);
        } else if (axis.kind == AxisKind::Torus) {
            islands += fmt::format(", {} devices a chip", axis.length);
        } else if (axis.kind == AxisKind::Network) {
            joined = counted(axis.length, axis.name == "slice" ? "slice" : "host") + " of ";
        } else {
            islands += counted(axis.length, "GPU");
        }
    }
    if (lengths.empty())
        return joined + (islands.starts_with(", ") ? islands.substr(2) : islands);
    const std::string wraps = wrapped.empty() ? "no wraparound" : fmt::format("wraparound on {}", join(wrapped, ", "));
    return fmt::format("{}{} chips, {}{}", joined, join(lengths, "x"), wraps, islands);
}

} // namespace meshwright::sim
