// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/tensor_sharding.h"

#include <optional>
#include <vector>

namespace meshwright {

/// The axes of each dimension of a reshape's result in JAX's explicit mode, from those of the operand's dimensions; nothing where JAX asks
/// for an `out_sharding`. Without doubt are: operands that are not split; dimensions of size 1 that come or go; one dimension that is cut
/// into several whose sizes its axes divide one after the other; several that become one, of which those behind the last split one are whole.
/// Precondition: both shapes have the same number of elements.
/// Source: jax-ml/jax, jax/_src/lax/lax.py (`_reshape_sharding_rule`).
std::optional<std::vector<AxisRefs>> explicitReshape(const Shape& from, const std::vector<AxisRefs>& axes, const Shape& to);

/// Layouts of the operand with which a reshape that is not without doubt may become so: axes gathered, or moved to the first of the
/// dimensions that merge, beginning with the least that changes.
std::vector<std::vector<AxisRefs>> reshapeOperands(const Shape& from, const std::vector<AxisRefs>& axes, const Shape& to);

} // namespace meshwright
