// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/network/machine_links.h"

#include <algorithm>
#include <cassert>

namespace meshwright::sim {

namespace {

bool hasLeaves(const PhysicalAxis& axis)
{
    return axis.kind == AxisKind::Network && axis.perLeaf > 0 && axis.perLeaf < axis.length;
}

std::int64_t leafCount(const PhysicalAxis& axis)
{
    return (axis.length + axis.perLeaf - 1) / axis.perLeaf;
}

} // namespace

MachineLinks::MachineLinks(const Topology& topology, const Faults& faults)
    : m_topology(topology)
{
    for (std::size_t axis = 0; axis < topology.axes().size(); ++axis) {
        const PhysicalAxis& physical = topology.axes()[axis];
        m_firstPort.push_back(m_ports);
        const auto ports = physical.kind == AxisKind::FullMesh ? static_cast<std::uint32_t>(physical.length) : 2U;
        m_portBytesPerSecond.insert(m_portBytesPerSecond.end(), ports, physical.link.bytesPerSecond);
        m_ports += ports;
    }
    const auto devices = static_cast<std::size_t>(topology.deviceCount());
    m_count = devices * m_ports;
    m_firstLeafLink = static_cast<LinkId>(m_count);
    for (std::size_t axis = 0; axis < topology.axes().size(); ++axis) {
        const PhysicalAxis& physical = topology.axes()[axis];
        if (!hasLeaves(physical))
            continue;
        m_network = axis;
        m_count += static_cast<std::size_t>(2 * leafCount(physical) * (topology.deviceCount() / physical.length));
    }
    for (const LinkFault& fault : faults.links) {
        const auto device = static_cast<std::uint32_t>(fault.device);
        const PhysicalAxis& physical = topology.axes()[fault.axis];
        assert(fault.device >= 0 && fault.device < topology.deviceCount());
        if (physical.kind == AxisKind::Torus) {
            m_share[up(device, fault.axis)] = fault.share;
            m_share[down(neighbour(device, fault.axis, true), fault.axis)] = fault.share;
        } else if (physical.kind == AxisKind::FullMesh) {
            for (std::int64_t i = 0; i < physical.length; ++i) {
                const auto other = static_cast<std::uint32_t>(
                    fault.device + (i - topology.coordinate(fault.device, fault.axis)) * topology.stride(fault.axis));
                m_share[direct(device, fault.axis, static_cast<std::uint32_t>(i))] = fault.share;
                m_share[direct(other, fault.axis, place(device, fault.axis))] = fault.share;
            }
        } else {
            m_share[out(device, fault.axis)] = fault.share;
            m_share[in(device, fault.axis)] = fault.share;
        }
    }
}

std::uint32_t MachineLinks::neighbour(std::uint32_t device, std::size_t axis, bool upward) const
{
    const std::int64_t length = m_topology.axes()[axis].length;
    const std::int64_t at = m_topology.coordinate(device, axis);
    const std::int64_t next = (at + (upward ? 1 : length - 1)) % length;
    return static_cast<std::uint32_t>(device + (next - at) * m_topology.stride(axis));
}

double MachineLinks::bytesPerSecond(LinkId link) const
{
    if (link >= m_firstLeafLink) {
        const PhysicalAxis& physical = m_topology.axes()[m_network];
        return static_cast<double>(physical.perLeaf) * physical.link.bytesPerSecond / physical.oversubscription;
    }
    const double whole = m_portBytesPerSecond[link % m_ports];
    if (m_share.empty())
        return whole;
    const auto found = m_share.find(link);
    return found == m_share.end() ? whole : whole * found->second;
}

/// One link of a torus; a failed one is gone round over a neighbouring line where there is one, or the long way round.
void MachineLinks::appendHop(
    std::uint32_t device, std::size_t axis, bool upward, std::vector<LinkId>& path, double& latency) const
{
    const LinkId link = upward ? up(device, axis) : down(device, axis);
    const double hop = m_topology.axes()[axis].link.latencySeconds;
    if (failed(link)) {
        for (std::size_t other = 0; other < m_topology.axes().size(); ++other) {
            const PhysicalAxis& aside = m_topology.axes()[other];
            if (other == axis || aside.kind != AxisKind::Torus || aside.length < 2)
                continue;
            const bool wayUp = place(device, other) + 1 < static_cast<std::uint32_t>(aside.length);
            const std::uint32_t besides = neighbour(device, other, wayUp);
            const std::uint32_t after = neighbour(besides, axis, upward);
            const LinkId detour[] = {wayUp ? up(device, other) : down(device, other),
                upward ? up(besides, axis) : down(besides, axis), wayUp ? down(after, other) : up(after, other)};
            if (std::ranges::any_of(detour, [&](LinkId part) { return failed(part); }))
                continue;
            path.insert(path.end(), std::begin(detour), std::end(detour));
            latency += hop + 2.0 * aside.link.latencySeconds;
            return;
        }
        if (m_topology.axes()[axis].wraps) { // a single ring: the long way round
            const std::uint32_t target = neighbour(device, axis, upward);
            for (std::uint32_t at = device; at != target; at = neighbour(at, axis, !upward)) {
                path.push_back(upward ? down(at, axis) : up(at, axis));
                latency += hop;
            }
            return;
        }
    }
    path.push_back(link);
    latency += hop;
}

void MachineLinks::appendPath(
    std::uint32_t from, std::uint32_t to, std::size_t axis, bool upward, std::vector<LinkId>& path, double& latency) const
{
    const PhysicalAxis& physical = m_topology.axes()[axis];
    switch (physical.kind) {
    case AxisKind::Torus: {
        const std::int64_t target = m_topology.coordinate(to, axis);
        for (std::uint32_t at = from; m_topology.coordinate(at, axis) != target; at = neighbour(at, axis, upward))
            appendHop(at, axis, upward, path, latency);
        break;
    }
    case AxisKind::FullMesh:
        path.push_back(direct(from, axis, place(to, axis)));
        latency += physical.link.latencySeconds;
        break;
    case AxisKind::Switch:
    case AxisKind::Network:
        path.push_back(out(from, axis));
        if (hasLeaves(physical)) {
            const auto leafLink = [&](std::uint32_t device, bool upLink) {
                // A rail is the devices that differ in the host only: their ids agree but for the host's part.
                const std::int64_t stride = m_topology.stride(axis);
                const std::int64_t rail = device % stride + device / (stride * physical.length) * stride;
                const std::int64_t leaf = rail * leafCount(physical) + m_topology.coordinate(device, axis) / physical.perLeaf;
                return static_cast<LinkId>(m_firstLeafLink + 2 * leaf + (upLink ? 0 : 1));
            };
            if (leafLink(from, true) != leafLink(to, true)) {
                path.push_back(leafLink(from, true));
                path.push_back(leafLink(to, false));
            }
        }
        path.push_back(in(to, axis));
        latency += physical.link.latencySeconds;
        break;
    }
}

void MachineLinks::appendRoute(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& path, double& latency) const
{
    std::uint32_t at = from;
    for (std::size_t axis = 0; axis < m_topology.axes().size(); ++axis) {
        const PhysicalAxis& physical = m_topology.axes()[axis];
        const std::int64_t here = m_topology.coordinate(at, axis);
        const std::int64_t there = m_topology.coordinate(to, axis);
        if (here == there)
            continue;
        if (physical.kind == AxisKind::Network) {
            appendPath(at, to, axis, true, path, latency); // the spine reaches every device of the other host
            return;
        }
        const std::int64_t ahead = (there - here + physical.length) % physical.length;
        const bool upward = physical.wraps ? 2 * ahead <= physical.length : there > here;
        const auto next = static_cast<std::uint32_t>(at + (there - here) * m_topology.stride(axis));
        appendPath(at, next, axis, upward, path, latency);
        at = next;
    }
}

} // namespace meshwright::sim
