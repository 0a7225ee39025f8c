// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/compare/compare.h"
#include "sim/compare/gates.h"

#include "tests/fuzz/targets.h"

namespace meshwright::fuzz {

/// Two results, one after the other, behind a line of gates.
void feedCompared(std::string_view text)
{
    const auto gates = sim::parseGates(takeLine(text));
    const std::string_view first = takeLine(text);
    (void)sim::isComparableResult(first);
    const auto before = sim::readComparable(first, "before.json");
    const auto after = sim::readComparable(text.empty() ? first : text, "after.json");
    if (!before || !after)
        return;
    require(sim::compare(*before, *before).same(), "a result is equal to itself");
    const sim::Comparison comparison = sim::compare(*before, *after);
    if (gates)
        (void)sim::judge(*gates, comparison);
}

} // namespace meshwright::fuzz
