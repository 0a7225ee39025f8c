// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/verbs.h"

#include "core/diagnose/problem_table.h"
#include "core/study/study.h"
#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <system_error>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string listJson(const char* what, Json entries)
{
    const Json document = {{"schema", "meshwright.list/1"}, {"meshwright", kVersion}, {what, std::move(entries)}};
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
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
    const std::vector<std::string> names = {"examples", "problems"};
    return fail(
        {Problem{"MW1903", fmt::format("there is no list of \"{}\"", options.what), suggestion(options.what, names)}}, output);
}

} // namespace meshwright::cli
