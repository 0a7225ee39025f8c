// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/verbs.h"

#include "core/sharding/logical_axes.h"
#include "core/sharding/notation.h"
#include "core/study/logical_rules_file.h"
#include "core/support/file.h"
#include "core/support/json_text.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

/// The text in one notation, or why it cannot be said there.
struct Conversion {
    Notation notation = Notation::Jax;
    std::optional<Spelling> spelling;
    std::string whyNot;
};

Conversion convertTo(const ParsedSharding& sharding, Notation notation)
{
    auto spelling = printSharding(sharding, notation);
    if (spelling)
        return {notation, *std::move(spelling), {}};
    return {notation, std::nullopt, spelling.error().front().message};
}

std::string conversionsText(const std::vector<Conversion>& conversions)
{
    TextTable table({{"--to"}, {"written"}});
    for (const Conversion& conversion : conversions) {
        std::string name = notationName(conversion.notation);
        const std::string written
            = conversion.spelling ? conversion.spelling->text : fmt::format("(not there: {})", conversion.whyNot);
        for (std::string& line : split(written, '\n'))
            table.addRow({std::exchange(name, std::string()), std::move(line)});
    }
    return table.text();
}

/// A spec that logical axis rules made, and how.
struct RuledSpec {
    LogicalNames names;
    LogicalDecision decision;
    std::vector<std::string> notes;
};

const char* verdictName(LogicalVerdict verdict)
{
    switch (verdict) {
    case LogicalVerdict::Applied:
        return "applied";
    case LogicalVerdict::NameAbsent:
        return "name_absent";
    case LogicalVerdict::AlreadyAssigned:
        return "already_assigned";
    case LogicalVerdict::AxisTaken:
        return "axis_taken";
    case LogicalVerdict::NoRule:
        return "no_rule";
    case LogicalVerdict::Renamed:
        return "renamed";
    case LogicalVerdict::Kept:
        return "kept";
    }
    return "";
}

/// `batch,embed` or `('batch', None)`; empty entries are None.
Result<LogicalNames> readNames(const std::string& text)
{
    const std::string_view inside = trimmed(text);
    return parseLogicalNames(
        inside.starts_with('(') || inside.starts_with('[') ? std::string(inside) : fmt::format("({})", inside));
}

/// The built-in list of that name, rules that are written out, or those in a file.
Result<LogicalRules> readRules(const std::string& text)
{
    if (const LogicalRuleList* list = findLogicalRuleList(text))
        return list->rules;
    if (text.starts_with('[') || text.starts_with('('))
        return parseLogicalRules(text);
    auto content = readFile(text);
    if (!content) {
        Problem problem{"MW1185", fmt::format("--rules: \"{}\" is neither a built-in list nor a readable file", text),
            suggestion(text, logicalRuleListNames()) + "; or write [['batch', 'data']]", Place{"--rules"}};
        return problem;
    }
    return readLogicalRules(*content, text);
}

/// The names with the dimension of `--stacked`.
Result<LogicalNames> withStacked(const LogicalNames& names, const std::string& stacked)
{
    const std::size_t at = stacked.find('@');
    const auto dim = at == std::string::npos ? std::nullopt : parseInteger(std::string_view(stacked).substr(at + 1));
    const auto rank = static_cast<std::int64_t>(names.size());
    if (!dim || at == 0 || *dim < -rank - 1 || *dim > rank)
        return Problem{"MW1186",
            fmt::format("--stacked: \"{}\" does not place a dimension in an array of rank {}", stacked, rank),
            fmt::format("write a name and a place from {} to {}, such as layers@0", -rank - 1, rank), Place{"--stacked"}};
    return stackedNames(names, stacked.substr(0, at), *dim);
}

Result<RuledSpec> ruledSpec(const ConvertOptions& options, const Mesh& mesh)
{
    auto names = readNames(options.logical);
    if (!names)
        return inFile(names.error(), "--logical");
    if (!options.stacked.empty())
        names = withStacked(*names, options.stacked);
    if (!names)
        return names.error();
    const auto rules = readRules(options.rules);
    if (!rules)
        return inFile(rules.error(), "--rules");
    if (options.semantics != "linen" && options.semantics != "nnx")
        return Problem{"MW1903", fmt::format("--semantics: \"{}\" is not allowed here", options.semantics), "one of: linen, nnx"};
    auto decision = options.semantics == "linen" ? linenAxes(*names, *rules) : nnxAxes(*names, *rules);
    if (!decision)
        return decision.error();
    std::erase_if(decision->trace, [](const LogicalStep& step) { return step.verdict == LogicalVerdict::NameAbsent; });
    RuledSpec ruled{*std::move(names), *std::move(decision), {}};
    if (const auto dropped = dropAbsentAxes(ruled.decision.spec, mesh); !dropped.empty())
        ruled.notes.push_back(
            fmt::format("the mesh {} lacks {}: assumed to be axes of size 1", mesh.text(), join(dropped, ", ")));
    return ruled;
}

nlohmann::ordered_json ruledJson(const RuledSpec& ruled, const ConvertOptions& options)
{
    Json names = Json::array();
    for (const LogicalName& name : ruled.names)
        names.push_back(name.unconstrained ? Json("UNCONSTRAINED") : name.name.empty() ? Json(nullptr) : Json(name.name));
    Json trace = Json::array();
    for (const LogicalStep& step : ruled.decision.trace)
        trace.push_back({{"verdict", verdictName(step.verdict)}, {"rule", step.rule ? Json(*step.rule) : Json(nullptr)},
            {"dim", step.dim ? Json(*step.dim) : Json(nullptr)}, {"text", step.text}});
    return {{"names", std::move(names)}, {"rules", options.rules}, {"semantics", options.semantics}, {"trace", std::move(trace)},
        {"notes", ruled.notes}};
}

std::string conversionsJson(const ParsedSharding& sharding, const std::vector<Conversion>& conversions,
    const std::optional<RuledSpec>& ruled, const ConvertOptions& options)
{
    Json written = Json::object();
    for (const Conversion& conversion : conversions) {
        const char* name = notationName(conversion.notation);
        written[name] = conversion.spelling ? Json{{"text", conversion.spelling->text}, {"notes", conversion.spelling->notes}}
                                            : Json{{"why_not", conversion.whyNot}};
    }
    Json document = {{"schema", "meshwright.conversion/1"}, {"meshwright", kVersion},
        {"read_as", notationName(sharding.notation)}, {"mesh", sharding.mesh.text()}, {"written", std::move(written)}};
    if (ruled)
        document["logical"] = ruledJson(*ruled, options);
    return jsonText(document);
}

} // namespace

namespace {

/// The mesh of --mesh and --device-order; nothing when neither is given.
Result<std::optional<Mesh>> meshOfFlags(const ConvertOptions& options)
{
    std::vector<DeviceId> order;
    if (!options.deviceOrder.empty()) {
        auto devices = parseDeviceOrder(options.deviceOrder);
        if (!devices)
            return inFile(devices.error(), "--device-order");
        order = *std::move(devices);
    }
    if (options.mesh.empty() && order.empty())
        return std::optional<Mesh>();
    auto mesh = parseJaxMesh(options.mesh);
    if (mesh && !order.empty())
        mesh = Mesh::create(mesh->axes(), std::move(order));
    if (!mesh)
        return inFile(mesh.error(), "--mesh");
    return std::optional<Mesh>(*std::move(mesh));
}

/// What is to be written: the sharding that was typed, or the one that rules made.
struct ConvertSubject {
    ParsedSharding sharding;
    std::optional<RuledSpec> ruled;
};

Result<ConvertSubject> convertSubject(const ConvertOptions& options)
{
    const bool isLogical = !options.logical.empty();
    if (isLogical == !options.text.empty() || isLogical == options.rules.empty())
        return Problem{"MW1184",
            isLogical                  ? "--logical needs --rules and takes no sharding"
                : options.text.empty() ? "a sharding is missing"
                                       : "--rules needs --logical",
            "give a sharding, or --logical NAMES --rules RULES"};
    auto mesh = meshOfFlags(options);
    if (!mesh)
        return mesh.error();
    SpellingContext context;
    context.mesh = *std::move(mesh);
    std::optional<Shape> shape;
    if (!options.shape.empty()) {
        auto given = parseShape(options.shape);
        if (!given)
            return given.error();
        shape = *std::move(given);
        context.rank = shape->size();
    }
    ConvertSubject subject;
    std::string text = options.text;
    if (text == "-") {
        auto given = readFile("-");
        if (!given)
            return given.error();
        text = trimmed(*given);
        if (text.empty())
            return Problem{"MW1184", "standard input has no sharding", "give a sharding, or --logical NAMES --rules RULES"};
    }
    if (isLogical) {
        auto ruled = ruledSpec(options, context.mesh.value_or(Mesh()));
        if (!ruled)
            return ruled.error();
        text = jaxSpecText(ruled->decision.spec);
        subject.ruled = *std::move(ruled);
    }
    auto parsed = parseSharding(text, context);
    if (!parsed)
        return parsed.error();
    subject.sharding = *std::move(parsed);
    if (shape && !subject.sharding.shape)
        subject.sharding.shape = *shape;
    return subject;
}

std::string decisionText(const RuledSpec& ruled)
{
    std::string text;
    for (const LogicalStep& step : ruled.decision.trace)
        text += step.text + "\n";
    for (const std::string& note : ruled.notes)
        text += "note: " + note + "\n";
    return text;
}

} // namespace

int runConvert(const ConvertOptions& options, Output& output)
{
    const auto subject = convertSubject(options);
    if (!subject) {
        const int code = fail(subject.error(), output);
        return subject.error().front().id == "MW1184" ? int{kExitUsage} : code;
    }
    std::vector<Conversion> conversions;
    if (!options.to.empty()) {
        const auto notation = notationOf(options.to);
        if (!notation)
            return fail(notation.error(), output);
        auto spelling = printSharding(subject->sharding, *notation);
        if (!spelling)
            return fail(spelling.error(), output);
        for (const std::string& note : spelling->notes)
            output.narrate("note: " + note);
        conversions.push_back({*notation, *std::move(spelling), {}});
    } else {
        for (const Notation notation : allNotations())
            conversions.push_back(convertTo(subject->sharding, notation));
    }
    if (output.format == Format::Json) {
        output.result(conversionsJson(subject->sharding, conversions, subject->ruled, options));
        return kExitOk;
    }
    const std::string decision = subject->ruled ? decisionText(*subject->ruled) : "";
    if (options.to.empty()) {
        output.result((decision.empty() ? "" : decision + "\n") + conversionsText(conversions));
        return kExitOk;
    }
    if (!decision.empty())
        output.narrate(trimmed(decision));
    output.result(conversions.front().spelling->text + "\n");
    return kExitOk;
}

} // namespace meshwright::cli
