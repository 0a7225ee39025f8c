// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/plan_answer.h"

#include "core/support/counted.h"
#include "core/support/text.h"
#include "core/support/units.h"
#include "core/support/version.h"
#include "sim/search/plan_reasons.h"

#include <fmt/format.h>

#include <span>

namespace meshwright::sim {

namespace {

ReportValue words(std::string text)
{
    return {std::move(text)};
}

ReportValue bytesOf(double bytes)
{
    return {formatBytes(bytes), bytes, "B"};
}

ReportValue secondsOf(double seconds)
{
    return {formatSeconds(seconds), seconds, "s"};
}

ReportValue daysOf(double days)
{
    return {formatDays(days), days * kSecondsPerDay, "s"};
}

/// Seconds, or days where they are more than one.
ReportValue spanOf(double seconds)
{
    return seconds < kSecondsPerDay ? secondsOf(seconds) : daysOf(seconds / kSecondsPerDay);
}

ReportValue gainOf(double share)
{
    return {fmt::format("{:+.1f} %", 100.0 * share), share};
}

double stepOf(const FoundPlan& plan)
{
    return plan.seconds();
}

ReportAnswer fitsAnswer(const PlanAnswer& answer)
{
    ReportAnswer result;
    result.id = "fits";
    result.question = "Does it fit?";
    result.tone = answer.fits() ? ReportTone::Good : ReportTone::Error;
    result.headline = answer.fits() ? "Yes" : answer.cutShort ? "Not known" : "No";
    if (answer.plans.empty()) {
        result.sentence = answer.cutShort ? "The time limit was over before a layout was met."
                                          : "No layout of this model on these machines is legal.";
        return result;
    }
    const FoundPlan& best = answer.plans.front();
    result.value = {fmt::format("{} of {}", formatBytes(best.peakBytes), formatBytes(best.capacityBytes)), best.peakBytes, "B"};
    result.share = best.peakBytes / best.capacityBytes;
    result.sentence = answer.fits() ? fmt::format("At the peak {} take most of a device's memory.", largestShare(best.memory))
                                    : (best.why.empty() ? std::string{} : "It " + best.why.front() + ".");
    return result;
}

ReportAnswer timeAnswer(const PlanAnswer& answer)
{
    ReportAnswer result;
    result.id = "speed";
    result.question = "How long?";
    result.headline = formatDays(answer.time.days);
    result.tone = answer.meets ? ReportTone::Neutral : ReportTone::Warning;
    result.value = {fmt::format("{} tokens/s", formatCount(answer.time.tokensPerSecond)), answer.time.tokensPerSecond, "1/s"};
    result.sentence = answer.rangeFrom.empty() ? std::string("No published run of such machines says how far off that may be.")
                                               : fmt::format("By published runs {}.", answer.rangeText());
    result.opening.formula = "steps x step / goodput";
    result.opening.inputs
        = {{"step", formatSeconds(answer.time.stepSeconds), answer.plans.front().simulatedSeconds ? "simulated" : "estimated"},
            {"tokens", formatCount(answer.tokens), "the command"},
            {"goodput", fmt::format("{:.1f} %", 100.0 * answer.time.goodput.share), "below"}};
    if (!answer.rangeFrom.empty())
        result.opening.inputs.push_back(
            {"range", fmt::format("{} to {}", formatDays(answer.daysLow), formatDays(answer.daysHigh)),
                "measured over simulated steps of published runs"});
    return result;
}

ReportAnswer moneyAnswer(const PlanAnswer& answer)
{
    ReportAnswer result;
    result.id = "cost";
    result.question = "What does it cost?";
    if (!answer.time.dollars) {
        result.headline = "Not known";
        result.sentence = fmt::format("No price of {} is known. --price gives one.", answer.chip);
        return result;
    }
    result.headline = formatDollars(*answer.time.dollars);
    result.value = {fmt::format("${:.2f} an hour and chip", answer.price->dollarsPerHour), answer.price->dollarsPerHour};
    result.sentence
        = fmt::format("{}{}.", answer.price->date.empty() ? "" : "Price of " + answer.price->date + ": ", answer.price->source);
    result.opening.formula = "days x 24 x chips x price";
    return result;
}

ReportAnswer nextAnswer(const PlanAnswer& answer)
{
    ReportAnswer result;
    result.id = "next";
    result.question = "What would change it?";
    const PlanChange* most = nullptr;
    for (const PlanChange& change : answer.changes) {
        if (change.plan && change.gain > (most == nullptr ? 0.02 : most->gain))
            most = &change;
    }
    result.headline = most == nullptr ? "Little" : most->what;
    result.sentence = most == nullptr
        ? std::string("None of the changes that were simulated gains more than 2 %.")
        : fmt::format("{:.1f} % more tokens a second, with {}.", 100.0 * most->gain, meshText(most->plan->mesh));
    return result;
}

ReportTable plansTable(const PlanAnswer& answer)
{
    ReportTable table;
    table.title = answer.fits() ? "The best plan, and the nearest of other kinds" : "By the estimate";
    table.columns
        = {{"kind"}, {"mesh"}, {"recompute"}, {"microbatches", true}, {"step", true}, {"loses", true}, {"memory", true}, {"why"}};
    for (const FoundPlan& plan : answer.plans) {
        const bool isBest = &plan == &answer.plans.front();
        const double loss = stepOf(plan) / stepOf(answer.plans.front()) - 1.0;
        ReportRow row;
        row.cells = {words(plan.kind), words(meshText(plan.mesh)), words(plan.recompute),
            words(fmt::format("{:.0f} x {:.0f}{}", plan.pipeline.microbatches, plan.microbatch,
                plan.pipeline.stages > 1 ? " " + plan.pipeline.schedule : std::string{})),
            secondsOf(stepOf(plan)),
            !plan.simulatedSeconds ? words("estimated")
                : isBest           ? words("-")
                                   : gainOf(loss),
            bytesOf(plan.peakBytes), words(plan.why.empty() ? std::string{} : plan.why.front())};
        if (plan.why.size() > 1)
            row.opening.text = join(std::span<const std::string>(plan.why).subspan(1), "\n");
        table.rows.push_back(std::move(row));
    }
    table.note = "Steps and memory are those of meshwright simulate of the study of each plan, unless they are called estimated.";
    return table;
}

ReportTable sharesTable(const char* title, const std::vector<NamedShare>& shares, bool isTime)
{
    ReportTable table;
    table.title = title;
    table.columns = {{"part"}, {isTime ? "time" : "bytes", true}};
    for (const NamedShare& share : shares)
        table.rows.push_back({{words(share.name), isTime ? secondsOf(share.amount) : bytesOf(share.amount)}, {}});
    return table;
}

ReportTable changesTable(const PlanAnswer& answer)
{
    ReportTable table;
    table.title = "Each change alone";
    table.columns = {{"change"}, {"tokens/s", true}, {"gain", true}, {"plan"}, {"step", true}, {"memory", true}};
    for (const PlanChange& change : answer.changes) {
        if (change.plan)
            table.rows.push_back(
                {{words(change.what), {formatCount(change.tokensPerSecond), change.tokensPerSecond, "1/s"}, gainOf(change.gain),
                     words(meshText(change.plan->mesh)), secondsOf(stepOf(*change.plan)), bytesOf(change.plan->peakBytes)},
                    {join(change.plan->why, "\n")}});
        else
            table.rows.push_back(
                {{words(change.what), words("-"), words("-"), words(change.whyNot), words("-"), words("-")}, {}});
    }
    table.note = "Each is a search of its own, whose best plan is simulated.";
    return table;
}

ReportTable sizesTable(const PlanAnswer& answer)
{
    ReportTable table;
    table.title = answer.wanted;
    table.columns = {{"cluster"}, {"mesh"}, {"step", true}, {"days", true}, {"dollars", true}, {"verdict"}};
    for (const ClusterSize& size : answer.sizes) {
        const bool has = size.plan.has_value();
        table.rows.push_back(
            {{words(size.cluster), words(has ? meshText(size.plan->mesh) : "-"),
                 has ? secondsOf(size.time.stepSeconds) : words("-"), has ? daysOf(size.time.days) : words("-"),
                 has && size.time.dollars ? ReportValue{formatDollars(*size.time.dollars), *size.time.dollars} : words("-"),
                 words(size.verdict)},
                {}});
    }
    return table;
}

ReportFigures failureFigures(const PlanAnswer& answer)
{
    const Goodput& goodput = answer.time.goodput;
    ReportFigures figures;
    ReportOpening opening;
    opening.formula = "1 / ((1 + d / t) (1 + (r + (t + d) / 2) / m)), t = sqrt(2 d m)";
    opening.inputs = {{"m", spanOf(goodput.failureSeconds).text, "between failures"},
        {"d", formatSeconds(goodput.checkpointSeconds), "to write a checkpoint"},
        {"r", formatSeconds(goodput.restartSeconds), "to start again"}};
    opening.text = join(answer.reliability, "\n");
    figures.figures.push_back({"Goodput", {fmt::format("{:.1f} %", 100.0 * goodput.share), goodput.share}, std::move(opening)});
    figures.figures.push_back({"Between failures", spanOf(goodput.failureSeconds)});
    figures.figures.push_back({"A checkpoint takes", spanOf(goodput.checkpointSeconds)});
    figures.figures.push_back({"Between checkpoints", spanOf(goodput.intervalSeconds)});
    return figures;
}

/// The commands of the frameworks that have such a plan, an option a line, and why the others have none.
ReportSection launchSection(const PlanAnswer& answer)
{
    ReportSection section{"launch", "How it is launched", {}};
    ReportTable none;
    none.title = "Frameworks without such a plan";
    none.columns = {{"framework"}, {"why not"}};
    for (const LaunchCommand& launch : answer.launch) {
        if (launch.command.empty()) {
            none.rows.push_back({{words(launch.framework), words(launch.whyNot)}, {}});
            continue;
        }
        std::string lines = launch.command;
        for (std::size_t at = lines.find(" --"); at != std::string::npos; at = lines.find(" --", at + 6))
            lines.replace(at, 1, " \\\n  ");
        section.blocks.emplace_back(ReportCode{launch.framework, std::move(lines)});
        if (!launch.warning.empty())
            section.blocks.emplace_back(ReportParagraph{launch.warning});
    }
    if (!none.rows.empty())
        section.blocks.emplace_back(std::move(none));
    section.blocks.emplace_back(ReportParagraph{"Data, tokenizer and learning rate are yours to add."});
    return section;
}

/// What was read, measured elsewhere and assumed, a row each.
ReportTable sourcesTable(const PlanAnswer& answer)
{
    ReportTable table;
    table.title = "Read, published and assumed";
    table.columns = {{"part"}, {"from"}};
    const auto add = [&](const char* part, const std::vector<std::string>& sentences) {
        for (const std::string& sentence : sentences)
            table.rows.push_back({{words(part), words(sentence)}, {}});
    };
    add("read as", answer.notes);
    if (!answer.ignoredKeys.empty())
        add("not read", {join(answer.ignoredKeys, ", ")});
    if (answer.fits())
        add("published", answer.reliability);
    add("assumed", answer.assumptions);
    return table;
}

} // namespace

Report planReport(const PlanAnswer& answer, const std::string& command)
{
    Report report;
    report.version = kVersion;
    report.title = fmt::format("Training {} on {}", answer.model, answer.cluster);
    report.facts = {{"model", fmt::format("{}, {} parameters", answer.model, formatCount(answer.parameters))},
        {"machine", answer.cluster}, {"tokens", formatCount(answer.tokens)},
        {"step", fmt::format("{} of {}", counted(answer.globalBatch, "sequence"), formatWhole(answer.sequence))}};
    report.command = command;
    report.study.text = answer.study;
    report.answers.push_back(fitsAnswer(answer));
    if (!answer.sizes.empty())
        report.sections.push_back({"sizes", "Sizes of the cluster", {sizesTable(answer)}});
    if (answer.fits()) {
        const FoundPlan& best = answer.plans.front();
        report.answers.push_back(timeAnswer(answer));
        report.answers.push_back(moneyAnswer(answer));
        report.answers.push_back(nextAnswer(answer));
        report.sections.push_back({"plans", "Plans", {plansTable(answer)}});
        report.sections.push_back({"time", "Where a step goes", {sharesTable("A step of the best plan", best.time, true)}});
        report.sections.push_back({"memory", "What lives at the peak",
            {sharesTable("By what it is for", best.memory, false), sharesTable("The largest values", best.live, false)}});
        report.sections.push_back({"failures", "Failures", {failureFigures(answer)}});
        if (!answer.changes.empty())
            report.sections.push_back({"changes", "What would change the answer", {changesTable(answer)}});
        if (!answer.launch.empty())
            report.sections.push_back(launchSection(answer));
    } else {
        if (!answer.plans.empty())
            report.sections.push_back({"plans", "The plan that needs least", {plansTable(answer)}});
        const auto add = [&](const char* id, const char* title, const std::vector<std::string>& sentences) {
            ReportSection section{id, title, {}};
            for (const std::string& sentence : sentences)
                section.blocks.emplace_back(ReportParagraph{sentence});
            if (!sentences.empty())
                report.sections.push_back(std::move(section));
        };
        add("none", "Why no layout is legal", answer.whyNone);
        add("changes", "The smallest changes that fit", answer.changesThatFit);
    }
    ReportSection origin{"origin", "Where this comes from", {}};
    if (!answer.notSimulated.empty())
        origin.blocks.emplace_back(ReportParagraph{"Not simulated: " + join(answer.notSimulated, "; "), ReportTone::Warning});
    if (ReportTable sources = sourcesTable(answer); !sources.rows.empty())
        origin.blocks.emplace_back(std::move(sources));
    if (!answer.study.empty())
        origin.blocks.emplace_back(ReportCode{"The study of the best plan", answer.study});
    origin.blocks.emplace_back(ReportCode{"Command", command});
    report.sections.push_back(std::move(origin));
    return report;
}

} // namespace meshwright::sim
