// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/log_text.h"

#include "core/support/escape.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace meshwright {

namespace {

bool isSpace(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

bool isDigit(char c)
{
    return c >= '0' && c <= '9';
}

/// The end of the terminal's control sequence that begins at `at` with ESC.
std::size_t endOfEscape(std::string_view text, std::size_t at)
{
    std::size_t end = at + 1;
    if (end < text.size() && text[end] == '[') {
        ++end;
        while (end < text.size() && (text[end] < '@' || text[end] > '~'))
            ++end;
    }
    return std::min(text.size(), end + 1);
}

/// A line without colours and control characters.
std::string plain(std::string_view line)
{
    std::string text;
    text.reserve(line.size());
    for (std::size_t at = 0; at < line.size();) {
        const char c = line[at];
        const std::size_t length = characterLength(line, at);
        const char next = at + 1 < line.size() ? line[at + 1] : '\0';
        if (c == '\033') {
            at = endOfEscape(line, at);
        } else if (c == '\\' && (next == 'n' || next == 't' || next == 'r')) { // as structured logs write the ends of lines
            text += ' ';
            at += 2;
        } else if (c == '\\' && (next == '"' || next == '\'')) {
            text += next;
            at += 2;
        } else if (length == 0) {
            text += '?';
            ++at;
        } else if (length > 1) {
            text.append(line.substr(at, length));
            at += length;
        } else {
            if (c >= ' ' && c != 0x7F)
                text += c;
            else if (isSpace(c))
                text += ' ';
            ++at;
        }
    }
    return text;
}

/// The end of digits and the given other characters from `at` on.
std::size_t skipDigits(std::string_view text, std::size_t at, std::string_view others)
{
    while (at < text.size() && (isDigit(text[at]) || others.find(text[at]) != std::string_view::npos))
        ++at;
    return at;
}

/// The length of a time at the start of a line: `2024-06-01T19:39:55.123Z`, `[2024-06-01 19:39:55,123]`, `12:03:04.5`.
std::size_t timeLength(std::string_view text)
{
    const std::size_t start = !text.empty() && text[0] == '[' ? 1 : 0;
    std::size_t end = skipDigits(text, start, "-/.:,");
    if (end - start == 10 && end < text.size() && (text[end] == 'T' || text[end] == ' '))
        end = skipDigits(text, end + 1, ":.,+");
    const std::string_view time = text.substr(start, end - start);
    if (time.size() < 8 || time.size() > 40 || std::count(time.begin(), time.end(), ':') < 2 || !isDigit(time[0]))
        return 0;
    if (end < text.size() && text[end] == 'Z')
        ++end;
    if (start == 1 && end < text.size() && text[end] == ']')
        ++end;
    return end;
}

/// The length of what a launcher puts before each line of a process: `[rank3]: `, `[1,0]<stderr>:`.
std::size_t rankLength(std::string_view text)
{
    if (text.starts_with("[rank") || text.starts_with("[default")) {
        const std::size_t digits = text.find_first_of("0123456789");
        const std::size_t end = digits < 12 ? skipDigits(text, digits, "") : std::string_view::npos;
        if (end < text.size() && text[end] == ']')
            return end + 1 < text.size() && text[end + 1] == ':' ? end + 2 : end + 1;
    }
    if (text.size() > 3 && text[0] == '[' && isDigit(text[1])) {
        const std::size_t end = skipDigits(text, 1, ",");
        for (const std::string_view stream : {"]<stderr>:", "]<stdout>:"}) {
            if (text.substr(end).starts_with(stream))
                return end + stream.size();
        }
    }
    return 0;
}

/// The length of what XLA and other C++ programs put before a message: `E0531 10:54:04.832741 2609008 spmd_partitioner.cc:569]`,
/// `: E external/xla/..cc:621]`, `[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616]`.
std::size_t sourceLength(std::string_view text)
{
    std::size_t at = text.starts_with(": ") ? 2 : text.starts_with('[') ? 1 : 0;
    if (at >= text.size() || std::string_view("IWEF").find(text[at]) == std::string_view::npos)
        return 0;
    const std::string_view head = text.substr(0, 200);
    const std::size_t bracket = head.find("] ");
    const std::size_t source = std::min(head.find(".cc:"), head.find(".cpp:"));
    return bracket != std::string_view::npos && source < bracket ? bracket + 2 : 0;
}

std::size_t skipSpaces(std::string_view text, std::size_t at)
{
    while (at < text.size() && isSpace(text[at]))
        ++at;
    return at;
}

/// The line without all that; whatever the order in which it comes.
std::string_view withoutPrefixes(std::string_view line)
{
    for (int round = 0; round < 4; ++round) {
        line.remove_prefix(skipSpaces(line, 0));
        const std::size_t length = std::max({timeLength(line), rankLength(line), sourceLength(line)});
        if (length == 0)
            break;
        line.remove_prefix(std::min(length, line.size()));
    }
    return line;
}

/// What JAX writes behind the message of every exception: a rule, and that its own frames were left out.
bool isFooter(std::string_view line)
{
    constexpr std::size_t kRule = 20;
    return line.starts_with("For simplicity, JAX has removed its internal frames")
        || (line.size() == kRule && line.find_first_not_of('-') == std::string_view::npos);
}

/// The size that a text without white space begins with: `2.00GiB`, `17179869184bytes`, `21.95G`.
std::optional<double> bytesIn(std::string_view text)
{
    constexpr std::size_t kLongest = 60;
    text = text.substr(0, kLongest);
    const std::size_t digits = skipDigits(text, 0, ".");
    const auto number = parseNumber(text.substr(0, digits));
    if (!number || *number < 0)
        return std::nullopt;
    constexpr std::string_view kUnits = "KMGTP";
    const std::size_t unit = digits < text.size()
        ? kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(text[digits]))))
        : std::string_view::npos;
    double bytes = *number;
    for (std::size_t i = 0; unit != std::string_view::npos && i <= unit; ++i)
        bytes *= 1024.0;
    return bytes;
}

} // namespace

LogText::LogText(std::string_view text)
{
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t newline = std::min(text.find('\n', begin), text.size());
        if (begin < text.size() || m_lines.empty())
            addLine(text.substr(begin, newline - begin));
        begin = newline + 1;
    }
    m_lower = lowerCase(m_squeezed);
}

void LogText::addLine(std::string_view line)
{
    const std::string cleaned = plain(line);
    std::string_view kept = withoutPrefixes(cleaned);
    if (isFooter(kept))
        kept = {};
    m_lines.push_back({m_squeezed.size(), m_cleaned.size()});
    m_cleaned += kept;
    m_cleaned += '\n';
    std::copy_if(kept.begin(), kept.end(), std::back_inserter(m_squeezed), [](char c) { return !isSpace(c); });
}

std::size_t LogText::indexAt(std::size_t at) const
{
    const auto after = std::upper_bound(
        m_lines.begin(), m_lines.end(), at, [](std::size_t position, const Line& line) { return position < line.squeezed; });
    return static_cast<std::size_t>(after - m_lines.begin()) - 1;
}

std::size_t LogText::lineAt(std::size_t at) const
{
    return indexAt(at) + 1;
}

std::size_t LogText::lineBegin(std::size_t at) const
{
    return m_lines[indexAt(at)].squeezed;
}

std::size_t LogText::lineEnd(std::size_t at) const
{
    const std::size_t next = indexAt(at) + 1;
    return next < m_lines.size() ? m_lines[next].squeezed : m_squeezed.size();
}

std::string LogText::spaced(std::size_t from, std::size_t to) const
{
    const Line& line = m_lines[indexAt(from)];
    std::size_t at = line.cleaned;
    std::size_t position = line.squeezed;
    std::string text;
    bool gap = false;
    for (; at < m_cleaned.size() && position < to; ++at) {
        if (isSpace(m_cleaned[at])) {
            gap = !text.empty();
            continue;
        }
        if (position++ < from)
            continue;
        if (gap)
            text += ' ';
        gap = false;
        text += m_cleaned[at];
    }
    return text;
}

std::optional<std::size_t> MessagePart::find(std::string_view words, std::size_t from) const
{
    const std::string_view lower = std::string_view(m_log->lower()).substr(m_begin, m_end - m_begin);
    const std::size_t at = lower.find(words, from);
    return at == std::string_view::npos ? std::nullopt : std::optional(at);
}

std::optional<std::size_t> MessagePart::after(std::string_view words, std::size_t from) const
{
    const auto at = find(words, from);
    return at ? std::optional(*at + words.size()) : std::nullopt;
}

std::optional<std::string_view> MessagePart::between(
    std::string_view before, std::string_view behind, std::size_t from, std::size_t most) const
{
    const auto start = after(before, from);
    if (!start)
        return std::nullopt;
    const auto stop = find(behind, *start);
    if (!stop || *stop - *start > most)
        return std::nullopt;
    return text().substr(*start, *stop - *start);
}

std::optional<std::string_view> MessagePart::bracketed(std::string_view before, std::size_t from) const
{
    const auto start = after(before, from);
    return start ? bracketedAt(text(), *start) : std::nullopt;
}

std::optional<std::int64_t> MessagePart::integer(std::string_view before, std::size_t from) const
{
    const auto start = after(before, from);
    if (!start)
        return std::nullopt;
    std::int64_t value = 0;
    const std::string_view rest = text().substr(*start);
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    return read.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::string_view MessagePart::name(std::string_view before, std::size_t from) const
{
    const auto start = after(before, from);
    if (!start)
        return {};
    const std::string_view rest = text().substr(*start);
    std::size_t end = 0;
    while (end < rest.size()
        && (std::isalnum(static_cast<unsigned char>(rest[end])) != 0 || rest[end] == '_' || rest[end] == '.' || rest[end] == '-'))
        ++end;
    return rest.substr(0, end);
}

std::optional<double> MessagePart::bytes(std::string_view before, std::size_t from) const
{
    const auto start = after(before, from);
    return start ? bytesIn(text().substr(*start)) : std::nullopt;
}

std::optional<double> MessagePart::bytesBefore(std::string_view behind, std::size_t from, std::size_t most) const
{
    const auto end = find(behind, from);
    if (!end || *end - from > most)
        return std::nullopt;
    constexpr std::size_t kLongestUnit = 5; // bytes
    const std::string_view before = text().substr(from, *end - from);
    const std::size_t last = before.find_last_of("0123456789");
    if (last == std::string_view::npos || before.size() - last - 1 > kLongestUnit)
        return std::nullopt;
    return bytesIn(before.substr(before.find_last_not_of("0123456789.", last) + 1));
}

std::string MessagePart::quote(std::size_t from, std::size_t most) const
{
    const std::size_t start = m_begin + std::min(from, m_end - m_begin);
    std::string text = m_log->spaced(start, std::min(m_end, start + most));
    std::size_t end = text.size();
    while (end > 0 && (static_cast<unsigned char>(text[end - 1]) & 0xC0) == 0x80)
        --end;
    if (end > 0 && characterLength(text, end - 1) == 0) // a character cut in two
        text.resize(end - 1);
    return start + most < m_end ? text + " ..." : text;
}

std::optional<std::string_view> bracketedAt(std::string_view text, std::size_t at)
{
    constexpr std::string_view kOpen = "([{";
    constexpr std::string_view kClose = ")]}";
    constexpr std::size_t kMost = 20000;
    if (at >= text.size() || kOpen.find(text[at]) == std::string_view::npos)
        return std::nullopt;
    std::string expected;
    char quote = '\0';
    const std::size_t end = std::min(text.size(), at + kMost);
    for (std::size_t i = at; i < end; ++i) {
        const char c = text[i];
        if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (const std::size_t open = kOpen.find(c); open != std::string_view::npos) {
            expected += kClose[open];
        } else if (kClose.find(c) != std::string_view::npos) {
            if (expected.back() != c)
                return std::nullopt;
            expected.pop_back();
            if (expected.empty())
                return text.substr(at, i + 1 - at);
        }
    }
    return std::nullopt;
}

} // namespace meshwright
