// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/files.h"
#include "app/cli/verbs.h"

#include "core/propagate/explain.h"
#include "core/propagate/propagate.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "core/text/program_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>

namespace meshwright::cli {

namespace {

struct NamedStrategy {
    const char* name;
    PropagationStrategy strategy;
};

constexpr std::array kStrategies = {NamedStrategy{"pipeline", PropagationStrategy::Pipeline},
    NamedStrategy{"basic", PropagationStrategy::Basic}, NamedStrategy{"aggressive", PropagationStrategy::Aggressive},
    NamedStrategy{"op-priority", PropagationStrategy::OpPriority},
    NamedStrategy{"user-priority", PropagationStrategy::UserPriority}};

/// A program with its shardings and why they are so.
struct Propagated {
    Program program;
    std::vector<PropagationReport> reports; ///< of each function
    std::vector<std::vector<std::string>> texts; ///< of each function: what its values are called in the text
};

Result<Propagated> propagateAll(Program program, PropagationStrategy strategy)
{
    Propagated result;
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
    for (const Function& function : program.functions)
        result.texts.push_back(valueNames(program, function));
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

std::string axisName(const AxisRef& axis, const Mesh& mesh)
{
    const auto index = static_cast<std::size_t>(axis.axis);
    return axis == wholeAxis(mesh, index) ? mesh.axes()[index].name : axisText(axis, mesh);
}

// ---- explaining one value

/// A value of one of the functions.
struct Found {
    std::size_t function = 0;
    ValueId value;
};

/// By its name, or by what it is called in the text, with or without the percent sign.
std::optional<Found> findValue(const Propagated& propagated, const std::string& wanted)
{
    for (std::size_t f = 0; f < propagated.program.functions.size(); ++f) {
        if (const auto named = propagated.program.functions[f].findValue(wanted))
            return Found{f, *named};
    }
    for (std::size_t f = 0; f < propagated.texts.size(); ++f) {
        const auto& texts = propagated.texts[f];
        for (std::size_t value = 0; value < texts.size(); ++value) {
            if (!texts[value].empty() && (texts[value] == wanted || texts[value].substr(1) == wanted))
                return Found{f, ValueId(value)};
        }
    }
    return std::nullopt;
}

Problem noSuchValue(const Propagated& propagated, const std::string& wanted)
{
    std::vector<std::string> names;
    for (std::size_t f = 0; f < propagated.program.functions.size(); ++f) {
        for (const Value& value : propagated.program.functions[f].values) {
            if (!value.name.empty())
                names.push_back(value.name);
        }
        for (const std::string& text : propagated.texts[f]) {
            if (!text.empty())
                names.push_back(text);
        }
    }
    const auto near = nearestName(wanted, names);
    return {"MW1923", fmt::format("the program has no value \"{}\"", wanted),
        near ? fmt::format("did you mean \"{}\"?", *near) : "name one as the written program does: %arg0, %3, or by its name"};
}

/// `act.h1 (%3)`, or what there is of it.
std::string titleOf(const Propagated& propagated, const Found& found, ValueId value)
{
    const std::string& name = propagated.program.functions[found.function][value].name;
    const std::string& text = propagated.texts[found.function][value.at()];
    return name.empty() ? text : text.empty() ? name : fmt::format("{} ({})", name, text);
}

/// A link of the way from the annotation to the value.
std::string linkText(const Propagated& propagated, const Found& found, const ShardingReason& link)
{
    if (!link.from.valid())
        return fmt::format("{}: {} ({})", titleOf(propagated, found, link.value),
            link.step == "by the user" ? "annotated" : link.step, link.annotation);
    return fmt::format("{} by {}", titleOf(propagated, found, link.value), link.step);
}

std::string explanationText(const Propagated& propagated, const Found& found)
{
    const Function& function = propagated.program.functions[found.function];
    const PropagationReport& report = propagated.reports[found.function];
    const Mesh& mesh = meshOf(propagated.program, function, found.value);
    const auto& sharding = function[found.value].sharding;
    std::string text = fmt::format("{} of {}: {} {}\n", titleOf(propagated, found, found.value), function.name,
        typeText(function[found.value].type), sharding ? layoutText(*sharding, mesh) : "no sharding");
    const auto ways = shardingWays(function, report, found.value);
    if (ways.empty())
        text += "  no annotation reaches it\n";
    for (const auto& way : ways) {
        text += fmt::format("  dim {} by {}\n", way.front().dim, axisName(way.front().axis, mesh));
        for (auto link = way.rbegin(); link != way.rend(); ++link)
            text += fmt::format("    {}{}\n", link == way.rbegin() ? "" : "-> ", linkText(propagated, found, *link));
    }
    for (const ShardingConflict& conflict : report.conflicts) {
        if (conflict.value == found.value)
            text += fmt::format("  dim {} does not have {}: {}{}\n", conflict.dim, axisName(conflict.axis, mesh), conflict.reason,
                conflict.op.valid() ? fmt::format(" (at {})", opName(function[conflict.op].kind)) : "");
    }
    return text;
}

// ---- JSON

using Json = nlohmann::ordered_json;

Json reasonJson(const Propagated& propagated, std::size_t f, const ShardingReason& reason)
{
    const Function& function = propagated.program.functions[f];
    const auto& texts = propagated.texts[f];
    return {{"value", texts[reason.value.at()]}, {"name", function[reason.value].name}, {"dim", reason.dim},
        {"axis", axisName(reason.axis, meshOf(propagated.program, function, reason.value))}, {"annotation", reason.annotation},
        {"from", reason.from.valid() ? Json(texts[reason.from.at()]) : Json(nullptr)},
        {"through", reason.through.valid() ? Json(opName(function[reason.through].kind)) : Json(nullptr)}, {"step", reason.step}};
}

Json conflictJson(const Propagated& propagated, std::size_t f, const ShardingConflict& conflict)
{
    const Function& function = propagated.program.functions[f];
    return {{"value", propagated.texts[f][conflict.value.at()]}, {"name", function[conflict.value].name}, {"dim", conflict.dim},
        {"axis", axisName(conflict.axis, meshOf(propagated.program, function, conflict.value))},
        {"op", conflict.op.valid() ? Json(opName(function[conflict.op].kind)) : Json(nullptr)}, {"reason", conflict.reason}};
}

Json valueJson(const Propagated& propagated, std::size_t f, ValueId value)
{
    const Function& function = propagated.program.functions[f];
    const auto& sharding = function[value].sharding;
    const Mesh& mesh = meshOf(propagated.program, function, value);
    return {{"value", propagated.texts[f][value.at()]}, {"name", function[value].name}, {"type", typeText(function[value].type)},
        {"spec", sharding ? Json(layoutText(*sharding, mesh)) : Json(nullptr)},
        {"sharding", sharding ? Json(shardyText(*sharding, mesh)) : Json(nullptr)}};
}

/// All functions, or what concerns one value.
std::string propagationJson(
    const Propagated& propagated, const std::string& strategy, bool stepsOnly, const std::optional<Found>& only)
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
                if (!propagated.texts[f][value].empty() && (!only || only->value == ValueId(value)))
                    json["values"].push_back(valueJson(propagated, f, ValueId(value)));
            }
        }
        json["steps"] = Json::array();
        if (only) {
            for (const auto& way : shardingWays(function, report, only->value)) {
                for (auto link = way.rbegin(); link != way.rend(); ++link)
                    json["steps"].push_back(reasonJson(propagated, f, *link));
            }
        } else {
            for (const ShardingReason& reason : report.reasons)
                json["steps"].push_back(reasonJson(propagated, f, reason));
        }
        json["conflicts"] = Json::array();
        for (const ShardingConflict& conflict : report.conflicts) {
            if (!only || conflict.value == only->value)
                json["conflicts"].push_back(conflictJson(propagated, f, conflict));
        }
        functions.push_back(std::move(json));
    }
    const Json document = {{"schema", "meshwright.propagation/1"}, {"meshwright", kVersion}, {"strategy", strategy},
        {"functions", std::move(functions)}};
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
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
    const auto strategy = std::find_if(
        kStrategies.begin(), kStrategies.end(), [&](const NamedStrategy& known) { return options.strategy == known.name; });
    if (strategy == kStrategies.end())
        return fail({Problem{"MW1903", fmt::format("--strategy: \"{}\" is not allowed here", options.strategy),
                        "one of: " + join(strategyNames(), ", ")}},
            output);
    auto program = readProgramFile(options.file, output);
    if (!program)
        return fail(program.error(), output);
    const auto propagated = propagateAll(*std::move(program), strategy->strategy);
    if (!propagated)
        return fail(inFile(propagated.error(), options.file), output);

    std::optional<Found> only;
    if (!options.explain.empty()) {
        only = findValue(*propagated, options.explain);
        if (!only)
            return fail({noSuchValue(*propagated, options.explain)}, output);
    }
    std::string text;
    if (options.steps || output.format == Format::Json)
        text = propagationJson(*propagated, options.strategy, options.steps && output.format != Format::Json, only);
    else
        text = only ? explanationText(*propagated, *only) : writeProgram(propagated->program);
    return writeResult(text, options.result, output);
}

} // namespace meshwright::cli
