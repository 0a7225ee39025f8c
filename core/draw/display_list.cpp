// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/display_list.h"

#include "core/support/text.h"

#include <algorithm>
#include <cmath>

namespace meshwright {

namespace {

constexpr double kLineReach = 3.0; ///< pixels

bool contains(const RectShape& rect, Point p)
{
    return p.x >= rect.topLeft.x && p.x < rect.topLeft.x + rect.width && p.y >= rect.topLeft.y
        && p.y < rect.topLeft.y + rect.height;
}

bool contains(const PolygonShape& polygon, Point p)
{
    // Count the edges to the right of the point: an odd number means inside.
    bool inside = false;
    for (std::size_t i = 0; i < polygon.corners.size(); ++i) {
        const Point a = polygon.corners[i];
        const Point b = polygon.corners[(i + 1) % polygon.corners.size()];
        if ((a.y > p.y) != (b.y > p.y) && p.x < a.x + (b.x - a.x) * (p.y - a.y) / (b.y - a.y))
            inside = !inside;
    }
    return inside;
}

double distance(Point from, Point to, Point p)
{
    const Point along{to.x - from.x, to.y - from.y};
    const double lengthSquared = along.x * along.x + along.y * along.y;
    const double t
        = lengthSquared > 0.0 ? std::clamp(((p.x - from.x) * along.x + (p.y - from.y) * along.y) / lengthSquared, 0.0, 1.0) : 0.0;
    return std::hypot(p.x - from.x - t * along.x, p.y - from.y - t * along.y);
}

bool contains(const LineShape& line, Point p)
{
    return distance(line.from, line.to, p) <= std::max(kLineReach, line.width / 2.0);
}

bool contains(const PolylineShape& line, Point p)
{
    for (std::size_t i = 1; i < line.points.size(); ++i) {
        if (distance(line.points[i - 1], line.points[i], p) <= std::max(kLineReach, line.width / 2.0))
            return true;
    }
    return false;
}

bool contains(const TextShape&, Point)
{
    return false;
}

Point moved(Point p, Point by)
{
    return {p.x + by.x, p.y + by.y};
}

struct Mover {
    Point by;

    void operator()(RectShape& rect) const { rect.topLeft = moved(rect.topLeft, by); }
    void operator()(PolygonShape& polygon) const
    {
        for (Point& corner : polygon.corners)
            corner = moved(corner, by);
    }
    void operator()(LineShape& line) const
    {
        line.from = moved(line.from, by);
        line.to = moved(line.to, by);
    }
    void operator()(PolylineShape& line) const
    {
        for (Point& point : line.points)
            point = moved(point, by);
    }
    void operator()(TextShape& text) const { text.at = moved(text.at, by); }
};

} // namespace

std::optional<Colour> colourOf(const Paint& paint, Theme theme)
{
    if (const ColourRole* role = std::get_if<ColourRole>(&paint))
        return colourOf(*role, theme);
    if (const Colour* colour = std::get_if<Colour>(&paint))
        return *colour;
    return std::nullopt;
}

Paint textPaintOn(ColourRole role)
{
    const Colour light = readableOn(colourOf(role, Theme::Light));
    const Colour dark = readableOn(colourOf(role, Theme::Dark));
    if (light == dark)
        return light;
    return light == kWhite ? ColourRole::Background : ColourRole::Text;
}

Paint hatchPaintOn(ColourRole role)
{
    // Idle is the one fill that is dark in the dark theme.
    return role == ColourRole::Idle ? Paint(ColourRole::Outline) : Paint(kBlack);
}

const DisplayItem* DisplayList::itemAt(Point point) const
{
    const auto found = std::find_if(items.rbegin(), items.rend(), [&](const DisplayItem& item) {
        return !item.id.empty() && std::visit([&](const auto& shape) { return contains(shape, point); }, item.shape);
    });
    return found == items.rend() ? nullptr : &*found;
}

void addMoved(DisplayList& list, const DisplayList& part, Point by)
{
    list.items.reserve(list.items.size() + part.items.size());
    for (const DisplayItem& item : part.items) {
        list.items.push_back(item);
        std::visit(Mover{by}, list.items.back().shape);
    }
}

double estimatedWidth(std::string_view text, double size, bool bold)
{
    return static_cast<double>(displayWidth(text)) * size * (bold ? 0.65 : 0.6);
}

} // namespace meshwright
