// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/search/transformer_space.h"

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

namespace meshwright::sim {

/// What is computed of one microbatch: in all layers, or by the stage of a pipeline that computes longest.
struct Pieces {
    std::int32_t stages = 1; ///< 1: all layers
    std::int32_t chunks = 1;
    std::int32_t tp = 1;
    std::int32_t cp = 1;
    std::int32_t ep = 1;
    std::int32_t microbatch = 1;
    std::int32_t recompute = 0;
    std::int64_t lossChunks = 1;
    bool sequenceParallel = false;
    bool ulysses = false;

    Pieces(const Candidate& c, std::int64_t chunksOfLoss) ///< by its pipeline, if any
        : stages(c.pp)
        , chunks(c.chunks)
        , tp(c.tp)
        , cp(c.cp)
        , ep(c.ep)
        , microbatch(c.microbatch)
        , recompute(c.recompute)
        , lossChunks(chunksOfLoss)
        , sequenceParallel(c.sequenceParallel)
        , ulysses(c.ulysses)
    {
    }
    auto operator<=>(const Pieces&) const = default;

    /// The share of this that `finer` pieces compute at least: where they are the same cut further, as kernels lose by it and never win, and with the same
    /// values computed again, or with none here, and the loss in as many chunks, or whole here. Experts are not: more of their ranks mean fewer experts on
    /// each; nor is what each tensor rank does whole here and splits there, nor a sequence that is split in another way. 0: nothing is known.
    double shareOf(const Pieces& finer) const;

    /// Of a pass with its collectives likewise: where tensor ranks are as many or none here, and those of the context, as all that is computed and sent is cut
    /// no finer. With kernels and messages of more sequences nothing takes longer for a token.
    double shareOfPass(const Pieces& finer) const;
};

/// What no candidate with its pieces takes less for: computing; a pass with the collectives of all ranks but those of data, or of all.
enum class FloorOf : std::uint8_t { Computing, Pass, PassWithData };

/// How many data ranks there are, over how many weights are split, and the stage of ZeRO.
std::array<std::int32_t, 3> dataOf(const Candidate& candidate);

/// A layout of which a floor is simulated.
struct Floor {
    FloorOf of = FloorOf::Computing;
    Candidate layout = {}; ///< but for computing without its pipeline
    std::int64_t lossChunks = 1;

    struct Key {
        FloorOf of;
        Pieces pieces;
        std::array<std::int32_t, 3> data; ///< zeros where there are none
        auto operator<=>(const Key&) const = default;
    };
    Key key() const;
};

/// What `floorsFor` has to know besides a candidate.
struct FloorsWanted {
    std::int64_t modelLayers = 0;
    std::int32_t largestMicrobatch = 1; ///< of all candidates
    std::int64_t lossChunks = 1; ///< of the candidate
    bool passes = false; ///< too, where there is anything to wait for
    bool isRepeated = false; ///< there are several microbatches
};

/// The floors that say something of a candidate, those that say something of most others first. Losses are whole, which says something of those in chunks too.
std::vector<Floor> floorsFor(const Candidate& candidate, const FloorsWanted& wanted);

/// The layout that computes least of those that share a candidate's pieces and its stages: all states split among all devices.
Candidate leanest(Candidate candidate, std::int64_t devices);

/// The same cut without data ranks, whose states are whole.
Candidate alone(Candidate candidate);

/// A pipeline without chunks, if it has them, each of whose stages has as many layers; where there is none, the same.
Candidate plainStages(Candidate candidate, std::int64_t layers);

/// Microbatches of a step.
double microbatchesOf(const Candidate& candidate, std::int64_t globalBatch);

/// What is known of one microbatch of a candidate, forward and backward: no less than that.
struct MicrobatchFloor {
    double seconds = 0.0; ///< of computing, all layers together
    double passSeconds = 0.0; ///< likewise, with what is waited for collectives meanwhile
    double updateSeconds = 0.0; ///< of the optimizer, without a pipeline
    double stageSeconds = 0.0; ///< of the stage that computes longest; 0: not known
    bool isLastLongest = false; ///< that is the last stage, of stages of as many layers each
};

/// No simulated step of this candidate takes less, as each stage does its microbatches one after the other.
///
/// Without a pipeline: m (F + W) + U for m microbatches, of one F + W; W is what F leaves of the pass, 0 where that is not known. With p stages of v chunks
/// F + W is 0.85 of what is known without one: pieces of few layers are no loops, and begin collectives at other places. Each stage has m t_s and, as it begins when the stages before have done their first chunk of a microbatch and ends before they do their last one
/// backward, the t_j / v of those:
/// - Without chunks the t_s that add up to F + W and make the longest of these sums least leave (F + W) / (1 - (1 - 1/m)^p), whichever layers the stages
///   have.
/// - With chunks of as many layers each, and what the ends do besides where it makes the step shortest, c (m v + (p - 1) m / (m - 1)) with the c that
///   p v c + c (p - 1) / (m - 1) = F + W gives. Other chunks and split backward passes may fill that time: m (F + W) / p.
/// - Where T of the longest stage is known, m (T + w) and, if it is the last, (F - T + W - w) / v besides, with the w of the waits on that stage that makes
///   the longer of this and of the other stages' mean, m (F - T + W - w) / (p - 1), least.
double leastSeconds(const Candidate& candidate, const MicrobatchFloor& floor, std::int64_t globalBatch, std::int64_t layers);

} // namespace meshwright::sim
