// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/hardware/topology.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace meshwright::sim {

enum class NodeKind : std::uint8_t { Device, Switch };

/// A vertex: devices come first, vertex i < deviceCount() being device i; the switches follow.
struct TopologyNode {
    NodeKind kind = NodeKind::Device;
    std::string name; ///< `device 3`, `switch of host 1`, `rail 2`, `spine`
    std::vector<std::int64_t> coordinates; ///< of a device, one for each axis; empty for a switch
};

/// A directed edge.
struct TopologyLink {
    std::int64_t from = 0; ///< vertices
    std::int64_t to = 0;
    LinkSpec spec; ///< the step through a switch is shared half and half by the two links to it
};

/// The most devices that are spelt out.
inline constexpr std::int64_t kLargestGraph = std::int64_t{1} << 17;

/// Every device, switch and directed link of a topology, as a Boost.Graph graph (which only the .cpp includes).
class TopologyGraph {
public:
    /// Problems: MW1710 more than kLargestGraph devices.
    static Result<TopologyGraph> build(const Topology& topology);

    TopologyGraph(TopologyGraph&&) noexcept;
    TopologyGraph& operator=(TopologyGraph&&) noexcept;
    ~TopologyGraph();

    std::int64_t deviceCount() const;
    std::int64_t nodeCount() const;
    std::int64_t linkCount() const;
    const TopologyNode& node(std::int64_t vertex) const;
    std::vector<TopologyLink> links() const;
    std::int64_t linksEntering(std::int64_t vertex) const;

    /// Links on the shortest path from a vertex to every other; -1 where there is none.
    std::vector<std::int64_t> hopsFrom(std::int64_t vertex) const;

    /// Latency of the quickest path from a vertex to every other, in seconds; infinite where there is none.
    std::vector<double> latencyFrom(std::int64_t vertex) const;

    /// What can flow at most from the devices of `side` to all others, in bytes per second (a minimum cut; rates are rounded to
    /// whole bytes per second). Preconditions: `side` names each device at most once, some but not all.
    double minimumCutBytesPerSecond(std::span<const DeviceId> side) const;

private:
    struct Graph;
    explicit TopologyGraph(std::unique_ptr<Graph> graph);

    std::unique_ptr<Graph> m_graph;
};

} // namespace meshwright::sim
