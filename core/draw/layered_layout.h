// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"

#include <cstddef>
#include <vector>

namespace meshwright {

/// The frame that a node needs, in pixels; both >= 0.
struct LayeredNode {
    double width = 0.0;
    double height = 0.0;
};

struct LayeredEdge {
    std::size_t from = 0; ///< index into the nodes
    std::size_t to = 0;
};

/// A graph without cycles. Edges into one node arrive at it from top to bottom in their order here.
struct LayeredGraph {
    std::vector<LayeredNode> nodes;
    std::vector<LayeredEdge> edges;
};

struct LayeredSpacing {
    double betweenRanks = 176.0; ///< pixels from the widest node of a rank to the next rank
    double betweenNodes = 16.0; ///< least distance between two nodes of a rank
    double approach = 120.0; ///< how far before a node its edges run level, so that a label fits; <= betweenRanks
    int longestRouted = 12; ///< edges over more ranks take no room between nodes: they run straight, over what is there
};

/// Where nodes and edges lie: ranks from left to right.
struct LayeredLayout {
    double width = 0.0; ///< pixels
    double height = 0.0;
    std::vector<int> ranks; ///< of each node; an edge goes to a higher one
    std::vector<Point> topLefts; ///< of each node
    std::vector<LayeredNode> sizes; ///< of each node
    std::vector<std::vector<Point>> ways; ///< of each edge: from the middle of a right side to a left side; at least 3 points
};

/// A layered layout: ranks by the longest path (nodes without predecessors as far to the right as their uses allow), orders within a rank by
/// barycentre sweeps that keep the fewest crossings, and the positions nearest to the means of the neighbours that keep nodes apart.
///
/// The same graph always has the same layout. No two nodes overlap.
/// Preconditions: edges name nodes, and make no cycle.
/// Source: K. Sugiyama, S. Tagawa, M. Toda, "Methods for Visual Understanding of Hierarchical System Structures", IEEE SMC 11(2), 1981.
LayeredLayout layeredLayout(const LayeredGraph& graph, const LayeredSpacing& spacing = {});

} // namespace meshwright
