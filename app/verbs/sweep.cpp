// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/files.h"
#include "app/terminal/interrupt.h"
#include "app/terminal/progress_line.h"
#include "app/terminal/rank_job.h"
#include "app/verbs/study_file.h"
#include "app/verbs/verbs.h"

#include "core/support/file.h"
#include "core/support/json_text.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "sim/report/build_report.h"
#include "sim/report/sweep_results.h"
#include "sim/session/sweep_engine.h"
#include "sim/sweep/rank_sweep.h"
#include "sim/sweep/sweep_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <thread>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kSweepFormats = {Format::Text, Format::Json, Format::JsonLines, Format::Csv, Format::Markdown, Format::Html};

/// Adds what the command line varies: it replaces what the sweep file says of the same path.
Problems addVaried(sim::SweepPlan& plan, const std::vector<std::string>& vary)
{
    Problems problems;
    std::vector<sim::SweepParameter> added;
    for (const std::string& text : vary) {
        auto parameter = sim::parseVary(text);
        if (!parameter) {
            append(problems, parameter.error());
            continue;
        }
        std::erase_if(plan.parameters, [&](const sim::SweepParameter& known) { return known.name == parameter->name; });
        added.push_back(*std::move(parameter));
    }
    plan.parameters.insert(plan.parameters.end(), added.begin(), added.end());
    if (problems.empty())
        append(problems, sim::checkPlan(plan));
    return problems;
}

/// What the command line asks for: of a study, or of a sweep file and its study.
Result<sim::SweepPlan> planOf(const SweepOptions& options, const Output& output)
{
    sim::SweepPlan plan;
    std::string study = options.file;
    if (study != "-") {
        const auto text = readFile(study);
        if (!text)
            return text.error();
        if (sim::isSweepFile(*text)) {
            auto file = sim::readSweepFile(*text, study);
            if (!file)
                return file.error();
            plan.settings = std::move(file->settings);
            plan.parameters = std::move(file->parameters);
            study = (std::filesystem::path(study).parent_path() / file->study).string();
        }
    }
    plan.settings.insert(plan.settings.end(), options.settings.begin(), options.settings.end());
    if (Problems problems = addVaried(plan, options.vary); !problems.empty())
        return problems;
    auto source = readSource(study, plan.settings, output);
    if (!source)
        return source.error();
    if (const auto taken = sim::takeStudy(plan, *std::move(source)); !taken)
        return taken.error();
    return plan;
}

Result<sim::SweepDatabase> databaseOf(const SweepOptions& options)
{
    return options.database.empty() ? sim::SweepDatabase::inMemory() : sim::SweepDatabase::open(options.database);
}

/// The points that a sweep would simulate: `meshwright.points/1`, or a line of JSON for each.
std::string pointsJson(const sim::SweepPlan& plan, const std::vector<std::vector<std::string>>& rows, Format format)
{
    Json points = Json::array();
    std::string lines;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        Json point = Json::object();
        for (std::size_t i = 0; i < rows[row].size(); ++i)
            point[plan.parameters[i].name] = rows[row][i];
        Json entry = {{"point", std::move(point)}, {"settings", plan.settingsAt(static_cast<std::int64_t>(row))}};
        lines += jsonLine(entry) + "\n";
        points.push_back(std::move(entry));
    }
    const Json document = {{"schema", "meshwright.points/1"}, {"meshwright", kVersion}, {"points", std::move(points)}};
    return format == Format::JsonLines ? lines : jsonText(document);
}

int listPoints(const sim::SweepPlan& plan, Output& output)
{
    std::vector<TextTable::Column> columns;
    for (const sim::SweepParameter& parameter : plan.parameters)
        columns.push_back({parameter.name});
    std::vector<std::vector<std::string>> rows;
    for (std::int64_t point = 0; point < plan.pointCount(); ++point) {
        std::vector<std::string> cells;
        const std::vector<std::size_t> values = plan.valuesAt(point);
        for (std::size_t i = 0; i < values.size(); ++i)
            cells.push_back(plan.parameters[i].values[values[i]].text);
        rows.push_back(std::move(cells));
    }
    if (output.format == Format::Json || output.format == Format::JsonLines) {
        output.result(pointsJson(plan, rows, output.format));
        return kExitOk;
    }
    TextTable table(columns);
    for (std::vector<std::string>& row : rows)
        table.addRow(std::move(row));
    output.result(table.text());
    output.narrate(fmt::format("{}; nothing was simulated", sim::pointsText(plan.pointCount())));
    return kExitOk;
}

/// How far a sweep is, how fast, how long it will take, and the best point so far.
class SweepLine {
public:
    SweepLine(const sim::SweepPlan& plan, bool quiet)
        : m_plan(plan)
        , m_line(quiet)
    {
    }

    void show(const sim::SweepProgress& progress)
    {
        const double seconds = m_line.seconds();
        if (seconds < 1.0) // nobody waits yet
            return;
        const double rate = static_cast<double>(progress.done - progress.known) / seconds;
        std::string text = fmt::format("{}/{} points  {}/s", progress.done, progress.points, formatCount(rate));
        if (rate > 0.0 && progress.done < progress.points)
            text += "  " + formatSeconds(static_cast<double>(progress.points - progress.done) / rate) + " to go";
        if (progress.best != nullptr)
            text += fmt::format("  best {} ({})", formatSeconds(progress.best->stepSeconds), valuesText(progress.bestPoint));
        m_line.show(progress.done, progress.points, text);
    }

private:
    std::string valuesText(std::int64_t point) const
    {
        std::string text;
        const std::vector<std::size_t> values = m_plan.valuesAt(point);
        for (std::size_t i = 0; i < values.size(); ++i)
            text += fmt::format(
                "{}{} {}", i == 0 ? "" : ", ", m_plan.parameters[i].name, m_plan.parameters[i].values[values[i]].text);
        return text;
    }

    const sim::SweepPlan& m_plan;
    ProgressLine m_line;
};

/// `sweep study.yaml --vary ... --set ...`, as a user would type it again.
std::string commandOf(const SweepOptions& options)
{
    std::string rest;
    for (const std::string& vary : options.vary)
        rest += (rest.empty() ? "--vary " : " --vary ") + shellQuoted(vary);
    return sim::commandText("sweep", std::filesystem::path(options.file).filename().string(), options.settings, rest);
}

std::string writtenAs(const sim::SweepResult& result, Format format, const std::string& command)
{
    switch (format) {
    case Format::Json:
        return sim::sweepJson(result);
    case Format::JsonLines:
        return sim::sweepJsonLines(result);
    case Format::Csv:
        return sim::sweepCsv(result);
    case Format::Markdown:
        return sim::reportMarkdown(sim::sweepReport(result, command));
    case Format::Html:
        return sim::reportHtml(sim::sweepReport(result, command));
    default:
        return sim::sweepText(result);
    }
}

int codeOf(const sim::SweepResult& result, const SweepOptions& options)
{
    const std::int64_t refused = result.count(sim::SweepState::Refused);
    const std::int64_t unfit = refused + result.count(sim::SweepState::TooLarge);
    if (!result.best)
        return kExitInfeasible;
    return (options.failOn == "refused" && refused > 0) || (options.failOn == "unfit" && unfit > 0) ? kExitFindings : kExitOk;
}

/// One of the processes that have no database: it finds out what the first one asks for.
int serve(const sim::RankSweep& shared, const sim::SweepEngine& engine, Output& output)
{
    const auto served = shared.serve(engine);
    return served ? kExitOk : fail(served.error(), output);
}

/// As one of several processes, which share the points, or alone.
int sweepAs(const std::shared_ptr<Ranks>& ranks, const SweepOptions& options, Output& output)
{
    const auto format = formatOfFile(options.result, options.formatGiven, output.format, kSweepFormats);
    if (!format)
        return fail(format.error(), output);
    if (!options.failOn.empty() && options.failOn != "refused" && options.failOn != "unfit")
        return fail(
            {Problem{"MW1903", fmt::format("--fail-on: \"{}\" is not allowed here", options.failOn), "one of: refused, unfit"}},
            output);
    if (options.jobs < 0 || options.jobs > 1024)
        return fail({Problem{"MW1903", fmt::format("--jobs: {} is not allowed here", options.jobs), "from 1 to 1024"}}, output);
    const auto plan = planOf(options, output);
    if (!plan)
        return fail(plan.error(), output);
    if (options.dryRun)
        return listPoints(*plan, output);
    const auto engine = sim::sweepEngine(*plan);
    if (!engine)
        return fail(engine.error(), output);
    InterruptWatcher interrupt;
    const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const int jobs = options.jobs > 0 ? options.jobs : ranks != nullptr ? std::max(1, cores / ranks->onThisHost()) : cores;
    std::optional<sim::RankSweep> shared;
    if (ranks != nullptr) {
        auto started = sim::RankSweep::start(ranks, jobs);
        if (!started)
            return fail(started.error(), output);
        shared = *std::move(started);
        if (!ranks->isFirst())
            return serve(*shared, *engine, output);
    }
    auto database = databaseOf(options);
    if (!database)
        return fail(database.error(), output);

    SweepLine line(*plan, output.quiet);
    const auto run = sim::runSweep(
        *plan, shared ? shared->engineOver(*engine) : *engine, *database, shared ? shared->jobs() : jobs,
        [&](const sim::SweepProgress& progress) { line.show(progress); }, interrupt.token());
    if (!run)
        return interrupt.fail(run.error(), output);
    if (shared) {
        if (const auto ended = shared->end(); !ended)
            return fail(ended.error(), output);
    }
    const int written = writeResult(writtenAs(run->result, *format, commandOf(options)), options.result, output);
    output.narrate(fmt::format("{}: {} simulated, {} known before{}", sim::pointsText(run->result.plan.pointCount()),
        run->simulated, run->known,
        run->stopped ? fmt::format("; interrupted{}", options.database.empty() ? "" : ", the same command goes on from here")
                     : ""));
    if (run->stopped)
        return interrupt.exitCode();
    return written != kExitOk ? written : codeOf(run->result, options);
}

} // namespace

int runSweepVerb(const SweepOptions& options, Output& output)
{
    return runTogether(
        output, options.file, [&](const std::shared_ptr<Ranks>& ranks, Output& own) { return sweepAs(ranks, options, own); });
}

} // namespace meshwright::cli
