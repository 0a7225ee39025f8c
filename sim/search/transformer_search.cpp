// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/transformer_search.h"

#include "core/models/transformer.h"
#include "core/study/study.h"
#include "core/support/counted.h"
#include "core/support/text.h"
#include "sim/search/axis_order.h"
#include "sim/search/plan_explorer.h"
#include "sim/search/plan_proof.h"
#include "sim/search/plan_reasons.h"
#include "sim/search/plan_trials.h"
#include "sim/search/search_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <span>

namespace meshwright::sim {

namespace {

constexpr double kFrontSlack = 1.5; ///< the front lists plans up to so many times as slow as the best
constexpr double kLessMemory = 0.80;
constexpr double kFrontShares[]
    = {0.6, 0.4, 0.25}; ///< of a device's memory: for the front, plans of the first one's kind that take no more
constexpr std::size_t kQuickLooks = 64;

/// One machine's space, and who looks through it.
struct Field {
    std::unique_ptr<TransformerSpace> space;
    std::unique_ptr<PlanExplorer> explorer;
    std::vector<Estimated> best;
};

const char* scheduleOf(const Candidate& c)
{
    if (c.pp == 1)
        return "none";
    return scheduleName(c.schedule);
}

struct TransformerTemplate {
    enum class By : std::uint8_t { Batch, Heads, Both }; ///< what all devices together split
    const char* name;
    By split;
    std::vector<AxisRole> axes; ///< besides those of data; all others are 1
    bool (*is)(const Candidate&, std::int64_t fastDomain); ///< what its data ranks split
    bool isInHost = false; ///< weights are split among devices that share fast links

    bool has(AxisRole role) const { return std::ranges::find(axes, role) != axes.end(); }
};

const std::vector<TransformerTemplate>& transformerTemplates()
{
    using enum AxisRole;
    using By = TransformerTemplate::By;
    static const std::vector<TransformerTemplate> templates = {
        {"data parallel", By::Batch, {}, [](const Candidate& c, std::int64_t) { return c.zero == 0; }},
        {"ZeRO-1 data parallel", By::Batch, {}, [](const Candidate& c, std::int64_t) { return c.zero == 1; }},
        {"FSDP (ZeRO-3)", By::Batch, {}, [](const Candidate& c, std::int64_t) { return c.zero == 3 && c.fsdp == c.dp; }},
        {"FSDP in the host, replicas across", By::Batch, {},
            [](const Candidate& c, std::int64_t domain) { return c.zero == 3 && c.fsdp == domain && c.dp > domain; }, true},
        {"tensor parallel alone", By::Heads, {Tensor}, [](const Candidate& c, std::int64_t) { return c.dp == 1; }},
        {"tensor x data", By::Both, {Tensor}, [](const Candidate& c, std::int64_t) { return c.dp > 1 && c.zero <= 1; }},
        {"FSDP x tensor (2-D)", By::Both, {Tensor},
            [](const Candidate& c, std::int64_t) { return c.zero == 3 && c.fsdp == c.dp; }},
        {"pipeline x data", By::Both, {Pipeline}, [](const Candidate& c, std::int64_t) { return c.zero <= 1; }},
        {"tensor x pipeline x data (Megatron)", By::Both, {Tensor, Pipeline},
            [](const Candidate& c, std::int64_t) { return c.zero <= 1; }},
        {"context x FSDP", By::Both, {Context}, [](const Candidate& c, std::int64_t) { return c.zero == 3; }},
        {"expert x FSDP", By::Both, {Expert}, [](const Candidate& c, std::int64_t) { return c.zero == 3; }},
    };
    return templates;
}

/// A choice that plans differ in.
struct Choice {
    const char* name;
    std::int64_t (*value)(const Candidate&);
};
constexpr Choice kChoices[] = {
    {"tensor", [](const Candidate& c) { return std::int64_t{c.tp}; }},
    {"pipeline", [](const Candidate& c) { return std::int64_t{c.pp}; }},
    {"context", [](const Candidate& c) { return std::int64_t{c.cp}; }},
    {"expert", [](const Candidate& c) { return std::int64_t{c.ep}; }},
    {"zero", [](const Candidate& c) { return std::int64_t{c.zero}; }},
    {"fsdp", [](const Candidate& c) { return axisSize(c, AxisRole::Fsdp); }},
    {"microbatch", [](const Candidate& c) { return std::int64_t{c.microbatch}; }},
    {"recompute", [](const Candidate& c) { return std::int64_t{c.recompute}; }},
    {"schedule", [](const Candidate& c) { return c.pp > 1 ? 100 * static_cast<std::int64_t>(c.schedule) + c.chunks : 0; }},
};

/// Choices that may be fixed besides.
constexpr Choice kOtherChoices[] = {
    {"data", [](const Candidate& c) { return axisSize(c, AxisRole::Data); }},
    {"chunks", [](const Candidate& c) { return std::int64_t{c.chunks}; }},
};

std::string choiceText(const Choice& choice, const Candidate& c, const TransformerSpace& space)
{
    const std::string name = choice.name;
    if (name == "recompute")
        return fmt::format("recompute={}", space.recomputeName(c));
    if (name == "schedule")
        return c.chunks > 1 ? fmt::format("{} of {} chunks", scheduleOf(c), c.chunks) : fmt::format("schedule {}", scheduleOf(c));
    if (name == "zero")
        return c.zero == 0 ? std::string("no ZeRO") : fmt::format("ZeRO stage {}", c.zero);
    return fmt::format("{}={}", name, choice.value(c));
}

/// The choices that a layout could make otherwise.
std::vector<const Choice*> choicesOf(const Candidate& chosen, const TransformerSpace& space)
{
    std::vector<const Choice*> choices;
    for (const Choice& choice : kChoices) {
        const std::string_view name = choice.name;
        if ((name != "expert" || space.work().model.experts > 0) && (name != "schedule" || chosen.pp > 1))
            choices.push_back(&choice);
    }
    return choices;
}

/// Layouts that make a choice otherwise. A schedule is compared with others of as many stages.
PlanExplorer::Filter otherwise(const Choice& choice, const Candidate& chosen)
{
    const bool staysPiped = std::string_view(choice.name) == "schedule";
    return [=](const Candidate& c) { return choice.value(c) != choice.value(chosen) && (!staysPiped || c.pp == chosen.pp); };
}

/// Whether two layouts differ in a choice, and in no other but for sizes that follow: of data ranks and microbatches.
PlanExplorer::Filter neighbours(const Choice& choice, const Candidate& chosen)
{
    return [=, isOther = otherwise(choice, chosen)](const Candidate& c) {
        const auto isFree = [&](std::string_view name) { return name == choice.name || name == "fsdp" || name == "microbatch"; };
        return isOther(c) && std::ranges::all_of(kChoices, [&](const Choice& one) {
            return isFree(one.name) || (std::string_view(one.name) == "schedule" && (c.pp == 1 || chosen.pp == 1))
                || one.value(c) == one.value(chosen);
        });
    };
}

/// What a layout is compared with: its neighbours, and any others.
std::vector<PlanQuestion> otherChoices(const TrialField& field, std::size_t candidate)
{
    const TransformerSpace& space = field.explorer->space();
    const Candidate& chosen = space.candidates()[candidate];
    std::vector<PlanQuestion> questions;
    for (const auto& filterOf : {neighbours, otherwise}) {
        for (const Choice* choice : choicesOf(chosen, space))
            questions.push_back({filterOf(*choice, chosen)});
    }
    return questions;
}

PlanExplorer::Filter templateFilter(const TransformerTemplate& named, const TrialField& field)
{
    return [&named, domain = field.explorer->cluster().fastDomain()](const Candidate& c) {
        using enum AxisRole;
        return named.is(c, domain) && std::ranges::all_of(std::array{Pipeline, Expert, Context, Tensor}, [&](AxisRole role) {
            return (axisSize(c, role) > 1) == named.has(role);
        });
    };
}

std::vector<PlanQuestion> templateQuestions(const TrialField& field)
{
    std::vector<PlanQuestion> questions;
    for (const TransformerTemplate& named : transformerTemplates())
        questions.push_back({templateFilter(named, field)});
    return questions;
}

/// Which axes a step waits for.
std::vector<AxisLoad> loadsOf(const std::vector<MeshAxis>& mesh, const StepEstimate& step, const Candidate& c)
{
    std::vector<AxisLoad> loads
        = {{"tensor", step.tensor}, {"context", step.context + step.data}, {"expert", step.expert}, {"pipeline", step.send}};
    // What is exchanged between data ranks goes over all their axes, and over the ranks that share sequences.
    for (const MeshAxis& axis : mesh) {
        if (axis.name == "fsdp" || (axis.name == "data" && (c.zero < 3 || c.fsdp == 1)))
            loads.push_back({axis.name, step.data});
    }
    return loads;
}

class Search {
public:
    Search(const SearchWork& work, const std::vector<SearchMachine>& machines, const std::vector<FixedChoice>& fixed,
        const SearchOptions& options, const std::vector<SearchMachine>& larger)
        : m_work(work)
        , m_machines(machines)
        , m_fixed(fixed)
        , m_options(options)
        , m_larger(larger)
    {
        for (SearchMachine& machine : m_machines)
            machine.layerFactor = layerFactor(machine);
    }

    SearchResult run();

private:
    bool stopped() const { return m_options.stop.stop_requested(); }
    double layerFactor(const SearchMachine& machine) const;
    Field fieldOf(const SearchMachine& machine, const std::vector<FixedChoice>& fixed) const;
    void lookQuickly(const SearchMachine& machine);
    FoundPlan planOf(Field& field, const Estimated& estimated) const;
    FoundPlan toldPlanOf(Field& field, const Estimated& estimated) const; ///< with sentences of its estimates
    FoundPlan simulatedPlanOf(Field& field, const Estimated& estimated);
    std::optional<std::pair<FoundPlan, std::size_t>> fittingPlan(Field& field);
    TrialField trialOf(Field& field, std::vector<Estimated> best) const;
    void addEstimatedPlans(std::vector<Field>& fields);
    void addSimulatedPlans(std::vector<Field>& fields);
    bool askOthers(PlanTrials& trials, const TrialField& field) const;
    std::vector<PlanQuestion> meshQuestions(const PlanTrials& trials, const TrialField& field) const;
    std::string whyNoTemplate(const TransformerTemplate& named, const TrialField& field) const;
    void addTemplates(const PlanTrials& trials, const TrialField& field);
    void addOthers(const PlanTrials& trials, const TrialField& field);
    void addMemoryPrice(const PlanTrials& trials, const TrialField& field);
    void provePlans(const std::vector<TrialField>& fields, PlanTrials& trials);
    void addChanges(Field& field);
    bool addTightPlans(Field& field);
    static CauseOf causeOn(std::span<const TrialField> fields);

    const SearchWork& m_work;
    std::vector<SearchMachine> m_machines;
    const std::vector<FixedChoice>& m_fixed;
    const SearchOptions& m_options;
    const std::vector<SearchMachine>& m_larger;
    PlanExplorer::Clock::time_point m_start = PlanExplorer::Clock::now();
    SearchResult m_result;
    std::optional<Field> m_quick; ///< a small part of the first space, with its best plan
};

/// Programs of experts and of states do more than the formulas know: as much as simulating the layers on one device tells.
double Search::layerFactor(const SearchMachine& machine) const
{
    const std::vector<TransformerConfig> groups = layerGroups(m_work.model);
    const bool isKnown
        = std::ranges::none_of(groups, [](const TransformerConfig& group) { return group.isRecurrent() || group.experts > 0; });
    if (isKnown || !m_options.layerTime || stopped())
        return 1.0;
    const auto simulated = m_options.layerTime(m_work, machine);
    const double estimated = TransformerSpace::layerSeconds(m_work, machine);
    return simulated && *simulated > 0.0 && estimated > 0.0 ? *simulated / estimated : 1.0;
}

/// What leaves a small part of a space.
const std::vector<FixedChoice>& plainChoices()
{
    static const std::vector<FixedChoice> choices
        = {{"context", "1"}, {"microbatch", "1"}, {"recompute", "full"}, {"chunks", "1"}, {"schedule", "1f1b"}, {"zero", "1"}};
    return choices;
}

/// A first plan within milliseconds: the best of the plain layouts, before the whole space is made.
void Search::lookQuickly(const SearchMachine& machine)
{
    std::vector<FixedChoice> fixed = m_fixed;
    for (const FixedChoice& choice : plainChoices()) {
        if (std::ranges::find(m_fixed, choice.name, &FixedChoice::name) == m_fixed.end())
            fixed.push_back(choice);
    }
    Field field = fieldOf(machine, fixed);
    if (field.space->candidates().empty())
        return;
    const auto found
        = field.explorer->best([](const Candidate&) { return true; }, field.explorer->capacityBytes(), {.most = kQuickLooks});
    if (!found)
        return;
    m_result.firstPlanSeconds = std::chrono::duration<double>(PlanExplorer::Clock::now() - m_start).count();
    field.best = {*found};
    m_quick = std::move(field);
}

Field Search::fieldOf(const SearchMachine& machine, const std::vector<FixedChoice>& fixed) const
{
    Field field;
    field.space
        = std::make_unique<TransformerSpace>(m_work, machine, onMachine(fixed, machine), m_options.threads, m_options.stop);
    PlanExplorer::Limits limits{m_options.threads, m_options.stop, {}};
    if (m_options.progress)
        limits.progress = [this, all = static_cast<std::int64_t>(field.space->candidates().size())](
                              std::size_t looked, double best, double bound) {
            m_options.progress(
                {static_cast<std::int64_t>(looked), all, best < std::numeric_limits<double>::infinity() ? best : 0.0, bound});
        };
    field.explorer = std::make_unique<PlanExplorer>(*field.space, std::move(limits));
    return field;
}

FoundPlan Search::planOf(Field& field, const Estimated& estimated) const
{
    const Candidate& c = field.space->candidates()[estimated.index];
    const StepEstimate step = field.explorer->details(estimated.index);
    const SearchMachine& machine = field.space->machine();
    FoundPlan plan = layoutOf(*field.space, c);
    plan.candidate = estimated.index;
    plan.modelSeconds = step.seconds;
    plan.peakBytes = step.memory.total() - step.memory.reserve; // as the simulator counts
    plan.capacityBytes = step.capacityBytes;
    plan.fits = step.fits;
    plan.mfu = step.mfuCausal; // of what is computed, as the simulator counts
    plan.time = timeShares(step, c);
    plan.memory = memoryShares(step.memory);
    plan.boundBy = largestShare(plan.time);
    if (machine.dollarsPerChipHour)
        plan.dollarsPerStep = dollarsOf(step.seconds, machine.chips, *machine.dollarsPerChipHour);
    for (std::string& sentence : placeSentences(c, field.explorer->cluster(), machine))
        plan.why.push_back(std::move(sentence));
    if (machine.links) {
        for (std::string& sentence : orderSentences(plan.mesh, loadsOf(plan.mesh, step, c), *machine.links))
            plan.why.push_back(std::move(sentence));
    }
    return plan;
}

FoundPlan Search::toldPlanOf(Field& field, const Estimated& estimated) const
{
    FoundPlan plan = planOf(field, estimated);
    setShares(plan, 0.0);
    return plan;
}

TrialField Search::trialOf(Field& field, std::vector<Estimated> best) const
{
    return {field.explorer.get(), std::move(best), [this, &field](const Estimated& one) { return planOf(field, one); }};
}

void Search::addEstimatedPlans(std::vector<Field>& fields)
{
    for (Field& field : fields) {
        for (const Estimated& estimated : field.best)
            m_result.plans.push_back(toldPlanOf(field, estimated));
    }
    std::ranges::stable_sort(m_result.plans, {}, &FoundPlan::modelSeconds);
}

/// The best plans of all fields as the simulator has them, and what others lose against the first.
void Search::addSimulatedPlans(std::vector<Field>& fields)
{
    std::vector<TrialField> tried;
    for (Field& field : fields)
        tried.push_back(trialOf(field, field.best));
    PlanTrials trials(tried, m_options, m_result);
    trials.tryBest();
    const auto firstField = [&]() -> const TrialField* {
        const std::vector<FoundPlan> front = trials.front(1.0);
        const auto field = std::ranges::find_if(tried, [&](const TrialField& one) {
            return !front.empty() && one.explorer->space().machine().name == front.front().hardware;
        });
        return field == tried.end() ? nullptr : &*field;
    };
    bool isDone = true;
    m_result.lowerBoundSeconds = 0.0; // the estimate's says nothing of simulated steps
    m_result.gap = 1.0;
    if (const TrialField* field = firstField()) {
        isDone = askOthers(trials, *field);
        if (m_options.floor)
            provePlans(tried, trials);
    }
    m_result.plans = trials.plans();
    if (const TrialField* field = m_options.explains ? firstField() : nullptr) {
        m_result.areAnswersSimulated = true;
        m_result.front = trials.front(kFrontSlack);
        addOthers(trials, *field);
        addMemoryPrice(trials, *field);
        addTemplates(trials, *field);
    }
    std::set<std::string> machines; // of several the best mesh of each
    std::erase_if(
        m_result.plans, [&](const FoundPlan& plan) { return fields.size() > 1 && !machines.insert(plan.hardware).second; });
    if (m_result.plans.size() > std::max(m_options.top, fields.size()))
        m_result.plans.resize(std::max(m_options.top, fields.size()));
    setLosses(m_result.plans, causeOn(tried));
    if (!isDone)
        m_result.assumptions.emplace_back(m_options.deadline
                ? "not all other choices and templates were simulated: the time limit left too little for them"
                : "not all other choices and templates were simulated, as that takes long here: --time-limit 120 gives them "
                  "time");
}

/// What other settings that may be quicker take on each mesh that is shown: the estimate may have their order wrong.
std::vector<PlanQuestion> Search::meshQuestions(const PlanTrials& trials, const TrialField& field) const
{
    const TransformerSpace& space = field.explorer->space();
    std::vector<FoundPlan> shown = trials.plans();
    std::erase_if(shown, [&](const FoundPlan& plan) { return plan.hardware != space.machine().name; });
    shown.resize(std::min(shown.size(), m_options.top));
    std::vector<PlanQuestion> questions;
    for (const FoundPlan& plan : shown) {
        const Candidate& chosen = space.candidates()[plan.candidate];
        for (const Choice* choice : choicesOf(chosen, space))
            questions.push_back({[isOther = otherwise(*choice, chosen), isOfMesh = ofMesh(chosen)](
                                     const Candidate& c) { return isOther(c) && isOfMesh(c); },
                1.0, plan.seconds()});
    }
    return questions;
}

/// What other choices than those of the first plan take, and templates, and more or less memory. What is met thereby may be the first itself. False: there
/// was not time for all.
bool Search::askOthers(PlanTrials& trials, const TrialField& field) const
{
    constexpr int kMostFirsts = 3; // plans that were first in turn
    constexpr double kSoonSeconds = 0.25; // no pipelines
    constexpr double kSoonOfMeshSeconds = 1.0; // short ones too: what is shown is to be as good as its mesh allows
    const PlanQuestion any{[](const Candidate&) { return true; }};
    const auto questionsOf = [&](const FoundPlan& first) {
        std::vector<PlanQuestion> questions = otherChoices(field, first.candidate);
        if (!m_options.explains)
            return questions;
        std::ranges::move(templateQuestions(field), std::back_inserter(questions));
        questions.insert(questions.end(), {{any.filter, kMoreMemory}, {any.filter, kLessMemory}});
        const std::uint32_t kind = kindKey(field.explorer->space().candidates()[first.candidate]);
        for (const double share : kFrontShares)
            questions.push_back({[kind](const Candidate& c) { return kindKey(c) == kind; }, share});
        return questions;
    };
    const FoundPlan* asked = nullptr;
    for (int times = 0; times < kMostFirsts && asked != trials.quickest(field, any) && !stopped(); ++times) {
        asked = trials.quickest(field, any);
        trials.ask(field, questionsOf(*asked), kSoonSeconds);
        trials.ask(field, meshQuestions(trials, field), kSoonOfMeshSeconds);
    }
    return !m_options.explains || trials.ask(field, questionsOf(*trials.quickest(field, any)));
}

CauseOf Search::causeOn(std::span<const TrialField> fields)
{
    return [fields](const StepPart& part, const FoundPlan& plan, const FoundPlan& best) {
        const auto field = std::ranges::find_if(
            fields, [&](const TrialField& one) { return one.explorer->space().machine().name == plan.hardware; });
        if (field == fields.end() || plan.hardware != best.hardware)
            return std::string{};
        const TransformerSpace& space = field->explorer->space();
        return causeOf(
            part, space.candidates()[plan.candidate], space.candidates()[best.candidate], space, field->explorer->cluster());
    };
}

/// How far the best plan may be from the quickest, by what is simulated; what is quicker takes its place.
void Search::provePlans(const std::vector<TrialField>& fields, PlanTrials& trials)
{
    PlanProof proof = provedPlans(fields, trials.plans(), m_options);
    m_result.floors = proof.floors;
    for (FoundPlan& plan : proof.simulated)
        trials.add(std::move(plan));
    m_result.lowerBoundSeconds = proof.lowerBoundSeconds;
    m_result.gap = 1.0 - proof.lowerBoundSeconds / trials.front(1.0).front().seconds();
    m_result.isGapSimulated = true;
    m_result.complete = m_result.complete && proof.complete;
}

/// Why the space has no layout of a kind, as `--fix` says it of the axis that cannot be.
std::string Search::whyNoTemplate(const TransformerTemplate& named, const TrialField& field) const
{
    const TransformerSpace& space = field.explorer->space();
    const std::int64_t devices = space.machine().cluster.devices;
    if (named.split == TransformerTemplate::By::Batch && m_work.globalBatch % devices != 0)
        return fmt::format("{} sequences are not divisible by {} data ranks", m_work.globalBatch, devices);
    if (named.split == TransformerTemplate::By::Heads && m_work.model.heads % devices != 0)
        return fmt::format("{} heads are not divisible by tensor={}", m_work.model.heads, devices);
    if (field.explorer->cluster().fastDomain() >= devices && named.isInHost)
        return "all devices share the fast links: the same as FSDP";
    if (!m_fixed.empty())
        return "the fixed choices leave no layout of this kind";
    for (const AxisRole axis : named.axes) {
        if (std::ranges::any_of(space.candidates(), [&](const Candidate& c) { return axisSize(c, axis) > 1; }))
            continue;
        std::int64_t degree = 2; // the smallest that the devices can have
        while (degree < devices && devices % degree != 0)
            ++degree;
        if (const auto reasons = whyNoLayout(m_work, space.machine(), {{axisRoleName(axis), std::to_string(degree)}});
            !reasons.empty())
            return reasons.front();
    }
    return fmt::format("no degrees of these axes make the {} devices of {} and divide {} sequences and {} heads", devices,
        space.machine().name, m_work.globalBatch, m_work.model.heads);
}

void Search::addTemplates(const PlanTrials& trials, const TrialField& field)
{
    const TransformerSpace& space = field.explorer->space();
    const FoundPlan* best = trials.quickest(field, {[](const Candidate&) { return true; }});
    for (const TransformerTemplate& named : transformerTemplates()) {
        if (named.has(AxisRole::Expert) && m_work.model.experts == 0)
            continue;
        const PlanExplorer::Filter is = templateFilter(named, field);
        TemplateScore score;
        score.name = named.name;
        const FoundPlan* found = trials.quickest(field, {is});
        score.fits = found != nullptr;
        if (found == nullptr)
            found = trials.smallest(field, is);
        if (found != nullptr) {
            score.mesh = meshText(found->mesh);
            score.seconds = found->seconds();
            score.loss = best != nullptr ? found->seconds() / best->seconds() - 1.0 : 0.0;
            score.why = !score.fits ? found->why.front()
                : found == best     ? "the best"
                                    : whySlower(*found, *best, causeOn({&field, 1}));
        } else if (std::ranges::any_of(space.candidates(), is)) {
            score.why = "not simulated";
        } else {
            score.why = whyNoTemplate(named, field);
        }
        m_result.templates.push_back(std::move(score));
    }
}

void Search::addOthers(const PlanTrials& trials, const TrialField& field)
{
    const TransformerSpace& space = field.explorer->space();
    const FoundPlan& best = *trials.quickest(field, {[](const Candidate&) { return true; }});
    const Candidate& chosen = space.candidates()[best.candidate];
    for (const Choice* choice : choicesOf(chosen, space)) {
        const FoundPlan* found = trials.quickest(field, {otherwise(*choice, chosen)});
        if (found == nullptr)
            continue;
        m_result.others.push_back(
            {choiceText(*choice, chosen, space), choiceText(*choice, space.candidates()[found->candidate], space),
                found->seconds(), found->seconds() / best.seconds() - 1.0, whySlower(*found, best, causeOn({&field, 1}))});
    }
}

void Search::addMemoryPrice(const PlanTrials& trials, const TrialField& field)
{
    const auto any = [](const Candidate&) { return true; };
    const FoundPlan& first = *trials.quickest(field, {any});
    const double best = first.seconds();
    const double capacity = first.capacityBytes;
    const FoundPlan* more = trials.quickest(field, {any, kMoreMemory});
    const double gained = best - more->seconds();
    m_result.secondsPerGib = gained / ((kMoreMemory - 1.0) * capacity / kGiB);
    m_result.memoryNotes.push_back(gained > 0.0
            ? fmt::format("with {} a device in place of {}: {} a step, {:.1f} % less ({:.2g} s for each GiB)",
                formatBytes(kMoreMemory * capacity), formatBytes(capacity), formatSeconds(more->seconds()), 100.0 * gained / best,
                *m_result.secondsPerGib)
            : fmt::format("with {} a device in place of {} no plan that was simulated is quicker: memory does not bind",
                formatBytes(kMoreMemory * capacity), formatBytes(capacity)));
    if (const FoundPlan* less = trials.quickest(field, {any, kLessMemory}))
        m_result.memoryNotes.push_back(less == &first
                ? fmt::format("{} a device would do as well", formatBytes(kLessMemory * capacity))
                : fmt::format("with {} a device: {} a step, {:.1f} % more", formatBytes(kLessMemory * capacity),
                    formatSeconds(less->seconds()), 100.0 * (less->seconds() / best - 1.0)));
}

/// What a fixed choice can be beside the others. `freed`: the space where it is not fixed.
std::string possibleValues(const FixedChoice& fixed, const TransformerSpace& freed)
{
    constexpr std::size_t kMostTold = 12;
    const auto isIt = [&](const Choice& one) { return fixed.name == one.name; };
    const auto known = std::ranges::find_if(kChoices, isIt);
    const Choice& choice = known != std::end(kChoices) ? *known : *std::ranges::find_if(kOtherChoices, isIt);
    const bool isWord = fixed.name == "recompute" || fixed.name == "schedule";
    std::map<std::int64_t, std::string> values;
    for (const Candidate& c : freed.candidates()) {
        const std::int64_t value = choice.value(c);
        if (!values.contains(value))
            values.emplace(value, isWord ? choiceText(choice, c, freed) : std::to_string(value));
    }
    const auto wanted = parseInteger(fixed.value);
    const auto nearest = std::ranges::min_element(values, {},
        [&](const auto& one) { return std::abs(static_cast<double>(one.first) - static_cast<double>(wanted.value_or(0))); });
    std::vector<std::string> told;
    for (const auto& [value, text] : values) {
        if (told.size() < kMostTold)
            told.push_back(text);
    }
    return fmt::format("{}={}: with the other choices as they are, possible {} {}{}{}", fixed.name, fixed.value,
        values.size() > 1 ? "are" : "is", join(told, ", "), values.size() > told.size() ? " and more" : "",
        isWord || values.size() == 1 ? std::string() : fmt::format("; the nearest is {}", nearest->second));
}

/// The plan with what the simulator says of it, where there is a simulator and it can.
FoundPlan Search::simulatedPlanOf(Field& field, const Estimated& estimated)
{
    FoundPlan plan = planOf(field, estimated);
    std::string whyNot;
    auto trial = m_options.simulate ? m_options.simulate(plan, field.space->machine(), whyNot) : std::nullopt;
    if (!trial) {
        setShares(plan, 0.0);
        return plan;
    }
    ++m_result.simulated;
    takeTrial(plan, *std::move(trial));
    return plan;
}

/// The quickest plan that fits, and the number of its candidate; nothing where none does by the estimate. Where the simulation asks for more memory than
/// that, the quickest with so much less is tried, and last the one that needs least.
std::optional<std::pair<FoundPlan, std::size_t>> Search::fittingPlan(Field& field)
{
    constexpr int kMostTries = 3;
    const auto any = [](const Candidate&) { return true; };
    double limit = field.explorer->capacityBytes();
    auto estimated = field.explorer->best(any, limit);
    for (int tries = 1; estimated && tries <= kMostTries && !stopped(); ++tries) {
        FoundPlan plan = simulatedPlanOf(field, *estimated);
        if (plan.fits)
            return std::pair(std::move(plan), estimated->index);
        limit = std::min(limit, estimated->bytes) * std::min(0.999, plan.capacityBytes / bytesOf(plan));
        const auto less = tries + 1 < kMostTries ? field.explorer->best(any, limit) : std::nullopt;
        estimated = less ? less : field.explorer->smallest(any);
    }
    return std::nullopt;
}

/// "mesh data=2, 71.3 GiB of 80.0 GiB, 3.10 s a step"
std::string figuresText(const FoundPlan& plan)
{
    return fmt::format("{} of {}, {} a step{}", formatBytes(plan.peakBytes), formatBytes(plan.capacityBytes),
        formatSeconds(plan.seconds()), plan.simulatedSeconds ? "" : " (estimated)");
}

/// The smallest changes that would make a plan fit; where no layout is legal, also what each fixed choice can be.
void Search::addChanges(Field& field)
{
    const bool isNoneLegal = m_result.candidates == 0 && m_result.complete;
    const auto any = [](const Candidate&) { return true; };
    const SearchMachine& machine = field.space->machine();
    for (std::size_t i = 0; i < m_fixed.size() && !stopped(); ++i) {
        std::vector<FixedChoice> others = m_fixed;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
        Field freed = fieldOf(machine, others);
        if (isNoneLegal && !freed.space->candidates().empty())
            m_result.whyNone.push_back(possibleValues(onMachine(m_fixed, machine)[i], *freed.space));
        if (const auto found = fittingPlan(freed)) {
            const Candidate& c = freed.space->candidates()[found->second];
            const auto choice = std::find_if(
                std::begin(kChoices), std::end(kChoices), [&](const Choice& one) { return m_fixed[i].name == one.name; });
            const std::string instead = choice != std::end(kChoices) ? choiceText(*choice, c, *freed.space)
                                                                     : fmt::format("mesh {}", meshText(meshOf(c)));
            m_result.changes.push_back(
                fmt::format("{} in place of {}={}: {}", instead, m_fixed[i].name, m_fixed[i].value, figuresText(found->first)));
        }
    }
    for (std::int64_t step = 1; isNoneLegal && m_fixed.empty() && step < machine.chips && !stopped(); ++step) {
        SearchMachine smaller = machine;
        smaller.chips -= step;
        smaller.cluster.devices = smaller.chips * machine.chip.devicesPerChip;
        smaller.cluster.slice.clear();
        const Field fewer = fieldOf(smaller, plainChoices());
        if (!fewer.space->candidates().empty()) {
            m_result.changes.push_back(
                fmt::format("{} chips in place of {}, the nearest number below that can be split", smaller.chips, machine.chips));
            break;
        }
    }
    if (isNoneLegal && m_result.whyNone.empty())
        m_result.whyNone.emplace_back("the fixed choices exclude each other: no single one of them can be given up for a layout");
    const auto least = field.explorer->smallest(any);
    if (least) {
        const Candidate& c = field.space->candidates()[least->index];
        m_result.plans.push_back(simulatedPlanOf(field, *least));
        const double needed = bytesOf(m_result.plans.back());
        m_result.memoryNotes.push_back(fmt::format(
            "the least that any plan needs is {} a device: {}, microbatches of {}, recompute={}, {}", formatBytes(needed),
            meshText(meshOf(c)), c.microbatch, field.space->recomputeName(c), choiceText(kChoices[4], c, *field.space)));
        for (const SearchMachine& other : m_larger) {
            const double bytes = Cluster(other.chip, other.cluster, other.constants).capacityBytes();
            if (bytes >= needed) {
                m_result.changes.push_back(fmt::format("{}, whose devices have {}", other.chip.name, formatBytes(bytes)));
                break;
            }
        }
    }
    for (std::int64_t factor = 2; factor <= 64 && factor * machine.chips <= kMostChips && !stopped(); factor *= 2) {
        SearchMachine wider = machine;
        wider.chips *= factor;
        wider.cluster.devices *= factor;
        wider.cluster.slice.clear();
        if (!canBeBuilt(wider))
            break;
        Field wide = fieldOf(wider, m_fixed);
        if (const auto found = fittingPlan(wide)) {
            m_result.changes.push_back(fmt::format("{} chips in place of {}: {}, {}", wider.chips, machine.chips,
                meshText(found->first.mesh), figuresText(found->first)));
            break;
        }
    }
}

/// The smallest plans that the estimate finds a little too large: its memory is not a program's. True when the simulator finds room for one.
bool Search::addTightPlans(Field& field)
{
    constexpr double kTooLarge = 1.5; // times the memory of a device
    constexpr std::size_t kMostTight = 4;
    const auto& candidates = field.space->candidates();
    std::set<std::string> meshes;
    std::vector<Estimated> tight;
    while (m_options.simulate && tight.size() < kMostTight && !stopped()) {
        const auto next = field.explorer->smallest([&](const Candidate& c) { return !meshes.contains(meshText(meshOf(c))); });
        if (!next || next->bytes > kTooLarge * field.explorer->capacityBytes())
            break;
        meshes.insert(meshText(meshOf(candidates[next->index])));
        tight.push_back(*next);
    }
    if (tight.empty())
        return false;
    const std::vector<TrialField> fields = {trialOf(field, tight)};
    PlanTrials trials(fields, m_options, m_result);
    trials.tryBest();
    auto plans = trials.plans();
    if (plans.empty() || !plans.front().fits || !plans.front().simulatedSeconds)
        return false;
    setLosses(plans, causeOn(fields));
    m_result.plans = std::move(plans);
    m_result.assumptions.emplace_back(
        "by the estimate no plan fits: only the smallest were simulated, and a quicker one may be among the others");
    return true;
}

SearchResult Search::run()
{
    const bool several = m_machines.size() > 1;
    std::vector<Field> fields;
    std::size_t bestField = 0;
    double best = std::numeric_limits<double>::infinity();
    double bound = std::numeric_limits<double>::infinity();
    lookQuickly(m_machines.front());
    for (const SearchMachine& machine : m_machines) {
        if (!fields.empty() && stopped()) {
            m_result.complete = false;
            bound = 0.0; // nothing is known of the machines that are left
            break;
        }
        fields.push_back(fieldOf(machine, m_fixed));
        Field& field = fields.back();
        field.best = field.explorer->bestMeshes(several ? 1 : m_options.top);
        m_result.complete = m_result.complete && field.explorer->complete();
        if (field.explorer->lowerBoundSeconds() > 0.0)
            bound = std::min(bound, field.explorer->lowerBoundSeconds());
        if (!field.best.empty() && field.best.front().seconds < best) {
            best = field.best.front().seconds;
            bestField = fields.size() - 1;
        }
        if (m_result.firstPlanSeconds == 0.0 && field.explorer->firstFit())
            m_result.firstPlanSeconds = std::chrono::duration<double>(*field.explorer->firstFit() - m_start).count();
        m_result.candidates += static_cast<std::int64_t>(field.space->candidates().size());
        m_result.pruned += static_cast<std::int64_t>(field.space->candidates().size() - field.explorer->estimated());
        m_result.prunedByMemory += static_cast<std::int64_t>(field.explorer->tooLarge());
    }
    m_result.about
        = fmt::format("{}, batches of {} of {} tokens, {}", m_work.model.name.empty() ? "the model" : m_work.model.name,
            counted(m_work.globalBatch, "sequence"), m_work.sequence, mathFormatName(m_work.format));
    if (fields[bestField].best.empty() && m_quick && !m_result.complete) {
        // Cut short before anything else was found.
        fields[bestField] = *std::move(m_quick);
        best = fields[bestField].best.front().seconds;
        bound = 0.0;
    }
    Field& winner = fields[bestField];
    m_result.space = winner.space->described();
    if (!winner.best.empty()) {
        m_result.lowerBoundSeconds = std::min(bound, best);
        m_result.gap = (best - m_result.lowerBoundSeconds) / best;
    }
    const bool priced
        = std::all_of(m_machines.begin(), m_machines.end(), [](const SearchMachine& m) { return m.dollarsPerChipHour; });
    if (!priced)
        m_result.assumptions.emplace_back(kNoPrice);
    if (winner.best.empty() && m_result.candidates == 0 && m_result.complete)
        m_result.whyNone = whyNoLayout(m_work, winner.space->machine(), onMachine(m_fixed, winner.space->machine()));
    if (winner.best.empty() && !addTightPlans(winner)) {
        addChanges(winner);
        if (m_options.simulate && m_options.explains && m_result.whyNone.empty()) { // else none of them can be
            const std::vector<TrialField> only = {trialOf(winner, {})};
            PlanTrials trials(only, m_options, m_result);
            trials.ask(only.front(), templateQuestions(only.front()));
            addTemplates(trials, only.front());
        }
    } else if (!winner.best.empty() && m_options.simulate)
        addSimulatedPlans(fields);
    else if (!winner.best.empty())
        addEstimatedPlans(fields);
    m_result.wallSeconds = std::chrono::duration<double>(PlanExplorer::Clock::now() - m_start).count();
    return std::move(m_result);
}

} // namespace

SearchResult searchTransformer(const SearchWork& work, const std::vector<SearchMachine>& machines,
    const std::vector<FixedChoice>& fixed, const SearchOptions& options, const std::vector<SearchMachine>& larger)
{
    Search search(work, machines, fixed, options, larger);
    return search.run();
}

FoundPlan layoutOf(const TransformerSpace& space, const Candidate& c)
{
    const SearchMachine& machine = space.machine();
    FoundPlan plan;
    plan.hardware = machine.name;
    plan.chips = machine.chips;
    plan.kind = kindOf(c);
    plan.mesh = meshOf(c);
    plan.specs = specsOf(c, space.work().model);
    plan.pipeline = {c.pp, c.chunks, static_cast<double>(space.work().globalBatch) / c.dp / c.microbatch, scheduleOf(c)};
    plan.recompute = space.recomputeName(c);
    plan.lossChunks = space.lossChunks(c);
    plan.microbatch = c.microbatch;
    plan.zeroStage = c.zero;
    plan.sequenceParallel = c.sequenceParallel;
    plan.exchangesHeads = c.ulysses;
    return plan;
}

} // namespace meshwright::sim
