// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/spec_reader.h"

#include "core/support/text_cursor.h"

#include <array>

namespace meshwright {

namespace {

constexpr std::array kReduceKinds
    = {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Product, ReduceKind::And, ReduceKind::Or};

} // namespace

std::optional<ReduceKind> reduceKindOf(std::string_view name)
{
    for (const ReduceKind kind : kReduceKinds) {
        if (name == reduceKindName(kind))
            return kind;
    }
    return std::nullopt;
}

namespace {

/// Reads the arguments of a PartitionSpec. A function that yields nothing has left a problem.
class SpecReader {
public:
    explicit SpecReader(std::string_view text)
        : m_cursor(text)
    {
    }

    Result<SpecText> read()
    {
        if (!readAll())
            return m_problem;
        return std::move(m_text);
    }

private:
    bool fail(const char* wanted)
    {
        m_problem = m_cursor.expected("MW1105", "PartitionSpec", wanted,
            "write P('data', None): one entry for each dimension, each an axis, a tuple of axes or None");
        return false;
    }

    bool readAll()
    {
        for (const std::string_view prefix : {"jax.sharding.PartitionSpec", "jax.P", "PartitionSpec", "P"}) {
            if (m_cursor.take(prefix))
                break;
        }
        const auto close = openList();
        if (!close)
            return fail("\"P(\", \"(\" or \"[\"");
        while (!m_cursor.take(*close)) {
            const std::size_t begin = here();
            const auto keyword = readKeyword(m_text.spec);
            if (!keyword)
                return false;
            if (!*keyword) {
                m_text.spec.dims.emplace_back();
                m_text.axes.emplace_back();
                if (!readEntry(m_text.spec.dims.back(), m_text.axes.back()))
                    return false;
                m_text.entries.push_back({begin, m_cursor.at() - begin});
            }
            if (!m_cursor.take(",") && !m_cursor.peek(*close))
                return fail(*close == std::string_view(")") ? "\",\" or \")\"" : "\",\" or \"]\"");
        }
        return m_cursor.atEnd() || fail("the end of the spec");
    }

    /// True after a keyword, false when none comes next, nothing after a problem.
    std::optional<bool> readKeyword(JaxSpec& spec)
    {
        const std::size_t at = m_cursor.at();
        const std::string_view word = m_cursor.word();
        if ((word != "unreduced" && word != "reduced" && word != "unreduced_kind") || !m_cursor.take("=")) {
            m_cursor.goTo(at);
            return false;
        }
        if (word == "unreduced_kind") {
            const auto quoted = m_cursor.quoted();
            const auto kind = reduceKindOf(quoted ? *quoted : std::string(m_cursor.word()));
            if (!kind) {
                fail("sum, max, min, product, and or or");
                return std::nullopt;
            }
            spec.unreducedKind = *kind;
            return true;
        }
        auto& axes = word == "unreduced" ? spec.unreduced : spec.reduced;
        m_cursor.take("frozenset");
        const bool call = m_cursor.take("(");
        if (!m_cursor.take("{")) {
            fail("\"{\"");
            return std::nullopt;
        }
        while (!m_cursor.take("}")) {
            auto name = readName();
            if (!name)
                return std::nullopt;
            if (name->empty()) {
                fail("an axis name (a set of axes cannot contain None)");
                return std::nullopt;
            }
            axes.push_back(*std::move(name));
            if (!m_cursor.take(",") && !m_cursor.peek("}")) {
                fail("\",\" or \"}\"");
                return std::nullopt;
            }
        }
        if (call && !m_cursor.take(")")) {
            fail("\")\"");
            return std::nullopt;
        }
        return true;
    }

    bool readEntry(JaxSpec::Entry& entry, std::vector<TextRange>& ranges)
    {
        const auto close = openList();
        if (!close) {
            const std::size_t at = m_cursor.at();
            for (const char* open : {"P.UNCONSTRAINED", "PartitionSpec.UNCONSTRAINED", "jax.P.UNCONSTRAINED", "UNCONSTRAINED"}) {
                if (m_cursor.take(open)) {
                    entry.unconstrained = true;
                    return true;
                }
            }
            m_cursor.goTo(at);
            auto name = readName();
            if (!name)
                return false;
            if (!name->empty()) {
                entry.axes.push_back(*std::move(name));
                ranges.push_back(m_name);
            }
            return true;
        }
        while (!m_cursor.take(*close)) {
            auto name = readName();
            if (!name)
                return false;
            if (name->empty())
                return fail("an axis name");
            entry.axes.push_back(*std::move(name));
            ranges.push_back(m_name);
            if (!m_cursor.take(",") && !m_cursor.peek(*close))
                return fail(*close == std::string_view(")") ? "\",\" or \")\"" : "\",\" or \"]\"");
        }
        return true;
    }

    /// The name of an axis, whose place is then `m_name`; the empty name for None, null and ~.
    std::optional<std::string> readName()
    {
        const std::size_t begin = here();
        if (m_cursor.peek("'") || m_cursor.peek("\"")) {
            auto quoted = m_cursor.quoted();
            if (quoted && !quoted->empty()) {
                m_name = {begin + 1, quoted->size()};
                return quoted;
            }
            m_cursor.goTo(begin);
            fail(quoted ? "an axis name between the quotes" : "a closing quote");
            return std::nullopt;
        }
        if (m_cursor.take("~"))
            return std::string();
        const std::string word(m_cursor.word());
        if (word.empty()) {
            fail("an axis name or None");
            return std::nullopt;
        }
        m_name = {begin, word.size()};
        return word == "None" || word == "null" ? std::string() : word;
    }

    /// Where the next token begins.
    std::size_t here()
    {
        m_cursor.peek({}); // steps over white space
        return m_cursor.at();
    }

    std::optional<const char*> openList()
    {
        if (m_cursor.take("("))
            return ")";
        if (m_cursor.take("["))
            return "]";
        return std::nullopt;
    }

    TextCursor m_cursor;
    SpecText m_text;
    TextRange m_name;
    Problem m_problem;
};

} // namespace

Result<SpecText> readSpecText(std::string_view text)
{
    return SpecReader(text).read();
}

} // namespace meshwright
