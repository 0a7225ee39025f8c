// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "sim/report/report.h"

#include <vector>

namespace meshwright::ui {

/// The size of a page and its margins, in pixels of 1/96 inch.
struct PageGeometry {
    double width = 793.7; ///< A4
    double height = 1122.5;
    double sideMargin = 53.0;
    double topMargin = 53.0;
    double bottomMargin = 60.0; ///< the page number stands in it
};

/// A report on pages, everything that opens opened: tables repeat their heads, headings stay with what follows them, rows and pictures are not
/// cut, pictures shrink to the column, formulas stand in small print under their figures, each page has its number. Text is broken in the
/// application's font. At least one page. Items of pictures keep their ids and tooltips.
std::vector<DisplayList> pagesOf(const sim::Report& report, const PageGeometry& geometry = {});

} // namespace meshwright::ui
