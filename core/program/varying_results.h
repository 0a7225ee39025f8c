// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

namespace meshwright {

/// The results of a manual computation that differ along a manual axis of which its out_sharding says that all devices along it have the
/// same (MW1266). Only what certainly differs is reported: pieces of arguments that are split along the axis, device ids, and what is
/// computed of them without a collective (those that are kept as they are too) along the axis, a loop, a branch or a custom call on the way.
/// Source: jax-ml/jax, jax/_src/shard_map.py (`check_vma`), which also refuses what may differ.
Problems varyingResults(const Function& function, const Op& computation, const Mesh& mesh);

} // namespace meshwright
