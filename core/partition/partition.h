// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/device_program.h"
#include "core/propagate/propagate.h"
#include "core/reshard/collective_cost.h"
#include "core/reshard/reshard.h"
#include "core/support/result.h"

namespace meshwright {

/// Whether a value that one phase brought into another layout is kept for the next phase or brought there again.
enum class Regather : std::uint8_t { Always, Keep };

struct PartitionOptions {
    Regather regather = Regather::Always;
    ReshardStyle style = ReshardStyle::Cheapest; ///< Shardy: explicit reshards, reductions and collectives as Shardy makes them
    bool localOnly
        = false; ///< shardings are final, and every op must be computable on shards as its tensors lie; only constraints and Reshards move data
    const CollectiveCost* cost = nullptr; ///< absent: bytes, then steps
    const PropagationReport* report = nullptr; ///< of the function's propagation: causes then name the user's annotation
};

/// Turns a propagated function (every value has a closed sharding) into what one device runs: explicit reshards where an op cannot
/// compute on the shards that it is given, reductions of partial sums, collectives for every change of layout, local shapes.
///
/// A value is brought into another layout where something needs it so, by the cheapest way from any layout that it already has in
/// that phase; what one phase gathered is gathered again in the next (see Regather). A partial sum is reduced at its first use, in the
/// phase that made it, straight into the layout that the use asks for; sums of partial sums and loop carries that only
/// accumulate them stay partial, and are reduced once.
///
/// Values on the way may lie unevenly: devices have room for ceil(size / pieces) elements then, and what is behind the last one is masked where
/// elements are combined (`core/reshard/padding.h`). Ops along split dimensions get what they need of other devices' pieces by permutes where
/// that moves less than gathering (`core/partition/split_exchange.h`). Arguments, results, carries of loops and manual computations lie evenly:
/// axes that do not divide there are left out. With Shardy's style and `localOnly` all of this is as in Shardy: whole.
///
/// Results leave as Function::resultShardings ask, partial sums included; where nothing is asked, as their values lie.
///
/// Collectives and Reshards of the function itself (on whole arrays, as Shardy writes them) are changes of layout; causes stay theirs.
///
/// A manual computation's operands are brought into its in_shardings; its body, in the shapes of its text, is what the devices run between,
/// with its collectives and partition_id between the devices that they list; what its body says nothing of (the automatic axes) is
/// partitioned as outside. `style` does not apply to it.
///
/// Problems: MW1210 a value has no sharding, MW1104 an argument or result does not divide by its axes (Uneven::Refuse),
/// MW1212 an op that has no sharding rule has operands on different meshes,
/// MW1218 (a warning, DeviceFunction::warnings) an op that has no rule, or whose pieces do not fit it, is computed whole by every device,
/// MW1221 (with `localOnly`) an op needs a value otherwise than it lies, MW1260 to MW1262 a collective of a manual computation does not fit
/// the mesh, its arrays or the manual axes, MW1265 the program is one on shards: its collectives change the arrays
/// that they take, or are those of a manual computation's devices.
Result<DeviceFunction> partition(
    const Function& function, const std::vector<NamedMesh>& meshes, const PartitionOptions& options = {});

/// A program on shards and why its values are sharded this way: one report for each function.
struct PartitionedProgram {
    Program propagated; ///< the program with the sharding of every value
    std::vector<PropagationReport> reports;
    DeviceProgram device;
};

/// Propagates and partitions all functions of a program into one stage, over one mesh (`ontoOneMesh`). Batch norms are replaced by what they
/// stand for first. With `localOnly` nothing is propagated: values without a sharding are whole.
///
/// Problems: those of `ontoOneMesh`, `propagate` and `partition`; MW1104 also for results that are declared in unequal pieces.
Result<PartitionedProgram> propagateAndPartition(Program program, const PartitionOptions& options = {});

/// The whole program as a program on shards that was made of it speaks of it: on one mesh (`ontoOneMesh`), unless both have the same meshes; with the
/// formulas of batch norms in functions whose counterpart on shards has no batch norms.
/// Problems: those of `ontoOneMesh`.
Result<Program> asPartitioned(Program whole, const Program& onShards);

} // namespace meshwright
