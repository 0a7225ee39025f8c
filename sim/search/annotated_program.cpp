// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/op_graph.h"

#include "core/program/transform.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

namespace meshwright::sim {

namespace {

/// What is written for one mesh cannot be laid out on others.
bool isForOneMesh(const Function& function)
{
    bool found = false;
    forEachOp(function, [&](OpId id) {
        const Op& op = function[id];
        found = found || isCollective(op.kind) || op.kind == OpKind::Send || op.kind == OpKind::Receive
            || (op.kind == OpKind::Computation && op.as<ComputationAttributes>().name.empty());
    });
    return found;
}

/// Writes constraints into a function's blocks, one for each array and layout.
class ConstraintWriter {
public:
    ConstraintWriter(Function& function, std::vector<OpId>& ops, BlockId block)
        : m_function(function)
        , m_ops(ops)
        , m_block(block)
    {
    }

    ValueId constrained(ValueId value, const GridLayout& layout, TensorSharding sharding, Phase phase)
    {
        const auto [known, isNew] = m_known.try_emplace({value, layout}, ValueId());
        if (!isNew)
            return known->second;
        const ValueId made(m_function.values.size());
        const OpId op(m_function.ops.size());
        Value result;
        result.type = m_function[value].type;
        result.role = m_function[value].role;
        result.sharding = sharding;
        result.block = m_block;
        result.producer = op;
        m_function.values.push_back(std::move(result));
        Op constraint;
        constraint.kind = OpKind::ShardingConstraint;
        constraint.phase = phase;
        constraint.operands = {value};
        constraint.results = {made};
        constraint.attributes = ConstraintAttributes{std::move(sharding), {}};
        constraint.block = m_block;
        m_function.ops.push_back(std::move(constraint));
        m_ops.push_back(op);
        known->second = made;
        return made;
    }

private:
    Function& m_function;
    std::vector<OpId>& m_ops;
    BlockId m_block;
    std::map<std::pair<ValueId, GridLayout>, ValueId> m_known;
};

} // namespace

Result<Function> withoutLayouts(const Function& function)
{
    if (isForOneMesh(function))
        return Problem{"MW1782",
            fmt::format("\"{}\" is written for one mesh: it has manual computations or collectives", function.name),
            "search a program on whole arrays, as jax.jit(f).lower(..).as_text() prints it"};
    Function free = function;
    free.shardingGroups.clear();
    free.resultShardings.clear();
    for (Value& value : free.values) {
        value.sharding.reset();
        value.annotation.clear();
    }
    std::vector<OpId> constraints;
    forEachOp(free, [&](OpId op) {
        if (free[op].kind == OpKind::ShardingConstraint || free[op].kind == OpKind::PropagationBarrier)
            constraints.push_back(op);
    });
    for (const OpId op : constraints)
        replaceUses(free, free[op].results.front(), free[op].operands.front());
    eraseDeadOps(free);
    return compacted(std::move(free));
}

Function OpGraph::annotated(const std::vector<std::uint32_t>& choices, std::int32_t mesh) const
{
    Function result = m_function;
    const auto lies = [&](ValueId value) -> const GridLayout& {
        const Source& source = m_sources[value.at()];
        return source.layouts[choices[source.variable]];
    };
    for (std::size_t i = 0; i < m_function.values.size(); ++i) {
        // Broadcasts find their layout from their users.
        if (!m_sources[i].isFree() && m_aliases[i] == ValueId(i))
            result.values[i].sharding = shardingOf(lies(ValueId(i)), mesh);
    }
    std::map<OpId, const GridLayout*> landings;
    for (const auto& [op, whole] : m_landings) {
        const ValueId made = m_function[op].results.front();
        const GridLayout& layout = whole[choices[m_sources[made.at()].variable]];
        if (layout == lies(made))
            continue;
        landings[op] = &lies(made);
        result[made].sharding = shardingOf(layout, mesh);
    }
    std::map<OpId, std::vector<const Need*>> ofOps;
    std::map<BlockId, std::vector<const Need*>> ofBlocks;
    for (const Need& wanted : m_needs)
        (wanted.op.valid() ? ofOps[wanted.op] : ofBlocks[wanted.block]).push_back(&wanted);
    std::vector<ValueId> standsFor; // of each value: its scattered sum
    for (std::size_t i = 0; i < m_function.values.size(); ++i)
        standsFor.emplace_back(i);
    for (std::size_t b = 0; b < m_function.blocks.size(); ++b) {
        const BlockId block(b);
        std::vector<OpId> ops;
        ConstraintWriter writer(result, ops, block);
        const auto satisfy = [&](const Need& wanted, ValueId value, Phase phase) {
            const GridLayout& layout = wanted.layouts[choices[wanted.variable]];
            const bool there = m_sources[wanted.value.at()].isFree() || layout == lies(wanted.value);
            return there ? value : writer.constrained(value, layout, shardingOf(layout, mesh), phase);
        };
        for (const OpId op : m_function.blocks[b].ops) {
            for (ValueId& operand : result[op].operands)
                operand = standsFor[operand.at()];
            for (const Need* wanted : ofOps[op])
                result[op].operands[wanted->index] = satisfy(*wanted, result[op].operands[wanted->index], m_function[op].phase);
            ops.push_back(op);
            if (const auto landing = landings.find(op); landing != landings.end()) {
                const ValueId made = m_function[op].results.front();
                const ValueId scattered
                    = writer.constrained(made, *landing->second, shardingOf(*landing->second, mesh), m_function[op].phase);
                standsFor[made.at()] = scattered;
                result[scattered].name = std::exchange(result[made].name, {});
            }
        }
        for (ValueId& value : result.blocks[b].results)
            value = standsFor[value.at()];
        for (const Need* wanted : ofBlocks[block])
            result.blocks[b].results[wanted->index] = satisfy(*wanted, result.blocks[b].results[wanted->index], Phase::Update);
        result.blocks[b].ops = std::move(ops);
    }
    result.resultShardings.assign(result.results().size(), std::nullopt);
    for (std::size_t i = 0; i < result.results().size(); ++i)
        result.resultShardings[i] = result[result.results()[i]].sharding;
    return result;
}

} // namespace meshwright::sim
