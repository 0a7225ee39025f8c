// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/plan_floors.h"

#include "core/study/study.h"
#include "core/support/checked.h"

#include <algorithm>
#include <cmath>

namespace meshwright::sim {

double Pieces::shareOf(const Pieces& finer) const
{
    const bool isCutFurther = finer.stages == stages && finer.chunks == chunks && finer.tp % tp == 0 && finer.cp % cp == 0
        && microbatch % finer.microbatch == 0 && finer.ep == ep;
    const bool isSame = *this == finer;
    const bool splitsMore = (tp > 1 && !sequenceParallel && finer.sequenceParallel) || (cp > 1 && ulysses != finer.ulysses);
    if (!isSame
        && (!isCutFurther || splitsMore || (recompute != 0 && recompute != finer.recompute)
            || (lossChunks != 1 && lossChunks != finer.lossChunks) || ulysses || (sequenceParallel && !finer.sequenceParallel)))
        return 0.0;
    return asDouble(finer.microbatch) / microbatch * tp / finer.tp * cp / finer.cp;
}

double Pieces::shareOfPass(const Pieces& finer) const
{
    const bool isAlike = finer.stages == stages && finer.chunks == chunks && finer.ep == ep
        && (tp == 1 || (finer.tp == tp && finer.sequenceParallel == sequenceParallel))
        && (cp == 1 || (finer.cp == cp && finer.ulysses == ulysses)) && microbatch % finer.microbatch == 0
        && (recompute == 0 || recompute == finer.recompute) && (lossChunks == 1 || lossChunks == finer.lossChunks);
    return isAlike ? asDouble(finer.microbatch) / microbatch * tp / finer.tp * cp / finer.cp : 0.0;
}

std::array<std::int32_t, 3> dataOf(const Candidate& candidate)
{
    return {candidate.dp, candidate.fsdp, std::int32_t{candidate.zero}};
}

Floor::Key Floor::key() const
{
    return {of, {layout, lossChunks}, of == FloorOf::PassWithData ? dataOf(layout) : std::array<std::int32_t, 3>{}};
}

std::vector<Floor> floorsFor(const Candidate& candidate, const FloorsWanted& wanted)
{
    using enum FloorOf;
    Candidate own = candidate;
    own.pp = own.chunks = 1;
    Candidate ownOfLargest = own;
    ownOfLargest.microbatch = wanted.largestMicrobatch;
    Candidate nothingAgain = ownOfLargest;
    nothingAgain.recompute = 0;
    Candidate whole = own;
    whole.tp = 1;
    whole.cp = 1;
    whole.sequenceParallel = false;
    whole.ulysses = false;
    Candidate largest = whole;
    largest.microbatch = wanted.largestMicrobatch;
    Candidate nothingOfLargest = largest;
    nothingOfLargest.recompute = 0;
    const Candidate stage = plainStages(candidate, wanted.modelLayers);
    std::vector<Floor> floors;
    const auto add = [&](FloorOf of, const Candidate& layout, std::int64_t chunksOfLoss, bool isPiped = false) {
        Floor& floor = floors.emplace_back(Floor{of, layout, chunksOfLoss});
        if (isPiped) {
            floor.layout.pp = stage.pp;
            floor.layout.chunks = stage.chunks;
        }
    };
    const auto addComputing = [&](const Candidate& layout, std::int64_t chunksOfLoss) {
        add(Computing, layout, chunksOfLoss);
        if (stage.chunks == 1) // else it takes long to simulate
            add(Computing, layout, chunksOfLoss, true);
    };
    const auto addPass = [&](const Candidate& layout, std::int64_t chunksOfLoss) {
        if (wanted.passes && std::max({layout.tp, layout.cp, layout.ep}) > 1)
            add(Pass, layout, chunksOfLoss);
    };
    const auto addPasses = [&](const Candidate& layout) {
        Candidate inParts = layout;
        inParts.tp = 1;
        inParts.sequenceParallel = false;
        Candidate inHeads = layout;
        inHeads.cp = 1;
        inHeads.ulysses = false;
        for (const Candidate& one : {inHeads, inParts, layout})
            addPass(one, 1);
    };
    add(Computing, nothingOfLargest, 1);
    addPasses(nothingAgain);
    addComputing(largest, 1);
    addPasses(ownOfLargest);
    addComputing(whole, 1);
    addComputing(own, wanted.lossChunks);
    addPass(own, wanted.lossChunks);
    if (wanted.passes && candidate.pp > 1 && wanted.isRepeated) // without a pipeline simulating the candidate is quicker
        add(PassWithData, own, wanted.lossChunks);
    return floors;
}

Candidate leanest(Candidate candidate, std::int64_t devices)
{
    const auto ranks = static_cast<std::int32_t>(devices / candidate.tp / candidate.cp / candidate.pp);
    candidate.schedule = candidate.chunks > 1 ? PipelineOrder::Interleaved : PipelineOrder::OneForwardOneBackward;
    candidate.dp = ranks;
    candidate.fsdp = ranks;
    candidate.zero = ranks * candidate.cp > 1 ? 3 : 0;
    return candidate;
}

Candidate alone(Candidate candidate)
{
    candidate.dp = candidate.ep;
    candidate.fsdp = 1;
    candidate.zero = 0;
    return candidate;
}

Candidate plainStages(Candidate candidate, std::int64_t layers)
{
    if (layers % (std::int64_t{candidate.pp} * candidate.chunks) == 0)
        candidate.chunks = 1;
    return candidate;
}

double microbatchesOf(const Candidate& candidate, std::int64_t globalBatch)
{
    return asDouble(globalBatch) / candidate.dp / candidate.microbatch;
}

namespace {

/// By the stage that computes longest.
double leastOfStages(const Candidate& candidate, const MicrobatchFloor& floor, double microbatches)
{
    const double waits = std::max(0.0, floor.passSeconds - floor.seconds);
    const double others = std::max(0.0, floor.seconds - floor.stageSeconds) + waits;
    const double chunk = floor.isLastLongest && !splitsBackward(candidate.schedule) ? 1.0 / candidate.chunks : 0.0;
    const double otherStages = microbatches / (candidate.pp - 1);
    const double longest = microbatches * floor.stageSeconds + others * chunk;
    // What the longest stage waits itself makes it longer, and the others shorter.
    const double waited = std::clamp((otherStages * others - longest) / (microbatches - chunk + otherStages), 0.0, waits);
    return longest + (microbatches - chunk) * waited;
}

} // namespace

double leastSeconds(const Candidate& candidate, const MicrobatchFloor& known, std::int64_t globalBatch, std::int64_t layers)
{
    constexpr double kOfPassesInPieces = 0.85;
    MicrobatchFloor floor = known;
    if (candidate.pp > 1)
        floor.passSeconds *= kOfPassesInPieces;
    const double microbatches = microbatchesOf(candidate, globalBatch);
    const double all = std::max(floor.seconds, floor.passSeconds);
    const double stages = candidate.pp;
    const double chunks = candidate.chunks;
    if (candidate.pp == 1) // one microbatch alone adds up no gradients, which takes no longer than their update
        return microbatches * all + (microbatches > 1.0 ? floor.updateSeconds : 0.0);
    const double ofStages = floor.stageSeconds > 0.0 ? leastOfStages(candidate, floor, microbatches) : 0.0;
    if (splitsBackward(candidate.schedule))
        return std::max(ofStages, microbatches * all / stages);
    if (candidate.chunks == 1)
        return std::max(ofStages, all / (1.0 - std::pow(1.0 - 1.0 / microbatches, stages)));
    if (layers % (std::int64_t{candidate.pp} * candidate.chunks) != 0)
        return std::max(ofStages, microbatches * all / stages);
    const double lead = (stages - 1.0) / (microbatches - 1.0);
    return std::max(ofStages, all * (microbatches * chunks + lead * microbatches) / (stages * chunks + lead));
}

} // namespace meshwright::sim
