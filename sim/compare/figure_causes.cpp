// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/compare/figure_causes.h"

#include "core/program/spoken_op.h"
#include "core/support/text.h"
#include "sim/compare/alike_collectives.h"
#include "sim/compare/step_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace meshwright::sim {

namespace {

constexpr double kRounding = 1e-9; ///< what sums of doubles may differ by, as a share

std::vector<FigureCause> waits(const Simulation& simulation)
{
    std::vector<FigureCause> causes;
    for (const AlikeCollectives& alike : alikeCollectives(simulation.collectives)) {
        const CollectiveUse& use = alike.all.use;
        if (alike.all.exposedSeconds > 0.0)
            causes.push_back({fmt::format("{} of {} over {}, {}{}", spokenOp(use.kind), valueInWords(use.cause.value),
                                  join(split(use.axes, ','), " and "), phaseName(use.phase),
                                  alike.members.size() > 1 ? fmt::format(" ({} alike)", alike.members.size()) : std::string()),
                alike.all.exposedSeconds, alike.members.front(), use.cause.value, use.cause.annotation});
    }
    return causes;
}

/// The largest first; what is left of the value is a cause too.
ExplainedFigure explained(
    std::string name, Quantity quantity, double value, std::vector<FigureCause> causes, const char* whatIsLeft)
{
    double left = value;
    for (const FigureCause& cause : causes)
        left -= cause.amount;
    if (std::fabs(left) > kRounding * value)
        causes.push_back({whatIsLeft, left});
    std::erase_if(causes, [](const FigureCause& cause) { return cause.amount == 0.0; });
    std::stable_sort(
        causes.begin(), causes.end(), [](const FigureCause& a, const FigureCause& b) { return a.amount > b.amount; });
    return {std::move(name), quantity, value, std::move(causes)};
}

std::vector<FigureCause> inMemory(const std::vector<LiveValue>& live)
{
    std::vector<FigureCause> causes;
    std::map<MemoryKind, std::pair<std::size_t, double>> others;
    for (const LiveValue& value : live) {
        if (causes.size() < kLiveTold) {
            causes.push_back({fmt::format("{} ({})", value.name, memoryKindName(value.kind)), static_cast<double>(value.bytes),
                {}, value.name, {}});
            continue;
        }
        auto& [count, bytes] = others[value.kind];
        ++count;
        bytes += static_cast<double>(value.bytes);
    }
    for (const auto& [kind, other] : others)
        causes.push_back({fmt::format("{} more {}", other.first, memoryKindName(kind)), other.second});
    return causes;
}

} // namespace

std::vector<ExplainedFigure> explainFigures(const Simulation& simulation, const std::vector<LiveValue>& live)
{
    std::vector<FigureCause> step = waits(simulation);
    step.push_back({"products", simulation.productSeconds});
    step.push_back({"element-wise work", simulation.computeSeconds - simulation.productSeconds});
    step.push_back({"waiting for the host to start kernels", simulation.launchSeconds});
    step.push_back({"waiting for other pipeline stages", simulation.bubbleSeconds});
    step.push_back({"the software stack, between steps and for slow hosts", simulation.stackSeconds});
    return {explained("step time", Quantity::Seconds, simulation.stepSeconds, std::move(step), "other waiting"),
        explained("exposed communication", Quantity::Seconds, simulation.exposedSeconds, waits(simulation), "other waiting"),
        explained(
            "peak memory", Quantity::Bytes, static_cast<double>(simulation.peakBytes), inMemory(live), "gaps between arrays")};
}

} // namespace meshwright::sim
