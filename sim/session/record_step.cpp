// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/record_step.h"

#include "core/support/checked.h"
#include "sim/search/transformer_search.h"
#include "sim/session/search_study.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <mutex>

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
    // Megatron-LM and those after it fill the vocabulary up to a multiple of 128 for each tensor rank (--make-vocab-size-divisible-by).
    if (const std::int64_t filled = 128 * plan.layout.tp; plan.layout.tp > 1)
        config.vocabulary = ceilDiv(config.vocabulary, filled) * filled;
    if (details.sharedFfn > 0 && details.sharedFfn != config.sharedExperts * config.expertFfn && config.denseLayers == 0) {
        config.ffnBesideExperts = true; // shared experts of a width of their own
        config.ffn = details.sharedFfn;
        config.sharedExperts = 0;
    }
    return config;
}

} // namespace

StepSimulator stepSimulator(const Catalogue& catalogue, const Calibration& calibration)
{
    // Files repeat records: the same plan of the same software is simulated once.
    struct Known {
        std::mutex mutex;
        std::map<std::string, Result<SimulatedStep>> steps;
    };
    return [&catalogue, &calibration, known = std::make_shared<Known>()](
               const StepCase& stepCase, const TrainingPlan& plan) -> Result<SimulatedStep> {
        const auto candidate = candidateOf(plan, calibration.traits(stepCase.stack));
        if (!candidate)
            return candidate.error();
        SearchWork work;
        work.model = configOf(plan);
        if (const Problems problems = transformerProblems(work.model); !problems.empty())
            return problems;
        work.sequence = plan.work.sequence;
        work.globalBatch = plan.work.globalBatch;
        work.format = plan.work.format;
        work.recipe = plan.work.recipe;
        work.masters = !stepCase.stack.empty() && calibration.traits(stepCase.stack).weightBytes == 2.0;
        SearchMachine machine;
        machine.chip = *stepCase.chip;
        machine.chips = stepCase.cluster.devices / std::max<std::int64_t>(1, stepCase.chip->devicesPerChip);
        machine.cluster = stepCase.cluster;
        machine.constants = calibration.constants(stepCase.stack, *stepCase.chip);
        if (stepCase.cluster.stagesThroughHost) {
            const double rate = stepCase.cluster.networkBytesPerSecond.value_or(
                stepCase.chip->nicBytesPerSecond ? stepCase.chip->nicBytesPerSecond->value : 0.0);
            machine.cluster.networkBytesPerSecond = rate * machine.constants.stagedShare;
        }
        // Products of formats that programs do not have go as those of 8 bits, at the format's own rate.
        if (work.format == MathFormat::Fp4 || work.format == MathFormat::Int8) {
            const auto rate = machine.chip.peakFlopsPerSecond.find(work.format);
            if (rate == machine.chip.peakFlopsPerSecond.end())
                return Problem{"", fmt::format("{} has no rate of {}", machine.chip.name, mathFormatName(work.format))};
            machine.chip.peakFlopsPerSecond[MathFormat::Fp8] = rate->second;
            machine.chip.unsupported.erase(MathFormat::Fp8);
            work.format = MathFormat::Fp8;
        }
        machine.traits = calibration.traits(stepCase.stack);
        machine.traits.attention = plan.work.attention;
        machine.traits.fusedNorms = plan.work.fusedNorms;
        machine.traits.fusedRotary = plan.work.fusedRotary;
        machine.traits.fusedElementwise = plan.work.fusedElementwise;
        machine.traits.lossKernels = plan.work.lossKernels;
        FoundPlan found;
        found.mesh = meshOf(*candidate);
        found.specs = specsOf(*candidate, work.model);
        found.pipeline = {candidate->pp, candidate->chunks, plan.microbatches(), scheduleName(candidate->schedule)};
        found.sequenceParallel = candidate->sequenceParallel;
        found.exchangesHeads = candidate->ulysses;
        const auto text = studyText(found, plan.work.recompute, work, machine);
        if (!text)
            return text.error();
        const std::string key = fmt::format("{} {} {} {} {} {} {} {}\n{}", stepCase.stack, mathFormatName(plan.work.format),
            machine.cluster.networkBytesPerSecond.value_or(0.0), static_cast<int>(machine.traits.attention),
            machine.traits.fusedNorms, machine.traits.fusedRotary, machine.traits.fusedElementwise, stepCase.chip->key, *text);
        {
            const std::scoped_lock lock(known->mutex);
            if (const auto same = known->steps.find(key); same != known->steps.end())
                return same->second;
        }
        const auto simulated = simulatedText(*text, machine, stepCase.stack.empty() ? "plain" : stepCase.stack, catalogue, {});
        if (!simulated)
            return simulated.error();
        const Simulation& step = simulated->simulation;
        SimulatedStep result{.seconds = step.stepSeconds,
            .computeSeconds = step.computeSeconds,
            .communicationSeconds = step.exposedSeconds,
            .bubbleSeconds = step.bubbleSeconds,
            .launchSeconds = step.launchSeconds,
            .stackSeconds = step.stackSeconds,
            .peakBytes = static_cast<double>(step.peakBytes),
            .fits = step.fits};
        result.otherSeconds = step.stepSeconds - step.computeSeconds - step.exposedSeconds - step.bubbleSeconds
            - step.launchSeconds - step.stackSeconds;
        const std::scoped_lock lock(known->mutex);
        known->steps.emplace(key, result);
        return result;
    };
}

} // namespace meshwright::sim
