// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/builder.h"
#include "core/program/program.h"

#include <functional>
#include <vector>

namespace meshwright {

/// Copies the ops of `callee`'s body into the builder's current block, with `operands` for its arguments. Names, phases, roles,
/// annotations and bodies are kept. Returns the values that stand for the callee's results.
/// Precondition: one operand for each argument, of its type.
std::vector<ValueId> inlineCall(Builder& builder, const Function& callee, const std::vector<ValueId>& operands);

/// Copies one op with everything in it (bodies too) to the end of the builder's block; operands are looked up through `mapping`
/// (indexed by the source's values), which is extended by the copy's results. Phase, names and shardings are kept.
void copyOp(Builder& builder, const Function& source, OpId op, std::vector<ValueId>& mapping);

/// Copies a block as the next body of `op`, which `Builder::beginOp` made; likewise.
void copyBody(Builder& builder, const Function& source, BlockId body, OpId op, std::vector<ValueId>& mapping);

/// Removes ops from the blocks whose results nobody uses, inner blocks included; loops lose the carries, operands and stacked
/// results that nobody needs, and branches such results and operands. Sends and kept ops with effects stay. Returns how many ops it removed.
std::size_t eraseDeadOps(Function& function);

/// Replaces every use of `from` (operands and block results) by `to`.
void replaceUses(Function& function, ValueId from, ValueId to);

/// Drops table entries that no block reaches and renumbers the rest in program order, so that equal programs have equal tables.
Function compacted(Function function);

/// Keeps only the given results of the body (in this order) and what they need; the names of results follow.
Function restrictedTo(const Function& function, const std::vector<std::size_t>& results);

/// Calls `visit` for every live op in program order, the ops of a body right after the op that holds it.
void forEachOp(const Function& function, const std::function<void(OpId)>& visit);
/// The same of one op and what its bodies hold.
void forEachOp(const Function& function, OpId op, const std::function<void(OpId)>& visit);

/// The values that have a name and a sharding: of each block its arguments, then what its ops make.
std::vector<ValueId> namedValues(const Function& function);

/// How often the blocks of an op run for one run of the op: a Repeat's count; of other ops it is not known, and once is assumed.
std::int64_t blockRuns(const Op& op);

/// An optimization barrier that devices have too, and its results though nobody reads them: what a framework computes or keeps that a compiler would not.
bool staysOnDevices(const Op& op);
void setStaysOnDevices(Op& barrier);

/// How often each value is used: as an operand, or as a result of a block.
std::vector<std::size_t> useCounts(const Function& function);

/// A copy of an op that stands for it where one use needs it.
struct ConstantCopy {
    OpId copy;
    OpId original;
};

/// Gives every use but the first of a constant, an iota, a spread scalar, or a value made of constants only its own copy of what makes the
/// value, so that the uses need not agree on a sharding. The values that a constant is made of are not uses of each other: what one use
/// needs is copied once, however often it occurs there. Values that have a sharding or are in a group, and scalars, stay shared.
/// Ids of values and ops stay valid. Returns the copies, those of operands before those of their users.
/// Source: openxla/shardy, shardy/dialect/sdy/transforms/import/constant_or_scalar_splitter.cc.
std::vector<ConstantCopy> splitConstantsPerUse(Function& function);

/// Undoes the copies whose sharding equals that of the original or of another copy. Returns what took the place of what.
std::vector<std::pair<ValueId, ValueId>> mergeEqualCopies(Function& function, const std::vector<ConstantCopy>& copies);

} // namespace meshwright
