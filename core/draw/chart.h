// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "core/draw/quantity.h"

#include <string>
#include <string_view>
#include <vector>

/// What the pictures of this folder have in common: sizes, ticks, axes, headings, legends. Not for other folders.
namespace meshwright::chart {

inline constexpr double kMargin = 12.0; ///< around a picture, pixels
inline constexpr double kHeadingSize = 13.0; ///< of the font
inline constexpr double kTextSize = 12.0;
inline constexpr double kSmallSize = 11.0; ///< ticks, notes
inline constexpr double kHeadingHeight = 26.0; ///< of a heading with the space under it
inline constexpr double kLineHeight = 18.0;

struct Tick {
    double value = 0.0;
    std::string text; ///< with its unit; empty: a mark without a label

    friend bool operator==(const Tick&, const Tick&) = default;
};

/// At most `most` (at least 2) marks at 1, 2 or 5 times a power of ten of a unit that suits all of them: `0`, `2 GiB`, `4 GiB`. Those
/// inside the range only. The range may be empty or backwards: then there is one mark, at `from`.
std::vector<Tick> linearTicks(double from, double to, std::size_t most, Quantity quantity);

/// Powers of ten from `from` to `to` (both > 0), at most about `most` with labels; when the range has fewer than two of them, 2 and 5 times as well.
std::vector<Tick> logarithmicTicks(double from, double to, std::size_t most, Quantity quantity);

/// The rectangle of a chart and the values at its sides.
struct PlotArea {
    Point topLeft;
    double width = 0.0;
    double height = 0.0;
    double xFrom = 0.0;
    double xTo = 1.0;
    double yFrom = 0.0; ///< at the bottom
    double yTo = 1.0;
    bool logarithmic = false; ///< y; both ends > 0 then

    double right() const { return topLeft.x + width; }
    double bottom() const { return topLeft.y + height; }
    double x(double value) const;
    double y(double value) const;
};

/// Faint lines across the area and labels left of it.
void addYAxis(DisplayList& list, const PlotArea& area, const std::vector<Tick>& ticks);

/// Marks and labels under the area (labels that would touch the one before are left out), and a line along its lower side.
void addXAxis(DisplayList& list, const PlotArea& area, const std::vector<Tick>& ticks);

/// How wide the labels of these ticks are.
double widestLabel(const std::vector<Tick>& ticks);

/// A bold line at the top left, shortened to the width. Yields the y below it; with an empty text, the margin.
double addHeading(DisplayList& list, const std::string& text, double width);

struct LegendEntry {
    std::string text;
    ShapeStyle swatch; ///< of a box; for a line its outline and width
    bool isLine = false;
    bool dashed = false;
    std::string id = {};
    std::string tooltip = {};
};

/// Swatches with their texts from left to right, in as many lines as the width needs. Yields the height.
double addLegend(DisplayList& list, Point topLeft, double width, const std::vector<LegendEntry>& entries);
double legendHeight(double width, const std::vector<LegendEntry>& entries);

/// A fill in a role's colour with lines over it that show.
ShapeStyle filled(ColourRole role, Hatch hatch = Hatch::None);

/// `text`, cut to what fits with an ellipsis; empty when not even four characters do.
std::string fitted(std::string_view text, double width, double size, bool bold = false);

/// A text on a shape filled by `filled(role, hatch)`: on a plate when the shape is hatched. Nothing when no part of it fits into the shape.
void addTextOn(std::vector<DisplayItem>& items, const RectShape& shape, const std::string& text, ColourRole role,
    double size = kSmallSize, TextAnchor anchor = TextAnchor::Middle);

/// A text on a plate of the surface's colour, so that it reads on anything.
void addPlate(std::vector<DisplayItem>& items, Point middle, const std::string& text, Paint paint = ColourRole::Text,
    double size = kSmallSize, bool bold = false);

} // namespace meshwright::chart
