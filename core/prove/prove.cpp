// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/prove.h"

#include "core/prove/function_proof.h"
#include "core/prove/pipeline_proof.h"
#include "core/schedule/label.h"
#include "core/support/counted.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace meshwright {

bool Proof::isProved() const
{
    return !functions.empty()
        && std::all_of(functions.begin(), functions.end(), [](const FunctionProof& function) { return function.isProved(); });
}

std::size_t Proof::ops() const
{
    return std::accumulate(functions.begin(), functions.end(), std::size_t{0},
        [](std::size_t sum, const FunctionProof& function) { return sum + function.ops; });
}

namespace {

FunctionProof refused(const Function& function, std::string why)
{
    FunctionProof made;
    made.name = function.name;
    made.ops = function.ops.size();
    made.obstacles.emplace_back().reason = std::move(why);
    return made;
}

const DeviceFunction& deviceOf(const DeviceFunction& function)
{
    return function;
}

const DeviceFunction& deviceOf(const ScheduledFunction& function)
{
    return function.device;
}

/// The meshes that a function of the source and its border speak of are the devices'.
bool areMeshesOf(const Function& function, const std::vector<NamedMesh>& meshes, const std::vector<NamedMesh>& ofDevices)
{
    const auto isSame = [&](std::int32_t i) {
        const auto at = static_cast<std::size_t>(i);
        return at < std::min(meshes.size(), ofDevices.size()) && meshes[at].mesh == ofDevices[at].mesh;
    };
    const auto liesOnSame = [&](const std::optional<TensorSharding>& layout) { return !layout || isSame(layout->mesh); };
    return isSame(0) && std::ranges::all_of(function.resultShardings, liesOnSame)
        && std::ranges::all_of(function.arguments(), [&](ValueId argument) { return liesOnSame(function[argument].sharding); });
}

/// Of stages that each run all of a function.
template <typename Stage>
Proof proveByName(const Program& source, const std::vector<Stage>& stages, const std::stop_token& stop)
{
    Proof proof;
    proof.devices = 0;
    for (const Stage& stage : stages) {
        proof.devices += stage.mesh().deviceCount();
        for (const auto& function : stage.functions) {
            const DeviceFunction& device = deviceOf(function);
            const Function* of = source.find(device.function.name);
            if (of == nullptr)
                proof.functions.push_back(refused(device.function, "the source has no such function"));
            else if (!areMeshesOf(*of, source.meshes, stage.meshes))
                proof.functions.push_back(
                    refused(device.function, "its mesh has other axes, or another order of devices, than the source's"));
            else
                proof.functions.push_back(proveFunction(*of, device, stage.meshes, stop));
        }
    }
    for (const Function& function : source.functions) {
        if (std::none_of(stages.begin(), stages.end(), [&](const Stage& stage) { return stage.find(function.name) != nullptr; }))
            proof.functions.push_back(refused(function, "the device program has no such function"));
    }
    return proof;
}

Proof provePipeline(const Program& source, const ScheduledProgram& pipeline, const std::stop_token& stop)
{
    Proof proof;
    proof.devices = 0;
    for (const ScheduledStage& stage : pipeline.stages)
        proof.devices += stage.mesh().deviceCount();
    const std::string fault = taskFault(pipeline);
    for (const Function& function : source.functions) {
        if (function.name != "init" && function.name != "evaluate" && function.name != "step")
            continue; // others are what these are made of
        const JoinedFunction joined = joinedPipeline(source, function, pipeline);
        FunctionProof& made = proof.functions.emplace_back(joined.obstacle.empty()
                ? proveFunction(joined.source, joined.device, joined.meshes, stop, joined.calls)
                : refused(function, joined.obstacle));
        made.meshes = joined.meshes;
        if (function.name == "step" && !fault.empty())
            made.obstacles.emplace_back().reason = fault;
    }
    return proof;
}

} // namespace

FunctionProof prove(const Function& source, const DeviceFunction& device, const std::vector<NamedMesh>& meshes)
{
    return proveFunction(source, device, meshes);
}

Proof prove(const Program& source, const DeviceProgram& device, const std::stop_token& stop)
{
    return proveByName(source, device.stages, stop);
}

Proof prove(const Program& source, const ScheduledProgram& scheduled, const std::stop_token& stop)
{
    return isPipelined(scheduled) ? provePipeline(source, scheduled, stop) : proveByName(source, scheduled.stages, stop);
}

void add(Proof& proof, Proof more)
{
    proof.devices = more.devices;
    proof.seconds += more.seconds;
    std::move(more.functions.begin(), more.functions.end(), std::back_inserter(proof.functions));
}

std::string headline(const Proof& proof)
{
    const std::string scale = fmt::format("{} on {}, {}", counted(proof.ops(), "op"), counted(proof.devices, "device"),
        counted(proof.functions.size(), "function"));
    return proof.isProved() ? fmt::format("proved: {}, equal up to the order of sums", scale) : "not proved: " + scale;
}

std::string firstObstacle(const Proof& proof)
{
    for (const FunctionProof& function : proof.functions) {
        if (function.isProved())
            continue;
        const ProofObstacle& first = function.obstacles.front();
        return fmt::format("{}{}{}: {}", function.name,
            first.opName.empty() ? "" : fmt::format(", {}", opLabel(first.opName, first.value)),
            first.place.empty() ? "" : " at " + first.place, first.reason);
    }
    return {};
}

} // namespace meshwright
