// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/result.h"

#include "core/support/escape.h"
#include "core/support/problem_handler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace meshwright {

const char* severityName(Severity severity)
{
    switch (severity) {
    case Severity::Note:
        return "note";
    case Severity::Warning:
        return "warning";
    case Severity::Error:
        return "error";
    }
    return "error";
}

namespace {

ProblemHandler s_handler = nullptr;

/// What a stranger wrote is shown as text. Lines behind the first are indented: none can look like another problem.
std::string words(const std::string& text)
{
    std::string shown = printable(text, Lines::Kept);
    for (std::size_t at = shown.find('\n'); at != std::string::npos; at = shown.find('\n', at + 1))
        shown.insert(at + 1, "    ");
    return shown;
}

} // namespace

std::string describe(const Problem& problem)
{
    std::string where;
    if (!problem.place.file.empty())
        where += printable(problem.place.file) + ":";
    if (problem.place.line > 0)
        where += fmt::format("{}:{}:", problem.place.line, problem.place.column);
    if (!where.empty())
        where += " ";
    std::string text = fmt::format("{}{} {}: {}", where, severityName(problem.severity), problem.id, words(problem.message));
    if (!problem.place.path.empty())
        text += fmt::format(" [{}]", printable(problem.place.path));
    if (!problem.rule.empty())
        text += "\n  rule: " + words(problem.rule);
    if (!problem.fix.empty())
        text += "\n  fix: " + words(problem.fix);
    return text;
}

std::string describe(const Problems& problems)
{
    std::string text;
    for (const Problem& problem : problems) {
        if (!text.empty())
            text += "\n";
        text += describe(problem);
    }
    return text;
}

bool hasErrors(const Problems& problems)
{
    return std::any_of(
        problems.begin(), problems.end(), [](const Problem& problem) { return problem.severity == Severity::Error; });
}

void append(Problems& problems, Problems more)
{
    problems.insert(problems.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

void setProblemHandler(ProblemHandler handler)
{
    s_handler = handler;
}

void stopOnProblems(const Problems& problems)
{
    if (s_handler != nullptr)
        s_handler(problems);
    std::fprintf(
        stderr, "internal error: a value was expected, and there is a problem instead:\n%s\n", describe(problems).c_str());
    std::fflush(stderr);
    std::abort();
}

Problems inFile(Problems problems, const std::string& file)
{
    for (Problem& problem : problems) {
        if (problem.place.file.empty())
            problem.place.file = file;
    }
    return problems;
}

} // namespace meshwright
