// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <vector>

namespace meshwright::sim {

/// What one choice costs by itself.
struct ChoiceCost {
    double seconds = 0.0;
    double bytes = 0.0;
};

/// Variables with a few choices each, and what pairs of choices cost besides: ops with their shardings, and the reshards between them.
struct ChoiceGraph {
    struct Edge {
        std::size_t from = 0;
        std::size_t to = 0; ///< another one
        std::vector<double> seconds; ///< [choice of from * choices of to + choice of to], >= 0; infinite: not allowed
    };
    std::vector<std::vector<ChoiceCost>> variables; ///< at least one choice each; costs >= 0
    std::vector<Edge> edges; ///< two variables may have several
};

/// A choice for every variable.
struct Assignment {
    double seconds = 0.0; ///< of all variables and edges
    double bytes = 0.0; ///< of all variables
    std::vector<std::uint32_t> choices;
};

struct EliminationLimits {
    double budgetBytes = std::numeric_limits<double>::infinity();
    std::size_t labels = 256; ///< (time, memory) pairs that are kept for one table entry; more make the answer a bound
    std::size_t entries = std::size_t{1} << 22; ///< of one table
    std::stop_token stop = {}; ///< asked: the front is empty, and the bound 0
};

struct EliminationResult {
    /// Assignments within the budget that no other beats in both time and memory, the quickest first; empty when none is allowed.
    std::vector<Assignment> front;
    double lowerBoundSeconds = 0.0; ///< no assignment within the budget takes less; infinite when there is none
    bool exact = true; ///< false: labels were dropped; then `front` may lack assignments, and its first may be above the bound
    bool tooWide = false; ///< a table would have had more entries than allowed: nothing was found
};

/// The Pareto front of a choice graph by eliminating one variable after the other, that with the smallest table next: dynamic programming along a
/// tree decomposition. Exact while labels suffice. Where they do not, the bound is the best of several Lagrangian relaxations of the budget,
/// each minimised exactly.
/// Source: R. Dechter, "Bucket elimination: a unifying framework for reasoning", Artificial Intelligence 113, 1999.
EliminationResult eliminate(const ChoiceGraph& graph, const EliminationLimits& limits = {});

/// Seconds and bytes of one assignment.
Assignment costOf(const ChoiceGraph& graph, std::vector<std::uint32_t> choices);

} // namespace meshwright::sim
