// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_heat_map.h"

#include "core/draw/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

namespace meshwright {

namespace {

using namespace chart;

constexpr double kCellHeight = 26.0;
constexpr double kLeastCell = 14.0; ///< width, pixels
constexpr double kMostLabel = 190.0; ///< of a row

/// From least to most: one hue, so that order is in the lightness alone. Source: C. Brewer, ColorBrewer 2.0, Blues.
const std::array kScale = {colourFromHex(0xe8f1fa), colourFromHex(0xc6dbef), colourFromHex(0x9ecae1), colourFromHex(0x6baed6),
    colourFromHex(0x4292c6), colourFromHex(0x2171b5), colourFromHex(0x08519c), colourFromHex(0x08306b)};

class HeatMapPainter {
public:
    explicit HeatMapPainter(const HeatMapDrawing& drawing)
        : m_drawing(drawing)
    {
        for (const HeatMapCell& cell : drawing.cells) {
            if (cell.state == HeatMapCell::State::Value) {
                m_least = std::min(m_least, cell.value);
                m_most = std::max(m_most, cell.value);
            }
        }
    }

    DisplayList draw()
    {
        double labels = estimatedWidth(m_drawing.yTitle, kSmallSize);
        for (const std::string& row : m_drawing.rows)
            labels = std::max(labels, estimatedWidth(row, kSmallSize));
        m_left = kMargin + std::min(labels, kMostLabel) + 8.0;
        const auto columns = static_cast<double>(m_drawing.columns.size());
        m_cell = std::max(kLeastCell, std::min(110.0, (m_drawing.width - m_left - kMargin) / columns));
        m_list.title = m_drawing.title;
        m_list.width = std::max(m_drawing.width, m_left + m_cell * columns + kMargin);
        m_top = addHeading(m_list, m_drawing.title, m_list.width);
        addColumnLabels();
        for (std::size_t row = 0; row < m_drawing.rows.size(); ++row)
            addRow(row);
        m_list.height = addKeys(m_top + kCellHeight * static_cast<double>(m_drawing.rows.size()) + 12.0);
        return std::move(m_list);
    }

private:
    void addText(Point at, const std::string& text, TextAnchor anchor, ColourRole role, bool bold = false)
    {
        m_list.items.push_back({TextShape{at, text, kSmallSize, anchor, role, bold}});
    }

    void addColumnLabels()
    {
        const double middle = m_left + m_cell * static_cast<double>(m_drawing.columns.size()) / 2.0;
        addText({middle, m_top + 6.0}, m_drawing.xTitle, TextAnchor::Middle, ColourRole::MutedText);
        m_top += kLineHeight;
        addText({kMargin, m_top + 6.0}, fitted(m_drawing.yTitle, m_left - kMargin - 4.0, kSmallSize), TextAnchor::Start,
            ColourRole::MutedText);
        double free = -1.0;
        for (std::size_t column = 0; column < m_drawing.columns.size(); ++column) {
            const double x = m_left + m_cell * (static_cast<double>(column) + 0.5);
            const std::string text = estimatedWidth(m_drawing.columns[column], kSmallSize) < 34.0
                ? m_drawing.columns[column]
                : fitted(m_drawing.columns[column], std::max(m_cell - 4.0, 0.0), kSmallSize);
            const double half = estimatedWidth(text, kSmallSize) / 2.0;
            if (text.empty() || x - half < free)
                continue;
            addText({x, m_top + 6.0}, text, TextAnchor::Middle, ColourRole::Text);
            free = x + half + 4.0;
        }
        m_top += kLineHeight;
    }

    void addRow(std::size_t row)
    {
        const double y = m_top + kCellHeight * static_cast<double>(row);
        addText({m_left - 8.0, y + kCellHeight / 2.0}, fitted(m_drawing.rows[row], kMostLabel, kSmallSize), TextAnchor::End,
            ColourRole::Text);
        for (std::size_t column = 0; column < m_drawing.columns.size(); ++column)
            addCell(row * m_drawing.columns.size() + column, {m_left + m_cell * static_cast<double>(column), y});
    }

    void addCell(std::size_t index, Point at)
    {
        const HeatMapCell& cell = m_drawing.cells[index];
        const std::string id = fmt::format("cell:{}", index);
        RectShape shape{{at.x + 1.0, at.y + 1.0}, m_cell - 2.0, kCellHeight - 2.0, {}, 3.0};
        if (cell.state != HeatMapCell::State::Value) {
            shape.style.outline = ColourRole::Grid;
            shape.style.fill = ColourRole::Surface;
            shape.style.hatch = cell.state == HeatMapCell::State::OutOfReach ? Hatch::Rising : Hatch::None;
            shape.style.hatchPaint = ColourRole::Grid;
            m_list.items.push_back({shape, id, cell.tooltip});
            addCellText(shape, cell.text, ColourRole::MutedText, false);
            return;
        }
        const Colour colour = colourAt(cell.value);
        shape.style.fill = colour;
        if (cell.marked) {
            shape.style.outline = ColourRole::AllReduce;
            shape.style.outlineWidth = 3.0;
        }
        m_list.items.push_back({shape, id, cell.tooltip});
        addCellText(shape, quantityText(cell.value, m_drawing.quantity), readableOn(colour), cell.marked);
    }

    /// The whole text or none: half a number misleads.
    void addCellText(const RectShape& shape, const std::string& text, const Paint& paint, bool bold)
    {
        if (text.empty() || estimatedWidth(text, kSmallSize, bold) > shape.width - 4.0)
            return;
        m_list.items.push_back({TextShape{{shape.topLeft.x + shape.width / 2.0, shape.topLeft.y + shape.height / 2.0}, text,
            kSmallSize, TextAnchor::Middle, paint, bold}});
    }

    Colour colourAt(double value) const
    {
        const double range = std::log(m_most) - std::log(m_least);
        return onScale(kScale, range > 0.0 ? std::clamp((std::log(value) - std::log(m_least)) / range, 0.0, 1.0) : 0.0);
    }

    /// The scale and what the other cells mean, below `y`. Yields the height of the picture.
    double addKeys(double y)
    {
        double x = kMargin;
        if (m_least <= m_most) {
            const std::string least = quantityText(m_least, m_drawing.quantity);
            const std::string most = quantityText(m_most, m_drawing.quantity);
            addText({x, y + 7.0}, least, TextAnchor::Start, ColourRole::MutedText);
            x += estimatedWidth(least, kSmallSize) + 6.0;
            constexpr int kSteps = 24;
            for (int i = 0; i < kSteps; ++i) {
                RectShape step{{x, y}, 6.0, 13.0, {}};
                step.style.fill = onScale(kScale, i / (kSteps - 1.0));
                m_list.items.push_back({step});
                x += 6.0;
            }
            x += 6.0;
            addText({x, y + 7.0}, most, TextAnchor::Start, ColourRole::MutedText);
            x += estimatedWidth(most, kSmallSize) + 24.0;
        }
        const auto any = [&](auto test) { return std::any_of(m_drawing.cells.begin(), m_drawing.cells.end(), test); };
        std::vector<LegendEntry> entries;
        if (any([](const HeatMapCell& cell) { return cell.marked; })) {
            LegendEntry best{"best", {}};
            best.swatch.outline = ColourRole::AllReduce;
            best.swatch.outlineWidth = 2.0;
            entries.push_back(best);
        }
        if (any([](const HeatMapCell& cell) { return cell.state == HeatMapCell::State::OutOfReach; })) {
            LegendEntry tooLarge{m_drawing.outOfReach, {}};
            tooLarge.swatch = filled(ColourRole::Surface, Hatch::Rising);
            tooLarge.swatch.hatchPaint = ColourRole::Outline;
            tooLarge.swatch.outline = ColourRole::Grid;
            entries.push_back(tooLarge);
        }
        if (any([](const HeatMapCell& cell) { return cell.state == HeatMapCell::State::Refused; })) {
            LegendEntry refused{"refused, with the problem", {}};
            refused.swatch.fill = ColourRole::Surface;
            refused.swatch.outline = ColourRole::Grid;
            entries.push_back(refused);
        }
        if (x + 220.0 > m_list.width && !entries.empty()) {
            x = kMargin;
            y += kLineHeight + 4.0;
        }
        return y + std::max(kLineHeight, addLegend(m_list, {x, y - 2.0}, m_list.width - x - kMargin, entries)) + kMargin;
    }

    const HeatMapDrawing& m_drawing;
    DisplayList m_list;
    double m_least = std::numeric_limits<double>::infinity();
    double m_most = 0.0;
    double m_left = 0.0;
    double m_top = 0.0;
    double m_cell = 0.0;
};

} // namespace

DisplayList drawHeatMap(const HeatMapDrawing& drawing)
{
    assert(!drawing.rows.empty() && !drawing.columns.empty()
        && drawing.cells.size() == drawing.rows.size() * drawing.columns.size());
    return HeatMapPainter(drawing).draw();
}

} // namespace meshwright
