// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/pipeline_writer.h"

#include "core/schedule/label.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace meshwright::sim {

void announce(const DeviceFunction& function, const Mesh& mesh, StepWriter& writer, NetworkSites& sites,
    std::vector<SimulatedCollective>& uses, std::vector<std::uint32_t>& siteOfUse)
{
    writer.announce(function, mesh, static_cast<std::uint32_t>(uses.size()));
    for (const CollectiveUse& use : collectivesOf(function, mesh)) {
        siteOfUse.push_back(sites.add(use.kind, function.function[use.op].as<CollectiveAttributes>().axes, use.payloadBytes));
        Instruction start;
        start.ops = {use.op};
        uses.emplace_back().use = use;
        uses.back().label = instructionLabel(function.function, start);
    }
}

PipelineWriter::PipelineWriter(const ScheduledProgram& pipeline, const Mesh& mesh, const std::string& axis, NetworkSites& sites,
    const DeviceCost& cost, double hostLinkBytesPerSecond, bool wholes)
    : m_pipeline(pipeline)
    , m_axis(axis)
    , m_sites(sites)
    , m_transfers(transfersOf(pipeline))
{
    assert(pipeline.policy == SchedulePolicy::Overlapped);
    for (const ScheduledStage& stage : pipeline.stages) {
        StepWriter& writer = *m_writers.emplace_back(
            std::make_unique<StepWriter>(sites, cost, MatmulPrecision::Highest, false, hostLinkBytesPerSecond));
        std::map<std::string, const ScheduledFunction*>& functions = m_functions.emplace_back();
        for (const ScheduledFunction& function : stage.functions) {
            const std::string& name = function.device.function.name;
            if (name == "init")
                continue;
            functions.emplace(name, &function);
            sites.beginFunction(static_cast<std::uint32_t>(m_writers.size() - 1));
            const std::size_t before = uses.size();
            announce(function.device, mesh, writer, sites, uses, siteOfUse);
            for (std::size_t use = before; use < uses.size(); ++use)
                uses[use].stage = m_writers.size() - 1;
        }
    }
    for (SimulatedCollective& use : uses)
        use.use.op = OpId{};
    if (!wholes)
        return;
    for (const StageTransfer& transfer : m_transfers) // all are sites before a function is learnt
        m_sites.add(transfer);
    for (std::size_t stage = 0; stage < m_writers.size(); ++stage) {
        for (const auto& [name, function] : m_functions[stage])
            m_writers[stage]->learnWhole(*function);
    }
}

std::vector<StageWork> PipelineWriter::write()
{
    moments.resize(m_pipeline.stages.size());
    std::vector<std::string> names;
    for (const Task& task : m_pipeline.tasks) {
        if (m_sites.stop().stop_requested())
            break; // the caller sees it
        add(task, static_cast<std::uint32_t>(names.size()));
        names.push_back(taskLabel(task, m_pipeline.pipeline));
    }
    std::vector<StageWork> stages;
    for (const auto& writer : m_writers) {
        stages.push_back(finishedStage(*writer));
        stages.back().tasks = names;
    }
    return stages;
}

/// What a piece passes on is received and waited for, then the function runs, then its result is sent.
void PipelineWriter::add(const Task& task, std::uint32_t number)
{
    StepWriter& writer = *m_writers[task.stage];
    writer.beginTask(number);
    const std::int64_t piece = m_pipeline.pipeline.pieceOf(task);
    const bool backward = task.passesGradients();
    const auto neighbour = [&](bool before) { return before == backward ? piece + 1 : piece - 1; };
    const auto exists = [&](std::int64_t other) { return task.passesOn() && other >= 0 && other < m_pipeline.pipeline.pieces(); };
    if (exists(neighbour(true)))
        pass(neighbour(true), piece, backward, task.microbatch, true);
    if (task.kind == TaskKind::TotalGradients)
        shareGradients(static_cast<std::int64_t>(task.stage), true);
    const StepWriter::Moments own = writer.executeWhole(*m_functions[task.stage].at(task.function));
    if (moments[task.stage].empty())
        moments[task.stage].push_back(own.front());
    moments[task.stage].push_back(own.back());
    if (exists(neighbour(false)))
        pass(piece, neighbour(false), backward, task.microbatch, false);
    if (task.kind == TaskKind::ShareGradients)
        shareGradients(static_cast<std::int64_t>(task.stage), false);
}

/// To each of the stages that share gradients with it, or what it gets of theirs.
void PipelineWriter::shareGradients(std::int64_t stage, bool receives)
{
    const auto meeting = static_cast<std::uint32_t>(m_pipeline.pipeline.pieces() * m_pipeline.pipeline.microbatches);
    for (const StageTransfer& transfer : m_transfers) {
        if (transfer.what != StageMessage::SharedGradients || (receives ? transfer.to : transfer.from) != stage)
            continue;
        const std::uint32_t site = m_sites.add(transfer);
        const std::uint32_t use = useOf(transfer, site);
        StepWriter& writer = *m_writers[static_cast<std::size_t>(stage)];
        if (receives) {
            writer.receive(site, meeting, use);
            writer.waitForReceived(use);
        } else {
            writer.send(site, meeting, use);
        }
    }
}

std::uint32_t PipelineWriter::useOf(const StageTransfer& transfer, std::uint32_t site)
{
    const auto [use, isNew] = m_useOf.try_emplace(transfer, static_cast<std::uint32_t>(uses.size()));
    if (!isNew)
        return use->second;
    siteOfUse.push_back(site);
    SimulatedCollective& added = uses.emplace_back();
    added.label = fmt::format("send {} {} to {}", stageMessageName(transfer.what), transfer.from, transfer.to);
    added.use = sendUse(transfer, m_axis);
    added.stage = static_cast<std::size_t>(transfer.from);
    added.to = static_cast<std::size_t>(transfer.to);
    return use->second;
}

/// A piece sends one microbatch once, and only to one other piece.
void PipelineWriter::pass(std::int64_t from, std::int64_t to, bool backward, std::size_t microbatch, bool receives)
{
    if (stageOf(from) == stageOf(to))
        return;
    const StageTransfer transfer{stageOf(from), stageOf(to), backward ? StageMessage::Gradients : StageMessage::Activations,
        bytesPassedOn(m_pipeline, from, backward)};
    const std::uint32_t site = m_sites.add(transfer);
    const std::uint32_t use = useOf(transfer, site);
    const auto meeting
        = static_cast<std::uint32_t>(from * m_pipeline.pipeline.microbatches + static_cast<std::int64_t>(microbatch));
    if (!receives) {
        m_writers[static_cast<std::size_t>(transfer.from)]->send(site, meeting, use);
        return;
    }
    StepWriter& receiver = *m_writers[static_cast<std::size_t>(transfer.to)];
    receiver.receive(site, meeting, use);
    receiver.waitForReceived(use);
}

} // namespace meshwright::sim
