// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/python/executable.h"
#include "core/program/builder.h"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace meshwright::python {

/// The attributes of an op by the names that StableHLO gives them, as Python says them.
using AttributeValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;
using Attributes = std::map<std::string, AttributeValue>;

/// A block of a loop or a choice: a function that was traced before, and for each of its arguments the operand of these that it is.
struct LoopBlock {
    const TracedFunction& function;
    std::vector<std::size_t> operands;
};

/// Records the ops of a function as it is called.
///
/// Operands are values of the function. Element-wise ops take operands of different shapes, which are broadcast as NumPy does.
/// Besides StableHLO's ops there are `normal` and `uniform` (of a key ui32[2], with `shape`, `low`, `high`, `partitionable`),
/// and `sort` along `dim`, which gives the elements and where they were; equal ones stay in their order.
class Trace {
public:
    explicit Trace(std::string name);
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;

    ValueId argument(TensorType type, std::string name);
    const TensorType& type(ValueId value) const { return m_traced.function[value].type; }

    /// Appends an op and returns its results.
    /// Problems: MW1301 to MW1304 as `resultTypes`, MW1303 also shapes that do not broadcast; MW1561 no op has this name.
    Result<std::vector<ValueId>> add(const std::string& op, const std::vector<ValueId>& operands, const Attributes& attributes);

    /// A constant with these elements.
    ValueId constant(const HostArray& array);

    /// The same array with a layout of its own.
    ValueId constrain(ValueId operand, const Placement& placement);

    /// A call of a function that was traced before.
    std::vector<ValueId> call(const TracedFunction& callee, const std::vector<ValueId>& operands);

    /// Values that have a derivative of their own by `inputs`: `rule` gives it, as `addCustomDerivative` says.
    std::vector<ValueId> custom(const TracedFunction& rule, std::size_t reads, const std::vector<ValueId>& values,
        const std::vector<ValueId>& inputs, const std::vector<ValueId>& read);

    /// A loop as `RepeatAttributes` has it, or while the condition holds as `WhileAttributes` has it. Its results are those of the op.
    /// Problems: MW1303 the operands do not fit, or the body's carries have other types than the operands.
    Result<std::vector<ValueId>> repeat(
        const LoopBlock& body, const std::vector<ValueId>& operands, const RepeatAttributes& attributes);
    Result<std::vector<ValueId>> whileLoop(
        const LoopBlock& condition, const LoopBlock& body, const std::vector<ValueId>& operands, std::size_t carries);

    /// What one of the branches gives: `operands` are which one (an i32 that there is a branch for, or a truth value for the first or the second), then what
    /// the branches use. Problems: MW1302, MW1303 the operands do not fit, or the branches give other types.
    Result<std::vector<ValueId>> choose(const std::vector<LoopBlock>& branches, const std::vector<ValueId>& operands);

    /// A call on the pieces of the operands, which are split over the manual axes of the mesh. Problems: MW1302 a result or an operand does not
    /// divide; MW1266 a result that is not the same over an axis of which its out_spec says so.
    Result<std::vector<ValueId>> manual(const TracedFunction& body, const std::vector<ValueId>& operands, const Mesh& mesh,
        const std::vector<TensorSharding>& in, const std::vector<TensorSharding>& out);

    /// A collective of a manual computation over axes of its mesh: psum, pmax, pmin, all_gather, psum_scatter, all_to_all, ppermute (with
    /// `sources`), and axis_index, which has no operand.
    Result<ValueId> collective(const std::string& op, const std::vector<ValueId>& operands, const Mesh& mesh,
        const std::vector<std::string>& axes, const Attributes& attributes);

    /// The function up to here, with these results.
    TracedFunction finished(const std::vector<ValueId>& results) const;

private:
    void fill(const LoopBlock& block, const std::vector<ValueId>& arguments);
    std::vector<ValueId> sorted(ValueId operand, std::size_t dim);
    Result<std::vector<ValueId>> transformed(ValueId operand, const std::string& type, const Shape& lengths);
    std::vector<TensorType> typesOf(const std::vector<ValueId>& values) const;

    TracedFunction m_traced;
    Builder m_builder;
};

/// The results of a function, then the cotangents of the arguments `wrt`, with the seeds of the given results: their cotangents are further
/// arguments, or 1 where `isOne`. Of complex numbers they are JAX's, the conjugates of what gradients of pairs would be.
/// Problems: those of `differentiate`, `withComplexPairs`.
Result<TracedFunction> withCotangents(
    const TracedFunction& traced, const std::vector<std::size_t>& wrt, const std::vector<std::size_t>& seeds, bool isOne);

} // namespace meshwright::python
