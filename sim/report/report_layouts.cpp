// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_layout.h"
#include "core/draw/draw_topology.h"
#include "core/prove/prove.h"
#include "core/support/counted.h"
#include "core/support/text.h"
#include "sim/report/machine_picture.h"
#include "sim/report/report_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace meshwright::sim {

namespace {

constexpr std::size_t kMostPictures = 8;
constexpr std::size_t kMostGroups = 40; ///< rows of the table
constexpr std::size_t kMostReasons = 12; ///< of one row
constexpr std::int64_t kMostDrawnDevices = 65536;

/// Arrays of one type that lie alike.
struct Alike {
    std::vector<const ReportedArray*> arrays; ///< never empty
    Shape piece; ///< of one device
    std::int64_t pieceBytes = 0;
    std::int64_t copies = 1; ///< devices that hold the same piece

    const ReportedArray& first() const { return *arrays.front(); }
};

std::int64_t copiesOf(const TensorSharding& sharding, std::int64_t devices)
{
    std::int64_t pieces = shardCount(sharding.unreduced);
    for (const DimSharding& dim : sharding.dims)
        pieces *= shardCount(dim.axes);
    return devices / std::max<std::int64_t>(1, pieces);
}

/// Devices that have an array.
std::int64_t deviceCount(const ReportedArray& array, const Mesh& whole)
{
    if (array.mesh == nullptr)
        return whole.deviceCount();
    return array.mesh->deviceCount() * static_cast<std::int64_t>(std::max<std::size_t>(1, array.stages.size()));
}

std::vector<Alike> groupsOf(const std::vector<ReportedArray>& arrays, const Mesh& mesh)
{
    std::vector<Alike> groups;
    for (const ReportedArray& array : arrays) {
        const auto same = std::find_if(groups.begin(), groups.end(), [&](const Alike& group) {
            const ReportedArray& first = group.first();
            return first.type == array.type && first.spec == array.spec && first.stages == array.stages;
        });
        if (same != groups.end()) {
            same->arrays.push_back(&array);
            continue;
        }
        Alike group;
        group.arrays.push_back(&array);
        group.piece = localShape(array.type.shape, array.sharding);
        group.pieceBytes = elementCount(group.piece) * byteSize(array.type.dtype);
        group.copies = copiesOf(array.sharding, deviceCount(array, mesh));
        groups.push_back(std::move(group));
    }
    return groups;
}

std::string namesText(const Alike& group)
{
    constexpr std::size_t kShown = 2;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(kShown, group.arrays.size()); ++i)
        names.push_back(group.arrays[i]->name);
    const std::size_t more = group.arrays.size() - names.size();
    return join(names, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
}

class LayoutReporter {
public:
    explicit LayoutReporter(const ReportInputs& inputs)
        : m_inputs(inputs)
        , m_mesh(inputs.partitioned->device.stages.front().mesh())
    {
        const auto& functions = inputs.partitioned->propagated.functions;
        const auto main = std::find_if(
            functions.begin(), functions.end(), [&](const Function& function) { return function.name == inputs.mainFunction; });
        m_function = &*main;
        m_reasons = &inputs.partitioned->reports[static_cast<std::size_t>(main - functions.begin())];
    }

    ReportSection section() const
    {
        ReportSection section{"layouts", "Layouts", {}};
        const std::vector<Alike> groups = groupsOf(m_inputs.arrays, m_mesh);
        const auto asked = std::count_if(
            m_inputs.arrays.begin(), m_inputs.arrays.end(), [](const ReportedArray& array) { return !array.annotation.empty(); });
        section.blocks.push_back(ReportParagraph{fmt::format(
            "The step has {} named arrays on {} in the mesh {}. The study places {} of them; the layouts of the others follow, "
            "and each row opens to the reason. Arrays with one type and one sharding share a row.",
            m_inputs.arrays.size(), m_mesh.deviceCount() == 1 ? "one device" : formatWhole(m_mesh.deviceCount()) + " devices",
            m_mesh.text(), asked)});
        if (m_inputs.pipeline != nullptr)
            section.blocks.push_back(ReportParagraph{fmt::format("The step is cut into {}: arrays of the batch are those of one "
                                                                 "microbatch, and a stage's arrays lie on its devices alone.",
                counted(m_inputs.pipeline->pipeline.stages, "stage") + " and "
                    + counted(m_inputs.pipeline->pipeline.microbatches, "microbatch"))});
        if (m_mesh.deviceCount() <= kMostDrawnDevices)
            section.blocks.push_back(pictures(groups));
        section.blocks.push_back(table(groups));
        return section;
    }

private:
    std::string reasonOf(const ReportedArray& array) const
    {
        if (!array.value.valid())
            return array.sharding.isReplicated() ? "nothing in its stage splits it"
                                                 : "it follows from the other arrays of its stage";
        std::string reason = explainSharding(*m_function, *m_reasons, m_mesh, array.value);
        const std::string prefix = array.spec + ": ";
        return reason.starts_with(prefix) ? reason.substr(prefix.size()) : reason;
    }

    /// One picture for each spec: of the largest array that has it.
    ReportPictures pictures(const std::vector<Alike>& groups) const
    {
        std::vector<const Alike*> shown;
        for (const Alike& group : groups) {
            if (group.first().role == Role::Metric || group.first().type.shape.empty())
                continue;
            const auto same = std::find_if(shown.begin(), shown.end(), [&](const Alike* other) {
                return other->first().spec == group.first().spec
                    || (other->first().sharding.isReplicated() && group.first().sharding.isReplicated());
            });
            if (same == shown.end())
                shown.push_back(&group);
            else if (group.first().type.bytes() > (*same)->first().type.bytes() && group.first().role == (*same)->first().role)
                *same = &group;
        }
        // What is split is what people look for.
        std::stable_partition(
            shown.begin(), shown.end(), [](const Alike* group) { return !group->first().sharding.isReplicated(); });
        if (shown.size() > kMostPictures)
            shown.resize(kMostPictures);

        ReportPictures pictures;
        for (const Alike* group : shown)
            pictures.pictures.push_back(picture(*group, fmt::format("layout-{}", pictures.pictures.size() + 1)));
        return pictures;
    }

    ReportPicture picture(const Alike& group, const std::string& id) const
    {
        const ReportedArray& array = group.first();
        LayoutDrawing drawing;
        drawing.arrayName = array.name;
        drawing.caption = array.spec;
        drawing.platform = m_inputs.machine != nullptr && m_inputs.machine->chip.chipClass == ChipClass::Gpu ? "GPU"
            : m_inputs.machine != nullptr && m_inputs.machine->chip.chipClass == ChipClass::Tpu              ? "TPU"
                                                                                                             : "device";
        drawing.deviceColours = DeviceColours(m_mesh);
        drawing.partialOver = axesText(array.sharding.unreduced, m_mesh);
        drawing.elementBytes = byteSize(array.type.dtype);
        drawing.panelWidth = 340.0;
        drawing.panelHeight = 180.0;
        drawing.mostPanels = 4;
        std::string caption
            = fmt::format("{} ({}) on each device", typeText({array.type.dtype, group.piece}), formatBytes(group.pieceBytes));
        if (group.copies > 1)
            caption += fmt::format(", {} copies of each piece", formatWhole(group.copies));
        std::string reason = reasonOf(array);
        if (reason.starts_with("dim"))
            reason.front() = 'D';
        else
            reason = "Replicated: " + reason;
        caption += ". " + reason + ".";
        return pictureOf(id, fmt::format("Layout of {}", array.name),
            drawLayout(layoutOf(array.type.shape, array.sharding, array.mesh != nullptr ? *array.mesh : m_mesh), drawing),
            std::move(caption));
    }

    ReportTable table(const std::vector<Alike>& groups) const
    {
        ReportTable table;
        table.title = "Arrays of the step";
        table.columns = {{"Arrays"}, {"Type"}, {"Layout"}, {"On a device"}, {"Bytes on a device", true}, {"Copies", true}};
        const bool hasStages = m_inputs.pipeline != nullptr && m_inputs.pipeline->stages.size() > 1;
        if (hasStages)
            table.columns.push_back({"Stages"});
        for (std::size_t i = 0; i < std::min(kMostGroups, groups.size()); ++i) {
            const Alike& group = groups[i];
            const ReportedArray& array = group.first();
            ReportRow row;
            row.cells = {wordsValue(namesText(group)), wordsValue(typeText(array.type)), wordsValue(array.spec),
                wordsValue(typeText({array.type.dtype, group.piece})), bytesValue(static_cast<double>(group.pieceBytes)),
                countValue(group.copies)};
            if (hasStages)
                row.cells.push_back(wordsValue(fmt::format("{}", fmt::join(array.stages, ", "))));
            row.opening.text = reasonsText(group);
            table.rows.push_back(std::move(row));
        }
        table.note
            = "Bytes on a device = elements of the piece × bytes of an element; a piece has ⌈size / pieces⌉ in each dimension.";
        if (groups.size() > kMostGroups)
            table.note += fmt::format(" {} more rows are left out.", groups.size() - kMostGroups);
        return table;
    }

    std::string reasonsText(const Alike& group) const
    {
        // Arrays with the same reason share a line.
        std::vector<std::pair<std::string, std::vector<std::string>>> lines;
        for (std::size_t i = 0; i < std::min(kMostReasons, group.arrays.size()); ++i) {
            const std::string reason = reasonOf(*group.arrays[i]);
            auto line = std::find_if(lines.begin(), lines.end(), [&](const auto& one) { return one.first == reason; });
            if (line == lines.end())
                line = lines.insert(lines.end(), {reason, {}});
            line->second.push_back(group.arrays[i]->name);
        }
        std::string text;
        for (const auto& [reason, names] : lines)
            text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", join(names, ", "), reason);
        if (group.arrays.size() > kMostReasons)
            text += fmt::format("\nand {} more", group.arrays.size() - kMostReasons);
        return text;
    }

    const ReportInputs& m_inputs;
    const Mesh& m_mesh;
    const Function* m_function = nullptr;
    const PropagationReport* m_reasons = nullptr;
};

ReportTable axesTable(const TopologyDrawing& drawing)
{
    ReportTable table;
    table.title = "Mesh axes on the machine";
    table.columns = {{"Axis"}, {"Devices", true}, {"Runs along"}, {"Links"}, {"Bandwidth each way", true},
        {"Latency of a step", true}, {"Ring"}, {"Shares links with"}};
    for (const DrawnMeshAxis& axis : drawing.meshAxes) {
        const bool linked = axis.bytesPerSecond > 0.0;
        table.rows.push_back(
            {{wordsValue(axis.name), countValue(axis.size), wordsValue(axis.where.empty() ? "–" : axis.where),
                 wordsValue(axis.kind.empty() ? "–" : axis.kind),
                 linked ? ReportValue{bandwidthText(axis.bytesPerSecond), axis.bytesPerSecond, "B/s"} : wordsValue("–"),
                 linked ? secondsValue(axis.latencySeconds) : wordsValue("–"),
                 wordsValue(!linked   ? "–"
                         : axis.wraps ? "yes"
                                      : "no"),
                 wordsValue(axis.sharesWith.empty() ? "–" : join(axis.sharesWith, ", "))},
                {}});
    }
    return table;
}

} // namespace

namespace {

/// Without the time that it took: reports of the same study are the same.
ReportParagraph proofParagraph(const Proof& proof)
{
    if (proof.isProved())
        return {
            fmt::format("The device program is {}: it computes the program for every input.", headline(proof)), ReportTone::Good};
    return {fmt::format(
        "The device program is {} ({}). It can still be correct: `meshwright train --verify` runs it beside one device.",
        headline(proof), firstObstacle(proof))};
}

} // namespace

ReportSection layoutsSection(const ReportInputs& inputs)
{
    if (inputs.partitioned != nullptr) {
        ReportSection section = LayoutReporter(inputs).section();
        if (inputs.proof != nullptr)
            section.blocks.insert(section.blocks.begin(), proofParagraph(*inputs.proof));
        return section;
    }
    return {"layouts", "Layouts",
        {ReportParagraph{"The problems of the study keep its program from being built.", ReportTone::Warning}}};
}

ReportSection machineSection(const ReportInputs& inputs)
{
    ReportSection section{"machine", "Mesh and machine", {}};
    section.blocks.push_back(ReportParagraph{inputs.machine->text()
        + (inputs.placement != nullptr ? ": " + inputs.placement->text() + "." : ". The mesh is not placed on it.")});
    auto drawing = machinePicture(*inputs.machine, inputs.placement);
    if (!drawing) {
        section.blocks.push_back(ReportParagraph{drawing.error().front().message});
        return section;
    }
    drawing->width = 860.0;
    drawing->height = 420.0;
    drawing->caption = false;
    if (inputs.placement != nullptr)
        drawing->deviceColours = DeviceColours(inputs.placement->mesh());
    section.blocks.push_back(ReportPictures{{pictureOf("topology", "The machine and the mesh on it", drawTopology(*drawing))}});
    if (!drawing->meshAxes.empty())
        section.blocks.push_back(axesTable(*drawing));
    return section;
}

} // namespace meshwright::sim
