// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/plan_trials.h"

#include "core/study/study.h"
#include "core/support/parallel_for.h"
#include "core/support/text.h"
#include "sim/search/plan_reasons.h"
#include "sim/search/search_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>

namespace meshwright::sim {

namespace {

constexpr int kMostRounds = 3; ///< a plan, and twice one with less memory
constexpr double kThinHeadroom = 0.10;
constexpr std::size_t kFewestTries = 6; ///< layouts: the estimate's order is not the simulation's
constexpr std::size_t kMostLikely = 6; ///< layouts more, where simulations were unlike their estimates
constexpr std::size_t kLikelyAtOnce = 2; ///< whatever the threads: the result does not depend on them
constexpr double kWorthTrying = 0.99; ///< of the quickest step: a layout that may take less
constexpr double kUntried
    = 0.9; ///< of its estimate, that a kind may take which was not tried: so far estimates are off in the median

/// What simulating takes before anything was simulated. Each piece of a pipeline is a program, whose layers are a loop, but where the schedule takes
/// the backward pass apart: there each layer has ops of its own. Each microbatch has tasks.
constexpr double kSecondsPerProgram = 0.1;
constexpr double kSecondsPerLayer = 0.05;
constexpr double kSecondsPerTask = 0.002;

/// `kindOf` as a number.
std::uint32_t kindKey(const Candidate& c)
{
    const auto flag = [](std::int32_t size, int bit) { return size > 1 ? 1U << bit : 0U; };
    const std::uint32_t states = c.zero >= 3 && c.fsdp > 1 ? (c.fsdp < c.dp ? 4U : 3U) : c.dp > 1 && c.zero < 3 ? c.zero : 0U;
    return states << 5U | flag(c.dp, 4) | flag(c.tp, 3) | flag(c.cp, 2) | flag(c.ep, 1) | flag(c.pp, 0);
}

bool haveSameMesh(const Candidate& a, const Candidate& b)
{
    const auto fsdp = [](const Candidate& c) { return c.zero >= 3 ? c.fsdp : 1; };
    return a.pp == b.pp && a.dp == b.dp && fsdp(a) == fsdp(b) && a.ep == b.ep && a.cp == b.cp && a.tp == b.tp;
}

PlanExplorer::Filter ofMesh(const Candidate& c)
{
    return [c](const Candidate& other) { return haveSameMesh(c, other); };
}

/// A layout that is tried: by its kind, or by its mesh.
struct Try {
    const TrialField* field = nullptr;
    PlanExplorer::Filter group;
    Estimated estimated;
    FoundPlan plan;
    double limitBytes = 0.0; ///< by the estimate
    bool isSettled = false;
    std::string whyNot = {}; ///< it was not simulated
};

/// How long simulations take, learnt from those that were done.
class Stopwatch {
public:
    explicit Stopwatch(const SearchOptions& options)
        : m_options(options)
    {
    }

    static double guess(const FoundPlan& plan, std::int64_t layers)
    {
        const auto pieces = static_cast<double>(plan.pipeline.stages * plan.pipeline.chunks);
        const auto order = scheduleNamed(plan.pipeline.schedule);
        const bool isUnrolled = order && splitsBackward(*order);
        return pieces * (kSecondsPerProgram + kSecondsPerTask * plan.pipeline.microbatches)
            + (isUnrolled ? kSecondsPerLayer * static_cast<double>(layers) : 0.0);
    }

    /// Why there is no time for what is guessed to take so long; empty: there is.
    std::string whyNoTime(double guessed)
    {
        if (m_options.stop.stop_requested())
            return "stopped";
        if (!m_options.deadline)
            return {};
        const std::scoped_lock lock(m_mutex);
        const double left = std::chrono::duration<double>(*m_options.deadline - std::chrono::steady_clock::now()).count();
        const double needed = guessed * m_factor;
        return needed <= left ? std::string{}
                              : fmt::format("simulating takes about {}, and the time limit leaves {}", formatSeconds(needed),
                                  formatSeconds(std::max(0.0, left)));
    }

    void learn(double guessed, double taken)
    {
        const std::scoped_lock lock(m_mutex);
        m_factor = m_isNew ? taken / guessed : std::max(m_factor, taken / guessed);
        m_isNew = false;
    }

private:
    const SearchOptions& m_options;
    std::mutex m_mutex;
    double m_factor = 1.0;
    bool m_isNew = true;
};

class Trials {
public:
    Trials(const std::vector<TrialField>& fields, const SearchOptions& options, SearchResult& notes)
        : m_fields(fields)
        , m_options(options)
        , m_notes(notes)
        , m_stopwatch(options)
    {
    }

    std::vector<FoundPlan> run();

private:
    void choose();
    void settle();
    bool addLikely();
    void add(const TrialField& field, const Estimated& estimated, PlanExplorer::Filter group);
    void simulate(Try& one);
    void takeLess(Try& one);
    std::vector<FoundPlan> sorted();

    const std::vector<TrialField>& m_fields;
    const SearchOptions& m_options;
    SearchResult& m_notes;
    Stopwatch m_stopwatch;
    std::vector<Try> m_tries;
    std::map<std::uint32_t, double> m_kinds; ///< of the space, and the least bound of each
    std::size_t m_likely = 0; ///< that were added
    std::vector<Candidate> m_tried; ///< of one machine: also those that did not fit
    std::atomic<std::int64_t> m_simulated = 0;
};

void Trials::add(const TrialField& field, const Estimated& estimated, PlanExplorer::Filter group)
{
    Try one;
    one.field = &field;
    one.group = std::move(group);
    one.estimated = estimated;
    one.plan = field.planOf(estimated);
    one.limitBytes = field.explorer->capacityBytes();
    m_tried.push_back(field.explorer->space().candidates()[estimated.index]);
    m_tries.push_back(std::move(one));
}

void Trials::choose()
{
    for (const TrialField& field : m_fields) {
        const auto& candidates = field.explorer->space().candidates();
        std::set<std::uint32_t> kinds;
        const std::size_t first = m_tries.size();
        const auto take = [&](const Estimated& estimated, PlanExplorer::Filter group) {
            kinds.insert(kindKey(candidates[estimated.index]));
            add(field, estimated, std::move(group));
        };
        const auto ofKind = [&](const Estimated& one) {
            return [kind = kindKey(candidates[one.index])](const Candidate& c) { return kindKey(c) == kind; };
        };
        if (field.best.empty())
            continue;
        const std::size_t most = m_tries.size() + (m_fields.size() > 1 ? 1 : std::max(m_options.top, kFewestTries));
        take(field.best.front(), ofKind(field.best.front()));
        // The other half are other meshes, some of kinds that are there.
        const std::size_t mostKinds = m_tries.size() + (most - m_tries.size() + 1) / 2;
        while (m_tries.size() < mostKinds && !m_options.stop.stop_requested()) {
            const auto next = field.explorer->best(
                [&](const Candidate& c) { return !kinds.contains(kindKey(c)); }, field.explorer->capacityBytes());
            if (!next)
                break;
            take(*next, ofKind(*next));
        }
        for (const Estimated& other : field.best) {
            const Candidate& c = candidates[other.index];
            const bool isTried = std::any_of(m_tries.begin() + static_cast<std::ptrdiff_t>(first), m_tries.end(),
                [&](const Try& one) { return haveSameMesh(candidates[one.estimated.index], c); });
            if (m_tries.size() < most && !isTried)
                take(other, ofMesh(c));
        }
    }
}

/// Layouts of other meshes that are quicker than what was found, if their estimates are as wrong as those of their kind were, or a little too long where
/// their kind was not tried. False: there is none.
bool Trials::addLikely()
{
    if (m_fields.size() > 1 || m_likely >= kMostLikely || m_options.stop.stop_requested())
        return false;
    const TrialField& field = m_fields.front();
    const auto& candidates = field.explorer->space().candidates();
    double quickest = kInfinite;
    double ofOthers = kUntried;
    std::map<std::uint32_t, double> ratios; // of simulated and estimated steps, the least of each kind
    for (const Try& one : m_tries) {
        if (!one.plan.simulatedSeconds)
            continue;
        const double ratio = *one.plan.simulatedSeconds / one.plan.modelSeconds;
        double& known = ratios.try_emplace(kindKey(candidates[one.estimated.index]), ratio).first->second;
        known = std::min(known, ratio);
        ofOthers = std::min(ofOthers, ratio);
        if (one.plan.fits)
            quickest = std::min(quickest, *one.plan.simulatedSeconds);
    }
    if (quickest == kInfinite)
        return false;
    if (m_kinds.empty()) {
        for (const Candidate& c : candidates) // by their bounds
            m_kinds.try_emplace(kindKey(c), c.seconds);
    }
    std::vector<std::pair<double, Estimated>> likely;
    for (const auto& [kind, bound] : m_kinds) {
        const auto known = ratios.find(kind);
        const double ratio = known == ratios.end() ? ofOthers : known->second;
        const double most = kWorthTrying * quickest / ratio;
        if (bound >= most)
            continue;
        const auto isNew = [&, of = kind](const Candidate& c) {
            return c.seconds < most && kindKey(c) == of
                && std::none_of(m_tried.begin(), m_tried.end(), [&](const Candidate& tried) { return haveSameMesh(tried, c); });
        };
        const auto found = field.explorer->best(isNew, field.explorer->capacityBytes());
        if (found && found->seconds < most)
            likely.emplace_back(ratio * found->seconds, *found);
    }
    std::stable_sort(likely.begin(), likely.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    likely.resize(std::min({likely.size(), kLikelyAtOnce, kMostLikely - m_likely}));
    for (const auto& [seconds, estimated] : likely)
        add(field, estimated, ofMesh(candidates[estimated.index]));
    m_likely += likely.size();
    return !likely.empty();
}

void Trials::simulate(Try& one)
{
    const std::int64_t layers = one.field->explorer->space().work().model.layers;
    const double guessed = Stopwatch::guess(one.plan, layers);
    one.whyNot = m_stopwatch.whyNoTime(guessed);
    if (!one.whyNot.empty()) {
        one.isSettled = true;
        return;
    }
    const auto start = std::chrono::steady_clock::now();
    auto trial = m_options.simulate(one.plan, one.field->explorer->space().machine(), one.whyNot);
    if (!trial) {
        one.isSettled = true;
        return;
    }
    m_stopwatch.learn(guessed, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    ++m_simulated;
    takeTrial(one.plan, *std::move(trial));
    one.isSettled = one.plan.fits;
}

/// The quickest of the group with so much less memory as was missing, or else the one that needs least.
void Trials::takeLess(Try& one)
{
    double needed = 0.0;
    for (const NamedShare& share : one.plan.memory)
        needed += share.amount;
    one.limitBytes = std::min(one.limitBytes, one.estimated.bytes) * std::min(0.999, one.plan.capacityBytes / needed);
    auto less = one.field->explorer->best(one.group, one.limitBytes);
    if (!less)
        less = one.field->explorer->smallest(one.group);
    if (!less || less->bytes >= one.estimated.bytes) {
        one.isSettled = true;
        return;
    }
    one.estimated = *less;
    one.plan = one.field->planOf(*less);
    m_tried.push_back(one.field->explorer->space().candidates()[less->index]);
}

std::vector<FoundPlan> Trials::run()
{
    choose();
    do
        settle();
    while (addLikely());
    m_notes.simulated = m_simulated;
    return sorted();
}

void Trials::settle()
{
    for (int round = 0; round < kMostRounds; ++round) {
        std::vector<Try*> open;
        for (Try& one : m_tries) {
            if (!one.isSettled)
                open.push_back(&one);
        }
        if (round > 0) {
            for (Try* one : open)
                takeLess(*one);
            std::erase_if(open, [](const Try* one) { return one->isSettled; });
        }
        parallelFor(
            open.size(), workerCount(m_options.threads), {},
            [&](unsigned, std::size_t i) {
                simulate(*open[i]);
                if (m_options.progress)
                    m_options.progress(
                        {m_notes.candidates, m_notes.candidates, 0.0, 0.0, static_cast<std::size_t>(m_simulated.load())});
            },
            1);
    }
    for (Try& one : m_tries)
        one.isSettled = true;
}

std::vector<FoundPlan> Trials::sorted()
{
    std::vector<FoundPlan> plans;
    std::vector<FoundPlan> tooLarge;
    for (Try& one : m_tries) {
        if (!one.plan.simulatedSeconds) {
            m_notes.notSimulated.push_back(fmt::format("{}: {}", meshText(one.plan.mesh), one.whyNot));
            tellShares(one.plan, 0.0);
        }
        (one.plan.fits ? plans : tooLarge).push_back(std::move(one.plan));
    }
    plans = quickestOf(std::move(plans));
    if (plans.empty()) {
        const auto least = std::min_element(
            tooLarge.begin(), tooLarge.end(), [](const FoundPlan& a, const FoundPlan& b) { return a.peakBytes < b.peakBytes; });
        if (least != tooLarge.end())
            plans.push_back(*least);
    }
    return plans;
}

double amountOf(const std::vector<NamedShare>& shares, const std::string& name)
{
    const auto found = std::find_if(shares.begin(), shares.end(), [&](const NamedShare& share) { return share.name == name; });
    return found == shares.end() ? 0.0 : found->amount;
}

} // namespace

std::string kindOf(const Candidate& c)
{
    std::vector<std::string> parts;
    if (c.zero >= 3 && c.fsdp > 1)
        parts.emplace_back(c.fsdp < c.dp ? "HSDP" : "FSDP");
    else if (c.dp > 1)
        parts.push_back(c.zero >= 1 && c.zero < 3 ? fmt::format("ZeRO-{}", c.zero) : std::string("data"));
    for (const auto& [name, size] : {std::pair{"tensor", c.tp}, {"context", c.cp}, {"expert", c.ep}, {"pipeline", c.pp}}) {
        if (size > 1)
            parts.emplace_back(name);
    }
    return parts.empty() ? std::string("one device") : join(parts, " + ");
}

std::vector<FoundPlan> triedPlans(const std::vector<TrialField>& fields, const SearchOptions& options, SearchResult& notes)
{
    return Trials(fields, options, notes).run();
}

std::vector<FoundPlan> quickestOf(std::vector<FoundPlan> plans)
{
    std::stable_sort(plans.begin(), plans.end(), [](const FoundPlan& a, const FoundPlan& b) {
        if (a.simulatedSeconds.has_value() != b.simulatedSeconds.has_value())
            return a.simulatedSeconds.has_value();
        return a.simulatedSeconds ? *a.simulatedSeconds < *b.simulatedSeconds : a.modelSeconds < b.modelSeconds;
    });
    std::set<std::string> meshes;
    std::erase_if(
        plans, [&](const FoundPlan& plan) { return !meshes.insert(plan.hardware + ": " + meshText(plan.mesh)).second; });
    return plans;
}

void tellLosses(std::vector<FoundPlan>& plans)
{
    for (std::size_t i = 1; i < plans.size() && plans.front().simulatedSeconds; ++i) {
        if (plans[i].simulatedSeconds)
            plans[i].why.insert(plans[i].why.begin(), whySlower(plans[i], plans.front()));
    }
}

void takeTrial(FoundPlan& plan, PlanTrial trial)
{
    if (plan.dollarsPerStep && plan.modelSeconds > 0.0)
        plan.dollarsPerStep = *plan.dollarsPerStep * trial.seconds / plan.modelSeconds;
    plan.simulatedSeconds = trial.seconds;
    plan.peakBytes = trial.peakBytes;
    plan.capacityBytes = trial.capacityBytes;
    plan.fits = trial.fits;
    plan.mfu = trial.mfu;
    plan.boundBy = std::move(trial.boundBy);
    plan.time = std::move(trial.time);
    plan.memory = std::move(trial.memory);
    plan.live = std::move(trial.live);
    tellShares(plan, trial.reserveBytes);
}

void tellShares(FoundPlan& plan, double reserveBytes)
{
    std::vector<std::string> sentences;
    const double needed = plan.peakBytes + (reserveBytes > 0.0 ? reserveBytes : amountOf(plan.memory, "reserve"));
    if (!plan.fits) {
        std::vector<NamedShare> parts = plan.memory;
        std::stable_sort(
            parts.begin(), parts.end(), [](const NamedShare& a, const NamedShare& b) { return a.amount > b.amount; });
        std::vector<std::string> largest;
        for (std::size_t i = 0; i < std::min<std::size_t>(2, parts.size()); ++i)
            largest.push_back(fmt::format("{} {}", parts[i].name, formatBytes(parts[i].amount)));
        sentences.push_back(
            fmt::format("needs {} of {}: {}", formatBytes(needed), formatBytes(plan.capacityBytes), join(largest, ", ")));
    }
    sentences.push_back(largestShares(plan.time));
    const double left = 1.0 - needed / plan.capacityBytes;
    if (plan.fits && left < kThinHeadroom)
        sentences.push_back(fmt::format("headroom {:.0f} %: little room for what is not foreseen", 100.0 * left));
    plan.why.insert(plan.why.begin(), sentences.begin(), sentences.end());
}

std::string whySlower(const FoundPlan& plan, const FoundPlan& best)
{
    const double step = best.simulatedSeconds.value_or(best.modelSeconds);
    const double mine = plan.simulatedSeconds.value_or(plan.modelSeconds);
    std::map<std::string, double> change;
    for (const NamedShare& share : plan.time)
        change[share.name] += share.amount;
    for (const NamedShare& share : best.time)
        change[share.name] -= share.amount;
    if (mine <= kAsQuick * step || change.empty())
        return "as quick";
    const auto [least, most]
        = std::minmax_element(change.begin(), change.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto part = [&](const auto& one) {
        const bool isWaited = one.first.find(" over ") != std::string::npos;
        return fmt::format("{:+.1f} % {}{}", 100.0 * one.second / step, isWaited ? "exposed " : "", one.first);
    };
    std::string text = part(*most);
    if (most->second > kWonBack * (mine - step) && least->second < -0.001 * step)
        text += "; " + part(*least);
    return text;
}

} // namespace meshwright::sim
