// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/compare/step_change.h"

#include "core/models/array_name.h"
#include "core/support/text.h"
#include "sim/compare/pair_uses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

namespace meshwright::sim {

namespace {

constexpr double kSame = 0.005; ///< amounts that differ by less than this share are called equal
constexpr double kNothing = 0.0005; ///< a change of less than this share of the step is none
constexpr double kUnexplainedShown
    = 0.2; ///< what a part leaves unexplained is told when it is more than this share of the change

/// What one kind of collective on one value did in a step; several calls and several ops with the same key are one.
struct StepUse {
    double exposedSeconds = 0.0;
    double seconds = 0.0;
    double bytes = 0.0; ///< payload of all calls, per device
    std::int64_t groupSize = 0;
    bool there = false;

    void add(const SimulatedCollective& collective)
    {
        exposedSeconds += collective.exposedSeconds;
        seconds += collective.seconds;
        bytes += static_cast<double>(collective.use.payloadBytes * collective.use.count);
        groupSize = std::max(groupSize, collective.use.groupSize);
        there = true;
    }
};

struct CollectiveKey {
    OpKind kind = OpKind::AllReduce;
    Phase phase = Phase::Forward;
    std::string value;
    std::string axes;

    friend auto operator<=>(const CollectiveKey&, const CollectiveKey&) = default;
};

using Pair = UsePair<CollectiveKey, StepUse>;

/// How a collective differs between the steps.
enum class Change : std::uint8_t { New, Gone, OtherAxes, OtherBytes, OtherGroup, OtherTime, Hidden };

/// A part of the change with what the sentence needs of it: parts of the same family are told together.
struct Reason {
    StepDifference part;
    std::string value; ///< that moves, in words; empty for computing
    std::string family;
    Pair pair;
};

bool differs(double a, double b)
{
    return std::fabs(a - b) > kSame * std::max(std::fabs(a), std::fabs(b));
}

std::string axesInWords(const std::string& axes)
{
    return join(split(axes, ','), " and ");
}

const char* nounOf(OpKind kind)
{
    switch (kind) {
    case OpKind::AllReduce:
        return "all-reduce";
    case OpKind::AllGather:
        return "all-gather";
    case OpKind::ReduceScatter:
        return "reduce-scatter";
    case OpKind::AllToAll:
        return "all-to-all";
    case OpKind::Send:
        return "send";
    default:
        return "permute";
    }
}

const char* participleOf(OpKind kind)
{
    switch (kind) {
    case OpKind::AllReduce:
        return "all-reduced";
    case OpKind::AllGather:
        return "gathered";
    case OpKind::ReduceScatter:
        return "reduce-scattered";
    case OpKind::AllToAll:
        return "exchanged";
    case OpKind::Send:
        return "sent";
    default:
        return "permuted";
    }
}

/// What made the exposed time longer or shorter.
Change changeOf(const Pair& pair)
{
    if (!pair.was.there)
        return Change::New;
    if (!pair.is.there)
        return Change::Gone;
    if (pair.before.axes != pair.after.axes)
        return Change::OtherAxes;
    const double exposed = pair.is.exposedSeconds - pair.was.exposedSeconds;
    const double own = pair.is.seconds - pair.was.seconds;
    if (own * exposed <= 0.0 || std::fabs(own) < 0.5 * std::fabs(exposed))
        return Change::Hidden;
    // Long messages take as long as their bytes, short ones as their hops: what grew about as much as the time did it.
    const double time = std::log(pair.is.seconds / pair.was.seconds);
    const double bytes = std::log(pair.is.bytes / pair.was.bytes);
    const double group = std::log(static_cast<double>(pair.is.groupSize) / static_cast<double>(pair.was.groupSize));
    const bool byBytes = bytes * time > 0.0;
    const bool byGroup = group * time > 0.0;
    if (byGroup && (!byBytes || std::fabs(group - time) < std::fabs(bytes - time) - kSame))
        return Change::OtherGroup;
    if (byBytes)
        return Change::OtherBytes;
    return Change::OtherTime;
}

std::string collectiveInWords(const Pair& pair, Change change, const std::string& value, bool several)
{
    const CollectiveKey& key = change == Change::Gone ? pair.before : pair.after;
    const bool longer = pair.is.exposedSeconds > pair.was.exposedSeconds;
    const std::string noun = fmt::format("{} of {} over {}", nounOf(key.kind), value, axesInWords(key.axes));
    switch (change) {
    case Change::New:
        return noun;
    case Change::Gone:
        return fmt::format(
            "{} {} no longer {} over {}", value, several ? "are" : "is", participleOf(key.kind), axesInWords(key.axes));
    case Change::OtherAxes:
        return fmt::format("{} instead of {}", noun, axesInWords(pair.before.axes));
    case Change::OtherBytes:
        return fmt::format("{} moves {} ({} -> {} a device)", noun, longer ? "more" : "less", formatBytes(pair.was.bytes),
            formatBytes(pair.is.bytes));
    case Change::OtherGroup:
        return fmt::format("{} has groups of {} devices instead of {}", noun, pair.is.groupSize, pair.was.groupSize);
    case Change::OtherTime:
        return fmt::format("{} takes {} ({} -> {})", noun, longer ? "longer" : "less", formatSeconds(pair.was.seconds),
            formatSeconds(pair.is.seconds));
    case Change::Hidden:
        break;
    }
    return fmt::format("{} of the {} is hidden behind computing", longer ? "less" : "more", noun);
}

/// Which values are told together: gradients with gradients, parameters with parameters.
std::string classOf(const std::string& value)
{
    constexpr std::array kClasses = {"grad.act.", "grad.", "new.", "act.", "layers.", "opt."};
    const auto found
        = std::find_if(kClasses.begin(), kClasses.end(), [&](const char* prefix) { return value.starts_with(prefix); });
    return found == kClasses.end() ? value : *found;
}

Reason reasonOf(const Pair& pair)
{
    Reason reason;
    reason.pair = pair;
    const Change change = changeOf(pair);
    const CollectiveKey& key = pair.is.there ? pair.after : pair.before;
    reason.value = valueInWords(key.value);
    reason.part = {collectiveInWords(pair, change, reason.value, false), pair.was.exposedSeconds, pair.is.exposedSeconds};
    reason.family = fmt::format("{} {} {} {} {} {}", opName(key.kind), pair.was.there ? pair.before.axes : "",
        pair.is.there ? pair.after.axes : "", change == Change::Hidden, phaseName(key.phase), classOf(key.value));
    return reason;
}

std::map<CollectiveKey, StepUse> usesOf(const Simulation& simulation)
{
    std::map<CollectiveKey, StepUse> uses;
    for (const SimulatedCollective& collective : simulation.collectives) {
        const CollectiveUse& use = collective.use;
        uses[{use.kind, use.phase, use.cause.value, use.axes}].add(collective);
    }
    return uses;
}

std::vector<Pair> pairsOf(const Simulation& before, const Simulation& after)
{
    return pairUses(usesOf(before), usesOf(after), [](const CollectiveKey& a, const CollectiveKey& b) {
        return std::tie(a.kind, a.phase, a.value) == std::tie(b.kind, b.phase, b.value);
    });
}

std::string fromTo(const std::string& was, const std::string& is)
{
    return fmt::format("({} -> {})", was, is);
}

std::string productsInWords(const Simulation& before, const Simulation& after)
{
    const bool longer = after.productSeconds > before.productSeconds;
    const auto flop = [](double count) { return formatCount(count) + "FLOP"; };
    if (after.productFlopsPerDevice <= 0.0 || before.productFlopsPerDevice <= 0.0)
        return longer ? "new products" : "products are gone";
    // A higher or lower rate is the reason only where it goes the way of the time.
    if (differs(before.peakFlopsPerSecond, after.peakFlopsPerSecond)
        && (after.peakFlopsPerSecond < before.peakFlopsPerSecond) == longer)
        return fmt::format("products are {} here {}", longer ? "slower" : "faster",
            fromTo(flop(before.peakFlopsPerSecond) + "/s", flop(after.peakFlopsPerSecond) + "/s at best"));
    if (differs(before.productFlopsPerDevice, after.productFlopsPerDevice)
        && (after.productFlopsPerDevice > before.productFlopsPerDevice) == longer)
        return fmt::format("each device multiplies {} {}", longer ? "more" : "less",
            fromTo(flop(before.productFlopsPerDevice), flop(after.productFlopsPerDevice)));
    return fmt::format("products run {} efficiently {}", longer ? "less" : "more",
        fromTo(formatSeconds(before.productSeconds), formatSeconds(after.productSeconds)));
}

std::string otherComputingInWords(const Simulation& before, const Simulation& after)
{
    const double was = before.computeSeconds - before.productSeconds;
    const double is = after.computeSeconds - after.productSeconds;
    if (differs(before.otherTrafficBytes, after.otherTrafficBytes)
        && (after.otherTrafficBytes > before.otherTrafficBytes) == (is > was))
        return fmt::format("element-wise work touches {} memory {}", is > was ? "more" : "less",
            fromTo(formatBytes(before.otherTrafficBytes), formatBytes(after.otherTrafficBytes) + " a device"));
    return fmt::format(
        "element-wise work takes {} {}", is > was ? "longer" : "less", fromTo(formatSeconds(was), formatSeconds(is)));
}

Reason plainReason(std::string what, double before, double after)
{
    Reason reason;
    reason.family = what;
    reason.part = {std::move(what), before, after};
    return reason;
}

std::vector<Reason> reasonsFor(const Simulation& before, const Simulation& after)
{
    std::vector<Reason> reasons;
    for (const Pair& pair : pairsOf(before, after))
        reasons.push_back(reasonOf(pair));
    reasons.push_back(plainReason(productsInWords(before, after), before.productSeconds, after.productSeconds));
    reasons.push_back(plainReason(otherComputingInWords(before, after), before.computeSeconds - before.productSeconds,
        after.computeSeconds - after.productSeconds));
    reasons.push_back(plainReason("waiting for other pipeline stages", before.bubbleSeconds, after.bubbleSeconds));
    std::erase_if(reasons, [](const Reason& reason) { return reason.part.seconds() == 0.0; });
    std::stable_sort(reasons.begin(), reasons.end(),
        [](const Reason& a, const Reason& b) { return std::fabs(a.part.seconds()) > std::fabs(b.part.seconds()); });
    return reasons;
}

/// Several reasons of one family.
struct Group {
    std::vector<const Reason*> reasons; ///< the largest first
    double seconds = 0.0;
};

/// The values of two or more reasons: "layers.0.w and layers.1.w", "the gradients of layers.0.w and 3 more".
std::string valuesInWords(const std::vector<const Reason*>& reasons)
{
    constexpr std::string_view kGradient = "the gradient of ";
    std::string_view first = reasons[0]->value;
    std::string_view second = reasons[1]->value;
    const bool areGradients = first.starts_with(kGradient) && second.starts_with(kGradient);
    if (areGradients) {
        first.remove_prefix(kGradient.size());
        second.remove_prefix(kGradient.size());
    }
    const char* noun = areGradients ? "the gradients of " : "";
    if (reasons.size() == 2)
        return fmt::format("{}{} and {}", noun, first, second);
    return fmt::format("{}{} and {} more", noun, first, reasons.size() - 1);
}

std::string inWords(const Group& group)
{
    std::vector<const Reason*> shown;
    for (const Reason* reason : group.reasons) {
        if (std::fabs(reason->part.seconds()) >= 0.1 * std::fabs(group.reasons.front()->part.seconds()))
            shown.push_back(reason);
    }
    const Reason& first = *shown.front();
    if (shown.size() == 1)
        return first.part.what;
    Pair together = first.pair;
    together.was = together.is = {};
    for (const Reason* reason : shown) {
        for (const auto& [from, to] : {std::pair(&reason->pair.was, &together.was), std::pair(&reason->pair.is, &together.is)}) {
            to->exposedSeconds += from->exposedSeconds;
            to->seconds += from->seconds;
            to->bytes += from->bytes;
            to->groupSize = std::max(to->groupSize, from->groupSize);
        }
    }
    together.was.there = first.pair.was.there;
    together.is.there = first.pair.is.there;
    return collectiveInWords(together, changeOf(together), valuesInWords(shown), true);
}

std::vector<Group> groupsOf(const std::vector<Reason>& reasons)
{
    std::map<std::string, Group> families;
    for (const Reason& reason : reasons) {
        // What grew and what shrank are told apart.
        Group& group = families[(reason.part.seconds() > 0.0 ? "+" : "-") + reason.family];
        group.reasons.push_back(&reason);
        group.seconds += reason.part.seconds();
    }
    std::vector<Group> groups;
    for (auto& [name, group] : families)
        groups.push_back(std::move(group));
    std::stable_sort(
        groups.begin(), groups.end(), [](const Group& a, const Group& b) { return std::fabs(a.seconds) > std::fabs(b.seconds); });
    return groups;
}

/// Signed times in the unit of a step's time, so that the figures of one sentence compare at a glance.
class SignedTime {
public:
    explicit SignedTime(double stepSeconds)
        : m_stepSeconds(stepSeconds)
    {
        constexpr std::array<std::pair<double, const char*>, 4> kUnits = {{{1.0, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}};
        const auto found
            = std::find_if(kUnits.begin(), kUnits.end(), [&](const auto& unit) { return stepSeconds >= unit.first; });
        std::tie(m_unit, m_name) = found == kUnits.end() ? kUnits.back() : *found;
    }

    bool isNothing(double seconds) const { return std::fabs(seconds) < std::max(0.005 * m_unit, kNothing * m_stepSeconds); }

    std::string operator()(double seconds) const
    {
        const double value = seconds / m_unit;
        const double size = std::fabs(value);
        return fmt::format("{:+.{}f} {}", value, size >= 99.95 ? 0 : size >= 0.095 ? 1 : 2, m_name);
    }

private:
    double m_stepSeconds = 0.0;
    double m_unit = 1.0;
    const char* m_name = "s";
};

std::string sentenceOf(const StepChange& whole, const std::vector<Reason>& reasons)
{
    const SignedTime time(std::max(whole.beforeSeconds, whole.afterSeconds));
    const double seconds = whole.seconds();
    if (time.isNothing(seconds))
        return "no change";
    const std::vector<Group> groups = groupsOf(reasons);
    // The largest that went the way of the whole: there is one, since the parts add up to it.
    const auto main = std::find_if(
        groups.begin(), groups.end(), [&](const Group& group) { return (group.seconds > 0.0) == (seconds > 0.0); });
    if (main == groups.end())
        return time(seconds);
    std::string sentence = fmt::format("{}: {}", time(seconds), inWords(*main));
    const double rest = seconds - main->seconds;
    if (std::fabs(rest) <= kUnexplainedShown * std::fabs(seconds))
        return sentence;
    sentence += fmt::format(" ({})", time(main->seconds));
    const auto second = std::find_if(groups.begin(), groups.end(),
        [&](const Group& group) { return &group != &*main && (group.seconds > 0.0) == (rest > 0.0); });
    if (second != groups.end() && std::fabs(second->seconds) > 0.25 * std::fabs(rest))
        sentence += fmt::format(", {} ({})", inWords(*second), time(second->seconds));
    return sentence;
}

bool takeSuffix(std::string_view& text, std::string_view suffix)
{
    if (!text.ends_with(suffix) || text.size() == suffix.size())
        return false;
    text.remove_suffix(suffix.size());
    return true;
}

} // namespace

std::string valueInWords(std::string_view name)
{
    const ArrayName array = arrayNameOf(name);
    switch (array.family) {
    case ArrayName::Family::Gradient:
        return "the gradient of " + valueInWords(array.base);
    case ArrayName::Family::Momentum:
        return "the momentum of " + valueInWords(array.base);
    case ArrayName::Family::SecondMoment:
        return "the second moment of " + valueInWords(array.base);
    case ArrayName::Family::Master:
        return "the master copy of " + valueInWords(array.base);
    case ArrayName::Family::Updated: {
        const std::string words = valueInWords(array.base);
        return "the updated " + (words.starts_with("the ") ? words.substr(4) : words);
    }
    case ArrayName::Family::Activation: {
        std::string_view layer = array.base;
        if (!takeSuffix(layer, ".product"))
            takeSuffix(layer, ".activated");
        return std::string(layer) + "'s output";
    }
    case ArrayName::Family::Own:
    case ArrayName::Family::SharedState:
        break;
    }
    if (name == "loss" || name.starts_with("loss."))
        return "the loss";
    if (name == "accuracy" || name.starts_with("accuracy."))
        return "the accuracy";
    return std::string(name);
}

StepChange explainStepChange(const Simulation& before, const Simulation& after)
{
    StepChange whole{before.stepSeconds, after.stepSeconds, {}, {}};
    const std::vector<Reason> reasons = reasonsFor(before, after);
    for (const Reason& reason : reasons)
        whole.parts.push_back(reason.part);
    whole.sentence = sentenceOf(whole, reasons);
    return whole;
}

} // namespace meshwright::sim
