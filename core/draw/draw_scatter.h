// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "core/draw/quantity.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright {

struct ScatterPoint {
    enum class Kind : std::uint8_t {
        Front, ///< nothing is better in both directions
        Behind,
        OutOfReach, ///< beyond the limit
    };
    double x = 0.0;
    double y = 0.0; ///< > 0
    Kind kind = Kind::Behind;
    bool marked = false; ///< the best one
    std::string label = {}; ///< beside a point of the front, where there is room
    std::string tooltip = {};
};

struct ScatterDrawing {
    std::string title = {}; ///< over the picture; empty: no heading
    std::string xTitle = {};
    std::string yTitle = {};
    Quantity xQuantity = Quantity::Bytes;
    Quantity yQuantity = Quantity::Seconds;
    std::vector<ScatterPoint> points;
    std::optional<double> limit = {}; ///< of x: a line
    std::string limitText = {};
    std::string outOfReach = "does not fit"; ///< of the legend
    double width = 640.0; ///< pixels
    double height = 380.0;
};

/// Points in two directions, less being better in both, with the front drawn as the staircase that it is. The y axis is logarithmic when the values
/// differ more than twentyfold. Points out of reach that would squeeze the others (beyond 1.5 times the limit) are left out. Without a point it says
/// "no values". Items: `point:N`.
DisplayList drawScatter(const ScatterDrawing& drawing);

} // namespace meshwright
