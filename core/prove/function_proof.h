// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/prove/prove.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

namespace meshwright {

/// The proof of one function of a program: both are walked op by op, and each value of the devices gets a standing (standing.h) by the lemma of its op.
/// `calls`: the mesh axis along which devices run different pieces of a joined pipeline (pipeline_proof.h); none: it is not a pipeline.
/// An obstacle "it was stopped" where `stop` was asked for.
FunctionProof proveFunction(const Function& source, const DeviceFunction& device, const std::vector<NamedMesh>& meshes,
    const std::stop_token& stop = {}, std::optional<std::int32_t> calls = {});

} // namespace meshwright
