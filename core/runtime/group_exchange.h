// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/host_array.h"
#include "core/program/body_collective.h"

#include <span>
#include <vector>

namespace meshwright {

/// What the members of one group have after a collective of a manual computation, from what they had; both in the group's order. The
/// meaning itself, element by element, with none of the code that devices run: integers exactly, floating values summed in double
/// precision in the group's order.
/// Preconditions: arrays of one type that the collective fits; not a permutation.
std::vector<HostArray> exchangedInGroup(const BodyCollective& collective, std::span<const HostArray* const> members);

} // namespace meshwright
