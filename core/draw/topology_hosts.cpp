// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/topology_canvas.h"

#include "core/support/checked.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

namespace meshwright::topology {

namespace {

using namespace chart;

constexpr double kMostPitch = 130.0;
constexpr double kHostTileShare = 0.8; ///< of the pitch across
constexpr double kAspect = 0.78; ///< of a tile: height to width
constexpr std::int64_t kMostInRow = 8; ///< devices of a host side by side
constexpr double kSpine = 14.0; ///< left of all boxes, when the network has a bar for each row of them

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
        arrange(m_hosts * m_perHost > most ? (m_hosts + most - 1) / most : 0);
        while (m_height > kTallest * m_canvas.roomDown() && m_hosts > 1 && m_boxes > 1)
            arrange(std::max<std::int64_t>(1, 2 * m_fold));
        const double lit = std::clamp(0.07 * m_sizes.pitch, 1.5, 4.0);
        m_canvas.setLineWidths(m_sizes.pitch < 16.0 || m_isRound ? 1.0 : 1.5, m_isRound ? std::min(2.0, lit) : lit);
    }

    DisplayList draw()
    {
        gatherDevices();
        addBoxes();
        addNetwork();
        addLinks();
        if (isFolded())
            m_canvas.addNote(m_fold == 1 ? fmt::format("each cell is a host of {} devices", m_perHost)
                                         : fmt::format("each cell is {} hosts of {} devices", m_fold, m_perHost));
        return m_canvas.finished(m_width, m_height);
    }

private:
    static std::int64_t ceilSqrt(std::int64_t value) { return static_cast<std::int64_t>(std::ceil(std::sqrt(asDouble(value)))); }

    /// With `fold` hosts in one tile; 0: every device is one.
    void arrange(std::int64_t fold)
    {
        m_fold = fold;
        m_boxes = fold == 0 ? m_hosts : (m_hosts + fold - 1) / fold;
        const std::int64_t devices = isFolded() ? 1 : m_perHost;
        m_isRound = devices > 2 && m_drawing.dimensions[m_island].kind == DimensionKind::FullMesh;
        m_columns = m_isRound ? 1 : devices <= kMostInRow ? devices : ceilSqrt(2 * devices);
        m_rows = m_isRound ? 1 : (devices + m_columns - 1) / m_columns;
        m_hasSwitch = !isFolded()
            && std::any_of(
                m_drawing.switches.begin(), m_drawing.switches.end(), [](const DrawnSwitch& each) { return each.host >= 0; });
        chooseSizes();
    }

    bool isFolded() const { return m_fold > 0; }
    std::int64_t boxOf(std::size_t device) const { return isFolded() ? hostOf(device) / m_fold : hostOf(device); }
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
        Sizes sizes;
        sizes.pitch = pitch;
        sizes.padding = std::clamp(std::round(0.25 * pitch), 3.0, 10.0);
        sizes.wire = std::clamp(std::round(0.3 * pitch), 4.0, 22.0);
        sizes.bar = std::clamp(std::round(0.6 * pitch), 4.0, 20.0);
        sizes.boxGap = std::clamp(std::round(0.4 * pitch), 4.0, 14.0);
        const double side = roundSide(pitch);
        sizes.boxWidth = (m_isRound ? side : asDouble(m_columns) * pitch) + 2.0 * sizes.padding;
        sizes.boxHeight = (m_isRound ? side : asDouble(m_rows) * tilePitchDown(pitch)) + 2.0 * sizes.padding;
        if (isFolded())
            sizes.boxWidth = sizes.boxHeight = pitch;
        if (m_hasSwitch)
            sizes.boxHeight += sizes.wire + sizes.bar;
        else if (!isFolded() && sizes.bar > kSmallSize)
            sizes.boxHeight += kLineHeight; // for the host's name
        sizes.rowHeight = sizes.boxHeight + sizes.boxGap + (hasNetwork() ? sizes.bar + sizes.wire : 0.0);
        return sizes;
    }

    double tilePitchDown(double pitch) const
    {
        return std::round(pitch * kHostTileShare * kAspect + (m_rows > 1 ? 0.2 * pitch : 0.0));
    }

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
            m_sizes.boxWidth, m_sizes.boxHeight, {}, std::min(6.0, 0.25 * m_sizes.pitch)};
    }

    RectShape tileRect(std::int64_t box, std::int64_t place) const
    {
        const RectShape frame = boxRect(box);
        if (isFolded()) {
            const double gap = std::max(1.0, 0.12 * frame.width);
            return {{frame.topLeft.x + gap / 2.0, frame.topLeft.y}, frame.width - gap, frame.height - gap, {}};
        }
        const double width = std::floor(m_sizes.pitch * (m_isRound ? 0.62 : kHostTileShare));
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
        return m_island == kNone || isFolded() ? 0 : m_drawing.devices[device].coordinates[m_island];
    }

    void gatherDevices()
    {
        struct Tile {
            std::size_t device = 0;
            std::size_t count = 0;
        };
        std::map<std::pair<std::int64_t, std::int64_t>, Tile> tiles;
        for (std::size_t device = 0; device < m_drawing.devices.size(); ++device) {
            Tile& tile = tiles[{boxOf(device), placeOf(device)}];
            if (tile.count++ == 0 || (m_drawing.devices[tile.device].id < 0 && m_drawing.devices[device].id >= 0))
                tile.device = device;
        }
        for (const auto& [place, tile] : tiles)
            m_canvas.addTile(tileRect(place.first, place.second), tile.device, tile.count);
    }

    /// `host 0: model, 364 GB/s each way`, and the same ever shorter, for what fits.
    std::vector<std::string> islandTexts(std::int64_t host) const
    {
        const std::string name = m_hosts > 1 ? fmt::format("host {}", host) : std::string();
        std::vector<std::string> texts;
        const auto add
            = [&](const std::string& more) { texts.push_back(name + (name.empty() || more.empty() ? "" : ": ") + more); };
        if (m_island != kNone && m_perHost > 1) {
            if (m_canvas.lit(m_island))
                add(m_canvas.meshTextWithFigure(m_island));
            const std::string& mesh = m_drawing.dimensions[m_island].meshText;
            const std::string what = m_hasSwitch ? kindOf(m_island) + " switch" : kindOf(m_island);
            if (!m_canvas.lit(m_island))
                add(mesh + (mesh.empty() ? "" : ", ") + what);
            add(mesh);
        }
        texts.push_back(name);
        return texts;
    }

    void addBoxes()
    {
        for (std::int64_t box = 0; box < m_boxes && !isFolded(); ++box) {
            RectShape frame = boxRect(box);
            frame.style.fill = ColourRole::Surface;
            frame.style.outline = ColourRole::Grid;
            m_canvas.addFrame(frame);
            if (!m_hasSwitch && m_sizes.bar > kSmallSize) {
                frame.topLeft.y += frame.height - kLineHeight - 4.0;
                frame.height = kLineHeight;
                m_canvas.addSwitchText(frame, islandTexts(box), m_island == kNone ? m_network : m_island);
            }
        }
        for (std::size_t i = 0; i < m_drawing.switches.size() && m_hasSwitch; ++i) {
            const std::int64_t host = m_drawing.switches[i].host;
            if (host >= 0)
                m_canvas.addSwitch(switchRect(host), i, islandTexts(host), m_island);
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

    /// One bar, or a comb with a tooth over each row of boxes.
    void addNetwork()
    {
        if (!hasNetwork())
            return;
        const std::int64_t rows = (m_boxes + m_boxesAcross - 1) / m_boxesAcross;
        const std::string& mesh = m_drawing.dimensions[m_network].meshText;
        const std::string name = "network between hosts";
        std::vector<std::string> texts;
        if (m_canvas.lit(m_network))
            texts.push_back(fmt::format("{}: {}", name, m_canvas.meshTextWithFigure(m_network)));
        texts.insert(texts.end(), {name + (mesh.empty() ? "" : ": ") + mesh, name, "network"});
        if (rows == 1)
            return m_canvas.addSwitch(networkRect(0), m_networkSwitch, texts, m_network);
        PolygonShape comb;
        comb.corners.push_back({0.0, 0.0});
        for (std::int64_t row = 0; row < rows; ++row) {
            const RectShape bar = networkRect(row);
            const double bottom = bar.topLeft.y + bar.height;
            if (row > 0)
                comb.corners.push_back({kSpine - 6.0, bar.topLeft.y});
            comb.corners.push_back({bar.width, bar.topLeft.y});
            comb.corners.push_back({bar.width, bottom});
            comb.corners.push_back({row + 1 < rows ? kSpine - 6.0 : 0.0, bottom});
        }
        m_canvas.addSwitch(comb, m_networkSwitch, m_network);
        m_canvas.addSwitchText(networkRect(0), texts, m_network);
    }

    void addLinks()
    {
        std::map<std::pair<std::size_t, std::int64_t>, Bundle> perBox; // links that are drawn as one for each box
        for (std::size_t i = 0; i < m_drawing.links.size(); ++i) {
            const DrawnLink& link = m_drawing.links[i];
            const auto device = static_cast<std::size_t>(std::min(link.from, link.to));
            if (link.dimension == m_network) {
                if (isFolded() || m_isRound)
                    perBox[{m_network, boxOf(device)}].links.push_back(i);
                else
                    addNetworkLink(i, device);
            } else if (m_hasSwitch) {
                addSwitchLink(i, device);
            } else if (!isFolded()) {
                addDirectLink(i);
            }
        }
        for (const auto& [key, bundle] : perBox) {
            const RectShape box = boxRect(key.second);
            const double x = box.topLeft.x + box.width / 2.0;
            const double bar = networkRect(key.second / m_boxesAcross).topLeft.y + m_sizes.bar;
            m_canvas.addLine({{x, box.topLeft.y}, {x, bar}}, bundle,
                {fmt::format("host {}", key.second * std::max<std::int64_t>(1, m_fold)), "network"});
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
    std::int64_t m_fold = 0; ///< hosts in one tile; 0: every device is a tile
    std::int64_t m_boxes = 1;
    std::int64_t m_boxesAcross = 1;
    std::int64_t m_columns = 1; ///< of devices in a box
    std::int64_t m_rows = 1;
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
