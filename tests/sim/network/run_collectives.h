// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/network/fidelity.h"
#include "sim/network/messages.h"
#include "sim/network/step_run.h"

#include <algorithm>

/// Collectives by themselves, without a step around them.
namespace meshwright::tests {

using namespace meshwright::sim;

/// The groups that span the whole of some axes of the machine.
inline DeviceGroups groupsAlong(const Topology& topology, const std::vector<std::size_t>& axes)
{
    DeviceGroups groups;
    std::vector<DeviceId> offsets{0};
    for (const std::size_t axis : axes) {
        std::vector<DeviceId> further;
        for (const DeviceId offset : offsets) {
            for (std::int64_t place = 0; place < topology.axes()[axis].length; ++place)
                further.push_back(offset + place * topology.stride(axis));
        }
        offsets = std::move(further);
    }
    groups.size = static_cast<std::uint32_t>(offsets.size());
    groups.members.reserve(static_cast<std::size_t>(topology.deviceCount()));
    for (DeviceId device = 0; device < topology.deviceCount(); ++device) {
        if (!std::ranges::all_of(axes, [&](std::size_t axis) { return topology.coordinate(device, axis) == 0; }))
            continue;
        for (const DeviceId offset : offsets)
            groups.members.push_back(static_cast<std::uint32_t>(device + offset));
    }
    return groups;
}

/// A collective that all its devices begin at a time.
struct StartedCollective {
    const RoutedCollective* collective = nullptr;
    Ticks start = 0;
    const std::vector<Ticks>* ready = nullptr; ///< when each member of `groups` is ready, after `start`; null: all at once
};

struct MessageRun {
    std::vector<Ticks> ends; ///< of each collective: when the last of its devices has received everything
    std::int64_t messages = 0;
    std::int64_t events = 0;
};

inline MessageRun runMessages(std::span<const StartedCollective> collectives, const MachineLinks& links)
{
    EventQueue queue;
    MessageEngine engine(links, queue);
    MessageRun result;
    for (std::uint32_t i = 0; i < collectives.size(); ++i) {
        const StartedCollective& started = collectives[i];
        const DeviceGroups& groups = started.collective->groups;
        engine.add(*started.collective);
        for (std::uint32_t group = 0; group < groups.count(); ++group)
            engine.expect(i, group, i, 0);
        for (std::uint32_t member = 0; member < groups.members.size(); ++member)
            engine.beginMember(i, member, started.start + (started.ready == nullptr ? 0 : (*started.ready)[member]));
        result.ends.push_back(started.start);
    }
    while (!queue.empty()) {
        const Event event = queue.pop();
        ++result.events;
        engine.handle(event);
        for (const MessageEngine::Finished& done : engine.finished())
            result.ends[done.node] = event.time; // the last group's stays
        engine.finished().clear();
    }
    result.messages = engine.messages();
    return result;
}

struct NetworkRun {
    std::vector<Ticks> ends; ///< of each collective
    std::int64_t events = 0;
    std::int64_t messages = 0; ///< Message only
    std::int64_t classes = 0; ///< Fluid only: of devices
};

inline NetworkRun runClosed(std::span<const StartedCollective> collectives)
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
inline NetworkRun runFluid(std::span<const StartedCollective> collectives, const MachineLinks& links)
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

/// When collectives end that start at given times on the same machine.
/// Preconditions: the collectives were routed on `links`; only Fidelity::Message heeds `StartedCollective::ready`.
inline NetworkRun runCollectives(std::span<const StartedCollective> collectives, const MachineLinks& links, Fidelity fidelity)
{
    if (fidelity == Fidelity::Closed)
        return runClosed(collectives);
    if (fidelity == Fidelity::Fluid)
        return runFluid(collectives, links);
    const MessageRun messages = runMessages(collectives, links);
    return {messages.ends, messages.events, messages.messages, 0};
}

} // namespace meshwright::tests
