// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/shape.h"
#include "core/support/stop_flag.h"

#include <cstddef>
#include <span>

namespace meshwright {

/// Result dimension i is source dimension `permutation[i]`. The memory must not overlap. Ends early, unfinished, once `stop` is set.
void transposeArray(std::byte* result, const std::byte* source, const Shape& sourceShape,
    std::span<const std::size_t> permutation, std::int64_t elementBytes, const StopFlag& stop);

} // namespace meshwright
