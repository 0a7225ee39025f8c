// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "core/draw/quantity.h"

#include <string>
#include <vector>

namespace meshwright {

/// A part of a bar.
struct BarPart {
    std::string name;
    double value = 0.0; ///< >= 0; not finite counts as 0
    ColourRole role = ColourRole::Compute;
    Hatch hatch = Hatch::None;
    std::string id = {}; ///< of the item; empty: `part:NAME`
    std::string detail = {}; ///< more lines of the tooltip
};

/// One bar whose parts make up a whole.
struct StackedBarDrawing {
    std::string title = {}; ///< over the bar; empty: no heading
    Quantity quantity = Quantity::Seconds;
    std::vector<BarPart> parts;
    double width = 760.0; ///< pixels; the height follows
    double barHeight = 34.0;
};

/// A horizontal bar of parts in proportion, with name, value and share on each where they fit and all of them in a legend below.
/// Items: the ids of the parts; tooltips have the figures.
DisplayList drawStackedBar(const StackedBarDrawing& drawing);

/// A bar of a list.
struct Bar {
    std::string label; ///< left of it
    std::vector<BarPart> parts; ///< from left to right
    std::string note = {}; ///< right of it, after the sum: `4 calls, exposed 1.2 ms`
    std::string id = {}; ///< of the whole row; empty: `bar:N`
    std::string tooltip = {};
};

struct BarsDrawing {
    std::string title = {};
    Quantity quantity = Quantity::Seconds;
    std::vector<Bar> bars; ///< from top to bottom
    bool legend = true; ///< names of the parts, when bars have more than one
    std::size_t mostBars = 24; ///< the rest is one bar, `12 more`
    double width = 760.0; ///< pixels; the height follows
};

/// A list of horizontal bars on one scale from 0.
DisplayList drawBars(const BarsDrawing& drawing);

} // namespace meshwright
