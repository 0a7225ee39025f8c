// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/collective_cost.h"
#include "core/partition/device_program.h"
#include "core/support/result.h"

namespace meshwright {

/// Whether a value that one phase brought into another layout is kept for the next phase or brought there again.
enum class Regather : std::uint8_t { Always, Keep };

struct PartitionOptions {
    Regather regather = Regather::Always;
    const CollectiveCost* cost = nullptr; ///< absent: bytes, then steps
};

/// Turns a propagated function (every value has a closed sharding) into what one device runs: explicit reshards where an op cannot
/// compute on the shards that it is given, reductions of partial sums, collectives for every change of layout, local shapes.
///
/// Problems: MW1210 a value has no sharding, MW1211 an argument or result does not divide by its axes (Uneven::Refuse),
/// MW1212 an op cannot be computed on shards and not be brought together either.
Result<DeviceFunction> partition(const Function& function, const std::vector<NamedMesh>& meshes, const PartitionOptions& options = {});

/// Partitions all functions of a program into one stage.
Result<DeviceProgram> partition(const Program& program, const PartitionOptions& options = {});

} // namespace meshwright
