// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/loss_kernels.h"
#include "core/support/result.h"
#include "sim/hardware/chip.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// How the attention core is computed.
enum class AttentionKernel : std::uint8_t {
    Unfused, ///< scores, scale, mask, softmax and dropout are kernels of their own (eager PyTorch)
    FusedSoftmax, ///< scale, mask and softmax in one kernel; scores in memory (Megatron-LM)
    Flash1, ///< scores never in memory (Dao et al. 2022)
    Flash2, ///< the same with better partitioning (Dao 2023); also splash attention on TPUs
    Flash3, ///< kernels written for one chip: cuDNN, FlashAttention 3
};

/// Scores and probabilities lie in memory, between kernels.
inline bool keepsScores(AttentionKernel kernel)
{
    return kernel == AttentionKernel::Unfused || kernel == AttentionKernel::FusedSoftmax;
}

/// What a software stack makes of a chip: few numbers, each with a physical meaning. Shares are of the chip's own figures, 0 .. 1.
struct StackConstants {
    double matmulEfficiency
        = 0.0; ///< share of peak of a large product in full tiles; 0: the chip's own figure, times matmulResidual
    double matmulResidual = 1.0; ///< what is left of the chip's figure in long runs: clocks under load, cold caches
    double narrowEfficiency = 0.0; ///< the same for formats of 8 bits and less, of their peak; 0: as matmulEfficiency * .9
    double memoryEfficiency = 0.80; ///< share of HBM bandwidth of element-wise kernels
    double attentionForward = 0.0; ///< share of peak of fused attention; 0: the kernel's own
    double attentionBackward = 0.0;
    double kernelSeconds = 3e-6; ///< of the device, between two kernels
    double hostKernelSeconds = 6e-6; ///< of the host, to start a kernel; when it is the slower, the device waits
    double stepSeconds = 0.01; ///< of each step: data, loss, logging
    double microbatchSeconds = 0.0; ///< of each pass of a stage: the pipeline's engine, timers, exchange of shapes
    double linkEfficiency = 1.0; ///< share of the achievable bandwidth of fast links
    double networkEfficiency = 0.80; ///< share of the network's bandwidth
    double stagedShare
        = 1.0 / 3.0; ///< of that, where a byte takes three ways in turn: to the host's memory, between hosts, and out of it
    double tensorOverlap = 0.0; ///< share of tp's communication that hides behind computation, where that suffices
    double dataOverlap = 0.0; ///< of dp's
    double pipelineOverlap = 0.0; ///< of pp's
    double expertOverlap = 0.0; ///< of ep's
    double expertLayerSeconds
        = 0.0; ///< lost in each layer with routed experts, both passes: the host waits for counts of tokens, then starts kernels
    double overlapSlowdown = 0.10; ///< of computing while communication runs beside it
    double optimizerBytes = 38.0; ///< read and written for each parameter of the rank's shard
    double stragglerShare = 0.0; ///< of hosts, that compute slower than they should
    double stragglerSlowdown = 0.0; ///< by this share; a step waits for its slowest host

    friend bool operator==(const StackConstants&, const StackConstants&) = default;
};

/// The share by which a step on so many hosts grows because one of them may be a straggler: slowdown * (1 - (1 - share)^hosts).
double stragglerDelay(const StackConstants& constants, double hosts);

/// What is known of a software stack without measuring: which kernels it has, what it keeps.
struct StackTraits {
    AttentionKernel attention = AttentionKernel::Flash2;
    bool fusedNorms = true;
    bool fusedRotary = true;
    bool fusedElementwise = true;
    bool compilesNarrow
        = false; ///< all element-wise work is fused where products are of 8 bits or less: the casts need a compiler
    bool dropout = false;
    double gradientBytes = 4.0; ///< of each parameter, as they are reduced
    double reducedBytes = 0.0; ///< of each gradient while it is reduced; 0: gradientBytes
    bool gathersAhead = true; ///< with ZeRO-3 weights arrive, and gradients leave, while a neighbour computes; else between
    bool gathersSingly = false; ///< with ZeRO-3 every tensor has collectives of its own, on lists of its ranks' parts
    bool parallelBlock = false; ///< attention and feed-forward stand side by side: one norm before both, one sum after
    bool dispatchesByProduct = false; ///< tokens reach experts of a stated capacity through a product with a mask
    bool reducesWhole = false; ///< all-reduced where states are sharded too (ZeRO-1), in place of a reduce-scatter
    bool addsGradients
        = false; ///< a kernel of its own adds the gradients of a microbatch to those before it; else the product does
    double stepBytes
        = 0.0; ///< read and written besides in each step for each parameter that the rank holds: copies, scaling, norm
    double accumulatorBytes = 0.0; ///< besides, where activations are bf16: 32-bit sums of them
    LossKernels lossKernels = LossKernels::InPlace; ///< what is in memory while the loss is taken
    bool parallelLogits = true; ///< the loss is taken on logits split over tp; else they are gathered first
    bool scattersBoundary = false; ///< tp's ranks send each their part between stages
    double weightBytes = 2.0;
    double optimizerStateBytes = 12.0;
    bool gradientsOncePerStep = true; ///< reduced after the last microbatch
    bool asyncTensorParallel = false; ///< products decomposed so that tp's collectives hide behind them
    bool mergesProducts = false; ///< products of one array with several weights are one kernel: of queries, keys and values
    bool recomputesLayers = false; ///< full recomputation runs each layer to its end: `recompute: layer` in a study
    bool waitsForSums
        = false; ///< all-reduces of activations and of their gradients stop the device (Megatron-LM before sequence parallelism)
    bool gathersContext = false; ///< context parallel by one gather of keys and values of all query heads, not by a ring
    bool gathersNarrow = false; ///< with one scale a tensor, tp's ranks gather activations cast to 8 bits already
    bool dispatchesOnceAHost = false; ///< of tokens to experts: DeepEP and its like
    bool sequenceParallel = false; ///< with tp, where the source does not say
    int zeroStage = 0; ///< likewise
    std::string recompute = "none"; ///< likewise
};

struct StackChip {
    StackConstants constants;
    std::vector<std::string> fittedOn; ///< ids of records; never scored
};

/// resources/hardware/calibration.json.
class Calibration {
public:
    /// Problems: MW1765 the file is not a calibration (not JSON, a name that is not known, a value that is not a number); those of `readFile`.
    static Result<Calibration> load(const std::filesystem::path& path);
    static Result<Calibration> parse(std::string_view text, const std::string& file);

    /// The stack that is taken on a chip where nobody says which: by its class; empty: none, the class's own constants.
    std::string_view usualStack(const Chip& chip) const;

    /// The stack that a study calls so ("nemo"; "plain": none), or that has this name; nothing for other words. Where it differs by chip, the oldest.
    std::optional<std::string_view> stackNamed(std::string_view word) const;

    /// The stack that a study asks for on a chip: by its word, or the usual one. Precondition: `word` is empty or names one.
    std::string_view stackFor(std::string_view word, const Chip& chip) const;

    /// Constants of a stack on a chip; those of the chip's class where the pair has none of its own. An empty stack: the class's.
    const StackConstants& constants(std::string_view stack, const Chip& chip) const;
    const StackTraits& traits(std::string_view stack) const;

    /// The stack whose patterns (regular expressions, without regard to case) are found in a file's name and a record's `software`; the first in the
    /// order of names. Empty: none.
    std::string stackOf(const std::string& file, const std::string& software) const;

    /// All records that constants were fitted on, sorted.
    const std::vector<std::string>& fittedIds() const { return m_fittedIds; }

private:
    struct Stack {
        std::string file; ///< pattern; empty: any
        std::string software;
        StackTraits traits;
        std::map<std::string, StackConstants, std::less<>> byClass; ///< "gpu", "tpu"
        std::map<std::string, StackChip, std::less<>> byChip;
    };
    std::map<std::string, StackConstants, std::less<>> m_classes;
    std::map<std::string, Stack, std::less<>> m_stacks;
    std::map<std::string, std::string, std::less<>> m_usual; ///< stack, by class
    std::map<std::string, std::map<std::string, std::string>, std::less<>>
        m_words; ///< by what studies call it: the stack on chips whose kernels are of a generation; "": on all others
    std::vector<std::string> m_fittedIds;
};

/// The stacks in the resources, read once. Problems: those of `findResource` and `Calibration::load`.
const Result<Calibration>& defaultCalibration();

} // namespace meshwright::sim
