// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/propagator.h"

#include "core/program/shape_rules.h"
#include "core/program/transform.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

/// All dimensions open and nothing else said: as good as no sharding.
bool saysNothing(const TensorSharding& sharding)
{
    return sharding.replicated.empty() && sharding.unreduced.empty()
        && std::all_of(
            sharding.dims.begin(), sharding.dims.end(), [](const DimSharding& dim) { return dim.open && dim.axes.empty(); });
}

} // namespace

void Propagator::adoptConstraints()
{
    std::vector<std::vector<OpId>> constraintsOf(m_function.values.size());
    std::vector<OpId> constraints;
    forEachOp(m_function, [&](OpId id) {
        Op& op = m_function[id];
        if (op.kind != OpKind::ShardingConstraint)
            return;
        constraints.push_back(id);
        constraintsOf[op.operands.front().at()].push_back(id);
        Value& result = m_function[op.results.front()];
        if (!result.sharding) {
            result.sharding = op.as<ConstraintAttributes>().sharding;
            result.annotation = op.as<ConstraintAttributes>().origin;
        }
    });
    if (constraints.empty())
        return;
    redirectChains(constraints, constraintsOf);
    for (const OpId id : constraints) {
        const Op& op = m_function[id];
        const auto& wanted = op.as<ConstraintAttributes>();
        Value& input = m_function[op.operands.front()];
        const auto& others = constraintsOf[op.operands.front().at()];
        const bool closed = std::all_of(
            wanted.sharding.dims.begin(), wanted.sharding.dims.end(), [](const DimSharding& dim) { return !dim.open; });
        const bool alone = std::all_of(others.begin(), others.end(),
            [&](OpId other) { return m_function[other].as<ConstraintAttributes>().sharding == wanted.sharding; });
        if (closed && alone && !input.sharding) {
            input.sharding = wanted.sharding;
            input.annotation = wanted.origin;
        }
    }
}

void Propagator::adoptComputations()
{
    forEachOp(m_function, [&](OpId id) {
        const Op& op = m_function[id];
        if (op.kind != OpKind::Computation)
            return;
        const auto& computation = op.as<ComputationAttributes>();
        const auto adopt = [&](ValueId value, TensorSharding sharding, std::string origin) {
            if (m_function[value].sharding)
                return;
            m_function[value].sharding = std::move(sharding);
            m_function[value].annotation = std::move(origin);
        };
        for (std::size_t i = 0; i < computation.inShardings.size(); ++i)
            adopt(m_function[op.bodies.front()].arguments[i],
                withoutManualAxes(computation.inShardings[i], computation.manualAxes), fmt::format("in_sharding {}", i));
        for (std::size_t i = 0; i < computation.outShardings.size(); ++i)
            adopt(op.results[i], computation.outShardings[i], fmt::format("out_sharding {}", i));
    });
}

void Propagator::redirectChains(const std::vector<OpId>& constraints, const std::vector<std::vector<OpId>>& constraintsOf)
{
    const std::vector<std::size_t> uses = useCounts(m_function);
    for (const OpId head : constraints) {
        const ValueId input = m_function[head].operands.front();
        const OpId producer = m_function[input].producer;
        const bool startsChain = !producer.valid() || m_function[producer].kind != OpKind::ShardingConstraint;
        if (!startsChain || m_function[input].sharding || constraintsOf[input.at()].size() != 1 || uses[input.at()] < 2)
            continue;
        OpId tail = head;
        for (;;) {
            const ValueId result = m_function[tail].results.front();
            if (uses[result.at()] != 1 || constraintsOf[result.at()].size() != 1)
                break;
            tail = constraintsOf[result.at()].front();
        }
        if (tail == head)
            continue;
        const ValueId end = m_function[tail].results.front();
        Block& block = m_function[m_function[tail].block];
        bool after = false;
        for (const OpId op : block.ops) {
            if (after)
                std::replace(m_function[op].operands.begin(), m_function[op].operands.end(), input, end);
            after = after || op == tail;
        }
        std::replace(block.results.begin(), block.results.end(), input, end);
    }
}

Problems Propagator::checkShardings() const
{
    Problems problems;
    const auto check = [&](const TensorSharding& sharding, std::size_t rank, const std::string& what) {
        const auto fail = [&](const std::string& why) {
            problems.push_back(
                {"MW1203", fmt::format("the sharding of {} {}", what, why), "write it for this value and its mesh"});
        };
        if (sharding.dims.size() != rank)
            return fail(fmt::format("has {} dimensions, the value has {}", sharding.dims.size(), rank));
        if (sharding.mesh < 0 || static_cast<std::size_t>(sharding.mesh) >= m_meshes.size())
            return fail("names a mesh that is not there");
        const auto axes = static_cast<std::int32_t>(m_meshes[static_cast<std::size_t>(sharding.mesh)].mesh.axes().size());
        const auto unknown = [&](const AxisRefs& refs) {
            return std::any_of(refs.begin(), refs.end(), [&](const AxisRef& ref) { return ref.axis < 0 || ref.axis >= axes; });
        };
        bool bad = unknown(sharding.replicated) || unknown(sharding.unreduced);
        for (const DimSharding& dim : sharding.dims)
            bad = bad || unknown(dim.axes);
        if (bad)
            fail("names an axis that its mesh does not have");
    };
    for (std::size_t i = 0; i < m_function.values.size(); ++i) {
        const Value& value = m_function.values[i];
        if (value.sharding)
            check(*value.sharding, value.type.shape.size(), valueText(m_function, ValueId(i)));
    }
    for (std::size_t i = 0; i < std::min(m_function.resultShardings.size(), m_function.results().size()); ++i) {
        if (m_function.resultShardings[i])
            check(*m_function.resultShardings[i], m_function[m_function.results()[i]].type.shape.size(),
                fmt::format("result {}", i));
    }
    return problems;
}

Problems Propagator::initialise()
{
    Problems problems;
    m_slots.resize(m_graph.slots.size());
    m_nodeStates.resize(m_graph.nodes.size());
    for (std::uint32_t slot = 0; slot < m_slots.size(); ++slot) {
        ValueId first;
        for (const ValueId member : m_graph.slots[slot].members) {
            const Value& value = m_function[member];
            if (!value.sharding)
                continue;
            auto& sharding = m_slots[slot].sharding;
            if (!sharding || saysNothing(*sharding)) {
                sharding = value.sharding;
                first = member;
            } else if (!saysNothing(*value.sharding) && *value.sharding != *sharding
                && m_graph.slots[slot].bond == std::string_view("sharding group")) {
                problems.push_back({"MW1201",
                    fmt::format("{} and {} are in one sharding group, but are annotated differently: {} and {}",
                        valueText(m_function, first), valueText(m_function, member), shardyText(*sharding, meshOf(*sharding)),
                        shardyText(*value.sharding, meshOf(*value.sharding))),
                    "give both one sharding, or take one of them out of the group"});
            }
        }
        if (first.valid())
            addUserSteps(
                slot, first, m_function[first].annotation.empty() ? valueText(m_function, first) : m_function[first].annotation);
    }
    for (std::size_t i = 0; i < m_graph.resultSlots.size(); ++i) {
        const std::uint32_t slot = m_graph.resultSlots[i];
        if (i < m_function.resultShardings.size())
            m_slots[slot].sharding = m_function.resultShardings[i];
        const bool named = i < m_function.resultNames.size() && !m_function.resultNames[i].empty();
        addUserSteps(slot, ValueId(), named ? fmt::format("result {}", m_function.resultNames[i]) : fmt::format("result {}", i));
    }
    for (const ComputationSlots& slots : m_graph.computations) {
        const auto& shardings = m_function[slots.op].as<ComputationAttributes>().inShardings;
        for (std::size_t i = 0; i < shardings.size(); ++i) {
            m_slots[slots.operands[i]].sharding = shardings[i];
            addUserSteps(slots.operands[i], ValueId(), fmt::format("in_sharding {}", i));
        }
    }
    for (const ValueId value : m_graph.stacked) {
        auto& sharding = m_slots[m_graph.slotOf[value.at()]].sharding;
        if (!sharding) {
            sharding = TensorSharding::openOf(m_function[value].type.shape.size());
            sharding->mesh = -1; // until an axis comes
        }
        sharding->dims.front().open = false;
    }
    for (SlotState& slot : m_slots)
        slot.hasAxes = slot.sharding && anyAxes(*slot.sharding);
    return problems;
}

void Propagator::addUserSteps(std::uint32_t slot, ValueId value, std::string label)
{
    const auto& sharding = m_slots[slot].sharding;
    if (!sharding)
        return;
    m_labels.push_back(std::move(label));
    for (std::size_t dim = 0; dim < sharding->dims.size(); ++dim) {
        for (const AxisRef& axis : sharding->dims[dim].axes) {
            Step step;
            step.slot = slot;
            step.value = value;
            step.annotation = static_cast<std::uint32_t>(m_labels.size() - 1);
            step.dim = static_cast<std::uint16_t>(dim);
            step.axis = axis;
            addStep(step);
        }
    }
}

void Propagator::addStep(const Step& step)
{
    m_slots[step.slot].steps.push_back(static_cast<std::uint32_t>(m_steps.size()));
    m_steps.push_back(step);
}

} // namespace meshwright
