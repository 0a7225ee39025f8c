// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/pipeline_memory.h"

#include "core/program/placement.h"
#include "core/schedule/stage_array.h"
#include "core/support/counted.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace meshwright::sim {

namespace {

MemoryKind kindOf(const Value& argument)
{
    switch (argument.role) {
    case Role::Parameter:
        return MemoryKind::Parameter;
    case Role::OptimizerState:
        return MemoryKind::OptimizerState;
    case Role::Gradient:
        return MemoryKind::Gradient;
    case Role::Input:
        return MemoryKind::Input;
    default:
        return MemoryKind::Activation;
    }
}

bool livesThroughTheStep(MemoryKind kind)
{
    return kind == MemoryKind::Parameter || kind == MemoryKind::OptimizerState || kind == MemoryKind::Gradient;
}

std::size_t functionIndex(const ScheduledStage& stage, const std::string& name)
{
    const auto found = std::ranges::find_if(
        stage.functions, [&](const ScheduledFunction& function) { return function.device.function.name == name; });
    return static_cast<std::size_t>(found - stage.functions.begin());
}

/// What one microbatch leaves of a chunk: what its backward functions read. `backward` first; `weights` null where the backward pass is one task.
std::vector<StageMemory::Kept> keptBetween(const Function& backward, const Function* weights)
{
    std::vector<StageMemory::Kept> kept;
    const auto add = [&](const Function& reader, TaskKind until) {
        const std::vector<bool> onHost = valuesOnHost(reader);
        for (const ValueId id : reader.arguments()) {
            const Value& argument = reader[id];
            const StageArray::Kind what = stageArrayOf(argument.name).kind;
            if (livesThroughTheStep(kindOf(argument)) || what == StageArray::Kind::OutputGradient)
                continue;
            const auto known
                = std::ranges::find_if(kept, [&](const StageMemory::Kept& other) { return other.value.name == argument.name; });
            if (known != kept.end()) {
                known->until = until;
                continue;
            }
            kept.push_back({{argument.name, kindOf(argument), argument.type.bytes()}, onHost[id.at()],
                what == StageArray::Kind::WeightResidual ? TaskKind::BackwardInput : TaskKind::Forward, until});
        }
    };
    add(backward, weights == nullptr ? TaskKind::Backward : TaskKind::BackwardInput);
    if (weights != nullptr)
        add(*weights, TaskKind::BackwardWeight);
    return kept;
}

/// What the function computes as this result; invalid where it only passes an argument on.
ValueId madeAs(const Function& function, const std::string& result)
{
    const auto found = std::ranges::find(function.resultNames, result);
    if (found == function.resultNames.end())
        return {};
    const ValueId made = function.results()[static_cast<std::size_t>(found - function.resultNames.begin())];
    return function[made].producer.valid() ? made : ValueId();
}

const Function& makerOf(const StageMemory::Kept& kept, const ScheduledStage& stage, std::size_t chunk)
{
    return stage.functions[functionIndex(stage, functionOf(kept.from, chunk))].device.function;
}

/// "act.layers.0.ffn.hidden of chunk 1, 3 microbatches"
std::string keptLabel(
    const StageMemory::Kept& kept, const ScheduledStage& stage, std::size_t chunk, std::int64_t chunks, std::int64_t microbatches)
{
    const Function& maker = makerOf(kept, stage, chunk);
    const ValueId made = madeAs(maker, kept.value.name);
    return fmt::format("{}{}, {}", made.valid() ? valueText(maker, made) : kept.value.name,
        chunks > 1 ? fmt::format(" of chunk {}", chunk) : "", counted(microbatches, "microbatch"));
}

/// What a task's function makes for itself: the largest of its arrays at its peak, as far as they are known, and the rest.
/// Arguments and what it makes of `kept` values count as those.
void addWorking(std::vector<LiveValue>& live, const ScheduledFunction& scheduled, const std::vector<StageMemory::Kept>& kept,
    std::int64_t working)
{
    const Function& function = scheduled.device.function;
    std::set<std::string> others;
    for (const ValueId argument : function.arguments())
        others.insert(function[argument].name);
    for (const StageMemory::Kept& value : kept) {
        if (const ValueId made = madeAs(function, value.value.name); made.valid())
            others.insert(valueText(function, made));
    }
    for (const LiveValue& value : liveAtPeak(scheduled)) {
        if (others.contains(value.name) || value.bytes > working)
            continue;
        working -= value.bytes;
        live.push_back({value.name, MemoryKind::Temporary, value.bytes});
    }
    live.push_back({fmt::format("other buffers inside {}", function.name), MemoryKind::Temporary, working});
}

void addBytes(MemoryPoint& point, MemoryKind kind, std::int64_t bytes, bool onHost = false)
{
    if (onHost) {
        point.hostBytes += bytes;
        return;
    }
    point.bytesByKind[static_cast<std::size_t>(kind)] += bytes;
    point.total += bytes;
}

} // namespace

StageMemory stageMemory(const ScheduledStage& stage, std::int64_t chunks)
{
    StageMemory memory;
    memory.kept.resize(static_cast<std::size_t>(chunks));
    std::set<std::string> seen;
    for (const ScheduledFunction& scheduled : stage.functions) {
        const Function& function = scheduled.device.function;
        const std::vector<bool> onHost = valuesOnHost(function);
        std::int64_t arguments = 0;
        std::int64_t onHostBefore = 0;
        for (const ValueId id : function.arguments()) {
            const Value& argument = function[id];
            (onHost[id.at()] ? onHostBefore : arguments) += argument.type.bytes();
            const MemoryKind kind = kindOf(argument);
            if (livesThroughTheStep(kind) && seen.insert(argument.name).second)
                memory.arrays.push_back({argument.name, kind, argument.type.bytes()});
        }
        memory.working.push_back(std::max<std::int64_t>(0, scheduled.buffers.arenaBytes - arguments));
        memory.workingOnHost.push_back(std::max<std::int64_t>(0, scheduled.buffers.hostBytes - onHostBefore));
    }
    for (std::size_t chunk = 0; chunk < memory.kept.size(); ++chunk) {
        const ScheduledFunction* weights = stage.find(TaskKind::BackwardWeight, chunk);
        memory.kept[chunk] = keptBetween(
            stage.find(TaskKind::Backward, chunk)->device.function, weights == nullptr ? nullptr : &weights->device.function);
        for (const StageMemory::Kept& kept : memory.kept[chunk]) { // what a task makes of it lies in the task's arena
            const std::size_t maker = functionIndex(stage, functionOf(kept.from, chunk));
            std::int64_t& working = (kept.onHost ? memory.workingOnHost : memory.working)[maker];
            if (madeAs(stage.functions[maker].device.function, kept.value.name).valid())
                working = std::max<std::int64_t>(0, working - kept.value.bytes);
        }
    }
    return memory;
}

std::vector<MemoryPoint> memoryOfTasks(const ScheduledProgram& pipeline, std::size_t stage)
{
    const StageMemory memory = stageMemory(pipeline.stages[stage], pipeline.pipeline.chunks);
    MemoryPoint state;
    state.bytesByKind.assign(static_cast<std::size_t>(MemoryKind::Temporary) + 1, 0);
    for (const LiveValue& array : memory.arrays)
        addBytes(state, array.kind, array.bytes);
    std::vector<MemoryPoint> points;
    for (const Task& task : pipeline.tasks) {
        if (task.stage != stage)
            continue;
        for (const StageMemory::Kept& kept : memory.kept[task.chunk]) {
            if (kept.isKeptBy(task))
                addBytes(state, kept.value.kind, kept.value.bytes, kept.onHost);
        }
        points.push_back(state);
        const std::size_t function = functionIndex(pipeline.stages[stage], task.function);
        addBytes(points.back(), MemoryKind::Temporary, memory.working[function]);
        points.back().hostBytes += memory.workingOnHost[function];
        for (const StageMemory::Kept& kept : memory.kept[task.chunk]) {
            if (kept.isLeftBy(task))
                addBytes(state, kept.value.kind, -kept.value.bytes, kept.onHost);
        }
    }
    points.push_back(state);
    return points;
}

std::int64_t mostHostBytes(const ScheduledProgram& pipeline)
{
    std::int64_t most = 0;
    for (std::size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
        for (const MemoryPoint& point : memoryOfTasks(pipeline, stage))
            most = std::max(most, point.hostBytes);
    }
    return most;
}

FullestStage fullestStage(const ScheduledProgram& pipeline)
{
    FullestStage fullest;
    for (std::size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
        const std::vector<MemoryPoint> points = memoryOfTasks(pipeline, stage);
        for (std::size_t moment = 0; moment < points.size(); ++moment) {
            if (points[moment].total > fullest.bytes)
                fullest = {stage, points[moment].total, moment};
        }
    }
    return fullest;
}

std::vector<LiveValue> liveAtPeak(const ScheduledProgram& pipeline)
{
    const FullestStage fullest = fullestStage(pipeline);
    const ScheduledStage& stage = pipeline.stages[fullest.stage];
    const StageMemory memory = stageMemory(stage, pipeline.pipeline.chunks);
    std::vector<std::vector<std::int64_t>> underWay; // by chunk and kept value: microbatches
    for (const auto& kept : memory.kept)
        underWay.emplace_back(kept.size(), 0);
    std::size_t moment = 0;
    std::vector<LiveValue> live = memory.arrays;
    for (const Task& task : pipeline.tasks) {
        if (task.stage != fullest.stage)
            continue;
        const std::vector<StageMemory::Kept>& kept = memory.kept[task.chunk];
        for (std::size_t i = 0; i < kept.size(); ++i)
            underWay[task.chunk][i] += kept[i].isKeptBy(task) ? 1 : 0;
        if (moment++ == fullest.moment) {
            const std::size_t function = functionIndex(stage, task.function);
            addWorking(live, stage.functions[function], kept, memory.working[function]);
            break;
        }
        for (std::size_t i = 0; i < kept.size(); ++i)
            underWay[task.chunk][i] -= kept[i].isLeftBy(task) ? 1 : 0;
    }
    for (std::size_t chunk = 0; chunk < memory.kept.size(); ++chunk) {
        for (std::size_t i = 0; i < memory.kept[chunk].size(); ++i) {
            const StageMemory::Kept& kept = memory.kept[chunk][i];
            const std::int64_t count = underWay[chunk][i];
            if (count > 0 && !kept.onHost)
                live.push_back(
                    {keptLabel(kept, stage, chunk, pipeline.pipeline.chunks, count), kept.value.kind, count * kept.value.bytes});
        }
    }
    std::erase_if(live, [](const LiveValue& value) { return value.bytes == 0; });
    std::ranges::stable_sort(live, [](const LiveValue& a, const LiveValue& b) { return a.bytes > b.bytes; });
    return live;
}

} // namespace meshwright::sim
