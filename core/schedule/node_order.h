// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/fusion.h"
#include "core/schedule/schedule.h"

#include <cstddef>
#include <vector>

namespace meshwright {

/// In which order the nodes of a block are done.
struct NodeOrder {
    std::vector<std::size_t>
        nodes; ///< each once, behind those whose values it reads; one that is ahead only behind those that are
    std::vector<bool> isAhead; ///< by node: done for the next turn of the loop
};

/// Orders a block's nodes. Collectives start early and are read late: sums follow what makes them, gathers begin while what comes before is computed, and,
/// with `SchedulePolicy::Overlapped`, products that need none of them go first where a device would wait.
///
/// `nodes`: of the block, in the order of their positions. `loop`: whose body the block is, where its turns overlap; else null.
NodeOrder orderOf(const Function& function, BlockId block, SchedulePolicy policy, const RepeatAttributes* loop,
    const std::vector<FusionNode>& nodes);

/// The stream that carries a node's data from one memory to another; Compute: it moves none.
Stream streamOf(const Function& function, const FusionNode& node, SchedulePolicy policy);

} // namespace meshwright
