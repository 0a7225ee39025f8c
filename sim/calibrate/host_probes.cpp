// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/host_probes.h"

#include "core/models/transformer.h"
#include "core/partition/partition.h"
#include "core/runtime/clocks.h"
#include "core/schedule/label.h"
#include "core/study/resolve.h"
#include "core/text/program_text.h"
#include "sim/calibrate/host_work.h"

#include <algorithm>
#include <cmath>

namespace meshwright::sim {

namespace {

double secondsOf(const ProbeRun& run, bool ofComputing)
{
    double seconds = 0.0;
    for (const Slice& slice : run.typical.slices()) {
        if (slice.category != SliceCategory::Wait && (slice.category == SliceCategory::Compute) == ofComputing)
            seconds += slice.cpuSeconds;
    }
    return seconds / static_cast<double>(run.mesh.deviceCount());
}

Result<Program> trainingStep(const std::string& text)
{
    const auto study = readStudy(text, "calibrate");
    if (!study)
        return study.error();
    const auto options = trainingOptions(*study);
    if (!options)
        return options.error();
    auto program = study->transformer() != nullptr ? buildTransformerTraining(*study->transformer(), *options)
                                                   : buildMlpTraining(*study->mlp(), *options);
    if (!program)
        return program;
    if (const auto resolved = resolveShardings(*study, *program); !resolved)
        return resolved.error();
    std::erase_if(program->functions, [](const Function& function) { return function.name != "step"; });
    return program;
}

} // namespace

double ProbeRun::computeSeconds() const
{
    return secondsOf(*this, true);
}

double ProbeRun::collectiveSeconds() const
{
    return secondsOf(*this, false);
}

Result<VirtualDevices*> Prober::devices(std::int64_t count)
{
    std::unique_ptr<VirtualDevices>& made = m_devices[count];
    if (made == nullptr) {
        auto devices = VirtualDevices::create(count, {.permits = m_permits});
        if (!devices)
            return devices.error();
        made = *std::move(devices);
    }
    return made.get();
}

Result<ProbeRun> Prober::program(const std::string& text, int runs)
{
    auto program = readProgram(text, "calibrate");
    if (!program)
        return program.error();
    constexpr double kAnyTime = 60.0;
    return run(*std::move(program), 0.5, runs, kAnyTime);
}

Result<ProbeRun> Prober::training(const std::string& study, int runs, double seconds)
{
    auto program = trainingStep(study);
    if (!program)
        return program.error();
    return run(*std::move(program), 0.01, runs, seconds);
}

Result<ProbeRun> Prober::run(Program program, double value, int runs, double seconds)
{
    constexpr int kLeast = 5;
    const double start = wallSeconds();
    auto partitioned = propagateAndPartition(std::move(program));
    if (!partitioned)
        return partitioned.error();
    const DeviceStage& stage = partitioned->device.stages.front();
    const auto on = devices(stage.mesh().deviceCount());
    if (!on)
        return on.error();
    ProbeRun result{schedule(stage.functions.front(), SchedulePolicy::Host), stage.mesh()};
    const auto loaded = LoadedFunction::load(result.scheduled, stage.meshes, **on);
    if (!loaded)
        return loaded.error();
    const Function& whole = partitioned->propagated.functions.front();
    std::vector<HostArray> values;
    for (const ValueId argument : whole.arguments())
        values.push_back(HostArray::filled(whole[argument].type, value));
    for (int i = 0; i <= runs && (i <= kLeast || wallSeconds() - start < seconds); ++i) {
        for (std::size_t argument = 0; argument < values.size(); ++argument) {
            const std::string& name = whole[whole.arguments()[argument]].name;
            if (i > 0 && name != "x" && name != "y")
                continue;
            if (const auto written = (*loaded)->writeArgument(argument, values[argument]); !written)
                return written.error();
        }
        if (const auto done = (*loaded)->run({.record = i > 0, .keep = i > 0, .stop = m_stop}); !done)
            return done.error();
    }
    result.typical = (*loaded)->typicalTimeline();
    return result;
}

std::vector<HostSample> samplesOf(const ProbeRun& run, const HostProfile& profile)
{
    const Function& function = run.scheduled.device.function;
    std::map<std::string, HostSample> byName;
    HostSample waiting;
    double& share = waiting.amounts[static_cast<std::size_t>(HostCost::WaitShare)];
    double& meetings = waiting.amounts[static_cast<std::size_t>(HostCost::WaitMeeting)];
    forEachWork(run.scheduled, run.mesh, profile, [&](const HostWork& work) {
        if (work.isWait)
            return;
        meetings += work.meets ? 1.0 : 0.0;
        HostSample& sample = byName[instructionLabel(function, *work.instruction)];
        std::ranges::transform(sample.amounts, work.amounts, sample.amounts.begin(), std::plus{});
    });
    const double total = run.typical.endSeconds();
    double busy = 0.0;
    for (const Slice& slice : run.typical.slices()) {
        if (slice.category == SliceCategory::Wait)
            continue;
        const double seconds = slice.durationSeconds / static_cast<double>(run.mesh.deviceCount());
        busy += seconds;
        share += slice.category == SliceCategory::Compute ? seconds : 0.0;
        if (const auto sample = byName.find(run.typical.text(slice.name)); sample != byName.end())
            sample->second.seconds += seconds;
    }
    std::vector<HostSample> samples;
    for (auto& [name, sample] : byName) {
        if (sample.seconds <= 0.0)
            continue;
        sample.weight = std::sqrt(sample.seconds / total);
        samples.push_back(sample);
    }
    waiting.seconds = total - busy;
    waiting.weight = waiting.seconds * waiting.seconds / (total * total); // its error is of the step
    if (meetings > 0.0 && waiting.seconds > 0.0)
        samples.push_back(waiting);
    return samples;
}

} // namespace meshwright::sim
