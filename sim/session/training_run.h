// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/train/training_checkpoint.h"
#include "sim/session/engine.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace meshwright::sim {

enum class TrainingState : std::uint8_t {
    Preparing, ///< program, data and initial values are being made
    Running,
    Pausing, ///< asked to pause; the step that is under way is still being done
    Paused,
    Cancelling, ///< asked to end; for a few tenths of a second
    Finished, ///< all steps are done
    Cancelled,
    Failed, ///< see the problems
};

/// Finished, Cancelled or Failed: nothing changes any more.
bool isOver(TrainingState state);

struct TrainingRunOptions {
    bool besideOneDevice = true; ///< train the same study on one device too, step by step, so that the losses can be compared
    bool verify = false; ///< of the sharded run, as in `TrainerOptions`
    FaultOptions faults = {}; ///< of the sharded run, as in `TrainChoices`
    std::optional<CheckpointPlan> checkpoints = {}; ///< of the sharded run
    std::filesystem::path resume
        = {}; ///< a checkpoint, or a folder of them, that both go on from; of any mesh. Empty: from the first step
    int permits = 0; ///< devices that compute at once; 0: one for each core
    std::optional<std::int64_t> memoryBytes = {}; ///< that there are for the devices; nothing: what this computer has free
};

/// What was measured at every step so far; index = step. They only grow.
struct TrainingCurves {
    std::vector<double> loss; ///< of each step's batch before its update; at the end one more: of the last batch after it
    std::vector<double> accuracy;
    std::vector<double>
        oneDeviceLoss; ///< at most a step behind `loss`; NaN at the steps of a checkpoint, which ran on other devices
    std::vector<double> oneDeviceAccuracy;
};

/// How a run stands.
struct TrainingSnapshot {
    TrainingState state = TrainingState::Preparing;
    std::int64_t step = 0; ///< steps done by the sharded run, those of the checkpoint that it went on from included
    std::int64_t firstStep = 0; ///< that were done in that checkpoint
    std::int64_t steps = 0; ///< in all; 0 while preparing
    std::int64_t batch = 0; ///< samples of a step
    std::int64_t devices = 0; ///< 0 while preparing
    std::int64_t stepArenaBytes = 0; ///< planned: the largest arena of a step
    double samplesPerSecond = 0.0; ///< of the sharded run's own steps, whatever happens between them
    double elapsedSeconds = 0.0; ///< since the start, without pauses
    double secondsLeft = 0.0; ///< as the steps so far took; 0 before the first step and after the last
    bool besideOneDevice = false; ///< the run on one device takes part
    Problems problems; ///< of a failed run; warnings of any
    std::vector<LayoutSwitch> layoutSwitches; ///< of the whole run, those to come included
};

/// A study being trained on threads of its own: sharded over its mesh and, beside it, on one device from the same initial values and with the
/// same batches.
///
/// Both take turns: each step of the sharded run is followed by the same step on one device, while the sharded run's devices sleep. So they
/// never compete for cores, and samples/s and step times, which count the sharded run's own steps only, are what they are without the other
/// (a cold cache at the start of a step apart). The run on one device costs elapsed time and memory; it is left out, with warning MW1631,
/// when there is not enough memory for both, and when it fails.
///
/// Thread-safe. All calls return at once, but for `wait` and the destructor.
class TrainingRun {
public:
    /// Starts. Precondition: the study has a model.
    TrainingRun(std::shared_ptr<const Study> study, TrainingRunOptions options);

    /// Cancels, and waits until all threads have ended.
    ~TrainingRun();
    TrainingRun(const TrainingRun&) = delete;
    TrainingRun& operator=(const TrainingRun&) = delete;

    const Study& study() const { return *m_study; }
    const TrainingRunOptions& options() const { return m_options; }

    void pause(); ///< after the step that is under way
    void resume();
    void cancel(); ///< in the middle of a step too; over within half a second

    /// Problems of a failed run: those of `trainStudy`. Warnings: MW1631.
    TrainingSnapshot snapshot() const;

    /// Appends what is not in `curves` yet, which earlier calls filled (or which is empty). Costs what is new.
    void extend(TrainingCurves& curves) const;

    /// The sharded run's result, timelines included, and that on one device. Null until the run is over, and when it failed; the second also
    /// without a run on one device, or when it did not get to the end. A cancelled run's result has the steps that were complete.
    std::shared_ptr<const TrainingResult> result() const;
    std::shared_ptr<const TrainingResult> oneDeviceResult() const;

    /// Until the run is over.
    void wait() const;

private:
    using SteadyClock = std::chrono::steady_clock;
    struct Side;

    void work(const std::stop_token& stop);
    Result<Done> prepare(Side& sharded, Side& oneDevice, Dataset& data, const std::stop_token& stop);
    void prepareOneDevice(Side& side, const Dataset& data, std::optional<std::int64_t> memoryBytes);
    Result<Done> runSteps(Side& sharded, Side& oneDevice, const std::stop_token& stop);
    void stepOnOneDevice(Side& side, const std::stop_token& stop);
    Result<Done> finish(Side& sharded, Side& oneDevice, const std::stop_token& stop);
    void leaveOutOneDevice(Side& side, const Problems& why);
    bool waitWhilePaused(const std::stop_token& stop);
    void end(TrainingState state, Problems problems = {});
    TrainingState stateLocked() const;
    double elapsedLocked() const;

    const std::shared_ptr<const Study> m_study;
    const TrainingRunOptions m_options;

    mutable std::mutex m_mutex; ///< of what follows
    mutable std::condition_variable_any m_changed;
    TrainingSnapshot m_figures; ///< but for state and times
    TrainingCurves m_curves;
    std::shared_ptr<const TrainingResult> m_result;
    std::shared_ptr<const TrainingResult> m_oneDeviceResult;
    std::optional<TrainingState> m_end;
    bool m_prepared = false;
    bool m_pauseWanted = false;
    bool m_cancelWanted = false;
    bool m_waiting = false; ///< paused
    SteadyClock::time_point m_start = SteadyClock::now();
    SteadyClock::time_point m_stoodStill; ///< since when it is paused, or when it ended
    SteadyClock::duration m_paused{};

    std::jthread m_thread; ///< last, so that it ends before what it uses
};

} // namespace meshwright::sim
