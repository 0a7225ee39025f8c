// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partition.h"

#include "core/partition/batch_norm.h"
#include "core/partition/body_lowering.h"
#include "core/partition/border_moves.h"
#include "core/partition/explicit_reshards.h"
#include "core/partition/one_mesh.h"
#include "core/partition/partitioner.h"
#include "core/partition/regrouping.h"
#include "core/partition/reshard_passes.h"
#include "core/program/transform.h"
#include "core/program/verify.h"
#include "core/sharding/partition_spec.h"

#include <fmt/format.h>

namespace meshwright {

namespace {

/// What shows that a function is one on shards: a collective that makes another array of its operand than whole arrays have, or exchanges what the
/// devices of a manual computation have.
Problems onShardsProblems(const Function& function)
{
    Problems problems;
    forEachOp(function, [&](OpId id) {
        const Op& op = function[id];
        if (!problems.empty() || !isCollective(op.kind))
            return;
        const bool isOnShards
            = op.as<CollectiveAttributes>().pieces || function[op.operands.front()].type != function[op.results.front()].type;
        if (isOnShards)
            problems.push_back({"MW1265",
                fmt::format("{} in \"{}\" exchanges what devices have already: the program is one on shards", opName(op.kind),
                    function.name),
                "use the program that it was made from; prove compares the two with --against"});
    });
    return problems;
}

Result<DeviceFunction> partitionedWith(
    const Function& function, const std::vector<NamedMesh>& meshes, const PartitionOptions& options)
{
    std::optional<Function> split;
    if (options.style == ReshardStyle::Cheapest && !options.localOnly)
        split = withSplitRegroupings(function);
    auto device = Partitioner(split ? *split : function, meshes, options).run();
    if (device) {
        if (Problems faults = faultsAfter("partition", device->function, meshes); !faults.empty())
            return faults;
    }
    return device;
}

} // namespace

Result<DeviceFunction> partition(const Function& function, const std::vector<NamedMesh>& meshes, const PartitionOptions& options)
{
    if (Problems onShards = onShardsProblems(function); !onShards.empty())
        return onShards;
    if (hasManualComputation(function)) // its author has placed the collectives
        return partitionedWith(withBodiesOnTheirMeshes(function), meshes, options);
    if (options.style != ReshardStyle::Shardy || options.localOnly)
        return partitionedWith(function, meshes, options);

    const BytesThenStepsCost defaultCost;
    Function explicitly = function;
    constraintsToReshards(explicitly);
    dropUnevenAxes(explicitly);
    explicitly = insertExplicitReshards(explicitly, meshes);
    if (Problems faults = faultsAfter("insert-reshards", explicitly, meshes); !faults.empty())
        return faults;
    explicitly = reshardsToCollectives(std::move(explicitly), meshes, options.cost != nullptr ? *options.cost : defaultCost,
        {.style = ReshardStyle::Shardy, .fuseReductions = true, .evenOnly = true});
    PartitionOptions rest = options;
    rest.report = nullptr; // it speaks of the values of the function before
    return partitionedWith(explicitly, meshes, rest);
}

namespace {

/// What the user places must divide evenly; results of which nothing is asked may lie as they come.
Problems declaredResultProblems(const Function& function)
{
    Problems problems;
    for (std::size_t i = 0; i < function.resultShardings.size(); ++i) {
        const auto& asked = function.resultShardings[i];
        if (!asked)
            continue;
        for (UnequalPieces& unequal : unequalPieces(function[function.results()[i]].type.shape, *asked)) {
            unequal.array = fmt::format("result {}", i);
            problems.push_back(notDivisible(unequal));
        }
    }
    return problems;
}

/// Values whose sharding nobody states are whole.
void replicateRest(Function& function)
{
    for (Value& value : function.values) {
        if (!value.sharding)
            value.sharding = TensorSharding::replicatedOf(value.type.shape.size());
    }
}

} // namespace

Result<PartitionedProgram> propagateAndPartition(Program program, const PartitionOptions& options)
{
    const auto orders = ontoOneMesh(program);
    if (!orders)
        return orders.error();
    PartitionedProgram result;
    Problems problems;
    DeviceStage stage;
    stage.meshes = program.meshes;
    for (std::size_t i = 0; i < program.functions.size(); ++i) {
        Function& function = program.functions[i];
        const auto isSoundAfter = [&](const char* pass, const Function& made) {
            Problems faults = faultsAfter(pass, made, program.meshes);
            append(problems, faults);
            return faults.empty();
        };
        if (!isSoundAfter("bringing the program onto one mesh", function))
            continue;
        if (const Problems onShards = onShardsProblems(function); !onShards.empty()) {
            append(problems, onShards);
            continue;
        }
        append(problems, declaredResultProblems(function));
        Result<PropagationReport> report = PropagationReport();
        if (options.localOnly) {
            replicateRest(function);
        } else {
            expandBatchNorms(function);
            report = propagate(function, program.meshes);
        }
        if (!report) {
            append(problems, report.error());
            continue;
        }
        if (!isSoundAfter("propagate", function))
            continue;
        PartitionOptions withReport = options;
        withReport.report = &*report;
        auto device = partition(function, program.meshes, withReport);
        if (!device) {
            append(problems, device.error());
            continue;
        }
        moveAtBorders(*device, (*orders)[i], program.meshes);
        if (!isSoundAfter("moving arguments and results into their orders of devices", device->function))
            continue;
        stage.functions.push_back(*std::move(device));
        result.reports.push_back(*std::move(report));
    }
    if (!problems.empty())
        return problems;
    result.device.collectiveCost = options.cost != nullptr ? options.cost->id() : BytesThenStepsCost().id();
    result.device.stages.push_back(std::move(stage));
    result.propagated = std::move(program);
    return result;
}

Result<Program> asPartitioned(Program whole, const Program& onShards)
{
    const auto haveSameMeshes = [&] {
        return std::equal(whole.meshes.begin(), whole.meshes.end(), onShards.meshes.begin(), onShards.meshes.end(),
            [](const NamedMesh& a, const NamedMesh& b) { return a.mesh == b.mesh; });
    };
    if (!haveSameMeshes()) {
        if (const auto orders = ontoOneMesh(whole); !orders)
            return orders.error();
    }
    const auto hasBatchNorm = [](const Function& function) {
        bool has = false;
        forEachOp(function, [&](OpId op) {
            const OpKind kind = function[op].kind;
            has = has || kind == OpKind::BatchNormTraining || kind == OpKind::BatchNormInference || kind == OpKind::BatchNormGrad;
        });
        return has;
    };
    for (Function& function : whole.functions) {
        const Function* counterpart = onShards.find(function.name);
        if (counterpart != nullptr && !hasBatchNorm(*counterpart))
            expandBatchNorms(function);
    }
    return whole;
}

} // namespace meshwright
