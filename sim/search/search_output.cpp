// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/search_output.h"

#include "core/support/counted.h"
#include "core/support/escape.h"
#include "core/support/json_text.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "sim/search/output_parts.h"
#include "sim/search/plan_reasons.h"
#include "sim/search/search_limits.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

constexpr std::size_t kMostFrontRows = 12;
constexpr std::size_t kMostSpecRows = 24;

Json sharesJson(const std::vector<NamedShare>& shares)
{
    Json json = Json::object();
    for (const NamedShare& share : shares)
        json[share.name] = share.amount;
    return json;
}

Json liveJson(const std::vector<NamedShare>& live)
{
    Json json = Json::array();
    for (const NamedShare& value : live)
        json.push_back({{"name", value.name}, {"bytes", static_cast<std::int64_t>(value.amount)}});
    return json;
}

template <typename T>
Json orNull(const std::optional<T>& value)
{
    return value ? Json(*value) : Json(nullptr);
}

Json planJson(const FoundPlan& plan)
{
    Json mesh = Json::array();
    for (const MeshAxis& axis : plan.mesh)
        mesh.push_back({axis.name, axis.size});
    Json specs = Json::object();
    for (const auto& [array, spec] : plan.specs)
        specs[array] = spec;
    return Json{{"hardware", plan.hardware}, {"chips", plan.chips}, {"kind", plan.kind}, {"mesh", std::move(mesh)},
        {"specs", std::move(specs)},
        {"pipeline",
            {{"stages", plan.pipeline.stages}, {"chunks", plan.pipeline.chunks}, {"microbatches", plan.pipeline.microbatches},
                {"schedule", plan.pipeline.schedule}}},
        {"recompute", plan.recompute}, {"microbatch", plan.microbatch}, {"zero_stage", plan.zeroStage},
        {"sequence_parallel", plan.sequenceParallel}, {"estimate_s", plan.modelSeconds}, {"step_time_s", plan.seconds()},
        {"step_time_by", plan.simulatedSeconds ? "simulator" : "closed form"},
        {"peak_bytes_per_device", static_cast<std::int64_t>(std::llround(plan.peakBytes))},
        {"capacity_bytes", static_cast<std::int64_t>(std::llround(plan.capacityBytes))}, {"fits", plan.fits}, {"mfu", plan.mfu},
        {"price_per_step", orNull(plan.dollarsPerStep)}, {"bound_by", plan.boundBy}, {"why", plan.why},
        {"time_s", sharesJson(plan.time)}, {"memory_bytes", sharesJson(plan.memory)}, {"live_bytes", liveJson(plan.live)}};
}

std::string percent(double share)
{
    return fmt::format("{:.0f} %", 100.0 * share);
}

std::string gain(double loss)
{
    return fmt::format("{:+.1f} %", 100.0 * loss);
}

std::string memoryText(const FoundPlan& plan)
{
    return fmt::format("{:.1f}/{:.1f} GiB", plan.peakBytes / kGiB, plan.capacityBytes / kGiB);
}

std::string passesText(const FoundPlan& plan)
{
    if (plan.microbatch <= 0.0)
        return {};
    std::string text = fmt::format("{:.0f} x {:.0f}", plan.pipeline.microbatches, plan.microbatch);
    if (plan.pipeline.stages > 1)
        text += plan.pipeline.chunks > 1 ? fmt::format(" {} {}", plan.pipeline.schedule, plan.pipeline.chunks)
                                         : fmt::format(" {}", plan.pipeline.schedule);
    return text;
}

std::string statesText(const FoundPlan& plan)
{
    return plan.zeroStage == 0 ? std::string("-") : fmt::format("ZeRO-{}", plan.zeroStage);
}

bool severalMachines(const std::vector<FoundPlan>& plans)
{
    return std::any_of(
        plans.begin(), plans.end(), [&](const FoundPlan& plan) { return plan.hardware != plans.front().hardware; });
}

bool ofTransformers(const SearchResult& result)
{
    return std::any_of(result.plans.begin(), result.plans.end(), [](const FoundPlan& plan) { return plan.microbatch > 0.0; });
}

/// The columns that plans are told of in, and a plan's cells.
std::vector<TextTable::Column> planColumns(bool machines, bool passes)
{
    std::vector<TextTable::Column> columns = {{"#", Align::Right}};
    if (machines)
        columns.push_back({"hardware"});
    columns.push_back({"mesh"});
    if (passes)
        columns.insert(columns.end(), {{"states"}, {"recompute"}, {"microbatches"}});
    columns.insert(
        columns.end(), {{"step", Align::Right}, {"MFU", Align::Right}, {"HBM/device", Align::Right}, {"bound by"}, {"note"}});
    return columns;
}

bool bestIsSimulated(const SearchResult& result)
{
    return !result.plans.empty() && result.plans.front().simulatedSeconds;
}

std::vector<std::string> planCells(const FoundPlan& plan, std::size_t number, bool machines, bool passes)
{
    std::vector<std::string> cells = {fmt::format("{}", number)};
    if (machines)
        cells.push_back(plan.hardware);
    cells.push_back(meshText(plan.mesh));
    if (passes)
        cells.insert(cells.end(), {statesText(plan), plan.recompute, passesText(plan)});
    cells.insert(cells.end(),
        {formatSeconds(plan.seconds()), percent(plan.mfu), memoryText(plan), plan.boundBy,
            plan.why.empty() ? std::string{} : plan.why.front()});
    return cells;
}

std::string boundText(const SearchResult& result)
{
    std::string text = boundSentence(result);
    if (!result.isGapSimulated && bestIsSimulated(result))
        text += fmt::format("\nthe steps above are simulated{}",
            result.simulated > 0 ? " (" + counted(result.simulated, "layout") + ")" : std::string{});
    if (!result.notSimulated.empty())
        text += "\nnot simulated:\n  " + join(result.notSimulated, "\n  ");
    return text + "\n";
}

std::string templateTable(const SearchResult& result)
{
    TextTable table({{"template"}, {"at its best"}, {"step", Align::Right}, {"loses", Align::Right}, {"why"}});
    for (const TemplateScore& score : result.templates) {
        const bool none = score.seconds <= 0.0;
        table.addRow({score.name, score.mesh, none || !score.fits ? "-" : formatSeconds(score.seconds),
            none || !score.fits || (!result.areAnswersSimulated && result.lowerBoundSeconds <= 0.0) ? "-" : gain(score.loss),
            score.why});
    }
    return table.text(2);
}

std::string choiceTable(const SearchResult& result)
{
    TextTable table({{"choice"}, {"next best"}, {"step", Align::Right}, {"loses", Align::Right}, {"why"}});
    for (const OtherChoice& other : result.others)
        table.addRow({other.choice, other.other, formatSeconds(other.seconds), gain(other.loss), other.why});
    return table.text(2);
}

std::string frontTable(const SearchResult& result)
{
    const bool machines = severalMachines(result.front);
    const bool prices = std::any_of(
        result.front.begin(), result.front.end(), [](const FoundPlan& plan) { return plan.dollarsPerStep.has_value(); });
    std::vector<TextTable::Column> columns = {{"step", Align::Right}, {"HBM/device", Align::Right}, {"chips", Align::Right}};
    if (prices)
        columns.push_back({"$/step", Align::Right});
    if (machines)
        columns.push_back({"hardware"});
    columns.push_back({"mesh"});
    const bool passes = ofTransformers(result);
    if (passes)
        columns.insert(columns.end(), {{"states"}, {"recompute"}, {"microbatches"}});
    TextTable table(columns);
    for (const FoundPlan& plan : result.front) {
        if (table.rowCount() == kMostFrontRows)
            break;
        std::vector<std::string> cells = {formatSeconds(plan.seconds()), memoryText(plan), fmt::format("{}", plan.chips)};
        if (prices)
            cells.push_back(fmt::format("{:.4f}", plan.dollarsPerStep.value_or(0.0)));
        if (machines)
            cells.push_back(plan.hardware);
        cells.push_back(meshText(plan.mesh));
        if (passes)
            cells.insert(cells.end(), {statesText(plan), plan.recompute, passesText(plan)});
        table.addRow(std::move(cells));
    }
    return table.text(2);
}

/// How the arguments of a program lie.
std::string specTable(const FoundPlan& plan)
{
    TextTable table({{"argument"}, {"layout"}});
    for (const auto& [array, spec] : plan.specs) {
        if (table.rowCount() == kMostSpecRows)
            break;
        table.addRow({array, spec});
    }
    std::string text = table.text(2);
    if (plan.specs.size() > kMostSpecRows)
        text += fmt::format("  and {} more: -o plan.yaml has all\n", plan.specs.size() - kMostSpecRows);
    return text;
}

} // namespace

std::string searchJson(const SearchResult& result)
{
    Json json = {{"schema", "meshwright.search/2"}, {"meshwright", kVersion}, {"search", result.about}};
    json["plans"] = Json::array();
    for (const FoundPlan& plan : result.plans)
        json["plans"].push_back(planJson(plan));
    json["pareto_front"] = Json::array();
    for (const FoundPlan& plan : result.front)
        json["pareto_front"].push_back(planJson(plan));
    json["templates"] = Json::array();
    for (const TemplateScore& score : result.templates)
        json["templates"].push_back({{"name", score.name}, {"mesh", score.mesh}, {"fits", score.fits},
            {"step_time_s", score.seconds > 0.0 ? Json(score.seconds) : Json(nullptr)}, {"loss", score.loss},
            {"why", score.why}});
    json["next_best"] = Json::array();
    for (const OtherChoice& other : result.others)
        json["next_best"].push_back({{"choice", other.choice}, {"other", other.other}, {"step_time_s", other.seconds},
            {"loss", other.loss}, {"why", other.why}});
    json["answers_of"] = result.areAnswersSimulated ? "simulated" : "estimate";
    json["memory"] = {{"seconds_per_gib", orNull(result.secondsPerGib)}, {"notes", result.memoryNotes}};
    json["why_none"] = result.whyNone;
    json["changes_that_fit"] = result.changes;
    json["assumptions"] = result.assumptions;
    json["simulated"] = result.simulated;
    json["not_simulated"] = result.notSimulated;
    json["space"] = {{"choices", Json::array()}, {"left_out", result.space.leftOut}};
    for (const auto& [choice, values] : result.space.choices)
        json["space"]["choices"].push_back({{"choice", choice}, {"values", values}});
    json["lower_bound_s"] = result.lowerBoundSeconds;
    json["gap"] = result.gap;
    json["gap_of"] = result.isGapSimulated ? "simulated" : "estimate";
    json["floors"] = result.floors;
    json["candidates"] = result.candidates;
    json["pruned"] = result.pruned;
    json["pruned_by_memory"] = result.prunedByMemory;
    json["complete"] = result.complete;
    json["first_plan_s"] = result.firstPlanSeconds;
    json["wall_s"] = result.wallSeconds;
    return jsonText(json);
}

std::string foundPlanJson(const FoundPlan& plan)
{
    return jsonLine(planJson(plan));
}

std::string boundSentence(const SearchResult& result)
{
    std::string text = fmt::format("{} layouts", formatCount(static_cast<double>(result.candidates)));
    if (result.isGapSimulated)
        return text
            + fmt::format(": {} simulated, {} for the bound; no step is under {}: gap {:.1f} %", result.simulated, result.floors,
                formatSeconds(result.lowerBoundSeconds), 100.0 * result.gap);
    text += fmt::format(", {} pruned by bounds ({} by memory)", formatCount(static_cast<double>(result.pruned)),
        formatCount(static_cast<double>(result.prunedByMemory)));
    if (!bestIsSimulated(result) && result.lowerBoundSeconds > 0.0)
        text += fmt::format(
            "; by the estimate no plan is under {}: gap {:.2f} %", formatSeconds(result.lowerBoundSeconds), 100.0 * result.gap);
    return text;
}

std::string searchText(const SearchResult& result)
{
    std::string text = result.about + "\n";
    const bool machines = severalMachines(result.plans);
    if (!machines && !result.plans.empty())
        text += fmt::format("on {}\n", result.plans.front().hardware);
    const bool fits = !result.plans.empty() && result.plans.front().fits;
    if (!fits)
        text += !result.plans.empty() ? "no plan fits; the one that needs least:\n"
            : !result.whyNone.empty() ? "no legal layout\n" + indentedLines(result.whyNone)
            : result.complete         ? "no legal layout\n"
                                      : "";
    if (!result.whyNone.empty())
        return text + (result.changes.empty() ? "" : "\nthe smallest changes that fit\n" + indentedLines(result.changes));
    const char* by = result.areAnswersSimulated ? "" : ", by the estimate";
    const bool passes = ofTransformers(result);
    TextTable table(planColumns(machines, passes));
    for (std::size_t i = 0; i < result.plans.size(); ++i)
        table.addRow(planCells(result.plans[i], i + 1, machines, passes));
    text += table.text(0);
    text += boundText(result);
    if (!result.complete)
        text += result.plans.empty() ? "stopped before a plan was met: nothing is known of what fits\n"
                                     : "stopped before the search was complete: the best plans so far\n";
    if (fits) {
        text += "\nwhy the first\n" + indentedLines(result.plans.front().why);
        if (result.plans.front().program && !result.plans.front().specs.empty())
            text += "\nshardings of its arguments\n" + specTable(result.plans.front());
        if (!result.others.empty())
            text += fmt::format("\nthe next best choices{}\n", by) + choiceTable(result);
    }
    if (!result.memoryNotes.empty())
        text += fmt::format("\nmemory{}\n", fits ? by : "") + indentedLines(result.memoryNotes);
    if (!result.templates.empty())
        text += fmt::format("\ntemplates{}\n", fits ? by : "") + templateTable(result);
    if (!result.changes.empty())
        text += "\nthe smallest changes that fit\n" + indentedLines(result.changes);
    if (result.front.size() > 1)
        text += fmt::format("\nPareto front{}: less memory, fewer chips or less money for a longer step\n", by)
            + frontTable(result);
    if (!result.assumptions.empty())
        text += "\nassumed\n" + indentedLines(result.assumptions);
    return text;
}

std::string searchCsv(const SearchResult& result)
{
    std::string text
        = "rank,hardware,chips,mesh,zero_stage,recompute,microbatches,microbatch,schedule,chunks,estimate_s,step_time_s,"
          "mfu,peak_bytes_per_device,capacity_bytes,fits,price_per_step,bound_by,why\n";
    for (std::size_t i = 0; i < result.plans.size(); ++i) {
        const FoundPlan& plan = result.plans[i];
        text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{:.0f},{:.0f},{},{},{},{}\n", i + 1, csvCell(plan.hardware),
            plan.chips, csvCell(meshText(plan.mesh)), plan.zeroStage, plan.recompute, plan.pipeline.microbatches, plan.microbatch,
            plan.pipeline.schedule, plan.pipeline.chunks, plan.modelSeconds, plan.seconds(), plan.mfu, plan.peakBytes,
            plan.capacityBytes, plan.fits ? "true" : "false", plan.dollarsPerStep ? fmt::format("{}", *plan.dollarsPerStep) : "",
            csvCell(plan.boundBy), csvCell(join(plan.why, "; ")));
    }
    return text;
}

std::string searchMarkdown(const SearchResult& result)
{
    const bool machines = severalMachines(result.plans);
    const bool passes = ofTransformers(result);
    const auto row = [](const std::vector<std::string>& cells) {
        std::string text = "|";
        for (const std::string& cell : cells)
            text += " " + markdownText(cell) + " |";
        return text + "\n";
    };
    std::vector<std::string> titles;
    std::vector<std::string> rule;
    for (const TextTable::Column& column : planColumns(machines, passes)) {
        titles.push_back(column.title);
        rule.emplace_back(column.align == Align::Right ? "---:" : "---");
    }
    std::string text = fmt::format("# {}\n\n", markdownText(result.about)) + row(titles) + row(rule);
    for (std::size_t i = 0; i < result.plans.size(); ++i)
        text += row(planCells(result.plans[i], i + 1, machines, passes));
    text += "\n" + boundText(result);
    if (!result.templates.empty()) {
        text += "\n| template | at its best | loses | why |\n| --- | --- | ---: | --- |\n";
        for (const TemplateScore& score : result.templates)
            text += row({score.name, score.mesh, score.seconds > 0.0 && score.fits ? gain(score.loss) : "-", score.why});
    }
    for (const std::string& change : result.changes)
        text += fmt::format("\n- would fit: {}", markdownText(change));
    return text + (result.changes.empty() ? "" : "\n");
}

} // namespace meshwright::sim
