// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/layered_layout.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

enum class GraphNodeKind : std::uint8_t {
    Argument, ///< of a function or of a loop's body
    Op,
    Body, ///< several ops as one: a loop, a computation; drawn as a stack
    Collective, ///< drawn round, in the colour of its category
};

/// How much a node or an edge stands out.
enum class GraphEmphasis : std::uint8_t { Plain, Faint, Lit, Selected };

struct DrawnGraphNode {
    std::string id; ///< of its items: what a click selects
    GraphNodeKind kind = GraphNodeKind::Op;
    std::string title; ///< `dot_general`, `all_reduce over data`
    std::string detail; ///< `f32[8192,784]`, `4.0 MiB, 12 us`
    std::string tooltip = {};
    ColourRole role = ColourRole::Compute; ///< of a collective: its category
    bool isSplit = false; ///< a mesh axis splits it: marked by a bar
    GraphEmphasis emphasis = GraphEmphasis::Plain;
};

struct DrawnGraphEdge {
    std::size_t from = 0; ///< index into the nodes
    std::size_t to = 0;
    std::string label = {}; ///< the spec of the value that flows: `P('data', None)`
    GraphEmphasis emphasis = GraphEmphasis::Plain;
    std::optional<ColourRole> moved = {}; ///< the category of the collective that moves the value; nothing: none does
};

/// A program as nodes and the values between them. Preconditions: edges name nodes, and make no cycle.
struct GraphDrawing {
    std::string title;
    std::vector<DrawnGraphNode> nodes;
    std::vector<DrawnGraphEdge> edges;
};

/// The part of a laid out graph that is drawn, and how large.
struct GraphWindow {
    Point topLeft; ///< in the layout
    double width = 0.0; ///< of the picture, pixels
    double height = 0.0;
    double scale = 1.0; ///< pixels of the picture for a pixel of the layout; > 0
};

/// Where the nodes and edges of a graph lie; high nodes have room for the labels of all edges into them.
LayeredLayout graphLayout(const GraphDrawing& drawing);

/// All of a graph at scale 1, with a margin.
GraphWindow wholeGraph(const LayeredLayout& layout);

/// The part of a graph in a window. Items of nodes have their ids. What is outside is left out, and text that would be too small to read.
/// Edges over many ranks are drawn where they are lit, otherwise as stubs at both ends. Precondition: `layout` is that of `drawing`.
DisplayList drawGraph(const GraphDrawing& drawing, const LayeredLayout& layout, const GraphWindow& window);

} // namespace meshwright
