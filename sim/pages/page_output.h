// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/pages/page_process.h"

#include <optional>
#include <string>
#include <string_view>

namespace meshwright::pages {

/// A page, what came of it, and how it was run.
struct PageReport {
    std::string name; ///< of the file
    const Page& page;
    const PageMachine& machine;
    const PageRun& run;
};

/// How many cells ran, raised and so on, and how their outputs compare; one line without a newline.
std::string summaryText(const PageReport& report);

/// What a person reads: each cell with its output, the arrays it made, its collectives and what is wrong.
std::string pageText(const PageReport& report);

/// `meshwright.page/1`.
std::string pageJson(const PageReport& report);

/// One file for a browser, without scripts: the cells with their sources beside the same.
std::string pageHtml(const PageReport& report);

/// The notebook with the outputs of this run in place of its own, and with the sources of `report.page`, where somebody edited them; a page of another
/// form as a new notebook.
std::string pageNotebook(const PageReport& report);

/// The same by the ending of a file: .html, .ipynb, .json, or .txt, which no ending means too. Nothing: no format has this ending.
std::optional<std::string> pageAs(const PageReport& report, std::string_view ending);

/// True when a cell raised, printed something different, was stopped, or something is wrong with it.
bool hasFindings(const PageRun& run);

} // namespace meshwright::pages
