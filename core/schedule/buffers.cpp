// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/buffers.h"

#include "core/program/placement.h"
#include "core/schedule/free_space.h"
#include "core/schedule/fusion.h"
#include "core/support/stop_scope.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>

namespace meshwright {

namespace {

constexpr std::int32_t kNoBuffer = -1;

std::int64_t aligned(std::int64_t bytes)
{
    return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

/// What a block needs in each memory.
struct BlockBytes {
    std::int64_t device = 0;
    std::int64_t host = 0;
};

/// Plans the buffers of one list of instructions: the function's, or a block of an op.
class BlockPlanner {
public:
    BlockPlanner(const Function& function, const std::vector<bool>& onHost, const std::vector<Instruction>& instructions,
        BlockId block, bool isBody, BufferPlan& plan)
        : m_function(function)
        , m_onHost(onHost)
        , m_instructions(instructions)
        , m_block(function[block])
        , m_isBody(isBody)
        , m_plan(plan)
    {
    }

    /// Places everything from offset 0 of each memory on; returns the bytes that the block needs. Buffers are appended to the plan.
    BlockBytes run(std::vector<FinalCopy>* finalCopies, ArgumentPlace arguments)
    {
        collectUses();
        for (const ValueId argument : m_block.arguments)
            newBuffer(argument, 0, lastUse(argument, true));
        std::map<ValueId, ValueId> homes;
        if (finalCopies != nullptr)
            homes = donatedHomes(*finalCopies);
        for (std::size_t i = 0; i < m_instructions.size(); ++i) {
            heedStop();
            for (const ValueId value : m_instructions[i].writes)
                place(value, i, homes);
            if (m_instructions[i].kind == InstructionKind::Loop)
                planBlocks(i, std::span(&m_instructions[i].body, 1));
            else if (m_instructions[i].kind == InstructionKind::Blocks)
                planBlocks(i, m_instructions[i].blocks);
        }
        if (arguments == ArgumentPlace::Callers)
            leaveToCaller();
        return assignOffsets();
    }

private:
    std::size_t end() const { return m_instructions.size(); }
    const Op& opOf(const Instruction& instruction) const { return m_function[instruction.ops.front()]; }

    void collectUses()
    {
        for (std::size_t i = 0; i < m_instructions.size(); ++i) {
            if (m_instructions[i].kind == InstructionKind::CollectiveStart)
                m_started[m_instructions[i].ops.front()] = i;
            for (const ValueId value : m_instructions[i].writes)
                m_written[value] = i;
        }
        for (std::size_t i = 0; i < m_instructions.size(); ++i) {
            // The end of a collective reads the operand too, which is in use until then.
            for (const ValueId value : m_instructions[i].reads) {
                const auto written = m_written.find(value);
                const int turn = written == m_written.end() ? 0 : m_instructions[written->second].turn;
                if (turn > m_instructions[i].turn)
                    m_readLater[value] = std::max(m_readLater[value], {turn - m_instructions[i].turn, i});
                else if (turn < m_instructions[i].turn)
                    m_lastRead[value] = end(); // a row of the loop's operand
                else
                    m_lastRead[value] = i;
            }
        }
        for (const ValueId value : m_block.results) {
            const auto written = m_written.find(value);
            if (written == m_written.end() || m_instructions[written->second].turn == 0)
                m_lastRead[value] = end();
        }
    }

    std::size_t lastUse(ValueId value, bool isArgument) const
    {
        if ((isArgument && !m_isBody) || m_readLater.contains(value))
            return end(); // the caller's, which stays as it is; or it goes on in a later turn
        const auto found = m_lastRead.find(value);
        return found == m_lastRead.end() ? (m_written.contains(value) ? m_written.at(value) : 0) : found->second;
    }

    void newBuffer(ValueId value, std::size_t first, std::size_t last)
    {
        m_plan.bufferOf[value.at()] = static_cast<std::int32_t>(m_plan.buffers.size());
        addBuffer(value, first, last);
    }

    /// Arguments and results get no place.
    void leaveToCaller()
    {
        std::set<std::int32_t> theirs;
        for (const std::vector<ValueId>* values : {&m_block.arguments, &m_block.results}) {
            for (const ValueId value : *values)
                theirs.insert(m_plan.bufferOf[value.at()]);
        }
        std::erase_if(m_own, [&](std::int32_t index) { return theirs.contains(index); });
    }

    /// What lies in a buffer is in use until `last` some turns later: as many turns' values are in use at one time, each in memory of its own.
    void keepOverTurns(std::size_t index, std::size_t last, int turns)
    {
        const ValueId value = m_plan.buffers[index].value;
        const std::size_t first = m_plan.buffers[index].first;
        m_plan.buffers[index].last = end();
        if (last < first) {
            m_beganBefore[index] = last;
        } else {
            m_plan.buffers[index].first = 0;
            addBuffer(value, first, last);
        }
        for (int i = 1; i < turns; ++i)
            addBuffer(value, 0, end());
    }

    void addBuffer(ValueId value, std::size_t first, std::size_t last)
    {
        m_own.push_back(static_cast<std::int32_t>(m_plan.buffers.size()));
        m_plan.buffers.push_back(
            {0, aligned(m_function[value].type.bytes()), kindOf(value), value, first, last, false, m_onHost[value.at()]});
    }

    MemoryKind kindOf(ValueId id) const
    {
        const Value& value = m_function[id];
        const bool isArgument = !value.producer.valid() && !m_isBody;
        const bool fromCollective = value.producer.valid() && isCollective(m_function[value.producer].kind);
        switch (value.role) {
        case Role::Gradient:
            return MemoryKind::Gradient;
        case Role::Parameter:
            return fromCollective ? MemoryKind::Collective : MemoryKind::Parameter;
        case Role::OptimizerState:
            return fromCollective ? MemoryKind::Collective : MemoryKind::OptimizerState;
        case Role::Input:
            return MemoryKind::Input;
        case Role::Metric:
            return MemoryKind::Temporary;
        case Role::Activation:
            break;
        }
        if (isArgument)
            return MemoryKind::Input;
        if (fromCollective)
            return MemoryKind::Collective;
        return outlivesForward(id) ? MemoryKind::Activation : MemoryKind::Temporary;
    }

    /// Made in the forward phase and read in another.
    bool outlivesForward(ValueId id) const
    {
        const OpId producer = m_function[id].producer;
        const auto last = m_lastRead.find(id);
        if (!producer.valid() || m_function[producer].phase != Phase::Forward || last == m_lastRead.end())
            return false;
        return last->second == end() || opOf(m_instructions[last->second]).phase != Phase::Forward;
    }

    // ---- sharing memory

    /// For each donated result: the argument whose place it may take. Those that may not are copied there at the end.
    std::map<ValueId, ValueId> donatedHomes(std::vector<FinalCopy>& finalCopies) const
    {
        std::map<ValueId, ValueId> homes;
        for (const Donation& donation : m_function.donations) {
            const ValueId argument = m_block.arguments[donation.argument];
            const ValueId result = m_block.results[donation.result];
            if (argument == result)
                continue;
            const auto written = m_written.find(result);
            const auto read = m_lastRead.find(argument);
            const bool sameSize = m_function[argument].type == m_function[result].type && shareMemory(argument, result);
            bool free = sameSize && written != m_written.end() && !homes.contains(result);
            if (free && read != m_lastRead.end())
                free = read->second < startOf(written->second)
                    || (read->second == written->second
                        && (isPointwise(written->second, argument)
                            || isRowByRow(m_instructions[written->second], argument, result))
                        && !isReadBetween(argument, startOf(written->second), written->second));
            if (free)
                homes[result] = argument;
            else
                finalCopies.push_back({result, argument});
        }
        return homes;
    }

    bool shareMemory(ValueId a, ValueId b) const { return m_onHost[a.at()] == m_onHost[b.at()]; }

    /// Read by an instruction from `first` on and before `end`.
    bool isReadBetween(ValueId value, std::size_t first, std::size_t end) const
    {
        return std::any_of(m_instructions.begin() + static_cast<std::ptrdiff_t>(first),
            m_instructions.begin() + static_cast<std::ptrdiff_t>(end), [&](const Instruction& instruction) {
                return std::find(instruction.reads.begin(), instruction.reads.end(), value) != instruction.reads.end();
            });
    }

    /// True of an operand of a barrier and its result.
    bool isPassed(std::size_t at, ValueId operand, ValueId result) const
    {
        if (m_instructions[at].kind != InstructionKind::Compute || opOf(m_instructions[at]).kind != OpKind::OptimizationBarrier)
            return false;
        const Op& barrier = opOf(m_instructions[at]);
        const auto place = std::ranges::find(barrier.results, result) - barrier.results.begin();
        return barrier.operands[static_cast<std::size_t>(place)] == operand;
    }

    bool isPointwise(std::size_t at, ValueId value) const { return isPointwise(m_instructions[at], value); }

    bool isPointwise(const Instruction& instruction, ValueId value) const
    {
        const bool isUpdate = !instruction.update.empty();
        if (instruction.kind != InstructionKind::Compute && !isUpdate)
            return false;
        FusionNode node;
        node.ops = isUpdate ? instruction.update : instruction.ops;
        const bool elementwise = std::all_of(node.ops.begin(), node.ops.end(), [&](OpId op) {
            return isElementwise(m_function[op].kind) || m_function[op].kind == OpKind::BroadcastInDim
                || opInfo(m_function[op].kind).opClass == OpClass::Leaf;
        });
        return elementwise && isReadPointwise(m_function, node, value);
    }

    /// True for a loop whose turns each make a row of the result from that row of the argument alone, in one instruction.
    bool isRowByRow(const Instruction& instruction, ValueId argument, ValueId result) const
    {
        if (instruction.kind != InstructionKind::Loop)
            return false;
        const Op& loop = opOf(instruction);
        const auto& attributes = loop.as<RepeatAttributes>();
        const auto stacked = std::span(loop.operands).subspan(attributes.carries, attributes.stacked);
        const auto found = std::find(stacked.begin(), stacked.end(), argument);
        if (found == stacked.end() || std::count(loop.operands.begin(), loop.operands.end(), argument) != 1
            || m_function[result].index < attributes.carries)
            return false;
        const Block& body = m_function[loop.bodies.front()];
        const ValueId row = body.arguments[attributes.carries + static_cast<std::size_t>(found - stacked.begin())];
        const ValueId made = body.results[m_function[result].index];
        const auto reads = [row](const Instruction& inner) {
            return std::find(inner.reads.begin(), inner.reads.end(), row) != inner.reads.end();
        };
        const auto reader = std::find_if(instruction.body.begin(), instruction.body.end(), reads);
        return reader != instruction.body.end() && std::count_if(reader, instruction.body.end(), reads) == 1
            && std::find(reader->writes.begin(), reader->writes.end(), made) != reader->writes.end()
            && std::count(body.results.begin(), body.results.end(), made) == 1 && isPointwise(*reader, row);
    }

    void place(ValueId value, std::size_t at, const std::map<ValueId, ValueId>& homes)
    {
        if (const auto home = homes.find(value); home != homes.end()) {
            m_plan.bufferOf[value.at()] = m_plan.bufferOf[home->second.at()];
            return;
        }
        const std::size_t last = std::max(lastUse(value, false), at);
        const std::size_t start = startOf(at);
        const bool beganBefore = start > at; // in the turn before
        if (const auto operand = operandEndingAt(value, at)) {
            const std::int32_t buffer = m_plan.bufferOf[operand->at()];
            m_plan.bufferOf[value.at()] = buffer;
            m_plan.buffers[static_cast<std::size_t>(buffer)].last = last;
            m_taken.insert(*operand);
        } else {
            newBuffer(value, start, last);
        }
        const auto later = m_readLater.find(value);
        const auto buffer = static_cast<std::size_t>(m_plan.bufferOf[value.at()]);
        if (later != m_readLater.end())
            keepOverTurns(buffer, later->second.second, later->second.first + (beganBefore ? 1 : 0));
        else if (beganBefore)
            keepOverTurns(buffer, last, 1);
    }

    /// A collective, like a move, writes its result from its start on.
    std::size_t startOf(std::size_t at) const
    {
        if (m_instructions[at].kind != InstructionKind::CollectiveDone)
            return at;
        const auto start = m_started.find(m_instructions[at].ops.front());
        return start == m_started.end() ? at : start->second;
    }

    /// An operand of this instruction that nothing reads later, and in whose place the result may be made.
    std::optional<ValueId> operandEndingAt(ValueId value, std::size_t at) const
    {
        const Instruction& instruction = m_instructions[at];
        if (!instruction.update.empty() || startOf(at) > at)
            return std::
                nullopt; // others store into it while operands are still read; a collective over turns has memory of its own
        const bool reducesInPlace
            = instruction.kind == InstructionKind::CollectiveDone && opOf(instruction).kind == OpKind::AllReduce;
        const bool reshapes = instruction.kind == InstructionKind::Compute && instruction.ops.size() == 1
            && opOf(instruction).kind == OpKind::Reshape;
        const std::vector<ValueId>& candidates = reducesInPlace ? opOf(instruction).operands : instruction.reads;
        for (const ValueId operand : candidates) {
            const bool isArgument = !m_function[operand].producer.valid();
            if (reducesInPlace && isReadBetween(operand, startOf(at) + 1, at))
                continue; // it changes from the start on
            if (isArgument || m_taken.contains(operand) || lastUse(operand, false) != at || !shareMemory(operand, value))
                continue;
            // Memory shared already may still be somebody else's.
            const std::int32_t buffer = m_plan.bufferOf[operand.at()];
            if (buffer == kNoBuffer || m_plan.buffers[static_cast<std::size_t>(buffer)].last != at)
                continue;
            const bool sameBytes = m_function[operand].type.bytes() == m_function[value].type.bytes();
            if (sameBytes && (reducesInPlace || reshapes || isPassed(at, operand, value) || isPointwise(at, operand)))
                return operand;
        }
        return std::nullopt;
    }

    // ---- loops

    /// The buffers of an op's blocks lie in one stretch that is in use while the op runs; its blocks run one after the other, from its start on.
    void planBlocks(std::size_t at, std::span<const std::vector<Instruction>> blocks)
    {
        const std::size_t before = m_plan.buffers.size();
        BlockBytes bytes;
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            const BlockId block = opOf(m_instructions[at]).bodies[i];
            const std::size_t first = m_plan.buffers.size();
            const BlockBytes own
                = BlockPlanner(m_function, m_onHost, blocks[i], block, true, m_plan).run(nullptr, ArgumentPlace::Arena);
            const bool isLargest = own.device > bytes.device;
            const auto buffer = [&](std::size_t index) { return m_plan.buffers.begin() + static_cast<std::ptrdiff_t>(index); };
            std::for_each(buffer(isLargest ? before : first), isLargest ? buffer(first) : m_plan.buffers.end(),
                [](Buffer& other) { other.atPeak = false; }); // its turn is not the one that needs most
            bytes = {std::max(bytes.device, own.device), std::max(bytes.host, own.host)};
        }
        m_loops.push_back({before, m_plan.buffers.size(), at});
        addStretch(at, bytes.device, false);
        if (bytes.host > 0)
            addStretch(at, bytes.host, true);
    }

    void addStretch(std::size_t at, std::int64_t bytes, bool onHost)
    {
        m_own.push_back(static_cast<std::int32_t>(m_plan.buffers.size()));
        m_plan.buffers.push_back({0, bytes, MemoryKind::Temporary, ValueId(), at, at, 0, onHost});
    }

    /// The body's buffers, from firstBuffer up to stretch, which is the buffer that holds those of the device; that of the host's is the next one.
    struct LoopBuffers {
        std::size_t firstBuffer = 0;
        std::size_t stretch = 0;
        std::size_t instruction = 0;
    };

    // ---- offsets

    struct Interval {
        std::int64_t bytes = 0;
        std::vector<FreeSpace::Span> spans;
        std::int64_t offset = -1;
    };

    BlockBytes assignOffsets()
    {
        const BlockBytes bytes{assignOffsets(false), assignOffsets(true)};
        for (const LoopBuffers& loop : m_loops) {
            for (std::size_t b = loop.firstBuffer; b < loop.stretch; ++b) {
                Buffer& inner = m_plan.buffers[b];
                inner.offset += m_plan.buffers[loop.stretch + (inner.onHost ? 1 : 0)].offset;
                inner.first = inner.last = loop.instruction;
                ++inner.depth;
            }
        }
        return bytes;
    }

    /// Those in one memory, larger ones first, each at the lowest offset that is free all the time it needs.
    std::int64_t assignOffsets(bool onHost)
    {
        std::vector<std::int32_t> own;
        std::copy_if(m_own.begin(), m_own.end(), std::back_inserter(own),
            [&](std::int32_t index) { return m_plan.buffers[static_cast<std::size_t>(index)].onHost == onHost; });
        std::vector<Interval> intervals;
        for (const std::int32_t index : own) {
            heedStop();
            const Buffer& buffer = m_plan.buffers[static_cast<std::size_t>(index)];
            intervals.push_back({buffer.bytes, {{buffer.first, buffer.last}}});
            if (const auto began = m_beganBefore.find(static_cast<std::size_t>(index)); began != m_beganBefore.end())
                intervals.back().spans.push_back({0, began->second});
        }

        std::vector<std::size_t> order(intervals.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(
            order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return intervals[a].bytes > intervals[b].bytes; });
        std::int64_t total = 0;
        FreeSpace space(end() + 1);
        for (const std::size_t index : order) {
            Interval& interval = intervals[index];
            interval.offset = space.lowestFit(interval.bytes, interval.spans);
            for (const FreeSpace::Span& span : interval.spans)
                space.take(interval.offset, interval.bytes, span);
            total = std::max(total, interval.offset + interval.bytes);
        }

        for (std::size_t i = 0; i < own.size(); ++i)
            m_plan.buffers[static_cast<std::size_t>(own[i])].offset = intervals[i].offset;
        if (!onHost)
            findPeak(own, intervals);
        return total;
    }

    void findPeak(const std::vector<std::int32_t>& own, const std::vector<Interval>& intervals)
    {
        std::vector<std::int64_t> change(end() + 2, 0);
        for (const Interval& interval : intervals) {
            for (const FreeSpace::Span& span : interval.spans) {
                change[span.first] += interval.bytes;
                change[span.last + 1] -= interval.bytes;
            }
        }
        std::int64_t live = 0;
        std::int64_t peak = 0;
        std::size_t peakAt = 0;
        for (std::size_t i = 0; i <= end(); ++i) {
            live += change[i];
            if (live > peak) {
                peak = live;
                peakAt = i;
            }
        }
        m_plan.peakInstruction = peakAt;
        m_plan.peakLiveBytes = peak;
        for (std::size_t i = 0; i < own.size(); ++i)
            m_plan.buffers[static_cast<std::size_t>(own[i])].atPeak = std::ranges::any_of(
                intervals[i].spans, [&](const FreeSpace::Span& span) { return span.first <= peakAt && peakAt <= span.last; });
    }

    const Function& m_function;
    const std::vector<bool>& m_onHost; ///< by value
    const std::vector<Instruction>& m_instructions;
    const Block& m_block;
    bool m_isBody;
    BufferPlan& m_plan;
    std::unordered_map<ValueId, std::size_t> m_lastRead; ///< in the turn that makes it
    std::unordered_map<ValueId, std::pair<int, std::size_t>> m_readLater; ///< behind that turn: by how many turns, and where last
    std::unordered_map<ValueId, std::size_t> m_written;
    std::unordered_map<OpId, std::size_t> m_started; ///< where each collective starts
    std::unordered_set<ValueId> m_taken; ///< operands whose memory a result took over
    std::vector<std::int32_t> m_own; ///< buffers of this block, not of its loops
    std::unordered_map<std::size_t, std::size_t> m_beganBefore; ///< buffers that begin in the turn before: when they end
    std::vector<LoopBuffers> m_loops;
};

} // namespace

void planBuffers(ScheduledFunction& scheduled, ArgumentPlace place)
{
    const Function& function = scheduled.device.function;
    scheduled.buffers = {};
    scheduled.finalCopies.clear();
    scheduled.buffers.bufferOf.assign(function.values.size(), kNoBuffer);
    const std::vector<bool> onHost = valuesOnHost(function);
    BlockPlanner planner(function, onHost, scheduled.instructions, BlockId(std::int32_t{0}), false, scheduled.buffers);
    const BlockBytes bytes = planner.run(&scheduled.finalCopies, place);
    scheduled.buffers.arenaBytes = bytes.device;
    scheduled.buffers.hostBytes = bytes.host;
}

std::vector<MemoryMoment> memoryOverTime(const ScheduledFunction& function)
{
    constexpr std::size_t kKinds = static_cast<std::size_t>(MemoryKind::Temporary) + 1;
    std::vector<MemoryMoment> moments(function.instructions.size() + 1, MemoryMoment{std::vector<std::int64_t>(kKinds, 0), 0, 0});
    for (const Buffer& buffer : function.buffers.buffers) { // first what changes from one moment to the next
        if (buffer.depth > 0 || buffer.first >= moments.size() || buffer.last < buffer.first)
            continue;
        const auto bytesAt = [&](std::size_t at) -> std::int64_t& {
            return buffer.onHost ? moments[at].hostBytes : moments[at].bytesByKind[static_cast<std::size_t>(buffer.kind)];
        };
        bytesAt(buffer.first) += buffer.bytes;
        if (buffer.last + 1 < moments.size())
            bytesAt(buffer.last + 1) -= buffer.bytes;
    }
    for (std::size_t i = 0; i < moments.size(); ++i) {
        moments[i].hostBytes += i > 0 ? moments[i - 1].hostBytes : 0;
        for (std::size_t kind = 0; kind < kKinds; ++kind) {
            if (i > 0)
                moments[i].bytesByKind[kind] += moments[i - 1].bytesByKind[kind];
            moments[i].total += moments[i].bytesByKind[kind];
        }
    }
    return moments;
}

} // namespace meshwright
