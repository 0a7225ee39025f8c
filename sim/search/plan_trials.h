// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/search/plan_explorer.h"
#include "sim/search/search.h"

#include <functional>
#include <string>
#include <vector>

namespace meshwright::sim {

/// What a candidate splits, in the field's words: "data", "ZeRO-1", "FSDP", "HSDP" (weights split among some of the data ranks), each with
/// "+ tensor", "+ context", "+ expert", "+ pipeline". Two plans of one kind differ in degrees only.
std::string kindOf(const Candidate& candidate);

/// One machine's space as trials see it.
struct TrialField {
    PlanExplorer* explorer = nullptr;
    std::vector<Estimated> best; ///< of its quickest meshes by the estimate
    std::function<FoundPlan(const Estimated&)> planOf; ///< without sentences of its time and memory
};

/// The plans that are told of, after simulation: those that fit by their simulated time, then those that could not be simulated by their estimate; where
/// none fits, the one that needs least. One for each mesh.
///
/// Tried are `options.top` plans, and no fewer than six: half of them the quickest of each kind by the estimate, half the quickest of other meshes; then,
/// of one machine, up to six meshes more, while one is quicker than what was found if its estimate is as wrong as those of its kind were, or right where
/// none of its kind was tried. One that does not fit is tried again, twice at most, with the quickest of its kind or mesh that the estimate gives
/// so much less memory as the simulation asks for, or with the one that needs least. `notes` gets the count and what was not simulated.
/// Precondition: options.simulate, and some field has a best plan.
std::vector<FoundPlan> triedPlans(const std::vector<TrialField>& fields, const SearchOptions& options, SearchResult& notes);

/// The quickest plan of each mesh, the quickest first: simulated ones, then estimated ones.
std::vector<FoundPlan> quickestOf(std::vector<FoundPlan> plans);

/// Says of each simulated plan, in front of its sentences, what it loses against the first one.
void tellLosses(std::vector<FoundPlan>& plans);

/// Puts what a simulation says in the place of a plan's estimates.
void takeTrial(FoundPlan& plan, PlanTrial trial);

/// Sentences of a plan's time and memory before those that it has.
void tellShares(FoundPlan& plan, double reserveBytes);

/// Why a simulated plan takes longer than another one: the part that grew most, and what is won elsewhere where that is most of it.
std::string whySlower(const FoundPlan& plan, const FoundPlan& best);

} // namespace meshwright::sim
