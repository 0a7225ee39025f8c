// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <optional>
#include <vector>

namespace meshwright {

/// Which memory a value lies in: its device's own, or that of the device's host.
enum class Placement : std::uint8_t { Device, Host };

/// Where a call moves its operand; nothing for other ops. The call is the identity of its operand: in XLA's words @MoveToHost and
/// @MoveToDevice, in JAX's @annotate_device_placement with `_xla_buffer_placement` "pinned_host" or "unpinned_host", and "device".
/// Source: openxla/xla, xla/service/memory_annotations.h; jax-ml/jax, jax/_src/dispatch.py (device_put to a memory kind).
std::optional<Placement> movedTo(const OtherAttributes& other);
std::optional<Placement> movedTo(const Op& op);

/// The call in XLA's words, of a value of this type.
OtherAttributes moveCall(Placement to, const TensorType& type);

/// By value, also of blocks: true for what lies in the host's memory: what a move to the host makes, the stacks and rows of loops that such
/// values are, and arguments of the function that nothing but moves to the device reads.
std::vector<bool> valuesOnHost(const Function& function);

} // namespace meshwright
