// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/output.h"

#include "core/diagnose/problem_table.h"
#include "core/support/resources.h"
#include "core/support/version.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace meshwright::cli {

namespace {

bool isSet(const char* variable)
{
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0';
}

/// The first line of a described problem with its severity and id in colour.
std::string coloured(const Problem& problem)
{
    std::string text = describe(problem);
    const std::string mark = fmt::format("{} {}", severityName(problem.severity), problem.id);
    const std::size_t at = text.find(mark);
    if (at == std::string::npos)
        return text;
    const int colour = problem.severity == Severity::Error ? 31 : problem.severity == Severity::Warning ? 33 : 36;
    return text.replace(at, mark.size(), fmt::format("\033[1;{}m{}\033[0m", colour, mark));
}

} // namespace

const char* formatName(Format format)
{
    switch (format) {
    case Format::Text:
        return "text";
    case Format::Json:
        return "json";
    case Format::JsonLines:
        return "jsonl";
    case Format::Csv:
        return "csv";
    case Format::Markdown:
        return "md";
    case Format::Svg:
        return "svg";
    case Format::Html:
        return "html";
    case Format::Sarif:
        return "sarif";
    case Format::Junit:
        return "junit";
    }
    return "text";
}

void Output::result(std::string_view text)
{
    if (silent || (wordsOnError && quiet))
        return;
    if (std::fwrite(text.data(), 1, text.size(), wordsOnError ? stderr : stdout) != text.size())
        m_failed = true;
}

void Output::narrate(std::string_view line)
{
    if (!quiet && !silent)
        fmt::print(stderr, "{}\n", line);
}

TerminalColours Output::colours(bool ofErrors) const
{
    const char* term = std::getenv("TERM");
    const bool capable
        = isatty(ofErrors ? STDERR_FILENO : STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
    const bool wanted = colour == ColourChoice::Always
        || (colour == ColourChoice::Auto && !isSet("NO_COLOR") && (capable || isSet("CLICOLOR_FORCE")));
    if (!wanted)
        return TerminalColours::None;
    const char* depth = std::getenv("COLORTERM");
    const bool trueColour = depth != nullptr && (std::string_view(depth) == "truecolor" || std::string_view(depth) == "24bit");
    return trueColour ? TerminalColours::TrueColour : TerminalColours::Palette256;
}

Result<Done> Output::finish()
{
    if (std::fflush(stdout) == 0 && !m_failed)
        return Done{};
    return Problem{
        "MW1005", fmt::format("cannot write standard output: {}", std::strerror(errno)), "is the disk full, or the reader gone?"};
}

void printProblems(const Problems& problems, Output& output)
{
    if (output.silent)
        return;
    if (output.format == Format::Json) {
        output.result(problemsJson(problems));
        return;
    }
    const bool plain = output.colours(true) == TerminalColours::None;
    for (const Problem& problem : problems)
        fmt::print(stderr, "{}\n", plain ? describe(problem) : coloured(problem));
}

namespace {

/// True for what is wrong with an array's file, with the arrays for a program, or with a study's pipeline.
bool isOfAFile(const std::string& id)
{
    return (id >= "MW1530" && id <= "MW1535") || (id >= "MW1543" && id <= "MW1546");
}

} // namespace

int exitCodeOf(const Problems& problems)
{
    bool usage = false;
    bool infeasible = false;
    bool running = false;
    bool invalid = false;
    for (const Problem& problem : problems) {
        if (problem.severity != Severity::Error)
            continue;
        if ((problem.id.starts_with("MW19") && problem.id != "MW1914") || problem.id == "MW1514" || problem.id == "MW1520"
            || problem.id == "MW1524" || problem.id == "MW1525" || problem.id == "MW1526")
            usage = true;
        else if (problem.id == "MW1430" || problem.id == "MW1720" || problem.id == "MW1513")
            infeasible = true;
        else if ((problem.id.starts_with("MW15") && !isOfAFile(problem.id)) || problem.id.starts_with("MW162")
            || problem.id == "MW1640" || problem.id == "MW1789")
            running = true;
        else
            invalid = true;
    }
    return usage ? kExitUsage : invalid ? kExitInvalid : infeasible ? kExitInfeasible : running ? kExitFailed : kExitOk;
}

int fail(const Problems& problems, Output& output)
{
    if (output.onFailure)
        output.onFailure(problems);
    printProblems(problems, output);
    return exitCodeOf(problems);
}

std::map<std::string, std::string> problemTitles()
{
    std::map<std::string, std::string> titles;
    const auto path = findResource("problems.yaml");
    const auto table = path ? ProblemTable::load(*path) : Result<ProblemTable>(path.error());
    if (table) {
        for (const ProblemEntry& entry : table->entries())
            titles[entry.id] = entry.title;
    }
    return titles;
}

std::string problemsJson(const Problems& problems, const Problems& fixed)
{
    using Json = nlohmann::ordered_json;
    const auto listOf = [](const Problems& some) {
        Json list = Json::array();
        for (const Problem& problem : some) {
            list.push_back({{"id", problem.id}, {"severity", severityName(problem.severity)}, {"file", problem.place.file},
                {"line", problem.place.line}, {"column", problem.place.column}, {"path", problem.place.path},
                {"message", problem.message}, {"rule", problem.rule}, {"fix", problem.fix},
                {"fix_settings", problem.fixSettings}});
        }
        return list;
    };
    Json document = {{"schema", "meshwright.problems/1"}, {"meshwright", kVersion}, {"problems", listOf(problems)}};
    if (!fixed.empty())
        document["fixed"] = listOf(fixed);
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace meshwright::cli
