// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/transformer.h"

#include "core/models/transformer_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <tuple>

namespace meshwright {

namespace {

using Kind = ModelArray::Kind;

/// What attention makes of its input: name, heads, size of a head.
std::array<std::tuple<const char*, std::int64_t, std::int64_t>, 3> projectionsOf(const TransformerConfig& c)
{
    const std::int64_t values = c.valueHeadDim > 0 ? c.valueHeadDim : c.headDim;
    const std::int64_t rotary = c.keyValueRank > 0 ? c.latentRotaryDim : 0; // beside the others
    return {{{"q", c.heads, c.headDim + rotary}, {"k", c.keyValueHeads, c.headDim + rotary}, {"v", c.keyValueHeads, values}}};
}

} // namespace

std::vector<ModelArray> transformerParameters(const TransformerModel& model)
{
    const TransformerConfig& c = model.config;
    std::vector<ModelArray> arrays;
    arrays.push_back({"embedding.w", {c.vocabulary, c.hidden}, {"vocabulary", "hidden"}, c.hidden, Kind::Weight});
    if (c.position == PositionKind::Learned)
        arrays.push_back({"positions.w", {c.maxPositions, c.hidden}, {"positions", "hidden"}, c.hidden, Kind::Weight});
    for (const LayerRun& run : layerRuns(model)) {
        const std::vector<ModelArray> one = layerArrays(c, run.hasExperts);
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
    for (const LayerRun& run : layerRuns(model)) {
        for (std::int64_t i = 0; i < (model.unrolled ? run.count : 1); ++i) {
            const std::string act = "act." + layerName(model, run, i);
            add(act + ".attention.input", stream, words);
            for (const auto& [name, heads, size] : projectionsOf(c))
                add(act + ".attention." + name, {batch, model.sequence, heads, size},
                    {"batch", "sequence", heads == c.heads ? "heads" : "key and value heads", "head size"});
            add(act + ".attention.mixed",
                {batch, model.sequence, c.keyValueHeads, c.heads / c.keyValueHeads, std::get<2>(projectionsOf(c).back())},
                {"batch", "sequence", "key and value heads", "heads of each", "head size"});
            add(act + ".attention", stream, words);
            add(act + ".ffn.input", stream, words);
            if (!run.hasExperts)
                add(act + ".ffn.hidden", {batch, model.sequence, c.ffn}, {"batch", "sequence", "ffn"});
            add(act + ".ffn", stream, words);
            add(act, stream, words);
        }
    }
    if (model.predict == Prediction::EveryToken)
        add("act.logits", {batch, model.sequence / model.lossChunks, c.vocabulary}, {"batch", "sequence", "vocabulary"});
    else
        add("act.logits", {batch, c.vocabulary}, {"batch", "vocabulary"});
    return arrays;
}

const std::vector<std::string>& keepableNames()
{
    static const std::vector<std::string> kNames = {"attention.input", "attention.q", "attention.k", "attention.v",
        "attention.mixed", "attention", "ffn.input", "ffn.hidden", "ffn"};
    return kNames;
}

std::string layerOutput(const TransformerModel& model, std::int64_t layer)
{
    const std::vector<LayerRun> runs = layerRuns(model);
    const auto run
        = std::find_if(runs.begin(), runs.end(), [layer](const LayerRun& one) { return layer < one.first + one.count; });
    assert(layer >= 0 && run != runs.end());
    return "act." + layerName(model, *run, layer - run->first) + (std::ranges::binary_search(model.cuts, layer) ? ".out" : "");
}

Problems sizeProblems(const TransformerModel& model)
{
    const TransformerConfig& c = model.config;
    Problems problems = transformerProblems(c);
    constexpr std::int64_t kMostCopies = 512;
    if (model.unrolled && c.layers > kMostCopies)
        problems.push_back({"MW1352",
            fmt::format("layers must be 1 to {} with unroll, which writes a copy of each, got: {}", kMostCopies, c.layers),
            "leave unroll out: equal layers are one loop", {.path = "layers"}});
    constexpr std::int64_t kLongest = std::int64_t{1} << 30; // positions are i32
    if (model.sequence < 1 || model.sequence > kLongest)
        problems.push_back(
            {"MW1352", fmt::format("sequence must be 1 to 2^30, got: {}", model.sequence), {}, {.path = "sequence"}});
    else if (c.position == PositionKind::Learned && model.sequence > c.maxPositions)
        problems.push_back(
            {"MW1355", fmt::format("a sequence of {} tokens, but only {} positions are learned", model.sequence, c.maxPositions),
                fmt::format("use a sequence of at most {}", c.maxPositions), {.path = "sequence"}});
    const bool isWhole = model.lossChunks >= 1 && (model.sequence < 1 || model.sequence % model.lossChunks == 0);
    if (!isWhole || (model.lossChunks > 1 && model.predict == Prediction::LastToken))
        problems.push_back({"MW1352",
            model.predict == Prediction::LastToken
                ? fmt::format("lossChunks must be 1 where only the last token is predicted, got: {}", model.lossChunks)
                : fmt::format(
                    "lossChunks must be a number that divides the sequence of {}, got: {}", model.sequence, model.lossChunks),
            {}, {.path = "lossChunks"}});
    if (!std::isfinite(model.capacityFactor) || model.capacityFactor < 0.0)
        problems.push_back({"MW1352", fmt::format("capacityFactor must be at least 0, got: {}", model.capacityFactor), {},
            {.path = "capacityFactor"}});
    return problems;
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
