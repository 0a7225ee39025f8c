// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/verbs.h"

#include "core/diagnose/explain_message.h"
#include "core/diagnose/problem_table.h"
#include "core/partition/device_program.h"
#include "core/study/document.h"
#include "core/study/other_file.h"
#include "core/support/file.h"
#include "core/support/json_text.h"
#include "core/support/resources.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "sim/report/hlo_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& document)
{
    return jsonText(document);
}

/// A word that is meant as a problem id: MW and something, or a number.
bool looksLikeId(const std::string& what)
{
    const auto isWord = [](unsigned char c) { return std::isalnum(c) != 0; };
    const bool word = std::all_of(what.begin(), what.end(), isWord);
    const bool prefix = what.size() >= 2 && std::toupper(static_cast<unsigned char>(what[0])) == 'M'
        && std::toupper(static_cast<unsigned char>(what[1])) == 'W';
    return word && (prefix || parseInteger(what)) && what.size() <= 8;
}

int explainRetired(const RetiredId& retired, const ProblemTable& table, Output& output)
{
    const bool isReplaced = !retired.replacedBy.empty();
    const std::string meaning = isReplaced
        ? fmt::format("{} was replaced by {}, {}.", retired.id, retired.replacedBy, table.find(retired.replacedBy)->title)
        : fmt::format("{}.", retired.because);
    const std::string fix = isReplaced ? fmt::format("See `meshwright explain {}`.", retired.replacedBy)
                                       : std::string("Run the command again with this version.");
    if (output.format == Format::Json) {
        Json json = {{"schema", "meshwright.explanation/1"}, {"meshwright", kVersion}, {"id", retired.id},
            {"title", "a retired id"}, {"part", table.rangeOf(retired.id)->part}, {"meaning", meaning}, {"fix", fix}};
        if (isReplaced)
            json["replaced_by"] = retired.replacedBy;
        output.result(dumped(json));
    } else {
        output.result(fmt::format("{}: a retired id\n\n{}\n\nWhat to do: {}\n", retired.id, meaning, fix));
    }
    return kExitOk;
}

int explainId(const std::string& id, Output& output)
{
    const auto path = findResource("problems.yaml");
    if (!path)
        return fail(path.error(), output);
    const auto table = ProblemTable::load(*path);
    if (!table)
        return fail(table.error(), output);
    if (const RetiredId* retired = table->findRetired(id))
        return explainRetired(*retired, *table, output);
    const ProblemEntry* entry = table->find(id);
    if (entry == nullptr) {
        const auto near = nearestName(id, table->ids());
        return fail({Problem{"MW1908", fmt::format("\"{}\" is not a problem id", id),
                        near ? fmt::format("did you mean {}? `meshwright list problems` names all", *near)
                             : std::string("`meshwright list problems` names all ids")}},
            output);
    }
    const ProblemRange* range = table->rangeOf(entry->id);
    const std::string part = range != nullptr ? range->part : std::string();
    if (output.format == Format::Json)
        output.result(dumped({{"schema", "meshwright.explanation/1"}, {"meshwright", kVersion}, {"id", entry->id},
            {"title", entry->title}, {"part", part}, {"meaning", entry->meaning}, {"fix", entry->fix}}));
    else
        output.result(
            fmt::format("{}: {} ({})\n\n{}\n\nWhat to do: {}\n", entry->id, entry->title, part, entry->meaning, entry->fix));
    return kExitOk;
}

/// The messages themselves: standard input, a file, or what was given. Problems: MW1001 for what is not a message but looks like a path.
Result<std::string> messagesOf(const std::string& what)
{
    if (what == "-")
        return readFile(what);
    constexpr std::size_t kLongestPath = 4096;
    std::error_code error;
    if (what.size() < kLongestPath && what.find('\n') == std::string::npos && std::filesystem::exists(what, error))
        return readFile(what);
    const bool isPath = what.find(' ') == std::string::npos
        && (what.find('/') != std::string::npos || what.ends_with(".log") || what.ends_with(".txt"));
    if (isPath)
        return readFile(what);
    return what;
}

Result<ExplainContext> contextOf(const ExplainOptions& options)
{
    ExplainContext context;
    Problems problems;
    if (!options.mesh.empty()) {
        if (auto mesh = parseMesh(options.mesh))
            context.mesh = *std::move(mesh);
        else
            append(problems, inFile(mesh.error(), "--mesh"));
    }
    if (!options.shape.empty()) {
        if (auto shape = parseShape(options.shape))
            context.shape = *std::move(shape);
        else
            append(problems, shape.error());
    }
    if (!problems.empty())
        return problems;
    return context;
}

Json changeJson(const LayoutChange& change)
{
    const Mesh& mesh = change.layouts.mesh;
    Json axes = Json::array();
    for (const MeshAxis& axis : mesh.axes())
        axes.push_back({axis.name, axis.size});
    const auto planJson = [&](const ReshardPlan& plan) {
        Json steps = Json::array();
        for (const ReshardStep& step : plan.steps) {
            Json json = {{"op", opName(step.kind)}, {"axes", axesText(step.attributes.axes, mesh)},
                {"result_spec", fullLayoutText(step.result, mesh)}};
            json["bytes_per_device"] = change.typeKnown ? Json(movedBytes(step)) : Json(nullptr);
            steps.push_back(std::move(json));
        }
        Json json = {{"steps", std::move(steps)}};
        json["bytes_per_device"] = change.typeKnown ? Json(movedBytes(plan)) : Json(nullptr);
        json["peak_bytes_per_device"] = change.typeKnown ? Json(plan.peakBytes) : Json(nullptr);
        return json;
    };
    return {{"mesh", {{"axes", std::move(axes)}, {"invented", change.layouts.meshInvented}}},
        {"from", fullLayoutText(change.layouts.from, mesh)}, {"to", fullLayoutText(change.layouts.to, mesh)},
        {"cheapest", planJson(change.cheapest)}, {"full_gather", planJson(change.gather)}};
}

Json messageJson(const Explanation& message)
{
    Json facts = Json::array();
    for (const MessageFact& fact : message.facts)
        facts.push_back({{"name", fact.name}, {"value", fact.value}});
    Json pictures = Json::array();
    for (const MessagePicture& picture : message.pictures)
        pictures.push_back({{"title", picture.title}, {"drawing", picture.drawing}});
    Json remedies = Json::array();
    for (const Remedy& remedy : message.remedies)
        remedies.push_back({{"text", remedy.text}, {"code", remedy.code}});
    Json json = {{"kind", message.kind}, {"source", message.source}, {"title", message.title}, {"lines", message.lines},
        {"times", message.times}, {"quote", message.quote}, {"meaning", message.meaning}, {"facts", std::move(facts)},
        {"pictures", std::move(pictures)}};
    if (message.change)
        json["change"] = changeJson(*message.change);
    json["remedies"] = std::move(remedies);
    return json;
}

std::string messagesJson(const ExplainedText& explained)
{
    Json messages = Json::array();
    for (const Explanation& message : explained.messages)
        messages.push_back(messageJson(message));
    return dumped({{"schema", "meshwright.messages/1"}, {"meshwright", kVersion}, {"lines", explained.lineCount},
        {"left_out", explained.leftOut}, {"cut", explained.cut}, {"nearest", explained.nearest},
        {"messages", std::move(messages)}});
}

/// What else the text may be, and what reads it. Empty: that is not known.
OtherFile otherThanMessages(const std::string& text, const std::string& file)
{
    if (auto other = otherFileOf(text, file))
        return *std::move(other);
    const std::string name = file == "-" || file.find_first_of(" \n") != std::string::npos ? std::string("FILE") : file;
    const auto hasLine = [&](std::string_view words) {
        return text.starts_with(words) || text.find("\n" + std::string(words)) != std::string::npos;
    };
    if (hasLine("meshwright:"))
        return {"a study", fmt::format("`meshwright check {}` finds its mistakes", name)};
    if (looksLikeProgram(text))
        return {"a program", fmt::format("`meshwright check {}` finds its mistakes", name)};
    return {};
}

/// Says honestly that nothing in the text is known.
void sayUnknown(const ExplainedText& explained, const OtherFile& other, Output& output)
{
    const std::string nearest
        = explained.nearest.empty() ? std::string() : fmt::format("the nearest known message is {}", explained.nearest);
    printProblems(
        {Problem{"MW1930", "the text has no message that Meshwright explains",
            other.use.empty() ? std::string("`meshwright explain --help` shows the accepted inputs; `meshwright check` checks a "
                                            "study or a program")
                              : other.use,
            {}, Severity::Warning, other.what.empty() ? nearest : fmt::format("the text is {}", other.what)}},
        output);
}

/// The collectives of a dump, or what changed from one to the other.
int explainDumps(const std::string& text, const ExplainOptions& options, const std::optional<Mesh>& mesh, Output& output)
{
    const auto report = sim::hloReport(text, options.what, mesh, options.hardware);
    if (!report)
        return fail(report.error(), output);
    const bool isJson = output.format == Format::Json;
    if (options.after.empty()) {
        output.result(isJson ? sim::hloJson(*report) : sim::hloText(*report));
        return kExitOk;
    }
    const auto second = readFile(options.after);
    if (!second)
        return fail(second.error(), output);
    const auto after = sim::hloReport(*second, options.after, mesh, options.hardware);
    if (!after)
        return fail(after.error(), output);
    output.result(isJson ? sim::hloJson(*report, *after) : sim::hloText(*report, *after));
    return kExitOk;
}

} // namespace

int runExplain(const ExplainOptions& options, Output& output)
{
    const bool needsDump = !options.after.empty() || !options.hardware.empty();
    const Problem noDump{"MW1951", fmt::format("{} needs a dump of HLO", options.hardware.empty() ? "a second file" : "--hw"),
        "give a file that begins with HloModule"};
    if (looksLikeId(options.what))
        return needsDump ? fail({noDump}, output) : explainId(options.what, output);
    const auto context = contextOf(options);
    if (!context)
        return fail(context.error(), output);
    const auto text = messagesOf(options.what);
    if (!text)
        return fail(text.error(), output);
    if (trimmed(*text).empty())
        return fail({Problem{"MW1931", "the text is empty", "paste a message, or name a file with messages"}}, output);
    if (isHloText(*text))
        return explainDumps(*text, options, context->mesh, output);
    if (needsDump)
        return fail({noDump}, output);
    const ExplainedText explained = explainText(*text, *context);
    if (output.format == Format::Json)
        output.result(messagesJson(explained));
    else if (explained.messages.empty())
        sayUnknown(explained, otherThanMessages(*text, options.what), output);
    constexpr std::size_t kWidth = 80;
    if (output.format != Format::Json)
        output.result(explainedText(explained, kWidth));
    return explained.messages.empty() ? kExitInfeasible : kExitOk;
}

} // namespace meshwright::cli
