// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

enum class NormKind : std::uint8_t {
    LayerNorm, ///< mean and variance, scale and bias
    RmsNorm, ///< root mean square, scale only (Zhang and Sennrich 2019)
};
enum class PositionKind : std::uint8_t {
    None, ///< no positions, or ALiBi: no parameters
    Learned, ///< a table of maxPositions x hidden (GPT-2)
    Rotary, ///< rotations of queries and keys (Su et al. 2021)
};
enum class TransformerActivation : std::uint8_t {
    Gelu, ///< x Phi(x)
    Silu,
    Relu,
    GeluTanh, ///< Gelu by tanh (Hendrycks and Gimpel 2016; GPT-2 and Gemma)
};

/// How a layer mixes tokens. A recurrent one has a state [keys, values] for each of its heads.
enum class MixerKind : std::uint8_t {
    Attention,
    DeltaRule, ///< recurrent: a token replaces what its key finds in a decaying state (Yang et al. 2024, arXiv:2412.06464)
    StateSpace, ///< recurrent: a token adds to a decaying state (Mamba 2: Dao and Gu 2024, arXiv:2405.21060)
    None, ///< a layer of a feed-forward block alone
};

/// The most layers that a model has: beyond all that were ever trained, and few enough to be cut into stages one by one.
inline constexpr std::int64_t kMostTransformerLayers = 1 << 12;

/// A decoder-only transformer. Sizes count elements; those of a layer are equal in all layers, but for experts (see denseLayers), windows, and where
/// layers are of several `kinds`.
struct TransformerConfig {
    std::string name;
    std::int64_t layers = 0;
    std::int64_t hidden = 0;
    std::int64_t heads = 0; ///< query heads
    std::int64_t keyValueHeads = 0; ///< equal to heads without grouped queries
    std::int64_t headDim = 0; ///< heads * headDim need not be hidden
    std::int64_t ffn = 0; ///< width of the dense feed-forward block
    bool gatedFfn = false; ///< three matrices (up, gate, down) in place of two
    std::int64_t vocabulary = 0;
    bool tiedEmbeddings = false; ///< the head is the transposed embedding
    std::int64_t maxPositions = 0;
    std::int64_t slidingWindow = 0; ///< keys that a query sees, itself included; 0: all before it
    NormKind norm = NormKind::RmsNorm;
    double normEpsilon = 1e-5;
    PositionKind position = PositionKind::Rotary;
    double rotaryBase = 10000.0;
    double rotaryFraction = 1.0; ///< part of headDim that is rotated (NeoX: 0.25)
    TransformerActivation activation = TransformerActivation::Silu;
    bool attentionBias = false; ///< on q, k and v
    bool outputBias = false; ///< on the attention's output product
    bool ffnBias = false;
    bool parallelBlock = false; ///< attention and feed-forward read the same residual (NeoX, GPT-J)
    std::int64_t experts = 0; ///< 0: dense
    std::int64_t expertsPerToken = 0;
    std::int64_t expertFfn = 0; ///< width of one expert
    std::int64_t sharedExperts = 0; ///< always active, each expertFfn wide
    std::int64_t denseLayers = 0; ///< the first of a model with experts that have none
    std::int64_t slidingWindowLayers = 0; ///< layers that have the window; 0: all of them, where there is a window
    bool queryKeyNorm = false; ///< each head's queries and keys are normalised (Qwen3)
    bool postNorms = false; ///< norms after attention and feed-forward as well as before them (Gemma 2)
    bool embeddingScale = false; ///< embeddings are multiplied by sqrt(hidden) (Gemma)
    double queryScale = 0.0; ///< attention scores are divided by its root; 0: by that of headDim
    double attentionSoftcap = 0.0; ///< scores are c tanh(score / c) (Gemma 2); 0: as they are
    double logitSoftcap = 0.0; ///< the same of the logits
    /// Latent attention (DeepSeek-V2, section 2.1): queries and keys of headDim + latentRotaryDim, made from latents of these ranks.
    /// keyValueRank 0: none of it; queryRank 0: queries straight from the residual.
    std::int64_t queryRank = 0;
    std::int64_t keyValueRank = 0;
    std::int64_t latentRotaryDim = 0;
    std::int64_t valueHeadDim = 0; ///< 0: headDim
    bool outputGate
        = false; ///< what heads make of the values is multiplied by logistic(x W), W of the size of the output product
    bool keysAsValues = false; ///< values are the keys, before those are normalised or turned: no product of their own
    /// The output product is one of each group of heads down to this rank, and one from all groups' (DeepSeek-V4); 0: one product.
    std::int64_t outputRank = 0;
    std::int64_t outputGroups = 0;
    /// Besides the window, queries see one key for so many tokens, made by two products (at ratios of overlap 2, of twice the width); 0: none of it.
    std::int64_t compression = 0;
    std::int64_t compressionOverlap = 1;
    std::int64_t indexHeads
        = 0; ///< 0: queries see all compressed keys; else indexKeys of them, which an index of so many heads selects
    std::int64_t indexHeadDim = 0;
    std::int64_t indexKeys = 0;
    MixerKind mixer = MixerKind::Attention;
    /// Of a recurrent mixer: heads of values, heads of keys and queries (which divide them), size of both.
    std::int64_t stateHeads = 0;
    std::int64_t stateKeyHeads = 0;
    std::int64_t stateKeyDim = 0;
    std::int64_t stateValueDim = 0;
    std::int64_t convolution
        = 0; ///< tokens that the short convolution over keys, queries and values sees, itself included; 0: none
    std::int64_t decayRank
        = 0; ///< 0: a head's state decays as one; else each key dimension by itself, told by two products of this rank
    std::int64_t gateRank = 0; ///< the gate of the output is made by two products of this rank; 0: by one
    std::int64_t expertHidden = 0; ///< routed experts read and give latents of this width (LatentMoE); 0: hidden
    bool ffnBesideExperts = false; ///< layers with experts have the dense block as well (Gemma 4)
    std::int64_t residualStreams
        = 0; ///< hyper-connections mix so many copies of the residual (arXiv:2409.19606); 0: one, as it is
    /// Where layers differ in more than windows and leading dense layers: each kind as a model of its layers alone (`layers`: how many there are; its
    /// denseLayers, slidingWindowLayers and kinds are empty; ffn and experts 0: it has no feed-forward block), and the kind of each layer. The sizes
    /// above are then those of the first kind with attention.
    std::vector<TransformerConfig> kinds = {};
    std::vector<std::int64_t> pattern = {}; ///< indices of `kinds`; as many as layers, or none

    bool hasFeedForward() const { return ffn > 0 || experts > 0; }
    bool isRecurrent() const { return mixer == MixerKind::DeltaRule || mixer == MixerKind::StateSpace; }
    friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

/// Of a size of a transformer, except where its own rule has a smaller limit.
inline constexpr std::int64_t kLargestTransformerSize = std::int64_t{1} << 40;

/// Numbers of elements.
struct ParameterCounts {
    std::int64_t embedding = 0; ///< token table, and position table where learned
    std::int64_t head = 0; ///< 0 where tied
    std::int64_t attentionPerLayer = 0; ///< these four are 0 where layers are of several kinds
    std::int64_t ffnPerLayer = 0; ///< of a layer without experts
    std::int64_t expertsPerLayer = 0; ///< router, routed and shared experts of a layer with experts
    std::int64_t normsPerLayer = 0;
    std::int64_t finalNorm = 0;
    std::int64_t total = 0;
    std::int64_t active = 0; ///< that one token passes: expertsPerToken of the routed experts
    std::int64_t matrices
        = 0; ///< of the total, in the token table, the head and the matrices: no norms, biases or learned positions
    std::int64_t activeMatrices = 0; ///< the same of `active`
};
/// Everything that is wrong with the sizes; empty when they make a model. Places have the paths of TransformerConfig's members.
/// Problems: MW1352 a size out of range (sizes are 1 to 2^40, layers to 4,096, counts that may be absent from 0; at most 2^53 parameters), MW1353 sizes
/// that do not go together.
Problems transformerProblems(const TransformerConfig& config);

/// How many dims of a head rotary positions turn: of latent attention, latentRotaryDim. Precondition: headDim and rotaryFraction are in range.
std::int64_t rotaryDims(const TransformerConfig& config);

/// Layers that are alike, each group as a model of them alone (see TransformerConfig::kinds): dense ones and those with experts, or the kinds.
/// A window that only some have is all of theirs here. Precondition of this, parameterCounts and modelFlopsPerToken: no transformerProblems.
std::vector<TransformerConfig> layerGroups(const TransformerConfig& config);

ParameterCounts parameterCounts(const TransformerConfig& config);

/// How a source counts attention's products.
enum class AttentionCount : std::uint8_t {
    Full, ///< every query meets every key: 12 L a hd s a token, forward and backward
    Causal, ///< half of it; with a window of w keys, the less of w and half the sequence
    None, ///< 6 x parameters only
};
/// Model FLOPs of one token, forward and backward, without recomputation: 6 x (active parameters in products, the head among them,
/// without look-ups in tables) + attention by `count` at this length of sequence. A layer with a window has no more keys than it. A recurrent layer's
/// token writes its state and reads it (with the delta rule twice): 2 x keys x values each time, in every count but None.
/// Source: Narayanan et al. 2021 (arXiv:2104.04473, section 3.4), Chowdhery et al. 2022 (arXiv:2204.02311, appendix B).
/// Precondition: sequence >= 1.
double modelFlopsPerToken(const TransformerConfig& config, std::int64_t sequence, AttentionCount count);

/// The `config.json` of a Hugging Face model. Of the families gpt2, gpt_neox, llama, mistral, qwen2, qwen3, gemma, gemma2, mixtral, deepseek_v2 and
/// deepseek_v3 (without the layers that predict further tokens), fields that it leaves out (or that are null) have that library's defaults. Any
/// other family is read by its fields: see `readByFields`. Of models with several towers the language model is read. Sizes only: scaled rotary
/// positions, dropout and initialisers are not read. `notes`, if any, gets what is left out, `ignored` the numbers and set flags whose meaning is not known. All problems are reported.
/// Problems: MW1350 no JSON (NaN and Infinity are accepted where no number is read), MW1351 layers of an unknown kind, MW1352 a field missing, of the wrong
/// type or out of range, MW1353 sizes that do not go together.
Result<TransformerConfig> readTransformerConfig(std::string_view json, std::string_view file,
    std::vector<std::string>* notes = nullptr, std::vector<std::string>* ignored = nullptr);

} // namespace meshwright
