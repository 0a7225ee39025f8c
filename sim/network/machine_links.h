// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/faults.h"
#include "sim/hardware/topology.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace meshwright::sim {

using LinkId = std::uint32_t;

/// Every directed link of a machine as a number: device * ports + port, and after those the up- and down-links of leaf switches.
class MachineLinks {
public:
    /// Precondition: faults name devices and axes of the topology. The topology must outlive the links.
    explicit MachineLinks(const Topology& topology, const Faults& faults = {});

    const Topology& topology() const { return m_topology; }
    std::size_t count() const { return m_count; }

    /// Torus: the link from the device to the next place along the axis.
    LinkId up(std::uint32_t device, std::size_t axis) const { return device * m_ports + m_firstPort[axis]; }
    /// Torus: the link from the device to the place before.
    LinkId down(std::uint32_t device, std::size_t axis) const { return up(device, axis) + 1; }
    /// Switch, network: the device's port, outward.
    LinkId out(std::uint32_t device, std::size_t axis) const { return up(device, axis); }
    /// Switch, network: the device's port, inward.
    LinkId in(std::uint32_t device, std::size_t axis) const { return up(device, axis) + 1; }
    /// Full mesh: the link from the device to the one at `place` of the axis.
    LinkId direct(std::uint32_t device, std::size_t axis, std::uint32_t place) const { return up(device, axis) + place; }

    /// Appends the links from one device to another along one axis; on a torus `upward` or the other way round.
    /// `latency` grows by the hops' seconds.
    void appendPath(
        std::uint32_t from, std::uint32_t to, std::size_t axis, bool upward, std::vector<LinkId>& path, double& latency) const;

    /// Appends the shortest way over all axes, in the order of the axes.
    void appendRoute(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& path, double& latency) const;

    /// 0 when the link has failed.
    double bytesPerSecond(LinkId link) const;

    bool failed(LinkId link) const { return !m_share.empty() && bytesPerSecond(link) <= 0.0; }

    /// True when every link has the bandwidth of its axis.
    bool uniform() const { return m_share.empty(); }

    std::uint32_t place(std::uint32_t device, std::size_t axis) const
    {
        return static_cast<std::uint32_t>(m_topology.coordinate(device, axis));
    }

private:
    void appendHop(std::uint32_t device, std::size_t axis, bool upward, std::vector<LinkId>& path, double& latency) const;
    std::uint32_t neighbour(std::uint32_t device, std::size_t axis, bool upward) const;

    const Topology& m_topology;
    std::uint32_t m_ports = 0;
    std::vector<std::uint32_t> m_firstPort; ///< for each axis
    std::vector<double> m_portBytesPerSecond; ///< for each port of a device
    std::size_t m_count = 0;
    LinkId m_firstLeafLink = 0;
    std::size_t m_network = 0; ///< the axis with leaves
    std::unordered_map<LinkId, double> m_share; ///< of links that are not whole
};

} // namespace meshwright::sim
