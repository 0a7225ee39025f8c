// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/host_array.h"
#include "core/program/program.h"
#include "core/support/result.h"

#include <span>
#include <stop_token>
#include <vector>

namespace meshwright {

struct EvaluateOptions {
    /// Every floating value is f64 and nothing is rounded to a narrower type: the reference that runs are verified against.
    /// Results of floating type come as f64 then. Random bits stay what they are.
    bool inDouble = false;
    std::stop_token stop = {};
    std::span<const NamedMesh> meshes = {}; ///< of the function's program; needed by manual computations only
};

/// Runs a whole function on one thread, Repeat included. Shardings are ignored; a ShardingConstraint is the identity, and so is a Reshard or
/// collective on whole arrays. The body of a manual
/// computation is run once for each setting of its manual axes, all of them side by side, on pieces of the whole operands; of pieces of
/// results that should be equal the first is taken.
///
/// Problems: MW1503 the number or a type of the arguments is not what the function takes (floating arguments may be of any floating
/// type with `inDouble`), MW1504 a collective, which needs devices, or a manual computation without meshes; MW1230 devices of a group take different ways around a collective; MW1260 to MW1262 as `partition`; and those of `checkRunnable`. All are reported. MW1507 `stop` was asked
/// for; it is heeded between ops, and within long ones.
Result<std::vector<HostArray>> evaluate(
    const Function& function, std::span<const HostArray> arguments, EvaluateOptions options = {});

} // namespace meshwright
