// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/data_flow.h"

#include <boost/graph/topological_sort.hpp>

#include <algorithm>
#include <iterator>

namespace meshwright {

DataFlow::DataFlow(const Function& function, BlockId block)
    : m_function(&function)
    , m_block(block)
    , m_out(function[block].ops.size())
    , m_in(function[block].ops.size())
{
    std::vector<Vertex> vertexOf(function.ops.size(), boost::graph_traits<DataFlow>::null_vertex());
    for (Vertex v = 0; v < size(); ++v)
        vertexOf[op(v).at()] = v;
    for (Vertex v = 0; v < size(); ++v) {
        for (const ValueId operand : function[op(v)].operands) {
            const OpId producer = function[operand].producer;
            if (!producer.valid())
                continue;
            const Edge edge{vertexOf[producer.at()], v, operand};
            m_out[edge.source].push_back(edge);
            m_in[v].push_back(edge);
        }
    }
}

std::pair<boost::counting_iterator<DataFlow::Vertex>, boost::counting_iterator<DataFlow::Vertex>> vertices(const DataFlow& graph)
{
    return {boost::counting_iterator<DataFlow::Vertex>(0), boost::counting_iterator<DataFlow::Vertex>(graph.size())};
}

std::pair<std::vector<DataFlow::Edge>::const_iterator, std::vector<DataFlow::Edge>::const_iterator> out_edges(
    DataFlow::Vertex v, const DataFlow& graph)
{
    return {graph.out(v).begin(), graph.out(v).end()};
}

std::pair<std::vector<DataFlow::Edge>::const_iterator, std::vector<DataFlow::Edge>::const_iterator> in_edges(
    DataFlow::Vertex v, const DataFlow& graph)
{
    return {graph.in(v).begin(), graph.in(v).end()};
}

std::pair<double, std::vector<DataFlow::Vertex>> criticalPath(const DataFlow& graph, const std::vector<double>& cost)
{
    assert(cost.size() == graph.size());
    if (graph.size() == 0)
        return {0.0, {}};
    std::vector<DataFlow::Vertex> reversed;
    boost::topological_sort(graph, std::back_inserter(reversed), boost::vertex_index_map(boost::identity_property_map()));

    constexpr auto kNone = static_cast<std::size_t>(-1);
    std::vector<double> total(graph.size(), 0.0);
    std::vector<std::size_t> before(graph.size(), kNone);
    for (auto v = reversed.rbegin(); v != reversed.rend(); ++v) {
        for (const DataFlow::Edge& edge : graph.in(*v)) {
            if (before[*v] == kNone || total[edge.source] > total[*v]) {
                total[*v] = total[edge.source];
                before[*v] = edge.source;
            }
        }
        total[*v] += cost[*v];
    }
    const auto last = static_cast<std::size_t>(std::max_element(total.begin(), total.end()) - total.begin());
    std::vector<DataFlow::Vertex> path;
    for (std::size_t v = last; v != kNone; v = before[v])
        path.push_back(v);
    std::reverse(path.begin(), path.end());
    return {total[last], path};
}

} // namespace meshwright
