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

/// What of a block's ops is done in one pass over the data.
enum class Fusion : std::uint8_t {
    None, ///< every op is a node of its own
    Elementwise, ///< element-wise ops on one shape that feed each other, as long as no other node lies on a way between them; random bits, with a
    ///< dynamic slice that alone is taken of them
    Reductions, ///< and a reduction with what feeds it, as compilers for accelerators do; what is read for no more bytes than it has is made again.
    ///< Such nodes are simulated: the virtual devices have no kernels for them
};

/// Splits a block into nodes.
std::vector<FusionNode> fusionNodes(const Function& function, BlockId block, Fusion fusion);

/// True when this read is only used element by element in the node: element i of what the node writes needs only element i of it.
bool isReadPointwise(const Function& function, const FusionNode& node, ValueId value);

} // namespace meshwright
