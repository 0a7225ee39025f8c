// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/training_program.h"
#include "core/models/transformer.h"
#include "core/program/builder.h"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace meshwright {

/// How TransformerModel::offloaded names a layer's input; no value in the layer has that name.
inline constexpr const char* kLayerInput = "input";

/// Adds the ops of a transformer's layers to a function, and the small parts that the rest of the model is made of as well.
/// Activations are [batch, sequence, ..] of the activation type; norms, softmax and sums of products are of `wide`.
class TransformerBlocks {
public:
    using Dims = std::vector<std::size_t>;
    using Parameters = std::unordered_map<std::string, ValueId>; ///< of one layer, by name without its prefix

    /// Where an op stands, for recomputation.
    enum class Region : std::uint8_t { Outside, Layer, AttentionCore, States, Loss, LossChunk };

    /// What all layers read.
    struct Shared {
        ValueId cosine; ///< [sequence, half of the rotated dims]; invalid without rotary positions
        ValueId sine;
    };

    /// All of them outlive it.
    TransformerBlocks(Builder& builder, const TransformerModel& model, const TrainingOptions& options);

    DType wide() const { return m_wide; }
    DType activation() const { return m_activation; }

    ValueId times(ValueId a, ValueId b) { return m_builder.binary(OpKind::Multiply, a, b); }
    ValueId plus(ValueId a, ValueId b) { return m_builder.binary(OpKind::Add, a, b); }
    const Shape& shape(ValueId value) const { return m_builder.type(value).shape; }
    ValueId scaled(ValueId value, double factor);
    /// `value` along the dimensions `dims` of something of the shape of `like`.
    ValueId along(ValueId value, ValueId like, Dims dims);
    ValueId named(ValueId value, const std::string& name);
    /// Notes the value's op where the model keeps the value of this name.
    void noteKept(ValueId value, const std::string& name);
    ValueId product(ValueId lhs, ValueId rhs, DotAttributes attributes);
    /// A product of activations or of an activation and a weight, in the wide type.
    ValueId wideDot(ValueId lhs, ValueId rhs, Dims lhsContracting, Dims rhsContracting, Dims lhsBatch = {}, Dims rhsBatch = {});
    /// The same in the type of activations, in which partial sums are added up over devices too, as frameworks do.
    ValueId dot(ValueId lhs, ValueId rhs, Dims lhsContracting, Dims rhsContracting, Dims lhsBatch = {}, Dims rhsBatch = {});
    /// Such a product with a weight: in 8 bits where the options say so.
    ValueId projection(ValueId x, ValueId weight, const Dims& contracting, const Dims& weightContracting, Dims batch = {},
        Dims weightBatch = {});
    /// Over the last dimension, with a scale and perhaps a bias.
    ValueId norm(ValueId value, NormKind kind, ValueId scale, ValueId bias);
    ValueId softcapped(ValueId value, double cap);
    static ValueId sliced(Builder& builder, ValueId value, std::size_t dim, std::int64_t start, std::int64_t limit);
    /// [batch, sequence, n] -> [batch, n].
    ValueId lastPosition(Builder& builder, ValueId value) const;
    /// Of the tokens in the order in which the model computes them: i32[sequence].
    ValueId positions(Builder& builder) const;
    /// The tokens, or what belongs to them along `dim`, in that order.
    ValueId inOrder(Builder& builder, ValueId value, std::size_t dim) const;
    /// Layers added from now on are of this kind (see `layerGroups`).
    void become(const TransformerConfig& kind) { m_c = kind; }
    Shared sharedParts();
    /// `masks`: of its two blocks.
    ValueId layer(
        ValueId x, const Parameters& p, const Shared& shared, ValueId window, const Masks& masks, const std::string& name);

    Region regionOf(OpId op) const;
    /// True for the op that makes a value which the model keeps by name.
    bool isKept(OpId op) const { return m_kept.contains(op); }
    bool isOffloaded(OpId op) const { return m_offloaded.contains(op); }
    /// True for the op that adds a layer's last block to its stream.
    bool endsLayer(OpId op) const { return m_ends.contains(op); }

    /// With "input" among TransformerModel::offloaded: what an op makes, or a loop begins its iterations with, is a layer's input.
    void offloadInput(OpId op);
    /// Ops added from now on stand there.
    void enter(Region region);

private:
    /// Queries [batch, sequence, heads, dims], ready for the product with keys [.., key and value heads, dims], and values.
    struct Heads {
        ValueId queries;
        ValueId keys;
        ValueId values;
    };

    Heads heads(ValueId x, const Parameters& p, const Shared& shared, const std::string& act);
    /// Made from latents (DeepSeek-V2, arXiv:2405.04434, sections 2.1.2 and 2.1.3): a part of each head's query and key, and behind it one that
    /// carries positions, which is the same of all heads' keys.
    Heads latentHeads(ValueId x, const Parameters& p, const Shared& shared, const std::string& act);
    /// Adds a bias along the last dimensions.
    ValueId biased(ValueId value, const Parameters& parameters, const std::string& name);
    ValueId blockNorm(ValueId value, const Parameters& parameters, const std::string& name);
    ValueId activated(ValueId x);
    /// Turns pairs of dims of [batch, sequence, heads, head size]: dim i with dim i + half (as the Hugging Face library does).
    ValueId rotated(ValueId value, const Shared& shared);
    /// Which keys each query sees: [sequence, sequence].
    ValueId visible(ValueId window);
    ValueId attention(ValueId x, const Parameters& p, const Shared& shared, ValueId window, const std::string& act);
    /// What heads make of the values: [batch, sequence, key and value heads, heads of each, head size], of queries of this form.
    ValueId fusedAttention(ValueId q, ValueId keys, ValueId values, ValueId window, double scale);
    ValueId plainAttention(ValueId q, ValueId keys, ValueId values, ValueId window); ///< of scaled queries
    /// A recurrence in chunks (see recurrent_blocks.cpp).
    ValueId recurrence(ValueId x, const Parameters& p, const std::string& act);
    struct Chunked;
    /// A projection, its short convolution and silu: [batch, sequence, heads, size].
    ValueId convolved(ValueId x, const Parameters& p, const std::string& name, const std::string& act);
    /// [batch, sequence, ..] -> [chunks, batch, tokens of a chunk, ..]
    ValueId inChunks(ValueId value);
    ValueId softplus(ValueId value);
    /// Of unit length along the last dimension.
    ValueId normalised(ValueId value);
    /// 1 / (1 + lower), of matrices in the last two dimensions that are 0 on and above the diagonal.
    ValueId inverseOfOnePlus(ValueId lower);
    /// True below the diagonal of the last two dimensions, and on it where `isWithDiagonal`.
    ValueId isBelow(ValueId like, bool isWithDiagonal);
    /// In the wide type throughout.
    ValueId exactDot(ValueId lhs, ValueId rhs, Dims lhsContracting, Dims rhsContracting, Dims lhsBatch, Dims rhsBatch);
    /// What a token's values become behind the states: [chunks, batch, key heads, heads of each, tokens, values].
    ValueId throughStates(const Chunked& c);
    std::int64_t chunkTokens() const;
    DType productType() const; ///< to which operands of products are rounded
    /// `act`: what the layer's activations are called by; empty: they have no names.
    ValueId ffn(ValueId x, const Parameters& p, const std::string& block, const std::string& act);
    /// What `into` makes of the input by the weights "up" and, gated, "gate", behind the activation.
    ValueId ffnHidden(const std::function<ValueId(const std::string&)>& into, const std::string& act);
    /// Where tokens go, all [batch, sequence, experts].
    struct Routes {
        ValueId weights; ///< what part of a token's result comes from each expert; zero for those that it does not pass
        ValueId chosen; ///< true for those that it passes
        std::vector<ValueId> picks; ///< true for the first of them, the second, ..
    };
    Routes routes(ValueId x, const Parameters& p);
    ValueId experts(ValueId x, const Parameters& p, const std::string& act);
    /// Every expert computes every token.
    ValueId everyExpert(ValueId x, const Parameters& p, ValueId weights, const std::string& act);
    /// Each expert computes the tokens that are sent to it, the first of each row, up to its capacity. What is sent and comes back is there twice, rows
    /// first and experts first: where those lie on one axis of the mesh, layouts of both make all-to-alls.
    ValueId dispatched(ValueId x, const Parameters& p, const Routes& routes, const std::string& act);
    /// Which of its expert's tokens in [batch, groups, tokens, experts] each one is, from 1.
    ValueId countAlongRow(ValueId chosen);
    /// Adds a bias [experts, width] to [experts, batch, groups, capacity, width].
    ValueId expertBiased(ValueId value, const Parameters& p, const std::string& name);
    /// What a block passes on.
    ValueId passedOn(ValueId made, const Masks& masks, std::int64_t block);

    Builder& m_builder;
    const TransformerModel& m_model;
    TransformerConfig m_c; ///< of the layers that are added
    const TrainingOptions& m_options;
    DType m_activation;
    DType m_wide; ///< of products, norms, softmax and loss
    std::vector<std::pair<std::size_t, Region>> m_regions; ///< the first op of each
    std::set<OpId> m_kept;
    std::set<OpId> m_ends; ///< of layers
    std::set<OpId> m_offloaded;
    std::map<std::pair<ValueId, Dims>, ValueId> m_eightBits; ///< what was rounded, and along which dimensions its products sum
};

} // namespace meshwright
