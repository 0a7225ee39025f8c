// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/partition.h"
#include "core/program/verify.h"
#include "core/runtime/executor.h"

#include <vector>

namespace meshwright::tests {

/// What a program's first function gave on virtual devices.
struct DeviceRun {
    DeviceStage stage; ///< as partitioned
    std::vector<HostArray> results; ///< whole arrays
    bool replicasAgree = true;
};

/// Partitions a program, checks what came of it, and runs its first function once on as many devices as the mesh has.
inline Result<DeviceRun> runOnDevices(Program program, const std::vector<HostArray>& arguments)
{
    auto partitioned = propagateAndPartition(std::move(program));
    if (!partitioned)
        return partitioned.error();
    DeviceRun run{std::move(partitioned->device.stages.front()), {}, true};
    const DeviceFunction& function = run.stage.functions.front();
    if (Problems problems = verify(function.function, run.stage.meshes); !problems.empty())
        return problems;
    auto devices = VirtualDevices::create(run.stage.mesh().deviceCount(), {});
    if (!devices)
        return devices.error();
    const auto loaded = LoadedFunction::load(schedule(function, SchedulePolicy::Host), run.stage.meshes, **devices);
    if (!loaded)
        return loaded.error();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (auto written = (*loaded)->writeArgument(i, arguments[i]); !written)
            return written.error();
    }
    if (auto done = (*loaded)->run(); !done)
        return done.error();
    for (std::size_t i = 0; i < (*loaded)->function().results().size(); ++i) {
        run.replicasAgree = run.replicasAgree && (*loaded)->replicasAgree(i);
        run.results.push_back((*loaded)->readResult(i));
    }
    return run;
}

} // namespace meshwright::tests
