// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/autodiff/derivatives.h"

namespace meshwright {

/// True for ops on parts of arrays that have a derivative: all but scatters that combine otherwise than by a sum.
bool hasPartsDerivative(const Op& op);

/// The cotangents of the operands of an op of these kinds; invalid where none was wanted, and for indices.
///
/// What a part was taken from gets the part's cotangent where it was taken, and zeros elsewhere. A gather adds into each place as often as it
/// was read: a scatter with a sum. Its indices are kept within the operand first, as the gather itself does. Updates get what they were added
/// to, or what they replaced, and nothing where they went nowhere; of several that replaced one element the last one gets it.
/// Source: jax-ml/jax, jax/_src/lax/slicing.py (the transposes).
std::vector<ValueId> partsCotangents(const DerivativeContext& context, ValueId cotangent);

} // namespace meshwright
