// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/flow_graph.h"

#include "core/program/other_op.h"
#include "core/program/transform.h"

#include <boost/pending/disjoint_sets.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

class GraphBuilder {
public:
    GraphBuilder(const Function& function, bool conservative)
        : m_function(function)
        , m_conservative(conservative)
        , m_uses(useCounts(function))
        , m_sharing(function.values.size())
    {
    }

    Result<FlowGraph> run()
    {
        if (auto problems = joinGroups(); !problems.empty())
            return problems;
        joinBlocks(BlockId(std::int32_t{0}));
        makeSlots();
        addBlock(BlockId(std::int32_t{0}));
        addResults();
        for (std::size_t node = 0; node < m_graph.nodes.size(); ++node) {
            for (const std::uint32_t slot : m_graph.nodes[node].slots) {
                auto& nodes = m_graph.slots[slot].nodes;
                if (nodes.empty() || nodes.back() != node)
                    nodes.push_back(static_cast<std::uint32_t>(node));
            }
        }
        return std::move(m_graph);
    }

private:
    Problems joinGroups()
    {
        Problems problems;
        m_bond.assign(m_function.values.size(), "");
        for (const auto& group : m_function.shardingGroups) {
            for (const ValueId member : group) {
                if (m_function[member].type.shape != m_function[group.front()].type.shape) {
                    problems.push_back({"MW1202",
                        fmt::format("a sharding group holds {} of {} and {} of {}: members need one shape",
                            valueText(m_function, group.front()), typeText(m_function[group.front()].type),
                            valueText(m_function, member), typeText(m_function[member].type)),
                        "take one of them out of the group"});
                    continue;
                }
                m_sharing.union_set(group.front().at(), member.at());
                m_bond[member.at()] = "sharding group";
            }
        }
        return problems;
    }

    void join(ValueId a, ValueId b, const char* bond)
    {
        m_sharing.union_set(a.at(), b.at());
        for (const ValueId member : {a, b}) {
            if (m_bond[member.at()][0] == '\0')
                m_bond[member.at()] = bond;
        }
    }

    /// What a block uses of the outside is the same value inside.
    void joinCaptures(const Op& op, std::size_t count)
    {
        for (const BlockId body : op.bodies) {
            const auto& arguments = m_function[body].arguments;
            for (std::size_t i = 1; i <= count; ++i)
                join(op.operands[op.operands.size() - i], arguments[arguments.size() - i], "use in a block");
        }
    }

    void joinBlocks(BlockId block)
    {
        for (const OpId id : m_function[block].ops) {
            const Op& op = m_function[id];
            if (op.kind == OpKind::Repeat || op.kind == OpKind::While) {
                const std::size_t carries
                    = op.kind == OpKind::Repeat ? op.as<RepeatAttributes>().carries : op.as<WhileAttributes>().carries;
                for (const BlockId body : op.bodies) {
                    for (std::size_t i = 0; i < carries; ++i)
                        join(m_function[body].arguments[i], op.results[i], "loop carry");
                }
                if (op.kind == OpKind::While)
                    joinCaptures(op, op.operands.size() - carries);
            } else if (op.kind == OpKind::Case) {
                joinCaptures(op, op.operands.size() - 1);
            } else if (isKept(op.kind)) {
                joinCaptures(op, op.as<OtherAttributes>().captures);
            }
            for (const BlockId body : op.bodies)
                joinBlocks(body);
        }
    }

    void makeSlots()
    {
        constexpr auto kNoSlot = static_cast<std::uint32_t>(-1);
        m_graph.slotOf.assign(m_function.values.size(), kNoSlot);
        for (std::size_t value = 0; value < m_function.values.size(); ++value) {
            std::uint32_t& shared = m_graph.slotOf[m_sharing.find_set(value)];
            if (shared == kNoSlot) {
                shared = static_cast<std::uint32_t>(m_graph.slots.size());
                m_graph.slots.emplace_back();
            }
            m_graph.slotOf[value] = shared;
            FlowSlot& slot = m_graph.slots[shared];
            slot.members.push_back(ValueId(static_cast<std::int32_t>(value)));
            if (slot.bond[0] == '\0' || m_bond[value] == std::string_view("sharding group"))
                slot.bond = m_bond[value];
        }
    }

    FlowNode node(OpShardingRule rule, std::vector<ValueId> operands, const std::vector<ValueId>& results) const
    {
        FlowNode made;
        made.rule = std::move(rule);
        made.operandCount = operands.size();
        made.usedOnce = std::all_of(
            operands.begin(), operands.end(), [&](ValueId v) { return m_function[v].type.shape.empty() || m_uses[v.at()] == 1; });
        made.values = std::move(operands);
        made.values.insert(made.values.end(), results.begin(), results.end());
        for (const ValueId value : made.values) {
            made.slots.push_back(m_graph.slotOf[value.at()]);
            made.elements.push_back(m_function[value].type.elements());
        }
        finish(made);
        return made;
    }

    static void finish(FlowNode& node)
    {
        const auto& factors = node.rule.factors;
        node.dimOf.assign(node.values.size() * factors.size(), std::int16_t{-1});
        for (std::size_t t = 0; t < node.values.size(); ++t) {
            const DimFactors& dims = t < node.operandCount ? node.rule.operands[t] : node.rule.results[t - node.operandCount];
            for (std::size_t dim = 0; dim < dims.size(); ++dim) {
                for (const std::size_t factor : dims[dim])
                    node.dimOf[t * factors.size() + factor] = static_cast<std::int16_t>(dim);
            }
        }
        node.allPassThrough
            = std::all_of(factors.begin(), factors.end(), [](const Factor& f) { return f.kind == FactorKind::PassThrough; });
        node.anyBlocked = std::any_of(factors.begin(), factors.end(), [](const Factor& f) { return f.blocked; });
    }

    void addBlock(BlockId block)
    {
        for (const OpId id : m_function[block].ops) {
            const Op& op = m_function[id];
            switch (op.kind) {
            case OpKind::Repeat:
                addRepeat(op);
                break;
            case OpKind::While:
                addWhile(op);
                break;
            case OpKind::Case:
                addCase(op);
                break;
            case OpKind::Computation:
                addComputation(id);
                break;
            case OpKind::OptimizationBarrier:
                for (std::size_t i = 0; i < op.operands.size(); ++i)
                    addEdge(edgeRule(m_function[op.operands[i]].type.shape, 1, false, false, 0), {op.operands[i]}, op.results[i],
                        "optimization barrier");
                break;
            default:
                addOp(id);
                break;
            }
        }
    }

    void addOp(OpId id)
    {
        const Op& op = m_function[id];
        auto rule = shardingRule(m_function, id, m_conservative);
        if (rule && !rule->factors.empty()) {
            FlowNode made = node(*std::move(rule), op.operands, op.results);
            made.op = id;
            made.elementwise = isElementwise(op);
            if (made.elementwise || op.kind == OpKind::Reshape || op.kind == OpKind::Transpose)
                made.flowClass = FlowClass::PassThrough;
            else if (op.kind == OpKind::DynamicSlice || op.kind == OpKind::DynamicUpdateSlice)
                made.flowClass = FlowClass::DynamicSlice;
            else if (op.kind == OpKind::BroadcastInDim)
                made.flowClass = FlowClass::Broadcast;
            if (op.kind == OpKind::PropagationBarrier) {
                const auto& barrier = op.as<BarrierAttributes>();
                made.allowed = barrier.forward && barrier.backward ? FactorDirection::Both
                    : barrier.forward                              ? FactorDirection::Forward
                    : barrier.backward                             ? FactorDirection::Backward
                                                                   : FactorDirection::None;
            }
            m_graph.nodes.push_back(std::move(made));
        }
        for (const BlockId body : op.bodies)
            addBlock(body);
    }

    /// The rule of an edge: the operands' dimensions are the results', but for dimension 0 of the stacked side.
    static OpShardingRule edgeRule(
        const Shape& slice, std::size_t operands, bool stackedOperand, bool stackedResult, std::int64_t count)
    {
        OpShardingRule rule;
        DimFactors dims;
        for (std::size_t dim = 0; dim < slice.size(); ++dim) {
            rule.factors.push_back({slice[dim]});
            dims.push_back({dim});
        }
        DimFactors stackedDims = dims;
        if (stackedOperand || stackedResult) {
            stackedDims.insert(stackedDims.begin(), {rule.factors.size()});
            rule.factors.push_back({count, FactorKind::NeedReplication, true});
        }
        rule.operands.assign(operands, stackedOperand ? stackedDims : dims);
        rule.results = {stackedResult ? stackedDims : dims};
        return rule;
    }

    void addEdge(OpShardingRule rule, std::vector<ValueId> sources, ValueId target, const char* title)
    {
        if (rule.factors.empty())
            return;
        FlowNode made = node(std::move(rule), std::move(sources), {target});
        made.flowClass = FlowClass::PassThrough;
        made.edge = title;
        m_graph.nodes.push_back(std::move(made));
    }

    void addRepeat(const Op& op)
    {
        const auto& attributes = op.as<RepeatAttributes>();
        const Block& body = m_function[op.bodies.front()];
        const auto shape = [&](ValueId value) -> const Shape& { return m_function[value].type.shape; };
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            const ValueId argument = body.arguments[i];
            if (i < attributes.carries) {
                addEdge(edgeRule(shape(argument), 2, false, false, 0), {op.operands[i], body.results[i]}, argument, "loop carry");
            } else if (i < attributes.carries + attributes.stacked) {
                addEdge(edgeRule(shape(argument), 1, true, false, attributes.count), {op.operands[i]}, argument, "loop slice");
                m_graph.stacked.push_back(op.operands[i]);
            } else {
                addEdge(edgeRule(shape(argument), 1, false, false, 0), {op.operands[i]}, argument, "loop invariant");
            }
        }
        addBlock(op.bodies.front());
        for (std::size_t i = attributes.carries; i < op.results.size(); ++i) {
            addEdge(edgeRule(shape(body.results[i]), 1, false, true, attributes.count), {body.results[i]}, op.results[i],
                "loop slice");
            m_graph.stacked.push_back(op.results[i]);
        }
    }

    void addWhile(const Op& op)
    {
        const std::size_t carries = op.as<WhileAttributes>().carries;
        const Block& body = m_function[op.bodies.back()];
        for (std::size_t i = 0; i < carries; ++i)
            addEdge(edgeRule(m_function[op.results[i]].type.shape, 2, false, false, 0), {op.operands[i], body.results[i]},
                body.arguments[i], "loop carry");
        for (const BlockId block : op.bodies)
            addBlock(block);
    }

    void addCase(const Op& op)
    {
        for (const BlockId body : op.bodies)
            addBlock(body);
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            std::vector<ValueId> yielded;
            for (const BlockId body : op.bodies)
                yielded.push_back(m_function[body].results[i]);
            OpShardingRule rule = edgeRule(m_function[op.results[i]].type.shape, yielded.size(), false, false, 0);
            addEdge(std::move(rule), std::move(yielded), op.results[i], "branch result");
        }
    }

    /// A node between a value and a slot without members, which has its type.
    FlowNode nodeToSlot(ValueId value, const char* title)
    {
        FlowNode made;
        made.rule = edgeRule(m_function[value].type.shape, 1, false, false, 0);
        made.operandCount = 1;
        made.values = {value, ValueId()};
        made.slots = {m_graph.slotOf[value.at()], static_cast<std::uint32_t>(m_graph.slots.size())};
        made.elements.assign(2, m_function[value].type.elements());
        made.usedOnce = m_function[value].type.shape.empty() || m_uses[value.at()] == 1;
        made.flowClass = FlowClass::PassThrough;
        made.edge = title;
        finish(made);
        m_graph.slots.emplace_back();
        return made;
    }

    /// From the sharding that is asked of an operand, over the border of the manual axes, to the block; and back out.
    void addComputation(OpId id)
    {
        const Op& op = m_function[id];
        const auto& computation = op.as<ComputationAttributes>();
        const Block& body = m_function[op.bodies.front()];
        const auto border = [&](ValueId inside, const char* title) {
            FlowNode made;
            made.rule = edgeRule(m_function[inside].type.shape, 1, false, false, 0);
            made.operandCount = 1;
            made.elements.assign(2, m_function[inside].type.elements());
            made.usedOnce = true;
            made.flowClass = FlowClass::PassThrough;
            made.edge = title;
            made.manualAxes = computation.manualAxes;
            return made;
        };
        ComputationSlots slots{id, {}};
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            FlowNode outside = nodeToSlot(op.operands[i], "computation operand");
            slots.operands.push_back(outside.slots.back());
            if (!outside.rule.factors.empty())
                m_graph.nodes.push_back(std::move(outside));
            FlowNode made = border(body.arguments[i], "computation argument");
            made.values = {ValueId(), body.arguments[i]};
            made.slots = {slots.operands.back(), m_graph.slotOf[body.arguments[i].at()]};
            made.outer = 0;
            finish(made);
            if (!made.rule.factors.empty())
                m_graph.nodes.push_back(std::move(made));
        }
        m_graph.computations.push_back(std::move(slots));
        addBlock(op.bodies.front());
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            FlowNode made = border(body.results[i], "computation result");
            made.values = {body.results[i], op.results[i]};
            made.slots = {m_graph.slotOf[body.results[i].at()], m_graph.slotOf[op.results[i].at()]};
            made.outer = 1;
            finish(made);
            if (!made.rule.factors.empty())
                m_graph.nodes.push_back(std::move(made));
        }
    }

    void addResults()
    {
        for (const ValueId value : m_function.results()) {
            FlowNode made = nodeToSlot(value, "function result");
            m_graph.resultSlots.push_back(made.slots.back());
            m_graph.resultNodes.push_back(std::move(made));
        }
    }

    const Function& m_function;
    bool m_conservative;
    std::vector<std::size_t> m_uses;
    boost::disjoint_sets_with_storage<> m_sharing; ///< the values that share a slot
    std::vector<const char*> m_bond;
    FlowGraph m_graph;
};

} // namespace

Result<FlowGraph> flowGraph(const Function& function, bool conservative)
{
    return GraphBuilder(function, conservative).run();
}

} // namespace meshwright
