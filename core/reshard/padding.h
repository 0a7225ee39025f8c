// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/propagate/rule.h"
#include "core/reshard/reshard.h"

#include <vector>

namespace meshwright {

// Dimensions that their pieces do not divide. What users place is refused then; what a program makes on the way is rounded up: on devices it
// is an array of a size that divides, whose elements behind the logical end may hold anything. Whatever combines elements along such
// a dimension replaces these by what changes nothing first.
// Source: openxla/xla, GSPMD (Y. Xu et al., "GSPMD: General and Scalable Parallelization for ML Computation Graphs", arXiv 2105.04663, section 4.1).

/// Drops axes from the minor end of every dimension that they do not divide.
TensorSharding evened(TensorSharding layout, const Shape& shape);

/// Drops only those that would leave most pieces without an element: dimensions of fewer elements than pieces, that these do not divide.
TensorSharding withoutIdlePieces(TensorSharding layout, const Shape& shape);

/// The sizes rounded up to what the pieces divide: the shape of the array that devices really hold.
Shape paddedShape(const Shape& shape, const TensorSharding& layout);

/// By factor of an op's rule: true when the op can be computed along it though the last pieces end in padding.
std::vector<bool> paddableFactors(const Function& function, OpId op, const OpShardingRule& rule);

/// One part of a change of layout: what a device does to its piece, then collectives, then what it does to its piece again.
struct PaddedMove {
    Shape before; ///< of the whole array, padding included: reached by padding or cutting dimensions that are whole
    TensorSharding to;
    Shape after; ///< likewise, behind the collectives
};

/// The parts of a change between layouts that may pad: dimensions are padded or cut where a device has them whole. Where both split a
/// dimension, and into different paddings, it is whole in between.
std::vector<PaddedMove> paddedMoves(const Shape& shape, const TensorSharding& from, const TensorSharding& to);

} // namespace meshwright
