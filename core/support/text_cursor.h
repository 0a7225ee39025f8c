// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace meshwright {

/// Reads a short text from left to right. White space before a token does not count.
class TextCursor {
public:
    /// `text` must outlive the cursor.
    explicit TextCursor(std::string_view text)
        : m_text(text)
    {
    }

    /// True when nothing but white space is left.
    bool atEnd();
    /// True when `token` comes next.
    bool peek(std::string_view token);
    /// True, and steps over it, when `token` comes next.
    bool take(std::string_view token);

    /// A decimal integer with an optional minus; nothing, and no step, when none comes next or it does not fit 64 bits.
    std::optional<std::int64_t> integer();
    /// Letters, digits and `_`; may be empty.
    std::string_view word();
    /// As `word`, with `-` and `.` too: the name of a mesh axis.
    std::string_view name();
    /// A name in single or double quotes, without them; nothing, and no step, when none comes next.
    std::optional<std::string> quoted();
    /// What stands before the bracket that closes the one that was just taken, which is stepped over too; brackets of all kinds nest,
    /// and those in double quotes do not count. Nothing, and no step, when it is not closed. Precondition: a bracket was just taken.
    std::optional<std::string_view> untilClosed();

    /// The text from here on.
    std::string_view rest() const { return m_text.substr(m_at); }
    std::size_t at() const { return m_at; }
    void goTo(std::size_t at) { m_at = at; }

    /// `"TEXT" is not a SUBJECT: expected WHAT, found ...`, placed in line 1 at the column (from 1) of the next token.
    Problem expected(const std::string& id, std::string_view subject, std::string_view what, std::string fix = {});
    /// Line 1 and the column of a position in the text.
    static Place placeAt(std::size_t at);

private:
    void skipSpace();
    std::string_view takeLetters(std::string_view others);

    std::string_view m_text;
    std::size_t m_at = 0;
};

} // namespace meshwright
