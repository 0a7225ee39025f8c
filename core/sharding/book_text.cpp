// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/book_text.h"

#include "core/sharding/jax_spec.h"
#include "core/support/text.h"
#include "core/support/text_cursor.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

class BookReader {
public:
    BookReader(std::string_view text, const Mesh& mesh)
        : m_cursor(text)
        , m_mesh(mesh)
    {
    }

    Result<BookArray> read()
    {
        BookArray array;
        array.name.clear();
        if (!readAll(array) && m_problems.empty())
            m_problems.push_back(m_cursor.expected(
                "MW1168", "sharded array", m_wanted, "write A[I_X, J]{U_Y}: a subscript for the axes of each dimension"));
        checkTwice(array);
        if (!m_problems.empty())
            return m_problems;
        return array;
    }

private:
    bool fail(const char* wanted)
    {
        m_wanted = wanted;
        return false;
    }

    bool readAll(BookArray& array)
    {
        array.name = std::string(m_cursor.word());
        if (array.name.empty())
            return fail("the name of the array");
        if (!m_cursor.take("["))
            return fail("\"[\"");
        while (!m_cursor.take("]")) {
            std::string name;
            DimSharding dim;
            if (!readSubscripted(name, dim.axes))
                return false;
            array.dimNames.push_back(std::move(name));
            array.sharding.dims.push_back(std::move(dim));
            if (!m_cursor.take(",") && !m_cursor.peek("]"))
                return fail("\",\" or \"]\"");
        }
        if (m_cursor.take("{")) {
            std::string name;
            if (!m_cursor.peek("U_"))
                return fail("U_ and the axes of the partial sum");
            if (!readSubscripted(name, array.sharding.unreduced))
                return false;
            std::sort(array.sharding.unreduced.begin(), array.sharding.unreduced.end());
            if (!m_cursor.take("}"))
                return fail("\"}\"");
        }
        return m_cursor.atEnd() || fail("the end of the array");
    }

    /// `I`, `I_X`, `I_{X,Y}`
    bool readSubscripted(std::string& name, AxisRefs& axes)
    {
        m_cursor.atEnd();
        const std::size_t at = m_cursor.at();
        const std::string word(m_cursor.word());
        const std::size_t underscore = word.find('_');
        name = word.substr(0, underscore);
        if (name.empty()) {
            m_cursor.goTo(at);
            return fail("the name of a dimension");
        }
        if (underscore == std::string::npos)
            return true;
        std::string subscript = word.substr(underscore + 1);
        if (subscript.empty()) {
            if (!m_cursor.take("{"))
                return fail("the axes of the subscript");
            const auto inside = m_cursor.untilClosed();
            if (!inside)
                return fail("\"}\"");
            subscript = std::string(*inside);
        }
        for (const std::string& part : split(subscript, ',')) {
            const std::string axis(trimmed(part));
            if (axis.empty()) {
                m_cursor.goTo(at + underscore + 1);
                return fail("an axis");
            }
            resolve(axis, at, axes);
        }
        return true;
    }

    void resolve(const std::string& letters, std::size_t at, AxisRefs& axes)
    {
        // As one axis by its name, else as one after the other.
        auto index = m_mesh.findAxis(letters);
        for (std::size_t i = 0; !index && i < m_mesh.axes().size(); ++i) {
            if (lowerCase(m_mesh.axes()[i].name) == lowerCase(letters))
                index = i;
        }
        std::vector<std::vector<std::size_t>> ways;
        if (index)
            ways.push_back({*index});
        else
            segment(letters, {}, ways);
        if (ways.empty())
            m_problems.push_back({"MW1102", fmt::format("unknown axis name: \"{}\"", letters),
                suggestion(letters, m_mesh.axisNames()), TextCursor::placeAt(at)});
        else if (ways.size() > 1)
            m_problems.push_back(
                {"MW1169", fmt::format("\"{}\" reads as axes of the mesh {} in more than one way", letters, m_mesh.text()),
                    "separate the axes with commas: I_{X,Y}", TextCursor::placeAt(at)});
        else {
            for (const std::size_t axis : ways.front()) {
                if (m_mesh.axes()[axis].size > 1)
                    axes.push_back(wholeAxis(m_mesh, axis));
            }
        }
    }

    /// All ways (two are enough) to read `letters` as names of different axes.
    void segment(
        std::string_view letters, const std::vector<std::size_t>& before, std::vector<std::vector<std::size_t>>& ways) const
    {
        if (letters.empty()) {
            ways.push_back(before);
            return;
        }
        for (std::size_t axis = 0; axis < m_mesh.axes().size() && ways.size() < 2; ++axis) {
            const std::string& name = m_mesh.axes()[axis].name;
            if (letters.size() < name.size() || lowerCase(letters.substr(0, name.size())) != lowerCase(name)
                || std::find(before.begin(), before.end(), axis) != before.end())
                continue;
            std::vector<std::size_t> longer = before;
            longer.push_back(axis);
            segment(letters.substr(name.size()), longer, ways);
        }
    }

    void checkTwice(const BookArray& array)
    {
        AxisRefs all = array.sharding.unreduced;
        for (const DimSharding& dim : array.sharding.dims)
            all.insert(all.end(), dim.axes.begin(), dim.axes.end());
        std::sort(all.begin(), all.end());
        for (auto twice = std::adjacent_find(all.begin(), all.end()); twice != all.end();
             twice = std::adjacent_find(twice + 2, all.end())) {
            m_problems.push_back({"MW1103",
                fmt::format("axis \"{}\" is used twice in the array", m_mesh.axes()[static_cast<std::size_t>(twice->axis)].name),
                "use each axis in one place", TextCursor::placeAt(0)});
            if (all.end() - twice <= 2)
                break;
        }
    }

    TextCursor m_cursor;
    const Mesh& m_mesh;
    Problems m_problems;
    const char* m_wanted = "";
};

} // namespace

Result<BookArray> parseBook(std::string_view text, const Mesh& mesh)
{
    return BookReader(text, mesh).read();
}

Result<std::string> bookText(const BookArray& array, const Mesh& mesh)
{
    constexpr std::string_view kNames = "IJKLMNOPQRSTVWXYZ";
    Problems problems;
    const auto subscript = [&](const AxisRefs& axes) {
        std::vector<std::string> names;
        bool letters = true;
        for (const AxisRef& axis : axes) {
            const auto index = static_cast<std::size_t>(axis.axis);
            if (axis != wholeAxis(mesh, index))
                problems.push_back(noNameForPart(axis, mesh, "the scaling book's notation"));
            names.push_back(mesh.axes()[index].name);
            letters = letters && names.back().size() == 1;
        }
        if (names.empty())
            return std::string();
        const bool plain = names.size() == 1 && names.front().find_first_of("-.") == std::string::npos;
        return plain ? "_" + names.front() : fmt::format("_{{{}}}", join(names, letters ? "" : ","));
    };
    std::vector<std::string> dims;
    for (std::size_t dim = 0; dim < array.sharding.dims.size(); ++dim) {
        const std::string name = dim < array.dimNames.size() ? array.dimNames[dim]
            : dim < kNames.size()                            ? std::string(1, kNames[dim])
                                                             : fmt::format("D{}", dim);
        dims.push_back(name + subscript(array.sharding.dims[dim].axes));
    }
    std::string text = fmt::format("{}[{}]", array.name, join(dims, ", "));
    if (!array.sharding.unreduced.empty()) {
        text += fmt::format("{{U{}}}", subscript(array.sharding.unreduced));
        if (array.sharding.unreducedKind != ReduceKind::Sum)
            problems.push_back({"MW1161",
                fmt::format(
                    "the scaling book's U says a sum, the values combine by {}", reduceKindName(array.sharding.unreducedKind)),
                "use a notation that names the reduction, such as P(.., unreduced_kind=..)"});
    }
    if (!problems.empty())
        return problems;
    return text;
}

} // namespace meshwright
