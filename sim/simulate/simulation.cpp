// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/simulation.h"

#include "core/program/attention.h"
#include "core/program/placement.h"
#include "core/program/transform.h"
#include "core/support/timed_stop.h"
#include "core/support/units.h"
#include "sim/simulate/instruction_work.h"
#include "sim/simulate/pipeline_memory.h"
#include "sim/simulate/pipeline_writer.h"
#include "sim/simulate/step_graph.h"
#include "sim/simulate/trace_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>

namespace meshwright::sim {

namespace {

/// Kept for the runtime and fragmentation: 4 % of a device's memory and 1 GiB, never more than a tenth. A TPU's compiler lays all buffers out before it
/// runs and keeps 4 %: of 16 GiB 530 MiB, of 32 GiB 1.25 GiB (XLA's messages where a program does not fit: EasyDeL issues 142 and 166).
std::int64_t reserveOf(const Machine& machine)
{
    const auto capacity = static_cast<double>(machine.hbmBytesPerDevice);
    const double ofRuntime = machine.chip.chipClass == ChipClass::Tpu ? 0.0 : kGiB;
    return static_cast<std::int64_t>(std::min(0.04 * capacity + ofRuntime, 0.1 * capacity));
}

/// What both kinds of steps are simulated on.
struct Ground {
    MeshPlacement placement;
    DeviceCost cost;
    MatmulRate rate;
    CostOptions options;
    double hostLinkBytesPerSecond = 0.0; ///< of a device; 0: nothing is moved
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

/// Of fused attention on whole arrays, without the scores that its derivative computes again.
double attentionFlops(const Function& function, const Op& op)
{
    std::vector<TensorType> operands;
    for (const ValueId operand : op.operands)
        operands.push_back(function[operand].type);
    const AttentionSizes sizes(operands);
    const auto dims = static_cast<double>(sizes.dims);
    const auto both = static_cast<double>(sizes.dims + sizes.valueDims);
    const double flops = attentionWork(function, op, operands).flops;
    return op.kind == OpKind::AttentionGrad ? flops * 2.0 * both / (2.0 * both + dims) : flops;
}

/// FLOPs of a product; one of complex numbers is four of their parts.
double productFlopsOf(const Function& function, const Op& dot)
{
    const auto dims = productDims(dot.as<DotAttributes>(), function[dot.operands[0]].type, function[dot.operands[1]].type);
    return (isComplex(function[dot.results[0]].type.dtype) ? 4.0 : 1.0) * dims.flops();
}

/// The type in which most of the program's product FLOPs are multiplied.
DType mainProductType(const Function& function)
{
    std::map<DType, double> flops;
    forEachOp(function, [&](OpId id) {
        const Op& op = function[id];
        if (op.kind == OpKind::Attention) {
            flops[attentionForm(op.as<OtherAttributes>())->operandType] += attentionFlops(function, op);
        } else if (op.kind == OpKind::DotGeneral) {
            flops[realType(productType(function, op))] += productFlopsOf(function, op);
        }
    });
    if (flops.empty())
        return DType::F32;
    return std::max_element(flops.begin(), flops.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
}

bool movesOverHostLink(const std::vector<Instruction>& instructions)
{
    return std::ranges::any_of(instructions, [](const Instruction& instruction) {
        return instruction.stream == Stream::ToHost || instruction.stream == Stream::ToDevice
            || movesOverHostLink(instruction.body) || std::ranges::any_of(instruction.blocks, movesOverHostLink);
    });
}

bool movesOverHostLink(const ScheduledProgram& pipeline)
{
    return std::ranges::any_of(pipeline.stages, [](const ScheduledStage& stage) {
        return std::ranges::any_of(
            stage.functions, [](const ScheduledFunction& function) { return movesOverHostLink(function.instructions); });
    });
}

/// Of one device, one way; 0 where nothing is moved.
Result<double> hostLinkOf(const Machine& machine, bool moves)
{
    if (!moves)
        return 0.0;
    const OptionalFigure& link = machine.chip.hostLinkBytesPerSecond;
    if (!link)
        return Problem{"MW1755",
            fmt::format(
                "values are kept in the host's memory, and the catalogue has no bandwidth of {}'s link to it", machine.chip.name),
            "choose a chip with host_link_bytes_per_s_per_chip, or keep the values on the device: recompute: {keep: [..]}"};
    return link->value / static_cast<double>(machine.chip.devicesPerChip);
}

Result<Ground> groundOf(
    const Mesh& mesh, const Function& unsharded, const Machine& machine, const CostOptions& options, bool moves)
{
    const auto hostLink = hostLinkOf(machine, moves);
    if (!hostLink)
        return hostLink.error();
    auto placement = placeMesh(mesh, machine);
    if (!placement)
        return placement.error();
    auto cost = DeviceCost::create(machine, options);
    if (!cost)
        return cost.error();
    const DType type = mainProductType(unsharded);
    const auto format = mathFormatOf(type);
    const auto rate = format ? matmulRate(machine.chip, *format, type == DType::F32 ? options.unstated : MatmulPrecision::Default)
                             : std::nullopt;
    if (!rate)
        return Problem{"MW1730", fmt::format("{} has no rate for products of {}", machine.chip.name, dtypeName(type)),
            "multiply in bf16 or f32 (dtype.matmul)"};
    return Ground{*std::move(placement), *std::move(cost), *rate, options, *hostLink};
}

/// What a stack's steps take besides the program.
double stackSeconds(const Machine& machine, const StackConstants& constants, double programSeconds)
{
    const auto hosts = static_cast<double>(std::max<std::int64_t>(1, machine.choice.hosts));
    return constants.stepSeconds + (programSeconds + constants.stepSeconds) * stragglerDelay(constants, hosts);
}

/// What is known of the machine and the program alone. `peakBytes` must be there.
void addMachine(Simulation& simulation, const Mesh& mesh, double modelFlops, const Machine& machine, const Ground& ground)
{
    simulation.cost = ground.options;
    simulation.stackSeconds = stackSeconds(machine, ground.options.constants, simulation.stepSeconds);
    simulation.stepSeconds += simulation.stackSeconds;
    simulation.hostLinkBytesPerSecond = ground.hostLinkBytesPerSecond;
    simulation.callSeconds = simulation.stepSeconds + hostSeconds(machine, mesh.deviceCount());
    simulation.machine = machine.text();
    simulation.assumptions.insert(simulation.assumptions.begin(), machine.assumptions.begin(), machine.assumptions.end());
    simulation.modelFlops = modelFlops;
    simulation.peakFlopsPerSecond = ground.rate.flopsPerSecond;
    simulation.peakHow = ground.rate.how;
    if (simulation.stepSeconds > 0.0)
        simulation.mfu = simulation.modelFlops
            / (simulation.stepSeconds * static_cast<double>(mesh.deviceCount()) * ground.rate.flopsPerSecond);
    simulation.capacityBytes = machine.hbmBytesPerDevice;
    simulation.reserveBytes = reserveOf(machine);
    simulation.fits = simulation.peakBytes <= simulation.capacityBytes - simulation.reserveBytes;
}

} // namespace

double productFlops(const Function& function)
{
    double flops = 0.0;
    const auto visitBlock = [&](const auto& self, BlockId block, double times) -> void {
        for (const OpId id : function[block].ops) {
            const Op& op = function[id];
            if (op.kind == OpKind::Attention || op.kind == OpKind::AttentionGrad)
                flops += times * attentionFlops(function, op);
            if (op.kind == OpKind::DotGeneral)
                flops += times * productFlopsOf(function, op);
            for (const BlockId body : op.bodies)
                self(self, body, times * static_cast<double>(blockRuns(op)));
        }
    };
    visitBlock(visitBlock, BlockId(std::int32_t{0}), 1.0);
    return flops;
}

Result<Simulation> simulate(const ScheduledFunction& function, const Mesh& mesh, const Function& unsharded,
    const Machine& machine, const CostOptions& options, const NetworkOptions& network, const SimulationExtras& extras)
{
    const auto ground = groundOf(mesh, unsharded, machine, options, movesOverHostLink(function.instructions));
    if (!ground)
        return ground.error();
    NetworkSites sites(ground->placement, machine.faults, network);
    std::vector<SimulatedCollective> uses;
    std::vector<std::uint32_t> siteOfUse;
    StepWriter writer(sites, ground->cost, options.unstated, true, ground->hostLinkBytesPerSecond);
    announce(function.device, mesh, writer, sites, uses, siteOfUse);
    const StepWriter::Moments when = writer.execute(function);
    std::vector<StageWork> stages{finishedStage(writer)};
    if (extras.graph != nullptr)
        *extras.graph = graphOf(stages, uses, siteOfUse, sites);
    TraceBuilder traceBuilder(sites, std::move(stages), std::move(uses), std::move(siteOfUse), {.timeline = extras.timeline});
    if (auto run = traceBuilder.run(); !run)
        return run.error();
    std::vector<MemoryPoint> memory;
    const std::vector<MemoryMoment> moments = memoryOverTime(function);
    for (std::size_t i = 0; i < moments.size() && i < when.size(); ++i)
        memory.push_back({traceBuilder.secondsOfMoment(when[i]), moments[i].bytesByKind, moments[i].total, moments[i].hostBytes});
    if (moments.size() < when.size())
        memory.push_back({traceBuilder.secondsOfMoment(when.back()), moments.back().bytesByKind, moments.back().total,
            moments.back().hostBytes});
    Simulation simulation = traceBuilder.take();
    simulation.memory = std::move(memory);
    simulation.peakBytes = function.buffers.arenaBytes;
    simulation.hostBytes = function.buffers.hostBytes;
    simulation.peakInstruction = function.buffers.peakInstruction;
    addMachine(simulation, mesh, extras.modelFlops ? *extras.modelFlops : productFlops(unsharded), machine, *ground);
    return simulation;
}

Result<Simulation> simulate(const ScheduledProgram& pipeline, const Mesh& mesh, const std::string& axis,
    const Function& unsharded, const Machine& machine, const CostOptions& options, const NetworkOptions& network,
    const SimulationExtras& extras)
{
    const auto ground = groundOf(mesh, unsharded, machine, options, movesOverHostLink(pipeline));
    if (!ground)
        return ground.error();
    NetworkSites sites(ground->placement, machine.faults, network, mesh.findAxis(axis));
    const bool rolls = splitsBackward(pipeline.pipeline.order);
    const FullestStage fullest = fullestStage(pipeline);
    std::optional<PipelineWriter> writer;
    std::optional<TraceBuilder> trace;
    for (bool wholes = extras.graph == nullptr && sites.speeds().empty();; wholes = false) {
        writer.emplace(pipeline, mesh, axis, sites, ground->cost, ground->hostLinkBytesPerSecond, wholes);
        std::vector<StageWork> stages = writer->write();
        if (network.stop.stop_requested())
            return stoppedProblem();
        if (extras.graph != nullptr)
            *extras.graph = graphOf(stages, writer->uses, writer->siteOfUse, sites);
        trace.emplace(sites, std::move(stages), writer->uses, writer->siteOfUse,
            TraceOptions{.timeline = extras.timeline, .isPipeline = true, .rolls = rolls, .momentsOf = fullest.stage});
        if (auto run = trace->run(); !run)
            return run.error();
        if (!trace->isOutOfStep())
            break;
    }
    const std::size_t stage = trace->stage();
    std::vector<MemoryPoint> memory = memoryOfTasks(pipeline, fullest.stage);
    for (std::size_t i = 0; i < memory.size(); ++i)
        memory[i].seconds = trace->secondsOfMoment(writer->moments[fullest.stage][i]);
    Simulation simulation = trace->take();
    simulation.memory = std::move(memory);
    simulation.stage = stage;
    simulation.otherStages = collectivesOf(pipeline, axis);
    std::erase_if(simulation.otherStages, [stage](const StageUse& use) { return use.stage == stage || use.to == stage; });
    simulation.peakStage = fullest.stage;
    simulation.peakBytes = fullest.bytes;
    simulation.hostBytes = mostHostBytes(pipeline);
    simulation.peakInstruction = fullest.moment;
    if (pipeline.pipeline.stages > 1)
        simulation.assumptions.push_back(
            fmt::format("times are those of stage {} of {}, which computes longest; memory at the peak is that of stage {}",
                stage, pipeline.pipeline.stages, fullest.stage));
    if (rolls)
        simulation.assumptions.emplace_back("a stage begins its next step as soon as its own update is done: the step is the "
                                            "longest stage's, from its first task to its "
                                            "update, and stages begin one after the other");
    addMachine(simulation, mesh, extras.modelFlops ? *extras.modelFlops : productFlops(unsharded), machine, *ground);
    return simulation;
}

std::vector<LiveValue> liveAtPeak(const ScheduledFunction& scheduled)
{
    std::vector<LiveValue> live;
    std::vector<bool> isOpen = {true}; // by depth: the stretch that buffers of it lie in is in use at the peak
    std::int64_t between = 0; // bytes of stretches, without what lies in them at the peak
    for (const Buffer& buffer : std::views::reverse(scheduled.buffers.buffers)) { // a stretch comes before what lies in it
        if (buffer.onHost)
            continue;
        const auto depth = static_cast<std::size_t>(buffer.depth);
        const bool isInUse = buffer.atPeak && isOpen[depth];
        if (isInUse && depth > 0)
            between -= buffer.bytes;
        if (buffer.value.valid()) {
            if (isInUse && buffer.bytes > 0)
                live.push_back({valueText(scheduled.device.function, buffer.value) + (depth > 0 ? ", one turn" : ""),
                    depth > 0 ? MemoryKind::Temporary : buffer.kind, buffer.bytes});
            continue;
        }
        isOpen.resize(depth + 1);
        isOpen.push_back(isInUse);
        between += isInUse ? buffer.bytes : 0;
    }
    if (between > 0)
        live.push_back({"room between arrays of a loop", MemoryKind::Temporary, between});
    std::ranges::reverse(live);
    std::stable_sort(live.begin(), live.end(), [](const LiveValue& a, const LiveValue& b) { return a.bytes > b.bytes; });
    return live;
}

} // namespace meshwright::sim
