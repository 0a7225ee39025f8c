// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/cost/stack.h"

namespace meshwright::sim {

/// True where a stack sums gradients of 16-bit parameters (bf16 or f16) with masters over devices and microbatches in 16 bits.
inline bool sumsGradientsIn16Bits(const StackTraits& traits, bool isBf16)
{
    return traits.gradientBytes == 2.0 && traits.reducedBytes == 0.0 && !(isBf16 && traits.accumulatorBytes > 0.0);
}

} // namespace meshwright::sim
