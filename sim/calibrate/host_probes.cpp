// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/host_probes.h"

#include "core/devices/clocks.h"
#include "core/models/transformer.h"
#include "core/partition/partition.h"
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
    const std::vector<AssignedSpec> assigned = assignedSpecs(*study);
    const auto options = trainingOptions(*study, assigned);
    if (!options)
        return options.error();
    auto program = study->transformer() != nullptr ? buildTransformerTraining(*study->transformer(), *options)
                                                   : buildMlpTraining(*study->mlp(), *options);
    if (!program)
        return program;
    if (const auto resolved = resolveShardings(*study, assigned, *program); !resolved)
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

Probe::Probe(ScheduledFunction scheduled, Mesh mesh, const Function& whole, bool isTraining)
    : m_scheduled(std::move(scheduled))
    , m_mesh(std::move(mesh))
{
    for (const ValueId argument : whole.arguments()) {
        m_values.push_back(HostArray::filled(whole[argument].type, isTraining ? 0.01 : 0.5));
        m_isBatch.push_back(isTraining && (whole[argument].name == "x" || whole[argument].name == "y"));
    }
}

Result<Done> Probe::run(const Round& round, const std::stop_token& stop)
{
    const double start = wallSeconds();
    const int first = m_isWarm ? 1 : 0;
    for (int i = first; i <= round.most && (i <= round.least || wallSeconds() - start < round.seconds); ++i) {
        for (std::size_t argument = 0; argument < m_values.size(); ++argument) {
            if (m_isWarm && !m_isBatch[argument])
                continue;
            if (const auto written = m_loaded->writeArgument(argument, m_values[argument]); !written)
                return written.error();
        }
        if (const auto done = m_loaded->run({.record = m_isWarm, .keep = m_isWarm, .stop = stop}); !done)
            return done.error();
        m_isWarm = true;
    }
    return Done{};
}

ProbeRun Probe::result() const
{
    return {m_scheduled, m_mesh, m_loaded->typicalTimeline()};
}

Result<std::unique_ptr<Probe>> Prober::program(const std::string& text)
{
    auto program = readProgram(text, "calibrate");
    if (!program)
        return program.error();
    return load(*std::move(program), false);
}

Result<std::unique_ptr<Probe>> Prober::training(const std::string& study)
{
    auto program = trainingStep(study);
    if (!program)
        return program.error();
    return load(*std::move(program), true);
}

Result<std::unique_ptr<Probe>> Prober::load(Program program, bool isTraining)
{
    auto partitioned = propagateAndPartition(std::move(program));
    if (!partitioned)
        return partitioned.error();
    const DeviceStage& stage = partitioned->device.stages.front();
    const auto on = devices(stage.mesh().deviceCount());
    if (!on)
        return on.error();
    auto probe = std::make_unique<Probe>(schedule(stage.functions.front(), SchedulePolicy::Host), stage.mesh(),
        partitioned->propagated.functions.front(), isTraining);
    auto loaded = LoadedFunction::load(probe->m_scheduled, stage.meshes, **on);
    if (!loaded)
        return loaded.error();
    probe->m_loaded = *std::move(loaded);
    return probe;
}

namespace {

/// What a device does for the instructions of one name, in all their occurrences.
struct Named {
    HostSample sample;
    double times = 0.0;
};

} // namespace

std::vector<HostSample> samplesOf(const ProbeRun& run, const HostProfile& profile)
{
    const Function& function = run.scheduled.device.function;
    std::vector<HostWork> works;
    std::map<std::string, Named> byName;
    const auto nameOf = [&](const HostWork& work) { return instructionLabel(function, *work.instruction); };
    forEachWork(run.scheduled, run.mesh, profile, [&](const HostWork& work) {
        works.push_back(work);
        if (work.isWait)
            return;
        Named& named = byName[nameOf(work)];
        std::ranges::transform(named.sample.amounts, work.amounts, named.sample.amounts.begin(), std::plus{});
        named.times += 1.0;
    });
    for (const Slice& slice : run.typical.slices()) {
        if (slice.category == SliceCategory::Wait)
            continue;
        if (const auto named = byName.find(run.typical.text(slice.name)); named != byName.end())
            named->second.sample.seconds += slice.durationSeconds / static_cast<double>(run.mesh.deviceCount());
    }
    const double total = run.typical.endSeconds();
    std::vector<HostSample> samples;
    for (const auto& [name, named] : byName) {
        if (named.sample.seconds <= 0.0)
            continue;
        samples.push_back(named.sample);
        samples.back().weight = std::sqrt(named.sample.seconds / total);
    }
    // What is left when every device takes the same time for everything is waiting for the slowest.
    DeviceClock clock;
    for (const HostWork& work : works) {
        const auto named = work.isWait ? byName.end() : byName.find(nameOf(work));
        clock.add(work, named == byName.end() ? 0.0 : named->second.sample.seconds / named->second.times);
    }
    if (clock.meetings() > 0.0) {
        HostSample waiting;
        waiting.amounts[static_cast<std::size_t>(HostCost::WaitShare)] = clock.computing();
        waiting.amounts[static_cast<std::size_t>(HostCost::WaitMeeting)] = clock.meetings();
        waiting.seconds = std::max(1e-3 * total, total - clock.seconds());
        waiting.weight = waiting.seconds * waiting.seconds / (total * total); // its error is of the step
        samples.push_back(waiting);
    }
    return samples;
}

} // namespace meshwright::sim
