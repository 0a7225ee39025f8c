// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace meshwright {

/// The number of bytes of the well-formed UTF-8 character at `at`; 0 when there is none.
std::size_t characterLength(std::string_view text, std::size_t at);

/// What becomes of ends of lines and tabs in `printable`.
enum class Lines : std::uint8_t {
    Escaped, ///< they become `\n` and `\t`: the text stays on its line
    Kept,
};

/// Text from anywhere as a terminal, a table or a page may show it: control characters become visible escapes (`\x1b`, `\u009b`), as do bytes
/// that are not UTF-8 and the marks that change the direction of what follows (`\u202e`). Everything else stays.
std::string printable(std::string_view text, Lines lines = Lines::Escaped);

/// As `printable` with lines kept, but our own colours stay: `ESC [ ... m` of digits and semicolons.
std::string printableInColour(std::string_view text);

/// A JSON text without control characters that a terminal obeys (DEL, U+0080 to U+009F) and without marks of direction, which can only stand
/// in its strings: each becomes `\u009b`.
std::string printableJson(std::string_view json);

/// A cell of a CSV table that says `text`: in quotes where it has to be. One that a spreadsheet would take for a formula
/// (it begins with `=`, `+`, `-` or `@`, and is not a number) begins with an apostrophe.
std::string csvCell(std::string_view text);

/// Text for Markdown: nothing in it is markup, and it stays on its line.
std::string markdownText(std::string_view text);

/// A code span of Markdown, whatever backticks are in the text; `inTable`: bars in it do not end the cell.
std::string markdownCode(std::string_view text, bool inTable = false);

/// A block of code of Markdown, with a newline at its end.
std::string markdownBlock(std::string_view text);

} // namespace meshwright
