// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/draw_graph.h"
#include "sim/session/session.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace meshwright::sim {

/// An op of the step's program, an argument, or a collective that partitioning put in.
struct ProgramNode {
    GraphNodeKind kind = GraphNodeKind::Op;
    OpId op; ///< in the propagated function; invalid for arguments, and for collectives that the program does not have itself
    std::vector<ValueId> values; ///< what it makes; of a collective the value that moves, where it is known
    std::size_t collective = 0; ///< of a collective: index into ProgramGraph::collectives
    OpId part
        = {}; ///< by what it is opened or closed: the op that has a body; of a layer written out, its first op. Invalid: it is in none
    std::string layer = {}; ///< of a layer that is one node: "layers.3"
    std::size_t ops = 0; ///< in what is one node
    std::size_t moves = 0; ///< collectives in it
};

/// A value on its way to a use.
struct ProgramEdge {
    std::size_t from = 0; ///< index into the nodes
    std::size_t to = 0;
    ValueId value;
    std::string spec; ///< as it lies there: behind a collective, as that leaves it
};

/// The main function of a study's program as a graph: its ops on whole arrays, with the collectives where data moves.
///
/// Loops and computations are one node each, or, if they are opened, their arguments and ops with a node at their end. Of a program of more than
/// kMostOpsAtOnce ops, the ops of each layer that is written out (those with "layers.3" in their names, and what leads to them) are one node for each
/// phase, or, if it is opened, themselves. Constants, and what is made of them alone, are left out.
struct ProgramGraph {
    std::shared_ptr<const Analysis> analysis; ///< built
    const Function* function = nullptr; ///< of `analysis`
    const PropagationReport* report = nullptr; ///< of `analysis`
    std::vector<ProgramNode> nodes;
    std::vector<ProgramEdge> edges;
    std::vector<SimulatedCollective>
        collectives; ///< all of the function, in program order; times are zero where nothing is simulated
    std::vector<int> stepCollective; ///< of each of them: its place among the collectives of the step; -1: it has none
    bool isCut = false; ///< the step runs in the stages of a pipeline, or in microbatches
    std::vector<std::size_t> nodeOf; ///< of each value of the function; kNoNode: it is left out, or in a body that is not opened

    static constexpr std::size_t kNoNode = static_cast<std::size_t>(-1);

    const Mesh& mesh() const { return analysis->mesh(); }

    /// True where a collective's bytes are those of the whole model and batch, since no stage has it as it is.
    bool isOfWholeModel(std::size_t collective) const { return isCut && stepCollective[collective] < 0; }
};

/// More ops of one block than people can look at.
inline constexpr std::size_t kMostOpsAtOnce = 120;

/// The parts that people want to see at once: computations that run once (as shard_map makes them) and are not large.
/// Precondition: analysis.built.
std::set<OpId> openedAtFirst(const Analysis& analysis);

/// `opened`: the parts that are shown op by op, see ProgramNode. `step`: the collectives of the step as views count them.
/// Precondition: analysis->built.
ProgramGraph programGraph(
    std::shared_ptr<const Analysis> analysis, const std::set<OpId>& opened, const std::vector<SimulatedCollective>& step);

/// Steps of the propagation that follow each other: those of one turn of the priorities.
struct PropagationRound {
    std::size_t end = 0; ///< how many of the report's reasons are made when it is over
    std::string title; ///< `turn 1 of the ops`
};

/// The first is what the user wrote; empty where nothing is annotated.
std::vector<PropagationRound> propagationRounds(const PropagationReport& report);

/// The sharding of every value once the first `steps` reasons of the report are made.
std::vector<TensorSharding> shardingsAfter(const Function& function, const PropagationReport& report, std::size_t steps);

/// What is emphasised in a drawing of the graph.
struct ProgramFocus {
    std::set<std::size_t> selected; ///< nodes
    std::set<ValueId> lit; ///< values on the way back to an annotation
    std::optional<std::size_t> steps; ///< specs as they are after so many steps of the propagation; nothing: at its end
};

/// `all-reduce over data`; of what a stage of a pipeline sends, `send activations 0 to 1`.
std::string collectiveTitle(const SimulatedCollective& collective);

/// The graph with its words.
GraphDrawing graphDrawing(const ProgramGraph& graph, const ProgramFocus& focus = {});

} // namespace meshwright::sim
