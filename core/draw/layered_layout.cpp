// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/layered_layout.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>

namespace meshwright {

namespace {

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;
using Vertex = boost::graph_traits<Graph>::vertex_descriptor;

constexpr int kOrderSweeps = 8;
constexpr int kPlaceSweeps = 8;
constexpr double kBendWeight = 4.0; ///< of the bends of long edges, which are to lie level, against nodes

/// A node or a bend of an edge that passes a rank.
struct Item {
    std::size_t rank = 0;
    double height = 0.0;
    double middle = 0.0; ///< y
    bool isBend = false;
    std::vector<std::size_t> before; ///< its neighbours in the rank to the left
    std::vector<std::size_t> after;
};

std::vector<int> ranksOf(const Graph& graph)
{
    std::vector<Vertex> backwards;
    boost::topological_sort(graph, std::back_inserter(backwards));
    std::vector<int> ranks(boost::num_vertices(graph), 0);
    for (auto vertex = backwards.rbegin(); vertex != backwards.rend(); ++vertex) {
        for (auto [edge, end] = boost::in_edges(*vertex, graph); edge != end; ++edge)
            ranks[*vertex] = std::max(ranks[*vertex], ranks[boost::source(*edge, graph)] + 1);
    }
    for (const Vertex vertex : backwards) {
        if (boost::in_degree(vertex, graph) > 0 || boost::out_degree(vertex, graph) == 0)
            continue;
        int first = std::numeric_limits<int>::max();
        for (auto [edge, end] = boost::out_edges(vertex, graph); edge != end; ++edge)
            first = std::min(first, ranks[boost::target(*edge, graph)]);
        ranks[vertex] = first - 1;
    }
    return ranks;
}

/// How many pairs of edges between two ranks cross: inversions of the ends, counted by a binary indexed tree.
std::int64_t crossingsBetween(const std::vector<std::size_t>& left, const std::vector<Item>& items,
    const std::vector<std::size_t>& places, std::size_t rightCount)
{
    std::vector<std::int64_t> tree(rightCount + 1, 0);
    std::int64_t crossings = 0;
    std::int64_t seen = 0;
    for (const std::size_t item : left) {
        for (const std::size_t end : items[item].after) {
            std::int64_t notBelow = 0;
            for (std::size_t at = places[end] + 1; at > 0; at -= at & (~at + 1))
                notBelow += tree[at];
            crossings += seen - notBelow;
        }
        for (const std::size_t end : items[item].after) {
            for (std::size_t at = places[end] + 1; at <= rightCount; at += at & (~at + 1))
                ++tree[at];
            ++seen;
        }
    }
    return crossings;
}

class Layering {
public:
    Layering(const LayeredGraph& graph, const LayeredSpacing& spacing)
        : m_graph(graph)
        , m_spacing(spacing)
    {
        Graph model(graph.nodes.size());
        for (const LayeredEdge& edge : graph.edges)
            boost::add_edge(edge.from, edge.to, model);
        m_result.ranks = ranksOf(model);
        m_result.sizes = graph.nodes;
        addItems();
    }

    LayeredLayout laidOut()
    {
        if (m_graph.nodes.empty())
            return m_result;
        order();
        place();
        placeNodes();
        drawWays();
        return std::move(m_result);
    }

private:
    std::size_t rankOf(std::size_t node) const { return static_cast<std::size_t>(m_result.ranks[node]); }

    std::size_t addItem(std::size_t rank, double height, bool isBend)
    {
        m_items.push_back({rank, height, 0.0, isBend, {}, {}});
        if (m_ranks.size() <= rank)
            m_ranks.resize(rank + 1);
        m_ranks[rank].push_back(m_items.size() - 1);
        return m_items.size() - 1;
    }

    void join(std::size_t left, std::size_t right)
    {
        m_items[left].after.push_back(right);
        m_items[right].before.push_back(left);
    }

    /// Items of nodes have the nodes' numbers; bends follow.
    void addItems()
    {
        for (std::size_t node = 0; node < m_graph.nodes.size(); ++node)
            addItem(rankOf(node), m_graph.nodes[node].height, false);
        m_bends.resize(m_graph.edges.size());
        for (std::size_t i = 0; i < m_graph.edges.size(); ++i) {
            const auto [from, to] = m_graph.edges[i];
            if (rankOf(to) - rankOf(from) > static_cast<std::size_t>(m_spacing.longestRouted))
                continue;
            std::size_t last = from;
            for (std::size_t rank = rankOf(from) + 1; rank < rankOf(to); ++rank) {
                m_bends[i].push_back(addItem(rank, 0.0, true));
                join(last, m_bends[i].back());
                last = m_bends[i].back();
            }
            join(last, to);
        }
    }

    void countPlaces()
    {
        m_places.resize(m_items.size());
        for (const auto& rank : m_ranks) {
            for (std::size_t place = 0; place < rank.size(); ++place)
                m_places[rank[place]] = place;
        }
    }

    std::int64_t crossings() const
    {
        std::int64_t sum = 0;
        for (std::size_t rank = 0; rank + 1 < m_ranks.size(); ++rank)
            sum += crossingsBetween(m_ranks[rank], m_items, m_places, m_ranks[rank + 1].size());
        return sum;
    }

    /// Sorts a rank by the mean place of the neighbours on one side; items without such neighbours stay about where they are.
    void sortRank(std::vector<std::size_t>& rank, std::vector<std::size_t> Item::*side)
    {
        std::vector<std::pair<double, std::size_t>> keyed;
        for (const std::size_t item : rank) {
            const auto& neighbours = m_items[item].*side;
            double sum = 0.0;
            for (const std::size_t neighbour : neighbours)
                sum += static_cast<double>(m_places[neighbour]);
            const double own = static_cast<double>(m_places[item]);
            keyed.emplace_back(neighbours.empty() ? own : sum / static_cast<double>(neighbours.size()), item);
        }
        std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (std::size_t place = 0; place < rank.size(); ++place) {
            rank[place] = keyed[place].second;
            m_places[rank[place]] = place;
        }
    }

    void order()
    {
        countPlaces();
        auto best = m_ranks;
        std::int64_t fewest = crossings();
        for (int sweep = 0; sweep < kOrderSweeps && fewest > 0; ++sweep) {
            if (sweep % 2 == 0) {
                for (auto& rank : m_ranks)
                    sortRank(rank, &Item::before);
            } else {
                for (auto rank = m_ranks.rbegin(); rank != m_ranks.rend(); ++rank)
                    sortRank(*rank, &Item::after);
            }
            if (const std::int64_t now = crossings(); now < fewest) {
                fewest = now;
                best = m_ranks;
            }
        }
        m_ranks = std::move(best);
    }

    double distance(const Item& above, const Item& below) const
    {
        return (above.height + below.height) / 2.0 + m_spacing.betweenNodes;
    }

    double wanted(const Item& item, std::vector<std::size_t> Item::*side) const
    {
        const auto& neighbours = item.*side;
        if (neighbours.empty())
            return item.middle;
        double sum = 0.0;
        for (const std::size_t neighbour : neighbours)
            sum += m_items[neighbour].middle;
        return sum / static_cast<double>(neighbours.size());
    }

    /// The positions nearest to the wanted ones (in the mean square) that keep order and distances: isotonic regression, by pooling neighbours.
    void placeRank(const std::vector<std::size_t>& rank, std::vector<std::size_t> Item::*side)
    {
        struct Pool {
            double sum = 0.0;
            double weight = 0.0;
            std::size_t count = 0;
            double mean() const { return sum / weight; }
        };
        std::vector<Pool> pools;
        std::vector<double> offsets;
        for (std::size_t i = 0; i < rank.size(); ++i) {
            const Item& item = m_items[rank[i]];
            offsets.push_back(i == 0 ? 0.0 : offsets.back() + distance(m_items[rank[i - 1]], item));
            const double weight = item.isBend ? kBendWeight : 1.0;
            Pool pool{(wanted(item, side) - offsets.back()) * weight, weight, 1};
            for (; !pools.empty() && pools.back().mean() > pool.mean(); pools.pop_back())
                pool = {pools.back().sum + pool.sum, pools.back().weight + pool.weight, pools.back().count + pool.count};
            pools.push_back(pool);
        }
        std::size_t i = 0;
        for (const Pool& pool : pools) {
            for (std::size_t member = 0; member < pool.count; ++member, ++i)
                m_items[rank[i]].middle = pool.mean() + offsets[i];
        }
    }

    void stackRanks()
    {
        for (const auto& rank : m_ranks) {
            double y = 0.0;
            for (std::size_t i = 0; i < rank.size(); ++i) {
                y += i == 0 ? 0.0 : distance(m_items[rank[i - 1]], m_items[rank[i]]);
                m_items[rank[i]].middle = y;
            }
            for (const std::size_t item : rank)
                m_items[item].middle -= y / 2.0;
        }
    }

    void place()
    {
        stackRanks();
        for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
            if (sweep % 2 == 0) {
                for (const auto& rank : m_ranks)
                    placeRank(rank, &Item::before);
            } else {
                for (auto rank = m_ranks.rbegin(); rank != m_ranks.rend(); ++rank)
                    placeRank(*rank, &Item::after);
            }
        }
    }

    void placeNodes()
    {
        double top = std::numeric_limits<double>::max();
        double bottom = std::numeric_limits<double>::lowest();
        for (const Item& item : m_items) {
            top = std::min(top, item.middle - item.height / 2.0);
            bottom = std::max(bottom, item.middle + item.height / 2.0);
        }
        for (Item& item : m_items)
            item.middle -= top;
        m_result.height = bottom - top;
        std::vector<double> widths(m_ranks.size(), 0.0);
        for (std::size_t node = 0; node < m_graph.nodes.size(); ++node)
            widths[rankOf(node)] = std::max(widths[rankOf(node)], m_graph.nodes[node].width);
        double x = 0.0;
        for (const double width : widths) {
            m_lefts.push_back(x);
            x += width + m_spacing.betweenRanks;
        }
        m_result.width = x - m_spacing.betweenRanks;
        for (std::size_t node = 0; node < m_graph.nodes.size(); ++node)
            m_result.topLefts.push_back({m_lefts[rankOf(node)], m_items[node].middle - m_items[node].height / 2.0});
    }

    /// Edges enter a node at even distances, in their order; through a rank they run level.
    void drawWays()
    {
        std::vector<std::size_t> entries(m_graph.nodes.size(), 0);
        for (const LayeredEdge& edge : m_graph.edges)
            ++entries[edge.to];
        std::vector<std::size_t> used(m_graph.nodes.size(), 0);
        for (std::size_t i = 0; i < m_graph.edges.size(); ++i) {
            const auto [from, to] = m_graph.edges[i];
            const double share = static_cast<double>(++used[to]) / static_cast<double>(entries[to] + 1);
            const Point end{m_lefts[rankOf(to)], m_result.topLefts[to].y + share * m_graph.nodes[to].height};
            std::vector<Point> way{{m_result.topLefts[from].x + m_graph.nodes[from].width, m_items[from].middle}};
            for (const std::size_t bend : m_bends[i]) {
                const std::size_t rank = m_items[bend].rank;
                way.push_back({m_lefts[rank] - m_spacing.approach, m_items[bend].middle});
                way.push_back({m_lefts[rank + 1] - m_spacing.betweenRanks, m_items[bend].middle});
            }
            way.push_back({end.x - m_spacing.approach, end.y});
            way.push_back(end);
            m_result.ways.push_back(std::move(way));
        }
    }

    const LayeredGraph& m_graph;
    const LayeredSpacing& m_spacing;
    LayeredLayout m_result;
    std::vector<Item> m_items;
    std::vector<std::vector<std::size_t>> m_ranks; ///< items from top to bottom
    std::vector<std::vector<std::size_t>> m_bends; ///< of each edge
    std::vector<std::size_t> m_places; ///< of each item in its rank
    std::vector<double> m_lefts; ///< of each rank
};

} // namespace

LayeredLayout layeredLayout(const LayeredGraph& graph, const LayeredSpacing& spacing)
{
    assert(spacing.approach <= spacing.betweenRanks);
    return Layering(graph, spacing).laidOut();
}

} // namespace meshwright
