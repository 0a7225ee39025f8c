// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/files.h"
#include "app/terminal/interrupt.h"
#include "app/terminal/progress_line.h"
#include "app/verbs/study_file.h"
#include "app/verbs/verbs.h"

#include "core/support/file.h"
#include "core/support/text.h"
#include "sim/report/sweep_results.h"
#include "sim/session/report_of.h"
#include "sim/sweep/sweep_database.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace meshwright::cli {

namespace {

constexpr std::array kReportFormats = {Format::Html, Format::Markdown, Format::Csv, Format::Json};

std::string writtenAs(const sim::Report& report, Format format)
{
    switch (format) {
    case Format::Markdown:
        return sim::reportMarkdown(report);
    case Format::Csv:
        return sim::reportCsv(report);
    case Format::Json:
        return sim::reportJson(report);
    default:
        return sim::reportHtml(report);
    }
}

/// What is reported on: a study, and the measured training that a report which is opened again brings along.
struct ReportSubject {
    sim::StudySource source;
    std::optional<sim::MeasuredTraining> training;
};

Result<ReportSubject> reportSubject(const ReportOptions& options, const Output& output)
{
    auto text = readFile(options.study);
    if (!text)
        return text.error();
    if (!sim::isReport(*text)) {
        auto source
            = sourceOf({*std::move(text), options.study == "-" ? std::string() : options.study, options.settings}, output);
        if (!source)
            return source.error();
        return ReportSubject{*std::move(source), {}};
    }
    const auto report = sim::readReport(*text, options.study);
    if (!report)
        return report.error();
    // Files that the study names are looked for beside the page.
    const std::filesystem::path file = std::filesystem::path(options.study).parent_path() / report->study.file;
    ReportSubject subject{{report->study.text, file.string(), sim::withSettings(report->study.settings, options.settings)}, {}};
    if (!report->trainingResult.empty() && options.settings.empty()) {
        auto training = sim::readTrainingResult(report->trainingResult, options.study);
        if (!training)
            return training.error();
        subject.training = *std::move(training);
    }
    return subject;
}

/// The measured part that the command line asks for: from a file, or by training now.
Result<std::optional<sim::MeasuredTraining>> trainingOf(
    const ReportOptions& options, const ReportSubject& subject, const Output& output, const std::stop_token& stop)
{
    if (!options.result.empty()) {
        const auto text = readFile(options.result);
        if (!text)
            return text.error();
        auto training = sim::readTrainingResult(*text, options.result);
        if (!training)
            return training.error();
        return std::optional(*std::move(training));
    }
    if (!options.train)
        return subject.training;
    const auto study = readStudy(subject.source.text, subject.source.file, subject.source.settings);
    if (!study)
        return study.error();
    ProgressLine line(output.quiet);
    const auto trained = sim::trainStudy(
        *study, {.verify = true}, [&](const TrainingProgress& progress) { line.show(progress); }, stop);
    if (!trained)
        return trained.error();
    return std::optional(sim::measuredTraining(*trained));
}

int reportSweep(const ReportOptions& options, Format format, Output& output)
{
    auto database = sim::SweepDatabase::openExisting(options.sweep);
    if (!database)
        return fail(database.error(), output);
    const auto sweep = database->lastSweep();
    if (!sweep)
        return fail(sweep.error(), output);
    const std::string command
        = "meshwright report --sweep " + shellQuoted(std::filesystem::path(options.sweep).filename().string());
    const int written = writeResult(writtenAs(sim::sweepReport(*sweep, command), format), options.file, output);
    return written != kExitOk ? written : sweep->best ? kExitOk : kExitInfeasible;
}

} // namespace

int runReport(const ReportOptions& options, Output& output)
{
    const auto format = formatOfFile(options.file, options.formatGiven, output.format, kReportFormats);
    if (!format)
        return fail(format.error(), output);
    if (options.train && !options.result.empty())
        return fail(
            {Problem{"MW1903", "--train and --result cannot be combined", "train now, or use the result of an earlier training"}},
            output);
    if (options.study.empty() && options.sweep.empty())
        return fail({Problem{"MW1904", "STUDY is missing", "see the examples of `meshwright report --help`"}}, output);
    if (!options.study.empty() && !options.sweep.empty())
        return fail(
            {Problem{"MW1940", "a report describes a study or a sweep, not both", "leave the study or --sweep out"}}, output);
    if (!options.sweep.empty())
        return reportSweep(options, *format, output);
    const auto subject = reportSubject(options, output);
    if (!subject)
        return fail(subject.error(), output);
    auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return fail(catalogue.error(), output);

    sim::Session session(*std::move(catalogue));
    const auto analysis = session.analyse(subject->source);
    const int studyCode = exitCodeOf(analysis->problems);
    if (studyCode != kExitOk && studyCode != kExitInfeasible)
        return fail(inFile(analysis->problems, subject->source.file.empty() ? "standard input" : subject->source.file), output);

    InterruptWatcher interrupt;
    const auto training = trainingOf(options, *subject, output, interrupt.token());
    if (!training)
        return interrupt.fail(training.error(), output);
    const sim::Report report = sim::reportOf(*analysis, {.training = *training});
    const std::string text = writtenAs(report, *format);
    if (options.file.empty() || options.file == "-") {
        output.result(text);
    } else if (const auto written = writeFileAtomically(options.file, text); !written) {
        return fail(written.error(), output);
    }

    // The result stands; what is wrong with the study is said beside it.
    Output words = output;
    words.format = Format::Text;
    if (!analysis->problems.empty() && !(output.quiet && studyCode == kExitOk))
        printProblems(analysis->problems, words);
    if (!options.file.empty() && options.file != "-")
        words.narrate(fmt::format("{}: {}, {}", options.file,
            report.findAnswer("fits")->headline == "Not known" ? "nothing simulated"
                                                               : "step " + report.findAnswer("speed")->headline,
            *training ? "training measured" : "training not measured"));
    if ((*training).has_value() && (*training)->interrupted && interrupt.exitCode() != 0)
        return interrupt.exitCode();
    if ((*training).has_value() && (*training)->verification && !(*training)->verification->passed)
        return kExitMismatch;
    if (!options.result.empty() && sim::measuresAnotherStudy(*analysis, **training)) {
        Problem warning{"MW1841",
            fmt::format(
                "\"{}\" is of another study: its step has other collectives than that of {}", options.result, options.study),
            "give the result of a training of this study, with the same --set"};
        warning.severity = Severity::Warning;
        words.warn({warning});
        return kExitMismatch;
    }
    if (studyCode != kExitOk)
        return studyCode;
    return analysis->simulated && !analysis->simulated->simulation.fits ? kExitInfeasible : kExitOk;
}

} // namespace meshwright::cli
