// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright {

/// A table of text with aligned columns, for terminals.
class TextTable {
public:
    enum class Align : std::uint8_t { Left, Right };

    struct Column {
        std::string title;
        Align align = Align::Left;
    };

    explicit TextTable(std::vector<Column> columns);

    /// Adds a row; missing cells are empty. A cell stays on its line and in its column, whatever it says (see `printable`).
    /// Precondition: not more cells than columns.
    void addRow(std::vector<std::string> cells);

    std::size_t rowCount() const { return m_rows.size(); }

    /// The header and all rows, each line ended by a newline and indented by `indent` spaces; no trailing spaces.
    std::string text(std::size_t indent = 0) const;

private:
    std::vector<Column> m_columns;
    std::vector<std::vector<std::string>> m_rows;
};

} // namespace meshwright
