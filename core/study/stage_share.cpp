// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/stage_share.h"

#include "core/models/array_name.h"
#include "core/models/transformer_layers.h"
#include "core/study/pipeline_choice.h"
#include "core/support/checked.h"

#include <algorithm>

namespace meshwright {

namespace {

/// True for "layers.ffn.up.w" and for what is made of it: "opt.m.layers.ffn.up.w".
bool belongsTo(std::string_view array, const std::string& prefix)
{
    const std::size_t at = array.find(prefix + ".");
    return at != std::string_view::npos && (at == 0 || array[at - 1] == '.');
}

bool isOfActivations(const ArrayName& array)
{
    return array.family == ArrayName::Family::Activation
        || (array.family == ArrayName::Family::Gradient && isOfActivations(arrayNameOf(array.base)));
}

/// True for what a stage has of one microbatch at a time: "x", "predictions", "act.layers.0" and the gradients of activations.
bool isOfBatch(std::string_view array, const Shape& shape, std::int64_t batch)
{
    const bool passes = array == "x" || array == "y" || array == "predictions" || isOfActivations(arrayNameOf(array));
    return passes && batch > 0 && shape[0] % batch == 0;
}

/// The most layers of a run that a stage has.
std::int64_t mostLayersOf(const LayerRun& run, const PipelineChoice& pipeline, std::int64_t layers)
{
    const std::vector<std::int64_t> pieces = layersOfPieces(pipeline, layers);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(pipeline.stages), 0);
    std::int64_t layer = 0;
    for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
        for (const std::int64_t end = layer + pieces[piece]; layer < end; ++layer)
            counts[piece % counts.size()] += run.has(layer) ? 1 : 0;
    }
    return *std::ranges::max_element(counts);
}

} // namespace

Shape StageShare::pieceOf(Shape piece) const
{
    if (layers > 0)
        piece[0] = ceilDiv(piece[0] * layersOfStage, layers);
    if (microbatches > 1)
        piece[0] = ceilDiv(piece[0], microbatches);
    return piece;
}

StageShare stageShareOf(const Study& study, std::string_view array, const Shape& shape)
{
    const PipelineChoice& pipeline = study.pipeline;
    const TransformerModel* transformer = study.transformer();
    StageShare share;
    if (shape.empty())
        return share; // scalars are on every stage
    if (isOfBatch(array, shape, study.batch))
        share.microbatches = std::max<std::int64_t>(1, pipeline.microbatches);
    if (pipeline.stages <= 1)
        return share;
    const bool isOnTwo = transformer != nullptr && transformer->config.tiedEmbeddings && belongsTo(array, "embedding");
    share.stages = isOnTwo ? std::max<std::int64_t>(1, pipeline.stages / 2) : pipeline.stages;
    if (transformer == nullptr || transformer->unrolled)
        return share;
    if (isOfActivations(arrayNameOf(array))) {
        share.isOfEachStage = std::ranges::any_of(layerRuns(*transformer),
            [&](const LayerRun& run) { return belongsTo(array, run.prefix) || array.ends_with("." + run.prefix); });
        return share;
    }
    const std::int64_t mostPieces = transformer->config.layers + 2;
    if (pipeline.stages > mostPieces || pipeline.chunks < 1 || pipeline.chunks > mostPieces)
        return share; // which is a problem of its own
    for (const LayerRun& run : layerRuns(*transformer)) {
        if (!belongsTo(array, run.prefix) || shape[0] != run.count)
            continue;
        share.layers = run.count;
        share.layersOfStage = mostLayersOf(run, pipeline, transformer->config.layers);
    }
    return share;
}

} // namespace meshwright
