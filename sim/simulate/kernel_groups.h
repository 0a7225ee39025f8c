// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"
#include "sim/cost/device_cost.h"

#include <map>
#include <set>
#include <vector>

namespace meshwright::sim {

/// True for an op that moves nothing: it takes the elements of an array as another shape, or is a barrier.
bool isView(const Function& function, const Op& op, const DeviceCost& cost);

/// True for an instruction that adds, and besides only casts.
bool onlyAdds(const Function& function, const Instruction& instruction);

/// True for an instruction that only views.
bool isOnlyView(const Function& function, const Instruction& instruction, const DeviceCost& cost);

/// Which passes over memory are one kernel. A schedule has a pass for each shape of element-wise work and for each reduction; compilers and hand-written
/// kernels join them, as far as the software does (CostOptions):
/// - passes that follow each other over the same elements read what they share once, and what only they read is never in memory;
/// - DeviceCost::joinsRows: a reduction of rows too, and what is computed with its result, where a row fits on the chip: norms, softmax;
/// - DeviceCost::joinsMoves: slices, pads and concatenations along rows too: rotary positions.
/// Of software that has no kernel for norms each op of one is a kernel (DeviceCost::splitsNorms).
/// A sum over rows ends a kernel: every one of its elements needs the whole array.
/// Of products whose results are only added, where stacks have their operands in one array (DeviceCost::mergesProducts), one is a kernel that sums over all
/// their dimensions, and the addition is none.
class KernelGroups {
public:
    KernelGroups(const ScheduledFunction& scheduled, const DeviceCost& cost);

    /// A pass that shares its kernel with others.
    struct Member {
        bool isFirst = false;
        std::vector<ValueId> reads; ///< from memory: what no pass before it in the kernel has read or made
        std::vector<ValueId> writes; ///< to memory: what something outside of the kernel reads
    };

    /// Nothing for an instruction that is a kernel of its own.
    const Member* memberOf(const Instruction& instruction) const { return find(m_members, instruction); }

    /// The addition that takes a product's result and those of others; nothing for other products.
    const Instruction* sumOf(const Instruction& product) const
    {
        const auto* sum = find(m_sumOf, product);
        return sum == nullptr ? nullptr : *sum;
    }

    /// True for a pass of which each op is a kernel.
    bool isSplit(const Instruction& instruction) const { return m_split.contains(&instruction); }

    /// True for an addition of products that are one kernel.
    bool isInProducts(const Instruction& sum) const { return m_sums.contains(&sum); }

private:
    /// The passes of a kernel so far.
    struct Group {
        std::vector<const Instruction*> passes;
        std::map<ValueId, bool> onChip; ///< what they read or made; false: an element of it needs more than the rows at hand
        std::int64_t elements = 0; ///< of the largest array that they go through
        std::int64_t rows = 0; ///< of it
        bool reducesRows = false; ///< that fit on the chip
    };

    template <typename Found>
    static const Found* find(const std::map<const Instruction*, Found>& all, const Instruction& instruction)
    {
        const auto found = all.find(&instruction);
        return found == all.end() ? nullptr : &found->second;
    }

    void noteReaders(const std::vector<Instruction>& instructions);
    void group(const std::vector<Instruction>& instructions);
    void join(Group& kernel, const Instruction& pass);
    bool takes(const Group& kernel, const Instruction& pass) const;
    void end(Group& kernel);
    void mergeSums(const std::vector<Instruction>& instructions);
    bool isPass(const Instruction& instruction) const;
    bool isMoved(ValueId value) const;
    const TensorType& arrayOf(const Instruction& pass) const;
    ValueId inMemory(ValueId value) const;

    const Function& m_function;
    const DeviceCost& m_cost;
    std::vector<ValueId> m_viewed; ///< by value: the array in memory that it is a view of, or itself
    std::map<ValueId, std::vector<const Instruction*>> m_readers; ///< of arrays in memory
    std::vector<bool> m_isResult; ///< by value: of the function or of a block
    std::map<const Instruction*, Member> m_members;
    std::map<const Instruction*, const Instruction*> m_sumOf; ///< by product
    std::set<const Instruction*> m_sums;
    std::set<const Instruction*> m_split;
};

} // namespace meshwright::sim
