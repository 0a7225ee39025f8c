// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/checkpoint_reader.h"
#include "core/devices/device_engine.h"
#include "core/models/training.h"
#include "core/prove/prove.h"
#include "core/ranks/ranks.h"
#include "core/runtime/faults.h"
#include "core/support/result.h"
#include "core/timeline/timeline.h"
#include "core/train/dataset.h"
#include "core/train/held_out.h"
#include "core/train/training_memory.h"
#include "core/train/training_phase.h"
#include "core/train/verify.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace meshwright {

/// When parameters and optimiser states go to the disk.
struct CheckpointPlan {
    std::filesystem::path folder;
    std::int64_t every = 0; ///< steps between two of them; 0: only after the last step
    std::size_t kept = 0; ///< newest that stay; 0: all
};

struct TrainerOptions {
    std::uint64_t seed = 0; ///< fixes the order of the rows
    std::vector<RandomKey> initKeys; ///< one for each argument of "init"
    bool verify = false;
    bool record
        = false; ///< keep timelines. Recording slows small steps down, so only steps 1, 2, 4, 8 .. and each phase's last are recorded
    bool typical
        = false; ///< record each phase's last steps too, at most half of them, for a typical one. Where these are few, the last step is repeated when all is done, for a second at most, and what comes of that is left aside
    std::function<void()> besides; ///< called now and then between the repeated steps
    bool keepParameters = false; ///< read the parameters back at the end
    int permits = 0; ///< devices that compute at once; 0: one for each core
    EngineKind engine = EngineKind::Auto; ///< what the devices are; the numbers do not depend on it
    std::optional<CheckpointPlan> checkpoints = {};
    std::shared_ptr<CheckpointReader> resumed = {}; ///< goes on from here, to the same bits; null: from the first step
    std::string optimizer = {}; ///< as checkpoints describe it
    std::map<std::string, std::string> settings = {}; ///< see SavedState::settings
    FaultOptions faults = {}; ///< injected ones strike in training steps only
    double stallSeconds = 0.0; ///< how long devices wait for one that does not arrive; 0: for ever
    std::shared_ptr<Ranks> ranks = {}; ///< processes that share the devices, and train together; null: all devices are here
    std::function<double(std::int64_t)> learningRate = {}; ///< of step 0, 1, ..; for the progress
    std::int64_t evaluateEvery
        = 0; ///< steps between two measurements of the accuracy on rows held out; 0: only after the last step
};

struct TrainingProgress {
    std::int64_t step = 0; ///< steps done
    std::int64_t steps = 0; ///< in all
    double loss = 0.0; ///< of the last step's batch, before its update
    double accuracy = 0.0; ///< the same
    double samplesPerSecond = 0.0; ///< since training began or went on
    double learningRate = 0.0; ///< of the last step
    std::optional<double> gradientNorm = {}; ///< of the last step's gradients, before clipping; where the program measures it
    std::optional<double> lossScale = {}; ///< of the last step, where it is dynamic
    bool skipped = false; ///< the last step's gradients were not finite, and a dynamic loss scale left them out
    std::optional<HeldOutMeasure> heldOut = {}; ///< if it was measured after the last step
};

struct Spread {
    double median = 0.0;
    double min = 0.0;
    double max = 0.0;
};

/// What happened in one phase.
struct PhaseResult {
    std::string mesh;
    std::int64_t steps = 0;
    std::vector<CountedCollective> collectives; ///< of "step"
    std::int64_t arenaBytes = 0; ///< of one device while it trains
    std::int64_t movedBytes = 0; ///< that changed devices when this layout took over from the one before
};

struct TrainingResult {
    std::vector<double>
        losses; ///< steps + 1: of each step's batch before its update, then (unless interrupted) of the last one after it
    std::vector<double> accuracies; ///< of each step's batch
    Spread stepSeconds; ///< measured
    double samplesPerSecond = 0.0; ///< measured
    std::int64_t devices = 0;
    EngineKind engine = EngineKind::Threads; ///< what they were
    std::int64_t stepArenaBytes = 0; ///< planned: what a device needs for a step, at most of all phases
    PlannedPeak mostBytes; ///< planned: what a device needs at the most, where one function hands its arrays to the next
    std::int64_t initArenaBytes = 0; ///< of the arena in which the initial values were drawn; 0: a resumed run
    std::vector<PhaseResult> phases;
    std::optional<double> heldOutAccuracy; ///< absent also when interrupted
    std::int64_t heldOutExamples = 0;
    std::vector<HeldOutMeasure> heldOut; ///< as often as it was measured, in order; the last one is heldOutAccuracy
    std::int64_t skippedSteps = 0; ///< of this run, whose gradients a dynamic loss scale left out
    std::optional<Verification> verification;
    std::optional<Proof> proof; ///< of the device programs; from whoever trains
    std::int64_t firstStep = 0; ///< steps that a resumed run found done; losses and accuracies have them too
    std::optional<std::filesystem::path> checkpoint; ///< the last one that was written
    Problems
        warnings; ///< checkpoints that a resumed run passed over, MW1650 that were not written, MW1651 that another training has left
    std::vector<HostArray> parameters; ///< after training, in the order of the program's arguments; empty unless asked for
    Timeline initialisation{
        Clock::Wall}; ///< how the initial values were drawn; empty unless asked for, and of resumed runs and pipelines
    Timeline wall{Clock::Wall}; ///< of the last recorded step; empty unless asked for
    Timeline virtualTime{Clock::Virtual};
    Timeline typicalTime{
        Clock::Virtual}; ///< of the last phase's steps, see LoadedFunction::typicalTimeline; empty unless asked for
    bool interrupted = false;
};

/// Trains phase after phase, step by step: initialises on the devices of the first, takes batches from the data in an order that the seed
/// fixes, carries parameters and optimiser states from phase to phase. Verification checks the first and the last step of every phase, and
/// two between them; it takes no part in the measured times.
///
/// A stop is heeded in the middle of a step too, within a few tenths of a second. What was complete by then is the result; the arrays on the
/// devices are lost.
///
/// Of several processes (`TrainerOptions::ranks`) each makes a trainer of the same phases, data and options, and makes the same calls. All come
/// to the bits of one process; the first one alone verifies, has timelines and writes checkpoints. They stop between two steps, when one of
/// them is asked to.
class Trainer {
public:
    /// `phases` and `data` must outlive the trainer. Preconditions: at least one phase; all on as many devices.
    /// Problems: those of `BatchPlan`, `VirtualDevices::create` and `FaultOptions`; of a resumed run those of `restorePlan`, MW1647 the checkpoint has another
    /// seed or more steps than the training.
    static Result<std::unique_ptr<Trainer>> create(
        const std::vector<TrainingPhase>& phases, const Dataset& data, TrainerOptions options);
    ~Trainer();
    Trainer(const Trainer&) = delete;
    Trainer& operator=(const Trainer&) = delete;

    std::int64_t steps() const; ///< of all phases
    std::int64_t stepsDone() const;

    /// One step; before the first, and where a phase begins, also what it needs. False: stopped before the step was complete, which leaves
    /// nothing to do but `finish`. Precondition: stepsDone() < steps(), and no call before this one failed or was stopped.
    ///
    /// Problems: those of the runtime; MW1620 the loss is not finite (the fix of both names the last complete checkpoint, if there is one);
    /// those of `CheckpointFolder` and `CheckpointReader::read`.
    Result<bool> step(const std::stop_token& stop);

    /// After the last step.
    TrainingProgress progress() const;

    /// Losses, accuracies, verification and memory so far.
    const TrainingResult& result() const;

    /// What was reached. After the last step, unless stopped, also the loss after the last update and the accuracy on held-out rows; else it
    /// is `interrupted`. To be called once, at the end. Problems: those of the runtime.
    Result<TrainingResult> finish(const std::stop_token& stop);

private:
    class Implementation;
    explicit Trainer(std::unique_ptr<Implementation> implementation);
    std::unique_ptr<Implementation> m_implementation;
};

/// All steps of a Trainer, and its result. `progress`, which may be empty, is called after each step.
Result<TrainingResult> train(const std::vector<TrainingPhase>& phases, const Dataset& data, const TrainerOptions& options,
    const std::function<void(const TrainingProgress&)>& progress, const std::stop_token& stop);

} // namespace meshwright
