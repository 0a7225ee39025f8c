// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/pipeline_choice.h"

namespace meshwright {

bool isPipelined(const PipelineChoice& pipeline)
{
    return pipeline.stages > 1 || pipeline.microbatches > 1 || pipeline.chunks > 1;
}

std::int64_t pieceCount(const PipelineChoice& pipeline)
{
    return pipeline.stages * pipeline.chunks;
}

std::vector<std::int64_t> layersOfPieces(const PipelineChoice& pipeline, std::int64_t layers)
{
    if (!pipeline.layers.empty())
        return pipeline.layers;
    const std::int64_t pieces = pieceCount(pipeline);
    std::vector<std::int64_t> counts;
    for (std::int64_t piece = 0; piece < pieces; ++piece)
        counts.push_back(layers / pieces + (piece < layers % pieces ? 1 : 0));
    return counts;
}

} // namespace meshwright
