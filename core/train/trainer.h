// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/training.h"
#include "core/partition/partition.h"
#include "core/schedule/schedule.h"
#include "core/support/result.h"
#include "core/timeline/timeline.h"
#include "core/train/dataset.h"
#include "core/train/verify.h"

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace meshwright {

/// A stretch of training under one layout.
struct TrainingPhase {
    std::int64_t steps = 1;
    Program program; ///< of `buildMlpTraining`, with the study's shardings
    ScheduledProgram scheduled; ///< the same, on shards
};

struct TrainerOptions {
    std::uint64_t seed = 0; ///< fixes the order of the rows
    std::vector<RandomKey> initKeys; ///< one for each argument of "init"
    bool verify = false;
    bool record = false; ///< keep the timelines of the last step
    int permits = 0; ///< devices that compute at once; 0: one for each core
};

struct TrainingProgress {
    std::int64_t step = 0; ///< steps done
    std::int64_t steps = 0; ///< in all
    double loss = 0.0; ///< of the last step's batch, before its update
    double accuracy = 0.0; ///< the same
    double samplesPerSecond = 0.0; ///< since training began
};

struct Spread {
    double median = 0.0;
    double min = 0.0;
    double max = 0.0;
};

/// Collectives of a step as the devices counted them.
struct CountedCollective {
    CollectiveUse use; ///< as predicted
    std::int64_t calls = 0; ///< counted over all steps
    std::int64_t bytesPerDevice = 0; ///< counted payload of one device over all steps
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
    std::vector<double> losses; ///< steps + 1: of each step's batch before its update, then of the last batch after it
    std::vector<double> accuracies; ///< of each step's batch
    Spread stepSeconds; ///< measured
    double samplesPerSecond = 0.0; ///< measured
    std::int64_t devices = 0;
    std::int64_t peakBytesPerDevice = 0;
    std::vector<PhaseResult> phases;
    std::optional<double> heldOutAccuracy;
    std::int64_t heldOutExamples = 0;
    std::optional<Verification> verification;
    std::vector<HostArray> parameters; ///< after training, in the order of the program's arguments
    Timeline wall{Clock::Wall}; ///< of the last recorded step; empty unless asked for
    Timeline virtualTime{Clock::Virtual};
    bool interrupted = false;
};

/// Trains phase after phase: initialises on the devices of the first, takes batches from `data` in an order that the seed fixes, carries
/// parameters and optimiser states from phase to phase. Stops early, with what it has, when `stop` is asked for.
/// Verification checks the first and the last step of every phase, and two between them.
///
/// Problems: those of the data set, `BatchPlan` and the runtime; MW1620 the loss is not finite.
Result<TrainingResult> train(const std::vector<TrainingPhase>& phases, const Dataset& data, const TrainerOptions& options,
    const std::function<void(const TrainingProgress&)>& progress, std::stop_token stop);

} // namespace meshwright
