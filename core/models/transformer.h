// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/autodiff/differentiate.h"
#include "core/models/loss_kernels.h"
#include "core/models/model_array.h"
#include "core/models/training.h"
#include "core/models/transformer_config.h"
#include "core/program/attention.h"

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright {

/// Which values of a layer the backward run makes again, so that they are not kept (the layer's input always is).
enum class Recompute : std::uint8_t {
    /// What products, attention and reductions make and read is kept; what a kernel makes element by element on its way is made again by the
    /// kernel that reads it, as fused kernels do
    None,
    Nothing, ///< all that the backward run reads is kept, op by op (JAX: everything_saveable), as PyTorch does where nothing fuses ops
    /// Scores and probabilities of plain attention are made again too (Korthikanti et al. 2022, arXiv:2205.05198, section 5); fused, it does so always.
    Selective,
    Full, ///< all that the backward run reads of a layer, from its input (JAX: nothing_saveable)
    Layer, ///< the whole layer, to its end, which nobody reads (PyTorch's checkpoint as Megatron-LM and FSDP use it)
    Dots, ///< all but products of matrices (JAX: dots_saveable)
    DotsWithoutBatch, ///< all but products without batch dimensions, so attention's too (JAX: dots_with_no_batch_dims_saveable)
    OffloadedDots, ///< as DotsWithoutBatch, and what is kept lies in the host's memory (JAX: offload_dot_with_no_batch_dims; MaxText: minimal_offloaded)
    DotsAndAttention, ///< all but products of matrices and fused attention (MaxText: minimal_with_context)
    Named, ///< all but what TransformerModel::kept and offloaded name (JAX: save_and_offload_only_these_names)
};

enum class TokenLookup : std::uint8_t {
    Gather, ///< rows of the table; the gradient adds rows up
    Product, ///< a one-hot matrix times the table, which may be split over the vocabulary (MaxText: use_iota_embed)
};

enum class AttentionOp : std::uint8_t {
    Fused, ///< one op, which keeps no scores (attention.h), as training programs have it
    Plain, ///< products, a mask and a softmax
};

enum class Prediction : std::uint8_t {
    EveryToken, ///< y[b, s]: the loss is the mean over all positions
    LastToken, ///< y[b]: what follows the sequence
};

/// A transformer, and how its training is written as a program.
struct TransformerModel {
    TransformerConfig config;
    std::int64_t sequence = 0; ///< tokens in a row of x
    Prediction predict = Prediction::EveryToken;
    TokenLookup lookup = TokenLookup::Gather;
    Recompute recompute = Recompute::None;
    std::vector<std::string> kept = {}; ///< with Recompute::Named: some of keepableNames
    std::vector<std::string> offloaded
        = {}; ///< with Recompute::Named: some of offloadableNames, kept in the host's memory; none of `kept`
    AttentionOp attention = AttentionOp::Fused;
    ContextExchange context = ContextExchange::Gather; ///< of fused attention whose sequence a mesh axis splits
    /// Devices along the axis that splits the sequence. The first has the tokens of the first and the last of twice as many equal chunks, the second
    /// those of the second and the last but one, and so on, so that each sees as many keys as any. 0: tokens are in their order.
    std::int64_t zigzag = 0;
    LossKernels lossKernels = LossKernels::Fused;
    std::int64_t lossChunks
        = 1; ///< parts of the sequence whose logits are made, and made again, one after the other; they divide it
    bool unrolled = false; ///< a copy of the ops for each layer in place of one loop
    /// Of a loop: the layers behind which it is cut, in increasing order. Each part is a loop of its own, and its arrays are rows of the others'.
    std::vector<std::int64_t> cuts = {};
    bool beginsAsLoop
        = false; ///< unrolled: parameters begin with the numbers and from the keys that they have in a loop's stacked arrays
    /// Experts take at most this times sequence * expertsPerToken / experts tokens of a row, in the order of the row; the others pass by.
    double capacityFactor = 1.0; ///< 0: each expert computes every token
    /// Parts of a row that send their tokens by themselves, each with its share of the capacity; they divide the sequence. As many as devices split it,
    /// no token has to be known elsewhere before it is sent.
    std::int64_t dispatchGroups = 1;

    friend bool operator==(const TransformerModel&, const TransformerModel&) = default;
};

/// The parameters, in the order of the program's arguments. Layers are stacked along dimension 0 ("layers.attention.q.w" is [layers, hidden,
/// heads, headDim]); unrolled ones have their number in the name ("layers.3.attention.q.w"), and
/// those of a part of a cut loop the first and the last of its layers ("layers.0-7.attention.q.w"). Layers without experts of a model that has
/// some are "dense_layers". Names:
/// - "embedding.w" [vocabulary, hidden], "positions.w" [maxPositions, hidden] where learned, "head.w" [hidden, vocabulary] unless tied
/// - "layers.attention.": "norm.scale", "q.w" [hidden, heads, headDim], "k.w", "v.w" (key and value heads), "o.w" [heads, headDim, hidden],
///   biases "q.b" .., "q_norm.scale", "k_norm.scale", "post_norm.scale"
/// - with latent attention (kv_rank) "q_down.w" [hidden, query rank] and "q_norm.scale" where queries have a rank, "kv_down.w" [hidden, kv_rank and
///   the keys' rotated dims], "kv_norm.scale"; "q.w" [query rank or hidden, heads, dims], "k.w", "v.w" [kv_rank, heads, dims]
/// - "layers.ffn.": "norm.scale", "up.w" [hidden, ffn], "gate.w", "down.w" [ffn, hidden], biases "up.b" .., "post_norm.scale"
/// - "layers.experts.": "router.w" [hidden, experts], "up.w" [experts, hidden, expertFfn], "gate.w", "down.w", "shared.up.w" ..
/// - "norm.scale", "norm.bias": before the head
/// Precondition: no sizeProblems.
std::vector<ModelArray> transformerParameters(const TransformerModel& model);

/// The values of a layer that may be kept by name: "attention.q", "ffn.hidden", as in transformerActivations behind "act.layers."; and "ffn.up" and
/// "ffn.gate", which the activation reads.
const std::vector<std::string>& keepableNames();

/// Those that may be kept in the host's memory: keepableNames, and "input", the layer's input, which is kept in any case.
const std::vector<std::string>& offloadableNames();

/// The values inside the program that a constraint may name, of one layer where layers are a loop: "act.embedding" [batch, sequence,
/// hidden], "act.layers" (a layer's output), "act.layers.attention.input" (normalised), "act.layers.attention.q" [batch, sequence, heads,
/// head size], "..k", "..v" (before they are normalised or turned; keys made from latents, whole), "..mixed" (what heads make of the values;
/// [batch, sequence, key and value heads, heads of each, head size]), "act.layers.attention", "act.layers.ffn.input",
/// "act.layers.ffn.hidden", "act.layers.ffn" (a block's output), "act.logits" (with chunks of the loss, of one). Of experts with a capacity also what
/// tokens are as they are sent and come back: "..experts.sent" and "..returned" [batch, dispatchGroups, experts, capacity, hidden], "..experts.received" and
/// "..made" [experts, batch, dispatchGroups, capacity, hidden], and "..ffn.hidden" is [experts, batch, dispatchGroups, capacity, width].
std::vector<ModelArray> transformerActivations(const TransformerModel& model, std::int64_t batch);

/// How many tokens of a row's part (dispatchGroups) an expert of these layers takes: its share of them times capacityFactor, at most all.
std::int64_t expertCapacity(const TransformerModel& model, const TransformerConfig& layer);

/// The name of a layer's output, "act.layers.3", of the model's layer 0, 1, .. (-1: what the first one takes, "act.embedding"); of a loop, that of each of its layers. Of the last layer before a
/// cut: what the part of the loop passes on, "act.layers.0-7.out".
std::string layerOutput(const TransformerModel& model, std::int64_t layer);

/// MW1358 where a part of some layers is read and counted, but has no program yet. Precondition: no transformerProblems.
Problems programProblems(const TransformerConfig& config);

/// What is wrong with a model's sizes. Places have the paths of the members.
/// Problems: those of transformerProblems and programProblems; MW1352 a zigzag order or an exchange that attention does not have, lossChunks that do not
/// divide the sequence, or are several with Prediction::LastToken, sequence or capacityFactor out of range, or more than 512 unrolled layers; MW1355 a
/// sequence longer than maxPositions where positions are learned.
Problems sizeProblems(const TransformerModel& model);

/// The training of a transformer: the functions of buildMlpTraining, where x is i32[batch, sequence] and y i32[batch, sequence] or
/// i32[batch], all of them tokens. "predictions" of "evaluate" are the logits behind the last token, [batch, vocabulary].
///
/// Equal layers are one Repeat over stacked parameters, its carry the residual stream; with `unrolled` they are copies. Parameters and
/// moments have the parameter type; activations `options.activationType`; products round their operands to the matmul type, and
/// accumulate, like norms, softmax and loss, in f32 at least. Tokens go to their experts by index, the first of a row as far as there is room (the
/// capacity of GShard, Lepikhin et al. 2020, arXiv:2006.16668, section 3.2). Windows that not all layers have are spread evenly, the first layer having one (Gemma 2). Softmax and cross entropy as in training_program.h.
///
/// Problems: MW1312 a constraint names no activation of the model, MW1308 one of another rank. Preconditions: no sizeProblems,
/// batch >= 1, floating types.
Result<Program> buildTransformerTraining(const TransformerModel& model, const TrainingOptions& options);

/// For each op of the loss, also in blocks, in the order (of forEachOp) in which "evaluate" (with dropout "microbatch") has them: what becomes of what
/// it makes and the backward run reads. Precondition: as above.
std::vector<Residual> residualsOf(const TransformerModel& model, const TrainingOptions& options);

/// As of the MLP (training.h): one key for each random parameter, `_, *keys = split(key, parameters + 1)`.
std::vector<std::pair<std::string, RandomKey>> initKeys(
    const TransformerModel& model, const TrainingOptions& options, const RandomKey& key);

} // namespace meshwright
