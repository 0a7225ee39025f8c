// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/partition.h"

namespace meshwright {

/// The backward function that adds what one device makes of each gradient, before devices add theirs up, to an argument, the sum so far
/// (StageArray::Kind::GradientSum), and returns that in its place, laid out like its argument; the gradients are not results any more. A pipeline adds up
/// these parts of all microbatches, and its update reduces the sum once. A gradient that lies on more devices than its parameter, or is scattered with it, is
/// reduced each time: its sum takes less memory (ZeRO-2 and ZeRO-3).
DeviceFunction accumulating(const DeviceFunction& backward);

} // namespace meshwright
