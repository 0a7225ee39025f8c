// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/compare/gates.h"

#include <string>
#include <vector>

namespace meshwright::sim {

/// `meshwright.diff/1`. The same two things give the same bytes.
std::string diffJson(const Comparison& comparison, const std::vector<GateResult>& gates);

/// What a person reads: figures first, then why, the mesh, arrays, collectives, problems, and the gates that fail.
std::string diffText(const Comparison& comparison, const std::vector<GateResult>& gates);

/// The same as GitHub's Markdown, for comments on a change.
std::string diffMarkdown(const Comparison& comparison, const std::vector<GateResult>& gates);

} // namespace meshwright::sim
