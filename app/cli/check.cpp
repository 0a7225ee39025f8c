// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/propagate_modes.h"
#include "app/cli/verbs.h"

#include "core/study/arrays.h"
#include "core/study/fix_text.h"
#include "core/study/study.h"
#include "core/support/file.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::cli {

namespace {

struct CheckedFile {
    std::string name;
    Problems problems;
    std::optional<Study> study; ///< without errors
    Problems fixed; ///< what was mended
    bool rewritten = false; ///< for that the file had to be written anew
};

/// Mends the text and writes it back to where it came from; standard input goes to standard output.
std::string fixOne(const std::string& path, std::string text, CheckedFile& checked, Output& output)
{
    auto fixed = fixedText(text, checked.name);
    if (!fixed) // unreadable: the check says why
        return text;
    if (path == "-") {
        output.result(fixed->text);
    } else if (fixed->text != text) {
        if (const auto written = writeFileAtomically(path, fixed->text); !written) {
            checked.problems = written.error();
            return text;
        }
    }
    checked.fixed = std::move(fixed->fixed);
    checked.rewritten = fixed->rewritten;
    return std::move(fixed->text);
}

CheckedFile checkOne(const std::string& path, const CheckOptions& options, Output& output)
{
    CheckedFile checked;
    checked.name = path == "-" ? "standard input" : path;
    auto text = readFile(path);
    if (!text) {
        checked.problems = text.error();
        return checked;
    }
    if (options.explicitTypes) {
        checked.problems = explicitProblems(*text, checked.name);
        return checked;
    }
    if (options.fix)
        *text = fixOne(path, *std::move(text), checked, output);
    append(checked.problems, examineStudy(*text, checked.name, options.settings));
    if (hasErrors(checked.problems))
        return checked;
    if (auto study = readStudy(*text, checked.name, options.settings)) {
        append(checked.problems, checkFiles(*study));
        checked.study = *std::move(study);
    }
    return checked;
}

/// What each rule caught, one line a rule.
std::string rulesText(const Study& study)
{
    const std::vector<AssignedSpec> assigned = assignedSpecs(study);
    std::string text;
    for (std::size_t i = 0; i < study.sharding.match.size(); ++i) {
        std::vector<std::string> caught;
        for (const AssignedSpec& one : assigned) {
            if (one.rule == i)
                caught.push_back(fmt::format("{} {}", one.array.name, specText(one.spec)));
        }
        text += fmt::format("  rule \"{}\" catches {}\n", study.sharding.match[i].glob,
            caught.empty() ? std::string("nothing") : join(caught, ", "));
    }
    return text;
}

/// What was mended, a line each with the settings that did it.
std::string fixesText(const CheckedFile& checked)
{
    std::string text;
    for (const Problem& problem : checked.fixed)
        text += fmt::format("{}: fixed {}: {}\n  {}\n", checked.name, problem.id, problem.message,
            problem.fixSettings.empty() ? problem.fix : join(problem.fixSettings, ", "));
    if (checked.rewritten)
        text += checked.name + ": the file was written anew, comments inside it are gone\n";
    return text;
}

} // namespace

int runCheck(const CheckOptions& options, Output& output)
{
    const bool fixesInput
        = options.fix && std::find(options.studies.begin(), options.studies.end(), "-") != options.studies.end();
    if (fixesInput && (output.format == Format::Json || options.studies.size() > 1))
        return fail({Problem{"MW1903", "--fix writes the mended standard input to standard output, where nothing else may go",
                        "check `-` alone and as text, or give files"}},
            output);
    Problems all;
    Problems fixed;
    std::string summary;
    for (const std::string& path : options.studies) {
        CheckedFile checked = checkOne(path, options, output);
        summary += fixesText(checked);
        append(fixed, std::move(checked.fixed));
        const auto count = [&](Severity severity) {
            return std::count_if(
                checked.problems.begin(), checked.problems.end(), [&](const Problem& p) { return p.severity == severity; });
        };
        const auto errors = count(Severity::Error);
        const auto warnings = count(Severity::Warning);
        if (checked.problems.empty())
            summary += checked.name + ": no problems\n";
        else
            summary += fmt::format("{}: {} error{}, {} warning{}\n", checked.name, errors, errors == 1 ? "" : "s", warnings,
                warnings == 1 ? "" : "s");
        if (checked.study)
            summary += rulesText(*checked.study);
        append(all, std::move(checked.problems));
    }
    if (output.format == Format::Json)
        output.result(problemsJson(all, fixed));
    else if (!all.empty())
        printProblems(all, output);
    if (fixesInput)
        output.narrate(trimmed(summary));
    else if (output.format != Format::Json)
        output.result(summary);
    if (const int code = exitCodeOf(all); code != kExitOk)
        return code;
    const bool found
        = std::any_of(all.begin(), all.end(), [&](const Problem& problem) { return problem.severity >= options.failOn; });
    return found ? kExitFindings : kExitOk;
}

} // namespace meshwright::cli
