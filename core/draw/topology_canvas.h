// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/chart.h"
#include "core/draw/draw_topology.h"

#include <limits>
#include <string>
#include <vector>

/// Parts of `drawTopology`: not for other folders.
namespace meshwright::topology {

inline constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
inline constexpr double kLeastPitch = 7.0; ///< pixels from one cell to the next
inline constexpr double kTallest
    = 2.0; ///< times the height asked for; a machine that needs more is drawn in blocks, or a host as one tile

/// Links that are drawn as one line.
struct Bundle {
    std::vector<std::size_t> links; ///< indices into TopologyDrawing::links; not empty
};

/// Where a line begins and ends, in words for its tooltip: `device 0`, `switch of host 1`, `layer 2`.
struct LineEnds {
    std::string from;
    std::string to;
};

/// A picture while it is drawn: layers of items, lowest first, and how devices and links look in it.
class Canvas {
public:
    explicit Canvas(const TopologyDrawing& drawing);

    const TopologyDrawing& drawing() const { return m_drawing; }

    /// A rectangle behind everything, such as a layer's or a host's.
    void addFrame(const RectShape& frame, const std::string& heading = {});

    /// A box with a text that fits, for something to choose; thick where it is chosen, accented where something in it is selected.
    void addChoice(const RectShape& box, const std::string& text, bool isChosen, bool hasSelected, const std::string& id,
        const std::string& tooltip);

    /// The tile of one device (`count` 1), or of `count` devices of which this is the first.
    void addTile(const RectShape& place, std::size_t device, std::size_t count);

    /// How thick lines are, in pixels: so that they suit the size of the cells.
    void setLineWidths(double plain, double lit);

    /// A line along `points` for a bundle, `weight` times as thick as others; `ends` is for the tooltip.
    void addLine(const std::vector<Point>& points, const Bundle& bundle, const LineEnds& ends, double weight = 1.0);

    /// Several bars that are one switch: a polygon with the text in its first bar.
    void addSwitch(const PolygonShape& outline, std::size_t index, std::size_t dimension);
    void addSwitchText(const RectShape& bar, const std::vector<std::string>& texts, std::size_t dimension);

    /// A bar for a switch that joins the devices along a dimension, with the first of the texts that fits.
    void addSwitch(const RectShape& place, std::size_t index, const std::vector<std::string>& texts, std::size_t dimension);

    /// The mesh axes along a dimension, with the bandwidth of its links; may be empty.
    std::string meshTextWithFigure(std::size_t dimension) const;

    /// A line of words about a dimension, from `at` to the right; lit up with its axis.
    void addDimensionText(Point at, const std::string& text, std::size_t dimension);

    /// What links of this kind carry for the hovered axis, on a plate; nothing where it does not light up or there is no room.
    void addFigure(Point middle, double room, const Bundle& bundle);

    void addNote(const std::string& text) { m_notes.push_back(text); }

    bool lit(const Bundle& bundle) const;
    bool lit(std::size_t dimension) const { return m_litDimensions[dimension]; }

    /// What a node is called: a device's name or a switch's.
    std::string nodeName(std::int64_t node) const;

    /// Everything under the heading and the legend, moved to the margin; then the notes.
    DisplayList finished(double contentWidth, double contentHeight);

    /// How high and wide the content may be for the picture to keep to the size asked for.
    double roomAcross() const;
    double roomDown() const;

private:
    std::vector<std::string> axesOf(const Bundle& bundle) const;
    std::string lineTooltip(const Bundle& bundle, const LineEnds& ends) const;
    std::string tileTooltip(std::size_t device, std::size_t count) const;
    void findWidestWords();
    void addTileText(const RectShape& place, const DrawnDevice& device, std::size_t count, Paint paint);
    void addSwitchOutline(DisplayItem item, std::size_t index, std::size_t dimension);
    double headHeight() const;
    void addHead(DisplayList& list) const;

    const TopologyDrawing& m_drawing;
    DeviceColours m_colours;
    std::vector<bool> m_litDimensions; ///< the hovered axis has links along it
    double m_plainWidth = 1.5; ///< of lines
    double m_litWidth = 4.0;
    std::string m_widestId; ///< of a tile's words, the widest of each kind: all tiles have the same or none
    std::string m_widestMeshText;
    std::string m_widestMeshPart;
    std::string m_widestMeshNumbers;
    bool m_isFaded = false; ///< some axis is hovered, so what it does not use is faint
    std::size_t m_unusedPlaces = 0;
    bool m_hasShared = false;
    std::vector<DisplayItem> m_frames;
    std::vector<DisplayItem> m_lines;
    std::vector<DisplayItem> m_litLines;
    std::vector<DisplayItem> m_tiles;
    std::vector<DisplayItem> m_accents;
    std::vector<DisplayItem> m_labels;
    std::vector<std::string> m_notes;
};

/// A path with round corners.
std::vector<Point> rounded(const std::vector<Point>& corners, double radius);

/// Draws a torus; the drawing has one to three dimensions of kind Torus, and perhaps one in the chip.
DisplayList drawTorus(const TopologyDrawing& drawing);

/// Draws hosts.
DisplayList drawHosts(const TopologyDrawing& drawing);

} // namespace meshwright::topology
