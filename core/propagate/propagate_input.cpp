// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/propagator.h"

#include "core/program/body_collective.h"
#include "core/program/shape_rules.h"
#include "core/program/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace meshwright {

namespace {

/// All dimensions open and nothing else said: as good as no sharding.
bool saysNothing(const TensorSharding& sharding)
{
    return sharding.replicated.empty() && sharding.unreduced.empty()
        && std::all_of(
            sharding.dims.begin(), sharding.dims.end(), [](const DimSharding& dim) { return dim.open && dim.axes.empty(); });
}

/// Finds the shardings in manual computations that name an axis which is bound there: each device has its own piece along it already.
class ManualAxisCheck {
public:
    ManualAxisCheck(const Function& function, const std::vector<NamedMesh>& meshes)
        : m_function(function)
        , m_meshes(meshes)
    {
    }

    Problems run()
    {
        visit(BlockId(std::int32_t{0}));
        return std::move(m_problems);
    }

private:
    void visit(BlockId block)
    {
        for (const OpId id : m_function[block].ops) {
            const Op& op = m_function[id];
            for (const ValueId result : op.results) {
                if (m_function[result].sharding)
                    check(*m_function[result].sharding, valueText(m_function, result));
            }
            if (const auto* constraint = std::get_if<ConstraintAttributes>(&op.attributes))
                check(constraint->sharding, "a constraint on " + valueText(m_function, op.operands.front()));
            if (isManual(op))
                enter(op);
            else
                std::for_each(op.bodies.begin(), op.bodies.end(), [&](BlockId body) { visit(body); });
        }
    }

    void enter(const Op& op)
    {
        const auto& computation = op.as<ComputationAttributes>();
        for (const TensorSharding& sharding : computation.inShardings)
            check(sharding, "an in_sharding");
        for (const TensorSharding& sharding : computation.outShardings)
            check(sharding, "an out_sharding");
        for (const auto& [shardings, what] :
            {std::pair(&computation.inShardings, "in_sharding"), std::pair(&computation.outShardings, "out_sharding")}) {
            for (std::size_t i = 0; i < shardings->size(); ++i)
                checkOrder((*shardings)[i], computation.manualAxes, fmt::format("{} {}", what, i));
        }
        const auto& shardings = computation.inShardings.empty() ? computation.outShardings : computation.inShardings;
        const std::size_t before = m_bound.size();
        for (const std::int32_t axis : computation.manualAxes) {
            if (shardings.empty())
                break;
            const std::pair bound(shardings.front().mesh, axis);
            if (std::find(m_bound.begin(), m_bound.end(), bound) != m_bound.end() && m_reported.insert(bound).second)
                m_problems.push_back({"MW1204",
                    fmt::format("manual_axes names \"{}\", which a manual computation around it has bound",
                        m_meshes[static_cast<std::size_t>(bound.first)].mesh.axes()[static_cast<std::size_t>(axis)].name),
                    "leave it out: it is manual there already"});
            m_bound.push_back(bound);
        }
        visit(op.bodies.front());
        m_bound.resize(before);
    }

    /// A device's piece along the manual axes is cut further along the others, not the other way round.
    void checkOrder(const TensorSharding& sharding, const std::vector<std::int32_t>& manualAxes, const std::string& what)
    {
        for (std::size_t dim = 0; dim < sharding.dims.size(); ++dim) {
            const AxisRefs& axes = sharding.dims[dim].axes;
            const auto isManualAxis
                = [&](const AxisRef& axis) { return std::binary_search(manualAxes.begin(), manualAxes.end(), axis.axis); };
            const auto automatic = std::find_if_not(axes.begin(), axes.end(), isManualAxis);
            const auto manual = std::find_if(automatic, axes.end(), isManualAxis);
            if (manual == axes.end())
                continue;
            const Mesh& mesh = m_meshes[static_cast<std::size_t>(sharding.mesh)].mesh;
            m_problems.push_back({"MW1205",
                fmt::format("{} of a manual computation splits dim {} by the manual axis {} inside the automatic axis {}", what,
                    dim, axisText(*manual, mesh), axisText(*automatic, mesh)),
                "list the manual axes of a dimension first"});
        }
    }

    void check(const std::optional<TensorSharding>& sharding, const std::string& what)
    {
        if (!sharding || m_bound.empty())
            return;
        AxisRefs named = sharding->unreduced;
        for (const DimSharding& dim : sharding->dims)
            named.insert(named.end(), dim.axes.begin(), dim.axes.end());
        for (const AxisRef& axis : named) {
            if (std::find(m_bound.begin(), m_bound.end(), std::pair(sharding->mesh, axis.axis)) == m_bound.end())
                continue;
            if (!m_reported.emplace(sharding->mesh, axis.axis).second)
                return;
            const Mesh& mesh = m_meshes[static_cast<std::size_t>(sharding->mesh)].mesh;
            m_problems.push_back({"MW1204",
                fmt::format(
                    "the sharding of {} names {}, which a manual computation around it has bound", what, axisText(axis, mesh)),
                "name automatic axes only; move data along manual axes by collectives"});
            return;
        }
    }

    const Function& m_function;
    const std::vector<NamedMesh>& m_meshes;
    std::vector<std::pair<std::int32_t, std::int32_t>> m_bound; ///< mesh and axis
    std::set<std::pair<std::int32_t, std::int32_t>> m_reported; ///< likewise: once is enough
    Problems m_problems;
};

/// The members' shardings, where some say different things; the first one then.
std::optional<TensorSharding> disagreement(const Function& function, const std::vector<ValueId>& group)
{
    std::optional<TensorSharding> first;
    for (const ValueId member : group) {
        const auto& sharding = function[member].sharding;
        if (!sharding || saysNothing(*sharding))
            continue;
        if (first && *sharding != *first)
            return first;
        if (!first)
            first = sharding;
    }
    return std::nullopt;
}

} // namespace

/// The value behind an open sharding constraint, which all its uses go to.
ValueId Propagator::openedFor(ValueId value, std::int32_t mesh)
{
    TensorSharding open = TensorSharding::openOf(m_function[value].type.shape.size());
    open.mesh = mesh;
    const ValueId opened(m_function.values.size());
    const OpId id(m_function.ops.size());
    const BlockId block = m_function[value].block;
    const OpId producer = m_function[value].producer;
    replaceUses(m_function, value, opened);
    Value result;
    result.type = m_function[value].type;
    result.role = m_function[value].role;
    result.sharding = open;
    result.block = block;
    result.producer = id;
    m_function.values.push_back(std::move(result));
    Op op;
    op.kind = OpKind::ShardingConstraint;
    op.phase = producer.valid() ? m_function[producer].phase : Phase::Forward;
    op.operands = {value};
    op.results = {opened};
    op.attributes = ConstraintAttributes{std::move(open), "sharding group"};
    op.block = block;
    m_function.ops.push_back(std::move(op));
    std::vector<OpId>& ops = m_function[block].ops;
    ops.insert(producer.valid() ? std::next(std::find(ops.begin(), ops.end(), producer)) : ops.begin(), id);
    return opened;
}

/// Members that are annotated differently keep their shardings: in their place the group has what is behind them.
/// Source: openxla/shardy, shardy/dialect/sdy/transforms/propagation/sharding_group_map.cc (`syncGroupMemberShardings`).
void Propagator::openGroups()
{
    for (std::size_t group = 0; group < m_function.shardingGroups.size(); ++group) {
        const auto first = disagreement(m_function, m_function.shardingGroups[group]);
        if (!first)
            continue;
        std::map<ValueId, ValueId> opened;
        for (std::size_t i = 0; i < m_function.shardingGroups[group].size(); ++i) {
            const ValueId member = m_function.shardingGroups[group][i];
            if (!opened.contains(member))
                opened.emplace(member, openedFor(member, first->mesh));
            m_function.shardingGroups[group][i] = opened.at(member);
        }
    }
}

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
        for (std::size_t i = 0; i < computation.outShardings.size(); ++i)
            m_manualResults.emplace_back(op.results[i], computation.manualAxes);
        const auto adopt = [&](ValueId value, TensorSharding sharding, std::string origin) {
            if (m_function[value].sharding)
                return;
            m_function[value].sharding = std::move(sharding);
            m_function[value].annotation = std::move(origin);
        };
        for (std::size_t i = 0; i < computation.inShardings.size(); ++i)
            adopt(m_function[op.bodies.front()].arguments[i],
                withoutManualAxes(computation.inShardings[i], computation.manualAxes), fmt::format("in_sharding {}", i));
        for (std::size_t i = 0; i < computation.outShardings.size(); ++i) {
            if (isManual(op)) // its block has the pieces of this sharding and of no other
                m_function[op.results[i]].sharding.reset();
            adopt(op.results[i], computation.outShardings[i], fmt::format("out_sharding {}", i));
        }
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
    const auto check = [&](const TensorSharding& sharding, const TensorType& type, const std::string& what) {
        const auto fail = [&](const std::string& why) {
            problems.push_back(
                {"MW1203", fmt::format("the sharding of {} {}", what, why), "write it for this value and its mesh"});
        };
        if (sharding.dims.size() != type.shape.size())
            return fail(fmt::format("has {} dimensions, the value has {}", sharding.dims.size(), type.shape.size()));
        if (type.dtype == DType::Token && !sharding.unreduced.empty())
            return fail("makes it partial, and a token has nothing to combine");
        const bool isLogical = sharding.unreducedKind == ReduceKind::And || sharding.unreducedKind == ReduceKind::Or;
        const bool isNumber = isFloating(type.dtype) || isComplex(type.dtype);
        if (!sharding.unreduced.empty() && isNumber && isLogical)
            return fail(fmt::format("makes it partial by {}; floating and complex numbers combine by sum, product, max or min",
                reduceKindName(sharding.unreducedKind)));
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
            check(*value.sharding, value.type, valueText(m_function, ValueId(i)));
    }
    for (std::size_t i = 0; i < std::min(m_function.resultShardings.size(), m_function.results().size()); ++i) {
        if (m_function.resultShardings[i])
            check(*m_function.resultShardings[i], m_function[m_function.results()[i]].type, fmt::format("result {}", i));
    }
    if (problems.empty())
        append(problems, ManualAxisCheck(m_function, m_meshes).run());
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
    for (const auto& [value, manualAxes] : m_manualResults)
        closeTo(m_graph.slotOf[value.at()], manualAxes);
    for (const ComputationSlots& slots : m_graph.computations) {
        for (const std::uint32_t slot : slots.operands)
            closeTo(slot, m_function[slots.op].as<ComputationAttributes>().manualAxes);
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

/// Keeps manual axes that a computation's in or out sharding does not name out of it: its block has fixed pieces along them.
void Propagator::closeTo(std::uint32_t slot, const std::vector<std::int32_t>& manualAxes)
{
    auto& sharding = m_slots[slot].sharding;
    if (!sharding || sharding->mesh < 0)
        return;
    AxisRefs named = sharding->replicated;
    named.insert(named.end(), sharding->unreduced.begin(), sharding->unreduced.end());
    for (const DimSharding& dim : sharding->dims)
        named.insert(named.end(), dim.axes.begin(), dim.axes.end());
    const AxisRefs before = sharding->replicated;
    const Mesh& mesh = meshOf(*sharding);
    for (const std::int32_t axis : manualAxes) {
        if (static_cast<std::size_t>(axis) >= mesh.axes().size())
            continue; // of another mesh than the computation
        const AxisRef whole = wholeAxis(mesh, static_cast<std::size_t>(axis));
        if (whole.size > 1 && !collidesWithAny(whole, named))
            sharding->replicated.push_back(whole);
    }
    if (sharding->replicated == before)
        return;
    std::sort(sharding->replicated.begin(), sharding->replicated.end());
    m_closed.emplace_back(slot, before);
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
