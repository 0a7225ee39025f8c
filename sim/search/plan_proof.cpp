// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/plan_proof.h"

#include "core/study/study.h"
#include "core/support/checked.h"
#include "core/support/parallel_for.h"
#include "sim/search/plan_floors.h"
#include "sim/search/search_limits.h"
#include "sim/search/transformer_search.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <chrono>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace meshwright::sim {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostFloors = 8; ///< for a bound that nobody asked to be close
constexpr double kOtherWaits
    = 0.9; ///< of what is waited for in another program than the step's: there collectives may begin a little earlier or later
/// Of what loops over layers of experts take, in a pipeline: its pieces of a layer or two are no loops, compute and copy less (by a third was seen).
constexpr double kOfExpertsInPieces = 0.5;
constexpr double kRounded = 1.0 - 1e-6; ///< of a pass that is the step's own
constexpr std::size_t kMostVisited = 20'000; ///< candidates for one round
constexpr std::size_t kProofRound = 16; ///< simulations: what is looked at does not depend on threads

/// Whether a candidate keeps no less than another that is cut and computed alike: larger microbatches, or states of as many ranks or fewer each.
bool needsNoLess(const Candidate& larger, const Candidate& smaller)
{
    return larger.pp == smaller.pp && larger.chunks == smaller.chunks && larger.schedule == smaller.schedule
        && larger.tp == smaller.tp && larger.cp == smaller.cp && larger.ep == smaller.ep
        && larger.sequenceParallel == smaller.sequenceParallel && larger.ulysses == smaller.ulysses
        && larger.recompute == smaller.recompute && larger.zero <= smaller.zero && larger.microbatch >= smaller.microbatch
        && (larger.zero < 3 || larger.fsdp <= smaller.fsdp);
}

/// One space, and what is known of it.
class Proof {
public:
    Proof(const TrialField& field, const SearchOptions& options, double productSeconds);

    /// What is to be simulated.
    struct Work {
        std::optional<std::size_t> candidate; ///< none: a floor
        Floor floor = {};
        FoundPlan plan = {};
        std::optional<PlanTrial> trial = {};
        std::optional<ComputeFloor> computing = {};
        std::optional<PassTime> pass = {};
        bool isDone = false; ///< or cannot be simulated
    };
    std::vector<Work> next(double target); ///< none of it twice; empty: no candidate that is left has a bound below the target
    std::vector<Work> nextFloors(double target); ///< likewise; empty: what bounds the step has no floor that is not known
    void simulate(Work& work) const;
    void take(const Work& work);
    void learn(const FoundPlan& plan); ///< how far the estimate is from the simulated step of such plans
    void leaveOut(std::size_t candidate) { m_bounds[candidate] = kInfinite; } ///< it was simulated, or does not fit
    void leaveOutLarger(const Candidate& tooLarge); ///< what needs no less memory
    double lowerBound(double best) const;
    double boundOf(std::size_t candidate) const { return m_bounds[candidate]; } ///< infinite: it was simulated, or does not fit
    std::optional<Floor> floorFor(std::size_t candidate) const; ///< to know next before it is simulated itself
    Work planned(const Floor& floor) const;

private:
    const std::vector<Candidate>& candidates() const { return m_space.candidates(); }
    Pieces piecesOf(const Candidate& candidate) const { return {candidate, m_space.lossChunks(candidate)}; }
    void takeStep(const Candidate& simulated, const PlanTrial& trial);
    void close(double target); ///< candidates whose bounds are no less
    double computingOf(const Pieces& pieces) const;
    bool isRepeated(const Candidate& candidate) const { return microbatchesOf(candidate, m_space.work().globalBatch) >= 2.0; }

    const TrialField& m_field;
    const SearchOptions& m_options;
    const TransformerSpace& m_space;
    std::int32_t m_largestMicrobatch = 1;
    std::map<std::string, std::uint32_t> m_kinds; ///< that candidates have: `kindKey` by `kindOf`
    std::array<double, kMostKinds> m_slowness; ///< of each kind: least simulated step over its estimate, so far
    std::vector<double> m_bounds; ///< of each candidate's step; infinite: it was simulated, or does not fit
    std::vector<std::size_t>
        m_open; ///< candidates whose bounds were below the last target, ascending: others are not raised any more
    std::vector<MicrobatchFloor> m_least; ///< of each candidate, as far as is known
    std::map<Floor::Key, double> m_floors; ///< that are known: seconds
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
                : leastSeconds(c, {.seconds = microbatchSeconds}, batch, m_space.work().model.layers));
    }
    m_slowness.fill(kInfinite);
    m_least.resize(candidates().size());
    m_open.resize(candidates().size());
    std::iota(m_open.begin(), m_open.end(), 0);
}

void Proof::learn(const FoundPlan& plan)
{
    const auto kind = m_kinds.find(plan.kind);
    if (kind != m_kinds.end() && plan.simulatedSeconds && plan.modelSeconds > 0.0)
        m_slowness[kind->second] = std::min(m_slowness[kind->second], *plan.simulatedSeconds / plan.modelSeconds);
}

std::optional<Floor> Proof::floorFor(std::size_t index) const
{
    const Candidate& candidate = candidates()[index];
    const std::vector<Floor> floors = floorsFor(candidate,
        {m_space.work().model.layers, m_largestMicrobatch, m_space.lossChunks(candidate), m_options.pass && m_options.gap,
            isRepeated(candidate)});
    const auto next = std::ranges::find_if(floors, [&](const Floor& floor) { return !m_floors.contains(floor.key()); });
    return next == floors.end() ? std::nullopt : std::optional(*next);
}

/// What is known of it.
double Proof::computingOf(const Pieces& pieces) const
{
    double most = 0.0;
    for (const auto& [key, seconds] : m_floors) {
        if (key.of == FloorOf::Computing)
            most = std::max(most, key.pieces.shareOf(pieces) * seconds);
    }
    return most;
}

Proof::Work Proof::planned(const Floor& floor) const
{
    const std::int64_t devices = m_space.machine().cluster.devices;
    Work work{.candidate = std::nullopt, .floor = floor};
    work.plan = layoutOf(m_space,
        floor.of == FloorOf::Computing  ? leanest(floor.layout, devices)
            : floor.of == FloorOf::Pass ? alone(floor.layout)
                                        : floor.layout);
    work.plan.lossChunks = floor.lossChunks;
    if (floor.of != FloorOf::Computing) {
        std::int64_t ranks = 1;
        for (const MeshAxis& axis : work.plan.mesh)
            ranks *= axis.size;
        if (ranks < devices) // the others do the same
            work.plan.mesh.insert(work.plan.mesh.begin(), {axisRoleName(AxisRole::Pipeline), devices / ranks});
    }
    return work;
}

void Proof::close(double target)
{
    std::erase_if(m_open, [&](std::size_t i) { return m_bounds[i] >= target; });
}

std::vector<Proof::Work> Proof::next(double target)
{
    std::vector<std::pair<double, std::size_t>>
        promising; // by the estimate, as far as it was from the simulated steps of the kind
    std::vector<std::pair<double, std::size_t>> leastBound;
    close(target);
    for (const std::size_t i : m_open) {
        const double slowness = m_slowness[kindKey(candidates()[i])];
        promising.emplace_back(candidates()[i].seconds * (slowness < kInfinite ? slowness : 1.0), i);
        leastBound.emplace_back(m_bounds[i], i);
    }
    std::vector<Work> round;
    std::set<Floor::Key> wanted;
    std::set<std::size_t> taken;
    const auto fill = [&](std::vector<std::pair<double, std::size_t>>& order, std::size_t count) {
        std::ranges::sort(order);
        const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), kMostVisited));
        for (auto next = order.begin(); next != end && round.size() < count; ++next) {
            const std::size_t candidate = next->second;
            const auto floor = floorFor(candidate);
            if (floor ? wanted.contains(floor->key()) : taken.contains(candidate))
                continue;
            if (!m_field.explorer->mayFit(candidate)) {
                leaveOut(candidate);
                continue;
            }
            if (floor) {
                wanted.insert(floor->key());
                round.push_back(planned(*floor));
            } else {
                taken.insert(candidate);
                round.push_back({.candidate = candidate, .plan = m_field.planOf({candidate})});
            }
        }
    };
    fill(promising, kProofRound / 2); // for a quicker plan
    fill(leastBound, kProofRound); // for a higher bound
    std::ranges::stable_sort(round, std::greater(), [](const Work& work) { // what takes longest to simulate first
        return work.plan.pipeline.stages * work.plan.pipeline.chunks;
    });
    return round.empty() && !m_open.empty() ? next(target) : round; // all that it saw is expected not to fit
}

std::vector<Proof::Work> Proof::nextFloors(double target)
{
    std::vector<Work> round;
    std::set<Floor::Key> wanted;
    std::vector<std::pair<double, std::size_t>> leastBound;
    close(target);
    for (const std::size_t i : m_open)
        leastBound.emplace_back(m_bounds[i], i);
    std::ranges::sort(leastBound);
    for (auto next = leastBound.begin(); next != leastBound.end() && round.size() < kProofRound; ++next) {
        const auto floor = floorFor(next->second);
        if (!floor)
            break; // no bound can be higher
        if (wanted.insert(floor->key()).second)
            round.push_back(planned(*floor));
    }
    return round;
}

void Proof::simulate(Work& work) const
{
    std::string whyNot;
    if (work.candidate)
        work.trial = m_options.simulate(work.plan, m_space.machine(), whyNot);
    else if (work.floor.of != FloorOf::Computing)
        work.pass = m_options.pass(work.plan, m_space.machine());
    else
        work.computing = m_options.floor(work.plan, m_space.machine());
    work.isDone = work.trial || work.computing || work.pass || !m_options.stop.stop_requested();
}

void Proof::take(const Work& work)
{
    if (!work.isDone)
        return;
    if (work.candidate) {
        leaveOut(*work.candidate);
        if (work.trial)
            takeStep(candidates()[*work.candidate], *work.trial);
        return;
    }
    // What cannot be simulated bounds nothing.
    const Floor::Key key = work.floor.key();
    const Pieces& pieces = key.pieces;
    const ComputeFloor floor = work.computing.value_or(ComputeFloor{});
    double& seconds = m_floors[key];
    seconds = floor.microbatchSeconds;
    if (work.pass) {
        const auto& [computeSeconds, waitSeconds] = *work.pass;
        seconds = key.of == FloorOf::PassWithData ? kRounded * (computeSeconds + waitSeconds)
                                                  : std::min(computeSeconds, computingOf(pieces)) + kOtherWaits * waitSeconds;
    }
    const auto& [batch, layers] = std::pair{m_space.work().globalBatch, m_space.work().model.layers};
    for (const std::size_t i : m_open) {
        const Candidate& c = candidates()[i];
        MicrobatchFloor& least = m_least[i];
        Candidate whole = c;
        whole.pp = whole.chunks = 1;
        if (key.of == FloorOf::PassWithData && (dataOf(c) != key.data || !isRepeated(c)))
            continue;
        if (key.of != FloorOf::Computing) {
            least.passSeconds = std::max(least.passSeconds, pieces.shareOfPass(piecesOf(whole)) * seconds);
        } else if (pieces.stages > 1) {
            const double ofStage = pieces.shareOf(piecesOf(plainStages(c, layers))) * seconds;
            if (ofStage > least.stageSeconds) {
                least.stageSeconds = ofStage;
                least.isLastLongest = layers % (std::int64_t{c.pp} * c.chunks) == 0 && floor.stage + 1 == c.pp;
            }
        } else if (const double share = pieces.shareOf(piecesOf(whole)); share > 0.0) {
            least.seconds = std::max(least.seconds, share * seconds);
            least.updateSeconds = std::max(least.updateSeconds, floor.updateSeconds);
        }
        MicrobatchFloor counted = least;
        if (c.pp > 1 && m_space.work().model.experts > 0) {
            counted.seconds *= kOfExpertsInPieces;
            counted.passSeconds *= kOfExpertsInPieces;
        }
        m_bounds[i] = std::max(m_bounds[i], leastSeconds(c, counted, batch, layers));
        if (!floor.fits && c.pp == 1 && isRepeated(c) && piecesOf(c) == pieces)
            m_bounds[i] = kInfinite;
    }
}

/// Of others that do the same and more: they compute values again that it keeps or, without a pipeline, have smaller microbatches.
void Proof::takeStep(const Candidate& simulated, const PlanTrial& trial)
{
    const auto compute = std::ranges::find_if(trial.time, [](const NamedShare& share) { return share.name == "compute"; });
    const double computeSeconds = compute == trial.time.end() ? 0.0 : compute->amount;
    const double seconds = computeSeconds + kOtherWaits * (trial.seconds - computeSeconds);
    const Pieces pieces = piecesOf(simulated);
    for (const std::size_t i : m_open) {
        const Candidate& c = candidates()[i];
        const Pieces own = piecesOf(c);
        const bool isAlike = c.schedule == simulated.schedule && dataOf(c) == dataOf(simulated) && own.tp == pieces.tp
            && own.cp == pieces.cp && (c.pp == 1 || c.microbatch == simulated.microbatch) && isRepeated(simulated);
        if (isAlike && pieces.shareOfPass(own) > 0.0)
            m_bounds[i] = std::max(m_bounds[i], seconds);
    }
}

void Proof::leaveOutLarger(const Candidate& tooLarge)
{
    for (const std::size_t i : m_open) {
        // Large microbatches may have their loss in chunks, which keeps less.
        if (m_space.lossChunks(candidates()[i]) == m_space.lossChunks(tooLarge) && needsNoLess(candidates()[i], tooLarge))
            leaveOut(i);
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

double boundOf(const TrialField& field, std::size_t candidate, const SearchOptions& options)
{
    Proof proof(field, options, 0.0);
    while (auto floor = proof.floorFor(candidate)) {
        auto work = proof.planned(*floor);
        proof.simulate(work);
        proof.take(work);
    }
    return proof.boundOf(candidate);
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
                if (options.stop.stop_requested() && !work.trial)
                    continue; // there is no time for bounds of others
                proof.take(work);
                result.floors += work.isDone && !work.candidate ? 1 : 0;
                if (!work.trial)
                    continue;
                takeTrial(work.plan, *std::move(work.trial));
                proof.learn(work.plan);
                if (work.plan.fits)
                    quickest = std::min(quickest, work.plan.seconds());
                else
                    proof.leaveOutLarger(field.explorer->space().candidates()[*work.candidate]);
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
