// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/transformer/step.h"

#include "core/support/checked.h"
#include "core/support/units.h"

#include <algorithm>
#include <cmath>

namespace meshwright::sim {

namespace {

constexpr double kReserveShare = 0.05; ///< fragmentation
constexpr double kReserveBytes = 1.5 * kGiB; ///< of the runtime
constexpr double kGroupBufferBytes = 0.5e9; ///< channels of one communicator
constexpr double kPrefetchedUnits = 2.0;

/// Computation and communication that run side by side: the longer of both, the computation slowed by what shares its memory and units.
double beside(double computing, double communicating, double slowdown)
{
    if (computing <= 0.0)
        return communicating;
    return std::max(communicating, computing + slowdown * std::min(computing, communicating));
}

} // namespace

std::int64_t layersOfChunk(std::int64_t layers, std::int64_t chunks, std::int64_t chunk)
{
    if (chunks > 1 && layers % chunks != 0 && (layers + 2) % chunks == 0)
        return (layers + 2) / chunks - (chunk == 0 || chunk == chunks - 1 ? 1 : 0);
    return layers / chunks + (chunk < layers % chunks ? 1 : 0);
}

double optimizerStateBytes(const TrainingWork& work, const StackTraits& traits)
{
    constexpr double kNarrowMoments = 8.0; // the weight in 32 bits, both moments in 16
    return work.recipe == Fp8Recipe::Blockwise ? std::min(kNarrowMoments, traits.optimizerStateBytes)
                                               : traits.optimizerStateBytes;
}

StepModel::StepModel(const Chip& chip, const ClusterChoice& cluster, const StackConstants& constants, const StackTraits& traits,
    std::stop_token stop)
    : m_constants(constants)
    , m_traits(traits)
    , m_curve(chip, {.constants = constants})
    , m_cluster(chip, cluster, constants)
    , m_clock(std::move(stop))
{
    const auto peak = chip.peakFlopsPerSecond.find(MathFormat::Bf16);
    const auto fallback = chip.peakFlopsPerSecond.find(MathFormat::Fp16);
    const auto devices = static_cast<double>(chip.devicesPerChip);
    m_devicePeak = (peak != chip.peakFlopsPerSecond.end()              ? peak->second.value
                           : fallback != chip.peakFlopsPerSecond.end() ? fallback->second.value
                                                                       : 1.0)
        / devices;
    if (chip.hostLinkBytesPerSecond)
        m_hostLink = chip.hostLinkBytesPerSecond->value / devices;
}

/// Read and written for each parameter of a layer and each microbatch to add up gradients: in place (two read, one written), of which the
/// first microbatch's are only stored; or into 32-bit sums.
double StepModel::addedBytes(const TrainingPlan& plan) const
{
    if (!m_traits.addsGradients)
        return 0.0;
    if (plan.work.activationFormat == MathFormat::Bf16 && m_traits.accumulatorBytes > 0.0)
        return m_traits.gradientBytes + 4.0 * m_traits.accumulatorBytes;
    return 3.0 * m_traits.gradientBytes * (plan.microbatches() - 1.0) / plan.microbatches();
}

/// Of a layer's weights over the shard group.
double StepModel::gatherSeconds(const TrainingPlan& plan, const RankParameters& parameters, const RankGroup& group) const
{
    const double bytes = parameters.layer * plan.work.gatheredBytes();
    if (!m_traits.gathersSingly)
        return weightGatherSeconds(m_cluster, plan.work, bytes, parameters.layerMatrices, group);
    return singlySeconds(plan.model.gatedFfn ? 5.0 : 4.0, bytes, group);
}

/// Of a layer's gradients.
double StepModel::scatterSeconds(const TrainingPlan& plan, const RankParameters& parameters, const RankGroup& group) const
{
    const TransformerConfig& model = plan.model;
    const double bytes = parameters.layer * m_traits.gradientBytes;
    if (!m_traits.gathersSingly)
        return weightGatherSeconds(m_cluster, plan.work, bytes, parameters.layerMatrices, group);
    const double vectors = 2.0 * (model.norm == NormKind::LayerNorm ? 2.0 : 1.0) + (model.attentionBias ? 1.0 : 0.0)
        + (model.outputBias ? 1.0 : 0.0) + (model.ffnBias ? 2.0 : 0.0);
    return singlySeconds(model.gatedFfn ? 5.0 : 4.0, bytes, group)
        + singlySeconds(vectors, vectors * asDouble(model.hidden) * m_traits.gradientBytes, group);
}

/// So many collectives that share the bytes, each on a list of the ranks' parts: every part is a view and a copy of its own.
double StepModel::singlySeconds(double count, double bytes, const RankGroup& group) const
{
    return count > 0.0 ? count * (m_cluster.allGatherSeconds(bytes / count, group) + group.size() * m_curve.hostKernelSeconds())
                       : 0.0;
}

StepModel::PassTime StepModel::timeOf(const PassCost& pass) const
{
    const double seconds = passSeconds(pass, m_curve);
    return {seconds, seconds - (pass.computing() + pass.communicating())};
}

double weightGatherSeconds(
    const Cluster& cluster, const TrainingWork& work, double bytes, double matrices, const RankGroup& group)
{
    const double count = work.weightsApart ? std::max(1.0, matrices) : 1.0;
    return count * cluster.allGatherSeconds(bytes / count, group);
}

double weightReduceSeconds(
    const Cluster& cluster, const TrainingWork& work, double bytes, double matrices, const RankGroup& group)
{
    const double count = work.weightsApart ? std::max(1.0, matrices) : 1.0;
    return count * cluster.allReduceSeconds(bytes / count, group);
}

StepEstimate StepModel::estimate(const TrainingPlan& plan)
{
    const ParallelLayout& layout = plan.layout;
    const TransformerConfig& model = plan.model;
    const LayerCost layer = layerCost(plan, m_curve, m_cluster, m_constants);
    const EndCost ends = endCost(plan, m_curve, m_cluster, m_traits);
    const RankParameters parameters = rankParameters(plan);
    const double microbatches = plan.microbatches();
    const double dataRanks = asDouble(layout.dp * layout.cp);
    const auto shards = plan.shardGroup();
    const RankGroup shardGroup = m_cluster.group(shards, layout.tp);
    const std::int64_t replicas = std::max<std::int64_t>(1, layout.dp * layout.cp / shards);
    const RankGroup replicaGroup = m_cluster.group(replicas, layout.tp * shards);
    const double expertRanks
        = std::max(1.0, dataRanks * (asDouble(layout.ep) > dataRanks ? asDouble(layout.tp) : 1.0) / asDouble(layout.ep));

    // A layer's passes; with ZeRO-3 its weights arrive, and its gradients leave, while a neighbour computes.
    PassCost backwardPass = layer.backward;
    backwardPass += layer.again;
    backwardPass.elementwise += m_curve.streamSeconds(addedBytes(plan) * (parameters.layer + parameters.experts));
    const PassTime forward = timeOf(layer.forward);
    const PassTime backward = timeOf(backwardPass);
    PassCost weightsPass = layer.weights;
    weightsPass.elementwise += m_curve.streamSeconds(addedBytes(plan) * (parameters.layer + parameters.experts));
    const double layerWeights = timeOf(weightsPass).seconds;
    double layerForward = forward.seconds;
    double layerBackward = backward.seconds;
    double gather = 0.0;
    double scatter = 0.0;
    StepEstimate step;
    if (layout.zeroStage >= 3 && shards > 1) {
        const RankGroup expertGroup = m_cluster.expertShards(layout, shards);
        // Kept in 32 bits or not, weights travel as they are multiplied.
        gather = gatherSeconds(plan, parameters, shardGroup);
        double reduced = scatterSeconds(plan, parameters, shardGroup);
        if (parameters.experts > 0.0 && expertGroup.size() > 1.0) {
            const auto seconds = [&](double bytes) {
                return weightGatherSeconds(m_cluster, plan.work, bytes, parameters.expertMatrices, expertGroup);
            };
            gather += seconds(parameters.experts * plan.work.gatheredBytes());
            reduced += seconds(parameters.experts * m_traits.gradientBytes);
        }
        scatter = m_traits.gradientsOncePerStep ? reduced / microbatches : reduced;
        // What was gathered to compute a layer again is let go before its gradients where each weight comes by itself.
        const double again = m_traits.gathersSingly && plan.work.recompute.layerInputOnly ? 2.0 : 1.0;
        layerForward
            = m_traits.gathersAhead ? beside(forward.seconds, gather, m_constants.overlapSlowdown) : forward.seconds + gather;
        layerBackward = m_traits.gathersAhead ? beside(backward.seconds, gather + scatter, m_constants.overlapSlowdown)
                                              : backward.seconds + again * gather + scatter;
    }

    // What the host's memory keeps leaves and comes back beside all that.
    const double hostSeconds = m_hostLink > 0.0 ? layer.hostBytes / m_hostLink : 0.0;
    const double leaves = beside(layerForward, hostSeconds, m_constants.overlapSlowdown) - layerForward;
    const double returns = beside(layerBackward, hostSeconds, m_constants.overlapSlowdown) - layerBackward;
    layerForward += leaves;
    layerBackward += returns;

    // Chunks of the stages, embedding and head at the ends.
    const std::int64_t chunks = layout.pp * layout.virtualStages;
    m_chunks.resize(static_cast<std::size_t>(chunks));
    const PassTime embeddingForward = timeOf(ends.embeddingForward);
    const PassTime embeddingBackward = timeOf(ends.embeddingBackward);
    const PassTime headForward = timeOf(ends.headForward);
    const PassTime headBackward = timeOf(ends.headBackward);
    std::int64_t slowest = 0;
    double slowestSeconds = 0.0;
    double slowestLayers = 0.0;
    for (std::int64_t stage = 0; stage < layout.pp; ++stage) {
        double seconds = 0.0;
        double layers = 0.0;
        for (std::int64_t turn = 0; turn < layout.virtualStages; ++turn) {
            const std::int64_t place = turn * layout.pp + stage;
            const double own = asDouble(layersOfChunk(model.layers, chunks, place));
            ChunkTime time{own * layerForward + m_constants.microbatchSeconds / 2.0,
                own * layerBackward + m_constants.microbatchSeconds / 2.0, own * layerWeights};
            if (place == 0) {
                time.forward += embeddingForward.seconds;
                time.backward += embeddingBackward.seconds;
                time.weight += embeddingBackward.seconds;
            }
            if (place == chunks - 1) {
                time.forward += headForward.seconds;
                time.backward += headBackward.seconds;
                time.weight += timeOf(ends.headWeights).seconds;
            }
            seconds += time.forward + time.backward;
            layers += own;
            m_chunks[static_cast<std::size_t>(place)] = time;
        }
        if (seconds > slowestSeconds) {
            slowestSeconds = seconds;
            slowest = stage;
            slowestLayers = layers;
        }
    }
    const double bytes = bytesPerElement(plan.work.activationFormat);
    const double boundary = bytes * plan.work.microbatch * asDouble(plan.work.sequence) / asDouble(layout.cp)
        * asDouble(model.hidden) / (layout.sequenceParallel || m_traits.scattersBoundary ? asDouble(layout.tp) : 1.0);
    double send = layout.pp > 1 ? m_cluster.sendSeconds(boundary, layout.tp * layout.cp * layout.dp) : 0.0;
    double busy = send * (1.0 - m_constants.pipelineOverlap);
    if (layout.pp > 1 && m_traits.scattersBoundary && !layout.sequenceParallel) {
        // Who receives puts the parts together again; `busy` is of sender and receiver each.
        const double together = m_cluster.allGatherSeconds(boundary * asDouble(layout.tp), m_cluster.group(layout.tp, 1));
        send += together;
        busy += together / 2.0;
    }
    const double pipeline = m_clock.seconds(m_chunks, layout.pp, microbatches, layout.schedule, send, busy);

    // Gradients over data ranks, those of a weight in all layers together, then the optimizer on what the rank owns of the state.
    const double firstLast = std::max(parameters.embedding, parameters.head);
    const double ownLayers = asDouble(model.layers) / asDouble(layout.pp);
    const double ownDense
        = ownLayers * parameters.layer + firstLast + (layout.pp == 1 ? std::min(parameters.embedding, parameters.head) : 0.0);
    const double ownExperts = ownLayers * parameters.experts;
    double reduce = 0.0;
    double behind = 0.0;
    if (layout.zeroStage >= 3) {
        reduce = gather + (m_traits.gradientsOncePerStep ? scatter * microbatches : scatter);
        if (replicas > 1) {
            const double across
                = weightReduceSeconds(m_cluster, plan.work, (ownDense + ownExperts) * m_traits.gradientBytes / asDouble(shards),
                    parameters.layerMatrices + parameters.expertMatrices + 1.0, replicaGroup);
            behind = std::min(m_constants.dataOverlap * across, ownLayers * layerBackward);
            reduce += across - behind;
        }
        step.dataHidden = (m_traits.gathersAhead ? microbatches * ownLayers * (2.0 * gather + scatter) : 0.0) + behind;
    } else if (dataRanks > 1.0) {
        const RankGroup group = m_cluster.group(layout.dp * layout.cp, layout.tp);
        const auto expertGroup = m_cluster.group(static_cast<std::int64_t>(expertRanks), layout.tp * layout.ep);
        const double reducedBytes = m_traits.reducedBytes > 0.0 ? m_traits.reducedBytes : m_traits.gradientBytes;
        const double times = layout.zeroStage == 2 && !m_traits.gradientsOncePerStep ? microbatches : 1.0;
        const auto sum = [&](double count, double matrices, const RankGroup& over) {
            const bool whole = layout.zeroStage == 0 || m_traits.reducesWhole;
            const auto seconds = whole ? weightReduceSeconds : weightGatherSeconds;
            return times * seconds(m_cluster, plan.work, count * reducedBytes, matrices, over)
                + (layout.zeroStage == 0
                        ? 0.0
                        : weightGatherSeconds(m_cluster, plan.work, count * m_traits.weightBytes, matrices, over));
        };
        const double all
            = sum(ownDense, parameters.layerMatrices + 1.0, group) + sum(ownExperts, parameters.expertMatrices, expertGroup);
        const double hideable = (layout.zeroStage >= 1 ? ownLayers * layerForward : 0.0) + ownLayers * layerBackward;
        behind = std::min(m_constants.dataOverlap * all, hideable);
        reduce = all - behind;
        step.dataHidden = behind;
    }
    if (layout.pp > 1 && model.tiedEmbeddings)
        reduce += m_cluster.allReduceSeconds(parameters.embedding * m_traits.gradientBytes,
            m_cluster.group(2, layout.tp * layout.cp * layout.dp * (layout.pp - 1)));
    const double optimizerShards = layout.zeroStage >= 1 ? asDouble(shards) : 1.0;
    const double expertShards = layout.zeroStage >= 1 ? plan.expertShards() : 1.0;
    const double optimizer
        = m_curve.streamSeconds(m_constants.optimizerBytes * (ownDense / optimizerShards + ownExperts / expertShards)
            + m_traits.stepBytes * (ownDense + ownExperts));

    // What the slowest stage is busy with; the rest of the pipeline's time it waits.
    const bool first = slowest == 0;
    const bool last = slowest == layout.pp - 1;
    PassCost sum = slowestLayers * layer.forward;
    sum += slowestLayers * backwardPass;
    if (first) {
        sum += ends.embeddingForward;
        sum += ends.embeddingBackward;
    }
    if (last) {
        sum += ends.headForward;
        sum += ends.headBackward;
    }
    step.products = microbatches * sum.products;
    step.attention = microbatches * sum.attention;
    step.elementwise = microbatches * sum.elementwise;
    step.tensor = microbatches * sum.tensor;
    step.context = microbatches * sum.context;
    step.expert = microbatches * sum.expert;
    step.launch = microbatches
        * (slowestLayers * (forward.launch + backward.launch) + (first ? embeddingForward.launch + embeddingBackward.launch : 0.0)
            + (last ? headForward.launch + headBackward.launch : 0.0));
    const double exposedGather
        = microbatches * slowestLayers * (layerForward - forward.seconds + layerBackward - backward.seconds - leaves - returns);
    step.data = exposedGather + reduce;
    if (layout.pp > 1)
        step.send = microbatches * asDouble(layout.virtualStages) * 2.0 * busy * (first || last ? 1.0 : 2.0);
    const double passOverhead
        = microbatches * (asDouble(layout.virtualStages) * m_constants.microbatchSeconds + slowestLayers * (leaves + returns));
    step.bubble = std::max(0.0,
        pipeline
            - (step.products + step.attention + step.elementwise + step.tensor + step.context + step.expert + step.launch
                + exposedGather + step.send + passOverhead));
    step.optimizer = optimizer;
    const double plain = pipeline + reduce + optimizer + m_constants.stepSeconds;
    const double slow = plain * stragglerDelay(m_constants, m_cluster.hosts());
    step.seconds = plain + slow;
    step.overhead = m_constants.stepSeconds + slow + passOverhead;

    const double tokens = asDouble(plan.work.globalBatch) * asDouble(plan.work.sequence);
    const double possible = step.seconds * asDouble(layout.deviceCount()) * m_devicePeak;
    step.flops = tokens * modelFlopsPerToken(model, plan.work.sequence, AttentionCount::Full);
    step.mfu = step.flops / possible;
    step.mfuCausal = tokens * modelFlopsPerToken(model, plan.work.sequence, AttentionCount::Causal) / possible;
    step.memory = memoryOf(plan, layer, ends, parameters);
    step.capacityBytes = m_cluster.capacityBytes();
    step.fits = step.memory.total() <= step.capacityBytes;
    return step;
}

StageMemory StepModel::memory(const TrainingPlan& plan) const
{
    return memoryOf(plan, layerCost(plan, m_curve, m_cluster, m_constants), endCost(plan, m_curve, m_cluster, m_traits),
        rankParameters(plan));
}

StageMemory StepModel::memoryOf(
    const TrainingPlan& plan, const LayerCost& layer, const EndCost& ends, const RankParameters& parameters) const
{
    const ParallelLayout& layout = plan.layout;
    const std::int64_t chunks = layout.pp * layout.virtualStages;
    const double shards = asDouble(plan.shardGroup());
    const double dataRanks = asDouble(layout.dp * layout.cp);
    const double expertShards = plan.expertShards();
    const auto sharded = [&](double dense, double experts, bool split) {
        return split ? dense / shards + experts / expertShards : dense + experts;
    };
    const double communicators
        = (layout.tp > 1 ? 1.0 : 0.0) + (dataRanks > 1.0 ? 1.0 : 0.0) + (layout.pp > 1 ? 1.0 : 0.0) + (layout.ep > 1 ? 1.0 : 0.0);
    StageMemory most;
    double mostBytes = -1.0;
    for (std::int64_t stage = 0; stage < layout.pp; ++stage) {
        // Ends differ, and the stages between need less and less.
        if (stage > 1 && stage < layout.pp - 1)
            continue;
        double layers = 0.0;
        for (std::int64_t turn = 0; turn < layout.virtualStages; ++turn)
            layers += asDouble(layersOfChunk(plan.model.layers, chunks, turn * layout.pp + stage));
        const bool first = stage == 0;
        const bool last = stage == layout.pp - 1;
        const double dense = layers * parameters.layer + (first ? parameters.embedding : 0.0) + (last ? parameters.head : 0.0);
        const double experts = layers * parameters.experts;
        StageMemory memory;
        memory.stage = stage;
        memory.weights = m_traits.weightBytes * sharded(dense, experts, layout.zeroStage >= 3);
        const double sums = plan.work.activationFormat == MathFormat::Bf16 ? m_traits.accumulatorBytes : 0.0;
        memory.gradients = (m_traits.gradientBytes + sums) * sharded(dense, experts, layout.zeroStage >= 2);
        memory.optimizer = optimizerStateBytes(plan.work, m_traits) * sharded(dense, experts, layout.zeroStage >= 1);
        const double held = heldChunks(layout.schedule, asDouble(layout.pp), asDouble(stage), asDouble(layout.virtualStages),
                                std::ceil(plan.microbatches()))
            / asDouble(layout.virtualStages);
        memory.activations = held * layers * layer.keptBytes;
        const double gatheredBytes = plan.work.gatheredBytes();
        StageMemory atLoss = memory;
        memory.working
            = layer.workingBytes + (plan.work.recompute.layerInputOnly ? layer.fullBytes : layer.fullBytes - layer.keptBytes);
        if (layout.zeroStage >= 3) {
            const double unit = std::max(parameters.layer + parameters.experts, first ? parameters.embedding : 0.0);
            memory.gathered = kPrefetchedUnits * unit * gatheredBytes + unit * m_traits.gradientBytes;
            atLoss.gathered = parameters.head * (gatheredBytes + m_traits.gradientBytes);
        }
        atLoss.logits = ends.logitBytes;
        // The logits are gone before the last layer goes backward.
        if (last && atLoss.total() > memory.total())
            memory = atLoss;
        memory.buffers = communicators * kGroupBufferBytes;
        const double live = memory.total();
        memory.reserve = kReserveShare * live + kReserveBytes;
        if (live > mostBytes) {
            mostBytes = live;
            most = memory;
        }
    }
    return most;
}

} // namespace meshwright::sim
