// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/pages/printed.h"

#include "core/support/text.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace meshwright::pages {

namespace {

/// The words of a text: numbers, and what is between them.
struct Words {
    std::string plain; ///< with a mark in place of each number
    std::vector<double> numbers;
};

/// Without a terminal's colours: ESC [ ... m.
std::string withoutColours(const std::string& text)
{
    std::string plain;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const std::size_t end
            = text.compare(at, 2, "\x1b[") == 0 ? text.find_first_not_of("0123456789;", at + 2) : std::string::npos;
        if (end != std::string::npos && text[end] == 'm')
            at = end;
        else
            plain += text[at];
    }
    return plain;
}

/// Without what IPython and the runner call a cell in places of its source: <ipython-input-4-f510dde58e22>, <cell 2>. Of the two, neither says what the other
/// counts.
std::string withoutCellNames(std::string text)
{
    for (const std::string_view start : {"<ipython-input-", "<cell "}) {
        for (std::size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
            const std::size_t end = text.find_first_not_of("0123456789abcdef-", at + start.size());
            if (end != std::string::npos && text[end] == '>')
                text.replace(at, end - at, "<cell");
        }
    }
    return text;
}

/// Without the addresses of objects: <function f at 0x7f3c5c0>.
std::string withoutAddresses(std::string text)
{
    for (std::size_t at = text.find(" at 0x"); at != std::string::npos; at = text.find(" at 0x", at + 1)) {
        const std::size_t end = text.find_first_not_of("0123456789abcdef", at + 6);
        if (end != std::string::npos && text[end] == '>')
            text.erase(at + 6, end - at - 6);
    }
    return text;
}

/// Whether %timeit or %time printed a line: times differ with each run.
bool isMeasurement(const std::string& line)
{
    return line.find(" per loop") != std::string::npos || line.starts_with("CPU times: ") || line.starts_with("Wall time: ");
}

std::string withoutTrailing(const std::string& text)
{
    std::vector<std::string> lines = split(withoutAddresses(withoutCellNames(withoutColours(text))), '\n');
    std::erase_if(lines, isMeasurement);
    for (std::string& line : lines)
        line.resize(line.find_last_not_of(" \t\r") + 1);
    while (!lines.empty() && lines.back().empty())
        lines.pop_back();
    return join(lines, "\n");
}

/// Without the lines of drawings, which colours may stand for, without the kinds of a mesh's axes where all are Auto, and with today's names of arrays:
/// versions of JAX print them otherwise.
std::string withoutForms(const std::string& text)
{
    constexpr std::string_view kOlderArray = "DeviceArray(";
    constexpr std::string_view kOlderModule = "jaxlib.xla_extension.";
    constexpr std::string_view kKinds = ", axis_types=(";
    const auto isAt = [&](std::size_t at, std::string_view words) { return text.compare(at, words.size(), words) == 0; };
    std::string plain;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const std::size_t end = isAt(at, kKinds) ? text.find_first_not_of("Auto, ", at + kKinds.size()) : std::string::npos;
        if (isAt(at, "\xe2\x94") || isAt(at, "\xe2\x95")) { // U+2500 to U+257F
            at += 2;
        } else if (isAt(at, kOlderArray)) {
            at += 5;
        } else if (isAt(at, kOlderModule)) {
            plain += "jaxlib._jax.";
            at += kOlderModule.size() - 1;
        } else if (end != std::string::npos && text[end] == ')') {
            at = end;
        } else {
            plain += text[at];
        }
    }
    return plain;
}

Words wordsOf(const std::string& shown)
{
    const std::string text = withoutForms(shown);
    Words words;
    for (std::size_t at = 0; at < text.size();) {
        const auto isDigit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
        const bool isSigned
            = text[at] == '-' && (isDigit(at + 1) || (at + 1 < text.size() && text[at + 1] == '.' && isDigit(at + 2)));
        const bool isInWord = at > 0 && (std::isalpha(static_cast<unsigned char>(text[at - 1])) != 0 || text[at - 1] == '_');
        if (isInWord || !(isDigit(at) || isSigned || (text[at] == '.' && isDigit(at + 1)))) {
            if (text[at] != ' ' && text[at] != '\n') // columns shift when a number gets longer
                words.plain += text[at];
            ++at;
            continue;
        }
        std::size_t end = isSigned ? at + 1 : at;
        while (isDigit(end))
            ++end;
        if (end < text.size() && text[end] == '.')
            ++end;
        while (isDigit(end))
            ++end;
        const std::size_t sign = end + 1 < text.size() && (text[end + 1] == '-' || text[end + 1] == '+') ? 1 : 0;
        if (end < text.size() && (text[end] == 'e' || text[end] == 'E') && isDigit(end + 1 + sign)) {
            end += 1 + sign;
            while (isDigit(end))
                ++end;
        }
        std::string number = text.substr(at, end - at);
        if (number.ends_with('.'))
            number += '0';
        words.numbers.push_back(std::strtod(number.c_str(), nullptr));
        words.plain += '\x01';
        at = end;
    }
    return words;
}

} // namespace

const char* likenessName(Likeness likeness)
{
    return likeness == Likeness::Equal ? "equal" : likeness == Likeness::Close ? "close" : "different";
}

Likeness comparePrinted(const std::string& here, const std::string& page)
{
    const std::string mine = withoutTrailing(here);
    const std::string theirs = withoutTrailing(page);
    if (mine == theirs)
        return Likeness::Equal;
    const Words a = wordsOf(mine);
    const Words b = wordsOf(theirs);
    const auto isClose
        = [](double x, double y) { return std::abs(x - y) <= kCloseRelative * std::max(std::abs(x), std::abs(y)); };
    const bool isAlike = a.plain == b.plain && a.numbers.size() == b.numbers.size()
        && std::equal(a.numbers.begin(), a.numbers.end(), b.numbers.begin(), isClose);
    return isAlike ? Likeness::Close : Likeness::Different;
}

} // namespace meshwright::pages
