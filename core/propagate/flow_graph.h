// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/propagate/factor_propagation.h"
#include "core/support/result.h"

#include <array>
#include <vector>

namespace meshwright {

/// Values that always have the same sharding: one value, a sharding group, or a loop's carry with the loop's result.
struct FlowSlot {
    std::vector<ValueId> members; ///< none for what is asked of a result of the function, or of an operand of a computation
    std::vector<std::uint32_t> nodes; ///< where it takes part
    const char* bond = ""; ///< "sharding group" or "loop carry", when there are several members
};

/// How shardings pass through an op, as far as the order of propagation goes.
/// Source: openxla/shardy, shardy/dialect/sdy/transforms/propagation/op_priority_propagation.cc.
enum class FlowClass : std::uint8_t {
    PassThrough, ///< element-wise ops, reshape, transpose, the edges of loops
    DynamicSlice, ///< and DynamicUpdateSlice: at first only forward
    Broadcast,
    Other,
};

/// Something that joins slots by a rule: an op, or an edge of a loop or of the function's results.
struct FlowNode {
    OpShardingRule rule;
    std::size_t operandCount = 0;
    std::vector<std::uint32_t> slots; ///< of the operands, then of the results
    std::vector<ValueId> values; ///< likewise
    std::vector<std::int64_t> elements; ///< likewise
    std::vector<std::int16_t> dimOf; ///< [tensor * factors + factor]: the dimension that has the factor, or -1
    OpId op; ///< invalid for edges
    const char* edge = ""; ///< "loop carry" and so on
    FlowClass flowClass = FlowClass::Other;
    bool elementwise = false;
    bool usedOnce = false; ///< every operand that is not a scalar has this one use only
    bool allPassThrough = false; ///< no factor is anything else
    bool anyBlocked = false;
    FactorDirection allowed = FactorDirection::Both; ///< of a barrier
    std::size_t outer
        = 0; ///< with manual axes: the tensor outside of the computation, which has them and shows the node only the rest
    std::vector<std::int32_t> manualAxes;
};

/// The shardings that a Computation asks of its operands; those of its results are the results' own.
struct ComputationSlots {
    OpId op;
    std::vector<std::uint32_t> operands;
};

/// A function as slots and the nodes that join them, in program order.
struct FlowGraph {
    std::vector<FlowSlot> slots;
    std::vector<std::uint32_t> slotOf; ///< of each value
    std::vector<std::uint32_t> resultSlots; ///< what is asked of each result of the function
    std::vector<FlowNode> nodes;
    std::vector<FlowNode> resultNodes; ///< the returned value, and what is asked of it
    std::vector<ComputationSlots> computations;
    std::vector<ValueId> stacked; ///< their dimension 0 stays whole: stacked operands and results of loops
};

/// `conservative`: rules are those of the mode that splits no axes.
/// Problems: MW1202 members of one sharding group have different shapes.
Result<FlowGraph> flowGraph(const Function& function, bool conservative);

} // namespace meshwright
