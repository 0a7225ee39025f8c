// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/files.h"
#include "app/terminal/interrupt.h"
#include "app/verbs/verbs.h"

#include "core/support/file.h"
#include "core/support/text.h"
#include "sim/pages/page_output.h"
#include "sim/pages/trusted_pages.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

namespace meshwright::cli {

namespace {

namespace fs = std::filesystem;

/// `1-3,7` of so many, counted from 0. Problems: MW1903.
Result<std::set<std::size_t>> cellsOf(const std::string& text, std::size_t count)
{
    std::set<std::size_t> cells;
    for (const std::string& part : text.empty() ? std::vector<std::string>() : split(text, ',')) {
        const std::size_t dash = part.find('-');
        const auto first = parseInteger(trimmed(part.substr(0, dash)));
        const auto last = dash == std::string::npos ? first : parseInteger(trimmed(part.substr(dash + 1)));
        if (!first || !last || *first < 1 || *last < *first || static_cast<std::size_t>(*last) > count)
            return Problem{"MW1903", fmt::format("--cells {}: the page has cells 1 to {}", text, count), "write --cells 1-3,7"};
        for (std::int64_t cell = *first; cell <= *last; ++cell)
            cells.insert(static_cast<std::size_t>(cell - 1));
    }
    return cells;
}

/// Says what a page may do, unless its reader knows. Problems: those of writing the list, with --trust.
Result<Done> sayWhatItIs(const std::string& text, const OpenOptions& options, const Output& output)
{
    if (pages::isTrusted(text))
        return Done{};
    output.narrate(options.isUnsafe
            ? "a page runs code that its author wrote: this one runs with all your rights (--unsafe)"
            : "a page runs code that its author wrote: it runs without network, without other programs, and without your files"
                + (options.folder.empty() ? std::string() : " outside of " + options.folder));
    return options.isTrusted ? pages::trust(text) : Result<Done>(Done{});
}

std::optional<std::string> writtenAs(const pages::PageReport& report, const std::string& file, Format format)
{
    const std::string ending = file == "-" ? std::string() : fs::path(file).extension().string();
    const char* wanted = format == Format::Html ? ".html" : format == Format::Json ? ".json" : ".txt";
    return pages::pageAs(report, ending.empty() ? wanted : ending);
}

} // namespace

int runOpen(const OpenOptions& options, Output& output)
{
    if (options.file.starts_with("https://") || options.file.starts_with("http://"))
        return fail({Problem{"MW1001", "pages are not fetched: " + options.file, "save the page, and open the file"}}, output);
    auto text = readFile(options.file);
    if (!text)
        return fail(text.error(), output);
    const auto page = pages::readPage(*std::move(text), options.file);
    if (!page)
        return fail(inFile(page.error(), options.file), output);
    const auto cells = cellsOf(options.cells, page->cells.size());
    if (!cells)
        return fail(cells.error(), output);
    const auto found = pages::machineOfPage(*page, options.hardware);
    if (!found)
        return fail(found.error(), output);
    const pages::PageMachine& machine = *found;
    pages::PageRun run;
    if (const pages::PageReport report{options.file, *page, machine, run}; !writtenAs(report, options.result, output.format))
        return fail({Problem{"MW1903", fmt::format("-o {}: no format has this ending", options.result),
                        "write a file that ends in .html, .ipynb, .json or .txt"}},
            output);
    if (const auto said = sayWhatItIs(page->text, options, output); !said)
        return fail(said.error(), output);

    pages::PageChoices choices{.cells = *cells, .isConfined = !options.isUnsafe};
    std::error_code error;
    if (!options.folder.empty())
        choices.folder = fs::canonical(options.folder, error);
    if (error)
        return fail(
            {Problem{"MW1001", fmt::format("there is no folder {}", options.folder), "create it", Place{"--folder"}}}, output);
    choices.seconds = options.seconds;
    choices.memoryBytes = options.memory;
    choices.mostFlops = options.flops;
    choices.measures = options.measures;
    InterruptWatcher interrupt;
    auto made = pages::runPage(*page, machine, choices, interrupt.token());
    Problems problems;
    if (made) {
        run = *std::move(made);
        problems = run.stopped;
    } else if (made.error().front().id == "MW1562") { // it is only read
        run.cells.resize(page->cells.size());
        problems = made.error();
    } else {
        return fail(made.error(), output);
    }
    const pages::PageReport report{options.file, *page, machine, run};
    const int code = writeResult(*writtenAs(report, options.result, output.format), options.result, output);
    if (!options.result.empty() && options.result != "-")
        output.narrate(pages::summaryText(report));
    if (interrupt.exitCode() != 0)
        return interrupt.fail(problems, output);
    if (!problems.empty())
        return failAfterResult(inFile(problems, options.file), output);
    return code == kExitOk && options.checks && pages::hasFindings(run) ? int{kExitFindings} : code;
}

} // namespace meshwright::cli
