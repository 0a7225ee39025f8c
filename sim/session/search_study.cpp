// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/search_study.h"

#include "core/models/array_name.h"
#include "core/study/pipeline_choice.h"
#include "core/study/transformer_keys.h"
#include "core/support/checked.h"
#include "core/support/text.h"
#include "core/support/timed_stop.h"
#include "sim/cost/gradient_sums.h"
#include "sim/search/mlp_search.h"
#include "sim/search/plan_reasons.h"
#include "sim/search/program_search.h"
#include "sim/search/search_limits.h"
#include "sim/search/transformer_search.h"
#include "sim/session/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace meshwright::sim {

namespace {

MathFormat formatOf(DType type)
{
    switch (type) {
    case DType::BF16:
        return MathFormat::Bf16;
    case DType::F16:
        return MathFormat::Fp16;
    default:
        return MathFormat::Fp32;
    }
}

/// Writes what the backward pass computes again into a model: policies that studies have a name for by it, others by what they keep.
void setRecomputation(TransformerModel& model, const Recomputation& recomputation, const StackTraits& traits)
{
    static const std::vector<std::pair<Recomputation, Recompute>> kNamed = {
        {*recomputationOf("none"), Recompute::None},
        {*recomputationOf("selective"), Recompute::Selective},
        {*recomputationOf("full"), Recompute::Full},
        {*recomputationOf("minimal"), Recompute::DotsWithoutBatch},
        {*recomputationOf("minimal_with_context"), Recompute::DotsAndAttention},
        {*recomputationOf("minimal_offloaded"), Recompute::OffloadedDots},
    };
    const auto named = std::ranges::find(kNamed, recomputation, &std::pair<Recomputation, Recompute>::first);
    model.recompute = named == kNamed.end() ? Recompute::Named : named->second;
    if (model.recompute == Recompute::Full && traits.recomputesLayers)
        model.recompute = Recompute::Layer;
    if (model.recompute == Recompute::None && !traits.fusedNorms)
        model.recompute = Recompute::Nothing;
    if (model.recompute != Recompute::Named)
        return;
    // Of a layer's products in their order, PyTorch keeps every second one from the first on: a share of one half is the first of two or three.
    const bool isGated = model.config.gatedFfn;
    std::vector<std::string>& kept = recomputation.offloaded > 0.0 ? model.offloaded : model.kept;
    const auto keepWhere = [&](bool isKept, std::initializer_list<const char*> names) {
        if (isKept)
            kept.insert(kept.end(), names.begin(), names.end());
    };
    keepWhere(recomputation.offloadsInput, {"input"});
    keepWhere(recomputation.qkv < 1.0, {"attention.q"});
    keepWhere(recomputation.qkv < 0.5, {"attention.k"});
    keepWhere(recomputation.qkv < 1.0, {"attention.v"});
    keepWhere(recomputation.attention < 0.5, {"attention.mixed"});
    keepWhere(recomputation.attentionOut < 0.5, {"attention"});
    keepWhere(isGated && recomputation.ffnIn < 1.0, {"ffn.gate"});
    keepWhere(recomputation.ffnIn < (isGated ? 0.5 : 1.0), {"ffn.up"});
    keepWhere(recomputation.ffnOut < (isGated ? 1.0 : 0.5), {"ffn"});
}

double stateBytesOf(const Study& study)
{
    const double width = static_cast<double>(byteSize(study.parameterType));
    if (std::holds_alternative<AdamOptimizer>(study.optimizer))
        return 2.0 * width;
    const auto* sgd = std::get_if<SgdOptimizer>(&study.optimizer);
    return sgd != nullptr && sgd->momentum != 0.0 ? width : 0.0;
}

/// Where a simulated step goes, and what lives at its peak.
/// `atPeak`: by size; empty: not known.
PlanTrial trialOf(const Simulation& simulation, const std::vector<LiveValue>& atPeak)
{
    constexpr std::size_t kMostLive = 6;
    PlanTrial trial;
    trial.seconds = simulation.stepSeconds;
    trial.peakBytes = static_cast<double>(simulation.peakBytes);
    trial.reserveBytes = static_cast<double>(simulation.reserveBytes);
    trial.capacityBytes = static_cast<double>(simulation.capacityBytes);
    trial.fits = simulation.fits;
    trial.mfu = simulation.mfu;
    trial.boundBy = simulation.boundBy.text();
    using enum StepPart::Kind;
    std::map<StepPart, double> waited;
    for (const SimulatedCollective& collective : simulation.collectives)
        waited[{Collective, collective.use.kind, collective.use.axes}] += collective.exposedSeconds;
    trial.time = {{"compute", simulation.computeSeconds, {Compute}}};
    double told = simulation.computeSeconds + simulation.launchSeconds + simulation.bubbleSeconds + simulation.stackSeconds;
    for (const auto& [part, seconds] : waited) {
        trial.time.push_back({part.text(), seconds, part});
        told += seconds;
    }
    if (simulation.bubbleSeconds > 0.0)
        trial.time.push_back({"pipeline bubble", simulation.bubbleSeconds, {Bubble}});
    if (simulation.launchSeconds > 0.0)
        trial.time.push_back({"launch", simulation.launchSeconds, {Launch}});
    if (simulation.stackSeconds > 0.0)
        trial.time.push_back({"stack", simulation.stackSeconds});
    if (const double rest = simulation.stepSeconds - told; rest > 0.0)
        trial.time.push_back({"host and sends", rest});
    std::map<MemoryKind, double> kinds;
    for (const LiveValue& value : atPeak)
        kinds[value.kind] += static_cast<double>(value.bytes);
    double held = 0.0;
    for (const auto& [kind, bytes] : kinds) {
        trial.memory.push_back({memoryKindName(kind), bytes});
        held += bytes;
    }
    if (const double rest = trial.peakBytes - held; rest > 0.5)
        trial.memory.push_back({atPeak.empty() ? "alive at the fullest moment" : "gaps between buffers", rest});
    trial.memory.push_back({"reserve", trial.reserveBytes});
    for (std::size_t i = 0; i < std::min(kMostLive, atPeak.size()); ++i)
        trial.live.push_back({atPeak[i].name, static_cast<double>(atPeak[i].bytes)});
    return trial;
}

SearchResult searchMlpStudy(
    const Study& study, const SearchMachine& machine, const Catalogue& catalogue, const SearchOptions& options)
{
    MlpWork work;
    work.name = study.name;
    work.model = *study.mlp();
    work.batch = study.batch;
    work.parameterBytes = static_cast<double>(byteSize(study.parameterType));
    work.stateBytes = stateBytesOf(study);
    work.format = formatOf(study.matmulType);
    return searchMlp(work, machine, options, [&](const FoundPlan& plan) -> std::optional<PlanTrial> {
        const Study own = studyOfPlan(study, plan);
        StepParts parts;
        findMachine(parts, own, catalogue);
        const auto step = hasErrors(parts.problems) ? std::nullopt : predictStep(parts, own, {}, options.stop);
        return step ? std::optional(trialOf(step->simulation, step->liveAtPeak)) : std::nullopt;
    });
}

} // namespace

Study studyOfPlan(Study study, const FoundPlan& plan)
{
    study.mesh = plan.mesh;
    study.deviceOrder.clear();
    study.phases.clear();
    study.pipeline = {};
    study.sharding = {};
    for (const auto& [array, text] : plan.specs)
        study.sharding.entries.push_back({array, valueOf(parseSpec(text)), "sharding." + array});
    return study;
}

SearchWork workOf(const Study& study)
{
    const TransformerModel& model = *study.transformer();
    SearchWork work;
    work.model = model.config;
    if (work.model.name.empty())
        work.model.name = study.name;
    work.sequence = model.sequence;
    work.globalBatch = study.batch;
    work.format = study.fp8 == Fp8Recipe::None ? formatOf(study.matmulType) : MathFormat::Fp8;
    work.recipe = study.fp8;
    return work;
}

Result<SearchMachine> searchMachineOf(const Study& study, const Catalogue& catalogue, const Calibration& calibration)
{
    const auto machine = machineOf(study, catalogue);
    if (!machine)
        return machine.error();
    const std::int64_t devices = machine->deviceCount();
    const std::int64_t slices = std::max<std::int64_t>(1, machine->choice.slices);
    auto found = machineOf(machine->chip, std::max<std::int64_t>(1, devices / (slices * machine->chip.devicesPerChip)), slices,
        calibration, study.stack);
    if (!found)
        return found.error();
    found->name = machine->text();
    found->links = std::make_shared<const Machine>(*machine);
    found->cluster.devices = devices;
    found->cluster.slice = machine->choice.topology;
    if (machine->chip.chipClass == ChipClass::Gpu && machine->choice.perHost > 0)
        found->cluster.fastDomain = machine->choice.perHost;
    return found;
}

namespace {

Problems placedAt(const Study& study, const char* path, Problems problems)
{
    for (Problem& problem : problems) {
        if (problem.place == Place{})
            problem.place = study.placeOf(path);
    }
    return problems;
}

/// The machine for a study that is trained, which it can multiply as the study wants.
Result<SearchMachine> trainingMachineOf(const Study& study, const Catalogue& catalogue, const Calibration& calibration)
{
    auto machine = searchMachineOf(study, catalogue, calibration);
    if (!machine)
        return placedAt(study, "hardware", machine.error());
    if (study.fp8 != Fp8Recipe::None) {
        if (const auto good = checkFormat(machine->chip, workOf(study).format); !good)
            return placedAt(study, "dtype.fp8", good.error());
    }
    return machine;
}

/// A program to be searched, and its machine.
struct ProgramSearchInput {
    ProgramWork work;
    Machine machine;
};

Result<ProgramSearchInput> programInputOf(const Study& study, const Catalogue& catalogue)
{
    Study whole = study;
    whole.pipeline = {};
    auto machine = machineOf(whole, catalogue);
    if (!machine)
        return machine.error();
    auto plain = plainProgramOf(whole);
    if (!plain)
        return plain.error();
    const auto cost = costOptionsOf(machine->chip, plain->unstated, study.stack);
    if (!cost)
        return cost.error();
    ProgramWork work{study.name, std::move(plain->program), plain->mainFunction, *cost};
    if (const auto good = checkSearchable(work, *machine); !good)
        return placedAt(study, "model", good.error());
    return ProgramSearchInput{std::move(work), *std::move(machine)};
}

} // namespace

Problems checkSearch(const Study& study, const Catalogue& catalogue, const Calibration& calibration)
{
    if (!study.trains()) {
        const auto input = programInputOf(study, catalogue);
        return input ? Problems{} : input.error();
    }
    const auto machine = trainingMachineOf(study, catalogue, calibration);
    return machine ? Problems{} : machine.error();
}

Result<SearchResult> searchStudy(const Study& study, const Catalogue& catalogue, const Calibration& calibration,
    const std::vector<FixedChoice>& fixed, const SearchOptions& options)
{
    if (!study.trains())
        return searchProgramOf(study, catalogue, options);
    const auto machine = trainingMachineOf(study, catalogue, calibration);
    if (!machine)
        return machine.error();
    if (study.mlp() != nullptr)
        return searchMlpStudy(study, *machine, catalogue, options);
    return searchTransformer(workOf(study), {*machine}, fixed, options, largerMachines(*machine, catalogue, calibration));
}

Result<SearchResult> searchProgramOf(const Study& study, const Catalogue& catalogue, const SearchOptions& options)
{
    const auto input = programInputOf(study, catalogue);
    if (!input)
        return input.error();
    const auto& [work, machine] = *input;
    auto result = searchProgram(
        work, machine, options, [&work = work, &machine = machine](const FoundPlan& plan) -> std::optional<PlanTrial> {
            const auto step = simulateProgram(*plan.program, work.function, machine, work.cost);
            return step ? std::optional(trialOf(*step, {})) : std::nullopt;
        });
    return result ? std::move(result) : placedAt(study, "model", result.error());
}

std::string studyOfProgram(const Study& study, const FoundPlan& plan, const std::string& file)
{
    Study other;
    other.name = study.name;
    other.hardware = study.hardware;
    other.mesh = plan.mesh;
    other.model = ProgramFile{file, plan.program->functions.front().name};
    return writeStudy(other);
}

namespace {

/// The layers of each piece as the step model cuts them, for studies to say; empty where they are as many everywhere, or none somewhere.
std::vector<std::int64_t> unevenCut(std::int64_t layers, std::int64_t pieces)
{
    std::vector<std::int64_t> counts;
    if (layers % pieces == 0 || layers + 2 < pieces)
        return counts;
    for (std::int64_t piece = 0; piece < pieces; ++piece)
        counts.push_back(layersOfChunk(layers, pieces, piece));
    return counts;
}

Result<Study> transformerStudyOf(
    const FoundPlan& plan, const Recomputation& recomputation, const SearchWork& work, const SearchMachine& machine)
{
    Study study;
    study.name = fmt::format("{} on {}", work.model.name, machine.name);
    meshwright::HardwareChoice hardware;
    hardware.chip = machine.chip.catalogueName();
    if (machine.chip.interconnect.kind == InterconnectKind::Torus) {
        hardware.topology = machine.cluster.slice.empty() ? compactTopology(machine.chips / machine.cluster.slices,
                                std::max<std::int64_t>(1, machine.chip.interconnect.torusRank))
                                                          : machine.cluster.slice;
        if (machine.cluster.slices > 1)
            hardware.slices = machine.cluster.slices;
    } else {
        const std::int64_t perHost = chipsOfHost(machine.chips, fastChips(machine));
        hardware.hosts = machine.chips / perHost;
        hardware.chipsPerHost = perHost;
    }
    study.hardware = hardware;
    study.stack = machine.stack;
    study.mesh = plan.mesh;
    TransformerModel model;
    model.config = work.model;
    model.sequence = work.sequence;
    const StackTraits& traits = machine.traits;
    setRecomputation(model, recomputation, traits);
    model.lossChunks = plan.lossChunks;
    model.lossKernels = traits.lossKernels;
    const auto context = std::ranges::find(plan.mesh, "context", &MeshAxis::name);
    if (context != plan.mesh.end()) {
        model.context = plan.exchangesHeads ? ContextExchange::Ulysses
            : plan.gathersContext           ? ContextExchange::Gather
                                            : ContextExchange::Ring;
        if (!plan.exchangesHeads && work.sequence % (2 * context->size) == 0)
            model.zigzag = context->size;
    }
    if (work.model.experts > 0) {
        const auto sizeOf = [&](const char* name) {
            const auto axis = std::ranges::find(plan.mesh, name, &MeshAxis::name);
            return axis == plan.mesh.end() ? 1 : axis->size;
        };
        model.dispatchGroups = dispatchGroups(sizeOf("context"), sizeOf("tensor"), plan.sequenceParallel);
    }
    study.model = model;
    study.batch = work.globalBatch;
    study.matmulType = work.format == MathFormat::Fp32 ? DType::F32 : work.format == MathFormat::Fp16 ? DType::F16 : DType::BF16;
    if (study.matmulType != DType::F32)
        study.activationType = study.matmulType;
    study.fp8 = work.format == MathFormat::Fp8 && work.recipe == Fp8Recipe::None ? Fp8Recipe::Current : work.recipe;
    AdamOptimizer adam;
    adam.update.masters = work.masters && study.matmulType != DType::F32;
    study.parameterType = adam.update.masters ? study.matmulType : DType::F32;
    if (adam.update.masters && sumsGradientsIn16Bits(traits, study.matmulType == DType::BF16))
        study.gradientType = study.matmulType;
    study.optimizer = adam;
    for (const auto& [array, text] : plan.specs) {
        auto spec = parseSpec(text);
        if (!spec)
            return spec.error();
        if (traits.parallelLogits || array != "act.logits")
            study.sharding.entries.push_back({array, *std::move(spec), "sharding." + array});
    }
    giveSpecsOfMoments(study.sharding, study.optimizer);
    if (const auto tokens = std::ranges::find(plan.specs, "x", &std::pair<std::string, std::string>::first);
        !traits.parallelLogits && tokens != plan.specs.end())
        study.sharding.entries.push_back({"act.logits", *parseSpec(tokens->second), "sharding.act.logits"});
    study.sharding.match.push_back({});
    if (plan.pipeline.stages > 1 || plan.pipeline.microbatches > 1.0) {
        study.pipeline.axis = plan.pipeline.stages > 1 ? "pipeline" : "";
        study.pipeline.stages = plan.pipeline.stages;
        study.pipeline.microbatches = static_cast<std::int64_t>(plan.pipeline.microbatches);
        study.pipeline.chunks = plan.pipeline.chunks;
        study.pipeline.layers = unevenCut(work.model.layers, plan.pipeline.stages * plan.pipeline.chunks);
        study.pipeline.schedule = scheduleNamed(plan.pipeline.schedule).value_or(PipelineOrder::OneForwardOneBackward);
    }
    return study;
}

} // namespace

Result<std::string> studyText(const FoundPlan& plan, const SearchWork& work, const SearchMachine& machine)
{
    return studyText(plan, recomputationOf(plan.recompute).value_or(Recomputation{}), work, machine);
}

Result<std::string> studyText(
    const FoundPlan& plan, const Recomputation& recomputation, const SearchWork& work, const SearchMachine& machine)
{
    const auto study = transformerStudyOf(plan, recomputation, work, machine);
    return study ? Result<std::string>(writeStudy(*study)) : study.error();
}

Result<std::string> planText(
    const Study& study, const FoundPlan& plan, const Catalogue& catalogue, const Calibration& calibration)
{
    if (study.mlp() != nullptr)
        return writeStudy(studyOfPlan(study, plan));
    const auto machine = searchMachineOf(study, catalogue, calibration);
    if (!machine)
        return machine.error();
    auto planned = transformerStudyOf(plan, recomputationOf(plan.recompute).value_or(Recomputation{}), workOf(study), *machine);
    if (!planned)
        return planned.error();
    const bool hasMasters = std::get<AdamOptimizer>(planned->optimizer).update.masters;
    planned->name = study.name;
    planned->optimizer = study.optimizer;
    if (auto* adam = std::get_if<AdamOptimizer>(&planned->optimizer))
        adam->update.masters = hasMasters;
    giveSpecsOfMoments(planned->sharding, planned->optimizer);
    planned->dropout = study.dropout;
    planned->train = study.train;
    planned->network = study.network;
    return writeStudy(*planned);
}

namespace {

/// How a transformer's study lies: the axes by what they split, in the search's words, and the specs of all that comes in and goes out.
struct NamedLayout {
    std::vector<MeshAxis> mesh; ///< axes of one device left out
    std::map<std::string, PartitionSpec>
        specs; ///< of parameters, their states and gradients, x and y; data ranks only of x and y
    /// Of weights, their states and gradients: over which data ranks each is split, along whatever dimension. No framework asks which, nor of small arrays.
    std::map<std::string, std::set<std::string>> shards;
    std::vector<std::string> sequence; ///< over which the blocks' results have parts of each sequence
};

/// What each axis splits; Fsdp: weights as well as the batch.
struct AxisRoles {
    std::map<std::string, AxisRole> of; ///< empty where an axis splits nothing, or two the same
    std::string whyNone = {}; ///< which axis that is
};

AxisRoles rolesOfAxes(const Study& study, const StudyArrays& arrays)
{
    std::set<std::string> ofBatch;
    std::set<std::string> ofSequence;
    std::set<std::string> ofWeights;
    std::set<std::string> ofExperts;
    for (const AssignedSpec& assigned : arrays.assigned) {
        const std::vector<std::vector<std::string>>& dims = assigned.spec.dims;
        for (std::size_t dim = 0; dim < dims.size(); ++dim) {
            const bool isExperts = assigned.array.meaning.size() > dim && assigned.array.meaning[dim].role == DimRole::Experts;
            std::set<std::string>* to = assigned.array.name == "x"   ? (dim == 0 ? &ofBatch : &ofSequence)
                : assigned.array.kind != StudyArray::Kind::Parameter ? nullptr
                : isExperts                                          ? &ofExperts
                                                                     : &ofWeights;
            if (to != nullptr)
                to->insert(dims[dim].begin(), dims[dim].end());
        }
    }
    std::map<std::string, AxisRole> roles;
    std::set<AxisRole> taken;
    for (const MeshAxis& axis : study.mesh) {
        using enum AxisRole;
        if (axis.size == 1)
            continue;
        const bool splitsWeights = ofWeights.contains(axis.name);
        AxisRole role = Tensor;
        if (study.pipeline.stages > 1 && axis.name == study.pipeline.axis)
            role = Pipeline;
        else if (ofBatch.contains(axis.name))
            role = ofExperts.contains(axis.name) ? Expert : splitsWeights ? Fsdp : Data;
        else if (ofSequence.contains(axis.name))
            role = Context;
        else if (!splitsWeights)
            return {{}, fmt::format("axis \"{}\" splits neither the batch, the sequence nor weights", axis.name)};
        if (!taken.insert(role).second)
            return {{}, fmt::format("axis \"{}\" is a second axis of the kind \"{}\"", axis.name, axisRoleName(role))};
        roles[axis.name] = role;
    }
    return {roles};
}

NamedLayout namedLayout(const Study& study, const StudyArrays& arrays, const std::map<std::string, AxisRole>& roles)
{
    NamedLayout layout;
    for (const MeshAxis& axis : study.mesh) {
        if (const auto role = roles.find(axis.name); role != roles.end())
            layout.mesh.push_back({axisRoleName(role->second), axis.size});
    }
    const auto renamed = [&](PartitionSpec spec) {
        for (std::vector<std::string>& dim : spec.dims) {
            std::vector<std::string> axes;
            for (const std::string& axis : dim) {
                if (const auto role = roles.find(axis); role != roles.end())
                    axes.emplace_back(axisRoleName(role->second));
            }
            dim = std::move(axes);
        }
        return spec.canonical();
    };
    const auto specOf = [&](const std::string& name) {
        const AssignedSpec* assigned = arrays.assignedTo(name);
        return assigned != nullptr ? std::optional(renamed(assigned->spec)) : std::nullopt;
    };
    for (const StudyArray& array : arrays.all) {
        if (array.kind == StudyArray::Kind::Activation)
            continue;
        std::optional<PartitionSpec> spec = specOf(array.name);
        // States and gradients lie as their parameters where nothing else is said.
        if (!spec)
            spec = specOf(arrayNameOf(array.name).base);
        const bool isInput = array.kind == StudyArray::Kind::Input;
        const bool isSmall
            = !array.name.ends_with(".w") || array.name.ends_with("router.w") || array.name.ends_with("positions.w");
        std::vector<std::vector<std::string>> none;
        for (std::vector<std::string>& dim : spec ? spec->dims : none) {
            std::erase_if(dim, [&](const std::string& axis) {
                const bool isShard = !isInput && (axis == axisRoleName(AxisRole::Data) || axis == axisRoleName(AxisRole::Fsdp));
                if (isShard && !isSmall)
                    layout.shards[array.name].insert(axis);
                return isShard;
            });
        }
        layout.specs[array.name] = spec.value_or(PartitionSpec{}).canonical();
    }
    std::optional<PartitionSpec> between = specOf("act.layers");
    if (!between)
        between = specOf("x");
    if (between && between->dims.size() > 1)
        layout.sequence = between->dims[1];
    return layout;
}

/// Whether a layer's values are kept alike: frameworks have one word for layers made again from their input, and one for those whose values are all kept.
bool isKeptAlike(const TransformerModel& a, const TransformerModel& b)
{
    const auto common = [](Recompute recompute) {
        return recompute == Recompute::Layer ? Recompute::Full : recompute == Recompute::Nothing ? Recompute::None : recompute;
    };
    const auto isSame = [](std::vector<std::string> one, std::vector<std::string> other) {
        std::ranges::sort(one);
        std::ranges::sort(other);
        return one == other;
    };
    return common(a.recompute) == common(b.recompute) && isSame(a.kept, b.kept) && isSame(a.offloaded, b.offloaded);
}

/// The name of a model's recomputation in `recomputationNames`; of values by name that is none of them "custom", else the study's word.
std::string policyOf(const TransformerModel& model)
{
    StackTraits plain;
    plain.recomputesLayers = false;
    plain.fusedNorms = true;
    for (const char* name : recomputationNames()) {
        TransformerModel other = model;
        other.kept.clear();
        other.offloaded.clear();
        setRecomputation(other, *recomputationOf(name), plain);
        if (isKeptAlike(model, other))
            return name;
    }
    return model.recompute == Recompute::Named ? std::string("custom") : recomputeText(model);
}

/// What of a study is not as a plan's study has it, in words; empty: they are trained alike. What a plan says besides its layout does not count:
/// recomputation and chunks of the loss, and the kernels, which are the stack's.
std::vector<std::string> otherwiseTrained(const Study& study, const Study& planned)
{
    std::vector<std::string> parts;
    const auto add = [&](bool differs, std::string words) {
        if (differs)
            parts.push_back(std::move(words));
    };
    const TransformerModel& own = *study.transformer();
    const TransformerModel& model = *planned.transformer();
    const PipelineChoice& pipeline = study.pipeline;
    add(study.deviceOrder != planned.deviceOrder, "mesh.device_order");
    add(study.phases != planned.phases, "phases");
    add(pipeline.schedule != planned.pipeline.schedule && pipeline.stages > 1,
        fmt::format("pipeline.schedule {}", scheduleName(pipeline.schedule)));
    add(pipeline.layers != planned.pipeline.layers && layersOfPieces(pipeline, own.config.layers) != planned.pipeline.layers,
        fmt::format("pipeline.layers [{}]", fmt::join(pipeline.layers, ", ")));
    add(own.predict != model.predict, fmt::format("predict: {}", wordOf(predictionWords(), own.predict)));
    add(own.lookup != model.lookup, fmt::format("lookup: {}", wordOf(lookupWords(), own.lookup)));
    add(own.attention != model.attention, fmt::format("attention: {}", wordOf(attentionWords(), own.attention)));
    add(own.context != model.context || own.zigzag != model.zigzag,
        fmt::format("attention: {{context: {}, zigzag: {}}}", wordOf(contextWords(), own.context), own.zigzag));
    add(own.unrolled != model.unrolled || own.cuts != model.cuts, "unroll");
    add(own.capacityFactor != model.capacityFactor, fmt::format("capacity_factor: {}", own.capacityFactor));
    add(own.dispatchGroups != model.dispatchGroups, fmt::format("dispatch_groups: {}", own.dispatchGroups));
    // Whatever else there may be.
    TransformerModel rest = model;
    rest.config.name = own.config.name;
    rest.lossKernels = own.lossKernels;
    rest.recompute = own.recompute;
    rest.kept = own.kept;
    rest.offloaded = own.offloaded;
    rest.lossChunks = own.lossChunks;
    add(parts.empty() && (rest != own || study.matmulType != planned.matmulType || study.fp8 != planned.fp8), "model or dtype");
    return parts;
}

/// What of a layout is not as a plan's, in words.
std::vector<std::string> otherwiseSplit(const NamedLayout& layout, const NamedLayout& planned)
{
    constexpr std::size_t kMostNames = 3;
    std::vector<std::string> parts;
    std::vector<std::string> arrays;
    for (const auto& [array, spec] : layout.specs) {
        const auto other = planned.specs.find(array);
        const auto shardsOf = [&array = array](const NamedLayout& one) {
            const auto found = one.shards.find(array);
            return found == one.shards.end() ? std::set<std::string>{} : found->second;
        };
        if (other == planned.specs.end() || !(other->second == spec) || shardsOf(layout) != shardsOf(planned))
            arrays.push_back(array);
    }
    if (arrays.size() > kMostNames) {
        const std::size_t more = arrays.size() - kMostNames;
        arrays.resize(kMostNames);
        parts.push_back(fmt::format("the sharding of {} and {} more", join(arrays, ", "), more));
    } else if (!arrays.empty()) {
        parts.push_back("the sharding of " + join(arrays, ", "));
    }
    if (layout.sequence != planned.sequence)
        parts.push_back(layout.sequence.empty()
                ? std::string("blocks whose results have whole sequences")
                : fmt::format("blocks whose results have parts of sequences over {}", join(layout.sequence, ", ")));
    return parts;
}

} // namespace

Result<FoundPlan> planOf(const Study& study, const Catalogue& catalogue, const Calibration& calibration)
{
    constexpr const char* kFix = "take a plan of `meshwright search` (in the window: Search)";
    if (study.transformer() == nullptr)
        return Problem{"MW1758", "frameworks have options for the layouts of transformers only", kFix};
    const auto machine = searchMachineOf(study, catalogue, calibration);
    if (!machine)
        return machine.error();
    std::vector<std::string> axes;
    for (const MeshAxis& axis : study.mesh)
        axes.push_back(fmt::format("{}={}", axis.name, axis.size));
    const auto none = [&](const std::string& part) {
        return Problem{"MW1758", fmt::format("no framework has options for {} of the mesh {}", part, join(axes, ",")), kFix};
    };
    const StudyArrays arrays = arraysOf(study);
    const AxisRoles roles = rolesOfAxes(study, arrays);
    const NamedLayout layout = namedLayout(study, arrays, roles.of);
    if (!roles.whyNone.empty())
        return none("this: " + roles.whyNone);

    // What is recomputed is said by itself, with whatever policy the space begins.
    std::vector<FixedChoice> fixed = {{"chunks", std::to_string(study.pipeline.chunks)}, {"recompute", "full"}};
    if (study.pipeline.stages > 1)
        fixed.push_back({"schedule", scheduleName(study.pipeline.schedule)});
    for (const AxisRole role : kAxisRoles) {
        const auto axis = std::ranges::find(layout.mesh, axisRoleName(role), &MeshAxis::name);
        fixed.push_back({axisRoleName(role), std::to_string(axis == layout.mesh.end() ? 1 : axis->size)});
    }
    const SearchWork work = workOf(study);
    const TransformerSpace space(work, *machine, fixed, 1, {});
    std::optional<std::vector<std::string>> fewest; // parts that are not as in the plan that comes nearest
    for (const Candidate& candidate : space.candidates()) {
        FoundPlan plan = layoutOf(space, candidate);
        plan.gathersContext = !plan.exchangesHeads && study.transformer()->context == ContextExchange::Gather;
        if (plan.pipeline.microbatches != static_cast<double>(stepPipeline(study).microbatches))
            continue;
        auto planned = transformerStudyOf(plan, recomputationOf(plan.recompute).value_or(Recomputation{}), work, *machine);
        if (!planned)
            continue;
        std::vector<std::string> parts = otherwiseTrained(study, *planned);
        planned->optimizer = study.optimizer;
        giveSpecsOfMoments(planned->sharding, planned->optimizer);
        const StudyArrays own = arraysOf(*planned);
        const std::vector<std::string> split = otherwiseSplit(layout, namedLayout(*planned, own, rolesOfAxes(*planned, own).of));
        parts.insert(parts.end(), split.begin(), split.end());
        if (parts.empty()) {
            plan.recompute = policyOf(*study.transformer());
            plan.lossChunks = study.transformer()->lossChunks;
            return plan;
        }
        if (!fewest || parts.size() < fewest->size())
            fewest = std::move(parts);
    }
    if (fewest)
        return none(join(*fewest, "; "));
    if (space.candidates().empty()) {
        std::vector<std::string> degrees;
        for (const MeshAxis& axis : layout.mesh)
            degrees.push_back(fmt::format("{} {}", axis.name, axis.size));
        return none(fmt::format("degrees of {}{}: they must divide heads, widths, experts, layers and the batch",
            degrees.empty() ? std::string("1") : join(degrees, ", "),
            study.pipeline.stages > 1 ? fmt::format(
                ", schedule {} with {} chunks a stage", scheduleName(study.pipeline.schedule), study.pipeline.chunks)
                                      : std::string()));
    }
    return none(fmt::format("{} microbatches of a batch of {}", stepPipeline(study).microbatches, study.batch));
}

Result<SimulatedStudy> simulatedPlan(const FoundPlan& plan, const SearchWork& work, const SearchMachine& machine,
    const std::string& stack, const Catalogue& catalogue, const std::stop_token& stop, const std::string& fidelity)
{
    const auto text = studyText(plan, work, machine);
    return text ? simulatedText(*text, machine, stack, catalogue, stop, fidelity) : text.error();
}

Result<SimulatedStudy> simulatedText(const std::string& text, const SearchMachine& machine, const std::string& stack,
    const Catalogue& catalogue, const std::stop_token& stop, const std::string& fidelity)
{
    auto study = readStudy(text, "plan.yaml");
    if (!study)
        return study.error();
    study->stack = stack;
    study->network.fidelity = fidelity;
    StepParts parts;
    findMachine(parts, *study, catalogue);
    if (parts.machine) {
        auto stated = std::make_shared<Machine>(*parts.machine);
        stated->chip.peakFlopsPerSecond = machine.chip.peakFlopsPerSecond;
        stated->chip.unsupported = machine.chip.unsupported;
        if (const PhysicalAxis* network = stated->topology.network();
            network != nullptr && machine.cluster.networkBytesPerSecond) {
            PhysicalAxis axis = *network;
            axis.link.bytesPerSecond = *machine.cluster.networkBytesPerSecond;
            stated->topology = stated->topology.withNetwork(axis);
        }
        parts.machine = std::move(stated);
    }
    std::optional<SimulatedStudy> simulated;
    if (!hasErrors(parts.problems))
        simulated = predictFigures(parts, *study, {.traits = &machine.traits, .constants = &machine.constants}, stop);
    if (simulated)
        return *std::move(simulated);
    std::erase_if(parts.problems, [](const Problem& problem) { return problem.severity != Severity::Error; });
    if (parts.problems.empty())
        return stoppedProblem();
    return parts.problems;
}

PlanSimulator planSimulator(const SearchWork& work, const Catalogue& catalogue, const std::stop_token& stop)
{
    return [&work, &catalogue, stop](
               const FoundPlan& plan, const SearchMachine& machine, std::string& whyNot) -> std::optional<PlanTrial> {
        const auto simulated = simulatedPlan(plan, work, machine, machine.stack, catalogue, stop);
        if (simulated)
            return trialOf(simulated->simulation, simulated->liveAtPeak);
        whyNot = simulated.error().front().message;
        return std::nullopt;
    };
}

namespace {

/// A step of so many microbatches, for floors: collectives need not share links.
std::optional<Simulation> stepOf(FoundPlan layout, std::int64_t microbatches, SearchWork work, const SearchMachine& machine,
    const Catalogue& catalogue, const std::stop_token& stop)
{
    work.globalBatch = microbatches * static_cast<std::int64_t>(layout.microbatch);
    for (const MeshAxis& axis : layout.mesh)
        work.globalBatch *= axis.name == "data" || axis.name == "fsdp" || axis.name == "expert" ? axis.size : 1;
    layout.pipeline.microbatches = static_cast<double>(microbatches);
    auto simulated = simulatedPlan(layout, work, machine, machine.stack, catalogue, stop, "closed");
    return simulated ? std::optional(std::move(simulated->simulation)) : std::nullopt;
}

} // namespace

FloorSimulator floorSimulator(const SearchWork& work, const Catalogue& catalogue, const std::stop_token& stop)
{
    return [&work, &catalogue, stop](const FoundPlan& layout, const SearchMachine& machine) -> std::optional<ComputeFloor> {
        const auto step = [&](std::int64_t microbatches) { return stepOf(layout, microbatches, work, machine, catalogue, stop); };
        const bool isPiped = layout.pipeline.stages > 1;
        const std::int64_t few = !isPiped ? 2 : layout.pipeline.chunks > 1 ? layout.pipeline.stages : 1;
        const auto first = step(few);
        if (!first)
            return std::nullopt;
        ComputeFloor floor{(first->computeSeconds - first->updateSeconds) / static_cast<double>(few), first->updateSeconds,
            first->fits, static_cast<std::int64_t>(first->stage)};
        if (isPiped)
            return floor;
        const auto second = step(few + 1);
        if (!second)
            return std::nullopt;
        floor.microbatchSeconds = second->computeSeconds - first->computeSeconds; // without what is done once a step
        return floor;
    };
}

PassSimulator passSimulator(const SearchWork& work, const Catalogue& catalogue, const std::stop_token& stop)
{
    return [&work, &catalogue, stop](const FoundPlan& layout, const SearchMachine& machine) -> std::optional<PassTime> {
        const auto two = stepOf(layout, 2, work, machine, catalogue, stop);
        const auto three = two ? stepOf(layout, 3, work, machine, catalogue, stop) : std::nullopt;
        if (!three)
            return std::nullopt;
        return PassTime{three->computeSeconds - two->computeSeconds, std::max(0.0, three->exposedSeconds - two->exposedSeconds)};
    };
}

LayerTimer layerTimer(const Catalogue& catalogue, const std::stop_token& stop)
{
    return [&catalogue, stop](const SearchWork& work, const SearchMachine& machine) -> std::optional<double> {
        constexpr std::int64_t kFewWords = 1024; // the layers are asked for
        FoundPlan plan;
        plan.mesh = {{"data", machine.chip.devicesPerChip}}; // which all do the same
        plan.recompute = "none";
        SearchMachine one = machine;
        one.chips = one.cluster.slices = 1;
        one.cluster.devices = machine.chip.devicesPerChip;
        one.cluster.slice.clear();
        double seconds = 0.0;
        for (const TransformerConfig& group : layerGroups(work.model)) {
            SearchWork own = work;
            own.model = group;
            own.model.vocabulary = std::min(kFewWords, group.vocabulary);
            for (const bool isTwice : {true, false}) { // what others take: not the update
                own.globalBatch = isTwice ? 2 * kManySequences : kManySequences;
                const auto simulated = simulatedPlan(plan, own, one, machine.stack, catalogue, stop);
                if (!simulated)
                    return std::nullopt;
                seconds += (isTwice ? 1.0 : -1.0) * (simulated->simulation.computeSeconds + simulated->simulation.launchSeconds);
            }
        }
        return seconds / static_cast<double>(kManySequences);
    };
}

} // namespace meshwright::sim
