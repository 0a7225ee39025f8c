// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/report.h"

#include <algorithm>
#include <iterator>

namespace meshwright {

TextLines::TextLines(std::string_view text, std::string file)
    : m_file(std::move(file))
    , m_starts{0}
{
    for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
        m_starts.push_back(at + 1);
}

std::vector<Place> TextLines::placesOf(const std::vector<std::size_t>& offsets) const
{
    std::vector<Place> places;
    for (const std::size_t offset : offsets) {
        const auto line = std::prev(std::upper_bound(m_starts.begin(), m_starts.end(), offset));
        places.push_back({m_file, static_cast<int>(line - m_starts.begin()) + 1, static_cast<int>(offset - *line) + 1, {}});
    }
    return places;
}

Place TextProblems::placeOf(std::size_t offset) const
{
    const std::string_view before = m_text.substr(0, std::min(offset, m_text.size()));
    const auto lines = std::count(before.begin(), before.end(), '\n');
    const std::size_t lineStart = before.rfind('\n') + 1; // npos + 1 is 0
    return {m_file, static_cast<int>(lines) + 1, static_cast<int>(before.size() - lineStart) + 1, {}};
}

bool TextProblems::report(const char* id, std::size_t offset, std::string message, std::string fix)
{
    if (!full())
        m_problems.push_back({id, std::move(message), std::move(fix), placeOf(offset)});
    return false;
}

bool TextProblems::report(Problems problems, std::size_t offset)
{
    for (Problem& problem : problems) {
        problem.place = placeOf(offset);
        if (!full())
            m_problems.push_back(std::move(problem));
    }
    return false;
}

void TextProblems::warn(const char* id, std::size_t offset, std::string message, std::string fix)
{
    if (m_warnings.size() < kMost)
        m_warnings.push_back({id, std::move(message), std::move(fix), placeOf(offset), Severity::Warning});
}

namespace {

Problems inOrder(Problems problems)
{
    std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
        return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
    });
    return problems;
}

} // namespace

Problems TextProblems::take()
{
    return inOrder(std::move(m_problems));
}

Problems TextProblems::takeWarnings()
{
    return inOrder(std::move(m_warnings));
}

} // namespace meshwright
