// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/transformer.h"

#include "core/models/training_program.h"
#include "core/program/builder.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_map>

namespace meshwright {

namespace {

using Dims = std::vector<std::size_t>;
using Kind = ModelArray::Kind;

/// Layers that are alike.
struct LayerRun {
    std::string prefix; ///< "layers", "dense_layers"
    std::int64_t first = 0; ///< of the model's layers
    std::int64_t count = 0;
    bool hasExperts = false;
};

std::vector<LayerRun> runsOf(const TransformerConfig& c)
{
    if (c.experts == 0)
        return {{"layers", 0, c.layers, false}};
    std::vector<LayerRun> runs;
    if (c.denseLayers > 0)
        runs.push_back({"dense_layers", 0, c.denseLayers, false});
    if (c.layers > c.denseLayers)
        runs.push_back({"layers", c.denseLayers, c.layers - c.denseLayers, true});
    return runs;
}

/// The arrays of one layer, without the dimension of layers.
class LayerArrays {
public:
    explicit LayerArrays(const TransformerConfig& c)
        : m_c(c)
    {
    }

    std::vector<ModelArray> of(bool hasExperts)
    {
        const Dim hidden{m_c.hidden, "hidden"};
        const Dim heads{m_c.heads, "heads"};
        const Dim keyHeads{m_c.keyValueHeads, "key and value heads"};
        const Dim head{m_c.headDim, "head size"};
        const Dim values{m_c.valueHeadDim > 0 ? m_c.valueHeadDim : m_c.headDim, "head size"};
        addNorm("attention.norm");
        if (m_c.keyValueRank > 0) {
            addLatents(hidden, heads, head, values);
        } else {
            addWeight("attention.q", {hidden, heads, head}, m_c.hidden, {heads, head}, m_c.attentionBias);
            addWeight("attention.k", {hidden, keyHeads, head}, m_c.hidden, {keyHeads, head}, m_c.attentionBias);
            addWeight("attention.v", {hidden, keyHeads, values}, m_c.hidden, {keyHeads, values}, m_c.attentionBias);
        }
        if (m_c.queryKeyNorm) {
            add("attention.q_norm.scale", {head}, Kind::Scale);
            add("attention.k_norm.scale", {head}, Kind::Scale);
        }
        addWeight("attention.o", {heads, values, hidden}, heads.size * values.size, {hidden}, m_c.outputBias);
        if (m_c.postNorms)
            addNorm("attention.post_norm");
        addNorm("ffn.norm");
        if (hasExperts)
            addExperts();
        else
            addFfn("ffn", {m_c.ffn, "ffn"});
        if (m_c.postNorms)
            addNorm("ffn.post_norm");
        return std::move(m_arrays);
    }

private:
    struct Dim {
        std::int64_t size;
        const char* meaning;
    };

    void add(const std::string& name, const std::vector<Dim>& dims, Kind kind, std::int64_t fanIn = 1)
    {
        ModelArray array{name, {}, {}, fanIn, kind};
        for (const Dim& dim : dims) {
            array.shape.push_back(dim.size);
            array.meaning.emplace_back(dim.meaning);
        }
        m_arrays.push_back(std::move(array));
    }

    void addWeight(
        const std::string& name, const std::vector<Dim>& dims, std::int64_t fanIn, const std::vector<Dim>& outputs, bool hasBias)
    {
        add(name + ".w", dims, Kind::Weight, fanIn);
        if (hasBias)
            add(name + ".b", outputs, Kind::Bias, fanIn);
    }

    void addNorm(const std::string& name)
    {
        add(name + ".scale", {{m_c.hidden, "hidden"}}, Kind::Scale);
        if (m_c.norm == NormKind::LayerNorm)
            add(name + ".bias", {{m_c.hidden, "hidden"}}, Kind::Bias);
    }

    /// Products down to the latents, their norms, and products up to the heads. The part of a key that carries positions is one for all heads.
    void addLatents(Dim hidden, Dim heads, Dim head, Dim values)
    {
        const Dim queryRank{m_c.queryRank, "query rank"};
        const Dim rank{m_c.keyValueRank, "key and value rank"};
        const Dim queries{m_c.headDim + m_c.latentRotaryDim, "head size"};
        const Dim source = m_c.queryRank > 0 ? queryRank : hidden;
        if (m_c.queryRank > 0) {
            addWeight("attention.q_down", {hidden, queryRank}, m_c.hidden, {}, false);
            add("attention.q_norm.scale", {queryRank}, Kind::Scale);
        }
        addWeight("attention.q", {source, heads, queries}, source.size, {}, false);
        addWeight(
            "attention.kv_down", {hidden, {m_c.keyValueRank + m_c.latentRotaryDim, "key and value rank"}}, m_c.hidden, {}, false);
        add("attention.kv_norm.scale", {rank}, Kind::Scale);
        addWeight("attention.k", {rank, heads, head}, m_c.keyValueRank, {}, false);
        addWeight("attention.v", {rank, heads, values}, m_c.keyValueRank, {}, false);
    }

    void addFfn(const std::string& name, Dim width)
    {
        const Dim hidden{m_c.hidden, "hidden"};
        addWeight(name + ".up", {hidden, width}, m_c.hidden, {width}, m_c.ffnBias);
        if (m_c.gatedFfn)
            addWeight(name + ".gate", {hidden, width}, m_c.hidden, {width}, m_c.ffnBias);
        addWeight(name + ".down", {width, hidden}, width.size, {hidden}, m_c.ffnBias);
    }

    void addExperts()
    {
        const Dim hidden{m_c.hidden, "hidden"};
        const Dim experts{m_c.experts, "experts"};
        const Dim width{m_c.expertFfn, "ffn of an expert"};
        add("experts.router.w", {hidden, experts}, Kind::Weight, m_c.hidden);
        addWeight("experts.up", {experts, hidden, width}, m_c.hidden, {experts, width}, m_c.ffnBias);
        if (m_c.gatedFfn)
            addWeight("experts.gate", {experts, hidden, width}, m_c.hidden, {experts, width}, m_c.ffnBias);
        addWeight("experts.down", {experts, width, hidden}, m_c.expertFfn, {experts, hidden}, m_c.ffnBias);
        if (m_c.sharedExperts > 0)
            addFfn("experts.shared", {m_c.sharedExperts * m_c.expertFfn, "ffn of the shared experts"});
    }

    const TransformerConfig& m_c;
    std::vector<ModelArray> m_arrays;
};

/// "layers" and 3 -> "layers.3"; of a loop, "layers".
std::string layerName(const TransformerModel& model, const LayerRun& run, std::int64_t index)
{
    return model.unrolled ? fmt::format("{}.{}", run.prefix, index) : run.prefix;
}

/// True for the layers with a window: `windowed` of `layers`, spread evenly, the first among them.
bool isWindowed(std::int64_t layer, std::int64_t windowed, std::int64_t layers)
{
    return ((layer + 1) * windowed + layers - 1) / layers > (layer * windowed + layers - 1) / layers;
}

class TransformerTraining {
public:
    TransformerTraining(const TransformerModel& model, const TrainingOptions& options)
        : m_model(model)
        , m_c(model.config)
        , m_options(options)
        , m_activation(options.activationType)
        , m_wide(byteSize(options.parameterType) < byteSize(DType::F32) ? DType::F32 : options.parameterType)
        , m_builder(m_loss)
    {
    }

    Result<Program> build()
    {
        if (Problems problems = constraintProblems(); !problems.empty())
            return problems;
        TrainedModel trained;
        for (const ModelArray& array : transformerParameters(m_model))
            trained.parameters.push_back({array.name, {m_options.parameterType, array.shape}, array.fanIn, initializerOf(array)});
        trained.x = {DType::S32, {m_options.batch, m_model.sequence}};
        trained.y = everyToken() ? trained.x : TensorType{DType::S32, {m_options.batch}};
        trained.lossType = m_wide;
        if (m_options.dropout > 0.0)
            trained.masks = 1 + 2 * m_c.layers;
        m_drops = trained.masks > 0;
        addLoss(trained);
        trained.loss = std::move(m_loss);
        if (m_drops)
            trained.evaluated = TransformerTraining(m_model, m_options).plainLoss(trained);
        trained.accuracy = [this](Builder& builder, ValueId logits, ValueId y) { return accuracy(builder, logits, y); };
        if (everyToken())
            trained.shown = [this](Builder& builder, ValueId logits) { return lastPosition(builder, logits); };
        if (m_model.recompute != Recompute::None)
            trained.again = [this, &trained](OpId op) { return isAgain(trained.loss, op); };
        return trainingProgram(trained, m_options);
    }

private:
    /// "loss" without dropout.
    Function plainLoss(const TrainedModel& trained)
    {
        addLoss(trained);
        return std::move(m_loss);
    }

    /// Where an op stands, for recomputation.
    enum class Region : std::uint8_t { Outside, Layer, AttentionCore };

    using Parameters = std::unordered_map<std::string, ValueId>; ///< of one layer, by name without its prefix

    /// What all layers read.
    struct Shared {
        ValueId cosine; ///< [sequence, half of the rotated dims]; invalid without rotary positions
        ValueId sine;
        ValueId
            masks; ///< keys of dropout's masks [masks, 2]: of the embedding, then of each layer's attention and of its other block
    };

    bool everyToken() const { return m_model.predict == Prediction::EveryToken; }

    Initializer initializerOf(const ModelArray& array) const
    {
        if (array.kind == Kind::Scale)
            return Initializer::Ones;
        return array.kind == Kind::Bias ? m_options.biasInit : m_options.weightInit;
    }

    Problems constraintProblems() const
    {
        const std::vector<ModelArray> activations = transformerActivations(m_model, m_options.batch);
        std::vector<std::string> names;
        for (const ModelArray& array : activations)
            names.push_back(array.name);
        Problems problems;
        for (const auto& [name, constraint] : m_options.constraints) {
            const auto found = std::find(names.begin(), names.end(), name);
            const Place place{.path = constraint.origin};
            if (found == names.end()) {
                problems.push_back(
                    {"MW1312", fmt::format("there is no activation \"{}\" in the model", name), suggestion(name, names), place});
                continue;
            }
            const std::size_t rank = activations[static_cast<std::size_t>(found - names.begin())].shape.size();
            if (constraint.sharding.dims.size() != rank)
                problems.push_back({"MW1308",
                    fmt::format(
                        "the sharding of {}: {} dimensions for a value of rank {}", name, constraint.sharding.dims.size(), rank),
                    {}, place});
        }
        return problems;
    }

    // ---- recomputation

    void enter(Region region) { m_regions.emplace_back(m_loss.ops.size(), region); }

    Region regionOf(OpId op) const
    {
        const auto after = std::upper_bound(
            m_regions.begin(), m_regions.end(), op.at(), [](std::size_t at, const auto& entry) { return at < entry.first; });
        return after == m_regions.begin() ? Region::Outside : std::prev(after)->second;
    }

    bool isAgain(const Function& loss, OpId id) const
    {
        const Op& op = loss[id];
        const Region region = regionOf(id);
        if (region == Region::Outside)
            return false;
        switch (m_model.recompute) {
        case Recompute::None:
            return false;
        case Recompute::Selective:
            return region == Region::AttentionCore;
        case Recompute::Full:
            return true;
        case Recompute::Dots:
            return op.kind != OpKind::DotGeneral;
        case Recompute::DotsWithoutBatch:
            return op.kind != OpKind::DotGeneral || !op.as<DotAttributes>().lhsBatch.empty();
        }
        return false;
    }

    // ---- small parts

    ValueId times(ValueId a, ValueId b) { return m_builder.binary(OpKind::Multiply, a, b); }
    ValueId plus(ValueId a, ValueId b) { return m_builder.binary(OpKind::Add, a, b); }
    ValueId scaled(ValueId value, double factor)
    {
        return times(value, m_builder.splat(TensorType(m_builder.type(value)), factor));
    }
    const Shape& shape(ValueId value) const { return m_builder.type(value).shape; }

    /// `value` along the dimensions `dims` of something of the shape of `like`.
    ValueId along(ValueId value, ValueId like, Dims dims)
    {
        return m_builder.broadcast(value, Shape(shape(like)), std::move(dims));
    }

    /// Adds a bias along the last dimensions.
    ValueId biased(ValueId value, const Parameters& parameters, const std::string& name)
    {
        const auto bias = parameters.find(name);
        if (bias == parameters.end())
            return value;
        Dims dims(shape(bias->second).size());
        std::iota(dims.begin(), dims.end(), shape(value).size() - dims.size());
        return plus(value, along(m_builder.convert(bias->second, m_builder.type(value).dtype), value, std::move(dims)));
    }

    ValueId named(ValueId value, const std::string& name)
    {
        if (const auto found = m_options.constraints.find(name); found != m_options.constraints.end())
            value = m_builder.constrain(value, found->second.sharding, found->second.origin);
        return m_builder.named(value, name);
    }

    /// A product of activations or of an activation and a weight, in the wide type.
    ValueId wideDot(ValueId lhs, ValueId rhs, Dims lhsContracting, Dims rhsContracting, Dims lhsBatch = {}, Dims rhsBatch = {})
    {
        DotAttributes attributes;
        attributes.lhsBatch = std::move(lhsBatch);
        attributes.rhsBatch = std::move(rhsBatch);
        attributes.lhsContracting = std::move(lhsContracting);
        attributes.rhsContracting = std::move(rhsContracting);
        attributes.resultType = m_wide;
        attributes.operandType = byteSize(m_activation) < byteSize(m_options.matmulType) ? m_activation : m_options.matmulType;
        return m_builder.dot(m_builder.convert(lhs, m_activation), m_builder.convert(rhs, m_activation), std::move(attributes));
    }
    ValueId dot(ValueId lhs, ValueId rhs, Dims lhsContracting, Dims rhsContracting, Dims lhsBatch = {}, Dims rhsBatch = {})
    {
        return m_builder.convert(
            wideDot(lhs, rhs, std::move(lhsContracting), std::move(rhsContracting), std::move(lhsBatch), std::move(rhsBatch)),
            m_activation);
    }

    /// Over the last dimension, with a scale and perhaps a bias.
    ValueId norm(ValueId value, NormKind kind, ValueId scale, ValueId bias)
    {
        ValueId x = m_builder.convert(value, m_wide);
        const std::size_t last = shape(x).size() - 1;
        Dims rows(last);
        std::iota(rows.begin(), rows.end(), std::size_t{0});
        const auto mean = [&](ValueId of) {
            return scaled(m_builder.reduce(ReduceKind::Sum, of, {last}), 1.0 / static_cast<double>(shape(of)[last]));
        };
        if (kind == NormKind::LayerNorm)
            x = m_builder.binary(OpKind::Subtract, x, along(mean(x), x, rows));
        const ValueId square = mean(times(x, x));
        const ValueId root
            = m_builder.unary(OpKind::Rsqrt, plus(square, m_builder.splat(TensorType(m_builder.type(square)), m_c.normEpsilon)));
        ValueId result = times(times(x, along(root, x, rows)), along(m_builder.convert(scale, m_wide), x, {last}));
        if (bias.valid())
            result = plus(result, along(m_builder.convert(bias, m_wide), x, {last}));
        return m_builder.convert(result, m_activation);
    }

    ValueId blockNorm(ValueId value, const Parameters& parameters, const std::string& name)
    {
        const auto bias = parameters.find(name + ".bias");
        return norm(value, m_c.norm, parameters.at(name + ".scale"), bias == parameters.end() ? ValueId{} : bias->second);
    }

    ValueId activated(ValueId x)
    {
        switch (m_c.activation) {
        case TransformerActivation::Relu: {
            const ValueId zero = m_builder.splat(TensorType(m_builder.type(x)), 0.0);
            return m_builder.select(m_builder.compare(CompareDirection::Greater, x, zero), x, zero);
        }
        case TransformerActivation::Silu:
            return times(x, m_builder.unary(OpKind::Logistic, x));
        case TransformerActivation::Gelu:
        case TransformerActivation::GeluTanh:
            break;
        }
        // x / 2 (1 + tanh(z)) = x / (1 + exp(-2 z)) with z = sqrt(2 / pi) (x + 0.044715 x^3)
        const ValueId cube = times(times(x, x), x);
        const ValueId z = scaled(plus(x, scaled(cube, 0.044715)), 2.0 * std::sqrt(2.0 / std::numbers::pi));
        return times(x, m_builder.unary(OpKind::Logistic, z));
    }

    ValueId softcapped(ValueId value, double cap)
    {
        return cap > 0.0 ? scaled(m_builder.unary(OpKind::Tanh, scaled(value, 1.0 / cap)), cap) : value;
    }

    static ValueId sliced(Builder& builder, ValueId value, std::size_t dim, std::int64_t start, std::int64_t limit)
    {
        const Shape whole = builder.type(value).shape;
        SliceAttributes attributes{Shape(whole.size(), 0), whole, Shape(whole.size(), 1)};
        attributes.starts[dim] = start;
        attributes.limits[dim] = limit;
        return builder.add(OpKind::Slice, {value}, std::move(attributes));
    }

    /// [batch, sequence, n] -> [batch, n].
    static ValueId lastPosition(Builder& builder, ValueId value)
    {
        const Shape whole = builder.type(value).shape;
        return builder.reshape(sliced(builder, value, 1, whole[1] - 1, whole[1]), {whole[0], whole[2]});
    }

    // ---- the model

    ValueId embedded(ValueId tokens, ValueId table)
    {
        const ValueId rows = m_builder.convert(table, m_activation);
        if (m_model.lookup == TokenLookup::Product) {
            const Shape spread = {m_options.batch, m_model.sequence, m_c.vocabulary};
            const ValueId isToken = m_builder.compare(
                CompareDirection::Equal, m_builder.broadcast(tokens, spread, {0, 1}), m_builder.iota({DType::S32, spread}, 2));
            return dot(m_builder.convert(isToken, m_activation), rows, {2}, {0});
        }
        GatherAttributes attributes;
        attributes.dims.window = {2};
        attributes.dims.collapsed = {0};
        attributes.dims.indexMap = {0};
        attributes.dims.indexVectorDim = 2;
        attributes.sliceSizes = {1, m_c.hidden};
        return m_builder.add(OpKind::Gather, {rows, tokens}, std::move(attributes));
    }

    Shared sharedParts()
    {
        Shared shared;
        if (m_c.position != PositionKind::Rotary || rotaryDims(m_c) == 0)
            return shared;
        const std::int64_t rotated = rotaryDims(m_c);
        const TensorType type{m_wide, {m_model.sequence, rotated / 2}};
        const double step = -2.0 * std::log(m_c.rotaryBase) / static_cast<double>(rotated);
        const ValueId frequency = m_builder.unary(OpKind::Exp, scaled(m_builder.iota(type, 1), step));
        const ValueId angle = times(m_builder.iota(type, 0), frequency);
        shared.cosine = m_builder.unary(OpKind::Cosine, angle);
        shared.sine = m_builder.unary(OpKind::Sine, angle);
        return shared;
    }

    /// Turns pairs of dims of [batch, sequence, heads, head size]: dim i with dim i + half (as the Hugging Face library does).
    ValueId rotated(ValueId value, const Shared& shared)
    {
        if (!shared.cosine.valid())
            return value;
        const ValueId x = m_builder.convert(value, m_wide);
        const std::int64_t all = rotaryDims(m_c);
        const ValueId first = sliced(m_builder, x, 3, 0, all / 2);
        const ValueId second = sliced(m_builder, x, 3, all / 2, all);
        const ValueId cosine = along(shared.cosine, first, {1, 3});
        const ValueId sine = along(shared.sine, first, {1, 3});
        std::vector<ValueId> parts = {m_builder.binary(OpKind::Subtract, times(first, cosine), times(second, sine)),
            plus(times(second, cosine), times(first, sine))};
        if (all < shape(x)[3])
            parts.push_back(sliced(m_builder, x, 3, all, shape(x)[3]));
        return m_builder.convert(m_builder.add(OpKind::Concatenate, parts, ConcatenateAttributes{3}), m_activation);
    }

    /// Which keys each query sees: [sequence, sequence].
    ValueId visible(ValueId window)
    {
        const TensorType type{DType::S32, {m_model.sequence, m_model.sequence}};
        const ValueId query = m_builder.iota(type, 0);
        const ValueId key = m_builder.iota(type, 1);
        const ValueId before = m_builder.compare(CompareDirection::GreaterEqual, query, key);
        if (!window.valid())
            return before;
        const ValueId distance = m_builder.binary(OpKind::Subtract, query, key);
        const ValueId near = m_builder.compare(CompareDirection::Less, distance, m_builder.broadcastScalar(window, type.shape));
        return m_builder.binary(OpKind::And, before, near);
    }

    ValueId attention(ValueId x, const Parameters& p, const Shared& shared, ValueId window, const std::string& act)
    {
        const std::int64_t shares = m_c.heads / m_c.keyValueHeads;
        const auto projected = [&](const std::string& name) {
            return named(biased(dot(x, p.at(name + ".w"), {2}, {0}), p, name + ".b"), act + "." + name);
        };
        ValueId q = projected("attention.q"); // [b, s, heads, d]
        ValueId k = projected("attention.k"); // [b, t, groups, d]
        const ValueId v = projected("attention.v");
        if (m_c.queryKeyNorm) {
            q = norm(q, NormKind::RmsNorm, p.at("attention.q_norm.scale"), {});
            k = norm(k, NormKind::RmsNorm, p.at("attention.k_norm.scale"), {});
        }
        q = rotated(q, shared);
        k = rotated(k, shared);
        const double scale = m_c.queryScale > 0.0 ? m_c.queryScale : static_cast<double>(m_c.headDim);
        q = scaled(q, 1.0 / std::sqrt(scale));
        q = m_builder.reshape(q, {m_options.batch, m_model.sequence, m_c.keyValueHeads, shares, m_c.headDim});

        enter(Region::AttentionCore);
        ValueId scores = softcapped(wideDot(q, k, {4}, {3}, {0, 2}, {0, 2}), m_c.attentionSoftcap); // [b, groups, s, shares, t]
        const ValueId hidden = m_builder.splat(TensorType(m_builder.type(scores)), -std::numeric_limits<double>::infinity());
        scores = m_builder.select(along(visible(window), scores, {2, 4}), scores, hidden);
        const ValueId shift = m_builder.unary(OpKind::Floor, m_builder.reduce(ReduceKind::Max, scores, {4}));
        const ValueId weights
            = m_builder.unary(OpKind::Exp, m_builder.binary(OpKind::Subtract, scores, along(shift, scores, {0, 1, 2, 3})));
        const ValueId sum = m_builder.reduce(ReduceKind::Sum, weights, {4});
        const ValueId probabilities
            = m_builder.convert(m_builder.binary(OpKind::Divide, weights, along(sum, weights, {0, 1, 2, 3})), m_activation);
        enter(Region::Layer);

        const ValueId mixed = dot(probabilities, v, {4}, {1}, {0, 1}, {0, 2}); // [b, groups, s, shares, d]
        const std::int64_t valueDim = shape(mixed)[4];
        const ValueId out = m_builder.reshape(p.at("attention.o.w"), {m_c.keyValueHeads, shares, valueDim, m_c.hidden});
        return biased(dot(mixed, out, {1, 3, 4}, {0, 1, 2}), p, "attention.o.b");
    }

    ValueId ffn(ValueId x, const Parameters& p, const std::string& block, const std::string& hiddenName)
    {
        ValueId hidden = biased(dot(x, p.at(block + ".up.w"), {2}, {0}), p, block + ".up.b");
        if (m_c.gatedFfn)
            hidden = times(activated(biased(dot(x, p.at(block + ".gate.w"), {2}, {0}), p, block + ".gate.b")), hidden);
        else
            hidden = activated(hidden);
        if (!hiddenName.empty())
            hidden = named(hidden, hiddenName);
        return biased(dot(hidden, p.at(block + ".down.w"), {2}, {0}), p, block + ".down.b");
    }

    /// What part of each token's result comes from each expert: [batch, sequence, experts], zero for those that it does not pass.
    ValueId gates(ValueId x, const Parameters& p, ValueId& chosen)
    {
        const ValueId logits = wideDot(x, p.at("experts.router.w"), {2}, {0});
        const ValueId probabilities = m_builder.unary(OpKind::Exp, logSoftmax(m_builder, logits));
        const TensorType type = m_builder.type(probabilities);
        const ValueId none = m_builder.splat(TensorType(type), -1.0);
        ValueId left = probabilities;
        for (std::int64_t i = 0; i < m_c.expertsPerToken; ++i) {
            const ValueId best = along(m_builder.reduce(ReduceKind::Max, left, {2}), left, {0, 1});
            left = m_builder.select(m_builder.compare(CompareDirection::Equal, left, best), none, left);
        }
        chosen = m_builder.compare(CompareDirection::Less, left, m_builder.splat(TensorType(type), 0.0));
        const ValueId kept = m_builder.select(chosen, probabilities, m_builder.splat(TensorType(type), 0.0));
        return m_builder.binary(OpKind::Divide, kept, along(m_builder.reduce(ReduceKind::Sum, kept, {2}), kept, {0, 1}));
    }

    ValueId experts(ValueId x, const Parameters& p, const std::string& hiddenName)
    {
        ValueId chosen;
        const ValueId gate = gates(x, p, chosen);
        ValueId result
            = m_model.capacityFactor > 0.0 ? dispatched(x, p, gate, chosen, hiddenName) : everyExpert(x, p, gate, hiddenName);
        if (m_c.sharedExperts > 0)
            result = plus(result, ffn(x, p, "experts.shared", {}));
        return result;
    }

    /// Every expert computes every token.
    ValueId everyExpert(ValueId x, const Parameters& p, ValueId gate, const std::string& hiddenName)
    {
        const auto into = [&](const std::string& name) { // [b, s, experts, width]
            return biased(dot(x, p.at(name + ".w"), {2}, {1}), p, name + ".b");
        };
        ValueId hidden = into("experts.up");
        hidden = m_c.gatedFfn ? times(activated(into("experts.gate")), hidden) : activated(hidden);
        hidden = named(hidden, hiddenName);
        const ValueId weighted = times(hidden, along(m_builder.convert(gate, m_activation), hidden, {0, 1, 2}));
        const ValueId result = dot(weighted, p.at("experts.down.w"), {2, 3}, {0, 1});
        if (!m_c.ffnBias)
            return result;
        return plus(result, dot(gate, p.at("experts.down.b"), {2}, {0}));
    }

    /// Each expert computes the tokens that are sent to it, up to its capacity.
    ValueId dispatched(ValueId x, const Parameters& p, ValueId gate, ValueId chosen, const std::string& hiddenName)
    {
        const auto share = static_cast<double>(m_model.sequence * m_c.expertsPerToken) / static_cast<double>(m_c.experts);
        const std::int64_t capacity
            = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(share * m_model.capacityFactor)), 1, m_model.sequence);
        // Which of its expert's tokens each one is, counted along the row: a product with a triangle of ones.
        const TensorType square{DType::S32, {m_model.sequence, m_model.sequence}};
        const ValueId upTo = m_builder.convert(
            m_builder.compare(CompareDirection::LessEqual, m_builder.iota(square, 0), m_builder.iota(square, 1)), m_wide);
        DotAttributes counting;
        counting.lhsContracting = {1};
        counting.rhsContracting = {0};
        counting.resultType = counting.operandType = m_wide;
        const ValueId count
            = m_builder.dot(m_builder.convert(chosen, m_wide), upTo, std::move(counting)); // [b, experts, s], from 1
        const Shape slots = {m_options.batch, m_c.experts, m_model.sequence, capacity};
        const ValueId slot = m_builder.convert(count, DType::S32);
        const ValueId isSlot = m_builder.compare(CompareDirection::Equal, m_builder.broadcast(slot, slots, {0, 1, 2}),
            plus(m_builder.iota({DType::S32, slots}, 3), m_builder.splat({DType::S32, slots}, 1.0)));
        const ValueId taken = m_builder.binary(OpKind::And, isSlot, m_builder.broadcast(chosen, slots, {0, 2, 1}));

        const ValueId send = m_builder.convert(taken, m_activation); // [b, experts, s, capacity]
        const ValueId received = dot(send, x, {2}, {1}, {0}, {0}); // [b, experts, capacity, hidden]
        const auto into = [&](const std::string& name) { // [experts, b, capacity, width]
            return expertBiased(dot(received, p.at(name + ".w"), {3}, {1}, {1}, {0}), p, name + ".b");
        };
        ValueId hidden = into("experts.up");
        hidden = m_c.gatedFfn ? times(activated(into("experts.gate")), hidden) : activated(hidden);
        hidden = named(hidden, hiddenName);
        const ValueId made = expertBiased(dot(hidden, p.at("experts.down.w"), {3}, {1}, {0}, {0}), p, "experts.down.b");
        const ValueId back = times(m_builder.convert(taken, m_wide), m_builder.broadcast(gate, slots, {0, 2, 1}));
        return dot(back, made, {1, 3}, {0, 2}, {0}, {1});
    }

    /// Adds a bias [experts, width] to [experts, batch, capacity, width].
    ValueId expertBiased(ValueId value, const Parameters& p, const std::string& name)
    {
        const auto bias = p.find(name);
        return bias == p.end() ? value : plus(value, along(m_builder.convert(bias->second, m_activation), value, {0, 3}));
    }

    /// `keys` [2, 2]: of the masks of its two blocks; invalid: none.
    ValueId layer(ValueId x, const Parameters& p, const Shared& shared, ValueId window, ValueId keys, bool hasExperts,
        const std::string& name)
    {
        const std::string act = "act." + name;
        enter(Region::Layer);
        ValueId attended = attention(named(blockNorm(x, p, "attention.norm"), act + ".attention.input"), p, shared, window, act);
        if (m_c.postNorms)
            attended = blockNorm(attended, p, "attention.post_norm");
        attended = named(passedOn(attended, keys, 0), act + ".attention");
        const ValueId between = m_c.parallelBlock ? x : plus(x, attended);
        const ValueId input = named(blockNorm(between, p, "ffn.norm"), act + ".ffn.input");
        const std::string hiddenName = act + ".ffn.hidden";
        ValueId made = hasExperts ? experts(input, p, hiddenName) : ffn(input, p, "ffn", hiddenName);
        if (m_c.postNorms)
            made = blockNorm(made, p, "ffn.post_norm");
        made = named(passedOn(made, keys, 1), act + ".ffn");
        const ValueId sum = m_c.parallelBlock ? plus(between, attended) : between;
        enter(Region::Outside); // the residual stream between layers is always kept
        return named(plus(sum, made), act);
    }

    /// The keys of the masks of some layers: [2 count, 2].
    ValueId keysOf(const Shared& shared, std::int64_t layer, std::int64_t count)
    {
        return m_drops ? sliced(m_builder, shared.masks, 0, 1 + 2 * layer, 1 + 2 * (layer + count)) : ValueId{};
    }

    /// What a block passes on.
    ValueId passedOn(ValueId made, ValueId keys, std::int64_t block)
    {
        return keys.valid() ? dropped(m_builder, made, maskKey(m_builder, keys, block), m_options) : made;
    }

    /// The window of each layer of a run as i32[count], where layers differ; a whole row where a layer has none.
    std::vector<std::int64_t> windowsOf(const LayerRun& run) const
    {
        std::vector<std::int64_t> windows;
        if (m_c.slidingWindow == 0)
            return windows;
        const std::int64_t windowed = m_c.slidingWindowLayers > 0 ? m_c.slidingWindowLayers : m_c.layers;
        for (std::int64_t i = 0; i < run.count; ++i)
            windows.push_back(isWindowed(run.first + i, windowed, m_c.layers) ? std::min(m_c.slidingWindow, m_model.sequence)
                                                                              : m_model.sequence);
        if (*std::min_element(windows.begin(), windows.end()) == m_model.sequence)
            windows.clear();
        return windows;
    }

    ValueId windowConstant(const std::vector<std::int64_t>& windows)
    {
        std::string bytes(windows.size() * sizeof(std::int32_t), '\0');
        for (std::size_t i = 0; i < windows.size(); ++i) {
            const auto window = static_cast<std::int32_t>(windows[i]);
            std::memcpy(bytes.data() + i * sizeof window, &window, sizeof window);
        }
        return m_builder.add(OpKind::Constant, {},
            ConstantAttributes{{DType::S32, {static_cast<std::int64_t>(windows.size())}},
                {std::make_shared<const std::string>(std::move(bytes))}});
    }

    ValueId unrolledRun(
        ValueId x, const LayerRun& run, const std::vector<ValueId>& parameters, std::size_t& next, const Shared& shared)
    {
        const std::vector<ModelArray> arrays = LayerArrays(m_c).of(run.hasExperts);
        const std::vector<std::int64_t> windows = windowsOf(run);
        for (std::int64_t i = 0; i < run.count; ++i) {
            Parameters p;
            for (const ModelArray& array : arrays)
                p.emplace(array.name, parameters[next++]);
            ValueId window;
            if (!windows.empty())
                window = m_builder.splat({DType::S32, {}}, static_cast<double>(windows[static_cast<std::size_t>(i)]));
            x = layer(x, p, shared, window, keysOf(shared, run.first + i, 1), run.hasExperts, layerName(m_model, run, i));
        }
        return x;
    }

    /// A loop over the stacked parameters, which carries the residual stream.
    ValueId loopedRun(
        ValueId x, const LayerRun& run, const std::vector<ValueId>& parameters, std::size_t& next, const Shared& shared)
    {
        const std::vector<ModelArray> arrays = LayerArrays(m_c).of(run.hasExperts);
        const std::vector<std::int64_t> windows = windowsOf(run);
        std::vector<ValueId> operands = {x};
        for (std::size_t i = 0; i < arrays.size(); ++i)
            operands.push_back(parameters[next++]);
        if (!windows.empty())
            operands.push_back(windowConstant(windows));
        if (m_drops)
            operands.push_back(m_builder.reshape(keysOf(shared, run.first, run.count), {run.count, 2, 2}));
        const RepeatAttributes attributes{run.count, 1, operands.size() - 1, false};
        if (shared.cosine.valid())
            operands.insert(operands.end(), {shared.cosine, shared.sine});

        const OpId repeat = m_builder.beginRepeat(attributes, std::move(operands));
        const std::vector<ValueId> arguments = m_loss[m_builder.block()].arguments;
        Parameters p;
        for (std::size_t i = 0; i < arrays.size(); ++i)
            p.emplace(arrays[i].name, arguments[1 + i]);
        const ValueId keys = m_drops ? arguments[attributes.stacked] : ValueId{};
        const ValueId window = windows.empty() ? ValueId{} : arguments[attributes.stacked - (m_drops ? 1 : 0)];
        Shared inside;
        if (shared.cosine.valid())
            inside = {arguments[arguments.size() - 2], arguments.back(), {}};
        m_builder.setResults({layer(arguments.front(), p, inside, window, keys, run.hasExperts, layerName(m_model, run, 0))});
        return m_builder.endRepeat(repeat).front();
    }

    void addLoss(const TrainedModel& trained)
    {
        m_loss.name = "loss";
        const std::vector<ValueId> parameters = parameterArguments(m_builder, trained.parameters);
        const auto [tokens, y] = batchArguments(m_builder, trained.x, trained.y);
        std::size_t next = 0;
        const ValueId table = parameters[next++];
        ValueId x = embedded(tokens, table);
        if (m_c.embeddingScale)
            x = scaled(x, std::sqrt(static_cast<double>(m_c.hidden)));
        if (m_c.position == PositionKind::Learned) {
            ValueId positions = m_builder.convert(parameters[next++], m_activation);
            if (m_c.maxPositions > m_model.sequence)
                positions = sliced(m_builder, positions, 0, 0, m_model.sequence);
            x = plus(x, along(positions, x, {1, 2}));
        }
        Shared shared = sharedParts();
        if (m_drops)
            shared.masks = maskKeys(m_builder, trained.masks);
        if (m_drops)
            x = dropped(m_builder, x, maskKey(m_builder, shared.masks, 0), m_options);
        x = named(x, "act.embedding");

        for (const LayerRun& run : runsOf(m_c))
            x = m_model.unrolled ? unrolledRun(x, run, parameters, next, shared) : loopedRun(x, run, parameters, next, shared);

        const ValueId scale = parameters[next++];
        x = norm(x, m_c.norm, scale, m_c.norm == NormKind::LayerNorm ? parameters[next++] : ValueId{});
        if (!everyToken())
            x = lastPosition(m_builder, x);
        const std::size_t hidden = shape(x).size() - 1;
        ValueId logits = m_c.tiedEmbeddings ? wideDot(x, table, {hidden}, {1}) : wideDot(x, parameters[next++], {hidden}, {0});
        logits = named(softcapped(logits, m_c.logitSoftcap), "act.logits");
        const ValueId loss = crossEntropy(logits, y);
        m_builder.named(loss, "loss");
        m_loss[loss].role = Role::Metric;
        m_builder.setResults({loss, logits}, {"loss", "predictions"});
    }

    /// True at the token that is right: as large as the logits.
    static ValueId atLabel(Builder& builder, ValueId logits, ValueId y)
    {
        const Shape whole = builder.type(logits).shape;
        Dims dims(whole.size() - 1);
        std::iota(dims.begin(), dims.end(), std::size_t{0});
        return builder.compare(
            CompareDirection::Equal, builder.broadcast(y, whole, dims), builder.iota({DType::S32, whole}, whole.size() - 1));
    }

    double predictedTokens() const
    {
        return static_cast<double>(m_options.batch) * (everyToken() ? static_cast<double>(m_model.sequence) : 1.0);
    }

    ValueId crossEntropy(ValueId logits, ValueId y)
    {
        const ValueId likelihood = logSoftmax(m_builder, logits);
        const ValueId none = m_builder.splat(TensorType(m_builder.type(likelihood)), 0.0);
        const ValueId terms = m_builder.select(atLabel(m_builder, logits, y), likelihood, none);
        Dims all(shape(terms).size());
        std::iota(all.begin(), all.end(), std::size_t{0});
        const ValueId total = m_builder.named(m_builder.reduce(ReduceKind::Sum, terms, all), "loss.sum");
        return m_builder.binary(OpKind::Divide, total, m_builder.splat({m_wide, {}}, -predictedTokens()));
    }

    /// The part of predicted tokens whose logit is the largest of its row; a tie for the largest counts as right.
    ValueId accuracy(Builder& builder, ValueId logits, ValueId y) const
    {
        const TensorType type = builder.type(logits);
        const std::size_t last = type.shape.size() - 1;
        const ValueId lowest = builder.splat(TensorType(type), -std::numeric_limits<double>::infinity());
        const ValueId right
            = builder.reduce(ReduceKind::Max, builder.select(atLabel(builder, logits, y), logits, lowest), {last});
        const ValueId isRight = builder.compare(CompareDirection::Equal, right, builder.reduce(ReduceKind::Max, logits, {last}));
        Dims all(last);
        std::iota(all.begin(), all.end(), std::size_t{0});
        const ValueId count
            = builder.named(builder.reduce(ReduceKind::Sum, builder.convert(isRight, m_wide), all), "accuracy.count");
        const ValueId fraction = builder.binary(OpKind::Divide, count, builder.splat({m_wide, {}}, predictedTokens()));
        builder.function()[fraction].role = Role::Metric;
        return builder.named(fraction, "accuracy");
    }

    const TransformerModel& m_model;
    const TransformerConfig& m_c;
    const TrainingOptions& m_options;
    DType m_activation;
    DType m_wide; ///< of products, norms, softmax and loss
    bool m_drops = false; ///< the loss has dropout
    Function m_loss;
    Builder m_builder;
    std::vector<std::pair<std::size_t, Region>> m_regions; ///< the first op of each
};

} // namespace

std::vector<ModelArray> transformerParameters(const TransformerModel& model)
{
    const TransformerConfig& c = model.config;
    std::vector<ModelArray> arrays;
    arrays.push_back({"embedding.w", {c.vocabulary, c.hidden}, {"vocabulary", "hidden"}, c.hidden, Kind::Weight});
    if (c.position == PositionKind::Learned)
        arrays.push_back({"positions.w", {c.maxPositions, c.hidden}, {"positions", "hidden"}, c.hidden, Kind::Weight});
    for (const LayerRun& run : runsOf(c)) {
        const std::vector<ModelArray> one = LayerArrays(c).of(run.hasExperts);
        for (std::int64_t i = 0; i < (model.unrolled ? run.count : 1); ++i) {
            for (ModelArray array : one) {
                array.name = fmt::format("{}.{}", layerName(model, run, i), array.name);
                if (!model.unrolled) {
                    array.shape.insert(array.shape.begin(), run.count);
                    array.meaning.insert(array.meaning.begin(), "layers");
                }
                arrays.push_back(std::move(array));
            }
        }
    }
    arrays.push_back({"norm.scale", {c.hidden}, {"hidden"}, 1, Kind::Scale});
    if (c.norm == NormKind::LayerNorm)
        arrays.push_back({"norm.bias", {c.hidden}, {"hidden"}, 1, Kind::Bias});
    if (!c.tiedEmbeddings)
        arrays.push_back({"head.w", {c.hidden, c.vocabulary}, {"hidden", "vocabulary"}, c.hidden, Kind::Weight});
    return arrays;
}

namespace {

/// What attention makes of its input: name, heads, size of a head.
std::array<std::tuple<const char*, std::int64_t, std::int64_t>, 3> projectionsOf(const TransformerConfig& c)
{
    const std::int64_t values = c.valueHeadDim > 0 ? c.valueHeadDim : c.headDim;
    const std::int64_t rotary = c.keyValueRank > 0 ? c.latentRotaryDim : 0; // beside the others
    return {{{"q", c.heads, c.headDim + rotary}, {"k", c.keyValueHeads, c.headDim + rotary}, {"v", c.keyValueHeads, values}}};
}

} // namespace

std::vector<ModelArray> transformerActivations(const TransformerModel& model, std::int64_t batch)
{
    const TransformerConfig& c = model.config;
    std::vector<ModelArray> arrays;
    const auto add = [&](std::string name, Shape shape, std::vector<std::string> meaning) {
        arrays.push_back({std::move(name), std::move(shape), std::move(meaning), 1, Kind::Activation});
    };
    const Shape stream = {batch, model.sequence, c.hidden};
    const std::vector<std::string> words = {"batch", "sequence", "hidden"};
    add("act.embedding", stream, words);
    for (const LayerRun& run : runsOf(c)) {
        for (std::int64_t i = 0; i < (model.unrolled ? run.count : 1); ++i) {
            const std::string act = "act." + layerName(model, run, i);
            add(act + ".attention.input", stream, words);
            for (const auto& [name, heads, size] : projectionsOf(c))
                add(act + ".attention." + name, {batch, model.sequence, heads, size},
                    {"batch", "sequence", heads == c.heads ? "heads" : "key and value heads", "head size"});
            add(act + ".attention", stream, words);
            add(act + ".ffn.input", stream, words);
            if (!run.hasExperts)
                add(act + ".ffn.hidden", {batch, model.sequence, c.ffn}, {"batch", "sequence", "ffn"});
            add(act + ".ffn", stream, words);
            add(act, stream, words);
        }
    }
    if (model.predict == Prediction::EveryToken)
        add("act.logits", {batch, model.sequence, c.vocabulary}, {"batch", "sequence", "vocabulary"});
    else
        add("act.logits", {batch, c.vocabulary}, {"batch", "vocabulary"});
    return arrays;
}

std::string layerOutput(const TransformerModel& model, std::int64_t layer)
{
    const std::vector<LayerRun> runs = runsOf(model.config);
    const auto run
        = std::find_if(runs.begin(), runs.end(), [layer](const LayerRun& one) { return layer < one.first + one.count; });
    assert(layer >= 0 && run != runs.end());
    return "act." + layerName(model, *run, layer - run->first);
}

Problems sizeProblems(const TransformerModel& model)
{
    const TransformerConfig& c = model.config;
    Problems problems = transformerProblems(c);
    constexpr std::int64_t kLongest = std::int64_t{1} << 30; // positions are i32
    if (model.sequence < 1 || model.sequence > kLongest)
        problems.push_back(
            {"MW1352", fmt::format("sequence must be 1 to 2^30, got: {}", model.sequence), {}, {.path = "sequence"}});
    else if (c.position == PositionKind::Learned && model.sequence > c.maxPositions)
        problems.push_back(
            {"MW1355", fmt::format("a sequence of {} tokens, but only {} positions are learned", model.sequence, c.maxPositions),
                fmt::format("use a sequence of at most {}", c.maxPositions), {.path = "sequence"}});
    if (!std::isfinite(model.capacityFactor) || model.capacityFactor < 0.0)
        problems.push_back({"MW1352", fmt::format("capacityFactor must be at least 0, got: {}", model.capacityFactor), {},
            {.path = "capacityFactor"}});
    return problems;
}

Problems buildProblems(const TransformerModel& model)
{
    Problems problems = sizeProblems(model);
    if (model.config.keyValueRank > 0)
        problems.push_back({"MW1354", "attention over latent keys and values has no program yet",
            "simulate it, search layouts for it, or leave out keyValueRank", {.path = "keyValueRank"}});
    return problems;
}

Result<Program> buildTransformerTraining(const TransformerModel& model, const TrainingOptions& options)
{
    assert(buildProblems(model).empty() && options.batch >= 1 && isFloating(options.parameterType)
        && isFloating(options.activationType));
    const TrainingOptions ofMicrobatch = microbatchOptions(options);
    return TransformerTraining(model, ofMicrobatch).build();
}

std::vector<std::pair<std::string, RandomKey>> initKeys(
    const TransformerModel& model, const TrainingOptions& options, const RandomKey& key)
{
    std::vector<std::string> names;
    for (const ModelArray& array : transformerParameters(model)) {
        if (array.kind == Kind::Weight ? isRandom(options.weightInit) : array.kind == Kind::Bias && isRandom(options.biasInit))
            names.push_back("key." + array.name);
    }
    const std::vector<RandomKey> keys = splitKey(key, names.size() + 1, options.partitionableRandom);
    std::vector<std::pair<std::string, RandomKey>> named;
    for (std::size_t i = 0; i < names.size(); ++i)
        named.emplace_back(names[i], keys[i + 1]);
    return named;
}

} // namespace meshwright
