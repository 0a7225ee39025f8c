// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

#include <string>
#include <vector>

namespace meshwright {

/// How far to go; each includes the ones before it.
/// Source: openxla/shardy, docs/propagation.md.
enum class PropagationStrategy : std::uint8_t {
    Basic,
    BasicConservative, ///< Basic without splitting axes
    Aggressive,
    OpPriority,
    UserPriority,
    Pipeline, ///< UserPriority, then every dimension is closed and values without any sharding are replicated
};

/// Which way an axis came through an op.
enum class StepDirection : std::uint8_t {
    None, ///< it was annotated, or the values are tied
    Forward, ///< from an operand to a result
    Backward, ///< from a result to an operand
    Sideways, ///< from an operand to another
};
const char* stepDirectionName(StepDirection direction); ///< "", "forward", "backward", "sideways"

/// Why an axis splits a dimension of a value: the first step of the way back to an annotation.
struct ShardingReason {
    ValueId value;
    std::size_t dim = 0;
    AxisRef axis;
    std::string annotation; ///< the user's annotation at the end of the way: "sharding.x"
    ValueId from; ///< the neighbour it came from; invalid: the user wrote it on this value, or asks it of the function's result
    OpId through; ///< the op that joins the two; invalid for groups and loops
    std::string
        step; ///< "by the user", "dot_general, factor i, aggressive, pass-through", "sharding group", "loop carry", "function result"
    StepDirection direction = StepDirection::None;
    bool aggressive = false; ///< the strategy of the step; otherwise basic
    int userPriority = 0; ///< of the annotations whose turn it was
    int opPriority = -1; ///< 0 .. 4: the priority of the ops in that round; -1: all ops at once
    std::string factor; ///< of the op's rule: "i"; empty without an op
};

/// An axis that was wanted and not taken.
struct ShardingConflict {
    OpId op;
    ValueId value; ///< that did not get the axis
    std::size_t dim = 0;
    AxisRef axis;
    std::string reason; ///< who holds it instead, or which dimension is closed
    ValueId wantedBy; ///< the op's tensor that has the axis: the side that lost here
    std::string loser; ///< the annotation that the axis came from
    std::string winner; ///< the annotation of what the value has instead; empty when it has nothing
};

struct PropagationReport {
    std::vector<ShardingReason> reasons; ///< in the order in which they were made
    std::vector<ShardingConflict> conflicts;
    int rounds = 0;

    /// The reasons of one value, in order of dimension and axis.
    std::vector<ShardingReason> reasonsOf(ValueId value) const;
};

/// One sentence that follows the way back to the user: `P('data', None): dim 0 by data, from x (sharding.x) through dot_general and add`.
std::string explainSharding(const Function& function, const PropagationReport& report, const Mesh& mesh, ValueId value);

/// Gives every value of `function` a sharding, from the annotations that its values carry (Value::sharding, ShardingConstraint ops,
/// result shardings, groups, the in and out shardings of computations); writes Value::sharding. Repeat bodies are propagated through carries, stacked slices (dimension 0 of a
/// stacked tensor stays whole) and invariants. A carry's body argument and the loop's result have one sharding; its initial operand
/// and what the body yields can differ from it where the user says so.
///
/// Function::resultShardings gets an entry for each result, which is the value's where the user asked nothing else. Constants get a
/// copy for uses that want them differently (splitConstantsPerUse); other uses of the input of a chain of sharding constraints move
/// to its end. Without meshes nothing happens.
/// Members of a group that are annotated differently stay as they are: open constraints behind them take their places in it.
/// Problems: MW1202 members of one group differ in shape, MW1203 a sharding has not as many dimensions as its value, or names a mesh or an
/// axis that is not there, MW1204 a sharding in a manual computation names an axis that is manual there.
Result<PropagationReport> propagate(
    Function& function, const std::vector<NamedMesh>& meshes, PropagationStrategy strategy = PropagationStrategy::Pipeline);

} // namespace meshwright
