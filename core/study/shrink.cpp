// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/shrink.h"

#include "core/models/transformer_layers.h"
#include "core/study/study_parts.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <optional>

namespace meshwright {

namespace {

constexpr int kMostSplit = 5; ///< axes of two devices
constexpr std::int64_t kMostMicrobatches = 4;
constexpr std::int64_t kMostLayersOfPiece = 2;

/// Every split axis with two devices. The devices that are left.
std::int64_t shrinkAxes(std::vector<MeshAxis>& mesh)
{
    std::int64_t devices = 1;
    int split = 0;
    for (MeshAxis& axis : mesh) {
        axis.size = axis.size > 1 && split < kMostSplit ? 2 : 1;
        split += axis.size > 1 ? 1 : 0;
        devices *= axis.size;
    }
    return devices;
}

void shrinkHardware(HardwareChoice& hardware, std::int64_t devices)
{
    std::int64_t left = devices;
    if (hardware.slices) {
        hardware.slices = std::gcd(devices, 2);
        left /= *hardware.slices;
    }
    for (std::int64_t& size : hardware.topology)
        size = 1;
    for (std::size_t dim = 0; !hardware.topology.empty() && left > 1; dim = (dim + 1) % hardware.topology.size(), left /= 2)
        hardware.topology[dim] *= 2;
    if (hardware.chipsPerHost)
        hardware.chipsPerHost = std::gcd(*hardware.chipsPerHost, devices);
    if (hardware.hosts)
        hardware.hosts = hardware.chipsPerHost ? devices / *hardware.chipsPerHost : 1;
}

/// Small sizes that every product of split axes divides.
struct SmallSizes {
    std::int64_t devices;

    std::int64_t of(std::int64_t size, std::int64_t least) const { return size > 0 ? std::max(least, devices) : size; }
    /// Groups that share something: as many as there are, or half.
    std::int64_t groupsOf(std::int64_t groups, std::int64_t all, std::int64_t smallAll) const
    {
        return groups == all ? smallAll : groups > 1 ? std::max<std::int64_t>(devices, 2) : groups;
    }
};

void shrinkSizes(TransformerConfig& c, const SmallSizes& small, std::int64_t sequence)
{
    const std::int64_t heads = 2 * small.of(c.heads, 2); // so that halves of them divide too
    c.keyValueHeads = small.groupsOf(c.keyValueHeads, c.heads, heads);
    c.heads = heads;
    c.headDim = 8;
    c.hidden = small.of(c.hidden, 16);
    c.ffn = 2 * small.of(c.ffn, 16);
    c.vocabulary = small.of(c.vocabulary, 32);
    c.maxPositions = c.maxPositions > 0 ? std::max<std::int64_t>(sequence, 1) : 0;
    c.slidingWindow = std::min(c.slidingWindow, sequence / 4);
    c.experts = small.of(c.experts, 4);
    c.expertsPerToken = std::min<std::int64_t>(c.expertsPerToken, 2);
    c.expertFfn = small.of(c.expertFfn, 16);
    c.expertHidden = small.of(c.expertHidden, 16);
    c.sharedExperts = std::min<std::int64_t>(c.sharedExperts, 1);
    c.queryRank = small.of(c.queryRank, 8);
    c.keyValueRank = small.of(c.keyValueRank, 8);
    c.latentRotaryDim = c.latentRotaryDim > 0 ? 4 : 0;
    c.valueHeadDim = c.valueHeadDim > 0 ? 8 : 0;
    c.outputRank = small.of(c.outputRank, 8);
    c.outputGroups = std::min<std::int64_t>(c.outputGroups, 2);
    const std::int64_t states = 2 * small.of(c.stateHeads, 2);
    c.stateKeyHeads = small.groupsOf(c.stateKeyHeads, c.stateHeads, states);
    c.stateHeads = states;
    c.stateKeyDim = c.stateKeyDim > 0 ? 4 : 0;
    c.stateValueDim = c.stateValueDim > 0 ? 4 : 0;
    c.decayRank = small.of(c.decayRank, 4);
    c.gateRank = small.of(c.gateRank, 4);
}

/// True for a spec of one layer by its number: layers that have names keep them.
bool namesLayers(const StudySharding& sharding)
{
    return std::any_of(sharding.entries.begin(), sharding.entries.end(), [](const ShardingEntry& entry) {
        const std::size_t at = entry.name.find("layers.");
        return at != std::string::npos && at + 7 < entry.name.size()
            && std::isdigit(static_cast<unsigned char>(entry.name[at + 7])) != 0;
    });
}

void shrinkLayers(TransformerConfig& config, std::int64_t piecesBefore, std::int64_t pieces)
{
    const std::int64_t each
        = std::clamp<std::int64_t>(config.layers / std::max<std::int64_t>(1, piecesBefore), 1, kMostLayersOfPiece);
    std::int64_t layers = std::min(config.layers, pieces * each);
    if (!config.pattern.empty()) { // long enough for every kind
        std::vector<std::int64_t> missing(config.kinds.size());
        for (std::size_t kind = 0; kind < missing.size(); ++kind)
            missing[kind] = std::find(config.pattern.begin(), config.pattern.end(), static_cast<std::int64_t>(kind))
                - config.pattern.begin() + 1;
        layers = std::max(layers, *std::max_element(missing.begin(), missing.end()));
        layers = std::min((layers + pieces - 1) / pieces * pieces, config.layers);
        config.pattern.resize(static_cast<std::size_t>(layers));
    }
    config.layers = layers;
    config.denseLayers = std::min<std::int64_t>(config.denseLayers, 1);
    if (config.slidingWindowLayers > 0)
        config.slidingWindowLayers = std::min(config.slidingWindowLayers, std::max<std::int64_t>(1, layers / 2));
}

/// The model with few turns of each loop over layers of several kinds. Nothing where the loops would be others, or the pieces uneven.
std::optional<TransformerModel> withFewTurns(const TransformerModel& model, std::int64_t pieces)
{
    TransformerModel few = model;
    few.config.pattern.clear();
    const std::vector<LayerLoop> before = layerLoops(model);
    for (const LayerLoop& loop : before) {
        for (std::int64_t turn = 0; turn < std::min(loop.front().count, kMostLayersOfPiece * pieces); ++turn) {
            for (const LayerRun& run : loop)
                few.config.pattern.push_back(model.config.pattern[static_cast<std::size_t>(run.at(turn))]);
        }
    }
    few.config.layers = static_cast<std::int64_t>(few.config.pattern.size());
    const bool isAlike = std::ranges::equal(before, layerLoops(few), {}, &LayerLoop::size, &LayerLoop::size);
    return isAlike && few.config.layers % pieces == 0 ? std::optional(few) : std::nullopt;
}

/// "layers.0-47.1" becomes "layers.0-7.1", in the name of an array or in a rule for many.
void renameLayers(std::string& name, const std::vector<LayerRun>& before, const std::vector<LayerRun>& after)
{
    for (std::size_t i = 0; i < before.size(); ++i) {
        const std::string& prefix = before[i].prefix;
        const std::size_t at = name.find(prefix);
        const std::size_t behind = at + prefix.size();
        if (at == std::string::npos || (at > 0 && name[at - 1] != '.') || (behind < name.size() && name[behind] != '.'))
            continue;
        name.replace(at, prefix.size(), after[i].prefix);
        return;
    }
}

/// Fewer layers, where specs name those of a loop by their numbers. False: they cannot be fewer.
bool shrinkTurns(TransformerModel& model, std::int64_t pieces, StudySharding& sharding)
{
    if (model.config.pattern.empty() || model.unrolled)
        return false;
    auto few = withFewTurns(model, pieces);
    if (!few)
        return false;
    const std::vector<LayerRun> before = layerRuns(model);
    const std::vector<LayerRun> after = layerRuns(*few);
    for (ShardingEntry& entry : sharding.entries)
        renameLayers(entry.name, before, after);
    for (MatchRule& rule : sharding.match)
        renameLayers(rule.glob, before, after);
    model = *std::move(few);
    return true;
}

} // namespace

Study shrunk(Study study)
{
    if (!study.trains())
        return study;
    const PipelineChoice before = study.pipeline;
    std::int64_t devices = shrinkAxes(study.mesh);
    for (StudyPhase& phase : study.phases) {
        devices = std::max(devices, shrinkAxes(phase.mesh));
        phase.deviceOrder.clear();
    }
    study.deviceOrder.clear();
    study.faults = {};
    if (study.hardware)
        shrinkHardware(*study.hardware, devices);
    PipelineChoice& pipeline = study.pipeline;
    for (const MeshAxis& axis : study.mesh) {
        if (before.stages > 1 && axis.name == pipeline.axis)
            pipeline.stages = axis.size;
    }
    pipeline.microbatches = std::min(pipeline.microbatches, kMostMicrobatches);
    pipeline.layers.clear();
    study.train.accumulate = std::min(study.train.accumulate, kMostMicrobatches);
    study.train.data = {};
    study.train.evaluate = {};
    study.batch = devices * pipeline.microbatches * study.train.accumulate;

    const SmallSizes small{devices};
    std::int64_t widest = small.of(1, 16);
    if (auto* mlp = std::get_if<MlpModel>(&study.model)) {
        for (std::int64_t& width : mlp->layers)
            width = small.of(width, 16);
    } else {
        auto& model = std::get<TransformerModel>(study.model);
        model.sequence = std::max<std::int64_t>(16, 4 * devices);
        model.lossChunks = std::min<std::int64_t>(model.lossChunks, 2);
        model.zigzag = std::min<std::int64_t>(model.zigzag, 2);
        model.dispatchGroups = std::min<std::int64_t>(model.dispatchGroups, 2);
        TransformerConfig& config = model.config;
        shrinkSizes(config, small, model.sequence);
        for (TransformerConfig& kind : config.kinds)
            shrinkSizes(kind, small, model.sequence);
        if (!shrinkTurns(model, pipeline.stages * pipeline.chunks, study.sharding) && !namesLayers(study.sharding))
            shrinkLayers(config, before.stages * before.chunks, pipeline.stages * pipeline.chunks);
        countKinds(config);
        widest = std::max(widest, config.hidden);
    }
    for (MatchRule& rule : study.sharding.match) // a rule for large arrays still leaves vectors out
        rule.minElements = std::min(rule.minElements, widest + 1);
    return study;
}

} // namespace meshwright
