// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/topology_canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

namespace meshwright::topology {

namespace {

using namespace chart;

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
constexpr double kLeastPitch = 7.0;
constexpr double kMostPitch = 100.0;
constexpr double kTileShare = 0.8; ///< of the pitch across
constexpr double kAspect = 0.78; ///< of a tile: height to width
constexpr double kSmallPitch = 16.0; ///< below, boxes have no words and thin edges
constexpr std::int64_t kMostInRow = 8; ///< devices of a host side by side
constexpr double kSpine = 14.0; ///< left of all boxes, when the network has a bar for each row of them

double asDouble(std::int64_t value)
{
    return static_cast<double>(value);
}

double ceilDouble(std::int64_t a, std::int64_t b)
{
    return asDouble((a + b - 1) / b);
}

class HostPainter {
public:
    explicit HostPainter(const TopologyDrawing& drawing)
        : m_drawing(drawing)
        , m_canvas(drawing)
    {
        for (std::size_t i = 0; i < drawing.dimensions.size(); ++i) {
            const DrawnDimension& dimension = drawing.dimensions[i];
            if (dimension.kind == DimensionKind::Network) {
                m_network = i;
                m_hosts = dimension.length;
            } else {
                m_island = i;
                m_perHost = dimension.length;
            }
        }
        for (std::size_t i = 0; i < drawing.switches.size(); ++i) {
            if (drawing.switches[i].host < 0)
                m_networkSwitch = i;
        }
        const auto most = static_cast<std::int64_t>(drawing.mostCells);
        if (m_hosts * m_perHost > most) { // a host, or several, is one tile
            m_isFolded = true;
            m_fold = (m_hosts + most - 1) / most;
        }
        m_boxes = (m_hosts + m_fold - 1) / m_fold;
        const std::int64_t devices = m_isFolded ? 1 : m_perHost;
        m_isRound = !m_isFolded && m_island != kNone && drawing.dimensions[m_island].kind == DimensionKind::FullMesh && devices > 2;
        m_columns = m_isRound ? 1 : devices <= kMostInRow ? devices : ceilSqrt(2 * devices);
        m_rows = m_isRound ? 1 : (devices + m_columns - 1) / m_columns;
        m_hasSwitch = !m_isFolded && !m_isRound && devices > 1;
    }

    DisplayList draw()
    {
        chooseSizes();
        gatherDevices();
        addBoxes();
        addNetwork();
        addLinks();
        if (m_isFolded)
            m_canvas.addNote(m_fold == 1 ? fmt::format("each cell is a host of {} devices", m_perHost)
                                         : fmt::format("each cell is {} hosts of {} devices", m_fold, m_perHost));
        return m_canvas.finished(m_width, m_height);
    }

private:
    static std::int64_t ceilSqrt(std::int64_t value) { return static_cast<std::int64_t>(std::ceil(std::sqrt(asDouble(value)))); }

    bool hasNetwork() const { return m_networkSwitch != kNone && m_hosts > 1; }

    /// The sizes that follow from a pitch.
    struct Sizes {
        double pitch = 0.0;
        double padding = 0.0; ///< inside a box
        double wire = 0.0; ///< from a device to its switch, and from a box to the network
        double bar = 0.0; ///< a switch's height
        double boxWidth = 0.0;
        double boxHeight = 0.0;
        double boxGap = 0.0;
        double rowHeight = 0.0; ///< of a row of boxes with its network and the gap below
    };

    Sizes sizesFor(double pitch) const
    {
        const bool isSmall = pitch < kSmallPitch;
        Sizes sizes;
        sizes.pitch = pitch;
        sizes.padding = isSmall ? 3.0 : 10.0;
        sizes.wire = isSmall ? 5.0 : std::clamp(pitch * 0.3, 10.0, 22.0);
        sizes.bar = isSmall ? 4.0 : 20.0;
        sizes.boxGap = isSmall ? 4.0 : 14.0;
        const double side = roundSide(pitch);
        sizes.boxWidth = (m_isRound ? side : asDouble(m_columns) * pitch) + 2.0 * sizes.padding;
        sizes.boxHeight = (m_isRound ? side : asDouble(m_rows) * tilePitchDown(pitch)) + 2.0 * sizes.padding;
        if (m_isFolded)
            sizes.boxWidth = sizes.boxHeight = pitch;
        if (m_hasSwitch)
            sizes.boxHeight += sizes.wire + sizes.bar;
        else if (!isSmall && !m_isFolded)
            sizes.boxHeight += kLineHeight; // for the host's name
        sizes.rowHeight = sizes.boxHeight + sizes.boxGap + (hasNetwork() ? sizes.bar + sizes.wire : 0.0);
        return sizes;
    }

    double tilePitchDown(double pitch) const { return std::round(pitch * kTileShare * kAspect + (m_rows > 1 ? 0.2 * pitch : 0.0)); }

    /// The side of the square in which devices stand in a circle.
    double roundSide(double pitch) const { return pitch * std::max(2.4, asDouble(m_perHost) / std::numbers::pi + 0.9); }

    void chooseSizes()
    {
        const double spine = hasNetwork() ? kSpine : 0.0;
        Sizes best = sizesFor(kLeastPitch);
        m_boxesAcross = 0;
        for (std::int64_t across = 1; across <= m_boxes; ++across) {
            const double rows = ceilDouble(m_boxes, across);
            // The sizes grow with the pitch, but not in proportion: search for the largest that fits.
            double low = kLeastPitch;
            double high = kMostPitch;
            const auto fits = [&](double pitch) {
                const Sizes sizes = sizesFor(pitch);
                return asDouble(across) * (sizes.boxWidth + sizes.boxGap) - sizes.boxGap + spine <= m_canvas.roomAcross()
                    && rows * sizes.rowHeight - sizes.boxGap <= m_canvas.roomDown();
            };
            if (!fits(low))
                continue;
            while (high - low > 0.5) {
                const double middle = (low + high) / 2.0;
                (fits(middle) ? low : high) = middle;
            }
            const double pitch = std::floor(low);
            if (pitch > best.pitch || m_boxesAcross == 0) {
                best = sizesFor(pitch);
                m_boxesAcross = across;
            }
        }
        if (m_boxesAcross == 0) { // no arrangement fits: as wide as there is room, and as high as it gets
            const auto across = static_cast<std::int64_t>((m_canvas.roomAcross() - spine) / (best.boxWidth + best.boxGap));
            m_boxesAcross = std::clamp<std::int64_t>(across, 1, m_boxes);
        }
        m_sizes = best;
        m_left = hasNetwork() && m_boxes > m_boxesAcross ? kSpine : 0.0;
        m_width = m_left + asDouble(m_boxesAcross) * (best.boxWidth + best.boxGap) - best.boxGap;
        m_height = ceilDouble(m_boxes, m_boxesAcross) * best.rowHeight - best.boxGap;
    }

    RectShape boxRect(std::int64_t box) const
    {
        const double network = hasNetwork() ? m_sizes.bar + m_sizes.wire : 0.0;
        return {{m_left + asDouble(box % m_boxesAcross) * (m_sizes.boxWidth + m_sizes.boxGap),
                    asDouble(box / m_boxesAcross) * m_sizes.rowHeight + network},
            m_sizes.boxWidth, m_sizes.boxHeight, {}, m_sizes.pitch < kSmallPitch ? 2.0 : 6.0};
    }

    RectShape tileRect(std::int64_t box, std::int64_t place) const
    {
        const RectShape frame = boxRect(box);
        if (m_isFolded) {
            const double gap = std::max(1.0, 0.12 * frame.width);
            return {{frame.topLeft.x + gap / 2.0, frame.topLeft.y}, frame.width - gap, frame.height - gap, {}};
        }
        const double width = std::floor(m_sizes.pitch * (m_isRound ? 0.62 : kTileShare));
        const double height = std::floor(width * kAspect);
        const Point corner{frame.topLeft.x + m_sizes.padding, frame.topLeft.y + m_sizes.padding};
        if (m_isRound) {
            const double side = roundSide(m_sizes.pitch);
            const double radius = (side - width) / 2.0;
            const double angle = 2.0 * std::numbers::pi * asDouble(place) / asDouble(m_perHost) - std::numbers::pi / 2.0;
            return {{std::round(corner.x + side / 2.0 + radius * std::cos(angle) - width / 2.0),
                        std::round(corner.y + side / 2.0 + radius * std::sin(angle) - height / 2.0)},
                width, height, {}};
        }
        const double column = asDouble(place % m_columns);
        const double row = asDouble(place / m_columns);
        return {{corner.x + column * m_sizes.pitch + std::floor((m_sizes.pitch - width) / 2.0),
                    corner.y + row * tilePitchDown(m_sizes.pitch)},
            width, height, {}};
    }

    RectShape switchRect(std::int64_t box) const
    {
        const RectShape frame = boxRect(box);
        return {{frame.topLeft.x + m_sizes.padding, frame.topLeft.y + frame.height - m_sizes.padding - m_sizes.bar},
            frame.width - 2.0 * m_sizes.padding, m_sizes.bar, {}};
    }

    std::int64_t hostOf(std::size_t device) const
    {
        return m_network == kNone ? 0 : m_drawing.devices[device].coordinates[m_network];
    }
    std::int64_t placeOf(std::size_t device) const
    {
        return m_island == kNone || m_isFolded ? 0 : m_drawing.devices[device].coordinates[m_island];
    }

    void gatherDevices()
    {
        struct Tile {
            std::size_t device = 0;
            std::size_t count = 0;
        };
        std::map<std::pair<std::int64_t, std::int64_t>, Tile> tiles;
        for (std::size_t device = 0; device < m_drawing.devices.size(); ++device) {
            Tile& tile = tiles[{hostOf(device) / m_fold, placeOf(device)}];
            if (tile.count++ == 0 || (m_drawing.devices[tile.device].id < 0 && m_drawing.devices[device].id >= 0))
                tile.device = device;
        }
        for (const auto& [place, tile] : tiles)
            m_canvas.addTile(tileRect(place.first, place.second), tile.device, tile.count);
    }

    std::string islandText(std::int64_t host) const
    {
        const std::string mesh = m_island == kNone ? std::string() : m_canvas.dimensionText(m_island);
        return m_hosts > 1 ? fmt::format("host {}{}{}", host, mesh.empty() ? "" : ": ", mesh) : mesh;
    }

    void addBoxes()
    {
        for (std::int64_t box = 0; box < m_boxes && !m_isFolded; ++box) {
            RectShape frame = boxRect(box);
            frame.style.fill = ColourRole::Surface;
            frame.style.outline = ColourRole::Grid;
            m_canvas.addFrame(frame);
            if (!m_hasSwitch && m_sizes.pitch >= kSmallPitch) {
                const std::string text = fitted(islandText(box), frame.width - 8.0, kSmallSize);
                m_canvas.addDimensionText({frame.topLeft.x + m_sizes.padding, frame.topLeft.y + frame.height - kLineHeight / 2.0 - 2.0},
                    text, m_island == kNone ? m_network : m_island);
            }
        }
        for (std::size_t i = 0; i < m_drawing.switches.size() && m_hasSwitch; ++i) {
            if (m_drawing.switches[i].host < 0)
                continue;
            const std::string kind = kindOf(m_island);
            const std::string text = islandText(m_drawing.switches[i].host);
            m_canvas.addSwitch(switchRect(m_drawing.switches[i].host), i,
                fmt::format("{}{}{} switch", text, text.empty() ? "" : ", ", kind), m_island);
        }
    }

    std::string kindOf(std::size_t dimension) const
    {
        const auto link = std::find_if(m_drawing.links.begin(), m_drawing.links.end(),
            [&](const DrawnLink& candidate) { return candidate.dimension == dimension; });
        return link == m_drawing.links.end() ? std::string() : link->kind;
    }

    /// The bar of the network over a row of boxes.
    RectShape networkRect(std::int64_t row) const
    {
        const std::int64_t boxes = std::min(m_boxesAcross, m_boxes - row * m_boxesAcross);
        const double right = m_left + asDouble(boxes) * (m_sizes.boxWidth + m_sizes.boxGap) - m_sizes.boxGap;
        return {{0.0, asDouble(row) * m_sizes.rowHeight}, right, m_sizes.bar, {}};
    }

    void addNetwork()
    {
        if (!hasNetwork())
            return;
        const std::int64_t rows = (m_boxes + m_boxesAcross - 1) / m_boxesAcross;
        const std::string mesh = m_canvas.dimensionText(m_network);
        const std::string text = fmt::format("network between hosts{}{}", mesh.empty() ? "" : ": ", mesh);
        if (rows > 1) {
            const double height = asDouble(rows - 1) * m_sizes.rowHeight + m_sizes.bar;
            m_canvas.addSwitch({{0.0, 0.0}, kSpine - 6.0, height, {}}, m_networkSwitch, {}, m_network);
        }
        for (std::int64_t row = 0; row < rows; ++row)
            m_canvas.addSwitch(networkRect(row), m_networkSwitch, row == 0 ? text : std::string(), m_network);
    }

    void addLinks()
    {
        std::map<std::pair<std::size_t, std::int64_t>, Bundle> perBox; // links that are drawn as one for each box
        for (std::size_t i = 0; i < m_drawing.links.size(); ++i) {
            const DrawnLink& link = m_drawing.links[i];
            const auto device = static_cast<std::size_t>(std::min(link.from, link.to));
            if (link.dimension == m_network) {
                if (m_isFolded || m_isRound)
                    perBox[{m_network, hostOf(device) / m_fold}].links.push_back(i);
                else
                    addNetworkLink(i, device);
            } else if (m_hasSwitch) {
                addSwitchLink(i, device);
            } else if (!m_isFolded) {
                addDirectLink(i);
            }
        }
        for (const auto& [key, bundle] : perBox) {
            const RectShape box = boxRect(key.second);
            const double x = box.topLeft.x + box.width / 2.0;
            const double bar = networkRect(key.second / m_boxesAcross).topLeft.y + m_sizes.bar;
            m_canvas.addLine({{x, box.topLeft.y}, {x, bar}}, bundle, {fmt::format("host {}", key.second * m_fold), "network"});
        }
    }

    LineEnds endsOf(const DrawnLink& link) const { return {m_canvas.nodeName(link.from), m_canvas.nodeName(link.to)}; }

    void addNetworkLink(std::size_t index, std::size_t device)
    {
        const std::int64_t host = hostOf(device);
        const std::int64_t place = placeOf(device);
        const RectShape tile = tileRect(host, place);
        const double bar = networkRect(host / m_boxesAcross).topLeft.y + m_sizes.bar;
        const Bundle bundle{{index}};
        const LineEnds ends = endsOf(m_drawing.links[index]);
        const double middle = tile.topLeft.x + tile.width / 2.0;
        if (place < m_columns)
            return m_canvas.addLine({{middle, tile.topLeft.y}, {middle, bar}}, bundle, ends);
        // From a lower row up the gap left of the column.
        const double gap = tile.topLeft.x - 0.12 * m_sizes.pitch;
        const double y = tile.topLeft.y + tile.height / 2.0;
        m_canvas.addLine({{tile.topLeft.x, y}, {gap, y}, {gap, bar}}, bundle, ends);
    }

    void addSwitchLink(std::size_t index, std::size_t device)
    {
        const std::int64_t host = hostOf(device);
        const std::int64_t place = placeOf(device);
        const RectShape tile = tileRect(host, place);
        const double bar = switchRect(host).topLeft.y;
        const Bundle bundle{{index}};
        const LineEnds ends = endsOf(m_drawing.links[index]);
        const double middle = tile.topLeft.x + tile.width / 2.0;
        if (place / m_columns == m_rows - 1) {
            m_canvas.addLine({{middle, tile.topLeft.y + tile.height}, {middle, bar}}, bundle, ends);
            return;
        }
        // From an upper row down the gap right of the column.
        const double right = tile.topLeft.x + tile.width;
        const double gap = right + 0.08 * m_sizes.pitch;
        const double y = tile.topLeft.y + tile.height / 2.0;
        m_canvas.addLine({{right, y}, {gap, y}, {gap, bar}}, bundle, ends);
    }

    /// Between two devices without a switch.
    void addDirectLink(std::size_t index)
    {
        const DrawnLink& link = m_drawing.links[index];
        const auto middleOf = [&](std::int64_t node) {
            const auto device = static_cast<std::size_t>(node);
            const RectShape tile = tileRect(hostOf(device), placeOf(device));
            return Point{tile.topLeft.x + tile.width / 2.0, tile.topLeft.y + tile.height / 2.0};
        };
        m_canvas.addLine({middleOf(link.from), middleOf(link.to)}, {{index}}, endsOf(link));
    }

    const TopologyDrawing& m_drawing;
    Canvas m_canvas;
    std::size_t m_network = kNone; ///< indices into the drawing's dimensions
    std::size_t m_island = kNone;
    std::size_t m_networkSwitch = kNone;
    std::int64_t m_hosts = 1;
    std::int64_t m_perHost = 1;
    std::int64_t m_fold = 1; ///< hosts in a box
    std::int64_t m_boxes = 1;
    std::int64_t m_boxesAcross = 1;
    std::int64_t m_columns = 1; ///< of devices in a box
    std::int64_t m_rows = 1;
    bool m_isFolded = false;
    bool m_isRound = false; ///< devices in a circle, a line between every two
    bool m_hasSwitch = false;
    Sizes m_sizes;
    double m_left = 0.0;
    double m_width = 0.0;
    double m_height = 0.0;
};

} // namespace

DisplayList drawHosts(const TopologyDrawing& drawing)
{
    return HostPainter(drawing).draw();
}

} // namespace meshwright::topology
