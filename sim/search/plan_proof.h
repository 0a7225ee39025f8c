// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/search/plan_trials.h"

#include <cstdint>
#include <vector>

namespace meshwright::sim {

/// The layout that computes least of those that share a candidate's pieces and its stages: all states split among all devices.
Candidate leanest(Candidate candidate, std::int64_t devices);

/// A pipeline without chunks, if it has them, each of whose stages has as many layers; where there is none, the same.
Candidate plainStages(Candidate candidate, std::int64_t layers);

/// Microbatches of a step.
double microbatchesOf(const Candidate& candidate, std::int64_t globalBatch);

/// No simulated step of this candidate takes less, as each stage computes its microbatches one after the other: `floor` is of `leanest` without the
/// pipeline, in seconds. Nor less than all microbatches through the longest stage, m times the floor of `leanest` of its `plainStages`.
///
/// Without a pipeline: m F + U for m microbatches. Where stage s begins when the stages before it have done the first microbatch, and ends before they do
/// their last one backward, it has m t_s and the t_j of those before, and the t_s that add up to F and make the longest of these sums least
/// leave F / (1 - (1 - 1/m)^p), whichever layers the stages have. Chunks and split backward passes fill that time: m F / p.
double leastSeconds(const Candidate& candidate, const ComputeFloor& floor, std::int64_t globalBatch);

/// What was shown of the plans of some spaces.
struct PlanProof {
    std::vector<FoundPlan> simulated; ///< plans
    double lowerBoundSeconds = 0.0; ///< no plan has a shorter simulated step, of those whose estimate of memory leaves room
    std::int64_t floors = 0; ///< layouts whose computing was simulated
    bool complete = false; ///< no plan is quicker by more than `options.gap`, or there is none; else time was over
};

/// Without `options.gap` a bound is made of the computing of a few layouts, and no plan is simulated. Else simulates plans until none that is left can be
/// quicker than the best by more than that share: half of each round those whose estimate,
/// corrected by how far those of their kind were off, is the shortest, half those of the least bound.
///
/// Pruned are plans whose `leastSeconds` is not less, by the floor of their own pieces or of coarser ones, which compute no more for a token; and those
/// without a pipeline whose leanest layout has no room for one microbatch.
/// `tried`: plans that were simulated before, the quickest first; its `mfu` says what products alone take at the chip's peak, a bound before there is any other.
/// Precondition: options.simulate and options.floor; the first of `tried` fits and was simulated.
PlanProof provedPlans(const std::vector<TrialField>& fields, const std::vector<FoundPlan>& tried, const SearchOptions& options);

} // namespace meshwright::sim
