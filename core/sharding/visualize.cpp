// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/visualize.h"

#include "core/sharding/layout_grid.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace meshwright {

namespace {

constexpr double kHeightToWidth = 2.5; ///< of a character
constexpr int kNarrowestCell = 9;
constexpr int kWidestCell = 80;

/// The lines of one cell, without frame; all of one width.
struct Cell {
    std::vector<std::string> lines;
    std::size_t width = 0;
    std::optional<Colour> colour;
};

struct CellSize {
    std::int64_t width = kNarrowestCell;
    std::int64_t height = 1;
};

CellSize cellSize(const Shape& shape, std::size_t rows, std::size_t columns, double scale)
{
    const double baseHeight = std::trunc(10.0 * scale);
    const double across = shape.size() > 1 ? static_cast<double>(shape.back()) : 1.0;
    const double down = shape.empty() ? 1.0 : static_cast<double>(shape.size() > 1 ? shape[shape.size() - 2] : shape.back());
    // Far more columns than any screen has: also keeps an array without rows finite.
    const double baseWidth = std::min(1e6, std::trunc(baseHeight * across / std::max(1.0, down)));
    CellSize size;
    size.width = std::clamp(static_cast<std::int64_t>(1.0 / static_cast<double>(columns) * baseWidth * kHeightToWidth),
        std::int64_t{kNarrowestCell}, std::int64_t{kWidestCell});
    if (shape.size() > 1)
        size.height = static_cast<std::int64_t>(1.0 / static_cast<double>(rows) * baseHeight);
    return size;
}

/// floor(total / 2) on the left (or top), the rest on the right (or bottom), neither below zero.
std::pair<std::size_t, std::size_t> halves(std::int64_t total)
{
    const std::int64_t first = total >= 0 ? total / 2 : -((1 - total) / 2);
    return {static_cast<std::size_t>(std::max<std::int64_t>(0, first)),
        static_cast<std::size_t>(std::max<std::int64_t>(0, total - first))};
}

Cell makeCell(const std::string& label, CellSize size, std::optional<Colour> colour)
{
    const std::size_t labelWidth = displayWidth(label);
    const auto [left, right] = halves(size.width - 2 - static_cast<std::int64_t>(labelWidth));
    const auto [top, bottom] = halves(size.height - 2);
    Cell cell;
    cell.width = left + labelWidth + right;
    cell.colour = colour;
    cell.lines.assign(top, std::string(cell.width, ' '));
    cell.lines.push_back(std::string(left, ' ') + label + std::string(right, ' '));
    cell.lines.insert(cell.lines.end(), bottom, std::string(cell.width, ' '));
    return cell;
}

class GridWriter {
public:
    GridWriter(const Layout& layout, const TextDrawing& drawing, const DeviceColours* colours)
        : m_layout(layout)
        , m_drawing(drawing)
        , m_colours(colours)
    {
    }

    std::string text(const LayoutGrid& grid) const
    {
        const std::size_t rows = std::min(grid.rows.size(), m_drawing.mostRows);
        const std::size_t columns = std::min(grid.columns.size(), m_drawing.mostColumns);
        const CellSize size = cellSize(m_layout.shape, grid.rows.size(), grid.columns.size(), m_drawing.scale);
        std::vector<std::vector<Cell>> cells(rows);
        std::vector<std::size_t> widths(columns, 0);
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t column = 0; column < columns; ++column) {
                cells[row].push_back(cellFor(grid.cellAt(row, column), size));
                widths[column] = std::max(widths[column], cells[row].back().width);
            }
        }

        std::string out = rule(widths, "┌", "┬", "┐");
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t line = 0; line < cells[row].front().lines.size(); ++line) {
                for (std::size_t column = 0; column < columns; ++column)
                    out += "│" + painted(cells[row][column], line, widths[column]);
                out += "│\n";
            }
            out += row + 1 < rows ? rule(widths, "├", "┼", "┤") : rule(widths, "└", "┴", "┘");
        }
        if (rows < grid.rows.size())
            out += fmt::format("({} of {} rows of pieces are left out)\n", grid.rows.size() - rows, grid.rows.size());
        if (columns < grid.columns.size())
            out += fmt::format("({} of {} columns of pieces are left out)\n", grid.columns.size() - columns, grid.columns.size());
        return out;
    }

private:
    Cell cellFor(std::optional<std::size_t> index, CellSize size) const
    {
        if (!index)
            return makeCell("", size, std::nullopt);
        const std::vector<DeviceId>& devices = m_layout.shards[*index].devices;
        std::optional<Colour> colour;
        if (m_colours != nullptr)
            colour = m_colours->of(devices.front());
        return makeCell(m_drawing.platform + " " + deviceListText(devices, m_drawing.mostDevices), size, colour);
    }

    std::string painted(const Cell& cell, std::size_t line, std::size_t width) const
    {
        const std::size_t missing = width - cell.width;
        const std::string text = std::string(missing / 2, ' ') + cell.lines[line] + std::string(missing - missing / 2, ' ');
        if (!cell.colour)
            return text;
        const Colour back = *cell.colour;
        if (m_drawing.colours == TerminalColours::Palette256)
            return fmt::format(
                "\x1b[48;5;{};38;5;{}m{}\x1b[0m", nearestTerminalColour(back), nearestTerminalColour(readableOn(back)), text);
        const Colour fore = readableOn(back);
        return fmt::format(
            "\x1b[48;2;{};{};{};38;2;{};{};{}m{}\x1b[0m", back.red, back.green, back.blue, fore.red, fore.green, fore.blue, text);
    }

    static std::string rule(
        std::span<const std::size_t> widths, std::string_view left, std::string_view middle, std::string_view right)
    {
        std::string out;
        for (const std::size_t width : widths) {
            out += out.empty() ? left : middle;
            for (std::size_t i = 0; i < width; ++i)
                out += "─";
        }
        out += right;
        return out + "\n";
    }

    const Layout& m_layout;
    const TextDrawing& m_drawing;
    const DeviceColours* m_colours;
};

} // namespace

std::string drawingText(const Layout& layout, const TextDrawing& drawing)
{
    assert(drawing.scale > 0.0 && drawing.mostRows > 0 && drawing.mostColumns > 0 && drawing.mostSlabs > 0);
    std::optional<DeviceColours> colours;
    if (drawing.colours != TerminalColours::None)
        colours = drawing.deviceColours ? *drawing.deviceColours : DeviceColours(devicesOf(layout));

    const std::vector<LayoutGrid> grids = layoutGrids(layout);
    const GridWriter writer(layout, drawing, colours ? &*colours : nullptr);
    std::string out;
    for (std::size_t i = 0; i < std::min(grids.size(), drawing.mostSlabs); ++i) {
        if (layout.shape.size() > 2)
            out += (i > 0 ? "\n" : "") + gridText(drawing.arrayName, grids[i], layout) + "\n";
        out += writer.text(grids[i]);
    }
    if (grids.size() > drawing.mostSlabs)
        out += fmt::format("\n({} of {} slices are left out)\n", grids.size() - drawing.mostSlabs, grids.size());
    const auto idle = emptyHandedDevices(layout);
    if (!idle.empty())
        out += fmt::format("{} {}: no elements\n", drawing.platform, deviceListText(idle, drawing.mostDevices));
    return out;
}

} // namespace meshwright
