// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_layout.h"

#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace meshwright {

namespace {

constexpr double kMargin = 12.0;
constexpr double kGap = 20.0; ///< between panels
constexpr double kLineHeight = 18.0;
constexpr double kRowHeight = 72.0; ///< of an array of rank 1, and of a scalar
constexpr double kLabelSize = 12.0;
constexpr double kRangeSize = 10.0;
constexpr double kLegibleWidth = 30.0; ///< of a cell with a label
constexpr double kLegibleHeight = 24.0;
constexpr double kTick = 4.0; ///< length of the marks of a ruler
constexpr double kRulerHeight = 18.0; ///< of the one over the columns
constexpr std::size_t kMostIdsInLabel = 8;
constexpr std::size_t kMostIdsInTooltip = 64;

/// The size of one grid in pixels.
struct PanelSize {
    double width = 0.0;
    double height = 0.0;
    bool toScale = true;
};

/// A panel of at most `widest` x `highest` pixels: in proportion to the shape as far as the limits and legible cells allow.
PanelSize panelSize(const LayoutGrid& grid, double widest, double highest, double largestAspect)
{
    if (!grid.columnDim)
        return {std::min(widest, 2.0 * kRowHeight), std::min(highest, kRowHeight)};
    if (!grid.rowDim)
        return {widest, std::min(highest, kRowHeight)};
    const double across = std::max(1.0, static_cast<double>(grid.shown[*grid.columnDim].size()));
    const double down = std::max(1.0, static_cast<double>(grid.shown[*grid.rowDim].size()));
    const double wanted = across / down;
    const double aspect = std::clamp(wanted, 1.0 / largestAspect, largestAspect);
    PanelSize size;
    size.height = std::min(highest, widest / aspect);
    size.width = std::max(size.height * aspect, std::min(widest, kLegibleWidth * static_cast<double>(grid.columns.size())));
    size.height = std::max(size.height, std::min(highest, kLegibleHeight * static_cast<double>(grid.rows.size())));
    size.toScale = std::fabs(size.width / size.height - wanted) < 1e-6 * wanted;
    return size;
}

/// Neighbouring ranges of one dimension that are drawn as one.
struct Block {
    std::size_t first = 0;
    std::size_t last = 0; ///< inclusive
    double start = 0.0; ///< pixels
    double stop = 0.0;
};

std::vector<Block> blocksOf(const std::vector<IndexRange>& ranges, double pixels, std::size_t most)
{
    const std::size_t folded = (ranges.size() + most - 1) / most;
    const double total = std::max(1.0, static_cast<double>(ranges.back().stop - ranges.front().start));
    std::vector<Block> blocks;
    for (std::size_t first = 0; first < ranges.size(); first += folded) {
        const std::size_t last = std::min(first + folded, ranges.size()) - 1;
        Block block{first, last};
        block.start = pixels * static_cast<double>(ranges[first].start - ranges.front().start) / total;
        block.stop = pixels * static_cast<double>(ranges[last].stop - ranges.front().start) / total;
        blocks.push_back(block);
    }
    if (blocks.size() == 1)
        blocks.front().stop = pixels; // an array without elements still has a cell to look at
    return blocks;
}

class LayoutPainter {
public:
    LayoutPainter(const Layout& layout, const LayoutDrawing& drawing)
        : m_layout(layout)
        , m_drawing(drawing)
        , m_colours(drawing.deviceColours ? *drawing.deviceColours : DeviceColours(devicesOf(layout)))
    {
    }

    DisplayList draw()
    {
        const std::vector<LayoutGrid> grids = gridsToDraw();
        const std::size_t panels = std::min(grids.size(), std::max<std::size_t>(1, m_drawing.mostPanels));
        const bool stacked = m_layout.shape.size() > 2;
        const bool ruled = !m_drawing.axesOfDims.empty() && grids.size() == 1 && grids.front().columnDim;
        const auto across = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(panels))));
        const double shrink = 1.0 / std::sqrt(static_cast<double>(across));
        const PanelSize panel
            = panelSize(grids.front(), m_drawing.panelWidth * shrink, m_drawing.panelHeight * shrink, m_drawing.largestAspect);

        DisplayList list;
        list.title = m_drawing.caption.empty()
            ? m_drawing.arrayName + " " + shapeText(m_layout.shape)
            : fmt::format("{}: {} {}", m_drawing.arrayName, shapeText(m_layout.shape), m_drawing.caption);
        double y = kMargin;
        if (m_drawing.heading) {
            widen(list, addLine(list, y, list.title, ColourRole::Text, true));
            y += kLineHeight + 4.0;
        }
        double left = kMargin;
        double heading = stacked ? kLineHeight : 0.0;
        if (ruled) {
            widen(list, addLine(list, y, dimensionsText(grids.front()), ColourRole::MutedText, false));
            y += kLineHeight;
            left += rowRulerWidth(grids.front());
            heading += kRulerHeight;
        }

        for (std::size_t i = 0; i < panels; ++i) {
            const Point at{left + static_cast<double>(i % across) * (panel.width + kGap),
                y + static_cast<double>(i / across) * (heading + panel.height + kGap)};
            if (stacked)
                list.items.push_back(
                    {TextShape{{at.x, at.y + kLineHeight / 2.0}, gridText(m_drawing.arrayName, grids[i], m_layout), kLabelSize}});
            addGrid(list, grids[i], {at.x, at.y + heading}, panel);
            if (ruled)
                addRulers(list, grids[i], {at.x, at.y + heading}, panel);
            widen(list, at.x + panel.width);
        }
        const auto panelRows = static_cast<double>((panels + across - 1) / across);
        y += panelRows * (heading + panel.height + kGap) - kGap + 8.0;

        for (const std::string& note : notes(grids, panels, panel.toScale)) {
            widen(list, addLine(list, y, note, ColourRole::MutedText, false));
            y += kLineHeight;
        }
        list.height = std::ceil(y + kMargin);
        return list;
    }

    std::set<DeviceId> devicesUnder(const std::string& id)
    {
        std::set<DeviceId> devices;
        for (const LayoutGrid& grid : gridsToDraw()) {
            forEachCell(grid, {1.0, 1.0}, [&](const Block& row, const Block& column, std::size_t first) {
                if (idOf(row, column, first) == id)
                    forEachShard(grid, row, column, [&](const Shard& shard) {
                        devices.insert(shard.devices.begin(), shard.devices.end());
                        return false;
                    });
            });
        }
        return devices;
    }

private:
    static void widen(DisplayList& list, double right) { list.width = std::max(list.width, std::ceil(right + kMargin)); }

    /// Adds a line of text at the left margin and yields where it ends.
    static double addLine(DisplayList& list, double y, const std::string& text, ColourRole role, bool bold)
    {
        list.items.push_back({TextShape{{kMargin, y + kLineHeight / 2.0}, text, kLabelSize, TextAnchor::Start, role, bold}});
        return kMargin + estimatedWidth(text, kLabelSize, bold);
    }

    std::vector<LayoutGrid> gridsToDraw() const
    {
        if (m_drawing.cut)
            return {cutThrough(m_layout, *m_drawing.cut)};
        return layoutGrids(m_layout);
    }

    std::vector<std::string> notes(const std::vector<LayoutGrid>& grids, std::size_t panels, bool toScale) const
    {
        std::vector<std::string> notes;
        if (!m_drawing.partialOver.empty())
            notes.push_back("hatched: partial sums over " + m_drawing.partialOver);
        const LayoutGrid& grid = grids.front();
        if (grid.rows.size() > m_drawing.mostCellsAcross || grid.columns.size() > m_drawing.mostCellsAcross)
            notes.push_back(fmt::format("{} x {} pieces, neighbours drawn as one block", grid.rows.size(), grid.columns.size()));
        else if (!m_anyLabel)
            notes.push_back("cells too small for device ids: point at one to see them");
        if (panels < grids.size())
            notes.push_back(fmt::format("{} of {} slices are left out", grids.size() - panels, grids.size()));
        if (!toScale)
            notes.push_back("the sides are not in proportion to each other");
        const auto idle = emptyHandedDevices(m_layout);
        if (!idle.empty())
            notes.push_back(fmt::format("no elements on {} {}", m_drawing.platform, deviceListText(idle, kMostIdsInLabel)));
        return notes;
    }

    /// `↓ dim 0: 8192 over data     → dim 1: 784, not split`.
    std::string dimensionsText(const LayoutGrid& grid) const
    {
        const auto side = [&](const char* arrow, std::size_t dim) {
            const std::string& axes = m_drawing.axesOfDims[dim];
            return fmt::format(
                "{} dim {}: {}{}", arrow, dim, m_layout.shape[dim], axes.empty() ? ", not split" : " over " + axes);
        };
        const std::string across = side("→", *grid.columnDim);
        return grid.rowDim ? side("↓", *grid.rowDim) + "     " + across : across;
    }

    double rowRulerWidth(const LayoutGrid& grid) const
    {
        if (!grid.rowDim)
            return 0.0;
        return estimatedWidth(fmt::format("{}", m_layout.shape[*grid.rowDim]), kRangeSize) + kTick + 4.0;
    }

    /// The indices at which cells begin, and the end of the array; as many as have room.
    void addRulers(DisplayList& list, const LayoutGrid& grid, Point at, const PanelSize& size) const
    {
        const auto columns = blocksOf(grid.columns, size.width, m_drawing.mostCellsAcross);
        addRuler(
            list, grid.columns, columns,
            [&](double along) {
                return Point{at.x + along, at.y};
            },
            true);
        if (!grid.rowDim)
            return;
        const auto rows = blocksOf(grid.rows, size.height, m_drawing.mostCellsAcross);
        addRuler(
            list, grid.rows, rows,
            [&](double along) {
                return Point{at.x, at.y + along};
            },
            false);
    }

    template <typename Place>
    static void addRuler(
        DisplayList& list, const std::vector<IndexRange>& ranges, const std::vector<Block>& blocks, Place place, bool overColumns)
    {
        const auto room
            = [&](const std::string& text) { return overColumns ? estimatedWidth(text, kRangeSize) + 6.0 : kRangeSize + 3.0; };
        const auto mark = [&](double along, const std::string& text) {
            const Point end = place(along);
            const Point tick = overColumns ? Point{end.x, end.y - kTick} : Point{end.x - kTick, end.y};
            const Point label = overColumns ? Point{tick.x, tick.y - kRangeSize / 2.0} : Point{tick.x - 2.0, tick.y};
            list.items.push_back({LineShape{end, tick, ColourRole::MutedText}});
            list.items.push_back(
                {TextShape{label, text, kRangeSize, overColumns ? TextAnchor::Middle : TextAnchor::End, ColourRole::MutedText}});
            if (overColumns)
                widen(list, label.x + estimatedWidth(text, kRangeSize) / 2.0);
        };
        const std::string last = fmt::format("{}", ranges.back().stop);
        const double end = blocks.back().stop;
        double free = -room(last); // from where on a label has room
        for (const Block& block : blocks) {
            const std::string text = fmt::format("{}", ranges[block.first].start);
            const double half = room(text) / 2.0;
            if (block.start - half < free || block.start + half > end - room(last) / 2.0)
                continue;
            mark(block.start, text);
            free = block.start + half;
        }
        mark(end, last);
    }

    /// Visits the cells of a grid of some size in pixels: row, column, and the index of the first piece.
    template <typename Visit>
    void forEachCell(const LayoutGrid& grid, const PanelSize& size, Visit visit) const
    {
        const auto rows = blocksOf(grid.rows, size.height, m_drawing.mostCellsAcross);
        const auto columns = blocksOf(grid.columns, size.width, m_drawing.mostCellsAcross);
        for (const Block& row : rows) {
            for (const Block& column : columns) {
                if (const auto shard = grid.cellAt(row.first, column.first))
                    visit(row, column, *shard);
            }
        }
    }

    /// Visits the pieces of a cell until `visit` yields true; yields whether it did.
    template <typename Visit>
    bool forEachShard(const LayoutGrid& grid, const Block& row, const Block& column, Visit visit) const
    {
        for (std::size_t r = row.first; r <= row.last; ++r) {
            for (std::size_t c = column.first; c <= column.last; ++c) {
                const auto shard = grid.cellAt(r, c);
                if (shard && visit(m_layout.shards[*shard]))
                    return true;
            }
        }
        return false;
    }

    static std::size_t piecesOf(const Block& row, const Block& column)
    {
        return (row.last - row.first + 1) * (column.last - column.first + 1);
    }

    static std::string idOf(const Block& row, const Block& column, std::size_t first)
    {
        return fmt::format("{}:{}", piecesOf(row, column) == 1 ? "shard" : "block", first);
    }

    void addGrid(DisplayList& list, const LayoutGrid& grid, Point at, const PanelSize& size)
    {
        std::vector<DisplayItem> accents; // over all cells, so that no neighbour hides a part of them
        forEachCell(grid, size, [&](const Block& row, const Block& column, std::size_t shard) {
            const RectShape cell{
                {at.x + column.start, at.y + row.start}, column.stop - column.start, row.stop - row.start, {}, 0.0};
            addCell(list, cell, shard, piecesOf(row, column), idOf(row, column, shard));
            if (isSelected(grid, row, column))
                addAccent(accents, cell);
        });
        list.items.insert(list.items.end(), accents.begin(), accents.end());
    }

    /// Thinner on small cells, whose colours must stay visible inside.
    static void addAccent(std::vector<DisplayItem>& accents, RectShape cell)
    {
        const double width = std::clamp(std::min(cell.width, cell.height) / 6.0, 1.5, 3.0);
        cell.style.outline = ColourRole::Background; // sets the accent off against any colour
        cell.style.outlineWidth = 2.0 * width;
        accents.push_back({cell});
        cell.style.outline = ColourRole::Accent;
        cell.style.outlineWidth = width;
        accents.push_back({cell});
    }

    bool isSelected(const LayoutGrid& grid, const Block& row, const Block& column) const
    {
        if (m_drawing.selected.empty())
            return false;
        return forEachShard(grid, row, column, [&](const Shard& shard) {
            return std::any_of(
                shard.devices.begin(), shard.devices.end(), [&](DeviceId device) { return m_drawing.selected.contains(device); });
        });
    }

    void addCell(DisplayList& list, RectShape cell, std::size_t index, std::size_t pieces, std::string id)
    {
        const Shard& shard = m_layout.shards[index];
        std::vector<DeviceId> devices = shard.devices;
        std::sort(devices.begin(), devices.end());
        const std::size_t bands = devices.size() <= m_drawing.mostBands ? devices.size() : 1;
        if (bands > 1)
            addBands(list, cell, devices);

        // The frame is the one item with the id; over bands it is clear inside.
        cell.style.outline = ColourRole::Outline;
        cell.style.outlineWidth = std::clamp(std::min(cell.width, cell.height) / 10.0, 0.25, 1.0);
        if (bands == 1)
            cell.style.fill = m_colours.of(devices.front());
        if (!m_drawing.partialOver.empty()) {
            cell.style.hatch = Hatch::Rising;
            cell.style.hatchPaint = bands == 1 ? readableOn(m_colours.of(devices.front())) : kBlack;
        }
        list.items.push_back({cell, std::move(id), tooltip(shard, pieces)});
        if (pieces == 1)
            addLabel(list, cell, shard, devices, bands == 1 && m_drawing.partialOver.empty());
    }

    void addBands(DisplayList& list, const RectShape& cell, const std::vector<DeviceId>& devices) const
    {
        const double height = cell.height / static_cast<double>(devices.size());
        for (std::size_t i = 0; i < devices.size(); ++i) {
            RectShape band{{cell.topLeft.x, cell.topLeft.y + height * static_cast<double>(i)}, cell.width, height, {}, 0.0};
            band.style.fill = m_colours.of(devices[i]);
            list.items.push_back({band});
        }
    }

    std::string tooltip(const Shard& shard, std::size_t pieces) const
    {
        std::string text = m_drawing.arrayName + boxText(shard.box);
        if (!m_drawing.caption.empty())
            text += "\n" + m_drawing.caption;
        text += fmt::format("\n{} {}", m_drawing.platform, deviceListText(shard.devices, kMostIdsInTooltip));
        if (shard.devices.size() > 1)
            text += fmt::format("\n{} copies", shard.devices.size());
        if (m_drawing.elementBytes > 0)
            text += "\n" + bytesText(shard);
        if (!m_drawing.partialOver.empty())
            text += "\npartial sums over " + m_drawing.partialOver;
        if (pieces > 1)
            text += fmt::format("\nand {} more pieces", pieces - 1);
        return text;
    }

    std::string bytesText(const Shard& shard) const
    {
        Shape shape;
        for (const IndexRange& range : shard.box)
            shape.push_back(range.size());
        const auto bytes = [&](const Shape& sizes) {
            double product = static_cast<double>(m_drawing.elementBytes);
            for (const std::int64_t size : sizes)
                product *= static_cast<double>(size);
            return formatBytes(product);
        };
        if (shape == m_layout.shardShape)
            return bytes(shape);
        return fmt::format(
            "{}, padded to {} ({}) on the device", bytes(shape), shapeText(m_layout.shardShape), bytes(m_layout.shardShape));
    }

    /// What fits of: devices, index range, number of copies. On a plain fill the text is black or white; elsewhere it gets a plate.
    void addLabel(
        DisplayList& list, const RectShape& cell, const Shard& shard, const std::vector<DeviceId>& devices, bool plainFill)
    {
        constexpr double kPadding = 4.0;
        const bool manyHolders = devices.size() > m_drawing.mostBands;
        const double room = cell.width - 2.0 * kPadding;
        std::vector<std::pair<std::string, double>> lines;
        double height = 2.0 * kPadding;
        const auto addIfFits = [&](const std::string& text, double size) {
            if (estimatedWidth(text, size) > room || height + size + 3.0 > cell.height)
                return false;
            lines.emplace_back(text, size);
            height += size + 3.0;
            return true;
        };
        const std::string ids = deviceListText(devices, kMostIdsInLabel);
        if (!addIfFits(m_drawing.platform + " " + ids, kLabelSize) && !addIfFits(ids, kLabelSize))
            addIfFits(ids, kRangeSize);
        const std::string range = boxText(shard.box);
        if (!lines.empty() && !addIfFits(range, kRangeSize)
            && estimatedWidth(lines.front().first + "  " + range, lines.front().second) <= room)
            lines.front().first += "  " + range;
        if (manyHolders)
            addIfFits(fmt::format("x{}", devices.size()), kLabelSize);
        if (lines.empty())
            return;
        m_anyLabel = true;

        const Point middle{cell.topLeft.x + cell.width / 2.0, cell.topLeft.y + cell.height / 2.0};
        Paint paint = ColourRole::Text;
        if (plainFill) {
            paint = readableOn(m_colours.of(devices.front()));
        } else {
            double width = 0.0;
            for (const auto& [text, size] : lines)
                width = std::max(width, estimatedWidth(text, size) + 2.0 * kPadding);
            RectShape plate{{middle.x - width / 2.0, middle.y - height / 2.0}, width, height, {}, 3.0};
            plate.style.fill = ColourRole::Surface;
            list.items.push_back({plate});
        }
        double y = middle.y - (height - 2.0 * kPadding) / 2.0;
        for (const auto& [text, size] : lines) {
            list.items.push_back({TextShape{{middle.x, y + (size + 3.0) / 2.0}, text, size, TextAnchor::Middle, paint}});
            y += size + 3.0;
        }
    }

    const Layout& m_layout;
    const LayoutDrawing& m_drawing;
    DeviceColours m_colours;
    bool m_anyLabel = false; ///< some cell had room for its device ids
};

} // namespace

DisplayList drawLayout(const Layout& layout, const LayoutDrawing& drawing)
{
    assert(drawing.panelWidth > 0.0 && drawing.panelHeight > 0.0 && drawing.mostCellsAcross > 0 && drawing.largestAspect >= 1.0);
    assert(drawing.axesOfDims.empty() || drawing.axesOfDims.size() == layout.shape.size());
    return LayoutPainter(layout, drawing).draw();
}

std::set<DeviceId> devicesUnder(const Layout& layout, const LayoutDrawing& drawing, const std::string& id)
{
    return LayoutPainter(layout, drawing).devicesUnder(id);
}

} // namespace meshwright
