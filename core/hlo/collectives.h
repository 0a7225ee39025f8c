// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/hlo/module.h"
#include "core/mesh/mesh.h"
#include "core/sharding/tensor_sharding.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

enum class HloCollectiveKind : std::uint8_t {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    RaggedAllToAll,
    CollectivePermute, ///< also a send with its pairs
    CollectiveBroadcast,
};

/// "all_reduce" and so on, as the collectives of programs are called.
const char* hloCollectiveName(HloCollectiveKind kind);

/// The devices that communicate with each other, in places 0 .. devices - 1 of the module's devices (`replica * partitions + partition`; with
/// JAX the positions of the mesh).
struct HloGroups {
    std::vector<std::vector<std::int64_t>> groups; ///< of a permute: those that pairs join
    std::int64_t size = 1; ///< of the largest group
    std::string text; ///< as the module says it: `[4,2]<=[8]`, `{{0,1},{2,3}}`, `all 8`
    std::optional<AxisRefs> axes = {}; ///< of the mesh, where they are groups over axes
};

/// One collective of a module.
struct HloCollective {
    HloCollectiveKind kind = HloCollectiveKind::AllReduce;
    std::string name; ///< of its instruction
    std::int64_t count
        = 1; ///< calls in a run of the module: the product of the turns of the loops around it, over all who call it
    std::int64_t payloadBytes = 0; ///< of one call: the operands' bytes on a device, for an all-gather the result's
    std::shared_ptr<const HloGroups> groups;
    std::string operation; ///< `op_name` of its metadata: "jit(step)/while/body/dot_general"
    std::string source; ///< "model.py:41"; empty: the module does not say
    std::size_t line = 0; ///< of the text, from 1
    bool isAsync = false; ///< a start and a done, with other work between them
    bool isConditional = false; ///< in a branch: it is counted as if the branch is taken
    bool isInUnknownLoop = false; ///< a loop around it says no number of turns: it is counted as if there is one
};

struct HloCollectives {
    std::string module;
    std::int64_t devices = 1;
    Mesh mesh; ///< given, or as the module's own groups name it
    bool meshKnown = false;
    std::vector<HloCollective> collectives; ///< in the order of the text
    std::vector<std::string> unknownLoops; ///< names of the loops whose number of turns is not known and that have collectives
    bool isPart = false; ///< the text was cut off: computations that nothing calls in what is left are counted once
    bool beforePartitioning = false; ///< its values still have shardings: the partitioner has not made its collectives yet
};

/// The collectives of a module, with those of all computations that it calls. A loop's turns are those of its `known_trip_count`, else they follow
/// from its start, step and bound where those are constants. A collective that is written as a start and a done is one, at its start.
///
/// Groups that the module leaves out are all devices. `mesh`: of the program; its positions are the module's partitions.
/// Problems: MW1361 a computation or operand that is not there, a computation that calls itself; MW1362 groups that do not fit the devices, or
/// more than kMostHloDevices; MW1363 the mesh has another number of devices.
/// Source: openxla/xla, xla/service/collective_ops_utils.h (which ids the groups have), xla/hlo/ir/replica_group.h (their forms).
Result<HloCollectives> hloCollectives(
    const HloModule& module, std::string_view text, const std::string& file, const std::optional<Mesh>& mesh = {});

inline constexpr std::int64_t kMostHloDevices = std::int64_t{1} << 20;

} // namespace meshwright
