// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

#include <functional>
#include <string>
#include <vector>

namespace meshwright {

/// A function as every device of a mesh runs it. Types are those of one device's piece, Value::sharding says how it lies on the mesh,
/// and collectives stand where data moves. All devices run the same ops in the same order.
struct DeviceFunction {
    Function function;
    std::vector<Shape> globalShapes; ///< of the whole array, for each entry of function.values
    Problems warnings; ///< MW1218: ops that every device computes whole, though their operands are split
};

/// The functions that the devices of one (sub)mesh run. Without pipelining there is one stage, over the whole mesh.
struct DeviceStage {
    std::vector<NamedMesh> meshes; ///< TensorSharding::mesh is an index into these; all have the same devices
    std::vector<DeviceFunction> functions;

    const DeviceFunction* find(std::string_view name) const;
    const Mesh& mesh() const { return meshes.front().mesh; }
};

/// A program on shards.
struct DeviceProgram {
    std::vector<DeviceStage> stages;
    std::string collectiveCost; ///< id of the cost by which collective sequences were chosen
};

/// One collective of a device function, as reports list it.
struct CollectiveUse {
    OpId op;
    OpKind kind = OpKind::AllReduce;
    std::string axes; ///< "data" or "data,model"; parts of axes as Shardy writes them
    std::int64_t groupSize = 1;
    std::int64_t count = 1; ///< calls per run of the function: the product of the enclosing repeat counts
    std::int64_t payloadBytes = 0; ///< of one call: the operand's local bytes, for all-gather the result's
    Phase phase = Phase::Forward;
    Cause cause;
};

/// All collectives that move data, in program order (AllSlice moves none and is not listed).
std::vector<CollectiveUse> collectivesOf(const DeviceFunction& function, const Mesh& mesh);

/// The same of any function: `meshOf` a collective's result, `bytesOf` its payload on one device. Reshards that make partial sums are not listed.
std::vector<CollectiveUse> collectivesOf(const Function& function, const std::function<const Mesh&(const Value&)>& meshOf,
    const std::function<std::int64_t(const Value&)>& bytesOf);

/// Payload bytes of one collective op (see CollectiveUse).
std::int64_t payloadBytes(const Function& function, OpId op);

/// "data" or "data,model", parts of axes as Shardy writes them.
std::string axesText(const AxisRefs& axes, const Mesh& mesh, const std::string& between = ",");

} // namespace meshwright
