// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/network/fidelity.h"
#include "sim/network/step_work.h"

#include <cstdint>
#include <stop_token>
#include <vector>

namespace meshwright::sim {

struct StepRunOptions {
    bool fold = true; ///< equal devices, groups and links as one
    bool jump = true; ///< loops through their steady state
    /// Message: every message of every collective an event, without folding and jumping; each site needs its `messages`. What takes no link
    /// (see `delaySite`) is the closed form.
    Fidelity fidelity = Fidelity::Fluid;
    std::stop_token stop = {}; ///< asked: the step is not played to its end
    std::span<const std::uint32_t> recorded = {}; ///< devices of which it is to be told when each op began and ended
};

/// An op of one iteration of a loop, as it happened.
struct StepSpan {
    std::uint32_t node = 0; ///< see StepRun::nodeOf
    std::uint32_t iteration = 0;
    Ticks begin = 0; ///< a collective: all its devices were ready
    Ticks end = 0;

    friend bool operator==(const StepSpan&, const StepSpan&) = default;
};

struct StepRun {
    Ticks end = 0;
    bool isStopped = false; ///< StepRunOptions::stop was asked
    bool isOutOfStep
        = false; ///< devices of a kind did not begin together what they were to; the step was not played on from there
    bool isTooLong = false; ///< it takes more than kLongestTicks, and was not played to its end
    std::vector<std::uint32_t> classOf; ///< for each device; kNothing: it does nothing
    std::vector<Ticks> endOfClass; ///< when the last op of each class of devices ends
    std::vector<Ticks> computeOfClass; ///< how long each class computes in all
    std::vector<Ticks> endOfSite; ///< when the last collective of each site ends
    std::int64_t classes = 0; ///< of devices
    std::int64_t events = 0; ///< handled one by one
    std::int64_t messages = 0; ///< Fidelity::Message only
    std::int64_t iterationsJumped = 0;

    std::vector<StepSpan> spans; ///< of recorded devices, by their ends; a collective of several of them once
    std::vector<std::vector<std::vector<std::uint32_t>>> nodeOf; ///< for each recorded device, loop and op: its node in `spans`

    Ticks endOf(std::uint32_t device) const { return endOfClass[classOf[device]]; }
};

/// Runs a step: ops in their dependencies, collectives as flows that share links max-min fair with everything else in flight.
///
/// A loop whose state, seen from an iteration, is that of an earlier iteration goes on the same way, so whole periods are left out; the
/// result is that of the unrolled run, to the tick.
/// Preconditions: as StepWork says; no op waits for itself.
StepRun runStep(const StepWork& work, const StepRunOptions& options = {});

/// The same for a step that is already folded (as messages: by `foldStep` without folding).
StepRun runFolded(const StepWork& work, const FoldedStep& folded, const StepRunOptions& options = {});

} // namespace meshwright::sim
