// SPDX-License-Identifier: GPL-3.0-or-later
//
// How long the engine takes for one training step of a transformer of 96 layers on a mesh of three axes, unfolded and folded.
// usage: bench_engine [LAYERS]      prints a line for each form: ops of the step, then the median seconds of five runs of each stage

#include "core/autodiff/differentiate.h"
#include "core/models/transformer.h"
#include "core/partition/partition.h"
#include "core/program/transform.h"
#include "core/schedule/schedule.h"
#include "core/sharding/partition_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

using namespace meshwright;

namespace {

constexpr int kRuns = 5;

/// GPT-3's sizes.
TransformerModel modelOf(std::int64_t layers, bool unrolled, Recompute recompute)
{
    TransformerModel model;
    TransformerConfig& c = model.config;
    c.layers = layers;
    c.hidden = 12288;
    c.heads = c.keyValueHeads = 96;
    c.headDim = 128;
    c.ffn = 4 * c.hidden;
    c.vocabulary = 50304;
    c.maxPositions = 2048;
    c.norm = NormKind::LayerNorm;
    c.position = PositionKind::Learned;
    c.activation = TransformerActivation::GeluTanh;
    c.attentionBias = c.outputBias = c.ffnBias = c.tiedEmbeddings = true;
    model.sequence = 2048;
    model.unrolled = unrolled;
    model.recompute = recompute;
    return model;
}

TrainingOptions optionsOf()
{
    TrainingOptions options;
    options.batch = 512;
    options.activationType = options.matmulType = DType::BF16;
    options.optimizer = AdamOptimizer{};
    return options;
}

/// Data parallel, fully sharded and tensor parallel: the spec of each array without the dimension of layers.
std::string specOf(const std::string& name)
{
    if (name == "x" || name == "y")
        return "P(('data', 'fsdp'), None)";
    if (name.ends_with("attention.q.w") || name.ends_with("attention.k.w") || name.ends_with("attention.v.w"))
        return "P('fsdp', 'model', None)";
    if (name.ends_with("attention.o.w"))
        return "P('model', None, 'fsdp')";
    if (name.ends_with("up.w"))
        return "P('fsdp', 'model')";
    if (name.ends_with("down.w"))
        return "P('model', 'fsdp')";
    if (name == "embedding.w" || name == "positions.w")
        return "P(None, 'fsdp')";
    return {};
}

[[noreturn]] void die(const Problems& problems)
{
    fmt::print(stderr, "{}\n", describe(problems));
    std::exit(1);
}

template <typename T>
T orDie(Result<T> result)
{
    if (!result)
        die(result.error());
    return *std::move(result);
}

void shard(Program& program, bool unrolled)
{
    const Mesh mesh = orDie(parseMesh("data=16,fsdp=8,model=8"));
    program.meshes = {{"mesh", mesh}};
    Function& step = *program.find("step");
    for (const ValueId argument : step.arguments()) {
        Value& value = step[argument];
        const std::string spec = specOf(value.name);
        if (spec.empty() || value.role == Role::OptimizerState) // those lie as their parameters do
            continue;
        PartitionSpec parsed = orDie(parseSpec(spec));
        if (!unrolled && value.name.starts_with("layers."))
            parsed.dims.insert(parsed.dims.begin(), std::vector<std::string>{});
        value.sharding = orDie(toTensorSharding(parsed, value.type.shape.size(), mesh));
        for (DimSharding& dim : value.sharding->dims)
            dim.priority = value.role == Role::Parameter && !dim.axes.empty() ? 1 : 0;
        value.annotation = "sharding." + value.name;
    }
}

class Clock {
public:
    double lap()
    {
        const auto now = std::chrono::steady_clock::now();
        const double seconds = std::chrono::duration<double>(now - m_last).count();
        m_last = now;
        return seconds;
    }

private:
    std::chrono::steady_clock::time_point m_last = std::chrono::steady_clock::now();
};

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void measure(std::int64_t layers, bool unrolled, Recompute recompute)
{
    const TransformerModel model = modelOf(layers, unrolled, recompute);
    std::vector<std::vector<double>> seconds(5);
    std::size_t ops = 0;
    std::size_t deviceOps = 0;
    for (int run = 0; run < kRuns; ++run) {
        Clock clock;
        Program program = orDie(buildTransformerTraining(model, optionsOf()));
        seconds[0].push_back(clock.lap());
        const Function* loss = program.find("loss");
        std::vector<std::size_t> wrt(loss->arguments().size() - 2);
        for (std::size_t i = 0; i < wrt.size(); ++i)
            wrt[i] = i;
        clock.lap();
        const Differentiated derivative = orDie(differentiate(*loss, wrt, {0}));
        seconds[1].push_back(clock.lap());
        shard(program, unrolled);
        Function& step = *program.find("step");
        ops = 0;
        forEachOp(step, [&](OpId) { ++ops; });
        clock.lap();
        const PropagationReport report = orDie(propagate(step, program.meshes));
        seconds[2].push_back(clock.lap());
        PartitionOptions options;
        options.report = &report;
        const DeviceFunction device = orDie(partition(step, program.meshes, options));
        seconds[3].push_back(clock.lap());
        const ScheduledFunction scheduled = schedule(device, SchedulePolicy::Overlapped);
        seconds[4].push_back(clock.lap());
        deviceOps = 0;
        forEachOp(scheduled.device.function, [&](OpId) { ++deviceOps; });
    }
    fmt::print(
        "{} layers {}: ops {}, on a device {}; build {:.4f} (of it differentiate {:.4f}), propagate {:.4f}, partition {:.4f}, "
        "schedule {:.4f}; propagate and partition {:.4f} s\n",
        layers, unrolled ? "unfolded" : "folded", ops, deviceOps, median(seconds[0]), median(seconds[1]), median(seconds[2]),
        median(seconds[3]), median(seconds[4]), median(seconds[2]) + median(seconds[3]));
}

} // namespace

int main(int argc, char** argv)
{
    const std::int64_t layers = argc > 1 ? std::atoll(argv[1]) : 96;
    measure(layers, false, Recompute::None);
    measure(layers, true, Recompute::None);
    return 0;
}
