// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/minimap.h"

#include "ui/timeline/timeline_colours.h"

#include <cstring>

namespace meshwright::ui {

namespace {

struct Place {
    std::uint32_t group = 0;
    std::uint32_t row = 0; ///< of the part
};

std::vector<Place> placesOf(const TimelineModel& model)
{
    std::vector<Place> places;
    for (std::uint32_t group = 0; group < model.groups().size(); ++group) {
        for (const ModelRow& row : model.groups()[group].rows)
            places.push_back({group, row.row});
    }
    return places;
}

} // namespace

QImage minimapImage(const TimelineModel& model, const TimeAxis& axis, Theme theme, QSize pixels)
{
    const TimelineColours colours = timelineColours(theme);
    QImage image(pixels, QImage::Format_RGB32);
    image.fill(colours.background);
    const std::vector<Place> places = placesOf(model);
    if (places.empty() || pixels.isEmpty())
        return image;

    RowColumns columns;
    const auto lines = static_cast<std::size_t>(pixels.height());
    std::size_t shown = places.size(); // none
    for (std::size_t y = 0; y < lines; ++y) {
        const std::size_t index = y * places.size() / lines;
        auto* line = reinterpret_cast<QRgb*>(image.scanLine(static_cast<int>(y)));
        if (index == shown) {
            std::memcpy(
                line, image.constScanLine(static_cast<int>(y) - 1), static_cast<std::size_t>(pixels.width()) * sizeof(QRgb));
            continue;
        }
        const bool beginsGroup = shown < places.size() && places[shown].group != places[index].group;
        shown = index;
        if (beginsGroup && lines > 3 * model.groups().size()) {
            shown = places.size(); // a line between groups
            std::fill_n(line, pixels.width(), colours.grid);
            continue;
        }
        const Place& place = places[index];
        columns.fill(*model.groups()[place.group].part, place.row, axis.toSeconds(place.group, axis.whole()), pixels.width());
        for (std::size_t x = 0; x < columns.columns.size(); ++x) {
            if (columns.columns[x].kind != ColumnKind::Empty)
                line[x] = colours.shadeOf(columns.columns[x]);
        }
    }
    return image;
}

} // namespace meshwright::ui
