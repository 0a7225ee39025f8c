// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/sharding/tile_assignment.h"
#include "core/support/result.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// Shardings as GSPMD, XLA's own propagation, has them: one tiled sharding for each value; nothing where none is known.
using TileShardings = std::vector<std::optional<TileSharding>>;

/// A sharding that a value got.
struct TileStep {
    ValueId value;
    ValueId from; ///< the value whose sharding it came from
    OpId through; ///< invalid for what joins the values of a loop
    bool forward = true; ///< from an operand to a result, or from a user to an operand
    int aggressiveness = 0; ///< 0: ops that only pass shardings through; 1: most ops; 2: broadcasts, backward; 3: broadcasts
    bool merged = false; ///< with the one that the value had
    TileSharding sharding; ///< after the step
};

struct TilePropagation {
    TileShardings shardings;
    std::vector<TileStep> steps; ///< in order
};

/// What the text says: `mhlo.sharding` of arguments, ops and results (as JAX without Shardy writes it), or Shardy's shardings in tiles.
/// Problems: MW1150 to MW1155 the text is not a sharding, or does not fit the value, with the value's name as the path.
Result<TileShardings> tileAnnotations(const Function& function, const std::vector<NamedMesh>& meshes);

/// Spreads annotations, which stay as they are, over the values of a function: passes forward and backward until nothing improves, first
/// through ops that only pass shardings through, then through more. A value's sharding is only ever replaced by a finer one that agrees
/// with it; partial ones are merged (with `spmd`, as JAX runs XLA). Shardings need not divide their arrays.
///
/// Rules: element-wise ops, broadcast, reshape, transpose, reduce, dot, convolution, slice, pad, concatenate, reverse, reduce_window, dynamic (update) slices, loops and branches; for other ops, along the dimensions that Shardy's rules let through.
/// Source: openxla/xla, xla/service/sharding_propagation.cc.
TilePropagation propagateTiles(const Function& function, TileShardings annotated, bool spmd = true);

/// Writes the shardings as `mhlo.sharding` of arguments and ops, in place of what the text said.
void writeTileShardings(Function& function, const TileShardings& shardings);

} // namespace meshwright
