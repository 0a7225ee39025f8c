// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/topology.h"

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

const PhysicalAxis* Topology::findKind(AxisKind kind) const
{
    const auto found
        = std::ranges::find_if(m_axes, [&](const PhysicalAxis& axis) { return axis.kind == kind && axis.length > 1; });
    return found == m_axes.end() ? nullptr : &*found;
}

bool Topology::hasSpine() const
{
    const PhysicalAxis* network = findKind(AxisKind::Network);
    return network && m_deviceCount > network->length;
}

std::int64_t Topology::linkCount() const
{
    std::int64_t links = 0;
    for (const PhysicalAxis& axis : m_axes) {
        if (axis.length == 1)
            continue;
        const std::int64_t lines = m_deviceCount / axis.length;
        switch (axis.kind) {
        case AxisKind::Torus:
            links += 2 * lines * (axis.wraps ? axis.length : axis.length - 1);
            break;
        case AxisKind::Switch:
            links += 2 * m_deviceCount;
            break;
        case AxisKind::FullMesh:
            links += m_deviceCount * (axis.length - 1);
            break;
        case AxisKind::Network:
            links += 2 * m_deviceCount + (hasSpine() ? 2 * lines : 0);
            break;
        }
    }
    return links;
}

std::int64_t Topology::linksEntering(DeviceId device) const
{
    std::int64_t links = 0;
    for (std::size_t i = 0; i < m_axes.size(); ++i) {
        const PhysicalAxis& axis = m_axes[i];
        if (axis.length == 1)
            continue;
        const std::int64_t place = coordinate(device, i);
        const bool atEnd = !axis.wraps && (place == 0 || place == axis.length - 1);
        if (axis.kind == AxisKind::Torus)
            links += atEnd ? 1 : 2;
        else
            links += axis.kind == AxisKind::FullMesh ? axis.length - 1 : 1;
    }
    return links;
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

std::int64_t Topology::diameterLinks() const
{
    std::int64_t links = 0;
    for (const PhysicalAxis& axis : m_axes) {
        if (axis.kind == AxisKind::Torus)
            links += axis.wraps ? axis.length / 2 : axis.length - 1;
    }
    const std::int64_t island = findKind(AxisKind::Switch) ? 2 : findKind(AxisKind::FullMesh) ? 1 : 0;
    // Between rails there are two ways: inside a host first, or over the switch above the rails.
    if (findKind(AxisKind::Network))
        return links + 2 + std::min<std::int64_t>(island, 2);
    return links + island;
}

double Topology::diameterSeconds() const
{
    double seconds = 0.0;
    double island = 0.0;
    double network = 0.0;
    for (const PhysicalAxis& axis : m_axes) {
        if (axis.length == 1)
            continue;
        if (axis.kind == AxisKind::Torus)
            seconds += static_cast<double>(axis.wraps ? axis.length / 2 : axis.length - 1) * axis.link.latencySeconds;
        else if (axis.kind == AxisKind::Network)
            network = axis.link.latencySeconds;
        else
            island = axis.link.latencySeconds;
    }
    return seconds + (network > 0.0 ? network : island);
}

double Topology::halfCutBytesPerSecond(std::size_t axis) const
{
    const PhysicalAxis& cut = m_axes[axis];
    if (cut.length == 1)
        return 0.0;
    const auto lines = static_cast<double>(m_deviceCount / cut.length);
    const std::int64_t lower = cut.length / 2;
    const double width = cut.link.bytesPerSecond;
    switch (cut.kind) {
    case AxisKind::Torus:
        return lines * width * (cut.wraps ? 2.0 : 1.0);
    case AxisKind::Network:
        return lines * width * static_cast<double>(lower);
    case AxisKind::Switch:
    case AxisKind::FullMesh: {
        const double within = cut.kind == AxisKind::Switch ? static_cast<double>(lower) * width
                                                           : static_cast<double>(lower * (cut.length - lower)) * width;
        const PhysicalAxis* network = findKind(AxisKind::Network);
        const double around = network ? static_cast<double>(lower) * network->link.bytesPerSecond : 0.0;
        return lines * (within + around);
    }
    }
    return 0.0;
}

std::string Topology::text() const
{
    std::vector<std::string> lengths;
    std::vector<std::string> wrapped;
    std::string islands;
    for (const PhysicalAxis& axis : m_axes) {
        if (axis.kind == AxisKind::Torus && axis.link.kind != LinkKind::OnChip) {
            lengths.push_back(std::to_string(axis.length));
            if (axis.wraps)
                wrapped.push_back(axis.name);
        } else if (axis.kind == AxisKind::Torus) {
            islands += fmt::format(", {} devices a chip", axis.length);
        } else if (axis.kind == AxisKind::Network) {
            islands += axis.length == 1 ? "1 host of " : fmt::format("{} hosts of ", axis.length);
        } else {
            islands += fmt::format("{} GPU{}", axis.length, axis.length == 1 ? "" : "s");
        }
    }
    if (lengths.empty())
        return islands.starts_with(", ") ? islands.substr(2) : islands;
    const std::string wraps = wrapped.empty() ? "no wraparound" : fmt::format("wraparound on {}", join(wrapped, ", "));
    return fmt::format("{} chips, {}{}", join(lengths, "x"), wraps, islands);
}

} // namespace meshwright::sim
