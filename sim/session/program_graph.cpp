// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/program_graph.h"

#include "core/models/layer_names.h"
#include "core/program/spoken_op.h"
#include "core/schedule/stage_array.h"
#include "core/support/text.h"
#include "sim/report/report_parts.h"
#include "sim/session/pipeline_cuts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <unordered_map>

namespace meshwright::sim {

namespace {

const BlockId kMainBlock(std::int32_t{0});

/// A use of a value, and what moves it there.
struct MovedUse {
    ValueId value;
    OpId user; ///< invalid: the function's result
    std::vector<std::size_t> collectives; ///< in the order in which they are done
};

/// The function partitioned once more, with every value under a name of its own: names are what partitioning carries over to the pieces, so each
/// collective is found between the ops that it stands between.
class MovesOnDevices {
public:
    MovesOnDevices(const Function& function, const std::vector<NamedMesh>& meshes, const PropagationReport& report)
        : m_source(function)
    {
        Function named = function;
        for (std::size_t i = 0; i < named.values.size(); ++i) {
            const ValueId value(static_cast<std::int32_t>(i));
            named.values[i].name = fmt::format("%{}", i);
            m_sourceOf.emplace(named.values[i].name, value);
        }
        PartitionOptions options;
        options.report = &report;
        auto device = partition(named, meshes, options);
        if (!device)
            return;
        m_device = *std::move(device);
        uses = collectivesOf(m_device, meshes.front().mesh);
        for (std::size_t i = 0; i < uses.size(); ++i)
            m_numberOf.emplace(uses[i].op, i);
        inside.resize(uses.size());
        specs.resize(uses.size());
        for (const CollectiveUse& use : uses) {
            const auto found = m_sourceOf.find(use.cause.value);
            causes.push_back(found == m_sourceOf.end() ? ValueId() : found->second);
        }
        for (std::size_t i = 0; i < uses.size(); ++i) {
            const Value& result = m_device.function[m_device.function[uses[i].op].results.front()];
            if (result.sharding)
                specs[i] = layoutText(*result.sharding, meshes.front().mesh);
            nameCause(uses[i].cause);
        }
        visit(kMainBlock, OpId());
    }

    std::vector<CollectiveUse> uses;
    std::vector<std::string> specs; ///< of what each collective makes
    std::vector<OpId> inside; ///< the op of the source in whose body each collective is; invalid: none
    std::vector<ValueId> causes; ///< the value that each collective moves, where it has one
    std::vector<MovedUse> moves;

private:
    /// Causes speak of values by the names that they were given here.
    void nameCause(Cause& cause) const
    {
        const auto found = m_sourceOf.find(cause.value);
        if (found == m_sourceOf.end())
            return;
        const std::string before = cause.value;
        cause.value = valueText(m_source, found->second);
        if (const auto at = cause.reason.find(before + " "); at != std::string::npos)
            cause.reason.replace(at, before.size(), cause.value);
    }

    ValueId sourceOf(ValueId local) const
    {
        const auto found = m_sourceOf.find(m_device.function[local].name);
        return found == m_sourceOf.end() ? ValueId() : found->second;
    }

    /// The op that this one does on pieces; invalid for what only moves or prepares.
    OpId sourceOf(const Op& op) const
    {
        if (isCollective(op.kind))
            return {};
        for (const ValueId result : op.results) {
            if (const ValueId value = sourceOf(result); value.valid())
                return m_source[value].producer;
        }
        return {};
    }

    void visit(BlockId block, OpId owner)
    {
        for (const OpId id : m_device.function[block].ops) {
            const Op& op = m_device.function[id];
            if (const auto number = m_numberOf.find(id); number != m_numberOf.end())
                inside[number->second] = owner;
            const OpId source = sourceOf(op);
            for (const BlockId body : op.bodies)
                visit(body, source);
            if (!source.valid())
                continue;
            for (const ValueId operand : op.operands)
                follow(operand, source);
        }
        for (const ValueId result : m_device.function[block].results)
            follow(result, owner);
    }

    /// What is between a use and the value that it uses, the latest first.
    struct Way {
        OpId user;
        std::vector<std::size_t> collectives;
        std::vector<std::pair<ValueId, std::size_t>>
            passed; ///< values that a collective makes, and how many collectives are behind them
        std::set<ValueId> seen; ///< of the device function
    };

    void follow(ValueId local, OpId user)
    {
        Way way;
        way.user = user;
        followBack(local, way);
    }

    /// Back from a use to the value of the source, through what only moves or prepares it.
    void followBack(ValueId local, Way& way)
    {
        if (!way.seen.insert(local).second)
            return;
        const OpId producer = m_device.function[local].producer;
        const ValueId value = sourceOf(local);
        const auto number = producer.valid() ? m_numberOf.find(producer) : m_numberOf.end();
        const bool isMoved = producer.valid() && isCollective(m_device.function[producer].kind);
        if (value.valid() && !isMoved)
            return addMoves(value, way);
        if (!producer.valid())
            return;
        if (value.valid())
            way.passed.emplace_back(value, way.collectives.size());
        if (number != m_numberOf.end())
            way.collectives.push_back(number->second);
        for (const ValueId operand : m_device.function[producer].operands)
            followBack(operand, way);
        if (number != m_numberOf.end())
            way.collectives.pop_back();
        if (value.valid())
            way.passed.pop_back();
    }

    /// A value that is another one in another layout, such as the result of a constraint, is on the way: what moves it there belongs to its op.
    void addMoves(ValueId value, const Way& way)
    {
        std::size_t end = way.collectives.size();
        for (auto passed = way.passed.rbegin(); passed != way.passed.rend(); ++passed) {
            if (passed->first == value)
                continue;
            addMove(value, m_source[passed->first].producer, way.collectives, passed->second, end);
            value = passed->first;
            end = passed->second;
        }
        addMove(value, way.user, way.collectives, 0, end);
    }

    void addMove(ValueId value, OpId user, const std::vector<std::size_t>& way, std::size_t begin, std::size_t end)
    {
        const auto at = [&](std::size_t index) { return way.begin() + static_cast<std::ptrdiff_t>(index); };
        if (begin < end)
            moves.push_back({value, user, {std::make_reverse_iterator(at(end)), std::make_reverse_iterator(at(begin))}});
    }

    const Function& m_source;
    DeviceFunction m_device;
    std::unordered_map<std::string, ValueId> m_sourceOf;
    std::map<OpId, std::size_t> m_numberOf; ///< of collectives
};

/// Those that are made of constants alone: nobody looks for them.
std::vector<bool> constantValues(const Function& function)
{
    std::vector<bool> isConstant(function.values.size(), false);
    for (const Block& block : function.blocks) {
        for (const OpId id : block.ops) {
            const Op& op = function[id];
            const bool isLeaf = op.kind == OpKind::Constant || op.kind == OpKind::Iota;
            const bool isMade = op.bodies.empty() && !op.operands.empty()
                && std::all_of(op.operands.begin(), op.operands.end(), [&](ValueId operand) { return isConstant[operand.at()]; });
            if (isLeaf || isMade) {
                for (const ValueId result : op.results)
                    isConstant[result.at()] = true;
            }
        }
    }
    return isConstant;
}

std::size_t opCount(const Function& function, OpId id)
{
    std::size_t count = 1;
    for (const BlockId body : function[id].bodies) {
        for (const OpId op : function[body].ops)
            count += opCount(function, op);
    }
    return count;
}

/// Stages add gradients up under another name than the whole step has for them: of both the parameter's. Of a part of the layers ("layers.0-7.ffn")
/// that of all of them.
std::string nameInStages(const std::string& value)
{
    const StageArray array = stageArrayOf(value);
    return ofWholeLoop(array.name.empty() ? value : array.name);
}

/// The layer of each of the ops, which follow each other: that of its results' names, else that of the parameters that it reads, else that of the next op of its phase
/// which has a name.
std::vector<std::string> layersOfOps(const Function& function, const std::vector<OpId>& ops)
{
    std::vector<std::string> layers(ops.size());
    std::string next;
    for (std::size_t i = ops.size(); i-- > 0;) {
        const Op& op = function[ops[i]];
        if (i + 1 < ops.size() && function[ops[i + 1]].phase != op.phase)
            next.clear();
        bool isNamed = false;
        for (const ValueId result : op.results) {
            isNamed = isNamed || !function[result].name.empty();
            layers[i] = layers[i].empty() ? layerIn(function[result].name) : layers[i];
        }
        for (const ValueId operand : op.operands) {
            if (layers[i].empty() && !function[operand].producer.valid())
                layers[i] = layerIn(function[operand].name);
        }
        if (layers[i].empty() && !isNamed)
            layers[i] = next;
        next = layers[i];
    }
    return layers;
}

class GraphBuilder {
public:
    GraphBuilder(ProgramGraph& graph, const std::set<OpId>& opened)
        : m_graph(graph)
        , m_function(*graph.function)
        , m_opened(opened)
        , m_isConstant(constantValues(m_function))
        , m_moves(m_function, graph.analysis->built->partitioned.propagated.meshes, *graph.report)
    {
        m_graph.nodeOf.assign(m_function.values.size(), ProgramGraph::kNoNode);
        for (const MovedUse& move : m_moves.moves)
            m_moved[{move.value, move.user}].push_back(&move);
    }

    void build(const std::vector<SimulatedCollective>& step)
    {
        takeCollectives(step);
        m_nodeOfCollective.assign(m_moves.uses.size(), ProgramGraph::kNoNode);
        m_isInside.assign(m_moves.uses.size(), false);
        addBlock(kMainBlock);
        for (const ValueId result : m_function.results())
            use(result, OpId(), ProgramGraph::kNoNode);
        addRest();
        addSends();
    }

private:
    /// Each collective with its time, where the step has it.
    void takeCollectives(const std::vector<SimulatedCollective>& step)
    {
        std::vector<bool> isTaken(step.size(), false);
        m_graph.isCut = m_graph.analysis->pipeline != nullptr; // what moves is of microbatches and of a stage's layers then
        std::vector<std::string> names;
        for (const SimulatedCollective& collective : step)
            names.push_back(m_graph.isCut ? nameInStages(collective.use.cause.value) : std::string());
        for (const CollectiveUse& use : m_moves.uses) {
            const std::string name = m_graph.isCut ? nameInStages(use.cause.value) : std::string();
            const auto isSame = [&](std::size_t i) {
                const CollectiveUse& other = step[i].use;
                return !isTaken[i] && other.kind == use.kind && other.axes == use.axes
                    && (m_graph.isCut
                            ? names[i] == name
                            : other.count == use.count && other.payloadBytes == use.payloadBytes && other.phase == use.phase);
            };
            std::size_t found = 0;
            while (found < step.size() && !isSame(found))
                ++found;
            SimulatedCollective taken;
            if (found < step.size()) {
                isTaken[found] = true;
                taken = step[found];
            } else {
                taken.use = use;
            }
            std::set<std::string> parts = {taken.use.cause.value}; // of the stage's layers, which move one after the other
            for (std::size_t i = found + 1; m_graph.isCut && i < step.size(); ++i) {
                const CollectiveUse& other = step[i].use;
                if (!isSame(i) || other.payloadBytes != taken.use.payloadBytes || other.phase != taken.use.phase
                    || !parts.insert(other.cause.value).second)
                    continue;
                isTaken[i] = true;
                taken.use.count += other.count;
                taken.seconds += step[i].seconds;
                taken.exposedSeconds += step[i].exposedSeconds;
            }
            m_graph.collectives.push_back(std::move(taken));
            m_graph.stepCollective.push_back(found < step.size() ? static_cast<int>(found) : -1);
        }
        if (m_graph.isCut)
            takeSends(step);
    }

    /// What stages send each other, with the values at which the model is cut there.
    void takeSends(const std::vector<SimulatedCollective>& step)
    {
        const Study& study = m_graph.analysis->built->study;
        const std::vector<std::string> cuts = cutValues(study);
        const auto stages = static_cast<std::size_t>(study.pipeline.stages);
        for (std::size_t i = 0; i < step.size(); ++i) {
            if (step[i].use.axes != study.pipeline.axis || step[i].use.kind != OpKind::Send)
                continue;
            const bool isForward = step[i].use.phase == Phase::Forward;
            std::vector<ValueId> sent; // nothing of the model itself where an update sends shared gradients
            for (std::size_t cut = 0; step[i].use.phase != Phase::Update && cut < cuts.size(); ++cut) {
                const std::size_t before = cut % stages;
                const std::size_t behind = (cut + 1) % stages;
                const auto value = m_function.findValue(cuts[cut]);
                if (value && step[i].stage == (isForward ? before : behind) && step[i].to == (isForward ? behind : before))
                    sent.push_back(*value);
            }
            m_sends.emplace_back(m_graph.collectives.size(), std::move(sent));
            m_graph.collectives.push_back(step[i]);
            m_graph.stepCollective.push_back(static_cast<int>(i));
        }
    }

    std::size_t addNode(ProgramNode node)
    {
        for (const ValueId value : node.values) {
            if (node.kind != GraphNodeKind::Collective || node.op.valid())
                m_graph.nodeOf[value.at()] = m_graph.nodes.size();
        }
        m_graph.nodes.push_back(std::move(node));
        return m_graph.nodes.size() - 1;
    }

    void addBlock(BlockId block)
    {
        for (const ValueId argument : m_function[block].arguments)
            addNode({GraphNodeKind::Argument, OpId(), {argument}});
        std::vector<OpId> ops;
        std::copy_if(m_function[block].ops.begin(), m_function[block].ops.end(), std::back_inserter(ops), [&](OpId op) {
            const auto& results = m_function[op].results;
            return results.empty() || !m_isConstant[results.front().at()];
        });
        if (ops.size() <= kMostOpsAtOnce) {
            for (const OpId op : ops)
                addOp(op);
            return;
        }
        const std::vector<std::string> layers = layersOfOps(m_function, ops);
        for (std::size_t begin = 0, end = 0; begin < ops.size(); begin = end) {
            const auto isOfRun = [&](std::size_t i) {
                return layers[i] == layers[begin] && m_function[ops[i]].phase == m_function[ops[begin]].phase;
            };
            for (end = begin + 1; end < ops.size() && isOfRun(end);)
                ++end;
            addRun({ops.begin() + static_cast<std::ptrdiff_t>(begin), ops.begin() + static_cast<std::ptrdiff_t>(end)},
                layers[begin]);
        }
    }

    /// Ops that follow each other, in one layer or (empty) in none.
    void addRun(const std::vector<OpId>& ops, const std::string& layer)
    {
        const OpId part = layer.empty() || ops.size() == 1 ? OpId() : ops.front();
        if (!part.valid() || m_opened.count(part) != 0) {
            for (const OpId op : ops)
                addOp(op, part);
            return;
        }
        ProgramNode run{GraphNodeKind::Body, part, {}, 0, part, layer};
        for (const OpId id : ops) {
            run.ops += opCount(m_function, id);
            run.values.insert(run.values.end(), m_function[id].results.begin(), m_function[id].results.end());
        }
        const std::size_t node = addNode(std::move(run));
        for (const OpId id : ops) {
            for (const ValueId operand : m_function[id].operands)
                use(operand, id, node);
        }
    }

    void addOp(OpId id, OpId part = {})
    {
        const Op& op = m_function[id];
        if (const auto own = ownCollective(id)) {
            m_nodeOfCollective[*own] = addNode({GraphNodeKind::Collective, id, op.results, *own, part});
            for (const ValueId operand : op.operands)
                use(operand, id, m_nodeOfCollective[*own]);
            return;
        }
        const std::size_t inside = opCount(m_function, id) - 1;
        if (op.bodies.empty() || m_opened.count(id) == 0) {
            const std::size_t node
                = addNode(op.bodies.empty() ? ProgramNode{GraphNodeKind::Op, id, op.results, 0, part}
                                            : ProgramNode{GraphNodeKind::Body, id, op.results, 0, id, {}, inside});
            for (const ValueId operand : op.operands)
                use(operand, id, node);
            return;
        }
        for (const BlockId body : op.bodies)
            addBlock(body);
        const std::size_t end = addNode({GraphNodeKind::Body, id, op.results, 0, id, {}, inside});
        for (const BlockId body : op.bodies) {
            const auto& arguments = m_function[body].arguments;
            const std::size_t skipped = op.operands.size() - std::min(op.operands.size(), arguments.size());
            for (std::size_t i = 0; i < arguments.size(); ++i)
                use(op.operands[skipped + i], id, m_graph.nodeOf[arguments[i].at()]);
            for (const ValueId result : m_function[body].results)
                use(result, id, end);
        }
    }

    /// The collective that an op of the program is itself; nothing: it is none, or partitioning made something else of it.
    std::optional<std::size_t> ownCollective(OpId id) const
    {
        const Op& op = m_function[id];
        if (!isCollective(op.kind) && (op.kind < OpKind::OwnAllReduce || op.kind > OpKind::CrossReplicaSum))
            return {};
        for (const ValueId operand : op.operands) {
            const auto moved = m_moved.find({operand, id});
            if (moved == m_moved.end())
                continue;
            const std::size_t last = moved->second.front()->collectives.back();
            return m_nodeOfCollective[last] == ProgramGraph::kNoNode ? std::optional(last) : std::nullopt;
        }
        for (std::size_t i = 0; i < m_moves.uses.size(); ++i) { // in a manual computation, whose values have no names on devices
            const bool isOfOp = opName(op).ends_with(opName(m_moves.uses[i].kind))
                && std::find(op.operands.begin(), op.operands.end(), m_moves.causes[i]) != op.operands.end();
            if (isOfOp && m_nodeOfCollective[i] == ProgramGraph::kNoNode)
                return i;
        }
        return {};
    }

    std::string specOf(ValueId value) const
    {
        const auto& sharding = m_function[value].sharding;
        return sharding ? layoutText(*sharding, m_graph.mesh()) : std::string();
    }

    std::size_t nodeOfCollective(std::size_t collective, ValueId value)
    {
        std::size_t& node = m_nodeOfCollective[collective];
        if (node == ProgramGraph::kNoNode)
            node = addNode({GraphNodeKind::Collective, OpId(), {value}, collective});
        return node;
    }

    void join(std::size_t from, std::size_t to, ValueId value, const std::string& spec)
    {
        if (m_joined.insert({from, to, value}).second)
            m_graph.edges.push_back({from, to, value, spec});
    }

    /// The value to a use: straight, or through the collectives that move it there. No node: it leaves the function.
    void use(ValueId value, OpId user, std::size_t node)
    {
        const std::size_t from = m_graph.nodeOf[value.at()];
        if (from == ProgramGraph::kNoNode)
            return;
        const auto moved = m_moved.find({value, user});
        if (from == node) {
            if (moved != m_moved.end())
                keepInside(moved->second, node);
            return;
        }
        if (moved == m_moved.end()) {
            if (node != ProgramGraph::kNoNode)
                join(from, node, value, specOf(value));
            return;
        }
        for (const MovedUse* move : moved->second) {
            std::size_t last = from;
            std::string spec = specOf(value);
            for (const std::size_t collective : move->collectives) {
                const std::size_t next = nodeOfCollective(collective, value);
                join(last, next, value, spec);
                last = next;
                spec = m_moves.specs[collective];
            }
            if (node != ProgramGraph::kNoNode && node != last)
                join(last, node, value, spec);
        }
    }

    /// What moves in a layer that is one node is not shown.
    void keepInside(const std::vector<const MovedUse*>& moves, std::size_t node)
    {
        for (const MovedUse* move : moves) {
            for (const std::size_t collective : move->collectives) {
                if (m_nodeOfCollective[collective] == ProgramGraph::kNoNode && !m_isInside[collective])
                    ++m_graph.nodes[node].moves;
                m_isInside[collective] = true;
            }
        }
    }

    bool isShown(OpId body) const
    {
        for (OpId at = body; at.valid(); at = ownerOf(m_function[at].block)) {
            if (m_opened.count(at) == 0)
                return false;
        }
        return true;
    }

    OpId ownerOf(BlockId block) const
    {
        for (std::size_t i = 0; i < m_function.ops.size(); ++i) {
            const auto& bodies = m_function.ops[i].bodies;
            if (std::find(bodies.begin(), bodies.end(), block) != bodies.end())
                return OpId(static_cast<std::int32_t>(i));
        }
        return {};
    }

    /// Collectives whose use the graph leaves out hang on what they move; those of a program's own, in its manual computations, stand alone.
    void addRest()
    {
        for (std::size_t i = 0; i < m_nodeOfCollective.size(); ++i) {
            if (m_nodeOfCollective[i] != ProgramGraph::kNoNode || m_isInside[i] || !isShown(m_moves.inside[i]))
                continue;
            const ValueId value = m_moves.causes[i];
            const std::size_t from = value.valid() ? m_graph.nodeOf[value.at()] : ProgramGraph::kNoNode;
            const std::size_t node = addNode({GraphNodeKind::Collective, OpId(), {}, i});
            if (from != ProgramGraph::kNoNode)
                join(from, node, value, specOf(value));
        }
    }

    void addSends()
    {
        for (const auto& [collective, values] : m_sends) {
            const std::size_t node = addNode({GraphNodeKind::Collective, OpId(), {}, collective});
            for (const ValueId value : values)
                join(shownNodeOf(value), node, value, specOf(value));
        }
    }

    /// Of a value in a body that is closed, the node of the body.
    std::size_t shownNodeOf(ValueId value) const
    {
        std::size_t node = m_graph.nodeOf[value.at()];
        for (OpId owner = ownerOf(m_function[value].block); node == ProgramGraph::kNoNode;
             owner = ownerOf(m_function[owner].block))
            node = m_graph.nodeOf[m_function[owner].results.front().at()];
        return node;
    }

    ProgramGraph& m_graph;
    const Function& m_function;
    const std::set<OpId>& m_opened;
    std::vector<bool> m_isConstant;
    MovesOnDevices m_moves;
    std::map<std::pair<ValueId, OpId>, std::vector<const MovedUse*>> m_moved;
    std::vector<std::size_t> m_nodeOfCollective;
    std::vector<bool> m_isInside; ///< of a layer that is one node
    std::vector<std::pair<std::size_t, std::vector<ValueId>>> m_sends; ///< between stages: the collective, and what it sends
    std::set<std::tuple<std::size_t, std::size_t, ValueId>> m_joined;
};

std::string opWords(const Function& function, OpId id)
{
    const Op& op = function[id];
    std::string words(opName(op));
    if (op.kind == OpKind::Repeat)
        words += fmt::format(" × {}", op.as<RepeatAttributes>().count);
    return words;
}

class GraphWords {
public:
    GraphWords(const ProgramGraph& graph, const ProgramFocus& focus)
        : m_graph(graph)
        , m_focus(focus)
    {
        if (focus.steps)
            m_shardings = shardingsAfter(*graph.function, *graph.report, *focus.steps);
    }

    GraphDrawing drawn() const
    {
        GraphDrawing drawing;
        drawing.title = fmt::format("The program {}: {} nodes", m_graph.function->name, m_graph.nodes.size());
        for (std::size_t i = 0; i < m_graph.nodes.size(); ++i)
            drawing.nodes.push_back(drawnNode(i));
        for (const ProgramEdge& edge : m_graph.edges)
            drawing.edges.push_back(
                {edge.from, edge.to, m_focus.steps ? specOf(edge.value) : edge.spec, emphasisOf(edge), roleOfEdge(edge)});
        return drawing;
    }

private:
    const TensorSharding* shardingOf(ValueId value) const
    {
        if (m_focus.steps)
            return &m_shardings[value.at()];
        const auto& sharding = (*m_graph.function)[value].sharding;
        return sharding ? &*sharding : nullptr;
    }

    std::string specOf(ValueId value) const
    {
        const TensorSharding* sharding = shardingOf(value);
        return sharding != nullptr ? layoutText(*sharding, m_graph.mesh()) : std::string();
    }

    bool isLit(const ProgramNode& node) const
    {
        return (node.kind != GraphNodeKind::Collective || node.op.valid())
            && std::any_of(node.values.begin(), node.values.end(), [&](ValueId value) { return m_focus.lit.count(value) != 0; });
    }

    /// That of the collective that moves the value; nothing: it is used as it lies.
    std::optional<ColourRole> roleOfEdge(const ProgramEdge& edge) const
    {
        for (const std::size_t end : {edge.from, edge.to}) {
            if (m_graph.nodes[end].kind == GraphNodeKind::Collective)
                return roleOf(m_graph.collectives[m_graph.nodes[end].collective].use.kind);
        }
        return {};
    }

    GraphEmphasis emphasisOf(const ProgramEdge& edge) const
    {
        const bool isOnWay = m_focus.lit.count(edge.value) != 0
            && (isLit(m_graph.nodes[edge.to]) || m_graph.nodes[edge.to].kind == GraphNodeKind::Collective);
        const bool isBeside = m_focus.selected.count(edge.from) != 0 || m_focus.selected.count(edge.to) != 0;
        return isOnWay || isBeside ? GraphEmphasis::Lit : GraphEmphasis::Plain;
    }

    DrawnGraphNode drawnNode(std::size_t index) const
    {
        const ProgramNode& node = m_graph.nodes[index];
        DrawnGraphNode drawn;
        drawn.id = fmt::format("node:{}", index);
        drawn.kind = node.kind;
        drawn.emphasis = m_focus.selected.count(index) != 0 ? GraphEmphasis::Selected
            : isLit(node)                                   ? GraphEmphasis::Lit
                                                            : GraphEmphasis::Plain;
        if (node.kind == GraphNodeKind::Collective)
            describeCollective(drawn, m_graph.collectives[node.collective], m_graph.isOfWholeModel(node.collective));
        else
            describeOp(drawn, node);
        return drawn;
    }

    static void describeCollective(DrawnGraphNode& drawn, const SimulatedCollective& collective, bool isOfWholeModel)
    {
        const CollectiveUse& use = collective.use;
        drawn.role = roleOf(use.kind);
        drawn.title = collectiveTitle(collective);
        drawn.detail = formatBytes(use.payloadBytes);
        if (use.count > 1)
            drawn.detail += fmt::format(" × {}", use.count);
        if (collective.seconds > 0.0)
            drawn.detail += ", " + formatSeconds(collective.seconds);
        if (isOfWholeModel)
            drawn.detail += ", before stages";
        drawn.tooltip = fmt::format("{}, {}\n{}", drawn.title, drawn.detail, use.cause.reason);
        if (!use.cause.annotation.empty())
            drawn.tooltip += "\nCaused by " + use.cause.annotation;
    }

    static std::string counted(std::size_t count, const char* what)
    {
        return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
    }

    void describeLayer(DrawnGraphNode& drawn, const ProgramNode& node) const
    {
        drawn.title = fmt::format("{}, {}", node.layer, phaseName((*m_graph.function)[node.op].phase));
        if (node.moves > 0)
            drawn.detail += ", " + counted(node.moves, "collective");
        drawn.tooltip = fmt::format("{}\n{}", drawn.title, drawn.detail);
        drawn.isSplit = std::any_of(node.values.begin(), node.values.end(), [&](ValueId value) {
            const TensorSharding* sharding = shardingOf(value);
            return sharding != nullptr && !sharding->isReplicated();
        });
    }

    void describeOp(DrawnGraphNode& drawn, const ProgramNode& node) const
    {
        const Function& function = *m_graph.function;
        const Value* first = node.values.empty() ? nullptr : &function[node.values.front()];
        const std::string op = node.op.valid() ? opWords(function, node.op)
            : node.values.empty()              ? std::string("argument")
                                               : "argument " + valueText(function, node.values.front());
        const std::string type = first != nullptr ? typeText(first->type) : std::string();
        const bool isNamed = first != nullptr && !first->name.empty() && node.kind != GraphNodeKind::Body;
        drawn.title = isNamed ? first->name : op;
        drawn.detail = isNamed && node.op.valid() ? op + " " + type : type;
        if (node.kind == GraphNodeKind::Body)
            drawn.detail = counted(node.ops, "op");
        if (!node.layer.empty())
            return describeLayer(drawn, node);
        drawn.tooltip = fmt::format("{}, {}", op, type);
        for (const ValueId value : node.values) {
            const TensorSharding* sharding = shardingOf(value);
            drawn.isSplit = drawn.isSplit || (sharding != nullptr && !sharding->isReplicated());
            drawn.tooltip += fmt::format("\n{}: {}", valueText(function, value), specOf(value));
        }
        if (node.op.valid())
            drawn.tooltip += fmt::format("\n{}", phaseName(function[node.op].phase));
    }

    const ProgramGraph& m_graph;
    const ProgramFocus& m_focus;
    std::vector<TensorSharding> m_shardings;
};

bool isWritten(const ShardingReason& reason)
{
    return !reason.from.valid() && !reason.through.valid();
}

/// Steps of one round have the same turn: of the annotations' priorities, of the ops, of the strategies. What is tied follows at once.
bool isSameRound(const ShardingReason& before, const ShardingReason& after)
{
    const auto turn = [](const ShardingReason& reason) {
        return std::tuple(isWritten(reason), reason.userPriority, reason.opPriority, reason.aggressive);
    };
    const bool isTied = !isWritten(after) && !after.through.valid();
    return isTied || turn(before) == turn(after);
}

std::string roundTitle(const ShardingReason& reason)
{
    if (isWritten(reason))
        return "what the study says";
    std::string title = reason.opPriority < 0 ? "all ops" : fmt::format("turn {} of the ops", reason.opPriority + 1);
    if (reason.userPriority > 0)
        title += fmt::format(", annotations of priority {}", reason.userPriority);
    return reason.aggressive ? title + ", aggressive" : title;
}

} // namespace

std::set<OpId> openedAtFirst(const Analysis& analysis)
{
    std::set<OpId> opened;
    const Function& function = *analysis.built->partitioned.propagated.find(analysis.built->mainFunction);
    for (const OpId op : function.body().ops) {
        if (function[op].kind == OpKind::Computation && opCount(function, op) <= kMostOpsAtOnce)
            opened.insert(op);
    }
    return opened;
}

ProgramGraph programGraph(
    std::shared_ptr<const Analysis> analysis, const std::set<OpId>& opened, const std::vector<SimulatedCollective>& step)
{
    assert(analysis->built);
    ProgramGraph graph;
    const PartitionedProgram& partitioned = analysis->built->partitioned;
    const auto& functions = partitioned.propagated.functions;
    const auto main = std::find_if(functions.begin(), functions.end(),
        [&](const Function& function) { return function.name == analysis->built->mainFunction; });
    graph.function = &*main;
    graph.report = &partitioned.reports[static_cast<std::size_t>(main - functions.begin())];
    graph.analysis = std::move(analysis);
    GraphBuilder(graph, opened).build(step);
    return graph;
}

std::vector<PropagationRound> propagationRounds(const PropagationReport& report)
{
    std::vector<PropagationRound> rounds;
    for (std::size_t i = 0; i < report.reasons.size(); ++i) {
        if (i == 0 || !isSameRound(report.reasons[i - 1], report.reasons[i]))
            rounds.push_back({i, roundTitle(report.reasons[i])});
        rounds.back().end = i + 1;
    }
    return rounds;
}

std::vector<TensorSharding> shardingsAfter(const Function& function, const PropagationReport& report, std::size_t steps)
{
    std::vector<TensorSharding> shardings;
    for (const Value& value : function.values)
        shardings.push_back(TensorSharding::replicatedOf(value.type.shape.size()));
    for (std::size_t i = 0; i < std::min(steps, report.reasons.size()); ++i) {
        const ShardingReason& reason = report.reasons[i];
        auto& dims = shardings[reason.value.at()].dims;
        if (reason.dim < dims.size())
            appendMerging(dims[reason.dim].axes, reason.axis);
    }
    return shardings;
}

std::string collectiveTitle(const SimulatedCollective& collective)
{
    if (collective.use.kind == OpKind::Send)
        return collective.label;
    return fmt::format("{} over {}", spokenOp(collective.use.kind), collective.use.axes);
}

GraphDrawing graphDrawing(const ProgramGraph& graph, const ProgramFocus& focus)
{
    return GraphWords(graph, focus).drawn();
}

} // namespace meshwright::sim
