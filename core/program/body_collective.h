// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/builder.h"
#include "core/program/program.h"
#include "core/support/result.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace meshwright {

/// A collective as the body of a manual computation says it (`stablehlo.all_reduce` and the like): between devices that it lists, on what
/// each of them has. Devices are positions of the mesh, row-major.
struct BodyCollective {
    OpKind kind = OpKind::AllReduce; ///< AllReduce, AllGather, ReduceScatter, AllToAll or CollectivePermute
    ReduceKind reduction = ReduceKind::Sum; ///< AllReduce, ReduceScatter
    std::size_t split = 0; ///< ReduceScatter, AllToAll: the dimension that is cut into one part for each member of a group
    std::size_t join = 0; ///< AllGather, AllToAll: the dimension along which the members' parts are put together
    std::vector<std::vector<std::int64_t>>
        groups; ///< all of one size, each in its order, every position in one; none for a permutation
    std::vector<std::int64_t> sources; ///< CollectivePermute: the position that each position receives from; -1: zeros
    friend bool operator==(const BodyCollective&, const BodyCollective&) = default;

    std::int64_t groupSize() const { return groups.empty() ? 1 : static_cast<std::int64_t>(groups.front().size()); }
};

/// True for kept ops that are collectives between listed devices.
bool isBodyCollective(const Op& op);

/// True for the kept op that gives each device its id.
bool isPartitionId(const Op& op);

/// What such an op says. Device ids of the text are those of the mesh; an empty list of groups is one group of all.
///
/// Problems: MW1260 the listed devices are not those of the mesh, each once; MW1261 an attribute is missing or does not fit the arrays, or
/// the block is not a known reduction.
Result<BodyCollective> bodyCollective(const Function& function, const Op& op, const Mesh& mesh);

/// The type of the result from that of the operand. Precondition: the collective fits the operand.
TensorType resultType(const BodyCollective& collective, TensorType operand);

/// Appends the op as the text would say it.
ValueId addBodyCollective(Builder& builder, const BodyCollective& collective, ValueId operand, const Mesh& mesh);

/// The id of the device that runs this, a scalar ui32.
ValueId addPartitionId(Builder& builder);

/// The place of the running device in its group, times `factor`, a scalar i32.
ValueId addPlaceInGroup(
    Builder& builder, const std::vector<std::vector<std::int64_t>>& groups, const Mesh& mesh, std::int64_t factor = 1);

/// The indices of the axes along which devices read different elements, ascending, where the op reads an element of a constant at the id of
/// the running device (see addPlaceInGroup); nothing when it is another op.
std::optional<std::vector<std::int32_t>> axesOfPlace(const Function& function, const Op& op, const Mesh& mesh);

/// The axes over which these are the groups, major to minor; nothing when they are those of no axes.
std::optional<AxisRefs> axesOfGroups(const std::vector<std::vector<std::int64_t>>& groups, const Mesh& mesh);

/// The indices of the axes along which data moves, ascending: those in whose coordinate two members of a group differ, or a receiver and
/// its source; and those along which not all do the same.
std::vector<std::int32_t> axesTouched(const BodyCollective& collective, const Mesh& mesh);

/// The members of a group by position: which group, and which place in it.
struct GroupPlace {
    std::size_t group = 0;
    std::size_t member = 0;
};
std::vector<GroupPlace> groupPlaces(const std::vector<std::vector<std::int64_t>>& groups, const Mesh& mesh);

/// True when the function has a manual computation, in any block.
bool hasManualComputation(const Function& function);

/// True for a computation whose body says itself what each device does.
bool isManual(const Op& op);

} // namespace meshwright
