// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/plan_proof.h"

#include "core/study/study.h"
#include "core/support/checked.h"
#include "core/support/parallel_for.h"
#include "sim/search/search_limits.h"
#include "sim/search/transformer_search.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace meshwright::sim {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostFloors = 8; ///< for a bound that nobody asked to be close
constexpr std::size_t kProofRound = 16; ///< simulations: what is looked at does not depend on threads

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
    double shareOf(const Pieces& finer) const
    {
        const bool isCutFurther = finer.stages == stages && finer.chunks == chunks && finer.tp % tp == 0 && finer.cp % cp == 0
            && microbatch % finer.microbatch == 0 && finer.ep == ep;
        const bool isSame = *this == finer;
        const bool splitsMore = (tp > 1 && !sequenceParallel && finer.sequenceParallel) || (cp > 1 && ulysses != finer.ulysses);
        if (!isSame
            && (!isCutFurther || splitsMore || (recompute != 0 && recompute != finer.recompute)
                || (lossChunks != 1 && lossChunks != finer.lossChunks) || ulysses
                || (sequenceParallel && !finer.sequenceParallel)))
            return 0.0;
        return asDouble(finer.microbatch) / microbatch * tp / finer.tp * cp / finer.cp;
    }
};

/// One space, and what is known of it.
class Proof {
public:
    Proof(const TrialField& field, const SearchOptions& options, double productSeconds);

    /// What is to be simulated.
    struct Work {
        std::optional<std::size_t> candidate; ///< none: a floor
        Candidate layout = {};
        std::int64_t lossChunks = 1; ///< of a floor
        FoundPlan plan = {};
        std::optional<PlanTrial> trial = {};
        std::optional<ComputeFloor> floor = {};
        bool isDone = false; ///< or cannot be simulated

        Pieces pieces() const { return {layout, lossChunks}; } ///< of a floor
    };
    std::vector<Work> next(double target); ///< none of it twice; empty: no candidate that is left has a bound below the target
    std::vector<Work> nextFloors(double target); ///< likewise; empty: what bounds the step has no floor that is not known
    void simulate(Work& work) const;
    void take(const Work& work);
    void learn(const FoundPlan& plan); ///< how far the estimate is from the simulated step of such plans
    void leaveOut(std::size_t candidate) { m_bounds[candidate] = kInfinite; } ///< it was simulated
    double lowerBound(double best) const;

private:
    const std::vector<Candidate>& candidates() const { return m_space.candidates(); }
    Pieces piecesOf(const Candidate& candidate) const { return {candidate, m_space.lossChunks(candidate)}; }
    std::optional<Work> floorFor(const Candidate& candidate) const; ///< without its plan
    Work planned(Work floor) const;
    double leastOf(const Candidate& candidate, const Pieces& pieces, const ComputeFloor& floor) const;

    const TrialField& m_field;
    const SearchOptions& m_options;
    const TransformerSpace& m_space;
    std::int32_t m_largestMicrobatch = 1;
    std::map<std::string, std::uint32_t> m_kinds; ///< that candidates have: `kindKey` by `kindOf`
    std::array<double, kMostKinds> m_slowness; ///< of each kind: least simulated step over its estimate, so far
    std::vector<double> m_bounds; ///< of each candidate's step; infinite: it was simulated, or does not fit
    std::map<Pieces, ComputeFloor> m_floors;
};

/// `productSeconds`: a step of nothing but the model's products at the chip's peak.
Proof::Proof(const TrialField& field, const SearchOptions& options, double productSeconds)
    : m_field(field)
    , m_options(options)
    , m_space(field.explorer->space())
{
    const std::int64_t batch = m_space.work().globalBatch;
    std::bitset<kMostKinds> isNew;
    isNew.set();
    for (const Candidate& c : candidates()) {
        m_largestMicrobatch = std::max(m_largestMicrobatch, c.microbatch);
        if (const std::uint32_t kind = kindKey(c); isNew.test(kind)) {
            isNew.reset(kind);
            m_kinds.emplace(kindOf(c), kind);
        }
        const double microbatchSeconds = productSeconds * c.microbatch * c.dp * c.pp / asDouble(batch);
        m_bounds.push_back(field.explorer->leastBytes(c) > field.explorer->capacityBytes()
                ? kInfinite
                : leastSeconds(c, {microbatchSeconds, 0.0}, batch));
    }
    m_slowness.fill(kInfinite);
}

void Proof::learn(const FoundPlan& plan)
{
    const auto kind = m_kinds.find(plan.kind);
    if (kind != m_kinds.end() && plan.simulatedSeconds && plan.modelSeconds > 0.0)
        m_slowness[kind->second] = std::min(m_slowness[kind->second], *plan.simulatedSeconds / plan.modelSeconds);
}

double Proof::leastOf(const Candidate& candidate, const Pieces& pieces, const ComputeFloor& floor) const
{
    Candidate alike = candidate;
    if (pieces.stages > 1)
        alike = plainStages(candidate, m_space.work().model.layers);
    else
        alike.pp = alike.chunks = 1;
    const double share = pieces.shareOf(piecesOf(alike));
    if (share <= 0.0)
        return 0.0;
    const std::int64_t batch = m_space.work().globalBatch;
    return pieces.stages > 1 ? microbatchesOf(candidate, batch) * share * floor.microbatchSeconds
                             : leastSeconds(candidate, {share * floor.microbatchSeconds, floor.updateSeconds}, batch);
}

/// The next floor to know before the candidate itself is simulated, those that say something of most others first. Their losses are whole, which says
/// something of those in chunks too.
std::optional<Proof::Work> Proof::floorFor(const Candidate& candidate) const
{
    Candidate own = candidate;
    own.pp = own.chunks = 1;
    Candidate whole = own;
    whole.tp = 1;
    whole.cp = 1;
    whole.sequenceParallel = false;
    whole.ulysses = false;
    Candidate largest = whole;
    largest.microbatch = m_largestMicrobatch;
    Candidate inParts = whole;
    inParts.cp = candidate.cp;
    Candidate inHeads = whole;
    inHeads.tp = candidate.tp;
    inHeads.sequenceParallel = candidate.sequenceParallel;
    const Candidate stage = plainStages(candidate, m_space.work().model.layers);
    const std::int64_t lossChunks = m_space.lossChunks(candidate);
    for (const auto& [layout, chunksOfLoss] :
        {std::pair{largest, std::int64_t{1}}, {whole, 1}, {inParts, 1}, {inHeads, 1}, {own, lossChunks}}) {
        for (const bool isPiped : {false, true}) {
            Candidate one = layout;
            if (isPiped) {
                one.pp = stage.pp;
                one.chunks = stage.chunks;
            }
            if (!m_floors.contains(Pieces(one, chunksOfLoss)))
                return Work{std::nullopt, one, chunksOfLoss};
        }
    }
    return std::nullopt;
}

Proof::Work Proof::planned(Work floor) const
{
    floor.plan = layoutOf(m_space, leanest(floor.layout, m_space.machine().cluster.devices));
    floor.plan.lossChunks = floor.lossChunks;
    return floor;
}

std::vector<Proof::Work> Proof::next(double target)
{
    std::vector<std::pair<double, std::size_t>>
        promising; // by the estimate, as far as it was from the simulated steps of the kind
    std::vector<std::pair<double, std::size_t>> leastBound;
    for (std::size_t i = 0; i < candidates().size(); ++i) {
        if (m_bounds[i] >= target)
            continue;
        const double slowness = m_slowness[kindKey(candidates()[i])];
        promising.emplace_back(candidates()[i].seconds * (slowness < kInfinite ? slowness : 1.0), i);
        leastBound.emplace_back(m_bounds[i], i);
    }
    std::vector<Work> round;
    std::set<Pieces> wanted;
    std::set<std::size_t> taken;
    const auto fill = [&](std::vector<std::pair<double, std::size_t>>& order, std::size_t count, bool wantsFloors) {
        std::ranges::sort(order);
        for (auto next = order.begin(); next != order.end() && round.size() < count; ++next) {
            const Candidate& candidate = candidates()[next->second];
            const auto floor = wantsFloors ? floorFor(candidate) : std::nullopt;
            if (floor && wanted.insert(floor->pieces()).second)
                round.push_back(planned(*floor));
            else if (!floor && taken.insert(next->second).second)
                round.push_back({.candidate = next->second, .layout = candidate, .plan = m_field.planOf({next->second})});
        }
    };
    fill(promising, kProofRound / 2, false); // for a quicker plan
    fill(leastBound, kProofRound, true); // for a higher bound
    return round;
}

std::vector<Proof::Work> Proof::nextFloors(double target)
{
    std::vector<Work> round;
    std::set<Pieces> wanted;
    std::vector<std::pair<double, std::size_t>> leastBound;
    for (std::size_t i = 0; i < candidates().size(); ++i) {
        if (m_bounds[i] < target)
            leastBound.emplace_back(m_bounds[i], i);
    }
    std::ranges::sort(leastBound);
    for (auto next = leastBound.begin(); next != leastBound.end() && round.size() < kProofRound; ++next) {
        const auto floor = floorFor(candidates()[next->second]);
        if (!floor)
            break; // no bound can be higher
        if (wanted.insert(floor->pieces()).second)
            round.push_back(planned(*floor));
    }
    return round;
}

void Proof::simulate(Work& work) const
{
    std::string whyNot;
    if (work.candidate)
        work.trial = m_options.simulate(work.plan, m_space.machine(), whyNot);
    else
        work.floor = m_options.floor(work.plan, m_space.machine());
    work.isDone = work.trial || work.floor || !m_options.stop.stop_requested();
}

void Proof::take(const Work& work)
{
    if (!work.isDone)
        return;
    if (work.candidate) {
        leaveOut(*work.candidate);
        return;
    }
    const Pieces pieces = work.pieces();
    const ComputeFloor floor = work.floor.value_or(ComputeFloor{}); // what cannot be simulated bounds nothing
    m_floors[pieces] = floor;
    for (std::size_t i = 0; i < candidates().size(); ++i) {
        const Candidate& c = candidates()[i];
        m_bounds[i] = std::max(m_bounds[i], leastOf(c, pieces, floor));
        if (!floor.fits && c.pp == 1 && piecesOf(c) == pieces)
            m_bounds[i] = kInfinite;
    }
}

double Proof::lowerBound(double best) const
{
    double bound = best;
    for (const double one : m_bounds)
        bound = std::min(bound, one);
    return bound;
}

} // namespace

Candidate leanest(Candidate candidate, std::int64_t devices)
{
    const auto ranks = static_cast<std::int32_t>(devices / candidate.tp / candidate.cp / candidate.pp);
    candidate.schedule = candidate.chunks > 1 ? PipelineOrder::Interleaved : PipelineOrder::OneForwardOneBackward;
    candidate.dp = ranks;
    candidate.fsdp = ranks;
    candidate.zero = ranks * candidate.cp > 1 ? 3 : 0;
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

double leastSeconds(const Candidate& candidate, const ComputeFloor& floor, std::int64_t globalBatch)
{
    const double microbatches = microbatchesOf(candidate, globalBatch);
    const double stages = candidate.pp;
    if (candidate.pp == 1)
        return microbatches * floor.microbatchSeconds + floor.updateSeconds;
    if (candidate.chunks > 1 || splitsBackward(candidate.schedule))
        return microbatches * floor.microbatchSeconds / stages;
    return floor.microbatchSeconds / (1.0 - std::pow(1.0 - 1.0 / microbatches, stages));
}

PlanProof provedPlans(const std::vector<TrialField>& fields, const std::vector<FoundPlan>& tried, const SearchOptions& options)
{
    PlanProof result;
    const FoundPlan& best = tried.front();
    double quickest = *best.simulatedSeconds;
    result.complete = true;
    result.lowerBoundSeconds = kInfinite;
    for (const TrialField& field : fields) {
        const bool isSameMachine = field.explorer->space().machine().name == best.hardware;
        Proof proof(field, options, isSameMachine ? best.mfu * *best.simulatedSeconds : 0.0);
        for (const FoundPlan& plan : tried) {
            proof.learn(plan);
            if (plan.simulatedSeconds && plan.hardware == field.explorer->space().machine().name)
                proof.leaveOut(plan.candidate);
        }
        const auto next = [&] {
            return options.gap                ? proof.next((1.0 - *options.gap) * quickest)
                : result.floors < kMostFloors ? proof.nextFloors(quickest)
                                              : std::vector<Proof::Work>{};
        };
        for (auto round = next(); !round.empty(); round = next()) {
            if (options.stop.stop_requested() || (options.deadline && Clock::now() > *options.deadline)) {
                result.complete = false;
                break;
            }
            parallelFor(
                round.size(), workerCount(options.threads), options.stop,
                [&](unsigned, std::size_t i) { proof.simulate(round[i]); }, 1);
            for (Proof::Work& work : round) {
                proof.take(work);
                result.floors += work.isDone && !work.candidate ? 1 : 0;
                if (!work.trial)
                    continue;
                takeTrial(work.plan, *std::move(work.trial));
                proof.learn(work.plan);
                if (work.plan.fits)
                    quickest = std::min(quickest, work.plan.seconds());
                result.simulated.push_back(std::move(work.plan));
            }
            if (options.progress)
                options.progress({0, 0, quickest, proof.lowerBound(quickest),
                    result.simulated.size() + static_cast<std::size_t>(result.floors)});
        }
        result.lowerBoundSeconds = std::min(result.lowerBoundSeconds, proof.lowerBound(quickest));
    }
    return result;
}

} // namespace meshwright::sim
