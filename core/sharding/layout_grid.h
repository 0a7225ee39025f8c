// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/layout.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// A two-dimensional cut through a layout, for drawings: two dimensions as rows and columns, the others held at one tile.
///
/// An array of rank 1 has one row, a scalar one row and one column; those stand for a dimension of size 1.
struct LayoutGrid {
    std::optional<std::size_t> rowDim; ///< of the array; nothing for ranks 0 and 1
    std::optional<std::size_t> columnDim; ///< nothing for rank 0
    IndexBox shown; ///< of each dimension: all of rows and columns, one tile of the others
    std::vector<IndexRange> rows; ///< in order; never empty ranges, unless the array itself has no elements
    std::vector<IndexRange> columns;
    std::vector<std::optional<std::size_t>>
        cells; ///< row-major: index into Layout::shards; nothing where no device holds the cell

    std::optional<std::size_t> cellAt(std::size_t row, std::size_t column) const { return cells[row * columns.size() + column]; }
};

/// The cuts through a layout that have its last two dimensions as rows and columns, one for each distinct tile of the leading dimensions,
/// in order: one for ranks 0 to 2. Empty pieces of an uneven sharding are in no grid. There is always at least one grid with one cell.
std::vector<LayoutGrid> layoutGrids(const Layout& layout);

/// Which cut through an array of rank 2 or more.
struct LayoutCut {
    std::size_t rowDim = 0;
    std::size_t columnDim = 1;
    Shape at; ///< an index of each dimension, through which the cut goes; those of rowDim and columnDim do not matter

    friend bool operator==(const LayoutCut&, const LayoutCut&) = default;
};

/// One cut. Preconditions: rowDim and columnDim differ and are below the rank; `at` has an index of each dimension, none outside the array.
LayoutGrid cutThrough(const Layout& layout, const LayoutCut& cut);

/// The distinct ranges into which one dimension is split, in order; empty ones only of an array without elements.
std::vector<IndexRange> tilesAlong(const Layout& layout, std::size_t dim);

/// The devices that hold no element although the array has some (an uneven sharding may leave some over), ascending.
std::vector<DeviceId> emptyHandedDevices(const Layout& layout);

/// All devices of a layout, ascending, each once.
std::vector<DeviceId> devicesOf(const Layout& layout);

/// `x[0:4, :, :]`: what a grid shows of the array `name`; whole dimensions are `:`. `x` alone for rank 0.
std::string gridText(const std::string& name, const LayoutGrid& grid, const Layout& layout);

/// The devices of a shard as the drawings list them: ascending and joined by commas, without spaces. After `most` of them
/// `...` and the number of all: `0,1,2,...(64)`.
std::string deviceListText(std::vector<DeviceId> devices, std::size_t most);

} // namespace meshwright
