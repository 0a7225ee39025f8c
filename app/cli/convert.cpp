// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/verbs.h"

#include "core/sharding/notation.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace meshwright::cli {

namespace {

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
    for (const Conversion& conversion : conversions)
        table.addRow({notationName(conversion.notation),
            conversion.spelling ? conversion.spelling->text : fmt::format("(not there: {})", conversion.whyNot)});
    return table.text();
}

std::string conversionsJson(const ParsedSharding& sharding, const std::vector<Conversion>& conversions)
{
    using Json = nlohmann::ordered_json;
    Json written = Json::object();
    for (const Conversion& conversion : conversions) {
        const char* name = notationName(conversion.notation);
        written[name] = conversion.spelling ? Json{{"text", conversion.spelling->text}, {"notes", conversion.spelling->notes}}
                                            : Json{{"why_not", conversion.whyNot}};
    }
    const Json document = {{"schema", "meshwright.conversion/1"}, {"meshwright", kVersion},
        {"read_as", notationName(sharding.notation)}, {"mesh", sharding.mesh.text()}, {"written", std::move(written)}};
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace

int runConvert(const ConvertOptions& options, Output& output)
{
    SpellingContext context;
    if (!options.mesh.empty()) {
        auto mesh = parseMesh(options.mesh);
        if (!mesh)
            return fail(inFile(mesh.error(), "--mesh"), output);
        context.mesh = *std::move(mesh);
    }
    std::optional<Shape> shape;
    if (!options.shape.empty()) {
        auto given = parseShape(options.shape);
        if (!given)
            return fail(given.error(), output);
        shape = *std::move(given);
        context.rank = shape->size();
    }
    auto parsed = parseSharding(options.text, context);
    if (!parsed)
        return fail(parsed.error(), output);
    if (shape && !parsed->shape)
        parsed->shape = *shape;

    std::vector<Conversion> conversions;
    if (!options.to.empty()) {
        const auto notation = notationOf(options.to);
        if (!notation)
            return fail(notation.error(), output);
        auto spelling = printSharding(*parsed, *notation);
        if (!spelling)
            return fail(spelling.error(), output);
        for (const std::string& note : spelling->notes)
            output.narrate("note: " + note);
        conversions.push_back({*notation, *std::move(spelling), {}});
    } else {
        for (const Notation notation : allNotations())
            conversions.push_back(convertTo(*parsed, notation));
    }
    if (output.format == Format::Json)
        output.result(conversionsJson(*parsed, conversions));
    else
        output.result(options.to.empty() ? conversionsText(conversions) : conversions.front().spelling->text + "\n");
    return kExitOk;
}

} // namespace meshwright::cli
