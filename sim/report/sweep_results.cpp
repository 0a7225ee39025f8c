// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/sweep_results.h"

#include "core/study/study.h"
#include "core/support/escape.h"
#include "core/support/json_text.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <map>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;

Json rowJson(const SweepResult& result, const SweepRow& row)
{
    const SweepOutcome& o = row.outcome;
    Json json = {{"point", Json::object()}, {"settings", result.plan.settingsAt(row.point)}, {"state", sweepStateName(o.state)}};
    for (std::size_t i = 0; i < row.values.size(); ++i)
        json["point"][result.plan.parameters[i].name] = row.values[i];
    if (!o.simulated()) {
        json["problem"] = {{"id", o.problem}, {"message", o.message}, {"fix", o.fix}};
        return json;
    }
    json["mesh"] = o.mesh;
    json["hardware"] = o.hardware;
    json["devices"] = o.devices;
    json["batch"] = o.batch;
    json["step_time_s"] = o.stepSeconds;
    json["examples_per_s"] = static_cast<double>(o.batch) / o.stepSeconds;
    if (result.plan.variesSequence())
        json["tokens_per_s"] = 1.0 / o.secondsPerUnit();
    json["compute_s"] = o.computeSeconds;
    json["exposed_communication_s"] = o.exposedSeconds;
    json["bubble_s"] = o.bubbleSeconds;
    json["mfu"] = o.mfu;
    json["peak_bytes_per_device"] = o.peakBytes;
    json["capacity_bytes"] = o.capacityBytes;
    json["usable_bytes"] = o.usableBytes;
    json["fits"] = o.state == SweepState::Fits;
    json["bound_by"] = o.boundBy;
    json["pareto"] = row.onFront;
    return json;
}

/// Refused points by what refused them, the most frequent first.
std::string refusalsText(const SweepResult& result)
{
    std::map<std::string, std::vector<const SweepOutcome*>> byId;
    for (const SweepRow& row : result.rows) {
        if (!row.outcome.simulated())
            byId[row.outcome.problem].push_back(&row.outcome);
    }
    std::vector<std::vector<const SweepOutcome*>> refusals;
    for (auto& [id, outcomes] : byId)
        refusals.push_back(std::move(outcomes));
    std::ranges::stable_sort(refusals, std::ranges::greater(), [](const auto& outcomes) { return outcomes.size(); });
    std::string text;
    for (const auto& outcomes : refusals) {
        const SweepOutcome& first = *outcomes.front();
        text += fmt::format(
            "  {} refused, {}: {}{}\n", outcomes.size(), first.problem, outcomes.size() > 1 ? "for one, " : "", first.message);
        if (!first.fix.empty())
            text += fmt::format("    fix: {}\n", first.fix);
    }
    return text;
}

} // namespace

const char* sweepRateUnit(const SweepPlan& plan)
{
    if (plan.variesSequence())
        return "tokens/s";
    const StudyReading reading = readStudyInPart(plan.studyText, plan.studyFile, plan.settings);
    return std::holds_alternative<ProgramFile>(reading.study.model) ? "steps/s" : "examples/s";
}

std::string sweepJson(const SweepResult& result)
{
    Json json = {{"schema", "meshwright.sweep/1"}, {"meshwright", kVersion}, {"study", result.plan.name},
        {"file", result.plan.studyFile}, {"settings", result.plan.settings}, {"parameters", Json::array()},
        {"points", result.plan.pointCount()}, {"complete", result.complete()},
        {"pareto_over",
            {result.oneBatch                       ? "step_time_s"
                    : result.plan.variesSequence() ? "1/tokens_per_s"
                                                   : "1/examples_per_s",
                "peak_bytes_per_device"}},
        {"best", result.best ? Json(*result.best) : Json(nullptr)}, {"rows", Json::array()}};
    for (const SweepParameter& parameter : result.plan.parameters) {
        Json values = Json::array();
        for (const SweepValue& value : parameter.values)
            values.push_back(value.text);
        json["parameters"].push_back({{"name", parameter.name}, {"values", std::move(values)}});
    }
    for (const SweepRow& row : result.rows)
        json["rows"].push_back(rowJson(result, row));
    return jsonText(json, 2);
}

std::string sweepJsonLines(const SweepResult& result)
{
    std::string text;
    for (const SweepRow& row : result.rows)
        text += jsonText(rowJson(result, row), -1);
    return text;
}

std::string sweepCsv(const SweepResult& result)
{
    std::string csv;
    for (const SweepParameter& parameter : result.plan.parameters)
        csv += csvCell(parameter.name) + ",";
    csv += "state,step_time_s,examples_per_s,compute_s,exposed_communication_s,bubble_s,mfu,peak_bytes_per_device,capacity_bytes,"
           "pareto,bound_by,"
           "full_mesh,devices,examples,problem,message\n";
    for (const SweepRow& row : result.rows) {
        const SweepOutcome& o = row.outcome;
        for (const std::string& value : row.values)
            csv += csvCell(value) + ",";
        csv += sweepStateName(o.state);
        if (o.simulated())
            csv += fmt::format(",{},{},{},{},{},{},{},{},{},{},{},{},{},,\n", o.stepSeconds,
                static_cast<double>(o.batch) / o.stepSeconds, o.computeSeconds, o.exposedSeconds, o.bubbleSeconds, o.mfu,
                o.peakBytes, o.capacityBytes, row.onFront, csvCell(o.boundBy), csvCell(o.mesh), o.devices, o.batch);
        else
            csv += fmt::format(",,,,,,,,,,,,,,{},{}\n", o.problem, csvCell(o.message));
    }
    return csv;
}

std::string sweepText(const SweepResult& result)
{
    using Align = TextTable::Align;
    std::vector<TextTable::Column> columns;
    for (const SweepParameter& parameter : result.plan.parameters)
        columns.push_back({parameter.name});
    const std::vector<TextTable::Column> figures = {{"step", Align::Right}, {sweepRateUnit(result.plan), Align::Right},
        {"exposed", Align::Right}, {"MFU", Align::Right}, {"memory", Align::Right}, {"fits"}, {"front"}, {"bound by"}};
    columns.insert(columns.end(), figures.begin(), figures.end());
    TextTable table(columns);
    for (const SweepRow& row : result.rows) {
        const SweepOutcome& o = row.outcome;
        std::vector<std::string> cells = row.values;
        if (o.simulated())
            cells.insert(cells.end(),
                {formatSeconds(o.stepSeconds), formatRate(1.0 / o.secondsPerUnit()), formatSeconds(o.exposedSeconds),
                    fmt::format("{:.1f} %", 100.0 * o.mfu), formatBytes(o.peakBytes), o.state == SweepState::Fits ? "yes" : "NO",
                    row.onFront ? "*" : "", o.boundBy});
        else
            cells.insert(cells.end(), {"-", "-", "-", "-", "-", "-", "", "refused: " + o.problem});
        table.addRow(std::move(cells));
    }
    std::string text = table.text() + "\n";
    if (result.best) {
        const SweepRow& best = result.rows[*result.best];
        std::string words;
        for (std::size_t i = 0; i < best.values.size(); ++i)
            words += fmt::format("{}{} {}", i == 0 ? "" : ", ", result.plan.parameters[i].name, best.values[i]);
        text += fmt::format("best: {}: step {}, {} {}, {} a device\n", words, formatSeconds(best.outcome.stepSeconds),
            formatRate(1.0 / best.outcome.secondsPerUnit()), sweepRateUnit(result.plan), formatBytes(best.outcome.peakBytes));
    }
    text += fmt::format("{} of {}: {} fit, {} do not fit, {} refused{}\n", result.rows.size(),
        pointsText(result.plan.pointCount()), result.count(SweepState::Fits), result.count(SweepState::TooLarge),
        result.count(SweepState::Refused),
        result.best ? (result.oneBatch ? "; * no other is better in step time and in memory"
                                       : fmt::format("; * no other is better in time {} and in memory",
                                           result.plan.variesSequence() ? "a token" : "an example"))
                    : "");
    return text + refusalsText(result);
}

} // namespace meshwright::sim
