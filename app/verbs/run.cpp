// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/files.h"
#include "app/terminal/interrupt.h"
#include "app/terminal/rank_job.h"
#include "app/verbs/fault_flags.h"
#include "app/verbs/verbs.h"

#include "core/kernels/npy.h"
#include "core/study/program_study.h"
#include "core/study/study.h"
#include "core/support/counted.h"
#include "core/support/file.h"
#include "core/support/json_text.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "sim/report/results.h"
#include "sim/session/engine.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <filesystem>
#include <optional>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string timesText(const sim::RunTimes& times)
{
    return fmt::format("{} x {} runs: best {}, mean {}\n{}: {}, so sharding is {:.2f} times as fast\n", times.taken.repetitions,
        times.taken.runs, formatSeconds(times.best), formatSeconds(times.mean), times.unshardedHow,
        formatSeconds(times.unshardedBest), times.unshardedBest / times.best);
}

constexpr std::int64_t kMostPrinted = 32; ///< elements of a result that a person is shown
constexpr std::int64_t kMostListed = 1024; ///< and that JSON has: larger results are for --out

/// Whether an array has elements, no more than so many.
bool isListed(const HostArray& array, std::int64_t most)
{
    const std::int64_t elements = array.type().elements();
    return elements > 0 && elements <= most;
}

std::complex<double> complexAt(const HostArray& array, std::int64_t flat)
{
    const std::byte* at = array.data() + flat * byteSize(array.type().dtype);
    std::complex<double> wide;
    std::complex<float> narrow;
    if (array.type().dtype == DType::C128) {
        std::memcpy(&wide, at, sizeof(wide));
        return wide;
    }
    std::memcpy(&narrow, at, sizeof(narrow));
    return narrow;
}

Json finiteJson(double value)
{
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}

/// One element: integers whole, complex numbers as their two parts, all others as doubles; null for what is not finite.
Json elementJson(const HostArray& array, std::int64_t flat)
{
    const DType dtype = array.type().dtype;
    const auto index = static_cast<std::size_t>(flat);
    if (dtype == DType::S64)
        return array.as<std::int64_t>()[index];
    if (dtype == DType::U64)
        return array.as<std::uint64_t>()[index];
    if (isComplex(dtype)) {
        const std::complex<double> value = complexAt(array, flat);
        return Json::array({finiteJson(value.real()), finiteJson(value.imag())});
    }
    const double value = array.at(flat);
    return isInteger(dtype) ? Json(static_cast<std::int64_t>(value)) : finiteJson(value);
}

std::string elementText(const HostArray& array, std::int64_t flat)
{
    if (isInteger(array.type().dtype))
        return jsonLine(elementJson(array, flat));
    if (!isComplex(array.type().dtype))
        return fmt::format("{:.6g}", array.at(flat));
    const std::complex<double> value = complexAt(array, flat);
    return fmt::format("{:.6g}{:+.6g}j", value.real(), value.imag());
}

/// `[[1, 2], [3, 4]]`; `flat` counts the elements that are done.
std::string nestedText(const HostArray& array, std::size_t dim, std::int64_t& flat)
{
    const Shape& shape = array.type().shape;
    if (dim == shape.size())
        return elementText(array, flat++);
    std::string text = "[";
    for (std::int64_t i = 0; i < shape[dim]; ++i)
        text += (i == 0 ? "" : ", ") + nestedText(array, dim + 1, flat);
    return text + "]";
}

/// The elements in nested lists; null for what is not finite.
Json nestedJson(const HostArray& array, std::size_t dim, std::int64_t& flat)
{
    const Shape& shape = array.type().shape;
    if (dim == shape.size())
        return elementJson(array, flat++);
    Json list = Json::array();
    for (std::int64_t i = 0; i < shape[dim]; ++i)
        list.push_back(nestedJson(array, dim + 1, flat));
    return list;
}

std::string runJson(const sim::RunResult& run, const std::string& function, const std::optional<sim::SimulatedStudy>& simulated)
{
    Json axes = Json::array();
    for (const MeshAxis& axis : run.mesh.axes())
        axes.push_back(Json::array({axis.name, axis.size}));
    Json results = Json::array();
    for (std::size_t i = 0; i < run.results.size(); ++i) {
        const HostArray& result = run.results[i];
        std::int64_t flat = 0;
        results.push_back({{"name", run.names[i]}, {"dtype", dtypeName(result.type().dtype)}, {"shape", result.type().shape},
            {"layout", run.layouts[i]}, {"values", isListed(result, kMostListed) ? nestedJson(result, 0, flat) : Json(nullptr)}});
    }
    Json collectives = Json::array();
    for (const CountedCollective& counted : run.collectives)
        collectives.push_back({{"op", opName(counted.use.kind)}, {"axes", counted.use.axes}, {"count", counted.calls},
            {"bytes_per_device", counted.use.payloadBytes}, {"value", counted.use.cause.value},
            {"cause", counted.use.cause.reason}});
    Json document = {{"schema", "meshwright.run/1"}, {"meshwright", kVersion}, {"function", function}, {"mesh", std::move(axes)},
        {"devices", run.mesh.deviceCount()}, {"run_s", run.seconds}, {"bytes_per_device", run.arenaBytes},
        {"results", std::move(results)}, {"collectives", std::move(collectives)}};
    if (run.verification)
        document["verify"] = {{"verdict", run.verification->passed ? "equal" : "different"},
            {"proves_anything", run.verification->provesAnything()}, {"max_rel_error", run.verification->maxRelError()}};
    if (simulated)
        document["simulated"] = {{"hardware", simulated->simulation.machine}, {"step_time_s", simulated->simulation.stepSeconds},
            {"peak_bytes_per_device", simulated->simulation.peakBytes}, {"fits", simulated->simulation.fits}};
    if (run.proof)
        document["proof"] = parsedJson(sim::proofJson(*run.proof));
    if (run.times)
        document["times"] = {{"repetitions", run.times->taken.repetitions}, {"runs", run.times->taken.runs},
            {"best_s", run.times->best}, {"mean_s", run.times->mean}, {"unsharded_best_s", run.times->unshardedBest}};
    return jsonText(document);
}

std::string runText(const sim::RunResult& run, const std::optional<sim::SimulatedStudy>& simulated)
{
    std::string text = fmt::format("ran on {} ({}) in {}, {} a device\n", counted(run.mesh.deviceCount(), "device"),
        run.mesh.text(), formatSeconds(run.seconds), formatBytes(run.arenaBytes));
    for (std::size_t i = 0; i < run.results.size(); ++i) {
        std::int64_t flat = 0;
        text += fmt::format("  {}: {} {}{}\n", run.names[i], typeText(run.results[i].type()), run.layouts[i],
            isListed(run.results[i], kMostPrinted) ? " = " + nestedText(run.results[i], 0, flat) : "");
    }
    std::vector<CollectiveUse> uses;
    for (const CountedCollective& counted : run.collectives) {
        uses.push_back(counted.use);
        uses.back().count = counted.calls;
    }
    text += uses.empty() ? "  no collectives\n" : sim::collectivesTable(uses).text(2);
    if (simulated)
        text += fmt::format("on {}, simulated: {} a step, {} of {} a device{}\n", simulated->simulation.machine,
            formatSeconds(simulated->simulation.stepSeconds), formatBytes(simulated->simulation.peakBytes),
            formatBytes(simulated->simulation.capacityBytes), simulated->simulation.fits ? "" : ": does not fit");
    if (run.verification)
        text += fmt::format("verified against one device: {}\n", run.verification->text());
    if (run.proof)
        text += sim::proofText(*run.proof) + "\n";
    if (run.times)
        text += timesText(*run.times);
    return text;
}

/// `5x5`, or nothing.
std::optional<sim::TimingChoices> timingOf(const std::string& text)
{
    constexpr std::int64_t kMost = 1'000'000;
    const std::vector<std::string> parts = split(text, 'x');
    const auto count = [&](std::size_t i) { return parts.size() == 2 ? parseInteger(parts[i]).value_or(0) : 0; };
    if (count(0) < 1 || count(1) < 1 || count(0) > kMost || count(1) > kMost)
        return std::nullopt;
    return sim::TimingChoices{static_cast<int>(count(0)), static_cast<int>(count(1))};
}

Result<std::vector<HostArray>> readArguments(const std::vector<std::string>& files)
{
    std::vector<HostArray> arguments;
    Problems problems;
    for (const std::string& file : files) {
        auto array = readNpy(file);
        if (array)
            arguments.push_back(*std::move(array));
        else
            append(problems, array.error());
    }
    if (!problems.empty())
        return problems;
    return arguments;
}

/// Whole arrays, each file as a whole: result0.npy and so on, grad0.npy for the gradient by argument 0.
Result<Done> writeResults(const sim::RunResult& run, const std::string& folder, const std::vector<std::string>& names)
{
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    Problems problems;
    for (std::size_t i = 0; i < run.results.size(); ++i) {
        const auto written = writeFileAtomically(std::filesystem::path(folder) / (names[i] + ".npy"), npyBytes(run.results[i]));
        if (!written)
            append(problems, written.error());
    }
    if (!problems.empty())
        return problems;
    return Done{};
}

/// The names of the results' files: those of the function itself, then the gradients by its floating arguments.
std::vector<std::string> fileNames(const Function& function, std::size_t count)
{
    std::vector<std::string> names;
    for (std::size_t i = 0; i < function.results().size(); ++i)
        names.push_back(fmt::format("result{}", i));
    for (std::size_t i = 0; i < function.arguments().size() && names.size() < count; ++i) {
        if (isFloating(function[function.arguments()[i]].type.dtype))
            names.push_back(fmt::format("grad{}", i));
    }
    return names;
}

/// A program as the settings have it.
struct SetProgram {
    Program program;
    std::optional<sim::SimulatedStudy> simulated; ///< where they name hardware
};

/// Problems: those of `loadStudy`, `buildPhase` and `simulateStudy`.
Result<SetProgram> setProgram(const RunOptions& options, const std::string& function)
{
    auto study = loadStudy(options.file, options.settings);
    if (!study)
        return study.error();
    auto* file = std::get_if<ProgramFile>(&study->model);
    if (file == nullptr)
        return Problem{"MW1903", "--set model=: the program that runs is the file's", "name another file"};
    file->function = function;
    auto built = sim::buildPhase(*study);
    if (!built)
        return built.error();
    SetProgram set{std::move(built->program), {}};
    if (study->hardware) {
        const auto catalogue = sim::defaultCatalogue();
        if (!catalogue)
            return catalogue.error();
        auto simulated = sim::simulateStudy(*study, *catalogue);
        if (!simulated)
            return simulated.error();
        set.simulated = *std::move(simulated);
    }
    return set;
}

/// As one of several processes, or alone. All read the same program and arrays; the first one writes the results.
int runAs(const std::shared_ptr<Ranks>& ranks, const RunOptions& options, Output& output)
{
    const bool isFirst = ranks == nullptr || ranks->isFirst();
    auto program = readProgramFile(options.file, output);
    if (!program)
        return fail(program.error(), output);
    std::vector<std::string> names;
    for (const Function& function : program->functions)
        names.push_back(function.name);
    const std::string name = options.function.empty() ? entryFunctionOf(*program) : options.function;
    if (std::find(names.begin(), names.end(), name) == names.end())
        return fail(
            {Problem{"MW1732",
                name.empty() ? fmt::format("the program has {} functions", names.size())
                             : fmt::format("the program has no function \"{}\"", name),
                "name one with --function: " + join(names, ", "), Place{options.file == "-" ? "standard input" : options.file}}},
            output);

    sim::RunChoices choices{
        .seed = static_cast<std::uint64_t>(options.seed), .verify = options.verify, .permits = options.permits};
    choices.gradient = options.gradient;
    choices.prove = options.proves;
    choices.ranks = ranks;
    auto faults = faultOptions(options.faults);
    if (!faults)
        return fail(faults.error(), output);
    choices.faults = *std::move(faults);
    const auto engine = parseEngine(options.engine);
    if (!engine)
        return fail(engine.error(), output);
    choices.engine = *engine;
    choices.stallSeconds = options.faults.stallTimeout;
    if (options.deviceMemory > 0)
        choices.deviceMemoryBytes = options.deviceMemory;
    if (!options.time.empty()) {
        const auto timing = timingOf(options.time);
        if (!timing)
            return fail({Problem{"MW1903", fmt::format("--time {} does not say how often", options.time),
                            "write repetitions x runs, such as 5x5"}},
                output);
        choices.timing = *timing;
    }
    if (!options.arguments.empty()) {
        auto arguments = readArguments(options.arguments);
        if (!arguments)
            return fail(arguments.error(), output);
        choices.arguments = *std::move(arguments);
    }

    std::optional<sim::SimulatedStudy> simulated;
    if (!options.settings.empty()) {
        auto set = setProgram(options, name);
        if (!set)
            return fail(inFile(set.error(), options.file), output);
        program = std::move(set->program);
        simulated = std::move(set->simulated);
    }

    InterruptWatcher interrupt;
    const auto run = sim::runProgram(*program, name, choices, interrupt.token());
    if (!run)
        return interrupt.fail(inFile(run.error(), options.file), output);
    if (!isFirst)
        return kExitOk;
    if (!run->warnings.empty()) {
        Output words = output; // beside the result
        words.format = Format::Text;
        printProblems(inFile(run->warnings, options.file), words);
    }
    Result<Done> written = Done{};
    if (!options.folder.empty())
        written = writeResults(*run, options.folder, fileNames(*program->find(name), run->results.size()));
    output.result(output.format == Format::Json ? runJson(*run, name, simulated)
                                                : runText(*run, simulated)); // whatever could not be written
    if (!written)
        return failAfterResult(written.error(), output);
    return run->verification && !run->verification->passed ? kExitMismatch : kExitOk;
}

} // namespace

int runRun(const RunOptions& options, Output& output)
{
    return runTogether(
        output, options.file, [&](const std::shared_ptr<Ranks>& ranks, Output& own) { return runAs(ranks, options, own); });
}

} // namespace meshwright::cli
