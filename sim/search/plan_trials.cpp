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
constexpr double kQuestionSeconds
    = 12.0; ///< of simulating, as guessed before anything was: what questions may take where no time limit is set

/// What simulating takes before anything was simulated. Each piece of a pipeline is a program, whose layers are a loop, but where the schedule takes
/// the backward pass apart: there each layer has ops of its own. Each microbatch has tasks.
constexpr double kSecondsPerProgram = 0.1;
constexpr double kSecondsPerLayer = 0.05;
constexpr double kSecondsPerTask = 0.002;

/// Candidates whose estimates are wrong alike: of one kind, and of those with context in rings or by exchanging heads.
std::uint32_t errorKey(const Candidate& c)
{
    return kindKey(c) << 1U | (c.ulysses ? 1U : 0U);
}

bool haveSameMesh(const Candidate& a, const Candidate& b)
{
    const auto fsdp = [](const Candidate& c) { return c.zero >= 3 ? c.fsdp : 1; };
    return a.pp == b.pp && a.dp == b.dp && fsdp(a) == fsdp(b) && a.ep == b.ep && a.cp == b.cp && a.tp == b.tp;
}

/// A layout that is tried: by its kind, by its mesh, or for a question.
struct Try {
    const TrialField* field = nullptr;
    PlanExplorer::Filter group;
    double share = 1.0; ///< see PlanQuestion
    Estimated estimated;
    FoundPlan plan = {};
    double limitBytes = 0.0; ///< by the estimate
    bool isSettled = false;
    bool isRefused = false; ///< its program cannot be made: it is not a plan
    std::string whyNot = {}; ///< it was not simulated
    double mostSeconds = kInfinite; ///< of simulating, as guessed
};

double amountOf(const std::vector<NamedShare>& shares, const std::string& name)
{
    const auto found = std::find_if(shares.begin(), shares.end(), [&](const NamedShare& share) { return share.name == name; });
    return found == shares.end() ? 0.0 : found->amount;
}

/// Whether a simulated plan fits in so many times what a device has for it.
bool fitsIn(const FoundPlan& plan, double share)
{
    return share == 1.0 ? plan.fits : plan.peakBytes <= share * plan.usableBytes();
}

/// True when `a` is no worse than `b` in anything and better in something.
bool beats(const FoundPlan& a, const FoundPlan& b)
{
    const double priceA = a.dollarsPerStep.value_or(0.0);
    const double priceB = b.dollarsPerStep.value_or(0.0);
    const bool noWorse = a.seconds() <= b.seconds() && a.peakBytes <= b.peakBytes && a.chips <= b.chips && priceA <= priceB;
    return noWorse && (a.seconds() < b.seconds() || a.peakBytes < b.peakBytes || a.chips < b.chips || priceA < priceB);
}

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

/// At the end, unless it is there.
void addNew(std::vector<std::string>& lines, std::string line)
{
    if (std::ranges::find(lines, line) == lines.end())
        lines.push_back(std::move(line));
}

} // namespace

double FoundPlan::usableBytes() const
{
    return capacityBytes - amountOf(memory, "reserve");
}

class PlanTrials::Work {
public:
    Work(const std::vector<TrialField>& fields, const SearchOptions& options, SearchResult& notes)
        : m_fields(fields)
        , m_options(options)
        , m_notes(notes)
        , m_refusals(notes.notSimulated)
        , m_stopwatch(options)
    {
    }

    void tryBest();
    bool ask(const TrialField& field, const std::vector<PlanQuestion>& questions, double mostSeconds);
    std::vector<FoundPlan> plans() const;
    void learn(FoundPlan plan);
    bool isKnown(const TrialField& field, std::size_t candidate) const { return m_known.contains({&field, candidate}); }

    /// Calls `use` with each plan that was simulated.
    template <typename Use>
    void forEachKnown(const Use& use) const
    {
        for (const TrialField& field : m_fields) {
            for (auto known = m_known.lower_bound({&field, 0}); known != m_known.end() && known->first.first == &field; ++known)
                use(field, known->second);
        }
    }

private:
    /// How many times as long as their estimates steps took, the least of each kind, and of all.
    struct Slowness {
        std::map<std::uint32_t, double> kinds; ///< by `errorKey`
        double least = kUntried;

        double of(std::uint32_t kind) const
        {
            const auto known = kinds.find(kind);
            return known == kinds.end() ? least : known->second;
        }
    };
    Slowness slownessOn(const TrialField& field) const;
    std::optional<Estimated> likeliest(const TrialField& field, const PlanQuestion& question, const Slowness& slowness);
    const std::map<std::uint32_t, std::vector<std::size_t>>& kindsOf(const TrialField& field);
    void choose();
    void settle();
    bool addLikely();
    void add(const TrialField& field, const Estimated& estimated, PlanExplorer::Filter group);
    void simulate(Try& one);
    void takeOther(Try& one);
    void takeLess(Try& one);

    const std::vector<TrialField>& m_fields;
    const SearchOptions& m_options;
    SearchResult& m_notes;
    std::vector<std::string> m_refusals; ///< why layouts were not simulated in whose place others were
    Stopwatch m_stopwatch;
    std::vector<Try> m_tries;
    std::map<const TrialField*, std::map<std::uint32_t, std::vector<std::size_t>>> m_kinds; ///< see kindsOf
    std::size_t m_likely = 0; ///< that were added
    std::vector<Candidate> m_tried; ///< of one machine: also those that did not fit
    std::map<std::pair<const TrialField*, std::size_t>, FoundPlan> m_known; ///< simulated, by candidate
    std::mutex m_mutex; ///< of them
    double m_questionSeconds = kQuestionSeconds; ///< left
};

void PlanTrials::Work::add(const TrialField& field, const Estimated& estimated, PlanExplorer::Filter group)
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

void PlanTrials::Work::choose()
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
bool PlanTrials::Work::addLikely()
{
    if (m_fields.size() > 1 || m_likely >= kMostLikely || m_options.stop.stop_requested())
        return false;
    const TrialField& field = m_fields.front();
    const auto& candidates = field.explorer->space().candidates();
    double quickest = kInfinite;
    for (const Try& one : m_tries) {
        if (one.plan.simulatedSeconds && one.plan.fits)
            quickest = std::min(quickest, one.plan.seconds());
    }
    const Slowness slowness = slownessOn(field);
    if (quickest == kInfinite)
        return false;
    const auto isNew = [&](const Candidate& c) {
        return std::none_of(m_tried.begin(), m_tried.end(), [&](const Candidate& tried) { return haveSameMesh(tried, c); });
    };
    std::vector<std::pair<double, Estimated>> likely;
    for (const auto& [kind, ofKind] : kindsOf(field)) {
        const double ratio = slowness.of(kind);
        const double most = kWorthTrying * quickest / ratio;
        if (const auto found = field.explorer->best(isNew, field.explorer->capacityBytes(), {&ofKind, most}))
            likely.emplace_back(ratio * found->seconds, *found);
    }
    std::stable_sort(likely.begin(), likely.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    likely.resize(std::min({likely.size(), kLikelyAtOnce, kMostLikely - m_likely}));
    for (const auto& [seconds, estimated] : likely)
        add(field, estimated, ofMesh(candidates[estimated.index]));
    m_likely += likely.size();
    return !likely.empty();
}

void PlanTrials::Work::simulate(Try& one)
{
    {
        const std::scoped_lock lock(m_mutex);
        if (const auto known = m_known.find({one.field, one.estimated.index}); known != m_known.end()) {
            one.plan = known->second;
            one.isSettled = fitsIn(one.plan, one.share);
            return;
        }
    }
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
        one.isRefused = !m_options.stop.stop_requested();
        one.isSettled = !one.isRefused;
        return;
    }
    m_stopwatch.learn(guessed, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    takeTrial(one.plan, *std::move(trial));
    one.isSettled = fitsIn(one.plan, one.share);
    const std::scoped_lock lock(m_mutex);
    m_known.emplace(std::pair{one.field, one.estimated.index}, one.plan);
    one.field->explorer->learnBytes(one.estimated.index, bytesOf(one.plan));
}

/// The quickest of the group that splits the model otherwise than one that was refused.
void PlanTrials::Work::takeOther(Try& one)
{
    const auto& candidates = one.field->explorer->space().candidates();
    const Candidate refused = candidates[one.estimated.index];
    one.group = [refused, group = std::move(one.group)](const Candidate& c) {
        const bool isAlike = c.tp == refused.tp && c.cp == refused.cp && c.ep == refused.ep && c.pp == refused.pp
            && c.sequenceParallel == refused.sequenceParallel && c.ulysses == refused.ulysses;
        return !isAlike && group(c);
    };
    const auto other = one.field->explorer->best(one.group, one.limitBytes);
    one.isSettled = !other;
    if (!other)
        return;
    std::string line = fmt::format("{}: {}", meshText(one.plan.mesh), one.whyNot);
    addNew(m_notes.notSimulated, line);
    addNew(m_refusals, std::move(line));
    one.isRefused = false;
    one.whyNot.clear();
    one.estimated = *other;
    one.plan = one.field->planOf(*other);
    m_tried.push_back(candidates[other->index]);
}

/// The quickest of the group with so much less memory as was missing, or else the one that needs least.
void PlanTrials::Work::takeLess(Try& one)
{
    const double expected = one.field->explorer->expectedBytes(one.estimated.index);
    one.limitBytes = std::min(one.limitBytes, expected) * std::min(0.999, one.share * one.plan.capacityBytes / bytesOf(one.plan));
    auto less = one.field->explorer->best(one.group, one.limitBytes);
    if (!less) {
        less = one.field->explorer->smallest(one.group);
        if (less && less->bytes >= one.estimated.bytes)
            less.reset();
    }
    one.isSettled = !less;
    if (!less)
        return;
    FoundPlan plan = one.field->planOf(*less);
    if (Stopwatch::guess(plan, one.field->explorer->space().work().model.layers) > one.mostSeconds) {
        one.isSettled = true;
        return;
    }
    one.estimated = *less;
    one.plan = std::move(plan);
    m_tried.push_back(one.field->explorer->space().candidates()[less->index]);
}

void PlanTrials::Work::tryBest()
{
    choose();
    do
        settle();
    while (addLikely());
}

PlanTrials::Work::Slowness PlanTrials::Work::slownessOn(const TrialField& field) const
{
    const auto& candidates = field.explorer->space().candidates();
    Slowness slowness;
    forEachKnown([&](const TrialField& own, const FoundPlan& plan) {
        if (&own != &field)
            return;
        const double ratio = plan.seconds() / plan.modelSeconds;
        double& known = slowness.kinds.try_emplace(errorKey(candidates[plan.candidate]), ratio).first->second;
        known = std::min(known, ratio);
        slowness.least = std::min(slowness.least, ratio);
    });
    return slowness;
}

/// The quickest if estimates are as wrong as those of their kind were; where none fits by its estimate, the one that needs least.
std::optional<Estimated> PlanTrials::Work::likeliest(
    const TrialField& field, const PlanQuestion& question, const Slowness& slowness)
{
    PlanExplorer& explorer = *field.explorer;
    const double limit = question.share * explorer.capacityBytes();
    std::optional<Estimated> found;
    double quickest = question.belowSeconds;
    for (const auto& [kind, ofKind] : kindsOf(field)) {
        const double ratio = slowness.of(kind);
        if (const auto one = explorer.best(question.filter, limit, {&ofKind, quickest / ratio})) {
            found = one;
            quickest = ratio * one->seconds;
        }
    }
    return found || question.belowSeconds < kInfinite ? found : explorer.smallest(question.filter);
}

/// The candidates by `errorKey`, in the order of their bounds.
const std::map<std::uint32_t, std::vector<std::size_t>>& PlanTrials::Work::kindsOf(const TrialField& field)
{
    const auto [kinds, isNew] = m_kinds.try_emplace(&field);
    const auto& candidates = field.explorer->space().candidates();
    for (std::size_t index = 0; isNew && index < candidates.size(); ++index)
        kinds->second[errorKey(candidates[index])].push_back(index);
    return kinds->second;
}

/// As long as there is time, and no question of which the answer is simulated already. False: time was over.
bool PlanTrials::Work::ask(const TrialField& field, const std::vector<PlanQuestion>& questions, double mostSeconds)
{
    const std::int64_t layers = field.explorer->space().work().model.layers;
    const Slowness slowness = slownessOn(field);
    std::vector<Try> tries;
    for (const PlanQuestion& question : questions) {
        if (const auto estimated = likeliest(field, question, slowness)) {
            tries.push_back({&field, question.filter, question.share, *estimated});
            tries.back().plan = field.planOf(*estimated);
        }
    }
    std::ranges::stable_sort(tries, {}, [&](const Try& one) { return Stopwatch::guess(one.plan, layers); });
    std::set<std::size_t> asked;
    bool isDone = true;
    for (Try& one : tries) {
        if (Stopwatch::guess(one.plan, layers) > mostSeconds)
            break;
        if (!isKnown(field, one.estimated.index) && asked.insert(one.estimated.index).second && !m_options.deadline) {
            m_questionSeconds -= Stopwatch::guess(one.plan, layers);
            if (m_questionSeconds < 0.0) {
                isDone = false;
                break;
            }
        }
        one.limitBytes = one.share * field.explorer->capacityBytes();
        one.mostSeconds = mostSeconds;
        m_tries.push_back(std::move(one));
    }
    settle();
    return isDone && std::ranges::all_of(m_tries, [](const Try& one) { return one.whyNot.empty(); });
}

void PlanTrials::Work::settle()
{
    for (int round = 0; round < kMostRounds; ++round) {
        std::vector<Try*> open;
        for (Try& one : m_tries) {
            if (!one.isSettled)
                open.push_back(&one);
        }
        if (round > 0) {
            for (Try* one : open)
                one->isRefused ? takeOther(*one) : takeLess(*one);
            std::erase_if(open, [](const Try* one) { return one->isSettled; });
        }
        std::vector<Try*> again; // the same layouts: known then
        std::set<std::pair<const TrialField*, std::size_t>> taken;
        std::erase_if(open, [&](Try* one) {
            const bool isTaken = !taken.insert({one->field, one->estimated.index}).second;
            if (isTaken)
                again.push_back(one);
            return isTaken;
        });
        std::atomic<std::size_t> simulated = m_known.size();
        parallelFor(
            open.size(), workerCount(m_options.threads), {},
            [&](unsigned, std::size_t i) {
                simulate(*open[i]);
                if (m_options.progress)
                    m_options.progress({m_notes.candidates, m_notes.candidates, 0.0, 0.0, ++simulated});
            },
            1);
        for (Try* one : again)
            simulate(*one);
    }
    for (Try& one : m_tries)
        one.isSettled = true;
    m_notes.simulated = static_cast<std::int64_t>(m_known.size());
}

void PlanTrials::Work::learn(FoundPlan plan)
{
    const auto field = std::ranges::find_if(
        m_fields, [&](const TrialField& one) { return one.explorer->space().machine().name == plan.hardware; });
    const std::size_t candidate = plan.candidate;
    m_known.emplace(std::pair{&*field, candidate}, std::move(plan));
    m_notes.simulated = static_cast<std::int64_t>(m_known.size());
}

std::vector<FoundPlan> PlanTrials::Work::plans() const
{
    std::vector<FoundPlan> plans;
    std::vector<FoundPlan> tooLarge;
    m_notes.notSimulated = m_refusals; // of all that was asked until now
    std::set<std::string> notSimulated;
    for (const Try& one : m_tries) {
        FoundPlan plan = one.plan;
        if (!plan.simulatedSeconds) {
            if (notSimulated.insert(meshText(plan.mesh)).second)
                addNew(m_notes.notSimulated, fmt::format("{}: {}", meshText(plan.mesh), one.whyNot));
            setShares(plan, 0.0);
        }
        if (!one.isRefused)
            (plan.fits ? plans : tooLarge).push_back(std::move(plan));
    }
    forEachKnown([&](const TrialField&, const FoundPlan& plan) {
        if (plan.fits)
            plans.push_back(plan);
    });
    plans = quickestOf(std::move(plans));
    if (plans.empty()) {
        const auto least = std::min_element(
            tooLarge.begin(), tooLarge.end(), [](const FoundPlan& a, const FoundPlan& b) { return a.peakBytes < b.peakBytes; });
        if (least != tooLarge.end())
            plans.push_back(*least);
    }
    return plans;
}

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

PlanExplorer::Filter ofMesh(const Candidate& candidate)
{
    return [candidate](const Candidate& other) { return haveSameMesh(candidate, other); };
}

PlanTrials::PlanTrials(const std::vector<TrialField>& fields, const SearchOptions& options, SearchResult& notes)
    : m_work(std::make_unique<Work>(fields, options, notes))
{
}

PlanTrials::~PlanTrials() = default;

void PlanTrials::tryBest()
{
    m_work->tryBest();
}

bool PlanTrials::ask(const TrialField& field, const std::vector<PlanQuestion>& questions, double mostSeconds)
{
    return m_work->ask(field, questions, mostSeconds);
}

void PlanTrials::add(FoundPlan plan)
{
    m_work->learn(std::move(plan));
}

const FoundPlan* PlanTrials::quickest(const TrialField& field, const PlanQuestion& question) const
{
    const FoundPlan* found = nullptr;
    const auto& candidates = field.explorer->space().candidates();
    m_work->forEachKnown([&](const TrialField& own, const FoundPlan& plan) {
        if (&own == &field && fitsIn(plan, question.share) && question.filter(candidates[plan.candidate])
            && (found == nullptr || plan.seconds() < found->seconds()))
            found = &plan;
    });
    return found;
}

const FoundPlan* PlanTrials::smallest(const TrialField& field, const PlanExplorer::Filter& filter) const
{
    const FoundPlan* found = nullptr;
    const auto& candidates = field.explorer->space().candidates();
    m_work->forEachKnown([&](const TrialField& own, const FoundPlan& plan) {
        if (&own == &field && filter(candidates[plan.candidate]) && (found == nullptr || plan.peakBytes < found->peakBytes))
            found = &plan;
    });
    return found;
}

std::vector<FoundPlan> PlanTrials::plans() const
{
    return m_work->plans();
}

std::vector<FoundPlan> PlanTrials::front(double slack) const
{
    std::vector<FoundPlan> fitting;
    m_work->forEachKnown([&](const TrialField&, const FoundPlan& plan) {
        if (plan.fits)
            fitting.push_back(plan);
    });
    return frontOf(fitting, slack);
}

std::vector<FoundPlan> frontOf(const std::vector<FoundPlan>& fitting, double slack)
{
    std::map<std::string, double> quickest; // of each machine
    for (const FoundPlan& plan : fitting) {
        double& known = quickest.try_emplace(plan.hardware, kInfinite).first->second;
        known = std::min(known, plan.seconds());
    }
    std::vector<FoundPlan> front;
    for (const FoundPlan& plan : fitting) {
        const bool isBeaten = std::ranges::any_of(fitting, [&](const FoundPlan& other) { return beats(other, plan); });
        if (!isBeaten && plan.seconds() <= slack * quickest[plan.hardware])
            front.push_back(plan);
    }
    std::ranges::stable_sort(front, {}, &FoundPlan::seconds);
    std::map<std::string, double> bytes; // of the last one of each machine
    std::erase_if(front, [&](const FoundPlan& plan) {
        double& last = bytes.try_emplace(plan.hardware, kInfinite).first->second;
        if (plan.peakBytes > (1.0 - kFrontStep) * last)
            return true;
        last = plan.peakBytes;
        return false;
    });
    return front;
}

std::vector<FoundPlan> quickestOf(std::vector<FoundPlan> plans)
{
    std::stable_sort(plans.begin(), plans.end(), [](const FoundPlan& a, const FoundPlan& b) {
        if (a.simulatedSeconds.has_value() != b.simulatedSeconds.has_value())
            return a.simulatedSeconds.has_value();
        return a.seconds() < b.seconds();
    });
    std::set<std::string> meshes;
    std::erase_if(
        plans, [&](const FoundPlan& plan) { return !meshes.insert(plan.hardware + ": " + meshText(plan.mesh)).second; });
    return plans;
}

void setLosses(std::vector<FoundPlan>& plans, const CauseOf& causeOf)
{
    for (std::size_t i = 1; i < plans.size() && plans.front().simulatedSeconds; ++i) {
        if (plans[i].simulatedSeconds)
            plans[i].why.insert(plans[i].why.begin(), whySlower(plans[i], plans.front(), causeOf));
    }
}

double bytesOf(const FoundPlan& plan)
{
    double bytes = 0.0;
    for (const NamedShare& share : plan.memory)
        bytes += share.amount;
    return bytes;
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
    setShares(plan, trial.reserveBytes);
}

void setShares(FoundPlan& plan, double reserveBytes)
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
        sentences.push_back(fmt::format("needs {} of {}{}{}", formatBytes(needed), formatBytes(plan.capacityBytes),
            largest.empty() ? "" : ": ", join(largest, ", ")));
    }
    sentences.push_back(largestShares(plan.time));
    const double left = 1.0 - needed / plan.capacityBytes;
    if (plan.fits && left < kThinHeadroom)
        sentences.push_back(fmt::format("headroom {:.0f} %: little room for what is not foreseen", 100.0 * left));
    plan.why.insert(plan.why.begin(), sentences.begin(), sentences.end());
}

std::string whySlower(const FoundPlan& plan, const FoundPlan& best, const CauseOf& causeOf)
{
    const double step = best.seconds();
    const double mine = plan.seconds();
    std::map<std::string, NamedShare> change;
    for (const auto& [time, sign] : {std::pair(&plan.time, 1.0), {&best.time, -1.0}}) {
        for (const NamedShare& share : *time) {
            change[share.name].part = share.part;
            change[share.name].amount += sign * share.amount;
        }
    }
    if (mine <= kAsQuick * step || change.empty())
        return "as quick";
    const auto [least, most] = std::minmax_element(
        change.begin(), change.end(), [](const auto& a, const auto& b) { return a.second.amount < b.second.amount; });
    const auto part = [&](const auto& one) {
        const bool isWaited = one.second.part.kind == StepPart::Kind::Collective;
        return fmt::format("{:+.1f} % {}{}", 100.0 * one.second.amount / step, isWaited ? "exposed " : "", one.first);
    };
    const std::string cause = causeOf(most->second.part, plan, best);
    std::string text = (cause.empty() ? "" : cause + ": ") + part(*most);
    if (most->second.amount > kWonBack * (mine - step) && least->second.amount < -0.001 * step)
        text += "; " + part(*least);
    return text;
}

} // namespace meshwright::sim
