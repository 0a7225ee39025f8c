// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/cost/device_cost.h"
#include "sim/cost/stack.h"
#include "sim/transformer/cluster.h"
#include "sim/transformer/layer.h"
#include "sim/transformer/pipeline.h"
#include "sim/transformer/plan.h"

#include <string>
#include <vector>

namespace meshwright::sim {

/// Bytes of one device at the moment when it holds the most.
struct StageMemory {
    std::int64_t stage = 0; ///< the one that needs most, 0-based
    double weights = 0.0;
    double gradients = 0.0;
    double optimizer = 0.0;
    double activations = 0.0; ///< kept, of all microbatches in flight
    double gathered = 0.0; ///< weights and gradients of the layers in hand, with ZeRO-3
    double working = 0.0; ///< temporaries of one layer, what it computes again among them
    double logits = 0.0;
    double buffers = 0.0; ///< of collectives
    double reserve = 0.0; ///< runtime and fragmentation
    double total() const
    {
        return weights + gradients + optimizer + activations + gathered + working + logits + buffers + reserve;
    }
};

/// A step in closed form. Seconds; the parts are those of the slowest stage and add up to `seconds`.
struct StepEstimate {
    double seconds = 0.0;
    double products = 0.0;
    double attention = 0.0;
    double elementwise = 0.0;
    double launch = 0.0; ///< gaps between kernels, and waiting for the host to start them
    double tensor = 0.0; ///< exposed communication over tp
    double context = 0.0; ///< over cp
    double expert = 0.0; ///< over ep
    double send = 0.0; ///< between stages
    double data = 0.0; ///< over dp
    double dataHidden = 0.0; ///< over dp, behind computation: no part of the sum
    double bubble = 0.0;
    double optimizer = 0.0;
    double overhead = 0.0; ///< of each step and pass, on the host; slow hosts; waiting for what the host's memory keeps
    double flops = 0.0; ///< model FLOPs of the step, attention in full
    double mfu = 0.0; ///< `flops` over what the devices' bf16 peak allows in that time
    double mfuCausal = 0.0; ///< the same with attention counted half
    StageMemory memory;
    double capacityBytes = 0.0;
    bool fits = false;
};

/// Predicts steps of transformers on one cluster. Not for several threads at once: it keeps its scratch memory.
class StepModel {
public:
    /// After a stop what is estimated takes for ever (see PipelineClock).
    StepModel(const Chip& chip, const ClusterChoice& cluster, const StackConstants& constants, const StackTraits& traits,
        std::stop_token stop = {});

    /// Precondition: `checkPlan` has nothing against it, and its devices are those of the cluster.
    StepEstimate estimate(const TrainingPlan& plan);

    /// Only the memory: what is looked at first when many plans are tried.
    StageMemory memory(const TrainingPlan& plan) const;

    const DeviceCost& curve() const { return m_curve; }
    const Cluster& cluster() const { return m_cluster; }

private:
    struct PassTime {
        double seconds = 0.0;
        double launch = 0.0;
    };
    double addedBytes(const TrainingPlan& plan) const;
    double gatherSeconds(const TrainingPlan& plan, const RankParameters& parameters, const RankGroup& group) const;
    double scatterSeconds(const TrainingPlan& plan, const RankParameters& parameters, const RankGroup& group) const;
    double singlySeconds(double count, double bytes, const RankGroup& group) const;
    PassTime timeOf(const PassCost& pass) const;
    StageMemory memoryOf(
        const TrainingPlan& plan, const LayerCost& layer, const EndCost& ends, const RankParameters& parameters) const;

    StackConstants m_constants;
    StackTraits m_traits;
    DeviceCost m_curve;
    Cluster m_cluster;
    double m_devicePeak = 0.0;
    double m_hostLink = 0.0; ///< bytes/s of a device to its host's memory, one way; 0: not known
    PipelineClock m_clock;
    std::vector<ChunkTime> m_chunks;
};

/// All-gathers, or reduce-scatters, of so many bytes of weights: one, or where they are apart one for each of `matrices`.
double weightGatherSeconds(
    const Cluster& cluster, const TrainingWork& work, double bytes, double matrices, const RankGroup& group);
/// The same with all-reduces.
double weightReduceSeconds(
    const Cluster& cluster, const TrainingWork& work, double bytes, double matrices, const RankGroup& group);

/// Layers of a chunk (0 .. pp * virtualStages - 1, in the order in which a microbatch passes them): as even as possible, more to the first ones;
/// where two layers are missing to whole shares, the first and the last chunk have one fewer (they hold embedding and head).
std::int64_t layersOfChunk(std::int64_t layers, std::int64_t chunks, std::int64_t chunk);

/// Bytes of optimizer state for each parameter: a recipe may keep moments in 16 bits.
double optimizerStateBytes(const TrainingWork& work, const StackTraits& traits);

} // namespace meshwright::sim
