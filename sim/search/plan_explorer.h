// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/parallel_for.h"
#include "sim/search/transformer_space.h"

#include <chrono>
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

    /// The quickest of those that pass the filter and take no more bytes; nothing when none does.
    std::optional<Estimated> best(const Filter& filter, double capacityBytes, const Among& among);
    std::optional<Estimated> best(const Filter& filter, double capacityBytes) { return best(filter, capacityBytes, Among()); }

    /// The one that needs the least memory, likewise.
    std::optional<Estimated> smallest(const Filter& filter, std::size_t most = kMostLooked);

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

    const TransformerSpace& m_space;
    Limits m_limits;
    unsigned m_workers;
    std::vector<StepModel> m_models;
    std::vector<TrainingPlan> m_plans;
    std::vector<double> m_seconds; ///< of each candidate; below 0: not estimated
    std::vector<double> m_bytes;
    std::map<std::size_t, StepEstimate> m_details; ///< of the candidates that were asked for
    std::size_t m_count = 0;
    double m_lowerBound = 0.0;
    bool m_complete = true;
    std::optional<Clock::time_point> m_firstFit;
};

} // namespace meshwright::sim
