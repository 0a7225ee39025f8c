// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/catalogue.h"
#include "sim/transformer/step.h"
#include "sim/validate/record.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright::sim {

/// A training step of a record, ready to be predicted.
struct StepCase {
    const Chip* chip = nullptr; ///< never null in a result
    std::string stack;
    ClusterChoice cluster;
    std::vector<TrainingPlan>
        plans; ///< several where the source does not state the microbatch or the chunks: of them the quickest that fits is meant
    std::optional<double> measuredSeconds; ///< nothing: it did not run, or says no time
    std::optional<bool> outOfMemory; ///< nothing: not known
    double flops = 0.0; ///< of the step, attention in full: what a constant utilisation would go by
};

/// What a record says, with what its stack does where it says nothing. Never looks at the record's id, file or model's name.
/// Problems (as texts, not errors of the file): why it cannot be predicted.
Result<StepCase> stepCaseOf(const Record& record, const Catalogue& catalogue, const Calibration& calibration);

/// The network's rate for one device, one way, in bytes per second, that a topology in words names (`4x200 Gb/s per node`, `400 Gb/s per GPU`).
std::optional<double> networkRateOf(const std::string& topology, double devicesPerHost);

/// The slices that a topology in words names (`8x16`, `4x4x8 torus`), sides in their order, each of 1 to 2^20.
std::vector<std::vector<std::int64_t>> sizesIn(const std::string& topology);

/// A recomputation policy as sources word it; nothing where they say nothing.
std::optional<Recomputation> recomputationInWords(const std::string& words);

} // namespace meshwright::sim
