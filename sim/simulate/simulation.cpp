// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/simulation.h"

#include "core/program/transform.h"
#include "core/schedule/label.h"
#include "sim/network/network_cost.h"
#include "sim/simulate/instruction_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace meshwright::sim {

namespace {

/// Kept for the runtime and fragmentation: 4 % of a device's memory and 1 GiB, as semantics.md 6.8 has it; never more than a tenth.
std::int64_t reserveOf(std::int64_t capacityBytes)
{
    constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
    const auto capacity = static_cast<double>(capacityBytes);
    return static_cast<std::int64_t>(std::min(0.04 * capacity + kGiB, 0.1 * capacity));
}

class Simulator {
public:
    /// `speed`: of the slowest device, as a share of the chip's.
    Simulator(const ScheduledFunction& scheduled, const MeshPlacement& placement, const DeviceCost& cost, NetworkTimes& network,
        double speed, MatmulPrecision unstated)
        : m_scheduled(scheduled)
        , m_function(scheduled.device.function)
        , m_placement(placement)
        , m_times(m_function, cost, unstated)
        , m_network(network)
        , m_speed(speed)
        , m_computeRow(m_result.timeline.addRow(0, "compute"))
        , m_collectiveRow(m_result.timeline.addRow(0, "collectives"))
    {
    }

    Result<Simulation> run()
    {
        for (const CollectiveUse& use : collectivesOf(m_scheduled.device, m_placement.mesh())) {
            auto time = m_network.of(use.kind, m_function[use.op].as<CollectiveAttributes>().axes, use.bytesPerDevice);
            if (!time)
                return time.error();
            m_collectiveOf[use.op] = m_result.collectives.size();
            m_result.events += time->events;
            m_result.collectives.push_back(collective(use, time->estimate));
        }
        if (Problems problems = m_network.unheeded(); !problems.empty())
            return problems;
        m_result.classes = m_network.classes();
        const std::vector<MemoryMoment> moments = memoryOverTime(m_scheduled);
        for (std::size_t i = 0; i < m_scheduled.instructions.size(); ++i) {
            m_result.memory.push_back({m_computeFree, moments[i].bytesByKind, moments[i].total});
            execute(m_scheduled.instructions[i]);
        }
        m_result.memory.push_back({m_computeFree, moments.back().bytesByKind, moments.back().total});
        m_result.stepSeconds = std::max(m_computeFree, m_collectivesFree);
        expose(m_computeFree, m_result.stepSeconds);
        for (const SimulatedCollective& collective : m_result.collectives)
            m_result.collectiveSeconds += collective.seconds;
        m_result.peakBytes = m_scheduled.buffers.arenaBytes;
        m_result.peakInstruction = m_scheduled.buffers.peakInstruction;
        m_result.boundBy = boundBy();
        m_result.timeline.sort();
        return Result<Simulation>(std::move(m_result));
    }

private:
    static SimulatedCollective collective(const CollectiveUse& use, const CollectiveEstimate& estimate)
    {
        SimulatedCollective collective;
        collective.use = use;
        collective.wireBytesPerDevice = estimate.wireBytesPerDevice;
        collective.secondsPerCall = estimate.seconds;
        collective.algorithm = estimate.algorithm;
        collective.formula = estimate.formula;
        return collective;
    }

    void execute(const Instruction& instruction)
    {
        ++m_result.events;
        switch (instruction.kind) {
        case InstructionKind::Compute:
            compute(instruction);
            break;
        case InstructionKind::CollectiveStart:
            start(instruction);
            break;
        case InstructionKind::CollectiveDone:
            waitFor(instruction);
            if (!instruction.update.empty()) {
                Instruction update = instruction;
                update.ops = instruction.update;
                compute(update);
            }
            break;
        case InstructionKind::Loop:
            loop(instruction);
            break;
        }
    }

    void compute(const Instruction& instruction)
    {
        auto [work, time, formula] = m_times.of(instruction);
        time.seconds /= m_speed;
        addSlice(m_computeRow, m_computeFree, time.seconds, instructionLabel(m_function, instruction), formula,
            SliceCategory::Compute, work.bytesRead + work.bytesWritten);
        m_computeFree += time.seconds;
        m_result.computeSeconds += time.seconds;
        if (work.matmul) {
            m_result.productSeconds += time.seconds;
            m_result.productFlopsPerDevice += work.matmul->flops();
        } else {
            m_result.otherBytesPerDevice += static_cast<double>(work.bytesRead + work.bytesWritten);
        }
        m_secondsBoundBy[static_cast<std::size_t>(time.bound)] += time.seconds;
    }

    /// A collective starts when everything before it in the schedule is done and the stream is free.
    void start(const Instruction& instruction)
    {
        SimulatedCollective& collective = m_result.collectives[m_collectiveOf.at(instruction.ops.front())];
        const double begin = std::max(m_computeFree, m_collectivesFree);
        m_collectivesFree = begin + collective.secondsPerCall;
        m_endOf[instruction.ops.front()] = m_collectivesFree;
        m_underWay.push_back({begin, m_collectivesFree, m_collectiveOf.at(instruction.ops.front())});
        collective.seconds += collective.secondsPerCall;
        addSlice(m_collectiveRow, begin, collective.secondsPerCall, instructionLabel(m_function, instruction),
            collective.algorithm + ": " + collective.formula, categoryOf(collective.use.kind), collective.use.bytesPerDevice);
        const CollectiveLibrary* library = m_placement.library();
        if (library != nullptr && library->synchronous)
            waitFor(instruction);
    }

    void waitFor(const Instruction& instruction)
    {
        const double end = m_endOf.at(instruction.ops.front());
        if (end <= m_computeFree)
            return;
        const SimulatedCollective& collective = m_result.collectives[m_collectiveOf.at(instruction.ops.front())];
        addSlice(m_computeRow, m_computeFree, end - m_computeFree, fmt::format("wait for {}", collective.use.cause.value), {},
            SliceCategory::Wait, 0);
        expose(m_computeFree, end);
        m_computeFree = end;
    }

    /// Charges a time of waiting to the collectives that were under way: the one that is waited for may have queued behind others.
    void expose(double from, double to)
    {
        m_result.exposedSeconds += to - from;
        std::erase_if(m_underWay, [&](const UnderWay& collective) { return collective.end <= from; });
        for (const UnderWay& collective : m_underWay)
            m_result.collectives[collective.index].exposedSeconds
                += std::max(0.0, std::min(to, collective.end) - std::max(from, collective.begin));
    }

    void loop(const Instruction& instruction)
    {
        const std::int64_t count = m_function[instruction.ops.front()].as<RepeatAttributes>().count;
        for (std::int64_t i = 0; i < count; ++i) {
            for (const Instruction& inner : instruction.body)
                execute(inner);
        }
    }

    void addSlice(std::uint32_t row, double begin, double seconds, const std::string& name, const std::string& detail,
        SliceCategory category, std::int64_t bytes)
    {
        if (seconds <= 0.0)
            return;
        Slice slice;
        slice.startSeconds = begin;
        slice.durationSeconds = seconds;
        slice.cpuSeconds = seconds;
        slice.bytes = bytes;
        slice.row = row;
        slice.name = m_result.timeline.intern(name);
        slice.detail = m_result.timeline.intern(detail);
        slice.category = category;
        m_result.timeline.add(slice);
    }

    /// The collective that is waited for longest, when waiting takes longer than computing; otherwise what computing spends most of its time on.
    std::string boundBy() const
    {
        std::map<std::string, double> share;
        if (m_result.exposedSeconds > m_result.computeSeconds) {
            for (const SimulatedCollective& collective : m_result.collectives)
                share[fmt::format("{} over {}", opName(collective.use.kind), collective.use.axes)] += collective.exposedSeconds;
        } else {
            share["compute"] = m_secondsBoundBy[static_cast<std::size_t>(OpBound::Compute)];
            share["memory bandwidth"] = m_secondsBoundBy[static_cast<std::size_t>(OpBound::Memory)];
            share["launch overhead"] = m_secondsBoundBy[static_cast<std::size_t>(OpBound::Overhead)];
        }
        return std::max_element(share.begin(), share.end(), [](const auto& a, const auto& b) {
            return a.second < b.second;
        })->first;
    }

    const ScheduledFunction& m_scheduled;
    const Function& m_function;
    const MeshPlacement& m_placement;
    InstructionTimes m_times;
    NetworkTimes& m_network;
    double m_speed;
    Simulation m_result;
    std::uint32_t m_computeRow;
    std::uint32_t m_collectiveRow;
    double m_computeFree = 0.0;
    double m_collectivesFree = 0.0;
    std::map<OpId, std::size_t> m_collectiveOf;
    std::map<OpId, double> m_endOf;

    struct UnderWay {
        double begin = 0.0;
        double end = 0.0;
        std::size_t index = 0; ///< into the result's collectives
    };
    std::vector<UnderWay> m_underWay; ///< started, and not yet over when computing was last looked at
    std::array<double, 3> m_secondsBoundBy{};
};

/// What a host needs to call a program on its devices and to hear that they are done.
double hostSeconds(const Machine& machine, std::int64_t devices)
{
    const CollectiveLibrary* library = machine.chip.interconnect.library.get();
    if (library == nullptr)
        return 0.0;
    const std::int64_t ofHost = machine.chip.chipsPerHost.value_or(1) * machine.chip.devicesPerChip;
    return library->callSeconds + static_cast<double>(std::min(devices, ofHost) - 1) * library->callSecondsPerDevice;
}

/// Of the devices that the mesh uses.
double slowestSpeed(const Machine& machine, const MeshPlacement& placement)
{
    double speed = 1.0;
    if (machine.faults.devices.empty())
        return speed;
    const std::vector<DeviceId> used = placement.deviceOrder();
    for (const SlowDevice& slow : machine.faults.devices) {
        if (std::find(used.begin(), used.end(), slow.device) != used.end())
            speed = std::min(speed, slow.speed);
    }
    return speed;
}

std::string nameOf(const Function& function, const Buffer& buffer)
{
    if (!buffer.value.valid())
        return "a loop's body";
    const Value& value = function[buffer.value];
    if (!value.name.empty())
        return value.name;
    return value.producer.valid() ? opName(function[value.producer].kind) : "an argument";
}

/// The type in which most of the program's product FLOPs are multiplied.
DType mainProductType(const Function& function)
{
    std::map<DType, double> flops;
    forEachOp(function, [&](OpId id) {
        const Op& op = function[id];
        if (op.kind == OpKind::DotGeneral) {
            const auto& attributes = op.as<DotAttributes>();
            flops[attributes.operandType]
                += productDims(attributes, function[op.operands[0]].type, function[op.operands[1]].type).flops();
        }
    });
    if (flops.empty())
        return DType::F32;
    return std::max_element(flops.begin(), flops.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
}

} // namespace

double productFlops(const Function& function)
{
    double flops = 0.0;
    const auto visitBlock = [&](const auto& self, BlockId block, double times) -> void {
        for (const OpId id : function[block].ops) {
            const Op& op = function[id];
            if (op.kind == OpKind::DotGeneral)
                flops += times
                    * productDims(op.as<DotAttributes>(), function[op.operands[0]].type, function[op.operands[1]].type).flops();
            for (const BlockId body : op.bodies)
                self(self, body, times * static_cast<double>(blockRuns(op)));
        }
    };
    visitBlock(visitBlock, BlockId(std::int32_t{0}), 1.0);
    return flops;
}

Result<Simulation> simulate(const ScheduledFunction& function, const Mesh& mesh, const Function& unsharded,
    const Machine& machine, const NetworkOptions& network, MatmulPrecision unstated)
{
    const auto placement = placeMesh(mesh, machine);
    if (!placement)
        return placement.error();
    const auto cost = DeviceCost::create(machine);
    if (!cost)
        return cost.error();
    const DType type = mainProductType(unsharded);
    const auto format = mathFormatOf(type);
    const auto rate
        = format ? matmulRate(machine.chip, *format, type == DType::F32 ? unstated : MatmulPrecision::Default) : std::nullopt;
    if (!rate)
        return Problem{"MW1730", fmt::format("{} has no rate for products of {}", machine.chip.name, dtypeName(type)),
            "multiply in bf16 or f32 (dtype.matmul)"};

    NetworkTimes times(*placement, machine.faults, network);
    auto simulated = Simulator(function, *placement, *cost, times, slowestSpeed(machine, *placement), unstated).run();
    if (!simulated)
        return simulated.error();
    Simulation simulation = *std::move(simulated);
    simulation.machine = machine.text();
    simulation.unstatedPrecision = unstated;
    simulation.callSeconds = simulation.stepSeconds + hostSeconds(machine, mesh.deviceCount());
    simulation.assumptions = machine.assumptions;
    simulation.modelFlops = productFlops(unsharded);
    simulation.peakFlopsPerSecond = rate->flopsPerSecond;
    simulation.peakHow = rate->how;
    if (simulation.stepSeconds > 0.0)
        simulation.mfu
            = simulation.modelFlops / (simulation.stepSeconds * static_cast<double>(mesh.deviceCount()) * rate->flopsPerSecond);
    simulation.capacityBytes = machine.hbmBytesPerDevice;
    simulation.reserveBytes = reserveOf(machine.hbmBytesPerDevice);
    simulation.fits = simulation.peakBytes <= simulation.capacityBytes - simulation.reserveBytes;
    return simulation;
}

std::vector<LiveValue> liveAtPeak(const ScheduledFunction& scheduled)
{
    std::vector<LiveValue> live;
    const std::size_t peak = scheduled.buffers.peakInstruction;
    for (const Buffer& buffer : scheduled.buffers.buffers) {
        if (buffer.first > peak || buffer.last < peak || buffer.bytes == 0 || buffer.inLoop)
            continue;
        live.push_back({nameOf(scheduled.device.function, buffer), buffer.kind, buffer.bytes});
    }
    std::stable_sort(live.begin(), live.end(), [](const LiveValue& a, const LiveValue& b) { return a.bytes > b.bytes; });
    return live;
}

} // namespace meshwright::sim
