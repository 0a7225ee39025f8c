// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_colours.h"

#include "core/draw/draw_timeline.h"
#include "ui/theme/theme.h"

namespace meshwright::ui {

namespace {

QRgb pixel(Colour colour)
{
    return qRgb(colour.red, colour.green, colour.blue);
}

} // namespace

TimelineColours timelineColours(Theme theme)
{
    TimelineColours colours;
    const Colour background = colourOf(ColourRole::Background, theme);
    colours.background = pixel(background);
    colours.surface = pixel(colourOf(ColourRole::Surface, theme));
    colours.grid = pixel(blend(background, colourOf(ColourRole::Grid, theme), 0.6));
    for (std::size_t category = 0; category < kSliceCategoryCount; ++category) {
        const ColourRole role = sliceLook(static_cast<SliceCategory>(category)).role;
        const Colour solid = colourOf(role, theme);
        const Colour lines = colourOf(hatchPaintOn(role), theme).value_or(solid);
        colours.solid[category] = pixel(solid);
        colours.hatch[category] = pixel(blend(solid, lines, 0.75));
        colours.text[category] = qtColour(colourOf(textPaintOn(role), theme).value_or(kBlack));
        for (std::size_t shade = 0; shade < TimelineColours::kShades; ++shade) {
            const double busy = (static_cast<double>(shade) + 1.0) / static_cast<double>(TimelineColours::kShades);
            const double share = TimelineColours::kFaintest + (1.0 - TimelineColours::kFaintest) * busy;
            colours.shades[category][shade] = pixel(blend(background, solid, share));
            colours.stripes[category][shade] = pixel(blend(background, solid, share * TimelineColours::kStripe));
        }
    }
    return colours;
}

} // namespace meshwright::ui
