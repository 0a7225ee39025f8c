// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/theme.h"
#include "sim/pages/page_process.h"

#include <QString>

#include <cstddef>
#include <optional>
#include <vector>

namespace meshwright::ui {

/// A cell as the view shows it now.
struct ShownCell {
    std::string source; ///< as it was edited
    pages::CellResult result;
    bool isAnswered = false; ///< of a question: its answer may be read
    bool isRight = false; ///< it was answered by the reader
    bool isOutdated = false; ///< a cell before it, or its source, was changed since it ran
};

/// What a page's flow is made of.
struct ShownPage {
    const pages::Page& page;
    const std::vector<ShownCell>& cells; ///< one for each of the page
    std::size_t count = 0; ///< of cells that are shown; those behind a question wait for its answer
    std::optional<std::size_t> running = {};
    std::optional<std::size_t> current = {}; ///< the chosen one
};

/// The page with what came of it, for a text browser: of each cell the page's words, its source, what it printed beside what the page printed, what is
/// wrong, its arrays and collectives. Links are `cell:N`, counted from 0, and those of the page's words.
QString pageFlowHtml(const ShownPage& page, Theme theme);

/// `cell-3`: the anchor of a cell.
QString cellAnchor(std::size_t cell);

} // namespace meshwright::ui
