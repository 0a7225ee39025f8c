// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/step_collectives.h"

namespace meshwright::ui {

std::vector<sim::SimulatedCollective> stepCollectives(const sim::Analysis& analysis)
{
    if (analysis.simulated)
        return analysis.simulated->simulation.collectives;
    std::vector<sim::SimulatedCollective> collectives;
    if (!analysis.scheduled)
        return collectives;
    for (CollectiveUse& use : collectivesOf(analysis.scheduled->device, analysis.mesh()))
        collectives.emplace_back().use = std::move(use);
    return collectives;
}

} // namespace meshwright::ui
