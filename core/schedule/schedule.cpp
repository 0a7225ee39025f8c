// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/schedule.h"

#include "core/schedule/buffers.h"
#include "core/schedule/fused_update.h"
#include "core/schedule/fusion.h"
#include "core/schedule/node_order.h"
#include "core/support/find.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
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
    return findBy(functions, name, [](const ScheduledFunction& f) -> const std::string& { return f.device.function.name; });
}

namespace {

Fusion fusionOf(SchedulePolicy policy)
{
    return policy == SchedulePolicy::Eager ? Fusion::None
        : policy == SchedulePolicy::Host   ? Fusion::Elementwise
                                           : Fusion::Reductions;
}

class BlockScheduler {
public:
    /// `loop`: whose body this is, if any.
    BlockScheduler(const Function& function, BlockId block, SchedulePolicy policy, const RepeatAttributes* loop = nullptr)
        : m_function(function)
        , m_block(block)
        , m_policy(policy)
        , m_loop(policy == SchedulePolicy::Overlapped && loop != nullptr && loop->count > 1 ? loop : nullptr)
        , m_nodes(fusionNodes(function, block, fusionOf(policy)))
    {
        if (policy == SchedulePolicy::Host)
            m_nodes = withFusedUpdates(function, block, std::move(m_nodes));
        m_order = orderOf(function, block, policy, m_loop, m_nodes);
    }

    std::vector<Instruction> run()
    {
        std::vector<Instruction> instructions;
        std::vector<Instruction> begun; // ends of what the turn before has begun
        for (const std::size_t node : m_order.nodes)
            addInstructions(node, instructions, begun);
        if (m_policy == SchedulePolicy::Eager)
            return instructions;
        const BytesOfStreams most = mostUnderWay(instructions);
        if (m_loop != nullptr) {
            const Delayed once = delayDones(instructions, begun, {}, most);
            return delayDones(instructions, begun, overNextTurn(once), most).instructions;
        }
        return delayDones(instructions, begun, {}, most).instructions;
    }

private:
    const Op& opOf(const FusionNode& node) const { return m_function[node.ops.front()]; }

    void addInstructions(std::size_t n, std::vector<Instruction>& instructions, std::vector<Instruction>& begun) const
    {
        const FusionNode& node = m_nodes[n];
        Instruction instruction;
        instruction.ops = node.ops;
        instruction.reads = node.reads;
        instruction.writes = node.writes;
        if (opOf(node).kind == OpKind::Repeat) {
            instruction.kind = InstructionKind::Loop;
            const auto& loop = opOf(node).as<RepeatAttributes>();
            instruction.body = BlockScheduler(m_function, opOf(node).bodies.front(), m_policy, &loop).run();
        } else if (opOf(node).kind == OpKind::While || opOf(node).kind == OpKind::Case) {
            instruction.kind = InstructionKind::Blocks;
            for (const BlockId body : opOf(node).bodies)
                instruction.blocks.push_back(BlockScheduler(m_function, body, m_policy).run());
        } else if (const Stream stream = streamOf(m_function, node, m_policy); stream != Stream::Compute) {
            Instruction start = instruction;
            start.kind = InstructionKind::CollectiveStart;
            start.stream = stream;
            start.reads = opOf(node).operands;
            start.writes.clear();
            start.turn = m_order.isAhead[n] ? 1 : 0;
            instructions.push_back(std::move(start));
            instruction.kind = InstructionKind::CollectiveDone;
            instruction.stream = stream;
            instruction.update = node.update;
            (m_order.isAhead[n] ? begun : instructions).push_back(std::move(instruction));
            return;
        }
        instruction.turn = m_order.isAhead[n] ? 1 : 0;
        instructions.push_back(std::move(instruction));
    }

    /// Bytes of what a collective moves from; its memory is taken until the collective is done.
    std::int64_t operandBytes(const Instruction& instruction) const
    {
        return m_function[m_function[instruction.ops.front()].operands.front()].type.bytes();
    }

    using BytesOfStreams = std::array<std::int64_t, static_cast<std::size_t>(Stream::ToDevice) + 1>;
    static std::size_t indexOf(const Instruction& instruction) { return static_cast<std::size_t>(instruction.stream); }

    /// Of the operands that each stream may have under way. On an accelerator one collective follows another: with two more behind the one that is waited
    /// for, none comes too late. What comes from the host takes no memory there.
    BytesOfStreams mostUnderWay(const std::vector<Instruction>& instructions) const
    {
        BytesOfStreams most{};
        for (const Instruction& instruction : instructions) {
            if (instruction.kind == InstructionKind::CollectiveStart)
                most[indexOf(instruction)] = std::max(most[indexOf(instruction)], operandBytes(instruction));
        }
        for (std::int64_t& bytes : most)
            bytes *= m_policy == SchedulePolicy::Overlapped ? 3 : 2;
        most[static_cast<std::size_t>(Stream::ToDevice)] = std::numeric_limits<std::int64_t>::max();
        return most;
    }

    static bool readsFrom(const Instruction& instruction, const Instruction& done)
    {
        return std::find_first_of(instruction.reads.begin(), instruction.reads.end(), done.writes.begin(), done.writes.end())
            != instruction.reads.end();
    }

    /// A list of instructions, and which of them came last because nothing in the block waits for them.
    struct Delayed {
        std::vector<Instruction> instructions;
        std::vector<Instruction> waiting; ///< dones
        std::vector<Instruction> leaving; ///< each reads the result of one of them
    };

    /// Of what comes last in a turn: what may wait until the turn behind it, as it makes rows of the loop's results and nothing of the next turn's
    /// carries, in whose place this turn's lie.
    Delayed overNextTurn(const Delayed& last) const
    {
        const auto& results = m_function[m_block].results;
        const auto end = results.begin() + static_cast<std::ptrdiff_t>(m_loop->carries);
        const auto isCarried = [&](const Instruction& one) {
            return std::find_first_of(one.writes.begin(), one.writes.end(), results.begin(), end) != one.writes.end();
        };
        const auto& arguments = m_function[m_block].arguments;
        const auto lastCarry = arguments.begin() + static_cast<std::ptrdiff_t>(m_loop->carries);
        const auto readsCarry = [&](const Instruction& one) {
            return std::find_first_of(one.reads.begin(), one.reads.end(), arguments.begin(), lastCarry) != one.reads.end();
        };
        Delayed next;
        for (const Instruction& done : last.waiting) {
            const auto isReader = [&](const Instruction& leaving) { return readsFrom(leaving, done); };
            const bool movesCarry = done.stream == Stream::ToHost && readsCarry(done);
            if (!isCarried(done) && !movesCarry
                && std::none_of(last.leaving.begin(), last.leaving.end(),
                    [&](const Instruction& leaving) { return isReader(leaving) && isCarried(leaving); }))
                next.waiting.push_back(done);
        }
        for (const Instruction& leaving : last.leaving) {
            if (std::any_of(
                    next.waiting.begin(), next.waiting.end(), [&](const Instruction& done) { return readsFrom(leaving, done); }))
                next.leaving.push_back(leaving);
        }
        return next;
    }

    /// Moves each CollectiveDone to just before the first instruction that reads its result, or to where another one of its stream starts that
    /// would bring the operands of those under way to more than `most`. With overlap, what only leaves the block, such as a sum of gradients, waits with
    /// the collective that it reads.
    ///
    /// `begun`: ends of what the turn before has begun. `late`: what this turn leaves to the next one, and is to do for the one before.
    Delayed delayDones(const std::vector<Instruction>& instructions, const std::vector<Instruction>& begun, const Delayed& late,
        const BytesOfStreams& most) const
    {
        std::unordered_set<ValueId> readHere;
        for (const auto* list : {&instructions, &begun}) {
            for (const Instruction& instruction : *list)
                readHere.insert(instruction.reads.begin(), instruction.reads.end());
        }
        const auto onlyLeaves = [&](const Instruction& instruction) {
            return m_policy == SchedulePolicy::Overlapped && instruction.kind == InstructionKind::Compute
                && std::none_of(instruction.writes.begin(), instruction.writes.end(),
                    [&](ValueId value) { return readHere.contains(value); });
        };
        std::unordered_set<OpId> isLate; // collectives
        for (const Instruction& done : late.waiting)
            isLate.insert(done.ops.front());
        BytesOfStreams underWay{};
        Delayed delay;
        std::vector<Instruction>& waiting = delay.waiting;
        std::vector<Instruction>& leaving = delay.leaving;
        std::vector<Instruction>& result = delay.instructions;
        const auto waits = [&](const Instruction& instruction) {
            return std::any_of(waiting.begin(), waiting.end(),
                [&](const Instruction& done) { return done.turn == instruction.turn && readsFrom(instruction, done); });
        };
        const auto release = [&](auto needed) {
            for (auto at = waiting.begin(); at != waiting.end();) {
                if (needed(*at)) {
                    underWay[indexOf(*at)] -= operandBytes(*at);
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
        const auto wait = [&](Instruction done, int turn) {
            underWay[indexOf(done)] += operandBytes(done);
            done.turn = turn;
            waiting.push_back(std::move(done));
        };
        for (const Instruction& done : begun)
            wait(done, 0);
        for (const Instruction& done : late.waiting)
            wait(done, -1);
        for (Instruction instruction : late.leaving) {
            instruction.turn = -1;
            leaving.push_back(std::move(instruction));
        }
        for (const Instruction& instruction : instructions) {
            if (instruction.kind == InstructionKind::CollectiveDone) {
                wait(instruction, 0);
                continue;
            }
            if (instruction.kind == InstructionKind::CollectiveStart) {
                const std::int64_t left = most[indexOf(instruction)] - operandBytes(instruction);
                release([&](const Instruction& done) {
                    const bool isLeft = done.turn == 0 && isLate.contains(done.ops.front());
                    const bool isInTheWay = done.stream == instruction.stream && underWay[indexOf(done)] > left;
                    return done.ops == instruction.ops || (isInTheWay && !isLeft);
                });
            }
            if (onlyLeaves(instruction) && waits(instruction)) {
                leaving.push_back(instruction);
                continue;
            }
            release([&](const Instruction& done) { return done.turn == 0 && readsFrom(instruction, done); });
            result.push_back(instruction);
        }
        const Delayed last{{}, waiting, leaving};
        release([&](const Instruction& done) { return !isLate.contains(done.ops.front()); });
        return {std::move(delay.instructions), last.waiting, last.leaving};
    }

    const Function& m_function;
    BlockId m_block;
    SchedulePolicy m_policy;
    const RepeatAttributes* m_loop; ///< whose turns overlap
    std::vector<FusionNode> m_nodes;
    NodeOrder m_order;
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

ScheduledFunction schedule(DeviceFunction function, SchedulePolicy policy, ArgumentPlace place)
{
    ScheduledFunction scheduled;
    scheduled.device = std::move(function);
    scheduled.instructions = BlockScheduler(scheduled.device.function, BlockId(std::int32_t{0}), policy).run();
    planBuffers(scheduled, place);
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
