// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/sweep/sweep_plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwright::sim {

enum class SweepState : std::uint8_t {
    Fits,
    TooLarge, ///< simulated, but the peak is above what a device has for programs
    Refused, ///< the study cannot be built or simulated so: `problem` says why
};
const char* sweepStateName(SweepState state); ///< "fits", "does not fit", "refused"

/// What one point gave.
struct SweepOutcome {
    SweepState state = SweepState::Refused;
    // All but the last three are of points that were simulated:
    std::string mesh = {}; ///< "data=8,model=8"
    std::string hardware = {};
    std::int64_t devices = 0;
    std::int64_t batch = 0; ///< examples a step
    std::int64_t units = 1; ///< of an example: see SweepPlan::unitsAt
    double stepSeconds = 0.0;
    double computeSeconds = 0.0;
    double exposedSeconds = 0.0; ///< waiting for collectives
    double bubbleSeconds = 0.0;
    double mfu = 0.0;
    std::int64_t peakBytes = 0; ///< per device
    std::int64_t capacityBytes = 0; ///< of a device
    std::int64_t usableBytes = 0; ///< of them, by programs: the rest is the runtime's
    std::string boundBy = {};
    std::string problem = {}; ///< "MW1104"
    std::string message = {};
    std::string fix = {};

    bool simulated() const { return state != SweepState::Refused; }

    /// Time of one example of the batch, or of one token where sequences differ: what points are compared by. Precondition: simulated.
    double secondsPerUnit() const { return stepSeconds / (static_cast<double>(batch) * static_cast<double>(units)); }

    friend bool operator==(const SweepOutcome&, const SweepOutcome&) = default;
};

struct SweepRow {
    std::int64_t point = 0; ///< of the plan
    std::vector<std::string> values; ///< of each parameter, as tables show them
    SweepOutcome outcome;
    bool onFront = false; ///< no other point that fits is better in time and in memory

    friend bool operator==(const SweepRow&, const SweepRow&) = default;
};

/// A sweep and what its points gave.
struct SweepResult {
    SweepPlan plan;
    std::vector<SweepRow> rows; ///< of the points that are done, in the plan's order
    std::optional<std::size_t>
        best; ///< the row that fits and takes the least time an example (a token where the sweep varies the sequence); of equal ones the first
    bool oneBatch = true; ///< all simulated points have the same batch of as long sequences, so that step times can be compared

    bool complete() const { return static_cast<std::int64_t>(rows.size()) == plan.pointCount(); }
    std::int64_t count(SweepState state) const;

    friend bool operator==(const SweepResult&, const SweepResult&) = default;
};

/// Rows, front and best point from the outcomes of a plan's points; nothing for a point that is not done.
///
/// The front is over the time of one example or token (for one batch: the step time) and the peak of memory; of points that are equal in both all are on it.
/// Precondition: `outcomes` has plan.pointCount() entries.
SweepResult sweepResult(SweepPlan plan, const std::vector<std::optional<SweepOutcome>>& outcomes);

} // namespace meshwright::sim
