// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/sweep/sweep_database.h"
#include "sim/sweep/sweep_result.h"

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace meshwright::sim {

/// What finds out about points. Both functions are called from several threads at once.
struct SweepEngine {
    /// The hash of all that the outcome of a point depends on. Settings are all of the point's.
    std::function<std::string(const std::vector<std::string>& settings)> keyOf;
    std::function<SweepOutcome(const std::vector<std::string>& settings)> outcomeOf;
};

struct SweepProgress {
    std::int64_t done = 0; ///< points, those that were known before included
    std::int64_t points = 0;
    std::int64_t known = 0; ///< of them, known before
    const SweepOutcome* best = nullptr; ///< of the points that fit so far, the one that takes the least time an example
    std::int64_t bestPoint = 0;
};

struct SweepRun {
    SweepResult result;
    std::int64_t simulated = 0; ///< points that were not known before; points with equal studies count once
    std::int64_t known = 0; ///< points that were
    bool stopped = false; ///< before all were done
};

/// Finds out about all points of a plan, on `jobs` threads (at least 1), and keeps each outcome in the database as soon as it is there.
/// `progress` is called from one thread at a time. After a stop is asked for, points that were begun are finished, no others begun.
/// The result does not depend on the number of threads, nor on what was known before. Precondition: `checkPlan` finds nothing.
///
/// Problems: those of the database.
Result<SweepRun> runSweep(const SweepPlan& plan, const SweepEngine& engine, SweepDatabase& database, int jobs,
    const std::function<void(const SweepProgress&)>& progress, const std::stop_token& stop);

/// The keys of all points, found out on `jobs` threads. After a stop is asked for the rest are empty.
std::vector<std::string> sweepKeys(const SweepPlan& plan, const SweepEngine& engine, int jobs, const std::stop_token& stop);

} // namespace meshwright::sim
