// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/search/plan_trials.h"

#include <cstdint>
#include <vector>

namespace meshwright::sim {

/// What was shown of the plans of some spaces.
struct PlanProof {
    std::vector<FoundPlan> simulated; ///< plans
    double lowerBoundSeconds = 0.0; ///< no plan has a shorter simulated step, of those whose estimate of memory leaves room
    std::int64_t floors = 0; ///< pieces whose floors were simulated
    bool complete = false; ///< no plan is quicker by more than `options.gap`, or there is none; else time was over
};

/// Without `options.gap` a bound is made of the floors of a few layouts, and no plan is simulated. Else simulates plans until none that is left can be
/// quicker than the best by more than that share: in rounds, some of them those whose estimate, corrected by how far those of their kind were off, is the
/// shortest (half of a round as long as one finds a quicker plan, then fewer), the others those of the least bound.
///
/// Pruned are plans whose `StepBounds::leastSeconds` is not less, by the floor of their own pieces or of coarser ones; and those whose leanest layout has no
/// room.
/// `tried`: plans that were simulated before, the quickest first; its `mfu` says what products alone take at the chip's peak, a bound before there is any other.
/// Precondition: options.simulate and options.floor; the first of `tried` fits and was simulated.
PlanProof provedPlans(const std::vector<TrialField>& fields, const std::vector<FoundPlan>& tried, const SearchOptions& options);

} // namespace meshwright::sim
