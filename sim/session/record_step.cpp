// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/record_step.h"

#include "sim/search/transformer_search.h"
#include "sim/session/search_study.h"

#include <cmath>

namespace meshwright::sim {

namespace {

/// The search's candidate with a record's layout.
/// Problems (messages alone, without ids): the search has no such candidate.
Result<Candidate> candidateOf(const TrainingPlan& plan, const StackTraits& traits)
{
    const ParallelLayout& layout = plan.layout;
    const auto small = [](std::int64_t degree) { return static_cast<std::int32_t>(std::min<std::int64_t>(degree, 1 << 30)); };
    const double microbatch = plan.work.microbatch;
    if (microbatch < 1.0 || microbatch != std::floor(microbatch)
        || plan.work.globalBatch % (layout.dp * static_cast<std::int64_t>(microbatch)) != 0)
        return Problem{"", "its microbatches are not whole sequences"};
    if (layout.cp > 1 && layout.ep > 1 && layout.dp % layout.ep != 0)
        return Problem{"", "its experts lie over context ranks"};
    Candidate c;
    c.pp = small(layout.pp);
    c.dp = small(layout.dp);
    c.ep = small(layout.ep);
    c.cp = small(layout.cp);
    c.tp = small(layout.tp);
    c.chunks = small(layout.virtualStages);
    c.microbatch = small(static_cast<std::int64_t>(microbatch));
    // Sums of gradients that a stack reduces once a step lie whole until then.
    const bool sumsAreWhole = layout.zeroStage == 2 && traits.gradientsOncePerStep && plan.microbatches() > 1.0;
    c.zero = static_cast<std::uint8_t>(sumsAreWhole ? 1 : layout.zeroStage);
    if (layout.zeroStage >= 3) {
        if (plan.shardGroup() % layout.cp != 0 || layout.dp % (plan.shardGroup() / layout.cp) != 0)
            return Problem{"", "its weights are split over parts of the context ranks"};
        c.fsdp = small(plan.shardGroup() / layout.cp);
    }
    if (c.dp % c.ep != 0 || (c.zero >= 3 && c.fsdp % c.ep != 0))
        return Problem{"", "its experts lie over more than the data ranks"};
    c.schedule = layout.schedule;
    c.sequenceParallel = layout.sequenceParallel;
    c.ulysses = layout.ulysses;
    return c;
}

TransformerConfig configOf(const TrainingPlan& plan)
{
    TransformerConfig config = plan.model;
    const ModelDetails& details = plan.details;
    config.slidingWindowLayers = details.windowLayers;
    config.queryRank = details.queryRank;
    config.keyValueRank = details.keyValueRank;
    config.latentRotaryDim = details.ropeHeadDim;
    config.valueHeadDim = details.valueHeadDim;
    config.parallelBlock = details.parallelBlock;
    return config;
}

} // namespace

StepSimulator stepSimulator(const Catalogue& catalogue, const Calibration& calibration)
{
    return [&catalogue, &calibration](
               const StepCase& stepCase, const TrainingPlan& plan, std::string& whyNot) -> std::optional<ProgramStep> {
        const auto refused = [&](std::string why) {
            whyNot = std::move(why);
            return std::nullopt;
        };
        if (plan.details.sharedFfn > 0 && plan.details.sharedFfn != plan.model.sharedExperts * plan.model.expertFfn)
            return refused("its shared experts have a width of their own");
        if (plan.work.format == MathFormat::Fp4 || plan.work.format == MathFormat::Int8)
            return refused("its products are of a format that programs do not have");
        if (stepCase.cluster.stagesThroughHost)
            return refused("its network copies through the hosts");
        const std::string policy = policyOf(plan.work.recompute);
        if (policy.empty())
            return refused("its recomputation has no name");
        const auto candidate = candidateOf(plan, calibration.traits(stepCase.stack));
        if (!candidate)
            return refused(candidate.error().front().message);
        SearchWork work;
        work.model = configOf(plan);
        if (const Problems problems = transformerProblems(work.model); !problems.empty())
            return refused(problems.front().message);
        work.sequence = plan.work.sequence;
        work.globalBatch = plan.work.globalBatch;
        work.format = plan.work.format;
        work.recipe = plan.work.recipe;
        work.masters = !stepCase.stack.empty() && calibration.traits(stepCase.stack).weightBytes == 2.0;
        SearchMachine machine;
        machine.chip = *stepCase.chip;
        machine.chips = stepCase.cluster.devices / std::max<std::int64_t>(1, stepCase.chip->devicesPerChip);
        machine.cluster = stepCase.cluster;
        machine.traits = calibration.traits(stepCase.stack);
        machine.traits.attention = plan.work.attention;
        machine.traits.fusedNorms = plan.work.fusedNorms;
        machine.traits.fusedRotary = plan.work.fusedRotary;
        machine.traits.fusedElementwise = plan.work.fusedElementwise;
        FoundPlan found;
        found.mesh = meshOf(*candidate);
        found.specs = specsOf(*candidate, work.model);
        found.pipeline = {candidate->pp, candidate->chunks, plan.microbatches(), scheduleName(candidate->schedule)};
        found.recompute = policy;
        found.exchangesHeads = candidate->ulysses;
        const auto simulated
            = simulatedPlan(found, work, machine, stepCase.stack.empty() ? "plain" : stepCase.stack, catalogue, {});
        if (!simulated)
            return refused(simulated.error().front().message);
        const Simulation& step = simulated->simulation;
        return ProgramStep{step.stepSeconds, static_cast<double>(step.peakBytes), step.fits};
    };
}

} // namespace meshwright::sim
