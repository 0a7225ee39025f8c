// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/transform.h"

#include <unordered_map>

namespace meshwright {

namespace {

class ConstantSplitter {
public:
    explicit ConstantSplitter(Function& function)
        : m_function(function)
        , m_constant(function.values.size(), false)
        , m_pinned(function.values.size(), false)
        , m_uses(function.values.size())
    {
        for (const auto& group : function.shardingGroups) {
            for (const ValueId member : group)
                m_pinned[member.at()] = true;
        }
    }

    std::vector<ConstantCopy> run()
    {
        splitBlock(BlockId(std::int32_t{0}));
        return std::move(m_copies);
    }

private:
    struct Use {
        OpId user; ///< invalid: a result of the block
        std::size_t index = 0;
    };

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
        std::vector<bool> copyable;
        for (const OpId id : ops) {
            const Op& op = m_function[id];
            for (std::size_t i = 0; i < op.operands.size(); ++i)
                m_uses[op.operands[i].at()].push_back({id, i});
            copyable.push_back(mayCopy(op));
        }
        for (std::size_t i = 0; i < m_function[block].results.size(); ++i)
            m_uses[m_function[block].results[i].at()].push_back({OpId(), i});

        // Backwards: the copies of an op are uses of its operands, which come before it.
        std::vector<OpId> reversed;
        for (std::size_t at = ops.size(); at-- > 0;) {
            if (copyable[at]) {
                const std::vector<Use> uses = m_uses[m_function[ops[at]].results.front().at()];
                for (std::size_t i = 1; i < uses.size(); ++i)
                    reversed.push_back(copyFor(ops[at], block, uses[i]));
            }
            reversed.push_back(ops[at]);
        }
        m_function[block].ops.assign(reversed.rbegin(), reversed.rend());
        for (const OpId id : ops) {
            for (const BlockId body : std::vector<BlockId>(m_function[id].bodies))
                splitBlock(body);
        }
    }

    OpId copyFor(OpId original, BlockId block, const Use& use)
    {
        const OpId id(m_function.ops.size());
        const ValueId result(m_function.values.size());
        Op copy = m_function[original];
        Value value = m_function[copy.results.front()];
        value.name.clear();
        value.producer = id;
        copy.results = {result};
        for (std::size_t i = 0; i < copy.operands.size(); ++i)
            m_uses[copy.operands[i].at()].push_back({id, i});
        m_function.ops.push_back(std::move(copy));
        m_function.values.push_back(std::move(value));
        m_copies.push_back({id, original, use.user, block, use.index});
        (use.user.valid() ? m_function[use.user].operands : m_function[block].results)[use.index] = result;
        return id;
    }

    Function& m_function;
    std::vector<bool> m_constant;
    std::vector<bool> m_pinned; ///< in a sharding group
    std::vector<std::vector<Use>> m_uses;
    std::vector<ConstantCopy> m_copies;
};

} // namespace

std::vector<ConstantCopy> splitConstantsPerUse(Function& function)
{
    return ConstantSplitter(function).run();
}

std::vector<std::pair<ValueId, ValueId>> mergeEqualCopies(Function& function, const std::vector<ConstantCopy>& copies)
{
    std::unordered_map<OpId, std::vector<OpId>> kept;
    std::vector<std::pair<ValueId, ValueId>> merged;
    std::vector<bool> gone(function.ops.size(), false);
    std::vector<bool> touched(function.blocks.size(), false);
    // Backwards: the copies of an op's operands were made after those of the op.
    for (auto copy = copies.rbegin(); copy != copies.rend(); ++copy) {
        auto& candidates = kept[copy->original];
        if (candidates.empty())
            candidates.push_back(copy->original);
        const ValueId value = function[copy->copy].results.front();
        const auto same = std::find_if(candidates.begin(), candidates.end(), [&](OpId other) {
            return function[other].operands == function[copy->copy].operands
                && function[function[other].results.front()].sharding == function[value].sharding;
        });
        if (same == candidates.end()) {
            candidates.push_back(copy->copy);
            continue;
        }
        const ValueId instead = function[*same].results.front();
        (copy->user.valid() ? function[copy->user].operands : function[copy->block].results)[copy->index] = instead;
        gone[copy->copy.at()] = true;
        touched[copy->block.at()] = true;
        merged.emplace_back(value, instead);
    }
    for (std::size_t block = 0; block < touched.size(); ++block) {
        if (touched[block])
            std::erase_if(function.blocks[block].ops, [&](OpId op) { return gone[op.at()]; });
    }
    return merged;
}

} // namespace meshwright
