// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/chart.h"
#include "core/draw/draw_topology.h"

#include <string>
#include <vector>

/// Parts of `drawTopology`: not for other folders.
namespace meshwright::topology {

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

    /// The tile of one device (`count` 1), or of `count` devices of which this is the first.
    void addTile(const RectShape& place, std::size_t device, std::size_t count);

    /// A line along `points` for a bundle; `ends` is for the tooltip.
    void addLine(const std::vector<Point>& points, const Bundle& bundle, const LineEnds& ends);

    /// A bar for a switch that joins the devices along a dimension, with its text where it fits.
    void addSwitch(const RectShape& place, std::size_t index, const std::string& text, std::size_t dimension);

    /// The mesh axes along a dimension, and the bandwidth of its links when it is lit up; may be empty.
    std::string dimensionText(std::size_t dimension) const;

    /// A line of words about a dimension, from `at` to the right; lit up with its axis. Yields its width.
    double addDimensionText(Point at, const std::string& text, std::size_t dimension);

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
    void addTileText(const RectShape& place, const DrawnDevice& device, std::size_t count, Paint paint);
    double headHeight() const;
    void addHead(DisplayList& list) const;

    const TopologyDrawing& m_drawing;
    DeviceColours m_colours;
    std::vector<bool> m_litDimensions; ///< the hovered axis has links along it
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
