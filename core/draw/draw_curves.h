// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "core/draw/quantity.h"

#include <string>
#include <vector>

namespace meshwright {

/// A line of a chart. Points that are not finite (or, on a logarithmic axis, not positive) leave a gap.
struct Curve {
    std::string name;
    std::vector<double> x; ///< ascending
    std::vector<double> y; ///< as many
    Paint paint = ColourRole::Compute;
    bool dashed = false; ///< curves should differ in more than colour
};

/// A moment that all curves share: a dashed line from top to bottom with its text beside it.
struct CurveMark {
    double x = 0.0;
    std::string text;
};

struct CurvesDrawing {
    std::string title = {}; ///< over the picture; empty: no heading
    std::string xTitle = {}; ///< `step`
    std::string yTitle = {}; ///< `loss`
    Quantity xQuantity = Quantity::Plain;
    Quantity yQuantity = Quantity::Plain;
    bool logarithmic = false; ///< the y axis
    bool fromZero = false; ///< a linear y axis begins at 0
    std::vector<Curve> curves;
    std::vector<CurveMark> marks = {}; ///< those outside of the curves' x are left out
    double width = 480.0; ///< pixels
    double height = 280.0;
};

/// A line chart with readable ticks and, for several curves, a legend. Curves with more points than pixels are thinned column by column to
/// first, lowest, highest and last, so that no extreme is lost. Without a point to draw it says "no values". Items: `mark:N`, and `curve:N`, whose tooltips give the
/// name, the number of points, the range and the last value.
DisplayList drawCurves(const CurvesDrawing& drawing);

} // namespace meshwright
