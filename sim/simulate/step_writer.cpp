// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/step_writer.h"

#include "core/schedule/label.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace meshwright::sim {

namespace {

constexpr std::uint32_t kComputing = 0;
constexpr std::uint32_t kHost = 1;
constexpr std::int64_t kFewTurns = 4; ///< a loop of fewer is written out: its steady state is never reached

bool onlyComputes(const Instruction& loop)
{
    return std::ranges::all_of(loop.body, [](const Instruction& inner) {
        return inner.kind == InstructionKind::Compute || (inner.kind == InstructionKind::Loop && onlyComputes(inner));
    });
}

} // namespace

StepWriter::StepWriter(
    NetworkSites& sites, const DeviceCost& cost, MatmulPrecision unstated, bool keepLoops, double hostLinkBytesPerSecond)
    : m_sites(sites)
    , m_cost(cost)
    , m_unstated(unstated)
    , m_keepLoops(keepLoops)
    , m_resources(2)
    , m_hostLink(hostLinkBytesPerSecond)
{
}

std::uint32_t StepWriter::newResource()
{
    m_resources.emplace_back();
    return static_cast<std::uint32_t>(m_resources.size() - 1);
}

std::uint32_t StepWriter::streamResource(std::uint32_t site)
{
    const auto [found, isNew] = m_streams.try_emplace(m_sites.streamOf(site), 0);
    if (isNew)
        found->second = newResource();
    return found->second;
}

void StepWriter::announce(const DeviceFunction& function, const Mesh& mesh, std::uint32_t firstUse)
{
    for (const CollectiveUse& use : collectivesOf(function, mesh)) {
        const auto& axes = function.function[use.op].as<CollectiveAttributes>().axes;
        m_announced[{&function.function, use.op}]
            = {m_sites.add(use.kind, axes, use.payloadBytes), firstUse++, newResource(), use.groupSize};
    }
}

std::uint32_t StepWriter::add(
    PendingOp pending, std::initializer_list<std::uint32_t> waits, std::initializer_list<std::uint32_t> becomes)
{
    for (const std::uint32_t resource : waits) {
        if (m_resources[resource].now != kNothing)
            pending.ops.push_back(m_resources[resource].now);
        else
            pending.earlier.push_back(resource);
    }
    const auto op = static_cast<std::uint32_t>(m_pending.size());
    m_pending.push_back(std::move(pending));
    for (const std::uint32_t resource : becomes)
        m_resources[resource].now = op;
    return op;
}

/// The move that an instruction begins or ends.
const StepWriter::Announced& StepWriter::moveOf(const Function& function, const Instruction& instruction)
{
    const auto [found, isNew] = m_announced.try_emplace({&function, instruction.ops.front()});
    if (isNew) {
        found->second = {kNothing, kFirstMove + static_cast<std::uint32_t>(m_moves.size()), newResource()};
        SimulatedMove& move = m_moves.emplace_back();
        move.label = instructionLabel(function, instruction);
        move.toHost = instruction.stream == Stream::ToHost;
        move.bytes = function[function[instruction.ops.front()].operands.front()].type.bytes();
    }
    return found->second;
}

/// A move begins when what it moves is there and the one before it in its direction is over.
void StepWriter::startMove(const Function& function, const Instruction& instruction)
{
    assert(m_hostLink > 0.0);
    const Announced& move = moveOf(function, instruction);
    const auto [stream, isNew] = m_hostStreams.try_emplace(instruction.stream, 0);
    if (isNew)
        stream->second = newResource();
    m_resources[move.resource].isLive = true;
    PendingOp pending;
    pending.ticks = ticksOf(static_cast<double>(m_moves[move.use - kFirstMove].bytes) / m_hostLink);
    pending.note = {StepOpNote::Kind::Move, move.use, kNothing};
    add(std::move(pending), {kComputing, stream->second}, {stream->second, move.resource});
}

std::uint32_t StepWriter::workOfInstruction(const ScheduledFunction& scheduled, const Instruction& instruction)
{
    const Function& function = scheduled.device.function;
    const auto [found, isNew] = m_workOf.try_emplace(&instruction, static_cast<std::uint32_t>(m_works.size()));
    if (!isNew)
        return found->second;
    Instruction update;
    if (instruction.kind == InstructionKind::CollectiveDone) {
        update = instruction;
        update.ops = instruction.update;
    }
    const Instruction& computing = instruction.kind == InstructionKind::CollectiveDone ? update : instruction;
    auto [work, time, formula] = m_times.try_emplace(&scheduled, scheduled, m_cost, m_unstated).first->second.of(computing);
    KernelWork written;
    written.label = instructionLabel(function, computing);
    written.formula = std::move(formula);
    written.time = time;
    written.turns = m_turns;
    written.bytes = m_turns * (work.bytesRead + work.bytesWritten);
    written.isProduct = work.matmul || work.attention;
    written.isUpdate = !computing.ops.empty() && function[computing.ops.front()].phase == Phase::Update;
    written.flops = static_cast<double>(m_turns) * work.flops();
    if (m_turns > 1)
        written.formula = fmt::format("{} turns of {}", formatWhole(m_turns), written.formula);
    m_works.push_back(std::move(written));
    return found->second;
}

void StepWriter::compute(const ScheduledFunction& function, const Instruction& instruction)
{
    computeShare(workOfInstruction(function, instruction), 1.0);
}

void StepWriter::computeShare(std::uint32_t work, double share)
{
    startKernels(work, share);
    PendingOp pending;
    pending.ticks = m_works[work].turns * ticksOf(share * m_works[work].time.seconds);
    pending.note = {StepOpNote::Kind::Compute, work, m_task};
    m_gained += pending.ticks;
    m_lead += pending.ticks;
    add(std::move(pending), {kComputing}, {kComputing});
}

/// Of turns that are taken at once the device can begin with the first when the host has started that; who writes them waits behind them.
void StepWriter::startKernels(std::uint32_t work, double share)
{
    const Ticks ticks = m_works[work].turns * ticksOf(share * m_works[work].time.kernels * m_cost.hostKernelSeconds());
    m_launching += ticks;
    m_gained -= ticks;
    m_lead -= ticks;
    waitWhereHostIsLate();
}

void StepWriter::waitWhereHostIsLate()
{
    if (m_turns > 1 || m_launching == 0)
        return;
    m_leastLead = std::min(m_leastLead, m_lead);
    if (m_lead < 0 || m_hostDecides)
        waitForHost();
}

void StepWriter::noteLaunches()
{
    if (m_launching == 0)
        return;
    PendingOp launch;
    launch.ticks = std::exchange(m_launching, 0);
    launch.note.kind = StepOpNote::Kind::Launch;
    add(std::move(launch), {kHost}, {kHost});
}

void StepWriter::waitForHost()
{
    noteLaunches();
    PendingOp pending;
    pending.note = {StepOpNote::Kind::Wait, kNothing, kNothing};
    add(std::move(pending), {kComputing, kHost}, {kComputing});
    m_lead = std::max<Ticks>(m_lead, 0);
}

/// Of a product in parts, as many as devices share its operand: all but one can go on while the operand is gathered, and behind the first one its result
/// can begin to leave.
bool StepWriter::beginsInParts(const ScheduledFunction& scheduled, const Instruction& instruction)
{
    const Function& function = scheduled.device.function;
    const Announced* gather = m_arriving;
    m_arriving = nullptr;
    const bool isProduct = m_cost.hidesInProducts() && instruction.writes.size() == 1
        && std::ranges::any_of(instruction.ops, [&](OpId id) { return function[id].kind == OpKind::DotGeneral; });
    const bool takes
        = gather != nullptr && isProduct && std::ranges::find(instruction.reads, m_arrived) != instruction.reads.end();
    if (gather != nullptr && !takes)
        take(*gather);
    if (!isProduct)
        return false;
    const std::uint32_t work = workOfInstruction(scheduled, instruction);
    const double part = takes ? 1.0 / static_cast<double>(gather->members) : 0.0;
    m_rest = {work, 1.0, takes ? gather : nullptr, part, instruction.writes.front()};
    return true;
}

/// Writes what is left of a product.
void StepWriter::finishProduct()
{
    if (m_rest.work == kNothing)
        return;
    const Rest rest = std::exchange(m_rest, {});
    if (rest.gather == nullptr)
        return computeShare(rest.work, rest.share);
    if (rest.share > rest.last)
        computeShare(rest.work, rest.share - rest.last);
    take(*rest.gather);
    computeShare(rest.work, std::min(rest.share, rest.last));
}

/// Writes what products in parts have put off.
void StepWriter::settle()
{
    finishProduct();
    if (m_arriving != nullptr)
        take(*std::exchange(m_arriving, nullptr));
}

/// Waits for a collective, for which nothing waits later.
void StepWriter::take(const Announced& collective)
{
    waitFor(collective);
    m_resources[collective.resource].isLive = false;
    m_resources[collective.resource].now = kNothing;
}

void StepWriter::waitFor(const Announced& collective)
{
    PendingOp pending;
    pending.note = {StepOpNote::Kind::Wait, collective.use, kNothing};
    add(std::move(pending), {kComputing, collective.resource}, {kComputing});
}

/// Whether the stack's software waits for a collective where it starts.
bool StepWriter::stopsDevice(const Function& function, const Op& op) const
{
    const Role role = function[op.results.front()].role;
    if (op.kind == OpKind::AllReduce && role == Role::Activation)
        return m_cost.waitsForSums();
    const bool isWeights = (op.kind == OpKind::AllGather && role == Role::Parameter)
        || (op.kind == OpKind::ReduceScatter && role == Role::Gradient);
    return isWeights && m_cost.waitsForWeights();
}

void StepWriter::write(const ScheduledFunction& function, const Instruction& instruction, bool isTop)
{
    const Function& ops = function.device.function;
    const bool leaves = instruction.kind == InstructionKind::CollectiveStart && m_rest.work != kNothing
        && ops[instruction.ops.front()].kind == OpKind::ReduceScatter && instruction.reads.front() == m_rest.result;
    if (leaves) { // behind the product's first part
        const double part = 1.0 / static_cast<double>(m_announced.at({&ops, instruction.ops.front()}).members);
        computeShare(m_rest.work, part);
        m_rest.share -= part;
    } else if (instruction.kind == InstructionKind::Compute) {
        finishProduct();
    } else {
        settle();
    }
    if (instruction.stream == Stream::ToHost || instruction.stream == Stream::ToDevice)
        return instruction.kind == InstructionKind::CollectiveStart ? startMove(ops, instruction)
                                                                    : take(moveOf(ops, instruction));
    switch (instruction.kind) {
    case InstructionKind::Compute:
        if (!beginsInParts(function, instruction))
            compute(function, instruction);
        break;
    case InstructionKind::CollectiveStart: {
        Announced& collective = m_announced.at({&ops, instruction.ops.front()});
        const std::uint32_t stream = streamResource(collective.site);
        m_resources[collective.resource].isLive = true;
        PendingOp pending;
        pending.site = collective.site;
        pending.meeting = m_meetings[collective.site]++;
        pending.note = {StepOpNote::Kind::Collective, collective.use, kNothing};
        add(std::move(pending), {kComputing, stream}, {stream, collective.resource});
        if (m_sites.isSynchronous() || stopsDevice(ops, ops[instruction.ops.front()]))
            waitFor(collective);
        break;
    }
    case InstructionKind::CollectiveDone: {
        const Announced& collective = m_announced.at({&ops, instruction.ops.front()});
        const Op& op = ops[instruction.ops.front()];
        if (m_cost.hidesInProducts() && op.kind == OpKind::AllGather && ops[op.results.front()].role == Role::Activation
            && instruction.update.empty()) {
            m_arriving = &collective;
            m_arrived = op.results.front();
            break;
        }
        take(collective);
        if (!instruction.update.empty())
            compute(function, instruction);
        break;
    }
    case InstructionKind::Loop:
        writeLoop(function, instruction, isTop);
        break;
    case InstructionKind::Blocks: // nothing says how often, or which: each of them once
        for (const auto& block : instruction.blocks) {
            for (const Instruction& inner : block)
                write(function, inner, false);
        }
        break;
    }
}

/// Inside of a loop and of a function's tasks, a loop that only computes takes each of its instructions for all turns at once: as long in all, and
/// nothing else can see in which order. The turns in the middle of others are alike: what one does for its neighbours, the first and the last leave
/// out.
void StepWriter::writeLoop(const ScheduledFunction& function, const Instruction& loop, bool isTop)
{
    const std::int64_t count = function.device.function[loop.ops.front()].as<RepeatAttributes>().count;
    if (!isTop && onlyComputes(loop)) {
        const std::int64_t turns = std::exchange(m_turns, m_turns * count);
        for (const Instruction& inner : loop.body)
            write(function, inner, false);
        settle();
        m_turns = turns;
        waitWhereHostIsLate();
        return;
    }
    const auto writeThose = [&](auto isWanted) {
        for (const Instruction& inner : loop.body) {
            if (isWanted(inner.turn))
                write(function, inner, false);
        }
    };
    const auto has = [&](int turn) {
        return std::any_of(loop.body.begin(), loop.body.end(), [&](const Instruction& inner) { return inner.turn == turn; });
    };
    const std::int64_t first = has(-1) ? 1 : 0;
    const std::int64_t middle = count - first - (has(1) ? 1 : 0);
    const bool keep = m_keepLoops && isTop && middle >= kFewTurns;
    writeThose([](int turn) { return turn > 0; });
    if (first > 0)
        writeThose([](int turn) { return turn >= 0; });
    const auto writeOne = [&] { writeThose([](int) { return true; }); };
    if (keep)
        writeTurns(middle, writeOne);
    for (std::int64_t turn = 0; turn < (keep ? 0 : middle); ++turn)
        writeOne();
    if (has(1))
        writeThose([](int turn) { return turn <= 0; });
    writeThose([](int turn) { return turn < 0; });
}

/// Turns of a loop that stays one. Where they take the host longer than the device, each kernel waits for its start.
void StepWriter::writeTurns(std::int64_t turns, const std::function<void()>& writeOne)
{
    noteLaunches();
    end();
    begin(turns);
    const std::vector<Resource> resources = m_resources;
    const Ticks lead = m_lead;
    const Ticks before = m_gained;
    writeOne();
    settle();
    const Ticks gained = m_gained - before;
    if (gained < 0) { // once more
        m_pending.clear();
        m_meetings.clear();
        std::ranges::fill(m_resources, Resource{});
        std::ranges::copy(resources, m_resources.begin());
        m_launching = 0;
        m_hostDecides = true;
        writeOne();
        settle();
        m_hostDecides = false;
        m_lead = std::max<Ticks>(0, lead + turns * gained);
    } else {
        m_lead += (turns - 1) * gained;
    }
    if (m_resources[kHost].now != kNothing)
        noteLaunches();
    end();
    begin(1);
    m_launching *= turns; // what is not written comes with what the host starts next
}

/// The last computing op so far.
std::pair<std::uint32_t, std::uint32_t> StepWriter::moment() const
{
    const Resource& computing = m_resources[kComputing];
    const auto loop = static_cast<std::uint32_t>(m_loops.size());
    if (computing.now != kNothing)
        return {loop, computing.now};
    if (computing.before != kNothing)
        return {loop - 1, computing.before};
    return {kNothing, kNothing};
}

StepWriter::Moments StepWriter::execute(const ScheduledFunction& function)
{
    Moments moments;
    for (const Instruction& instruction : function.instructions) {
        moments.push_back(moment());
        write(function, instruction, true);
    }
    moments.push_back(moment());
    return moments;
}

/// Its ops wait for others of it alone, and each takes its time: what is written for it is played at once, and taken back.
void StepWriter::learnWhole(const ScheduledFunction& function)
{
    assert(m_loops.empty() && m_pending.empty());
    const Function* ops = &function.device.function;
    const bool isClosed = std::ranges::all_of(
        m_announced, [&](const auto& one) { return one.first.first != ops || m_sites.isClosed(one.second.site); });
    if (!isClosed || m_hostLink > 0.0)
        return;
    constexpr Ticks kFarAhead = kLongestTicks;
    m_lead = m_leastLead = kFarAhead;
    execute(function);
    const std::vector<StageLoop> written = finish();
    const std::uint32_t last = m_resources[kComputing].before;
    WholeFunction whole;
    whole.launching = std::exchange(m_launching, 0);
    whole.lead = std::exchange(m_lead, 0) - kFarAhead;
    whole.leastLead = std::exchange(m_leastLead, 0) - kFarAhead;
    whole.computeSeconds = std::exchange(m_computeSeconds, 0.0);
    m_gained = 0;
    m_opsWritten = 0;
    std::ranges::fill(m_resources, Resource{});
    if (written.empty())
        return;
    const StepProgram& program = written.front().program;
    std::vector<Ticks> ends;
    for (std::uint32_t op = 0; op < program.size(); ++op) {
        Ticks begin = 0;
        for (const StepDependency& dependency : program.dependencies(op))
            begin = std::max(begin, ends[dependency.op]);
        ends.push_back(begin + (program.computes(op) ? program.ticks(op) : ticksOf(m_sites.estimate(program.site(op)).seconds)));
        whole.parts.push_back({begin, ends.back(), written.front().notes[op]});
    }
    whole.ticks = *std::ranges::max_element(ends);
    if (last == kNothing || ends[last] != whole.ticks)
        return; // a collective goes on behind its end
    std::ranges::stable_sort(whole.parts, {}, &WholeFunction::Part::end);
    m_wholeOf[&function] = static_cast<std::uint32_t>(m_wholes.size());
    m_wholes.push_back(std::move(whole));
}

StepWriter::Moments StepWriter::executeWhole(const ScheduledFunction& function)
{
    settle();
    const auto found = m_wholeOf.find(&function);
    if (found == m_wholeOf.end() || m_lead + m_wholes[found->second].leastLead < 0)
        return execute(function);
    const WholeFunction& whole = m_wholes[found->second];
    Moments moments{moment()};
    PendingOp pending;
    pending.ticks = whole.ticks;
    pending.note = {StepOpNote::Kind::Function, found->second, m_task};
    add(std::move(pending), {kComputing}, {kComputing});
    m_launching += whole.launching;
    m_gained += whole.lead;
    m_lead += whole.lead;
    moments.push_back(moment());
    return moments;
}

void StepWriter::send(std::uint32_t site, std::uint32_t meeting, std::uint32_t use)
{
    settle();
    const std::uint32_t stream = streamResource(site);
    PendingOp pending;
    pending.site = site;
    pending.meeting = meeting;
    pending.note = {StepOpNote::Kind::Collective, use, kNothing};
    add(std::move(pending), {kComputing, stream}, {stream});
}

void StepWriter::receive(std::uint32_t site, std::uint32_t meeting, std::uint32_t use)
{
    const std::uint32_t stream = streamResource(site);
    const auto [received, isNew] = m_received.try_emplace(use, 0);
    if (isNew)
        received->second = newResource();
    PendingOp pending;
    pending.site = site;
    pending.meeting = meeting;
    pending.note = {StepOpNote::Kind::Collective, use, kNothing};
    add(std::move(pending), {stream}, {stream, received->second});
}

void StepWriter::waitForReceived(std::uint32_t use)
{
    settle();
    PendingOp pending;
    pending.note = {StepOpNote::Kind::Wait, use, kNothing};
    add(std::move(pending), {kComputing, m_received.at(use)}, {kComputing});
}

/// Ends the loop at hand: what later ones may wait for is handed on through it.
void StepWriter::end()
{
    settle();
    for (std::uint32_t resource = 0; resource < m_resources.size(); ++resource) {
        const Resource& one = m_resources[resource];
        if (one.isLive && one.now == kNothing && one.before != kNothing && !m_pending.empty())
            add({}, {resource}, {resource});
    }
    if (m_pending.empty())
        return;
    StageLoop loop;
    loop.repeat = m_repeat;
    std::vector<StepDependency> waits;
    for (const PendingOp& pending : m_pending) {
        waits.clear();
        for (const std::uint32_t op : pending.ops)
            waits.push_back({op, StepLag::None});
        for (const std::uint32_t resource : pending.earlier) {
            const Resource& one = m_resources[resource];
            if (one.before != kNothing)
                waits.push_back({one.before, StepLag::Loop});
            if (m_repeat > 1 && one.now != kNothing)
                waits.push_back({one.now, StepLag::Iteration});
        }
        if (pending.site == kNothing)
            loop.program.compute(pending.ticks, waits, pending.note.kind == StepOpNote::Kind::Function);
        else
            loop.program.collective(pending.site, pending.meeting, waits);
        loop.notes.push_back(pending.note);
        if (pending.note.kind == StepOpNote::Kind::Compute)
            m_computeSeconds += secondsOf(pending.ticks) * static_cast<double>(m_repeat);
        else if (pending.note.kind == StepOpNote::Kind::Function)
            m_computeSeconds += m_wholes[pending.note.index].computeSeconds * static_cast<double>(m_repeat);
    }
    m_opsWritten += static_cast<std::int64_t>(m_pending.size());
    m_loops.push_back(std::move(loop));
    m_pending.clear();
    m_meetings.clear();
    for (Resource& resource : m_resources) {
        resource.before = resource.isLive ? resource.now : kNothing;
        resource.now = kNothing;
    }
}

std::vector<StageLoop> StepWriter::finish()
{
    end();
    return std::move(m_loops);
}

} // namespace meshwright::sim
