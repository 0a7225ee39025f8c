// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"
#include "core/sharding/tensor_sharding.h"

#include <cstdint>
#include <vector>

namespace meshwright {

/// `shardIndex` of every position of the mesh, in the positions' order: one step for each device, however many axes there are.
/// Example: of `y` on x=2, y=3: 0, 1, 2, 0, 1, 2.
/// Preconditions: those of `shardIndex`.
std::vector<std::int64_t> shardIndices(const AxisRefs& axes, const Mesh& mesh);

} // namespace meshwright
