// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/network/step_run.h"
#include "sim/simulate/simulation.h"
#include "sim/simulate/step_writer.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace meshwright::sim {

/// A collective, or a move over the host's link, under way on one device.
struct Interval {
    Ticks begin = 0;
    Ticks end = 0;
    std::uint32_t use = 0;
};

/// What one stage runs: its program as it was written.
struct StageWork {
    std::vector<StageLoop> loops;
    const std::vector<KernelWork>* works = nullptr; ///< that notes of computing number
    const std::vector<WholeFunction>* wholes = nullptr; ///< that notes of functions number
    double computeSeconds = 0.0; ///< of one device at full speed, loops as often as they run
    std::int64_t opsWritten = 0; ///< each loop once
    std::vector<std::string> tasks = {}; ///< that notes of computing number
    std::vector<SimulatedMove> moves = {}; ///< that notes of moves number
};

/// Ends a writer's program.
inline StageWork finishedStage(StepWriter& writer)
{
    StageWork stage{writer.finish(), &writer.works(), &writer.wholes()};
    stage.computeSeconds = writer.computeSeconds();
    stage.opsWritten = writer.opsWritten();
    stage.moves = writer.moves();
    return stage;
}

struct TraceOptions {
    bool timeline = false; ///< `Simulation::timeline`
    bool isPipeline = false;
    bool rolls
        = false; ///< a stage begins its next step when its own part of this one is over, and the step is the longest of these parts
    std::optional<std::size_t> momentsOf = {}; ///< the stage that `secondsOfMoment` is of; nothing: the one that is told of
};

/// Runs a written step and tells what it was like for some of its devices.
class TraceBuilder {
public:
    /// `uses` are the collectives that the stages' notes number, `siteOfUse` the sites of each. All must outlive the traceBuilder.
    TraceBuilder(NetworkSites& sites, std::vector<StageWork> stages, std::vector<SimulatedCollective> uses,
        std::vector<std::uint32_t> siteOfUse, const TraceOptions& options);

    /// Problems: those of `NetworkSites::work`.
    Result<Done> run();

    /// When the last computing op that a moment names was over, on a device of the stage `momentsOf`.
    double secondsOfMoment(std::pair<std::uint32_t, std::uint32_t> moment) const
    {
        return moment.first == kNothing ? 0.0 : secondsOf(m_lastEnd[moment.first][moment.second]);
    }

    std::size_t stage() const { return m_stage; } ///< that is told of

    /// After `run`: devices of a stage did not begin a whole function together, so that it is not one op; nothing more is known.
    bool isOutOfStep() const { return m_run.isOutOfStep; }

    Simulation take() { return std::move(m_result); }

private:
    /// How a collective is shown in a timeline, which has the texts.
    struct Shown {
        std::uint32_t row = 0;
        std::uint32_t name = 0;
        std::uint32_t detail = 0;
        std::uint32_t waiting = 0; ///< computing waits for it
        SliceCategory category = SliceCategory::Compute;
    };

    /// A span of a device, and which of its ops it is.
    struct OwnSpan {
        std::uint32_t span = 0; ///< of the run's
        std::uint32_t loop = 0;
        std::uint32_t op = 0;
    };

    /// What a device did, functions in their parts.
    struct Happening {
        Ticks begin = 0;
        Ticks end = 0;
        StepOpNote note;
    };

    /// The device at hand.
    struct Device {
        std::size_t stage = 0;
        std::int64_t machineDevice = 0;
        std::vector<Happening> happenings; ///< in the run's order
        std::vector<std::vector<Ticks>> lastEnd; ///< of loops and ops
        std::map<std::uint32_t, Shown> shown; ///< by use
        Ticks begin = -1; ///< of its first computing; none yet: below 0
    };

    std::vector<std::vector<OwnSpan>> spansByDevice() const;
    std::vector<std::uint32_t> shownDevices(const StepWork& work, const FoldedStep& folded);
    void addDevice(
        const StepWork& work, std::uint32_t device, std::size_t place, const std::vector<OwnSpan>& spans, bool isChosen);
    void addSlice(std::uint32_t row, Ticks begin, Ticks end, std::uint32_t name, std::uint32_t detail, SliceCategory category,
        std::int64_t bytes, std::int32_t collective = kNoCollective);
    void beginDevice(const StepWork& work, std::uint32_t device, std::size_t place, const std::vector<OwnSpan>& spans);
    void addTransfers();
    void countTransfers();
    void expose(std::uint32_t use, double seconds);
    Ticks addComputing(std::uint32_t row, bool isChosen);
    void finishRolling();
    std::uint32_t rowOf(const std::string& name);
    const Shown& shown(std::uint32_t use);
    std::uint32_t waitingText(std::uint32_t use);
    void addCompute(const KernelWork& work, const Happening& done);
    void addLaunch(double seconds);
    void expose(Ticks from, Ticks to);
    void finishCollectives();
    void numberCollectivesOfSlices();
    StepPart boundBy() const;

    NetworkSites& m_sites;
    std::vector<StageWork> m_stages;
    std::vector<std::uint32_t> m_siteOfUse;
    TraceOptions m_options;
    StepRun m_run;
    Simulation m_result;
    std::size_t m_stage = 0;
    Ticks m_longestPart = 0; ///< from a device's first computing to its last
    Ticks m_chosenPart = 0;
    std::vector<std::vector<Ticks>> m_lastEnd; ///< of a device of the stage `momentsOf`: for each loop and op
    Device m_device;
    std::vector<Interval> m_intervals; ///< of the device at hand, by their beginnings
    std::size_t m_nextInterval = 0;
    std::vector<Interval> m_underWay;
    std::map<std::pair<std::int64_t, std::string>, std::uint32_t> m_rows;
    std::array<double, 3> m_secondsBoundBy{};
};

} // namespace meshwright::sim
