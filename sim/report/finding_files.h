// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <map>
#include <string>
#include <vector>

namespace meshwright::sim {

/// A group of findings with a name: a file that was checked, a gate. Without findings it passes.
struct FindingCase {
    std::string name; ///< "fsdp.yaml", "time>5%"
    Problems findings; ///< `id` is the rule
    std::string file = {}; ///< where findings are that name no file of their own, but standard input or a setting (`--set ..`)
};

/// SARIF 2.1.0, as code scanning reads it: a run with a result for each finding, its rule, level, message and place. `titles` are of rules, by id; a
/// rule without one is its id. Source: OASIS, SARIF Version 2.1.0.
std::string sarifText(const std::vector<FindingCase>& cases, const std::map<std::string, std::string>& titles);

/// JUnit XML, as CI servers read it: a suite with a test case for each of `cases`; one with a finding at or above `failOn` fails, and what it found is
/// its text. No times. Source: the form that Jenkins' and GitLab's readers have in common.
std::string junitText(const std::string& suite, const std::vector<FindingCase>& cases, Severity failOn);

} // namespace meshwright::sim
