// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/table.h"

#include "core/support/escape.h"
#include "core/support/text.h"

#include <algorithm>
#include <cassert>

namespace meshwright {

TextTable::TextTable(std::vector<Column> columns)
    : m_columns(std::move(columns))
{
    for (Column& column : m_columns)
        column.title = printable(column.title);
}

void TextTable::addRow(std::vector<std::string> cells)
{
    assert(cells.size() <= m_columns.size());
    cells.resize(m_columns.size());
    for (std::string& cell : cells)
        cell = printable(cell);
    m_rows.push_back(std::move(cells));
}

std::string TextTable::text(std::size_t indent) const
{
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < m_columns.size(); ++c) {
        std::size_t width = displayWidth(m_columns[c].title);
        for (const auto& row : m_rows)
            width = std::max(width, displayWidth(row[c]));
        widths.push_back(width);
    }

    std::string out;
    const auto addLine = [&](const auto& cellText) {
        std::string line(indent, ' ');
        for (std::size_t c = 0; c < m_columns.size(); ++c) {
            const std::string& cell = cellText(c);
            const std::string padding(widths[c] - displayWidth(cell), ' ');
            line += (c == 0 ? "" : "  ");
            line += m_columns[c].align == Align::Right ? padding + cell : cell + padding;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
    };
    addLine([&](std::size_t c) -> const std::string& { return m_columns[c].title; });
    for (const auto& row : m_rows)
        addLine([&](std::size_t c) -> const std::string& { return row[c]; });
    return out;
}

} // namespace meshwright
