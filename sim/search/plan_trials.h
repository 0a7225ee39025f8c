// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/search/plan_explorer.h"
#include "sim/search/search.h"

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace meshwright::sim {

/// What a candidate splits, in the field's words: "data", "ZeRO-1", "FSDP", "HSDP" (weights split among some of the data ranks), each with
/// "+ tensor", "+ context", "+ expert", "+ pipeline". Two plans of one kind differ in degrees only.
std::string kindOf(const Candidate& candidate);

/// Candidates of this one's mesh.
PlanExplorer::Filter ofMesh(const Candidate& candidate);

/// One machine's space as trials see it.
struct TrialField {
    PlanExplorer* explorer = nullptr;
    std::vector<Estimated> best; ///< of its quickest meshes by the estimate
    std::function<FoundPlan(const Estimated&)> planOf; ///< without sentences of its time and memory
};

/// The quickest plan of some: of all that pass the filter and fit.
struct PlanQuestion {
    PlanExplorer::Filter filter;
    double share = 1.0; ///< of what a device has for a plan: it fits in so many times as much
    double belowSeconds = std::numeric_limits<double>::infinity(); ///< only what may take less is of interest
};

/// Plans of a search, each simulated once: its estimates say which are worth it, and nothing else.
class PlanTrials {
public:
    /// All must outlive it. `notes` gets counts and what was not simulated. Precondition: options.simulate.
    PlanTrials(const std::vector<TrialField>& fields, const SearchOptions& options, SearchResult& notes);
    ~PlanTrials();

    /// Tries `options.top` plans, and no fewer than six: half of them the quickest of each kind by the estimate, half the quickest of other meshes; then,
    /// of one machine, up to six meshes more, while one is quicker than what was found if its estimate is as wrong as those of its kind were, or right where
    /// none of its kind was tried. One that does not fit is tried again, twice at most, with the quickest of its kind or mesh that the estimate gives
    /// so much less memory as the simulation asks for, or with the one that needs least.
    void tryBest();

    /// Tries of each question the quickest, if estimates are as wrong as those of their kind were. Those that are
    /// simulated soonest come first, and without a deadline only so many as take some seconds; false: some was not tried.
    /// `mostSeconds`: those that are expected to take longer are left out.
    bool ask(const TrialField& field, const std::vector<PlanQuestion>& questions,
        double mostSeconds = std::numeric_limits<double>::infinity());

    /// A plan of one of the spaces that was simulated elsewhere.
    void add(FoundPlan plan);

    /// Of all that were simulated the quickest that answers; null: none.
    const FoundPlan* quickest(const TrialField& field, const PlanQuestion& question) const;
    /// Of all that were simulated and pass, the one that needs the least memory; null: none passes.
    const FoundPlan* smallest(const TrialField& field, const PlanExplorer::Filter& filter) const;

    /// That fit, the quickest of each mesh by its simulated time, then those that could not be simulated by their estimate; where none fits, the one that
    /// needs least.
    std::vector<FoundPlan> plans() const;
    /// `frontOf` those that fit.
    std::vector<FoundPlan> front(double slack) const;

private:
    class Work;
    std::unique_ptr<Work> m_work;
};

/// What made a part of one plan's step grow against another's; empty: not known.
using CauseOf = std::function<std::string(const StepPart& part, const FoundPlan& plan, const FoundPlan& best)>;

/// The quickest plan of each mesh, the quickest first: simulated ones, then estimated ones.
std::vector<FoundPlan> quickestOf(std::vector<FoundPlan> plans);

/// Of plans that fit those that no other beats in step time, memory, chips and price, the quickest first; of those within `slack` times the quickest of
/// their machine.
std::vector<FoundPlan> frontOf(const std::vector<FoundPlan>& fitting, double slack);

/// Says of each simulated plan, in front of its sentences, what it loses against the first one.
void setLosses(std::vector<FoundPlan>& plans, const CauseOf& causeOf);

/// What a device needs, the runtime's share too.
double bytesOf(const FoundPlan& plan);

/// Puts what a simulation says in the place of a plan's estimates.
void takeTrial(FoundPlan& plan, PlanTrial trial);

/// Sentences of a plan's time and memory before those that it has.
void setShares(FoundPlan& plan, double reserveBytes);

/// Why a simulated plan takes longer than another one: the part that grew most, with its cause, and what is won elsewhere where that is most of it.
/// "tensor=16 crosses the host: +38 % exposed all_reduce over tensor".
std::string whySlower(const FoundPlan& plan, const FoundPlan& best, const CauseOf& causeOf);

} // namespace meshwright::sim
