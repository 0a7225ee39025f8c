// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/zero_bubble.h"

#include <algorithm>

namespace meshwright {

std::vector<SplitTask> zeroBubbleOrder(std::int64_t stages, std::int64_t stage, std::int64_t microbatches, bool moreMemory)
{
    const std::int64_t behind = stages - stage - 1;
    const std::int64_t warmUp = std::min(moreMemory ? 2 * behind : behind, microbatches);
    const std::int64_t later = moreMemory ? 2 * stage : stage;
    std::vector<SplitTask> order;
    order.reserve(static_cast<std::size_t>(3 * microbatches));
    std::int64_t forward = 0;
    std::int64_t weight = 0;
    while (forward < warmUp)
        order.push_back({SplitTask::Kind::Forward, forward++});
    for (std::int64_t input = 0; input < microbatches; ++input) {
        if (forward < microbatches)
            order.push_back({SplitTask::Kind::Forward, forward++});
        order.push_back({SplitTask::Kind::Input, input});
        if (input >= later)
            order.push_back({SplitTask::Kind::Weight, weight++});
    }
    while (weight < microbatches)
        order.push_back({SplitTask::Kind::Weight, weight++});
    return order;
}

} // namespace meshwright
