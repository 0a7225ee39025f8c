// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/device_program.h"
#include "core/partition/partitioner.h"
#include "core/partition/ring_attention.h"

#include <fmt/format.h>

namespace meshwright {

namespace {

bool isAttention(const Op& op)
{
    return op.kind == OpKind::Attention || op.kind == OpKind::AttentionGrad;
}

} // namespace

/// True for attention with some of the keys, which only devices have.
bool Partitioner::refusePart(const Op& op)
{
    if (!isAttention(op) || !attentionForm(op.as<OtherAttributes>())->isPart())
        return false;
    m_problems.push_back({"MW1265",
        fmt::format(
            "{} in \"{}\" is a part of one, by the keys of one device: the program is one on shards", opName(op), m_source.name),
        "partition the program that it was made from"});
    for (const ValueId result : op.results)
        makeUp(result);
    return true;
}

/// Context parallelism: where the same axes split the sequence of queries and keys, and the op is to exchange them in another way than by gathering
/// keys and values, the axes of the keys' factor become those of the queries' (ring), or those move to the heads (Ulysses). Of a ring, the operand
/// that every device needs whole all the same: the positions of keys, by which it counts.
std::optional<std::size_t> Partitioner::exchangeContext(const Op& op, const OpShardingRule& rule, OpLayout& layout)
{
    if (!isAttention(op))
        return std::nullopt;
    const AttentionForm form = *attentionForm(op.as<OtherAttributes>());
    const Shape& shape = globalShape(op.operands[0]);
    const std::size_t at = shape.size() - 4; // of the sequences
    const std::size_t queries = rule.operands[0][at].front();
    const std::size_t keys = rule.operands[1][at].front();
    const std::size_t groups = rule.operands[0][at + 1].front();
    AxisRefs& axes = layout.factorAxes[queries];
    if (form.context == ContextExchange::Gather || axes.empty() || m_source[op.operands[1]].sharding->dims[at].axes != axes)
        return std::nullopt;
    const std::int64_t devices = shardCount(axes);
    const auto warn = [&](const std::string& why, const char* fix) {
        if (op.kind != OpKind::Attention) // of its derivative it was said there
            return std::nullopt;
        Problem warning;
        warning.id = "MW1219";
        warning.severity = Severity::Warning;
        warning.message = fmt::format("{} gathers keys and values over {}: {}", opName(op), axesText(axes, meshOfOp(op)), why);
        warning.fix = fix;
        m_device.warnings.push_back(std::move(warning));
        return std::nullopt;
    };
    if (form.context == ContextExchange::Ring) {
        const std::int64_t length = globalShape(op.operands[1])[at];
        if (length % devices != 0 || shape[at] % devices != 0)
            return warn(fmt::format("{} keys and {} queries do not divide by {} devices", length, shape[at], devices),
                "choose a length of sequence that is a multiple of the devices along the axes");
        layout.factorAxes[keys] = axes;
        const AttentionPlaces places(form, op.kind);
        return form.causal ? std::optional(places.positions + 1) : std::nullopt;
    }
    const std::int64_t split = shardCount(layout.factorAxes[groups]);
    if (shape[at + 1] % (split * devices) != 0)
        return warn(fmt::format("{} heads with keys of their own do not divide by {} devices", shape[at + 1] / split, devices),
            "take `context: ring`, or fewer devices along the axes");
    for (const AxisRef& axis : axes)
        appendMerging(layout.factorAxes[groups], axis);
    layout.reduced = withoutAxes(layout.reduced, axes);
    axes.clear();
    return std::nullopt;
}

/// Attention whose keys are split. False for everything else.
bool Partitioner::emitRing(const Op& op, const std::vector<ValueId>& operands, const std::vector<TensorSharding>& wanted,
    const std::vector<TensorSharding>& layouts)
{
    if (!isAttention(op))
        return false;
    const std::size_t at = globalShape(op.operands[0]).size() - 4;
    const AxisRefs& axes = wanted[1].dims[at].axes;
    if (axes.empty())
        return false;
    m_builder.setPhase(op.phase);
    DeviceOps ops = deviceOps(wanted[0]);
    std::vector<RingAttention::Array> given;
    for (std::size_t i = 0; i < operands.size(); ++i)
        given.push_back({operands[i], wanted[i], globalShape(op.operands[i])});
    std::vector<RingAttention::Array> results;
    for (std::size_t i = 0; i < op.results.size(); ++i)
        results.push_back({{}, layouts[i], globalShape(op.results[i])});
    const std::vector<ValueId> made = RingAttention(ops, op, axes).emit(std::move(given), results);
    for (std::size_t i = 0; i < op.results.size(); ++i)
        define(op.results[i], layouts[i], made[i]);
    return true;
}

} // namespace meshwright
