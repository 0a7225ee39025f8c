// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/fix_text.h"

#include "core/study/edit_text.h"
#include "core/study/study.h"

#include <algorithm>
#include <array>
#include <set>

namespace meshwright {

namespace {

/// A file of endless problems is not for machines to fix.
constexpr std::size_t kMostTries = 200;

/// Problems whose fix needs no decision: a name is corrected, a layout that wastes something gets the one that the manual names, what has no effect goes.
/// Other sizes, meshes and chips are the author's to choose; `fixSettings` has the nearest.
constexpr auto kOneAnswer = std::to_array<std::string_view>({"MW1102", "MW1270", "MW1272", "MW1274", "MW1275", "MW1276", "MW1277",
    "MW1420", "MW1421", "MW1422", "MW1423", "MW1429", "MW1434", "MW1490", "MW1748", "MW1753"});

bool hasOneAnswer(const Problem& problem)
{
    return !problem.fixSettings.empty() && std::ranges::find(kOneAnswer, problem.id) != kOneAnswer.end();
}

bool contains(const Problems& problems, const Problem& wanted)
{
    return std::ranges::any_of(problems, [&](const Problem& problem) {
        return problem.id == wanted.id && problem.message == wanted.message && problem.place.path == wanted.place.path;
    });
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
            [&](const Problem& problem) { return hasOneAnswer(problem) && !tried.contains(problem.fixSettings); });
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
