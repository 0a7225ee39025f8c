// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/text_cursor.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cctype>

namespace meshwright {

void TextCursor::skipSpace()
{
    while (m_at < m_text.size() && std::isspace(static_cast<unsigned char>(m_text[m_at])) != 0)
        ++m_at;
}

bool TextCursor::atEnd()
{
    skipSpace();
    return m_at == m_text.size();
}

bool TextCursor::peek(std::string_view token)
{
    skipSpace();
    return rest().starts_with(token);
}

bool TextCursor::take(std::string_view token)
{
    if (!peek(token))
        return false;
    m_at += token.size();
    return true;
}

std::optional<std::int64_t> TextCursor::integer()
{
    skipSpace();
    std::size_t end = m_at;
    if (end < m_text.size() && m_text[end] == '-')
        ++end;
    while (end < m_text.size() && std::isdigit(static_cast<unsigned char>(m_text[end])) != 0)
        ++end;
    const auto value = parseInteger(m_text.substr(m_at, end - m_at));
    if (value)
        m_at = end;
    return value;
}

std::string_view TextCursor::takeLetters(std::string_view others)
{
    skipSpace();
    const std::size_t start = m_at;
    while (m_at < m_text.size()
        && (std::isalnum(static_cast<unsigned char>(m_text[m_at])) != 0 || others.find(m_text[m_at]) != std::string_view::npos))
        ++m_at;
    return m_text.substr(start, m_at - start);
}

std::string_view TextCursor::word()
{
    return takeLetters("_");
}

std::string_view TextCursor::name()
{
    return takeLetters("_-.");
}

std::optional<std::string> TextCursor::quoted()
{
    if (!peek("'") && !peek("\""))
        return std::nullopt;
    const std::size_t end = m_text.find(m_text[m_at], m_at + 1);
    if (end == std::string_view::npos)
        return std::nullopt;
    std::string name(m_text.substr(m_at + 1, end - m_at - 1));
    m_at = end + 1;
    return name;
}

std::optional<std::string_view> TextCursor::untilClosed()
{
    const auto closing = [](char open) { return open == '(' ? ')' : open == '[' ? ']' : '}'; };
    assert(m_at > 0);
    std::string wanted(1, closing(m_text[m_at - 1]));
    for (std::size_t i = m_at; i < m_text.size(); ++i) {
        const char c = m_text[i];
        if (c == '"') {
            i = std::min(m_text.find('"', i + 1), m_text.size());
        } else if (c == '(' || c == '[' || c == '{') {
            wanted += closing(c);
        } else if (c == ')' || c == ']' || c == '}') {
            if (c != wanted.back())
                return std::nullopt;
            wanted.pop_back();
        }
        if (wanted.empty()) {
            const std::string_view inside = m_text.substr(m_at, i - m_at);
            m_at = i + 1;
            return inside;
        }
    }
    return std::nullopt;
}

Place TextCursor::placeAt(std::size_t at)
{
    return {{}, 1, static_cast<int>(at) + 1, {}};
}

Problem TextCursor::expected(const std::string& id, std::string_view subject, std::string_view what, std::string fix)
{
    skipSpace();
    const std::string found = m_at < m_text.size() ? fmt::format("\"{}\"", m_text.substr(m_at, 12)) : "the end";
    // A long text is cut: it is one line of a message.
    const std::string shown = m_text.size() > 100 ? std::string(m_text.substr(0, 97)) + "..." : std::string(m_text);
    return {
        id, fmt::format("\"{}\" is not a {}: expected {}, found {}", shown, subject, what, found), std::move(fix), placeAt(m_at)};
}

} // namespace meshwright
