// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_heat_map.h"
#include "core/draw/draw_scatter.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "sim/report/report_parts.h"
#include "sim/report/sweep_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace meshwright::sim {

namespace {

constexpr std::size_t kMostCells = 1600; ///< of a heat map
constexpr std::size_t kMostPoints = 2000; ///< of the table

const SweepRow* bestOf(const SweepResult& result)
{
    return result.best ? &result.rows[*result.best] : nullptr;
}

/// What is compared: the step time or, where batches differ, the time of one example, or of one token where sequences do.
double timeOf(const SweepResult& result, const SweepOutcome& outcome)
{
    return result.oneBatch ? outcome.stepSeconds : outcome.secondsPerUnit();
}

const char* timeName(const SweepResult& result)
{
    return result.oneBatch ? "step time" : result.plan.variesSequence() ? "time of one token" : "time of one example";
}

std::string capitalized(std::string text)
{
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
    return text;
}

std::string valuesText(const SweepResult& result, const SweepRow& row)
{
    std::string text;
    for (std::size_t i = 0; i < row.values.size(); ++i)
        text += fmt::format("{}{} {}", i == 0 ? "" : ", ", result.plan.parameters[i].name, row.values[i]);
    return text;
}

/// The values alone: "data=8,model=8, 4096".
std::string shortText(const SweepRow& row)
{
    return join(row.values, ", ");
}

std::string outcomeText(const SweepOutcome& o, const char* rateUnit)
{
    if (!o.simulated())
        return fmt::format("refused, {}: {}", o.problem, o.message);
    return fmt::format("step {}, {} {}\n{} of {} a device: {}\nbound by {}", formatSeconds(o.stepSeconds),
        formatRate(1.0 / o.secondsPerUnit()), rateUnit, formatBytes(o.peakBytes), formatBytes(o.usableBytes),
        sweepStateName(o.state), spokenBound(o.boundBy));
}

std::vector<ReportAnswer> answersOf(const SweepResult& result)
{
    std::vector<ReportAnswer> answers;
    const SweepRow* best = bestOf(result);
    ReportAnswer fastest{"best", "Which is the fastest?", best == nullptr ? ReportTone::Error : ReportTone::Good,
        best == nullptr ? "None fits" : shortText(*best)};
    if (best != nullptr) {
        fastest.value = {fmt::format("step {}, {} {}", formatSeconds(best->outcome.stepSeconds),
                             formatRate(1.0 / best->outcome.secondsPerUnit()), sweepRateUnit(result.plan)),
            best->outcome.stepSeconds, "s"};
        fastest.sentence = fmt::format("{}. Bound by {}.", valuesText(result, *best), spokenBound(best->outcome.boundBy));
        fastest.command = commandText("simulate", result.plan.studyFile, result.plan.settingsAt(best->point));
    }
    answers.push_back(std::move(fastest));

    const std::int64_t fits = result.count(SweepState::Fits);
    const std::int64_t tooLarge = result.count(SweepState::TooLarge);
    const std::int64_t refused = result.count(SweepState::Refused);
    ReportAnswer fitting{"fits", "How many fit?",
        fits == 0                    ? ReportTone::Error
            : tooLarge + refused > 0 ? ReportTone::Neutral
                                     : ReportTone::Good,
        fmt::format("{} of {}", fits, result.rows.size())};
    fitting.value = {fmt::format("{} do not fit, {} refused", tooLarge, refused), static_cast<double>(fits), {}};
    fitting.share = result.rows.empty() ? 0.0 : static_cast<double>(fits) / static_cast<double>(result.rows.size());
    if (!result.complete()) {
        fitting.tone = ReportTone::Warning;
        fitting.sentence = fmt::format("The sweep was interrupted: {} of its {} done.", result.rows.size(),
            result.plan.pointCount() == 1 ? std::string("1 point is") : pointsText(result.plan.pointCount()) + " are");
    }
    answers.push_back(std::move(fitting));

    // How much there is to gain: the best against the median of those that fit.
    std::vector<double> times;
    for (const SweepRow& row : result.rows) {
        if (row.outcome.state == SweepState::Fits)
            times.push_back(timeOf(result, row.outcome));
    }
    if (times.size() > 1) {
        std::sort(times.begin(), times.end());
        const double slowest = times.back() / times.front();
        ReportAnswer gain{"gain", "How much does it matter?", ReportTone::Neutral, fmt::format("{:.3g} x", slowest)};
        gain.value = {"from the fastest that fits to the slowest", slowest, {}};
        gain.sentence = fmt::format("The median that fits takes {:.3g} times the {} of the fastest.",
            times[times.size() / 2] / times.front(), timeName(result));
        answers.push_back(std::move(gain));
    }
    return answers;
}

/// Which two parameters a heat map is of: those with the most values, in the plan's order; the one with the longer words is down the side.
struct MapAxes {
    std::size_t across = 0;
    std::size_t down = 0;
};

std::optional<MapAxes> mapAxes(const SweepPlan& plan)
{
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
        if (plan.parameters[i].values.size() > 1)
            order.push_back(i);
    }
    if (order.size() < 2)
        return std::nullopt;
    std::stable_sort(order.begin(), order.end(),
        [&](std::size_t a, std::size_t b) { return plan.parameters[a].values.size() > plan.parameters[b].values.size(); });
    if (plan.parameters[order[0]].values.size() * plan.parameters[order[1]].values.size() > kMostCells)
        return std::nullopt;
    const auto longest = [&](std::size_t parameter) {
        std::size_t width = 0;
        for (const SweepValue& value : plan.parameters[parameter].values)
            width = std::max(width, displayWidth(value.text));
        return width;
    };
    return longest(order[0]) >= longest(order[1]) ? MapAxes{order[1], order[0]} : MapAxes{order[0], order[1]};
}

/// How good a row is for a cell that stands for several: the fastest that fits, then what does not fit, then what was refused.
bool isBetter(const SweepResult& result, const SweepRow& a, const SweepRow& b)
{
    if (a.outcome.state != b.outcome.state)
        return a.outcome.state < b.outcome.state;
    return a.outcome.simulated() && timeOf(result, a.outcome) < timeOf(result, b.outcome);
}

ReportPicture heatMapOf(const SweepResult& result, const MapAxes& axes)
{
    const SweepParameter& across = result.plan.parameters[axes.across];
    const SweepParameter& down = result.plan.parameters[axes.down];
    std::vector<const SweepRow*> rows(across.values.size() * down.values.size(), nullptr);
    for (const SweepRow& row : result.rows) {
        const std::vector<std::size_t> values = result.plan.valuesAt(row.point);
        const SweepRow*& cell = rows[values[axes.down] * across.values.size() + values[axes.across]];
        if (cell == nullptr || isBetter(result, row, *cell))
            cell = &row;
    }
    const char* rateUnit = sweepRateUnit(result.plan);
    HeatMapDrawing drawing;
    drawing.title = fmt::format("{} by {} and {}", capitalized(timeName(result)), down.name, across.name);
    drawing.xTitle = across.name;
    drawing.yTitle = down.name;
    drawing.width = 760.0;
    for (const SweepValue& value : across.values)
        drawing.columns.push_back(value.text);
    for (const SweepValue& value : down.values)
        drawing.rows.push_back(value.text);
    for (const SweepRow* row : rows) {
        HeatMapCell cell;
        if (row != nullptr) {
            cell.state = row->outcome.state == SweepState::Fits ? HeatMapCell::State::Value
                : row->outcome.simulated()                      ? HeatMapCell::State::OutOfReach
                                                                : HeatMapCell::State::Refused;
            cell.value = row->outcome.simulated() ? timeOf(result, row->outcome) : 0.0;
            cell.text = row->outcome.simulated() ? "too large" : row->outcome.problem;
            cell.tooltip = valuesText(result, *row) + "\n" + outcomeText(row->outcome, rateUnit);
            cell.marked = row == bestOf(result);
        }
        drawing.cells.push_back(std::move(cell));
    }
    const bool others = result.plan.parameters.size() > 2;
    return pictureOf("heat-map", "Heat map", drawHeatMap(drawing),
        others ? "Each cell is the best over all that is varied besides." : std::string());
}

std::optional<ReportPicture> frontPicture(const SweepResult& result)
{
    ScatterDrawing drawing;
    drawing.title = fmt::format("{} against memory", capitalized(timeName(result)));
    drawing.xTitle = "peak memory of a device";
    drawing.yTitle = timeName(result);
    drawing.width = 760.0;
    std::int64_t usable = 0;
    bool oneLimit = true;
    std::size_t tooFar = 0;
    const char* rateUnit = sweepRateUnit(result.plan);
    for (const SweepRow& row : result.rows) {
        const SweepOutcome& o = row.outcome;
        if (!o.simulated())
            continue;
        oneLimit = oneLimit && (usable == 0 || usable == o.usableBytes);
        usable = o.usableBytes;
        tooFar += o.state == SweepState::TooLarge && static_cast<double>(o.peakBytes) > 1.5 * static_cast<double>(o.usableBytes)
            ? 1
            : 0;
        drawing.points.push_back({static_cast<double>(o.peakBytes), timeOf(result, o),
            o.state == SweepState::TooLarge ? ScatterPoint::Kind::OutOfReach
                : row.onFront               ? ScatterPoint::Kind::Front
                                            : ScatterPoint::Kind::Behind,
            &row == bestOf(result), shortText(row), valuesText(result, row) + "\n" + outcomeText(o, rateUnit)});
    }
    if (drawing.points.size() < 2)
        return std::nullopt;
    std::string caption = "Less is better in both. The dashed stairs are the Pareto front; the best point has a thick outline.";
    if (oneLimit) {
        drawing.limit = static_cast<double>(usable);
        drawing.limitText = formatBytes(usable) + " for programs";
        if (tooFar > 0)
            caption += fmt::format(" {} more than 1.5 times that and {} left out.",
                tooFar == 1 ? std::string("1 point needs") : fmt::format("{} points need", tooFar), tooFar == 1 ? "is" : "are");
    }
    return pictureOf("pareto", "Time and memory", drawScatter(drawing), caption);
}

ReportRow tableRow(const SweepResult& result, const SweepRow& row)
{
    const SweepOutcome& o = row.outcome;
    ReportRow cells;
    for (const std::string& value : row.values) {
        const auto number = parseNumber(value);
        cells.cells.push_back({value, number, {}});
    }
    if (!o.simulated()) {
        for (int i = 0; i < 5; ++i)
            cells.cells.push_back(wordsValue(""));
        cells.cells.push_back(wordsValue("refused, " + o.problem));
        cells.cells.push_back(wordsValue(""));
        cells.opening.text = o.message + (o.fix.empty() ? "" : "\nFix: " + o.fix);
        return cells;
    }
    cells.cells.push_back(secondsValue(o.stepSeconds));
    cells.cells.push_back({formatRate(1.0 / o.secondsPerUnit()), 1.0 / o.secondsPerUnit(), "1/s"});
    cells.cells.push_back(secondsValue(o.exposedSeconds));
    cells.cells.push_back({mfuText(o.mfu), o.mfu, {}});
    cells.cells.push_back(bytesValue(static_cast<double>(o.peakBytes)));
    cells.cells.push_back(wordsValue(&row == bestOf(result) ? "best" : row.onFront ? "on the front" : sweepStateName(o.state)));
    cells.cells.push_back(wordsValue(spokenBound(o.boundBy)));
    return cells;
}

ReportTable tableOf(const SweepResult& result, const std::string& title, const std::vector<const SweepRow*>& rows)
{
    ReportTable table;
    table.title = title;
    for (const SweepParameter& parameter : result.plan.parameters) {
        const bool numbers = std::all_of(parameter.values.begin(), parameter.values.end(),
            [](const SweepValue& value) { return parseNumber(value.text).has_value(); });
        table.columns.push_back({parameter.name, numbers});
    }
    for (const auto& [name, numeric] : {std::pair{"Step", true}, {"Examples/s", true}, {"Exposed", true}, {"MFU", true},
             {"Memory", true}, {"", false}, {"Bound by", false}})
        table.columns.push_back({name, numeric});
    for (std::size_t i = 0; i < rows.size() && i < kMostPoints; ++i)
        table.rows.push_back(tableRow(result, *rows[i]));
    if (rows.size() > kMostPoints)
        table.note = fmt::format("{} more are left out; CSV and JSON have all.", rows.size() - kMostPoints);
    return table;
}

ReportSection frontSection(const SweepResult& result)
{
    ReportSection section{"front", "The front", {}};
    if (auto picture = frontPicture(result))
        section.blocks.push_back(ReportPictures{{*std::move(picture)}});
    std::vector<const SweepRow*> front;
    for (const SweepRow& row : result.rows) {
        if (row.onFront)
            front.push_back(&row);
    }
    std::stable_sort(front.begin(), front.end(),
        [&](const SweepRow* a, const SweepRow* b) { return timeOf(result, a->outcome) < timeOf(result, b->outcome); });
    if (front.empty())
        section.blocks.push_back(ReportParagraph{"No point fits.", ReportTone::Error});
    else
        section.blocks.push_back(tableOf(result, "Points of the front, the fastest first", front));
    return section;
}

ReportSection refusalsSection(const SweepResult& result)
{
    ReportSection section{"refused", "Refused points", {}};
    std::map<std::string, std::pair<std::int64_t, const SweepRow*>> byId;
    for (const SweepRow& row : result.rows) {
        if (row.outcome.simulated())
            continue;
        auto& [count, first] = byId[row.outcome.problem];
        first = count++ == 0 ? &row : first;
    }
    ReportProblems problems;
    for (const auto& [id, one] : byId)
        problems.problems.push_back({Severity::Warning, id,
            one.first == 1 ? valuesText(result, *one.second)
                           : fmt::format("{} points, the first: {}", one.first, valuesText(result, *one.second)),
            one.second->outcome.message, {}, one.second->outcome.fix});
    section.blocks.push_back(std::move(problems));
    return section;
}

} // namespace

Report sweepReport(const SweepResult& result, const std::string& command)
{
    Report report;
    report.version = kVersion;
    report.title = result.plan.name.empty() ? "Sweep" : "Sweep of " + result.plan.name;
    for (const SweepParameter& parameter : result.plan.parameters)
        report.facts.push_back({parameter.name,
            parameter.values.size() == 1 ? parameter.values.front().text : fmt::format("{} values", parameter.values.size())});
    report.facts.push_back({"points", fmt::format("{}", result.plan.pointCount())});
    if (const SweepRow* best = bestOf(result))
        report.facts.push_back({"hardware of the best", best->outcome.hardware});
    report.answers = answersOf(result);

    if (const auto axes = mapAxes(result.plan))
        report.sections.push_back({"map", "The map", {ReportPictures{{heatMapOf(result, *axes)}}}});
    report.sections.push_back(frontSection(result));
    std::vector<const SweepRow*> all;
    for (const SweepRow& row : result.rows)
        all.push_back(&row);
    report.sections.push_back({"points", "All points", {tableOf(result, "Each point, in the order of the values", all)}});
    if (result.count(SweepState::Refused) > 0)
        report.sections.push_back(refusalsSection(result));
    report.sections.push_back({"origin", "How it was made",
        {ReportParagraph{"Every point was simulated, none was trained. How far predictions are off is in the manual: the order "
                         "of two points is surer than either time."},
            ReportCode{fmt::format("Command (Meshwright {})", kVersion), command},
            ReportCode{"The study", result.plan.studyText}}});
    report.study = {std::filesystem::path(result.plan.studyFile).filename().string(), result.plan.studyText,
        result.best ? result.plan.settingsAt(bestOf(result)->point) : result.plan.settings};
    report.command = command;
    return report;
}

} // namespace meshwright::sim
