// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/overwrites.h"
#include "app/verbs/study_file.h"
#include "app/verbs/verbs.h"

#include "app/terminal/interrupt.h"
#include "core/support/file.h"
#include "core/support/text.h"
#include "core/support/timed_stop.h"
#include "core/text/program_text.h"
#include "sim/search/search_output.h"
#include "sim/search/transformer_search.h"
#include "sim/session/engine.h"
#include "sim/session/search_study.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>

namespace meshwright::cli {

namespace {

/// One line on a terminal that tells how far the search is, after a second.
class SearchLine {
public:
    explicit SearchLine(bool quiet)
        : m_shown(!quiet && isatty(STDERR_FILENO) == 1)
    {
    }
    ~SearchLine()
    {
        if (m_written)
            say("\r\033[K");
    }
    SearchLine(const SearchLine&) = delete;
    SearchLine& operator=(const SearchLine&) = delete;

    void show(const sim::SearchProgress& progress)
    {
        const std::scoped_lock lock(m_mutex);
        const auto now = std::chrono::steady_clock::now();
        if (!m_shown || now - m_start < std::chrono::seconds(1) || now - m_last < std::chrono::milliseconds(100))
            return;
        m_last = now;
        m_written = true;
        if (progress.simulated > 0) {
            say(fmt::format("\r\033[K{} layouts simulated", progress.simulated));
            return;
        }
        say(fmt::format("\r\033[K{} of {} layouts, best {}", formatCount(static_cast<double>(progress.looked)),
            formatCount(static_cast<double>(progress.candidates)),
            progress.bestSeconds > 0.0 ? formatSeconds(progress.bestSeconds) : "none yet"));
    }

private:
    std::mutex m_mutex; ///< plans are simulated by several threads
    bool m_shown;
    bool m_written = false;
    std::chrono::steady_clock::time_point m_start = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point m_last;
};

Problems usageProblems(const SearchVerbOptions& options)
{
    Problems problems;
    if (options.study.empty() && options.words.model.empty())
        problems.push_back({"MW1933", "neither a study nor --model is given",
            "meshwright search --model llama3_8b --hw v5e-64 --tokens 1M --seq 4096"});
    if (!options.study.empty()
        && (!options.words.model.empty() || options.words.hardware.size() > 1 || !options.words.tokens.empty()
            || !options.words.globalBatch.empty() || !options.words.sequence.empty() || !options.words.chips.empty()))
        problems.push_back({"MW1934",
            "a study states its own model, batch and hardware: --model, --chips, --tokens, --seq, --global-batch and more than "
            "one --hw cannot be combined with it",
            "override values of the study with --set"});
    if (options.study.empty() && !options.words.model.empty() && options.words.hardware.empty())
        problems.push_back({"MW1933", "--hw is missing", "name chips and their number: --hw v5e-64, --hw h100x64"});
    if (options.perOp && options.study.empty())
        problems.push_back({"MW1933", "--per-op needs a study", "meshwright search study.yaml --per-op"});
    if (!options.mesh.empty() && options.study.empty())
        problems.push_back({"MW1934", "--mesh is for a program: the plans of --model have axes of their own",
            "fix their degrees: --plan \"dp=4 tp=2\""});
    if (options.top < 1)
        problems.push_back({"MW1903", fmt::format("--top: {} is not allowed here", options.top), "write 1 or more"});
    if (options.timeLimit && !(*options.timeLimit > 0.0))
        problems.push_back({"MW1903", "--time-limit: expected a number of seconds above 0", "--time-limit 20"});
    if (options.gap && !(*options.gap >= 0.0))
        problems.push_back({"MW1903", "--gap: expected a number of percent, 0 or more", "--gap 1"});
    return problems;
}

/// What was found, and the best plan as a study.
struct Answer {
    sim::SearchResult result;
    std::optional<Result<std::string>> study; ///< nothing: no plan fits
    std::string program = {}; ///< text of a program with the best plan's layouts, which the study names
};

void simulateBy(
    const sim::SearchWork& work, const sim::Catalogue& catalogue, const SearchVerbOptions& options, sim::SearchOptions& search)
{
    search.simulate = sim::planSimulator(work, catalogue, search.stop);
    search.layerTime = sim::layerTimer(catalogue, search.stop);
    search.explains = options.explains;
    if (options.gap || options.timeLimit)
        search.gap = options.gap.value_or(1.0) / 100.0;
    if (options.explains || search.gap) {
        search.floor = sim::floorSimulator(work, catalogue, search.stop);
        search.pass = sim::passSimulator(work, catalogue, search.stop);
    }
}

/// The program that stands beside a plan's study: `plan.mlir` beside `plan.yaml`.
std::filesystem::path programBeside(const std::string& file)
{
    return std::filesystem::path(file).replace_extension(".mlir");
}

Result<Answer> searchedStudy(const SearchVerbOptions& options, const std::vector<sim::FixedChoice>& fixed,
    const sim::Catalogue& catalogue, const sim::Calibration& calibration, const sim::SearchOptions& search, const Output& output)
{
    std::vector<std::string> settings = options.settings;
    if (!options.words.hardware.empty())
        settings.insert(settings.begin(), "hardware=" + options.words.hardware.front());
    if (!options.mesh.empty())
        settings.insert(settings.begin(), "mesh=" + options.mesh);
    if (!options.words.stack.empty())
        settings.push_back("stack=" + options.words.stack);
    const auto study = readStudyFile(options.study, settings, output);
    if (!study)
        return study.error();
    if (!options.mesh.empty() && study->trains() && !options.perOp)
        return Problem{"MW1934", "--mesh is for a program, or --per-op: the plans of a model have axes of their own",
            "fix their degrees: --plan \"dp=4 tp=2\""};
    if (!fixed.empty() && (study->transformer() == nullptr || options.perOp))
        return Problem{"MW1934",
            "--fix and --plan are for transformers: layouts of an MLP's layers and of a program's ops are chosen one by one",
            "leave it out; check --plan puts the specs of a plan into an MLP's study"};
    if (const auto* program = std::get_if<ProgramFile>(&study->model); program != nullptr && !options.file.empty()) {
        std::error_code error;
        if (std::filesystem::equivalent(study->resolved(program->file), programBeside(options.file), error))
            return Problem{"MW1903",
                fmt::format("-o: the plan's program would take the place of {}, which is searched", program->file),
                "name another file: -o plan.yaml"};
    }
    sim::SearchOptions simulated = search;
    if (!options.mesh.empty()) {
        const auto machine = sim::machineOf(*study, catalogue);
        if (!machine)
            return machine.error();
        if (Problems problems = checkMeshFits(*study, machine->deviceCount()); !problems.empty())
            return problems;
        simulated.mesh = study->mesh;
    }
    sim::SearchWork work;
    if (study->transformer() != nullptr) {
        work = sim::workOf(*study);
        simulateBy(work, catalogue, options, simulated);
    }
    auto result = options.perOp ? sim::searchProgramOf(*study, catalogue, simulated)
                                : sim::searchStudy(*study, catalogue, calibration, fixed, simulated);
    if (!result)
        return result.error();
    Answer answer{*std::move(result), std::nullopt};
    if (answer.result.plans.empty() || !answer.result.plans.front().fits)
        return answer;
    const sim::FoundPlan& best = answer.result.plans.front();
    if (best.program) {
        answer.study = sim::studyOfProgram(*study, best, programBeside(options.file).filename().string());
        answer.program = writeProgram(*best.program);
    } else
        answer.study = sim::planText(*study, best, catalogue, calibration);
    return answer;
}

Result<Answer> searchedWords(const SearchVerbOptions& options, const std::vector<sim::FixedChoice>& fixed,
    const sim::Catalogue& catalogue, const sim::Calibration& calibration, const sim::SearchOptions& search, Output& output)
{
    Problems problems;
    std::vector<std::string> notes;
    const auto work = sim::workOf(options.words, &notes);
    if (!work)
        append(problems, work.error());
    const auto machines = sim::machinesOf(options.words, catalogue, calibration, notes);
    if (!machines)
        append(problems, machines.error());
    for (std::size_t i = 0; work && machines && i < machines->size(); ++i) {
        if (const auto good = sim::checkFormat((*machines)[i].chip, work->format); !good)
            append(problems, good.error());
    }
    if (!problems.empty())
        return problems;
    for (const std::string& note : notes)
        output.narrate(note);
    sim::SearchOptions simulated = search;
    simulateBy(*work, catalogue, options, simulated);
    Answer answer{sim::searchTransformer(
                      *work, *machines, fixed, simulated, sim::largerMachines(machines->front(), catalogue, calibration)),
        std::nullopt};
    if (answer.result.plans.empty() || !answer.result.plans.front().fits)
        return answer;
    const sim::FoundPlan& best = answer.result.plans.front();
    const auto machine = std::find_if(
        machines->begin(), machines->end(), [&](const sim::SearchMachine& one) { return one.name == best.hardware; });
    answer.study = sim::studyText(best, *work, *machine);
    return answer;
}

/// The best plan as a study, and beside it its program if it has one of its own; or that program alone where the file ends in .mlir.
Result<Done> writePlan(const Answer& answer, const std::string& file)
{
    const Result<std::string>& text = *answer.study;
    if (!text)
        return text.error();
    if (!answer.program.empty()) {
        if (const auto written = writeFileAtomically(programBeside(file), answer.program); !written)
            return written.error();
        if (programBeside(file) == std::filesystem::path(file))
            return Done{};
    }
    return writeFileAtomically(file, *text);
}

} // namespace

int runSearch(const SearchVerbOptions& given, Output& output)
{
    SearchVerbOptions options = given;
    options.words.hardware = sim::machineTexts(given.words.hardware);
    if (const Problems problems = usageProblems(options); !problems.empty())
        return fail(problems, output);
    if (!options.file.empty() && !options.study.empty() && options.study != "-" && options.file != "-") {
        const std::string beside = programBeside(options.file).string(); // of a program that is searched
        if (Problems lost = overwrites({{"-o", beside}}, options.study, "STUDY"); !lost.empty())
            return fail(lost, output);
    }
    const auto fixed = sim::parseFixed(options.fixed);
    if (!fixed)
        return fail(fixed.error(), output);
    const auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return fail(catalogue.error(), output);
    const Result<sim::Calibration>& calibration = sim::defaultCalibration();
    if (!calibration)
        return fail(calibration.error(), output);
    InterruptWatcher interrupt;
    Result<Answer> answer = Problems{{"MW1933", "nothing was searched"}};
    {
        SearchLine line(output.quiet);
        sim::SearchOptions search;
        search.top = static_cast<std::size_t>(options.top);
        search.threads = static_cast<unsigned>(std::max<std::int64_t>(0, options.threads));
        const TimedStop stop(interrupt.token(), options.timeLimit);
        search.stop = stop.token();
        const auto after = [](double seconds) {
            return std::chrono::steady_clock::now()
                + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                    std::chrono::duration<double>(std::min(seconds, kLongestWaitSeconds)));
        };
        if (options.timeLimit)
            search.deadline = after(*options.timeLimit);
        search.progress = [&](const sim::SearchProgress& progress) { line.show(progress); };
        answer = options.study.empty() ? searchedWords(options, *fixed, *catalogue, *calibration, search, output)
                                       : searchedStudy(options, *fixed, *catalogue, *calibration, search, output);
    }
    if (!answer)
        return fail(answer.error(), output);
    const sim::SearchResult& result = answer->result;
    const bool found = answer->study.has_value();
    Problems unwritten; // what was found is shown all the same
    if (!options.file.empty() && found) {
        if (const auto written = writePlan(*answer, options.file); !written)
            unwritten = written.error();
        else
            output.narrate(fmt::format("the best plan is in {}", options.file));
    }
    output.result(output.format == Format::Json ? sim::searchJson(result)
            : output.format == Format::Csv      ? sim::searchCsv(result)
            : output.format == Format::Markdown ? sim::searchMarkdown(result)
                                                : sim::searchText(result));
    if (!unwritten.empty())
        return failAfterResult(unwritten, output);
    if (interrupt.exitCode() != 0)
        return interrupt.exitCode();
    return found ? kExitOk : kExitInfeasible;
}

} // namespace meshwright::cli
