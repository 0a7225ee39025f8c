// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/files.h"
#include "app/terminal/program_values.h"
#include "app/verbs/propagate_modes.h"
#include "app/verbs/verbs.h"

#include "core/propagate/explain.h"
#include "core/propagate/propagate.h"
#include "core/propagate/uneven_borders.h"
#include "core/support/json_text.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "core/text/program_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

struct NamedStrategy {
    const char* name;
    PropagationStrategy strategy;
};

constexpr std::array kStrategies = {NamedStrategy{"pipeline", PropagationStrategy::Pipeline},
    NamedStrategy{"basic", PropagationStrategy::Basic},
    NamedStrategy{"basic-conservative", PropagationStrategy::BasicConservative},
    NamedStrategy{"aggressive", PropagationStrategy::Aggressive}, NamedStrategy{"op-priority", PropagationStrategy::OpPriority},
    NamedStrategy{"user-priority", PropagationStrategy::UserPriority}};

/// A program with its shardings and why they are so.
struct Propagated {
    Program program;
    ProgramPlaces places; ///< in the text that was read
    std::vector<PropagationReport> reports; ///< of each function
};

Result<Propagated> propagateAll(Program program, ProgramPlaces places, PropagationStrategy strategy)
{
    Propagated result;
    result.places = std::move(places);
    Problems problems;
    for (Function& function : program.functions) {
        auto report = propagate(function, program.meshes, strategy);
        if (report)
            result.reports.push_back(*std::move(report));
        else
            append(problems, report.error());
    }
    if (!problems.empty())
        return problems;
    result.program = std::move(program);
    return result;
}

/// The mesh that axes of a value are of.
const Mesh& meshOf(const Program& program, const Function& function, ValueId value)
{
    static const Mesh kNone;
    const auto& sharding = function[value].sharding;
    return sharding ? program.meshOf(*sharding) : program.meshes.empty() ? kNone : program.meshes.front().mesh;
}

// ---- explaining one value

using Found = ProgramValues::Found;

/// `program.mlir:12:5`, or nothing.
std::string placeText(const Place& place)
{
    return place.line == 0 ? std::string() : fmt::format("{}:{}:{}", place.file, place.line, place.column);
}

/// Where the user wrote an annotation: the constraint on the value, or the value itself.
Place placeOfAnnotation(const Propagated& propagated, std::size_t f, const ShardingReason& origin)
{
    const Function& function = propagated.program.functions[f];
    for (std::size_t op = 0; op < function.ops.size(); ++op) {
        const Op& constraint = function.ops[op];
        if (constraint.kind == OpKind::ShardingConstraint && constraint.as<ConstraintAttributes>().origin == origin.annotation
            && (constraint.operands.front() == origin.value || constraint.results.front() == origin.value))
            return propagated.places.ofOp(f, OpId(op));
    }
    return propagated.places.ofValue(propagated.program, f, origin.value);
}

/// When a step was made: `forward, op priority 2, user priority 1`.
std::string timeText(const ShardingReason& link)
{
    std::vector<std::string> parts;
    if (link.direction != StepDirection::None)
        parts.emplace_back(stepDirectionName(link.direction));
    if (link.opPriority >= 0)
        parts.push_back(fmt::format("op priority {}", link.opPriority));
    if (link.opPriority >= 0)
        parts.push_back(fmt::format("user priority {}", link.userPriority));
    return join(parts, ", ");
}

/// A link of the way from the annotation to the value.
std::string linkText(const Propagated& propagated, const ProgramValues& values, const Found& found, const ShardingReason& link)
{
    if (!link.from.valid()) {
        const std::string place = placeText(placeOfAnnotation(propagated, found.function, link));
        return fmt::format("{}: {} ({}){}", values.title(found.function, link.value),
            link.step == "by the user" ? "annotated" : link.step, link.annotation, place.empty() ? "" : " at " + place);
    }
    const std::string place = placeText(propagated.places.ofOp(found.function, link.through));
    const std::string time = timeText(link);
    return fmt::format("{} by {}{}{}", values.title(found.function, link.value), link.step, time.empty() ? "" : ", " + time,
        place.empty() ? "" : " at " + place);
}

/// `dim 0 does not have y: ..`, with who lost and who won.
std::string conflictText(const Propagated& propagated, const Found& found, const ShardingConflict& conflict, const Mesh& mesh)
{
    const Function& function = propagated.program.functions[found.function];
    const std::string place = placeText(propagated.places.ofOp(found.function, conflict.op));
    std::string text = fmt::format("  dim {} does not have {}: {}", conflict.dim, axisName(conflict.axis, mesh), conflict.reason);
    if (conflict.op.valid())
        text += fmt::format(" (at {}{})", opName(function[conflict.op]), place.empty() ? "" : ", " + place);
    if (!conflict.loser.empty())
        text += fmt::format("\n    loser: {} of {}; winner: {}", axisName(conflict.axis, mesh), conflict.loser,
            conflict.winner.empty() ? "nothing, the dimension stays as it is" : conflict.winner);
    return text + "\n";
}

std::string explanationText(const Propagated& propagated, const ProgramValues& values, const Found& found)
{
    const Function& function = propagated.program.functions[found.function];
    const PropagationReport& report = propagated.reports[found.function];
    const Mesh& mesh = meshOf(propagated.program, function, found.value);
    const auto& sharding = function[found.value].sharding;
    std::string text = fmt::format("{} of {}: {} {}\n", values.title(found.function, found.value), function.name,
        typeText(function[found.value].type), sharding ? layoutText(*sharding, mesh) : "no sharding");
    const auto ways = shardingWays(function, report, found.value);
    if (ways.empty())
        text += "  no annotation reaches it\n";
    for (const auto& way : ways) {
        text += fmt::format("  dim {} by {}\n", way.front().dim, axisName(way.front().axis, mesh));
        for (auto link = way.rbegin(); link != way.rend(); ++link)
            text += fmt::format("    {}{}\n", link == way.rbegin() ? "" : "-> ", linkText(propagated, values, found, *link));
    }
    for (const ShardingConflict& conflict : report.conflicts) {
        if (conflict.value == found.value)
            text += conflictText(propagated, found, conflict, mesh);
    }
    return text;
}

// ---- JSON

Json reasonJson(const Propagated& propagated, const ProgramValues& values, std::size_t f, const ShardingReason& reason)
{
    const Function& function = propagated.program.functions[f];
    const Place place
        = reason.from.valid() ? propagated.places.ofOp(f, reason.through) : placeOfAnnotation(propagated, f, reason);
    return {{"value", values.text(f, reason.value)}, {"name", function[reason.value].name}, {"dim", reason.dim},
        {"axis", axisName(reason.axis, meshOf(propagated.program, function, reason.value))}, {"annotation", reason.annotation},
        {"from", reason.from.valid() ? Json(values.text(f, reason.from)) : Json(nullptr)},
        {"through", reason.through.valid() ? Json(opName(function[reason.through])) : Json(nullptr)}, {"step", reason.step},
        {"factor", reason.factor},
        {"strategy", !reason.through.valid() ? Json(nullptr) : Json(reason.aggressive ? "aggressive" : "basic")},
        {"direction", reason.direction == StepDirection::None ? Json(nullptr) : Json(stepDirectionName(reason.direction))},
        {"user_priority", reason.userPriority}, {"op_priority", reason.opPriority < 0 ? Json(nullptr) : Json(reason.opPriority)},
        {"line", place.line}, {"column", place.column}};
}

Json conflictJson(const Propagated& propagated, const ProgramValues& values, std::size_t f, const ShardingConflict& conflict)
{
    const Function& function = propagated.program.functions[f];
    return {{"value", values.text(f, conflict.value)}, {"name", function[conflict.value].name}, {"dim", conflict.dim},
        {"axis", axisName(conflict.axis, meshOf(propagated.program, function, conflict.value))},
        {"op", conflict.op.valid() ? Json(opName(function[conflict.op].kind)) : Json(nullptr)}, {"reason", conflict.reason},
        {"wanted_by", values.text(f, conflict.wantedBy)}, {"loser", conflict.loser}, {"winner", conflict.winner}};
}

Json valueJson(const Propagated& propagated, const ProgramValues& values, std::size_t f, ValueId value)
{
    const Function& function = propagated.program.functions[f];
    const auto& sharding = function[value].sharding;
    const Mesh& mesh = meshOf(propagated.program, function, value);
    return {{"value", values.text(f, value)}, {"name", function[value].name}, {"type", typeText(function[value].type)},
        {"spec", sharding ? Json(layoutText(*sharding, mesh)) : Json(nullptr)},
        {"sharding", sharding ? Json(shardyText(*sharding, mesh)) : Json(nullptr)}};
}

/// All functions, or what concerns one value.
std::string propagationJson(const Propagated& propagated, const ProgramValues& values, const std::string& strategy,
    bool stepsOnly, const std::optional<Found>& only)
{
    Json functions = Json::array();
    for (std::size_t f = 0; f < propagated.program.functions.size(); ++f) {
        if (only && only->function != f)
            continue;
        const Function& function = propagated.program.functions[f];
        const PropagationReport& report = propagated.reports[f];
        Json json = {{"name", function.name}};
        if (!stepsOnly) {
            json["values"] = Json::array();
            for (std::size_t value = 0; value < function.values.size(); ++value) {
                if (!values.text(f, ValueId(value)).empty() && (!only || only->value == ValueId(value)))
                    json["values"].push_back(valueJson(propagated, values, f, ValueId(value)));
            }
        }
        json["steps"] = Json::array();
        if (only) {
            for (const auto& way : shardingWays(function, report, only->value)) {
                for (auto link = way.rbegin(); link != way.rend(); ++link)
                    json["steps"].push_back(reasonJson(propagated, values, f, *link));
            }
        } else {
            for (const ShardingReason& reason : report.reasons)
                json["steps"].push_back(reasonJson(propagated, values, f, reason));
        }
        json["conflicts"] = Json::array();
        for (const ShardingConflict& conflict : report.conflicts) {
            if (!only || conflict.value == only->value)
                json["conflicts"].push_back(conflictJson(propagated, values, f, conflict));
        }
        functions.push_back(std::move(json));
    }
    const Json document = {{"schema", "meshwright.propagation/1"}, {"meshwright", kVersion}, {"strategy", strategy},
        {"functions", std::move(functions)}};
    return jsonText(document);
}

} // namespace

std::vector<std::string> strategyNames()
{
    std::vector<std::string> names;
    for (const NamedStrategy& strategy : kStrategies)
        names.emplace_back(strategy.name);
    return names;
}

int runPropagate(const PropagateOptions& options, Output& output)
{
    if (options.mode == "explicit")
        return runExplicit(options, output);
    if (options.mode == "gspmd")
        return runGspmd(options, output);
    if (options.mode != "shardy")
        return fail({Problem{"MW1903", fmt::format("--mode: \"{}\" is not allowed here", options.mode),
                        "one of: " + join(propagationModeNames(), ", ")}},
            output);
    const auto strategy = std::find_if(
        kStrategies.begin(), kStrategies.end(), [&](const NamedStrategy& known) { return options.strategy == known.name; });
    if (strategy == kStrategies.end())
        return fail({Problem{"MW1903", fmt::format("--strategy: \"{}\" is not allowed here", options.strategy),
                        "one of: " + join(strategyNames(), ", ")}},
            output);
    ProgramPlaces places;
    auto program = readProgramFile(options.file, output, &places);
    if (!program)
        return fail(program.error(), output);
    std::vector<std::vector<std::optional<TensorSharding>>> asked; // of the results of each function
    for (const Function& function : program->functions)
        asked.push_back(function.resultShardings);
    auto propagated = propagateAll(*std::move(program), std::move(places), strategy->strategy);
    if (!propagated)
        return fail(inFile(propagated.error(), options.file), output);

    const ProgramValues values(propagated->program);
    std::optional<Found> only;
    if (!options.explain.empty()) {
        only = values.find(options.explain);
        if (!only)
            return fail({values.noSuchValue(options.explain)}, output);
    }
    std::string text;
    if (options.steps || output.format == Format::Json)
        text = propagationJson(*propagated, values, options.strategy, options.steps && output.format != Format::Json, only);
    else if (only)
        text = explanationText(*propagated, values, *only);
    else {
        for (std::size_t f = 0; f < propagated->program.functions.size(); ++f) {
            for (const std::string& opened : openUnevenBorders(propagated->program.functions[f], asked[f]))
                output.narrate(fmt::format("@{}: {}", propagated->program.functions[f].name, opened));
        }
        text = writeProgram(propagated->program);
    }
    return writeResult(text, options.result, output);
}

} // namespace meshwright::cli
