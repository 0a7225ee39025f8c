// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_layout.h"

#include "core/draw/chart.h"
#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>

namespace meshwright {

namespace {

constexpr double kPanelGap = 20.0; ///< between panels
constexpr double kLowestRow = 72.0; ///< of an array of rank 1, and of a scalar
constexpr double kHighestRow = 144.0;
constexpr double kLabelSize = 12.0;
constexpr double kRangeSize = 10.0;
constexpr double kTightSize = 9.0; ///< of ids in small cells
constexpr double kLeading = 3.0; ///< between lines of a label
constexpr double kWidestPlate = 0.85; ///< of a cell, so that its hatch is seen on both sides
constexpr double kSheetStep = 6.0; ///< from one sheet of a stack to the next, at most
constexpr double kLeastSheetStep = 1.5;
constexpr double kStackShare = 0.15; ///< of a cell's smaller side, that the sheets behind take at most
constexpr double kBadgedStackShare = 0.10; ///< likewise, where a badge says how many there are
constexpr std::size_t kManySheets = 4; ///< that are drawn of more
constexpr double kLowestHatched = 10.0; ///< of cells
constexpr double kStripHeight = 8.0; ///< of the colours of many holders
constexpr double kLowestWithStrip = 48.0; ///< of cells
constexpr double kLegibleWidth = 30.0; ///< of a cell with a label
constexpr double kLegibleHeight = 24.0;
constexpr double kSmallestPanel = 60.0; ///< that is drawn into a given room, either way
constexpr double kNarrowestText = 160.0; ///< of lines that are broken to fit
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
        return {std::min(widest, 2.0 * kLowestRow), std::min(highest, kLowestRow)};
    if (!grid.rowDim)
        return {widest, std::min(highest, std::clamp(highest / 4.0, kLowestRow, kHighestRow))};
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

/// How the cells of a grid say which devices hold them.
struct LabelStyle {
    bool platform = false; ///< `TPU 0,1`
    bool compact = false; ///< `0-3` or `0 +3` for `0,1,2,3`
    double size = kLabelSize; ///< pixels
    double padding = 4.0; ///< on each side
};

/// The best first.
constexpr std::array kLabelStyles = {LabelStyle{true, false, kLabelSize, 4.0}, LabelStyle{false, false, kLabelSize, 4.0},
    LabelStyle{false, false, kRangeSize, 3.0}, LabelStyle{false, false, kTightSize, 1.0},
    LabelStyle{false, true, kRangeSize, 3.0}, LabelStyle{false, true, kTightSize, 1.0}};

enum class RangePlace : std::uint8_t { Below, Beside, None };

/// The same for all whole pieces of a grid, so that none looks different for the length of its text.
struct LabelPlan {
    LabelStyle style;
    RangePlace range = RangePlace::None;
};

/// `0-3` of neighbours, else the first and how many more: `0 +3`.
std::string compactText(const std::vector<DeviceId>& devices)
{
    const auto count = static_cast<DeviceId>(devices.size());
    if (count == 1)
        return fmt::format("{}", devices.front());
    if (devices.back() - devices.front() == count - 1)
        return fmt::format("{}-{}", devices.front(), devices.back());
    return fmt::format("{} +{}", devices.front(), count - 1);
}

std::vector<DeviceId> sortedDevices(const Shard& shard)
{
    std::vector<DeviceId> devices = shard.devices;
    std::sort(devices.begin(), devices.end());
    return devices;
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
    /// `textRoom`: how long a line of text may be, pixels.
    LayoutPainter(const Layout& layout, const LayoutDrawing& drawing, double textRoom)
        : m_layout(layout)
        , m_drawing(drawing)
        , m_textRoom(std::max(kNarrowestText, textRoom))
        , m_colours(drawing.deviceColours ? *drawing.deviceColours : DeviceColours(devicesOf(layout)))
    {
        assert(drawing.mostCellsAcross > 0 && drawing.largestAspect >= 1.0);
        assert(drawing.axesOfDims.empty() || drawing.axesOfDims.size() == layout.shape.size());
    }

    DisplayList draw()
    {
        assert(m_drawing.panelWidth > 0.0 && m_drawing.panelHeight > 0.0);
        m_anyLabel = false;
        DisplayList list;
        list.title = m_drawing.caption.empty()
            ? m_drawing.arrayName + " " + shapeText(m_layout.shape)
            : fmt::format("{}: {} {}", m_drawing.arrayName, shapeText(m_layout.shape), m_drawing.caption);
        double y = chart::kMargin;
        if (m_drawing.heading) {
            widen(list, addLine(list, y, list.title, ColourRole::Text, true));
            y += chart::kLineHeight + 4.0;
        }
        const std::vector<LayoutGrid> grids = gridsToDraw();
        const std::size_t panels = std::min(grids.size(), std::max<std::size_t>(1, m_drawing.mostPanels));
        y = addPanels(list, y, {grids.data(), panels}, grids.size() == 1) + 8.0;
        for (const std::string& note : notes(grids, panels))
            y = addLines(list, y, note);
        list.height = std::ceil(y + chart::kMargin);
        return list;
    }

    /// The size of one grid of the last picture.
    const PanelSize& panel() const { return m_panel; }

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
    static void widen(DisplayList& list, double right) { list.width = std::max(list.width, std::ceil(right + chart::kMargin)); }

    /// Adds a line of text at the left margin and yields where it ends.
    static double addLine(DisplayList& list, double y, const std::string& text, ColourRole role, bool bold)
    {
        list.items.push_back(
            {TextShape{{chart::kMargin, y + chart::kLineHeight / 2.0}, text, kLabelSize, TextAnchor::Start, role, bold}});
        return chart::kMargin + estimatedWidth(text, kLabelSize, bold);
    }

    /// Adds muted text, in several lines if need be, and yields where the next line goes.
    double addLines(DisplayList& list, double y, const std::string& text) const
    {
        std::string line;
        const auto flush = [&] {
            widen(list, addLine(list, y, line, ColourRole::MutedText, false));
            y += chart::kLineHeight;
            line.clear();
        };
        for (const std::string& word : split(text, ' ')) {
            if (!line.empty() && estimatedWidth(line + " " + word, kLabelSize) > m_textRoom)
                flush();
            line += (line.empty() ? "" : " ") + word;
        }
        flush();
        return y;
    }

    /// Adds grids in rows of about as many as there are rows, or as many as have room for their headings, and yields where they end; a single one with
    /// its rulers.
    double addPanels(DisplayList& list, double y, std::span<const LayoutGrid> grids, bool isSingle)
    {
        const bool hasHeading = m_layout.shape.size() > 2;
        double headingWidth = 0.0;
        for (const LayoutGrid& grid : grids)
            headingWidth = std::max(
                headingWidth, hasHeading ? estimatedWidth(gridText(m_drawing.arrayName, grid, m_layout), kLabelSize) : 0.0);
        const double most = std::max(1.0, std::floor((m_textRoom + kPanelGap) / (headingWidth + kPanelGap)));
        const auto across = static_cast<std::size_t>(std::min(most, std::ceil(std::sqrt(static_cast<double>(grids.size())))));
        const double shrink = 1.0 / std::sqrt(static_cast<double>(across));
        m_panel
            = panelSize(grids.front(), m_drawing.panelWidth * shrink, m_drawing.panelHeight * shrink, m_drawing.largestAspect);
        const bool isRuled = !m_drawing.axesOfDims.empty() && isSingle && grids.front().columnDim;
        const double pitch = std::max(m_panel.width, headingWidth) + kPanelGap;
        const double above = (hasHeading ? chart::kLineHeight : 0.0) + (isRuled ? kRulerHeight : 0.0);
        double left = chart::kMargin;
        if (isRuled) {
            y = addDimensions(list, y, grids.front());
            left += rowRulerWidth(grids.front());
        }
        for (std::size_t i = 0; i < grids.size(); ++i) {
            const double x = left + static_cast<double>(i % across) * pitch;
            const double top = y + static_cast<double>(i / across) * (above + m_panel.height + kPanelGap);
            if (hasHeading)
                list.items.push_back({TextShape{
                    {x, top + chart::kLineHeight / 2.0}, gridText(m_drawing.arrayName, grids[i], m_layout), kLabelSize}});
            addGrid(list, grids[i], {x, top + above}, m_panel);
            if (isRuled)
                addRulers(list, grids[i], {x, top + above}, m_panel);
            widen(list, x + std::max(m_panel.width, headingWidth));
        }
        const auto rows = static_cast<double>((grids.size() + across - 1) / across);
        return y + rows * (above + m_panel.height + kPanelGap) - kPanelGap;
    }

    std::vector<LayoutGrid> gridsToDraw() const
    {
        if (m_drawing.cut)
            return {cutThrough(m_layout, *m_drawing.cut)};
        return layoutGrids(m_layout);
    }

    std::vector<std::string> notes(const std::vector<LayoutGrid>& grids, std::size_t panels) const
    {
        std::vector<std::string> notes;
        if (!m_drawing.partialOver.empty())
            notes.push_back("hatched: partial sums over " + m_drawing.partialOver);
        const LayoutGrid& grid = grids.front();
        if (const std::string copies = copiesNote(grid); !copies.empty())
            notes.push_back(copies);
        if (grid.rows.size() > m_drawing.mostCellsAcross || grid.columns.size() > m_drawing.mostCellsAcross)
            notes.push_back(fmt::format("{} x {} pieces, neighbours drawn as one block", grid.rows.size(), grid.columns.size()));
        else if (!m_anyLabel)
            notes.push_back("cells too small for device ids: point at one to see them");
        if (panels < grids.size())
            notes.push_back(fmt::format("{} of {} slices are left out", grids.size() - panels, grids.size()));
        if (!m_panel.toScale)
            notes.push_back("the sides are not in proportion to each other");
        const auto idle = emptyHandedDevices(m_layout);
        if (!idle.empty())
            notes.push_back(fmt::format("no elements on {} {}", m_drawing.platform, deviceListText(idle, kMostIdsInLabel)));
        return notes;
    }

    /// "stacked: 4 copies of each piece", "hatched: 128 copies of each piece, in one of 16 stages". What of partial sums is on several devices is not a copy.
    std::string copiesNote(const LayoutGrid& grid) const
    {
        if (m_layout.shards.empty() || m_layout.shards.front().devices.size() < 2 || !m_drawing.partialOver.empty())
            return {};
        bool isStacked = false;
        bool isHatchedAnywhere = false;
        forEachCell(grid, m_panel, [&](const Block& row, const Block& column, std::size_t index) {
            const double width = column.stop - column.start;
            const double height = row.stop - row.start;
            isStacked |= sheetStep(m_layout.shards[index], width, height) > 0.0;
            isHatchedAnywhere |= isHatched(m_layout.shards[index], width, height);
        });
        return (isStacked                  ? "stacked: "
                       : isHatchedAnywhere ? "hatched: "
                                           : "")
            + copiesText(m_layout.shards.front(), m_layout.shards.size() > 1 ? " of each piece" : "");
    }

    /// "8 copies of each piece"; of a pipeline "4 copies of each piece, in one of 2 stages", "each piece in one of 2 stages".
    std::string copiesText(const Shard& shard, std::string_view of = {}) const
    {
        const auto holders = static_cast<std::int64_t>(shard.devices.size());
        const std::int64_t copies = std::max<std::int64_t>(1, holders / m_drawing.stages);
        if (copies == 1 && m_drawing.stages > 1)
            return fmt::format("{}in one of {} stages", of.empty() ? "" : "each piece ", m_drawing.stages);
        const std::string where = m_drawing.stages > 1 ? fmt::format(", in one of {} stages", m_drawing.stages) : std::string();
        return fmt::format("{} {}{}{}", copies, copies == 1 ? "copy" : "copies", of, where);
    }

    /// `↓ dim 0: 8192 over data     → dim 1: 784, not split`, in one line or two; yields where the next line goes.
    double addDimensions(DisplayList& list, double y, const LayoutGrid& grid) const
    {
        const auto side = [&](const char* arrow, std::size_t dim) {
            const std::string& axes = m_drawing.axesOfDims[dim];
            return fmt::format(
                "{} dim {}: {}{}", arrow, dim, m_layout.shape[dim], axes.empty() ? ", not split" : " over " + axes);
        };
        const std::string across = side("→", *grid.columnDim);
        if (!grid.rowDim)
            return addLines(list, y, across);
        const std::string down = side("↓", *grid.rowDim);
        const std::string both = down + "     " + across;
        if (estimatedWidth(both, kLabelSize) > m_textRoom)
            return addLines(list, addLines(list, y, down), across);
        widen(list, addLine(list, y, both, ColourRole::MutedText, false));
        return y + chart::kLineHeight;
    }

    double rowRulerWidth(const LayoutGrid& grid) const
    {
        if (!grid.rowDim)
            return 0.0;
        return estimatedWidth(fmt::format("{}", m_layout.shape[*grid.rowDim]), kRangeSize) + kTick + 4.0;
    }

    /// The indices at which cells begin, and the end of the array.
    void addRulers(DisplayList& list, const LayoutGrid& grid, Point at, const PanelSize& size) const
    {
        addRuler(list, grid.columns, blocksOf(grid.columns, size.width, m_drawing.mostCellsAcross), at, true);
        if (grid.rowDim)
            addRuler(list, grid.rows, blocksOf(grid.rows, size.height, m_drawing.mostCellsAcross), at, false);
    }

    static void addRuler(
        DisplayList& list, const std::vector<IndexRange>& ranges, const std::vector<Block>& blocks, Point at, bool overColumns)
    {
        const auto mark = [&](double along, const std::string& text) {
            const Point end = overColumns ? Point{at.x + along, at.y} : Point{at.x, at.y + along};
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
        // Every so many that the longest label has room.
        const double room = overColumns ? estimatedWidth(last, kRangeSize) + 6.0 : kRangeSize + kLeading;
        std::size_t step = 1;
        while (end / static_cast<double>(blocks.size()) * static_cast<double>(step) < room && step < blocks.size())
            step *= 2;
        for (std::size_t i = 0; i < blocks.size(); i += step) {
            if (blocks[i].start + room <= end)
                mark(blocks[i].start, fmt::format("{}", ranges[blocks[i].first].start));
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
        const auto plan = planLabels(grid, size);
        m_anyLabel = m_anyLabel || plan.has_value();
        std::vector<DisplayItem> accents; // over all cells, so that no neighbour hides a part of them
        forEachCell(grid, size, [&](const Block& row, const Block& column, std::size_t shard) {
            const RectShape cell{
                {at.x + column.start, at.y + row.start}, column.stop - column.start, row.stop - row.start, {}, 0.0};
            addCell(list, cell, shard, piecesOf(row, column), idOf(row, column, shard), plan);
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

    void addCell(DisplayList& list, RectShape cell, std::size_t index, std::size_t pieces, std::string id,
        const std::optional<LabelPlan>& plan) const
    {
        const Shard& shard = m_layout.shards[index];
        const std::vector<DeviceId> devices = sortedDevices(shard);
        const double step = sheetStep(shard, cell.width, cell.height);
        RectShape front = cell;
        if (step > 0.0) {
            const std::size_t sheets = sheetsOf(shard);
            front.width -= step * static_cast<double>(sheets - 1);
            front.height -= step * static_cast<double>(sheets - 1);
            front.style.outline = ColourRole::Outline;
            front.style.outlineWidth = 1.0;
            for (std::size_t i = sheets; i-- > 0;) {
                RectShape sheet = front;
                sheet.topLeft.x += step * static_cast<double>(i);
                sheet.topLeft.y += step * static_cast<double>(i);
                sheet.style.fill = m_colours.of(devices[i]);
                hatchPartial(sheet);
                list.items.push_back({sheet});
            }
        } else {
            cell.style.fill = m_colours.of(devices.front());
            hatchPartial(cell);
            if (isHatched(shard, cell.width, cell.height)) {
                cell.style.hatch = m_drawing.partialOver.empty() ? Hatch::Falling : Hatch::Crossed;
                cell.style.hatchPaint = readableOn(m_colours.of(devices.front()));
            }
        }
        // The frame is the one item with the id; over a stack it is clear inside.
        cell.style.outline = step > 0.0 ? ColourRole::Grid : ColourRole::Outline;
        cell.style.outlineWidth = std::clamp(std::min(cell.width, cell.height) / 16.0, 0.25, 1.0);
        list.items.push_back({cell, std::move(id), tooltip(shard, pieces)});
        if (pieces == 1 && devices.size() > m_drawing.mostSheets && front.height >= kLowestWithStrip)
            addStrip(list, front, devices);
        if (pieces == 1 && plan)
            addLabel(list, cell, shard, *plan);
    }

    void hatchPartial(RectShape& sheet) const
    {
        if (m_drawing.partialOver.empty())
            return;
        sheet.style.hatch = Hatch::Rising;
        sheet.style.hatchPaint = readableOn(std::get<Colour>(sheet.style.fill));
    }

    std::size_t sheetsOf(const Shard& shard) const
    {
        return shard.devices.size() <= m_drawing.mostSheets ? shard.devices.size() : kManySheets;
    }

    /// From one sheet of a cell's stack to the next; 0: one holder, or no room.
    double sheetStep(const Shard& shard, double width, double height) const
    {
        const std::size_t sheets = sheetsOf(shard);
        if (sheets < 2)
            return 0.0;
        const double share = shard.devices.size() > m_drawing.mostSheets ? kBadgedStackShare : kStackShare;
        const double step = std::min(kSheetStep, share * std::min(width, height) / static_cast<double>(sheets - 1));
        return step >= kLeastSheetStep ? step : 0.0;
    }

    /// Whether a hatch says that a cell has several holders.
    bool isHatched(const Shard& shard, double width, double height) const
    {
        return shard.devices.size() > 1 && sheetStep(shard, width, height) == 0.0 && std::min(width, height) >= kLowestHatched;
    }

    /// The colours of many holders along the lower edge of their cell, as many as have room.
    void addStrip(DisplayList& list, const RectShape& cell, const std::vector<DeviceId>& devices) const
    {
        const double top = cell.topLeft.y + cell.height - kStripHeight;
        const auto slices = std::clamp<std::size_t>(static_cast<std::size_t>(cell.width / 4.0), 1, devices.size());
        const double width = cell.width / static_cast<double>(slices);
        for (std::size_t i = 0; i < slices; ++i) {
            RectShape slice{{cell.topLeft.x + width * static_cast<double>(i), top}, width, kStripHeight, {}, 0.0};
            slice.style.fill = m_colours.of(devices[i * devices.size() / slices]);
            list.items.push_back({slice});
        }
        RectShape frame{{cell.topLeft.x, top}, cell.width, kStripHeight, {}, 0.0};
        frame.style.outline = ColourRole::Outline;
        list.items.push_back({frame});
    }

    std::string tooltip(const Shard& shard, std::size_t pieces) const
    {
        std::string text = m_drawing.arrayName + boxText(shard.box);
        if (!m_drawing.caption.empty())
            text += "\n" + m_drawing.caption;
        text += fmt::format("\n{} {}", m_drawing.platform, deviceListText(shard.devices, kMostIdsInTooltip));
        if (shard.devices.size() > 1)
            text += "\n" + copiesText(shard);
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
        const Shape shape = extentsOf(shard.box);
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

    std::string idsText(const std::vector<DeviceId>& devices, const LabelStyle& style) const
    {
        const std::string ids = style.compact ? compactText(devices) : deviceListText(devices, kMostIdsInLabel);
        return style.platform ? m_drawing.platform + " " + ids : ids;
    }

    /// The lines of a label with the sizes of their fonts.
    std::vector<std::pair<std::string, double>> linesOf(const Shard& shard, const LabelPlan& plan) const
    {
        const std::vector<DeviceId> devices = sortedDevices(shard);
        std::vector<std::pair<std::string, double>> lines = {{idsText(devices, plan.style), plan.style.size}};
        if (plan.range == RangePlace::Below)
            lines.emplace_back(boxText(shard.box), kRangeSize);
        else if (plan.range == RangePlace::Beside)
            lines.front().first += "  " + boxText(shard.box);
        if (devices.size() > m_drawing.mostSheets && !plan.style.compact)
            lines.emplace_back(fmt::format("x{}", devices.size()), kLabelSize);
        return lines;
    }

    static Point sizeOf(const std::vector<std::pair<std::string, double>>& lines)
    {
        Point size;
        for (const auto& [text, height] : lines) {
            size.x = std::max(size.x, estimatedWidth(text, height));
            size.y += height + kLeading;
        }
        return size;
    }

    /// True where the front of a cell is hatched.
    bool needsPlate(const Shard& shard, double width, double height) const
    {
        return !m_drawing.partialOver.empty() || isHatched(shard, width, height);
    }

    /// What is left of a cell of this size for its front.
    Point frontOf(const Shard& shard, double width, double height) const
    {
        const double behind = sheetStep(shard, width, height) * static_cast<double>(sheetsOf(shard) - 1);
        return {width - behind, height - behind};
    }

    bool fits(const Shard& shard, const LabelPlan& plan, double width, double height) const
    {
        const Point size = sizeOf(linesOf(shard, plan));
        const Point front = frontOf(shard, width, height);
        const bool hasStrip = shard.devices.size() > m_drawing.mostSheets && front.y >= kLowestWithStrip;
        return size.x + 2.0 * plan.style.padding <= (needsPlate(shard, width, height) ? kWidestPlate * front.x : front.x)
            && size.y + 2.0 * plan.style.padding <= front.y - (hasStrip ? 2.0 * kStripHeight : 0.0);
    }

    bool isWhole(const Shard& shard) const
    {
        return std::equal(shard.box.begin(), shard.box.end(), m_layout.shardShape.begin(),
            [](const IndexRange& range, std::int64_t size) { return range.size() == size; });
    }

    /// The best labels for which all whole pieces have room; nothing when there are none.
    std::optional<LabelPlan> planLabels(const LayoutGrid& grid, const PanelSize& size) const
    {
        const auto fitAll = [&](const LabelPlan& plan) {
            bool fit = true;
            bool any = false;
            forEachCell(grid, size, [&](const Block& row, const Block& column, std::size_t index) {
                const Shard& shard = m_layout.shards[index];
                if (!fit || piecesOf(row, column) != 1 || !isWhole(shard))
                    return;
                any = true;
                fit = fits(shard, plan, column.stop - column.start, row.stop - row.start);
            });
            return fit && any;
        };
        for (const LabelStyle& style : kLabelStyles) {
            if (!fitAll({style, RangePlace::None}))
                continue;
            for (const RangePlace place : {RangePlace::Below, RangePlace::Beside}) {
                if (!m_layout.shape.empty() && fitAll({style, place}))
                    return LabelPlan{style, place};
            }
            return LabelPlan{style, RangePlace::None};
        }
        return std::nullopt;
    }

    /// In the middle of the cell's front. On a plain fill the text is black or white; elsewhere it gets a plate. A piece that is smaller than the others gets what fits.
    void addLabel(DisplayList& list, const RectShape& cell, const Shard& shard, LabelPlan plan) const
    {
        if (!fits(shard, plan, cell.width, cell.height)) {
            const auto style = std::find_if(kLabelStyles.begin(), kLabelStyles.end(), [&](const LabelStyle& other) {
                return fits(shard, {other, RangePlace::None}, cell.width, cell.height);
            });
            if (style == kLabelStyles.end())
                return;
            plan = {*style, RangePlace::None};
        }
        const auto lines = linesOf(shard, plan);
        const Point size = sizeOf(lines);
        const Point front = frontOf(shard, cell.width, cell.height);
        const Point middle{cell.topLeft.x + front.x / 2.0, cell.topLeft.y + front.y / 2.0};
        Paint paint = ColourRole::Text;
        if (!needsPlate(shard, cell.width, cell.height)) {
            paint = readableOn(m_colours.of(sortedDevices(shard).front()));
        } else {
            const double width = size.x + 2.0 * plan.style.padding;
            const double height = size.y + 2.0 * plan.style.padding;
            RectShape plate{{middle.x - width / 2.0, middle.y - height / 2.0}, width, height, {}, 3.0};
            plate.style.fill = ColourRole::Surface;
            list.items.push_back({plate});
        }
        double y = middle.y - size.y / 2.0;
        for (const auto& [text, height] : lines) {
            list.items.push_back({TextShape{{middle.x, y + (height + kLeading) / 2.0}, text, height, TextAnchor::Middle, paint}});
            y += height + kLeading;
        }
    }

    const Layout& m_layout;
    const LayoutDrawing& m_drawing;
    double m_textRoom;
    DeviceColours m_colours;
    PanelSize m_panel;
    bool m_anyLabel = false; ///< some cell had room for its device ids
};

} // namespace

DisplayList drawLayout(const Layout& layout, const LayoutDrawing& drawing)
{
    return LayoutPainter(layout, drawing, drawing.panelWidth).draw();
}

DisplayList drawLayoutInto(const Layout& layout, LayoutDrawing drawing, double width, double height)
{
    LayoutPainter painter(layout, drawing, width - 2.0 * chart::kMargin);
    drawing.panelWidth = std::max(kSmallestPanel, width);
    drawing.panelHeight = std::max(kSmallestPanel, height);
    DisplayList list = painter.draw();
    // What is around the grids is known when they are drawn, and may change once more when they are smaller.
    for (int i = 0; i < 3 && (list.width > width || list.height > height); ++i) {
        const PanelSize panel = painter.panel();
        if (list.width > width)
            drawing.panelWidth = std::max(kSmallestPanel, panel.width - (list.width - width));
        if (list.height > height)
            drawing.panelHeight = std::max(kSmallestPanel, panel.height - (list.height - height));
        list = painter.draw();
    }
    return list;
}

std::set<DeviceId> devicesUnder(const Layout& layout, const LayoutDrawing& drawing, const std::string& id)
{
    return LayoutPainter(layout, drawing, drawing.panelWidth).devicesUnder(id);
}

} // namespace meshwright
