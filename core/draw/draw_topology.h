// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "core/sharding/device_colours.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace meshwright {

/// How the devices that differ in one coordinate of a machine are joined.
enum class DimensionKind : std::uint8_t {
    Torus, ///< neighbours; drawn as a direction of the grid
    InChip, ///< the devices of one chip; drawn inside one cell
    Switch, ///< the devices of one host, through a switch
    FullMesh, ///< the devices of one host, a link between every two
    Network, ///< hosts, through a network
};

/// One coordinate of the machine.
struct DrawnDimension {
    std::string name; ///< `x`, `host`
    DimensionKind kind = DimensionKind::Torus;
    std::int64_t length = 1; ///< >= 1
    bool wraps = false;
    std::string meshText = {}; ///< the mesh axes that lie along it: `data`, `data 2, model 4`; empty: none
};

/// A place for a device.
struct DrawnDevice {
    DeviceId id = -1; ///< as the other views name it: of the mesh. -1: the mesh leaves this place empty
    std::vector<std::int64_t> coordinates; ///< one for each dimension
    std::string meshText = {}; ///< `data 1, model 0`
};

/// A switch: of a host, or the network between hosts.
struct DrawnSwitch {
    std::string name; ///< `NVLink switch of host 0`, `network`
    std::int64_t host = -1; ///< -1: between hosts
    std::string tooltip = {};
};

/// A link both ways between two nodes. Nodes are the devices, by their index, then the switches.
struct DrawnLink {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::size_t dimension = 0; ///< index into TopologyDrawing::dimensions
    bool wraps = false; ///< from the last place of a dimension to the first
    std::string kind; ///< `ICI`, `NVLink`
    double bytesPerSecond = 0.0; ///< each way
    double latencySeconds = 0.0;
    std::vector<std::string> meshAxes = {}; ///< mesh axes whose traffic uses it
};

/// A mesh axis and what it has of the machine.
struct DrawnMeshAxis {
    std::string name;
    std::int64_t size = 1;
    std::int64_t groups = 1; ///< devices of the mesh / size
    std::string where = {}; ///< `x`, `y (4 of 16, every 2) and z`; empty for an axis of size 1
    std::string kind = {}; ///< of its links: `ICI`, `NVLink and NIC`
    double bytesPerSecond = 0.0; ///< each way, what one group has of its slowest link; 0: it needs no links
    double latencySeconds = 0.0; ///< of a step to the next device of a group; the longest
    bool wraps = false; ///< its groups are rings
    std::vector<std::string> sharesWith = {}; ///< other mesh axes that use some of the same links

    friend bool operator==(const DrawnMeshAxis&, const DrawnMeshAxis&) = default;
};

/// A machine, the mesh on it, and how `drawTopology` draws them.
struct TopologyDrawing {
    std::string title; ///< `TPU v5e, 4x2 chips, no wraparound`
    std::string platform = "device"; ///< before device ids
    std::vector<DrawnDimension>
        dimensions; ///< Torus (up to 3) and InChip, with a Network of slices or none; or Network and Switch or FullMesh
    std::vector<DrawnDevice> devices; ///< index: the number that the machine gives the device
    std::vector<DrawnSwitch> switches;
    std::vector<DrawnLink> links;
    std::vector<DrawnMeshAxis> meshAxes;
    std::optional<DeviceColours> deviceColours = {}; ///< of mesh devices; without it colours follow the ids
    std::string hoveredAxis = {}; ///< a mesh axis whose links light up; empty: none
    std::set<DeviceId> selected = {}; ///< mesh devices with an accented outline
    std::int64_t slice = 0; ///< of several slices, the one whose devices are drawn
    bool legend = true; ///< a line for each mesh axis under the title
    bool caption = true; ///< the title over the picture
    double width = 760.0; ///< what there is room for, pixels; the picture is as large as it needs, within that where it can
    double height = 480.0;
    std::size_t mostCells = 4096; ///< of more devices, neighbours are drawn as one block
};

/// A picture of a machine and the mesh on it.
///
/// A torus of one or two dimensions is a grid, one of three a row of layers, joined by a bundle of links each. Wrap links go round the outside
/// of their row or column where there is room, otherwise they are stubs at both ends. The devices of a chip share a cell. Hosts are boxes of
/// devices with their switch, under the bar of the network. Of several slices one is drawn, under a row of boxes that stand for all of them. Cells shrink with the machine; labels that do not fit are left out; beyond
/// `mostCells` devices, or where the picture would be more than twice as high as asked for, cells are blocks of neighbours.
///
/// Links of the hovered axis are thick, in the accent colour and labelled with their bandwidth; all others fade. Items: `device:N` (N the mesh
/// device; `block:N` for a block, `place:N` for a place that the mesh leaves empty, N being the machine's number), `axis:NAME` for legend lines
/// and for the links that a mesh axis uses (of several axes the first), `link:N` for links without traffic, `switch:N`, `slice:N`. Tooltips have all figures.
/// Preconditions: `slice` is one of them; each device has a coordinate for each dimension, inside its length; nodes of links exist; width, height, mostCells > 0.
DisplayList drawTopology(const TopologyDrawing& drawing);

/// One line about a mesh axis: `data 4: x, ICI 45.0 GB/s each way, rings, 2 groups`.
std::string meshAxisText(const DrawnMeshAxis& axis);

/// `45.0 GB/s`: links are counted in powers of ten.
std::string bandwidthText(double bytesPerSecond);

} // namespace meshwright
