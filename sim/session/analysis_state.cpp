// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/analysis_state.h"

#include <algorithm>

namespace meshwright::sim {

bool isByFormulas(const Analysis& analysis)
{
    return analysis.simulated && !analysis.scheduled;
}

const Problem* whyNotBuilt(const Analysis& analysis)
{
    const Problems& problems = analysis.problems;
    auto why = std::find_if(
        problems.begin(), problems.end(), [](const Problem& problem) { return problem.severity == Severity::Error; });
    if (why == problems.end() && !analysis.built)
        why = std::find_if(problems.begin(), problems.end(), [](const Problem& problem) { return problem.id == "MW1465"; });
    return why == problems.end() ? nullptr : &*why;
}

} // namespace meshwright::sim
