// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/tensor_sharding.h"
#include "core/support/text.h"

#include <cassert>
#include <string>
#include <string_view>

/// Reads the Shardy text that golden cases hold. The text is known to be good, so anything else is a broken case: an assertion.
namespace meshwright::goldens {

class AxisTextReader {
public:
    AxisTextReader(std::string_view text, const Mesh& mesh)
        : m_text(text)
        , m_mesh(mesh)
    {
    }

    /// `{"a", "b":(1)2, ?}p1`
    DimSharding dim()
    {
        DimSharding dim;
        expect('{');
        while (!take('}')) {
            if (take('?'))
                dim.open = true;
            else
                dim.axes.push_back(axis());
            take(',');
        }
        if (take('p'))
            dim.priority = static_cast<int>(number());
        return dim;
    }

    /// `[dim, dim], replicated={axes}, unreduced={axes}`
    TensorSharding sharding()
    {
        TensorSharding sharding;
        expect('[');
        while (!take(']')) {
            sharding.dims.push_back(dim());
            take(',');
        }
        while (take(',')) {
            const bool isReplicated = m_text.substr(m_at).starts_with("replicated=");
            m_at = m_text.find('{', m_at);
            (isReplicated ? sharding.replicated : sharding.unreduced) = dim().axes;
        }
        return sharding;
    }

private:
    AxisRef axis()
    {
        expect('"');
        const std::size_t end = m_text.find('"', m_at);
        const auto index = m_mesh.findAxis(m_text.substr(m_at, end - m_at));
        assert(index);
        m_at = end + 1;
        AxisRef axis = wholeAxis(m_mesh, *index);
        if (take(':')) {
            expect('(');
            axis.pre = number();
            expect(')');
            axis.size = number();
        }
        return axis;
    }

    std::int64_t number()
    {
        const std::size_t end = std::min(m_text.size(), m_text.find_first_not_of("0123456789", m_at));
        const auto value = parseInteger(m_text.substr(m_at, end - m_at));
        assert(value);
        m_at = end;
        return *value;
    }

    bool take(char c)
    {
        while (m_at < m_text.size() && m_text[m_at] == ' ')
            ++m_at;
        if (m_at >= m_text.size() || m_text[m_at] != c)
            return false;
        ++m_at;
        return true;
    }

    void expect(char c)
    {
        const bool found = take(c);
        assert(found);
        static_cast<void>(found);
    }

    std::string_view m_text;
    const Mesh& m_mesh;
    std::size_t m_at = 0;
};

} // namespace meshwright::goldens
