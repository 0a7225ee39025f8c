// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/verify.h"
#include "core/propagate/rule.h"
#include "core/text/program_text.h"

#include "tests/fuzz/targets.h"
#include "tests/rule_text.h"

namespace meshwright::fuzz {

/// StableHLO with Shardy's dialect.
void feedProgram(std::string_view text)
{
    const auto program = readProgram(text, "fuzz.mlir");
    if (!program)
        return;
    const std::string written = writeProgram(*program);
    const auto again = readProgram(written, "again.mlir");
    require(again.has_value(), "a program that is written can be read");
    require(writeProgram(*again) == written, "a program that is read again is written as before");
}

/// Shardy's sharding rules of ops.
void feedOpRule(std::string_view text)
{
    const auto rule = parseRule(text);
    if (!rule)
        return;
    const auto again = parseRule(tests::ruleText(*rule));
    require(again && tests::ruleText(*again) == tests::ruleText(*rule), "a rule that is written reads as itself");
}

} // namespace meshwright::fuzz
