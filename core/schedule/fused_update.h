// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/fusion.h"

#include <vector>

namespace meshwright {

/// Joins each all-reduce with the element-wise pass that alone reads its result, where one device of the group can do the pass for all of
/// them: everything that the pass reads is equal on the whole group, element by element or spread along rows. An optimiser's update of a
/// replicated parameter is one such pass, a bias and an activation after a row-parallel product another. The all-reduce's node gets the
/// pass's ops as its `update` and what it reads and writes; the pass's node goes. Whoever sums a stretch of the operands then does the
/// pass on it and stores the results on all devices: the same bits as apart, and the sum never reaches memory.
std::vector<FusionNode> withFusedUpdates(const Function& function, BlockId block, std::vector<FusionNode> nodes);

} // namespace meshwright
