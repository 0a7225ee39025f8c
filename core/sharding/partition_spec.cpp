// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/partition_spec.h"

#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <set>

namespace meshwright {

std::string shapeText(const Shape& shape)
{
    return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

PartitionSpec PartitionSpec::canonical() const
{
    PartitionSpec shorter = *this;
    while (!shorter.dims.empty() && shorter.dims.back().empty())
        shorter.dims.pop_back();
    return shorter;
}

std::string specText(const PartitionSpec& spec)
{
    std::vector<std::string> entries;
    for (const auto& axes : spec.dims) {
        if (axes.empty())
            entries.emplace_back("None");
        else if (axes.size() == 1)
            entries.push_back("'" + axes.front() + "'");
        else
            entries.push_back("('" + join(axes, "', '") + "')");
    }
    return fmt::format("P({}{})", join(entries, ", "), entries.size() == 1 ? "," : "");
}

namespace {

/// Reads the small grammar of specs: entries are None, a quoted or bare name, or a list of names in () or [].
class SpecReader {
public:
    explicit SpecReader(std::string_view text)
        : m_text(text)
    {
    }

    Result<LocatedSpec> read()
    {
        skipSpace();
        for (const std::string_view prefix : {"jax.sharding.PartitionSpec", "PartitionSpec", "P"}) {
            if (m_text.substr(m_at).starts_with(prefix)) {
                m_at += prefix.size();
                break;
            }
        }
        const auto close = openList();
        if (!close)
            return expected("\"P(\", \"(\" or \"[\"");
        LocatedSpec located;
        while (!take(*close)) {
            skipSpace();
            const std::size_t begin = m_at;
            located.axes.emplace_back();
            auto axes = entry(located.axes.back());
            if (!axes)
                return axes.error();
            located.spec.dims.push_back(*std::move(axes));
            located.entries.push_back({begin, m_at - begin});
            if (!take(',') && !peekIs(*close))
                return expected(fmt::format("\",\" or \"{}\"", *close));
        }
        skipSpace();
        if (m_at != m_text.size())
            return expected("the end of the spec");
        return located;
    }

private:
    Result<std::vector<std::string>> entry(std::vector<TextRange>& ranges)
    {
        std::vector<std::string> axes;
        const auto close = openList();
        if (!close) {
            auto name = axisOrNone();
            if (!name)
                return name.error();
            if (!name->empty()) {
                axes.push_back(*std::move(name));
                ranges.push_back(m_name);
            }
            return axes;
        }
        while (!take(*close)) {
            auto name = axisOrNone();
            if (!name)
                return name.error();
            if (name->empty())
                return expected("an axis name");
            axes.push_back(*std::move(name));
            ranges.push_back(m_name);
            if (!take(',') && !peekIs(*close))
                return expected(fmt::format("\",\" or \"{}\"", *close));
        }
        return axes;
    }

    /// The name of an axis, whose place is then `m_name`; the empty name for None, null and ~.
    Result<std::string> axisOrNone()
    {
        skipSpace();
        if (m_at < m_text.size() && (m_text[m_at] == '\'' || m_text[m_at] == '"')) {
            const std::size_t end = m_text.find(m_text[m_at], m_at + 1);
            if (end == std::string_view::npos)
                return expected("a closing quote");
            std::string name(m_text.substr(m_at + 1, end - m_at - 1));
            if (name.empty())
                return expected("an axis name between the quotes");
            m_name = {m_at + 1, name.size()};
            m_at = end + 1;
            return name;
        }
        const std::size_t start = m_at;
        while (m_at < m_text.size()
            && (std::isalnum(static_cast<unsigned char>(m_text[m_at])) != 0 || m_text[m_at] == '_' || m_text[m_at] == '~'))
            ++m_at;
        const std::string_view word = m_text.substr(start, m_at - start);
        if (word.empty())
            return expected("an axis name or None");
        if (word == "None" || word == "null" || word == "~")
            return std::string();
        m_name = {start, word.size()};
        return std::string(word);
    }

    /// The bracket that closes the list which begins here.
    std::optional<char> openList()
    {
        if (take('('))
            return ')';
        if (take('['))
            return ']';
        return std::nullopt;
    }

    void skipSpace()
    {
        while (m_at < m_text.size() && std::isspace(static_cast<unsigned char>(m_text[m_at])) != 0)
            ++m_at;
    }

    bool peekIs(char c)
    {
        skipSpace();
        return m_at < m_text.size() && m_text[m_at] == c;
    }

    bool take(char c)
    {
        if (!peekIs(c))
            return false;
        ++m_at;
        return true;
    }

    Problem expected(const std::string& what) const
    {
        const std::string found = m_at < m_text.size() ? fmt::format("\"{}\"", m_text.substr(m_at, 12)) : "the end";
        Problem problem{"MW1105", fmt::format("\"{}\" is not a PartitionSpec: expected {}, found {}", m_text, what, found),
            "write P('data', None): one entry for each dimension, each an axis, a tuple of axes or None"};
        problem.place.line = 1;
        problem.place.column = static_cast<int>(m_at) + 1;
        return problem;
    }

    std::string_view m_text;
    std::size_t m_at = 0;
    TextRange m_name;
};

} // namespace

Result<LocatedSpec> parseLocatedSpec(std::string_view text)
{
    return SpecReader(text).read();
}

Result<PartitionSpec> parseSpec(std::string_view text)
{
    auto located = parseLocatedSpec(text);
    if (!located)
        return located.error();
    return std::move(located->spec);
}

std::string divisibleSizesText(std::int64_t size, std::int64_t pieces)
{
    const std::int64_t above = ceilDiv(size, pieces) * pieces;
    return size < pieces ? fmt::format("{}", above) : fmt::format("{} or {}", size / pieces * pieces, above);
}

Problem notDivisible(const UnequalPieces& cut)
{
    return {"MW1104",
        fmt::format("{}dim {}{} of size {} is not divisible by {}{}", cut.array.empty() ? "" : cut.array + ": ", cut.dim,
            cut.meaning.empty() ? "" : fmt::format(" ({})", cut.meaning), cut.size, cut.pieces, cut.where),
        fmt::format("make it {}, or leave the dimension whole", divisibleSizesText(cut.size, cut.pieces)), {}, Severity::Error,
        fmt::format("{} the dimension into {} equal pieces", cut.cutBy, cut.pieces)};
}

Result<Shape> shardShape(const Shape& global, const PartitionSpec& spec, const Mesh& mesh, Uneven uneven)
{
    Problems problems;
    if (spec.dims.size() > global.size())
        problems.push_back({"MW1101",
            fmt::format("the spec {} has {} entries for an array of rank {}", specText(spec), spec.dims.size(), global.size()),
            fmt::format("give at most {} entries", global.size()), {}, Severity::Error, "at most one entry for each dimension"});

    std::set<std::string> seen;
    Shape local = global;
    for (std::size_t dim = 0; dim < spec.dims.size(); ++dim) {
        std::int64_t pieces = 1;
        for (const std::string& axis : spec.dims[dim]) {
            const auto size = mesh.axisSize(axis);
            if (!size)
                problems.push_back(
                    {"MW1102", fmt::format("unknown axis name: \"{}\"", axis), suggestion(axis, mesh.axisNames())});
            else if (!seen.insert(axis).second)
                problems.push_back({"MW1103", fmt::format("axis \"{}\" is used twice in the spec {}", axis, specText(spec)),
                    "use each axis for one dimension only"});
            else
                pieces *= *size;
        }
        if (dim >= global.size())
            continue;
        if (uneven == Uneven::Refuse && global[dim] % pieces != 0)
            problems.push_back(notDivisible({.dim = dim,
                .size = global[dim],
                .pieces = pieces,
                .cutBy = fmt::format("the axes ({}) cut", join(spec.dims[dim], ", "))}));
        local[dim] = ceilDiv(global[dim], pieces);
    }
    if (!problems.empty())
        return problems;
    return local;
}

} // namespace meshwright
