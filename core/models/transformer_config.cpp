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

/// The counts of a layer in any arithmetic: in doubles to see whether they are in range, then in integers.
template <typename T>
struct LayerCounts {
    T mixerMatrices = 0;
    T mixerBiases = 0; // and numbers of each head
    T ffnMatrices = 0;
    T ffnBiases = 0;
    T expertMatrices = 0; // of one expert
    T expertBiases = 0;
    T sharedMatrices = 0; // of what each token passes: router, shared experts, products around latents
    T sharedBiases = 0;
    T norms = 0;

    T matrices(T experts) const { return mixerMatrices + ffnMatrices + sharedMatrices + experts * expertMatrices; }
    T others(T experts) const { return mixerBiases + ffnBiases + sharedBiases + experts * expertBiases + norms; }
};

/// What a product of rank `rank` takes from `from` to `to`; without a rank one matrix.
template <typename T>
T throughRank(T from, T rank, T to)
{
    return rank > 0 ? rank * (from + to) : from * to;
}

template <typename T>
void countAttention(const TransformerConfig& c, LayerCounts<T>& counts)
{
    const T h = static_cast<T>(c.hidden);
    const T heads = static_cast<T>(c.heads);
    const T keyHeads = static_cast<T>(c.keyValueHeads);
    const T d = static_cast<T>(c.headDim);
    const T values = c.valueHeadDim > 0 ? static_cast<T>(c.valueHeadDim) : d;
    const T queryRank = static_cast<T>(c.queryRank);
    const T rotary = c.keyValueRank > 0 ? static_cast<T>(c.latentRotaryDim) : T{0};
    const T keyRank = static_cast<T>(c.keyValueRank);
    counts.mixerMatrices = throughRank(h, queryRank, heads * (d + rotary));
    if (c.keyValueRank > 0)
        counts.mixerMatrices += h * (keyRank + rotary) + keyRank * heads * (d + values);
    else
        counts.mixerMatrices += h * keyHeads * (c.keysAsValues ? d : d + values);
    counts.norms += queryRank + keyRank;
    counts.mixerMatrices += c.outputRank > 0
        ? static_cast<T>(c.outputRank) * (heads * values + static_cast<T>(c.outputGroups) * h)
        : heads * values * h;
    if (c.outputGate)
        counts.mixerMatrices += h * heads * values;
    if (c.compression > 0) {
        const T overlap = static_cast<T>(c.compressionOverlap);
        const T index = static_cast<T>(c.indexHeads) * static_cast<T>(c.indexHeadDim);
        counts.mixerMatrices += 2 * h * overlap * d;
        if (c.indexHeads > 0)
            counts.mixerMatrices += (c.queryRank > 0 ? queryRank : h) * index + h * static_cast<T>(c.indexHeads)
                + 2 * h * overlap * static_cast<T>(c.indexHeadDim);
    }
    if (c.attentionBias)
        counts.mixerBiases += d * (heads + keyHeads) + (c.keysAsValues ? T{0} : values * keyHeads);
    if (c.outputBias)
        counts.mixerBiases += h;
    if (c.queryKeyNorm)
        counts.norms += 2 * d;
}

/// Products into keys, queries, values and the gate of the output, what tells how states decay and how much a token writes, and the way out.
template <typename T>
void countRecurrence(const TransformerConfig& c, LayerCounts<T>& counts)
{
    const T h = static_cast<T>(c.hidden);
    const T heads = static_cast<T>(c.stateHeads);
    const T values = heads * static_cast<T>(c.stateValueDim);
    const T keys = static_cast<T>(c.stateKeyHeads) * static_cast<T>(c.stateKeyDim);
    const bool isDelta = c.mixer == MixerKind::DeltaRule;
    const T decays = c.decayRank > 0 ? keys : heads;
    counts.mixerMatrices = h * (2 * keys + values) + throughRank(h, static_cast<T>(c.gateRank), values)
        + throughRank(h, static_cast<T>(c.decayRank), decays) + (isDelta ? h * heads : T{0})
        + static_cast<T>(c.convolution) * (2 * keys + values) + values * h;
    // The rate of decay, its shift, and of a state space what passes by the state.
    counts.mixerBiases = heads + decays + (isDelta ? T{0} : heads + (c.convolution > 0 ? 2 * keys + values : T{0}));
    counts.norms += isDelta ? static_cast<T>(c.stateValueDim) : values;
}

template <typename T>
LayerCounts<T> layerCounts(const TransformerConfig& c)
{
    const T h = static_cast<T>(c.hidden);
    const T projections = c.gatedFfn ? 2 : 1; // into the block; one more leads out
    const T norm = c.norm == NormKind::LayerNorm ? 2 * h : h;
    LayerCounts<T> counts;
    const bool hasMixer = c.mixer != MixerKind::None;
    if (c.isRecurrent())
        countRecurrence(c, counts);
    else if (hasMixer)
        countAttention(c, counts);
    const auto biases = [&](T width, T out) { return c.ffnBias ? projections * width + out : T{0}; };
    if (c.experts == 0 || c.ffnBesideExperts) {
        counts.ffnMatrices = (projections + 1) * h * static_cast<T>(c.ffn);
        counts.ffnBiases = c.ffn > 0 ? biases(static_cast<T>(c.ffn), h) : T{0};
    }
    if (c.experts > 0) {
        const T width = static_cast<T>(c.expertFfn);
        const T shared = static_cast<T>(c.sharedExperts);
        const T latent = static_cast<T>(c.expertHidden);
        const T around = latent > 0 ? latent : h;
        counts.expertMatrices = (projections + 1) * around * width;
        counts.expertBiases = biases(width, around);
        counts.sharedMatrices = h * static_cast<T>(c.experts) + 2 * h * latent + shared * (projections + 1) * h * width;
        counts.sharedBiases = shared * biases(width, h);
    }
    if (c.residualStreams > 0) { // for each block: how streams are read, written and mixed, from all of them
        const T streams = static_cast<T>(c.residualStreams);
        counts.mixerMatrices += 2 * (2 + streams) * streams * streams * h;
    }
    const T blocks = static_cast<T>((hasMixer ? 1 : 0) + (c.hasFeedForward() ? 1 : 0));
    counts.norms += norm * blocks * (c.postNorms ? 2 : 1);
    return counts;
}

/// Of the whole model, with as many of its routed experts as `used` says of each group of layers.
template <typename T>
struct ModelCounts {
    T tokenTable = 0;
    T positions = 0;
    T finalNorm = 0;
    T matricesOfLayers = 0;
    T othersOfLayers = 0;
};

template <typename T>
ModelCounts<T> countsOf(const TransformerConfig& c, std::int64_t TransformerConfig::*used)
{
    const T h = static_cast<T>(c.hidden);
    ModelCounts<T> counts;
    counts.tokenTable = static_cast<T>(c.vocabulary) * h;
    counts.positions = c.position == PositionKind::Learned ? static_cast<T>(c.maxPositions) * h : T{0};
    counts.finalNorm = c.norm == NormKind::LayerNorm ? 2 * h : h;
    for (const TransformerConfig& group : layerGroups(c)) {
        const auto layer = layerCounts<T>(group);
        const T experts = static_cast<T>(group.experts > 0 ? group.*used : 0);
        counts.matricesOfLayers += static_cast<T>(group.layers) * layer.matrices(experts);
        counts.othersOfLayers += static_cast<T>(group.layers) * layer.others(experts);
    }
    return counts;
}

template <typename T>
T total(const ModelCounts<T>& counts, const TransformerConfig& c)
{
    return counts.tokenTable * (c.tiedEmbeddings ? 1 : 2) + counts.positions + counts.matricesOfLayers + counts.othersOfLayers
        + counts.finalNorm;
}

/// One of a configuration's sizes, under the name of its member.
struct NamedSize {
    const char* name;
    std::int64_t value;
    std::int64_t least;
    std::int64_t most = kLargestTransformerSize;
};

/// `isKind`: of a kind of layers, which may be without a feed-forward block.
std::vector<NamedSize> sizesOf(const TransformerConfig& c, bool isKind)
{
    const bool hasExperts = c.experts > 0;
    const bool hasDense = !isKind && (!hasExperts || c.denseLayers > 0);
    const std::int64_t attends = c.mixer == MixerKind::Attention ? 1 : 0;
    const std::int64_t recurs = c.isRecurrent() ? 1 : 0;
    const std::int64_t indexes = c.indexHeads > 0 ? 1 : 0;
    return {{"layers", c.layers, 1, kMostTransformerLayers}, {"hidden", c.hidden, 1}, {"heads", c.heads, attends},
        {"keyValueHeads", c.keyValueHeads, attends}, {"headDim", c.headDim, attends}, {"ffn", c.ffn, hasDense ? 1 : 0},
        {"vocabulary", c.vocabulary, 1}, {"maxPositions", c.maxPositions, c.position == PositionKind::Learned ? 1 : 0},
        {"slidingWindow", c.slidingWindow, 0}, {"slidingWindowLayers", c.slidingWindowLayers, 0}, {"experts", c.experts, 0},
        {"expertsPerToken", c.expertsPerToken, hasExperts ? 1 : 0}, {"expertFfn", c.expertFfn, hasExperts ? 1 : 0},
        {"sharedExperts", c.sharedExperts, 0}, {"denseLayers", c.denseLayers, 0}, {"queryRank", c.queryRank, 0},
        {"keyValueRank", c.keyValueRank, 0}, {"latentRotaryDim", c.latentRotaryDim, 0}, {"valueHeadDim", c.valueHeadDim, 0},
        {"outputRank", c.outputRank, 0}, {"outputGroups", c.outputGroups, c.outputRank > 0 ? 1 : 0},
        {"compression", c.compression, 0}, {"compressionOverlap", c.compressionOverlap, 1, 2}, {"indexHeads", c.indexHeads, 0},
        {"indexHeadDim", c.indexHeadDim, indexes}, {"indexKeys", c.indexKeys, indexes}, {"stateHeads", c.stateHeads, recurs},
        {"stateKeyHeads", c.stateKeyHeads, recurs}, {"stateKeyDim", c.stateKeyDim, recurs},
        {"stateValueDim", c.stateValueDim, recurs}, {"convolution", c.convolution, 0}, {"decayRank", c.decayRank, 0},
        {"gateRank", c.gateRank, 0}, {"expertHidden", c.expertHidden, 0}, {"residualStreams", c.residualStreams, 0}};
}

void addRangeProblems(const TransformerConfig& c, bool isKind, Problems& problems)
{
    for (const NamedSize& size : sizesOf(c, isKind)) {
        if (size.value >= size.least && size.value <= size.most)
            continue;
        const std::string range = fmt::format(
            "{} to {}", size.least, size.most == kLargestTransformerSize ? std::string("2^40") : std::to_string(size.most));
        problems.push_back({"MW1352", fmt::format("{} must be {}, got: {}", size.name, range, size.value),
            fmt::format("give a number from {}", range), {.path = size.name}});
    }
    const auto number = [&](const char* name, double value, bool good, const char* range) {
        if (!std::isfinite(value) || !good)
            problems.push_back({"MW1352", fmt::format("{} must be {}, got: {}", name, range, value),
                fmt::format("give a number {}", range), {.path = name}});
    };
    number("normEpsilon", c.normEpsilon, c.normEpsilon >= 0.0, "at least 0");
    number("rotaryBase", c.rotaryBase, c.rotaryBase > 0.0, "above 0");
    number("rotaryFraction", c.rotaryFraction, c.rotaryFraction >= 0.0 && c.rotaryFraction <= 1.0, "0 to 1");
    number("queryScale", c.queryScale, c.queryScale >= 0.0, "at least 0");
    number("attentionSoftcap", c.attentionSoftcap, c.attentionSoftcap >= 0.0, "at least 0");
    number("logitSoftcap", c.logitSoftcap, c.logitSoftcap >= 0.0, "at least 0");
}

void addFitProblems(const TransformerConfig& c, bool isKind, Problems& problems)
{
    const auto add = [&](const char* path, std::string message, std::string fix = {}) {
        problems.push_back({"MW1353", std::move(message), std::move(fix), {.path = path}});
    };
    if (c.mixer == MixerKind::Attention && c.heads % c.keyValueHeads != 0)
        add("keyValueHeads",
            fmt::format("{} query heads cannot be shared evenly by {} key and value heads", c.heads, c.keyValueHeads),
            fmt::format("give a number of key and value heads that divides {}", c.heads));
    if (c.isRecurrent() && c.stateHeads % c.stateKeyHeads != 0)
        add("stateKeyHeads",
            fmt::format("{} heads of states cannot be shared evenly by {} heads of keys", c.stateHeads, c.stateKeyHeads));
    if (c.outputRank > 0 && c.heads % c.outputGroups != 0)
        add("outputGroups", fmt::format("{} heads cannot be {} equal groups", c.heads, c.outputGroups));
    if (c.mixer == MixerKind::Attention && c.position == PositionKind::Rotary && rotaryDims(c) % 2 != 0)
        add(c.keyValueRank > 0 ? "latentRotaryDim" : "headDim",
            fmt::format("rotary positions rotate pairs, but {} dims of a head are rotated", rotaryDims(c)));
    if (c.keyValueRank > 0 && c.keyValueHeads != c.heads)
        add("keyValueHeads",
            fmt::format("latent attention has a key and a value for each of its {} heads, got: {}", c.heads, c.keyValueHeads));
    if (c.keyValueRank > 0 && c.attentionBias)
        add("attentionBias", "biases of latent attention are not supported");
    if ((c.keyValueRank > 0 || c.queryRank > 0) && c.queryKeyNorm)
        add("queryKeyNorm", "latent attention normalises its latents, not each head's queries and keys");
    if (c.expertsPerToken > c.experts && !(isKind && c.experts == 0)) // other kinds may have some
        add("expertsPerToken", fmt::format("a token cannot use {} of {} experts", c.expertsPerToken, c.experts));
    if (c.denseLayers > c.layers)
        add("denseLayers", fmt::format("{} dense layers in a model of {} layers", c.denseLayers, c.layers));
    if (c.slidingWindowLayers > c.layers)
        add("slidingWindowLayers",
            fmt::format("{} layers with a window in a model of {} layers", c.slidingWindowLayers, c.layers));
}

void addKindProblems(const TransformerConfig& c, Problems& problems)
{
    std::vector<std::int64_t> counts(c.kinds.size(), 0);
    for (const std::int64_t kind : c.pattern) {
        if (kind < 0 || kind >= static_cast<std::int64_t>(c.kinds.size())) {
            problems.push_back(
                {"MW1353", fmt::format("the pattern names kind {} of {} kinds", kind, c.kinds.size()), {}, {.path = "pattern"}});
            return;
        }
        ++counts[static_cast<std::size_t>(kind)];
    }
    if (!c.kinds.empty() && static_cast<std::int64_t>(c.pattern.size()) != c.layers)
        problems.push_back({"MW1353", fmt::format("the pattern has {} layers, and the model {}", c.pattern.size(), c.layers), {},
            {.path = "pattern"}});
    for (std::size_t i = 0; i < c.kinds.size(); ++i) {
        const TransformerConfig& kind = c.kinds[i];
        const std::size_t before = problems.size();
        addRangeProblems(kind, true, problems);
        if (problems.size() == before)
            addFitProblems(kind, true, problems);
        const bool isPart = kind.layers == counts[i] && kind.hidden == c.hidden && kind.vocabulary == c.vocabulary
            && kind.kinds.empty() && kind.denseLayers == 0 && kind.slidingWindowLayers == 0;
        if (problems.size() == before && !isPart)
            problems.push_back(
                {"MW1353", fmt::format("kind {} does not fit the model, whose pattern has {} of its layers", i, counts[i]), {},
                    {.path = "kinds"}});
        if (problems.size() == before && kind.mixer == MixerKind::None && !kind.hasFeedForward())
            problems.push_back(
                {"MW1353", fmt::format("kind {} has neither attention nor a feed-forward block", i), {}, {.path = "kinds"}});
    }
}

} // namespace

std::int64_t rotaryDims(const TransformerConfig& config)
{
    if (config.keyValueRank > 0)
        return config.latentRotaryDim;
    return static_cast<std::int64_t>(static_cast<double>(config.headDim) * config.rotaryFraction);
}

std::vector<TransformerConfig> layerGroups(const TransformerConfig& config)
{
    if (!config.kinds.empty())
        return config.kinds;
    std::vector<TransformerConfig> groups;
    const std::int64_t dense = config.experts > 0 ? config.denseLayers : 0;
    if (dense > 0) {
        groups.push_back(config);
        groups.back().experts = 0;
        groups.back().layers = dense;
    }
    if (config.layers > dense) {
        groups.push_back(config);
        groups.back().layers -= dense;
    }
    for (TransformerConfig& group : groups)
        group.denseLayers = group.slidingWindowLayers = 0;
    return groups;
}

Problems transformerProblems(const TransformerConfig& config)
{
    Problems problems;
    addRangeProblems(config, !config.kinds.empty(), problems);
    if (problems.empty())
        addFitProblems(config, false, problems);
    if (problems.empty())
        addKindProblems(config, problems);
    if (!problems.empty())
        return problems;
    const double parameters = total(countsOf<double>(config, &TransformerConfig::experts), config);
    if (!(parameters <= kMostParameters))
        problems.push_back({"MW1353", fmt::format("the model has {} parameters, more than 2^53", formatCount(parameters)), {},
            {.path = "layers"}});
    return problems;
}

ParameterCounts parameterCounts(const TransformerConfig& config)
{
    const auto all = countsOf<std::int64_t>(config, &TransformerConfig::experts);
    const auto active = countsOf<std::int64_t>(config, &TransformerConfig::expertsPerToken);
    ParameterCounts result;
    result.embedding = all.tokenTable + all.positions;
    result.head = config.tiedEmbeddings ? 0 : all.tokenTable;
    if (config.kinds.empty()) {
        const auto layer = layerCounts<std::int64_t>(config);
        TransformerConfig dense = config;
        dense.experts = 0;
        const auto plain = layerCounts<std::int64_t>(dense);
        result.attentionPerLayer = layer.mixerMatrices + layer.mixerBiases;
        result.ffnPerLayer = plain.ffnMatrices + plain.ffnBiases;
        if (config.experts > 0)
            result.expertsPerLayer
                = layer.matrices(config.experts) + layer.others(config.experts) - result.attentionPerLayer - layer.norms;
        result.normsPerLayer = layer.norms;
    }
    result.finalNorm = all.finalNorm;
    result.total = total(all, config);
    result.active = total(active, config);
    const std::int64_t tables = all.tokenTable + result.head;
    result.matrices = tables + all.matricesOfLayers;
    result.activeMatrices = tables + active.matricesOfLayers;
    return result;
}

namespace {

/// Of one token in all layers of one kind, forward: twice the multiply-adds.
double mixingFlops(const TransformerConfig& c, double keys)
{
    const auto number = [](std::int64_t value) { return static_cast<double>(value); };
    if (c.mixer == MixerKind::None)
        return 0.0;
    if (c.isRecurrent()) {
        const double passes = c.mixer == MixerKind::DeltaRule ? 3.0 : 2.0;
        return 2.0 * passes * number(c.layers) * number(c.stateHeads) * number(c.stateKeyDim) * number(c.stateValueDim);
    }
    const std::int64_t windowed = c.slidingWindow == 0 ? 0 : c.slidingWindowLayers > 0 ? c.slidingWindowLayers : c.layers;
    const double seen = std::min(keys, number(c.slidingWindow));
    double keysOfLayers = number(c.layers - windowed) * keys + number(windowed) * seen;
    double index = 0.0;
    if (c.compression > 0) {
        const double compressed = keys / number(c.compression);
        keysOfLayers += number(c.layers) * (c.indexHeads > 0 ? std::min(compressed, number(c.indexKeys)) : compressed);
        index = number(c.layers) * compressed * number(c.indexHeads) * number(c.indexHeadDim);
    }
    const std::int64_t scoreDim = c.headDim + (c.keyValueRank > 0 ? c.latentRotaryDim : 0);
    const std::int64_t valueDim = c.valueHeadDim > 0 ? c.valueHeadDim : c.headDim;
    return 2.0 * (keysOfLayers * number(c.heads) * number(scoreDim + valueDim) + index);
}

} // namespace

double modelFlopsPerToken(const TransformerConfig& config, std::int64_t sequence, AttentionCount count)
{
    assert(sequence >= 1);
    const ParameterCounts counts = parameterCounts(config);
    const std::int64_t lookedUp = config.tiedEmbeddings ? 0 : counts.head; // one of the two equal tables is only looked up in
    const double products = 6.0 * static_cast<double>(counts.activeMatrices - lookedUp);
    if (count == AttentionCount::None)
        return products;
    const double keys = static_cast<double>(sequence) / (count == AttentionCount::Causal ? 2.0 : 1.0);
    double mixing = 0.0;
    if (config.kinds.empty())
        mixing = mixingFlops(config, keys);
    for (const TransformerConfig& kind : config.kinds)
        mixing += mixingFlops(kind, keys);
    return products + 3.0 * mixing;
}

} // namespace meshwright
