// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/partition.h"

#include <string>
#include <vector>

namespace meshwright {

/// What one device makes of a gradient, before devices add theirs up. A pipeline adds up these parts of all microbatches, and its update reduces the
/// sum once. A gradient that lies on more devices than its parameter, or is scattered with it, is reduced each time: its sum takes less
/// memory (ZeRO-2 and ZeRO-3).
struct GradientPart {
    std::string parameter;
    ValueId value; ///< in the backward function, or in the body of a loop of it
    std::vector<OpId> ops; ///< conversions and changes of shape that make it what is added up
    TensorSharding layout; ///< of that, in a loop of what all turns make: partial over the axes of the reduction that is put off
    OpId loop; ///< a Repeat that makes a row of the gradient in each turn; invalid for others
    std::size_t result = 0; ///< of the loop's
};

/// The part of a gradient, which is a result of the function; the gradient itself where nothing sums it over devices at the end.
GradientPart partOf(const Function& backward, std::size_t result);

/// The backward function that adds each gradient's part to an argument, the sum so far (StageArray::Kind::GradientSum), and returns that in its
/// place; the gradients are not results any more.
DeviceFunction accumulating(const DeviceFunction& backward, const std::vector<GradientPart>& parts);

} // namespace meshwright
