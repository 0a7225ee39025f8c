// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/reshard_inserter.h"

#include "core/program/shape_rules.h"

namespace meshwright {

void ReshardInserter::insertInRepeat(const Op& op)
{
    const auto& attributes = op.as<RepeatAttributes>();
    const Block& body = m_source[op.bodies.front()];
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const bool isStacked = i >= attributes.carries && i < attributes.carries + attributes.stacked;
        operands.push_back(bring(m_now[op.operands[i].at()],
            isStacked ? stacked(m_source[body.arguments[i]].sharding) : m_source[body.arguments[i]].sharding, "repeat"));
    }
    const OpId repeat = m_builder.beginRepeat(attributes, std::move(operands));
    std::vector<MaybeSharding> yielded;
    for (std::size_t i = 0; i < body.results.size(); ++i)
        yielded.push_back(
            i < attributes.carries ? m_source[body.arguments[i]].sharding : sliceOf(m_source[op.results[i]].sharding));
    fillBody(body, yielded, "the loop");
    m_builder.endRepeat(repeat);
    noteResults(op, repeat);
}

void ReshardInserter::fillBody(const Block& body, const std::vector<MaybeSharding>& yielded, const std::string& consumer)
{
    const std::vector<ValueId> arguments = m_target[m_builder.block()].arguments;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        copyNotes(body.arguments[i], arguments[i]);
        m_now[body.arguments[i].at()] = arguments[i];
    }
    insertInBlock(body);
    std::vector<ValueId> results;
    for (std::size_t i = 0; i < body.results.size(); ++i)
        results.push_back(bring(m_now[body.results[i].at()], yielded[i], consumer));
    m_builder.setResults(std::move(results));
}

void ReshardInserter::addBody(OpId target, BlockId body, const std::vector<MaybeSharding>& yielded, const std::string& consumer)
{
    m_builder.beginBody(target, typesOf(m_source[body].arguments));
    fillBody(m_source[body], yielded, consumer);
    m_builder.setBlock(m_target[target].block);
}

void ReshardInserter::finishOp(const Op& op, OpId copy)
{
    m_builder.endOp(copy, typesOf(op.results));
    noteResults(op, copy);
}

void ReshardInserter::noteResults(const Op& op, OpId copy)
{
    m_target[copy].kept = op.kept;
    const std::vector<ValueId>& results = m_target[copy].results;
    for (std::size_t i = 0; i < results.size(); ++i) {
        copyNotes(op.results[i], results[i]);
        m_now[op.results[i].at()] = results[i];
    }
}

std::vector<ReshardInserter::MaybeSharding> ReshardInserter::shardingsOf(const std::vector<ValueId>& values) const
{
    std::vector<MaybeSharding> shardings;
    for (const ValueId value : values)
        shardings.push_back(m_source[value].sharding);
    return shardings;
}

void ReshardInserter::insertInWhile(const Op& op)
{
    const Block& body = m_source[op.bodies.back()];
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < op.operands.size(); ++i)
        operands.push_back(bring(m_now[op.operands[i].at()], m_source[body.arguments[i]].sharding, "while"));
    const OpId loop = m_builder.beginOp(op.kind, std::move(operands), op.attributes);
    addBody(loop, op.bodies.front(), {std::nullopt}, "the loop's condition");
    addBody(loop, op.bodies.back(), shardingsOf(op.results), "the loop");
    finishOp(op, loop);
}

void ReshardInserter::insertInBarrier(const Op& op)
{
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < op.operands.size(); ++i)
        operands.push_back(bring(m_now[op.operands[i].at()], m_source[op.results[i]].sharding, opName(op.kind)));
    const OpId barrier = m_builder.beginOp(op.kind, std::move(operands), op.attributes);
    finishOp(op, barrier);
}

void ReshardInserter::insertInCase(const Op& op)
{
    std::vector<ValueId> operands;
    for (const ValueId operand : op.operands)
        operands.push_back(bring(m_now[operand.at()], m_source[operand].sharding, "case"));
    const OpId branches = m_builder.beginOp(op.kind, std::move(operands), op.attributes);
    for (const BlockId body : op.bodies)
        addBody(branches, body, shardingsOf(op.results), "case");
    finishOp(op, branches);
}

void ReshardInserter::insertInComputation(const Op& op)
{
    const auto& computation = op.as<ComputationAttributes>();
    const Block& body = m_source[op.bodies.front()];
    const std::string name = computation.name.empty() ? "manual_computation" : computation.name;
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < op.operands.size(); ++i)
        operands.push_back(bring(m_now[op.operands[i].at()],
            computation.inShardings.empty() ? m_source[body.arguments[i]].sharding : computation.inShardings[i], name));
    const OpId block = m_builder.beginOp(op.kind, std::move(operands), op.attributes);
    std::vector<MaybeSharding> yielded = shardingsOf(op.results);
    for (MaybeSharding& sharding : yielded) {
        if (sharding)
            sharding = withoutManualAxes(*sharding, computation.manualAxes);
    }
    addBody(block, op.bodies.front(), yielded, name);
    finishOp(op, block);
}

ReshardInserter::MaybeSharding ReshardInserter::stacked(MaybeSharding slice)
{
    if (slice)
        slice->dims.insert(slice->dims.begin(), DimSharding{});
    return slice;
}

ReshardInserter::MaybeSharding ReshardInserter::sliceOf(MaybeSharding whole)
{
    if (whole)
        whole->dims.erase(whole->dims.begin());
    return whole;
}

} // namespace meshwright
