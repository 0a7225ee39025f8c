// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/search/search.h"
#include "sim/search/transformer_space.h"

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace meshwright::sim {

/// Microbatches of a step.
double microbatchesOf(const Candidate& candidate, std::int64_t globalBatch);

/// What a device of a layout does in one microbatch: in all layers, or in those of one stage of a pipeline.
struct Pieces {
    std::int32_t stages = 1; ///< 1: all layers
    std::int32_t chunks = 1; ///< of a stage
    std::int32_t tp = 1;
    std::int32_t cp = 1;
    std::int32_t ep = 1;
    std::int32_t microbatch = 1;
    std::uint8_t recompute = 0; ///< index into TransformerSpace::recomputations, whose first keeps most
    std::int64_t lossChunks = 1;
    bool sequenceParallel = false;
    bool ulysses = false;
    std::uint8_t zero
        = 0; ///< 3: all states are split among all devices; 2: gradients and the optimizer's; 0: a device has all of its pieces
    bool waits = false; ///< what computing waits for is asked for, too

    auto operator<=>(const Pieces&) const = default;

    /// The share of this that `finer` pieces compute at least: where they are the same cut further, as kernels lose by it and never win, and with the same
    /// values computed again, or with none here, and the loss in as many chunks, or whole here. Nothing is known of experts, as more of their ranks mean fewer
    /// experts on each; of what each tensor rank does whole here and splits there; nor of sequences that are split in another way. 0: nothing is known.
    double shareOf(const Pieces& finer) const;
};

/// What floors, which are simulated, say of candidates, which are not.
class StepBounds {
public:
    /// The space must outlive it.
    explicit StepBounds(const TransformerSpace& space);

    /// The pieces of a candidate with its pipeline, if any.
    Pieces piecesOf(const Candidate& candidate) const;

    /// Pieces whose floors say something of a candidate: coarse ones first, which say something of many others too, its own last.
    std::vector<Pieces> piecesFor(const Candidate& candidate) const;

    /// The layout of such pieces whose floor is simulated.
    FoundPlan layoutOf(const Pieces& pieces) const;

    /// The fewest microbatches of a step with such pieces, as FloorSimulator takes them.
    std::optional<std::int64_t> fewestMicrobatches(const Pieces& pieces) const;

    /// No simulated step of a candidate takes less, in seconds, by the floor of these pieces; 0: it says nothing of it.
    ///
    /// Computing is cut as `shareOf` says. What is waited for collectives is a part of what they take. In finer pieces they take as much longer as their data, and an all-gather of
    /// one size where they lie on the machine, and less hides them; where they are shorter, by so much less is waited at most. Programs whose
    /// states are split in other ways move activations in other ways: floors of the one say nothing of the other, but where there are no activations to move.
    /// Of pipelines what is waited for counts by the floor of the same tasks only, as the next task may hide it; what is sent between stages is left out.
    double leastSeconds(const Candidate& candidate, const Pieces& pieces, const StepFloor& floor) const;

    /// Likewise where a microbatch takes so many seconds through all layers, as each stage does its microbatches one after the other.
    ///
    /// Where stage s begins when the first chunks of the stages before it have done the first microbatch, and ends before they do their last one
    /// backward, it has m t_s and the t_j / v of those before, of m microbatches and v chunks each. The t_s that add up to F and make the longest of these sums
    /// least leave F / (v (1 - (1 - 1/(m v))^p)), whichever layers the stages have; where the first chunk of all is a short one, F / (1/m + v (1 - (1 - 1/(m v))^(p-1))).
    /// Split backward passes fill that time: m F / p.
    double leastSeconds(const Candidate& candidate, double microbatchSeconds) const;

private:
    /// Seconds of all-gathers of some sizes over axes of a mesh where they lie on the machine; 0: there are none, or it is not known.
    struct Links {
        using Seconds = std::array<double, 3>;
        Seconds tensor = {};
        Seconds context = {};
        Seconds states = {}; ///< over fsdp and context
    };
    Candidate candidateOf(const Pieces& pieces) const;
    const Links& linksOf(const Candidate& candidate) const;

    const TransformerSpace& m_space;
    std::int32_t m_largestMicrobatch = 1;
    mutable std::map<std::array<std::int32_t, 7>, Links> m_links; ///< by mesh
};

} // namespace meshwright::sim
