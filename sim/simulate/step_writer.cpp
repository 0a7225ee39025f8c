// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/step_writer.h"

#include "core/schedule/label.h"

#include <algorithm>
#include <cassert>

namespace meshwright::sim {

namespace {

constexpr std::uint32_t kComputing = 0;
constexpr std::int64_t kFewTurns = 4; ///< a loop of fewer is written out: its steady state is never reached

} // namespace

StepWriter::StepWriter(NetworkSites& sites, const DeviceCost& cost, MatmulPrecision unstated, bool keepLoops)
    : m_sites(sites)
    , m_cost(cost)
    , m_unstated(unstated)
    , m_keepLoops(keepLoops)
    , m_resources(1)
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
        m_announced[{&function.function, use.op}] = {m_sites.add(use.kind, axes, use.payloadBytes), firstUse++, newResource()};
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

std::uint32_t StepWriter::workOfInstruction(const Function& function, const Instruction& instruction)
{
    const auto [found, isNew] = m_workOf.try_emplace(&instruction, static_cast<std::uint32_t>(m_works.size()));
    if (!isNew)
        return found->second;
    Instruction computing = instruction;
    if (instruction.kind == InstructionKind::CollectiveDone)
        computing.ops = instruction.update;
    auto [work, time, formula] = m_times.try_emplace(&function, function, m_cost, m_unstated).first->second.of(computing);
    KernelWork written;
    written.label = instructionLabel(function, computing);
    written.formula = std::move(formula);
    written.time = time;
    written.bytes = work.bytesRead + work.bytesWritten;
    written.isProduct = work.matmul || work.attention;
    written.flops = work.flops();
    m_works.push_back(std::move(written));
    return found->second;
}

void StepWriter::compute(const Function& function, const Instruction& instruction)
{
    const std::uint32_t work = workOfInstruction(function, instruction);
    PendingOp pending;
    pending.ticks = ticksOf(m_works[work].time.seconds);
    pending.note = {StepOpNote::Kind::Compute, work, m_task};
    add(std::move(pending), {kComputing}, {kComputing});
}

void StepWriter::waitFor(const Announced& collective)
{
    PendingOp pending;
    pending.note = {StepOpNote::Kind::Wait, collective.use, kNothing};
    add(std::move(pending), {kComputing, collective.resource}, {kComputing});
}

void StepWriter::write(const ScheduledFunction& function, const Instruction& instruction, bool isTop)
{
    const Function& ops = function.device.function;
    switch (instruction.kind) {
    case InstructionKind::Compute:
        compute(ops, instruction);
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
        if (m_sites.isSynchronous())
            waitFor(collective);
        break;
    }
    case InstructionKind::CollectiveDone: {
        const Announced& collective = m_announced.at({&ops, instruction.ops.front()});
        waitFor(collective);
        m_resources[collective.resource].isLive = false;
        m_resources[collective.resource].now = kNothing;
        if (!instruction.update.empty())
            compute(ops, instruction);
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

/// The turns in the middle are alike: what one does for its neighbours, the first and the last leave out.
void StepWriter::writeLoop(const ScheduledFunction& function, const Instruction& loop, bool isTop)
{
    const std::int64_t count = function.device.function[loop.ops.front()].as<RepeatAttributes>().count;
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
    if (keep) {
        end();
        begin(middle);
    }
    for (std::int64_t turn = 0; turn < (keep ? 1 : middle); ++turn)
        writeThose([](int) { return true; });
    if (keep) {
        end();
        begin(1);
    }
    if (has(1))
        writeThose([](int turn) { return turn <= 0; });
    writeThose([](int turn) { return turn < 0; });
}

StepWriter::Moments StepWriter::execute(const ScheduledFunction& function)
{
    Moments moments;
    const auto note = [&] {
        const Resource& computing = m_resources[kComputing];
        const auto loop = static_cast<std::uint32_t>(m_loops.size());
        if (computing.now != kNothing)
            moments.emplace_back(loop, computing.now);
        else if (computing.before != kNothing)
            moments.emplace_back(loop - 1, computing.before);
        else
            moments.emplace_back(kNothing, kNothing);
    };
    for (const Instruction& instruction : function.instructions) {
        note();
        write(function, instruction, true);
    }
    note();
    return moments;
}

void StepWriter::send(std::uint32_t site, std::uint32_t meeting, std::uint32_t use)
{
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
    PendingOp pending;
    pending.note = {StepOpNote::Kind::Wait, use, kNothing};
    add(std::move(pending), {kComputing, m_received.at(use)}, {kComputing});
}

/// Ends the loop at hand: what later ones may wait for is handed on through it.
void StepWriter::end()
{
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
            loop.program.compute(pending.ticks, waits);
        else
            loop.program.collective(pending.site, pending.meeting, waits);
        loop.notes.push_back(pending.note);
        m_computeSeconds += secondsOf(pending.ticks) * static_cast<double>(m_repeat);
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
