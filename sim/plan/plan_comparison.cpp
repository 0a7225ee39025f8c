// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/plan_answer.h"

#include "core/support/counted.h"
#include "core/support/text.h"
#include "core/support/units.h"
#include "core/support/version.h"
#include "sim/search/plan_reasons.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::sim {

namespace {

/// Answers for one model, in their order.
std::vector<std::span<const PlanAnswer>> byModel(std::span<const PlanAnswer> answers)
{
    std::vector<std::span<const PlanAnswer>> models;
    for (std::size_t first = 0, last = 0; first < answers.size(); first = last) {
        while (last < answers.size() && answers[last].model == answers[first].model
            && answers[last].parameters == answers[first].parameters) // of one family several have its name
            ++last;
        models.push_back(answers.subspan(first, last - first));
    }
    return models;
}

/// The least of those that have a figure; null: none has.
template <typename Figure>
const PlanAnswer* least(std::span<const PlanAnswer> answers, const Figure& figure)
{
    const PlanAnswer* best = nullptr;
    for (const PlanAnswer& answer : answers) {
        if (answer.fits() && figure(answer) && (best == nullptr || *figure(answer) < *figure(*best)))
            best = &answer;
    }
    return best;
}

std::optional<double> trainingDays(const PlanAnswer& answer)
{
    return answer.time.days;
}

std::optional<double> trainingDollars(const PlanAnswer& answer)
{
    return answer.time.dollars;
}

std::string whyNot(const PlanAnswer& answer)
{
    if (answer.plans.empty())
        return "no layout is legal";
    const FoundPlan& plan = answer.plans.front();
    return fmt::format("needs {} of {} a device", formatBytes(plan.peakBytes), formatBytes(plan.capacityBytes));
}

ReportTable clustersTable(std::span<const PlanAnswer> answers)
{
    const ReportValue none{"–"};
    ReportTable table;
    table.title = fmt::format("{}, {} parameters", answers.front().model, formatCount(answers.front().parameters));
    table.columns = {{"cluster"}, {"chip-hour", true}, {"time", true}, {"cost", true}, {"step", true}, {"tokens/s", true},
        {"MFU", true}, {"memory", true}, {"plan"}, {"note"}};
    const std::vector<std::string> verdicts = planVerdicts(answers);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const PlanAnswer& answer = answers[i];
        const TrainingTime& time = answer.time;
        ReportRow row;
        row.cells.assign(table.columns.size(), none);
        row.cells[0] = {answer.cluster};
        if (answer.price)
            row.cells[1] = {fmt::format("${:.2f}", answer.price->dollarsPerHour), answer.price->dollarsPerHour, "USD"};
        if (answer.fits()) {
            const FoundPlan& plan = answer.plans.front();
            row.cells[2] = {formatDays(time.days), time.days * kSecondsPerDay, "s"};
            if (time.dollars)
                row.cells[3] = {formatDollars(*time.dollars), *time.dollars, "USD"};
            row.cells[4] = {formatSeconds(time.stepSeconds), time.stepSeconds, "s"};
            row.cells[5] = {formatCount(time.tokensPerSecond), time.tokensPerSecond, "1/s"};
            row.cells[6] = {fmt::format("{:.0f} %", 100.0 * time.mfu), time.mfu};
            row.cells[7] = {formatBytes(plan.peakBytes), plan.peakBytes, "B"};
            row.cells[8] = {meshText(plan.mesh)};
            row.opening.text = plan.why.empty() ? std::string() : plan.why.front();
            if (!answer.rangeFrom.empty())
                row.opening.text += "\n" + answer.rangeText();
            if (answer.price && !answer.price->source.empty())
                row.opening.text += "\nprice: " + answer.price->source;
        }
        row.cells[9] = {verdicts[i]};
        table.rows.push_back(std::move(row));
    }
    return table;
}

/// Which cluster has the least of a figure: its name where it is the same one for every model.
template <typename Figure, typename Format>
ReportAnswer leastAnswer(const char* id, const char* question, std::span<const PlanAnswer> answers, const Figure& figure,
    const Format& format, const char* noneIsKnown)
{
    ReportAnswer result;
    result.id = id;
    result.question = question;
    std::vector<std::string> sentences;
    for (const std::span<const PlanAnswer> model : byModel(answers)) {
        const PlanAnswer* best = least(model, figure);
        const std::string cluster = best == nullptr ? "None" : best->cluster;
        result.headline = sentences.empty() || result.headline == cluster ? cluster : "It depends on the model";
        sentences.push_back(fmt::format("{}: {}", model.front().model,
            best == nullptr ? std::string(noneIsKnown) : fmt::format("{} on {}", format(*figure(*best)), cluster)));
    }
    result.sentence = join(sentences, "; ") + ".";
    return result;
}

} // namespace

std::vector<std::string> planVerdicts(std::span<const PlanAnswer> answers)
{
    const PlanAnswer* quickest = least(answers, trainingDays);
    const PlanAnswer* cheapest = least(answers, trainingDollars);
    std::vector<std::string> verdicts;
    for (const PlanAnswer& answer : answers) {
        std::vector<std::string> said;
        if (!answer.fits())
            said.push_back(whyNot(answer));
        if (answers.size() > 1 && &answer == quickest)
            said.emplace_back("quickest");
        if (answers.size() > 1 && &answer == cheapest)
            said.emplace_back("cheapest");
        if (answer.fits() && !answer.plans.front().simulatedSeconds)
            said.emplace_back("estimated: there was no time to simulate it");
        verdicts.push_back(join(said, ", "));
    }
    return verdicts;
}

Report planComparison(std::span<const PlanAnswer> answers, const std::string& commands)
{
    Report report;
    report.version = kVersion;
    const auto models = byModel(answers);
    std::vector<std::string> names;
    for (const std::span<const PlanAnswer> model : models)
        names.push_back(model.front().model);
    report.title = "Training " + join(names, " and ");
    report.facts = {{"clusters", std::to_string(models.front().size())}, {"tokens", formatCount(answers.front().tokens)},
        {"step",
            fmt::format("{} of {}", counted(answers.front().globalBatch, "sequence"), formatWhole(answers.front().sequence))}};
    report.command = commands;
    const auto fitting = static_cast<std::int64_t>(
        std::count_if(answers.begin(), answers.end(), [](const PlanAnswer& answer) { return answer.fits(); }));
    const auto all = static_cast<std::int64_t>(answers.size());
    ReportAnswer fits;
    fits.id = "fits";
    fits.question = "Does each fit?";
    fits.tone = fitting == all ? ReportTone::Good : ReportTone::Warning;
    fits.headline = fitting == all ? std::string("Yes") : fmt::format("{} of {}", fitting, all);
    fits.sentence = "Of " + counted(all, "best plan")
        + fmt::format(", one for each model on each cluster, {} in the memory of {} devices.",
            fitting == 1 ? "one fits" : fmt::format("{} fit", fitting), fitting == 1 ? "its" : "their");
    report.answers = {fits, leastAnswer("speed", "Which is quickest?", answers, trainingDays, formatDays, "it fits on none"),
        leastAnswer("cost", "Which is cheapest?", answers, trainingDollars, formatDollars,
            "no price of a cluster that it fits on is known")};
    ReportSection clusters{"clusters", "Clusters", {}};
    for (const std::span<const PlanAnswer> model : models)
        clusters.blocks.emplace_back(clustersTable(model));
    clusters.blocks.emplace_back(ReportParagraph{"Each row is the best plan that was found for the cluster; its step and its "
                                                 "memory are simulated unless the note says otherwise. "
                                                 "Times count failures, checkpoints and restarts."});
    report.sections.push_back(std::move(clusters));
    ReportSection origin{"origin", "Where this comes from", {}};
    std::vector<std::string> assumed;
    for (const PlanAnswer& answer : answers) {
        for (const std::string& assumption : answer.assumptions) {
            if (std::find(assumed.begin(), assumed.end(), assumption) == assumed.end())
                assumed.push_back(assumption);
        }
    }
    ReportTable assumptions;
    assumptions.title = "Assumed";
    assumptions.columns = {{"assumption"}};
    for (std::string& assumption : assumed)
        assumptions.rows.push_back({{ReportValue{std::move(assumption)}}, {}});
    if (!assumptions.rows.empty())
        origin.blocks.emplace_back(std::move(assumptions));
    origin.blocks.emplace_back(ReportCode{"Commands", commands});
    report.sections.push_back(std::move(origin));
    return report;
}

} // namespace meshwright::sim
