// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace meshwright {

/// In which order the stages of a pipeline take forward and backward tasks. Studies, real runs, the simulator and the closed form mean the same by it.
enum class PipelineOrder : std::uint8_t {
    GPipe, ///< all forward tasks, then all backward ones
    OneForwardOneBackward,
    Interleaved, ///< the same with several chunks of layers on each stage
    ZeroBubbleH1, ///< backward is two tasks; those of weights fill what would be idle, in the memory of 1F1B
    ZeroBubbleH2, ///< the same with nearly twice as many microbatches under way
};

/// True where the gradients of inputs and those of weights are tasks of their own.
inline bool splitsBackward(PipelineOrder order)
{
    return order == PipelineOrder::ZeroBubbleH1 || order == PipelineOrder::ZeroBubbleH2;
}

} // namespace meshwright
