// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/gradient_function.h"
#include "core/kernels/kernel.h"
#include "core/kernels/products.h"
#include "core/models/initializers.h"
#include "core/partition/axis_use.h"
#include "core/partition/batch_norm.h"
#include "core/partition/complex_pairs.h"
#include "core/program/body_collective.h"
#include "core/program/transform.h"
#include "core/runtime/evaluate.h"
#include "core/runtime/executor.h"
#include "core/support/sha256.h"
#include "core/support/threefry.h"
#include "core/text/program_text.h"
#include "core/train/training_function.h"
#include "sim/session/device_memory.h"
#include "sim/session/engine.h"
#include "sim/session/same_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>

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

std::vector<HostArray> drawnArguments(const Function& function, std::uint64_t seed)
{
    const auto& wanted = function.arguments();
    const std::vector<RandomKey> keys = splitKey(keyOfSeed(seed), wanted.size(), true);
    std::vector<HostArray> arguments;
    for (std::size_t i = 0; i < wanted.size(); ++i)
        arguments.push_back(randomArray(function[wanted[i]].type, keys[i]));
    return arguments;
}

/// An array of complex numbers as its real and its imaginary parts; any other one itself.
void appendParts(const HostArray& array, std::vector<HostArray>& parts)
{
    if (!isComplex(array.type().dtype)) {
        parts.push_back(array);
        return;
    }
    const TensorType type{realType(array.type().dtype), array.type().shape};
    const auto width = static_cast<std::size_t>(byteSize(type.dtype));
    for (std::size_t part = 0; part < 2; ++part) {
        HostArray& made = parts.emplace_back(type);
        for (std::size_t i = 0; i < static_cast<std::size_t>(type.elements()); ++i)
            std::memcpy(made.data() + i * width, array.data() + (2 * i + part) * width, width);
    }
}

HostArray fromParts(const TensorType& type, const HostArray& real, const HostArray& imaginary)
{
    HostArray made(type);
    const auto width = static_cast<std::size_t>(byteSize(real.type().dtype));
    for (std::size_t i = 0; i < static_cast<std::size_t>(type.elements()); ++i) {
        std::memcpy(made.data() + 2 * i * width, real.data() + i * width, width);
        std::memcpy(made.data() + (2 * i + 1) * width, imaginary.data() + i * width, width);
    }
    return made;
}

/// The arguments that were given, in parts, if they fit those of `function`; or drawn ones for `lowered`, the same function on parts.
Result<std::vector<HostArray>> argumentsOf(const Function& function, const Function& lowered, const RunChoices& choices)
{
    const auto& wanted = function.arguments();
    if (!choices.arguments)
        return drawnArguments(lowered, choices.seed);
    if (choices.arguments->size() != wanted.size())
        return Problem{"MW1534",
            fmt::format("\"{}\" takes {} arguments, {} are given", function.name, wanted.size(), choices.arguments->size()),
            "give one array for each argument, in their order"};
    Problems problems;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const TensorType& given = (*choices.arguments)[i].type();
        const TensorType& type = function[wanted[i]].type;
        if (given != type)
            problems.push_back({"MW1535",
                fmt::format("argument {} ({}) is {}, the given array is {}", i, valueText(function, wanted[i]), typeText(type),
                    typeText(given)),
                given.shape == type.shape ? "convert it before saving: array.astype(..)"
                                          : "save an array of the argument's shape"});
    }
    if (!problems.empty())
        return problems;
    std::vector<HostArray> parts;
    for (const HostArray& array : *choices.arguments)
        appendParts(array, parts);
    return parts;
}

/// Brings the results of a function on parts together as `function` has them.
void joinParts(const Function& function, RunResult& result)
{
    RunResult joined;
    std::size_t next = 0;
    for (std::size_t i = 0; i < function.results().size(); ++i) {
        const TensorType& type = function[function.results()[i]].type;
        const bool isPair = isComplex(type.dtype);
        const bool named = i < function.resultNames.size() && !function.resultNames[i].empty();
        joined.names.push_back(named ? function.resultNames[i] : "result" + std::to_string(i));
        joined.layouts.push_back(std::move(result.layouts[next]));
        joined.results.push_back(
            isPair ? fromParts(type, result.results[next], result.results[next + 1]) : std::move(result.results[next]));
        next += isPair ? 2 : 1;
    }
    result.names = std::move(joined.names);
    result.layouts = std::move(joined.layouts);
    result.results = std::move(joined.results);
}

/// One function, loaded on devices of its own.
struct OnDevices {
    std::unique_ptr<VirtualDevices> devices;
    std::unique_ptr<LoadedFunction> loaded;
};

Result<OnDevices> load(const PartitionedProgram& partitioned, const std::vector<HostArray>& arguments,
    const VirtualDevicesOptions& options, std::optional<std::int64_t> deviceMemoryBytes = {})
{
    OnDevices made;
    const DeviceStage& stage = partitioned.device.stages.front();
    const ScheduledFunction scheduled = schedule(stage.functions.front(), SchedulePolicy::Host);
    if (deviceMemoryBytes) {
        if (const auto fits = checkDeviceMemory(scheduled, stage.mesh(), *deviceMemoryBytes); !fits)
            return fits.error();
    }
    auto devices = VirtualDevices::create(stage.mesh().deviceCount(), options);
    if (!devices)
        return devices.error();
    made.devices = *std::move(devices);
    auto loaded = LoadedFunction::load(scheduled, stage.meshes, *made.devices);
    if (!loaded)
        return loaded.error();
    made.loaded = *std::move(loaded);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (auto written = made.loaded->writeArgument(i, arguments[i]); !written)
            return written.error();
    }
    return made;
}

/// The same function without a mesh: no sharding of any value, and constraints and other changes of layout are the identity.
Program withoutMesh(Program program)
{
    program.meshes = {{"mesh", Mesh()}};
    for (Function& function : program.functions) {
        function.resultShardings.clear();
        function.shardingGroups.clear();
        for (Value& value : function.values) {
            value.sharding.reset();
            value.annotation.clear();
        }
        for (Op& op : function.ops) {
            if (op.kind == OpKind::ShardingConstraint || isCollective(op.kind)) {
                op.kind = OpKind::Reshape;
                op.attributes = ReshapeAttributes{function[op.results.front()].type.shape};
            }
        }
    }
    return program;
}

using RunOnce = std::function<Result<Done>()>;

/// The mean time of one run, for each repetition; donated arguments do not matter for the time.
Result<std::vector<double>> timed(const TimingChoices& choices, const RunOnce& runOnce)
{
    std::vector<double> means;
    for (int repetition = 0; repetition < choices.repetitions; ++repetition) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < choices.runs; ++i) {
            if (auto done = runOnce(); !done)
                return done.error();
        }
        means.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / choices.runs);
    }
    return means;
}

Result<RunTimes> timesOf(const Program& program, const std::vector<HostArray>& arguments, LoadedFunction& sharded,
    const RunChoices& choices, const std::stop_token& stop)
{
    const auto onDevices = timed(choices.timing, [&] { return sharded.run({.record = false, .stop = stop}); });
    if (!onDevices)
        return onDevices.error();
    RunTimes times;
    times.taken = choices.timing;
    times.best = *std::min_element(onDevices->begin(), onDevices->end());
    for (const double mean : *onDevices)
        times.mean += mean / static_cast<double>(onDevices->size());

    if (choices.ranks != nullptr && !choices.ranks->isFirst()) // which compares it with one device
        return times;
    const Function& function = program.functions.front();
    Result<std::vector<double>> unsharded = std::vector<double>();
    if (hasManualComputation(function)) {
        times.unshardedHow = "one thread doing all devices' parts";
        unsharded = timed(choices.timing, [&]() -> Result<Done> {
            const auto done = evaluate(function, arguments, {.stop = stop, .meshes = program.meshes});
            if (!done)
                return done.error();
            return Done{};
        });
    } else {
        times.unshardedHow = "the unsharded program on one device";
        const auto partitioned = propagateAndPartition(withoutMesh(program));
        if (!partitioned)
            return partitioned.error();
        auto single = load(*partitioned, arguments, {.permits = 1});
        if (!single)
            return single.error();
        unsharded = timed(choices.timing, [&] { return single->loaded->run({.record = false, .stop = stop}); });
    }
    if (!unsharded)
        return unsharded.error();
    times.unshardedBest = *std::min_element(unsharded->begin(), unsharded->end());
    return times;
}

/// True of a function with complex numbers, none of which comes in or goes out.
bool isComplexInside(const Function& function)
{
    const auto isComplexOne = [&](ValueId value) { return isComplex(function[value].type.dtype); };
    return hasComplexValues(function) && std::ranges::none_of(function.arguments(), isComplexOne)
        && std::ranges::none_of(function.results(), isComplexOne);
}

/// The program with only this function in it, and its gradient if that is asked for.
Result<Program> alone(const Program& program, const std::string& name, bool gradient)
{
    Program one = program;
    std::erase_if(one.functions, [&](const Function& f) { return f.name != name; });
    assert(one.functions.size() == 1);
    if (one.meshes.empty())
        one.meshes.push_back({"mesh", Mesh()});
    expandBatchNorms(one.functions.front());
    if (gradient && isComplexInside(one.functions.front())) { // parts have derivatives
        auto parts = withComplexPairs(one.functions.front());
        if (!parts)
            return parts.error();
        one.functions.front() = *std::move(parts);
    }
    if (gradient) {
        auto both = withGradients(one.functions.front(), one.meshes);
        if (!both)
            return both.error();
        one.functions.front() = *std::move(both);
    }
    return one;
}

/// How a result lies, with the mesh where that is another than the program's.
std::string resultLayoutText(const TensorSharding& layout, const DeviceStage& stage)
{
    const NamedMesh& named = stage.meshes[static_cast<std::size_t>(layout.mesh)];
    std::string text = layoutText(layout, named.mesh);
    if (layout.mesh != 0)
        text += fmt::format(" in the device order of @{}", named.name);
    return text;
}

/// Returns the results of which devices that should hold the same do not.
std::vector<std::size_t> readResults(
    const LoadedFunction& loaded, const Function& whole, const DeviceStage& stage, RunResult& result)
{
    const Function& device = stage.functions.front().function;
    std::vector<std::size_t> differing;
    for (std::size_t i = 0; i < whole.results().size(); ++i) {
        result.results.push_back(loaded.readResult(i));
        const bool named = i < whole.resultNames.size() && !whole.resultNames[i].empty();
        result.names.push_back(named ? whole.resultNames[i] : "result" + std::to_string(i));
        result.layouts.push_back(resultLayoutText(*device[device.results()[i]].sharding, stage));
        if (!loaded.replicasAgree(i)) {
            differing.push_back(i);
            Problem& warning = result.warnings.emplace_back();
            warning.id = "MW1536";
            warning.severity = Severity::Warning;
            warning.message = fmt::format("{} is sharded as {}, but devices that should hold equal values differ",
                result.names.back(), result.layouts.back());
            warning.fix = "sum or gather it over the axes that its out_sharding leaves out, or name them there";
        }
    }
    return differing;
}

/// What of the choices decides what processes do together, and the arrays that they were given.
std::string sharedChoices(const std::string& name, const RunChoices& choices)
{
    std::string text = fmt::format("{} {} {:d} {:d} {} {} {}", name, choices.seed, choices.verify, choices.gradient,
        choices.timing.repetitions, choices.timing.runs, choices.deviceMemoryBytes.value_or(0));
    for (const InjectedFault& fault : choices.faults.injected)
        text += fmt::format(" {} {}", static_cast<int>(fault.kind), fault.device);
    for (const HostArray& array : choices.arguments.value_or(std::vector<HostArray>()))
        text += " " + typeText(array.type())
            + sha256Text({reinterpret_cast<const char*>(array.data()), static_cast<std::size_t>(array.bytes())});
    return text;
}

} // namespace

Result<PreparedRun> prepareRun(const Program& program, const std::string& name, bool gradient)
{
    auto one = alone(program, name, gradient);
    if (!one)
        return one.error();
    PreparedRun prepared{*std::move(one), {}, {}};
    Function& function = prepared.program.functions.front();
    if (hasComplexValues(function)) {
        auto pairs = withComplexPairs(function);
        if (!pairs)
            return pairs.error();
        prepared.onComplex = std::exchange(function, *std::move(pairs));
    }
    auto partitioned = propagateAndPartition(prepared.program);
    if (!partitioned)
        return partitioned.error();
    prepared.partitioned = *std::move(partitioned);
    if (Problems problems = checkRunnable(prepared.partitioned.device.stages.front().functions.front().function);
        !problems.empty())
        return problems;
    return prepared;
}

Result<RunResult> runProgram(const Program& program, const std::string& name, const RunChoices& choices, std::stop_token stop)
{
    if (const auto chosen = chooseProductsFromEnvironment(); !chosen)
        return chosen.error();
    if (choices.ranks != nullptr) {
        const auto same = checkSameInput(*choices.ranks, "program", writeProgram(program), sharedChoices(name, choices));
        if (!same)
            return same.error();
    }
    const bool isFirst = choices.ranks == nullptr || choices.ranks->isFirst();
    const auto prepared = prepareRun(program, name, choices.gradient);
    if (!prepared)
        return prepared.error();
    const auto& [one, onComplex, partitioned] = *prepared;
    const Function& whole = one.functions.front();
    const auto arguments = argumentsOf(onComplex ? *onComplex : whole, whole, choices);
    if (!arguments)
        return arguments.error();
    const auto on = load(partitioned, *arguments,
        {.permits = choices.permits, .stallSeconds = choices.stallSeconds, .ranks = choices.ranks, .engine = choices.engine},
        choices.deviceMemoryBytes);
    if (!on)
        return on.error();
    const DeviceStage& stage = partitioned.device.stages.front();
    if (Problems problems = choices.faults.problems(stage.mesh().deviceCount(), 1); !problems.empty())
        return problems;

    RunResult result;
    const auto start = std::chrono::steady_clock::now();
    if (auto done = on->loaded->run({.record = false, .stop = stop, .faults = &choices.faults, .step = 0}); !done)
        return done.error();
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.mesh = stage.mesh();
    result.arenaBytes = on->loaded->arenaBytes();
    result.warnings = unusedAxisWarnings(stage.functions.front(), stage.mesh());
    append(result.warnings, stage.functions.front().warnings);
    const std::vector<std::size_t> differingResults = readResults(*on->loaded, whole, stage, result);
    result.collectives = countedCollectives(stage.functions.front(), stage.mesh(), on->loaded->countedCalls());
    if (const auto lost = choices.ranks != nullptr ? choices.ranks->failure() : std::nullopt) // what was read is nothing, then
        return *lost;
    if (choices.verify && isFirst) {
        Function read = whole;
        eraseDeadOps(read); // as devices do
        auto outcome = verifyStep(read, *arguments, result.results, stage.mesh().deviceCount(), stop, one.meshes);
        if (!outcome)
            return outcome.error();
        for (const std::size_t differing : differingResults) // the first device's value is as good as any other's
            (*outcome)[differing].passed = false;
        result.verification.emplace().add(0, *outcome);
    }
    if (choices.prove && isFirst)
        result.proof = proofOf(partitioned);
    if (choices.timing.repetitions > 0 && choices.timing.runs > 0) {
        auto times = timesOf(one, *arguments, *on->loaded, choices, stop);
        if (!times)
            return times.error();
        if (isFirst)
            result.times = *std::move(times);
    }
    if (choices.ranks != nullptr) { // the others wait for the first one, as long as it compares
        if (const auto all = choices.ranks->any(false); !all)
            return all.error();
    }
    if (onComplex)
        joinParts(*onComplex, result);
    return result;
}

} // namespace meshwright::sim
