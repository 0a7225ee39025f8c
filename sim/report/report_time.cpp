// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_bars.h"
#include "core/draw/draw_timeline.h"
#include "core/program/spoken_op.h"
#include "core/schedule/label.h"
#include "core/schedule/pipeline_uses.h"
#include "core/support/text.h"
#include "sim/cost/device_cost.h"
#include "sim/report/report_parts.h"
#include "sim/simulate/instruction_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

namespace meshwright::sim {

namespace {

constexpr double kWidth = 860.0; ///< of wide pictures, pixels
constexpr std::size_t kMostCollectiveRows = 150; ///< rows of the table
constexpr std::size_t kMostKernels = 12;

// ---- collectives -------------------------------------------------------------------------------------------------------------------

std::string collectiveName(const CollectiveUse& use)
{
    return fmt::format("{} {}", spokenOp(use.kind), use.cause.value);
}

/// Where the figures of a link come from.
std::string linkSource(const Machine& machine, LinkKind kind)
{
    const Interconnect& net = machine.chip.interconnect;
    switch (kind) {
    case LinkKind::Ici:
        return sourceText(net.linkBytesPerSecond);
    case LinkKind::OnChip:
        return sourceText(net.onChipLinkBytesPerSecond);
    case LinkKind::Nic:
        return sourceText(machine.chip.nicBytesPerSecond);
    default:
        return sourceText(net.totalBytesPerSecond ? net.totalBytesPerSecond : net.linkBytesPerSecond)
            + ", times what collectives reach of it: " + sourceText(net.achievableFraction);
    }
}

std::string latencySource(const Machine& machine, LinkKind kind)
{
    return sourceText(kind == LinkKind::Nic ? machine.chip.networkLatencySeconds : machine.chip.interconnect.hopLatencySeconds);
}

bool hasStages(const ReportInputs& inputs)
{
    return inputs.pipeline != nullptr && inputs.pipeline->stages.size() > 1;
}

class CollectiveReporter {
public:
    explicit CollectiveReporter(const ReportInputs& inputs)
        : m_inputs(inputs)
        , m_function(inputs.scheduled->device.function)
        , m_mesh(inputs.partitioned->device.stages.front().mesh())
    {
        if (inputs.simulated != nullptr) {
            m_collectives = inputs.simulated->simulation.collectives;
            return;
        }
        std::vector<StageUse> uses;
        if (inputs.pipeline != nullptr) {
            uses = collectivesOf(*inputs.pipeline, inputs.study->pipeline.axis);
        } else {
            for (CollectiveUse& use : collectivesOf(inputs.scheduled->device, m_mesh))
                uses.push_back({0, {}, std::move(use)});
        }
        for (const StageUse& use : uses) {
            SimulatedCollective collective;
            collective.use = use.use;
            m_collectives.push_back(std::move(collective));
        }
    }

    ReportSection section()
    {
        ReportSection section{"collectives", "Collectives", {}};
        if (m_collectives.empty()) {
            section.blocks.push_back(ReportParagraph{"The step has no collectives: no device needs what another one holds."});
            return section;
        }
        section.blocks.push_back(
            ReportParagraph{"No line of the study asks for a collective: they follow from the specs. A row opens to the "
                            "reason, the spec behind it, and the formula of its time with its inputs."});
        section.blocks.push_back(figures());
        if (m_inputs.simulated != nullptr && hasStages(m_inputs))
            section.blocks.push_back(ReportParagraph{fmt::format(
                "These are of a device of stage {}, which computes longest; `meshwright simulate --format json` lists "
                "those of the other stages too.",
                m_inputs.simulated->simulation.stage)});
        if (m_inputs.simulated != nullptr) {
            std::stable_sort(
                m_collectives.begin(), m_collectives.end(), [](const SimulatedCollective& a, const SimulatedCollective& b) {
                    return std::pair(a.exposedSeconds, a.seconds) > std::pair(b.exposedSeconds, b.seconds);
                });
            section.blocks.push_back(ReportPictures{{bars()}});
        }
        section.blocks.push_back(table());
        return section;
    }

private:
    ReportFigures figures() const
    {
        std::int64_t calls = 0;
        double payload = 0.0;
        double wire = 0.0;
        for (const SimulatedCollective& collective : m_collectives) {
            calls += collective.use.count;
            payload += static_cast<double>(collective.use.payloadBytes) * static_cast<double>(collective.use.count);
            wire += static_cast<double>(collective.wireBytes) * static_cast<double>(collective.use.count);
        }
        ReportFigures figures;
        figures.figures.push_back({"Calls in a step", countValue(calls),
            {"Each collective counts as often as it runs: inside a loop once for each turn.", {}, {}}});
        figures.figures.push_back({"Payload of a device", bytesValue(payload),
            {"The operand's local bytes; of an all-gather the result's. Padding is included.", "Σ calls × bytes per device",
                {}}});
        if (m_inputs.simulated == nullptr)
            return figures;
        const Simulation& s = m_inputs.simulated->simulation;
        figures.figures.push_back({"Sent by a device", bytesValue(wire),
            {"What the chosen algorithms put on the links; forwarding for others is not counted.", "Σ calls × wire bytes", {}}});
        figures.figures.push_back({"Time of all collectives", secondsValue(s.collectiveSeconds),
            {"As if each had its links for itself; one after the other on the stream of collectives.", "Σ calls × time of a call",
                {}}});
        figures.figures.push_back({"Waited for", secondsValue(s.exposedSeconds),
            {"The rest is hidden behind computing.", "exposed = Σ stretches in which computing waits until a collective is done",
                {{"all collectives", formatSeconds(s.collectiveSeconds), "simulated"},
                    {"hidden", formatSeconds(std::max(0.0, s.collectiveSeconds - s.exposedSeconds)), "simulated"}}}});
        return figures;
    }

    ReportPicture bars() const
    {
        BarsDrawing drawing;
        drawing.width = kWidth;
        drawing.mostBars = 12;
        for (const SimulatedCollective& collective : m_collectives) {
            const ColourRole role = roleOf(collective.use.kind);
            Bar bar;
            bar.label = collective.use.cause.value;
            bar.parts = {{"waited for", collective.exposedSeconds, role},
                {"hidden behind computing", std::max(0.0, collective.seconds - collective.exposedSeconds), role, Hatch::Rising}};
            bar.note = collective.use.axes;
            bar.tooltip = collectiveName(collective.use) + "\n" + collective.use.cause.reason;
            drawing.bars.push_back(std::move(bar));
        }
        return pictureOf("collective-times", "Time of each collective", drawBars(drawing),
            "Time of each collective in a step and the mesh axes that it is over; what is hatched is hidden behind computing. "
            "The longest waits first.");
    }

    ReportTable table() const
    {
        const bool timed = m_inputs.simulated != nullptr;
        ReportTable table;
        table.title = "Collectives of a step";
        table.columns = {{"Collective"}, {"Over"}, {"Phase"}, {"Calls", true}, {"Bytes on a device", true}};
        if (timed)
            for (const char* title : {"Sent", "Time", "Waited for"})
                table.columns.push_back({title, true});
        table.columns.push_back({"Value"});
        for (std::size_t i = 0; i < std::min(kMostCollectiveRows, m_collectives.size()); ++i)
            table.rows.push_back(row(m_collectives[i], timed));
        if (m_collectives.size() > kMostCollectiveRows)
            table.note = fmt::format("{} more are left out; `meshwright simulate --format json` lists all.",
                m_collectives.size() - kMostCollectiveRows);
        else if (timed)
            table.note = "Sorted by the time that is waited for.";
        return table;
    }

    ReportRow row(const SimulatedCollective& collective, bool timed) const
    {
        const CollectiveUse& use = collective.use;
        ReportRow row;
        row.cells = {wordsValue(spokenOp(use.kind)), wordsValue(use.axes), wordsValue(phaseName(use.phase)),
            countValue(use.count), bytesValue(static_cast<double>(use.payloadBytes))};
        if (timed) {
            row.cells.push_back(bytesValue(static_cast<double>(collective.wireBytes)));
            row.cells.push_back(secondsValue(collective.seconds));
            row.cells.push_back(secondsValue(collective.exposedSeconds));
        }
        row.cells.push_back(wordsValue(use.cause.value));
        row.opening.text = use.cause.reason + ".";
        if (!use.cause.annotation.empty())
            row.opening.text += fmt::format(" It comes from {}.", use.cause.annotation);
        row.opening.inputs = {{"B", formatWhole(use.payloadBytes) + " B", "payload of a call"},
            {"group", fmt::format("{} devices", use.groupSize), fmt::format("mesh axes {} of {}", use.axes, m_mesh.text())},
            {"calls", formatWhole(use.count), "schedule: turns of the loops around it"}};
        if (timed) {
            row.opening.formula = collective.algorithm + ": " + collective.formula;
            addLinks(row.opening, use);
        }
        return row;
    }

    void addLinks(ReportOpening& opening, const CollectiveUse& use) const
    {
        if (!use.op.valid())
            return; // of a pipeline's stages
        const auto& axes = m_function[use.op].as<CollectiveAttributes>().axes;
        for (const GroupAxis& axis : m_inputs.placement->groupAxes(axes)) {
            opening.inputs.push_back(
                {fmt::format("w along {}", axis.name), fmt::format("{:.4g} GB/s each way", axis.link.bytesPerSecond / 1e9),
                    linkSource(*m_inputs.machine, axis.link.kind)});
            opening.inputs.push_back({fmt::format("alpha along {}", axis.name), formatSeconds(axis.link.latencySeconds),
                latencySource(*m_inputs.machine, axis.link.kind)});
        }
    }

    const ReportInputs& m_inputs;
    const Function& m_function;
    const Mesh& m_mesh;
    std::vector<SimulatedCollective> m_collectives;
};

// ---- breakdown ---------------------------------------------------------------------------------------------------------------------

/// Kernels of one name.
struct Kernel {
    std::string name;
    Phase phase = Phase::Forward;
    std::int64_t calls = 0;
    double seconds = 0.0; ///< of all calls
    OpTime time; ///< of one
    std::string formula;
};

/// What the kernels of the step do, by what they wait for and by name.
struct KernelSums {
    std::array<double, 3> secondsBoundBy{}; ///< index: OpBound
    std::array<std::int64_t, 3> callsBoundBy{};
    std::vector<Kernel> kernels; ///< the longest first
};

/// Adds those of a function that runs so many times.
void addKernels(
    KernelSums& sums, const ScheduledFunction& scheduled, const DeviceCost& cost, MatmulPrecision unstated, std::int64_t runs)
{
    const Function& function = scheduled.device.function;
    InstructionTimes instructionTimes(scheduled, cost, unstated);
    const std::function<void(const std::vector<Instruction>&, std::int64_t)> visit
        = [&](const auto& instructions, std::int64_t times) {
              for (const Instruction& instruction : instructions) {
                  if (instruction.kind == InstructionKind::Loop)
                      visit(instruction.body, times * function[instruction.ops.front()].template as<RepeatAttributes>().count);
                  for (const auto& block : instruction.blocks)
                      visit(block, times);
                  if (instruction.kind != InstructionKind::Compute)
                      continue;
                  const auto [work, time, formula] = instructionTimes.of(instruction);
                  Kernel kernel{
                      instructionLabel(function, instruction), function[instruction.ops.back()].phase, times, 0.0, time, formula};
                  kernel.seconds = kernel.time.seconds * static_cast<double>(times);
                  if (kernel.seconds <= 0.0)
                      continue;
                  sums.secondsBoundBy[static_cast<std::size_t>(kernel.time.bound)] += kernel.seconds;
                  sums.callsBoundBy[static_cast<std::size_t>(kernel.time.bound)] += times;
                  sums.kernels.push_back(std::move(kernel));
              }
          };
    visit(scheduled.instructions, runs);
}

/// Of the step, or of a pipeline of the tasks of the stage whose times were simulated.
KernelSums kernelsOf(const ReportInputs& inputs, const DeviceCost& cost)
{
    KernelSums sums;
    const Simulation& s = inputs.simulated->simulation;
    if (inputs.pipeline == nullptr) {
        addKernels(sums, *inputs.scheduled, cost, s.cost.unstated, 1);
    } else {
        for (const ScheduledFunction& function : inputs.pipeline->stages[s.stage].functions) {
            const auto runs = std::ranges::count_if(inputs.pipeline->tasks,
                [&](const Task& task) { return task.stage == s.stage && task.function == function.device.function.name; });
            if (runs > 0)
                addKernels(sums, schedule(function.device, SchedulePolicy::Overlapped), cost, MatmulPrecision::Highest, runs);
        }
    }
    std::stable_sort(
        sums.kernels.begin(), sums.kernels.end(), [](const Kernel& a, const Kernel& b) { return a.seconds > b.seconds; });
    return sums;
}

ReportPicture stepBar(const Simulation& s)
{
    StackedBarDrawing drawing;
    drawing.width = kWidth;
    drawing.parts.push_back({"compute", s.computeSeconds, ColourRole::Compute});
    std::vector<BarPart> waits;
    for (const SimulatedCollective& collective : s.collectives) {
        const std::string name = fmt::format("{} over {}", spokenOp(collective.use.kind), collective.use.axes);
        const auto same = std::find_if(waits.begin(), waits.end(), [&](const BarPart& part) { return part.name == name; });
        if (same != waits.end())
            same->value += collective.exposedSeconds;
        else
            waits.push_back({name, collective.exposedSeconds, roleOf(collective.use.kind), Hatch::None});
    }
    std::stable_sort(waits.begin(), waits.end(), [](const BarPart& a, const BarPart& b) { return a.value > b.value; });
    constexpr std::array kHatches = {Hatch::None, Hatch::Rising, Hatch::Falling, Hatch::Crossed};
    std::map<ColourRole, std::size_t> uses;
    for (BarPart& part : waits) {
        if (part.value <= 0.0)
            continue;
        part.hatch = kHatches[uses[part.role]++ % kHatches.size()]; // the same op over other axes
        drawing.parts.push_back(part);
    }
    if (s.collectives.empty() && s.exposedSeconds > 0.0)
        drawing.parts.push_back({"collectives", s.exposedSeconds, ColourRole::AllReduce});
    if (s.bubbleSeconds > 0.0)
        drawing.parts.push_back({"bubble", s.bubbleSeconds, ColourRole::Idle});
    if (s.launchSeconds > 0.0)
        drawing.parts.push_back({"launch", s.launchSeconds, ColourRole::Idle, Hatch::Falling});
    if (s.stackSeconds > 0.0)
        drawing.parts.push_back({"stack", s.stackSeconds, ColourRole::Idle, Hatch::Rising});
    return pictureOf("step", "Where the time of a step goes", drawStackedBar(drawing),
        "Computing, and waiting for collectives that are not hidden behind it.");
}

ReportFigures breakdownFigures(const ReportInputs& inputs, const KernelSums& sums)
{
    const Simulation& s = inputs.simulated->simulation;
    const std::int64_t devices = inputs.placement->mesh().deviceCount();
    ReportFigures figures;
    figures.figures.push_back({"Step", secondsValue(s.stepSeconds),
        {hasStages(inputs) ? fmt::format(
             "The devices of a stage do the same. Times are those of a device of stage {}, which computes longest.", s.stage)
                           : std::string("All devices do the same; the step ends with the last of computing and collectives."),
            "step = compute + launch + exposed communication + bubble + stack",
            {{"compute", formatSeconds(s.computeSeconds), "simulated"},
                {"launch", formatSeconds(s.launchSeconds), "simulated: waiting for the host to start kernels"},
                {"exposed communication", formatSeconds(s.exposedSeconds), "simulated"},
                {"bubble", formatSeconds(s.bubbleSeconds), "simulated"},
                {"stack", formatSeconds(s.stackSeconds), "between steps and for slow hosts: fitted, of the software stack"}}}});
    figures.figures.push_back({"Compute", secondsValue(s.computeSeconds),
        {"The kernels one after the other; element-wise ops are fused.",
            "compute = Σ start + max(FLOP / rate, bytes / bandwidth)",
            {{"kernels", formatWhole(sums.callsBoundBy[0] + sums.callsBoundBy[1] + sums.callsBoundBy[2]), "schedule"}}}});
    figures.figures.push_back({"Exposed communication", secondsValue(s.exposedSeconds),
        {"Computing waits until a collective is done.", "exposed = step − compute − launch − bubble − stack", {}}});
    figures.figures.push_back({"Hidden communication", secondsValue(std::max(0.0, s.collectiveSeconds - s.exposedSeconds)),
        {"Collectives that run while the device computes.", "hidden = all collectives − exposed",
            {{"all collectives", formatSeconds(s.collectiveSeconds), "simulated"}}}});
    if (s.bubbleSeconds > 0.0)
        figures.figures.push_back({"Bubble", secondsValue(s.bubbleSeconds), {"Waiting for other pipeline stages.", {}, {}}});
    ReportFigure mfu{"Model FLOPs utilisation", shareValue(s.mfu), {}};
    mfu.value.text = mfuText(s.mfu);
    mfu.opening.formula = "MFU = F / (t × D × P)";
    mfu.opening.inputs = {{"F", flopText(s.modelFlops, "FLOP"), "the products of the model; a multiply-add is two"},
        {"t", formatSeconds(s.stepSeconds), "step"}, {"D", formatWhole(devices), "mesh"},
        {"P", flopText(s.peakFlopsPerSecond, "FLOP/s"), s.peakHow + " of one device"}};
    figures.figures.push_back(std::move(mfu));
    figures.figures.push_back({"Work of the model", {flopText(s.modelFlops, "FLOP"), s.modelFlops, "FLOP"},
        {"The products that the model itself has, forward and backward: work that is done twice, padding of experts and what "
         "finds their tokens do not count.",
            "F = Σ 2 × m × n × k", {}}});
    return figures;
}

ReportParagraph rooflineText(const ReportInputs& inputs, const KernelSums& sums, const DeviceCost& cost)
{
    const Simulation& s = inputs.simulated->simulation;
    const double rate = s.peakFlopsPerSecond * cost.matmulFraction();
    const double ridge = rate / cost.memoryBytesPerSecond();
    const auto share = [&](OpBound bound) {
        return percentText(
            s.computeSeconds > 0.0 ? sums.secondsBoundBy[static_cast<std::size_t>(bound)] / s.computeSeconds : 0.0);
    };
    const auto calls = [&](OpBound bound) { return sums.callsBoundBy[static_cast<std::size_t>(bound)]; };
    return {fmt::format(
        "Roofline: {} of the computing is in {} kernels that the multipliers limit, {} in {} that memory bandwidth limits, "
        "{} in {} that are over before the next can start. A kernel needs {:.0f} FLOP for each byte of memory to be limited "
        "by the multipliers ({} / {:.4g} GB/s, both as far as kernels reach them).",
        share(OpBound::Compute), calls(OpBound::Compute), share(OpBound::Memory), calls(OpBound::Memory),
        share(OpBound::Overhead), calls(OpBound::Overhead), ridge, flopText(rate, "FLOP/s"), cost.memoryBytesPerSecond() / 1e9)};
}

const char* limitText(OpBound bound)
{
    return bound == OpBound::Compute ? "multipliers" : bound == OpBound::Memory ? "memory bandwidth" : "start";
}

ReportTable kernelTable(const Simulation& s, const KernelSums& sums)
{
    ReportTable table;
    table.title = "Longest kernels";
    table.columns = {{"Kernel"}, {"Phase"}, {"Calls", true}, {"Time", true}, {"Of computing", true}, {"Limited by"}};
    double rest = 0.0;
    for (std::size_t i = 0; i < sums.kernels.size(); ++i) {
        const Kernel& kernel = sums.kernels[i];
        if (i >= kMostKernels) {
            rest += kernel.seconds;
            continue;
        }
        table.rows.push_back(
            {{wordsValue(kernel.name), wordsValue(phaseName(kernel.phase)), countValue(kernel.calls),
                 secondsValue(kernel.seconds), shareValue(s.computeSeconds > 0.0 ? kernel.seconds / s.computeSeconds : 0.0),
                 wordsValue(limitText(kernel.time.bound))},
                {{}, kernel.formula, {}}});
    }
    table.note = "A row opens to the roofline of one call.";
    if (sums.kernels.size() > kMostKernels)
        table.note += fmt::format(" {} more kernels take {} together.", sums.kernels.size() - kMostKernels, formatSeconds(rest));
    return table;
}

} // namespace

ReportSection collectivesSection(const ReportInputs& inputs)
{
    if (inputs.scheduled != nullptr)
        return CollectiveReporter(inputs).section();
    return {"collectives", "Collectives",
        {ReportParagraph{"The problems of the study keep its program from being built.", ReportTone::Warning}}};
}

ReportSection breakdownSection(const ReportInputs& inputs)
{
    const Simulation& s = inputs.simulated->simulation;
    ReportSection section{"breakdown", "Step time", {}};
    const auto cost = DeviceCost::create(*inputs.machine, s.cost);
    if (!cost) // what was simulated has a cost
        return section;
    const KernelSums sums = kernelsOf(inputs, *cost);
    section.blocks.push_back(ReportPictures{{stepBar(s)}});
    section.blocks.push_back(breakdownFigures(inputs, sums));
    section.blocks.push_back(rooflineText(inputs, sums, *cost));
    section.blocks.push_back(kernelTable(s, sums));
    return section;
}

ReportSection timelineSection(const ReportInputs& inputs)
{
    const Simulation& s = inputs.simulated->simulation;
    ReportSection section{"timeline", "Timeline", {}};
    TimelineDrawing drawing;
    drawing.width = kWidth;
    drawing.rowHeight = 26.0;
    drawing.mostSlices = 1200;
    section.blocks.push_back(ReportPictures{{pictureOf("timeline", "Timeline of one device", drawTimeline(s.timeline, drawing),
        fmt::format("Simulated: {} instructions of one device{}. Computing and collectives are separate streams; a gap in "
                    "computing is a "
                    "wait. Hover over a slice for its formula.",
            formatWhole(s.events), s.classes == 1 && !hasStages(inputs) ? ", which represents them all" : ""))}});
    return section;
}

} // namespace meshwright::sim
