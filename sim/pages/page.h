// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::pages {

/// What a page asks its reader before it shows the answer. The answer is the value of the cell's source, which is one expression.
struct Question {
    std::string text;
    std::string check; ///< an expression of `answer` that is true of a right one; empty: an answer is right that is equal
    std::vector<std::string> hints;
    std::string why; ///< said with the answer; expressions in braces are computed
};

/// One block of code of a page.
struct Cell {
    std::string source; ///< without what marks the cell
    std::string before = {}; ///< the page's words between the cell before and this one
    std::optional<std::string> printed; ///< what the page says that it printed; nothing: the page does not say
    int line = 0; ///< of the file, counted from 1, where the source begins; 0 in notebooks
    std::optional<Question> question = {};
    /// Of a notebook: it has no run number, and just that number is missing between the cells around it. It was changed after the run that the outputs are of.
    bool isChangedSinceRun = false;
};

/// A page in the order of its cells.
struct Page {
    std::vector<Cell> cells;
    std::string after = {}; ///< the words after the last cell
    std::string text; ///< the file
    bool isNotebook = false; ///< the file is Jupyter's JSON
    std::string hardware = {}; ///< the machine that the page was written for, as `--hw` takes it; empty: it does not say
};

/// Reads a page by the ending of `name`, or by what is in it:
/// - `.ipynb`: Jupyter's JSON, with outputs as text.
/// - `.md`: MyST's `{code-cell}` blocks, or blocks fenced as Python where it has none; blocks fenced as `question`: lines of text, then
///   `answer:`, `check:`, any number of `hint:`, and `why:`, each with the lines that follow it. `hardware: v5e-8` in the block of metadata
///   (between `---` at the top) names the page's machine. Blocks that begin with `>>>` have what they printed between their prompts.
/// - `.py`: cells after `# %%` lines (those marked `[markdown]` are left out), else one cell.
/// - other text: cells after `In [n]:`, and what they printed after `Out[n]:`; else as `.py` where lines are `# %%`, else as `.md`.
///
/// Problems: MW1563 the page has no cells; MW1564 a notebook that is none; MW1568 a question without an answer.
Result<Page> readPage(std::string text, std::string_view name);

/// The page's file with these sources in place of its cells', one for each; all else stays as it is. Nothing: the file does not have a cell's lines as they
/// are (of text that was copied from a terminal).
std::optional<std::string> withSources(const Page& page, const std::vector<std::string>& sources);

} // namespace meshwright::pages
