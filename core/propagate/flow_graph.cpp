// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/flow_graph.h"

#include "core/program/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace meshwright {

namespace {

/// Sets of values that share a slot.
class Unions {
public:
    explicit Unions(std::size_t size)
        : m_parent(size)
    {
        std::iota(m_parent.begin(), m_parent.end(), std::uint32_t{0});
    }

    std::uint32_t find(std::uint32_t i)
    {
        while (m_parent[i] != i)
            i = m_parent[i] = m_parent[m_parent[i]];
        return i;
    }
    void join(ValueId a, ValueId b)
    {
        const std::uint32_t x = find(static_cast<std::uint32_t>(a.index));
        const std::uint32_t y = find(static_cast<std::uint32_t>(b.index));
        m_parent[std::max(x, y)] = std::min(x, y);
    }

private:
    std::vector<std::uint32_t> m_parent;
};

class GraphBuilder {
public:
    explicit GraphBuilder(const Function& function)
        : m_function(function)
        , m_uses(useCounts(function))
        , m_unions(function.values.size())
    {
    }

    Result<FlowGraph> run()
    {
        if (auto problems = joinGroups(); !problems.empty())
            return problems;
        joinCarries(BlockId(std::int32_t{0}));
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
                m_unions.join(group.front(), member);
                m_bond[member.at()] = "sharding group";
            }
        }
        return problems;
    }

    void joinCarries(BlockId block)
    {
        for (const OpId id : m_function[block].ops) {
            const Op& op = m_function[id];
            if (op.kind != OpKind::Repeat)
                continue;
            const Block& body = m_function[op.bodies.front()];
            for (std::size_t i = 0; i < op.as<RepeatAttributes>().carries; ++i) {
                m_unions.join(body.arguments[i], op.results[i]);
                for (const ValueId member : {body.arguments[i], op.results[i]}) {
                    if (m_bond[member.at()][0] == '\0')
                        m_bond[member.at()] = "loop carry";
                }
            }
            joinCarries(op.bodies.front());
        }
    }

    void makeSlots()
    {
        const auto values = static_cast<std::uint32_t>(m_function.values.size());
        m_graph.slotOf.resize(values);
        for (std::uint32_t value = 0; value < values; ++value) {
            const std::uint32_t root = m_unions.find(value);
            if (root == value) {
                m_graph.slotOf[value] = static_cast<std::uint32_t>(m_graph.slots.size());
                m_graph.slots.emplace_back();
            } else {
                m_graph.slotOf[value] = m_graph.slotOf[root]; // roots come first
            }
            FlowSlot& slot = m_graph.slots[m_graph.slotOf[value]];
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
            if (op.kind == OpKind::Repeat) {
                addRepeat(op);
                continue;
            }
            auto rule = shardingRule(m_function, id);
            if (!rule || rule->factors.empty())
                continue;
            FlowNode made = node(*std::move(rule), op.operands, op.results);
            made.op = id;
            made.elementwise = isElementwise(op.kind);
            if (made.elementwise || op.kind == OpKind::Reshape || op.kind == OpKind::Transpose)
                made.flowClass = FlowClass::PassThrough;
            else if (op.kind == OpKind::BroadcastInDim)
                made.flowClass = FlowClass::Broadcast;
            m_graph.nodes.push_back(std::move(made));
        }
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

    void addResults()
    {
        for (const ValueId value : m_function.results()) {
            FlowNode made;
            made.rule = edgeRule(m_function[value].type.shape, 1, false, false, 0);
            made.operandCount = 1;
            made.values = {value, ValueId()};
            made.slots = {m_graph.slotOf[value.at()], static_cast<std::uint32_t>(m_graph.slots.size())};
            made.elements.assign(2, m_function[value].type.elements());
            made.edge = "function result";
            finish(made);
            m_graph.resultSlots.push_back(made.slots.back());
            m_graph.slots.emplace_back();
            m_graph.resultNodes.push_back(std::move(made));
        }
    }

    const Function& m_function;
    std::vector<std::size_t> m_uses;
    Unions m_unions;
    std::vector<const char*> m_bond;
    FlowGraph m_graph;
};

} // namespace

Result<FlowGraph> flowGraph(const Function& function)
{
    return GraphBuilder(function).run();
}

} // namespace meshwright
