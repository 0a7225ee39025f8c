// SPDX-License-Identifier: GPL-3.0-or-later
// How quick the network simulation is: bench_network [SIMGRID]. Prints a JSON object on a line for each case. SIMGRID is
// the program built from the SimGrid anchor; its cases run in between ours.
#include "tests/sim/network/run_collectives.h"

#include <fmt/format.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

using namespace meshwright;
using namespace meshwright::sim;
using namespace meshwright::tests;

namespace {

constexpr double kWidth = 50e9;
constexpr std::int64_t kGiB = std::int64_t(1) << 30;

double timed(const std::function<void()>& work)
{
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// The memory that this process has now, in MiB.
double memoryMib()
{
    std::ifstream status("/proc/self/statm");
    std::int64_t all = 0;
    std::int64_t resident = 0;
    status >> all >> resident;
    return static_cast<double>(resident) * 4096.0 / (1024.0 * 1024.0);
}

double peakMib()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

Topology torus(const std::vector<std::int64_t>& sizes)
{
    std::vector<PhysicalAxis> axes;
    std::vector<std::int64_t> strides;
    std::int64_t stride = 1;
    const char* names[] = {"x", "y", "z"};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        axes.push_back({names[i], AxisKind::Torus, sizes[i], sizes[i] >= 3, {kWidth, 1e-6, LinkKind::Ici}, 0.0});
        strides.push_back(stride);
        stride *= sizes[i];
    }
    return {axes, strides};
}

std::vector<GroupAxis> groupAxes(const Topology& topology, const std::vector<std::size_t>& axes)
{
    std::vector<GroupAxis> result;
    for (const std::size_t axis : axes) {
        const PhysicalAxis& physical = topology.axes()[axis];
        GroupAxis group;
        group.size = physical.length;
        group.kind = physical.kind == AxisKind::Torus ? GroupKind::Torus
            : physical.kind == AxisKind::Network      ? GroupKind::Network
                                                      : GroupKind::Switch;
        group.wraps = physical.wraps;
        group.link = physical.link;
        group.physicalAxis = axis;
        result.push_back(group);
    }
    return result;
}

StepSite site(const MachineLinks& links, const std::vector<std::size_t>& axes, CollectiveKind kind, std::int64_t bytes)
{
    return valueOf(routeFlows({kind, bytes, groupAxes(links.topology(), axes)}, groupsAlong(links.topology(), axes), links));
}

/// One all-reduce, every message an event, the axes one after the other and one way round as the anchor does it.
void messages(const std::vector<std::int64_t>& sizes, int runs)
{
    const Topology topology = torus(sizes);
    std::vector<double> seconds;
    std::vector<double> building;
    NetworkRun run;
    const double before = memoryMib();
    double after = 0.0;
    for (int i = 0; i < runs; ++i) {
        const auto start = std::chrono::steady_clock::now();
        const MachineLinks links(topology);
        const RoutedCollective collective = valueOf(routeCollective(
            {CollectiveKind::AllReduce, kGiB, groupAxes(topology, {0, 1, 2}), PermutePattern::Shift, CollectiveAlgorithm::Ring},
            groupsAlong(topology, {0, 1, 2}), links));
        building.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        const StartedCollective started{&collective, 0, nullptr};
        seconds.push_back(timed([&] { run = runCollectives({&started, 1}, links, Fidelity::Message); }));
        after = std::max(after, memoryMib());
    }
    const double taken = median(seconds);
    fmt::print("{{\"case\":\"messages\",\"topo\":\"torus:{}x{}x{}\",\"messages\":{},\"simulated_s\":{:.9f},\"build_s\":{:.4f},"
               "\"run_s\":{:.4f},"
               "\"messages_per_s\":{:.0f},\"rss_MiB\":{:.1f}}}\n",
        sizes[0], sizes[1], sizes[2], run.messages, secondsOf(run.ends.front()), median(building), taken,
        static_cast<double>(run.messages) / taken, after - before);
    std::fflush(stdout);
}

std::vector<StepDependency> after(std::initializer_list<std::uint32_t> ops, std::uint32_t self)
{
    std::vector<StepDependency> result{{self, StepLag::Iteration}};
    for (const std::uint32_t op : ops)
        result.push_back({op, StepLag::None});
    return result;
}

/// A transformer layer, forward and backward, on 16x16x16: tensor parallel over x, weights gathered over y and z, and a second
/// gathering over y under way at the same time: they contend.
StepProgram layer()
{
    StepProgram program;
    const auto us = [](std::int64_t n) { return n * 1000000; };
    // Weights over y and z, a layer ahead of the computing; which is in order.
    const StepDependency gather[] = {{0, StepLag::Iteration}, {1, StepLag::Iteration}};
    program.collective(1, 0, gather);
    const StepDependency first[] = {{0, StepLag::None}, {11, StepLag::Iteration}};
    program.compute(us(300), first);
    program.collective(0, 0, after({1}, 2)); // activations, over x
    program.compute(us(500), after({2}, 3));
    program.collective(0, 1, after({3}, 4));
    program.collective(3, 0, after({1}, 5)); // the next weights, over y, under way with the others
    program.compute(us(600), after({4}, 6));
    program.collective(0, 2, after({6}, 7));
    program.compute(us(900), after({7}, 8));
    program.collective(2, 0, after({6}, 9)); // gradients, over y and z
    program.collective(0, 3, after({8}, 10));
    program.compute(us(100), after({10, 5}, 11));
    return program;
}

void contendingStep(const std::vector<std::int64_t>& sizes, std::int64_t layers, const char* name, bool unrolled, bool pipeline)
{
    const Topology topology = torus(sizes);
    StepRun run;
    double folding = 0.0;
    const double taken = timed([&] {
        const MachineLinks links(topology);
        StepWork work;
        work.links = &links;
        work.kindOf.assign(static_cast<std::size_t>(topology.deviceCount()), 0);
        if (pipeline) {
            for (std::uint32_t device = 0; device < work.kindOf.size(); ++device)
                work.kindOf[device] = static_cast<std::uint32_t>(topology.coordinate(device, 2));
        }
        work.sites.push_back(site(links, {0}, CollectiveKind::AllReduce, 64 << 20));
        work.sites.push_back(pipeline ? site(links, {1}, CollectiveKind::AllGather, 128 << 20)
                                      : site(links, {1, 2}, CollectiveKind::AllGather, 128 << 20));
        work.sites.push_back(pipeline ? site(links, {1}, CollectiveKind::ReduceScatter, 128 << 20)
                                      : site(links, {1, 2}, CollectiveKind::ReduceScatter, 128 << 20));
        work.sites.push_back(site(links, {1}, CollectiveKind::AllGather, 32 << 20));
        StepLoop loop;
        loop.programs.assign(pipeline ? static_cast<std::size_t>(sizes[2]) : 1, layer());
        loop.repeat = layers;
        work.loops.push_back(std::move(loop));
        FoldedStep folded;
        folding = timed([&] { folded = foldStep(work); });
        run = runFolded(work, folded, {true, !unrolled});
    });
    fmt::print("{{\"case\":\"{}\",\"devices\":{},\"layers\":{},\"classes\":{},\"events\":{},\"jumped\":{},\"simulated_s\":{:.9f},"
               "\"fold_s\":{:.4f},\"wall_s\":{:.4f},\"peak_MiB\":{:.0f}}}\n",
        name, topology.deviceCount(), layers, run.classes, run.events, run.iterationsJumped, secondsOf(run.end), folding, taken,
        peakMib());
    std::fflush(stdout);
}

/// 100,352 devices (whole hosts) in 16 pipeline stages, each device a million ops: micro-batches of a receive, computing, an all-reduce and a send.
void manyOps(std::int64_t microbatches, bool jump)
{
    const LinkSpec nic{50e9, 5e-6, LinkKind::Nic};
    const LinkSpec port{400e9, 3e-6, LinkKind::NvLink};
    const Topology topology{
        {{"host", AxisKind::Network, 12544, false, nic, 0.0}, {"gpu", AxisKind::Switch, 8, false, port, 0.0}}, {8, 1}};
    constexpr std::uint32_t kStages = 16;
    constexpr std::uint32_t kBlocks = 100; // of a layer: compute and all-reduce
    StepRun run;
    std::int64_t ops = 0;
    const double taken = timed([&] {
        const MachineLinks links(topology);
        StepWork work;
        work.links = &links;
        const auto devices = static_cast<std::uint32_t>(topology.deviceCount());
        const std::uint32_t perStage = devices / kStages;
        for (std::uint32_t device = 0; device < devices; ++device)
            work.kindOf.push_back(std::min(device / perStage, kStages - 1));
        work.sites.push_back(site(links, {1}, CollectiveKind::AllReduce, 16 << 20));
        for (std::uint32_t stage = 0; stage + 1 < kStages; ++stage) {
            GroupAxis pair = groupAxes(topology, {0}).front();
            pair.size = 2;
            DeviceGroups pairs{2, {}};
            for (std::uint32_t i = 0; i < perStage; ++i) {
                pairs.members.push_back(stage * perStage + i);
                pairs.members.push_back((stage + 1) * perStage + i);
            }
            work.sites.push_back(valueOf(routeFlows({CollectiveKind::Permute, 4 << 20, {pair}}, std::move(pairs), links)));
        }
        StepLoop loop;
        loop.repeat = microbatches;
        for (std::uint32_t stage = 0; stage < kStages; ++stage) {
            StepProgram program;
            std::uint32_t last = kNothing;
            if (stage > 0)
                last = program.collective(stage, 0, after({}, 0));
            for (std::uint32_t block = 0; block < kBlocks; ++block) {
                const auto self = static_cast<std::uint32_t>(program.size());
                std::vector<StepDependency> waits = last == kNothing ? after({}, self) : after({last}, self);
                if (block == 0) // computing is in order
                    waits.push_back({self + 2 * (kBlocks - 1), StepLag::Iteration});
                program.compute(200 * 1000000, waits);
                last = program.collective(0, block, after({self}, self + 1));
            }
            if (stage + 1 < kStages)
                program.collective(stage + 1, 0, after({last}, last + 1));
            ops = static_cast<std::int64_t>(program.size()) * microbatches;
            loop.programs.push_back(std::move(program));
        }
        work.loops.push_back(std::move(loop));
        run = runStep(work, {true, jump});
    });
    fmt::print(
        "{{\"case\":\"100k devices\",\"ops_per_device\":{},\"jump\":{},\"classes\":{},\"events\":{},\"simulated_s\":{:.9f},"
        "\"wall_s\":{:.4f},\"peak_MiB\":{:.0f}}}\n",
        ops, jump, run.classes, run.events, secondsOf(run.end), taken, peakMib());
    std::fflush(stdout);
}

void closedForms()
{
    const Topology box = torus({16, 16, 16});
    const auto three = groupAxes(box, {0, 1, 2});
    const auto one = groupAxes(box, {1});
    double sum = 0.0;
    constexpr int kCount = 200000;
    const double all = timed([&] {
        for (int i = 0; i < kCount; ++i)
            sum += collectiveSeconds({CollectiveKind::AllReduce, (1 << 20) + i, three});
    });
    const double axis = timed([&] {
        for (int i = 0; i < kCount; ++i)
            sum += collectiveSeconds({CollectiveKind::AllGather, (1 << 20) + i, one});
    });
    fmt::print("{{\"case\":\"closed forms\",\"three_axes_per_s\":{:.0f},\"one_axis_per_s\":{:.0f},\"sum\":{:.3g}}}\n",
        kCount / all, kCount / axis, sum);
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv)
{
    const auto anchor = [&](const char* topology, const char* mode) {
        if (argc > 1 && std::system(fmt::format("{} {} dim {} --log=root.thres:warning", argv[1], topology, mode).c_str()) != 0)
            fmt::print("the anchor failed\n");
        std::fflush(stdout);
    };
    messages({8, 8, 16}, 5);
    anchor("torus:8x8x16", "steps");
    messages({16, 16, 16}, 5);
    anchor("torus:16x16x16", "steps");
    messages({16, 16, 16}, 5);
    messages({16, 32, 32}, 3);
    closedForms();
    contendingStep({16, 16, 16}, 100, "100 layers, contention, unrolled", true, false);
    contendingStep({16, 16, 16}, 100, "100 layers, contention", false, false);
    contendingStep({16, 16, 16}, 100, "100 layers, contention, 16 stages, unrolled", true, true);
    manyOps(5000, true);
    manyOps(5000, false);
    contendingStep({64, 128, 128}, 100, "1 M devices", false, false);
    return 0;
}
