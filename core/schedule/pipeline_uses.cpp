// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/pipeline_uses.h"

#include "core/schedule/stage_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

/// Bytes that one device of a stage sends its partner in another one of gradients of parameters that both have; 0 where there are none.
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

} // namespace

const char* stageMessageName(StageMessage what)
{
    constexpr std::array kNames = {"activations", "gradients", "shared gradients"};
    return kNames[static_cast<std::size_t>(what)];
}

CollectiveUse sendUse(const StageTransfer& transfer, const std::string& axis)
{
    constexpr std::array kPhases = {Phase::Forward, Phase::Backward, Phase::Update};
    const auto& [from, to, what, payloadBytes] = transfer;
    CollectiveUse use;
    use.kind = OpKind::Send;
    use.axes = axis;
    use.groupSize = 2;
    use.payloadBytes = payloadBytes;
    use.phase = kPhases[static_cast<std::size_t>(what)];
    use.cause = {fmt::format("{} of stage {}", stageMessageName(what), from), "pipeline",
        fmt::format("stage {} sends to stage {} what its {}", from, to,
            what == StageMessage::SharedGradients ? "update needs" : "layers go on with"),
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

std::vector<StageTransfer> transfersOf(const ScheduledProgram& pipeline)
{
    const std::int64_t stages = pipeline.pipeline.stages;
    std::vector<StageTransfer> transfers;
    for (std::int64_t piece = 0; piece + 1 < pipeline.pipeline.pieces(); ++piece) {
        const std::int64_t from = piece % stages;
        const std::int64_t to = (piece + 1) % stages;
        if (from == to)
            continue;
        transfers.push_back({from, to, StageMessage::Activations, bytesPassedOn(pipeline, piece, false)});
        transfers.push_back({to, from, StageMessage::Gradients, bytesPassedOn(pipeline, piece + 1, true)});
    }
    for (std::int64_t from = 0; from < stages; ++from) {
        for (std::int64_t to = 0; to < stages; ++to) {
            if (const std::int64_t bytes = sharedGradientBytes(pipeline, from, to); bytes > 0)
                transfers.push_back({from, to, StageMessage::SharedGradients, bytes});
        }
    }
    return transfers;
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
    std::vector<StageUse> messages;
    for (const StageTransfer& transfer : transfersOf(pipeline)) {
        StageUse message{static_cast<std::size_t>(transfer.from), static_cast<std::size_t>(transfer.to), sendUse(transfer, axis)};
        message.use.count = transfer.what == StageMessage::SharedGradients ? 1 : pipeline.pipeline.microbatches;
        const auto same = std::ranges::find_if(messages, [&](const StageUse& other) {
            return other.stage == message.stage && other.to == message.to && other.use.phase == message.use.phase
                && other.use.payloadBytes == message.use.payloadBytes;
        });
        if (same != messages.end())
            same->use.count += message.use.count;
        else
            messages.push_back(std::move(message));
    }
    uses.insert(uses.end(), std::make_move_iterator(messages.begin()), std::make_move_iterator(messages.end()));
    return uses;
}

} // namespace meshwright
