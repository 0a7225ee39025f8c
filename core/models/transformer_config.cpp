// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/transformer_config.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <optional>
#include <vector>

namespace meshwright {

namespace {

constexpr double kMostParameters = 9007199254740992.0; // 2^53: such counts are exact as a double too

/// The counts in any arithmetic: in doubles to see whether they are in range, then in integers.
template <typename T>
struct Counts {
    T tokenTable = 0;
    T positions = 0;
    T attentionMatrices = 0;
    T attentionBiases = 0;
    T ffnMatrices = 0;
    T ffnBiases = 0;
    T expertMatrices = 0; // of one expert
    T expertBiases = 0;
    T router = 0;
    T normsPerLayer = 0;
    T finalNorm = 0;

    T expertsMatrices(T active, const TransformerConfig& c) const
    {
        return router + (active + static_cast<T>(c.sharedExperts)) * expertMatrices;
    }
    T expertsBiases(T active, const TransformerConfig& c) const
    {
        return (active + static_cast<T>(c.sharedExperts)) * expertBiases;
    }

    /// Of all layers, with this many routed experts.
    T matricesOfLayers(T experts, const TransformerConfig& c) const
    {
        const T dense = static_cast<T>(c.experts == 0 ? c.layers : c.denseLayers);
        const T layers = static_cast<T>(c.layers);
        return layers * attentionMatrices + dense * ffnMatrices + (layers - dense) * expertsMatrices(experts, c);
    }
    T othersOfLayers(T experts, const TransformerConfig& c) const
    {
        const T dense = static_cast<T>(c.experts == 0 ? c.layers : c.denseLayers);
        const T layers = static_cast<T>(c.layers);
        return layers * (attentionBiases + normsPerLayer) + dense * ffnBiases + (layers - dense) * expertsBiases(experts, c);
    }
    T total(T experts, const TransformerConfig& c) const
    {
        const T tables = tokenTable * (c.tiedEmbeddings ? 1 : 2) + positions;
        return tables + matricesOfLayers(experts, c) + othersOfLayers(experts, c) + finalNorm;
    }
};

template <typename T>
void countAttention(const TransformerConfig& c, Counts<T>& counts)
{
    const T h = static_cast<T>(c.hidden);
    const T heads = static_cast<T>(c.heads);
    const T keyHeads = static_cast<T>(c.keyValueHeads);
    const T d = static_cast<T>(c.headDim);
    const T values = c.valueHeadDim > 0 ? static_cast<T>(c.valueHeadDim) : d;
    if (c.keyValueRank > 0) {
        const T rotary = static_cast<T>(c.latentRotaryDim);
        const T keyRank = static_cast<T>(c.keyValueRank);
        const T queryRank = static_cast<T>(c.queryRank);
        const T queries = heads * (d + rotary);
        counts.attentionMatrices = (c.queryRank > 0 ? h * queryRank + queryRank * queries : h * queries) + h * (keyRank + rotary)
            + keyRank * heads * (d + values) + heads * values * h;
        counts.normsPerLayer += queryRank + keyRank;
    } else {
        counts.attentionMatrices = h * d * (heads + keyHeads) + h * values * (heads + keyHeads);
    }
    if (c.attentionBias)
        counts.attentionBiases += d * (heads + keyHeads) + values * keyHeads;
    if (c.outputBias)
        counts.attentionBiases += h;
    if (c.queryKeyNorm)
        counts.normsPerLayer += 2 * d;
}

template <typename T>
Counts<T> countsOf(const TransformerConfig& c)
{
    const T h = static_cast<T>(c.hidden);
    const T projections = c.gatedFfn ? 2 : 1; // into the block; one more leads out
    const T norm = c.norm == NormKind::LayerNorm ? 2 * h : h;
    const auto biases = [&](T width) { return c.ffnBias ? projections * width + h : T{0}; };
    Counts<T> counts;
    counts.tokenTable = static_cast<T>(c.vocabulary) * h;
    counts.positions = c.position == PositionKind::Learned ? static_cast<T>(c.maxPositions) * h : T{0};
    countAttention(c, counts);
    counts.ffnMatrices = (projections + 1) * h * static_cast<T>(c.ffn);
    counts.ffnBiases = biases(static_cast<T>(c.ffn));
    counts.expertMatrices = (projections + 1) * h * static_cast<T>(c.expertFfn);
    counts.expertBiases = biases(static_cast<T>(c.expertFfn));
    counts.router = h * static_cast<T>(c.experts);
    counts.normsPerLayer += norm * (c.postNorms ? 4 : 2);
    counts.finalNorm = norm;
    return counts;
}

/// One of a configuration's sizes, under the name of its member.
struct NamedSize {
    const char* name;
    std::int64_t value;
    std::int64_t least;
    std::int64_t most = kLargestTransformerSize;
};

std::vector<NamedSize> sizesOf(const TransformerConfig& c)
{
    const bool hasExperts = c.experts > 0;
    const bool hasDense = !hasExperts || c.denseLayers > 0;
    return {{"layers", c.layers, 1, kMostTransformerLayers}, {"hidden", c.hidden, 1}, {"heads", c.heads, 1},
        {"keyValueHeads", c.keyValueHeads, 1}, {"headDim", c.headDim, 1}, {"ffn", c.ffn, hasDense ? 1 : 0},
        {"vocabulary", c.vocabulary, 1}, {"maxPositions", c.maxPositions, c.position == PositionKind::Learned ? 1 : 0},
        {"slidingWindow", c.slidingWindow, 0}, {"slidingWindowLayers", c.slidingWindowLayers, 0}, {"experts", c.experts, 0},
        {"expertsPerToken", c.expertsPerToken, hasExperts ? 1 : 0}, {"expertFfn", c.expertFfn, hasExperts ? 1 : 0},
        {"sharedExperts", c.sharedExperts, 0}, {"denseLayers", c.denseLayers, 0}, {"queryRank", c.queryRank, 0},
        {"keyValueRank", c.keyValueRank, 0}, {"latentRotaryDim", c.latentRotaryDim, 0}, {"valueHeadDim", c.valueHeadDim, 0}};
}

void addRangeProblems(const TransformerConfig& c, Problems& problems)
{
    for (const NamedSize& size : sizesOf(c)) {
        if (size.value < size.least || size.value > size.most)
            problems.push_back({"MW1352",
                fmt::format("{} must be {} to {}, got: {}", size.name, size.least,
                    size.most == kLargestTransformerSize ? std::string("2^40") : std::to_string(size.most), size.value),
                {}, {.path = size.name}});
    }
    const auto number = [&](const char* name, double value, bool good, const char* range) {
        if (!std::isfinite(value) || !good)
            problems.push_back({"MW1352", fmt::format("{} must be {}, got: {}", name, range, value), {}, {.path = name}});
    };
    number("normEpsilon", c.normEpsilon, c.normEpsilon >= 0.0, "at least 0");
    number("rotaryBase", c.rotaryBase, c.rotaryBase > 0.0, "above 0");
    number("rotaryFraction", c.rotaryFraction, c.rotaryFraction >= 0.0 && c.rotaryFraction <= 1.0, "0 to 1");
    number("queryScale", c.queryScale, c.queryScale >= 0.0, "at least 0");
    number("attentionSoftcap", c.attentionSoftcap, c.attentionSoftcap >= 0.0, "at least 0");
    number("logitSoftcap", c.logitSoftcap, c.logitSoftcap >= 0.0, "at least 0");
}

void addFitProblems(const TransformerConfig& c, Problems& problems)
{
    const auto add = [&](const char* path, std::string message) {
        problems.push_back({"MW1353", std::move(message), {}, {.path = path}});
    };
    if (c.heads % c.keyValueHeads != 0)
        add("keyValueHeads",
            fmt::format("{} query heads cannot be shared evenly by {} key and value heads", c.heads, c.keyValueHeads));
    if (c.position == PositionKind::Rotary && rotaryDims(c) % 2 != 0)
        add(c.keyValueRank > 0 ? "latentRotaryDim" : "headDim",
            fmt::format("rotary positions rotate pairs, but {} dims of a head are rotated", rotaryDims(c)));
    if (c.keyValueRank > 0 && c.keyValueHeads != c.heads)
        add("keyValueHeads",
            fmt::format("latent attention has a key and a value for each of its {} heads, got: {}", c.heads, c.keyValueHeads));
    if (c.keyValueRank > 0 && c.attentionBias)
        add("attentionBias", "biases of latent attention are not supported");
    if (c.keyValueRank == 0 && c.queryRank > 0)
        add("queryRank", "queries come from latents only where keys and values do");
    if (c.keyValueRank > 0 && c.queryKeyNorm)
        add("queryKeyNorm", "latent attention normalises its latents, not each head's queries and keys");
    if (c.expertsPerToken > c.experts)
        add("expertsPerToken", fmt::format("a token cannot use {} of {} experts", c.expertsPerToken, c.experts));
    if (c.denseLayers > c.layers)
        add("denseLayers", fmt::format("{} dense layers in a model of {} layers", c.denseLayers, c.layers));
    if (c.slidingWindowLayers > c.layers)
        add("slidingWindowLayers",
            fmt::format("{} layers with a window in a model of {} layers", c.slidingWindowLayers, c.layers));
    const double total = countsOf<double>(c).total(static_cast<double>(c.experts), c);
    if (!(total <= kMostParameters))
        add("layers", fmt::format("the model has {} parameters, more than 2^53", formatCount(total)));
}

} // namespace

std::int64_t rotaryDims(const TransformerConfig& config)
{
    if (config.keyValueRank > 0)
        return config.latentRotaryDim;
    return static_cast<std::int64_t>(static_cast<double>(config.headDim) * config.rotaryFraction);
}

Problems transformerProblems(const TransformerConfig& config)
{
    Problems problems;
    addRangeProblems(config, problems);
    if (problems.empty())
        addFitProblems(config, problems);
    return problems;
}

ParameterCounts parameterCounts(const TransformerConfig& config)
{
    const auto counts = countsOf<std::int64_t>(config);
    ParameterCounts result;
    result.embedding = counts.tokenTable + counts.positions;
    result.head = config.tiedEmbeddings ? 0 : counts.tokenTable;
    result.attentionPerLayer = counts.attentionMatrices + counts.attentionBiases;
    result.ffnPerLayer = counts.ffnMatrices + counts.ffnBiases;
    if (config.experts > 0)
        result.expertsPerLayer = counts.expertsMatrices(config.experts, config) + counts.expertsBiases(config.experts, config);
    result.normsPerLayer = counts.normsPerLayer;
    result.finalNorm = counts.finalNorm;
    result.total = counts.total(config.experts, config);
    result.active = counts.total(config.expertsPerToken, config);
    const std::int64_t tables = counts.tokenTable + result.head;
    result.matrices = tables + counts.matricesOfLayers(config.experts, config);
    result.activeMatrices = tables + counts.matricesOfLayers(config.expertsPerToken, config);
    return result;
}

double modelFlopsPerToken(const TransformerConfig& config, std::int64_t sequence, AttentionCount count)
{
    assert(sequence >= 1);
    const ParameterCounts counts = parameterCounts(config);
    const std::int64_t lookedUp = config.tiedEmbeddings ? 0 : counts.head; // one of the two equal tables is only looked up in
    const double products = 6.0 * static_cast<double>(counts.activeMatrices - lookedUp);
    if (count == AttentionCount::None)
        return products;
    const double keys = static_cast<double>(sequence) / (count == AttentionCount::Causal ? 2.0 : 1.0);
    const std::int64_t windowed = config.slidingWindow == 0 ? 0
        : config.slidingWindowLayers > 0                    ? config.slidingWindowLayers
                                                            : config.layers;
    const double seen = std::min(keys, static_cast<double>(config.slidingWindow));
    const double keysOfLayers = static_cast<double>(config.layers - windowed) * keys + static_cast<double>(windowed) * seen;
    const std::int64_t scoreDim = config.headDim + (config.keyValueRank > 0 ? config.latentRotaryDim : 0);
    const std::int64_t valueDim = config.valueHeadDim > 0 ? config.valueHeadDim : config.headDim;
    return products + 6.0 * keysOfLayers * static_cast<double>(config.heads) * static_cast<double>(scoreDim + valueDim);
}

// The reader of config.json.

} // namespace meshwright
