// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/hlo_report.h"

#include "core/partition/device_program.h"
#include "core/support/escape.h"
#include "core/support/json_text.h"
#include "core/support/resources.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "sim/collective/network_cost.h"
#include "sim/hardware/hardware_name.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;

CollectiveKind networkKindOf(HloCollectiveKind kind)
{
    switch (kind) {
    case HloCollectiveKind::AllReduce:
        return CollectiveKind::AllReduce;
    case HloCollectiveKind::AllGather:
        return CollectiveKind::AllGather;
    case HloCollectiveKind::ReduceScatter:
        return CollectiveKind::ReduceScatter;
    case HloCollectiveKind::AllToAll:
    case HloCollectiveKind::RaggedAllToAll:
        return CollectiveKind::AllToAll;
    case HloCollectiveKind::CollectivePermute:
        return CollectiveKind::Permute;
    case HloCollectiveKind::CollectiveBroadcast:
        return CollectiveKind::Broadcast;
    }
    return CollectiveKind::AllReduce;
}

/// Groups of one size, as devices of the machine: the largest, which take longest.
std::vector<std::vector<DeviceId>> largestGroups(const HloGroups& groups, const MeshPlacement& placement)
{
    std::vector<std::vector<DeviceId>> largest;
    for (const auto& group : groups.groups) {
        if (static_cast<std::int64_t>(group.size()) != groups.size)
            continue;
        largest.emplace_back();
        for (const std::int64_t position : group)
            largest.back().push_back(placement.deviceAt(position));
    }
    return largest;
}

/// Times collectives on a machine; groups that come again are looked at once.
class HloClock {
public:
    explicit HloClock(MeshPlacement placement)
        : m_placement(std::move(placement))
    {
    }

    CollectiveEstimate estimate(const HloCollective& collective)
    {
        const HloGroups& groups = *collective.groups;
        if (groups.size < 2)
            return {0.0, 0, "none", "", 0.0, {}};
        auto& axes = m_axes[&groups];
        if (!axes)
            axes = groups.axes ? m_placement.groupAxes(*groups.axes)
                               : m_placement.groupAxesOfDevices(largestGroups(groups, m_placement));
        return estimateCollective(requestFor(m_placement, networkKindOf(collective.kind), *axes, collective.payloadBytes));
    }

private:
    MeshPlacement m_placement;
    std::map<const HloGroups*, std::optional<std::vector<GroupAxis>>> m_axes;
};

std::string groupsText(const HloGroups& groups, const Mesh& mesh)
{
    if (groups.axes)
        return groups.axes->empty() ? "none" : axesText(*groups.axes, mesh);
    constexpr std::size_t kMostShown = 32;
    return groups.text.size() <= kMostShown
        ? groups.text
        : fmt::format("{} of {}: {}...", groups.groups.size(), groups.size, groups.text.substr(0, kMostShown / 2));
}

/// The rows of the collectives; `clock` may be null.
std::vector<HloRow> rowsOf(const HloCollectives& module, HloClock* clock)
{
    using Key = std::tuple<HloCollectiveKind, std::string, std::int64_t, std::string_view, std::string_view>;
    std::map<Key, std::size_t> known;
    std::vector<HloRow> rows;
    for (const HloCollective& collective : module.collectives) {
        const std::string groups = groupsText(*collective.groups, module.mesh);
        const Key key{collective.kind, groups, collective.payloadBytes, collective.operation, collective.source};
        const auto [place, isNew] = known.emplace(key, rows.size());
        if (isNew) {
            rows.push_back({collective, 0, 0, groups});
            if (clock != nullptr)
                rows.back().estimate = clock->estimate(collective);
        }
        HloRow& row = rows[place->second];
        row.count = row.count > INT64_MAX - collective.count ? INT64_MAX : row.count + collective.count;
        ++row.instructions;
        row.collective.isConditional = row.collective.isConditional || collective.isConditional;
        row.collective.isInUnknownLoop = row.collective.isInUnknownLoop || collective.isInUnknownLoop;
    }
    std::stable_sort(rows.begin(), rows.end(),
        [](const HloRow& a, const HloRow& b) { return std::pair(a.seconds(), a.bytes()) > std::pair(b.seconds(), b.bytes()); });
    return rows;
}

/// `model.py:41` of a whole path.
std::string_view fileOf(std::string_view source)
{
    return source.substr(source.find_last_of("/\\") + 1);
}

Json rowJson(const HloRow& row, const Mesh& mesh)
{
    const HloCollective& c = row.collective;
    Json json = {{"op", hloCollectiveName(c.kind)}};
    json["axes"] = c.groups->axes ? Json(axesText(*c.groups->axes, mesh)) : Json(nullptr);
    json["groups"] = c.groups->text;
    json["group_size"] = c.groups->size;
    json["count"] = row.count;
    json["bytes_per_device"] = c.payloadBytes;
    json["instructions"] = row.instructions;
    json["first"] = c.name;
    json["line"] = c.line;
    json["asynchronous"] = c.isAsync;
    json["conditional"] = c.isConditional;
    json["unknown_loop"] = c.isInUnknownLoop;
    json["operation"] = c.operation;
    json["source"] = c.source;
    if (row.estimate) {
        json["time_s"] = row.seconds();
        json["wire_bytes"] = row.estimate->wireBytes;
        json["algorithm"] = row.estimate->algorithm;
        json["formula"] = row.estimate->formula;
    }
    return json;
}

Json reportJson(const HloReport& report)
{
    Json json = {{"file", report.file}, {"module", report.module.module}, {"devices", report.module.devices}};
    json["mesh"] = report.module.meshKnown ? Json(report.module.mesh.text()) : Json(nullptr);
    json["machine"] = report.machine.empty() ? Json(nullptr) : Json(report.machine);
    json["bytes_per_device"] = report.bytes();
    json["time_s"] = report.machine.empty() ? Json(nullptr) : Json(report.seconds());
    json["cut_off"] = report.module.isPart;
    json["before_partitioning"] = report.module.beforePartitioning;
    json["unknown_loops"] = report.module.unknownLoops;
    json["collectives"] = Json::array();
    for (const HloRow& row : report.rows)
        json["collectives"].push_back(rowJson(row, report.module.mesh));
    return json;
}

std::string document(Json parts)
{
    Json json = {{"schema", "meshwright.hlo/1"}, {"meshwright", kVersion}};
    json.update(parts);
    return jsonText(json);
}

std::string signedBytes(double bytes)
{
    return fmt::format("{}{}", bytes < 0.0 ? "-" : "+", formatBytes(std::abs(bytes)));
}

} // namespace

double HloReport::bytes() const
{
    double sum = 0.0;
    for (const HloRow& row : rows)
        sum += row.bytes();
    return sum;
}

double HloReport::seconds() const
{
    double sum = 0.0;
    for (const HloRow& row : rows)
        sum += row.seconds();
    return sum;
}

std::vector<std::string> HloReport::notes() const
{
    std::vector<std::string> all;
    if (module.beforePartitioning)
        all.push_back(
            "This dump is from before the partitioner: its values still have shardings, and the collectives that they need are "
            "not "
            "made yet. Shapes are those of whole arrays. The dump that ends in after_optimizations.txt has all collectives.");
    if (module.isPart)
        all.push_back("The dump is cut off. Collectives of computations whose callers are missing are counted once.");
    if (!module.unknownLoops.empty())
        all.push_back(fmt::format("The number of turns of {} is not known: the collectives in {} are counted for one turn.",
            printable(join(module.unknownLoops, ", ")), module.unknownLoops.size() == 1 ? "this loop" : "these loops"));
    if (std::any_of(rows.begin(), rows.end(), [](const HloRow& row) { return row.collective.isConditional; }))
        all.emplace_back("Collectives in the branches of a condition are counted as if every branch is taken.");
    if (std::any_of(
            rows.begin(), rows.end(), [](const HloRow& row) { return row.collective.kind == HloCollectiveKind::RaggedAllToAll; }))
        all.emplace_back("The bytes of a ragged all-to-all depend on the data: those of its whole operand are counted.");
    return all;
}

Result<HloReport> hloReport(
    std::string_view text, const std::string& file, const std::optional<Mesh>& mesh, const Machine* machine)
{
    const auto module = readHloModule(text, file);
    if (!module)
        return module.error();
    auto collectives = hloCollectives(*module, text, file, mesh);
    if (!collectives)
        return collectives.error();
    HloReport report{file, *std::move(collectives), {}, {}};
    std::optional<HloClock> clock;
    if (machine != nullptr) {
        const HloCollectives& found = report.module;
        const auto placed = placeMesh(found.meshKnown ? found.mesh : *Mesh::create({{"devices", found.devices}}), *machine);
        if (!placed)
            return placed.error();
        clock.emplace(*placed);
        report.machine = machine->text();
    }
    report.rows = rowsOf(report.module, clock ? &*clock : nullptr);
    report.module.collectives.clear();
    return report;
}

Result<HloReport> hloReport(
    std::string_view text, const std::string& file, const std::optional<Mesh>& mesh, const std::string& machine)
{
    if (machine.empty())
        return hloReport(text, file, mesh, nullptr);
    const auto catalogue = Catalogue::load(resourcesDirectory() / "hardware" / "catalogue.json");
    if (!catalogue)
        return catalogue.error();
    const auto name = readMachineName(*catalogue, machine);
    std::string chips = machine;
    if (name && !name->chips) { // as many as the module runs on
        const auto untimed = hloReport(text, file, mesh, nullptr);
        if (!untimed)
            return untimed;
        chips += fmt::format("x{}", untimed->module.devices);
    }
    const auto built = buildMachine(*catalogue, {chips});
    if (!built)
        return inFile(built.error(), "--hw");
    return hloReport(text, file, mesh, &*built);
}

std::vector<HloChange> hloChanges(const HloReport& before, const HloReport& after)
{
    std::map<std::tuple<HloCollectiveKind, std::string_view, std::int64_t>, HloChange> all;
    const auto count = [&](const HloReport& report, std::int64_t HloChange::*calls) {
        for (const HloRow& row : report.rows) {
            const auto [place, isNew]
                = all.try_emplace({row.collective.kind, row.groups, row.collective.payloadBytes}, HloChange{row});
            place->second.*calls += row.count;
        }
    };
    count(after, &HloChange::after);
    count(before, &HloChange::before);
    std::vector<HloChange> changes;
    for (auto& [key, change] : all) {
        if (change.before != change.after)
            changes.push_back(std::move(change));
    }
    std::stable_sort(changes.begin(), changes.end(),
        [](const HloChange& a, const HloChange& b) { return std::abs(a.bytes()) > std::abs(b.bytes()); });
    return changes;
}

std::string hloHeadline(const HloReport& report)
{
    std::int64_t calls = 0;
    for (const HloRow& row : report.rows)
        calls = row.count > INT64_MAX - calls ? INT64_MAX : calls + row.count;
    std::string text = fmt::format("{}, {} devices", printable(report.module.module), report.module.devices);
    if (report.module.meshKnown)
        text += fmt::format(" ({})", report.module.mesh.text());
    if (report.rows.empty())
        return text + ": no collectives";
    text += fmt::format(": {} calls of collectives, {} of data a device", formatWhole(calls), formatBytes(report.bytes()));
    if (!report.machine.empty())
        text += fmt::format(", {} on {}, one after the other", formatSeconds(report.seconds()), report.machine);
    return text;
}

std::string hloHeadline(const HloReport& before, const HloReport& after)
{
    return fmt::format("before: {}\nafter:  {}", hloHeadline(before), hloHeadline(after));
}

std::string hloText(const HloReport& report)
{
    using Align = TextTable::Align;
    std::string text = hloHeadline(report) + "\n";
    std::vector<TextTable::Column> columns = {
        {"collective"}, {report.module.meshKnown ? "axes" : "groups"}, {"calls", Align::Right}, {"bytes/device", Align::Right}};
    if (!report.machine.empty())
        columns.push_back({"time", Align::Right});
    const bool hasSources
        = std::any_of(report.rows.begin(), report.rows.end(), [](const HloRow& row) { return !row.collective.source.empty(); });
    columns.push_back({"operation"});
    if (hasSources)
        columns.push_back({"source"});
    TextTable table(columns);
    for (const HloRow& row : report.rows) {
        const HloCollective& c = row.collective;
        std::vector<std::string> cells = {hloCollectiveName(c.kind), row.groups,
            fmt::format("{}{}", row.count, c.isInUnknownLoop ? " x ?" : ""), formatBytes(c.payloadBytes)};
        if (row.estimate)
            cells.push_back(formatSeconds(row.seconds()));
        cells.push_back(c.operation.empty() ? "%" + c.name : c.operation);
        if (hasSources)
            cells.emplace_back(fileOf(c.source));
        table.addRow(std::move(cells));
    }
    if (table.rowCount() > 0)
        text += table.text(2);
    for (const std::string& note : report.notes())
        text += note + "\n";
    return text;
}

std::string hloText(const HloReport& before, const HloReport& after)
{
    using Align = TextTable::Align;
    std::string text = hloHeadline(before, after) + "\n";
    TextTable table({{""}, {"collective"}, {after.module.meshKnown ? "axes" : "groups"}, {"bytes/device", Align::Right},
        {"calls", Align::Right}, {"data a device", Align::Right}, {"operation"}, {"source"}});
    for (const HloChange& change : hloChanges(before, after)) {
        const HloCollective& c = change.row.collective;
        table.addRow({change.before == 0       ? "new"
                : change.after == 0            ? "gone"
                : change.after > change.before ? "more"
                                               : "fewer",
            hloCollectiveName(c.kind), change.row.groups, formatBytes(c.payloadBytes),
            fmt::format("{} -> {}", change.before, change.after), signedBytes(change.bytes()),
            c.operation.empty() ? "%" + c.name : c.operation, std::string(fileOf(c.source))});
    }
    text += table.rowCount() == 0 ? "  the same collectives\n" : table.text(2);
    std::map<HloCollectiveKind, double> kinds;
    for (const HloChange& change : hloChanges(before, after))
        kinds[change.row.collective.kind] += change.bytes();
    for (const auto& [kind, bytes] : kinds)
        text += fmt::format("{}: {} of data a device\n", hloCollectiveName(kind), signedBytes(bytes));
    for (const HloReport* report : {&before, &after}) {
        for (const std::string& note : report->notes())
            text += fmt::format("{}: {}\n", report == &before ? "before" : "after", note);
    }
    return text;
}

std::string hloJson(const HloReport& report)
{
    return document(reportJson(report));
}

std::string hloJson(const HloReport& before, const HloReport& after)
{
    Json json = reportJson(after);
    json["before"] = reportJson(before);
    json["changes"] = Json::array();
    for (const HloChange& change : hloChanges(before, after)) {
        const HloCollective& c = change.row.collective;
        json["changes"].push_back(
            {{"op", hloCollectiveName(c.kind)}, {"groups", change.row.groups}, {"bytes_per_device", c.payloadBytes},
                {"before", change.before}, {"after", change.after}, {"operation", c.operation}, {"source", c.source}});
    }
    return document(std::move(json));
}

} // namespace meshwright::sim
