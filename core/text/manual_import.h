// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/text/report.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace meshwright {

/// What the reader knows of a function besides the function.
struct ManualImport {
    const std::vector<NamedMesh>& meshes;
    std::int32_t mesh = 0; ///< the one that the tiled shardings are of
    std::vector<std::size_t>& offsets; ///< of the ops in the text; those that are made are added
    std::vector<ValueId>& unneeded; ///< grows by what may go when nothing uses it
    TextProblems& problems;
};

/// Makes computations of a shard_map as JAX lowered it before Shardy: pieces come from calls of @SPMDFullToShardShape and go to calls of
/// @SPMDShardToFullShape, with mhlo.sharding strings that say how the whole arrays lie. What is made of pieces moves into the body, with copies of
/// constants and the like. What is not understood stays as it is, with a warning MW1356 that says why; partitioning refuses it.
/// Source: jax-ml/jax v0.5, jax/experimental/shard_map.py (`_xla_shard`, `_xla_unshard`).
void importManualComputations(Function& function, const ManualImport& import);

} // namespace meshwright
