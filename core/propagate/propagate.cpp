// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/propagate.h"

#include "core/program/shape_rules.h"
#include "core/program/transform.h"
#include "core/propagate/factor_propagation.h"
#include "core/propagate/flow_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace meshwright {

namespace {

/// What of a node's factors may be propagated at the current level.
enum class Reach : std::uint8_t { Nothing, PassThroughBackward, PassThroughBoth, AllForward, AllBackward, AllBoth };

constexpr int kAllLevels = 4; ///< the last of the op priorities: everything, both ways

/// Why a slot's dimension has an axis, in the form it is collected in.
struct Step {
    std::uint32_t slot = 0;
    ValueId value;
    ValueId from;
    const FlowNode* node = nullptr; ///< none: written by the user
    std::uint32_t annotation = 0; ///< index into the labels
    std::uint16_t dim = 0;
    std::uint16_t factor = 0;
    AxisRef axis;
    bool aggressive = false;
    StepDirection direction = StepDirection::None;
    std::int8_t userPriority = 0;
    std::int8_t opPriority = -1;
};

struct SlotState {
    std::optional<TensorSharding> sharding;
    std::uint64_t changed = 1; ///< the time of the last change
    bool hasAxes = false;
    std::vector<std::uint32_t> steps; ///< indices into the list of all steps
};

struct NodeState {
    std::array<std::uint64_t, 2> seen = {0, 0}; ///< by strategy: when it was last looked at
    std::array<Reach, 2> reach = {Reach::Nothing, Reach::Nothing};
    bool queued = false;
};

bool anyAxes(const TensorSharding& sharding)
{
    return std::any_of(sharding.dims.begin(), sharding.dims.end(), [](const DimSharding& dim) { return !dim.axes.empty(); });
}

/// All dimensions open and nothing else said: as good as no sharding.
bool saysNothing(const TensorSharding& sharding)
{
    return sharding.replicated.empty() && sharding.unreduced.empty()
        && std::all_of(
            sharding.dims.begin(), sharding.dims.end(), [](const DimSharding& dim) { return dim.open && dim.axes.empty(); });
}

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

bool collidesWithAny(const AxisRef& axis, const AxisRefs& others)
{
    return std::any_of(
        others.begin(), others.end(), [&](const AxisRef& other) { return other == axis || overlaps(other, axis); });
}

class Propagator {
public:
    Propagator(Function& function, const std::vector<NamedMesh>& meshes, PropagationStrategy strategy)
        : m_function(function)
        , m_meshes(meshes)
        , m_strategy(strategy)
    {
        for (std::size_t i = 0; i < meshes.size(); ++i) {
            std::int32_t equal = static_cast<std::int32_t>(i);
            for (std::size_t j = 0; j < i && equal == static_cast<std::int32_t>(i); ++j) {
                if (meshes[j].mesh == meshes[i].mesh)
                    equal = static_cast<std::int32_t>(j);
            }
            m_meshClass.push_back(meshes[i].mesh.axes().empty() ? -1 : equal);
        }
    }

    Result<PropagationReport> run()
    {
        adoptConstraints();
        adoptComputations();
        auto problems = checkShardings();
        if (!problems.empty())
            return problems;
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

private:
    // --- before propagation

    /// A constraint's result has its sharding, and so has its input where nothing speaks against it (semantics.md 2.10).
    void adoptConstraints()
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

    /// The arguments of a computation's block and its results have the shardings that it names, the former without the manual axes.
    void adoptComputations()
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
                adopt(m_function[op.bodies.front()].arguments[i], withoutManualAxes(computation.inShardings[i], computation.manualAxes),
                    fmt::format("in_sharding {}", i));
            for (std::size_t i = 0; i < computation.outShardings.size(); ++i)
                adopt(op.results[i], computation.outShardings[i], fmt::format("out_sharding {}", i));
        });
    }

    /// Uses of the input of a chain of constraints that come after the chain use its end instead.
    void redirectChains(const std::vector<OpId>& constraints, const std::vector<std::vector<OpId>>& constraintsOf)
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

    Problems checkShardings() const
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
                return std::any_of(
                    refs.begin(), refs.end(), [&](const AxisRef& ref) { return ref.axis < 0 || ref.axis >= axes; });
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

    Problems initialise()
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
                addUserSteps(slot, first,
                    m_function[first].annotation.empty() ? valueText(m_function, first) : m_function[first].annotation);
        }
        for (std::size_t i = 0; i < m_graph.resultSlots.size(); ++i) {
            const std::uint32_t slot = m_graph.resultSlots[i];
            if (i < m_function.resultShardings.size())
                m_slots[slot].sharding = m_function.resultShardings[i];
            const bool named = i < m_function.resultNames.size() && !m_function.resultNames[i].empty();
            addUserSteps(
                slot, ValueId(), named ? fmt::format("result {}", m_function.resultNames[i]) : fmt::format("result {}", i));
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

    void addUserSteps(std::uint32_t slot, ValueId value, std::string label)
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

    void addStep(const Step& step)
    {
        m_slots[step.slot].steps.push_back(static_cast<std::uint32_t>(m_steps.size()));
        m_steps.push_back(step);
    }

    const Mesh& meshOf(const TensorSharding& sharding) const { return m_meshes[static_cast<std::size_t>(sharding.mesh)].mesh; }

    // --- the order of propagation

    void propagateAll()
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

    void byOpPriority()
    {
        for (int level = 0; level <= kAllLevels; ++level) {
            m_opPriority = static_cast<std::int8_t>(level);
            toFixedPoint(false, level);
            toFixedPoint(true, level);
        }
    }

    /// Dimensions of later priorities are hidden, their axes set aside, until it is their turn (2.8).
    void byUserPriority()
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

    void restore(std::uint32_t slot, const TensorSharding& original, int priority)
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

    void touch(std::uint32_t slot)
    {
        m_slots[slot].changed = ++m_clock;
        m_slots[slot].hasAxes = anyAxes(*m_slots[slot].sharding);
    }

    /// Factors of one op priority: what may be propagated, and which way (2.7).
    static Reach reachAt(const FlowNode& node, int level)
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

    void toFixedPoint(bool aggressive, int level)
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

    /// What is asked of the function's results goes to the returned values, and back.
    void pushResults(bool aggressive)
    {
        m_current = nullptr;
        for (const FlowNode& node : m_graph.resultNodes)
            propagateThrough(node, aggressive, Reach::AllBoth);
    }

    void visit(std::uint32_t index, bool aggressive, int level)
    {
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

    // --- one node

    /// The mesh that the node's shardings speak of; nothing when there is none, or two.
    std::optional<std::int32_t> commonMesh(const FlowNode& node) const
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

    const DimFactors& dimsOf(const FlowNode& node, std::size_t tensor) const
    {
        return tensor < node.operandCount ? node.rule.operands[tensor] : node.rule.results[tensor - node.operandCount];
    }

    /// What a node sees of a tensor's sharding; valid until the next call.
    const std::optional<TensorSharding>& seen(const FlowNode& node, std::size_t tensor) const
    {
        const auto& sharding = m_slots[node.slots[tensor]].sharding;
        if (node.manualAxes.empty() || tensor != node.outer || !sharding)
            return sharding;
        m_seen = withoutManualAxes(*sharding, node.manualAxes);
        return m_seen;
    }

    void projectNode(const FlowNode& node)
    {
        if (m_tensors.size() < node.slots.size())
            m_tensors.resize(node.slots.size());
        for (std::size_t t = 0; t < node.slots.size(); ++t)
            projectInto(m_tensors[t], seen(node, t), dimsOf(node, t), node.rule, MissingSharding::Open);
    }

    bool anyAxesAt(const FlowNode& node) const
    {
        return std::any_of(node.slots.begin(), node.slots.end(), [&](std::uint32_t slot) { return m_slots[slot].hasAxes; });
    }

    void propagateThrough(const FlowNode& node, bool aggressive, Reach reach)
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

    struct Update {
        std::size_t tensor = 0;
        std::size_t dim = 0;
        AxisRefs axes;
        std::vector<Step> steps;
    };

    void apply(const FlowNode& node, std::int32_t mesh, bool aggressive)
    {
        m_updates.clear();
        const std::size_t factors = node.rule.factors.size();
        for (std::size_t t = 0; t < node.slots.size(); ++t) {
            const auto& current = seen(node, t);
            const DimFactors& dims = dimsOf(node, t);
            for (std::size_t dim = 0; dim < dims.size(); ++dim) {
                if (std::none_of(dims[dim].begin(), dims[dim].end(),
                        [&](std::size_t f) { return m_scratch.updated[t * factors + f] != 0; }))
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

    /// Where an axis comes from: another tensor of the op that has it along the same factor.
    Step stepFor(const FlowNode& node, std::size_t tensor, std::size_t dim, const AxisRef& axis, bool aggressive) const
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
                    if (before.dim == static_cast<std::uint16_t>(otherDim)
                        && (before.axis == axis || overlaps(before.axis, axis))) {
                        step.annotation = before.annotation;
                        break;
                    }
                }
                return step;
            }
        }
        return step;
    }

    void applyOne(const FlowNode& node, std::int32_t mesh, const Update& update)
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
            std::erase_if(manual, [&](const AxisRef& ref) {
                return !std::binary_search(node.manualAxes.begin(), node.manualAxes.end(), ref.axis);
            });
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

    // --- after propagation

    /// Where tensors of an op still disagree about a factor: what each lacks, and why.
    void collectConflicts()
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

    void collectConflicts(const FlowNode& node, std::size_t factor, std::set<std::tuple<ValueId, std::size_t, AxisRef>>& seen)
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
            m_report.conflicts.push_back({node.op, node.values[t], dim, missing,
                conflictReason(node, t, dim, missing, node.values[owner]), node.values[owner],
                annotationOf(node.slots[owner], ownerDim, missing), winnerOf(node.slots[t], dim, missing)});
        }
    }

    std::string conflictReason(
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

    /// Whose annotation brought an axis to a dimension.
    std::string annotationOf(std::uint32_t slot, std::size_t dim, const AxisRef& axis) const
    {
        for (const std::uint32_t index : m_slots[slot].steps) {
            const Step& step = m_steps[index];
            if (step.dim == dim && (step.axis == axis || overlaps(step.axis, axis)))
                return m_labels[step.annotation];
        }
        return {};
    }

    /// Whose annotation stands in the way of an axis: of the dimension that has it, or of what the wanted dimension has.
    std::string winnerOf(std::uint32_t slot, std::size_t dim, const AxisRef& axis) const
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

    /// " (sharding.x)": whose annotation split a dimension.
    std::string by(std::uint32_t slot, std::size_t dim) const
    {
        for (const std::uint32_t index : m_slots[slot].steps) {
            if (m_steps[index].dim == dim)
                return fmt::format(" ({})", m_labels[m_steps[index].annotation]);
        }
        return {};
    }

    std::optional<TensorSharding> finalSharding(const std::optional<TensorSharding>& sharding, std::size_t rank) const
    {
        if (m_strategy != PropagationStrategy::Pipeline)
            return sharding && sharding->mesh >= 0 ? sharding : std::nullopt;
        TensorSharding closed = sharding ? *sharding : TensorSharding::replicatedOf(rank);
        closed.mesh = std::max(closed.mesh, 0);
        for (DimSharding& dim : closed.dims) {
            dim.open = false;
            dim.priority = 0;
        }
        return closed;
    }

    void writeBack()
    {
        for (std::size_t value = 0; value < m_function.values.size(); ++value)
            m_function.values[value].sharding
                = finalSharding(m_slots[m_graph.slotOf[value]].sharding, m_function.values[value].type.shape.size());
        for (const ComputationSlots& slots : m_graph.computations) {
            const OpId id = slots.op;
            auto& computation = m_function[id].as<ComputationAttributes>();
            for (std::size_t i = 0; i < computation.inShardings.size(); ++i) {
                if (const auto sharding
                    = finalSharding(m_slots[slots.operands[i]].sharding, computation.inShardings[i].dims.size()))
                    computation.inShardings[i] = *sharding;
            }
            for (std::size_t i = 0; i < computation.outShardings.size(); ++i) {
                if (const auto& sharding = m_function[m_function[id].results[i]].sharding)
                    computation.outShardings[i] = *sharding;
            }
        }
        m_function.resultShardings.resize(m_graph.resultSlots.size());
        for (std::size_t i = 0; i < m_graph.resultSlots.size(); ++i)
            m_function.resultShardings[i]
                = finalSharding(m_slots[m_graph.resultSlots[i]].sharding, m_function[m_function.results()[i]].type.shape.size());
    }

    /// The names that ruleText gives.
    static std::string factorName(std::uint16_t factor)
    {
        return factor < 18 ? std::string(1, static_cast<char>('i' + factor)) : fmt::format("z_{}", factor - 17);
    }

    std::string stepText(const Step& step) const
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

    void materialise(const std::vector<std::pair<ValueId, ValueId>>& merged)
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

    Function& m_function;
    const std::vector<NamedMesh>& m_meshes;
    PropagationStrategy m_strategy;
    std::vector<std::int32_t> m_meshClass; ///< of each mesh the first that is equal; -1 for meshes without axes, which fit any
    FlowGraph m_graph;
    std::vector<SlotState> m_slots;
    std::vector<NodeState> m_nodeStates;
    NodeState* m_current = nullptr; ///< of the node at work
    std::vector<std::uint32_t> m_queue; ///< last in, first out
    std::uint64_t m_clock = 1;
    std::vector<Step> m_steps;
    std::vector<std::string> m_labels;
    std::int8_t m_userPriority = 0; ///< whose turn it is
    std::int8_t m_opPriority = -1;
    mutable std::optional<TensorSharding> m_seen;
    std::vector<TensorFactorShardings> m_tensors;
    std::vector<FactorDirection> m_directions;
    FactorScratch m_scratch;
    std::vector<Update> m_updates;
    PropagationReport m_report;
};

} // namespace

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
