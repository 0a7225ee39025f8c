// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/lexer.h"

#include <algorithm>
#include <cctype>

namespace meshwright {

namespace {

bool isDigit(char c)
{
    return c >= '0' && c <= '9';
}

bool isNameStart(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

} // namespace

void Lexer::skipBlank()
{
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (m_position == 0 && m_text.starts_with(kByteOrderMark))
        m_position = kByteOrderMark.size();
    while (m_position < m_text.size()) {
        const char c = m_text[m_position];
        if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
            ++m_position;
        } else if (c == '/' && m_position + 1 < m_text.size() && m_text[m_position + 1] == '/') {
            m_position = std::min(m_text.find('\n', m_position), m_text.size());
        } else {
            return;
        }
    }
}

char Lexer::peek()
{
    skipBlank();
    return m_position < m_text.size() ? m_text[m_position] : '\0';
}

Token Lexer::token(TokenKind kind, std::size_t start, std::size_t skipped) const
{
    return {kind, m_text.substr(start + skipped, m_position - start - skipped), start};
}

std::size_t Lexer::endOfName(std::size_t from, std::string_view extra) const
{
    while (from < m_text.size()
        && (isNameStart(m_text[from]) || isDigit(m_text[from]) || extra.find(m_text[from]) != std::string_view::npos))
        ++from;
    return from;
}

Token Lexer::number(std::size_t start)
{
    m_position = start + (m_text[start] == '-' ? 1 : 0);
    const auto skipDigits = [&] {
        while (m_position < m_text.size() && isDigit(m_text[m_position]))
            ++m_position;
    };
    if (m_text[m_position] == '0' && m_position + 2 < m_text.size() && m_text[m_position + 1] == 'x'
        && std::isxdigit(static_cast<unsigned char>(m_text[m_position + 2])) != 0) {
        m_position += 2;
        while (m_position < m_text.size() && std::isxdigit(static_cast<unsigned char>(m_text[m_position])) != 0)
            ++m_position;
        return token(TokenKind::Integer, start);
    }
    skipDigits();
    if (m_position >= m_text.size() || m_text[m_position] != '.')
        return token(TokenKind::Integer, start);
    ++m_position;
    skipDigits();
    if (m_position < m_text.size() && (m_text[m_position] == 'e' || m_text[m_position] == 'E')) {
        std::size_t digits = m_position + 1;
        if (digits < m_text.size() && (m_text[digits] == '+' || m_text[digits] == '-'))
            ++digits;
        if (digits < m_text.size() && isDigit(m_text[digits])) {
            m_position = digits;
            skipDigits();
        }
    }
    return token(TokenKind::Float, start);
}

Token Lexer::string(TokenKind kind, std::size_t start, std::size_t quote)
{
    m_position = quote + 1;
    while (m_position < m_text.size()) {
        const std::size_t stop = m_text.find_first_of("\"\\\n", m_position);
        if (stop == std::string_view::npos || m_text[stop] == '\n') {
            m_position = std::min(stop, m_text.size());
            break;
        }
        if (m_text[stop] == '"') {
            m_position = stop + 1;
            return token(kind, start, quote - start);
        }
        m_position = std::min(stop + 2, m_text.size());
    }
    return token(TokenKind::Bad, start);
}

Token Lexer::named(TokenKind kind, std::size_t start)
{
    if (kind == TokenKind::Symbol && start + 1 < m_text.size() && m_text[start + 1] == '"')
        return string(kind, start, start + 1);
    m_position = endOfName(start + 1, kind == TokenKind::Hash || kind == TokenKind::Type ? "$." : "$.-");
    // `%0->` does not end in a dash.
    if (m_position < m_text.size() && m_text[m_position] == '>' && m_text[m_position - 1] == '-')
        --m_position;
    return token(m_position > start + 1 ? kind : TokenKind::Bad, start, 1);
}

Token Lexer::next()
{
    skipBlank();
    const std::size_t start = m_position;
    if (start >= m_text.size())
        return {TokenKind::End, {}, m_text.size()};
    const char c = m_text[start];
    const char after = start + 1 < m_text.size() ? m_text[start + 1] : '\0';
    if (isNameStart(c)) {
        m_position = endOfName(start, "$.");
        return token(TokenKind::Word, start);
    }
    if (isDigit(c) || (c == '-' && isDigit(after)))
        return number(start);
    switch (c) {
    case '%':
        return named(TokenKind::Value, start);
    case '@':
        return named(TokenKind::Symbol, start);
    case '#':
        return named(TokenKind::Hash, start);
    case '!':
        return named(TokenKind::Type, start);
    case '^':
        return named(TokenKind::Label, start);
    case '"':
        return string(TokenKind::String, start, start);
    default:
        break;
    }
    if (c == '-' && after == '>') {
        m_position += 2;
        return token(TokenKind::Arrow, start);
    }
    ++m_position;
    constexpr std::string_view kPunctuation = "(){}[]<>,:=?*+-/|";
    return token(kPunctuation.find(c) != std::string_view::npos ? TokenKind::Punctuation : TokenKind::Bad, start);
}

std::string_view tokenName(const Token& token)
{
    constexpr std::size_t kLongest = 40;
    return token.kind == TokenKind::End ? std::string_view("the end of the text") : token.text.substr(0, kLongest);
}

} // namespace meshwright
