// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/topology_canvas.h"

#include "core/support/checked.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace meshwright::topology {

namespace {

using namespace chart;

constexpr double kMostPitchAcross = 230.0;
constexpr double kTorusTileShare = 0.62; ///< of a wide pitch: the rest is for links and what is written on them
constexpr double kWidestTile = 102.0; ///< of a device, pixels, where the pitch is no wider
constexpr double kMostPitchDown = 136.0;
constexpr double kGapShare = 0.34; ///< of the pitch
constexpr double kLoopGap = 13.0; ///< the least gap in which wrap links go round their row
constexpr double kLayerPadding = 10.0;
constexpr double kLayerHeading = 20.0;
constexpr double kLayerGap = 26.0;
constexpr double kBundleWeight = 1.7; ///< of the links between two layers, which are one line
constexpr double kSliceHeight = 22.0; ///< of the box of a slice
constexpr double kSliceGap = 5.0;
constexpr double kNarrowestSlice = 24.0;
constexpr double kWidestSlice = 76.0;
constexpr double kStub = 8.0; ///< how far a stub of a wrap link reaches out

/// A dimension as it is drawn: neighbours may be folded to one cell.
struct Direction {
    std::size_t dimension = kNone; ///< index into the drawing's; kNone: the torus has no such direction
    std::int64_t fold = 1; ///< places in one cell
    std::int64_t cells = 1;
};

/// Where a device is drawn.
struct Place {
    std::int64_t column = 0;
    std::int64_t row = 0;
    std::int64_t layer = 0;
    std::int64_t lane = 0; ///< which of the devices of a chip; 0 when a cell is one tile

    friend auto operator<=>(const Place&, const Place&) = default;
};

class TorusPainter {
public:
    explicit TorusPainter(const TopologyDrawing& drawing)
        : m_drawing(drawing)
        , m_canvas(drawing)
    {
        chooseDirections();
        foldTo(static_cast<std::int64_t>(drawing.mostCells));
        chooseSizes();
        while (m_height > kTallest * m_canvas.roomDown() && cellCount() > 1) {
            foldTo(cellCount() / 2);
            chooseSizes();
        }
        m_canvas.setLineWidths(m_pitchDown < 14.0 ? 1.0 : 1.5, std::clamp(0.08 * m_pitchDown, 2.0, 4.0));
    }

    DisplayList draw()
    {
        addSlices();
        addFrames();
        addTiles();
        addLinks();
        addDimensionTexts();
        addNotes();
        return m_canvas.finished(m_width, m_height);
    }

private:
    const DrawnDimension& dimensionOf(const Direction& direction) const { return m_drawing.dimensions[direction.dimension]; }
    bool wraps(const Direction& direction) const { return direction.dimension != kNone && dimensionOf(direction).wraps; }

    /// The longer of the first two dimensions runs across, the third from layer to layer.
    void chooseDirections()
    {
        std::vector<Direction> found;
        for (std::size_t i = 0; i < m_drawing.dimensions.size(); ++i) {
            const DrawnDimension& dimension = m_drawing.dimensions[i];
            if (dimension.kind == DimensionKind::Torus)
                found.push_back({i, 1, dimension.length});
            else if (dimension.kind == DimensionKind::InChip)
                m_chip = {i, 1, dimension.length};
            else
                m_slices = {i, 1, dimension.length};
        }
        assert(!found.empty() && found.size() <= 3);
        m_across = found[0];
        if (found.size() > 1)
            m_down = found[1];
        if (found.size() > 2)
            m_layers = found[2];
        if (m_down.cells > m_across.cells)
            std::swap(m_across, m_down);
    }

    std::int64_t sliceOf(std::size_t device) const
    {
        return m_slices.dimension == kNone ? 0 : m_drawing.devices[device].coordinates[m_slices.dimension];
    }

    /// Slices are alike: one of them is drawn.
    bool isDrawn(std::size_t device) const { return m_slices.dimension == kNone || sliceOf(device) == m_drawing.slice; }

    std::int64_t cellCount() const { return m_across.cells * m_down.cells * m_layers.cells * m_chip.cells; }

    void foldTo(std::int64_t most)
    {
        if (cellCount() > most && m_chip.cells > 1) {
            m_chip.fold = m_chip.cells;
            m_chip.cells = 1;
        }
        while (cellCount() > most) {
            Direction* longest = &m_across;
            for (Direction* direction : {&m_down, &m_layers}) {
                if (direction->cells > longest->cells)
                    longest = direction;
            }
            longest->fold *= 2;
            longest->cells = (dimensionOf(*longest).length + longest->fold - 1) / longest->fold;
        }
        m_isFolded = m_across.fold * m_down.fold * m_layers.fold * m_chip.fold > 1;
    }

    Place placeOf(std::int64_t device) const
    {
        const DrawnDevice& drawn = m_drawing.devices[static_cast<std::size_t>(device)];
        const auto at = [&](const Direction& direction) {
            return direction.dimension == kNone ? 0 : drawn.coordinates[direction.dimension] / direction.fold;
        };
        return {at(m_across), at(m_down), at(m_layers), at(m_chip)};
    }

    /// The pitch that `layersAcross` layers side by side leave.
    std::pair<double, double> pitchFor(std::int64_t layersAcross) const
    {
        const double layersDown = std::ceil(asDouble(m_layers.cells) / asDouble(layersAcross));
        const bool framed = hasLayers();
        const double loops = 26.0;
        const double fixedAcross
            = (framed ? 2.0 * kLayerPadding + kLayerGap : 0.0) + (wraps(m_across) || wraps(m_down) ? loops : 0.0);
        const double fixedDown
            = (framed ? kLayerPadding + kLayerHeading + kLayerGap : 0.0) + (wraps(m_across) || wraps(m_down) ? loops : 0.0);
        const double head = kLineHeight + 4.0 + slicesHeight();
        double across = (m_canvas.roomAcross() / asDouble(layersAcross) - fixedAcross) / (asDouble(m_across.cells) - kGapShare);
        double down = ((m_canvas.roomDown() - head) / layersDown - fixedDown) / (asDouble(m_down.cells) - kGapShare);
        const double lanes = asDouble(m_chip.cells);
        const double squarest = 1.72 + 0.4 * (lanes - 1.0);
        across = std::clamp(across, kLeastPitch, kMostPitchAcross + 40.0 * (lanes - 1.0));
        down = std::clamp(down, kLeastPitch, kMostPitchDown);
        return {std::floor(std::min(across, squarest * down)), std::floor(std::min(down, 1.15 * across))};
    }

    bool hasLayers() const { return m_layers.cells > 1; }

    void chooseSizes()
    {
        double best = 0.0;
        for (std::int64_t candidate = m_layers.cells; candidate >= 1; --candidate) {
            const auto [across, down] = pitchFor(candidate);
            if (across * down > best * 1.02) {
                best = across * down;
                m_layersAcross = candidate;
                m_pitchAcross = across;
                m_pitchDown = down;
            }
        }
        layOut();
        while (m_width > m_canvas.roomAcross() && m_pitchAcross > kLeastPitch) { // the room for wrap links was a guess
            m_pitchAcross -= 1.0;
            layOut();
        }
        const double most = m_pitchDown;
        while (m_height > m_canvas.roomDown() && m_pitchDown > std::max(kLeastPitch, most - 2.0)) { // that for words too
            m_pitchDown -= 1.0;
            layOut();
        }
    }

    /// All sizes that follow from the pitches.
    void layOut()
    {
        const double widest = std::max(kWidestTile * asDouble(m_chip.cells), kTorusTileShare * m_pitchAcross);
        m_gapAcross = std::clamp(std::round(std::max(kGapShare * m_pitchAcross, m_pitchAcross - widest)), 2.0, 84.0);
        m_gapDown = std::clamp(std::round(kGapShare * m_pitchDown), 2.0, 44.0);
        m_hasLoops = m_gapAcross >= kLoopGap && m_gapDown >= kLoopGap;
        const double acrossLoops = m_hasLoops ? loopOffset(m_gapAcross) + 8.0 : kStub + 2.0;
        const double downLoops = m_hasLoops ? loopOffset(m_gapDown) + 8.0 : kStub + 2.0;
        m_gutterAcross = wraps(m_across) || (m_hasLoops && wraps(m_down)) ? std::ceil(acrossLoops) : 0.0;
        m_gutterDown = wraps(m_down) || (m_hasLoops && wraps(m_across)) ? std::ceil(downLoops) : 0.0;
        m_layerWidth = asDouble(m_across.cells) * m_pitchAcross - m_gapAcross + 2.0 * m_gutterAcross;
        m_layerHeight = asDouble(m_down.cells) * m_pitchDown - m_gapDown + 2.0 * m_gutterDown;
        if (hasLayers()) {
            m_layerWidth += 2.0 * kLayerPadding;
            m_layerHeight += kLayerPadding + kLayerHeading;
        }
        const std::int64_t layersDown = (m_layers.cells + m_layersAcross - 1) / m_layersAcross;
        m_side = hasLayers() && (layersDown > 1 || wraps(m_layers)) ? 18.0 : 0.0; // for links from layer to layer
        m_slicesTop = placeDimensionTexts() + 4.0;
        m_top = m_slicesTop + slicesHeight();
        m_width = m_side * 2.0 + asDouble(m_layersAcross) * (m_layerWidth + kLayerGap) - kLayerGap;
        m_height = m_top + asDouble(layersDown) * (m_layerHeight + kLayerGap) - kLayerGap
            + (wraps(m_layers) && hasLayers() ? 16.0 : 0.0);
    }

    double sliceWidth() const
    {
        return std::clamp(m_canvas.roomAcross() / asDouble(m_slices.cells) - kSliceGap, kNarrowestSlice, kWidestSlice);
    }
    std::int64_t slicesAcross() const
    {
        const auto most = static_cast<std::int64_t>((m_canvas.roomAcross() + kSliceGap) / (sliceWidth() + kSliceGap));
        return std::clamp<std::int64_t>(most, 1, m_slices.cells);
    }

    /// Of the boxes that stand for slices, with the room below them.
    double slicesHeight() const
    {
        if (m_slices.dimension == kNone)
            return 0.0;
        const std::int64_t lines = (m_slices.cells + slicesAcross() - 1) / slicesAcross();
        return asDouble(lines) * (kSliceHeight + kSliceGap) + 5.0;
    }

    void addSlices()
    {
        if (m_slices.dimension == kNone)
            return;
        std::vector<std::int64_t> devices(static_cast<std::size_t>(m_slices.cells));
        std::vector<bool> hasSelected(devices.size());
        for (std::size_t i = 0; i < m_drawing.devices.size(); ++i) {
            const auto slice = static_cast<std::size_t>(sliceOf(i));
            ++devices[slice];
            hasSelected[slice] = hasSelected[slice] || m_drawing.selected.contains(m_drawing.devices[i].id);
        }
        const double width = sliceWidth();
        for (std::int64_t slice = 0; slice < m_slices.cells; ++slice) {
            const RectShape box{{asDouble(slice % slicesAcross()) * (width + kSliceGap),
                                    m_slicesTop + asDouble(slice / slicesAcross()) * (kSliceHeight + kSliceGap)},
                width, kSliceHeight, {}, 3.0};
            const std::string name = fmt::format("slice {}", slice);
            const bool isWide = estimatedWidth(name, kSmallSize, true) + 8.0 <= width;
            const auto index = static_cast<std::size_t>(slice);
            m_canvas.addChoice(box, isWide ? name : std::to_string(slice), slice == m_drawing.slice, hasSelected[index],
                fmt::format("slice:{}", slice),
                fmt::format("{} of {}\n{} devices{}{}", name, m_slices.cells, devices[index],
                    slice == m_drawing.slice ? ", shown below" : "", hasSelected[index] ? "\nhas selected devices" : ""));
        }
        m_width = std::max(m_width, asDouble(slicesAcross()) * (width + kSliceGap) - kSliceGap);
    }

    /// How far beside its row a wrap link runs back.
    static double loopOffset(double gap) { return std::round(gap * 0.33); }

    RectShape layerRect(std::int64_t layer) const
    {
        return {{m_side + asDouble(layer % m_layersAcross) * (m_layerWidth + kLayerGap),
                    m_top + asDouble(layer / m_layersAcross) * (m_layerHeight + kLayerGap)},
            m_layerWidth, m_layerHeight, {}, 6.0};
    }

    /// The rectangle of a chip, or of a block.
    RectShape cellRect(const Place& place) const
    {
        const RectShape layer = layerRect(place.layer);
        const Point inset = hasLayers() ? Point{kLayerPadding, kLayerHeading} : Point{};
        return {{layer.topLeft.x + inset.x + m_gutterAcross + asDouble(place.column) * m_pitchAcross,
                    layer.topLeft.y + inset.y + m_gutterDown + asDouble(place.row) * m_pitchDown},
            m_pitchAcross - m_gapAcross, m_pitchDown - m_gapDown, {}, 4.0};
    }

    double laneGap() const { return m_chip.cells > 1 ? std::clamp(0.1 * (m_pitchAcross - m_gapAcross), 1.0, 10.0) : 0.0; }
    double chipPadding() const { return m_chip.cells > 1 && m_pitchAcross > 30.0 ? 4.0 : 0.0; }

    RectShape tileRect(const Place& place) const
    {
        RectShape cell = cellRect(place);
        if (m_chip.cells == 1)
            return cell;
        const double padding = chipPadding();
        const double width = (cell.width - 2.0 * padding + laneGap()) / asDouble(m_chip.cells);
        return {{cell.topLeft.x + padding + asDouble(place.lane) * width, cell.topLeft.y + padding}, width - laneGap(),
            cell.height - 2.0 * padding, {}, 3.0};
    }

    void addFrames()
    {
        for (std::int64_t layer = 0; hasLayers() && layer < m_layers.cells; ++layer) {
            RectShape frame = layerRect(layer);
            frame.style.fill = ColourRole::Surface;
            frame.style.outline = ColourRole::Grid;
            m_canvas.addFrame(frame, layerName(layer));
        }
        for (std::int64_t layer = 0; chipPadding() > 0.0 && layer < m_layers.cells; ++layer) {
            for (std::int64_t row = 0; row < m_down.cells; ++row) {
                for (std::int64_t column = 0; column < m_across.cells; ++column) {
                    RectShape chip = cellRect({column, row, layer, 0});
                    chip.style.fill = ColourRole::Surface;
                    chip.style.outline = ColourRole::Outline;
                    m_canvas.addFrame(chip);
                }
            }
        }
    }

    std::string layerName(std::int64_t layer) const
    {
        const std::string& name = dimensionOf(m_layers).name;
        const std::int64_t first = layer * m_layers.fold;
        const std::int64_t last = std::min(first + m_layers.fold, dimensionOf(m_layers).length) - 1;
        return first == last ? fmt::format("{} = {}", name, first) : fmt::format("{} = {} to {}", name, first, last);
    }

    void addTiles()
    {
        struct Tile {
            std::size_t device = 0;
            std::size_t count = 0;
        };
        std::map<Place, Tile> tiles;
        for (std::size_t device = 0; device < m_drawing.devices.size(); ++device) {
            if (!isDrawn(device))
                continue;
            Tile& tile = tiles[placeOf(static_cast<std::int64_t>(device))];
            // A device of the mesh stands for its block, should there be one.
            if (tile.count++ == 0 || (m_drawing.devices[tile.device].id < 0 && m_drawing.devices[device].id >= 0))
                tile.device = device;
        }
        for (const auto& [place, tile] : tiles)
            m_canvas.addTile(tileRect(place), tile.device, tile.count);
    }

    /// What is drawn as one line: the links between two tiles, or between two layers.
    using BundleKey = std::tuple<std::size_t, Place, Place, bool>;

    void addLinks()
    {
        std::map<BundleKey, Bundle> bundles;
        for (std::size_t i = 0; i < m_drawing.links.size(); ++i) {
            const DrawnLink& link = m_drawing.links[i];
            if (link.dimension == m_slices.dimension || !isDrawn(static_cast<std::size_t>(link.from)))
                continue;
            Place from = placeOf(link.from);
            Place to = placeOf(link.to);
            if (from == to)
                continue; // inside a block
            if (link.dimension == m_layers.dimension) {
                from = {0, 0, from.layer, 0};
                to = {0, 0, to.layer, 0};
            }
            bundles[{link.dimension, from, to, link.wraps}].links.push_back(i);
        }
        for (const auto& [key, bundle] : bundles) {
            const auto& [dimension, from, to, isWrap] = key;
            const LineEnds ends = endsOf(dimension, from, to, bundle);
            if (dimension == m_layers.dimension)
                addLayerLine(from.layer, to.layer, isWrap, bundle, ends);
            else if (isWrap)
                addWrap(dimension, from, to, bundle, ends);
            else
                addNeighbours(dimension, from, to, bundle, ends);
        }
    }

    LineEnds endsOf(std::size_t dimension, const Place& from, const Place& to, const Bundle& bundle) const
    {
        if (dimension == m_layers.dimension)
            return {"layer " + layerName(from.layer), "layer " + layerName(to.layer)};
        const DrawnLink& link = m_drawing.links[bundle.links.front()];
        const std::string before = m_isFolded ? "block of " : "";
        return {before + m_canvas.nodeName(link.from), before + m_canvas.nodeName(link.to)};
    }

    /// Beside the middle of a cell, so that links of several devices of a chip do not lie on each other.
    double laneOffset(std::int64_t lane, double size) const
    {
        return (asDouble(lane) - (asDouble(m_chip.cells) - 1.0) / 2.0) * std::min(14.0, size / 3.0);
    }

    void addNeighbours(std::size_t dimension, const Place& from, const Place& to, const Bundle& bundle, const LineEnds& ends)
    {
        const bool inChip = dimension == m_chip.dimension;
        const bool isAcross = inChip || dimension == m_across.dimension;
        const RectShape a = inChip ? tileRect(from) : cellRect(from);
        const RectShape b = inChip ? tileRect(to) : cellRect(to);
        Point start;
        Point stop;
        if (isAcross) {
            const double y = a.topLeft.y + a.height / 2.0 + (inChip ? 0.0 : laneOffset(from.lane, a.height));
            start = {a.topLeft.x + a.width, y};
            stop = {b.topLeft.x, y};
        } else {
            const RectShape tile = tileRect(from);
            const double x = tile.topLeft.x + tile.width / 2.0;
            start = {x, a.topLeft.y + a.height};
            stop = {x, b.topLeft.y};
        }
        m_canvas.addLine({start, stop}, bundle, ends);
        if (!inChip && isFigurePlace(dimension, from))
            m_canvas.addFigure({(start.x + stop.x) / 2.0, (start.y + stop.y) / 2.0},
                isAcross                ? m_gapAcross
                    : m_gapDown >= 18.0 ? m_pitchAcross
                                        : 0.0,
                bundle);
    }

    /// One link of each direction carries the figure: near the middle of the first layer.
    bool isFigurePlace(std::size_t dimension, const Place& from) const
    {
        const bool isAcross = dimension == m_across.dimension;
        const std::int64_t column = isAcross ? (m_across.cells - 2) / 2 : m_across.cells / 2;
        const std::int64_t row = isAcross ? m_down.cells / 2 : (m_down.cells - 2) / 2;
        return from.layer == 0 && from.lane == 0 && from.column == column && from.row == row;
    }

    void addWrap(std::size_t dimension, const Place& from, const Place& to, const Bundle& bundle, const LineEnds& ends)
    {
        const bool isAcross = dimension == m_across.dimension;
        const RectShape last = cellRect(isAcross == (from.column > to.column) || (!isAcross && from.row > to.row) ? from : to);
        const RectShape first = cellRect(isAcross ? (from.column > to.column ? to : from) : (from.row > to.row ? to : from));
        const RectShape tile = tileRect(from);
        const double offset = laneOffset(from.lane, first.height);
        const double lane = 3.0 * asDouble(from.lane);
        if (isAcross) {
            const double y = first.topLeft.y + first.height / 2.0 + offset;
            const double left = first.topLeft.x;
            const double right = last.topLeft.x + last.width;
            if (m_hasLoops) {
                const double reach = loopOffset(m_gapAcross) + 5.0 + lane;
                const double back = first.topLeft.y - loopOffset(m_gapDown) - lane;
                m_canvas.addLine(rounded({{right, y}, {right + reach, y}, {right + reach, back}, {left - reach, back},
                                             {left - reach, y}, {left, y}},
                                     6.0),
                    bundle, ends);
            } else {
                addStub({right, y}, {1.0, 0.0}, bundle, ends);
                addStub({left, y}, {-1.0, 0.0}, bundle, ends);
            }
            return;
        }
        const double x = tile.topLeft.x + tile.width / 2.0;
        const double top = first.topLeft.y;
        const double bottom = last.topLeft.y + last.height;
        if (m_hasLoops) {
            const double reach = loopOffset(m_gapDown) + 5.0 + lane;
            const double back = first.topLeft.x - loopOffset(m_gapAcross) - lane;
            m_canvas.addLine(rounded({{x, bottom}, {x, bottom + reach}, {back, bottom + reach}, {back, top - reach},
                                         {x, top - reach}, {x, top}},
                                 6.0),
                bundle, ends);
        } else {
            addStub({x, bottom}, {0.0, 1.0}, bundle, ends);
            addStub({x, top}, {0.0, -1.0}, bundle, ends);
        }
    }

    /// A short end of a link that goes round: outwards, then bent.
    void addStub(Point at, Point out, const Bundle& bundle, const LineEnds& ends)
    {
        m_hasStubs = true;
        const double bend = std::min(4.0, 0.25 * std::min(m_pitchAcross, m_pitchDown));
        const Point tip{at.x + out.x * (kStub - 2.0), at.y + out.y * (kStub - 2.0)};
        // Both ends of a row bend up and both of a column to the left, as if the link ran there.
        const Point end = out.x != 0.0 ? Point{tip.x, tip.y - bend} : Point{tip.x - bend, tip.y};
        m_canvas.addLine({at, tip, end}, bundle, ends);
    }

    void addLayerLine(std::int64_t from, std::int64_t to, bool isWrap, const Bundle& bundle, const LineEnds& ends)
    {
        const RectShape a = layerRect(from);
        const RectShape b = layerRect(to);
        const double right = a.topLeft.x + a.width;
        const double y = a.topLeft.y + a.height / 2.0;
        if (!isWrap && b.topLeft.y == a.topLeft.y) {
            m_canvas.addLine({{right, y}, {b.topLeft.x, y}}, bundle, ends, kBundleWeight);
            return;
        }
        // Round the right side, between the rows of layers (or under all of them), into the left side.
        const RectShape& lower = isWrap ? layerRect(std::max(from, to)) : a;
        const RectShape& goal = isWrap ? layerRect(std::min(from, to)) : b;
        const double start = lower.topLeft.x + lower.width;
        const double out = start + 10.0;
        const double between = lower.topLeft.y + lower.height + (isWrap ? 9.0 : kLayerGap / 2.0);
        const double left = goal.topLeft.x - (isWrap ? 14.0 : 9.0);
        const double startY = lower.topLeft.y + lower.height / 2.0 + (isWrap ? 8.0 : 0.0);
        const double goalY = goal.topLeft.y + goal.height / 2.0 + (isWrap ? 8.0 : 0.0);
        m_canvas.addLine(
            rounded(
                {{start, startY}, {out, startY}, {out, between}, {left, between}, {left, goalY}, {goal.topLeft.x, goalY}}, 6.0),
            bundle, ends, kBundleWeight);
    }

    /// Lays the words about each dimension out over the grid, with room for the figures that come when their axis lights up. Yields the height.
    double placeDimensionTexts()
    {
        m_texts.clear();
        Point at{0.0, kLineHeight / 2.0};
        const auto place = [&](const Direction& direction, const char* mark) {
            if (direction.dimension == kNone || dimensionOf(direction).length == 1)
                return;
            const DrawnDimension& dimension = dimensionOf(direction);
            const auto text = [&](const std::string& mesh) {
                return fmt::format("{} {}{}{}", mark, dimension.name, mesh.empty() ? "" : ": ", mesh);
            };
            const std::string longest = text(m_canvas.meshTextWithFigure(direction.dimension));
            const double width = estimatedWidth(longest, kSmallSize, true);
            if (at.x > 0.0 && at.x + width > m_canvas.roomAcross())
                at = {0.0, at.y + kLineHeight};
            const bool isLit = m_canvas.lit(direction.dimension);
            m_texts.push_back({at, isLit ? longest : text(dimension.meshText), direction.dimension});
            at.x += (m_drawing.meshAxes.empty() ? estimatedWidth(m_texts.back().text, kSmallSize) : width) + 16.0;
        };
        place(m_across, "→");
        place(m_down, "↓");
        place(m_layers, "layers");
        place(m_chip, "in a chip");
        place(m_slices, "⇄");
        return at.y + kLineHeight / 2.0;
    }

    void addDimensionTexts()
    {
        for (const DimensionText& text : m_texts) {
            m_canvas.addDimensionText(text.at, text.text, text.dimension);
            const bool mayLight = !m_drawing.meshAxes.empty();
            const std::string widest = mayLight ? m_canvas.meshTextWithFigure(text.dimension) + "in a chip: " : text.text;
            m_width
                = std::max(m_width, std::min(m_canvas.roomAcross(), text.at.x + estimatedWidth(widest, kSmallSize, mayLight)));
        }
    }

    void addNotes()
    {
        if (m_hasStubs)
            m_canvas.addNote("bent ends outside: links that wrap round to the other side");
        if (m_isFolded) {
            std::vector<std::string> sizes;
            for (const Direction* direction : {&m_across, &m_down, &m_layers, &m_chip}) {
                if (direction->dimension != kNone)
                    sizes.push_back(fmt::format("{} {}", direction->fold, dimensionOf(*direction).name));
            }
            m_canvas.addNote(fmt::format("each cell is a block of neighbours: {}", fmt::join(sizes, ", ")));
        }
    }

    struct DimensionText {
        Point at;
        std::string text;
        std::size_t dimension = 0;
    };

    const TopologyDrawing& m_drawing;
    Canvas m_canvas;
    std::vector<DimensionText> m_texts;
    Direction m_across;
    Direction m_down;
    Direction m_layers;
    Direction m_chip;
    Direction m_slices; ///< the network that joins them
    bool m_isFolded = false;
    bool m_hasLoops = false;
    bool m_hasStubs = false;
    std::int64_t m_layersAcross = 1;
    double m_pitchAcross = kLeastPitch;
    double m_pitchDown = kLeastPitch;
    double m_gapAcross = 0.0;
    double m_gapDown = 0.0;
    double m_gutterAcross = 0.0; ///< left and right of a grid, for wrap links
    double m_gutterDown = 0.0;
    double m_layerWidth = 0.0;
    double m_layerHeight = 0.0;
    double m_side = 0.0; ///< left and right of all layers
    double m_slicesTop = 0.0;
    double m_top = 0.0;
    double m_width = 0.0;
    double m_height = 0.0;
};

} // namespace

DisplayList drawTorus(const TopologyDrawing& drawing)
{
    return TorusPainter(drawing).draw();
}

} // namespace meshwright::topology
