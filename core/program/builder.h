// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <span>
#include <string>
#include <vector>

namespace meshwright {

/// Appends ops to one block of a function; types of results come from the shape rules.
///
/// Preconditions throughout: operands belong to the function and fit the op (a broken one is a bug, and asserts). Readers of
/// user text check with `resultTypes` before they call `add`.
class Builder {
public:
    /// Continues the body of `function`, which must outlive the builder; makes the body if it has none yet.
    explicit Builder(Function& function);

    Function& function() { return m_function; }
    const TensorType& type(ValueId value) const { return m_function[value].type; }

    /// Ops added from now on belong to this phase.
    void setPhase(Phase phase) { m_phase = phase; }
    Phase phase() const { return m_phase; }

    /// Appends to this block from now on.
    void setBlock(BlockId block) { m_block = block; }
    BlockId block() const { return m_block; }

    /// A new argument of the current block.
    ValueId argument(TensorType type, std::string name = {}, Role role = Role::Activation);

    /// Sets the results of the current block; `names` only for the body.
    void setResults(std::vector<ValueId> results, std::vector<std::string> names = {});

    /// Appends an op with one result, or with any number of them.
    ValueId add(OpKind kind, std::vector<ValueId> operands, OpAttributes attributes = {});
    std::vector<ValueId> addMany(OpKind kind, std::vector<ValueId> operands, OpAttributes attributes = {});

    ValueId splat(TensorType type, double value);
    ValueId iota(TensorType type, std::size_t dim);
    ValueId unary(OpKind kind, ValueId operand) { return add(kind, {operand}); }
    ValueId binary(OpKind kind, ValueId lhs, ValueId rhs) { return add(kind, {lhs, rhs}); }
    ValueId convert(ValueId operand, DType dtype);
    ValueId compare(CompareDirection direction, ValueId lhs, ValueId rhs);
    ValueId select(ValueId predicate, ValueId onTrue, ValueId onFalse);
    ValueId broadcast(ValueId operand, Shape shape, std::vector<std::size_t> dims);
    /// A scalar, or a splat constant, at every element of `shape`.
    ValueId broadcastScalar(ValueId scalar, const Shape& shape);
    ValueId reshape(ValueId operand, Shape shape);
    ValueId transpose(ValueId operand, std::vector<std::size_t> permutation);
    ValueId reduce(ReduceKind kind, ValueId operand, std::vector<std::size_t> dims);
    /// lhs[m, k] times rhs[k, n], accumulated in the operands' type.
    ValueId matmul(ValueId lhs, ValueId rhs, DType operandType);
    ValueId dot(ValueId lhs, ValueId rhs, DotAttributes attributes);
    ValueId constrain(ValueId operand, TensorSharding sharding, std::string origin);

    /// An op with blocks, still without results: then `beginBody` for each block, to be filled through `setResults`, and `endOp`,
    /// which gives the op results of these types and continues the block that holds it. Returns the arguments of the block.
    OpId beginOp(OpKind kind, std::vector<ValueId> operands, OpAttributes attributes);
    std::vector<ValueId> beginBody(OpId op, std::span<const TensorType> arguments);
    std::vector<ValueId> endOp(OpId op, const std::vector<TensorType>& results);

    /// A Repeat op; its body is an empty block with the right arguments, to be filled through `setBlock` and `setResults`, and
    /// closed by `endRepeat`, which gives the op its results and continues the block that holds it.
    OpId beginRepeat(RepeatAttributes attributes, std::vector<ValueId> operands);
    std::vector<ValueId> endRepeat(OpId repeat);

    /// Names a value and returns it.
    ValueId named(ValueId value, std::string name);

private:
    OpId append(OpKind kind, std::vector<ValueId> operands, OpAttributes attributes);
    ValueId addResult(OpId op, TensorType type);

    Function& m_function;
    BlockId m_block{std::int32_t{0}};
    Phase m_phase = Phase::Forward;
};

} // namespace meshwright
