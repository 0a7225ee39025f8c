// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/device_memory.h"

#include "core/schedule/label.h"
#include "core/support/text.h"
#include "core/train/training_function.h"
#include "core/train/training_memory.h"
#include "sim/session/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace meshwright::sim {

namespace {

/// "at dot_general act.layers.1.product: parameters 320 MiB, activations 96 MiB", the largest first.
std::string peakText(const ScheduledFunction& function)
{
    const std::size_t at = function.buffers.peakInstruction;
    const MemoryMoment moment = memoryOverTime(function)[at];
    std::vector<std::pair<std::int64_t, std::string>> parts;
    for (std::size_t kind = 0; kind < moment.bytesByKind.size(); ++kind) {
        if (moment.bytesByKind[kind] > 0)
            parts.emplace_back(moment.bytesByKind[kind],
                fmt::format("{} {}", memoryKindName(static_cast<MemoryKind>(kind)), formatBytes(moment.bytesByKind[kind])));
    }
    std::sort(parts.rbegin(), parts.rend());
    std::vector<std::string> texts;
    for (const auto& [bytes, text] : parts)
        texts.push_back(text);
    const std::string place
        = at < function.instructions.size() ? instructionLabel(function.device.function, function.instructions[at]) : "its end";
    return fmt::format("at {}: {}", place, fmt::join(texts, ", "));
}

/// The largest argument of which every device holds the whole, if there is more than one device.
std::optional<std::string> largestReplica(const ScheduledFunction& function, const Mesh& mesh)
{
    const Function& f = function.device.function;
    std::int64_t most = 0;
    std::string name;
    for (const ValueId argument : f.arguments()) {
        const bool isWhole = f[argument].type.shape == function.device.globalShapes[argument.at()];
        if (isWhole && f[argument].type.bytes() > most) {
            most = f[argument].type.bytes();
            name = valueText(f, argument);
        }
    }
    if (mesh.deviceCount() == 1 || most == 0)
        return std::nullopt;
    return fmt::format("a spec that splits {}, of which every device holds all {}", name, formatBytes(most));
}

/// `share`: what the need is made of, where the function is not all of it.
Problem tooLarge(std::int64_t needed, const std::string& share, std::int64_t limit, const ScheduledFunction& function,
    const Mesh& mesh, const std::vector<std::string>& remedies)
{
    std::vector<std::string> all = remedies;
    if (const auto replica = largestReplica(function, mesh))
        all.push_back(*replica);
    return {"MW1513",
        fmt::format("each of {} {} needs {}{} and may use {}; \"{}\" needs the most {}", mesh.deviceCount(),
            mesh.deviceCount() == 1 ? "device" : "devices", formatBytes(needed), share, formatBytes(limit),
            function.device.function.name, peakText(function)),
        all.empty() ? "use more devices and split what is large over them"
                    : fmt::format("what helps: {}", fmt::join(all, "; or "))};
}

/// The function of a phase's steps with the largest arena: of a pipeline, of any stage.
const ScheduledFunction& largestFunction(const TrainingPhase& phase)
{
    if (const ScheduledFunction* step = phase.scheduled.stages.front().find("step"))
        return *step;
    const ScheduledFunction* largest = nullptr;
    for (const ScheduledStage& stage : phase.scheduled.stages) {
        for (const ScheduledFunction& function : stage.functions) {
            if (largest == nullptr || function.buffers.arenaBytes > largest->buffers.arenaBytes)
                largest = &function;
        }
    }
    return *largest;
}

bool evaluatesBetweenSteps(const Study& study)
{
    return study.train.evaluate.every > 0;
}

/// What a variant of the study needs; nothing when it is not a valid study.
std::optional<std::int64_t> bytesOf(const Study& study)
{
    const auto phases = trainingPhases(study);
    if (!phases)
        return std::nullopt;
    return deviceTrainingBytes(*phases, evaluatesBetweenSteps(study));
}

/// The largest batch, of those halved from the study's, with which a device needs no more.
std::optional<std::string> batchThatFits(Study study, std::int64_t limit)
{
    while (study.batch % (2 * study.pipeline.microbatches * study.train.accumulate) == 0) {
        study.batch /= 2;
        const auto bytes = bytesOf(study);
        if (!bytes)
            return std::nullopt;
        if (*bytes <= limit)
            return fmt::format("a batch of {} ({} a device)", study.batch, formatBytes(*bytes));
    }
    return std::nullopt;
}

/// The smallest size of a mesh axis, doubled again and again, with which a device needs no more.
std::optional<std::string> axisThatFits(Study study, std::size_t axis, std::int64_t limit)
{
    constexpr int kDoublings = 6;
    for (int i = 0; i < kDoublings; ++i) {
        study.mesh[axis].size *= 2;
        const auto bytes = bytesOf(study);
        if (bytes && *bytes <= limit)
            return fmt::format(
                "mesh axis {} of {} ({} a device)", study.mesh[axis].name, study.mesh[axis].size, formatBytes(*bytes));
    }
    return std::nullopt;
}

std::vector<std::string> variantsThatFit(const Study& study, std::int64_t limit)
{
    std::vector<std::string> found;
    if (const auto batch = batchThatFits(study, limit))
        found.push_back(*batch);
    if (!study.phases.empty() || !study.deviceOrder.empty())
        return found; // the phases' meshes and the order would have to grow with it
    for (std::size_t axis = 0; axis < study.mesh.size(); ++axis) {
        if (study.mesh[axis].name == study.pipeline.axis)
            continue; // as long as there are stages
        if (const auto larger = axisThatFits(study, axis, limit))
            found.push_back(*larger);
    }
    return found;
}

} // namespace

std::int64_t deviceTrainingBytes(const std::vector<TrainingPhase>& phases, bool evaluatesInPhases)
{
    return plannedDevicePeak(phases, evaluatesInPhases).bytes;
}

Result<Done> checkDeviceMemory(const Study& study, const std::vector<TrainingPhase>& phases, std::int64_t limitBytes)
{
    const PlannedPeak needed = plannedDevicePeak(phases, evaluatesBetweenSteps(study));
    if (needed.bytes <= limitBytes)
        return Done{};
    std::string share;
    if (const std::int64_t rest = needed.bytes - needed.firstBytes; rest > 0 && needed.firstBytes > 0)
        share = fmt::format(" while \"{}\" ({}) takes over the arrays of \"{}\" ({}), since both are there at once,",
            needed.second, formatBytes(rest), needed.first, formatBytes(needed.firstBytes));
    const auto largest = std::max_element(phases.begin(), phases.end(), [](const TrainingPhase& a, const TrainingPhase& b) {
        return largestFunction(a).buffers.arenaBytes < largestFunction(b).buffers.arenaBytes;
    });
    return tooLarge(
        needed.bytes, share, limitBytes, largestFunction(*largest), wholeMesh(*largest), variantsThatFit(study, limitBytes));
}

Result<Done> checkDeviceMemory(const ScheduledFunction& function, const Mesh& mesh, std::int64_t limitBytes)
{
    if (function.buffers.arenaBytes <= limitBytes)
        return Done{};
    return tooLarge(function.buffers.arenaBytes, "", limitBytes, function, mesh, {});
}

} // namespace meshwright::sim
