// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/pipeline_uses.h"

#include "core/schedule/stage_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>

namespace meshwright {

namespace {

/// What a stage knows of the gradients of parameters that another has too; null where there are none.
const Function* sharedOf(const ScheduledProgram& pipeline, std::int64_t stage)
{
    const ScheduledFunction* shared = pipeline.stages[static_cast<std::size_t>(stage)].find(TaskKind::ShareGradients);
    return shared == nullptr ? nullptr : &shared->device.function;
}

} // namespace

CollectiveUse sendUse(StageMessage what, std::int64_t from, std::int64_t to, const std::string& axis, std::int64_t payloadBytes)
{
    const bool isShared = what == StageMessage::SharedGradients;
    const char* name = isShared ? "shared gradients" : what == StageMessage::Gradients ? "gradients" : "activations";
    CollectiveUse use;
    use.kind = OpKind::Send;
    use.axes = axis;
    use.groupSize = 2;
    use.payloadBytes = payloadBytes;
    use.phase = isShared ? Phase::Update : what == StageMessage::Gradients ? Phase::Backward : Phase::Forward;
    use.cause = {fmt::format("{} of stage {}", name, from), "pipeline",
        fmt::format("stage {} sends to stage {} what its {}", from, to, isShared ? "update needs" : "layers go on with"),
        "pipeline"};
    return use;
}

std::int64_t bytesPassedOn(const ScheduledProgram& pipeline, std::int64_t piece, bool backward)
{
    const std::int64_t stages = pipeline.pipeline.stages;
    const ScheduledFunction* passing = pipeline.stages[static_cast<std::size_t>(piece % stages)].find(
        backward ? TaskKind::Backward : TaskKind::Forward, static_cast<std::size_t>(piece / stages));
    const StageArray passed{backward ? StageArray::Kind::InputGradient : StageArray::Kind::Output};
    const Function& function = passing->device.function;
    const auto result = std::ranges::find(function.resultNames, passed.text());
    assert(result != function.resultNames.end());
    return function[function.results()[static_cast<std::size_t>(result - function.resultNames.begin())]].type.bytes();
}

std::int64_t sharedGradientBytes(const ScheduledProgram& pipeline, std::int64_t from, std::int64_t to)
{
    const Function* own = sharedOf(pipeline, from);
    const Function* others = from == to ? nullptr : sharedOf(pipeline, to);
    std::int64_t bytes = 0;
    for (std::size_t i = 0; own != nullptr && others != nullptr && i < own->results().size(); ++i) {
        if (std::ranges::find(others->resultNames, own->resultNames[i]) != others->resultNames.end())
            bytes += (*own)[own->results()[i]].type.bytes();
    }
    return bytes;
}

std::vector<StageUse> collectivesOf(const ScheduledProgram& pipeline, const std::string& axis)
{
    std::vector<StageUse> uses;
    for (std::size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
        for (const ScheduledFunction& function : pipeline.stages[stage].functions) {
            const auto runs = std::ranges::count_if(pipeline.tasks,
                [&](const Task& task) { return task.stage == stage && task.function == function.device.function.name; });
            if (runs == 0)
                continue;
            for (CollectiveUse& use : collectivesOf(function.device, pipeline.stages[stage].mesh())) {
                use.op = OpId{};
                use.count *= runs;
                uses.push_back({stage, {}, std::move(use)});
            }
        }
    }
    const std::int64_t stages = pipeline.pipeline.stages;
    std::vector<StageUse> messages;
    const auto send = [&](StageMessage what, std::int64_t from, std::int64_t to, std::int64_t bytes, std::int64_t count) {
        CollectiveUse use = sendUse(what, from, to, axis, bytes);
        use.count = count;
        const auto same = std::ranges::find_if(messages, [&](const StageUse& other) {
            return other.stage == static_cast<std::size_t>(from) && other.to == static_cast<std::size_t>(to)
                && other.use.phase == use.phase && other.use.payloadBytes == bytes;
        });
        if (same != messages.end())
            same->use.count += count;
        else
            messages.push_back({static_cast<std::size_t>(from), static_cast<std::size_t>(to), std::move(use)});
    };
    for (std::int64_t piece = 0; piece + 1 < pipeline.pipeline.pieces(); ++piece) {
        const std::int64_t from = piece % stages;
        const std::int64_t to = (piece + 1) % stages;
        if (from == to)
            continue;
        send(StageMessage::Activations, from, to, bytesPassedOn(pipeline, piece, false), pipeline.pipeline.microbatches);
        send(StageMessage::Gradients, to, from, bytesPassedOn(pipeline, piece + 1, true), pipeline.pipeline.microbatches);
    }
    for (std::int64_t from = 0; from < stages; ++from) {
        for (std::int64_t to = 0; to < stages; ++to) {
            if (const std::int64_t bytes = sharedGradientBytes(pipeline, from, to); bytes > 0)
                send(StageMessage::SharedGradients, from, to, bytes, 1);
        }
    }
    uses.insert(uses.end(), std::make_move_iterator(messages.begin()), std::make_move_iterator(messages.end()));
    return uses;
}

} // namespace meshwright
