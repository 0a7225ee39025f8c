// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/fix_text.h"

#include "core/study/edit_text.h"
#include "core/study/study.h"

#include <algorithm>
#include <set>

namespace meshwright {

namespace {

/// A file of endless problems is not for machines to fix.
constexpr std::size_t kMostTries = 200;

bool contains(const Problems& problems, const Problem& wanted)
{
    return std::any_of(problems.begin(), problems.end(),
        [&](const Problem& problem) { return problem.id == wanted.id && problem.message == wanted.message; });
}

} // namespace

Result<FixedText> fixedText(
    std::string_view text, const std::string& file, const std::function<Problems(std::string_view text)>& examine)
{
    const auto problemsOf = [&](std::string_view edited) { return examine ? examine(edited) : examineStudy(edited, file); };
    auto quoted = editedText(text, file, {});
    if (!quoted)
        return quoted.error();
    FixedText result{std::move(quoted->text), {}, quoted->rewritten};
    Problems problems = problemsOf(text);
    std::copy_if(problems.begin(), problems.end(), std::back_inserter(result.fixed),
        [](const Problem& problem) { return problem.id == "MW1409"; });
    if (!result.fixed.empty())
        problems = problemsOf(result.text);

    std::set<std::vector<std::string>> tried;
    while (tried.size() < kMostTries) {
        const auto next = std::find_if(problems.begin(), problems.end(),
            [&](const Problem& problem) { return !problem.fixSettings.empty() && !tried.contains(problem.fixSettings); });
        if (next == problems.end())
            break;
        tried.insert(next->fixSettings);
        auto edited = editedText(result.text, file, next->fixSettings);
        if (!edited)
            continue;
        Problems after = problemsOf(edited->text);
        if (contains(after, *next))
            continue;
        result.fixed.push_back(*next);
        result.text = std::move(edited->text);
        result.rewritten = result.rewritten || edited->rewritten;
        problems = std::move(after);
    }
    return result;
}

} // namespace meshwright
