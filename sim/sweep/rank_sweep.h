// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ranks/ranks.h"
#include "sim/sweep/run_sweep.h"

#include <memory>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// A sweep whose points several processes find out: the first one has the database, chooses the points and gives the result; the others are
/// asked for outcomes until they are told that there are no more. All of them have the same plan.
class RankSweep {
public:
    /// Together on all ranks; `jobs` are the threads of this one. Problems: as `Ranks::exchange`.
    static Result<RankSweep> start(std::shared_ptr<Ranks> ranks, int jobs);

    /// On the first rank: threads of all ranks together, and an engine for as many of them here, each of which computes itself or waits for
    /// another rank's. What a rank that is lost was asked for is computed here.
    int jobs() const;
    SweepEngine engineOver(SweepEngine own) const;
    Result<Done> end() const; ///< there are no more points

    /// On the others: answers until the end.
    Result<Done> serve(const SweepEngine& engine) const;

private:
    RankSweep(std::shared_ptr<Ranks> ranks, std::vector<int> jobs);

    std::shared_ptr<Ranks> m_ranks;
    std::vector<int> m_jobs; ///< by rank
};

/// An outcome as a line of text, to the last bit, and back. Nothing for another text.
std::string outcomeLine(const SweepOutcome& outcome);
std::optional<SweepOutcome> readOutcomeLine(std::string_view line);

} // namespace meshwright::sim
