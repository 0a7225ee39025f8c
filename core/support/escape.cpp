// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/escape.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

unsigned byteAt(std::string_view text, std::size_t at)
{
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
}

/// The code point of the character of `length` bytes at `at`.
std::uint32_t codePoint(std::string_view text, std::size_t at, std::size_t length)
{
    std::uint32_t code = length == 1 ? byteAt(text, at) : byteAt(text, at) & (0x7FU >> length);
    for (std::size_t i = 1; i < length; ++i)
        code = code << 6U | (byteAt(text, at + i) & 0x3FU);
    return code;
}

/// Characters that nobody sees and that change how others are shown: controls, separators of lines, marks of direction.
bool isHiddenControl(std::uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x061C || code == 0x200E || code == 0x200F
        || (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

std::string escaped(std::uint32_t code)
{
    if (code == '\n')
        return "\\n";
    if (code == '\t')
        return "\\t";
    if (code == '\r')
        return "\\r";
    return code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
}

/// The length of one of our colours at `at`: `ESC [`, digits and semicolons, `m`; 0 when there is none.
std::size_t colourLength(std::string_view text, std::size_t at)
{
    if (!text.substr(at).starts_with("\033["))
        return 0;
    const std::size_t end = text.find_first_not_of("0123456789;", at + 2);
    return end != std::string_view::npos && text[end] == 'm' ? end + 1 - at : 0;
}

std::string printableWith(std::string_view text, Lines lines, bool keepsColours)
{
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        if (const std::size_t colour = keepsColours ? colourLength(text, at) : 0; colour > 0) {
            out += text.substr(at, colour);
            at += colour;
            continue;
        }
        const std::size_t length = characterLength(text, at);
        const std::uint32_t code = length > 0 ? codePoint(text, at, length) : 0;
        const bool isEnd = code == '\n' || (code == '\r' && text.substr(at).starts_with("\r\n"));
        const bool isKept = lines == Lines::Kept && (isEnd || code == '\t') && length > 0;
        if (length == 0)
            out += fmt::format("\\x{:02x}", byteAt(text, at));
        else if (isHiddenControl(code) && !isKept)
            out += escaped(code);
        else
            out += text.substr(at, length);
        at += std::max<std::size_t>(1, length);
    }
    return out;
}

} // namespace

std::size_t characterLength(std::string_view text, std::size_t at)
{
    const auto follows = [&](std::size_t i) { return (byteAt(text, i) & 0xC0U) == 0x80U; };
    const unsigned first = byteAt(text, at);
    const unsigned second = byteAt(text, at + 1);
    if (first < 0x80U)
        return 1;
    if (first >= 0xC2U && first < 0xE0U)
        return follows(at + 1) ? 2 : 0;
    if (first >= 0xE0U && first < 0xF0U) {
        const bool valid = (first != 0xE0U || second >= 0xA0U) && (first != 0xEDU || second < 0xA0U);
        return valid && follows(at + 1) && follows(at + 2) ? 3 : 0;
    }
    if (first >= 0xF0U && first < 0xF5U) {
        const bool valid = (first != 0xF0U || second >= 0x90U) && (first != 0xF4U || second < 0x90U);
        return valid && follows(at + 1) && follows(at + 2) && follows(at + 3) ? 4 : 0;
    }
    return 0;
}

std::string printable(std::string_view text, Lines lines)
{
    return printableWith(text, lines, false);
}

std::string printableInColour(std::string_view text)
{
    return printableWith(text, Lines::Kept, true);
}

std::string printableJson(std::string_view json)
{
    std::string out;
    out.reserve(json.size());
    for (std::size_t at = 0; at < json.size();) {
        const std::size_t length = characterLength(json, at);
        const std::uint32_t code = length > 0 ? codePoint(json, at, length) : 0xFFFD;
        if (code >= 0x7F && (length == 0 || isHiddenControl(code)))
            out += fmt::format("\\u{:04x}", code);
        else
            out += json.substr(at, length);
        at += std::max<std::size_t>(1, length);
    }
    return out;
}

std::string csvCell(std::string_view text)
{
    std::string cell = printable(text, Lines::Kept);
    const std::string_view unsignedPart = std::string_view(cell).substr(cell.starts_with('+') ? 1 : 0);
    if (cell.find_first_of("=+-@\t") == 0 && !parseNumber(unsignedPart))
        cell.insert(0, 1, '\'');
    if (cell.find_first_of(",\"\n\t") == std::string::npos)
        return cell;
    std::string quoted = "\"";
    for (const char c : cell)
        quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + "\"";
}

std::string markdownText(std::string_view text)
{
    constexpr std::string_view kMarkup = "\\`*_{}[]<>#|~$";
    std::string line(text);
    std::replace(line.begin(), line.end(), '\n', ' ');
    std::string out;
    for (std::size_t at = 0; at < line.size();) {
        const std::size_t length = std::max<std::size_t>(1, characterLength(line, at));
        const std::string shown = printable(std::string_view(line).substr(at, length));
        // What `printable` escapes needs its own backslash kept.
        if (shown.size() > length || kMarkup.find(shown.front()) != std::string_view::npos)
            out += '\\';
        out += shown;
        at += length;
    }
    return out;
}

std::string markdownCode(std::string_view text, bool inTable)
{
    std::string shown = printable(text);
    if (shown.empty())
        return shown;
    std::size_t longest = 0;
    std::size_t run = 0;
    for (const char c : shown) {
        run = c == '`' ? run + 1 : 0;
        longest = std::max(longest, run);
    }
    // A table is split into cells before code is seen.
    for (std::size_t at = inTable ? shown.find('|') : std::string::npos; at != std::string::npos; at = shown.find('|', at + 2))
        shown.insert(at, 1, '\\');
    const std::string fence(longest + 1, '`');
    const char* space = longest > 0 ? " " : "";
    return fence + space + shown + space + fence;
}

std::string markdownBlock(std::string_view text)
{
    const std::string shown = printable(text, Lines::Kept);
    std::string fence = "```";
    while (shown.find(fence) != std::string::npos)
        fence += '`';
    return fmt::format("{}\n{}{}{}\n", fence, shown, shown.ends_with('\n') ? "" : "\n", fence);
}

} // namespace meshwright
