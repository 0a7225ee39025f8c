// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "core/sharding/device_colours.h"
#include "core/sharding/layout_grid.h"

#include <optional>
#include <set>
#include <string>

namespace meshwright {

/// How `drawLayout` draws.
struct LayoutDrawing {
    std::string arrayName = "x"; ///< in headings and tooltips
    std::string caption = {}; ///< the spec, say: in the heading after the shape, and in tooltips
    bool heading = true; ///< a line over the picture with name, shape and caption
    std::string platform = "TPU"; ///< before device ids
    std::optional<DeviceColours> deviceColours = {}; ///< without it, colours follow the device ids
    std::set<DeviceId> selected = {}; ///< cells that one of them holds get an accented outline
    std::string partialOver = {}; ///< mesh axes over which the values are partial sums; cells are hatched then
    std::int64_t stages = 1; ///< of a pipeline of which one has the piece; the picture is of the devices of all
    std::int64_t elementBytes = 0; ///< > 0: tooltips say how many bytes a piece has
    double panelWidth = 480.0; ///< the largest size of one grid, pixels; > 0
    double panelHeight = 360.0;
    std::size_t mostSheets
        = 6; ///< a cell with up to this many holders is a stack of sheets, one for each; otherwise it has a badge
    std::optional<LayoutCut> cut = {}; ///< the one grid to draw of an array of rank 2 and up; without it small multiples
    std::vector<std::string> axesOfDims
        = {}; ///< mesh axes that split each dimension ("data", "" for none); given, a single grid gets rulers
    double largestAspect = 6.0; ///< of one grid, either way; >= 1
    std::size_t mostPanels = 12; ///< grids of an array of rank 3 and up; the rest is counted
    std::size_t mostCellsAcross = 64; ///< columns (and rows) that are drawn one by one; beyond, neighbours are drawn as one block
};

/// A picture of where the pieces of an array lie.
///
/// The last two dimensions are drawn as a grid whose cells are to scale; each distinct part of the leading dimensions is a grid of its
/// own (small multiples) under a heading such as `x[0:4, :, :]`. With a `cut` there is one grid, of the dimensions that it names. An array of
/// rank 1 is a row, a scalar one cell. Sides are in proportion to the shape, up to `largestAspect` and as long as labels fit; otherwise the
/// picture says that they are not. Rulers say at which indices cells begin, and over which mesh axes a dimension is split.
///
/// The colour of a cell is that of its device. A piece with several holders is a stack of sheets, one in front of the other in their colours; of more than
/// `mostSheets` the first few, a strip with the colours of all, and a badge `x8`. Where a stack has no room such cells are hatched. A note says how many
/// copies there are. Cells are labelled with their devices and index ranges, all in the same way, as
/// far as they have room; where ids in full have none, `0-3` or `0 +3` stand for them. Its item has the id `shard:N`, N being
/// the index into `layout.shards` (`block:N` for a block of several pieces, of which N is the first), and a tooltip with everything.
DisplayList drawLayout(const Layout& layout, const LayoutDrawing& drawing);

/// The same with panels as large as a picture of this size has room for (instead of panelWidth and panelHeight); it may be larger where
/// labels, long words or several panels need more. Preconditions: width and height > 0.
DisplayList drawLayoutInto(const Layout& layout, LayoutDrawing drawing, double width, double height);

/// The devices of the pieces that an item of such a picture shows; none for an id of no item.
std::set<DeviceId> devicesUnder(const Layout& layout, const LayoutDrawing& drawing, const std::string& id);

} // namespace meshwright
