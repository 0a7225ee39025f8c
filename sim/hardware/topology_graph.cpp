// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/topology_graph.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/edmonds_karp_max_flow.hpp>
#include <fmt/format.h>

#include <cmath>

namespace meshwright::sim {

namespace {

using Boosted = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, TopologyNode, LinkSpec>;

std::size_t at(std::int64_t index)
{
    return static_cast<std::size_t>(index);
}

} // namespace

struct TopologyGraph::Graph {
    Boosted boosted;
    std::int64_t devices = 0;

    std::size_t addSwitch(std::string name)
    {
        const std::size_t vertex = boost::add_vertex(boosted);
        boosted[vertex] = {NodeKind::Switch, std::move(name), {}};
        return vertex;
    }
    void joinBothWays(std::size_t a, std::size_t b, const LinkSpec& spec)
    {
        boost::add_edge(a, b, spec, boosted);
        boost::add_edge(b, a, spec, boosted);
    }
    void addAxis(const Topology& topology, std::size_t index);
    void addNetwork(const Topology& topology, std::size_t index);
};

namespace {

/// The devices at coordinate 0 of an axis: one for each line along it.
std::vector<DeviceId> lineStarts(const Topology& topology, std::size_t axis)
{
    std::vector<DeviceId> starts;
    for (DeviceId device = 0; device < topology.deviceCount(); ++device) {
        if (topology.coordinate(device, axis) == 0)
            starts.push_back(device);
    }
    return starts;
}

/// The devices of a line, in the order of their coordinates.
std::vector<std::size_t> lineOf(const Topology& topology, std::size_t axis, DeviceId start)
{
    std::vector<std::int64_t> place = topology.coordinates(start);
    std::vector<std::size_t> line;
    for (place[axis] = 0; place[axis] < topology.axes()[axis].length; ++place[axis])
        line.push_back(at(topology.deviceAt(place)));
    return line;
}

LinkSpec halfStep(LinkSpec spec)
{
    spec.latencySeconds /= 2.0;
    return spec;
}

} // namespace

void TopologyGraph::Graph::addAxis(const Topology& topology, std::size_t index)
{
    const PhysicalAxis& axis = topology.axes()[index];
    const auto starts = lineStarts(topology, index);
    for (std::size_t number = 0; number < starts.size(); ++number) {
        const auto line = lineOf(topology, index, starts[number]);
        if (axis.kind == AxisKind::Torus) {
            for (std::size_t i = 0; i + 1 < line.size(); ++i)
                joinBothWays(line[i], line[i + 1], axis.link);
            if (axis.wraps)
                joinBothWays(line.back(), line.front(), axis.link);
        } else if (axis.kind == AxisKind::FullMesh) {
            for (std::size_t i = 0; i < line.size(); ++i) {
                for (std::size_t j = i + 1; j < line.size(); ++j)
                    joinBothWays(line[i], line[j], axis.link);
            }
        } else {
            const std::size_t hub = addSwitch(fmt::format("switch of host {}", number));
            for (const std::size_t device : line)
                joinBothWays(device, hub, halfStep(axis.link));
        }
    }
}

void TopologyGraph::Graph::addNetwork(const Topology& topology, std::size_t index)
{
    const PhysicalAxis& axis = topology.axes()[index];
    const auto starts = lineStarts(topology, index);
    std::vector<std::size_t> rails;
    for (std::size_t number = 0; number < starts.size(); ++number) {
        rails.push_back(addSwitch(fmt::format("rail {}", number)));
        for (const std::size_t device : lineOf(topology, index, starts[number]))
            joinBothWays(device, rails.back(), halfStep(axis.link));
    }
    if (rails.size() < 2)
        return;
    // Full bisection: a rail reaches the spine with the sum of its ports.
    const std::size_t spine = addSwitch("spine");
    const LinkSpec up{axis.link.bytesPerSecond * static_cast<double>(axis.length), 0.0, axis.link.kind};
    for (const std::size_t rail : rails)
        joinBothWays(rail, spine, up);
}

Result<TopologyGraph> TopologyGraph::build(const Topology& topology)
{
    if (topology.deviceCount() > kLargestGraph)
        return Problem{"MW1710",
            fmt::format(
                "a machine of {} devices is too large to list every link; at most {}", topology.deviceCount(), kLargestGraph)};
    auto graph = std::make_unique<Graph>();
    graph->devices = topology.deviceCount();
    graph->boosted = Boosted(at(topology.deviceCount()));
    for (DeviceId device = 0; device < topology.deviceCount(); ++device)
        graph->boosted[at(device)] = {NodeKind::Device, fmt::format("device {}", device), topology.coordinates(device)};
    for (std::size_t axis = 0; axis < topology.axes().size(); ++axis) {
        if (topology.axes()[axis].length == 1)
            continue;
        if (topology.axes()[axis].kind == AxisKind::Network)
            graph->addNetwork(topology, axis);
        else
            graph->addAxis(topology, axis);
    }
    return TopologyGraph(std::move(graph));
}

TopologyGraph::TopologyGraph(std::unique_ptr<Graph> graph)
    : m_graph(std::move(graph))
{
}

TopologyGraph::TopologyGraph(TopologyGraph&&) noexcept = default;
TopologyGraph& TopologyGraph::operator=(TopologyGraph&&) noexcept = default;
TopologyGraph::~TopologyGraph() = default;

std::int64_t TopologyGraph::deviceCount() const
{
    return m_graph->devices;
}

std::int64_t TopologyGraph::nodeCount() const
{
    return static_cast<std::int64_t>(boost::num_vertices(m_graph->boosted));
}

std::int64_t TopologyGraph::linkCount() const
{
    return static_cast<std::int64_t>(boost::num_edges(m_graph->boosted));
}

const TopologyNode& TopologyGraph::node(std::int64_t vertex) const
{
    return m_graph->boosted[at(vertex)];
}

std::vector<TopologyLink> TopologyGraph::links() const
{
    std::vector<TopologyLink> result;
    const Boosted& graph = m_graph->boosted;
    for (const auto edge : boost::make_iterator_range(boost::edges(graph))) {
        result.push_back({static_cast<std::int64_t>(boost::source(edge, graph)),
            static_cast<std::int64_t>(boost::target(edge, graph)), graph[edge]});
    }
    return result;
}

std::int64_t TopologyGraph::linksEntering(std::int64_t vertex) const
{
    return static_cast<std::int64_t>(boost::in_degree(at(vertex), m_graph->boosted));
}

std::vector<std::int64_t> TopologyGraph::hopsFrom(std::int64_t vertex) const
{
    std::vector<std::int64_t> hops(at(nodeCount()), -1);
    hops[at(vertex)] = 0;
    const auto count = boost::record_distances(hops.data(), boost::on_tree_edge());
    boost::breadth_first_search(m_graph->boosted, at(vertex), boost::visitor(boost::make_bfs_visitor(count)));
    return hops;
}

std::vector<double> TopologyGraph::latencyFrom(std::int64_t vertex) const
{
    std::vector<double> seconds(at(nodeCount()));
    boost::dijkstra_shortest_paths(m_graph->boosted, at(vertex),
        boost::weight_map(boost::get(&LinkSpec::latencySeconds, m_graph->boosted))
            .distance_map(boost::make_iterator_property_map(seconds.begin(), boost::get(boost::vertex_index, m_graph->boosted)))
            .distance_inf(std::numeric_limits<double>::infinity()));
    return seconds;
}

double TopologyGraph::minimumCutBytesPerSecond(std::span<const DeviceId> side) const
{
    using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
    using Flow = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
        boost::property<boost::edge_capacity_t, long long,
            boost::property<boost::edge_residual_capacity_t, long long,
                boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

    Flow flow(at(nodeCount()) + 2);
    const auto capacity = boost::get(boost::edge_capacity, flow);
    const auto reverse = boost::get(boost::edge_reverse, flow);
    const auto add = [&](std::size_t from, std::size_t to, long long bytesPerSecond) {
        const auto forth = boost::add_edge(from, to, flow).first;
        const auto back = boost::add_edge(to, from, flow).first;
        capacity[forth] = bytesPerSecond;
        capacity[back] = 0;
        reverse[forth] = back;
        reverse[back] = forth;
    };
    long long everything = 0;
    for (const TopologyLink& link : links()) {
        const long long bytesPerSecond = std::llround(link.spec.bytesPerSecond);
        add(at(link.from), at(link.to), bytesPerSecond);
        everything += bytesPerSecond;
    }
    std::vector<char> inside(at(deviceCount()), 0);
    for (const DeviceId device : side)
        inside[at(device)] = 1;
    const std::size_t source = at(nodeCount());
    const std::size_t sink = source + 1;
    for (std::size_t device = 0; device < inside.size(); ++device) {
        if (inside[device])
            add(source, device, everything);
        else
            add(device, sink, everything);
    }
    return static_cast<double>(boost::edmonds_karp_max_flow(flow, source, sink));
}

} // namespace meshwright::sim
