// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/schedule.h"

#include "core/schedule/buffers.h"
#include "core/schedule/fused_update.h"
#include "core/schedule/fusion.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/range/iterator_range.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <queue>
#include <unordered_set>

namespace meshwright {

const char* memoryKindName(MemoryKind kind)
{
    constexpr std::array kNames
        = {"parameters", "optimizer state", "gradients", "inputs", "activations", "collectives", "temporaries"};
    return kNames[static_cast<std::size_t>(kind)];
}

const char* schedulePolicyName(SchedulePolicy policy)
{
    constexpr std::array kNames = {"host", "overlapped", "eager"};
    return kNames[static_cast<std::size_t>(policy)];
}

const ScheduledFunction* ScheduledStage::find(std::string_view name) const
{
    const auto found = std::find_if(
        functions.begin(), functions.end(), [&](const ScheduledFunction& f) { return f.device.function.name == name; });
    return found == functions.end() ? nullptr : &*found;
}

namespace {

/// What flows between nodes: for each value that a node reads, in the order of its reads, an edge from the node that writes it.
using NodeFlow = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;

NodeFlow nodeFlow(const std::vector<FusionNode>& nodes, std::size_t values)
{
    std::vector<std::size_t> writer(values, nodes.size());
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        for (const ValueId value : nodes[n].writes)
            writer[value.at()] = n;
    }
    NodeFlow flow(nodes.size());
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        for (const ValueId value : nodes[n].reads) {
            if (writer[value.at()] < nodes.size())
                boost::add_edge(writer[value.at()], n, flow);
        }
    }
    return flow;
}

class BlockScheduler {
public:
    BlockScheduler(const Function& function, BlockId block, SchedulePolicy policy)
        : m_function(function)
        , m_block(block)
        , m_policy(policy)
        , m_nodes(fusionNodes(function, block, policy != SchedulePolicy::Eager))
    {
        if (policy == SchedulePolicy::Host)
            m_nodes = withFusedUpdates(function, block, std::move(m_nodes));
        m_flow = nodeFlow(m_nodes, function.values.size());
    }

    std::vector<Instruction> run()
    {
        std::vector<Instruction> instructions;
        for (const std::size_t node : order())
            addInstructions(m_nodes[node], instructions);
        // On an accelerator one collective follows another: with two more behind the one that is waited for, none comes too late.
        if (m_policy != SchedulePolicy::Eager)
            delayDones(instructions, (m_policy == SchedulePolicy::Overlapped ? 3 : 2) * largestOperand(instructions));
        return instructions;
    }

private:
    const Op& opOf(const FusionNode& node) const { return m_function[node.ops.front()]; }

    bool moves(const FusionNode& node) const { return isCollective(opOf(node).kind) && opOf(node).kind != OpKind::AllSlice; }

    /// Where each node would like to stand, in block positions. Reductions of partial sums follow what makes them at once, so that they run beside
    /// the rest of the backward pass; with overlap a gather begins where the one before it is used, so that one is always under way, and gathers of
    /// parameters begin earlier (gatherAhead).
    std::vector<double> wishes() const
    {
        std::vector<double> wish;
        for (const FusionNode& node : m_nodes)
            wish.push_back(static_cast<double>(node.position));
        const FusionNode* gatherBefore = nullptr;
        for (std::size_t n = 0; n < m_nodes.size(); ++n) {
            const FusionNode& node = m_nodes[n];
            const OpKind kind = opOf(node).kind;
            if ((kind == OpKind::AllReduce || kind == OpKind::ReduceScatter) && boost::in_degree(n, m_flow) > 0) {
                const std::size_t maker = *boost::inv_adjacent_vertices(n, m_flow).first;
                wish[n] = std::max(wish[maker], lastReadOfOverwritten(n)) + 0.5;
            } else if (m_policy == SchedulePolicy::Overlapped && kind == OpKind::AllGather) {
                const bool samePhase = gatherBefore != nullptr && opOf(*gatherBefore).phase == opOf(node).phase;
                if (samePhase) {
                    const auto [reader, end]
                        = boost::adjacent_vertices(static_cast<std::size_t>(gatherBefore - m_nodes.data()), m_flow);
                    if (reader != end)
                        wish[n] = std::min(wish[n], static_cast<double>(m_nodes[*reader].position) - 0.5);
                }
                gatherBefore = &node;
            }
        }
        if (m_policy == SchedulePolicy::Overlapped)
            gatherAhead(wish);
        return wish;
    }

    /// Gathers of what is there from the beginning, such as parameters, wait for nothing but memory: at most three of the largest are gathered ahead of
    /// their use, as frameworks fetch the next layer beside this one (FSDP, arXiv:2304.11277, section 3.3.2).
    void gatherAhead(std::vector<double>& wish) const
    {
        std::vector<std::size_t> gathers;
        std::int64_t most = 0;
        for (std::size_t n = 0; n < m_nodes.size(); ++n) {
            const auto makers = boost::make_iterator_range(boost::inv_adjacent_vertices(n, m_flow));
            const bool isThere = std::all_of(
                makers.begin(), makers.end(), [&](std::size_t maker) { return boost::in_degree(maker, m_flow) == 0; });
            if (opOf(m_nodes[n]).kind != OpKind::AllGather || !isThere)
                continue;
            gathers.push_back(n);
            most = std::max(most, resultBytes(m_nodes[n]));
        }
        std::size_t oldest = 0;
        std::int64_t ahead = 0;
        for (std::size_t i = 0; i < gathers.size(); ++i) {
            const std::size_t n = gathers[i];
            ahead += resultBytes(m_nodes[n]);
            double begin = 0.0;
            for (; ahead > 3 * most; ++oldest) {
                ahead -= resultBytes(m_nodes[gathers[oldest]]);
                begin = firstUse(gathers[oldest]);
            }
            wish[n] = std::min(wish[n], std::max(begin, i > 0 ? wish[gathers[i - 1]] : 0.0));
            for (const std::size_t maker : boost::make_iterator_range(boost::inv_adjacent_vertices(n, m_flow)))
                wish[maker] = std::min(wish[maker], wish[n]);
        }
    }

    std::int64_t resultBytes(const FusionNode& node) const { return m_function[node.writes.front()].type.bytes(); }

    /// The position of the first node that reads what a node makes.
    double firstUse(std::size_t n) const
    {
        double first = static_cast<double>(m_nodes[n].position);
        const auto readers = boost::make_iterator_range(boost::adjacent_vertices(n, m_flow));
        return readers.empty()
            ? first
            : static_cast<double>(m_nodes[*std::min_element(readers.begin(), readers.end(), [&](std::size_t a, std::size_t b) {
                  return m_nodes[a].position < m_nodes[b].position;
              })].position);
    }

    /// Where the arguments are read last whose place a fused update's results are to take; 0 when there are none.
    double lastReadOfOverwritten(std::size_t n) const
    {
        double last = 0.0;
        if (m_nodes[n].update.empty() || m_block != BlockId(std::int32_t{0}))
            return last;
        for (const Donation& donation : m_function.donations) {
            const ValueId result = m_function[m_block].results[donation.result];
            const auto& writes = m_nodes[n].writes;
            if (std::find(writes.begin(), writes.end(), result) == writes.end())
                continue;
            const ValueId argument = m_function[m_block].arguments[donation.argument];
            for (std::size_t other = 0; other < m_nodes.size(); ++other) {
                const auto& reads = m_nodes[other].reads;
                if (other != n && std::find(reads.begin(), reads.end(), argument) != reads.end())
                    last = std::max(last, static_cast<double>(m_nodes[other].position));
            }
        }
        return last;
    }

    /// A topological order of the nodes that always takes the ready node with the smallest wish.
    std::vector<std::size_t> order() const
    {
        const std::vector<double> wish = wishes();
        std::vector<std::size_t> missing(m_nodes.size());
        using Entry = std::pair<double, std::size_t>;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
        for (std::size_t n = 0; n < m_nodes.size(); ++n) {
            missing[n] = boost::in_degree(n, m_flow);
            if (missing[n] == 0)
                ready.emplace(wish[n], n);
        }
        std::vector<std::size_t> result;
        while (!ready.empty()) {
            const std::size_t n = ready.top().second;
            ready.pop();
            result.push_back(n);
            for (const std::size_t reader : boost::make_iterator_range(boost::adjacent_vertices(n, m_flow))) {
                if (--missing[reader] == 0)
                    ready.emplace(wish[reader], reader);
            }
        }
        assert(result.size() == m_nodes.size());
        return result;
    }

    void addInstructions(const FusionNode& node, std::vector<Instruction>& instructions) const
    {
        Instruction instruction;
        instruction.ops = node.ops;
        instruction.reads = node.reads;
        instruction.writes = node.writes;
        if (opOf(node).kind == OpKind::Repeat) {
            instruction.kind = InstructionKind::Loop;
            instruction.body = BlockScheduler(m_function, opOf(node).bodies.front(), m_policy).run();
        } else if (opOf(node).kind == OpKind::While || opOf(node).kind == OpKind::Case) {
            instruction.kind = InstructionKind::Blocks;
            for (const BlockId body : opOf(node).bodies)
                instruction.blocks.push_back(BlockScheduler(m_function, body, m_policy).run());
        } else if (moves(node)) {
            Instruction start = instruction;
            start.kind = InstructionKind::CollectiveStart;
            start.stream = Stream::Collectives;
            start.reads = opOf(node).operands;
            start.writes.clear();
            instructions.push_back(std::move(start));
            instruction.kind = InstructionKind::CollectiveDone;
            instruction.stream = Stream::Collectives;
            instruction.update = node.update;
        }
        instructions.push_back(std::move(instruction));
    }

    /// Bytes of what a collective moves from; its memory is taken until the collective is done.
    std::int64_t operandBytes(const Instruction& instruction) const
    {
        return m_function[m_function[instruction.ops.front()].operands.front()].type.bytes();
    }

    std::int64_t largestOperand(const std::vector<Instruction>& instructions) const
    {
        std::int64_t largest = 0;
        for (const Instruction& instruction : instructions) {
            if (instruction.kind == InstructionKind::CollectiveStart)
                largest = std::max(largest, operandBytes(instruction));
        }
        return largest;
    }

    /// Moves each CollectiveDone to just before the first instruction that reads its result, or to where another collective starts that would
    /// bring the operands of those under way to more than `mostBytes`. With overlap, what only leaves the block, such as a sum of gradients, waits with
    /// the collective that it reads.
    void delayDones(std::vector<Instruction>& instructions, std::int64_t mostBytes) const
    {
        std::unordered_set<ValueId> readHere;
        for (const Instruction& instruction : instructions)
            readHere.insert(instruction.reads.begin(), instruction.reads.end());
        const auto onlyLeaves = [&](const Instruction& instruction) {
            return m_policy == SchedulePolicy::Overlapped && instruction.kind == InstructionKind::Compute
                && std::none_of(instruction.writes.begin(), instruction.writes.end(),
                    [&](ValueId value) { return readHere.contains(value); });
        };
        std::int64_t underWay = 0;
        std::vector<Instruction> waiting; // dones
        std::vector<Instruction> leaving; // each reads the result of one of them
        std::vector<Instruction> result;
        const auto readsFrom = [](const Instruction& instruction, const Instruction& done) {
            return std::find_first_of(instruction.reads.begin(), instruction.reads.end(), done.writes.begin(), done.writes.end())
                != instruction.reads.end();
        };
        const auto waits = [&](const Instruction& instruction) {
            return std::any_of(
                waiting.begin(), waiting.end(), [&](const Instruction& done) { return readsFrom(instruction, done); });
        };
        const auto release = [&](auto needed) {
            for (auto at = waiting.begin(); at != waiting.end();) {
                if (needed(*at)) {
                    underWay -= operandBytes(*at);
                    result.push_back(std::move(*at));
                    at = waiting.erase(at);
                } else {
                    ++at;
                }
            }
            const auto free = std::stable_partition(leaving.begin(), leaving.end(), waits);
            std::move(free, leaving.end(), std::back_inserter(result));
            leaving.erase(free, leaving.end());
        };
        for (Instruction& instruction : instructions) {
            if (instruction.kind == InstructionKind::CollectiveDone) {
                underWay += operandBytes(instruction);
                waiting.push_back(std::move(instruction));
                continue;
            }
            if (instruction.kind == InstructionKind::CollectiveStart) {
                const std::int64_t added = operandBytes(instruction);
                release([&](const Instruction&) { return underWay > mostBytes - added; });
            }
            if (onlyLeaves(instruction) && waits(instruction)) {
                leaving.push_back(std::move(instruction));
                continue;
            }
            release([&](const Instruction& done) { return readsFrom(instruction, done); });
            result.push_back(std::move(instruction));
        }
        release([](const Instruction&) { return true; });
        instructions = std::move(result);
    }

    const Function& m_function;
    BlockId m_block;
    SchedulePolicy m_policy;
    std::vector<FusionNode> m_nodes;
    NodeFlow m_flow;
};

} // namespace

std::string functionOf(TaskKind kind, std::size_t chunk)
{
    switch (kind) {
    case TaskKind::Whole:
        break;
    case TaskKind::Forward:
        return fmt::format("forward.{}", chunk);
    case TaskKind::Backward:
    case TaskKind::BackwardInput:
        return fmt::format("backward.{}", chunk);
    case TaskKind::BackwardWeight:
        return fmt::format("weights.{}", chunk);
    case TaskKind::ShareGradients:
        return "shared";
    case TaskKind::TotalGradients:
        return "total";
    case TaskKind::ShareNorm:
        return "norm";
    case TaskKind::Update:
        return "update";
    }
    assert(!"a whole step has a function of its own name");
    return {};
}

ScheduledFunction schedule(const DeviceFunction& function, SchedulePolicy policy)
{
    ScheduledFunction scheduled;
    scheduled.device = function;
    scheduled.instructions = BlockScheduler(function.function, BlockId(std::int32_t{0}), policy).run();
    planBuffers(scheduled);
    return scheduled;
}

ScheduledProgram schedule(const DeviceProgram& program, SchedulePolicy policy)
{
    ScheduledProgram scheduled;
    scheduled.policy = policy;
    scheduled.collectiveCost = program.collectiveCost;
    for (std::size_t i = 0; i < program.stages.size(); ++i) {
        ScheduledStage stage;
        stage.meshes = program.stages[i].meshes;
        for (const DeviceFunction& function : program.stages[i].functions) {
            stage.functions.push_back(schedule(function, policy));
            if (function.function.name == "step")
                scheduled.tasks.push_back({i, 0, 0, TaskKind::Whole, "step"});
        }
        scheduled.stages.push_back(std::move(stage));
    }
    return scheduled;
}

} // namespace meshwright
