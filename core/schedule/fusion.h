// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <vector>

namespace meshwright {

/// A set of ops of one block that run as one instruction.
struct FusionNode {
    std::vector<OpId>
        ops; ///< in program order; cheap ops that feed them (constants, broadcasts, iotas) are among them, and may be in several nodes
    std::vector<ValueId> reads; ///< from outside the node, each once
    std::vector<ValueId> writes; ///< read by other nodes, or results of the block
    std::vector<OpId>
        update; ///< of an all-reduce: element-wise ops on its result that are done in the same pass (see fused_update.h)
    std::size_t position = 0; ///< of its last op in the block
};

/// Splits a block into nodes. With `fuse`, element-wise ops on one shape that feed each other are one node, as long as no other node lies
/// on a way between them, and so are random bits and a dynamic slice that alone is taken of them; without it every op is a node of its own.
std::vector<FusionNode> fusionNodes(const Function& function, BlockId block, bool fuse);

/// True when this read is only used element by element in the node: element i of what the node writes needs only element i of it.
bool isReadPointwise(const Function& function, const FusionNode& node, ValueId value);

} // namespace meshwright
