// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/host_predict.h"

#include "core/schedule/label.h"
#include "core/schedule/pipeline_tasks.h"
#include "core/support/json_text.h"
#include "core/support/table.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

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

constexpr std::string_view kStep = "step";

/// The tasks of a pipeline, each stage's one after the other. All devices of a stage are alike: one stands for them.
class PipelinePrediction : public TaskPlayer {
public:
    PipelinePrediction(const ScheduledProgram& scheduled, const HostProfile& profile)
        : m_scheduled(scheduled)
        , m_profile(profile)
        , m_clock(scheduled.stages.size(), {0.0})
    {
        for (const ScheduledStage& stage : scheduled.stages)
            m_devices += static_cast<double>(stage.mesh().deviceCount());
    }

    HostSeconds run()
    {
        std::vector<std::vector<Task>> tasks(m_scheduled.stages.size());
        for (const Task& task : m_scheduled.tasks)
            tasks[task.stage].push_back(task);
        playTasks(m_scheduled.pipeline, tasks, *this);
        m_sum.setTotal(std::ranges::max(m_clock).front());
        return m_sum;
    }

    void receive(const Task& task, std::size_t, const std::vector<double>& arrivals) override
    {
        m_clock[task.stage].front() = std::max(m_clock[task.stage].front(), arrivals.front());
    }

    const std::vector<double>& carryOut(const Task& task, std::size_t) override
    {
        const HostSeconds& seconds = secondsOf(task);
        for (std::size_t i = 0; i < kHostClasses; ++i) {
            if (static_cast<HostClass>(i) != HostClass::Waiting)
                m_sum.byClass[i]
                    += seconds.byClass[i] * static_cast<double>(m_scheduled.stages[task.stage].mesh().deviceCount()) / m_devices;
        }
        m_clock[task.stage].front() += seconds.total;
        return m_clock[task.stage];
    }

private:
    const HostSeconds& secondsOf(const Task& task)
    {
        const auto [at, isNew] = m_seconds.try_emplace({task.stage, task.function});
        if (isNew) {
            const ScheduledStage& stage = m_scheduled.stages[task.stage];
            if (const ScheduledFunction* function = stage.find(task.function); function != nullptr)
                at->second = predictHost(*function, stage.mesh(), m_profile, false);
        }
        return at->second;
    }

    const ScheduledProgram& m_scheduled;
    const HostProfile& m_profile;
    std::vector<std::vector<double>> m_clock; ///< by stage, of one device
    std::map<std::pair<std::size_t, std::string>, HostSeconds> m_seconds; ///< of a function of a stage
    HostSeconds m_sum;
    double m_devices = 0.0;
};

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

HostSeconds predictHost(const ScheduledFunction& scheduled, const Mesh& mesh, const HostProfile& profile, bool overlaps)
{
    HostSeconds result;
    DeviceClock clock(overlaps);
    forEachWork(scheduled, mesh, profile, [&](const HostWork& work) {
        const double seconds = work.isWait ? 0.0 : work.seconds(profile.costs);
        result.byClass[static_cast<std::size_t>(work.hostClass)] += seconds;
        clock.add(work, seconds);
    });
    double total = clock.seconds();
    const auto cost = [&](HostCost which) { return profile.costs[static_cast<std::size_t>(which)]; };
    if (clock.meetings() > 0.0) // who meets others waits for the slowest of them
        total += cost(HostCost::WaitShare) * clock.computing() + cost(HostCost::WaitMeeting) * clock.meetings();
    result.setTotal(total);
    return result;
}

HostSeconds predictHost(const ScheduledProgram& scheduled, const HostProfile& profile)
{
    if (scheduled.stages.size() == 1 && scheduled.stages.front().find(kStep) != nullptr)
        return predictHost(*scheduled.stages.front().find(kStep), scheduled.stages.front().mesh(), profile);
    return PipelinePrediction(scheduled, profile).run();
}

HostSeconds measuredHost(const ScheduledProgram& scheduled, const Timeline& virtualTime)
{
    std::map<std::string, HostClass> classes;
    for (const ScheduledStage& stage : scheduled.stages) {
        for (const ScheduledFunction& function : stage.functions)
            labels(function.device.function, function.instructions, classes);
    }
    HostSeconds result;
    std::int64_t devices = 1;
    for (const TimelineRow& row : virtualTime.rows())
        devices = std::max(devices, row.device + 1);
    for (const Slice& slice : virtualTime.slices()) {
        if (slice.category == SliceCategory::Wait || slice.category == SliceCategory::WaitForCore
            || slice.category == SliceCategory::Transfer)
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
    return jsonLine(json);
}

} // namespace meshwright::sim
