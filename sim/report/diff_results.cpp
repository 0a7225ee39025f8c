// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/diff_results.h"

#include "core/support/counted.h"
#include "core/support/escape.h"
#include "core/support/json_text.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <cmath>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;

template <typename T>
const char* wordOf(const Change<T>& change)
{
    return change.isNew() ? "new" : change.isGone() ? "gone" : "changed";
}

template <typename T>
std::string markOf(const Change<T>& change)
{
    return change.isNew() ? "+" : change.isGone() ? "-" : "~";
}

// ---- JSON

Json meshJson(const std::vector<MeshAxis>& mesh)
{
    Json axes = Json::array();
    for (const MeshAxis& axis : mesh)
        axes.push_back({axis.name, axis.size});
    return axes;
}

Json sideJson(const std::optional<ComparedArray>& array)
{
    if (!array)
        return nullptr;
    Json json = {{"spec", array->spec}};
    if (!array->dtype.empty())
        json["dtype"] = array->dtype;
    if (array->shape)
        json["shape"] = *array->shape;
    if (array->pieceElements)
        json["elements_per_device"] = *array->pieceElements;
    if (array->pieceBytes)
        json["bytes_per_device"] = *array->pieceBytes;
    return json;
}

Json sideJson(const std::optional<ComparedCollective>& use)
{
    if (!use)
        return nullptr;
    return {{"axes", use->axes}, {"calls", use->calls}, {"bytes_per_device", use->bytes}, {"reason", use->reason},
        {"annotation", use->annotation}};
}

Json figureJson(const FigureChange& figure)
{
    const double relative = figure.relative();
    return {{"name", figure.after.key}, {"before", figure.before.value}, {"after", figure.after.value},
        {"relative", std::isfinite(relative) ? Json(relative) : Json(nullptr)}};
}

Json compared(bool whether, Json list)
{
    return whether ? std::move(list) : Json(nullptr);
}

// ---- words

/// Figures that both sides have, with the totals.
std::vector<FigureChange> figuresOf(const Comparison& comparison)
{
    std::vector<FigureChange> figures;
    for (const FigureChange& figure : comparison.figures) {
        if (figure.before.value != 0.0 || figure.after.value != 0.0) // no bubble without a pipeline
            figures.push_back(figure);
    }
    for (const auto& total : {comparison.arrayBytes, comparison.collectiveBytes}) {
        if (total)
            figures.push_back(*total);
    }
    return figures;
}

std::string causeOf(const Change<ComparedCollective>& change)
{
    const ComparedCollective& use = change.either();
    if (change.isGone() || use.reason.empty())
        return {};
    return use.reason + (use.annotation.empty() ? "" : fmt::format(" ({})", use.annotation));
}

/// "3 changed, 1 new, 30 the same".
template <typename T>
std::string countsText(const std::vector<Change<T>>& changes, std::int64_t same)
{
    std::vector<std::string> parts;
    for (const char* word : {"changed", "new", "gone"}) {
        const auto count = std::count_if(
            changes.begin(), changes.end(), [&](const Change<T>& change) { return std::string(wordOf(change)) == word; });
        if (count > 0)
            parts.push_back(fmt::format("{} {}", count, word));
    }
    parts.push_back(fmt::format("{} the same", same));
    return join(parts, ", ");
}

/// What both sides do not tell, so that nobody takes silence for agreement.
std::string notCompared(const Comparison& comparison)
{
    std::vector<std::string> parts;
    if (comparison.beforeKind == "problems" || comparison.afterKind == "problems")
        return {};
    if (!comparison.comparesArrays)
        parts.emplace_back("layouts of arrays");
    if (!comparison.comparesCollectives)
        parts.emplace_back("collectives");
    if (comparison.figures.empty())
        parts.emplace_back("times and memory");
    return join(parts, ", ");
}

std::string gateLine(const GateResult& gate)
{
    return fmt::format("gate {}: {}", gate.gate.text,
        gate.passes() ? "passes" : fmt::format("FAILS, {}", counted(gate.findings.size(), "finding")));
}

} // namespace

std::string diffJson(const Comparison& comparison, const std::vector<GateResult>& gates)
{
    Json json = {{"schema", "meshwright.diff/1"}, {"meshwright", kVersion},
        {"a", {{"kind", comparison.beforeKind}, {"file", comparison.beforeFile}}},
        {"b", {{"kind", comparison.afterKind}, {"file", comparison.afterFile}}}, {"same", comparison.same()},
        {"because", comparison.sentence}};
    json["mesh"] = comparison.mesh
        ? Json{{"before", meshJson(*comparison.mesh->before)}, {"after", meshJson(*comparison.mesh->after)}}
        : Json(nullptr);
    json["figures"] = Json::array();
    for (const FigureChange& figure : figuresOf(comparison))
        json["figures"].push_back(figureJson(figure));
    json["fits"]
        = comparison.fits ? Json{{"before", *comparison.fits->before}, {"after", *comparison.fits->after}} : Json(nullptr);
    json["bound_by"] = comparison.boundBy ? Json{{"before", *comparison.boundBy->before}, {"after", *comparison.boundBy->after}}
                                          : Json(nullptr);
    Json arrays = Json::array();
    for (const auto& change : comparison.arrays)
        arrays.push_back({{"name", change.either().name}, {"change", wordOf(change)}, {"before", sideJson(change.before)},
            {"after", sideJson(change.after)}});
    json["arrays"] = compared(comparison.comparesArrays, std::move(arrays));
    json["same_arrays"] = comparison.sameArrays;
    Json collectives = Json::array();
    for (const auto& change : comparison.collectives) {
        const ComparedCollective& use = change.either();
        collectives.push_back({{"op", use.op}, {"phase", use.phase}, {"value", use.value}, {"change", wordOf(change)},
            {"before", sideJson(change.before)}, {"after", sideJson(change.after)}});
    }
    json["collectives"] = compared(comparison.comparesCollectives, std::move(collectives));
    json["same_collectives"] = comparison.sameCollectives;
    Json problems = Json::array();
    for (const auto& change : comparison.problems)
        problems.push_back({{"id", change.either().id}, {"path", change.either().place.path},
            {"message", change.either().message}, {"change", wordOf(change)}});
    json["problems"] = compared(comparison.comparesProblems, std::move(problems));
    json["gates"] = Json::array();
    for (const GateResult& gate : gates)
        json["gates"].push_back({{"gate", gate.gate.text}, {"passes", gate.passes()}, {"findings", gate.findings}});
    return jsonText(json);
}

std::string diffText(const Comparison& comparison, const std::vector<GateResult>& gates)
{
    std::string text = fmt::format(
        "A: {} ({})\nB: {} ({})\n", comparison.beforeFile, comparison.beforeKind, comparison.afterFile, comparison.afterKind);
    if (comparison.same())
        text += "\nno difference\n";
    if (comparison.mesh)
        text += fmt::format("\nmesh: {} -> {}\n", axesText(*comparison.mesh->before), axesText(*comparison.mesh->after));
    const auto figures = figuresOf(comparison);
    if (!figures.empty())
        text += "\n";
    std::size_t widest = 0;
    for (const FigureChange& figure : figures)
        widest = std::max(widest, displayWidth(figure.after.name));
    for (const FigureChange& figure : figures)
        text += fmt::format(
            "{}{}  {}\n", figure.after.name, std::string(widest - displayWidth(figure.after.name), ' '), changeText(figure));
    if (comparison.fits)
        text += *comparison.fits->after ? "it fits now\n" : "it NO LONGER FITS\n";
    if (comparison.boundBy)
        text += fmt::format("bound by {} -> {}\n", *comparison.boundBy->before, *comparison.boundBy->after);
    if (!comparison.sentence.empty())
        text += "why: " + comparison.sentence + "\n";
    if (comparison.comparesArrays) {
        text += fmt::format("\narrays: {}\n", countsText(comparison.arrays, comparison.sameArrays));
        TextTable rows({{""}, {"array"}, {"change"}});
        for (const auto& change : comparison.arrays)
            rows.addRow({markOf(change), change.either().name, changeText(change)});
        text += rows.rowCount() > 0 ? rows.text(2) : std::string();
    }
    if (comparison.comparesCollectives) {
        text += fmt::format("\ncollectives: {}\n", countsText(comparison.collectives, comparison.sameCollectives));
        TextTable rows({{""}, {"collective"}, {"change"}, {"because"}});
        for (const auto& change : comparison.collectives)
            rows.addRow({markOf(change), collectiveText(change.either()), changeText(change), causeOf(change)});
        text += rows.rowCount() > 0 ? rows.text(2) : std::string();
    }
    if (comparison.comparesProblems && !comparison.problems.empty()) {
        text += "\nproblems\n";
        for (const auto& change : comparison.problems)
            text += fmt::format("  {} {}: {}\n", markOf(change), change.either().id, change.either().message);
    }
    if (const std::string missing = notCompared(comparison); !missing.empty())
        text += fmt::format("\nnot compared, because one of the two does not report it: {}\n", missing);
    if (!gates.empty())
        text += "\n";
    for (const GateResult& gate : gates) {
        text += gateLine(gate) + "\n";
        for (const std::string& finding : gate.findings)
            text += "  " + finding + "\n";
    }
    return text;
}

std::string diffMarkdown(const Comparison& comparison, const std::vector<GateResult>& gates)
{
    std::string text = fmt::format("### {} → {}\n", markdownCode(comparison.beforeFile), markdownCode(comparison.afterFile));
    for (const GateResult& gate : gates)
        text += fmt::format("\n- {} {}", gate.passes() ? "passes:" : "**fails:**", markdownCode(gate.gate.text));
    text += gates.empty() ? "" : "\n";
    if (comparison.same())
        return text + "\nNo difference.\n";
    text += "\n| | A | B | |\n|---|---:|---:|---:|\n";
    if (comparison.mesh)
        text += fmt::format("| mesh | {} | {} | |\n", markdownCode(axesText(*comparison.mesh->before), true),
            markdownCode(axesText(*comparison.mesh->after), true));
    for (const FigureChange& figure : figuresOf(comparison)) {
        const double relative = figure.relative();
        text += fmt::format("| {} | {} | {} | {} |\n", figure.after.name,
            quantityText(figure.before.value, figure.before.quantity), quantityText(figure.after.value, figure.after.quantity),
            !figure.changed()             ? std::string()
                : std::isfinite(relative) ? fmt::format("{:+.1f} %", 100.0 * relative)
                                          : std::string("new"));
    }
    if (comparison.fits)
        text += fmt::format("\n**{}**\n", *comparison.fits->after ? "It fits now." : "It no longer fits.");
    if (!comparison.sentence.empty())
        text += "\nWhy: " + markdownCode(comparison.sentence) + "\n";
    if (!comparison.arrays.empty()) {
        text += fmt::format(
            "\n**Arrays**: {}\n\n| | array | change |\n|---|---|---|\n", countsText(comparison.arrays, comparison.sameArrays));
        for (const auto& change : comparison.arrays)
            text += fmt::format("| {} | {} | {} |\n", wordOf(change), markdownCode(change.either().name, true),
                markdownCode(changeText(change), true));
    }
    if (!comparison.collectives.empty()) {
        text += fmt::format("\n**Collectives**: {}\n\n| | collective | change | because |\n|---|---|---|---|\n",
            countsText(comparison.collectives, comparison.sameCollectives));
        for (const auto& change : comparison.collectives)
            text += fmt::format("| {} | {} | {} | {} |\n", wordOf(change), markdownCode(collectiveText(change.either()), true),
                markdownCode(changeText(change), true), markdownCode(causeOf(change), true));
    }
    if (!comparison.problems.empty()) {
        text += "\n**Problems**\n\n";
        for (const auto& change : comparison.problems)
            text += fmt::format("- {} {}: {}\n", wordOf(change), change.either().id, markdownCode(change.either().message));
    }
    return text;
}

} // namespace meshwright::sim
