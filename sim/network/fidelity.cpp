// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/network/fidelity.h"

#include "sim/network/step_run.h"

#include <algorithm>

namespace meshwright::sim {

namespace {

NetworkRun runClosed(std::span<const StartedCollective> collectives)
{
    NetworkRun run;
    for (const StartedCollective& started : collectives) {
        Ticks end = started.start;
        for (const std::vector<RoutedLane>& phase : started.collective->phases) {
            Ticks slowest = 0;
            for (const RoutedLane& lane : phase)
                slowest = std::max(slowest, lane.latency + ticksOf(lane.plan.linkBytes / lane.plannedBytesPerSecond));
            end += slowest;
        }
        run.ends.push_back(end);
    }
    return run;
}

/// As a step whose collectives wait for nothing but their start.
NetworkRun runFluid(std::span<const StartedCollective> collectives, const MachineLinks& links)
{
    NetworkRun run;
    StepWork work;
    work.links = &links;
    work.kindOf.assign(static_cast<std::size_t>(links.topology().deviceCount()), 0);
    StepLoop loop;
    StepProgram program;
    for (std::uint32_t i = 0; i < collectives.size(); ++i) {
        work.sites.push_back(flowsOf(*collectives[i].collective));
        const StepDependency started{program.compute(collectives[i].start, {}), StepLag::None};
        program.collective(i, i, {&started, 1});
    }
    loop.programs.push_back(std::move(program));
    work.loops.push_back(std::move(loop));
    const StepRun step = runStep(work);
    run.events = step.events;
    run.classes = step.classes;
    for (std::uint32_t i = 0; i < collectives.size(); ++i)
        run.ends.push_back(step.endOfSite[i]);
    return run;
}

} // namespace

const char* fidelityName(Fidelity fidelity)
{
    return fidelity == Fidelity::Closed ? "closed" : fidelity == Fidelity::Fluid ? "fluid" : "message";
}

std::optional<Fidelity> findFidelity(std::string_view name)
{
    for (const Fidelity fidelity : {Fidelity::Closed, Fidelity::Fluid, Fidelity::Message}) {
        if (name == fidelityName(fidelity))
            return fidelity;
    }
    return std::nullopt;
}

NetworkRun runCollectives(std::span<const StartedCollective> collectives, const MachineLinks& links, Fidelity fidelity)
{
    if (fidelity == Fidelity::Closed)
        return runClosed(collectives);
    if (fidelity == Fidelity::Fluid)
        return runFluid(collectives, links);
    MessageRun messages = runMessages(collectives, links);
    return {std::move(messages.ends), messages.events, messages.messages, 0};
}

} // namespace meshwright::sim
