// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/analysis_state.h"

#include <algorithm>

namespace meshwright::sim {

const Problem* whyNotBuilt(const Analysis& analysis)
{
    const Problems& problems = analysis.problems;
    const auto why = std::find_if(
        problems.begin(), problems.end(), [](const Problem& problem) { return problem.severity == Severity::Error; });
    return why == problems.end() ? nullptr : &*why;
}

} // namespace meshwright::sim
