// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/pattern.h"

#include <regex>

namespace meshwright {

namespace {

Pattern::Match matchIn(const std::string& text, const std::smatch& found)
{
    Pattern::Match match;
    match.begin = static_cast<std::size_t>(found[0].first - text.begin());
    match.end = static_cast<std::size_t>(found[0].second - text.begin());
    for (const auto& group : found)
        match.groups.push_back(group.str());
    return match;
}

} // namespace

struct Pattern::Compiled {
    std::regex regex;
};

bool Pattern::isValid(const std::string& expression)
{
    try {
        static_cast<void>(std::regex(expression));
        return true;
    } catch (const std::regex_error&) {
        return false;
    }
}

Pattern::Pattern(const std::string& expression, Letters letters)
    : m_compiled(std::make_shared<Compiled>(std::regex(
        expression, letters == Letters::InEitherCase ? std::regex::ECMAScript | std::regex::icase : std::regex::ECMAScript)))
{
}

std::optional<Pattern::Match> Pattern::matchOf(const std::string& text) const
{
    std::smatch found;
    if (text.size() > kLongest || !std::regex_match(text, found, m_compiled->regex))
        return std::nullopt;
    return matchIn(text, found);
}

std::optional<Pattern::Match> Pattern::firstIn(const std::string& text) const
{
    std::smatch found;
    if (text.size() > kLongest || !std::regex_search(text, found, m_compiled->regex))
        return std::nullopt;
    return matchIn(text, found);
}

std::vector<Pattern::Match> Pattern::allIn(const std::string& text) const
{
    std::vector<Match> matches;
    if (text.size() > kLongest)
        return matches;
    for (std::sregex_iterator at(text.begin(), text.end(), m_compiled->regex), end; at != end; ++at)
        matches.push_back(matchIn(text, *at));
    return matches;
}

std::string Pattern::replacedIn(const std::string& text, const std::string& by) const
{
    return text.size() > kLongest ? text : std::regex_replace(text, m_compiled->regex, by);
}

} // namespace meshwright
