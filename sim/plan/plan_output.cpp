// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/plan_answer.h"

#include "core/support/counted.h"
#include "core/support/json_text.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/units.h"
#include "core/support/version.h"
#include "sim/search/output_parts.h"
#include "sim/search/plan_reasons.h"
#include "sim/search/search_limits.h"
#include "sim/search/search_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

template <typename T>
Json orNull(const std::optional<T>& value)
{
    return value ? Json(*value) : Json(nullptr);
}

Json planOf(const FoundPlan& plan)
{
    return parsedJson(foundPlanJson(plan));
}

Json timeJson(const TrainingTime& time)
{
    return {{"step_time_s", time.stepSeconds}, {"tokens_per_s", time.tokensPerSecond}, {"mfu", time.mfu}, {"days", time.days},
        {"cost_usd", orNull(time.dollars)},
        {"goodput",
            {{"share", time.goodput.share}, {"failure_s", time.goodput.failureSeconds},
                {"checkpoint_s", time.goodput.checkpointSeconds}, {"interval_s", time.goodput.intervalSeconds},
                {"restart_s", time.goodput.restartSeconds}}}};
}

std::string sharesText(const std::vector<NamedShare>& shares)
{
    std::vector<std::string> parts;
    for (const NamedShare& share : shares)
        parts.push_back(fmt::format("{} {}", share.name, formatBytes(share.amount)));
    return join(parts, ", ");
}

std::string changeText(const PlanChange& change)
{
    if (!change.plan)
        return change.whyNot;
    return fmt::format("{}, {} a step, {:.1f}/{:.1f} GiB", meshText(change.plan->mesh), formatSeconds(change.plan->seconds()),
        change.plan->peakBytes / kGiB, change.plan->capacityBytes / kGiB);
}

} // namespace

std::string planJson(const PlanAnswer& answer)
{
    Json json = {{"schema", "meshwright.plan/1"}, {"meshwright", kVersion},
        {"model",
            {{"name", answer.model}, {"parameters", answer.parameters}, {"active_parameters", answer.activeParameters},
                {"ignored_keys", answer.ignoredKeys}, {"notes", answer.notes}}},
        {"cluster", {{"name", answer.cluster}, {"chip", answer.chip}, {"chips", answer.chips}}}, {"tokens", answer.tokens},
        {"sequence", answer.sequence}, {"global_batch", answer.globalBatch}, {"fits", answer.fits()}};
    json["plans"] = Json::array();
    for (const FoundPlan& plan : answer.plans)
        json["plans"].push_back(planOf(plan));
    const bool fits = answer.fits();
    json["tokens_per_s"] = fits ? Json(answer.time.tokensPerSecond) : Json(nullptr);
    json["days"] = fits ? Json(answer.time.days) : Json(nullptr);
    json["cost_usd"] = fits ? orNull(answer.time.dollars) : Json(nullptr);
    json["time"] = fits ? timeJson(answer.time) : Json(nullptr);
    json["price"] = answer.price ? Json{{"dollars_per_chip_hour", answer.price->dollarsPerHour}, {"date", answer.price->date},
                        {"source", answer.price->source}}
                                 : Json(nullptr);
    json["range"] = fits && answer.daysHigh > 0.0
        ? Json{{"low", answer.daysLow}, {"high", answer.daysHigh}, {"from", answer.rangeFrom}}
        : Json(nullptr);
    json["launch"] = Json::object();
    for (const LaunchCommand& launch : answer.launch)
        json["launch"][launch.framework] = {{"command", launch.command.empty() ? Json(nullptr) : Json(launch.command)},
            {"why_not", launch.whyNot}, {"warning", launch.warning}};
    json["changes"] = Json::array();
    for (const PlanChange& change : answer.changes)
        json["changes"].push_back(
            {{"what", change.what}, {"kind", change.kind}, {"plan", change.plan ? planOf(*change.plan) : Json(nullptr)},
                {"tokens_per_s", change.plan ? Json(change.tokensPerSecond) : Json(nullptr)},
                {"gain", change.plan ? Json(change.gain) : Json(nullptr)}, {"why_not", change.whyNot}});
    json["sizes"] = Json::array();
    for (const ClusterSize& size : answer.sizes)
        json["sizes"].push_back({{"cluster", size.cluster}, {"chips", size.chips},
            {"mesh", size.plan ? Json(meshText(size.plan->mesh)) : Json(nullptr)},
            {"time", size.plan ? timeJson(size.time) : Json(nullptr)}, {"simulated", size.simulated}, {"verdict", size.verdict},
            {"chosen", size.chosen}});
    json["wanted"] = answer.wanted;
    json["meets"] = answer.meets;
    json["why_none"] = answer.whyNone;
    json["changes_that_fit"] = answer.changesThatFit;
    json["reliability"] = answer.reliability;
    json["assumptions"] = answer.assumptions;
    json["simulated"] = answer.simulated;
    json["not_simulated"] = answer.notSimulated;
    json["wall_s"] = answer.wallSeconds;
    return jsonText(json);
}

std::string planText(const PlanAnswer& answer)
{
    std::string text
        = fmt::format("{}: {} parameters{}, {} tokens, {} of {} a step\non {}\n\n", answer.model, formatCount(answer.parameters),
            answer.activeParameters < answer.parameters ? fmt::format(" ({} active)", formatCount(answer.activeParameters)) : "",
            formatCount(answer.tokens), counted(answer.globalBatch, "sequence"), formatWhole(answer.sequence), answer.cluster);
    if (!answer.sizes.empty()) {
        TextTable table({{"cluster"}, {"mesh"}, {"step", Align::Right}, {"days", Align::Right}, {"dollars", Align::Right}, {""}});
        for (const ClusterSize& size : answer.sizes)
            table.addRow({size.cluster, size.plan ? meshText(size.plan->mesh) : "-",
                size.plan ? formatSeconds(size.time.stepSeconds) : "-", size.plan ? fmt::format("{:.1f}", size.time.days) : "-",
                size.plan && size.time.dollars ? formatDollars(*size.time.dollars) : "-", size.verdict});
        text += table.text(0) + "\n";
    }
    if (!answer.fits()) {
        text += answer.cutShort      ? "no plan was met in the time that there was: give it more with --time-limit\n"
            : answer.whyNone.empty() ? std::string("no plan fits\n")
                                     : "no legal layout\n" + indentedLines(answer.whyNone);
        for (const FoundPlan& plan : answer.plans)
            text += fmt::format("  nearest: {}; {}\n", meshText(plan.mesh), plan.why.empty() ? std::string{} : plan.why.front());
        if (!answer.changesThatFit.empty())
            text += "\nthe smallest changes that fit\n" + indentedLines(answer.changesThatFit);
        return text;
    }
    const FoundPlan& best = answer.plans.front();
    const TrainingTime& time = answer.time;
    text += fmt::format("{} with {}: {} a step{}, {} tokens/s, MFU {:.1f} %\n", formatDays(time.days), meshText(best.mesh),
        formatSeconds(time.stepSeconds), best.simulatedSeconds ? "" : " (estimated)", formatCount(time.tokensPerSecond),
        100.0 * time.mfu);
    if (!answer.rangeFrom.empty())
        text += fmt::format("  {}\n", answer.rangeText());
    if (time.dollars)
        text += fmt::format("  {} at ${:.2f} an hour and chip ({}{})\n", formatDollars(*time.dollars),
            answer.price->dollarsPerHour, answer.price->date.empty() ? "" : answer.price->date + ", ", answer.price->source);
    else
        text += fmt::format("  no price of {} is known: --price gives one\n", answer.chip);
    text += fmt::format("  goodput {:.1f} %: a failure every {}, a checkpoint of {} every {}, {} to start again\n",
        100.0 * time.goodput.share, formatDays(time.goodput.failureSeconds / kSecondsPerDay),
        formatSeconds(time.goodput.checkpointSeconds), formatSeconds(time.goodput.intervalSeconds),
        formatSeconds(time.goodput.restartSeconds));
    if (!answer.wanted.empty() && answer.sizes.empty())
        text += fmt::format("  {}: {}\n", answer.wanted, answer.meets ? "yes" : "no");
    std::vector<NamedShare> held = best.memory;
    const auto reserve = std::ranges::find(held, std::string("reserve"), &NamedShare::name);
    std::string kept;
    if (reserve != held.end()) {
        kept = fmt::format(", of which the runtime keeps {}", formatBytes(reserve->amount));
        held.erase(reserve);
    }
    text += fmt::format("\nfits: {:.1f} of {:.1f} GiB a device{}\n  {}\n", best.peakBytes / kGiB, best.capacityBytes / kGiB, kept,
        sharesText(held));
    if (!best.live.empty())
        text += fmt::format("  largest at the peak: {}\n", sharesText(best.live));
    text += "\nthe best plan, and the nearest of other kinds\n";
    TextTable table({{"kind"}, {"mesh"}, {"recompute"}, {"microbatches", Align::Right}, {"step", Align::Right},
        {"loses", Align::Right}, {"GiB/device", Align::Right}, {"why"}});
    for (const FoundPlan& plan : answer.plans) {
        const double seconds = plan.seconds();
        table.addRow({plan.kind, meshText(plan.mesh), plan.recompute,
            fmt::format("{:.0f} x {:.0f}{}", plan.pipeline.microbatches, plan.microbatch,
                plan.pipeline.stages > 1 ? " " + plan.pipeline.schedule : std::string{}),
            formatSeconds(seconds) + (plan.simulatedSeconds ? "" : " est."),
            &plan == &best || !plan.simulatedSeconds ? std::string("-")
                                                     : fmt::format("{:+.1f} %", 100.0 * (seconds / time.stepSeconds - 1.0)),
            fmt::format("{:.1f}", plan.peakBytes / kGiB), plan.why.empty() ? std::string{} : plan.why.front()});
    }
    text += table.text(2);
    if (!answer.changes.empty()) {
        TextTable changes({{"change"}, {"tokens/s", Align::Right}, {"gain", Align::Right}, {"plan"}});
        for (const PlanChange& change : answer.changes)
            changes.addRow({change.what, change.plan ? formatCount(change.tokensPerSecond) : "-",
                change.plan ? fmt::format("{:+.1f} %", 100.0 * change.gain) : "-", changeText(change)});
        text += "\nwhat would change the answer\n" + changes.text(2);
    }
    if (!answer.launch.empty())
        text += "\nlaunched by\n";
    for (const LaunchCommand& launch : answer.launch) {
        text += fmt::format("  {}: {}\n", launch.framework, launch.command.empty() ? "-, " + launch.whyNot : launch.command);
        if (!launch.warning.empty())
            text += fmt::format("    {}\n", launch.warning);
    }
    if (!answer.notSimulated.empty())
        text += "\nnot simulated\n" + indentedLines(answer.notSimulated);
    if (!answer.notes.empty())
        text += "\nread as\n" + indentedLines(answer.notes);
    text += "\nfrom\n" + indentedLines(answer.reliability) + "\nassumed\n" + indentedLines(answer.assumptions);
    return text;
}

} // namespace meshwright::sim
