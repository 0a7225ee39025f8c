// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/engine.h"

#include "core/study/resolve.h"
#include "core/support/file.h"
#include "core/support/host_memory.h"
#include "core/support/resources.h"
#include "core/support/text.h"
#include "core/text/program_text.h"
#include "sim/hardware/fitting_choice.h"
#include "sim/hardware/hardware_file.h"
#include "sim/session/comparable_of.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

namespace meshwright::sim {

namespace {

/// Gives problems that name an annotation (`sharding.x`) the place where the study wrote it.
Problems placedIn(const Study& study, Problems problems)
{
    for (Problem& problem : problems) {
        if (problem.place.line == 0 && problem.place.file.empty()) {
            const std::string path = problem.place.path;
            problem.place = study.placeOf(path);
            problem.place.path = path;
        }
    }
    return problems;
}

Result<Program> programOf(const Study& study, Problems& warnings)
{
    if (study.trains()) {
        const auto options = trainingOptions(study);
        if (!options)
            return options.error();
        if (study.transformer() != nullptr)
            return buildTransformerTraining(*study.transformer(), *options);
        return buildMlpTraining(*study.mlp(), *options);
    }
    const auto& file = std::get<ProgramFile>(study.model);
    const std::filesystem::path path = study.resolved(file.file);
    const auto text = readFile(path);
    if (!text)
        return text.error();
    return readProgram(*text, path.string(), &warnings);
}

/// The function that one step of the study runs.
Result<std::string> mainFunctionOf(const Study& study, const Program& program)
{
    if (study.trains())
        return std::string("step");
    const auto& wanted = std::get<ProgramFile>(study.model).function;
    std::vector<std::string> names;
    for (const Function& function : program.functions)
        names.push_back(function.name);
    if (wanted.empty() && names.size() == 1)
        return names.front();
    if (std::find(names.begin(), names.end(), wanted) != names.end())
        return wanted;
    return Problem{"MW1732",
        wanted.empty() ? fmt::format("the program has {} functions", names.size())
                       : fmt::format("the program has no function \"{}\"", wanted),
        "name one as model.program.function: " + fmt::format("{}", fmt::join(names, ", ")), study.placeOf("model.program")};
}

} // namespace

Result<BuiltPhase> buildPhase(const Study& study, std::size_t phase)
{
    BuiltPhase built;
    built.study = phaseStudy(study, phase);
    auto program = programOf(built.study, built.warnings);
    if (!program)
        return placedIn(study, program.error());
    auto resolved = resolveShardings(built.study, *program);
    if (!resolved)
        return placedIn(study, resolved.error());
    auto mainFunction = mainFunctionOf(built.study, *program);
    if (!mainFunction)
        return mainFunction.error();
    built.mainFunction = *std::move(mainFunction);
    if (study.trains())
        std::erase_if(
            program->functions, [](const Function& f) { return f.name != "init" && f.name != "step" && f.name != "evaluate"; });
    built.program = *program;
    auto partitioned = propagateAndPartition(*std::move(program));
    if (!partitioned)
        return placedIn(study, partitioned.error());
    built.partitioned = *std::move(partitioned);
    return built;
}

Result<Catalogue> defaultCatalogue()
{
    return Catalogue::load(resourcesDirectory() / "hardware" / "catalogue.json");
}

Result<Machine> machineOf(const Study& study, const Catalogue& catalogue)
{
    if (study.hardware && !study.hardware->profile.empty())
        return readHardware(study.resolved(study.hardware->profile), catalogue);
    if (!study.hardware || study.hardware->chip.empty())
        return Problem{"MW1731", "the study names no hardware from the catalogue",
            "add `hardware: {chip: v5e, topology: [4, 2]}`, or --set hardware.chip=h100 --set hardware.hosts=1",
            study.placeOf("hardware")};
    const sim::HardwareChoice choice{study.hardware->chip, study.hardware->topology, study.hardware->hosts.value_or(0),
        study.hardware->chipsPerHost.value_or(0)};
    auto machine = buildMachine(catalogue, choice);
    if (machine)
        return machine;
    std::int64_t devices = 1;
    for (const MeshAxis& axis : phaseStudy(study, 0).mesh)
        devices *= axis.size;
    const auto fitting = fittingChoice(catalogue, choice, devices);
    Problems problems = machine.error();
    for (Problem& problem : problems) {
        if (problem.place.line == 0)
            problem.place = study.placeOf(problem.id == "MW1701" ? "hardware.chip" : "hardware");
        if (fitting)
            problem.fixSettings = hardwareSettings(choice, *fitting);
    }
    return problems;
}

ScheduledFunction scheduleStep(const BuiltPhase& built)
{
    return schedule(*built.partitioned.device.stages.front().find(built.mainFunction), SchedulePolicy::Overlapped);
}

Result<SimulatedStudy> simulateStep(
    const BuiltPhase& built, const ScheduledFunction& scheduled, const Machine& machine, const NetworkOptions& network)
{
    const Mesh& mesh = built.partitioned.device.stages.front().mesh();
    auto simulation = simulate(scheduled, mesh, *built.program.find(built.mainFunction), machine, network);
    if (!simulation)
        return simulation.error();

    SimulatedStudy result;
    result.name = built.study.name;
    result.file = built.study.places.file;
    result.mesh = mesh;
    result.collectiveCost = built.partitioned.device.collectiveCost;
    result.simulation = *std::move(simulation);
    result.liveAtPeak = liveAtPeak(scheduled);
    return result;
}

Result<SimulatedStudy> simulateStudy(const Study& study, const Catalogue& catalogue, const NetworkOptions& network)
{
    const auto start = std::chrono::steady_clock::now();
    const auto machine = machineOf(study, catalogue);
    if (!machine)
        return machine.error();
    if (Problems problems = checkMeshFits(study, machine->deviceCount()); !problems.empty())
        return problems;
    const auto built = buildPhase(study);
    if (!built)
        return built.error();
    auto simulated = simulateStep(*built, scheduleStep(*built), *machine, network);
    if (simulated) {
        const BuiltPhase& phase = *built;
        simulated->arrays = comparedArrays(
            *phase.partitioned.propagated.find(phase.mainFunction), phase.partitioned.device.stages.front().meshes);
        simulated->wallSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    return simulated;
}

namespace {

/// Rows of tokens: the sequence, and the token that follows it.
Result<Dataset> tokensOf(const Study& study)
{
    const TransformerModel& model = *study.transformer();
    const TrainingData& wanted = study.train.data;
    const auto seed = static_cast<std::uint64_t>(study.train.seed);
    if (wanted.kind == TrainingData::Kind::Random)
        return randomTokens(study.batch, model.sequence, model.config.vocabulary, keyOfSeed(seed));
    DatasetOptions options;
    options.scale = wanted.scale;
    options.classes = model.config.vocabulary;
    options.heldOut = wanted.heldOut;
    if (wanted.shuffle)
        options.shuffleSeed = seed;
    auto data = wanted.kind == TrainingData::Kind::Digits ? readDigitTokens(resourcesDirectory() / "data" / "digits.csv.gz")
                                                          : readCsvDataset(study.resolved(wanted.file), options);
    if (!data)
        return data.error();
    data->classes = model.config.vocabulary;
    if (Problems problems = tokenProblems(*data, model.sequence); !problems.empty()) {
        for (Problem& problem : problems)
            problem.place = study.placeOf("train.data");
        return problems;
    }
    return data;
}

} // namespace

Result<Dataset> datasetOf(const Study& study, const std::stop_token& stop)
{
    if (study.transformer() != nullptr)
        return tokensOf(study);
    const MlpModel& model = *study.mlp();
    const auto seed = static_cast<std::uint64_t>(study.train.seed);
    if (study.train.data.kind == TrainingData::Kind::Random)
        return randomDataset(study.batch, model.layers.front(), model.layers.back(),
            splitKey(keyOfSeed(seed), model.layers.size(), study.partitionableRandom).front(), study.partitionableRandom,
            stop); // the first key of the split that `initKeys` takes the others of

    const TrainingData& wanted = study.train.data;
    DatasetOptions options;
    options.scale = wanted.scale;
    options.classes = model.layers.back();
    options.heldOut = wanted.heldOut;
    if (wanted.shuffle)
        options.shuffleSeed = seed;
    auto data = wanted.kind == TrainingData::Kind::Digits ? readDigits(resourcesDirectory() / "data" / "digits.csv.gz")
                                                          : readCsvDataset(study.resolved(wanted.file), options);
    if (!data)
        return data.error();
    if (data->features != model.layers.front() || data->classes != model.layers.back())
        return Problem{"MW1436",
            fmt::format("{} has {} inputs and {} classes, the model {} and {}", data->name, data->features, data->classes,
                model.layers.front(), model.layers.back()),
            fmt::format("begin model.mlp.layers with {} and end it with {}", data->features, data->classes),
            study.placeOf("model.mlp.layers")};
    return data;
}

Result<std::vector<TrainingPhase>> trainingPhases(const Study& study)
{
    if (!study.trains())
        return Problem{"MW1733", "the study's model is a program file, which has no training", "use `meshwright run` for it",
            study.placeOf("model")};
    std::vector<TrainingPhase> phases;
    for (std::size_t i = 0; i < std::max<std::size_t>(1, study.phases.size()); ++i) {
        auto built = buildPhase(study, i);
        if (!built)
            return built.error();
        phases.push_back(
            {built->study.train.steps, std::move(built->program), schedule(built->partitioned.device, SchedulePolicy::Host)});
    }
    return phases;
}

Result<TrainerOptions> trainerOptions(const Study& study, const TrainChoices& choices)
{
    const auto options = trainingOptions(study);
    if (!options)
        return options.error();
    TrainerOptions trainer;
    trainer.seed = static_cast<std::uint64_t>(study.train.seed);
    trainer.verify = choices.verify;
    trainer.record = choices.record;
    trainer.keepParameters = choices.keepParameters;
    trainer.permits = choices.permits;
    const RandomKey key = keyOfSeed(trainer.seed);
    const auto keys = study.transformer() != nullptr ? initKeys(*study.transformer(), *options, key)
                                                     : initKeys(*study.mlp(), *options, key);
    for (const auto& [name, own] : keys)
        trainer.initKeys.push_back(own);
    trainer.checkpoints = choices.checkpoints;
    trainer.optimizer = optimizerName(study.optimizer);
    if (!choices.resume.empty()) {
        auto reader = CheckpointReader::open(choices.resume);
        if (!reader)
            return reader.error();
        trainer.resumed = *std::move(reader);
    }
    return trainer;
}

Result<Done> checkMemory(std::int64_t plannedBytes, std::optional<std::int64_t> memoryBytes)
{
    constexpr double kUsable = 0.9;
    if (!memoryBytes || static_cast<double>(plannedBytes) <= kUsable * static_cast<double>(*memoryBytes))
        return Done{};
    return Problem{"MW1630",
        fmt::format("training needs {} for its devices, and there are {}", formatBytes(static_cast<double>(plannedBytes)),
            formatBytes(static_cast<double>(*memoryBytes))),
        "use a smaller batch or model, or shard what is replicated"};
}

Study unshardedStudy(Study study)
{
    if (!study.phases.empty())
        study.train.steps = std::accumulate(study.phases.begin(), study.phases.end(), std::int64_t{0},
            [](std::int64_t steps, const StudyPhase& phase) { return steps + phase.steps; });
    study.phases.clear();
    study.mesh.clear();
    study.deviceOrder.clear();
    study.sharding = {};
    study.pipeline = {};
    return study;
}

Result<TrainingResult> trainStudy(const Study& study, const TrainChoices& choices,
    const std::function<void(const TrainingProgress&)>& progress, const std::stop_token& stop)
{
    const auto phases = trainingPhases(study);
    if (!phases)
        return phases.error();
    const auto options = trainerOptions(study, choices);
    if (!options)
        return options.error();
    const auto memory = choices.memoryBytes ? choices.memoryBytes : availableMemoryBytes();
    if (const auto fits = checkMemory(plannedTrainingBytes(*phases), memory); !fits)
        return fits.error();
    const auto data = datasetOf(study, stop);
    if (!data)
        return data.error();
    return train(*phases, *data, *options, progress, stop);
}

} // namespace meshwright::sim
