// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/propagate_modes.h"
#include "app/terminal/files.h"
#include "app/terminal/program_values.h"

#include "core/partition/device_program.h"
#include "core/partition/explicit_costs.h"
#include "core/propagate/gspmd.h"
#include "core/sharding/jax_spec.h"
#include "core/support/json_text.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "core/text/program_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string documentText(const char* schema, Json functions)
{
    const Json document = {{"schema", schema}, {"meshwright", kVersion}, {"functions", std::move(functions)}};
    return jsonText(document);
}

// ---- JAX's explicit mode

/// A program whose values have types, and what is wrong with them.
struct Typed {
    Program program;
    std::vector<std::vector<ExplicitFinding>> findings; ///< of each function
};

const CollectiveCost& plainCost()
{
    static const BytesThenStepsCost kCost;
    return kCost;
}

Problems problemsOf(const Typed& typed)
{
    Problems problems;
    for (const auto& findings : typed.findings) {
        for (const ExplicitFinding& finding : findings)
            problems.push_back(finding.problem);
    }
    return problems;
}

Typed typedProgram(Program program, const ProgramPlaces& places)
{
    Typed typed;
    const PricingChooser chooser(plainCost());
    for (std::size_t f = 0; f < program.functions.size(); ++f) {
        typed.findings.push_back(checkExplicitTypes(program.functions[f], program.meshes, &chooser));
        for (ExplicitFinding& finding : typed.findings.back())
            finding.problem.place = places.ofOp(f, finding.op);
    }
    typed.program = std::move(program);
    const ProgramValues values(typed.program);
    for (std::size_t f = 0; f < typed.findings.size(); ++f) {
        for (ExplicitFinding& finding : typed.findings[f]) {
            if (finding.op.valid() && !typed.program.functions[f][finding.op].results.empty())
                finding.problem.place.path = values.title(f, typed.program.functions[f][finding.op].results.front());
        }
    }
    return typed;
}

/// `f32[8@x,4]`, as JAX prints it.
std::string jaxText(const Program& program, const Function& function, ValueId value)
{
    const auto& sharding = function[value].sharding;
    if (!sharding)
        return typeText(function[value].type);
    const auto spec = jaxSpecOf(*sharding, {}, program.meshOf(*sharding));
    return spec ? jaxTypeText({dtypeName(function[value].type.dtype), function[value].type.shape, *spec, {}})
                : fmt::format("{} {}", typeText(function[value].type), layoutText(*sharding, program.meshOf(*sharding)));
}

std::string explicitExplanation(const Typed& typed, const ProgramValues& values, const ProgramValues::Found& found)
{
    const Function& function = typed.program.functions[found.function];
    std::string text = fmt::format("{} of {}: {}\n", values.title(found.function, found.value), function.name,
        jaxText(typed.program, function, found.value));
    const OpId producer = function[found.value].producer;
    if (!producer.valid())
        return text
            + (function[found.value].annotation.empty() ? "  an argument without a sharding is replicated\n"
                                                        : fmt::format("  {}\n", function[found.value].annotation));
    text += fmt::format("  by {} of", opName(function[producer]));
    for (const ValueId operand : function[producer].operands)
        text += fmt::format(" {} {}", values.title(found.function, operand), jaxText(typed.program, function, operand));
    text += "\n";
    for (const ExplicitFinding& finding : typed.findings[found.function]) {
        if (finding.op == producer)
            text += fmt::format("  {}\n", finding.problem.message);
    }
    return text;
}

Json choicesJson(const Typed& typed, const Function& function, const ExplicitFinding& finding)
{
    Json list = Json::array();
    if (finding.choices.empty())
        return list;
    const Mesh& mesh = typed.program.meshOf(finding.choices.front().result);
    for (const PricedChoice& choice : pricedChoices(function, mesh, finding, plainCost())) {
        Json steps = Json::array();
        for (const PricedStep& step : choice.steps)
            steps.push_back({{"op", opName(step.kind)}, {"axes", axesText(step.axes, mesh)}, {"of", step.moves},
                {"bytes_per_device", step.payloadBytes}});
        list.push_back({{"spec", layoutText(choice.choice.result, mesh)}, {"collectives", std::move(steps)},
            {"bytes_per_device", choice.totalPayloadBytes}});
    }
    return list;
}

std::string explicitJson(const Typed& typed, const ProgramValues& values, const std::optional<ProgramValues::Found>& only)
{
    Json functions = Json::array();
    for (std::size_t f = 0; f < typed.program.functions.size(); ++f) {
        if (only && only->function != f)
            continue;
        const Function& function = typed.program.functions[f];
        Json json = {{"name", function.name}, {"values", Json::array()}, {"problems", Json::array()}};
        for (std::size_t i = 0; i < function.values.size(); ++i) {
            const ValueId value(i);
            if (!values.text(f, value).empty() && (!only || only->value == value))
                json["values"].push_back({{"value", values.text(f, value)}, {"name", function[value].name},
                    {"type", jaxText(typed.program, function, value)}});
        }
        for (const ExplicitFinding& finding : typed.findings[f]) {
            const Problem& problem = finding.problem;
            json["problems"].push_back({{"id", problem.id}, {"file", problem.place.file}, {"line", problem.place.line},
                {"column", problem.place.column}, {"path", problem.place.path}, {"message", problem.message},
                {"fix", problem.fix}, {"choices", choicesJson(typed, function, finding)}});
        }
        functions.push_back(std::move(json));
    }
    return documentText("meshwright.types/1", std::move(functions));
}

// ---- GSPMD

/// A program with what GSPMD makes of it.
struct Tiled {
    Program program;
    std::vector<TileShardings> given; ///< of each function
    std::vector<TilePropagation> found;
};

Result<Tiled> tiledProgram(Program program)
{
    Tiled tiled;
    Problems problems;
    for (const Function& function : program.functions) {
        auto annotations = tileAnnotations(function, program.meshes);
        if (!annotations) {
            append(problems, annotations.error());
            continue;
        }
        tiled.given.push_back(*annotations);
        tiled.found.push_back(propagateTiles(function, *std::move(annotations)));
    }
    if (!problems.empty())
        return problems;
    tiled.program = std::move(program);
    return tiled;
}

std::string tilesOf(const Tiled& tiled, std::size_t f, ValueId value)
{
    const auto& sharding = tiled.found[f].shardings[value.at()];
    return sharding ? tileText(*sharding) : std::string("no sharding");
}

/// The last step that gave the value its sharding before step `before`, or none.
const TileStep* stepOf(const TilePropagation& found, ValueId value, std::size_t before)
{
    for (std::size_t i = std::min(before, found.steps.size()); i-- > 0;) {
        if (found.steps[i].value == value)
            return &found.steps[i];
    }
    return nullptr;
}

std::string stepText(const Function& function, const TileStep& step)
{
    return fmt::format("{}{}, aggressiveness {}{}",
        step.through.valid() ? fmt::format("{}, ", opName(function[step.through])) : std::string("loop or branch, "),
        step.forward ? "forward" : "backward", step.aggressiveness, step.merged ? ", merged with what was there" : "");
}

std::string tiledExplanation(const Tiled& tiled, const ProgramValues& values, const ProgramValues::Found& found)
{
    const Function& function = tiled.program.functions[found.function];
    const TilePropagation& propagation = tiled.found[found.function];
    std::string text = fmt::format("{} of {}: {} {}\n", values.title(found.function, found.value), function.name,
        typeText(function[found.value].type), tilesOf(tiled, found.function, found.value));
    std::vector<std::string> way;
    ValueId value = found.value;
    std::size_t before = propagation.steps.size();
    while (const TileStep* step = stepOf(propagation, value, before)) {
        way.push_back(
            fmt::format("{} {} by {}", values.title(found.function, value), tileText(step->sharding), stepText(function, *step)));
        before = static_cast<std::size_t>(step - propagation.steps.data());
        value = step->from;
    }
    if (tiled.given[found.function][value.at()])
        way.push_back(fmt::format(
            "{}: annotated {}", values.title(found.function, value), tileText(*tiled.given[found.function][value.at()])));
    if (way.empty())
        return text + "  no annotation reaches it\n";
    for (auto link = way.rbegin(); link != way.rend(); ++link)
        text += fmt::format("  {}{}\n", link == way.rbegin() ? "" : "-> ", *link);
    return text;
}

std::string tiledJson(const Tiled& tiled, const ProgramValues& values, const std::optional<ProgramValues::Found>& only)
{
    Json functions = Json::array();
    for (std::size_t f = 0; f < tiled.program.functions.size(); ++f) {
        if (only && only->function != f)
            continue;
        const Function& function = tiled.program.functions[f];
        Json json = {{"name", function.name}, {"values", Json::array()}, {"steps", Json::array()}};
        for (std::size_t i = 0; i < function.values.size(); ++i) {
            const ValueId value(i);
            const auto& sharding = tiled.found[f].shardings[i];
            if (!values.text(f, value).empty() && (!only || only->value == value))
                json["values"].push_back({{"value", values.text(f, value)}, {"name", function[value].name},
                    {"type", typeText(function[value].type)}, {"hlo", sharding ? Json(tileText(*sharding)) : Json(nullptr)},
                    {"annotated", tiled.given[f][i].has_value()}});
        }
        for (const TileStep& step : tiled.found[f].steps) {
            if (!only || step.value == only->value)
                json["steps"].push_back({{"value", values.text(f, step.value)}, {"from", values.text(f, step.from)},
                    {"through", step.through.valid() ? Json(opName(function[step.through])) : Json(nullptr)},
                    {"direction", step.forward ? "forward" : "backward"}, {"aggressiveness", step.aggressiveness},
                    {"merged", step.merged}, {"hlo", tileText(step.sharding)}});
        }
        functions.push_back(std::move(json));
    }
    return documentText("meshwright.tiles/1", std::move(functions));
}

} // namespace

std::vector<std::string> propagationModeNames()
{
    return {"shardy", "explicit", "gspmd"};
}

Problems explicitProblems(std::string_view text, const std::string& file)
{
    ProgramPlaces places;
    auto program = readProgram(text, file, nullptr, &places);
    return program ? problemsOf(typedProgram(*std::move(program), places)) : program.error();
}

int runExplicit(const PropagateOptions& options, Output& output)
{
    ProgramPlaces places;
    auto program = readProgramFile(options.file, output, &places);
    if (!program)
        return fail(program.error(), output);
    const Typed typed = typedProgram(*std::move(program), places);
    const ProgramValues values(typed.program);
    std::optional<ProgramValues::Found> only;
    if (!options.explain.empty()) {
        only = values.find(options.explain);
        if (!only)
            return fail({values.noSuchValue(options.explain)}, output);
    }
    const Problems problems = problemsOf(typed);
    const bool asJson = options.steps || output.format == Format::Json;
    if (!problems.empty() && !asJson)
        printProblems(problems, output);
    int code = kExitOk;
    if (asJson)
        code = writeResult(explicitJson(typed, values, only), options.result, output);
    else if (only)
        code = writeResult(explicitExplanation(typed, values, *only), options.result, output);
    else if (problems.empty())
        code = writeResult(writeProgram(typed.program), options.result, output);
    return code != kExitOk ? code : exitCodeOf(problems);
}

int runGspmd(const PropagateOptions& options, Output& output)
{
    auto program = readProgramFile(options.file, output);
    if (!program)
        return fail(program.error(), output);
    auto tiled = tiledProgram(*std::move(program));
    if (!tiled)
        return fail(inFile(tiled.error(), options.file), output);
    const ProgramValues values(tiled->program);
    std::optional<ProgramValues::Found> only;
    if (!options.explain.empty()) {
        only = values.find(options.explain);
        if (!only)
            return fail({values.noSuchValue(options.explain)}, output);
    }
    if (options.steps || output.format == Format::Json)
        return writeResult(tiledJson(*tiled, values, only), options.result, output);
    if (only)
        return writeResult(tiledExplanation(*tiled, values, *only), options.result, output);
    for (std::size_t f = 0; f < tiled->program.functions.size(); ++f)
        writeTileShardings(tiled->program.functions[f], tiled->found[f].shardings);
    return writeResult(writeProgram(tiled->program), options.result, output);
}

} // namespace meshwright::cli
