// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/parallel_for.h"
#include "sim/search/transformer_space.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <stop_token>
#include <vector>

namespace meshwright::sim {

/// A candidate and what the cost model says of it.
struct Estimated {
    std::size_t index = 0; ///< into TransformerSpace::candidates
    double seconds = 0.0;
    double bytes = 0.0;
};

inline constexpr std::uint32_t kMostKinds = 160;
/// `kindOf` as a number, below `kMostKinds`.
std::uint32_t kindKey(const Candidate& candidate);

/// Looks for the best candidates of one space, estimating none twice. Rounds have fixed sizes: what is looked at does not depend on threads.
class PlanExplorer {
public:
    using Clock = std::chrono::steady_clock;
    using Filter = std::function<bool(const Candidate&)>;

    struct Limits {
        unsigned threads = 0;
        std::stop_token stop = {};
        std::function<void(std::size_t looked, double best, double bound)> progress = {};
    };
    PlanExplorer(const TransformerSpace& space, Limits limits);

    /// Finds the best plan of each of the `top` quickest meshes, exactly unless it is stopped; the quickest first.
    std::vector<Estimated> bestMeshes(std::size_t top);

    /// After `bestMeshes`: no plan that fits has less.
    double lowerBoundSeconds() const { return m_lowerBound; }
    bool complete() const { return m_complete; }

    /// Where to look.
    struct Among {
        const std::vector<std::size_t>* indices
            = nullptr; ///< ascending, so that the lowest bounds come first; null: all candidates
        double belowSeconds = std::numeric_limits<double>::infinity(); ///< only what is quicker
        std::size_t most = kMostLooked; ///< that pass filter and bounds
    };

    /// The quickest of those that pass the filter and are expected to take no more bytes (`learnBytes`); nothing when none does.
    std::optional<Estimated> best(const Filter& filter, double capacityBytes, const Among& among);
    std::optional<Estimated> best(const Filter& filter, double capacityBytes) { return best(filter, capacityBytes, Among()); }

    /// The one that needs the least memory by its estimate, likewise.
    std::optional<Estimated> smallest(const Filter& filter, std::size_t most = kMostLooked);

    /// What a simulation says of the memory of an estimated candidate. From now on a candidate is expected to need a share of its estimate: the least that
    /// one of its kind needed, with chunks or without, or one of its recomputation where that is more. All of it where none of either was simulated; no
    /// share is above 1.
    void learnBytes(std::size_t index, double simulatedBytes);
    double expectedBytes(std::size_t index) const { return byteShare(m_space.candidates()[index]) * m_bytes[index]; }
    double leastBytes(const Candidate& candidate) const { return byteShare(candidate) * candidate.bytes; } ///< expected
    /// By what it is expected to need, give or take a tenth; true where it was stopped before it knew.
    bool mayFit(std::size_t index);

    StepEstimate details(std::size_t index);

    const TransformerSpace& space() const { return m_space; }
    double capacityBytes() const { return m_models.front().cluster().capacityBytes(); }
    const Cluster& cluster() const { return m_models.front().cluster(); }
    std::size_t estimated() const { return m_count; }
    std::size_t tooLarge() const; ///< candidates whose bound of memory rules them out
    std::optional<Clock::time_point> firstFit() const { return m_firstFit; }

    static constexpr std::size_t kMostLooked = 4000;

private:
    bool stopped() const;
    bool isEstimated(std::size_t index) const { return m_seconds[index] >= 0.0; } ///< false: not looked at, or cut short
    void estimate(const std::vector<std::size_t>& indices);
    double byteShare(const Candidate& candidate) const;

    const TransformerSpace& m_space;
    Limits m_limits;
    unsigned m_workers;
    std::vector<StepModel> m_models;
    std::vector<TrainingPlan> m_plans;
    std::vector<double> m_seconds; ///< of each candidate; below 0: not estimated
    std::vector<double> m_bytes;
    std::array<double, 2 * kMostKinds> m_kindShares = {}; ///< see `learnBytes`; 0: not known
    std::vector<double> m_recomputeShares; ///< likewise
    std::map<std::size_t, StepEstimate> m_details; ///< of the candidates that were asked for
    std::size_t m_count = 0;
    double m_lowerBound = 0.0;
    bool m_complete = true;
    std::optional<Clock::time_point> m_firstFit;
};

} // namespace meshwright::sim
