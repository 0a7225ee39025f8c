// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/output.h"

#include "core/diagnose/problem_table.h"
#include "core/support/escape.h"
#include "core/support/file.h"
#include "core/support/json_text.h"
#include "core/support/resources.h"
#include "core/support/version.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

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

void say(std::string_view words)
{
    static_cast<void>(std::fwrite(words.data(), 1, words.size(), stderr));
}

namespace {

/// A verb's result as a terminal may show it. What a format has to escape to be itself, its writer has escaped.
std::string shownAs(std::string_view text, Format format, TerminalColours colours)
{
    switch (format) {
    case Format::Json:
    case Format::JsonLines:
    case Format::Sarif:
        return printableJson(text);
    case Format::Text:
    case Format::Csv:
    case Format::Markdown:
        return colours == TerminalColours::None ? printable(text, Lines::Kept) : printableInColour(text);
    case Format::Svg:
    case Format::Html:
    case Format::Junit:
        break;
    }
    return std::string(text);
}

} // namespace

void Output::result(std::string_view text)
{
    if (silent || (wordsOnError && quiet))
        return;
    const std::string shown = shownAs(text, format, colours());
    if (wordsOnError)
        return say(shown);
    if (std::fwrite(shown.data(), 1, shown.size(), stdout) != shown.size() && m_error == 0)
        m_error = errno;
}

void Output::narrate(std::string_view line) const
{
    if (!quiet && !silent)
        say(printable(line, Lines::Kept) + "\n");
}

void Output::warn(const Problems& warnings) const
{
    if (silent)
        return;
    const bool plain = colours(true) == TerminalColours::None;
    for (const Problem& warning : warnings)
        say((plain ? describe(warning) : coloured(warning)) + "\n");
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
    if (std::fflush(stdout) != 0 && m_error == 0)
        m_error = errno;
    if (m_error == 0 || m_error == EPIPE) // a reader that has enough, such as `head`, is not a failure
        return Done{};
    return cannotWriteFile("standard output", m_error);
}

namespace {

Result<ProblemTable> problemTable()
{
    const auto path = findResource("problems.yaml");
    return path ? ProblemTable::load(*path) : Result<ProblemTable>(path.error());
}

} // namespace

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
        say((plain ? describe(problem) : coloured(problem)) + "\n");
}

namespace {

/// The exit codes of problems.yaml by ids, read when the first command fails. Empty when the installation has no readable table.
const std::map<std::string, int>& exitCodes()
{
    static const std::map<std::string, int> kCodes = [] {
        std::map<std::string, int> codes;
        if (const auto table = problemTable()) {
            for (const ProblemEntry& entry : table->entries())
                codes[entry.id] = entry.exitCode;
        }
        return codes;
    }();
    return kCodes;
}

} // namespace

int exitCodeOf(const Problems& problems)
{
    constexpr std::array<int, 5> kFirstWins{kExitInternal, kExitUsage, kExitInvalid, kExitInfeasible, kExitFailed};
    auto wins = kFirstWins.end();
    for (const Problem& problem : problems) {
        if (problem.severity != Severity::Error)
            continue;
        const auto code = exitCodes().find(problem.id);
        wins = std::min(
            wins, std::find(kFirstWins.begin(), kFirstWins.end(), code == exitCodes().end() ? kExitInvalid : code->second));
    }
    return wins == kFirstWins.end() ? int{kExitOk} : *wins;
}

int fail(const Problems& problems, Output& output)
{
    if (output.onFailure)
        output.onFailure(problems);
    printProblems(problems, output);
    return exitCodeOf(problems);
}

int failAfterResult(const Problems& problems, const Output& output)
{
    Output words = output;
    words.format = Format::Text;
    return fail(problems, words);
}

std::map<std::string, std::string> problemTitles()
{
    std::map<std::string, std::string> titles;
    if (const auto table = problemTable()) {
        for (const ProblemEntry& entry : table->entries())
            titles[entry.id] = entry.title;
    }
    return titles;
}

std::string problemsJson(const Problems& problems, const Problems& fixed, const Problems& notFor,
    const std::map<std::string, std::string>& proofs, const std::string& templates)
{
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
    if (!notFor.empty())
        document["not_for"] = listOf(notFor);
    for (const auto& [file, proof] : proofs) {
        Json object = {{"file", file}};
        object.update(parsedJson(proof));
        document["proofs"].push_back(std::move(object));
    }
    if (!templates.empty())
        document["templates"] = parsedJson(templates);
    return jsonText(document);
}

} // namespace meshwright::cli
