// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/search/plan_trials.h"

#include <cstdint>
#include <vector>

namespace meshwright::sim {

/// The highest bound of a candidate's simulated step that its floors give, simulated all. Precondition: options.floor.
double boundOf(const TrialField& field, std::size_t candidate, const SearchOptions& options);

/// What was shown of the plans of some spaces.
struct PlanProof {
    std::vector<FoundPlan> simulated; ///< plans
    double lowerBoundSeconds = 0.0; ///< no plan has a shorter simulated step, of those whose estimate of memory leaves room
    std::int64_t floors = 0; ///< layouts that were simulated for bounds
    bool complete = false; ///< no plan is quicker by more than `options.gap`, or there is none; else time was over
};

/// Without `options.gap` a bound is made of a few floors (plan_floors.h), and no plan is simulated. Else simulates plans until none that is left can be
/// quicker than the best by more than that share: half of each round those whose estimate,
/// corrected by how far those of their kind were off, is the shortest, half those of the least bound.
///
/// Pruned are plans whose `leastSeconds` is not less, by floors of their own pieces or of coarser ones, which take no longer for a token, or whose step
/// cannot be shorter than a simulated one that does less; those that are expected not to fit, that keep no less than one that did not, and those without a
/// pipeline whose leanest layout has no room for two microbatches.
/// `tried`: plans that were simulated before, the quickest first; its `mfu` says what products alone take at the chip's peak, a bound before there is any other.
/// Precondition: options.simulate and options.floor; the first of `tried` fits and was simulated.
PlanProof provedPlans(const std::vector<TrialField>& fields, const std::vector<FoundPlan>& tried, const SearchOptions& options);

} // namespace meshwright::sim
