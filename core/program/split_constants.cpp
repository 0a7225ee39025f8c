// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/transform.h"

#include <algorithm>
#include <unordered_map>

namespace meshwright {

namespace {

class ConstantSplitter {
public:
    explicit ConstantSplitter(Function& function)
        : m_function(function)
        , m_constant(function.values.size(), false)
        , m_copyable(function.values.size(), false)
        , m_pinned(function.values.size(), false)
    {
        for (const auto& group : function.shardingGroups) {
            for (const ValueId member : group)
                m_pinned[member.at()] = true;
        }
    }

    std::vector<ConstantCopy> run()
    {
        const std::size_t blocks = m_function.blocks.size();
        for (std::size_t block = 0; block < blocks; ++block)
            splitBlock(BlockId(block));
        return std::move(m_copies);
    }

private:
    /// What stands, for one use, in the place of each value that a constant is made of.
    using Replacements = std::unordered_map<ValueId, ValueId>;

    bool mayCopy(const Op& op)
    {
        if (op.results.size() != 1 || opInfo(op.kind).opClass == OpClass::Constraint)
            return false;
        const ValueId result = op.results.front();
        if (m_pinned[result.at()] || m_function[result].sharding)
            return false;
        const bool leaf = op.kind == OpKind::Constant || op.kind == OpKind::Iota;
        const bool simple = isElementwise(op.kind) || opInfo(op.kind).opClass == OpClass::Shaping;
        bool constantOperands = simple;
        for (const ValueId operand : op.operands)
            constantOperands = constantOperands && m_constant[operand.at()];
        m_constant[result.at()] = leaf || constantOperands;
        const bool spread = op.kind == OpKind::BroadcastInDim && m_function[op.operands.front()].type.shape.empty();
        return (m_constant[result.at()] || spread) && !m_function[result].type.shape.empty();
    }

    void splitBlock(BlockId block)
    {
        const std::vector<OpId> ops = m_function[block].ops;
        std::vector<OpId> users; // of the values outside of constants
        for (const OpId id : ops) {
            if (mayCopy(m_function[id]))
                m_copyable[m_function[id].results.front().at()] = true;
            else
                users.push_back(id);
        }
        for (const OpId user : users) {
            for (std::size_t i = 0; i < m_function[user].operands.size(); ++i) {
                const ValueId own = ownFor(m_function[user].operands[i]);
                m_function[user].operands[i] = own;
            }
        }
        for (std::size_t i = 0; i < m_function[block].results.size(); ++i) {
            const ValueId own = ownFor(m_function[block].results[i]);
            m_function[block].results[i] = own;
        }
        std::vector<OpId> all;
        for (const OpId id :
            ops) { // a copy stands behind its original: before whatever uses it, and behind the copies that it uses
            all.push_back(id);
            const auto copies = m_copiesOf.find(id);
            if (copies != m_copiesOf.end())
                all.insert(all.end(), copies->second.begin(), copies->second.end());
        }
        m_function[block].ops = std::move(all);
    }

    /// What one use has in the place of a value.
    ValueId ownFor(ValueId value)
    {
        Replacements replacements;
        return ownFor(value, replacements);
    }

    /// The first use takes the ops themselves.
    ValueId ownFor(ValueId value, Replacements& replacements)
    {
        if (!m_copyable[value.at()])
            return value;
        if (const auto known = replacements.find(value); known != replacements.end())
            return known->second;
        const OpId original = m_function[value].producer;
        const auto [asItWas, isFirst] = m_operands.try_emplace(original, m_function[original].operands);
        std::vector<ValueId> operands = asItWas->second;
        for (ValueId& operand : operands)
            operand = ownFor(operand, replacements);
        if (isFirst)
            m_function[original].operands = operands;
        return replacements[value] = isFirst ? value : copyOf(original, std::move(operands));
    }

    ValueId copyOf(OpId original, std::vector<ValueId> operands)
    {
        const OpId id(m_function.ops.size());
        const ValueId result(m_function.values.size());
        Op copy = m_function[original];
        Value value = m_function[copy.results.front()];
        value.name.clear();
        value.producer = id;
        copy.results = {result};
        copy.operands = std::move(operands);
        m_function.ops.push_back(std::move(copy));
        m_function.values.push_back(std::move(value));
        m_copies.push_back({id, original});
        m_copiesOf[original].push_back(id);
        m_copyable.push_back(false);
        return result;
    }

    Function& m_function;
    std::vector<bool> m_constant; ///< by value
    std::vector<bool> m_copyable; ///< by value
    std::vector<bool> m_pinned; ///< in a sharding group
    std::unordered_map<OpId, std::vector<ValueId>> m_operands; ///< of the ops that some use has taken, as they were
    std::unordered_map<OpId, std::vector<OpId>> m_copiesOf;
    std::vector<ConstantCopy> m_copies;
};

} // namespace

std::vector<ConstantCopy> splitConstantsPerUse(Function& function)
{
    return ConstantSplitter(function).run();
}

std::vector<std::pair<ValueId, ValueId>> mergeEqualCopies(Function& function, const std::vector<ConstantCopy>& copies)
{
    std::unordered_map<ValueId, ValueId> instead;
    const auto current = [&](std::vector<ValueId> values) {
        for (ValueId& value : values) {
            if (const auto found = instead.find(value); found != instead.end())
                value = found->second;
        }
        return values;
    };
    const auto resultOf = [&](OpId op) { return function[op].results.front(); };
    std::unordered_map<OpId, std::vector<OpId>> kept;
    std::vector<std::pair<ValueId, ValueId>> merged;
    std::vector<bool> gone(function.ops.size(), false);
    for (const ConstantCopy& each : copies) {
        auto& candidates = kept[each.original];
        if (candidates.empty())
            candidates.push_back(each.original);
        const std::vector<ValueId> operands = current(function[each.copy].operands);
        const auto same = std::find_if(candidates.begin(), candidates.end(), [&](OpId other) {
            return current(function[other].operands) == operands
                && function[resultOf(other)].sharding == function[resultOf(each.copy)].sharding;
        });
        if (same == candidates.end()) {
            candidates.push_back(each.copy);
            continue;
        }
        gone[each.copy.at()] = true;
        instead[resultOf(each.copy)] = resultOf(*same);
        merged.emplace_back(resultOf(each.copy), resultOf(*same));
    }
    if (merged.empty())
        return merged;
    for (Op& op : function.ops)
        op.operands = current(std::move(op.operands));
    for (Block& block : function.blocks) {
        block.results = current(std::move(block.results));
        std::erase_if(block.ops, [&](OpId op) { return gone[op.at()]; });
    }
    return merged;
}

} // namespace meshwright
