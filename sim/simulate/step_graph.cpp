// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/step_graph.h"

#include "sim/simulate/trace_builder.h"

#include <algorithm>

namespace meshwright::sim {

namespace {

/// The ops of one stage, loops written out. Waits and relays are not ops: what waits for them waits for what they wait for.
class StageUnroller {
public:
    StageUnroller(
        const StageWork& stage, std::size_t number, const std::vector<std::uint32_t>& siteOfUse, const NetworkSites& sites)
        : m_stage(stage)
        , m_number(static_cast<std::int64_t>(number))
        , m_siteOfUse(siteOfUse)
        , m_sites(sites)
    {
    }

    std::vector<StepGraph::Op> run(const std::vector<SimulatedCollective>& uses)
    {
        for (const StageLoop& loop : m_stage.loops) {
            m_beforeLoop = std::move(m_now);
            m_now.clear();
            for (std::int64_t iteration = 0; iteration < loop.repeat; ++iteration) {
                const std::vector<std::vector<std::uint32_t>> before = std::move(m_now);
                m_now.assign(loop.program.size(), {});
                for (std::uint32_t op = 0; op < loop.program.size(); ++op)
                    add(loop, op, iteration, before, uses);
            }
        }
        return std::move(m_ops);
    }

private:
    void add(const StageLoop& loop, std::uint32_t op, std::int64_t iteration,
        const std::vector<std::vector<std::uint32_t>>& before, const std::vector<SimulatedCollective>& uses)
    {
        std::vector<std::uint32_t> after;
        for (const StepDependency& dependency : loop.program.dependencies(op)) {
            const std::vector<std::uint32_t>* source = nullptr;
            if (dependency.lag == StepLag::None)
                source = &m_now[dependency.op];
            else if (dependency.lag == StepLag::Iteration && iteration > 0)
                source = &before[dependency.op];
            else if (dependency.lag == StepLag::Loop && iteration == 0)
                source = &m_beforeLoop[dependency.op];
            if (source != nullptr)
                after.insert(after.end(), source->begin(), source->end());
        }
        std::ranges::sort(after);
        after.erase(std::unique(after.begin(), after.end()), after.end());
        const StepOpNote& note = loop.notes[op];
        if (note.kind == StepOpNote::Kind::Move) {
            const SimulatedMove& move = m_stage.moves[note.index - kFirstMove];
            m_now[op] = {static_cast<std::uint32_t>(m_ops.size())};
            StepGraph::Op& made = m_ops.emplace_back();
            made.name = move.label;
            made.ticks = loop.program.ticks(op);
            made.bytes = move.bytes;
            made.after = std::move(after);
            return;
        }
        if (note.kind == StepOpNote::Kind::Wait || note.kind == StepOpNote::Kind::Relay) {
            m_now[op] = std::move(after);
            return;
        }
        m_now[op] = {static_cast<std::uint32_t>(m_ops.size())};
        StepGraph::Op& made = m_ops.emplace_back();
        made.after = std::move(after);
        if (note.kind == StepOpNote::Kind::Launch) {
            made.name = "start kernels";
            made.isHost = true;
            made.ticks = loop.program.ticks(op);
            return;
        }
        if (note.kind == StepOpNote::Kind::Compute) {
            const KernelWork& work = (*m_stage.works)[note.index];
            made.name = work.label;
            made.ticks = loop.program.ticks(op);
            made.flops = work.flops;
            made.bytes = work.bytes;
            return;
        }
        const StageTransfer* transfer = m_sites.transferOf(m_siteOfUse[note.index]);
        made.kind = transfer == nullptr  ? StepGraph::Op::Kind::Collective
            : transfer->from == m_number ? StepGraph::Op::Kind::Send
                                         : StepGraph::Op::Kind::Receive;
        made.name = uses[note.index].label;
        made.use = note.index;
        made.meeting = loop.program.meeting(op);
    }

    const StageWork& m_stage;
    std::int64_t m_number;
    const std::vector<std::uint32_t>& m_siteOfUse;
    const NetworkSites& m_sites;
    std::vector<StepGraph::Op> m_ops;
    std::vector<std::vector<std::uint32_t>> m_now; ///< of the ops of the iteration at hand: what stands for each
    std::vector<std::vector<std::uint32_t>> m_beforeLoop; ///< of the last iteration of the loop before
};

} // namespace

StepGraph graphOf(const std::vector<StageWork>& stages, const std::vector<SimulatedCollective>& uses,
    const std::vector<std::uint32_t>& siteOfUse, const NetworkSites& sites)
{
    StepGraph graph;
    for (const StageWork& stage : stages) {
        std::int64_t ops = 0;
        for (const StageLoop& loop : stage.loops)
            ops += loop.repeat * static_cast<std::int64_t>(loop.program.size());
        graph.tooLong = graph.tooLong || ops > StepGraph::kMostOps;
    }
    if (graph.tooLong)
        return graph;
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
        graph.stages.push_back(StageUnroller(stages[stage], stage, siteOfUse, sites).run(uses));
    for (std::size_t use = 0; use < uses.size(); ++use)
        graph.uses.push_back(
            {uses[use].use.kind, uses[use].use.axes, uses[use].use.payloadBytes, sites.groupsAt(siteOfUse[use])});
    const std::vector<double> speeds = sites.speeds();
    for (const auto& [device, stage] : sites.stagesOfDevices()) {
        graph.devices.push_back(device);
        graph.stageOf.push_back(stage);
        graph.speed.push_back(speeds.empty() ? 1.0 : speeds[device]);
    }
    return graph;
}

} // namespace meshwright::sim
