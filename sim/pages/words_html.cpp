// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/pages/words_html.h"

#include "core/support/escape.h"
#include "core/support/pattern.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace meshwright::pages {

namespace {

/// A line's marks as HTML. What stands between backticks is not looked into, and may stand in what is bold or a link.
std::string marked(const std::string& text)
{
    constexpr char kCode = '\x01'; // in place of code: no character of printable text
    const std::vector<std::string> parts = split(htmlEscaped(text), '`');
    std::string line;
    std::vector<std::string> codes;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i % 2 == 1 && i + 1 < parts.size()) {
            line += kCode;
            codes.push_back("<code>" + parts[i] + "</code>");
        } else {
            line += (i % 2 == 1 ? "`" : "") + parts[i];
        }
    }
    static const Pattern kBold(R"(\*\*([^*]+)\*\*)");
    static const Pattern kEmphasis(R"(\*([^*\s][^*]*)\*)");
    static const Pattern kLink(R"(\[([^\]]+)\]\((https?://[^)\s\x01]+)\))");
    line = kLink.replacedIn(line, R"(<a href="$2">$1</a>)");
    line = kBold.replacedIn(line, "<b>$1</b>");
    line = kEmphasis.replacedIn(line, "<em>$1</em>");
    std::string html;
    std::size_t code = 0;
    for (const char c : line)
        html += c == kCode ? codes[code++] : std::string(1, c);
    return html;
}

std::string rowHtml(const std::string& line, const char* cell)
{
    std::string_view row = trimmed(line);
    row.remove_prefix(row.starts_with('|') ? 1 : 0);
    row.remove_suffix(row.ends_with('|') ? 1 : 0);
    std::string html;
    for (const std::string& part : split(std::string(row), '|'))
        html += fmt::format("<{0}>{1}</{0}>", cell, marked(std::string(trimmed(part))));
    return "<tr>" + html + "</tr>\n";
}

/// The length of a list item's mark, "- " or "12. "; 0: the line begins none.
std::size_t itemMark(std::string_view line)
{
    if (line.starts_with("- ") || line.starts_with("* "))
        return 2;
    const std::size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
    return digits > 0 && line.substr(digits).starts_with(". ") ? digits + 2 : 0;
}

} // namespace

std::string htmlEscaped(const std::string& text)
{
    std::string made;
    for (const char c : printable(text, Lines::Kept)) {
        switch (c) {
        case '&':
            made += "&amp;";
            break;
        case '<':
            made += "&lt;";
            break;
        case '>':
            made += "&gt;";
            break;
        case '"':
            made += "&quot;";
            break;
        default:
            made += c;
        }
    }
    return made;
}

std::string base64(const std::string& bytes)
{
    constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t three = 0;
        for (std::size_t k = 0; k < 3; ++k)
            three = three << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
        for (std::size_t k = 0; k < 4; ++k)
            text += i + k > bytes.size() ? '=' : kDigits[three >> (18 - 6 * k) & 63U];
    }
    return text;
}

std::string wordsHtml(const std::string& markdown)
{
    std::string html;
    std::string paragraph;
    std::string list; ///< items so far, the last one open
    const auto close = [&] {
        if (!paragraph.empty())
            html += "<p>" + marked(paragraph) + "</p>\n";
        if (!list.empty())
            html += "<ul>\n" + list + "</ul>\n";
        paragraph.clear();
        list.clear();
    };
    const std::vector<std::string> lines = split(markdown, '\n');

    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string line(trimmed(lines[i]));
        const std::size_t hashes = std::min(line.find_first_not_of('#'), line.size());
        if (line.starts_with("```") || line.starts_with("~~~")) {
            close();
            std::string code;
            for (++i; i < lines.size() && !trimmed(lines[i]).starts_with(line.substr(0, 3)); ++i)
                code += lines[i] + "\n";
            html += "<pre>" + htmlEscaped(code) + "</pre>\n";
        } else if (line.empty() || line.starts_with("+++")) { // MyST's mark between blocks, with data that is nobody's to read
            close();
        } else if (hashes > 0 && hashes <= 6 && line[std::min(hashes, line.size() - 1)] == ' ') {
            close();
            html += fmt::format("<h{0}>{1}</h{0}>\n", std::min<std::size_t>(hashes + 1, 6), marked(line.substr(hashes + 1)));
        } else if (line.starts_with('|') && i + 1 < lines.size() && trimmed(lines[i + 1]).starts_with("|-")) {
            close();
            html += "<table>\n" + rowHtml(line, "th");
            for (i += 2; i < lines.size() && trimmed(lines[i]).starts_with('|'); ++i)
                html += rowHtml(lines[i], "td");
            --i;
            html += "</table>\n";
        } else if (const std::size_t mark = itemMark(line); mark > 0) {
            if (!paragraph.empty())
                close();
            list += "<li>" + marked(line.substr(mark)) + "</li>\n";
        } else if (!list.empty()) { // the item goes on
            list.insert(list.size() - std::string("</li>\n").size(), " " + marked(line));
        } else {
            paragraph += (paragraph.empty() ? "" : "\n") + line;
        }
    }
    close();
    return html;
}

} // namespace meshwright::pages
