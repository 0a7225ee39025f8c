// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/transformer.h"

#include <string>
#include <vector>

namespace meshwright {

/// Layers that are alike.
struct LayerRun {
    /// "layers", "dense_layers"; of a part of a cut loop, and where layers are of several kinds, "layers.0-7", and of a loop with several layers
    /// in its body "layers.0-7.1", the second of each iteration.
    std::string prefix;
    std::int64_t first = 0; ///< of the model's layers
    std::int64_t count = 0;
    TransformerConfig layer; ///< as in `layerGroups`
    std::int64_t stride = 1; ///< from one to the next of the model's layers

    std::int64_t at(std::int64_t index) const { return first + index * stride; } ///< of the model's layers
    bool has(std::int64_t layerOfModel) const
    {
        const std::int64_t behind = layerOfModel - first;
        return behind >= 0 && behind % stride == 0 && behind / stride < count;
    }
};

/// Layers that are one loop: the layers of its body, each with those of all iterations. Where kinds of layers follow each other in turn, a body has
/// one turn (as MaxText's scannable blocks).
using LayerLoop = std::vector<LayerRun>;

/// In the model's order: those without experts, then those with, or turns of kinds, so that bodies have the fewest layers; each cut behind the
/// model's `cuts`.
std::vector<LayerLoop> layerLoops(const TransformerModel& model);

/// The runs of all loops. Precondition: as above.
std::vector<LayerRun> layerRuns(const TransformerModel& model);

/// The arrays of one layer of a kind, without the dimension of layers, named as behind `layerName` and a dot.
std::vector<ModelArray> layerArrays(const TransformerConfig& layer);

/// "layers" and 3 -> "layers.3"; of a loop, "layers". Layers of several kinds are numbered through, others within their run.
std::string layerName(const TransformerModel& model, const LayerRun& run, std::int64_t index);

} // namespace meshwright
