// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/problem_table.h"

#include "core/study/document.h"
#include "core/support/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>

namespace meshwright {

namespace {

constexpr int kUsualExitCode = 3; ///< the exit code where the table states none: most problems are of a document

Problem wrongTable(std::string message, const DocNode& at)
{
    return Problem{"MW1440", std::move(message), "use the table that comes with the program", at.place()};
}

/// The text of a key of an entry; a problem when it has none.
std::string textOf(const DocNode& entry, const char* key, Problems& problems)
{
    const DocNode* value = entry.find(key);
    if (value != nullptr && value->kind == DocNode::Kind::Scalar && !value->text.empty())
        return value->text;
    problems.push_back(wrongTable(fmt::format("the entry has no \"{}\"", key), entry));
    return {};
}

/// The exit code that an entry or a range states; `otherwise` when it states none.
int exitCodeOf(const DocNode& entry, int otherwise, Problems& problems)
{
    static const std::map<std::string, int, std::less<>> kCodes = {{"2", 2}, {"3", 3}, {"4", 4}, {"6", 6}, {"70", 70}};
    const DocNode* value = entry.find("exit");
    if (value == nullptr)
        return otherwise;
    const auto code = value->kind == DocNode::Kind::Scalar ? kCodes.find(value->text) : kCodes.end();
    if (code != kCodes.end())
        return code->second;
    problems.push_back(wrongTable("\"exit\" is not one of 2, 3, 4, 6 and 70", *value));
    return otherwise;
}

/// The entry whose id is `id`, without regard to case; null when there is none.
template <typename Entry>
const Entry* withId(const std::vector<Entry>& entries, std::string_view id)
{
    const auto same = [](char a, char b) {
        return std::toupper(static_cast<unsigned char>(a)) == std::toupper(static_cast<unsigned char>(b));
    };
    const auto entry = std::find_if(entries.begin(), entries.end(),
        [&](const Entry& e) { return std::equal(e.id.begin(), e.id.end(), id.begin(), id.end(), same); });
    return entry == entries.end() ? nullptr : &*entry;
}

const DocNode& listOf(const DocNode& root, const char* key, Problems& problems)
{
    static const DocNode kNone;
    const DocNode* list = root.find(key);
    if (list != nullptr && list->kind == DocNode::Kind::List)
        return *list;
    problems.push_back(wrongTable(fmt::format("the table has no list \"{}\"", key), root));
    return kNone;
}

} // namespace

Result<ProblemTable> ProblemTable::load(const std::filesystem::path& path)
{
    const auto text = readFile(path);
    if (!text)
        return text.error();
    Document document = parseDocument(*text, path.string());
    Problems problems = std::move(document.problems);
    if (!problems.empty())
        return problems;

    ProblemTable table;
    for (const DocEntry& range : listOf(document.root, "ranges", problems).entries)
        table.m_ranges.push_back({textOf(range.value, "from", problems), textOf(range.value, "to", problems),
            textOf(range.value, "part", problems), exitCodeOf(range.value, kUsualExitCode, problems)});
    for (const DocEntry& entry : listOf(document.root, "problems", problems).entries) {
        ProblemEntry read{textOf(entry.value, "id", problems), textOf(entry.value, "title", problems),
            textOf(entry.value, "meaning", problems), textOf(entry.value, "fix", problems)};
        if (!table.m_entries.empty() && read.id <= table.m_entries.back().id)
            problems.push_back(wrongTable(fmt::format("{} is not above {}", read.id, table.m_entries.back().id), entry.value));
        if (const ProblemRange* range = table.rangeOf(read.id))
            read.exitCode = exitCodeOf(entry.value, range->exitCode, problems);
        else
            problems.push_back(wrongTable(fmt::format("{} is in no range", read.id), entry.value));
        table.m_entries.push_back(std::move(read));
    }
    if (const DocNode* retired = document.root.find("retired")) {
        for (const DocEntry& entry : retired->entries)
            table.m_retired.push_back(table.retiredOf(entry.value, problems));
    }
    if (!problems.empty())
        return problems;
    return table;
}

RetiredId ProblemTable::retiredOf(const DocNode& entry, Problems& problems) const
{
    RetiredId retired{textOf(entry, "id", problems), {}, {}};
    if (find(retired.id) != nullptr)
        problems.push_back(wrongTable(fmt::format("{} is retired and has an entry", retired.id), entry));
    if (entry.find("by") == nullptr) {
        retired.because = textOf(entry, "because", problems);
        return retired;
    }
    retired.replacedBy = textOf(entry, "by", problems);
    if (find(retired.replacedBy) == nullptr)
        problems.push_back(wrongTable(fmt::format("{}, which replaced {}, has no entry", retired.replacedBy, retired.id), entry));
    return retired;
}

const ProblemEntry* ProblemTable::find(std::string_view id) const
{
    return withId(m_entries, id);
}

const RetiredId* ProblemTable::findRetired(std::string_view id) const
{
    return withId(m_retired, id);
}

const ProblemRange* ProblemTable::rangeOf(std::string_view id) const
{
    const auto range
        = std::find_if(m_ranges.begin(), m_ranges.end(), [&](const ProblemRange& r) { return r.from <= id && id <= r.to; });
    return range == m_ranges.end() ? nullptr : &*range;
}

std::vector<std::string> ProblemTable::ids() const
{
    std::vector<std::string> ids;
    for (const ProblemEntry& entry : m_entries)
        ids.push_back(entry.id);
    return ids;
}

} // namespace meshwright
