// SPDX-License-Identifier: GPL-3.0-or-later

// Collectives over eight virtual devices, by size of one device's whole buffer. Usage: bench_collectives [repetitions] [coll|barrier]
// "all-reduce" keeps its operands, as the peers' benchmarks do; "all-reduce-in-place" takes their place, as reductions in a training step do.
// Prints a line for each: coll,ours,<op>,<bytes>,median_us,min_us
// and then, of a barrier of all devices: barrier,ours,<devices>,median_us,median_us for each device
// "ours" are threads; fibers, where the build has them, are "ours-fibers".

#include "core/devices/clocks.h"
#include "core/program/builder.h"
#include "core/runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

using namespace meshwright;

namespace {

template <typename T>
T checked(Result<T> result)
{
    if (!result) {
        fmt::print(stderr, "{}\n", describe(result.error()));
        std::exit(1);
    }
    return *std::move(result);
}

struct Times {
    double median = 0.0;
    double min = 0.0;
};

template <typename F>
Times timed(int repetitions, F f)
{
    f(); // warm
    std::vector<double> seconds;
    for (int i = 0; i < repetitions; ++i) {
        const double start = wallSeconds();
        f();
        seconds.push_back(wallSeconds() - start);
    }
    std::sort(seconds.begin(), seconds.end());
    return {seconds[seconds.size() / 2], seconds.front()};
}

struct Engine {
    EngineKind kind;
    const char* label;
};

void benchCollectives(int repetitions, const Engine& engine)
{
    const Mesh mesh = checked(parseMesh("a=8"));
    const AxisRefs axis{wholeAxis(mesh, 0)};
    const auto devices = checked(VirtualDevices::create(8, {.engine = engine.kind}));
    struct Operation {
        OpKind kind;
        const char* name;
        bool isInPlace = false;
    };
    constexpr std::array<Operation, 6> kOperations = {
        {{OpKind::AllReduce, "all-reduce"}, {OpKind::AllReduce, "all-reduce-in-place", true}, {OpKind::AllGather, "all-gather"},
            {OpKind::ReduceScatter, "reduce-scatter"}, {OpKind::AllToAll, "all-to-all"}, {OpKind::CollectivePermute, "permute"}}};
    for (const auto& [kind, name, isInPlace] : kOperations) {
        for (const std::int64_t bytes :
            {std::int64_t{4} << 10, std::int64_t{256} << 10, std::int64_t{4} << 20, std::int64_t{64} << 20}) {
            const int calls = isInPlace ? 16 : bytes > (1 << 20) ? 2 : 20;
            const std::int64_t elements = bytes / 4;
            const bool gathers = kind == OpKind::AllGather;
            DeviceFunction device;
            Function& function = device.function;
            Builder builder(function);
            const Shape whole = kind == OpKind::CollectivePermute ? Shape{8 * elements, 1}
                : kind == OpKind::AllToAll                        ? Shape{64, elements / 8}
                                                                  : Shape{elements, 1};
            TensorSharding rows = TensorSharding::replicatedOf(2);
            rows.dims[0].axes = axis;
            TensorSharding columns = TensorSharding::replicatedOf(2);
            columns.dims[1].axes = axis;
            TensorSharding partial = TensorSharding::replicatedOf(2);
            partial.unreduced = axis;
            const bool reduces = kind == OpKind::AllReduce || kind == OpKind::ReduceScatter;
            const TensorSharding from = reduces ? partial : rows;
            const TensorSharding to = kind == OpKind::ReduceScatter || kind == OpKind::CollectivePermute ? rows
                : kind == OpKind::AllToAll                                                               ? columns
                                           : TensorSharding::replicatedOf(2);
            CollectiveAttributes attributes;
            attributes.axes = axis;
            if (gathers || kind == OpKind::ReduceScatter)
                attributes.perDim = {axis, {}};
            if (kind == OpKind::AllToAll)
                attributes.moves = {{axis, 0, 1}};
            if (kind == OpKind::CollectivePermute) {
                attributes.resultShape = {elements, 1};
                attributes.sources = {7, 0, 1, 2, 3, 4, 5, 6};
            }
            const ValueId x = builder.argument({DType::F32, localShape(whole, from)});
            function[x].sharding = from;
            device.globalShapes.push_back(whole);
            std::vector<ValueId> results;
            for (int i = 0; i < calls; ++i) {
                results.push_back(builder.add(kind, {isInPlace && i > 0 ? results.back() : x}, attributes));
                function[results.back()].sharding = to;
                device.globalShapes.push_back(whole);
            }
            if (isInPlace) // each but the first takes the place of its operand
                results.erase(results.begin(), results.end() - 1);
            builder.setResults(results);
            const auto loaded = checked(LoadedFunction::load(schedule(device, SchedulePolicy::Host), {{"mesh", mesh}}, *devices));
            HostArray array(TensorType{DType::F32, whole});
            std::fill(array.as<float>().begin(), array.as<float>().end(), isInPlace ? 0.0F : 1.0F);
            checked(loaded->writeArgument(0, array));
            const Times times
                = timed(bytes > (1 << 22) ? std::max(2, repetitions / 2) : repetitions * 3, [&] { checked(loaded->run()); });
            fmt::print(
                "coll,{},{},{},{:.1f},{:.1f}\n", engine.label, name, bytes, times.median / calls * 1e6, times.min / calls * 1e6);
            std::fflush(stdout);
        }
    }
}

void benchBarriers(int repetitions, const Engine& engine)
{
    for (const std::int64_t count : {8, 16, 32, 64, 256, 1024}) {
        const auto devices = checked(VirtualDevices::create(count, {.engine = engine.kind}));
        const auto barrier = devices->makeBarrier(count);
        const VirtualDevices::Place place = [] { return std::string("barrier"); };
        constexpr int kRounds = 20;
        const Times times = timed(repetitions, [&] {
            checked(devices->run([&](std::int64_t device) -> Result<Done> {
                for (int i = 0; i < kRounds; ++i) {
                    if (!devices->wait(device, *barrier, place))
                        return VirtualDevices::interrupted();
                }
                return Done{};
            }));
        });
        const double each = times.median / kRounds * 1e6;
        fmt::print("barrier,{},{},{:.1f},{:.2f}\n", engine.label, count, each, each / static_cast<double>(count));
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv)
{
    const int repetitions = std::max(1, argc > 1 ? std::atoi(argv[1]) : 5);
    const std::string only = argc > 2 ? argv[2] : "";
    std::vector<Engine> engines{{EngineKind::Threads, "ours"}};
    if (hasFibers())
        engines.push_back({EngineKind::Fibers, "ours-fibers"});
    using Bench = void (*)(int, const Engine&);
    for (const auto& [part, bench] : {std::pair<std::string, Bench>("coll", benchCollectives), {"barrier", benchBarriers}}) {
        for (const Engine& engine : engines) {
            if (only.empty() || only == part)
                bench(repetitions, engine);
        }
    }
    return 0;
}
