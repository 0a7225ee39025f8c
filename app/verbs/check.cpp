// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/files.h"
#include "app/verbs/propagate_modes.h"
#include "app/verbs/study_file.h"
#include "app/verbs/verbs.h"

#include "core/diagnose/fix_program.h"
#include "core/diagnose/peer_errors.h"
#include "core/study/arrays.h"
#include "core/study/check_spec.h"
#include "core/study/edit_text.h"
#include "core/study/fix_text.h"
#include "core/study/program_study.h"
#include "core/study/study.h"
#include "core/support/file.h"
#include "core/support/json_text.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/text/program_text.h"
#include "sim/plan/launch_line.h"
#include "sim/report/build_report.h"
#include "sim/report/finding_files.h"
#include "sim/report/results.h"
#include "sim/search/mesh_templates.h"
#include "sim/session/verdict.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <unordered_map>

namespace meshwright::cli {

namespace {

struct CheckedFile {
    std::string name;
    Problems problems;
    Problems notFor; ///< see sim::Verdict: for whoever reads JSON; a person hears it from the verb
    std::shared_ptr<const Study> study; ///< null: there is none, or its text is in error
    std::optional<Proof> proof; ///< absent: nobody asked, or there is nothing to prove
    Problems fixed; ///< what was fixed
    bool rewritten = false; ///< for that the file had to be written anew
    std::vector<sim::MeshTemplate> templates = {}; ///< plans that the study, which has no specs, could have
};

// ---- programs

/// What is wrong with a program: its text, then what verbs refuse of it and what its layouts waste.
sim::Verdict verdictOnProgram(const std::string& text, const std::string& name, bool proves)
{
    sim::Verdict verdict;
    Problems read;
    const auto program = readProgram(text, name, &read);
    if (!program)
        append(read, program.error());
    else if (program->functions.empty())
        read.push_back(noFunction(name));
    else
        verdict = sim::verdictOf(*program, name, proves);
    append(read, std::move(verdict.problems));
    verdict.problems = std::move(read);
    return verdict;
}

/// A program's text after its lints were fixed; itself when there is nothing to fix. Nothing for one that cannot be read.
Result<FixedText> fixedProgramText(const std::string& text, const std::string& name)
{
    auto program = readProgram(text, name);
    if (!program)
        return program.error();
    FixedProgram repaired = fixedProgram(*std::move(program));
    if (repaired.fixed.empty())
        return FixedText{text, {}, false};
    return FixedText{writeProgram(repaired.program), std::move(repaired.fixed), true};
}

/// Fixes the text and writes it back to where it came from; standard input goes to standard output. `written` is what stands there.
std::string fixOne(const std::string& path, std::string text, const std::string& written, bool isProgram,
    const sim::Catalogue& catalogue, CheckedFile& checked, Output& output)
{
    auto fixed = isProgram ? fixedProgramText(text, checked.name) : fixedText(text, checked.name, [&](std::string_view edited) {
        return sim::verdictOf({std::string(edited), checked.name, {}}, catalogue, false).problems;
    });
    if (!fixed) // unreadable: the check says why
        return text;
    if (path == "-") {
        output.result(fixed->text);
    } else if (fixed->text != written) {
        if (const auto done = writeFileAtomically(path, fixed->text); !done) {
            checked.problems = done.error();
            return text;
        }
    }
    checked.fixed = std::move(fixed->fixed);
    checked.rewritten = checked.rewritten || fixed->rewritten;
    return std::move(fixed->text);
}

/// The settings that write a plan into the study. Problems: MW1938 it has no such plan.
Result<std::vector<std::string>> planSettings(
    const std::string& plan, const std::string& text, const std::string& name, const std::vector<std::string>& settings)
{
    const StudyReading reading = readStudyInPart(text, name, settings);
    auto chosen = sim::templateNamed(sim::meshTemplates(reading.study), plan);
    if (!chosen)
        return inFile(chosen.error(), name);
    return std::move(chosen->settings);
}

CheckedFile checkOne(const std::string& path, const CheckOptions& options, std::vector<std::string> settings,
    const sim::Catalogue& catalogue, Output& output)
{
    CheckedFile checked;
    checked.name = path == "-" ? "standard input" : path;
    auto text = readFile(path);
    if (!text) {
        checked.problems = text.error();
        return checked;
    }
    if (options.explicitTypes) {
        checked.problems = explicitProblems(*text, checked.name);
        return checked;
    }
    const bool isProgram = isProgramText(path, *text);
    if (!isProgram && sim::isLaunchText(checked.name, *text)) {
        auto source = options.fix
            ? Result<sim::StudySource>(Problem{"MW1903", "--fix writes into studies, and this is a launch line",
                "write its study first: meshwright export LAUNCH.sh --to study -o study.yaml", Place{checked.name}})
            : sourceOf({*std::move(text), checked.name, std::move(settings)}, output, &checked.problems);
        if (!source) {
            checked.problems = source.error();
            return checked;
        }
        text = std::move(source->text);
        settings = std::move(source->settings);
    }
    const std::string written = *text;
    if (!options.plan.empty()) {
        const auto plan = planSettings(options.plan, *text, checked.name, settings);
        if (!plan) {
            checked.problems = plan.error();
            return checked;
        }
        auto planned = options.fix ? editedText(*text, checked.name, *plan) : Result<EditedText>(EditedText{*text, false});
        if (!planned) {
            checked.problems = planned.error();
            return checked;
        }
        *text = std::move(planned->text);
        checked.rewritten = planned->rewritten;
        if (!options.fix)
            settings.insert(settings.end(), plan->begin(), plan->end());
    }
    if (options.fix)
        *text = fixOne(path, *std::move(text), written, isProgram, catalogue, checked, output);
    sim::Verdict verdict = isProgram && settings.empty()
        ? verdictOnProgram(*text, checked.name, options.proves)
        : sim::verdictOf({*text, checked.name, settings}, catalogue, options.proves);
    append(checked.problems, std::move(verdict.problems));
    checked.notFor = std::move(verdict.notFor);
    checked.study = std::move(verdict.study);
    checked.proof = std::move(verdict.proof);
    if (checked.study && !hasErrors(checked.problems))
        checked.templates = sim::meshTemplates(*checked.study);
    return checked;
}

/// The command that writes a plan into a study.
std::string commandOf(const CheckedFile& checked, const CheckOptions& options, const std::string& plan)
{
    return sim::commandText("check", checked.name == "standard input" ? "-" : checked.name, options.settings,
        fmt::format(
            "{}--plan {} --fix", options.mesh.empty() ? "" : "--mesh " + shellQuoted(options.mesh) + " ", shellQuoted(plan)));
}

/// The plans that a study without specs could have, a line each, and how to write one.
std::string templatesText(const CheckedFile& checked, const CheckOptions& options)
{
    if (checked.templates.empty())
        return {};
    std::string text = fmt::format("  no specs: every device holds whole arrays. Plans that fit this model and mesh ({}):\n",
        valueOf(meshOf(*checked.study)).text());
    TextTable table({{"plan"}, {"splits"}});
    for (const sim::MeshTemplate& one : checked.templates)
        table.addRow({one.name, one.splits});
    text += table.text(4);
    return text + "  to write one into the study: " + commandOf(checked, options, checked.templates.back().name) + "\n";
}

nlohmann::ordered_json templatesJson(const CheckedFile& checked, const CheckOptions& options)
{
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const sim::MeshTemplate& one : checked.templates) {
        nlohmann::ordered_json specs = nlohmann::ordered_json::object();
        for (const auto& [array, spec] : one.specs)
            specs[array] = spec;
        list.push_back({{"file", checked.name}, {"name", one.name}, {"splits", one.splits}, {"specs", std::move(specs)},
            {"settings", one.settings}, {"command", commandOf(checked, options, one.name)}});
    }
    return list;
}

/// How the logical axis rules decided, once for arrays of which they say the same.
std::string decisionsText(const std::vector<AssignedSpec>& assigned)
{
    std::vector<std::pair<std::string, std::vector<std::string>>> decisions; // what is said, of which arrays
    std::unordered_map<std::string, std::size_t> known;
    for (const AssignedSpec& one : assigned) {
        if (one.trace.empty())
            continue;
        std::string said = specText(one.spec) + "\n";
        for (const LogicalStep& step : one.trace)
            said += "    " + step.text + "\n";
        const auto [place, isNew] = known.emplace(said, decisions.size());
        if (isNew)
            decisions.push_back({std::move(said), {}});
        decisions[place->second].second.push_back(one.array.name);
    }
    std::string text;
    for (const auto& [said, arrays] : decisions) {
        constexpr std::size_t kMostNamed = 8;
        const std::size_t named = std::min(arrays.size(), kMostNamed);
        text += "  " + join(std::span(arrays).first(named), ", ");
        if (named < arrays.size())
            text += fmt::format(" and {} more", arrays.size() - named);
        text += ": " + said;
    }
    return text;
}

/// What each rule caught, one line a rule.
std::string rulesText(const Study& study)
{
    const std::vector<AssignedSpec> assigned = assignedSpecs(study);
    std::string text;
    for (std::size_t i = 0; i < study.sharding.match.size(); ++i) {
        std::vector<std::string> caught;
        for (const AssignedSpec& one : assigned) {
            if (one.rule == i)
                caught.push_back(fmt::format("{} {}", one.array.name, specText(one.spec)));
        }
        text += fmt::format("  rule \"{}\" matches {}\n", study.sharding.match[i].glob,
            caught.empty() ? std::string("no array") : join(caught, ", "));
    }
    return text + decisionsText(assigned);
}

/// What was fixed, a line each with the settings that did it.
std::string fixesText(const CheckedFile& checked)
{
    std::string text;
    for (const Problem& problem : checked.fixed)
        text += fmt::format("{}: fixed {}: {}\n  {}\n", checked.name, problem.id, problem.message,
            problem.fixSettings.empty() ? problem.fix : join(problem.fixSettings, ", "));
    if (checked.rewritten)
        text += checked.name + ": the file was rewritten and lost its comments\n";
    return text;
}

std::string countText(const CheckedFile& checked)
{
    if (checked.problems.empty())
        return checked.name + ": no problems\n";
    const auto count = [&](Severity severity, const char* word) {
        const auto number = std::count_if(
            checked.problems.begin(), checked.problems.end(), [&](const Problem& p) { return p.severity == severity; });
        return fmt::format("{} {}{}", number, word, number == 1 ? "" : "s");
    };
    std::string text
        = fmt::format("{}: {}, {}", checked.name, count(Severity::Error, "error"), count(Severity::Warning, "warning"));
    if (std::any_of(
            checked.problems.begin(), checked.problems.end(), [](const Problem& p) { return p.severity == Severity::Note; }))
        text += ", " + count(Severity::Note, "note");
    return text + "\n";
}

int codeOf(const Problems& problems, const CheckOptions& options)
{
    if (const int code = exitCodeOf(problems); code == kExitInvalid || code == kExitUsage || code == kExitInfeasible)
        return code;
    const bool found = std::any_of(
        problems.begin(), problems.end(), [&](const Problem& problem) { return problem.severity >= options.failOn; });
    return found ? kExitFindings : kExitOk;
}

// ---- one spec

/// What JAX would say, for whoever looks the message up.
std::string jaxWords(const PeerRequest& request)
{
    const PeerVerdict verdict = jaxVerdict(request);
    const bool isJax = verdict && verdict->kind != "not_a_spec"; // of what is not Python, the problem itself says all
    return isJax ? fmt::format("JAX says: {}: {}\n", verdict->exception, verdict->messages.front()) : std::string();
}

/// As SARIF or JUnit.
std::string findingsText(const std::vector<sim::FindingCase>& cases, Severity failOn, Format format)
{
    return format == Format::Sarif ? sim::sarifText(cases, problemTitles()) : sim::junitText("check", cases, failOn);
}

int checkSpec(const CheckOptions& options, Output& output)
{
    Problems problems;
    if (options.mesh.empty())
        problems.push_back({"MW1904", "--mesh is missing", "give the mesh of the spec: --mesh x=4,y=2"});
    if (options.shape.empty())
        problems.push_back({"MW1904", "--shape is missing", "give the shape of its array: --shape 8192x8192"});
    if (!problems.empty())
        return fail(problems, output);
    const auto mesh = parseMesh(options.mesh);
    if (!mesh)
        append(problems, inFile(mesh.error(), "--mesh"));
    const auto shape = parseShape(options.shape);
    if (!shape)
        append(problems, shape.error());
    if (!problems.empty())
        return fail(problems, output);

    const StudyArray array{"array", StudyArray::Kind::Parameter, *shape, {}};
    for (SpecProblem& found : checkSpecText(options.spec, array, mesh->axes())) {
        found.problem.place = Place{"--spec", 1, static_cast<int>(found.range.offset) + 1, {}};
        problems.push_back(std::move(found.problem));
    }
    if (!problems.empty()) {
        if (const auto corrected = correctedSpec(options.spec, array, mesh->axes()))
            problems.back().fix += fmt::format("; the nearest that fits is {}", *corrected);
    }
    if (output.format == Format::Json) {
        output.result(problemsJson(problems));
    } else if (output.format != Format::Text) {
        output.result(findingsText({{"--spec", problems, "spec"}}, options.failOn, output.format));
    } else if (problems.empty()) {
        const auto spec = parseTypedSpec(options.spec, mesh->axes());
        const auto piece = spec ? shardShape(*shape, *spec, *mesh, Uneven::Refuse) : Result<Shape>(spec.error());
        output.result(fmt::format("{} on {}: no problems; each device holds {} of {}\n", options.spec, mesh->text(),
            piece ? shapeText(*piece) : std::string("a part"), shapeText(*shape)));
    } else {
        printProblems(problems, output);
        output.result(jaxWords({options.spec, *mesh, *shape}));
    }
    return codeOf(problems, options);
}

} // namespace

int runCheck(const CheckOptions& options, Output& output)
{
    if (!options.spec.empty() && options.files.empty())
        return checkSpec(options, output);
    if (!options.spec.empty() || !options.shape.empty())
        return fail({Problem{"MW1932", "--spec and --shape check one spec and cannot be combined with files",
                        "check the spec alone: check --mesh x=4 --shape 8x8 --spec \"P('x')\""}},
            output);
    if (options.files.empty())
        return fail({Problem{"MW1904", "FILE is missing", "see the examples of `meshwright check --help`"}}, output);
    if (options.explicitTypes && !options.plan.empty())
        return fail({Problem{"MW1903", "--plan is for studies, and --explicit for programs", "give one of them"}}, output);
    const bool fixesInput = options.fix && std::find(options.files.begin(), options.files.end(), "-") != options.files.end();
    if (fixesInput && (output.format != Format::Text || options.files.size() > 1))
        return fail({Problem{"MW1903", "--fix writes the fixed standard input to standard output, which must carry nothing else",
                        "check only `-`, with --format text, or name files"}},
            output);
    const auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return fail(catalogue.error(), output);
    std::vector<std::string> settings = options.settings;
    if (!options.mesh.empty())
        settings.insert(settings.begin(), "mesh=" + options.mesh);
    Problems all;
    Problems notFor;
    Problems fixed;
    std::string summary;
    std::vector<sim::FindingCase> cases;
    std::map<std::string, std::string> proofs;
    nlohmann::ordered_json templates = nlohmann::ordered_json::array();
    for (const std::string& path : options.files) {
        CheckedFile checked = checkOne(path, options, settings, *catalogue, output);
        cases.push_back({checked.name, checked.problems, path});
        summary += fixesText(checked) + countText(checked);
        if (checked.proof)
            summary += fmt::format("  {}\n", sim::proofText(*checked.proof));
        append(fixed, std::move(checked.fixed));
        if (checked.study)
            summary += rulesText(*checked.study) + templatesText(checked, options);
        for (nlohmann::ordered_json& one : templatesJson(checked, options))
            templates.push_back(std::move(one));
        append(all, std::move(checked.problems));
        append(notFor, std::move(checked.notFor));
        if (checked.proof)
            proofs[checked.name] = sim::proofJson(*checked.proof);
    }
    if (output.format == Format::Json)
        output.result(problemsJson(all, fixed, notFor, proofs, templates.empty() ? std::string() : jsonLine(templates)));
    else if (output.format != Format::Text)
        output.result(findingsText(cases, options.failOn, output.format));
    else if (!all.empty())
        printProblems(all, output);
    if (fixesInput)
        output.narrate(trimmed(summary));
    else if (output.format == Format::Text)
        output.result(summary);
    return codeOf(all, options);
}

} // namespace meshwright::cli
