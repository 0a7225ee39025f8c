// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/initializers.h"
#include "core/runtime/executor.h"
#include "core/support/threefry.h"
#include "sim/session/engine.h"

#include <algorithm>
#include <chrono>

namespace meshwright::sim {

namespace {

/// Values for an argument of a program that comes without data.
HostArray randomArray(const TensorType& type, const RandomKey& key)
{
    std::vector<double> values;
    const auto count = static_cast<std::uint64_t>(type.elements());
    const Dataset normal
        = isFloating(type.dtype) ? randomDataset(1, std::max<std::int64_t>(1, type.elements()), 1, key, true) : Dataset{};
    for (std::uint64_t i = 0; i < count; ++i)
        values.push_back(isFloating(type.dtype)
                ? static_cast<double>(normal.inputs[i])
                : static_cast<double>(randomWord(key, i, count, true) % (type.dtype == DType::Pred ? 2 : 10)));
    return HostArray::of(type, values);
}

} // namespace

Result<RunResult> runProgram(const Program& program, const std::string& name, const RunChoices& choices, std::stop_token stop)
{
    Program alone = program;
    std::erase_if(alone.functions, [&](const Function& f) { return f.name != name; });
    assert(alone.functions.size() == 1);
    if (alone.meshes.empty())
        alone.meshes.push_back({"mesh", Mesh()});
    const Function whole = alone.functions.front();
    auto partitioned = propagateAndPartition(std::move(alone));
    if (!partitioned)
        return partitioned.error();
    const DeviceStage& stage = partitioned->device.stages.front();
    auto devices = VirtualDevices::create(stage.mesh().deviceCount(), {.permits = choices.permits});
    if (!devices)
        return devices.error();
    auto loaded = LoadedFunction::load(schedule(stage.functions.front(), SchedulePolicy::Host), stage.meshes, **devices);
    if (!loaded)
        return loaded.error();

    std::vector<HostArray> arguments;
    const std::vector<RandomKey> keys = splitKey(keyOfSeed(choices.seed), whole.arguments().size(), true);
    for (std::size_t i = 0; i < whole.arguments().size(); ++i) {
        arguments.push_back(randomArray(whole[whole.arguments()[i]].type, keys[i]));
        if (auto written = (*loaded)->writeArgument(i, arguments.back()); !written)
            return written.error();
    }
    RunResult result;
    const auto start = std::chrono::steady_clock::now();
    if (auto done = (*loaded)->run({.record = false, .stop = stop}); !done)
        return done.error();
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.mesh = stage.mesh();
    result.arenaBytes = (*loaded)->arenaBytes();

    const Function& propagated = partitioned->propagated.functions.front();
    for (std::size_t i = 0; i < whole.results().size(); ++i) {
        result.results.push_back((*loaded)->readResult(i));
        result.names.push_back(i < whole.resultNames.size() ? whole.resultNames[i] : "result" + std::to_string(i));
        result.layouts.push_back(layoutText(*propagated[propagated.results()[i]].sharding, stage.mesh()));
    }
    const std::vector<CountedCalls> counted = (*loaded)->countedCalls();
    for (const CollectiveUse& use : collectivesOf(stage.functions.front(), stage.mesh())) {
        const auto calls = std::find_if(counted.begin(), counted.end(), [&](const CountedCalls& c) { return c.op == use.op; });
        if (calls != counted.end())
            result.collectives.push_back({use, calls->calls, calls->bytesPerDevice});
    }
    if (choices.verify) {
        const auto outcome = verifyStep(whole, arguments, result.results, stage.mesh().deviceCount(), stop);
        if (!outcome)
            return outcome.error();
        result.verification.emplace().add(0, *outcome);
    }
    return result;
}

} // namespace meshwright::sim
