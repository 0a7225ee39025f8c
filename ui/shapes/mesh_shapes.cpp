// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shapes/mesh_shapes.h"

#include "core/study/edit_text.h"
#include "core/study/legal_sizes.h"
#include "core/support/text.h"
#include "sim/session/analysis_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace meshwright::ui {

namespace {

constexpr double kText = 12.0;
constexpr double kSmallText = 10.0;
constexpr double kMargin = 14.0;
constexpr double kHead = 24.0; ///< of column heads
constexpr double kBesideText = 8.0;
constexpr double kGap = 3.0;

void addShapes(std::vector<MeshAxis>& axes, std::size_t at, std::int64_t left, std::vector<std::vector<MeshAxis>>& found)
{
    if (at + 1 == axes.size()) {
        axes[at].size = left;
        found.push_back(axes);
        return;
    }
    for (std::int64_t size = left; size >= 1 && found.size() < kMostShapes; --size) {
        if (left % size != 0)
            continue;
        axes[at].size = size;
        addShapes(axes, at + 1, left / size, found);
    }
}

Colour between(Colour a, Colour b, double share)
{
    const auto channel = [&](std::uint8_t x, std::uint8_t y) {
        return static_cast<std::uint8_t>(std::lround(x + (static_cast<double>(y) - x) * share));
    };
    return {channel(a.red, b.red), channel(a.green, b.green), channel(a.blue, b.blue)};
}

/// 0 is the quickest, 1 the slowest. Blue and red are told apart by colour vision of every kind.
Colour stepColour(double share)
{
    static constexpr std::array<Colour, 4> kRamp = {{{33, 102, 172}, {146, 197, 222}, {244, 165, 130}, {178, 24, 43}}};
    const double at = std::clamp(share, 0.0, 1.0) * 3.0;
    const auto below = std::min<std::size_t>(2, static_cast<std::size_t>(at));
    return between(kRamp[below], kRamp[below + 1], at - static_cast<double>(below));
}

Colour textOn(Colour fill)
{
    const double light = 0.299 * fill.red + 0.587 * fill.green + 0.114 * fill.blue;
    return light > 140.0 ? Colour{0, 0, 0} : Colour{255, 255, 255};
}

/// Where a shape is in the lattice.
struct Cell {
    std::size_t column = 0;
    std::size_t row = 0;
    std::size_t part = 0; ///< among those of the same column and row
};

} // namespace

std::vector<std::vector<MeshAxis>> allShapes(const std::vector<MeshAxis>& axes, std::int64_t devices)
{
    std::vector<std::vector<MeshAxis>> found;
    std::vector<MeshAxis> shape = axes;
    addShapes(shape, 0, devices, found);
    return found;
}

std::vector<MeshAxis> shapedAxes(const Study& study)
{
    std::vector<MeshAxis> axes = study.mesh;
    if (study.pipeline.stages > 1)
        std::erase_if(axes, [&](const MeshAxis& axis) { return axis.name == study.pipeline.axis; });
    return axes;
}

std::vector<MeshShape> shapesOf(const sim::Analysis& analysis)
{
    std::vector<MeshShape> shapes;
    if (!analysis.study)
        return shapes;
    const std::vector<MeshAxis> axes = shapedAxes(*analysis.study);
    const std::int64_t stages = axes.size() < analysis.study->mesh.size() ? analysis.study->pipeline.stages : 1;
    const std::int64_t all = analysis.machine ? analysis.machine->deviceCount() : devicesIn(analysis.study->mesh);
    if (axes.empty() || all % stages != 0)
        return shapes;
    const std::int64_t devices = all / stages;
    for (std::vector<MeshAxis>& shape : allShapes(axes, devices)) {
        sim::StudySource source = analysis.source;
        for (const MeshAxis& axis : shape)
            source.settings = withSetting(std::move(source.settings), "mesh." + axis.name, std::to_string(axis.size));
        MeshShape& added = shapes.emplace_back();
        added.axes = std::move(shape);
        added.source = std::move(source);
    }
    return shapes;
}

bool analyseShape(MeshShape& shape, const sim::Catalogue& catalogue, const std::stop_token& stop)
{
    const auto analysis = sim::analysed(shape.source, catalogue, stop, false);
    if (!analysis)
        return false;
    shape.isKnown = true;
    if (analysis->simulated) {
        const sim::Simulation& simulation = analysis->simulated->simulation;
        shape.seconds = simulation.stepSeconds;
        shape.peakBytes = static_cast<double>(simulation.peakBytes);
        shape.fits = simulation.fits;
    } else if (const Problem* problem = sim::whyNotBuilt(*analysis)) {
        shape.why = problem->message;
    } else {
        shape.why = "the study names no hardware";
    }
    return true;
}

std::string shapeWords(const std::vector<MeshAxis>& axes)
{
    std::vector<std::string> sizes;
    for (const MeshAxis& axis : axes)
        sizes.push_back(std::to_string(axis.size));
    return join(sizes, "x");
}

DisplayList shapesPicture(const std::vector<MeshShape>& shapes, int current, double width, double height)
{
    DisplayList picture;
    picture.width = width;
    picture.height = height;
    picture.title = "shapes of the mesh by step time";
    if (shapes.empty())
        return picture;
    const bool hasRows = shapes.front().axes.size() > 2;
    std::map<std::int64_t, std::size_t> columns;
    std::map<std::int64_t, std::size_t> rows;
    double quickest = 0.0;
    double slowest = 0.0;
    for (const MeshShape& shape : shapes) {
        columns[shape.axes[0].size] = 0;
        rows[hasRows ? shape.axes[1].size : 1] = 0;
        if (shape.seconds > 0.0) {
            quickest = quickest > 0.0 ? std::min(quickest, shape.seconds) : shape.seconds;
            slowest = std::max(slowest, shape.seconds);
        }
    }
    for (auto* places : {&columns, &rows}) {
        std::size_t place = 0;
        for (auto& [size, at] : *places)
            at = place++;
    }
    std::vector<Cell> cells;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> parts;
    for (const MeshShape& shape : shapes) {
        const std::size_t column = columns[shape.axes[0].size];
        const std::size_t row = rows[hasRows ? shape.axes[1].size : 1];
        cells.push_back({column, row, parts[{column, row}]++});
    }
    const auto say = [&](Point at, std::string text, double size, TextAnchor anchor, Paint paint) {
        picture.items.push_back({TextShape{at, std::move(text), size, anchor, paint}});
    };
    const auto head
        = [&](std::size_t axis, std::int64_t size) { return fmt::format("{}={}", shapes.front().axes[axis].name, size); };
    const std::string columnAxis = shapes.front().axes[0].name + " \u2192"; // where there is no room for it above each column
    double side = 0.0;
    for (const auto& [size, row] : rows)
        side = std::max(side, hasRows ? estimatedWidth(head(1, size), kText) + kBesideText : 0.0);
    const auto widthFor
        = [&](double sideWidth) { return (width - 2.0 * kMargin - sideWidth) / static_cast<double>(columns.size()); };
    const double widestHead = estimatedWidth(head(0, columns.rbegin()->first), kText) + kBesideText;
    const bool isShort = widestHead > widthFor(side);
    if (isShort)
        side = std::max(side, estimatedWidth(columnAxis, kText) + kBesideText);
    const double left = kMargin + side;
    const double top = kMargin + kHead;
    const double cellWidth = widthFor(side);
    const double cellHeight = std::min(hasRows ? 1e9 : 120.0, (height - top - kMargin) / static_cast<double>(rows.size()));
    const double shortHead = estimatedWidth(std::to_string(columns.rbegin()->first), kSmallText) + kGap;
    const auto every = isShort ? static_cast<std::size_t>(std::ceil(shortHead / cellWidth)) : 1;
    if (isShort)
        say({left - kBesideText, kMargin + 8.0}, columnAxis, kText, TextAnchor::End, ColourRole::MutedText);
    for (const auto& [size, column] : columns) {
        if (column % every == 0)
            say({left + (static_cast<double>(column) + 0.5) * cellWidth, kMargin + 8.0},
                isShort ? std::to_string(size) : head(0, size), isShort ? kSmallText : kText, TextAnchor::Middle,
                ColourRole::MutedText);
    }
    for (const auto& [size, row] : rows) {
        if (hasRows)
            say({left - kBesideText, top + (static_cast<double>(row) + 0.5) * cellHeight}, head(1, size), kText, TextAnchor::End,
                ColourRole::MutedText);
    }
    const double range = quickest > 0.0 ? std::log(slowest / quickest) : 0.0;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        const MeshShape& shape = shapes[i];
        const Cell& cell = cells[i];
        const double partWidth = cellWidth / static_cast<double>(parts[{cell.column, cell.row}]);
        const Point corner{
            left + static_cast<double>(cell.column) * cellWidth + static_cast<double>(cell.part) * partWidth + kGap / 2.0,
            top + static_cast<double>(cell.row) * cellHeight + kGap / 2.0};
        const bool isCurrent = static_cast<int>(i) == current;
        ShapeStyle style;
        Paint ink = ColourRole::MutedText;
        style.fill = ColourRole::Surface;
        if (shape.seconds > 0.0) {
            const Colour fill = stepColour(range > 0.0 ? std::log(shape.seconds / quickest) / range : 0.0);
            style.fill = fill;
            ink = textOn(fill);
            if (!shape.fits)
                style.hatch = Hatch::Rising;
        } else if (shape.isKnown) {
            style.hatch = Hatch::Crossed;
        }
        style.outline = isCurrent ? ColourRole::Text : ColourRole::Grid;
        style.outlineWidth = isCurrent ? 3.0 : 1.0;
        std::string tooltip = shapeWords(shape.axes);
        for (const MeshAxis& axis : shape.axes)
            tooltip += fmt::format("\n{} = {}", axis.name, axis.size);
        if (!shape.isKnown)
            tooltip += "\nnot simulated yet";
        else if (shape.seconds > 0.0)
            tooltip += fmt::format("\nstep {}, {} of a device{}", formatSeconds(shape.seconds), formatBytes(shape.peakBytes),
                shape.fits ? "" : ": does not fit");
        else
            tooltip += "\n" + shape.why;
        const double boxWidth = std::max(1.0, partWidth - kGap);
        const double boxHeight = std::max(1.0, cellHeight - kGap);
        picture.items.push_back({RectShape{corner, boxWidth, boxHeight, style, 3.0}, fmt::format("shape:{}", i), tooltip});
        const Point middle{corner.x + boxWidth / 2.0, corner.y + boxHeight / 2.0};
        const std::string name = shapeWords(shape.axes);
        const std::string figure = shape.seconds > 0.0 ? formatSeconds(shape.seconds) : std::string();
        const bool hasBoth = boxHeight > 2.0 * kText + 6.0 && estimatedWidth(figure, kSmallText) < boxWidth - 4.0;
        const double nameSize = estimatedWidth(name, kText) < boxWidth - 4.0 ? kText : kSmallText;
        if (boxHeight > kText + 2.0 && estimatedWidth(name, nameSize) < boxWidth - 2.0) {
            if (style.hatch == Hatch::Crossed) { // on a plate, to be read
                const double plate = estimatedWidth(name, nameSize) + 4.0;
                ShapeStyle plain;
                plain.fill = ColourRole::Surface;
                picture.items.push_back(
                    {RectShape{{middle.x - plate / 2.0, middle.y - nameSize / 2.0 - 2.0}, plate, nameSize + 4.0, plain, 3.0}});
            }
            say({middle.x, middle.y - (hasBoth && !figure.empty() ? 7.0 : 0.0)}, name, nameSize, TextAnchor::Middle, ink);
            if (hasBoth && !figure.empty())
                say({middle.x, middle.y + 8.0}, figure, kSmallText, TextAnchor::Middle, ink);
        }
    }
    return picture;
}

} // namespace meshwright::ui
