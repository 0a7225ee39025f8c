// SPDX-License-Identifier: GPL-3.0-or-later

// Times a training step of an MLP on several meshes beside the same step on one device that may use all cores, and collectives over
// eight devices by size. Usage: bench_runtime [mlp] [collectives] [repetitions]

#include "core/models/training.h"
#include "core/partition/partition.h"
#include "core/runtime/clocks.h"
#include "core/runtime/executor.h"
#include "core/runtime/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

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

TensorSharding layout(const std::string& spec, std::size_t rank, const Mesh& mesh)
{
    return checked(toTensorSharding(checked(parseSpec(spec)), rank, mesh));
}

void addArguments(LoadedFunction& loaded)
{
    for (std::size_t i = 0; i < loaded.function().arguments().size(); ++i) {
        const ValueId argument = loaded.function().arguments()[i];
        const TensorType type{loaded.function()[argument].type.dtype, loaded.scheduled().device.globalShapes[argument.at()]};
        HostArray array(type);
        std::uint32_t state = 1;
        for (float& value : array.as<float>()) {
            state = state * 1664525U + 1013904223U;
            value = (static_cast<float>(state >> 8) * 0x1p-24F - 0.5F) * 0.05F;
        }
        checked(loaded.writeArgument(i, array));
    }
}

double stepSeconds(const std::string& meshText, const std::map<std::string, std::string>& specs, int repetitions,
    int productThreads, const std::string& label, double reference)
{
    MlpModel model;
    model.layers = {784, 2048, 2048, 2048, 10};
    model.loss = LossKind::SumSquared;
    TrainingOptions options;
    options.batch = 2048;
    options.optimizer = SgdOptimizer{1e-5};
    Program program = checked(buildMlpTraining(model, options));
    const Mesh mesh = checked(parseMesh(meshText));
    program.meshes = {{"mesh", mesh}};
    std::erase_if(program.functions, [](const Function& f) { return f.name != "step"; });
    Function& step = program.functions.front();
    for (const ValueId argument : step.arguments()) {
        if (const auto spec = specs.find(step[argument].name); spec != specs.end())
            step[argument].sharding = layout(spec->second, step[argument].type.shape.size(), mesh);
    }
    const PartitionedProgram partitioned = checked(propagateAndPartition(std::move(program)));
    const ScheduledProgram scheduled = schedule(partitioned.device, SchedulePolicy::Host);
    const auto devices = checked(VirtualDevices::create(mesh.deviceCount()));
    const auto loaded = checked(LoadedFunction::load(*scheduled.stages[0].find("step"), scheduled.stages[0].meshes, *devices));
    addArguments(*loaded);
    setProductThreads(productThreads);
    const Times times = timed(repetitions, [&] { checked(loaded->run()); });
    checked(loaded->run({true, {}}));
    setProductThreads(1);
    std::map<std::string, double> byCategory;
    const Timeline virtualTime = loaded->virtualTimeline();
    for (const Slice& slice : virtualTime.slices())
        byCategory[categoryName(slice.category)] += slice.cpuSeconds;
    std::string parts;
    for (const auto& [name, seconds] : byCategory) {
        if (seconds > 0.0)
            parts += fmt::format(" {} {:.3f}", name, seconds);
    }
    fmt::print("{:<18} median {:.3f} s  min {:.3f} s  {:.2f} x unsharded  arena {:.0f} MB a device  virtual {:.3f} s  cpu:{}\n",
        label, times.median, times.min, reference > 0.0 ? times.median / reference : 1.0,
        static_cast<double>(loaded->arenaBytes()) / 1e6, virtualTime.endSeconds(), parts);
    std::vector<Slice> slices = virtualTime.slices();
    std::erase_if(slices, [](const Slice& slice) { return slice.row > 1 || slice.cpuSeconds == 0.0; });
    std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) { return a.cpuSeconds > b.cpuSeconds; });
    for (std::size_t i = 0; i < std::min<std::size_t>(slices.size(), std::getenv("BENCH_SLICES") != nullptr ? 40U : 0U); ++i)
        fmt::print("    {:8.2f} ms  {}\n", slices[i].cpuSeconds * 1e3, virtualTime.text(slices[i].name));
    return times.median;
}

void benchMlp(int repetitions)
{
    using Specs = std::map<std::string, std::string>;
    const Specs specs{{"x", "P('data', None)"}, {"y", "P('data', None)"}, {"layers.0.w", "P(None, 'model')"},
        {"layers.0.b", "P('model')"}, {"layers.1.w", "P('model', None)"}, {"layers.2.w", "P(None, 'model')"},
        {"layers.2.b", "P('model')"}, {"layers.3.w", "P('model', None)"}};
    const auto cores = static_cast<int>(std::thread::hardware_concurrency());
    fmt::print(
        "MLP 784-2048-2048-2048-10, batch 2048, f32, products by {}, {} cores\n", productBackendName(productBackend()), cores);
    const double reference = stepSeconds("data=1,model=1", specs, repetitions, cores, "unsharded", 0.0);
    for (const char* mesh : {"data=8,model=1", "data=4,model=2", "data=2,model=4", "data=1,model=8"})
        stepSeconds(mesh, specs, repetitions, 1, mesh, reference);
    stepSeconds("data=1,model=1", specs, repetitions, cores, "unsharded again", reference);
}

void benchCollectives(int repetitions)
{
    const Mesh mesh = checked(parseMesh("a=8"));
    const AxisRefs axis{wholeAxis(mesh, 0)};
    const auto devices = checked(VirtualDevices::create(8));
    fmt::print("collectives over 8 devices, median microseconds a call (several calls a run)\n{:<20}{:>12}{:>12}{:>12}{:>12}\n",
        "", "4 KiB", "256 KiB", "4 MiB", "64 MiB");
    for (const OpKind kind :
        {OpKind::AllReduce, OpKind::AllGather, OpKind::ReduceScatter, OpKind::AllToAll, OpKind::CollectivePermute}) {
        fmt::print("{:<20}", opName(kind));
        for (const std::int64_t bytes :
            {std::int64_t{4} << 10, std::int64_t{256} << 10, std::int64_t{4} << 20, std::int64_t{64} << 20}) {
            const int calls = bytes > (1 << 20) ? 2 : 20;
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
                results.push_back(builder.add(kind, {x}, attributes));
                function[results.back()].sharding = to;
                device.globalShapes.push_back(whole);
            }
            builder.setResults(results);
            const auto loaded = checked(LoadedFunction::load(schedule(device, SchedulePolicy::Host), {{"mesh", mesh}}, *devices));
            HostArray array(TensorType{DType::F32, whole});
            std::fill(array.as<float>().begin(), array.as<float>().end(), 1.0F);
            checked(loaded->writeArgument(0, array));
            const Times times
                = timed(bytes > (1 << 22) ? std::max(2, repetitions / 2) : repetitions * 3, [&] { checked(loaded->run()); });
            fmt::print("{:>12.1f}", times.median / calls * 1e6);
        }
        fmt::print("\n");
    }
}

} // namespace

int main(int argc, char** argv)
{
    const std::vector<std::string> words(argv + 1, argv + argc);
    int repetitions = 5;
    bool mlp = false;
    bool collectives = false;
    for (const std::string& word : words) {
        mlp = mlp || word == "mlp";
        collectives = collectives || word == "collectives";
        if (const int number = std::atoi(word.c_str()); number > 0)
            repetitions = number;
    }
    if (mlp || !collectives)
        benchMlp(repetitions);
    if (collectives || !mlp)
        benchCollectives(repetitions);
    return 0;
}
