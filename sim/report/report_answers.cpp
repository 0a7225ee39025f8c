// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/spoken_op.h"
#include "core/support/text.h"
#include "sim/report/report_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace meshwright::sim {

namespace {

/// A change must save this share of the step, or gain this share of samples, to be advised: less is within the model's own error.
constexpr double kWorthwhile = 0.02;
/// Below this share of memory left a study that fits is said to be tight.
constexpr double kTightShare = 0.10;

const SimulatedCollective* mostWaitedFor(const Simulation& simulation)
{
    const auto most = std::max_element(simulation.collectives.begin(), simulation.collectives.end(),
        [](const SimulatedCollective& a, const SimulatedCollective& b) { return a.exposedSeconds < b.exposedSeconds; });
    return most == simulation.collectives.end() || most->exposedSeconds <= 0.0 ? nullptr : &*most;
}

std::string collectiveText(const SimulatedCollective& collective)
{
    return fmt::format("{} over {} of {}", spokenOp(collective.use.kind), collective.use.axes, collective.use.cause.value);
}

/// The kind of memory that takes most at the peak, its bytes, and its largest value.
struct Dominant {
    MemoryKind kind = MemoryKind::Temporary;
    std::int64_t bytes = 0;
    const LiveValue* largest = nullptr;
};

Dominant dominantKind(const SimulatedStudy& study)
{
    std::map<MemoryKind, Dominant> byKind;
    for (const LiveValue& value : study.liveAtPeak) { // the largest first
        Dominant& dominant = byKind[value.kind];
        dominant.kind = value.kind;
        dominant.bytes += value.bytes;
        if (dominant.largest == nullptr)
            dominant.largest = &value;
    }
    Dominant most;
    for (const auto& [kind, dominant] : byKind) {
        if (dominant.bytes > most.bytes)
            most = dominant;
    }
    return most;
}

/// Of several trials: which is best.
struct Best {
    const ReportTrial* trial = nullptr;
    double gain = 0.0; ///< share of the time for a sample that it saves
};

double secondsPerSample(double stepSeconds, std::int64_t batch)
{
    return stepSeconds / static_cast<double>(std::max<std::int64_t>(1, batch));
}

Best bestOf(const ReportInputs& inputs, std::initializer_list<ReportTrial::Kind> kinds)
{
    const double now = secondsPerSample(inputs.simulated->simulation.stepSeconds, inputs.study->batch);
    Best best;
    for (const ReportTrial& trial : inputs.trials) {
        if (!trial.whyNot.empty() || !trial.fits || std::find(kinds.begin(), kinds.end(), trial.kind) == kinds.end())
            continue;
        const double gain = now > 0.0 ? 1.0 - secondsPerSample(trial.stepSeconds, trial.batch) / now : 0.0;
        if (best.trial == nullptr || gain > best.gain)
            best = {&trial, gain};
    }
    return best;
}

std::size_t triedCount(const ReportInputs& inputs)
{
    return static_cast<std::size_t>(
        std::count_if(inputs.trials.begin(), inputs.trials.end(), [](const ReportTrial& trial) { return trial.whyNot.empty(); }));
}

std::string changesText(std::size_t count)
{
    return count == 1 ? std::string("the one change that was simulated")
                      : fmt::format("the {} changes that were simulated", count);
}

/// "None of the 5 changes that were simulated", "The one change that was simulated does not"; a verb follows.
std::string noneText(std::size_t count)
{
    return count == 1 ? std::string("The one change that was simulated does not") : "None of " + changesText(count);
}

std::string noneFaster(std::size_t count)
{
    return count == 1 ? std::string("The one change that was simulated is not faster.")
                      : fmt::format("None of {} is faster.", changesText(count));
}

std::string capitalised(std::string text)
{
    if (!text.empty() && text.front() >= 'a' && text.front() <= 'z')
        text.front() = static_cast<char>(text.front() - 'a' + 'A');
    return text;
}

ReportAnswer answer(std::string id, std::string question, ReportTone tone, std::string headline)
{
    ReportAnswer result;
    result.id = std::move(id);
    result.question = std::move(question);
    result.tone = tone;
    result.headline = std::move(headline);
    return result;
}

std::string devicesText(std::int64_t count)
{
    return count == 1 ? std::string("one device") : fmt::format("{} devices", formatWhole(count));
}

ReportAnswer fitsAnswer(const ReportInputs& inputs)
{
    const Simulation& s = inputs.simulated->simulation;
    const auto peak = static_cast<double>(s.peakBytes);
    const auto usable = static_cast<double>(usableBytes(s));
    const double share = usable > 0.0 ? peak / usable : 0.0;
    const bool tight = s.fits && share > 1.0 - kTightShare;
    ReportAnswer result = answer("fits", "Does it fit?",
        !s.fits     ? ReportTone::Error
            : tight ? ReportTone::Warning
                    : ReportTone::Good,
        s.fits ? (tight ? "Barely" : "Yes") : "No");
    result.value = bytesValue(peak);
    result.value.text += " of " + formatBytes(usable);
    result.share = share;
    const Dominant dominant = dominantKind(*inputs.simulated);
    if (s.fits)
        result.sentence = fmt::format("A device needs {} of the memory that programs may use; {} stay free.", percentText(share),
            formatBytes(usable - peak));
    else
        result.sentence = fmt::format("{} too much on each device.", formatBytes(peak - usable));
    if (dominant.largest != nullptr && (!s.fits || tight))
        result.sentence += fmt::format(" {} of the peak is memory for {}; the largest array is {} with {}.",
            percentText(static_cast<double>(dominant.bytes) / peak), memoryKindName(dominant.kind), dominant.largest->name,
            formatBytes(dominant.largest->bytes));
    result.opening.formula = "fits = peak ≤ capacity − reserve";
    result.opening.inputs = {
        {"peak", formatWhole(s.peakBytes) + " B", "buffer plan of the scheduled step"},
        {"capacity", formatWhole(s.capacityBytes) + " B", sourceText(inputs.machine->chip.hbmBytes)},
        {"reserve", formatWhole(s.reserveBytes) + " B",
            "assumed: " + reserveRule(*inputs.machine) + ", for the runtime and fragmentation"},
    };
    return result;
}

ReportAnswer speedAnswer(const ReportInputs& inputs)
{
    const Simulation& s = inputs.simulated->simulation;
    ReportAnswer result = answer(
        "speed", "How fast is a step?", s.fits ? ReportTone::Neutral : ReportTone::Warning, formatSeconds(s.stepSeconds));
    const bool trains = inputs.study->trains();
    const double perSecond
        = s.stepSeconds > 0.0 ? (trains ? static_cast<double>(inputs.study->batch) : 1.0) / s.stepSeconds : 0.0;
    result.value = rateValue(perSecond, trains ? "samples" : "steps");
    result.sentence = fmt::format("The model's products use {} of what {} could multiply (MFU, of {}). Predicted, not measured.",
        mfuText(s.mfu), devicesText(inputs.placement->mesh().deviceCount()), s.peakHow);
    if (!s.fits)
        result.sentence = "If it fitted. " + result.sentence;
    result.opening.formula = trains
        ? "samples/s = batch / step;  step = compute + launch + exposed communication + bubble + stack"
        : "steps/s = 1 / step;  step = compute + launch + exposed communication + bubble + stack";
    result.opening.inputs = {
        {"compute", formatSeconds(s.computeSeconds), "simulated: the roofline of each kernel, in order"},
        {"launch", formatSeconds(s.launchSeconds), "simulated: waiting for the host to start kernels"},
        {"exposed communication", formatSeconds(s.exposedSeconds), "simulated: computing waits for a collective"},
        {"bubble", formatSeconds(s.bubbleSeconds), "simulated: waiting for other pipeline stages"},
        {"stack", formatSeconds(s.stackSeconds),
            "fitted: between steps and for slow hosts, where a software stack was asked for"},
    };
    if (trains)
        result.opening.inputs.push_back({"batch", formatWhole(inputs.study->batch), "study: batch"});
    return result;
}

bool boundByCollective(const Simulation& s)
{
    return s.boundBy.kind == StepPart::Kind::Collective;
}

ReportAnswer boundAnswer(const ReportInputs& inputs)
{
    const Simulation& s = inputs.simulated->simulation;
    const bool waits = boundByCollective(s);
    ReportAnswer result
        = answer("bound", "What bounds it?", waits ? ReportTone::Warning : ReportTone::Neutral, spokenBound(s.boundBy.text()));
    const double step = s.stepSeconds > 0.0 ? s.stepSeconds : 1.0;
    result.share = (waits ? s.exposedSeconds : s.computeSeconds) / step;
    result.value = shareValue(*result.share);
    result.value.text += waits ? " of the step waits" : " of the step computes";
    const SimulatedCollective* longest = mostWaitedFor(s);
    if (longest == nullptr)
        result.sentence = s.collectives.empty() ? "No device waits for another: there are no collectives."
                                                : "No collective is waited for: all are hidden behind computing.";
    else
        result.sentence = fmt::format("{} computing, {} waiting for collectives. The longest wait is {}, for the {}.",
            formatSeconds(s.computeSeconds), formatSeconds(s.exposedSeconds), formatSeconds(longest->exposedSeconds),
            collectiveText(*longest));
    result.opening.text = waits
        ? "A step is bound by a collective when devices wait longer than they compute: then by the one that is waited for "
          "longest."
        : "A step is bound by what computing spends most of its time on when devices compute longer than they wait.";
    result.opening.formula = "exposed communication > compute";
    result.opening.inputs = {{"exposed communication", formatSeconds(s.exposedSeconds), "simulated"},
        {"compute", formatSeconds(s.computeSeconds), "simulated"}};
    return result;
}

/// The advice that a trial gives: what to change, and what that brings.
void adviseTrial(ReportAnswer& result, const ReportInputs& inputs, const ReportTrial& trial)
{
    const Simulation& s = inputs.simulated->simulation;
    result.headline = trial.what;
    result.tone = ReportTone::Neutral;
    if (trial.kind == ReportTrial::Kind::Batch && trial.batch != inputs.study->batch)
        result.value = rateValue(static_cast<double>(trial.batch) / trial.stepSeconds, "samples");
    else if (trial.stepSeconds <= s.stepSeconds) {
        result.value = secondsValue(s.stepSeconds - trial.stepSeconds);
        result.value.text += " faster";
    } else {
        result.value = secondsValue(trial.stepSeconds);
        result.value.text += " a step";
    }
    result.command = commandText("report", inputs.studyFile, withSettings(inputs.settings, trial.settings), "-o report.html");
}

void adviseMemory(ReportAnswer& result, const ReportInputs& inputs)
{
    const Simulation& s = inputs.simulated->simulation;
    using enum ReportTrial::Kind;
    // What leaves the work as it is comes first.
    Best best = bestOf(inputs, {Mesh, Spec, Run});
    if (best.trial == nullptr)
        best = bestOf(inputs, {Batch});
    if (best.trial != nullptr) {
        adviseTrial(result, inputs, *best.trial);
        result.value = bytesValue(static_cast<double>(best.trial->peakBytes));
        result.value.text = "fits: " + result.value.text;
        result.sentence = fmt::format("Of {} this one fits and takes the least time for a sample: a step of {}.",
            changesText(triedCount(inputs)), formatSeconds(best.trial->stepSeconds));
        if (best.trial->kind == Batch)
            result.sentence += " A smaller batch changes the training.";
        return;
    }
    const Dominant dominant = dominantKind(*inputs.simulated);
    result.tone = ReportTone::Error;
    result.headline = "More memory";
    result.sentence = inputs.trials.empty()
        ? "No change was simulated."
        : fmt::format("{} fit{}.", noneText(triedCount(inputs)), triedCount(inputs) == 1 ? "" : "s");
    result.sentence += fmt::format(" The peak must fall by {} on each device", formatBytes(s.peakBytes - usableBytes(s)));
    if (dominant.largest != nullptr)
        result.sentence += fmt::format("; the largest value is {} ({})", dominant.largest->name, memoryKindName(dominant.kind));
    result.sentence += ": shard it over more devices, or use chips with more memory.";
}

void adviseTime(ReportAnswer& result, const ReportInputs& inputs)
{
    const Simulation& s = inputs.simulated->simulation;
    using enum ReportTrial::Kind;
    const SimulatedCollective* longest = mostWaitedFor(s);
    const std::string cause = longest == nullptr || longest->use.cause.annotation.empty()
        ? std::string()
        : fmt::format(" The longest wait, for the {}, comes from {}.", collectiveText(*longest), longest->use.cause.annotation);
    const Best layout = bestOf(inputs, {Mesh, Spec, Run});
    const Best batch = bestOf(inputs, {Batch});
    const Best type = bestOf(inputs, {ProductType});
    if (layout.trial != nullptr && layout.gain > kWorthwhile) {
        adviseTrial(result, inputs, *layout.trial);
        result.sentence = fmt::format("{} instead of {}: the fastest of {}.", formatSeconds(layout.trial->stepSeconds),
            formatSeconds(s.stepSeconds), changesText(triedCount(inputs)));
        result.opening.text = cause;
    } else if (s.boundBy.kind == StepPart::Kind::Launch && batch.trial != nullptr && batch.gain > kWorthwhile) {
        adviseTrial(result, inputs, *batch.trial);
        result.sentence = fmt::format(
            "Kernels are so short that starting them takes the time; {} more samples a second. It changes the training.",
            percentText(1.0 / (1.0 - batch.gain) - 1.0));
    } else if (boundByCollective(s) && batch.trial != nullptr && batch.gain > kWorthwhile) {
        adviseTrial(result, inputs, *batch.trial);
        result.sentence = fmt::format("{}More computing for each byte sent: {} more samples a second. It changes the training.",
            layout.trial != nullptr ? "No other layout that was simulated is faster. " : "",
            percentText(1.0 / (1.0 - batch.gain) - 1.0));
        result.opening.text = cause;
    } else if (type.trial != nullptr && type.gain > kWorthwhile) {
        adviseTrial(result, inputs, *type.trial);
        result.sentence = fmt::format("{} instead of {}. It changes the numbers: products round their operands to bf16.",
            formatSeconds(type.trial->stepSeconds), formatSeconds(s.stepSeconds));
    } else if (boundByCollective(s) && !cause.empty()) {
        result.headline = "Look at " + longest->use.cause.annotation;
        result.tone = ReportTone::Warning;
        result.sentence = inputs.trials.empty() ? std::string() : noneFaster(triedCount(inputs));
        result.sentence += cause;
    } else {
        result.headline = "Keep this layout";
        result.tone = ReportTone::Good;
        result.sentence = triedCount(inputs) == 0 ? std::string("There is no other mesh of these devices and axes.")
                                                  : noneFaster(triedCount(inputs));
        result.sentence += s.boundBy.kind == StepPart::Kind::Launch
            ? std::string(" Its kernels are so short that starting them takes the time.")
            : fmt::format(
                " {} of the step is computing, at an MFU of {}: more or faster chips, or less work, shorten it, and search "
                "looks at layouts that were not simulated here.",
                percentText(s.stepSeconds > 0.0 ? s.computeSeconds / s.stepSeconds : 0.0), mfuText(s.mfu));
    }
    if (result.sentence.starts_with(' '))
        result.sentence.erase(0, 1);
}

ReportAnswer nextAnswer(const ReportInputs& inputs)
{
    ReportAnswer result = answer("next", "What to do next?", ReportTone::Neutral, {});
    if (inputs.simulated->simulation.fits)
        adviseTime(result, inputs);
    else
        adviseMemory(result, inputs);
    if (result.opening.text.starts_with(' '))
        result.opening.text.replace(0, 1, "");
    result.opening.text += result.opening.text.empty() ? "" : "\n";
    result.opening.text += inputs.trials.empty() ? std::string("No change was simulated.")
                                                 : "Each change of the section \"What was tried\" was simulated in full. "
                                                   "Differences below 2 % are not advised: they are within the model's error.";
    return result;
}

/// Why there is no prediction.
std::string missingText(const ReportInputs& inputs)
{
    for (const Problem& problem : inputs.problems) {
        if (problem.severity == Severity::Error)
            return capitalised(problem.message) + ".";
    }
    if (inputs.machine == nullptr)
        return "The study names no hardware: nothing was simulated.";
    return "Nothing was simulated.";
}

} // namespace

std::vector<ReportAnswer> reportAnswers(const ReportInputs& inputs)
{
    if (inputs.simulated != nullptr)
        return {fitsAnswer(inputs), speedAnswer(inputs), boundAnswer(inputs), nextAnswer(inputs)};

    const std::string why = missingText(inputs);
    const bool wrong = hasErrors(inputs.problems);
    std::vector<ReportAnswer> answers = {
        answer("fits", "Does it fit?", wrong ? ReportTone::Error : ReportTone::Warning, "Not known"),
        answer("speed", "How fast is a step?", ReportTone::Neutral, "Not known"),
        answer("bound", "What bounds it?", ReportTone::Neutral, "Not known"),
        answer("next", "What to do next?", ReportTone::Neutral, wrong ? "Fix the study" : "Name the hardware"),
    };
    answers.front().sentence = why;
    if (wrong) {
        answers.back().sentence = "The section \"Problems\" lists all of them, with their fixes.";
        answers.back().command = commandText("check", inputs.studyFile, inputs.settings);
    } else {
        answers.back().sentence = "With hardware the report has times, memory and advice.";
        answers.back().command = commandText(
            "report", inputs.studyFile, withSettings(inputs.settings, {"hardware={chip: h100, hosts: 1}"}), "-o report.html");
    }
    return answers;
}

ReportSection trialsSection(const ReportInputs& inputs)
{
    ReportSection section{"tried", "What was tried", {}};
    section.blocks.push_back(ReportParagraph{"Each row is this study with one thing changed, simulated in full on the same "
                                             "machine. A row opens to the command that reports on it."});
    ReportTable table;
    table.title = "Changes that were simulated";
    table.columns
        = {{"Change"}, {"Step", true}, {"For a sample", true}, {"Waiting", true}, {"Memory", true}, {"Fits"}, {"Bound by"}};
    if (inputs.simulated != nullptr) {
        const Simulation& s = inputs.simulated->simulation;
        table.rows.push_back({{wordsValue("as it is"), secondsValue(s.stepSeconds), wordsValue(""),
                                  secondsValue(s.exposedSeconds), bytesValue(static_cast<double>(s.peakBytes)),
                                  wordsValue(s.fits ? "yes" : "no"), wordsValue(spokenBound(s.boundBy.text()))},
            {}});
    }
    for (const ReportTrial& trial : inputs.trials) {
        ReportRow row;
        if (!trial.whyNot.empty()) {
            row.cells = {wordsValue(trial.what), wordsValue("–"), wordsValue("–"), wordsValue("–"), wordsValue("–"),
                wordsValue("cannot be"), wordsValue("")};
            row.opening.text = trial.whyNot;
        } else {
            const double now = inputs.simulated == nullptr
                ? 0.0
                : secondsPerSample(inputs.simulated->simulation.stepSeconds, inputs.study->batch);
            const double change = now > 0.0 ? secondsPerSample(trial.stepSeconds, trial.batch) / now - 1.0 : 0.0;
            ReportValue against{fmt::format("{}{}",
                                    change >= 0.001        ? "+"
                                        : change <= -0.001 ? "−"
                                                           : "", // "< 0.1 %"
                                    percentText(std::fabs(change))),
                change, {}};
            row.cells = {wordsValue(trial.what), secondsValue(trial.stepSeconds), std::move(against),
                secondsValue(trial.exposedSeconds), bytesValue(static_cast<double>(trial.peakBytes)),
                wordsValue(trial.fits ? "yes" : "no"), wordsValue(spokenBound(trial.boundBy.text()))};
        }
        row.opening.formula
            = commandText("report", inputs.studyFile, withSettings(inputs.settings, trial.settings), "-o report.html");
        table.rows.push_back(std::move(row));
    }
    section.blocks.push_back(std::move(table));
    return section;
}

} // namespace meshwright::sim
