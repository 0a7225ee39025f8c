// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/plan_training.h"

#include "core/support/counted.h"
#include "core/support/file.h"
#include "core/support/pattern.h"
#include "core/support/resources.h"
#include "core/support/text.h"
#include "core/support/timed_stop.h"
#include "sim/hardware/hardware_name.h"
#include "sim/plan/changed_hardware.h"
#include "sim/search/plan_trials.h"
#include "sim/search/search_limits.h"
#include "sim/search/transformer_search.h"
#include "sim/session/engine.h"
#include "sim/session/launch_source.h"
#include "sim/session/search_study.h"
#include "sim/session/study_exports.h"
#include "sim/session/study_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>

namespace meshwright::sim {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kTried = 6; ///< layouts for the best plan and its alternatives, of each size that is simulated
constexpr std::size_t kAlternatives = 3;
constexpr double kPlansShare = 0.6; ///< of the time
constexpr double kSizeShare = 0.25; ///< of what is left, for each size that is simulated
constexpr double kEstimateShare = 0.1; ///< likewise, for one that is estimated
constexpr double kStateBytes = 12.0; ///< of a parameter in a checkpoint: itself and Adam's two moments, each in f32
constexpr std::int64_t kUsualBatch = std::int64_t{4} << 20; ///< tokens: what Llama 3 began with (arXiv:2407.21783, section 3.4.1)
constexpr double kMostTokens = 1e18;
const std::string kMet = "meets it"; ///< a size the wish

/// What units are called, in lower case, and what one is.
using Units = std::map<std::string_view, double>;

/// A number above 0 and its unit, if any, as in `15T`, `15 trillion`, `1,000,000` and `36 hours`; nothing for anything else.
std::optional<double> inUnits(std::string_view text, const Units& units)
{
    const auto isOfNumber = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.'; };
    std::size_t end = text.size();
    while (end > 0 && !isOfNumber(text[end - 1]))
        --end;
    const std::string unit = lowerCase(trimmed(text.substr(end)));
    const auto value = units.find(unit);
    static const Pattern kThousands(R"(\d{1,3}(,\d{3})+(\.\d+)?)");
    std::string digits(trimmed(text.substr(0, end)));
    if (kThousands.matchOf(digits))
        std::erase(digits, ',');
    const auto number = parseNumber(digits);
    return number && *number > 0.0 && value != units.end() ? std::optional(*number * value->second) : std::nullopt;
}

/// A number with a power of 1000: `15T`, `1.5e12`, `300 billion`. Nothing for anything else, or above `most`.
std::optional<double> decimalCount(std::string_view text, double most)
{
    static const Units units = {{"", 1.0}, {"k", 1e3}, {"thousand", 1e3}, {"m", 1e6}, {"million", 1e6}, {"g", 1e9}, {"b", 1e9},
        {"bn", 1e9}, {"billion", 1e9}, {"t", 1e12}, {"trillion", 1e12}};
    const auto count = inUnits(text, units);
    return count && *count <= most ? count : std::nullopt;
}

/// Days of `30d`, `36 hours`, `4w`.
std::optional<double> daysOf(std::string_view text)
{
    constexpr double kMostDays = 1e6;
    static const Units units = {{"h", 1.0 / 24.0}, {"hour", 1.0 / 24.0}, {"hours", 1.0 / 24.0}, {"d", 1.0}, {"day", 1.0},
        {"days", 1.0}, {"w", 7.0}, {"week", 7.0}, {"weeks", 7.0}};
    const auto days = inUnits(text, units);
    return days && *days <= kMostDays ? days : std::nullopt;
}

/// What was asked for, read.
struct Wish {
    double tokens = 0.0;
    std::optional<double> days = {};
    std::optional<double> dollars = {};
    bool leastChips = false;

    bool isOfSize() const { return days || dollars || leastChips; }
};

Result<Wish> wishOf(const PlanWords& words)
{
    Problems problems;
    Wish wish;
    wish.leastChips = words.leastChips;
    const auto refuse = [&](const char* flag, const std::string& text, const char* what, const char* fix) {
        problems.push_back({"MW1943", fmt::format("{}: \"{}\" is not {}", flag, text, what), fix});
    };
    if (const auto tokens = decimalCount(words.tokens, kMostTokens))
        wish.tokens = *tokens;
    else
        refuse("--tokens", words.tokens, "a number of tokens above 0 and up to 10^18",
            "write 15T, 300B or 1.5e12: the tokens of the whole training");
    if (!words.deadline.empty()) {
        wish.days = daysOf(words.deadline);
        if (!wish.days)
            refuse("--deadline", words.deadline, "a time above 0 and up to a million days", "write 30d, 36h or 4w");
    }
    if (!words.budget.empty()) {
        const std::string_view text = words.budget;
        wish.dollars = decimalCount(text.starts_with('$') ? text.substr(1) : text, 1e15);
        if (!wish.dollars)
            refuse("--budget", words.budget, "an amount of dollars above 0", "write 2M or 500k");
    }
    if (!problems.empty())
        return problems;
    return wish;
}

std::string wishText(const Wish& wish)
{
    std::vector<std::string> parts;
    if (wish.days)
        parts.push_back("in " + formatDays(*wish.days));
    if (wish.dollars)
        parts.push_back("for " + formatDollars(*wish.dollars));
    if (parts.empty() && wish.leastChips)
        parts.emplace_back("on as few chips as it fits");
    return join(parts, " and ");
}

PlanChange changeOf(std::string what, const char* kind)
{
    PlanChange change;
    change.what = std::move(what);
    change.kind = kind;
    return change;
}

/// What a search calls the tokens of a step is here the batch: `--tokens` are those of the whole training.
Problems inWordsOfPlan(Problems problems)
{
    constexpr std::string_view kOfSearch = "--tokens";
    for (Problem& problem : problems) {
        for (std::string* text : {&problem.message, &problem.fix}) {
            for (auto at = text->find(kOfSearch); at != std::string::npos; at = text->find(kOfSearch))
                text->replace(at, kOfSearch.size(), "--batch");
        }
    }
    return problems;
}

class Planner {
public:
    Planner(const PlanWords& words, const PlanOptions& options, const Wish& wish, std::vector<FixedChoice> fixed,
        std::string catalogueText, Catalogue catalogue, const Calibration& calibration, PlanningData data)
        : m_words(words)
        , m_options(options)
        , m_wish(wish)
        , m_fixed(std::move(fixed))
        , m_catalogueText(std::move(catalogueText))
        , m_catalogue(std::move(catalogue))
        , m_calibration(calibration)
        , m_data(std::move(data))
    {
    }

    Result<PlanAnswer> run();

private:
    /// What a search and its simulations get of the time that is left.
    struct Turn {
        double share = 1.0;
        std::size_t top = 1;
        bool simulates = true;
    };

    double secondsLeft() const
    {
        return std::chrono::duration<double>(SteadyClock::now() - m_start).count() * -1.0
            + m_options.timeLimit.value_or(kInfinite);
    }
    std::int64_t usualBatch(std::int64_t sequence) const;
    SearchWords searchWords() const;
    Result<SearchMachine> machineOfChips(const Catalogue& catalogue, std::optional<std::int64_t> chips);
    SearchResult searched(const SearchWork& work, const SearchMachine& machine, const Catalogue& catalogue,
        const std::vector<FixedChoice>& fixed, const Turn& turn);
    TrainingTime timeOf(const SearchWork& work, const FoundPlan& plan) const;
    double tokensPerStep(const SearchWork& work) const
    {
        return static_cast<double>(work.globalBatch) * static_cast<double>(work.sequence);
    }
    std::string missing(const TrainingTime& time) const;
    bool addSize(const Chip& chip);
    void setSize(ClusterSize& size, const SearchResult& result) const;
    bool meetsBySimulation(std::size_t index);
    Result<SearchMachine> chosenSize();
    SearchResult plansOn(const SearchMachine& machine);
    void addPlans(const SearchMachine& machine);
    void addLaunch(const SearchMachine& machine);
    void addRange(const SearchMachine& machine);
    void addChanges(const SearchMachine& machine);
    void addChange(PlanChange change, const SearchWork& work, const SearchMachine& machine, const Catalogue& catalogue,
        const std::string& recompute);
    void say(const std::string& what) const
    {
        if (m_options.progress)
            m_options.progress(what);
    }

    const PlanWords& m_words;
    const PlanOptions& m_options;
    const Wish& m_wish;
    std::vector<FixedChoice> m_fixed;
    std::string m_catalogueText;
    Catalogue m_catalogue;
    const Calibration& m_calibration;
    PlanningData m_data;
    SteadyClock::time_point m_start = SteadyClock::now();
    SearchWork m_work;
    PlanAnswer m_answer;
    std::vector<SearchMachine> m_sizeMachines; ///< of m_answer.sizes
    std::map<std::size_t, SearchResult> m_found; ///< of those sizes, simulated
    std::optional<ClusterSize> m_refusedSize; ///< the first that cannot be built
    std::int64_t m_nextChips = 1; ///< of the next size
    std::size_t m_changesLeft = 0;
};

/// Sequences of a step of about `kUsualBatch` tokens, which the devices can share evenly, several times where they are few: a multiple of their number times a
/// power of two, or, of more devices than sequences, of their number divided by one.
std::int64_t Planner::usualBatch(std::int64_t sequence) const
{
    const std::int64_t usual = std::max<std::int64_t>(1, kUsualBatch / sequence);
    const auto named = readMachineName(m_catalogue, m_words.machine);
    if (!named)
        return usual;
    const Chip& chip = *named->match.chip;
    std::int64_t share = std::max<std::int64_t>(1, named->chips.value_or(chip.instanceChips) * chip.devicesPerChip);
    while (share > usual && share % 2 == 0)
        share /= 2;
    while (share <= usual / 16)
        share *= 2;
    return share > usual ? usual : share * std::lround(static_cast<double>(usual) / static_cast<double>(share));
}

SearchWords Planner::searchWords() const
{
    SearchWords words;
    words.model = m_words.model;
    words.hardware = {m_words.machine};
    words.sequence = m_words.sequence;
    words.tokens = m_words.batch;
    words.globalBatch = m_words.globalBatch;
    words.format = m_words.format;
    words.recipe = m_words.recipe;
    words.stack = m_words.stack;
    if (!m_words.price.empty())
        words.prices = {m_words.price};
    if (words.tokens.empty() && words.globalBatch.empty()) {
        const auto sequence = parseCount(words.sequence.empty() ? "4k" : words.sequence, "--seq");
        words.globalBatch = std::to_string(sequence ? usualBatch(*sequence) : 1);
    }
    return words;
}

/// The machine of the command line, with so many chips where it does not say how many; of several slices where one does not have so many.
Result<SearchMachine> Planner::machineOfChips(const Catalogue& catalogue, std::optional<std::int64_t> chips)
{
    SearchWords words = searchWords();
    const auto named = readMachineName(catalogue, m_words.machine);
    const auto largest = named ? largestSlice(*named->match.chip) : std::nullopt;
    const bool isJoined = chips && largest && *chips > *largest;
    if (isJoined)
        words.hardware = {joinedSlices(*named->match.chip, *chips)};
    else if (chips)
        words.chips = std::to_string(*chips);
    std::vector<std::string> notes;
    const auto machines = machinesOf(words, catalogue, m_calibration, notes);
    if (!machines)
        return machines.error();
    for (std::string& note : isJoined ? std::vector<std::string>{} : notes) {
        if (std::find(m_answer.notes.begin(), m_answer.notes.end(), note) == m_answer.notes.end())
            m_answer.notes.push_back(std::move(note));
    }
    SearchMachine machine = machines->front();
    if (const auto good = checkFormat(machine.chip, m_work.format); !good)
        return good.error();
    if (!machine.dollarsPerChipHour && m_answer.price)
        machine.dollarsPerChipHour = m_answer.price->dollarsPerHour;
    return machine;
}

SearchResult Planner::searched(const SearchWork& work, const SearchMachine& machine, const Catalogue& catalogue,
    const std::vector<FixedChoice>& fixed, const Turn& turn)
{
    std::optional<double> seconds;
    if (m_options.timeLimit)
        seconds = std::max(0.0, turn.share * secondsLeft());
    const TimedStop stop(m_options.stop, seconds);
    SearchOptions options;
    options.top = turn.top;
    options.threads = m_options.threads;
    options.stop = stop.token();
    if (turn.simulates)
        options.simulate = planSimulator(work, catalogue, options.stop);
    options.explains = false;
    options.layerTime = layerTimer(catalogue, options.stop);
    if (seconds)
        options.deadline = SteadyClock::now()
            + std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(std::min(*seconds, 1e9)));
    SearchResult result = searchTransformer(work, {machine}, fixed, options, largerMachines(machine, catalogue, m_calibration));
    m_answer.simulated += result.simulated;
    return result;
}

TrainingTime Planner::timeOf(const SearchWork& work, const FoundPlan& plan) const
{
    return trainingTimeOf(plan, tokensPerStep(work), m_wish.tokens, kStateBytes * m_answer.parameters, m_data, m_answer.price);
}

/// What is left to be wished for; empty: nothing.
std::string Planner::missing(const TrainingTime& time) const
{
    if (m_wish.days && time.days > *m_wish.days)
        return "too slow";
    return m_wish.dollars && !(time.dollars && *time.dollars <= *m_wish.dollars) ? "too expensive" : "";
}

/// The next larger size that could hold the model, by the estimate. False: there is none, or no time for it.
bool Planner::addSize(const Chip& chip)
{
    const double memory = chip.hbmBytes ? chip.hbmBytes->value : kInfinite;
    while (m_nextChips <= kMostChips && kStateBytes * m_answer.parameters > memory * static_cast<double>(m_nextChips))
        m_nextChips *= 2;
    if (m_nextChips > kMostChips)
        return false;
    const auto machine = machineOfChips(m_catalogue, m_nextChips); // fails where the network between hosts is not known
    if (!machine) {
        const std::string& why = machine.error().front().message;
        m_refusedSize = ClusterSize{fmt::format("{} {}", m_nextChips, chip.name), m_nextChips, {}, {}, why, why};
        return false;
    }
    if (m_options.stop.stop_requested() || secondsLeft() <= 0.0) {
        m_answer.notSimulated.push_back(fmt::format("{} and more: no time was left", machine->name));
        return false;
    }
    say(machine->name + ", by the estimate");
    ClusterSize size;
    size.cluster = machine->name;
    size.chips = machine->chips;
    const SearchResult result = searched(m_work, *machine, m_catalogue, m_fixed, {kEstimateShare, 1, false});
    if (!result.plans.empty() && result.plans.front().fits) {
        size.plan = result.plans.front();
        size.time = timeOf(m_work, *size.plan);
        size.missing = missing(size.time);
        size.verdict = (size.missing.empty() ? kMet : size.missing) + " by the estimate";
    } else {
        size.missing = size.verdict = result.complete ? "no plan fits by the estimate" : "no time was left";
    }
    m_answer.sizes.push_back(std::move(size));
    m_sizeMachines.push_back(*machine);
    m_nextChips *= 2;
    return true;
}

/// The row of a size, by the best of its layouts.
void Planner::setSize(ClusterSize& size, const SearchResult& result) const
{
    if (result.plans.empty() || !result.plans.front().fits) {
        size.plan.reset();
        size.missing = size.verdict = result.complete || !result.plans.empty() ? "no plan fits" : "no time was left";
        return;
    }
    size.plan = result.plans.front();
    size.time = timeOf(m_work, *size.plan);
    size.missing = missing(size.time);
    size.simulated = size.plan->simulatedSeconds.has_value();
    size.verdict = (size.missing.empty() ? kMet : size.missing)
        + (size.simulated ? ""
                          : " by the estimate: not simulated"); // that there was no time is not a reason to call it too small
}

/// True where the best of a few simulated layouts is what is wished for.
bool Planner::meetsBySimulation(std::size_t index)
{
    ClusterSize& size = m_answer.sizes[index];
    say(size.cluster);
    SearchResult result = searched(m_work, m_sizeMachines[index], m_catalogue, m_fixed, {kSizeShare, kTried});
    setSize(size, result);
    if (size.plan && !size.simulated && !result.notSimulated.empty())
        m_answer.notSimulated.push_back(fmt::format("{}: {}", size.cluster, result.notSimulated.front()));
    m_found.insert_or_assign(index, std::move(result));
    return size.missing.empty();
}

/// The size that the wish asks for; where none meets it, the one that comes nearest. Fills the table of sizes. The estimate says where to begin, and
/// what is chosen is simulated: from there to the smallest (for money alone: the largest) size that meets the wish.
Result<SearchMachine> Planner::chosenSize()
{
    const auto named = readMachineName(m_catalogue, m_words.machine);
    if (!named)
        return named.error();
    const Chip& chip = *named->match.chip;
    m_nextChips = chip.instanceChips;
    const auto smallest = machineOfChips(m_catalogue, m_nextChips);
    if (!smallest)
        return smallest.error();
    const bool isLargest = m_wish.dollars && !m_wish.days && !m_wish.leastChips;
    std::vector<ClusterSize>& sizes = m_answer.sizes;
    std::optional<std::size_t> first;
    std::optional<std::size_t> nearest;
    const auto shareOfWish = [&](const ClusterSize& size) { // of the deadline or the budget, whichever it misses by more
        return std::max(m_wish.days ? size.time.days / *m_wish.days : 0.0,
            m_wish.dollars ? size.time.dollars.value_or(0.0) / *m_wish.dollars : 0.0);
    };
    const auto isNearer = [&](std::size_t i) {
        if (!sizes[i].plan || !nearest || sizes[i].simulated != sizes[*nearest].simulated)
            return sizes[i].plan && (!nearest || sizes[i].simulated);
        return shareOfWish(sizes[i]) < shareOfWish(sizes[*nearest]);
    };
    double cheapest = std::numeric_limits<double>::infinity(); // few chips may lack memory, and cost more than some
    int tooExpensive = 0; // in a row, and no cheaper than fewer chips
    while (tooExpensive < 2 && (!first || isLargest) && addSize(chip)) {
        const std::size_t last = sizes.size() - 1;
        if (sizes[last].missing.empty())
            first = last;
        if (isNearer(last))
            nearest = last;
        if (!isLargest || !sizes[last].plan)
            continue;
        const double dollars = sizes[last].time.dollars.value_or(0.0);
        tooExpensive = !sizes[last].missing.empty() && dollars >= cheapest ? tooExpensive + 1 : 0;
        cheapest = std::min(cheapest, dollars);
    }
    if (!first)
        first = nearest;
    std::optional<std::size_t> best;
    if (first) {
        const bool goesOn = meetsBySimulation(*first);
        if (goesOn)
            best = first;
        nearest = first;
        const bool isUp = goesOn == isLargest;
        for (std::size_t i = *first; isUp ? i + 1 < sizes.size() || addSize(chip) : i > 0;) {
            i = isUp ? i + 1 : i - 1;
            if (m_options.stop.stop_requested() || secondsLeft() <= 0.0)
                break;
            const bool meets = meetsBySimulation(i);
            if (meets)
                best = i;
            if (isNearer(i))
                nearest = i;
            if (meets != goesOn)
                break;
        }
    }
    m_answer.meets = best.has_value();
    if (!best)
        best = nearest;
    if (best) {
        sizes[*best].chosen = true;
        return m_sizeMachines[*best];
    }
    if (!m_sizeMachines.empty())
        return m_sizeMachines.back(); // tells what is missing
    for (std::int64_t chips = m_nextChips; chips > chip.instanceChips; chips /= 2) {
        if (auto machine = machineOfChips(m_catalogue, chips))
            return machine;
    }
    return *smallest;
}

/// What the search for a size found on the chosen one, where time did not cut it short; else the better of that and of a longer search.
SearchResult Planner::plansOn(const SearchMachine& machine)
{
    const auto chosen = std::ranges::find(m_answer.sizes, true, &ClusterSize::chosen) - m_answer.sizes.begin();
    const auto known = m_found.find(static_cast<std::size_t>(chosen));
    if (known == m_found.end())
        return searched(m_work, machine, m_catalogue, m_fixed, {kPlansShare, kTried});
    SearchResult& found = known->second;
    if (!m_options.timeLimit || (found.complete && found.notSimulated.empty()))
        return std::move(found);
    SearchResult longer = searched(m_work, machine, m_catalogue, m_fixed, {kPlansShare, kTried});
    const auto seconds = [](const SearchResult& result) {
        const bool isSimulated = !result.plans.empty() && result.plans.front().fits && result.plans.front().simulatedSeconds;
        return isSimulated ? *result.plans.front().simulatedSeconds : kInfinite;
    };
    return seconds(found) < seconds(longer) ? std::move(found) : std::move(longer);
}

/// The best plan, and the nearest of other kinds.
void Planner::addPlans(const SearchMachine& machine)
{
    say("plans");
    SearchResult result = plansOn(machine);
    const auto size = std::ranges::find(m_answer.sizes, true, &ClusterSize::chosen);
    if (size != m_answer.sizes.end())
        setSize(*size, result);
    m_answer.cutShort = result.plans.empty() && !result.complete;
    m_answer.whyNone = result.whyNone;
    m_answer.changesThatFit = result.changes;
    for (const std::string& why : result.notSimulated) {
        if (std::ranges::find(m_answer.notSimulated, why) == m_answer.notSimulated.end())
            m_answer.notSimulated.push_back(why);
    }
    for (FoundPlan& plan : result.plans) {
        const bool isNew = std::none_of(
            m_answer.plans.begin(), m_answer.plans.end(), [&](const FoundPlan& one) { return one.kind == plan.kind; });
        if (isNew && m_answer.plans.size() <= kAlternatives)
            m_answer.plans.push_back(std::move(plan));
    }
    if (!m_answer.fits())
        return;
    m_answer.time = timeOf(m_work, m_answer.plans.front());
    addRange(machine);
    addLaunch(machine);
    if (auto text = studyText(m_answer.plans.front(), m_work, machine))
        m_answer.study = *std::move(text);
    if (m_wish.isOfSize())
        m_answer.meets = missing(m_answer.time).empty();
}

/// The commands of the best plan. Frameworks' steps need other memory than the one that was simulated: those whose lines can be read are simulated as well.
void Planner::addLaunch(const SearchMachine& machine)
{
    m_answer.launch = launchCommands(m_answer.plans.front(), m_work, machine);
    for (LaunchCommand& launch : m_answer.launch) {
        if (launch.command.empty() || secondsLeft() <= 0.0)
            continue;
        std::vector<std::string> notes;
        Problems warnings;
        const auto source = studySourceOf({launch.command, {}, {"hardware=" + machine.name}}, m_catalogue, notes, &warnings);
        const auto study = source ? readStudy(source->text, source->file, source->settings) : source.error();
        if (!study)
            continue;
        StepParts parts;
        findMachine(parts, *study, m_catalogue);
        const TimedStop stop(m_options.stop, m_options.timeLimit ? std::optional(secondsLeft()) : std::nullopt);
        const auto step = hasErrors(parts.problems) ? std::nullopt : predictStep(parts, *study, {}, stop.token());
        launch.warning = step ? whyTooLarge(step->simulation, launch.framework) : std::string();
        if (!launch.warning.empty() && m_words.stack.empty())
            launch.warning += fmt::format("; --stack {} plans for it", study->stack);
        for (const Problem& warning : warnings)
            launch.warning += (launch.warning.empty() ? "" : "; ") + warning.message;
    }
}

/// Published runs were compared with their simulated programs: an estimate has no range.
void Planner::addRange(const SearchMachine& machine)
{
    const auto errors = m_data.errorsOf(machine.chip);
    if (!errors || !m_answer.plans.front().simulatedSeconds)
        return;
    m_answer.daysLow = errors->low() * m_answer.time.days;
    m_answer.daysHigh = errors->high() * m_answer.time.days;
    m_answer.rangeFrom = fmt::format(
        "{} of {} published runs on {} were within {:.0f} % of the simulated step; measured over simulated was {:.2f} "
        "to {:.2f}",
        errors->most(), errors->ratios.size(),
        errors->of == machine.chip.key ? machine.chip.name
            : errors->of == "tpu"      ? "TPUs"
                                       : "GPUs",
        100.0 * errors->share(), errors->low(), errors->high());
    m_answer.reliability.push_back("range: " + m_data.errorsSource());
}

/// `recompute`: that is changed too; empty: it is not.
void Planner::addChange(PlanChange change, const SearchWork& work, const SearchMachine& machine, const Catalogue& catalogue,
    const std::string& recompute)
{
    say(change.what);
    const double share = 1.0 / static_cast<double>(std::max<std::size_t>(1, m_changesLeft--));
    const FoundPlan& best = m_answer.plans.front();
    std::vector<FixedChoice> fixed = m_fixed;
    if (!recompute.empty()) {
        fixed.push_back({"recompute", recompute});
        for (const MeshAxis& axis : best.mesh) {
            if (std::ranges::find(fixed, axis.name, &FixedChoice::name) == fixed.end())
                fixed.push_back({axis.name, std::to_string(axis.size)});
        }
    }
    const SearchResult result = searched(work, machine, catalogue, fixed, {share, 1});
    if (!result.plans.empty() && result.plans.front().fits && result.plans.front().simulatedSeconds)
        change.plan = result.plans.front();
    else
        change.whyNot = !result.notSimulated.empty() ? result.notSimulated.front()
            : result.plans.empty()
            ? std::string(result.complete && result.candidates == 0 ? "no legal layout" : "the time limit left too little for it")
            : "does not fit: " + (result.plans.front().why.empty() ? std::string{} : result.plans.front().why.front());
    const double batches = static_cast<double>(work.globalBatch) / static_cast<double>(m_work.globalBatch);
    FoundPlan same = best;
    if (!recompute.empty())
        same.recompute = recompute;
    same.pipeline.microbatches *= batches;
    same.modelSeconds *= batches;
    if (same.dollarsPerStep)
        same.dollarsPerStep = *same.dollarsPerStep * batches;
    const bool isWhole = same.pipeline.microbatches == std::floor(same.pipeline.microbatches);
    if (best.simulatedSeconds && isWhole && secondsLeft() > 0.0) { // the best plan may still be the best
        std::string whyNot;
        const TimedStop stop(m_options.stop, m_options.timeLimit ? std::optional(secondsLeft()) : std::nullopt);
        if (auto trial = planSimulator(work, catalogue, stop.token())(same, machine, whyNot)) {
            ++m_answer.simulated;
            if (trial->fits && (!change.plan || trial->seconds < *change.plan->simulatedSeconds)) {
                same.why.clear();
                takeTrial(same, *std::move(trial));
                change.plan = std::move(same);
                change.whyNot.clear();
            }
        }
    }
    if (change.plan) {
        change.tokensPerSecond = tokensPerStep(work) / *change.plan->simulatedSeconds;
        change.gain = change.tokensPerSecond / m_answer.time.tokensPerSecond - 1.0;
    }
    m_answer.changes.push_back(std::move(change));
}

/// What else could be: the best plan as it is with the change, or a quicker one of any kind. Only to recompute other values its mesh stays: those are
/// chosen for a mesh.
void Planner::addChanges(const SearchMachine& machine)
{
    const FoundPlan best = m_answer.plans.front();
    const bool isTpu = machine.chip.chipClass == ChipClass::Tpu;
    const bool manyHosts = isTpu || machine.chips > fastChips(machine);
    std::vector<std::string> policies;
    for (const char* policy : {"none", isTpu ? "minimal" : "selective", "full"}) {
        if (policy != best.recompute)
            policies.emplace_back(policy);
    }
    const bool recomputes
        = std::none_of(m_fixed.begin(), m_fixed.end(), [](const FixedChoice& one) { return one.name == "recompute"; });
    const bool halves = m_work.globalBatch % 2 == 0;
    m_changesLeft = 1 + (recomputes ? policies.size() : 0) + (halves ? 2 : 1) + (manyHosts ? 2 : 0);

    const auto hardware = [&](std::string what, const char* kind, ChangedPart part, double factor) {
        const auto catalogue = changedCatalogue(m_catalogueText, machine.chip, part, factor);
        if (!catalogue)
            return;
        const auto changed = machineOfChips(*catalogue, m_answer.sizes.empty() ? std::nullopt : std::optional(machine.chips));
        if (changed)
            addChange(changeOf(std::move(what), kind), m_work, *changed, *catalogue, {});
    };
    hardware(
        fmt::format("{} a device instead of {}", formatBytes(kMoreMemory * best.capacityBytes), formatBytes(best.capacityBytes)),
        "memory", ChangedPart::Memory, kMoreMemory);
    for (const std::string& policy : recomputes ? policies : std::vector<std::string>{}) {
        addChange(changeOf(fmt::format("recompute={} instead of {}", policy, best.recompute), "recompute"), m_work, machine,
            m_catalogue, policy);
    }
    SearchWork batch = m_work;
    batch.globalBatch = 2 * m_work.globalBatch;
    addChange(changeOf(counted(batch.globalBatch, "sequence") + " a step", "batch"), batch, machine, m_catalogue, {});
    if (halves) {
        batch.globalBatch = m_work.globalBatch / 2;
        addChange(changeOf(counted(batch.globalBatch, "sequence") + " a step", "batch"), batch, machine, m_catalogue, {});
    }
    if (manyHosts) {
        const std::string network = isTpu ? "links between chips" : "network between hosts";
        hardware("twice the " + network, "network", ChangedPart::Network, 2.0);
        hardware("half the " + network, "network", ChangedPart::Network, 0.5);
    }
}

Result<PlanAnswer> Planner::run()
{
    Problems problems;
    auto work = workOf(searchWords(), &m_answer.notes);
    if (!work)
        append(problems, inWordsOfPlan(work.error()));
    if (const auto price = parseNumber(m_words.price); !m_words.price.empty() && !(price && *price >= 0.0))
        problems.push_back(
            {"MW1939", fmt::format("\"{}\" is not a price", m_words.price), "write dollars an hour for one chip: --price 2.50"});
    const auto named = readMachineName(m_catalogue, m_words.machine);
    const bool hasNumber = named && named->isCounted;
    if (!named)
        append(problems, named.error());
    else if (!named->chips && !m_wish.isOfSize())
        problems.push_back({"MW1944", fmt::format("\"{}\" does not say how many chips", m_words.machine),
            fmt::format("write --on 64x{}, or let a size be found: --deadline 30d, --budget 2M, --min-gpus", m_words.machine)});
    else if (hasNumber && m_wish.leastChips)
        problems.push_back({"MW1944", fmt::format("--min-gpus looks for the number of chips that \"{}\" states", m_words.machine),
            fmt::format("write --on {}", named->chip)});
    if (!problems.empty())
        return problems;
    m_work = *std::move(work);
    if (m_wish.tokens < tokensPerStep(m_work))
        return Problem{"MW1943",
            fmt::format("--tokens: {} tokens are less than one step takes: {} sequences of {}", formatCount(m_wish.tokens),
                m_work.globalBatch, m_work.sequence),
            "write the tokens of the whole training, 15T or 300B, or a smaller --batch"};
    const ParameterCounts counts = parameterCounts(m_work.model);
    m_answer.model = m_work.model.name;
    m_answer.ignoredKeys = m_work.ignoredKeys;
    m_answer.parameters = static_cast<double>(counts.total);
    m_answer.activeParameters = static_cast<double>(counts.active);
    m_answer.tokens = m_wish.tokens;
    m_answer.sequence = m_work.sequence;
    m_answer.globalBatch = m_work.globalBatch;
    m_answer.wanted = wishText(m_wish);
    m_answer.price = m_data.priceOf(*named->match.chip);
    if (const auto price = parseNumber(m_words.price))
        m_answer.price = ChipPrice{*price, {}, "as given"};
    if (m_wish.dollars && !m_answer.price)
        return Problem{"MW1944", fmt::format("no price of {} is known for a budget", named->match.chip->name),
            "give dollars an hour for a chip: --price 2.50"};
    const auto machine = m_wish.isOfSize() && !hasNumber ? chosenSize() : machineOfChips(m_catalogue, std::nullopt);
    if (!machine)
        return machine.error();
    m_answer.cluster = machine->name;
    m_answer.chip = machine->chip.name;
    m_answer.chips = machine->chips;
    m_answer.reliability = {"failures: " + m_data.chipSecondsPerFailure().source,
        "writing checkpoints: " + m_data.storageBytesPerSecond().source, "starting again: " + m_data.restartSeconds().source};
    m_answer.assumptions = {"failures are as frequent for each chip, and storage as fast, as in the run above",
        "a checkpoint holds parameters and Adam's two moments in f32: 12 bytes a parameter",
        fmt::format("{}: {} tokens a step{}", "batch", formatWhole(m_work.globalBatch * m_work.sequence),
            m_words.batch.empty() && m_words.globalBatch.empty()
                ? ", about what Llama 3 began with (arXiv:2407.21783); --batch gives another"
                : "")};
    Study ofStack;
    ofStack.stack = m_words.stack;
    m_answer.assumptions.push_back(stackAssumption(ofStack, machine->chip)
        + (m_words.stack.empty() ? ": a framework that a launch line is for has another step, and asks for other memory" : ""));
    addPlans(*machine);
    if (m_answer.fits())
        addChanges(*machine);
    if (m_refusedSize)
        m_answer.sizes.push_back(*std::move(m_refusedSize));
    m_answer.wallSeconds = std::chrono::duration<double>(SteadyClock::now() - m_start).count();
    return std::move(m_answer);
}

} // namespace

std::string planCommand(const PlanWords& words)
{
    std::string command = "meshwright plan " + shellQuoted(words.model) + " --on " + shellQuoted(words.machine) + " --tokens "
        + shellQuoted(words.tokens);
    for (const auto& [flag, value] :
        {std::pair{"--seq", words.sequence}, {"--batch", words.batch}, {"--global-batch", words.globalBatch},
            {"--stack", words.stack}, {"--price", words.price}, {"--deadline", words.deadline}, {"--budget", words.budget}}) {
        if (!value.empty())
            command += fmt::format(" {} {}", flag, shellQuoted(value));
    }
    if (words.format != PlanWords().format)
        command += " --dtype " + shellQuoted(words.format);
    for (const std::string& choice : words.fixed)
        command += " --fix " + shellQuoted(choice);
    return command + (words.leastChips ? " --min-gpus" : "");
}

Result<PlanAnswer> planTraining(const PlanWords& words, const PlanOptions& options)
{
    Problems problems;
    const auto wish = wishOf(words);
    if (!wish)
        append(problems, wish.error());
    auto fixed = parseFixed(words.fixed);
    if (!fixed)
        append(problems, fixed.error());
    const std::filesystem::path folder = resourcesDirectory() / "hardware";
    auto text = readFile(folder / "catalogue.json");
    if (!text)
        return text.error();
    auto catalogue = Catalogue::parse(*text, (folder / "catalogue.json").string());
    if (!catalogue)
        return catalogue.error();
    auto data = PlanningData::load(folder / "planning.json");
    if (!data)
        return data.error();
    const Result<Calibration>& calibration = defaultCalibration();
    if (!calibration)
        return calibration.error();
    if (!problems.empty())
        return problems;
    return Planner(
        words, options, *wish, *std::move(fixed), *std::move(text), *std::move(catalogue), *calibration, *std::move(data))
        .run();
}

} // namespace meshwright::sim
