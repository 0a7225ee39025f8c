// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/engine.h"

#include "core/autodiff/gradient_function.h"
#include "core/diagnose/lints.h"
#include "core/kernels/kernel.h"
#include "core/kernels/products.h"
#include "core/models/transformer_config.h"
#include "core/program/transform.h"
#include "core/study/check_pipeline.h"
#include "core/study/layers_apart.h"
#include "core/study/pipeline_choice.h"
#include "core/study/resolve.h"
#include "core/support/clock.h"
#include "core/support/counted.h"
#include "core/support/file.h"
#include "core/support/host_memory.h"
#include "core/support/stop_scope.h"
#include "core/support/text.h"
#include "core/text/program_text.h"
#include "core/train/pipeline_program.h"
#include "core/train/training_memory.h"
#include "sim/session/comparable_of.h"
#include "sim/session/device_memory.h"
#include "sim/session/pipeline_cuts.h"
#include "sim/session/same_input.h"
#include "sim/transformer/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
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

/// With `pipelineMicrobatches`, see TrainingOptions, the study's batch is that of a microbatch.
Result<Program> buildTraining(
    const Study& study, const std::vector<AssignedSpec>& assigned, std::int64_t pipelineMicrobatches = 0)
{
    auto options = trainingOptions(study, assigned);
    if (!options)
        return options.error();
    options->pipelineMicrobatches = pipelineMicrobatches;
    if (const TransformerModel* transformer = study.transformer())
        return buildTransformerTraining(*transformer, *options);
    return buildMlpTraining(*study.mlp(), *options);
}

/// Arguments that have no name are arg0, arg1, .. by their places, as the text mostly has them, so that a study can say where they lie.
void nameArguments(Program& program)
{
    for (Function& function : program.functions) {
        for (std::size_t i = 0; i < function.arguments().size(); ++i) {
            Value& argument = function[function.arguments()[i]];
            const std::string name = fmt::format("arg{}", i);
            if (argument.name.empty() && !function.findValue(name))
                argument.name = name;
        }
    }
}

Result<Program> readProgramFile(const Study& study, Problems& warnings)
{
    const auto& file = std::get<ProgramFile>(study.model);
    const std::filesystem::path path = study.resolved(file.file);
    const auto text = readFile(path);
    if (!text)
        return text.error();
    auto program = readProgram(*text, path.string(), &warnings);
    if (program)
        nameArguments(*program);
    return program;
}

/// The program with the study's shardings. `assigned`: the study's specs.
Result<Program> annotatedProgram(
    const Study& study, const std::vector<AssignedSpec>& assigned, Problems& warnings, std::int64_t pipelineMicrobatches = 0)
{
    auto program = study.trains() ? buildTraining(study, assigned, pipelineMicrobatches) : readProgramFile(study, warnings);
    if (!program)
        return placedIn(study, program.error());
    if (auto resolved = resolveShardings(study, assigned, *program); !resolved)
        return placedIn(study, resolved.error());
    return program;
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
    if (names.empty())
        return Problem{"MW1732", "the program has no function", "is its file truncated?", study.placeOf("model.program")};
    return Problem{"MW1732",
        wanted.empty() ? fmt::format("the program has {} functions", names.size())
                       : fmt::format("the program has no function \"{}\"", wanted),
        "name one as model.program.function: " + fmt::format("{}", fmt::join(names, ", ")), study.placeOf("model.program")};
}

/// What a study says of 8-bit products and a program does not do.
Problems eightBitWarnings(const Study& study)
{
    if (study.fp8 != Fp8Recipe::Delayed)
        return {};
    Problem kept{"MW1465",
        "delayed scales are not kept from step to step: this step takes scales of its own values, as dtype.fp8: current",
        "write dtype.fp8: current; looking for the largest values first costs one more pass over each array",
        study.placeOf("dtype.fp8")};
    kept.severity = Severity::Warning;
    return {kept};
}

std::int64_t layerCount(const Study& study)
{
    return study.transformer() != nullptr ? study.transformer()->config.layers
                                          : static_cast<std::int64_t>(study.mlp()->layers.size()) - 1;
}

/// The value behind a layer, where a model can be cut.
std::string cutBehind(const Study& study, std::int64_t layer)
{
    return study.transformer() != nullptr ? layerOutput(*study.transformer(), layer)
                                          : fmt::format("act.layers.{}.activated", layer);
}

} // namespace

namespace {

/// A study says in dtype.matmul how it multiplies; in a program's text, as in JAX, saying nothing means DEFAULT.
MatmulPrecision unstatedPrecision(const Study& study)
{
    return study.trains() ? MatmulPrecision::Highest : MatmulPrecision::Default;
}

} // namespace

Result<PlainProgram> plainProgramOf(const Study& study)
{
    PlainProgram plain;
    auto program = study.trains() ? buildTraining(study, assignedSpecs(study)) : readProgramFile(study, plain.warnings);
    if (!program)
        return placedIn(study, program.error());
    auto mainFunction = mainFunctionOf(study, *program);
    if (!mainFunction)
        return mainFunction.error();
    plain.program = *std::move(program);
    plain.mainFunction = *std::move(mainFunction);
    plain.unstated = unstatedPrecision(study);
    return plain;
}

Result<Simulation> simulateProgram(
    const Program& program, const std::string& function, const Machine& machine, const CostOptions& cost)
{
    const auto partitioned = propagateAndPartition(program);
    if (!partitioned)
        return partitioned.error();
    const DeviceStage& stage = partitioned->device.stages.front();
    return simulate(
        schedule(*stage.find(function), SchedulePolicy::Overlapped), stage.mesh(), *program.find(function), machine, cost);
}

namespace {

/// The study of one phase, as its steps are cut.
Study stepStudy(const Study& study, std::size_t phase)
{
    Study step = phaseStudy(study, phase);
    step.pipeline = stepPipeline(study);
    step.train.accumulate = 1;
    return step;
}

} // namespace

Result<BuiltPhase> buildPhase(const Study& study, std::size_t phase)
{
    BuiltPhase built;
    built.warnings = eightBitWarnings(study);
    built.study = stepStudy(study, phase);
    built.arrays = arraysOf(built.study);
    auto program = annotatedProgram(built.study, built.arrays.assigned, built.warnings);
    if (!program)
        return program.error();
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

ScheduledFunction scheduleStep(const BuiltPhase& built)
{
    return schedule(*built.partitioned.device.stages.front().find(built.mainFunction), SchedulePolicy::Overlapped);
}

namespace {

/// The last layer of each piece but the last; -1 of the embedding alone.
std::vector<std::int64_t> cutsOf(const Study& study)
{
    std::vector<std::int64_t> cuts = layersOfPieces(study.pipeline, layerCount(study));
    cuts.pop_back();
    std::partial_sum(cuts.begin(), cuts.end(), cuts.begin());
    for (std::int64_t& cut : cuts)
        --cut;
    return cuts;
}

/// A study whose layers can be cut apart. Only simulated, each piece keeps a loop over its layers, unless the schedule does the two halves of a
/// backward run at different times.
Result<Study> pipelinedStudy(const Study& study, SchedulePolicy policy)
{
    const TransformerModel* transformer = study.transformer();
    if (transformer == nullptr || transformer->unrolled)
        return study;
    if (Problems problems = checkPipelineFits(study); hasErrors(problems))
        return problems;
    const bool keepsLoops = policy == SchedulePolicy::Overlapped && !splitsBackward(study.pipeline.schedule);
    return keepsLoops ? withCutLoops(study, cutsOf(study)) : withUnrolledLayers(study);
}

/// The stages and tasks of a study whose layers can be cut apart, propagated and partitioned piece by piece.
Result<ScheduledProgram> piecesOf(const Study& study, SchedulePolicy policy, const std::stop_token& stop)
{
    Problems warnings;
    Study part = study;
    part.batch /= study.pipeline.microbatches;
    const std::vector<AssignedSpec> assigned = assignedSpecs(part);
    const auto microbatch = annotatedProgram(part, assigned, warnings, study.pipeline.microbatches);
    if (!microbatch)
        return microbatch.error();
    PipelineCut cut;
    cut.shape = {study.pipeline.stages, study.pipeline.chunks, study.pipeline.microbatches, study.pipeline.schedule};
    cut.axis = study.pipeline.axis;
    cut.policy = policy;
    cut.stop = stop;
    cut.after = cutValues(study);
    if (const UpdateChoices* update = updateChoices(study.optimizer))
        cut.lossScale = update->lossScale;
    if (const TransformerModel* transformer = study.transformer()) {
        TrainingOptions options = *trainingOptions(part, assigned);
        options.pipelineMicrobatches = study.pipeline.microbatches;
        cut.residuals = residualsOf(*transformer, options);
    }
    auto scheduled = pipelineOf(*microbatch, cut);
    if (scheduled)
        return scheduled;
    Problems problems = scheduled.error();
    for (Problem& problem : problems) {
        if (problem.place == Place{})
            problem.place.path = "pipeline";
    }
    return placedIn(study, std::move(problems));
}

/// A phase whose steps are cut into stages and microbatches.
Result<TrainingPhase> pipelinedPhase(const Study& looped, SchedulePolicy policy, const std::stop_token& stop = {})
{
    const auto study = pipelinedStudy(looped, policy);
    if (!study)
        return study.error();
    Problems warnings;
    auto whole = annotatedProgram(*study, assignedSpecs(*study), warnings);
    if (!whole)
        return whole.error();
    auto pieces = piecesOf(*study, policy, stop);
    if (!pieces)
        return pieces.error();
    return TrainingPhase{study->train.steps, *std::move(whole), *std::move(pieces)};
}

} // namespace

namespace {

/// What the machine cannot do, where the study asked for it.
Problems placedOnMachine(const Study& study, Problems problems)
{
    static const std::map<std::string, const char*> kPaths = {{"MW1720", "mesh"}, {"MW1721", "device_order"}, {"MW1722", "mesh"},
        {"MW1730", "dtype.matmul"}, {"MW1740", "network.algorithms"}, {"MW1741", "faults.links"}};
    for (Problem& problem : problems) {
        const auto path = kPaths.find(problem.id);
        if (problem.place == Place{})
            problem.place = study.placeOf(path == kPaths.end() ? "hardware" : path->second);
    }
    return problems;
}

} // namespace

Result<MeshPlacement> placementOf(const Study& study, const Mesh& mesh, const Machine& machine)
{
    auto placement = placeMesh(mesh, machine);
    if (!placement)
        return placedOnMachine(study, placement.error());
    return placement;
}

namespace {

/// Of the study of one phase; null without a pipeline.
Result<std::shared_ptr<const TrainingPhase>> simulatedPipeline(const Study& study, const std::stop_token& stop)
{
    if (!isPipelined(study.pipeline))
        return std::shared_ptr<const TrainingPhase>();
    auto phase = pipelinedPhase(study, SchedulePolicy::Overlapped, stop);
    if (!phase)
        return phase.error();
    return std::make_shared<const TrainingPhase>(*std::move(phase));
}

} // namespace

std::vector<std::string> cutValues(const Study& study)
{
    std::vector<std::string> values;
    for (const std::int64_t layer : cutsOf(study))
        values.push_back(cutBehind(study, layer));
    return values;
}

Result<std::shared_ptr<const TrainingPhase>> pipelineOfPhase(const BuiltPhase& built, const std::stop_token& stop)
{
    return simulatedPipeline(built.study, stop);
}

namespace {

/// The model as its own work is counted, whatever a program makes of it: nothing computed twice, tokens looked up by index, attention without what
/// its mask hides, and every expert computing every token (see `unroutedFlops`).
TransformerModel ownModel(TransformerModel model)
{
    model.lookup = TokenLookup::Gather;
    model.attention = AttentionOp::Fused;
    model.context = ContextExchange::Gather;
    model.recompute = Recompute::None;
    model.kept.clear();
    model.offloaded.clear();
    model.lossKernels = LossKernels::Fused;
    model.lossChunks = 1;
    model.zigzag = 0;
    model.cuts.clear();
    if (model.config.experts > 0 || std::ranges::any_of(model.config.kinds, [](const auto& kind) { return kind.experts > 0; })) {
        model.capacityFactor = 0.0;
        model.dispatchGroups = 1;
    }
    return model;
}

/// Products of tokens at experts to which they are not sent, forward and backward, where every expert computes every token.
double unroutedFlops(const TransformerModel& model, std::int64_t batch)
{
    double flops = 0.0;
    for (const TransformerConfig& group : layerGroups(model.config)) {
        const double matrices = group.gatedFfn ? 3.0 : 2.0;
        const auto width = static_cast<double>(group.expertHidden > 0 ? group.expertHidden : group.hidden);
        const double ofToken = 3.0 * 2.0 * matrices * width * static_cast<double>(group.expertFfn);
        flops += ofToken * static_cast<double>(group.layers * std::max<std::int64_t>(0, group.experts - group.expertsPerToken));
    }
    return flops * static_cast<double>(batch * model.sequence);
}

/// A model's own work: the function whose products are counted, and what of them is not the model's.
struct OwnWork {
    Function function;
    double uncountedFlops = 0.0;
};

/// Whether a step does more than that.
bool doesMore(const TransformerModel& model)
{
    const std::vector<TransformerConfig> groups = layerGroups(model.config);
    const bool isRecurrent = std::ranges::any_of(groups, [](const TransformerConfig& group) { return group.isRecurrent(); });
    return isRecurrent || !(ownModel(model) == model);
}

/// The loss and its gradients of a transformer as it is counted.
Result<OwnWork> ownWork(const Study& study)
{
    Study plain = study;
    auto& model = std::get<TransformerModel>(plain.model);
    model = ownModel(model);
    const auto options = trainingOptions(plain, {});
    const auto program = options ? buildTransformerTraining(model, *options) : options.error();
    if (!program)
        return program.error();
    auto own = withGradients(restrictedTo(*program->find("evaluate"), {0}), {});
    if (!own)
        return own.error();
    return OwnWork{*std::move(own), model.capacityFactor == 0.0 ? unroutedFlops(model, plain.batch) : 0.0};
}

/// A step before it is scheduled, and what is counted of it.
struct CountedStep {
    const Study& study;
    const Mesh& mesh;
    const std::string& collectiveCost;
    const Function& unsharded;
    const OwnWork* own = nullptr; ///< counted in its place
};

Result<SimulatedStudy> simulateCounted(const CountedStep& step, const ScheduledFunction* scheduled,
    const ScheduledProgram* pipeline, const Machine& machine, const SimulationExtras& extras, const std::stop_token& stop)
{
    const Function& unsharded = step.own != nullptr ? step.own->function : step.unsharded;
    SimulationExtras all = extras;
    if (step.own != nullptr)
        all.modelFlops = productFlops(step.own->function) - step.own->uncountedFlops;
    NetworkOptions network = networkOf(step.study);
    network.stop = stop;
    const auto cost
        = costOptionsOf(machine.chip, unstatedPrecision(step.study), step.study.stack, extras.traits, extras.constants);
    if (!cost)
        return cost.error();
    SimulatedStudy result;
    result.name = step.study.name;
    result.file = step.study.places.file;
    result.mesh = step.mesh;
    result.collectiveCost = step.collectiveCost;
    auto simulation = pipeline != nullptr
        ? simulate(*pipeline, step.mesh, step.study.pipeline.axis, unsharded, machine, *cost, network, all)
        : simulate(*scheduled, step.mesh, unsharded, machine, *cost, network, all);
    if (!simulation)
        return placedOnMachine(step.study, simulation.error());
    result.simulation = *std::move(simulation);
    result.simulation.assumptions.push_back(stackAssumption(step.study, machine.chip));
    if (const std::size_t loops = openLoops(unsharded); loops > 0)
        result.simulation.assumptions.push_back(
            fmt::format("{} {} an unknown number of turns: one is counted", counted(loops, "loop"), loops == 1 ? "has" : "have"));
    result.liveAtPeak = pipeline != nullptr ? liveAtPeak(*pipeline) : liveAtPeak(*scheduled);
    return result;
}

} // namespace

Result<SimulatedStudy> simulateStep(const BuiltPhase& built, const ScheduledFunction& scheduled, const TrainingPhase* pipeline,
    const Machine& machine, const SimulationExtras& extras, const std::stop_token& stop)
{
    const TransformerModel* transformer = built.study.transformer();
    std::optional<OwnWork> own;
    if (transformer != nullptr && doesMore(*transformer)) {
        if (auto counted = ownWork(built.study))
            own = *std::move(counted);
    }
    const DeviceProgram& device = built.partitioned.device;
    return simulateCounted({built.study, device.stages.front().mesh(), device.collectiveCost,
                               *built.program.find(built.mainFunction), own ? &*own : nullptr},
        &scheduled, pipeline == nullptr ? nullptr : &pipeline->scheduled, machine, extras, stop);
}

namespace {

/// The value; null, with its problems kept, where there is none.
template <typename T>
std::shared_ptr<const T> kept(Result<T> result, Problems& problems)
{
    if (!result) {
        append(problems, result.error());
        return nullptr;
    }
    return std::make_shared<const T>(*std::move(result));
}

template <typename T>
std::optional<T> valueKept(Result<T> result, Problems& problems)
{
    if (!result) {
        append(problems, result.error());
        return std::nullopt;
    }
    return *std::move(result);
}

} // namespace

Proof proofOf(const PartitionedProgram& partitioned, const std::stop_token& stop)
{
    const auto start = std::chrono::steady_clock::now();
    Proof proof = prove(partitioned.propagated, partitioned.device, stop);
    proof.seconds = secondsSince(start);
    return proof;
}

Proof proofOf(const BuiltPhase& built, const TrainingPhase* pipeline, const std::stop_token& stop)
{
    return pipeline == nullptr ? proofOf(built.partitioned, stop) : proofOf(std::span(pipeline, 1), stop);
}

Proof proofOf(std::span<const TrainingPhase> phases, const std::stop_token& stop)
{
    Proof all;
    for (const TrainingPhase& phase : phases) {
        const auto start = std::chrono::steady_clock::now();
        Proof proof = prove(phase.program, phase.scheduled, stop);
        proof.seconds = secondsSince(start);
        add(all, std::move(proof));
    }
    return all;
}

void findMachine(StepParts& parts, const Study& study, const Catalogue& catalogue)
{
    parts.machine = kept(machineOf(study, catalogue), parts.problems);
    if (!parts.machine)
        return;
    Problems tooLarge = checkMeshFits(study, parts.machine->deviceCount());
    parts.machineIsLargeEnough = tooLarge.empty();
    append(parts.problems, std::move(tooLarge));
    if (study.fp8 == Fp8Recipe::None)
        return;
    if (auto good = checkFormat(parts.machine->chip, MathFormat::Fp8); !good) {
        for (Problem problem : good.error()) {
            problem.place = study.placeOf("dtype.fp8");
            parts.problems.push_back(std::move(problem));
        }
    }
}

namespace {

std::optional<SimulatedStudy> predictWholeStep(
    StepParts& parts, const Study& study, const SimulationExtras& extras, const std::stop_token& stop)
{
    const auto place = [&](const Mesh& mesh) {
        if (parts.machineIsLargeEnough)
            parts.placement = kept(placementOf(study, mesh, *parts.machine), parts.problems);
        return parts.placement != nullptr;
    };
    // The pieces of a pipeline are cut, propagated and partitioned by themselves: beside the whole step.
    std::future<Result<std::shared_ptr<const TrainingPhase>>> pieces;
    if (isPipelined(stepPipeline(study)))
        pieces = std::async(std::launch::async, [phase = stepStudy(study, 0), stop] {
            const StopScope scope(stop);
            return simulatedPipeline(phase, stop);
        });
    parts.built = kept(buildPhase(study), parts.problems);
    if (!parts.built || stop.stop_requested())
        return std::nullopt;
    append(parts.problems, parts.built->warnings);
    parts.scheduled = std::make_shared<const ScheduledFunction>(scheduleStep(*parts.built));
    if (pieces.valid()) {
        auto pipeline = valueKept(pieces.get(), parts.problems);
        if (!pipeline)
            return std::nullopt;
        parts.pipeline = *std::move(pipeline);
    }
    if (stop.stop_requested() || !place(parts.built->partitioned.device.stages.front().mesh()))
        return std::nullopt;
    auto simulated = valueKept(
        simulateStep(*parts.built, *parts.scheduled, parts.pipeline.get(), *parts.machine, extras, stop), parts.problems);
    if (simulated && study.phases.size() > 1)
        simulated->simulation.assumptions.push_back(
            fmt::format("every step is one of the first of {} phases, on the mesh {}: the others are not simulated",
                study.phases.size(), simulated->mesh.text()));
    return simulated;
}

} // namespace

std::optional<SimulatedStudy> predictStep(
    StepParts& parts, const Study& study, const SimulationExtras& extras, const std::stop_token& stop)
{
    return unlessStopped(stop, [&] { return predictWholeStep(parts, study, extras, stop); }).value_or(std::nullopt);
}

namespace {

/// A pipeline's step without the whole step.
Result<SimulatedStudy> simulatePieces(
    const Study& phase, const Machine& machine, const SimulationExtras& extras, const std::stop_token& stop)
{
    const auto study = pipelinedStudy(phase, SchedulePolicy::Overlapped);
    if (!study)
        return study.error();
    const auto mesh = meshOf(phase);
    if (!mesh)
        return mesh.error();
    const auto own = ownWork(phase);
    if (!own)
        return own.error();
    const auto pieces = piecesOf(*study, SchedulePolicy::Overlapped, stop);
    if (!pieces)
        return pieces.error();
    return simulateCounted(
        {phase, *mesh, pieces->collectiveCost, own->function, &*own}, nullptr, &*pieces, machine, extras, stop);
}

} // namespace

std::optional<SimulatedStudy> predictFigures(
    StepParts& parts, const Study& study, const SimulationExtras& extras, const std::stop_token& stop)
{
    if (study.transformer() == nullptr || !isPipelined(stepPipeline(study)) || !parts.machineIsLargeEnough)
        return predictStep(parts, study, extras, stop);
    return unlessStopped(stop, [&] {
        return valueKept(simulatePieces(stepStudy(study, 0), *parts.machine, extras, stop), parts.problems);
    }).value_or(std::nullopt);
}

void proveStep(StepParts& parts, const std::stop_token& stop)
{
    if (!parts.built || stop.stop_requested())
        return;
    auto proof = std::make_shared<const Proof>(proofOf(*parts.built, parts.pipeline.get(), stop));
    if (!stop.stop_requested())
        parts.proof = std::move(proof);
}

Result<SimulatedStudy> simulateStudy(const Study& study, const Catalogue& catalogue, const SimulationExtras& extras, bool proves)
{
    const auto start = std::chrono::steady_clock::now();
    StepParts parts;
    findMachine(parts, study, catalogue);
    if (!parts.problems.empty())
        return parts.problems;
    auto simulated = predictStep(parts, study, extras);
    if (!simulated) {
        std::erase_if(parts.problems, [](const Problem& problem) { return problem.severity != Severity::Error; });
        return parts.problems;
    }
    if (parts.pipeline)
        simulated->arrays = comparedArrays(parts.pipeline->scheduled);
    else if (const auto& built = parts.built)
        simulated->arrays = comparedArrays(
            *built->partitioned.propagated.find(built->mainFunction), built->partitioned.device.stages.front().meshes);
    simulated->wallSeconds = secondsSince(start);
    if (proves) {
        proveStep(parts);
        simulated->proof = parts.proof;
    }
    return *std::move(simulated);
}

Problems lintsOfPhase(const Study& study, const BuiltPhase& phase)
{
    constexpr std::size_t kMostArrays = 4000;
    if (phase.arrays.all.size() > kMostArrays)
        return {};
    const DeviceStage& stage = phase.partitioned.device.stages.front();
    const Function* propagated = phase.partitioned.propagated.find(phase.mainFunction);
    const DeviceFunction* device = stage.find(phase.mainFunction);
    if (propagated == nullptr || device == nullptr || stage.meshes.empty())
        return {};
    return lintStudy(study, phase.arrays, {*propagated, *device, stage.meshes});
}

Result<std::vector<TrainingPhase>> trainingPhases(const Study& study)
{
    if (!study.trains())
        return Problem{"MW1733", "the study's model is a program file, which has no training", "use `meshwright run` for it",
            study.placeOf("model")};
    std::vector<TrainingPhase> phases;
    for (std::size_t i = 0; i < std::max<std::size_t>(1, study.phases.size()); ++i) {
        if (isPipelined(stepPipeline(study))) {
            auto phase = pipelinedPhase(stepStudy(study, i), SchedulePolicy::Host);
            if (!phase)
                return phase.error();
            phases.push_back(*std::move(phase));
        } else {
            auto built = buildPhase(study, i);
            if (!built)
                return built.error();
            phases.push_back(
                {built->study.train.steps, std::move(built->program), schedule(built->partitioned.device, SchedulePolicy::Host)});
        }
        for (const ScheduledStage& stage : phases.back().scheduled.stages) {
            for (const ScheduledFunction& function : stage.functions) {
                if (Problems problems = checkRunnable(function.device.function); !problems.empty())
                    return placedIn(study, std::move(problems));
            }
        }
    }
    return phases;
}

Problems untrainable(const Study& study, std::span<const std::shared_ptr<const BuiltPhase>> built)
{
    if (study.trains() && !isPipelined(stepPipeline(study))) {
        for (const std::shared_ptr<const BuiltPhase>& phase : built) {
            for (const DeviceFunction& function : phase->partitioned.device.stages.front().functions) {
                if (Problems problems = checkRunnable(function.function); !problems.empty())
                    return placedIn(study, std::move(problems));
            }
        }
    } else if (const auto phases = trainingPhases(study); !phases) {
        return phases.error();
    }
    if (study.train.data.kind != TrainingData::Kind::File)
        return {};
    const auto data = datasetOf(study);
    return data ? Problems{} : data.error();
}

} // namespace meshwright::sim
