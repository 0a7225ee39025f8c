// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "core/draw/quantity.h"

#include <string>
#include <vector>

namespace meshwright {

struct HeatMapCell {
    enum class State : std::uint8_t {
        Value,
        OutOfReach, ///< has a value that does not count: hatched
        Refused, ///< has none, and `text` says why
        Absent,
    };
    State state = State::Absent;
    double value = 0.0; ///< > 0
    std::string text = {}; ///< of a cell without a value that counts: "MW1104"
    std::string tooltip = {};
    bool marked = false; ///< the best one
};

struct HeatMapDrawing {
    std::string title = {}; ///< over the picture; empty: no heading
    std::string xTitle = {};
    std::string yTitle = {};
    std::vector<std::string> columns; ///< labels from left to right
    std::vector<std::string> rows; ///< labels from top to bottom
    std::vector<HeatMapCell> cells; ///< row by row, columns x rows
    Quantity quantity = Quantity::Seconds;
    std::string outOfReach = "does not fit"; ///< of the legend
    double width = 640.0; ///< pixels; more when the cells need it
};

/// A table of cells coloured by the logarithm of their values, from light (least) to dark (most); each cell says its value where there is room. Items:
/// `cell:N`, row by row.
/// Preconditions: at least one row and one column, as many cells as rows times columns.
DisplayList drawHeatMap(const HeatMapDrawing& drawing);

} // namespace meshwright
