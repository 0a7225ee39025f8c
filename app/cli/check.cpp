// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/verbs.h"

#include "core/study/arrays.h"
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
};

CheckedFile checkOne(const std::string& path, const std::vector<std::string>& settings)
{
    CheckedFile checked{path == "-" ? "standard input" : path, {}, std::nullopt};
    const auto text = readFile(path);
    if (!text) {
        checked.problems = text.error();
        return checked;
    }
    checked.problems = examineStudy(*text, checked.name, settings);
    if (hasErrors(checked.problems))
        return checked;
    if (auto study = readStudy(*text, checked.name, settings)) {
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

} // namespace

int runCheck(const CheckOptions& options, Output& output)
{
    Problems all;
    std::string summary;
    for (const std::string& path : options.studies) {
        CheckedFile checked = checkOne(path, options.settings);
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
    if (output.format == Format::Json || !all.empty())
        printProblems(all, output);
    if (output.format != Format::Json)
        output.result(summary);
    if (const int code = exitCodeOf(all); code != kExitOk)
        return code;
    const bool found
        = std::any_of(all.begin(), all.end(), [&](const Problem& problem) { return problem.severity >= options.failOn; });
    return found ? kExitFindings : kExitOk;
}

} // namespace meshwright::cli
