// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/chakra/replay.h"

#include "core/support/file.h"
#include "sim/chakra/joined_step.h"
#include "sim/chakra/trace_set.h"
#include "sim/cost/device_cost.h"
#include "sim/simulate/trace_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace meshwright::sim {

namespace {

/// An op of a rank's program.
struct RankOp {
    Ticks ticks = 0;
    std::uint32_t site = kNothing;
    std::uint32_t meeting = 0;
    StepOpNote::Kind kind = StepOpNote::Kind::Relay;
    std::uint32_t index = 0; ///< of the note; of computing the name
    double flops = 0.0;
    std::int64_t bytes = 0;
    bool isEstimated = false; ///< of computing: not by its trace
    std::uint32_t firstWait = 0; ///< into RankProgram::waits

    friend bool operator==(const RankOp&, const RankOp&) = default;
};

struct RankProgram {
    std::vector<RankOp> ops;
    std::vector<std::uint32_t> waits; ///< ops

    friend bool operator==(const RankProgram&, const RankProgram&) = default;

    std::size_t hash() const
    {
        std::size_t seed = ops.size();
        const auto mix = [&](std::uint64_t value) { seed = (seed ^ value) * 0x9e3779b97f4a7c15ULL + (seed >> 29U); };
        for (const RankOp& op : ops) {
            mix(static_cast<std::uint64_t>(op.ticks));
            mix(std::uint64_t{op.site} << 32U | op.index);
        }
        return seed;
    }
};

/// What the network's sites are called by the nodes that use them.
class Uses {
public:
    Uses(const TraceSet& traces, const JoinedStep& step, const NetworkSites& sites)
        : m_traces(traces)
        , m_step(step)
        , m_sites(sites)
    {
    }

    std::uint32_t of(const TraceNode& node, std::uint32_t site)
    {
        constexpr std::size_t kMostNamed = 4096; // past that nodes of any name are one row
        const auto key = [&](std::uint32_t name) { return std::uint64_t{site} << 32U | name; };
        const std::uint32_t name = uses.size() < kMostNamed || m_known.contains(key(node.name)) ? node.name : kNothing;
        const auto [found, isNew] = m_known.try_emplace(key(name), static_cast<std::uint32_t>(uses.size()));
        if (!isNew)
            return found->second;
        const bool isMessage = node.kind != TraceNode::Kind::Collective;
        SimulatedCollective& use = uses.emplace_back();
        use.use.kind = isMessage ? OpKind::CollectivePermute : opKind(node.collective);
        use.use.axes = isMessage ? "messages" : m_step.groupsText(site);
        use.use.groupSize = m_sites.groupsAt(site).size;
        use.use.payloadBytes = node.bytes * (node.collective == ChakraCollective::AllGather ? use.use.groupSize : 1);
        use.use.cause.value = name == kNothing ? "" : m_traces.names()[name];
        use.label = use.use.cause.value.empty() ? opName(use.use.kind) : use.use.cause.value;
        siteOfUse.push_back(site);
        return found->second;
    }

    std::vector<SimulatedCollective> uses;
    std::vector<std::uint32_t> siteOfUse;

private:
    static OpKind opKind(ChakraCollective collective)
    {
        switch (collective) {
        case ChakraCollective::AllGather:
            return OpKind::AllGather;
        case ChakraCollective::ReduceScatter:
            return OpKind::ReduceScatter;
        case ChakraCollective::AllToAll:
            return OpKind::AllToAll;
        case ChakraCollective::Broadcast:
        case ChakraCollective::Reduce:
            return OpKind::CollectivePermute;
        default:
            return OpKind::AllReduce;
        }
    }

    const TraceSet& m_traces;
    const JoinedStep& m_step;
    const NetworkSites& m_sites;
    std::unordered_map<std::uint64_t, std::uint32_t> m_known; ///< by site and name
};

/// Writes the program of one rank: a stream of computing, one of its host, and the network's ops where their nodes let them begin.
class RankWriter {
public:
    RankWriter(const TraceSet& traces, const JoinedStep& step, Uses& uses)
        : m_traces(traces)
        , m_step(step)
        , m_uses(uses)
    {
    }

    RankProgram write(std::size_t rank)
    {
        m_program = {};
        m_device = m_host = kNothing;
        m_first = m_traces.firstNode(rank);
        m_opOf.assign(m_traces.firstNode(rank + 1) - m_first, kNothing);
        m_arrival.assign(m_opOf.size(), kNothing);
        m_useOf.clear();
        m_last.clear();
        m_lastAtSite.clear();
        for (const JoinedStep::Turn& turn : m_step.turns(rank))
            add(turn);
        return std::move(m_program);
    }

private:
    std::uint32_t op(RankOp made, const std::vector<std::uint32_t>& waits, std::uint32_t use)
    {
        made.firstWait = static_cast<std::uint32_t>(m_program.waits.size());
        m_program.waits.insert(m_program.waits.end(), waits.begin(), waits.end());
        m_program.ops.push_back(made);
        m_useOf.push_back(use);
        return static_cast<std::uint32_t>(m_program.ops.size() - 1);
    }

    /// Those of one group, or from one sender with one tag, come one after the other.
    std::uint32_t network(const JoinedStep::Event& event, std::uint32_t node, std::vector<std::uint32_t> waits)
    {
        const TraceNode& own = m_traces.node(node);
        const std::uint32_t use = m_uses.of(own, event.site);
        const bool isMessage = own.kind != TraceNode::Kind::Collective;
        const auto [before, isFirst] = m_last.try_emplace(std::uint64_t{own.channel} << 1U | (isMessage ? 1U : 0U), 0);
        if (!isFirst)
            waits.push_back(before->second);
        const auto [atSite, isFirstThere]
            = m_lastAtSite.try_emplace(event.site, 0); // a site has one meeting at a time, whatever their tags
        if (!isFirstThere)
            waits.push_back(atSite->second);
        RankOp made;
        made.site = event.site;
        made.meeting = event.meeting;
        made.kind = StepOpNote::Kind::Collective;
        made.index = use;
        return before->second = atSite->second = op(made, waits, use);
    }

    void add(const JoinedStep::Turn& turn)
    {
        const TraceNode& node = m_traces.node(turn.node);
        if (turn.arrives) {
            m_arrival[turn.node - m_first] = network(m_step.messageOf(turn.node), turn.node, {});
            return;
        }
        std::vector<std::uint32_t> waits;
        for (const std::uint32_t other : m_traces.dependencies(turn.node))
            waits.push_back(m_opOf[other - m_first]);
        std::uint32_t& made = m_opOf[turn.node - m_first];
        switch (node.kind) {
        case TraceNode::Kind::Compute:
            made = compute(node, waits);
            break;
        case TraceNode::Kind::Collective:
        case TraceNode::Kind::Send:
            made = network(m_step.eventOf(turn.node), turn.node, waits);
            break;
        case TraceNode::Kind::Receive:
            waits.push_back(m_arrival[turn.node - m_first]);
            made = op({}, waits, m_useOf[waits.back()]);
            break;
        case TraceNode::Kind::Host:
            if (m_host != kNothing)
                waits.push_back(m_host);
            m_host = made = op({node.ticks}, waits, kNothing);
            break;
        case TraceNode::Kind::Nothing:
            made = op({}, waits, latestUse(waits));
            break;
        }
    }

    /// What other streams did is waited for by an op of its own, as timelines show it.
    std::uint32_t compute(const TraceNode& node, std::vector<std::uint32_t>& waits)
    {
        std::erase_if(waits, [&](std::uint32_t other) { return m_program.ops[other].kind == StepOpNote::Kind::Compute; });
        if (!waits.empty()) {
            const std::uint32_t use = latestUse(waits);
            if (m_device != kNothing)
                waits.push_back(m_device);
            RankOp wait;
            wait.kind = StepOpNote::Kind::Wait;
            wait.index = use;
            m_device = op(wait, waits, use);
        }
        RankOp made;
        made.ticks = node.ticks;
        made.kind = StepOpNote::Kind::Compute;
        made.index = node.name;
        made.flops = node.flops;
        made.bytes = node.bytes;
        made.isEstimated = node.isEstimated;
        waits.clear();
        if (m_device != kNothing)
            waits.push_back(m_device);
        return m_device = op(made, waits, kNothing);
    }

    std::uint32_t latestUse(const std::vector<std::uint32_t>& ops) const
    {
        std::uint32_t latest = kNothing;
        for (const std::uint32_t one : ops) {
            if (m_useOf[one] != kNothing && (latest == kNothing || one > latest))
                latest = one;
        }
        return latest == kNothing ? kNothing : m_useOf[latest];
    }

    const TraceSet& m_traces;
    const JoinedStep& m_step;
    Uses& m_uses;
    RankProgram m_program;
    std::vector<std::uint32_t> m_opOf; ///< of the rank's nodes: when they are done
    std::vector<std::uint32_t> m_arrival; ///< likewise
    std::unordered_map<std::uint64_t, std::uint32_t> m_last; ///< of groups and channels: the latest op
    std::unordered_map<std::uint32_t, std::uint32_t> m_lastAtSite; ///< likewise
    std::vector<std::uint32_t> m_useOf; ///< of ops: what who waits for them waits for; kNothing: the host
    std::uint32_t m_first = 0;
    std::uint32_t m_device = kNothing; ///< the last op of the stream
    std::uint32_t m_host = kNothing;
};

/// The programs of all ranks, equal ones once.
class Programs {
public:
    Programs(const TraceSet& traces, const JoinedStep& step, Uses& uses)
    {
        RankWriter writer(traces, step, uses);
        std::unordered_multimap<std::size_t, std::uint32_t> known;
        for (std::size_t rank = 0; rank < traces.ranks(); ++rank) {
            RankProgram program = writer.write(rank);
            const std::size_t hash = program.hash();
            const auto [from, to] = known.equal_range(hash);
            const auto same = std::find_if(from, to, [&](const auto& entry) { return m_programs[entry.second] == program; });
            kindOfRank.push_back(same == to ? static_cast<std::uint32_t>(m_programs.size()) : same->second);
            if (same != to)
                continue;
            known.emplace(hash, kindOfRank.back());
            m_programs.push_back(std::move(program));
        }
        m_works.resize(m_programs.size());
        for (std::size_t kind = 0; kind < m_programs.size(); ++kind)
            stages.push_back(stageOf(m_programs[kind], traces.names(), m_works[kind]));
    }

    std::vector<std::uint32_t> kindOfRank;
    std::vector<StageWork> stages; ///< for each kind; its works are kept here

private:
    static StageWork stageOf(const RankProgram& program, const std::vector<std::string>& names, std::vector<KernelWork>& works)
    {
        StageWork stage;
        StageLoop loop;
        std::vector<StepDependency> waits;
        for (std::size_t i = 0; i < program.ops.size(); ++i) {
            const RankOp& op = program.ops[i];
            const std::size_t end = i + 1 < program.ops.size() ? program.ops[i + 1].firstWait : program.waits.size();
            waits.clear();
            for (std::size_t wait = op.firstWait; wait < end; ++wait)
                waits.push_back({program.waits[wait], StepLag::None});
            if (op.site == kNothing)
                loop.program.compute(op.ticks, waits);
            else
                loop.program.collective(op.site, op.meeting, waits);
            std::uint32_t index = op.index;
            if (op.kind == StepOpNote::Kind::Compute) {
                index = static_cast<std::uint32_t>(works.size());
                works.push_back(workOf(op, names[op.index]));
                stage.computeSeconds += secondsOf(op.ticks);
            }
            loop.notes.push_back({op.kind, index, kNothing});
        }
        stage.opsWritten = static_cast<std::int64_t>(program.ops.size());
        stage.loops.push_back(std::move(loop));
        stage.works = &works;
        return stage;
    }

    static KernelWork workOf(const RankOp& op, const std::string& name)
    {
        KernelWork work;
        work.label = name.empty() ? "compute" : name;
        work.formula = op.isEstimated ? "no time in its trace: estimated from FLOPs and bytes" : "from its trace";
        work.time.seconds = secondsOf(op.ticks);
        work.time.bound = OpBound::Compute;
        work.bytes = op.bytes;
        work.flops = op.flops;
        work.isProduct = op.flops > 0.0;
        return work;
    }

    std::vector<RankProgram> m_programs;
    std::vector<std::vector<KernelWork>> m_works;
};

using NextTrace = std::function<Result<ChakraTrace>(std::size_t rank, std::string& file)>;

Result<ReplayedStep> replay(std::size_t ranks, const NextTrace& next, const ProcessGroups& groups, const Machine& machine,
    const CostOptions& options, const NetworkOptions& network)
{
    if (ranks == 0)
        return Problem{"MW1783", "there are no Chakra traces", "give the trace of each rank"};
    if (static_cast<std::int64_t>(ranks) > machine.deviceCount())
        return Problem{"MW1720",
            fmt::format("there are traces of {} ranks; {} has {} devices", ranks, machine.text(), machine.deviceCount()),
            "use a larger slice, or more hosts"};
    const auto cost = DeviceCost::create(machine, options);
    if (!cost)
        return cost.error();
    const auto rate = matmulRate(machine.chip, MathFormat::Bf16);
    if (!rate)
        return Problem{"MW1730", fmt::format("{} has no rate for products of bf16", machine.chip.name), "choose another chip"};
    TraceSet traces(groups, {rate->flopsPerSecond * cost->matmulFraction(), cost->memoryBytesPerSecond()});
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::string file;
        const auto trace = next(rank, file);
        if (!trace)
            return trace.error();
        if (auto added = traces.add(*trace, file); !added)
            return added.error();
    }
    if (auto finished = traces.finish(); !finished)
        return finished.error();

    const auto placement = placeMesh(valueOf(Mesh::create({{"rank", machine.deviceCount()}})), machine);
    if (!placement)
        return placement.error();
    NetworkSites sites(*placement, machine.faults, network);
    JoinedStep step(traces, *placement, sites);
    if (auto joined = step.join(); !joined)
        return joined.error();
    Uses uses(traces, step, sites);
    Programs programs(traces, step, uses);
    std::vector<std::uint32_t> kindOfDevice(static_cast<std::size_t>(machine.deviceCount()), kNothing);
    std::ranges::copy(programs.kindOfRank, kindOfDevice.begin());
    sites.setKinds(std::move(kindOfDevice));
    TraceBuilder traceBuilder(sites, std::move(programs.stages), std::move(uses.uses), std::move(uses.siteOfUse),
        {.timeline = true, .isPipeline = step.messages() > 0});
    if (auto run = traceBuilder.run(); !run)
        return run.error();

    ReplayedStep result;
    result.ranks = static_cast<std::int64_t>(ranks);
    result.nodes = static_cast<std::int64_t>(traces.size());
    result.collectives = step.collectives();
    result.messages = step.messages();
    result.simulation = traceBuilder.take();
    Simulation& simulation = result.simulation;
    simulation.machine = machine.text();
    simulation.assumptions.insert(simulation.assumptions.begin(), machine.assumptions.begin(), machine.assumptions.end());
    std::size_t estimated = 0;
    for (std::size_t node = 0; node < traces.size(); ++node) {
        simulation.modelFlops += traces.node(node).flops;
        estimated += traces.node(node).isEstimated ? 1U : 0U;
    }
    if (estimated > 0)
        simulation.assumptions.push_back(estimated == 1
                ? std::string("1 node of computing has no time in the traces: its time is estimated from FLOPs and bytes")
                : fmt::format("{} nodes of computing have no time in the traces: their times are estimated from FLOPs and bytes",
                    estimated));
    simulation.peakFlopsPerSecond = rate->flopsPerSecond;
    simulation.peakHow = rate->how;
    if (simulation.stepSeconds > 0.0)
        simulation.mfu = simulation.modelFlops / (simulation.stepSeconds * static_cast<double>(ranks) * rate->flopsPerSecond);
    return result;
}

} // namespace

Result<ReplayedStep> replayTraces(const std::vector<ChakraTrace>& traces, const ProcessGroups& groups, const Machine& machine,
    const CostOptions& cost, const NetworkOptions& network)
{
    const NextTrace next = [&](std::size_t rank, std::string& file) -> Result<ChakraTrace> {
        file = fmt::format("rank {}", rank);
        return traces[rank];
    };
    return replay(traces.size(), next, groups, machine, cost, network);
}

Result<ReplayedStep> replayFolder(
    const std::filesystem::path& folder, const Machine& machine, const CostOptions& cost, const NetworkOptions& network)
{
    const auto found = findChakraFolder(folder);
    if (!found)
        return found.error();
    std::size_t left = kMostChakraNodes;
    const NextTrace next = [&](std::size_t rank, std::string& file) -> Result<ChakraTrace> {
        file = found->files[rank].string();
        const auto bytes = readFile(found->files[rank]);
        if (!bytes)
            return bytes.error();
        auto trace = readChakra(*bytes, file, left);
        if (trace)
            left -= trace->nodes.size();
        return trace;
    };
    return replay(found->files.size(), next, found->groups, machine, cost, network);
}

} // namespace meshwright::sim
