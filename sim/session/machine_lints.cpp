// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/machine_lints.h"

#include "core/study/legal_sizes.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::sim {

namespace {

/// Devices that no phase uses.
void lintIdleDevices(const Analysis& analysis, Problems& problems)
{
    const Study& study = *analysis.study;
    const std::int64_t all = analysis.machine->deviceCount();
    std::int64_t used = analysis.simulated->mesh.deviceCount();
    for (const StudyPhase& phase : study.phases)
        used = std::max(used, devicesIn(phase.mesh));
    if (2 * used > all)
        return;
    Problem problem{"MW1753", fmt::format("the mesh uses {} of the {} devices of {}", used, all, analysis.machine->text()),
        "let an axis grow to all devices, or name a smaller slice", study.placeOf("mesh"), Severity::Warning,
        fmt::format("{} devices have nothing to do: {:.0f} % of the machine's FLOPs and memory", all - used,
            100.0 * static_cast<double>(all - used) / static_cast<double>(all))};
    if (study.phases.empty() && study.deviceOrder.empty()) {
        if (const auto larger = nearestMesh(study, all))
            problem.fixSettings = meshSettings(study.mesh, *larger);
    }
    problems.push_back(std::move(problem));
}

bool splits(const TensorSharding& sharding, std::size_t dim, std::int32_t axis)
{
    return dim < sharding.dims.size()
        && std::ranges::any_of(sharding.dims[dim].axes, [&](const AxisRef& ref) { return ref.axis == axis; });
}

/// True for an axis that splits parameters, and no dimension of the batch.
bool isTensorAxis(const Function& step, std::int32_t axis)
{
    bool splitsParameter = false;
    for (const ValueId argument : step.arguments()) {
        const Value& value = step[argument];
        if (!value.sharding)
            continue;
        if (value.role == Role::Input && splits(*value.sharding, 0, axis))
            return false;
        for (std::size_t dim = 0; value.role == Role::Parameter && dim < value.type.shape.size(); ++dim)
            splitsParameter = splitsParameter || splits(*value.sharding, dim, axis);
    }
    return splitsParameter;
}

/// What the step waits for collectives over an axis between its first op and the update.
double exposedOver(const Simulation& step, const std::string& axis)
{
    double seconds = 0.0;
    for (const SimulatedCollective& collective : step.collectives) {
        const std::vector<std::string> axes = split(collective.use.axes, ',');
        const bool isOfPasses = collective.use.phase == Phase::Forward || collective.use.phase == Phase::Backward;
        if (isOfPasses && std::ranges::find(axes, axis) != axes.end())
            seconds += collective.exposedSeconds;
    }
    return seconds;
}

/// The fastest link that the machine's devices have.
const PhysicalAxis* fastestAxis(const Topology& topology)
{
    const PhysicalAxis* fastest = nullptr;
    for (const PhysicalAxis& axis : topology.axes()) {
        if (axis.length > 1 && (fastest == nullptr || axis.link.bytesPerSecond > fastest->link.bytesPerSecond))
            fastest = &axis;
    }
    return fastest;
}

/// Tensor parallelism over the network between hosts.
void lintSlowAxes(const Analysis& analysis, Problems& problems)
{
    constexpr double kLeastShare = 0.1; // of the step: below it nobody cares
    const Function& step = *analysis.built->partitioned.propagated.find(analysis.built->mainFunction);
    const Simulation& simulation = analysis.simulated->simulation;
    const Mesh& mesh = analysis.mesh();
    const PhysicalAxis* fastest = fastestAxis(analysis.machine->topology);
    for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
        const MeshAxis& axis = mesh.axes()[i];
        const auto number = static_cast<std::int32_t>(i);
        if (axis.size == 1 || !isTensorAxis(step, number))
            continue;
        const AxisRef whole{number, 1, axis.size};
        const auto groups = analysis.placement->groupAxes({&whole, 1});
        const auto slow = std::ranges::find(groups, LinkKind::Nic, [](const GroupAxis& group) { return group.link.kind; });
        const double exposed = exposedOver(simulation, axis.name);
        if (slow == groups.end() || fastest->link.kind == LinkKind::Nic || exposed < kLeastShare * simulation.stepSeconds)
            continue;
        problems.push_back({"MW1752", fmt::format("the axis \"{}\" splits parameters and no batch, and crosses hosts", axis.name),
            fmt::format("make it the last axis of the mesh, and no larger than the {} devices that {} joins: axes take the "
                        "closest devices "
                        "from the last one on",
                fastest->length, linkKindName(fastest->link.kind)),
            analysis.study->placeOf("mesh." + axis.name), Severity::Warning,
            fmt::format(
                "its collectives hold up the step for {} of {} ({:.0f} %): a device has {:.3g} GB/s between hosts and {:.3g} "
                "GB/s by {}",
                formatSeconds(exposed), formatSeconds(simulation.stepSeconds), 100.0 * exposed / simulation.stepSeconds,
                slow->link.bytesPerSecond / 1e9, fastest->link.bytesPerSecond / 1e9, linkKindName(fastest->link.kind))});
    }
}

/// Values that are kept in the host's memory, and for which the step waits.
void lintHostLink(const Analysis& analysis, Problems& problems)
{
    constexpr double kLeastShare = 0.05; // of the step
    const Simulation& step = analysis.simulated->simulation;
    if (step.hostExposedSeconds < kLeastShare * step.stepSeconds)
        return;
    const auto worst = std::ranges::max_element(step.moves, {}, &SimulatedMove::exposedSeconds);
    problems.push_back({"MW1756",
        fmt::format("the step waits {} of {} ({:.0f} %) for the link to the host's memory",
            formatSeconds(step.hostExposedSeconds), formatSeconds(step.stepSeconds),
            100.0 * step.hostExposedSeconds / step.stepSeconds),
        "offload fewer values, or make them again: recompute: full", analysis.study->placeOf("recompute"), Severity::Warning,
        fmt::format("a device has {:.3g} GB/s each way; longest it waits for \"{}\", {} in {} moves",
            step.hostLinkBytesPerSecond / 1e9, worst->label, formatBytes(worst->bytes * worst->count), worst->count)});
}

/// A step that needs more memory than a device has for it.
void lintMemory(const Analysis& analysis, Problems& problems)
{
    const Simulation& step = analysis.simulated->simulation;
    if (step.fits)
        return;
    const auto bytes = [](std::int64_t count) { return formatBytes(count); };
    problems.push_back({"MW1757",
        fmt::format("a step needs {} of memory on each device, and {} are free for it", bytes(step.peakBytes),
            bytes(step.capacityBytes - step.reserveBytes)),
        "shard what is replicated, recompute more (recompute: full), or use more devices or a smaller batch; "
        "`meshwright search` finds layouts that fit",
        analysis.study->placeOf("hardware"), Severity::Warning,
        fmt::format("a device of {} has {}, and {} are kept for the runtime", analysis.machine->text(), bytes(step.capacityBytes),
            bytes(step.reserveBytes))});
}

} // namespace

Problems lintsOnMachine(const Analysis& analysis)
{
    Problems problems;
    lintMemory(analysis, problems);
    lintIdleDevices(analysis, problems);
    lintHostLink(analysis, problems);
    if (analysis.built && analysis.placement)
        lintSlowAxes(analysis, problems);
    return problems;
}

} // namespace meshwright::sim
