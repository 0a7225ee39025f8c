// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/runtime/executor.h"
#include "sim/calibrate/host_fit.h"

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace meshwright::sim {

/// What one program took on virtual devices, over several runs.
struct ProbeRun {
    ScheduledFunction scheduled;
    Mesh mesh;
    Timeline typical{Clock::Virtual}; ///< see LoadedFunction::typicalTimeline

    /// CPU seconds of one device, the mean over the devices: of computing, or of collectives.
    double computeSeconds() const;
    double collectiveSeconds() const;
};

/// Runs small programs as trainings run: on virtual devices that share the permits, through the executor, recorded.
class Prober {
public:
    Prober(int permits, std::stop_token stop)
        : m_permits(permits)
        , m_stop(std::move(stop))
    {
    }

    /// `main` of a StableHLO program, every argument one half. The first run is left out, it touches the memory.
    /// Problems: those of the reader and the runtime.
    Result<ProbeRun> program(const std::string& text, int runs);

    /// The training step of a study: parameters small, a batch written before each step as in a training. It ends after `runs` steps, or
    /// after `seconds` and five. Problems: those of the study and the runtime.
    Result<ProbeRun> training(const std::string& study, int runs, double seconds);

private:
    Result<ProbeRun> run(Program program, double value, int runs, double seconds);
    Result<VirtualDevices*> devices(std::int64_t count);

    int m_permits;
    std::stop_token m_stop;
    std::map<std::int64_t, std::unique_ptr<VirtualDevices>> m_devices; ///< by their number, made once
};

/// What each instruction of a run did and took, together by name; those that take more of the run count more. The waiting is the last sample,
/// if there was any, with the amounts of WaitShare and WaitMeeting.
std::vector<HostSample> samplesOf(const ProbeRun& run, const HostProfile& profile);

} // namespace meshwright::sim
