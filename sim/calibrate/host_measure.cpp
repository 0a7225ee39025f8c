// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/host_measure.h"

#include "core/partition/partition.h"
#include "core/runtime/clocks.h"
#include "core/runtime/executor.h"
#include "core/support/host_memory.h"
#include "core/text/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <thread>

namespace meshwright::sim {

namespace {

/// One function on devices of its own.
struct Probe {
    std::unique_ptr<VirtualDevices> devices;
    std::unique_ptr<LoadedFunction> loaded;
};

Result<Probe> load(const std::string& text, int permits)
{
    auto program = readProgram(text, "calibrate");
    if (!program)
        return program.error();
    auto partitioned = propagateAndPartition(*std::move(program));
    if (!partitioned)
        return partitioned.error();
    const DeviceStage& stage = partitioned->device.stages.front();
    Probe probe;
    auto devices = VirtualDevices::create(stage.mesh().deviceCount(), {.permits = permits});
    if (!devices)
        return devices.error();
    probe.devices = *std::move(devices);
    auto loaded = LoadedFunction::load(schedule(stage.functions.front(), SchedulePolicy::Host), stage.meshes, *probe.devices);
    if (!loaded)
        return loaded.error();
    probe.loaded = *std::move(loaded);
    const Function& function = partitioned->propagated.functions.front();
    for (std::size_t i = 0; i < function.arguments().size(); ++i) {
        if (auto written = probe.loaded->writeArgument(i, HostArray::filled(function[function.arguments()[i]].type, 0.5));
            !written)
            return written.error();
    }
    return probe;
}

enum class What : std::uint8_t { Compute, Collectives };

/// CPU seconds of one device, the mean over the devices, in one recorded run.
double cpuSeconds(const Timeline& timeline, What what, std::int64_t devices)
{
    double seconds = 0.0;
    for (const Slice& slice : timeline.slices()) {
        if (slice.category == SliceCategory::Wait || slice.category == SliceCategory::WaitForCore)
            continue;
        if ((slice.category == SliceCategory::Compute) == (what == What::Compute))
            seconds += slice.cpuSeconds;
    }
    return seconds / static_cast<double>(devices);
}

/// CPU seconds of each device's computing in one recorded run, added to those before.
void addComputing(const Timeline& timeline, std::vector<double>& seconds)
{
    for (const Slice& slice : timeline.slices()) {
        if (slice.category == SliceCategory::Compute)
            seconds[static_cast<std::size_t>(timeline.rows()[slice.row].device)] += slice.cpuSeconds;
    }
}

class Measurer {
public:
    Measurer(const HostMeasurement& measurement, const std::stop_token& stop)
        : m_quick(measurement.quick)
        , m_stop(stop)
    {
        const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
        m_profile.permits = measurement.permits > 0 ? measurement.permits : cores;
        m_profile.devices = std::max(2, measurement.devices);
        // Several for each core: together their operands are more than caches hold, as in a training.
        m_many = std::max(m_profile.permits, std::min(m_profile.devices, 4 * m_profile.permits));
        m_profile.name = fmt::format("this computer, {} cores", cores);
        m_profile.memoryBytes = availableMemoryBytes().value_or(std::int64_t{1} << 33);
    }

    Result<HostProfile> run()
    {
        products();
        passes();
        collectives();
        if (m_problems.empty())
            spread();
        if (!m_problems.empty())
            return m_problems;
        return std::move(m_profile);
    }

private:
    /// The middle one of `runs` runs; 1 when something went wrong, which is noted.
    double typical(const std::string& text, What what, int runs)
    {
        if (!m_problems.empty())
            return 1.0;
        auto probe = load(text, m_profile.permits);
        std::vector<double> seconds;
        for (int i = 0; probe && i <= runs; ++i) {
            if (auto done = probe->loaded->run({.record = true, .stop = m_stop}); !done) {
                append(m_problems, done.error());
                return 1.0;
            }
            if (i > 0) // the first one touches the memory
                seconds.push_back(cpuSeconds(probe->loaded->virtualTimeline(), what, probe->devices->count()));
        }
        if (!probe) {
            append(m_problems, probe.error());
            return 1.0;
        }
        const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>((seconds.size() - 1) / 2);
        std::ranges::nth_element(seconds, middle);
        return std::max(*middle, 1e-9);
    }

    void spread()
    {
        constexpr int kRuns = 20;
        constexpr std::int64_t kSide = 384; // about a millisecond
        auto probe = load(productText(m_profile.devices, kSide, kSide, kSide), m_profile.permits);
        if (!probe) {
            append(m_problems, probe.error());
            return;
        }
        // Of all runs together: a device that is late in one op is early in another, and nobody waits at each.
        std::vector<double> seconds(static_cast<std::size_t>(m_profile.devices), 0.0);
        for (int i = 0; i < kRuns; ++i) {
            if (auto done = probe->loaded->run({.record = true, .stop = m_stop}); !done) {
                append(m_problems, done.error());
                return;
            }
            if (i >= kRuns / 2)
                addComputing(probe->loaded->virtualTimeline(), seconds);
        }
        const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
        const double slowest = *std::ranges::max_element(seconds);
        m_profile.spread = sum > 0.0 ? std::max(1e-6, slowest * static_cast<double>(seconds.size()) / sum - 1.0) : 1e-6;
    }

    /// A body of one op on devices that each have a part of the rows.
    static std::string pooled(int devices, const std::string& arguments, const std::string& result, const std::string& body)
    {
        return fmt::format(
            "module @calibrate {{\n  sdy.mesh @mesh = <[\"x\"={}]>\n  func.func public @main({}) -> {} {{\n{}    return %0 : {}\n"
            "  }}\n}}\n",
            devices, arguments, result, body, result);
    }

    static std::string rowsOverDevices(const std::string& name, const std::string& type, int dims)
    {
        return fmt::format("%{}: {} {{sdy.sharding = #sdy.sharding<@mesh, [{{\"x\"}}{}]>}}", name, type, dims > 1 ? ", {}" : "");
    }

    static std::string productText(int devices, std::int64_t m, std::int64_t n, std::int64_t k)
    {
        const std::string lhs = fmt::format("tensor<{}x{}xf32>", devices * m, k);
        const std::string rhs = fmt::format("tensor<{}x{}xf32>", k, n);
        const std::string out = fmt::format("tensor<{}x{}xf32>", devices * m, n);
        return pooled(devices, rowsOverDevices("x", lhs, 2) + ", %y: " + rhs, out,
            fmt::format("    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : "
                        "({}, {}) -> "
                        "{}\n",
                lhs, rhs, out));
    }

    double productSeconds(int devices, std::int64_t m, std::int64_t n, std::int64_t k, int runs)
    {
        return typical(productText(devices, m, n, k), What::Compute, runs);
    }

    void products()
    {
        m_profile.sides = m_quick ? std::vector<std::int64_t>{16, 256} : std::vector<std::int64_t>{8, 32, 128, 512, 1024};
        for (const std::int64_t m : m_profile.sides) {
            for (const std::int64_t n : m_profile.sides) {
                for (const std::int64_t k : m_profile.sides) {
                    const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
                    // Short ones are run until caches and threads are warm, as in a training that goes on.
                    const int runs = static_cast<int>(std::clamp(5e7 / flops, 2.0, m_quick ? 5.0 : 12.0));
                    const double seconds = productSeconds(m_many, m, n, k, runs);
                    m_profile.productFlopsPerSecond.push_back(flops / seconds);
                }
            }
        }
        constexpr std::int64_t kSide = 512;
        m_profile.aloneFlopsPerSecond
            = 2.0 * static_cast<double>(kSide * kSide * kSide) / productSeconds(1, kSide, kSide, kSide, 5);
    }

    double additionSeconds(std::int64_t elements, const char* op, bool two)
    {
        const std::string type = fmt::format("tensor<{}xf32>", m_many * elements);
        const std::string arguments
            = rowsOverDevices("x", type, 1) + (two ? ", " + rowsOverDevices("y", type, 1) : std::string());
        return typical(
            pooled(m_many, arguments, type, fmt::format("    %0 = stablehlo.{} %x{} : {}\n", op, two ? ", %y" : "", type)),
            What::Compute, elements > (1 << 18) ? 4 : 20);
    }

    void passes()
    {
        constexpr double kBytes = 12.0; // of an addition: two read, one written
        m_profile.kernelSeconds = additionSeconds(8, "add", true);
        for (const std::int64_t elements :
            {std::int64_t{1} << 12, std::int64_t{1} << 15, std::int64_t{1} << 18, std::int64_t{1} << 21}) {
            const double seconds = additionSeconds(elements, "add", true);
            m_profile.streams.push_back({kBytes * static_cast<double>(elements), seconds});
        }
        constexpr std::int64_t kInCache = 1 << 14;
        const auto perElement = [&](double seconds) {
            return std::max(1e-12, (seconds - m_profile.kernelSeconds) / static_cast<double>(kInCache));
        };
        m_profile.simpleSecondsPerElement = perElement(additionSeconds(kInCache, "add", true));
        m_profile.mathSecondsPerElement = perElement(additionSeconds(kInCache, "exponential", false));
        m_profile.divideSecondsPerElement = perElement(additionSeconds(kInCache, "divide", true));
        m_profile.reduceSecondsPerElement = perElement(reductionSeconds(true));
        m_profile.reduceColumnsSecondsPerElement = perElement(reductionSeconds(false));
    }

    /// Sums of the rows, or of the columns, of 128 x 128 elements.
    double reductionSeconds(bool rows)
    {
        constexpr int kSide = 128;
        const std::string whole = fmt::format("tensor<{}x{}x{}xf32>", m_many, kSide, kSide);
        const std::string result = fmt::format("tensor<{}x{}xf32>", m_many, kSide);
        return typical(
            pooled(m_many, fmt::format("%x: {} {{sdy.sharding = #sdy.sharding<@mesh, [{{\"x\"}}, {{}}, {{}}]>}}", whole), result,
                fmt::format("    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
                            "    %0 = stablehlo.reduce(%x init: %cst) applies stablehlo.add across dimensions = [{}] : ({}, "
                            "tensor<f32>) -> {}\n",
                    rows ? 2 : 1, whole, result)),
            What::Compute, 20);
    }

    void collectives()
    {
        const int devices = m_profile.devices;
        for (const std::int64_t bytes :
            {std::int64_t{1} << 12, std::int64_t{1} << 18, std::int64_t{1} << 22, std::int64_t{1} << 24}) {
            const std::int64_t elements = bytes / 4;
            const std::string rows = fmt::format("tensor<{}x{}xf32>", devices, elements);
            const std::string whole = fmt::format("tensor<{}xf32>", elements);
            m_profile.allReduce.push_back({static_cast<double>(bytes),
                typical(
                    pooled(devices, rowsOverDevices("x", rows, 2), whole,
                        fmt::format("    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
                                    "    %0 = stablehlo.reduce(%x init: %cst) applies stablehlo.add across dimensions = [0] : "
                                    "({}, tensor<f32>) -> {}\n",
                            rows, whole)),
                    What::Collectives, bytes > (1 << 22) ? 5 : 15)});
            const std::string parts = fmt::format("tensor<{}xf32>", elements / devices * devices);
            m_profile.allGather.push_back({static_cast<double>(bytes),
                typical(pooled(devices, rowsOverDevices("x", parts, 1), parts,
                            fmt::format("    %0 = sdy.sharding_constraint %x <@mesh, [{{}}]> : {}\n", parts)),
                    What::Collectives, bytes > (1 << 22) ? 5 : 15)});
        }
        barrier();
    }

    void barrier()
    {
        auto devices = VirtualDevices::create(m_profile.devices, {.permits = m_profile.permits});
        if (!devices) {
            append(m_problems, devices.error());
            return;
        }
        constexpr int kRounds = 200;
        const auto meeting = (*devices)->makeBarrier(m_profile.devices);
        const VirtualDevices::Place place = [] { return std::string("the barrier of the calibration"); };
        const double start = wallSeconds();
        const auto done = (*devices)->run(
            [&](std::int64_t device) -> Result<Done> {
                for (int i = 0; i < kRounds; ++i) {
                    if (!(*devices)->wait(device, *meeting, place))
                        return VirtualDevices::interrupted();
                }
                return Done{};
            },
            m_stop);
        if (!done)
            append(m_problems, done.error());
        m_profile.barrierSeconds = std::max(1e-9, (wallSeconds() - start) / kRounds);
    }

    bool m_quick;
    int m_many = 2; ///< devices of products and passes
    std::stop_token m_stop;
    HostProfile m_profile;
    Problems m_problems;
};

} // namespace

Result<HostProfile> measureHost(const HostMeasurement& measurement, const std::stop_token& stop)
{
    return Measurer(measurement, stop).run();
}

} // namespace meshwright::sim
