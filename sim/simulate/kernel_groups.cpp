// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/kernel_groups.h"

#include "core/program/transform.h"

#include <algorithm>
#include <utility>

namespace meshwright::sim {

bool isView(const Function& function, const Op& op, const DeviceCost& cost)
{
    if (op.kind == OpKind::OptimizationBarrier)
        return true;
    if (op.kind != OpKind::Reshape)
        return false;
    const auto rowOf = [&](ValueId value) {
        const Shape& shape = function[value].type.shape;
        return shape.empty() ? 1 : shape.back();
    };
    return cost.reshapesInPlace(rowOf(op.operands.front()) == rowOf(op.results.front()));
}

bool onlyAdds(const Function& function, const Instruction& instruction)
{
    return std::ranges::all_of(
        instruction.ops, [&](OpId id) { return function[id].kind == OpKind::Add || function[id].kind == OpKind::Convert; });
}

bool isOnlyView(const Function& function, const Instruction& instruction, const DeviceCost& cost)
{
    return std::ranges::all_of(instruction.ops, [&](OpId id) { return isView(function, function[id], cost); });
}

namespace {

/// Of a row that a kernel keeps: the shared memory that a block of threads has on every CUDA device (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability"). Longer rows are read again, as PyTorch's softmax does.
constexpr std::int64_t kLongestRow = 48LL * 1024; // bytes

std::int64_t rowsOf(const TensorType& array)
{
    const std::int64_t last = array.shape.empty() ? 1 : array.shape.back();
    return last == 0 ? 0 : array.elements() / last;
}

bool isRowReduction(const Function& function, const Op& op)
{
    const Shape& shape = function[op.operands.front()].type.shape;
    const auto& dims = op.as<ReduceAttributes>().dims;
    return dims.size() == 1 && dims.front() + 1 == shape.size();
}

/// The same array but for the length of its rows.
bool hasRowsOf(const Shape& a, const Shape& b)
{
    return !a.empty() && a.size() == b.size() && std::equal(a.begin(), a.end() - 1, b.begin());
}

} // namespace

KernelGroups::KernelGroups(const ScheduledFunction& scheduled, const DeviceCost& cost)
    : m_function(scheduled.device.function)
    , m_cost(cost)
    , m_isResult(m_function.values.size(), false)
{
    for (std::size_t i = 0; i < m_function.values.size(); ++i)
        m_viewed.emplace_back(i);
    forEachOp(m_function, [&](OpId id) {
        const Op& op = m_function[id];
        for (std::size_t i = 0; i < op.results.size() && isView(m_function, op, m_cost); ++i)
            m_viewed[op.results[i].at()] = inMemory(op.operands[i]);
    });
    for (const Block& block : m_function.blocks) {
        for (const ValueId result : block.results)
            m_isResult[inMemory(result).at()] = true;
    }
    noteReaders(scheduled.instructions);
    if (m_cost.mergesProducts())
        mergeSums(scheduled.instructions);
    if (m_cost.joinsPasses() || m_cost.splitsNorms())
        group(scheduled.instructions);
}

ValueId KernelGroups::inMemory(ValueId value) const
{
    return m_viewed[value.at()];
}

void KernelGroups::noteReaders(const std::vector<Instruction>& instructions)
{
    for (const Instruction& instruction : instructions) {
        for (const ValueId value : instruction.reads) {
            if (!isOnlyView(m_function, instruction, m_cost))
                m_readers[inMemory(value)].push_back(&instruction);
        }
        noteReaders(instruction.body);
        for (const auto& block : instruction.blocks)
            noteReaders(block);
    }
}

/// True for a slice, pad or concatenation along rows.
bool KernelGroups::isMoved(ValueId value) const
{
    const Op& op = m_function[m_function[value].producer];
    return (op.kind == OpKind::Slice || op.kind == OpKind::Pad || op.kind == OpKind::Concatenate)
        && hasRowsOf(m_function[op.operands.front()].type.shape, m_function[value].type.shape);
}

/// True for an instruction that goes through arrays element by element or row by row.
bool KernelGroups::isPass(const Instruction& instruction) const
{
    return instruction.kind == InstructionKind::Compute && !isInProducts(instruction)
        && std::ranges::all_of(instruction.ops, [&](OpId id) {
               const Op& op = m_function[id];
               return isElementwise(op.kind) || op.kind == OpKind::BroadcastInDim || op.kind == OpKind::Constant
                   || op.kind == OpKind::Iota || isView(m_function, op, m_cost)
                   || (op.kind == OpKind::Reduce && (m_cost.joinsRows() || m_cost.splitsNorms()))
                   || (m_cost.joinsMoves() && isMoved(op.results.front()));
           });
}

/// The largest array that a pass goes through.
const TensorType& KernelGroups::arrayOf(const Instruction& pass) const
{
    const TensorType* largest = nullptr;
    for (const auto* values : {&pass.reads, &pass.writes}) {
        for (const ValueId value : *values) {
            const TensorType& type = m_function[value].type;
            if (largest == nullptr || type.elements() > largest->elements())
                largest = &type;
        }
    }
    return *largest;
}

bool KernelGroups::takes(const Group& kernel, const Instruction& pass) const
{
    const TensorType& array = arrayOf(pass);
    const std::int64_t rows = rowsOf(array);
    const bool isSameSize = array.elements() == kernel.elements || rows == kernel.rows || array.elements() == kernel.rows
        || kernel.elements == rows;
    bool shares = false;
    for (const ValueId read : pass.reads) {
        const ValueId value = inMemory(read);
        const auto found = kernel.onChip.find(value);
        // A scalar that both read, as a learning rate, joins nothing.
        shares = shares || (found != kernel.onChip.end() && m_function[value].type.elements() >= std::min(rows, kernel.rows));
        if (found != kernel.onChip.end() && !found->second)
            return false;
        // What a collective gives is there when its kernel begins, or may depend on the kernel.
        const OpId producer = m_function[value].producer;
        if (found == kernel.onChip.end() && producer.valid() && isCollective(m_function[producer].kind))
            return false;
    }
    return shares && isSameSize;
}

void KernelGroups::join(Group& kernel, const Instruction& pass)
{
    const TensorType& array = arrayOf(pass);
    if (array.elements() > kernel.elements) {
        kernel.elements = array.elements();
        kernel.rows = rowsOf(array);
    }
    kernel.passes.push_back(&pass);
    for (const ValueId read : pass.reads)
        kernel.onChip.emplace(inMemory(read), true);
    std::set<ValueId> whole; // what needs more than one row
    for (const OpId id : pass.ops) {
        const Op& op = m_function[id];
        const bool fits = op.kind != OpKind::Reduce
            || (isRowReduction(m_function, op)
                && arrayOf(pass).bytes() <= kLongestRow * std::max<std::int64_t>(1, rowsOf(array)));
        if (!fits)
            whole.insert(op.results.front());
        else if (op.kind == OpKind::Reduce)
            kernel.reducesRows = true;
    }
    for (const ValueId written : pass.writes)
        kernel.onChip[inMemory(written)] = !whole.contains(written);
}

void KernelGroups::end(Group& kernel)
{
    const Group ended = std::exchange(kernel, {});
    if (ended.reducesRows && m_cost.splitsNorms()) {
        m_split.insert(ended.passes.begin(), ended.passes.end());
        return;
    }
    if (ended.passes.size() < 2 || !m_cost.joinsPasses())
        return;
    std::set<ValueId> known;
    for (const Instruction* pass : ended.passes) {
        Member& member = m_members[pass];
        member.isFirst = pass == ended.passes.front();
        for (const ValueId read : pass->reads) {
            if (known.insert(inMemory(read)).second)
                member.reads.push_back(read);
        }
        for (const ValueId written : pass->writes) {
            const ValueId value = inMemory(written);
            known.insert(value);
            const auto readers = m_readers.find(value);
            const bool isReadOutside = readers != m_readers.end()
                && std::ranges::any_of(readers->second,
                    [&](const Instruction* reader) { return std::ranges::find(ended.passes, reader) == ended.passes.end(); });
            if (isReadOutside || m_isResult[value.at()])
                member.writes.push_back(written);
        }
    }
}

void KernelGroups::group(const std::vector<Instruction>& instructions)
{
    Group kernel;
    for (const Instruction& instruction : instructions) {
        group(instruction.body);
        for (const auto& block : instruction.blocks)
            group(block);
        const bool isNoKernel = instruction.kind == InstructionKind::CollectiveStart
            || (instruction.kind == InstructionKind::CollectiveDone && instruction.update.empty())
            || (instruction.kind == InstructionKind::Compute && instruction.reads.empty()) // constants
            || isOnlyView(m_function, instruction, m_cost);
        if (isNoKernel)
            continue;
        if (!isPass(instruction)) {
            end(kernel);
            continue;
        }
        if (!takes(kernel, instruction))
            end(kernel);
        join(kernel, instruction);
    }
    end(kernel);
}

void KernelGroups::mergeSums(const std::vector<Instruction>& instructions)
{
    std::map<ValueId, const Instruction*> products; // by result
    for (const Instruction& instruction : instructions) {
        mergeSums(instruction.body);
        for (const auto& block : instruction.blocks)
            mergeSums(block);
        if (instruction.kind != InstructionKind::Compute)
            continue;
        const bool isProduct
            = std::ranges::any_of(instruction.ops, [&](OpId id) { return m_function[id].kind == OpKind::DotGeneral; });
        if (isProduct && instruction.writes.size() == 1)
            products[instruction.writes.front()] = &instruction;
        const bool isOfProducts = instruction.reads.size() > 1 && onlyAdds(m_function, instruction)
            && std::ranges::all_of(instruction.reads, [&](ValueId value) {
                   return products.contains(value) && m_readers[inMemory(value)].size() == 1 && !m_isResult[inMemory(value).at()];
               });
        if (!isOfProducts)
            continue;
        for (const ValueId value : instruction.reads)
            m_sumOf[products.at(value)] = &instruction;
        m_sums.insert(&instruction);
    }
}

} // namespace meshwright::sim
