// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/transformer.h"

#include <string>
#include <vector>

namespace meshwright {

/// Layers that are alike.
struct LayerRun {
    std::string
        prefix; ///< "layers", "dense_layers"; of a part of a cut loop, and where layers are of several kinds, "layers.0-7"
    std::int64_t first = 0; ///< of the model's layers
    std::int64_t count = 0;
    TransformerConfig layer; ///< as in `layerGroups`
};

/// In the model's order: those without experts, then those with, or runs of one kind; each cut behind the model's `cuts`.
std::vector<LayerRun> layerRuns(const TransformerModel& model);

/// The arrays of one layer of a kind, without the dimension of layers, named as behind `layerName` and a dot.
std::vector<ModelArray> layerArrays(const TransformerConfig& layer);

/// "layers" and 3 -> "layers.3"; of a loop, "layers". Layers of several kinds are numbered through, others within their run.
std::string layerName(const TransformerModel& model, const LayerRun& run, std::int64_t index);

} // namespace meshwright
