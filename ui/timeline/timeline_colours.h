// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/theme.h"
#include "ui/timeline/row_columns.h"

#include <QColor>
#include <QRgb>

#include <array>
#include <cstddef>

namespace meshwright::ui {

/// The colours of a theme as pixels, for all categories and shares of busy time.
struct TimelineColours {
    static constexpr std::size_t kShades = 32;
    /// Share of the category's colour in the faintest shade: a lone short slice must show.
    static constexpr double kFaintest = 0.35;
    /// Share of the shade in the stripes that folded slices have.
    static constexpr double kStripe = 0.55;

    using Shades = std::array<std::array<QRgb, kShades>, kSliceCategoryCount>;

    QRgb background = 0;
    QRgb surface = 0;
    QRgb grid = 0;
    std::array<QRgb, kSliceCategoryCount> solid{};
    std::array<QRgb, kSliceCategoryCount> hatch{};
    std::array<QColor, kSliceCategoryCount> text{}; ///< on the solid colour
    Shades shades{};
    Shades stripes{};

    /// Precondition: the column is not empty.
    QRgb shadeOf(const Column& column) const
    {
        const auto category = static_cast<std::size_t>(column.category);
        return column.kind == ColumnKind::Solid ? solid[category] : shades[category][column.busy * kShades / 256];
    }
    QRgb stripeOf(const Column& column) const
    {
        return stripes[static_cast<std::size_t>(column.category)][column.busy * kShades / 256];
    }
};

TimelineColours timelineColours(Theme theme);

} // namespace meshwright::ui
