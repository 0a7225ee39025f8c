// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"

#include <cstdint>
#include <string_view>

namespace meshwright {

/// What the devices of a pipeline's stages have of an array of the whole model. Without stages and microbatches: all of it, on all devices.
struct StageShare {
    std::int64_t stages = 1; ///< one device in so many has a given piece of it
    std::int64_t layers = 0; ///< of an array with a dimension of layers, its first: all of them. 0: it has none
    std::int64_t layersOfStage = 0; ///< the most of them that a stage has
    std::int64_t microbatches
        = 1; ///< of an array with a dimension of the batch, its first: the parts that pass one after the other
    bool isOfEachStage
        = false; ///< an activation of layers that are one loop in the whole program: every stage has those of its own layers

    /// What the stage that has most of it keeps of a device's piece of the whole, at a time.
    Shape pieceOf(Shape piece) const;
};

/// `array`: by the name that the whole program has for it. Precondition: no problems of `checkStudy` about sizes.
/// Example: 126 layers on 16 stages, "layers.ffn.up.w" of shape [126, 16384, 53248]: each stage has at most 8 layers of it.
/// With 16 microbatches of a batch of 2048, "act.layers.ffn" of shape [2048, 8192, 16384]: each stage has 128 rows of it at a time.
StageShare stageShareOf(const Study& study, std::string_view array, const Shape& shape);

} // namespace meshwright
