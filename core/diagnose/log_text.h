// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// The text of a log without what terminals and launchers put around messages: colours, carriage returns, the time, the rank, the source
/// line at the start of a line; `\n` and `\"` as structured logs write them. Bytes that are not UTF-8 become `?`.
///
/// Positions count the characters that are not white space: a message that a terminal broke, even inside a word, reads as one that it did not.
class LogText {
public:
    explicit LogText(std::string_view text);

    /// All characters that are not white space.
    const std::string& squeezed() const { return m_squeezed; }
    /// The same in small letters.
    const std::string& lower() const { return m_lower; }

    std::size_t lineCount() const { return m_lines.size(); }
    /// The line, from 1, that a position lies in.
    std::size_t lineAt(std::size_t at) const;
    /// Where the line of a position begins, and where the one after it does.
    std::size_t lineBegin(std::size_t at) const;
    std::size_t lineEnd(std::size_t at) const;
    /// The text between two positions with its spaces, line ends as spaces.
    std::string spaced(std::size_t from, std::size_t to) const;

private:
    struct Line {
        std::size_t squeezed = 0; ///< where it begins in m_squeezed
        std::size_t cleaned = 0; ///< where it begins in m_cleaned
    };
    void addLine(std::string_view line);
    std::size_t indexAt(std::size_t at) const;

    std::string m_cleaned; ///< lines ended by newlines
    std::string m_squeezed;
    std::string m_lower;
    std::vector<Line> m_lines;
};

/// A part of a log in which one message is looked for. Words to look for are written without white space and in small letters.
class MessagePart {
public:
    MessagePart(const LogText& log, std::size_t begin, std::size_t end)
        : m_log(&log)
        , m_begin(begin)
        , m_end(end)
    {
    }

    std::size_t begin() const { return m_begin; }
    std::size_t end() const { return m_end; }
    std::string_view text() const { return std::string_view(m_log->squeezed()).substr(m_begin, m_end - m_begin); }
    const LogText& log() const { return *m_log; }

    /// Where `words` begin, from `from` on (positions in this part).
    std::optional<std::size_t> find(std::string_view words, std::size_t from = 0) const;
    bool has(std::string_view words) const { return find(words).has_value(); }
    /// Where what follows `words` begins.
    std::optional<std::size_t> after(std::string_view words, std::size_t from = 0) const;

    /// What stands between two groups of words; nothing when one is missing or more than `most` characters lie between them.
    std::optional<std::string_view> between(
        std::string_view before, std::string_view behind, std::size_t from = 0, std::size_t most = 4000) const;
    /// The bracketed text that begins right behind the words, brackets included: `{devices=[2,1]<=[2]}`.
    std::optional<std::string_view> bracketed(std::string_view before, std::size_t from = 0) const;
    /// The integer right behind the words.
    std::optional<std::int64_t> integer(std::string_view before, std::size_t from = 0) const;
    /// The letters, digits, `_`, `.` and `-` right behind the words.
    std::string_view name(std::string_view before, std::size_t from = 0) const;
    /// Bytes of a size right behind the words: `2.00GiB`, `17179869184bytes`, `21.95G`. Units of 1024.
    std::optional<double> bytes(std::string_view before, std::size_t from = 0) const;
    /// Bytes of a size that ends right before the words, which begin within `most` characters of `from`.
    std::optional<double> bytesBefore(std::string_view behind, std::size_t from, std::size_t most) const;

    /// The text with its spaces, from the words on, cut off after `most` characters.
    std::string quote(std::size_t from, std::size_t most) const;

private:
    const LogText* m_log;
    std::size_t m_begin;
    std::size_t m_end;
};

/// The bracketed text that begins at `at`, brackets included; brackets of all kinds nest, quotes protect. Nothing when none begins there, or
/// it does not end within 20000 characters.
std::optional<std::string_view> bracketedAt(std::string_view text, std::size_t at);

} // namespace meshwright
