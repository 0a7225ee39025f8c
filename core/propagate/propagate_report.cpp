// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/propagator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace meshwright {

void Propagator::collectConflicts()
{
    std::set<std::tuple<ValueId, std::size_t, AxisRef>> seen;
    for (const FlowNode& node : m_graph.nodes) {
        if (!node.op.valid() || !anyAxesAt(node) || !commonMesh(node))
            continue;
        projectNode(node);
        for (std::size_t factor = 0; factor < node.rule.factors.size(); ++factor) {
            if (!node.rule.factors[factor].blocked)
                collectConflicts(node, factor, seen);
        }
    }
}

void Propagator::collectConflicts(
    const FlowNode& node, std::size_t factor, std::set<std::tuple<ValueId, std::size_t, AxisRef>>& seen)
{
    const AxisRefs* widest = nullptr;
    std::size_t owner = 0;
    for (std::size_t t = 0; t < node.slots.size(); ++t) {
        const auto& own = m_tensors[t].factors[factor];
        if (own && !own->axes.empty() && (widest == nullptr || shardCount(own->axes) > shardCount(*widest))) {
            widest = &own->axes;
            owner = t;
        }
    }
    if (widest == nullptr)
        return;
    for (std::size_t t = 0; t < node.slots.size(); ++t) {
        const auto& own = m_tensors[t].factors[factor];
        if (!own || own->axes == *widest)
            continue;
        std::size_t at = 0;
        while (at < own->axes.size() && at < widest->size() && own->axes[at] == (*widest)[at])
            ++at;
        const AxisRef missing = at < widest->size() ? (*widest)[at] : own->axes[at];
        const auto dim = static_cast<std::size_t>(node.dimOf[t * node.rule.factors.size() + factor]);
        if (!seen.insert({node.values[t], dim, missing}).second)
            continue;
        const auto ownerDim = static_cast<std::size_t>(node.dimOf[owner * node.rule.factors.size() + factor]);
        m_report.conflicts.push_back(
            {node.op, node.values[t], dim, missing, conflictReason(node, t, dim, missing, node.values[owner]), node.values[owner],
                annotationOf(node.slots[owner], ownerDim, missing), winnerOf(node.slots[t], dim, missing)});
    }
}

std::string Propagator::conflictReason(
    const FlowNode& node, std::size_t tensor, std::size_t dim, const AxisRef& axis, ValueId owner) const
{
    const std::string wanted = fmt::format("{} has it", valueText(m_function, owner));
    const auto& sharding = m_slots[node.slots[tensor]].sharding;
    if (!sharding || sharding->mesh < 0)
        return fmt::format("{}; the op cannot pass it on", wanted);
    const Mesh& mesh = meshOf(*sharding);
    for (std::size_t other = 0; other < sharding->dims.size(); ++other) {
        if (other != dim && collidesWithAny(axis, sharding->dims[other].axes))
            return fmt::format("{}; dim {} holds it{}", wanted, other, by(node.slots[tensor], other));
    }
    if (collidesWithAny(axis, sharding->replicated))
        return fmt::format("{}; it is kept replicated over {}", wanted, axisText(axis, mesh));
    if (collidesWithAny(axis, sharding->unreduced))
        return fmt::format("{}; it is partial over {}", wanted, axisText(axis, mesh));
    if (!sharding->dims[dim].axes.empty()) {
        std::vector<std::string> axes;
        for (const AxisRef& held : sharding->dims[dim].axes)
            axes.push_back(axisText(held, mesh));
        return fmt::format("{}; dim {} is split by {}{}{}", wanted, dim, fmt::join(axes, ", "), by(node.slots[tensor], dim),
            sharding->dims[dim].open ? "" : " and closed");
    }
    if (!sharding->dims[dim].open)
        return fmt::format("{}; dim {} is closed", wanted, dim);
    return fmt::format("{}; the op cannot pass it on", wanted);
}

std::string Propagator::annotationOf(std::uint32_t slot, std::size_t dim, const AxisRef& axis) const
{
    for (const std::uint32_t index : m_slots[slot].steps) {
        const Step& step = m_steps[index];
        if (step.dim == dim && (step.axis == axis || overlaps(step.axis, axis)))
            return m_labels[step.annotation];
    }
    return {};
}

std::string Propagator::winnerOf(std::uint32_t slot, std::size_t dim, const AxisRef& axis) const
{
    const auto& sharding = m_slots[slot].sharding;
    if (!sharding)
        return {};
    for (std::size_t other = 0; other < sharding->dims.size(); ++other) {
        if (other != dim && collidesWithAny(axis, sharding->dims[other].axes))
            return annotationOf(slot, other, axis);
    }
    return sharding->dims[dim].axes.empty() ? std::string() : annotationOf(slot, dim, sharding->dims[dim].axes.front());
}

std::string Propagator::by(std::uint32_t slot, std::size_t dim) const
{
    for (const std::uint32_t index : m_slots[slot].steps) {
        if (m_steps[index].dim == dim)
            return fmt::format(" ({})", m_labels[m_steps[index].annotation]);
    }
    return {};
}

std::optional<TensorSharding> Propagator::finalSharding(const std::optional<TensorSharding>& sharding, std::size_t rank) const
{
    if (m_strategy != PropagationStrategy::Pipeline)
        return sharding && sharding->mesh >= 0 ? sharding : std::nullopt;
    TensorSharding closed = sharding ? *sharding : TensorSharding::replicatedOf(rank);
    if (!sharding || closed.mesh < 0)
        closed.mesh = m_firstMesh;
    for (DimSharding& dim : closed.dims) {
        dim.open = false;
        dim.priority = 0;
    }
    return closed;
}

void Propagator::writeBack()
{
    const auto isOnMesh = [&](const SlotState& slot) {
        return slot.sharding && slot.sharding->mesh >= 0 && m_meshClass[static_cast<std::size_t>(slot.sharding->mesh)] >= 0;
    };
    const auto first = std::ranges::find_if(m_slots, isOnMesh);
    m_firstMesh = first == m_slots.end() ? 0 : first->sharding->mesh;
    for (const auto& [slot, replicated] : m_closed)
        m_slots[slot].sharding->replicated = replicated;
    for (std::size_t value = 0; value < m_function.values.size(); ++value)
        m_function.values[value].sharding
            = finalSharding(m_slots[m_graph.slotOf[value]].sharding, m_function.values[value].type.shape.size());
    for (const ComputationSlots& slots : m_graph.computations) {
        const OpId id = slots.op;
        auto& computation = m_function[id].as<ComputationAttributes>();
        for (std::size_t i = 0; i < computation.inShardings.size(); ++i) {
            if (const auto sharding = finalSharding(m_slots[slots.operands[i]].sharding, computation.inShardings[i].dims.size()))
                computation.inShardings[i] = *sharding;
        }
        for (std::size_t i = 0; i < computation.outShardings.size(); ++i) {
            if (const auto& sharding = m_function[m_function[id].results[i]].sharding)
                computation.outShardings[i] = *sharding;
        }
    }
    m_function.resultShardings.resize(m_graph.resultSlots.size());
    for (std::size_t i = 0; i < m_graph.resultSlots.size(); ++i) {
        auto& result = m_function.resultShardings[i];
        const bool isAsked = result.has_value();
        const Value& value = m_function[m_function.results()[i]];
        result = finalSharding(m_slots[m_graph.resultSlots[i]].sharding, value.type.shape.size());
        const bool isFinal = m_strategy == PropagationStrategy::Pipeline;
        if (isFinal && !isAsked && result && value.sharding && result->dims == value.sharding->dims) { // parts leave as parts
            result->mesh = value.sharding->mesh;
            result->unreduced = value.sharding->unreduced;
            result->unreducedKind = value.sharding->unreducedKind;
        }
    }
}

std::string Propagator::factorName(std::uint16_t factor)
{
    return factor < 18 ? std::string(1, static_cast<char>('i' + factor)) : fmt::format("z_{}", factor - 17);
}

std::string Propagator::stepText(const Step& step) const
{
    if (step.node == nullptr)
        return "by the user";
    const FlowNode& node = *step.node;
    if (!node.op.valid())
        return node.edge;
    constexpr std::array kKinds = {"pass-through", "reduction", "permutation", "need-replication"};
    return fmt::format("{}, factor {}, {}, {}", opName(m_function[node.op]), factorName(step.factor),
        step.aggressive ? "aggressive" : "basic", kKinds[static_cast<std::size_t>(node.rule.factors[step.factor].kind)]);
}

void Propagator::materialise(const std::vector<std::pair<ValueId, ValueId>>& merged)
{
    std::vector<ValueId> now(m_function.values.size());
    for (std::size_t i = 0; i < now.size(); ++i)
        now[i] = ValueId(i);
    for (const auto& [gone, instead] : merged)
        now[gone.at()] = instead;
    const auto current = [&](ValueId value) { return value.valid() ? now[value.at()] : value; };
    for (const Step& step : m_steps) {
        const auto& members = m_graph.slots[step.slot].members;
        if (members.empty() || (step.value.valid() && current(step.value) != step.value))
            continue; // asked of a result; or of a copy that is no more
        ShardingReason reason;
        reason.value = current(step.value);
        reason.dim = step.dim;
        reason.axis = step.axis;
        reason.annotation = m_labels.empty() ? std::string() : m_labels[step.annotation];
        reason.from = current(step.from);
        if (step.node != nullptr)
            reason.through = step.node->op;
        reason.step = stepText(step);
        reason.direction = step.direction;
        reason.aggressive = step.aggressive;
        reason.userPriority = step.userPriority;
        reason.opPriority = step.opPriority;
        if (reason.through.valid())
            reason.factor = factorName(step.factor);
        m_report.reasons.push_back(reason);
        for (const ValueId member : members) {
            if (members.size() == 1 || member == step.value)
                continue;
            reason.value = member;
            reason.from = step.value;
            reason.through = OpId();
            reason.direction = StepDirection::None;
            reason.factor.clear();
            reason.step = m_graph.slots[step.slot].bond;
            m_report.reasons.push_back(reason);
        }
    }
    std::set<std::tuple<ValueId, std::size_t, AxisRef>> seen;
    std::vector<ShardingConflict> conflicts;
    for (ShardingConflict& conflict : m_report.conflicts) {
        conflict.value = current(conflict.value);
        conflict.wantedBy = current(conflict.wantedBy);
        if (seen.insert({conflict.value, conflict.dim, conflict.axis}).second)
            conflicts.push_back(std::move(conflict));
    }
    m_report.conflicts = std::move(conflicts);
}

} // namespace meshwright
