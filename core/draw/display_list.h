// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/theme.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace meshwright {

/// A place in a picture, in pixels of a picture at scale 1: x to the right, y down, the origin at the top left.
struct Point {
    double x = 0.0;
    double y = 0.0;

    friend bool operator==(const Point&, const Point&) = default;
};

/// What a shape is filled or drawn with: nothing, a role of the theme, or a plain colour.
using Paint = std::variant<std::monostate, ColourRole, Colour>;

/// The colour of a paint under a theme; nothing for none.
std::optional<Colour> colourOf(const Paint& paint, Theme theme);

/// Text on a fill of this role: black, white or a role that is one of them in each theme; the contrast is at least 4.5.
Paint textPaintOn(ColourRole role);

/// Lines of a hatch that show on a fill of this role in both themes.
Paint hatchPaintOn(ColourRole role);

/// Lines over a filled shape, so that meaning does not hang on colour alone.
enum class Hatch : std::uint8_t {
    None,
    Rising, ///< lines from bottom left to top right
    Falling, ///< lines from top left to bottom right
    Crossed, ///< both
};

/// How a closed shape looks: first the fill, then the hatch, then the outline.
struct ShapeStyle {
    Paint fill = {};
    Paint outline = {};
    double outlineWidth = 1.0; ///< pixels
    Hatch hatch = Hatch::None;
    Paint hatchPaint = ColourRole::Outline;

    friend bool operator==(const ShapeStyle&, const ShapeStyle&) = default;
};

struct RectShape {
    Point topLeft;
    double width = 0.0; ///< >= 0
    double height = 0.0; ///< >= 0
    ShapeStyle style;
    double cornerRadius = 0.0;

    friend bool operator==(const RectShape&, const RectShape&) = default;
};

struct PolygonShape {
    std::vector<Point> corners; ///< at least 3; closed from the last to the first; filled by the even-odd rule
    ShapeStyle style;

    friend bool operator==(const PolygonShape&, const PolygonShape&) = default;
};

struct LineShape {
    Point from;
    Point to;
    Paint paint = ColourRole::Outline;
    double width = 1.0; ///< pixels
    bool dashed = false;

    friend bool operator==(const LineShape&, const LineShape&) = default;
};

/// An open line through several points: a curve of a chart.
struct PolylineShape {
    std::vector<Point> points; ///< at least 2
    Paint paint = ColourRole::Outline;
    double width = 1.0; ///< pixels
    bool dashed = false;

    friend bool operator==(const PolylineShape&, const PolylineShape&) = default;
};

enum class TextAnchor : std::uint8_t { Start, Middle, End };

/// One line of text. `at` is on its left end, middle or right end, and halfway up the capital letters.
struct TextShape {
    Point at;
    std::string text; ///< UTF-8
    double size = 12.0; ///< of the font, pixels
    TextAnchor anchor = TextAnchor::Start;
    Paint paint = ColourRole::Text;
    bool bold = false;

    friend bool operator==(const TextShape&, const TextShape&) = default;
};

/// One shape, and what it stands for: `id` is what a click on it selects, `tooltip` what hovering shows. Both may be empty.
struct DisplayItem {
    std::variant<RectShape, PolygonShape, LineShape, PolylineShape, TextShape> shape;
    std::string id = {};
    std::string tooltip = {};

    friend bool operator==(const DisplayItem&, const DisplayItem&) = default;
};

/// A picture: shapes in the order in which they are drawn, later ones over earlier ones. A plain value: views and file writers
/// play it, and know nothing of what it shows.
struct DisplayList {
    double width = 0.0; ///< pixels
    double height = 0.0;
    std::string title = {}; ///< for people who cannot see the picture
    Paint background = ColourRole::Background;
    std::vector<DisplayItem> items = {};

    /// The topmost item with an id under a point; lines count within 3 pixels, texts not at all.
    const DisplayItem* itemAt(Point point) const;

    friend bool operator==(const DisplayList&, const DisplayList&) = default;
};

/// Adds everything in `part` to `list`, moved by `by`; the size and title of `list` stay.
void addMoved(DisplayList& list, const DisplayList& part, Point by);

/// About how wide a line of text is in a sans-serif font, in pixels: 0.6 of the font size for each character (bold: 0.65), rather too much.
double estimatedWidth(std::string_view text, double size, bool bold = false);

} // namespace meshwright
