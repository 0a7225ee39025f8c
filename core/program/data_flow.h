// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <boost/graph/graph_traits.hpp>
#include <boost/iterator/counting_iterator.hpp>

#include <utility>
#include <vector>

namespace meshwright {

/// The data-flow of one block as a graph that Boost.Graph's algorithms take as it is: a vertex for each op of the block (its
/// position in the block), an edge from the op that makes a value to each op that uses it. Nothing of the program is copied.
///
/// Models boost::BidirectionalGraph and boost::VertexListGraph. The function must outlive it and stay as it is.
class DataFlow {
public:
    using Vertex = std::size_t;
    struct Edge {
        Vertex source = 0;
        Vertex target = 0;
        ValueId value;
        friend bool operator==(const Edge&, const Edge&) = default;
    };

    DataFlow(const Function& function, BlockId block);

    const Function& function() const { return *m_function; }
    OpId op(Vertex vertex) const { return (*m_function)[m_block].ops[vertex]; }
    std::size_t size() const { return m_out.size(); }
    const std::vector<Edge>& out(Vertex vertex) const { return m_out[vertex]; }
    const std::vector<Edge>& in(Vertex vertex) const { return m_in[vertex]; }

private:
    const Function* m_function;
    BlockId m_block;
    std::vector<std::vector<Edge>> m_out;
    std::vector<std::vector<Edge>> m_in;
};

struct DataFlowCategory : boost::bidirectional_graph_tag, boost::vertex_list_graph_tag { };

// What Boost.Graph looks up by argument-dependent lookup; its names are its own.
std::pair<boost::counting_iterator<DataFlow::Vertex>, boost::counting_iterator<DataFlow::Vertex>> vertices(const DataFlow& graph);
inline std::size_t num_vertices(const DataFlow& graph)
{
    return graph.size();
}
std::pair<std::vector<DataFlow::Edge>::const_iterator, std::vector<DataFlow::Edge>::const_iterator> out_edges(
    DataFlow::Vertex v, const DataFlow& graph);
std::pair<std::vector<DataFlow::Edge>::const_iterator, std::vector<DataFlow::Edge>::const_iterator> in_edges(
    DataFlow::Vertex v, const DataFlow& graph);
inline std::size_t out_degree(DataFlow::Vertex v, const DataFlow& graph)
{
    return graph.out(v).size();
}
inline std::size_t in_degree(DataFlow::Vertex v, const DataFlow& graph)
{
    return graph.in(v).size();
}
inline std::size_t degree(DataFlow::Vertex v, const DataFlow& graph)
{
    return graph.out(v).size() + graph.in(v).size();
}
inline DataFlow::Vertex source(const DataFlow::Edge& edge, const DataFlow&)
{
    return edge.source;
}
inline DataFlow::Vertex target(const DataFlow::Edge& edge, const DataFlow&)
{
    return edge.target;
}

/// The most expensive chain of ops, where `cost[v]` is what vertex v takes: its total, and its vertices in order.
/// Precondition: one non-negative cost for each vertex.
std::pair<double, std::vector<DataFlow::Vertex>> criticalPath(const DataFlow& graph, const std::vector<double>& cost);

} // namespace meshwright

template <>
struct boost::graph_traits<meshwright::DataFlow> {
    using vertex_descriptor = meshwright::DataFlow::Vertex;
    using edge_descriptor = meshwright::DataFlow::Edge;
    using directed_category = boost::bidirectional_tag;
    using edge_parallel_category = boost::allow_parallel_edge_tag;
    using traversal_category = meshwright::DataFlowCategory;
    using vertices_size_type = std::size_t;
    using edges_size_type = std::size_t;
    using degree_size_type = std::size_t;
    using vertex_iterator = boost::counting_iterator<std::size_t>;
    using out_edge_iterator = std::vector<meshwright::DataFlow::Edge>::const_iterator;
    using in_edge_iterator = std::vector<meshwright::DataFlow::Edge>::const_iterator;
    static vertex_descriptor null_vertex() { return static_cast<std::size_t>(-1); }
};
