// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/reshard_passes.h"

#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/reshard/reshard_steps.h"

#include <algorithm>

namespace meshwright {

namespace {

class Converter {
public:
    Converter(
        Function function, const std::vector<NamedMesh>& meshes, const CollectiveCost& cost, const CollectiveChoices& choices)
        : m_function(std::move(function))
        , m_meshes(meshes)
        , m_cost(cost)
        , m_choices(choices)
        , m_builder(m_function)
        , m_uses(useCounts(m_function))
        , m_instead(m_function.values.size())
        , m_planner(cost, choices.style)
        , m_cheapest(cost, ReshardStyle::Cheapest)
    {
    }

    Function run()
    {
        convertBlock(BlockId(std::int32_t{0}));
        if (m_choices.fuseReductions)
            eraseDeadOps(m_function); // all-reduces that became a part of what follows
        return std::move(m_function);
    }

private:
    const Mesh& meshOf(const TensorSharding& sharding) const { return m_meshes[static_cast<std::size_t>(sharding.mesh)].mesh; }

    /// Moves the ops of a block over one by one, with collectives for Reshards between them.
    void convertBlock(BlockId block)
    {
        const std::vector<OpId> ops = std::move(m_function[block].ops);
        m_function[block].ops.clear();
        for (const OpId id : ops) {
            replaceIn(m_function[id].operands);
            const std::vector<BlockId> bodies = m_function[id].bodies;
            for (const BlockId body : bodies)
                convertBlock(body);
            m_builder.setBlock(block);
            if (m_function[id].kind != OpKind::Reshard || !convert(id))
                m_function[block].ops.push_back(id);
        }
        replaceIn(m_function[block].results);
    }

    void replaceIn(std::vector<ValueId>& values) const
    {
        for (ValueId& value : values) {
            if (value.at() < m_instead.size() && m_instead[value.at()].valid())
                value = m_instead[value.at()];
        }
    }

    bool convert(OpId id)
    {
        const Op op = m_function[id]; // the table grows below
        const ValueId result = op.results.front();
        if (makesPartialSum(op) || !m_function[result].sharding)
            return false;
        const TensorSharding to = *m_function[result].sharding;
        ValueId value = op.operands.front();
        TensorSharding from = layoutOf(value, to.mesh);
        fuseWithReduction(value, from);
        const ReshardPlan* plan = planFor(value, from, to);
        if (plan == nullptr)
            return false;
        const TensorType type = m_function[result].type;
        const Role role = m_function[result].role;
        m_builder.setPhase(op.phase);
        for (const ReshardStep& step : plan->steps) {
            CollectiveAttributes attributes = step.attributes;
            attributes.cause = op.as<CollectiveAttributes>().cause;
            attributes.sources.clear(); // they follow from the layouts
            attributes.resultShape.clear();
            if (step.kind == OpKind::CollectivePermute)
                attributes.resultShape = type.shape;
            value = m_builder.add(step.kind, {value}, std::move(attributes));
            m_function[value].type = type;
            m_function[value].sharding = step.result;
            m_function[value].role = role;
        }
        m_uses.resize(m_function.values.size(), 1);
        m_uses[value.at()] += m_uses[result.at()] - 1;
        m_instead[result.at()] = value;
        return true;
    }

    TensorSharding layoutOf(ValueId value, std::int32_t mesh) const
    {
        if (m_function[value].sharding)
            return *m_function[value].sharding;
        TensorSharding whole = TensorSharding::replicatedOf(m_function[value].type.shape.size());
        whole.mesh = mesh;
        return whole;
    }

    /// Starts before the all-reduce that makes the value, if nothing else uses it.
    void fuseWithReduction(ValueId& value, TensorSharding& from) const
    {
        const OpId producer = m_function[value].producer;
        if (!m_choices.fuseReductions || !producer.valid() || m_function[producer].kind != OpKind::AllReduce
            || m_uses[value.at()] != 1)
            return;
        const auto& reduction = m_function[producer].as<CollectiveAttributes>();
        value = m_function[producer].operands.front();
        from.unreduced.insert(from.unreduced.end(), reduction.axes.begin(), reduction.axes.end());
        std::sort(from.unreduced.begin(), from.unreduced.end());
        from.unreducedKind = reduction.kind;
    }

    const ReshardPlan* planFor(ValueId value, const TensorSharding& from, const TensorSharding& to)
    {
        const TensorType& type = m_function[value].type;
        const std::int64_t bytes = byteSize(type.dtype);
        if (meshOf(from) != meshOf(to)) {
            m_across = planShardyReshard(type.shape, bytes, from, meshOf(from), to, meshOf(to), m_cost);
            return m_across ? &*m_across : nullptr;
        }
        const ReshardPlan& plan = m_planner.plan(type.shape, bytes, from, to, meshOf(to));
        if (m_choices.evenOnly
            && !std::ranges::all_of(plan.steps, [&](const ReshardStep& step) { return isEven(step.result, type.shape); }))
            return &m_cheapest.plan(type.shape, bytes, from, to, meshOf(to));
        return &plan;
    }

    Function m_function;
    const std::vector<NamedMesh>& m_meshes;
    const CollectiveCost& m_cost;
    CollectiveChoices m_choices;
    Builder m_builder;
    std::vector<std::size_t> m_uses; ///< of each value; what took a Reshard's place has its uses too
    std::vector<ValueId> m_instead; ///< what the collectives made in the place of a Reshard's result
    ReshardPlanner m_planner;
    ReshardPlanner m_cheapest;
    std::optional<ReshardPlan> m_across; ///< the last one between two device orders
};

} // namespace

Function reshardsToCollectives(
    Function function, const std::vector<NamedMesh>& meshes, const CollectiveCost& cost, const CollectiveChoices& choices)
{
    return Converter(std::move(function), meshes, cost, choices).run();
}

std::vector<CollectiveUse> collectivesOnArrays(const Function& function, const std::vector<NamedMesh>& meshes)
{
    return collectivesOf(
        function,
        [&](const Value& result) -> const Mesh& {
            return meshes[static_cast<std::size_t>(result.sharding ? result.sharding->mesh : 0)].mesh;
        },
        [](const Value& payload) {
            return payload.sharding ? localBytes(payload.type.shape, byteSize(payload.type.dtype), *payload.sharding)
                                    : payload.type.bytes();
        });
}

bool makesPartialSum(const Op& op)
{
    return op.kind == OpKind::Reshard
        && (!op.as<CollectiveAttributes>().axes.empty() || !op.as<CollectiveAttributes>().perDim.empty());
}

} // namespace meshwright
