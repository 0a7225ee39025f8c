// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/verbs.h"

#include "core/diagnose/problem_table.h"
#include "core/models/transformer_config.h"
#include "core/study/study.h"
#include "core/support/file.h"
#include "core/support/json_text.h"
#include "core/support/resources.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "sim/session/engine.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <system_error>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string listJson(const char* what, Json entries, const Json& more = Json::object())
{
    Json document = {{"schema", "meshwright.list/1"}, {"meshwright", kVersion}, {what, std::move(entries)}};
    document.update(more);
    return jsonText(document);
}

/// The first sentence of the comment that a program's text begins with.
std::string programTitle(const std::filesystem::path& file)
{
    const auto text = readFile(file);
    if (!text)
        return "cannot be read";
    std::string comment;
    for (const std::string& line : split(*text, '\n')) {
        if (!line.starts_with("//"))
            break;
        comment += (comment.empty() ? "" : " ") + std::string(trimmed(std::string_view(line).substr(2)));
    }
    const std::size_t end = std::min(comment.find(". "), comment.find(": "));
    if (end != std::string::npos)
        comment.resize(end);
    while (comment.ends_with('.'))
        comment.pop_back();
    return comment.empty() ? "a program in StableHLO text" : comment;
}

int listExamples(Output& output)
{
    const auto folder = findResource("examples");
    if (!folder)
        return fail(folder.error(), output);
    std::vector<std::filesystem::path> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(*folder, error)) {
        if (entry.path().extension() == ".yaml" || entry.path().extension() == ".mlir")
            files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    TextTable table({{"example"}, {"what"}});
    Json entries = Json::array();
    for (const std::filesystem::path& file : files) {
        std::string name;
        if (file.extension() == ".mlir") {
            name = programTitle(file);
        } else {
            const auto study = loadStudy(file);
            name = study ? study->name : "cannot be read";
        }
        table.addRow({file.string(), name});
        entries.push_back({{"file", file.string()}, {"name", name}});
    }
    output.result(output.format == Format::Json ? listJson("examples", std::move(entries)) : table.text());
    return kExitOk;
}

/// The models that can be named without a file.
int listModels(Output& output)
{
    const auto folder = findResource("models");
    if (!folder)
        return fail(folder.error(), output);
    std::vector<std::filesystem::path> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(*folder, error)) {
        if (entry.path().extension() == ".json")
            files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    using Align = TextTable::Align;
    TextTable table({{"model"}, {"parameters", Align::Right}, {"active", Align::Right}, {"layers", Align::Right},
        {"hidden", Align::Right}, {"heads", Align::Right}, {"vocabulary", Align::Right}});
    Json entries = Json::array();
    for (const std::filesystem::path& file : files) {
        const auto text = readFile(file);
        const auto config = text ? readTransformerConfig(*text, file.string()) : Result<TransformerConfig>(text.error());
        if (!config)
            return fail(config.error(), output);
        const ParameterCounts counts = parameterCounts(*config);
        const std::string heads = config->keyValueHeads == config->heads
            ? fmt::format("{}", config->heads)
            : fmt::format("{} ({} for keys and values)", config->heads, config->keyValueHeads);
        table.addRow({file.stem().string(), fmt::format("{:.2f} G", static_cast<double>(counts.total) / 1e9),
            fmt::format("{:.2f} G", static_cast<double>(counts.active) / 1e9), fmt::format("{}", config->layers),
            fmt::format("{}", config->hidden), heads, fmt::format("{}", config->vocabulary)});
        entries.push_back({{"name", file.stem().string()}, {"file", file.string()}, {"parameters", counts.total},
            {"active_parameters", counts.active}, {"layers", config->layers}, {"hidden", config->hidden},
            {"heads", config->heads}, {"key_value_heads", config->keyValueHeads}, {"vocabulary", config->vocabulary}});
    }
    output.result(output.format == Format::Json ? listJson("models", std::move(entries)) : table.text());
    return kExitOk;
}

/// The chips of the catalogue, and the machines that are named in place of them.
int listHardware(Output& output)
{
    const auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return fail(catalogue.error(), output);
    std::map<std::string, std::vector<std::string>> aliases; // of each key
    for (const std::string& name : catalogue->names()) {
        const auto match = catalogue->find(name);
        const std::string own = match ? match->chip->catalogueName() : std::string();
        if (match && lowerCase(own) != lowerCase(name))
            aliases[own].push_back(name);
    }
    using Align = TextTable::Align;
    TextTable table(
        {{"chip"}, {"name"}, {"memory", Align::Right}, {"bandwidth", Align::Right}, {"bf16", Align::Right}, {"links"}, {"also"}});
    const auto figure = [](const sim::OptionalFigure& one) { return one ? Json(one->value) : Json(nullptr); };
    Json entries = Json::array();
    for (const sim::Chip& chip : catalogue->chips()) {
        const auto peak = chip.peakFlopsPerSecond.find(sim::MathFormat::Bf16);
        const bool rated = peak != chip.peakFlopsPerSecond.end();
        table.addRow({chip.key, chip.name, chip.hbmBytes ? formatBytes(chip.hbmBytes->value) : "-",
            chip.hbmBytesPerSecond ? fmt::format("{:.0f} GB/s", chip.hbmBytesPerSecond->value / 1e9) : "-",
            rated ? fmt::format("{:.0f} TFLOP/s", peak->second.value / 1e12) : "-", chip.interconnect.kindText,
            join(aliases[chip.key], ", ")});
        entries.push_back({{"chip", chip.key}, {"name", chip.name}, {"vendor", chip.vendor},
            {"class", sim::chipClassName(chip.chipClass)}, {"devices_per_chip", chip.devicesPerChip},
            {"memory_bytes", figure(chip.hbmBytes)}, {"memory_bytes_per_s", figure(chip.hbmBytesPerSecond)},
            {"bf16_flops", rated ? Json(peak->second.value) : Json(nullptr)}, {"links", chip.interconnect.kindText},
            {"also", aliases[chip.key]}});
    }
    TextTable machines({{"machine"}, {"chips", Align::Right}, {"of"}, {"network", Align::Right}, {"also"}});
    Json instances = Json::array();
    for (const sim::Chip& chip : catalogue->instances()) {
        machines.addRow({chip.instance, fmt::format("{}", chip.instanceChips), chip.key,
            chip.nicBytesPerSecond ? fmt::format("{:.4g} GB/s a chip", chip.nicBytesPerSecond->value / 1e9) : "-",
            join(aliases[chip.instance], ", ")});
        instances.push_back({{"machine", chip.instance}, {"chip", chip.key}, {"chips", chip.instanceChips},
            {"network_bytes_per_s_per_chip", figure(chip.nicBytesPerSecond)}, {"also", aliases[chip.instance]}});
    }
    output.result(output.format == Format::Json
            ? listJson("hardware", std::move(entries), Json{{"machines", std::move(instances)}})
            : table.text() + "\n" + machines.text());
    return kExitOk;
}

int listProblems(Output& output)
{
    const auto path = findResource("problems.yaml");
    if (!path)
        return fail(path.error(), output);
    const auto problems = ProblemTable::load(*path);
    if (!problems)
        return fail(problems.error(), output);
    TextTable table({{"id"}, {"problem"}, {"part"}});
    Json entries = Json::array();
    for (const ProblemEntry& entry : problems->entries()) {
        const std::string& part = problems->rangeOf(entry.id)->part;
        table.addRow({entry.id, entry.title, part});
        entries.push_back({{"id", entry.id}, {"title", entry.title}, {"part", part}});
    }
    output.result(output.format == Format::Json ? listJson("problems", std::move(entries)) : table.text());
    return kExitOk;
}

} // namespace

int runList(const ListOptions& options, Output& output)
{
    if (options.what == "examples")
        return listExamples(output);
    if (options.what == "problems")
        return listProblems(output);
    if (options.what == "hardware")
        return listHardware(output);
    if (options.what == "models")
        return listModels(output);
    const std::vector<std::string> names = {"hardware", "models", "examples", "problems"};
    return fail({Problem{"MW1903", fmt::format("unknown list: \"{}\"", options.what), suggestion(options.what, names)}}, output);
}

} // namespace meshwright::cli
