// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/propagate.h"

#include "core/program/shape_rules.h"
#include "core/program/transform.h"
#include "core/propagate/propagator.h"
#include "core/support/stop_scope.h"

#include <algorithm>
#include <map>

namespace meshwright {

namespace {

constexpr int kAllLevels = 4; ///< the last of the op priorities: everything, both ways

/// The axes of `longer` that `shorter`, a prefix of it, lacks.
AxisRefs addedAxes(const AxisRefs& shorter, const AxisRefs& longer)
{
    AxisRefs added;
    for (std::size_t i = 0; i < longer.size(); ++i) {
        if (i >= shorter.size())
            added.push_back(longer[i]);
        else if (shorter[i] != longer[i])
            added.push_back({longer[i].axis, longer[i].pre * shorter[i].size, longer[i].size / shorter[i].size});
    }
    return added;
}

} // namespace

bool Propagator::anyAxes(const TensorSharding& sharding)
{
    return std::any_of(sharding.dims.begin(), sharding.dims.end(), [](const DimSharding& dim) { return !dim.axes.empty(); });
}

bool Propagator::collidesWithAny(const AxisRef& axis, const AxisRefs& others)
{
    return std::any_of(
        others.begin(), others.end(), [&](const AxisRef& other) { return other == axis || overlaps(other, axis); });
}

Result<PropagationReport> Propagator::run()
{
    adoptComputations(); // before constraints: a result keeps its out_sharding
    adoptConstraints();
    auto problems = checkShardings();
    if (!problems.empty())
        return problems;
    openGroups();
    const auto copies = splitConstantsPerUse(m_function);
    auto graph = flowGraph(m_function, m_strategy == PropagationStrategy::BasicConservative);
    if (!graph)
        return graph.error();
    m_graph = *std::move(graph);
    problems = initialise();
    if (!problems.empty())
        return problems;
    propagateAll();
    collectConflicts();
    writeBack();
    materialise(mergeEqualCopies(m_function, copies));
    return std::move(m_report);
}

void Propagator::propagateAll()
{
    switch (m_strategy) {
    case PropagationStrategy::Basic:
    case PropagationStrategy::BasicConservative:
        return toFixedPoint(false, kAllLevels);
    case PropagationStrategy::Aggressive:
        toFixedPoint(false, kAllLevels);
        return toFixedPoint(true, kAllLevels);
    case PropagationStrategy::OpPriority:
        return byOpPriority();
    case PropagationStrategy::UserPriority:
    case PropagationStrategy::Pipeline:
        return byUserPriority();
    }
}

void Propagator::byOpPriority()
{
    for (int level = 0; level <= kAllLevels; ++level) {
        m_opPriority = static_cast<std::int8_t>(level);
        toFixedPoint(false, level);
        toFixedPoint(true, level);
    }
}

void Propagator::byUserPriority()
{
    std::map<int, std::vector<std::pair<std::uint32_t, TensorSharding>>> later;
    for (std::uint32_t slot = 0; slot < m_slots.size(); ++slot) {
        auto& sharding = m_slots[slot].sharding;
        if (!sharding)
            continue;
        std::set<int> priorities;
        TensorSharding original = *sharding;
        for (DimSharding& dim : sharding->dims) {
            if (dim.priority > 0) {
                priorities.insert(dim.priority);
                sharding->replicated.insert(sharding->replicated.end(), dim.axes.begin(), dim.axes.end());
                dim = {};
            }
            dim.priority = 0;
        }
        if (priorities.empty())
            continue;
        std::sort(sharding->replicated.begin(), sharding->replicated.end());
        touch(slot);
        for (const int priority : priorities)
            later[priority].emplace_back(slot, original);
    }
    byOpPriority();
    for (const auto& [priority, slots] : later) {
        m_userPriority = static_cast<std::int8_t>(std::min(priority, 127));
        for (const auto& [slot, original] : slots)
            restore(slot, original, priority);
        byOpPriority();
    }
}

void Propagator::restore(std::uint32_t slot, const TensorSharding& original, int priority)
{
    TensorSharding& sharding = *m_slots[slot].sharding;
    for (std::size_t dim = 0; dim < original.dims.size(); ++dim) {
        if (original.dims[dim].priority != priority)
            continue;
        sharding.dims[dim] = original.dims[dim];
        sharding.dims[dim].priority = 0;
        for (const AxisRef& axis : original.dims[dim].axes)
            std::erase(sharding.replicated, axis);
    }
    touch(slot);
}

void Propagator::touch(std::uint32_t slot)
{
    m_slots[slot].changed = ++m_clock;
    m_slots[slot].hasAxes = anyAxes(*m_slots[slot].sharding);
}

Propagator::Reach Propagator::reachAt(const FlowNode& node, int level)
{
    const Reach passThrough = node.allPassThrough ? Reach::AllBoth : Reach::PassThroughBoth;
    const bool broadcast = node.flowClass == FlowClass::Broadcast;
    if (level >= kAllLevels)
        return Reach::AllBoth;
    if (node.flowClass == FlowClass::PassThrough)
        return level > 0 || node.usedOnce ? Reach::AllBoth : Reach::Nothing;
    if (node.flowClass == FlowClass::DynamicSlice && level < 2)
        return level > 0 || node.usedOnce ? Reach::AllForward : Reach::Nothing;
    if (level < 2)
        return Reach::Nothing;
    if (broadcast)
        return level == 2 && !node.allPassThrough ? Reach::PassThroughBackward : Reach::AllBackward;
    return level == 2 ? passThrough : Reach::AllBoth;
}

void Propagator::toFixedPoint(bool aggressive, int level)
{
    pushResults(aggressive);
    const std::size_t count = m_graph.nodes.size();
    for (bool changed = true; changed;) {
        const std::uint64_t before = m_clock;
        m_queue.clear();
        for (std::size_t i = count; i-- > 0;)
            m_queue.push_back(static_cast<std::uint32_t>(i));
        for (NodeState& state : m_nodeStates)
            state.queued = true;
        while (!m_queue.empty()) {
            const std::uint32_t index = m_queue.back();
            m_queue.pop_back();
            m_nodeStates[index].queued = false;
            visit(index, aggressive, level);
        }
        ++m_report.rounds;
        changed = m_clock != before;
    }
    pushResults(aggressive);
}

void Propagator::pushResults(bool aggressive)
{
    m_current = nullptr;
    for (const FlowNode& node : m_graph.resultNodes)
        propagateThrough(node, aggressive, Reach::AllBoth);
}

void Propagator::visit(std::uint32_t index, bool aggressive, int level)
{
    heedStop();
    const FlowNode& node = m_graph.nodes[index];
    const Reach reach = reachAt(node, level);
    if (reach == Reach::Nothing)
        return;
    NodeState& state = m_nodeStates[index];
    const std::size_t strategy = aggressive ? 1 : 0;
    std::uint64_t changed = 0;
    for (const std::uint32_t slot : node.slots)
        changed = std::max(changed, m_slots[slot].changed);
    if (state.reach[strategy] == reach && state.seen[strategy] >= changed)
        return;
    state.reach[strategy] = reach;
    state.seen[strategy] = std::max(m_clock, changed);
    m_current = &state;
    propagateThrough(node, aggressive, reach);
}

std::optional<std::int32_t> Propagator::commonMesh(const FlowNode& node) const
{
    std::int32_t common = -1;
    for (const std::uint32_t slot : node.slots) {
        const auto& sharding = m_slots[slot].sharding;
        if (!sharding || sharding->mesh < 0)
            continue;
        const std::int32_t mesh = m_meshClass[static_cast<std::size_t>(sharding->mesh)];
        if (mesh < 0)
            continue;
        if (common >= 0 && mesh != common)
            return std::nullopt;
        common = mesh;
    }
    return common >= 0 ? std::optional(common) : std::nullopt;
}

const DimFactors& Propagator::dimsOf(const FlowNode& node, std::size_t tensor) const
{
    return tensor < node.operandCount ? node.rule.operands[tensor] : node.rule.results[tensor - node.operandCount];
}

const std::optional<TensorSharding>& Propagator::seen(const FlowNode& node, std::size_t tensor) const
{
    const auto& sharding = m_slots[node.slots[tensor]].sharding;
    if (node.manualAxes.empty() || tensor != node.outer || !sharding)
        return sharding;
    m_seen = withoutManualAxes(*sharding, node.manualAxes);
    return m_seen;
}

void Propagator::projectNode(const FlowNode& node)
{
    if (m_tensors.size() < node.slots.size())
        m_tensors.resize(node.slots.size());
    for (std::size_t t = 0; t < node.slots.size(); ++t)
        projectInto(m_tensors[t], seen(node, t), dimsOf(node, t), node.rule, MissingSharding::Open);
}

bool Propagator::anyAxesAt(const FlowNode& node) const
{
    return std::any_of(node.slots.begin(), node.slots.end(), [&](std::uint32_t slot) { return m_slots[slot].hasAxes; });
}

void Propagator::propagateThrough(const FlowNode& node, bool aggressive, Reach reach)
{
    if (!anyAxesAt(node))
        return;
    const auto mesh = commonMesh(node);
    if (!mesh)
        return;
    projectNode(node);
    const bool passThroughOnly = reach == Reach::PassThroughBackward || reach == Reach::PassThroughBoth;
    const FactorDirection way = reach == Reach::PassThroughBackward || reach == Reach::AllBackward ? FactorDirection::Backward
        : reach == Reach::AllForward                                                               ? FactorDirection::Forward
                                                                                                   : FactorDirection::Both;
    const bool both = way == FactorDirection::Both || node.allowed == way;
    m_directions.assign(node.rule.factors.size(),
        both                                        ? node.allowed
            : node.allowed == FactorDirection::Both ? way
                                                    : FactorDirection::None);
    if (passThroughOnly || node.anyBlocked) {
        for (std::size_t f = 0; f < m_directions.size(); ++f) {
            const Factor& factor = node.rule.factors[f];
            if (factor.blocked || (passThroughOnly && factor.kind != FactorKind::PassThrough))
                m_directions[f] = FactorDirection::None;
        }
    }
    FactorFlow flow;
    flow.rule = &node.rule;
    flow.mesh = &m_meshes[static_cast<std::size_t>(*mesh)].mesh;
    flow.operandCount = node.operandCount;
    flow.elementwise = node.elementwise;
    flow.conservative = m_strategy == PropagationStrategy::BasicConservative;
    flow.elements = node.elements;
    flow.directions = m_directions;
    const std::span<TensorFactorShardings> tensors(m_tensors.data(), node.slots.size());
    if (aggressive ? propagateAggressive(flow, tensors, m_scratch) : propagateBasic(flow, tensors, m_scratch))
        apply(node, *mesh, aggressive);
}

void Propagator::apply(const FlowNode& node, std::int32_t mesh, bool aggressive)
{
    m_updates.clear();
    const std::size_t factors = node.rule.factors.size();
    for (std::size_t t = 0; t < node.slots.size(); ++t) {
        const auto& current = seen(node, t);
        const DimFactors& dims = dimsOf(node, t);
        for (std::size_t dim = 0; dim < dims.size(); ++dim) {
            if (std::none_of(
                    dims[dim].begin(), dims[dim].end(), [&](std::size_t f) { return m_scratch.updated[t * factors + f] != 0; }))
                continue;
            static const AxisRefs kNone;
            const AxisRefs& old = current ? current->dims[dim].axes : kNone;
            AxisRefs axes = backProjectDim(m_tensors[t], dims[dim], node.rule);
            if (!isStrictPrefix(old, axes))
                continue; // a strided view would be needed
            Update update{t, dim, std::move(axes), {}};
            for (const AxisRef& added : addedAxes(old, update.axes))
                update.steps.push_back(stepFor(node, t, dim, added, aggressive));
            m_updates.push_back(std::move(update));
        }
    }
    for (const Update& update : m_updates)
        applyOne(node, mesh, update);
}

Propagator::Step Propagator::stepFor(
    const FlowNode& node, std::size_t tensor, std::size_t dim, const AxisRef& axis, bool aggressive) const
{
    Step step;
    step.slot = node.slots[tensor];
    step.value = node.values[tensor];
    step.node = &node;
    step.dim = static_cast<std::uint16_t>(dim);
    step.axis = axis;
    step.aggressive = aggressive;
    step.userPriority = m_userPriority;
    step.opPriority = m_opPriority;
    const std::size_t factors = node.rule.factors.size();
    for (const std::size_t factor : dimsOf(node, tensor)[dim]) {
        for (std::size_t other = 0; other < node.slots.size(); ++other) {
            const std::int16_t otherDim = node.dimOf[other * factors + factor];
            const SlotState& source = m_slots[node.slots[other]];
            if (otherDim < 0 || node.slots[other] == step.slot || !source.hasAxes)
                continue;
            if (!collidesWithAny(axis, source.sharding->dims[static_cast<std::size_t>(otherDim)].axes))
                continue;
            step.from = node.values[other];
            step.factor = static_cast<std::uint16_t>(factor);
            const bool fromOperand = other < node.operandCount;
            const bool toOperand = tensor < node.operandCount;
            step.direction = fromOperand && !toOperand ? StepDirection::Forward
                : !fromOperand && toOperand            ? StepDirection::Backward
                                                       : StepDirection::Sideways;
            for (const std::uint32_t earlier : source.steps) {
                const Step& before = m_steps[earlier];
                if (before.dim == static_cast<std::uint16_t>(otherDim) && (before.axis == axis || overlaps(before.axis, axis))) {
                    step.annotation = before.annotation;
                    break;
                }
            }
            return step;
        }
    }
    return step;
}

void Propagator::applyOne(const FlowNode& node, std::int32_t mesh, const Update& update)
{
    const std::uint32_t slot = node.slots[update.tensor];
    SlotState& state = m_slots[slot];
    if (!state.sharding) {
        state.sharding = TensorSharding::openOf(dimsOf(node, update.tensor).size());
        state.sharding->mesh = mesh;
    }
    AxisRefs& held = state.sharding->dims[update.dim].axes;
    AxisRefs axes = update.axes;
    if (!node.manualAxes.empty() && update.tensor == node.outer) { // manual axes come first
        AxisRefs manual = held;
        std::erase_if(manual,
            [&](const AxisRef& ref) { return !std::binary_search(node.manualAxes.begin(), node.manualAxes.end(), ref.axis); });
        axes.insert(axes.begin(), manual.begin(), manual.end());
    }
    // A value that is used twice by the op can get both updates only if they go together.
    if (!isStrictPrefix(held, axes))
        return;
    for (const Step& step : update.steps) {
        if (collidesWithAny(step.axis, state.sharding->replicated) || collidesWithAny(step.axis, state.sharding->unreduced))
            return;
        for (std::size_t dim = 0; dim < state.sharding->dims.size(); ++dim) {
            if (dim != update.dim && collidesWithAny(step.axis, state.sharding->dims[dim].axes))
                return;
        }
    }
    if (state.sharding->mesh < 0 || m_meshClass[static_cast<std::size_t>(state.sharding->mesh)] < 0)
        state.sharding->mesh = mesh;
    held = std::move(axes);
    state.hasAxes = true;
    state.changed = ++m_clock;
    for (const Step& step : update.steps)
        addStep(step);
    for (const std::uint32_t user : m_graph.slots[slot].nodes) {
        NodeState& userState = m_nodeStates[user];
        if (!userState.queued && &userState != m_current) {
            userState.queued = true;
            m_queue.push_back(user);
        }
    }
}

const char* stepDirectionName(StepDirection direction)
{
    constexpr std::array kNames = {"", "forward", "backward", "sideways"};
    return kNames[static_cast<std::size_t>(direction)];
}

Result<PropagationReport> propagate(Function& function, const std::vector<NamedMesh>& meshes, PropagationStrategy strategy)
{
    if (meshes.empty() || function.blocks.empty())
        return PropagationReport{};
    return Propagator(function, meshes, strategy).run();
}

} // namespace meshwright
