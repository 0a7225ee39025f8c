// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/flow_specs.h"

#include <algorithm>
#include <optional>

namespace meshwright {

namespace {

bool startsSpec(std::string_view text)
{
    return text.starts_with("P(") || text.starts_with("PartitionSpec(");
}

/// The length of the spec at the start of `line`, up to the parenthesis that closes it; nothing when none does.
std::optional<std::size_t> specLength(std::string_view line)
{
    int depth = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '\'' || line[i] == '"') {
            i = line.find(line[i], i + 1);
            if (i == std::string_view::npos)
                return std::nullopt;
        } else if (line[i] == '(') {
            ++depth;
        } else if (line[i] == ')' && --depth == 0) {
            return i + 1;
        }
    }
    return std::nullopt;
}

bool isBlankOrReturn(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/// Walks through YAML just as far as is needed to know where a plain scalar begins inside brackets.
class Scanner {
public:
    explicit Scanner(std::string_view text)
        : m_text(text)
    {
    }

    QuotedSpecs scan()
    {
        while (m_at < m_text.size()) {
            const char c = m_text[m_at];
            if (c == '\n')
                newLine();
            else if (isBlankOrReturn(c))
                copy(1);
            else if (c == '#' && (m_at == m_lineStart || isBlankOrReturn(m_text[m_at - 1])))
                copy(lineRest().size());
            else if (m_tokenStart)
                token();
            else
                plain();
        }
        return std::move(m_result);
    }

private:
    std::string_view lineRest() const { return m_text.substr(m_at, m_text.find('\n', m_at) - m_at); }

    void copy(std::size_t count)
    {
        m_result.text.append(m_text.substr(m_at, count));
        m_at = std::min(m_text.size(), m_at + count);
    }

    void open()
    {
        if (m_depth++ == 0)
            m_bracketLine = m_line;
    }

    void newLine()
    {
        copy(1);
        ++m_line;
        m_lineStart = m_at;
        if (m_depth == 0)
            m_tokenStart = true;
        if (!m_blockScalar)
            return;
        // The lines of a block scalar are those that are blank or indented more than the line that began it.
        while (m_at < m_text.size()) {
            const std::string_view rest = lineRest();
            const std::size_t indent = std::min(rest.find_first_not_of(' '), rest.size());
            if (indent <= m_blockIndent && std::any_of(rest.begin(), rest.end(), [](char c) { return !isBlankOrReturn(c); }))
                break;
            copy(rest.size() + 1);
            ++m_line;
            m_lineStart = m_at;
        }
        m_blockScalar = false;
    }

    /// What begins where a value or key may begin.
    void token()
    {
        const char c = m_text[m_at];
        if (c == '\'' || c == '"') {
            quotedScalar(c);
        } else if (c == '[' || c == '{') {
            open();
            copy(1);
            return;
        } else if (c == ']' || c == '}' || c == ',') {
            plain();
            return;
        } else if ((c == '-' || c == '?') && m_depth == 0 && m_at + 1 < m_text.size() && isBlankOrReturn(m_text[m_at + 1])) {
            copy(1);
            return;
        } else if (m_depth == 0 && (c == '|' || c == '>')) {
            m_blockScalar = true;
            const std::string_view line = m_text.substr(m_lineStart);
            m_blockIndent = std::min(line.find_first_not_of(' '), line.size());
            copy(lineRest().size());
            return;
        } else if (m_depth > 0 && startsSpec(m_text.substr(m_at))) {
            spec();
        } else {
            m_tokenStart = false;
            plain();
            return;
        }
        m_tokenStart = false;
    }

    /// Inside a plain scalar, or at a mark after any scalar.
    void plain()
    {
        const char c = m_text[m_at];
        const bool last = m_at + 1 >= m_text.size();
        if (c == ':' && (last || isBlankOrReturn(m_text[m_at + 1]) || m_text[m_at + 1] == '\n' || m_depth > 0)) {
            m_tokenStart = true;
        } else if (m_depth > 0 && c == ',') {
            m_tokenStart = true;
        } else if (m_depth > 0 && (c == ']' || c == '}')) {
            --m_depth;
            m_tokenStart = false;
        } else if (m_depth > 0 && (c == '[' || c == '{')) {
            open();
            m_tokenStart = true;
        }
        copy(1);
    }

    void quotedScalar(char quote)
    {
        copy(1);
        while (m_at < m_text.size()) {
            const char c = m_text[m_at];
            if (c == '\n') {
                ++m_line;
                m_lineStart = m_at + 1;
            }
            if (quote == '"' && c == '\\') {
                copy(2);
            } else if (c == quote && quote == '\'' && m_text.substr(m_at, 2) == "''") {
                copy(2);
            } else {
                copy(1);
                if (c == quote)
                    return;
            }
        }
    }

    void spec()
    {
        constexpr std::size_t kLongestSpec = 500; // so that many beginnings without an end stay cheap
        std::string_view rest = m_text.substr(m_at, kLongestSpec);
        rest = rest.substr(0, rest.find('\n'));
        const auto length = specLength(rest);
        if (!length) {
            copy(1);
            return;
        }
        const std::string_view text = rest.substr(0, *length);
        const char quote = text.find('"') == std::string_view::npos ? '"' : '\'';
        const bool needsQuotes
            = text.find_first_of(",[]{}") != std::string_view::npos && text.find(quote) == std::string_view::npos;
        if (!needsQuotes) {
            copy(*length);
            return;
        }
        const int column = static_cast<int>(m_at - m_lineStart) + 1;
        m_insertedOnLine = !m_result.specs.empty() && m_result.specs.back().line == m_line ? m_insertedOnLine + 2 : 0;
        m_result.specs.push_back({m_line, column, std::string(text), column + m_insertedOnLine, m_bracketLine});
        m_result.text += quote;
        copy(*length);
        m_result.text += quote;
    }

    std::string_view m_text;
    std::size_t m_at = 0;
    std::size_t m_lineStart = 0;
    int m_line = 1;
    int m_depth = 0;
    int m_bracketLine = 0;
    int m_insertedOnLine = 0; ///< quotes before the last spec on its line
    bool m_tokenStart = true;
    bool m_blockScalar = false;
    std::size_t m_blockIndent = 0;
    QuotedSpecs m_result;
};

} // namespace

int QuotedSpecs::originalColumn(int line, int column) const
{
    const auto before
        = [](const UnquotedSpec& spec, std::pair<int, int> place) { return std::pair(spec.line, spec.quotedColumn) < place; };
    const auto first = std::lower_bound(specs.begin(), specs.end(), std::pair(line, 0), before);
    const auto last = std::lower_bound(first, specs.end(), std::pair(line, column), before);
    if (first == last)
        return column;
    const UnquotedSpec& nearest = *std::prev(last); // the last one whose opening quote is before the column
    const int closing = nearest.quotedColumn + 1 + static_cast<int>(nearest.text.size());
    return column - 2 * static_cast<int>(std::distance(first, last)) + (column > closing ? 0 : 1);
}

QuotedSpecs quoteSpecs(std::string_view text)
{
    return Scanner(text).scan();
}

bool isTornSpec(std::string_view scalar)
{
    return startsSpec(scalar) && std::count(scalar.begin(), scalar.end(), '(') > std::count(scalar.begin(), scalar.end(), ')');
}

} // namespace meshwright
