// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// One collective of a measured training.
struct MeasuredCollective {
    std::string op; ///< "all_reduce"
    std::string axes;
    std::string phase;
    std::string value; ///< that it moves
    std::string mesh; ///< of the phase that it belongs to
    std::int64_t count = 0; ///< predicted: calls in a step
    std::int64_t payloadBytes = 0; ///< predicted, of one call
    std::int64_t countedCalls = 0; ///< over all steps
    std::int64_t countedBytes = 0;
};

struct MeasuredPhase {
    std::string mesh;
    std::int64_t steps = 0;
    std::int64_t arenaBytes = 0;
    std::int64_t movedBytes = 0;
};

struct MeasuredTensor {
    std::string name;
    double error = 0.0;
    double unshardedError = 0.0;
    double tolerance = 0.0;
    double scale = 0.0;
    bool passed = true;
};

struct MeasuredVerification {
    bool passed = true;
    double maxAbsError = 0.0;
    double maxRelError = 0.0;
    std::vector<std::int64_t> checkedSteps;
    std::vector<MeasuredTensor> tensors;
    bool provesAnything = true; ///< some tensor is finite and more than rounding
};

/// What `meshwright train` wrote, as a report needs it. A number that was not finite is a quiet NaN.
struct MeasuredTraining {
    std::string version; ///< of the program that trained
    std::vector<double> losses; ///< steps + 1, never empty
    std::vector<double> accuracies;
    std::optional<double> heldOutAccuracy;
    std::int64_t heldOutExamples = 0;
    double stepSecondsMedian = 0.0;
    double stepSecondsMin = 0.0;
    double stepSecondsMax = 0.0;
    double samplesPerSecond = 0.0;
    std::int64_t devices = 0;
    std::int64_t stepArenaBytes = 0; ///< planned: what a device needs for a step, at most of all phases
    bool interrupted = false;
    std::vector<MeasuredPhase> phases;
    std::vector<MeasuredCollective> collectives;
    std::optional<MeasuredVerification> verification;
    std::string json; ///< the text, spaces and line ends made uniform

    /// That were done: each has a loss, and after the last one of a whole run there is one more.
    std::int64_t steps() const { return static_cast<std::int64_t>(losses.size()) - (interrupted ? 0 : 1); }
};

/// Reads `meshwright.training/1`; `file` is what problems name.
/// Problems: MW1825 the text is not a training result, MW1826 a part of it is missing or has the wrong form; each with its path; MW1824.
Result<MeasuredTraining> readTrainingResult(std::string_view text, const std::string& file);

} // namespace meshwright::sim
