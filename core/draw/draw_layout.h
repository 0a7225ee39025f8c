// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "core/sharding/device_colours.h"
#include "core/sharding/layout.h"

#include <optional>
#include <set>
#include <string>

namespace meshwright {

/// How `drawLayout` draws.
struct LayoutDrawing {
    std::string arrayName = "x"; ///< in headings and tooltips
    std::string caption = {}; ///< one line over the picture, such as the spec; the shape is added
    std::string platform = "TPU"; ///< before device ids
    std::optional<DeviceColours> deviceColours = {}; ///< without it, colours follow the device ids
    std::set<DeviceId> selected = {}; ///< cells that one of them holds get an accented outline
    std::string partialOver = {}; ///< mesh axes over which the values are partial sums; cells are hatched then
    std::int64_t elementBytes = 0; ///< > 0: tooltips say how many bytes a piece has
    double panelWidth = 480.0; ///< the largest size of one grid, pixels; > 0
    double panelHeight = 360.0;
    std::size_t mostBands
        = 6; ///< a cell with up to this many holders is split into bands, one for each; otherwise it has a badge
    std::size_t mostPanels = 12; ///< grids of an array of rank 3 and up; the rest is counted
    std::size_t mostCellsAcross = 64; ///< columns (and rows) that are drawn one by one; beyond, neighbours are drawn as one block
};

/// A picture of where the pieces of an array lie.
///
/// The last two dimensions are drawn as a grid whose cells are to scale; each distinct part of the leading dimensions is a grid of its
/// own (small multiples) under a heading such as `x[0:4, :, :]`. An array of rank 1 is a row, a scalar one cell. Sides are in proportion
/// to the shape, up to 6 to 1 and as long as labels fit; otherwise the picture says that they are not.
///
/// The colour of a cell is that of its device; several holders are bands of their colours, or (more than `mostBands`) the first one's
/// colour and a badge `x8`. A cell is labelled with its devices and its index range where they fit. Its item has the id `shard:N`, N being
/// the index into `layout.shards` (`block:N` for a block of several pieces, of which N is the first), and a tooltip with everything.
DisplayList drawLayout(const Layout& layout, const LayoutDrawing& drawing);

} // namespace meshwright
