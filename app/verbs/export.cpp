// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/files.h"
#include "app/verbs/study_file.h"
#include "app/verbs/verbs.h"

#include "core/support/file.h"
#include "core/support/json_text.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "sim/report/trace.h"
#include "sim/session/study_exports.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

/// The simulated step as a trace that Perfetto opens.
sim::StudyExport tracedStep(const Study& study, const sim::Catalogue& catalogue)
{
    const auto simulated = sim::simulateStudy(study, catalogue, {.timeline = true}, false);
    if (!simulated)
        return {"perfetto", {}, simulated.error().front().message};
    const std::string name = fmt::format("{} on {}", sim::titleOf(*simulated), simulated->simulation.machine);
    return {"perfetto", sim::traceJson({{name, &simulated->simulation.timeline}}), {}};
}

/// What is wrong with a command that does not fit by what its framework needs; nothing where Meshwright knows nothing of the framework.
Problems tooLarge(Study study, const std::string& framework, const sim::Catalogue& catalogue)
{
    if (std::ranges::find(stackWords(), framework) == stackWords().end())
        return {};
    study.stack = framework;
    const auto simulated = sim::simulateStudy(study, catalogue);
    const std::string why = simulated ? sim::whyTooLarge(simulated->simulation, framework) : std::string();
    if (why.empty())
        return {};
    Problem warning{"MW1793", why, fmt::format("`meshwright search --stack {}` finds layouts that fit it", framework)};
    warning.severity = Severity::Warning;
    return {warning};
}

/// Commands are written out, files are asked for by name.
std::string listText(const std::vector<sim::StudyExport>& exports, const std::string& file)
{
    std::string text;
    for (const sim::StudyExport& one : exports) {
        text += fmt::format("{}: {}\n", one.to,
            one.text.empty()       ? "-, " + one.whyNot
                : !one.isCommand() ? fmt::format("meshwright export {} --to {}", file, one.to)
                                   : one.text);
    }
    return text;
}

std::string exportsJson(const std::vector<sim::StudyExport>& exports)
{
    Json list = Json::array();
    for (const sim::StudyExport& one : exports) {
        Json entry = {{"to", one.to}, {"text", nullptr}, {"why_not", nullptr}, {"notes", one.notes}};
        entry[one.text.empty() ? "why_not" : "text"] = one.text.empty() ? one.whyNot : one.text;
        list.push_back(std::move(entry));
    }
    const Json document = {{"schema", "meshwright.export/1"}, {"meshwright", kVersion}, {"exports", std::move(list)}};
    return jsonText(document);
}

} // namespace

const std::vector<std::string>& exportWords()
{
    static const std::vector<std::string> kWords
        = {kAllExports, "study", "jax", "flax", "maxtext", "torchtitan", "megatron", "accelerate", "perfetto"};
    return kWords;
}

int runExport(const ExportOptions& options, Output& output)
{
    auto text = readFile(options.file);
    if (!text)
        return fail(text.error(), output);
    auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return fail(catalogue.error(), output);
    const std::string file = options.file == "-" ? std::string() : options.file;
    const auto source = sourceOf({*std::move(text), file, options.settings}, output);
    if (!source)
        return fail(source.error(), output);
    const auto analysis = sim::analysed(*source, *catalogue, {}, false);
    if (!analysis->study || !analysis->built)
        return fail(inFile(analysis->problems, file.empty() ? "standard input" : file), output);

    std::vector<sim::StudyExport> exports;
    if (options.to == "perfetto") {
        exports.push_back(tracedStep(*analysis->study, *catalogue));
    } else {
        exports = sim::exportsOf(*analysis, *catalogue);
        if (options.to != kAllExports)
            std::erase_if(exports, [&](const sim::StudyExport& one) { return one.to != options.to; });
    }
    if (options.to != kAllExports && !exports.front().text.empty()) {
        for (const std::string& note : exports.front().notes)
            output.narrate(note);
        if (exports.front().isCommand())
            output.warn(tooLarge(*analysis->study, options.to, *catalogue));
    }
    if (output.format == Format::Json)
        return writeResult(exportsJson(exports), options.result, output);
    if (options.to == kAllExports)
        return writeResult(listText(exports, options.file), options.result, output);
    const sim::StudyExport& only = exports.front();
    if (only.text.empty()) {
        return fail({Problem{"MW1759", fmt::format("{}: {}", only.to, only.whyNot),
                        "meshwright export " + options.file + " lists what the study can be written as", Place{file}}},
            output);
    }
    return writeResult(only.text + (only.text.ends_with('\n') ? "" : "\n"), options.result, output);
}

} // namespace meshwright::cli
