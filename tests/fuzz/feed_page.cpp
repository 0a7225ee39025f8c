// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/pages/page.h"
#include "sim/pages/page_machine.h"

#include "tests/fuzz/targets.h"

#include <algorithm>

namespace meshwright::fuzz {

/// A page, after a line with its name: its cells, its machine, and its file with cells that were edited.
void feedPage(std::string_view text)
{
    const std::string name(takeLine(text));
    const auto page = pages::readPage(std::string(text), name);
    if (!page)
        return;
    require(!page->cells.empty(), "a page that can be read has cells");
    (void)pages::machineOfPage(*page);
    (void)pages::isOfLegacyRandom(*page);
    std::vector<std::string> sources;
    std::ranges::transform(page->cells, std::back_inserter(sources), &pages::Cell::source);
    if (const auto same = pages::withSources(*page, sources)) {
        const auto again = pages::readPage(*same, name);
        require(again && again->cells.size() == sources.size(), "a page whose cells stay as they are is read again");
    }
    sources.front() = "answer = 42";
    (void)pages::withSources(*page, sources);
}

} // namespace meshwright::fuzz
