// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/plan_proof.h"

#include "core/support/checked.h"
#include "core/support/parallel_for.h"
#include "sim/search/search_limits.h"
#include "sim/search/step_bounds.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>

namespace meshwright::sim {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostFloors = 32; ///< for a bound that nobody asked to be close
constexpr std::size_t kProofRound = 16; ///< simulations: what is looked at does not depend on threads

/// One space, and what is known of it.
class Proof {
public:
    Proof(const TrialField& field, const SearchOptions& options, double productSeconds);

    /// What is to be simulated.
    struct Work {
        std::optional<std::size_t> candidate; ///< none: the floor of pieces
        Pieces pieces = {};
        FoundPlan plan = {};
        std::optional<PlanTrial> trial = {};
        std::optional<StepFloor> floor = {};
        bool isDone = false; ///< or cannot be simulated
    };
    /// None of it twice, at most `promising` candidates for their estimates alone; empty: no candidate that is left has a bound below the target.
    std::vector<Work> next(double target, std::size_t promising);
    std::vector<Work> nextFloors(double target); ///< likewise; empty: what bounds the step has no floor that is not known
    void simulate(Work& work) const;
    void take(const Work& work);
    void learn(const FoundPlan& plan); ///< how far the estimate is from the simulated step of such plans
    void leaveOut(std::size_t candidate) { m_bounds[candidate] = kInfinite; } ///< it was simulated
    double lowerBound(double best) const;

private:
    const std::vector<Candidate>& candidates() const { return m_space.candidates(); }
    std::optional<Pieces> floorFor(const Candidate& candidate) const;

    const TrialField& m_field;
    const SearchOptions& m_options;
    const TransformerSpace& m_space;
    StepBounds m_stepBounds;
    std::vector<std::size_t> m_kinds; ///< of each candidate
    std::map<std::string, std::size_t> m_kindNames;
    std::vector<double> m_slowness; ///< of each kind: least simulated step over its estimate, so far
    std::vector<double> m_bounds; ///< of each candidate's step; infinite: it was simulated, or does not fit
    std::map<Pieces, StepFloor> m_floors;
    double m_target = kInfinite; ///< bounds above it are high enough
};

/// `productSeconds`: a step of nothing but the model's products at the chip's peak.
Proof::Proof(const TrialField& field, const SearchOptions& options, double productSeconds)
    : m_field(field)
    , m_options(options)
    , m_space(field.explorer->space())
    , m_stepBounds(m_space)
{
    const std::int64_t batch = m_space.work().globalBatch;
    for (const Candidate& c : candidates()) {
        m_kinds.push_back(m_kindNames.try_emplace(kindOf(c), m_kindNames.size()).first->second);
        const double microbatchSeconds = productSeconds * c.microbatch * c.dp * c.pp / asDouble(batch);
        m_bounds.push_back(
            c.bytes > field.explorer->capacityBytes() ? kInfinite : m_stepBounds.leastSeconds(c, microbatchSeconds));
    }
    m_slowness.assign(m_kindNames.size(), kInfinite);
}

void Proof::learn(const FoundPlan& plan)
{
    const auto kind = m_kindNames.find(plan.kind);
    if (kind != m_kindNames.end() && plan.simulatedSeconds && plan.modelSeconds > 0.0)
        m_slowness[kind->second] = std::min(m_slowness[kind->second], *plan.simulatedSeconds / plan.modelSeconds);
}

/// The next floor to know before the candidate itself is simulated.
std::optional<Pieces> Proof::floorFor(const Candidate& candidate) const
{
    for (const Pieces& pieces : m_stepBounds.piecesFor(candidate)) {
        if (!m_floors.contains(pieces))
            return pieces;
    }
    return std::nullopt;
}

std::vector<Proof::Work> Proof::next(double target, std::size_t promisingCount)
{
    m_target = target;
    std::vector<std::pair<double, std::size_t>>
        promising; // by the estimate, as far as it was from the simulated steps of the kind
    std::vector<std::pair<double, std::size_t>> leastBound;
    for (std::size_t i = 0; i < candidates().size(); ++i) {
        if (m_bounds[i] >= target)
            continue;
        const double slowness = m_slowness[m_kinds[i]];
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
            if (floor && wanted.insert(*floor).second)
                round.push_back({std::nullopt, *floor});
            else if (!floor && taken.insert(next->second).second)
                round.push_back({next->second});
        }
    };
    fill(promising, promisingCount, false); // for a quicker plan
    fill(leastBound, kProofRound, true); // for a higher bound
    return round;
}

std::vector<Proof::Work> Proof::nextFloors(double target)
{
    m_target = target;
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
        if (wanted.insert(*floor).second)
            round.push_back({std::nullopt, *floor});
    }
    return round;
}

void Proof::simulate(Work& work) const
{
    std::string whyNot;
    if (work.candidate) {
        work.plan = m_field.planOf({*work.candidate});
        work.trial = m_options.simulate(work.plan, m_space.machine(), whyNot);
    } else {
        work.floor = m_options.floor(
            m_stepBounds.layoutOf(work.pieces), m_stepBounds.fewestMicrobatches(work.pieces), m_space.machine());
    }
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
    const StepFloor floor = work.floor.value_or(StepFloor{}); // what cannot be simulated bounds nothing
    m_floors[work.pieces] = floor;
    for (std::size_t i = 0; i < candidates().size(); ++i) {
        if (m_bounds[i] >= m_target)
            continue;
        const Candidate& c = candidates()[i];
        m_bounds[i] = std::max(m_bounds[i], m_stepBounds.leastSeconds(c, work.pieces, floor));
        Pieces own = m_stepBounds.piecesOf(c);
        own.zero = 3; // needs least
        own.waits = work.pieces.waits;
        if (!floor.fits && own == work.pieces)
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
        std::size_t promising = kProofRound / 2;
        const auto next = [&] {
            return options.gap                ? proof.next((1.0 - *options.gap) * quickest, promising)
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
            const double before = quickest;
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
            promising = quickest < before ? kProofRound / 2 : std::max<std::size_t>(promising / 2, 1);
            if (options.progress)
                options.progress({0, 0, quickest, proof.lowerBound(quickest),
                    result.simulated.size() + static_cast<std::size_t>(result.floors)});
        }
        result.lowerBoundSeconds = std::min(result.lowerBoundSeconds, proof.lowerBound(quickest));
    }
    return result;
}

} // namespace meshwright::sim
