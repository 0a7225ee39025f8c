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

/// A program that has been loaded, to be run in several rounds.
class Probe {
public:
    Probe(ScheduledFunction scheduled, Mesh mesh, const Function& whole, bool isTraining);

    /// How often a round runs it: at least `least` times, then until `most` runs or `seconds` are over.
    struct Round {
        int least = 5;
        int most = 5;
        double seconds = 0.0;
    };

    /// Of a training a batch is written before each run. The very first run is not measured: it touches the memory.
    /// Problems: those of the runtime.
    Result<Done> run(const Round& round, const std::stop_token& stop);

    ProbeRun result() const;

private:
    friend class Prober;
    ScheduledFunction m_scheduled;
    Mesh m_mesh;
    std::vector<HostArray> m_values; ///< of the arguments
    std::vector<bool> m_isBatch; ///< likewise
    bool m_isWarm = false;
    std::unique_ptr<LoadedFunction> m_loaded;
};

/// Loads small programs as trainings are loaded: on virtual devices that share the permits.
class Prober {
public:
    explicit Prober(int permits)
        : m_permits(permits)
    {
    }

    /// `main` of a StableHLO program, every argument one half. Problems: those of the reader and the runtime.
    Result<std::unique_ptr<Probe>> program(const std::string& text);

    /// The training step of a study, parameters small. Problems: those of the study and the runtime.
    Result<std::unique_ptr<Probe>> training(const std::string& study);

private:
    Result<std::unique_ptr<Probe>> load(Program program, bool isTraining);
    Result<VirtualDevices*> devices(std::int64_t count);

    int m_permits;
    std::map<std::int64_t, std::unique_ptr<VirtualDevices>> m_devices; ///< by their number, made once
};

/// What each instruction of a run did and took, together by name; those that take more of the run count more. The waiting is the last sample,
/// if there was any, with the amounts of WaitShare and WaitMeeting.
std::vector<HostSample> samplesOf(const ProbeRun& run, const HostProfile& profile);

} // namespace meshwright::sim
