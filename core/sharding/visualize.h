// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/device_colours.h"
#include "core/sharding/layout.h"

#include <cstdint>
#include <optional>
#include <string>

namespace meshwright {

enum class TerminalColours : std::uint8_t {
    None,
    Palette256, ///< the 256 colours of nearly all terminals
    TrueColour, ///< 24 bits
};

/// How `drawingText` draws.
struct TextDrawing {
    std::string platform = "TPU"; ///< before the device ids
    double scale = 1.0; ///< > 0; of the size of the drawing
    std::string arrayName = "x"; ///< in the headings of ranks 3 and up
    TerminalColours colours = TerminalColours::None; ///< of the backgrounds of the cells
    std::optional<DeviceColours> deviceColours = {}; ///< without it, colours follow the device ids
    std::size_t mostSlabs = 16; ///< slices of an array of rank 3 and up; the rest is counted
    std::size_t mostRows = 256; ///< rows of cells in one grid; the rest is counted
    std::size_t mostColumns = 64;
    std::size_t mostDevices = 64; ///< ids in one cell
};

/// A drawing of where the pieces of an array lie, with box characters: for ranks 1 and 2 line by line that of
/// `jax.debug.visualize_sharding`. Every line ends with a newline.
///
/// A scalar is one cell, one line high. Arrays of rank 3 and up are drawn as a stack of grids of their last two dimensions under headings
/// such as `x[0:4, :, :]`, one for each distinct part of the leading dimensions. Devices that an uneven sharding leaves without
/// elements are named in a line below. What goes beyond the limits of `drawing` is counted in a line of its own.
///
/// Sizes: with base height int(10 scale) and base width int(base height * columns / rows of the array) (rank 1: 1/n), a cell is
/// max(9, min(80, int(part * base width * 2.5))) wide and int(part * base height) high (rank 1: 1), where part is 1 / number of
/// cells along that side. Source: jax-ml/jax, jax/_src/debugging.py (`visualize_sharding`).
std::string drawingText(const Layout& layout, const TextDrawing& drawing);

} // namespace meshwright
