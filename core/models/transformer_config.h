// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <cstdint>
#include <string>
#include <string_view>

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
enum class TransformerActivation : std::uint8_t { Gelu, Silu, Relu };

/// A decoder-only transformer. Sizes count elements; those of a layer are equal in all layers, but for experts (see denseLayers).
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

    friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

/// Numbers of elements.
struct ParameterCounts {
    std::int64_t embedding = 0; ///< token table, and position table where learned
    std::int64_t head = 0; ///< 0 where tied
    std::int64_t attentionPerLayer = 0;
    std::int64_t ffnPerLayer = 0; ///< of a layer without experts
    std::int64_t expertsPerLayer = 0; ///< router, routed and shared experts of a layer with experts
    std::int64_t normsPerLayer = 0;
    std::int64_t finalNorm = 0;
    std::int64_t total = 0;
    std::int64_t active = 0; ///< that one token passes: expertsPerToken of the routed experts
};
ParameterCounts parameterCounts(const TransformerConfig& config);

/// How a source counts attention's products.
enum class AttentionCount : std::uint8_t {
    Full, ///< every query meets every key: 12 L a hd s a token, forward and backward
    Causal, ///< half of it
    None, ///< 6 x parameters only
};
/// Model FLOPs of one token, forward and backward, without recomputation: 6 x (active parameters in products, the head among them,
/// without look-ups in tables) + attention by `count` at this length of sequence.
double modelFlopsPerToken(const TransformerConfig& config, std::int64_t sequence, AttentionCount count);

/// The `config.json` of a Hugging Face model: model_type gpt2, gpt_neox, llama, mistral, qwen2, qwen3, gemma, gemma2, mixtral. Fields that it
/// leaves out have that library's defaults.
/// Problems: MW1350 no JSON, MW1351 a model_type that is not known, MW1352 a field missing, of the wrong type or out of range.
Result<TransformerConfig> readTransformerConfig(std::string_view json, std::string_view file);

} // namespace meshwright
