// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/transformer.h"

#include "core/models/training_program.h"
#include "core/models/transformer_blocks.h"
#include "core/models/transformer_layers.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <functional>

namespace meshwright {

namespace {

using Kind = ModelArray::Kind;

/// What attention or a recurrence makes of its input.
struct Projection {
    const char* name;
    std::int64_t heads;
    std::int64_t size; ///< of a head
    bool isOfKeys; ///< of key and value heads, where those are fewer
};

std::array<Projection, 3> projectionsOf(const TransformerConfig& c)
{
    if (c.isRecurrent())
        return {{{"q", c.stateKeyHeads, c.stateKeyDim, true}, {"k", c.stateKeyHeads, c.stateKeyDim, true},
            {"v", c.stateHeads, c.stateValueDim, false}}};
    const std::int64_t values = c.valueHeadDim > 0 ? c.valueHeadDim : c.headDim;
    const std::int64_t rotary = c.keyValueRank > 0 ? c.latentRotaryDim : 0; // beside the others
    const bool isOfKeys = c.keyValueHeads != c.heads;
    return {{{"q", c.heads, c.headDim + rotary, false}, {"k", c.keyValueHeads, c.headDim + rotary, isOfKeys},
        {"v", c.keyValueHeads, values, isOfKeys}}};
}

/// What the program of one kind of layers lacks; empty: nothing.
std::string missingPart(const TransformerConfig& c)
{
    if (c.decayRank > 0 || c.gateRank > 0)
        return "states that decay by each key dimension";
    if (c.compression > 0)
        return "compressed keys";
    if (c.residualStreams > 0)
        return "several residual streams";
    if (c.outputRank > 0 || (c.queryRank > 0 && c.keyValueRank == 0))
        return "queries or outputs through a rank";
    return "";
}

/// Calls `visit` for each layer of which a program has arrays of its own: those of a loop's body, of the first iteration, or all.
void forEachLayer(const TransformerModel& model, const std::function<void(const LayerRun& run, std::int64_t index)>& visit)
{
    for (const LayerLoop& loop : layerLoops(model)) {
        for (std::int64_t i = 0; i < (model.unrolled ? loop.front().count : 1); ++i) {
            for (const LayerRun& run : loop)
                visit(run, i);
        }
    }
}

} // namespace

Problems programProblems(const TransformerConfig& c)
{
    std::vector<std::string> missing;
    for (const TransformerConfig& kind : layerGroups(c)) {
        const std::string part = missingPart(kind);
        if (!part.empty() && std::find(missing.begin(), missing.end(), part) == missing.end())
            missing.push_back(part);
    }
    if (missing.empty())
        return {};
    return {Problem{"MW1358",
        fmt::format("{} has layers of {}: they are counted, but their program is not built",
            c.name.empty() ? "the model" : c.name, join(missing, ", ")),
        "use a model whose layers are all of attention, with dense blocks or experts", {.path = "config"}}};
}

std::vector<ModelArray> transformerParameters(const TransformerModel& model)
{
    const TransformerConfig& c = model.config;
    std::vector<ModelArray> arrays;
    arrays.push_back({"embedding.w", {c.vocabulary, c.hidden}, {DimRole::Vocabulary, DimRole::Hidden}, c.hidden, Kind::Weight});
    if (c.position == PositionKind::Learned)
        arrays.push_back(
            {"positions.w", {c.maxPositions, c.hidden}, {DimRole::Positions, DimRole::Hidden}, c.hidden, Kind::Weight});
    forEachLayer(model, [&](const LayerRun& run, std::int64_t index) {
        for (ModelArray array : layerArrays(run.layer)) {
            array.name = fmt::format("{}.{}", layerName(model, run, index), array.name);
            if (!model.unrolled) {
                array.shape.insert(array.shape.begin(), run.count);
                array.meaning.insert(array.meaning.begin(), DimRole::Layers);
            }
            arrays.push_back(std::move(array));
        }
    });
    arrays.push_back({"norm.scale", {c.hidden}, {DimRole::Hidden}, 1, Kind::Scale});
    if (c.norm == NormKind::LayerNorm)
        arrays.push_back({"norm.bias", {c.hidden}, {DimRole::Hidden}, 1, Kind::Bias});
    if (!c.tiedEmbeddings)
        arrays.push_back({"head.w", {c.hidden, c.vocabulary}, {DimRole::Hidden, DimRole::Vocabulary}, c.hidden, Kind::Weight});
    return arrays;
}

std::vector<ModelArray> transformerActivations(const TransformerModel& model, std::int64_t batch)
{
    const TransformerConfig& c = model.config;
    std::vector<ModelArray> arrays;
    const auto add = [&](std::string name, Shape shape, std::vector<DimMeaning> meaning) {
        arrays.push_back({std::move(name), std::move(shape), std::move(meaning), 1, Kind::Activation});
    };
    const Shape stream = {batch, model.sequence, c.hidden};
    const std::vector<DimMeaning> meanings = {DimRole::Batch, DimRole::Sequence, DimRole::Hidden};
    add("act.embedding", stream, meanings);
    forEachLayer(model, [&](const LayerRun& run, std::int64_t index) {
        const std::string act = "act." + layerName(model, run, index);
        const TransformerConfig& layer = run.layer;
        if (layer.mixer != MixerKind::None) {
            const auto projections = projectionsOf(layer);
            add(act + ".attention.input", stream, meanings);
            for (const Projection& made : projections) {
                if (layer.keysAsValues && made.name == std::string_view("v"))
                    continue; // they are the keys
                add(act + ".attention." + made.name, {batch, model.sequence, made.heads, made.size},
                    {DimRole::Batch, DimRole::Sequence, made.isOfKeys ? DimRole::KeyValueHeads : DimRole::Heads,
                        DimRole::HeadSize});
            }
            const std::int64_t groups = layer.isRecurrent() ? layer.stateKeyHeads : layer.keyValueHeads;
            const std::int64_t heads = layer.isRecurrent() ? layer.stateHeads : layer.heads;
            add(act + ".attention.mixed", {batch, model.sequence, groups, heads / groups, projections.back().size},
                {DimRole::Batch, DimRole::Sequence, DimRole::KeyValueHeads, DimRole::HeadsOfEach, DimRole::HeadSize});
            add(act + ".attention", stream, meanings);
        }
        if (layer.hasFeedForward()) {
            add(act + ".ffn.input", stream, meanings);
            if (layer.experts == 0)
                add(act + ".ffn.hidden", {batch, model.sequence, layer.ffn}, {DimRole::Batch, DimRole::Sequence, DimRole::Ffn});
            if (layer.experts > 0 && model.capacityFactor > 0.0) {
                const std::int64_t capacity = expertCapacity(model, layer);
                const std::int64_t groups = model.dispatchGroups;
                const std::int64_t width = layer.expertHidden > 0 ? layer.expertHidden : c.hidden;
                for (const char* name : {".experts.sent", ".experts.returned"})
                    add(act + name, {batch, groups, layer.experts, capacity, width},
                        {DimRole::Batch, DimRole::Groups, DimRole::Experts, DimRole::Capacity, DimRole::Hidden});
                for (const char* name : {".experts.received", ".experts.made"})
                    add(act + name, {layer.experts, batch, groups, capacity, width},
                        {DimRole::Experts, DimRole::Batch, DimRole::Groups, DimRole::Capacity, DimRole::Hidden});
                add(act + ".ffn.hidden", {layer.experts, batch, groups, capacity, layer.expertFfn},
                    {DimRole::Experts, DimRole::Batch, DimRole::Groups, DimRole::Capacity, DimRole::Ffn});
            }
            add(act + ".ffn", stream, meanings);
        }
        add(act, stream, meanings);
    });
    if (model.predict == Prediction::EveryToken)
        add("act.logits", {batch, model.sequence / model.lossChunks, c.vocabulary},
            {DimRole::Batch, DimRole::Sequence, DimRole::Vocabulary});
    else
        add("act.logits", {batch, c.vocabulary}, {DimRole::Batch, DimRole::Vocabulary});
    return arrays;
}

std::int64_t expertCapacity(const TransformerModel& model, const TransformerConfig& layer)
{
    const std::int64_t tokens = model.sequence / model.dispatchGroups;
    const auto share = static_cast<double>(tokens * layer.expertsPerToken) / static_cast<double>(layer.experts);
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(share * model.capacityFactor)), 1, tokens);
}

const std::vector<std::string>& keepableNames()
{
    static const std::vector<std::string> kNames = {"attention.input", "attention.q", "attention.k", "attention.v",
        "attention.mixed", "attention", "ffn.input", "ffn.up", "ffn.gate", "ffn.hidden", "ffn"};
    return kNames;
}

const std::vector<std::string>& offloadableNames()
{
    static const std::vector<std::string> kNames = [] {
        std::vector<std::string> names = keepableNames();
        names.insert(names.begin(), kLayerInput);
        return names;
    }();
    return kNames;
}

std::string layerOutput(const TransformerModel& model, std::int64_t layer)
{
    if (layer < 0)
        return "act.embedding";
    const std::vector<LayerRun> runs = layerRuns(model);
    const auto run = std::find_if(runs.begin(), runs.end(), [layer](const LayerRun& one) { return one.has(layer); });
    assert(run != runs.end());
    return "act." + layerName(model, *run, (layer - run->first) / run->stride)
        + (std::ranges::binary_search(model.cuts, layer) ? ".out" : "");
}

Problems sizeProblems(const TransformerModel& model)
{
    const TransformerConfig& c = model.config;
    Problems problems = transformerProblems(c);
    if (problems.empty())
        append(problems, programProblems(c));
    constexpr std::int64_t kMostCopies = 512;
    if (model.unrolled && c.layers > kMostCopies)
        problems.push_back({"MW1352",
            fmt::format("layers must be 1 to {} with unroll, which writes a copy of each, got: {}", kMostCopies, c.layers),
            "leave unroll out: equal layers are one loop", {.path = "layers"}});
    constexpr std::int64_t kLongest = std::int64_t{1} << 30; // positions are i32
    if (model.sequence < 1 || model.sequence > kLongest)
        problems.push_back({"MW1352", fmt::format("sequence must be 1 to 2^30, got: {}", model.sequence),
            "give a number from 1 to 2^30", {.path = "sequence"}});
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
            "leave it out: the loss is computed at once then", {.path = "lossChunks"}});
    if (model.dispatchGroups < 1 || (model.sequence > 0 && model.sequence % model.dispatchGroups != 0))
        problems.push_back({"MW1352",
            fmt::format(
                "dispatchGroups must be a number that divides the sequence of {}, got: {}", model.sequence, model.dispatchGroups),
            "leave it out: tokens are dispatched together then", {.path = "dispatchGroups"}});
    const bool isOrdered = model.zigzag == 0
        || (model.zigzag > 0 && model.attention == AttentionOp::Fused && model.sequence % (2 * model.zigzag) == 0
            && !c.isRecurrent()
            && std::none_of(c.kinds.begin(), c.kinds.end(), [](const TransformerConfig& kind) { return kind.isRecurrent(); }));
    if (!isOrdered)
        problems.push_back({"MW1352",
            fmt::format("zigzag needs fused attention in every layer and a number of devices of which the double divides the "
                        "sequence of {}, got: {}",
                model.sequence, model.zigzag),
            "leave it out: tokens are in their order then", {.path = "zigzag"}});
    if (model.context != ContextExchange::Gather && model.attention != AttentionOp::Fused)
        problems.push_back({"MW1352", "plain attention cannot exchange keys and values in a ring, or heads",
            "use fused attention, or gather keys and values", {.path = "context"}});
    if (!std::isfinite(model.capacityFactor) || model.capacityFactor < 0.0)
        problems.push_back({"MW1352", fmt::format("capacityFactor must be at least 0, got: {}", model.capacityFactor),
            "leave it out: no token is dropped then", {.path = "capacityFactor"}});
    return problems;
}

std::vector<std::pair<std::string, RandomKey>> initKeys(
    const TransformerModel& model, const TrainingOptions& options, const RandomKey& key)
{
    std::vector<std::string> names;
    for (const ModelParameter& parameter : modelParameters(transformerParameters(model), options)) {
        if (isRandom(parameter.initializer))
            names.push_back("key." + parameter.name);
    }
    const std::vector<RandomKey> keys = splitKey(key, names.size() + 1, options.partitionableRandom);
    std::vector<std::pair<std::string, RandomKey>> named;
    for (std::size_t i = 0; i < names.size(); ++i)
        named.emplace_back(names[i], keys[i + 1]);
    return named;
}

} // namespace meshwright
