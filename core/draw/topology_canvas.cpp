// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/topology_canvas.h"

#include "core/support/counted.h"
#include "core/support/find.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace meshwright::topology {

namespace {

using namespace chart;

constexpr double kFigureSize = 10.0; ///< of the font of bandwidths on links
constexpr double kLegendLine = 20.0;
constexpr std::size_t kMostAxesNamed = 8;

DeviceColours coloursOf(const TopologyDrawing& drawing)
{
    if (drawing.deviceColours)
        return *drawing.deviceColours;
    std::vector<DeviceId> ids;
    for (const DrawnDevice& device : drawing.devices) {
        if (device.id >= 0)
            ids.push_back(device.id);
    }
    std::sort(ids.begin(), ids.end());
    return DeviceColours(ids);
}

const DrawnMeshAxis* findAxis(const TopologyDrawing& drawing, const std::string& name)
{
    return findBy(drawing.meshAxes, name, &DrawnMeshAxis::name);
}

bool contains(const std::vector<std::string>& names, const std::string& name)
{
    return std::find(names.begin(), names.end(), name) != names.end();
}

std::string coordinatesText(const TopologyDrawing& drawing, const DrawnDevice& device)
{
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < drawing.dimensions.size(); ++i) {
        if (drawing.dimensions[i].length > 1)
            parts.push_back(fmt::format("{} {}", drawing.dimensions[i].name, device.coordinates[i]));
    }
    return join(parts, ", ");
}

std::string meshAxisTooltip(const DrawnMeshAxis& axis)
{
    std::string text = fmt::format("mesh axis {} of size {}, {}", axis.name, axis.size, counted(axis.groups, "group"));
    if (axis.bytesPerSecond <= 0.0)
        return text + "\nneeds no links";
    text += fmt::format("\nalong {}\n{}: a group has {} each way, {} to the next device", axis.where, axis.kind,
        bandwidthText(axis.bytesPerSecond), formatSeconds(axis.latencySeconds));
    text += axis.wraps ? "\nits groups are rings" : "\nno wraparound";
    if (!axis.sharesWith.empty())
        text += "\nshares links with " + join(axis.sharesWith, ", ");
    return text;
}

/// The numbers of `data 1, model 0`: `1,0`.
std::string shortMeshText(const std::string& text)
{
    std::vector<std::string> numbers;
    for (const std::string& part : split(text, ',')) {
        const std::string_view trimmedPart = trimmed(part);
        numbers.emplace_back(trimmedPart.substr(trimmedPart.rfind(' ') + 1));
    }
    return join(numbers, ",");
}

} // namespace

std::vector<Point> rounded(const std::vector<Point>& corners, double radius)
{
    constexpr int kSteps = 4;
    std::vector<Point> path = {corners.front()};
    for (std::size_t i = 1; i + 1 < corners.size(); ++i) {
        const Point corner = corners[i];
        const auto towards = [&](Point other) {
            const double length = std::hypot(other.x - corner.x, other.y - corner.y);
            const double reach = length > 0.0 ? std::min(radius, length / 2.0) / length : 0.0;
            return Point{corner.x + (other.x - corner.x) * reach, corner.y + (other.y - corner.y) * reach};
        };
        const Point before = towards(corners[i - 1]);
        const Point after = towards(corners[i + 1]);
        for (int step = 0; step <= kSteps; ++step) { // a quadratic curve with the corner as its control point
            const double t = static_cast<double>(step) / kSteps;
            const auto mix
                = [&](double a, double b, double c) { return (1 - t) * (1 - t) * a + 2 * t * (1 - t) * b + t * t * c; };
            path.push_back({mix(before.x, corner.x, after.x), mix(before.y, corner.y, after.y)});
        }
    }
    path.push_back(corners.back());
    return path;
}

Canvas::Canvas(const TopologyDrawing& drawing)
    : m_drawing(drawing)
    , m_colours(coloursOf(drawing))
    , m_litDimensions(drawing.dimensions.size(), false)
    , m_isFaded(findAxis(drawing, drawing.hoveredAxis) != nullptr)
{
    findWidestWords();
    if (!m_isFaded)
        return;
    for (const DrawnLink& link : drawing.links) {
        if (!m_litDimensions[link.dimension] && contains(link.meshAxes, drawing.hoveredAxis))
            m_litDimensions[link.dimension] = true;
    }
}

void Canvas::addFrame(const RectShape& frame, const std::string& heading)
{
    m_frames.push_back({frame});
    if (heading.empty())
        return;
    const std::string words = fitted(heading, frame.width - 12.0, kSmallSize);
    m_frames.push_back({TextShape{
        {frame.topLeft.x + 7.0, frame.topLeft.y + 11.0}, words, kSmallSize, TextAnchor::Start, ColourRole::MutedText}});
}

void Canvas::addChoice(const RectShape& box, const std::string& text, bool isChosen, bool hasSelected, const std::string& id,
    const std::string& tooltip)
{
    RectShape shape = box;
    shape.style.fill = ColourRole::Surface;
    shape.style.outline = hasSelected ? ColourRole::Accent : isChosen ? ColourRole::Text : ColourRole::Outline;
    shape.style.outlineWidth = isChosen || hasSelected ? 2.0 : 1.0;
    m_tiles.push_back({shape, id, tooltip});
    m_labels.push_back({TextShape{{box.topLeft.x + box.width / 2.0, box.topLeft.y + box.height / 2.0}, text, kSmallSize,
                            TextAnchor::Middle, isChosen ? ColourRole::Text : ColourRole::MutedText, isChosen},
        id, tooltip});
}

std::string Canvas::nodeName(std::int64_t node) const
{
    const auto index = static_cast<std::size_t>(node);
    if (index >= m_drawing.devices.size())
        return m_drawing.switches[index - m_drawing.devices.size()].name;
    const DrawnDevice& device = m_drawing.devices[index];
    return device.id >= 0 ? fmt::format("{} {}", m_drawing.platform, device.id) : fmt::format("empty place {}", index);
}

std::string Canvas::tileTooltip(std::size_t index, std::size_t count) const
{
    const DrawnDevice& device = m_drawing.devices[index];
    const std::string where = coordinatesText(m_drawing, device);
    if (count > 1)
        return fmt::format("{} devices, from {} on\n{}", count, nodeName(static_cast<std::int64_t>(index)), where);
    std::string text = nodeName(static_cast<std::int64_t>(index));
    if (!device.meshText.empty())
        text += "\nin the mesh: " + device.meshText;
    if (device.id < 0)
        text += "\nthe mesh has no device here";
    if (!where.empty())
        text += "\non the machine: " + where;
    if (device.id >= 0 && device.id != static_cast<DeviceId>(index))
        text += fmt::format("\nthe machine's own number: {}", index);
    return text;
}

void Canvas::addTile(const RectShape& place, std::size_t index, std::size_t count)
{
    const DrawnDevice& device = m_drawing.devices[index];
    RectShape tile = place;
    const bool isLarge = std::min(place.width, place.height) >= 14.0;
    tile.cornerRadius = isLarge ? 4.0 : 1.0;
    Paint paint = ColourRole::MutedText;
    std::string id;
    if (device.id < 0) {
        tile.style.fill = ColourRole::Background;
        tile.style.outline = ColourRole::Grid;
        id = fmt::format("place:{}", index);
        ++m_unusedPlaces;
    } else {
        const Colour colour = m_colours.of(device.id);
        tile.style.fill = colour;
        if (isLarge)
            tile.style.outline = ColourRole::Outline;
        paint = readableOn(colour);
        id = fmt::format("{}:{}", count > 1 ? "block" : "device", device.id);
    }
    m_tiles.push_back({tile, id, tileTooltip(index, count)});
    addTileText(place, device, count, paint);
    if (device.id >= 0 && m_drawing.selected.contains(device.id)) {
        RectShape accent = tile;
        accent.style = {};
        accent.style.outline = ColourRole::Background;
        accent.style.outlineWidth = isLarge ? 6.0 : 3.0;
        m_accents.push_back({accent});
        accent.style.outline = ColourRole::Accent;
        accent.style.outlineWidth = isLarge ? 3.0 : 2.0;
        m_accents.push_back({accent});
    }
}

void Canvas::findWidestWords()
{
    const auto widen = [](std::string& widest, const std::string& text) {
        if (displayWidth(text) > displayWidth(widest))
            widest = text;
    };
    for (const DrawnDevice& device : m_drawing.devices) {
        if (device.id < 0)
            continue;
        widen(m_widestId, std::to_string(device.id));
        widen(m_widestMeshText, device.meshText);
    }
    // The longest text has the longest parts and numbers too, or as good as.
    for (const std::string& part : split(m_widestMeshText, ','))
        widen(m_widestMeshPart, std::string(trimmed(part)));
    m_widestMeshNumbers = shortMeshText(m_widestMeshText);
}

/// What fits of: the id with the platform, the id; under it the mesh coordinates on one line, on a line each, as numbers only.
void Canvas::addTileText(const RectShape& place, const DrawnDevice& device, std::size_t count, Paint paint)
{
    if (device.id < 0)
        return;
    const bool isRoomy = place.width >= 120.0 && place.height >= 70.0;
    const double idSize = isRoomy ? 16.0 : 13.0;
    const double meshSize = isRoomy ? 12.0 : 10.0;
    const double room = place.width - 4.0;
    const double air = place.height > 30.0 ? 6.0 : 2.0; // above and below together
    std::vector<std::pair<std::string, double>> lines;
    double height = air;
    const auto add = [&](const std::string& text, const std::string& widest, double size) {
        if (text.empty() || estimatedWidth(widest, size) > room || height + size + 2.0 > place.height)
            return false;
        lines.emplace_back(text, size);
        height += size + 2.0;
        return true;
    };
    const std::string number = std::to_string(device.id);
    const std::string before = m_drawing.platform + " ";
    if (count > 1) {
        const std::string words = fmt::format("{} devices", count);
        const std::string badge = fmt::format("x{}", count);
        add(words, words, meshSize) || add(badge, badge, meshSize);
    } else if (add(before + number, before + m_widestId, idSize) || add(number, m_widestId, idSize)
        || add(number, m_widestId, meshSize) || add(number, m_widestId, 8.0)) {
        const auto parts = split(device.meshText, ',');
        const double wanted = static_cast<double>(parts.size()) * (meshSize + 2.0);
        const bool hasRoomForParts = height + wanted <= place.height && estimatedWidth(m_widestMeshPart, meshSize) <= room;
        const bool isOneLine = add(device.meshText, m_widestMeshText, meshSize);
        if (!isOneLine && !hasRoomForParts)
            add(shortMeshText(device.meshText), m_widestMeshNumbers, meshSize);
        for (std::size_t i = 0; i < parts.size() && !isOneLine && hasRoomForParts; ++i)
            add(std::string(trimmed(parts[i])), m_widestMeshPart, meshSize);
    }
    double y = place.topLeft.y + (place.height - height + air) / 2.0;
    for (const auto& [text, size] : lines) {
        m_tiles.push_back(
            {TextShape{{place.topLeft.x + place.width / 2.0, y + size / 2.0}, text, size, TextAnchor::Middle, paint}});
        y += size + 2.0;
    }
}

std::vector<std::string> Canvas::axesOf(const Bundle& bundle) const
{
    std::vector<std::string> axes;
    for (const std::size_t link : bundle.links) {
        for (const std::string& axis : m_drawing.links[link].meshAxes) {
            if (!contains(axes, axis))
                axes.push_back(axis);
        }
    }
    return axes;
}

bool Canvas::lit(const Bundle& bundle) const
{
    return m_isFaded && std::any_of(bundle.links.begin(), bundle.links.end(), [&](std::size_t link) {
        return contains(m_drawing.links[link].meshAxes, m_drawing.hoveredAxis);
    });
}

std::string Canvas::lineTooltip(const Bundle& bundle, const LineEnds& ends) const
{
    const DrawnLink& link = m_drawing.links[bundle.links.front()];
    const std::string& along = m_drawing.dimensions[link.dimension].name;
    const std::string each
        = fmt::format("{} each way, {}", bandwidthText(link.bytesPerSecond), formatSeconds(link.latencySeconds));
    std::string text = bundle.links.size() == 1
        ? fmt::format(
            "{} link along {}{}\n{} to {}\n{}", link.kind, along, link.wraps ? ", wraps round" : "", ends.from, ends.to, each)
        : fmt::format("{} {} links along {}{}\n{} to {}\neach {}; together {}", bundle.links.size(), link.kind, along,
            link.wraps ? ", wrap round" : "", ends.from, ends.to, each,
            bandwidthText(link.bytesPerSecond * static_cast<double>(bundle.links.size())));
    std::vector<std::string> axes = axesOf(bundle);
    if (axes.empty())
        return m_drawing.meshAxes.empty() ? text : text + "\nno mesh axis uses it";
    if (axes.size() > kMostAxesNamed)
        axes.resize(kMostAxesNamed);
    return text + (axes.size() == 1 ? "\nmesh axis " + axes.front() : "\nshared by mesh axes " + join(axes, ", "));
}

void Canvas::setLineWidths(double plain, double lit)
{
    m_plainWidth = plain;
    m_litWidth = lit;
}

void Canvas::addLine(const std::vector<Point>& points, const Bundle& bundle, const LineEnds& ends, double weight)
{
    constexpr double kDoubled = 2.5; ///< what a double line is thicker
    const std::vector<std::string> axes = axesOf(bundle);
    const bool isLit = lit(bundle);
    const bool isUsed = !axes.empty() || m_drawing.meshAxes.empty();
    const Paint paint = isLit ? ColourRole::Accent : m_isFaded || !isUsed ? ColourRole::Grid : ColourRole::Outline;
    const double width = weight * (isLit ? m_litWidth : isUsed ? m_plainWidth : 1.0);
    const auto shape = [&](Paint with, double wide) -> DisplayItem {
        if (points.size() == 2)
            return {LineShape{points[0], points[1], with, wide}};
        return {PolylineShape{points, with, wide}};
    };
    auto& layer = isLit ? m_litLines : m_lines;
    const bool isShared = axes.size() > 1 && bundle.links.size() == 1 && m_plainWidth > 1.0;
    DisplayItem line = shape(paint, isShared ? width + kDoubled : width);
    line.id = axes.empty() ? fmt::format("link:{}", bundle.links.front()) : "axis:" + axes.front();
    line.tooltip = lineTooltip(bundle, ends);
    layer.push_back(std::move(line));
    if (isShared) { // clear in the middle: a double line
        layer.push_back(shape(m_drawing.dimensions.size() > 2 ? ColourRole::Surface : ColourRole::Background, 1.5));
        m_hasShared = true;
    }
}

void Canvas::addSwitchOutline(DisplayItem item, std::size_t index, std::size_t dimension)
{
    ShapeStyle style;
    style.fill = ColourRole::Surface;
    style.outline = m_litDimensions[dimension] ? ColourRole::Accent : m_isFaded ? ColourRole::Grid : ColourRole::Outline;
    style.outlineWidth = m_litDimensions[dimension] ? 2.0 : 1.0;
    if (auto* bar = std::get_if<RectShape>(&item.shape))
        bar->style = style;
    else
        std::get<PolygonShape>(item.shape).style = style;
    const DrawnSwitch& which = m_drawing.switches[index];
    item.id = fmt::format("switch:{}", index);
    item.tooltip = which.tooltip.empty() ? which.name : which.tooltip;
    m_tiles.push_back(std::move(item));
}

void Canvas::addSwitch(const RectShape& place, std::size_t index, const std::vector<std::string>& texts, std::size_t dimension)
{
    RectShape bar = place;
    bar.cornerRadius = std::min(4.0, place.height / 2.0);
    addSwitchOutline({bar}, index, dimension);
    addSwitchText(place, texts, dimension);
}

void Canvas::addSwitch(const PolygonShape& outline, std::size_t index, std::size_t dimension)
{
    addSwitchOutline({outline}, index, dimension);
}

void Canvas::addSwitchText(const RectShape& bar, const std::vector<std::string>& texts, std::size_t dimension)
{
    const auto fits = std::find_if(
        texts.begin(), texts.end(), [&](const std::string& text) { return estimatedWidth(text, kSmallSize) + 8.0 <= bar.width; });
    if (fits == texts.end() || bar.height < kSmallSize + 2.0)
        return;
    m_tiles.push_back({TextShape{{bar.topLeft.x + bar.width / 2.0, bar.topLeft.y + bar.height / 2.0}, *fits, kSmallSize,
        TextAnchor::Middle, m_litDimensions[dimension] ? ColourRole::Accent : ColourRole::Text}});
}

void Canvas::addDimensionText(Point at, const std::string& text, std::size_t dimension)
{
    const bool isLit = m_litDimensions[dimension];
    m_labels.push_back(
        {TextShape{at, text, kSmallSize, TextAnchor::Start, isLit ? ColourRole::Accent : ColourRole::MutedText, isLit}});
}

void Canvas::addFigure(Point middle, double room, const Bundle& bundle)
{
    const std::string text = bandwidthText(m_drawing.links[bundle.links.front()].bytesPerSecond);
    if (lit(bundle) && estimatedWidth(text, kFigureSize, true) + 8.0 <= room)
        addPlate(m_labels, middle, text, ColourRole::Accent, kFigureSize, true);
}

std::string Canvas::meshTextWithFigure(std::size_t dimension) const
{
    const std::string& text = m_drawing.dimensions[dimension].meshText;
    const auto link = std::find_if(m_drawing.links.begin(), m_drawing.links.end(),
        [&](const DrawnLink& candidate) { return candidate.dimension == dimension; });
    if (link == m_drawing.links.end())
        return text;
    return fmt::format("{}{}{} each way", text, text.empty() ? "" : ", ", bandwidthText(link->bytesPerSecond));
}

double Canvas::headHeight() const
{
    double height = m_drawing.caption && !m_drawing.title.empty() ? kMargin + kHeadingHeight : kMargin;
    if (m_drawing.legend)
        height += static_cast<double>(m_drawing.meshAxes.size()) * kLegendLine + (m_drawing.meshAxes.empty() ? 0.0 : 6.0);
    return height;
}

void Canvas::addHead(DisplayList& list) const
{
    double y = kMargin;
    if (m_drawing.caption)
        y = addHeading(list, m_drawing.title, m_drawing.width);
    if (!m_drawing.legend)
        return;
    for (const DrawnMeshAxis& axis : m_drawing.meshAxes) {
        const bool isHovered = axis.name == m_drawing.hoveredAxis;
        const std::string text = fitted(meshAxisText(axis), m_drawing.width - 2.0 * kMargin - 34.0, kSmallSize);
        const double right = kMargin + 34.0 + estimatedWidth(text, kSmallSize);
        RectShape plate{{kMargin - 4.0, y}, right - kMargin + 4.0, kLegendLine - 2.0, {}, 4.0};
        if (isHovered) {
            plate.style.fill = ColourRole::Surface;
            plate.style.outline = ColourRole::Accent;
        }
        list.items.push_back({plate, "axis:" + axis.name, meshAxisTooltip(axis)});
        const double middle = y + (kLegendLine - 2.0) / 2.0;
        const bool isUsed = axis.bytesPerSecond > 0.0;
        list.items.push_back({LineShape{{kMargin, middle}, {kMargin + 22.0, middle},
            isHovered    ? ColourRole::Accent
                : isUsed ? ColourRole::Outline
                         : ColourRole::Grid,
            isHovered ? 4.0 : 1.5}});
        list.items.push_back({TextShape{
            {kMargin + 28.0, middle}, text, kSmallSize, TextAnchor::Start, isHovered ? ColourRole::Accent : ColourRole::Text}});
        list.width = std::max(list.width, right + kMargin);
        y += kLegendLine;
    }
}

DisplayList Canvas::finished(double contentWidth, double contentHeight)
{
    DisplayList list;
    list.title = m_drawing.title;
    addHead(list);
    const double top = headHeight();
    DisplayList content;
    for (const auto* layer : {&m_frames, &m_lines, &m_litLines, &m_tiles, &m_accents, &m_labels})
        content.items.insert(content.items.end(), layer->begin(), layer->end());
    addMoved(list, content, {kMargin, top});

    if (m_hasShared)
        m_notes.emplace_back("double lines: links that several mesh axes share");
    if (m_unusedPlaces > 0)
        m_notes.push_back(fmt::format(
            "{} of {} places are empty: the mesh is smaller than the machine", m_unusedPlaces, m_drawing.devices.size()));
    double y = top + contentHeight + 6.0;
    for (const std::string& note : m_notes) {
        const std::string text = fitted(note, m_drawing.width - 2.0 * kMargin, kSmallSize);
        list.items.push_back(
            {TextShape{{kMargin, y + kLineHeight / 2.0}, text, kSmallSize, TextAnchor::Start, ColourRole::MutedText}});
        list.width = std::max(list.width, 2.0 * kMargin + estimatedWidth(text, kSmallSize));
        y += kLineHeight;
    }
    const double heading = m_drawing.caption
        ? std::min(m_drawing.width, 2.0 * kMargin + estimatedWidth(m_drawing.title, kHeadingSize, true))
        : 0.0;
    list.width = std::ceil(std::max({list.width, contentWidth + 2.0 * kMargin, heading}));
    list.height = std::ceil(y + kMargin - 6.0);
    return list;
}

double Canvas::roomAcross() const
{
    return std::max(40.0, m_drawing.width - 2.0 * kMargin);
}

double Canvas::roomDown() const
{
    return std::max(40.0, m_drawing.height - headHeight() - kMargin - 2.0 * kLineHeight);
}

} // namespace meshwright::topology

namespace meshwright {

std::string bandwidthText(double bytesPerSecond)
{
    const std::string count = formatCount(bytesPerSecond);
    return count + (count.find(' ') == std::string::npos ? " B/s" : "B/s");
}

std::string meshAxisText(const DrawnMeshAxis& axis)
{
    std::string text = fmt::format("{} {}: ", axis.name, axis.size);
    if (axis.bytesPerSecond <= 0.0)
        return text + "needs no links";
    text += fmt::format("{}, {} {} each way", axis.where, axis.kind, bandwidthText(axis.bytesPerSecond));
    if (axis.wraps)
        text += ", rings";
    text += fmt::format(", {}", counted(axis.groups, "group"));
    if (!axis.sharesWith.empty())
        text += ", shares links with " + join(axis.sharesWith, ", ");
    return text;
}

DisplayList drawTopology(const TopologyDrawing& drawing)
{
    assert(drawing.width > 0.0 && drawing.height > 0.0 && drawing.mostCells > 0);
    const bool isTorus = std::any_of(drawing.dimensions.begin(), drawing.dimensions.end(),
        [](const DrawnDimension& dimension) { return dimension.kind == DimensionKind::Torus; });
    return isTorus ? topology::drawTorus(drawing) : topology::drawHosts(drawing);
}

} // namespace meshwright
