// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/training_checkpoint.h"

#include "core/devices/virtual_devices.h"
#include "core/sharding/shardy_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>

namespace meshwright {

Result<std::vector<RestoreShare>> restorePlan(const CheckpointReader& checkpoint, const TrainingPhase& phase)
{
    const Function& function = *phase.program.find("step");
    const Mesh& mesh = wholeMesh(phase);
    std::vector<RestoreShare> shares;
    std::map<DeviceId, std::size_t> shareOf;
    for (std::int64_t position = 0; position < mesh.deviceCount(); ++position) {
        shareOf[mesh.deviceAt(position)] = shares.size();
        shares.push_back({mesh.deviceAt(position), {}});
    }
    Problems problems;
    for (std::size_t i = 0; i < stateCount(function); ++i) {
        const Value& argument = function[function.arguments()[i]];
        const auto array = checkpoint.find(argument.name);
        if (!array || checkpoint.checkpoint().arrays[*array].type != argument.type) {
            problems.push_back({"MW1646",
                fmt::format("the study has {} as {}, the checkpoint {}", argument.name, typeText(argument.type),
                    array ? "as " + typeText(checkpoint.checkpoint().arrays[*array].type) : std::string("does not have it")),
                "use the model, optimizer and types that the checkpoint was made with", Place{checkpoint.path().string()}});
            continue;
        }
        const auto [stage, held] = heldArgument(phase, i);
        const Mesh& own = stage->meshes[static_cast<std::size_t>(held->sharding->mesh)].mesh;
        for (std::int64_t position = 0; position < own.deviceCount(); ++position) {
            auto& files = shares[shareOf.at(stage->mesh().deviceAt(position))].files;
            for (const ReadFromFile& read :
                checkpoint.needs(*array, shardBox(argument.type.shape, *held->sharding, own, position))) {
                const auto same
                    = std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.file == read.file; });
                if (same == files.end()) {
                    files.push_back(read);
                } else {
                    same->ranges += read.ranges;
                    same->bytes += read.bytes;
                }
            }
        }
    }
    if (!problems.empty())
        return problems;
    for (RestoreShare& share : shares)
        std::sort(share.files.begin(), share.files.end(), [](const auto& a, const auto& b) { return a.file < b.file; });
    return shares;
}

Result<std::filesystem::path> convertCheckpoint(
    CheckpointReader& checkpoint, const TrainingPhase& phase, const std::filesystem::path& folder)
{
    if (const auto plan = restorePlan(checkpoint, phase); !plan)
        return plan.error();
    const Function& function = *phase.program.find("step");
    const Mesh& whole = wholeMesh(phase);
    std::map<DeviceId, std::int64_t> positionOf;
    for (std::int64_t position = 0; position < whole.deviceCount(); ++position)
        positionOf[whole.deviceAt(position)] = position;
    std::vector<ArrayToSave> arrays;
    for (std::size_t i = 0; i < stateCount(function); ++i) {
        const Value& argument = function[function.arguments()[i]];
        const auto [stage, held] = heldArgument(phase, i);
        const TensorSharding& sharding = *held->sharding;
        const Mesh& mesh = stage->meshes[static_cast<std::size_t>(sharding.mesh)].mesh;
        const std::size_t source = checkpoint.find(argument.name).value();
        std::map<IndexBox, std::vector<std::int64_t>> holders;
        for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
            holders[shardBox(argument.type.shape, sharding, mesh, position)].push_back(
                positionOf.at(stage->mesh().deviceAt(position)));
        ArrayToSave array{argument.name, argument.type, shardyText(sharding, mesh), {}};
        for (auto& [box, positions] : holders)
            array.pieces.push_back({box, std::move(positions),
                [&checkpoint, source, box = box](std::int64_t) { return checkpoint.read(source, box); }});
        arrays.push_back(std::move(array));
    }
    SavedState state = checkpoint.checkpoint().state;
    state.mesh = whole.text();
    const auto into = CheckpointFolder::open(folder);
    if (!into)
        return into.error();
    return into->write(state, arrays);
}

Problems otherTrainingProblems(const TrainingPhase& phase, const CheckpointReader& checkpoint, const SavedState& own)
{
    const SavedState& state = checkpoint.checkpoint().state;
    const Place place{checkpoint.path().string()};
    Problems problems;
    if (const auto plan = restorePlan(checkpoint, phase); !plan)
        problems = plan.error();
    if (!own.optimizer.empty() && !state.optimizer.empty() && state.optimizer != own.optimizer)
        problems.push_back({"MW1646",
            fmt::format("the checkpoint was made with the optimizer {}, the study has {}", state.optimizer, own.optimizer),
            "use the model, optimizer and types that the checkpoint was made with", place});
    for (const auto& [path, value] : state.settings) {
        const auto found = own.settings.find(path);
        if (found != own.settings.end() && found->second != value)
            problems.push_back(
                {"MW1646", fmt::format("the checkpoint was made with {} {}, the study has {}", path, value, found->second),
                    fmt::format("set {} to {}", path, value), place, Severity::Error, {}, {fmt::format("{}={}", path, value)}});
    }
    if (state.seed != own.seed)
        problems.push_back({"MW1647",
            fmt::format("the checkpoint was made with seed {}, the study has seed {}: its rows would come in another order",
                state.seed, own.seed),
            fmt::format("set train.seed to {}", state.seed), place, Severity::Error, {},
            {fmt::format("train.seed={}", state.seed)}});
    return problems;
}

Problems resumeProblems(const std::vector<TrainingPhase>& phases, const CheckpointReader& checkpoint, const SavedState& own)
{
    const SavedState& state = checkpoint.checkpoint().state;
    Problems problems = otherTrainingProblems(phases.front(), checkpoint, own);
    std::int64_t steps = 0;
    for (const TrainingPhase& phase : phases)
        steps += phase.steps;
    if (state.step > steps)
        problems.push_back({"MW1647", fmt::format("the checkpoint is of step {}, the training has {} steps", state.step, steps),
            fmt::format("train for {} steps or more", state.step), Place{checkpoint.path().string()}});
    return problems;
}

namespace {

/// How a training's state is sharded.
struct StateLayout {
    std::string mesh;
    std::map<std::string, std::string> shardings; ///< of arrays, in Shardy's notation
};

StateLayout layoutOf(const TrainingPhase& phase)
{
    const Function& function = *phase.program.find("step");
    StateLayout layout{wholeMesh(phase).text(), {}};
    for (std::size_t i = 0; i < stateCount(function); ++i) {
        const auto [stage, held] = heldArgument(phase, i);
        const Mesh& mesh = stage->meshes[static_cast<std::size_t>(held->sharding->mesh)].mesh;
        layout.shardings[function[function.arguments()[i]].name] = shardyText(*held->sharding, mesh);
    }
    return layout;
}

StateLayout layoutOf(const Checkpoint& checkpoint)
{
    StateLayout layout{checkpoint.state.mesh, {}};
    for (const CheckpointArray& array : checkpoint.arrays)
        layout.shardings[array.name] = array.sharding;
    return layout;
}

/// Empty: none that a mesh and shardings tell.
std::string differenceOf(const StateLayout& before, const StateLayout& after)
{
    if (before.mesh != after.mesh)
        return fmt::format("mesh {} → {}", before.mesh, after.mesh);
    const auto differing = std::count_if(after.shardings.begin(), after.shardings.end(), [&](const auto& array) {
        const auto was = before.shardings.find(array.first);
        return was != before.shardings.end() && was->second != array.second;
    });
    return differing == 0 ? std::string() : fmt::format("{} array{} sharded differently", differing, differing == 1 ? "" : "s");
}

} // namespace

std::vector<LayoutSwitch> layoutSwitches(const std::vector<TrainingPhase>& phases, const CheckpointReader* resumed)
{
    std::vector<LayoutSwitch> changes;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < phases.size(); ++i) {
        if (i > 0) {
            const std::string what = differenceOf(layoutOf(phases[i - 1]), layoutOf(phases[i]));
            if (!what.empty() || wholeMesh(phases[i - 1]) != wholeMesh(phases[i]))
                changes.push_back({begin, what.empty() ? "another device order" : what});
        }
        const std::int64_t end = begin + phases[i].steps;
        if (resumed != nullptr) {
            const SavedState& state = resumed->checkpoint().state;
            if (state.step >= begin && (state.step < end || (i + 1 == phases.size() && state.step == end))) {
                std::erase_if(
                    changes, [&](const LayoutSwitch& change) { return change.step == state.step; }); // the checkpoint knows
                const std::string what = differenceOf(layoutOf(resumed->checkpoint()), layoutOf(phases[i]));
                changes.push_back({state.step, what.empty() ? "resumed" : "resumed: " + what});
            }
        }
        begin = end;
    }
    return changes;
}

Result<Done> restoreState(
    CheckpointReader& checkpoint, const Function& function, TrainingFunction& step, const std::stop_token& stop)
{
    for (std::size_t i = 0; i < stateCount(function); ++i) {
        const auto array = checkpoint.find(function[function.arguments()[i]].name);
        assert(array); // restorePlan looked
        for (const auto& [box, holders] : step.piecesOfArgument(i)) {
            if (stop.stop_requested())
                return VirtualDevices::interrupted();
            if (std::none_of(holders.begin(), holders.end(), [&](std::int64_t holder) { return step.writesHere(i, holder); }))
                continue;
            const auto piece = checkpoint.read(*array, box);
            if (!piece)
                return piece.error();
            for (const std::int64_t holder : holders)
                step.writeArgumentPiece(i, holder, *piece);
        }
    }
    return Done{};
}

namespace {

/// True where no element of a floating array is NaN or infinite.
bool isFinite(const HostArray& array)
{
    const auto hasNone = [](const auto& elements, auto exponent) {
        return std::ranges::none_of(elements, [exponent](auto bits) { return (bits & exponent) == exponent; });
    };
    switch (array.type().dtype) {
    case DType::F32:
        return hasNone(array.as<std::uint32_t>(), std::uint32_t{0x7f800000});
    case DType::F64:
        return hasNone(array.as<std::uint64_t>(), std::uint64_t{0x7ff0000000000000});
    case DType::BF16:
        return hasNone(array.as<std::uint16_t>(), std::uint16_t{0x7f80});
    case DType::F16:
        return hasNone(array.as<std::uint16_t>(), std::uint16_t{0x7c00});
    default:
        return true;
    }
}

} // namespace

std::vector<ArrayToSave> arraysToSave(const Function& function, const TrainingFunction& step,
    const std::function<Result<Done>()>& isSound, const std::function<void(const std::string&)>& notFinite)
{
    std::vector<ArrayToSave> arrays;
    for (std::size_t i = 0; i < stateCount(function); ++i) {
        const Value& argument = function[function.arguments()[i]];
        ArrayToSave array{argument.name, argument.type, step.layoutText(i), {}};
        for (auto& [box, holders] : step.piecesOfArgument(i))
            array.pieces.push_back(
                {box, holders, [&step, isSound, notFinite, name = array.name, i](std::int64_t holder) -> Result<HostArray> {
                     HostArray piece = step.readArgumentPiece(i, holder);
                     if (auto sound = isSound(); !sound)
                         return sound.error();
                     if (!isFinite(piece))
                         notFinite(name);
                     return piece;
                 }});
        arrays.push_back(std::move(array));
    }
    return arrays;
}

} // namespace meshwright
