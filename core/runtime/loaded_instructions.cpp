// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/loaded_instructions.h"

#include "core/runtime/device_arrays.h"
#include "core/schedule/label.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

namespace meshwright {

namespace {

class InstructionLoader {
public:
    InstructionLoader(const ScheduledFunction& scheduled, const DevicePositions& positions, RendezvousTable& meeting)
        : m_scheduled(scheduled)
        , m_positions(positions)
        , m_meeting(meeting)
        , m_readers(function().values.size(), 0)
    {
        countReaders(scheduled.instructions);
        for (const Block& block : function().blocks) {
            for (const ValueId result : block.results)
                ++m_readers[result.at()];
        }
    }

    Result<LoadedInstructions> run()
    {
        const std::vector<MemoryMoment> moments = memoryOverTime(m_scheduled);
        m_loaded.list = readyList(m_scheduled.instructions, [&](std::size_t at) { m_bytesInUse = moments[at].total; });
        if (!m_problems.empty())
            return m_problems;
        return std::move(m_loaded);
    }

private:
    const Function& function() const { return m_scheduled.device.function; }

    void countReaders(const std::vector<Instruction>& instructions)
    {
        for (const Instruction& instruction : instructions) {
            for (const ValueId value : instruction.reads)
                ++m_readers[value.at()];
            countReaders(instruction.body);
            for (const std::vector<Instruction>& block : instruction.blocks)
                countReaders(block);
        }
    }

    IndexBox boxOf(ValueId value, std::int64_t device) const
    {
        return m_positions.boxOf(m_scheduled.device.globalShapes[value.at()], *function()[value].sharding, device);
    }

    /// What the instruction, which may end later, reads and writes.
    std::vector<std::pair<ValueId, std::int64_t>> usesOf(const Instruction& instruction, const Instruction& done) const
    {
        std::vector<std::pair<ValueId, std::int64_t>> uses;
        for (const std::vector<ValueId>* values : {&instruction.reads, &done.reads, &done.writes}) {
            for (const ValueId value : *values) {
                if (isInMemory(value))
                    uses.emplace_back(value, function()[value].type.bytes());
            }
        }
        return uses;
    }

    bool isInMemory(ValueId value) const
    {
        return m_scheduled.buffers.bufferOf[value.at()] >= 0 || !function()[value].producer.valid();
    }

    /// `begin`, which may be empty, hears of each instruction before it is made ready.
    std::vector<Ready> readyList(
        const std::vector<Instruction>& instructions, const std::function<void(std::size_t instruction)>& begin = {})
    {
        std::vector<Ready> list;
        std::map<OpId, const Collective*> underWay;
        for (auto at = instructions.begin(); at != instructions.end(); ++at) {
            if (begin)
                begin(static_cast<std::size_t>(at - instructions.begin()));
            if (at->kind == InstructionKind::CollectiveDone) {
                if (const auto started = underWay.find(at->ops.front()); started != underWay.end())
                    list.push_back(waitFor(*at, started->second));
                continue;
            }
            const auto done = at->kind == InstructionKind::CollectiveStart ? doneOf(at, instructions.end()) : at;
            list.push_back(readyOf(*at, *done));
            list.back().uses = usesOf(*at, *done);
            if (at + 1 != instructions.end())
                list.back().withNext = reducedPass(*at, *(at + 1));
            const Ready& made = list.back();
            if (made.counter != kNoCounter && done - at > 1) {
                m_loaded.descriptions[made.description].isAsynchronous = true;
                list.back().goesOn = made.collective->canStart();
                underWay[at->ops.front()] = made.collective.get();
            }
        }
        return list;
    }

    /// A pass and the reduction that alone reads what it makes as one; null when they are no such pair.
    std::shared_ptr<const Kernel> reducedPass(const Instruction& pass, const Instruction& reduction) const
    {
        if (pass.kind != InstructionKind::Compute || reduction.kind != InstructionKind::Compute || pass.ops.size() != 1
            || reduction.ops.size() != 1 || pass.writes.size() != 1 || m_readers[pass.writes.front().at()] != 1)
            return nullptr;
        const KernelSite site{function(), [](ValueId) { return PieceOfWhole{}; }}; // element-wise: nothing knows its place
        return makeReducedPassKernel(
            site, pass.ops.front(), reduction.ops.front(), [this](ValueId value) { return isInMemory(value); });
    }

    /// The end of the collective that starts here.
    static std::vector<Instruction>::const_iterator doneOf(
        std::vector<Instruction>::const_iterator start, std::vector<Instruction>::const_iterator end)
    {
        const auto done = std::find_if(start, end,
            [&](const Instruction& other) { return other.kind == InstructionKind::CollectiveDone && other.ops == start->ops; });
        assert(done != end);
        return done;
    }

    /// The end of a collective that goes on beside other instructions.
    Ready waitFor(const Instruction& done, const Collective* collective)
    {
        Ready ready;
        ready.kind = InstructionKind::CollectiveDone;
        RecordedInstruction description;
        description.name = fmt::format("wait for {}", instructionLabel(function(), done));
        description.category = SliceCategory::Wait;
        description.collective = collective;
        description.isWait = true;
        description.bytesInUse = m_bytesInUse;
        m_loaded.descriptions.push_back(std::move(description));
        ready.description = static_cast<std::uint32_t>(m_loaded.descriptions.size() - 1);
        ready.waitsFor = collective;
        return ready;
    }

    /// What the devices do for an instruction; `done` is the end of the collective that it starts, else the instruction itself.
    Ready readyOf(const Instruction& instruction, const Instruction& done)
    {
        Ready ready;
        ready.kind = instruction.kind;
        ready.instruction = &done;
        const Op& op = function()[instruction.ops.back()];
        if (instruction.kind == InstructionKind::Loop) {
            ready.loop = loopPlan(op);
            ready.body = readyList(instruction.body);
            return ready;
        }
        if (op.kind == OpKind::While) {
            ready.loop = whilePlan(op);
            ready.blocks.push_back(readyList(instruction.blocks.front()));
            ready.body = readyList(instruction.blocks.back());
            return ready;
        }
        if (!isTileOp(op.kind) && done.update.empty()
            && std::none_of(op.results.begin(), op.results.end(), [this](ValueId result) { return isInMemory(result); })) {
            ready.kind = InstructionKind::CollectiveDone; // nobody reads what it makes: nothing to do, on any device
            return ready;
        }
        if (op.kind == OpKind::Case) {
            ready.branches = branchPlan(op);
            for (const std::vector<Instruction>& block : instruction.blocks)
                ready.blocks.push_back(readyList(block));
            return ready;
        }
        ready.description = describe(done);
        if (isCollective(op.kind)) {
            auto made = Collective::create(m_scheduled.device, instruction.ops.back(), m_positions, m_meeting, updateOf(done));
            if (!made) {
                append(m_problems, made.error());
                return ready;
            }
            ready.collective = std::move(*made);
            if (op.kind != OpKind::AllSlice) {
                ready.counter = m_loaded.counterOps.size();
                m_loaded.counterOps.push_back(instruction.ops.back());
                m_loaded.descriptions[ready.description].collective = ready.collective.get();
                m_loaded.descriptions[ready.description].bytes = ready.collective->payloadBytes();
            }
            return ready;
        }
        addKernels(instruction, ready);
        return ready;
    }

    std::unique_ptr<const CollectiveUpdate> updateOf(const Instruction& done) const
    {
        if (done.update.empty())
            return nullptr;
        auto update = std::make_unique<CollectiveUpdate>();
        const KernelSite site{function(), [](ValueId) { return PieceOfWhole{}; }}; // such a pass has no part that knows its place
        update->kernel = makeStretchKernel(
            site, done.update, done.writes, [this](ValueId value) { return isInMemory(value); },
            function()[done.ops.front()].results.front());
        for (const ValueId value : done.writes)
            update->outputs.push_back({value, byteSize(function()[value].type.dtype)});
        return update;
    }

    /// One kernel for all devices, unless it makes something that depends on where the device stands.
    void addKernels(const Instruction& instruction, Ready& ready)
    {
        bool dependsOnDevice = false;
        bool lacksLayout = false;
        for (std::int64_t device = 0; device == 0 || (dependsOnDevice && device < m_positions.count()); ++device) {
            const KernelSite site{function(), [&](ValueId value) {
                                      dependsOnDevice = true;
                                      const Shape& whole = m_scheduled.device.globalShapes[value.at()];
                                      if (function()[value].sharding)
                                          return PieceOfWhole{whole, startsOf(boxOf(value, device))};
                                      lacksLayout = lacksLayout || whole != function()[value].type.shape;
                                      return wholePiece(function()[value].type.shape);
                                  }};
            const auto inMemory = [this](ValueId value) { return isInMemory(value); };
            ready.kernels.push_back(makeKernel(site, instruction.ops, instruction.writes, inMemory));
        }
        if (lacksLayout) {
            m_problems.push_back({"MW1512",
                fmt::format("{} of function \"{}\" makes a part of {} that depends on the device, but has no layout",
                    opName(function()[instruction.ops.back()].kind), function().name,
                    valueText(function(), function()[instruction.ops.back()].results.front()))});
        }
    }

    LoopPlan loopPlan(const Op& op) const
    {
        const Block& body = function()[op.bodies.front()];
        LoopPlan loop;
        loop.attributes = op.as<RepeatAttributes>();
        loop.operands = op.operands;
        loop.results = op.results;
        loop.arguments = body.arguments;
        loop.yields = body.results;
        for (std::size_t i = 0; i < loop.attributes.stacked; ++i)
            loop.sliceBytes.push_back(function()[loop.arguments[loop.attributes.carries + i]].type.bytes());
        for (std::size_t i = 0; i < loop.yields.size(); ++i) {
            const ValueId value = loop.yields[i];
            loop.yieldBytes.push_back(function()[value].type.bytes());
            const bool once = std::count(loop.yields.begin(), loop.yields.end(), value) == 1;
            loop.direct.push_back(i >= loop.attributes.carries && once && function()[value].producer.valid()
                && function()[value].block == op.bodies.front() && !isMadeInPlaceOf(value, loop));
        }
        return loop;
    }

    LoopPlan whilePlan(const Op& op) const
    {
        const Block& condition = function()[op.bodies.front()];
        const Block& body = function()[op.bodies.back()];
        LoopPlan loop;
        loop.attributes.carries = op.as<WhileAttributes>().carries;
        loop.operands = op.operands;
        loop.results = op.results;
        loop.arguments = body.arguments;
        loop.yields = body.results;
        for (const ValueId value : loop.yields)
            loop.yieldBytes.push_back(function()[value].type.bytes());
        loop.conditionArguments = condition.arguments;
        loop.condition = condition.results.front();
        return loop;
    }

    BranchPlan branchPlan(const Op& op) const
    {
        BranchPlan plan;
        plan.which = op.operands.front();
        plan.isTruth = function()[plan.which].type.dtype == DType::Pred;
        plan.operands.assign(op.operands.begin() + 1, op.operands.end());
        plan.results = op.results;
        for (const ValueId result : op.results)
            plan.resultBytes.push_back(function()[result].type.bytes());
        for (const BlockId body : op.bodies) {
            plan.arguments.push_back(function()[body].arguments);
            plan.yields.push_back(function()[body].results);
        }
        return plan;
    }

    /// True when the value shares its buffer with another yield, so that both must stay where the plan has them.
    bool isMadeInPlaceOf(ValueId value, const LoopPlan& loop) const
    {
        const auto& bufferOf = m_scheduled.buffers.bufferOf;
        return std::any_of(loop.yields.begin(), loop.yields.end(),
            [&](ValueId other) { return other != value && bufferOf[other.at()] == bufferOf[value.at()]; });
    }

    std::uint32_t describe(const Instruction& instruction)
    {
        const Op& op = function()[instruction.ops.back()];
        RecordedInstruction description;
        description.category = categoryOf(op.kind);
        description.name = instructionLabel(function(), instruction);
        description.bytesInUse = m_bytesInUse;
        if (isCollective(op.kind))
            description.detail = op.as<CollectiveAttributes>().cause.reason;
        m_loaded.descriptions.push_back(std::move(description));
        return static_cast<std::uint32_t>(m_loaded.descriptions.size() - 1);
    }

    const ScheduledFunction& m_scheduled;
    const DevicePositions& m_positions;
    RendezvousTable& m_meeting;
    std::vector<int> m_readers; ///< instructions that read a value, and blocks whose result it is
    std::int64_t m_bytesInUse = 0; ///< while the instruction of the function's list runs that is made ready
    LoadedInstructions m_loaded;
    Problems m_problems;
};

} // namespace

Result<LoadedInstructions> loadInstructions(
    const ScheduledFunction& scheduled, const DevicePositions& positions, RendezvousTable& meeting)
{
    return InstructionLoader(scheduled, positions, meeting).run();
}

} // namespace meshwright
