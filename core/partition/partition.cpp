// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partition.h"

#include "core/partition/batch_norm.h"
#include "core/partition/body_lowering.h"
#include "core/partition/empty_meshes.h"
#include "core/partition/explicit_reshards.h"
#include "core/partition/partitioner.h"
#include "core/partition/reshard_passes.h"

namespace meshwright {

Result<DeviceFunction> partition(const Function& function, const std::vector<NamedMesh>& meshes, const PartitionOptions& options)
{
    if (hasManualComputation(function)) { // its author has placed the collectives
        const Function settled = withBodiesOnTheirMeshes(function);
        return Partitioner(settled, meshes, options).run();
    }
    if (options.style != ReshardStyle::Shardy || options.localOnly)
        return Partitioner(function, meshes, options).run();

    const BytesThenStepsCost defaultCost;
    Function explicitly = function;
    constraintsToReshards(explicitly);
    dropUnevenAxes(explicitly);
    explicitly = reshardsToCollectives(insertExplicitReshards(explicitly, meshes), meshes,
        options.cost != nullptr ? *options.cost : defaultCost,
        {.style = ReshardStyle::Shardy, .fuseReductions = true, .evenOnly = true});
    PartitionOptions rest = options;
    rest.report = nullptr; // it speaks of the values of the function before
    return Partitioner(explicitly, meshes, rest).run();
}

Result<PartitionedProgram> propagateAndPartition(Program program, const PartitionOptions& options)
{
    PartitionedProgram result;
    Problems problems;
    dropEmptyMeshes(program);
    DeviceStage stage;
    stage.meshes = program.meshes;
    for (Function& function : program.functions) {
        expandBatchNorms(function);
        auto report = propagate(function, program.meshes);
        if (!report) {
            append(problems, report.error());
            continue;
        }
        PartitionOptions withReport = options;
        withReport.report = &*report;
        auto device = partition(function, program.meshes, withReport);
        if (!device) {
            append(problems, device.error());
            continue;
        }
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

} // namespace meshwright
