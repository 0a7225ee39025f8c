// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/closed_form.h"

#include "core/study/arrays.h"
#include "core/support/text.h"
#include "sim/search/plan_reasons.h"
#include "sim/session/engine.h"
#include "sim/session/search_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace meshwright::sim {

namespace {

using Axes = std::set<std::string>;

Recomputation againOf(const TransformerModel& model)
{
    switch (model.recompute) {
    case Recompute::None:
        return {};
    case Recompute::Selective:
        return *recomputationOf("selective");
    case Recompute::Full:
        return *recomputationOf("full");
    case Recompute::Dots: // fused attention is none of them
        return *recomputationOf(model.attention == AttentionOp::Fused ? "minimal" : "minimal_with_context");
    case Recompute::DotsAndAttention:
        return *recomputationOf("minimal_with_context");
    case Recompute::DotsWithoutBatch:
        return *recomputationOf("minimal");
    case Recompute::Named:
        break;
    }
    const auto again
        = [&](const char* name) { return std::find(model.kept.begin(), model.kept.end(), name) == model.kept.end() ? 1.0 : 0.0; };
    Recomputation named = *recomputationOf("full");
    named.qkv = (again("attention.q") + again("attention.k") + again("attention.v")) / 3.0;
    named.attention = again("attention.mixed");
    named.attentionOut = again("attention");
    named.ffnOut = again("ffn");
    named.layerInputOnly = model.kept.empty();
    return named;
}

/// What a study's specs do with the axes of its mesh.
struct AxisRoles {
    Axes batch;
    Axes context;
    Axes tensor;
    Axes shards; ///< of weights
    Axes experts;
    Axes states; ///< of the optimizer, beyond the weights'
    Axes gradients; ///< likewise
};

void addDim(const PartitionSpec& spec, std::size_t dim, Axes& axes)
{
    if (dim < spec.dims.size())
        axes.insert(spec.dims[dim].begin(), spec.dims[dim].end());
}

Axes allAxes(const PartitionSpec& spec)
{
    Axes axes;
    for (std::size_t dim = 0; dim < spec.dims.size(); ++dim)
        addDim(spec, dim, axes);
    return axes;
}

AxisRoles rolesOf(const Study& study)
{
    std::map<std::string, PartitionSpec> specs;
    for (AssignedSpec& assigned : assignedSpecs(study))
        specs.emplace(assigned.array.name, std::move(assigned.spec));
    const bool unrolled = study.transformer()->unrolled;
    const std::string layer = unrolled ? "layers.0." : "layers.";
    const std::size_t stacked = unrolled ? 0 : 1;
    AxisRoles roles;
    addDim(specs["x"], 0, roles.batch);
    addDim(specs["x"], 1, roles.context);
    const std::string queries = layer + "attention.q.w";
    const PartitionSpec& weight = specs[queries];
    addDim(weight, stacked + 1, roles.tensor);
    roles.shards = allAxes(weight);
    const PartitionSpec& expert = specs[layer + "experts.up.w"];
    addDim(expert, stacked, roles.experts);
    const Axes ofWeight = roles.shards;
    const auto beyond = [&](const std::string& name, Axes& axes) {
        if (!specs.contains(name))
            return;
        for (const std::string& axis : allAxes(specs[name])) {
            if (!ofWeight.contains(axis))
                axes.insert(axis);
        }
    };
    beyond("opt.m." + queries, roles.states);
    beyond("grad." + queries, roles.gradients);
    for (const std::string& axis : roles.tensor)
        roles.shards.erase(axis);
    roles.shards.erase(study.pipeline.axis);
    return roles;
}

MemoryKind kindOfShare(const std::string& name)
{
    static const std::map<std::string, MemoryKind> kKinds
        = {{"weights", MemoryKind::Parameter}, {"gradients", MemoryKind::Gradient}, {"optimizer", MemoryKind::OptimizerState},
            {"activations", MemoryKind::Activation}, {"logits", MemoryKind::Activation},
            {"gathered weights", MemoryKind::Collective}, {"collective buffers", MemoryKind::Collective}};
    const auto found = kKinds.find(name);
    return found == kKinds.end() ? MemoryKind::Temporary : found->second;
}

} // namespace

Result<TrainingPlan> planOf(const Study& study)
{
    const TransformerModel& model = *study.transformer();
    const AxisRoles roles = rolesOf(study);
    Problems problems;
    TrainingPlan plan;
    const SearchWork work = workOf(study);
    plan.model = work.model;
    plan.details.windowLayers = work.model.slidingWindowLayers;
    plan.details.queryRank = work.model.queryRank;
    plan.details.keyValueRank = work.model.keyValueRank;
    plan.details.ropeHeadDim = work.model.latentRotaryDim;
    plan.details.valueHeadDim = work.model.valueHeadDim;
    ParallelLayout& layout = plan.layout;
    layout.pp = study.pipeline.stages;
    for (const MeshAxis& axis : study.mesh) {
        const bool pipes = study.pipeline.stages > 1 && axis.name == study.pipeline.axis;
        if (pipes && axis.size != study.pipeline.stages)
            problems.push_back(
                {"MW1755", fmt::format("{} pipeline stages on axis {} of {}", study.pipeline.stages, axis.name, axis.size),
                    fmt::format("write stages: {}", axis.size), study.placeOf("pipeline.stages")});
        if (pipes || axis.size == 1)
            continue;
        if (roles.tensor.contains(axis.name))
            layout.tp *= axis.size;
        else if (roles.context.contains(axis.name))
            layout.cp *= axis.size;
        else if (roles.batch.contains(axis.name))
            layout.dp *= axis.size;
        else
            problems.push_back({"MW1755",
                fmt::format("axis {} splits neither the batch, the tokens nor the heads, and is not the pipeline's", axis.name),
                "let a spec use it, or make it the pipeline's axis", study.placeOf("mesh." + axis.name)});
        if (roles.experts.contains(axis.name))
            layout.ep *= axis.size;
        if (roles.shards.contains(axis.name))
            layout.shardDegree = std::max<std::int64_t>(1, layout.shardDegree) * axis.size;
    }
    layout.zeroStage = layout.shardDegree > 1 ? 3 : !roles.gradients.empty() ? 2 : !roles.states.empty() ? 1 : 0;
    layout.schedule = study.pipeline.schedule;
    layout.sequenceParallel = layout.tp > 1;
    if (layout.pp == 1)
        layout.schedule = PipelineOrder::OneForwardOneBackward;
    else if (layout.schedule == PipelineOrder::Interleaved)
        layout.virtualStages = study.pipeline.chunks;
    if (study.batch % (layout.dp * study.pipeline.microbatches) != 0)
        problems.push_back({"MW1755",
            fmt::format("{} sequences are not divisible by {} data ranks of {} microbatches", study.batch, layout.dp,
                study.pipeline.microbatches),
            fmt::format("use a batch that is a multiple of {}", layout.dp * study.pipeline.microbatches),
            study.placeOf("pipeline.microbatches")});
    if (!problems.empty())
        return problems;
    plan.work.sequence = work.sequence;
    plan.work.globalBatch = work.globalBatch;
    plan.work.format = work.format;
    plan.work.activationFormat = bytesPerElement(work.format) >= 2.0 ? work.format : MathFormat::Bf16;
    plan.work.recipe = work.recipe;
    plan.work.microbatch = static_cast<double>(study.batch / (layout.dp * study.pipeline.microbatches));
    plan.work.recompute = againOf(model);
    return plan;
}

Result<SimulatedStudy> closedFormStep(const Study& study, const Catalogue& catalogue)
{
    const Result<Calibration>& calibration = defaultCalibration();
    if (!calibration)
        return calibration.error();
    const auto machine = searchMachineOf(study, catalogue, *calibration);
    if (!machine)
        return machine.error();
    auto plan = planOf(study);
    if (!plan)
        return plan.error();
    auto mesh = meshOf(study);
    if (!mesh)
        return mesh.error();
    SearchMachine used = *machine;
    used.cluster.devices = mesh->deviceCount();
    if (used.cluster.devices != machine->cluster.devices)
        used.cluster.slice.clear();
    if (const auto good = checkFormat(used.chip, plan->work.format); !good) {
        Problems problems = good.error();
        for (Problem& problem : problems)
            problem.place = study.placeOf("dtype.fp8");
        return problems;
    }
    plan->work.attention = used.traits.attention;
    if (const auto good = checkPlan(*plan); !good) {
        Problems problems = good.error();
        for (Problem& problem : problems)
            problem.place = study.placeOf("mesh");
        return problems;
    }
    StepModel model(used.chip, used.cluster, used.constants, used.traits);
    const StepEstimate step = model.estimate(*plan);

    SimulatedStudy result;
    result.name = study.name;
    result.file = study.places.file;
    result.mesh = *std::move(mesh);
    result.collectiveCost = "closed form";
    Simulation& s = result.simulation;
    s.cost.constants = used.constants;
    s.stepSeconds = s.callSeconds = step.seconds;
    s.computeSeconds = step.products + step.attention + step.elementwise + step.launch + step.optimizer + step.overhead;
    s.productSeconds = step.products;
    s.exposedSeconds = step.exposedCommunication();
    s.collectiveSeconds = s.exposedSeconds + step.dataHidden;
    s.bubbleSeconds = step.bubble;
    s.modelFlops = step.flops;
    s.productFlopsPerDevice = step.flops / static_cast<double>(used.cluster.devices);
    s.mfu = step.mfu;
    s.peakFlopsPerSecond = model.curve().peak(plan->work.format);
    s.peakHow = fmt::format("{} peak", mathFormatName(plan->work.format));
    s.peakBytes = static_cast<std::int64_t>(std::llround(step.memory.total() - step.memory.reserve));
    s.capacityBytes = static_cast<std::int64_t>(std::llround(step.capacityBytes));
    s.reserveBytes = static_cast<std::int64_t>(std::llround(step.memory.reserve));
    s.fits = step.fits;
    Candidate layout;
    layout.pp = static_cast<std::int32_t>(plan->layout.pp);
    layout.dp = static_cast<std::int32_t>(plan->layout.dp);
    layout.cp = static_cast<std::int32_t>(plan->layout.cp);
    layout.tp = static_cast<std::int32_t>(plan->layout.tp);
    layout.zero = static_cast<std::uint8_t>(plan->layout.zeroStage);
    layout.fsdp = static_cast<std::int32_t>(plan->shardGroup() / plan->layout.cp);
    layout.sequenceParallel = plan->layout.sequenceParallel;
    s.boundBy = largestShare(timeShares(step, layout));
    s.machine = machine->name;
    s.assumptions = {"the step is estimated by the closed-form model of transformers: stages, microbatches and their schedule "
                     "are simulated, collectives are formulas, and there is no timeline",
        fmt::format("{:.0f} microbatches of {:.0f} sequences, {} stages of {} chunks, ZeRO stage {}", plan->microbatches(),
            plan->work.microbatch, plan->layout.pp, plan->layout.virtualStages, plan->layout.zeroStage)};
    s.assumptions.push_back(stackAssumption(study, used.chip));
    if (study.faults != FaultsChoice{} || study.network != NetworkChoice{})
        s.assumptions.push_back("the closed form ignores faults and the study's network choices: every link and device works");
    MemoryPoint peak;
    peak.bytesByKind.assign(static_cast<std::size_t>(MemoryKind::Temporary) + 1, 0);
    peak.total = s.peakBytes;
    for (const NamedShare& share : memoryShares(step.memory)) {
        const auto bytes = static_cast<std::int64_t>(std::llround(share.amount));
        if (bytes <= 0 || share.name == "reserve")
            continue;
        result.liveAtPeak.push_back({share.name, kindOfShare(share.name), bytes});
        peak.bytesByKind[static_cast<std::size_t>(kindOfShare(share.name))] += bytes;
    }
    s.memory = {peak, peak}; // the peak, all through the step
    s.memory.back().seconds = s.stepSeconds;
    std::stable_sort(result.liveAtPeak.begin(), result.liveAtPeak.end(),
        [](const LiveValue& a, const LiveValue& b) { return a.bytes > b.bytes; });
    return result;
}

} // namespace meshwright::sim
