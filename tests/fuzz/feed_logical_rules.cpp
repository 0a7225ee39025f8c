// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/logical_axes.h"

#include "tests/fuzz/targets.h"

namespace meshwright::fuzz {

/// The names of an array's dimensions on the first line, then rules for them.
void feedLogicalRules(std::string_view text)
{
    const auto names = parseLogicalNames(takeLine(text));
    const auto rules = parseLogicalRules(text);
    if (!names || !rules)
        return;
    (void)linenAxes(*names, *rules);
    (void)nnxAxes(*names, *rules);
}

} // namespace meshwright::fuzz
