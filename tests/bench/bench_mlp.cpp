// SPDX-License-Identifier: GPL-3.0-or-later
//
// The training step of the MLP [784, 2048, 2048, 2048, 10], batch 2048, SGD, on one device and on 8 virtual devices in several layouts.
// usage: bench_mlp [LAYOUT ...]      LAYOUT: unsharded, 8x1, 4x2, 2x4, 1x8 (default: all)
// Each layout is a process of its own, and they take turns, step by step: what else happens on the computer happens to all of them.
// Prints a line for each: mlp,<label>,median_s,min_s,samples/s,GFLOP/s,rss_MB,pss_MB,loss_first,loss_last
// and: against,<label>,<median of its steps' times, each divided by that of the first layout's step of the same turn>,<cores used>,
// <the same median for the CPU time that it used, which waits for no other load>
// MLP_STEPS: so many steps are timed instead of 7.
// Starting numbers are read from the file that MLP_BIN names (f32: W0 b0 W1 b1 .. inputs targets), else drawn from a seed.

#include "core/kernels/products.h"
#include "core/runtime/executor.h"
#include "core/study/resolve.h"
#include "sim/session/engine.h"

#include <fmt/format.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

using namespace meshwright;

namespace {

constexpr int kWarmSteps = 2;
constexpr int kSteps = 7;
constexpr const char* kStudy = R"yaml(meshwright: 1
name: bench
mesh: {{data: {}, model: {}}}
model: {{mlp: {{layers: [784, 2048, 2048, 2048, 10], activation: relu, loss: sum_squared}}}}
init: {{w: normal/sqrt(fan_in), b: normal}}
batch: 2048
sharding:
  x: P('data', None)
  y: P('data', None)
  layers.0: {{w: "P(None, 'model')", b: "P('model')"}}
  layers.1: {{w: "P('model', None)", b: "P()"}}
  layers.2: {{w: "P(None, 'model')", b: "P('model')"}}
  layers.3: {{w: "P('model', None)", b: "P()"}}
optimizer: {{sgd: {{learning_rate: 1.0e-4}}}}
train: {{steps: 7, seed: 0, data: random}}
)yaml";

/// Proportional share of memory, in MB.
double pssMegabytes()
{
    std::ifstream rollup("/proc/self/smaps_rollup");
    for (std::string line; std::getline(rollup, line);) {
        if (line.starts_with("Pss:"))
            return std::strtod(line.c_str() + 4, nullptr) / 1024.0;
    }
    return 0.0;
}

double rssMegabytes()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

/// FLOPs of a step's products as torch_mlp.py counts them: no gradient of the inputs.
double stepFlops(const MlpModel& model, std::int64_t batch)
{
    double flops = 0.0;
    for (std::size_t i = 0; i + 1 < model.layers.size(); ++i)
        flops
            += 2.0 * static_cast<double>(batch) * static_cast<double>(model.layers[i]) * static_cast<double>(model.layers[i + 1]);
    return 3.0 * flops
        - 2.0 * static_cast<double>(batch) * static_cast<double>(model.layers[0]) * static_cast<double>(model.layers[1]);
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

/// Fills the arguments of "step": from the file in the order of the program's arguments, or from the program's own initialiser.
void fillArguments(LoadedFunction& step, const sim::BuiltPhase& built, VirtualDevices& devices)
{
    const Function& function = step.function();
    const char* file = std::getenv("MLP_BIN");
    if (file != nullptr && *file != '\0') {
        std::ifstream in(file, std::ios::binary);
        for (std::size_t i = 0; i < function.arguments().size(); ++i) {
            const ValueId id = function.arguments()[i];
            HostArray array(TensorType{DType::F32, step.scheduled().device.globalShapes[id.at()]});
            if (!in.read(reinterpret_cast<char*>(array.data()), array.bytes()))
                die({Problem{"MW1003", fmt::format("{} is too short", file)}});
            orDie(step.writeArgument(i, array));
        }
        return;
    }
    const DeviceStage& stage = built.partitioned.device.stages.front();
    auto init = orDie(LoadedFunction::load(schedule(*stage.find("init"), SchedulePolicy::Host), stage.meshes, devices));
    const TrainingOptions options = orDie(trainingOptions(built.study));
    const auto keys = initKeys(*built.study.mlp(), options, keyOfSeed(0));
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::array<double, 2> words = {static_cast<double>(keys[i].second[0]), static_cast<double>(keys[i].second[1])};
        orDie(init->writeArgument(i, HostArray::of({DType::U32, {2}}, words)));
    }
    orDie(init->run());
    const std::size_t states = function.arguments().size() - 2;
    for (std::size_t i = 0; i < states; ++i)
        orDie(step.copyFromResult(i, *init, i));
    const Dataset data = orDie(sim::datasetOf(built.study));
    const std::vector<double> inputs(data.inputs.begin(), data.inputs.end());
    const std::vector<double> targets(data.targets.begin(), data.targets.end());
    orDie(step.writeArgument(states, HostArray::of({DType::F32, {built.study.batch, data.features}}, inputs)));
    orDie(step.writeArgument(states + 1, HostArray::of({DType::F32, {built.study.batch, data.classes}}, targets)));
}

double cpuSeconds()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds
        = [](const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double medianOf(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// What a layout's process tells of a step.
struct StepTime {
    double seconds = 0.0;
    double cpuSeconds = 0.0;
};

/// The process of one layout: a step for each byte from `turns`, whose time goes to `answers`; the line when there are no more.
void measure(const std::string& layout, int turns, int answers)
{
    int data = 1;
    int model = 1;
    if (layout != "unsharded") {
        data = layout[0] - '0';
        model = layout[2] - '0';
    } else {
        setProductThreads(2); // the one device may use both cores
    }
    const Study study = orDie(readStudy(fmt::format(kStudy, data, model), "bench"));
    const sim::BuiltPhase built = orDie(sim::buildPhase(study));
    const DeviceStage& stage = built.partitioned.device.stages.front();
    auto devices = orDie(VirtualDevices::create(stage.mesh().deviceCount()));
    auto step = orDie(LoadedFunction::load(schedule(*stage.find("step"), SchedulePolicy::Host), stage.meshes, *devices));
    fillArguments(*step, built, *devices);

    const auto& names = step->function().resultNames;
    const auto loss = static_cast<std::size_t>(std::find(names.begin(), names.end(), "loss") - names.begin());
    std::vector<double> seconds;
    double first = 0.0;
    double last = 0.0;
    char turn = 0;
    for (int i = 0; read(turns, &turn, 1) == 1; ++i) {
        const double cpu = cpuSeconds();
        const auto start = std::chrono::steady_clock::now();
        orDie(step->run());
        const StepTime time{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), cpuSeconds() - cpu};
        if (i >= kWarmSteps)
            seconds.push_back(time.seconds);
        last = step->readResult(loss).at(0);
        if (i == 0)
            first = last;
        if (write(answers, &time, sizeof(time)) != static_cast<ssize_t>(sizeof(time)))
            std::exit(1);
    }
    std::sort(seconds.begin(), seconds.end());
    const double median = seconds[seconds.size() / 2];
    fmt::print("mlp,ours {} ({}),{:.4f},{:.4f},{:.0f},{:.1f},{:.0f},{:.0f},{:.5f},{:.5f}\n", layout,
        productBackendName(singlePrecisionBackend()), median, seconds.front(), static_cast<double>(study.batch) / median,
        stepFlops(*study.mlp(), study.batch) / median / 1e9, rssMegabytes(), pssMegabytes(), first, last);
    std::fflush(stdout);
}

/// A layout's process, as the parent sees it.
struct Runner {
    std::string layout;
    pid_t process = 0;
    int turns = -1;
    int answers = -1;
    std::vector<StepTime> times;
};

Runner started(const std::string& layout, const std::vector<Runner>& others)
{
    int turns[2];
    int answers[2];
    if (pipe(turns) != 0 || pipe(answers) != 0)
        std::exit(1);
    const pid_t process = fork();
    if (process == 0) {
        close(turns[1]);
        close(answers[0]);
        for (const Runner& other : others)
            close(other.turns); // else it would not see its end
        measure(layout, turns[0], answers[1]);
        std::exit(0);
    }
    close(turns[0]);
    close(answers[1]);
    return {layout, process, turns[1], answers[0], {}};
}

void takeTurn(Runner& runner)
{
    StepTime time;
    if (write(runner.turns, "s", 1) != 1 || read(runner.answers, &time, sizeof(time)) != static_cast<ssize_t>(sizeof(time)))
        std::exit(1);
    runner.times.push_back(time);
}

} // namespace

int main(int argc, char** argv)
{
    orDie(chooseProductsFromEnvironment());
    std::vector<std::string> layouts(argv + 1, argv + argc);
    if (layouts.empty())
        layouts = {"unsharded", "8x1", "4x2", "2x4", "1x8"};
    std::vector<Runner> runners;
    for (const std::string& layout : layouts) {
        runners.push_back(started(layout, runners));
        takeTurn(runners.back()); // one after the other: until it stands
    }
    const char* steps = std::getenv("MLP_STEPS");
    const int count = steps == nullptr ? kSteps : std::max(1, std::atoi(steps));
    for (int i = 1; i < kWarmSteps + count; ++i) {
        for (Runner& runner : runners)
            takeTurn(runner);
    }
    for (Runner& runner : runners) {
        close(runner.turns);
        int status = 0;
        waitpid(runner.process, &status, 0);
        if (status != 0)
            return 1;
    }
    for (const Runner& runner : runners) {
        std::vector<double> ratios;
        std::vector<double> cores;
        std::vector<double> cpuRatios;
        for (std::size_t i = kWarmSteps; i < runner.times.size(); ++i) {
            ratios.push_back(runner.times[i].seconds / runners.front().times[i].seconds);
            cores.push_back(runner.times[i].cpuSeconds / runner.times[i].seconds);
            cpuRatios.push_back(runner.times[i].cpuSeconds / runners.front().times[i].cpuSeconds);
        }
        fmt::print(
            "against,ours {},{:.3f},{:.2f},{:.3f}\n", runner.layout, medianOf(ratios), medianOf(cores), medianOf(cpuRatios));
    }
    return 0;
}
