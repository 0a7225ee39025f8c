// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_memory.h"
#include "core/support/text.h"
#include "sim/report/memory_picture.h"
#include "sim/report/report_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace meshwright::sim {

namespace {

constexpr std::size_t kMostLive = 16; ///< rows of the table

/// Shapes of what is live, by name: the piece of one device.
std::map<std::string, TensorType> piecesOf(const ReportInputs& inputs)
{
    std::map<std::string, TensorType> pieces;
    const auto addAll = [&](const Function& function) {
        for (const Value& value : function.values) {
            if (!value.name.empty())
                pieces.try_emplace(value.name, value.type);
        }
    };
    if (inputs.pipeline == nullptr) {
        addAll(inputs.scheduled->device.function);
        return pieces;
    }
    for (const ScheduledFunction& function : inputs.pipeline->stages[inputs.simulated->simulation.peakStage].functions)
        addAll(function.device.function);
    return pieces;
}

/// The sum of what is live at the peak.
std::int64_t liveBytes(const ReportInputs& inputs)
{
    if (inputs.pipeline == nullptr)
        return inputs.scheduled->buffers.peakLiveBytes;
    std::int64_t bytes = 0;
    for (const LiveValue& value : inputs.simulated->liveAtPeak)
        bytes += value.bytes;
    return bytes;
}

ReportFigure plannedPeak(const ReportInputs& inputs)
{
    const Simulation& s = inputs.simulated->simulation;
    const std::int64_t live = liveBytes(inputs);
    if (inputs.pipeline != nullptr)
        return {"Peak of a device", bytesValue(static_cast<double>(s.peakBytes)),
            {fmt::format("Of stage {}, which needs the most: its arrays, what the microbatches under way keep, and the buffers "
                         "inside the task at hand.",
                 s.peakStage),
                "peak = arrays + kept for microbatches + buffers inside the task",
                {{"live at the peak", formatWhole(live) + " B", "the table lists them"}}}};
    return {"Peak of a device", bytesValue(static_cast<double>(s.peakBytes)),
        {"What the buffer plan needs: every buffer has a place in one arena, and places are used again.",
            "peak = end of the highest buffer",
            {{"live at the peak", formatWhole(live) + " B", "largest sum of buffers in use at one instruction"},
                {"gaps between buffers", formatWhole(s.peakBytes - live) + " B", "peak − live"}}}};
}

ReportFigures figures(const ReportInputs& inputs)
{
    const Simulation& s = inputs.simulated->simulation;
    const std::int64_t live = liveBytes(inputs);
    ReportFigures figures;
    figures.figures.push_back(plannedPeak(inputs));
    figures.figures.push_back({"Usable by programs", bytesValue(static_cast<double>(usableBytes(s))),
        {{}, "usable = capacity − reserve",
            {{"capacity", formatWhole(s.capacityBytes) + " B", sourceText(inputs.machine->chip.hbmBytes)},
                {"reserve", formatWhole(s.reserveBytes) + " B", "assumed: " + reserveRule(*inputs.machine)}}}});
    if (s.hostLinkBytesPerSecond > 0.0)
        figures.figures.push_back({"In the host's memory", bytesValue(static_cast<double>(s.hostBytes)),
            {"What is kept beside the device: it goes there over the host's link and comes back.",
                "end of the highest buffer of a device's part",
                {{"link", formatBytes(s.hostLinkBytesPerSecond) + "/s", sourceText(inputs.machine->chip.hostLinkBytesPerSecond)},
                    {"waited for", formatSeconds(s.hostExposedSeconds), "simulated"}}}});
    std::map<MemoryKind, std::int64_t> byKind;
    for (const LiveValue& value : inputs.simulated->liveAtPeak)
        byKind[value.kind] += value.bytes;
    for (const auto& [kind, bytes] : byKind) {
        std::string name = memoryKindName(kind);
        name.front() = static_cast<char>(name.front() - 'a' + 'A');
        figures.figures.push_back({name + " at the peak", bytesValue(static_cast<double>(bytes)),
            {{}, fmt::format("sum over what is live for {}", memoryKindName(kind)),
                {{"of all that is live",
                    percentText(static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(1, live))),
                    "buffer plan"}}}});
    }
    return figures;
}

ReportTable liveTable(const ReportInputs& inputs)
{
    const SimulatedStudy& study = *inputs.simulated;
    const std::map<std::string, TensorType> pieces = piecesOf(inputs);
    ReportTable table;
    table.title = "Live at the peak";
    table.columns = {{"Value"}, {"For"}, {"On a device"}, {"Bytes", true}, {"Of the peak", true}};
    std::int64_t rest = 0;
    for (std::size_t i = 0; i < study.liveAtPeak.size(); ++i) {
        const LiveValue& value = study.liveAtPeak[i];
        if (i >= kMostLive) {
            rest += value.bytes;
            continue;
        }
        const auto piece = pieces.find(value.name);
        const std::string type = piece == pieces.end() ? "–" : typeText(piece->second);
        ReportRow row;
        row.cells = {wordsValue(value.name), wordsValue(memoryKindName(value.kind)), wordsValue(type),
            bytesValue(static_cast<double>(value.bytes)),
            shareValue(
                static_cast<double>(value.bytes) / static_cast<double>(std::max<std::int64_t>(1, study.simulation.peakBytes)))};
        if (piece != pieces.end())
            row.opening.formula = fmt::format("{} elements × {} B = {} B", formatWhole(piece->second.elements()),
                byteSize(piece->second.dtype), formatWhole(piece->second.bytes()));
        table.rows.push_back(std::move(row));
    }
    table.note
        = fmt::format("Buffers begin at multiples of {} B; values that follow each other in place share one.", kBufferAlignment);
    if (study.liveAtPeak.size() > kMostLive)
        table.note += fmt::format(" {} more have {} together.", study.liveAtPeak.size() - kMostLive, formatBytes(rest));
    return table;
}

} // namespace

ReportSection memorySection(const ReportInputs& inputs)
{
    const Simulation& s = inputs.simulated->simulation;
    ReportSection section{"memory", "Memory", {}};
    MemoryDrawing drawing = memoryPicture(s);
    drawing.title.clear();
    drawing.width = 860.0;
    drawing.height = 340.0;
    section.blocks.push_back(
        ReportPictures{{pictureOf("memory", "Memory of a device over the step", drawMemory(drawing), memorySentence(s) + ".")}});
    section.blocks.push_back(figures(inputs));
    section.blocks.push_back(liveTable(inputs));
    return section;
}

} // namespace meshwright::sim
