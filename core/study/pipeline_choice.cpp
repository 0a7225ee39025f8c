// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/pipeline_choice.h"

#include <algorithm>

namespace meshwright {

bool isPipelined(const PipelineChoice& pipeline)
{
    return pipeline.stages > 1 || pipeline.microbatches > 1 || pipeline.chunks > 1;
}

PipelineChoice stepPipeline(const Study& study)
{
    PipelineChoice pipeline = study.pipeline;
    if (!isPipelined(pipeline))
        pipeline.microbatches = study.train.accumulate;
    return pipeline;
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
    std::vector<std::int64_t> counts(static_cast<std::size_t>(pieces), layers / pieces);
    const auto first = counts.begin() + (pieces == layers + 2 ? 1 : 0);
    std::for_each(first, first + layers % pieces, [](std::int64_t& count) { ++count; });
    return counts;
}

} // namespace meshwright
