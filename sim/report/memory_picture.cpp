// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/memory_picture.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace meshwright::sim {

namespace {

/// What lasts longest first: it lies at the bottom and its edges stay level.
constexpr std::array kStackOrder = {MemoryKind::Parameter, MemoryKind::OptimizerState, MemoryKind::Input, MemoryKind::Gradient,
    MemoryKind::Activation, MemoryKind::Collective, MemoryKind::Temporary};

} // namespace

DrawnMemoryKind drawnMemoryKind(MemoryKind kind)
{
    const std::string name = memoryKindName(kind);
    switch (kind) {
    case MemoryKind::Parameter:
        return {name, ColourRole::Compute, Hatch::None};
    case MemoryKind::OptimizerState:
        return {name, ColourRole::Permute, Hatch::Falling};
    case MemoryKind::Gradient:
        return {name, ColourRole::AllReduce, Hatch::Rising};
    case MemoryKind::Input:
        return {name, ColourRole::HostTransfer, Hatch::None};
    case MemoryKind::Activation:
        return {name, ColourRole::ReduceScatter, Hatch::None};
    case MemoryKind::Collective:
        return {name, ColourRole::AllGather, Hatch::Crossed};
    case MemoryKind::Temporary:
        return {name, ColourRole::Idle, Hatch::Falling};
    }
    return {};
}

MemoryDrawing memoryPicture(const Simulation& simulation)
{
    MemoryDrawing drawing;
    std::vector<std::size_t> shown; // indices of kinds, the lowest first
    for (const MemoryKind kind : kStackOrder) {
        const auto index = static_cast<std::size_t>(kind);
        if (std::ranges::any_of(simulation.memory, [&](const MemoryPoint& point) { return point.bytesByKind[index] > 0; })) {
            shown.push_back(index);
            drawing.kinds.push_back(drawnMemoryKind(kind));
        }
    }
    for (const MemoryPoint& point : simulation.memory) {
        DrawnMemoryMoment moment;
        moment.seconds = point.seconds;
        for (const std::size_t kind : shown)
            moment.bytesByKind.push_back(point.bytesByKind[kind]);
        drawing.moments.push_back(std::move(moment));
    }
    drawing.endSeconds = simulation.stepSeconds;
    drawing.limitBytes = simulation.capacityBytes;
    drawing.reserveBytes = simulation.reserveBytes;
    drawing.peakBytes = simulation.peakBytes;
    if (simulation.peakInstruction < drawing.moments.size())
        drawing.peakMoment = simulation.peakInstruction;
    return drawing;
}

std::string memorySentence(const Simulation& simulation)
{
    const std::int64_t usable = simulation.capacityBytes - simulation.reserveBytes;
    const std::int64_t free = usable - simulation.peakBytes;
    const std::string onHost
        = simulation.hostBytes > 0 ? fmt::format("; {} in the host's memory", formatBytes(simulation.hostBytes)) : std::string();
    return fmt::format("Peak {} of {} usable ({} \u2212 {} reserve): {}{}", formatBytes(simulation.peakBytes),
        formatBytes(usable), formatBytes(simulation.capacityBytes), formatBytes(simulation.reserveBytes),
        free >= 0 ? fmt::format("fits, {} free", formatBytes(free))
                  : fmt::format("does not fit, {} too much", formatBytes(-free)),
        onHost);
}

} // namespace meshwright::sim
