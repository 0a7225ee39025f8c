// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/host_predict.h"

#include "core/schedule/label.h"
#include "core/support/table.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;

constexpr HostClass kClasses[] = {HostClass::Products, HostClass::Elementwise, HostClass::Reductions, HostClass::Optimizer,
    HostClass::Collectives, HostClass::Waiting};

void labels(const Function& function, const std::vector<Instruction>& instructions, std::map<std::string, HostClass>& classes)
{
    for (const Instruction& instruction : instructions) {
        if (instruction.kind == InstructionKind::Loop)
            labels(function, instruction.body, classes);
        for (const auto& block : instruction.blocks)
            labels(function, block, classes);
        if (instruction.kind != InstructionKind::Loop && instruction.kind != InstructionKind::Blocks)
            classes.emplace(instructionLabel(function, instruction), hostClassOf(function, instruction));
    }
}

} // namespace

void HostSeconds::setTotal(double seconds)
{
    total = seconds;
    byClass[static_cast<std::size_t>(HostClass::Waiting)]
        = std::max(0.0, total - std::accumulate(byClass.begin(), byClass.end(), 0.0));
}

double HostComparison::error() const
{
    return measured.total > 0.0 ? std::abs(predicted.total / measured.total - 1.0) : 0.0;
}

HostSeconds predictHost(const ScheduledFunction& scheduled, const Mesh& mesh, const HostProfile& profile)
{
    HostSeconds result;
    double clock = 0.0;
    double streamFree = 0.0; // of the collectives, of which a device has one under way
    double computing = 0.0;
    double meetings = 0.0;
    std::map<OpId, double> ends;
    forEachWork(scheduled, mesh, profile, [&](const HostWork& work) {
        if (work.isWait) {
            clock = std::max(clock, ends[work.instruction->ops.front()]);
            return;
        }
        const double seconds = work.seconds(profile.costs);
        result.byClass[static_cast<std::size_t>(work.hostClass)] += seconds;
        if (!work.meets) {
            clock += seconds;
            computing += seconds;
            return;
        }
        meetings += 1.0;
        streamFree = std::max(clock, streamFree) + seconds;
        ends[work.instruction->ops.front()] = streamFree;
        if (!work.isAsynchronous)
            clock = streamFree;
    });
    const auto cost = [&](HostCost which) { return profile.costs[static_cast<std::size_t>(which)]; };
    if (meetings > 0.0) // who meets others waits for the slowest of them
        clock += cost(HostCost::WaitShare) * computing + cost(HostCost::WaitMeeting) * meetings;
    result.setTotal(clock);
    return result;
}

HostSeconds measuredHost(const ScheduledFunction& scheduled, const Timeline& virtualTime)
{
    std::map<std::string, HostClass> classes;
    labels(scheduled.device.function, scheduled.instructions, classes);
    HostSeconds result;
    std::int64_t devices = 1;
    for (const TimelineRow& row : virtualTime.rows())
        devices = std::max(devices, row.device + 1);
    for (const Slice& slice : virtualTime.slices()) {
        if (slice.category == SliceCategory::Wait || slice.category == SliceCategory::WaitForCore)
            continue;
        HostClass kind = HostClass::Elementwise;
        if (const auto found = classes.find(virtualTime.text(slice.name)); found != classes.end())
            kind = found->second;
        result.byClass[static_cast<std::size_t>(kind)] += slice.durationSeconds / static_cast<double>(devices);
    }
    result.setTotal(virtualTime.endSeconds());
    return result;
}

std::string hostComparisonText(const HostComparison& comparison)
{
    using Align = TextTable::Align;
    TextTable table(
        {{"virtual time of a step"}, {"predicted", Align::Right}, {"measured", Align::Right}, {"error", Align::Right}});
    const auto row = [&](const std::string& name, double predicted, double measured) {
        table.addRow({name, formatSeconds(predicted), formatSeconds(measured),
            measured > 0.0 ? fmt::format("{:+.1f} %", 100.0 * (predicted / measured - 1.0)) : "-"});
    };
    for (const HostClass kind : kClasses) {
        if (comparison.predicted.of(kind) > 0.0 || comparison.measured.of(kind) > 0.0)
            row(hostClassName(kind), comparison.predicted.of(kind), comparison.measured.of(kind));
    }
    row("in total", comparison.predicted.total, comparison.measured.total);
    return fmt::format("\n{}\n{}", comparison.mesh, table.text(2));
}

std::string hostComparisonJson(const HostComparison& comparison)
{
    Json json = {{"mesh", comparison.mesh}, {"classes", Json::array()}, {"predicted_s", comparison.predicted.total},
        {"measured_s", comparison.measured.total}, {"error", comparison.error()}};
    for (const HostClass kind : kClasses)
        json["classes"].push_back({{"class", hostClassName(kind)}, {"predicted_s", comparison.predicted.of(kind)},
            {"measured_s", comparison.measured.of(kind)}});
    return json.dump();
}

} // namespace meshwright::sim
