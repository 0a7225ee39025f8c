// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/fp8_recipe.h"
#include "core/models/loss_kernels.h"
#include "core/models/transformer_config.h"
#include "core/program/pipeline_order.h"
#include "core/support/result.h"
#include "sim/cost/recomputation.h"
#include "sim/cost/stack.h"
#include "sim/hardware/chip.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace meshwright::sim {

/// Parts of a model that TransformerConfig does not say.
struct ModelDetails {
    std::int64_t windowLayers
        = 0; ///< layers of TransformerConfig::slidingWindow; the others see all; 0 with a window: all layers have it
    std::int64_t sharedFfn = 0; ///< width of all shared experts together; 0: sharedExperts * expertFfn
    std::int64_t queryRank = 0; ///< multi-head latent attention (DeepSeek): rank of the queries' product; 0: none
    std::int64_t keyValueRank = 0; ///< and of keys and values; 0: plain attention
    std::int64_t ropeHeadDim = 0; ///< part of a query's head that carries positions
    std::int64_t valueHeadDim = 0; ///< 0: headDim
    bool dropout = false;
    bool parallelBlock = false; ///< attention and feed-forward read one norm and add up once
    double expertCapacity = 0.0; ///< rows of an expert over the mean, filled or not; tokens beyond are dropped; 0: none is
    double layerFactor = 1.0; ///< what a layer's computing takes, of what the formulas say
    bool dispatchesByProduct = false; ///< with a capacity: tokens reach experts through a product with a mask
};

/// What is trained. Counts are >= 1.
struct TrainingWork {
    std::int64_t sequence = 0; ///< tokens
    std::int64_t globalBatch = 0; ///< sequences of one step, all data ranks
    double microbatch
        = 1.0; ///< sequences of one data rank in one pass; below 1 where context parallelism splits a sequence among data ranks
    Recomputation recompute;
    std::int64_t lossChunks = 1; ///< parts of a pass whose logits are made one after the other, and again backward
    AttentionKernel attention = AttentionKernel::Flash2;
    MathFormat format = MathFormat::Bf16; ///< of the linear layers' products
    MathFormat activationFormat = MathFormat::Bf16; ///< of everything else
    Fp8Recipe recipe = Fp8Recipe::None; ///< with 8-bit products; None: scales as in Current, all else in 16 bits
    bool weightsApart
        = false; ///< each weight is gathered, and its gradient reduced, by itself, as programs do; else a layer's together
    bool fusedNorms = true; ///< a norm is one kernel
    bool fusedRotary = true; ///< so are rotary positions
    bool fusedElementwise = true; ///< bias with activation, bias with dropout and residual
    LossKernels lossKernels = LossKernels::InPlace;

    /// Bytes of a parameter as ZeRO-3 gathers it.
    double gatheredBytes() const { return recipe == Fp8Recipe::Current && bytesPerElement(format) < 2.0 ? 1.0 : 2.0; }
};

/// How it is spread. The product dp * tp * pp * cp is the number of devices; expert groups lie inside dp * cp (and tp).
struct ParallelLayout {
    std::int64_t dp = 1;
    std::int64_t tp = 1;
    std::int64_t pp = 1;
    std::int64_t cp = 1;
    std::int64_t ep = 1;
    std::int64_t virtualStages = 1;
    PipelineOrder schedule = PipelineOrder::OneForwardOneBackward;
    bool sequenceParallel = false; ///< norms and dropout split over tp
    bool ulysses = false; ///< context parallel by all-to-all in place of a ring
    int zeroStage = 0; ///< 0: all replicated, 1: optimizer, 2: and gradients, 3: and weights (FSDP) over the shard group
    std::int64_t shardDegree = 0; ///< of the shard group; 0: dp * cp. Smaller: hybrid, replicas reduce among themselves
    std::int64_t slices = 1; ///< TPU slices (joined by DCN) that dp spans
    std::int64_t expertStride = 0; ///< ranks between neighbours of an expert group; 0: tp
    double expertImbalance = 1.0; ///< tokens of the busiest expert rank over the mean
    bool dispatchesOnceAHost = false; ///< a token that several experts of one host want crosses the network once
    bool asyncTensorParallel = false; ///< products decomposed so that tp's collectives hide behind them
    bool gathersContext
        = false; ///< cp's ranks gather keys and values, repeated for every query head, behind the first of cp parts of attention
    bool gathersNarrow = false; ///< with sequence parallelism and one scale a tensor, tp gathers what is cast already

    std::int64_t deviceCount() const { return dp * tp * pp * cp; }
    /// True where context ranks lie between tensor and expert ranks.
    bool contextInside() const { return expertStride > tp; }
};

struct TrainingPlan {
    TransformerConfig model;
    ModelDetails details;
    TrainingWork work;
    ParallelLayout layout;

    /// Passes of one data rank in a step, >= 1; the last may be part full.
    double microbatches() const
    {
        const double each = static_cast<double>(work.globalBatch) / static_cast<double>(layout.dp) / work.microbatch;
        return each < 1.0 ? 1.0 : each;
    }
    std::int64_t shardGroup() const { return layout.shardDegree > 0 ? layout.shardDegree : layout.dp * layout.cp; }
    /// Among how many of those ranks the states of one rank's experts are split: others have other experts.
    double expertShards() const
    {
        const std::int64_t tensor = layout.ep > layout.dp * layout.cp ? layout.tp : 1; // experts over tensor ranks, too
        return std::max(1.0, static_cast<double>(shardGroup() * tensor) / static_cast<double>(layout.ep));
    }
};

/// Whether a chip multiplies in the format at a rate of its own. Problems: MW1763 8 bits or fewer gain nothing on it.
Result<Done> checkFormat(const Chip& chip, MathFormat format);

/// Whether a plan can be run at all.
/// Problems: MW1760 a size or degree below 1; MW1761 a degree that does not divide what it splits (heads, batch); MW1762 more stages than
/// layers. All that apply.
Result<Done> checkPlan(const TrainingPlan& plan);

} // namespace meshwright::sim
