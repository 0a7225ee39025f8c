// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/files.h"
#include "app/verbs/study_file.h"
#include "app/verbs/verbs.h"

#include "core/study/program_study.h"
#include "core/support/file.h"
#include "core/text/program_text.h"
#include "sim/report/diff_results.h"
#include "sim/report/finding_files.h"
#include "sim/session/comparable_of.h"
#include "sim/session/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace meshwright::cli {

namespace {

constexpr std::array kDiffFormats = {Format::Text, Format::Json, Format::Markdown, Format::Sarif, Format::Junit};

/// One of the two things, and for a study all that is known of it.
struct Side {
    sim::Comparable comparable;
    std::shared_ptr<const sim::Analysis> analysis; ///< null: it is not a study
};

/// The engine is only started for studies.
class SideReader {
public:
    explicit SideReader(Output& output)
        : m_output(output)
    {
    }

    Result<Side> read(const std::string& file, const std::vector<std::string>& settings)
    {
        auto text = readFile(file);
        if (!text)
            return text.error();
        const std::string name = file == "-" ? "standard input" : file;
        if (isProgramText(file, *text) && settings.empty()) // else it is the study that simulates it
            return program(*text, name);
        if (sim::isComparableResult(*text)) {
            auto comparable = sim::readComparable(*text, name);
            if (!comparable)
                return comparable.error();
            return Side{*std::move(comparable), nullptr};
        }
        const auto source = sourceOf({*std::move(text), file == "-" ? std::string() : file, settings}, m_output);
        return source ? study(*source, name) : source.error();
    }

    /// Of studies that are shown all the same: a mesh larger than the slice, say.
    const Problems& problems() const { return m_problems; }

private:
    Result<Side> program(const std::string& text, const std::string& name)
    {
        Problems warnings;
        auto program = readProgram(text, name, &warnings);
        m_output.warn(warnings);
        if (!program)
            return program.error();
        auto comparable = sim::comparableOf(*std::move(program), name);
        if (!comparable)
            return comparable.error();
        return Side{*std::move(comparable), nullptr};
    }

    Result<Side> study(const sim::StudySource& source, const std::string& name)
    {
        if (!m_session) {
            auto catalogue = sim::defaultCatalogue();
            if (!catalogue)
                return catalogue.error();
            m_session = std::make_unique<sim::Session>(*std::move(catalogue));
        }
        const auto analysis = m_session->analyse(source);
        if (!analysis->built && !analysis->simulated)
            return inFile(analysis->problems, name);
        for (Problem& problem : inFile(analysis->problems, name)) { // A with other settings may say the same again
            const auto isSame = [&](const Problem& known) {
                return known.id == problem.id && known.message == problem.message && describe(known) == describe(problem);
            };
            if (std::none_of(m_problems.begin(), m_problems.end(), isSame))
                m_problems.push_back(std::move(problem));
        }
        Side side{sim::comparableOf(*analysis), analysis};
        side.comparable.file = name;
        return side;
    }

    Output& m_output;
    std::unique_ptr<sim::Session> m_session;
    Problems m_problems;
};

std::vector<std::string> joined(std::vector<std::string> settings, const std::vector<std::string>& more)
{
    settings.insert(settings.end(), more.begin(), more.end());
    return settings;
}

/// Findings as consumers of SARIF and JUnit take them: of the gates or, without any, of everything that differs.
std::vector<sim::FindingCase> casesOf(const std::vector<sim::GateResult>& gates, const std::string& file)
{
    std::vector<sim::FindingCase> cases;
    for (const sim::GateResult& gate : gates) {
        sim::FindingCase one{gate.gate.text, {}, file};
        const std::string rule = gate.gate.text.substr(0, gate.gate.text.find_first_of("> "));
        for (const std::string& finding : gate.findings)
            one.findings.push_back({rule, finding});
        cases.push_back(std::move(one));
    }
    return cases;
}

std::map<std::string, std::string> gateTitles()
{
    return {{"any", "something differs"}, {"mesh", "the mesh differs"}, {"sharding", "the layout of an array differs"},
        {"collectives", "a collective is new, gone or changed"}, {"new-collectives", "a collective is new or moves more"},
        {"bytes", "more bytes a device"}, {"time", "a longer step"}, {"memory", "a higher peak of memory"},
        {"fits", "it no longer fits"}, {"problems", "a new problem"}};
}

std::string writtenAs(const sim::Comparison& comparison, const std::vector<sim::GateResult>& gates, Format format)
{
    switch (format) {
    case Format::Json:
        return sim::diffJson(comparison, gates);
    case Format::Markdown:
        return sim::diffMarkdown(comparison, gates);
    case Format::Sarif:
        return sim::sarifText(casesOf(gates, comparison.afterFile), gateTitles());
    case Format::Junit:
        return sim::junitText("diff", casesOf(gates, comparison.afterFile), Severity::Error);
    default:
        return sim::diffText(comparison, gates);
    }
}

} // namespace

int runDiff(const DiffOptions& options, Output& output)
{
    const auto format = formatOfFile(options.result, options.formatGiven, output.format, kDiffFormats);
    if (!format)
        return fail(format.error(), output);
    if (options.after.empty() && options.settingsBefore.empty() && options.settingsAfter.empty())
        return fail({Problem{"MW1904", "B is missing", "name a second file, or change the first with --set-b"}}, output);
    if (options.before == "-" && (options.after.empty() || options.after == "-"))
        return fail({Problem{"MW1903", "standard input can be read only once", "give one of the two as a file"}}, output);
    // Where findings are what is written, everything that differs is one when no gate says otherwise.
    const bool ofFindings = *format == Format::Sarif || *format == Format::Junit;
    const auto gates = options.failOn ? sim::parseGates(*options.failOn)
        : ofFindings                  ? sim::parseGates("any")
                                      : std::vector<sim::Gate>();
    if (!gates)
        return fail(gates.error(), output);

    SideReader reader(output);
    const auto before = reader.read(options.before, joined(options.settings, options.settingsBefore));
    if (!before)
        return fail(before.error(), output);
    const auto after
        = reader.read(options.after.empty() ? options.before : options.after, joined(options.settings, options.settingsAfter));
    if (!after)
        return fail(after.error(), output);
    sim::Comparison comparison = before->analysis && after->analysis ? sim::compareStudies(*before->analysis, *after->analysis)
                                                                     : sim::compare(before->comparable, after->comparable);
    comparison.beforeFile = before->comparable.file;
    comparison.afterFile = after->comparable.file;
    const auto judged = sim::judge(*gates, comparison);
    if (!judged)
        return fail(judged.error(), output);
    const int written = writeResult(writtenAs(comparison, *judged, *format), options.result, output);
    Output words = output;
    words.format = Format::Text;
    if (!reader.problems().empty())
        printProblems(reader.problems(), words);
    if (written != kExitOk)
        return written;
    const bool passes = !options.failOn
        || std::all_of(judged->begin(), judged->end(), [](const sim::GateResult& gate) { return gate.passes(); });
    return passes ? exitCodeOf(reader.problems()) : kExitFindings;
}

} // namespace meshwright::cli
