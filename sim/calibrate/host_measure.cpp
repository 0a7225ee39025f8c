// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/host_measure.h"

#include "core/devices/clocks.h"
#include "core/support/checked.h"
#include "core/support/cores.h"
#include "core/support/host_memory.h"
#include "sim/calibrate/host_reference.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace meshwright::sim {

namespace {

int permitsOf(const HostMeasurement& measurement)
{
    return measurement.permits > 0 ? measurement.permits : coreCount();
}

/// Half of a core's own cache (the rest is for what lies beside), and what a core can count on of one that it shares. What the system
/// says of the last level is of no use: a virtual machine is told of a whole computer's.
std::array<double, 2> cacheReach()
{
    constexpr double kUsualOwn = 1 << 20;
    constexpr double kShared = 16 << 20;
#ifdef _SC_LEVEL2_CACHE_SIZE
    const auto own = static_cast<double>(sysconf(_SC_LEVEL2_CACHE_SIZE));
#else
    const double own = 0.0;
#endif
    return {(own > 0.0 ? own : kUsualOwn) / 2.0, std::max(kShared, 2.0 * own)};
}

class Measurer {
public:
    Measurer(const HostMeasurement& measurement, const std::stop_token& stop)
        : m_quick(measurement.quick)
        , m_stop(stop)
        , m_prober(permitsOf(measurement))
    {
        m_profile.permits = permitsOf(measurement);
        m_profile.cacheBytes = cacheReach();
        m_profile.devices = std::max(2, measurement.devices);
        // Several for each core: together their operands are more than caches hold, as in a training.
        m_many = std::max(m_profile.permits, std::min(m_profile.devices, 2 * m_profile.permits));
        m_profile.name = fmt::format("this computer, {} cores", coreCount());
        m_profile.memoryBytes = availableMemoryBytes().value_or(std::int64_t{1} << 33);
    }

    Result<HostProfile> run()
    {
        products();
        passes();
        collectives();
        trainings();
        if (!m_problems.empty())
            return m_problems;
        fit();
        return std::move(m_profile);
    }

private:
    enum class What : std::uint8_t { Compute, Collectives };

    /// Seconds of a device in a typical one of `runs` runs; 1 when something went wrong, which is noted.
    double typical(const std::string& text, What what, int runs)
    {
        if (!m_problems.empty())
            return 1.0;
        const auto probe = m_prober.program(text);
        if (!probe) {
            append(m_problems, probe.error());
            return 1.0;
        }
        if (const auto done = (*probe)->run({runs, runs, 0.0}, m_stop); !done) {
            append(m_problems, done.error());
            return 1.0;
        }
        const ProbeRun run = (*probe)->result();
        add(run, kSingleOps);
        return std::max(what == What::Compute ? run.computeSeconds() : run.collectiveSeconds(), 1e-9);
    }

    void add(const ProbeRun& run, double weight)
    {
        for (HostSample& sample : samplesOf(run, m_profile)) {
            sample.weight *= weight;
            m_samples.push_back(sample);
        }
    }

    /// Small trainings of several kinds: instructions as they come up between others, with operands that are as near or far as there.
    void trainings()
    {
        const int all = m_profile.devices;
        const int half = all % 2 == 0 ? all / 2 : all;
        const int rest = all / half;
        const auto even = [](int size, int parts) { return ceilDiv(size, parts) * parts; };
        const std::string same = "  match: [{path: \"*\", spec: []}]\n";
        const std::string split
            = "  layers.1: {w: \"P(None, 'model')\", b: \"P('model')\"}\n  layers.2: {w: \"P('model', None)\"}\n" + same;
        const std::string fully = "  match: [{path: \"*.w\", spec: [data, null]}, {path: \"*.b\", spec: []}]\n";
        const std::string adam = "adam: {learning_rate: 1.0e-3}";
        const std::string sgd = "sgd: {learning_rate: 1.0e-3}";
        const std::string narrow = "dtype: {parameters: f32, matmul: bf16}\n";
        const auto square = [](int side) { return fmt::format("[{0}, {0}, {0}, {0}], activation: relu, loss: mse", side); };
        std::vector<std::string> studies = {
            mlp(all, 1, "[48, 96, 96, 12], activation: relu, loss: cross_entropy", even(80, all), same, sgd),
            mlp(half, rest, "[72, 224, 224, 224, 12], activation: relu, loss: cross_entropy", even(112, half), split, adam),
            transformer(half, rest, 2, 48, 4, even(24, half), "learned"),
            mlp(half, rest, "[96, 256, 256, 12], activation: relu, loss: mse", even(160, half), split, sgd, narrow),
        };
        if (!m_quick) {
            const std::string wide = fmt::format("[{0}, {0}, {0}, 24], activation: relu, loss: mse", even(384, all));
            studies.push_back(mlp(all, 1, square(static_cast<int>(even(80, all))), even(800, all), fully, sgd));
            studies.push_back(mlp(all, 1, square(static_cast<int>(even(200, all))), all, fully, adam));
            studies.push_back(mlp(1, all,
                fmt::format("[96, {0}, {0}, 12], activation: tanh, loss: cross_entropy", even(176, all)), 48, split, sgd));
            studies.push_back(
                mlp(half, 1, "[56, 112, 112, 12], activation: tanh, loss: cross_entropy", even(144, half), same, adam));
            studies.push_back(mlp(all, 1, wide, even(448, all), fully, adam));
            studies.push_back(
                mlp(all, 1, "[600, 720, 720, 12], activation: relu, loss: cross_entropy", even(400, all), same, sgd));
            studies.push_back(mlp(1, all,
                fmt::format("[500, {0}, {0}, {0}, 20], activation: tanh, loss: cross_entropy", even(896, all)), 320, split, sgd));
            studies.push_back(
                mlp(half, rest, "[400, 640, 640, 640, 16], activation: relu, loss: sum_squared", even(320, half), split, adam));
            studies.push_back(transformer(all, 1, 1, 80, 5, even(32, all), "rotary"));
            studies.push_back(
                mlp(half, rest, "[500, 800, 800, 800, 20], activation: relu, loss: mse", even(400, half), split, sgd, narrow));
        }
        measureTrainings(studies);
    }

    /// In turns: what disturbs the computer for a while meets all of them, and none for long.
    void measureTrainings(const std::vector<std::string>& studies)
    {
        std::vector<std::unique_ptr<Probe>> probes;
        for (const std::string& study : studies) {
            auto probe = m_prober.training(study);
            if (!probe)
                return append(m_problems, probe.error());
            probes.push_back(*std::move(probe));
        }
        const auto reference = HostReference::create(m_profile.permits);
        if (!reference)
            return append(m_problems, reference.error());
        const int rounds = m_quick ? 1 : 6;
        constexpr int kLeastRounds = 2;
        const Probe::Round each{2, m_quick ? 10 : 12, 0.04};
        for (int round = 0; round < rounds && (round < kLeastRounds || wallSeconds() - m_start < kMostSeconds); ++round) {
            for (const auto& probe : probes) {
                if (const auto done = probe->run(each, m_stop); !done)
                    return append(m_problems, done.error());
                if (const auto done = (*reference)->run(m_stop); !done)
                    return append(m_problems, done.error());
            }
        }
        m_profile.reference = (*reference)->speed();
        for (const auto& probe : probes)
            add(probe->result(), 1.0);
    }

    static std::string mlp(int data, int model, const std::string& layers, std::int64_t batch, const std::string& sharding,
        const std::string& optimizer, const std::string& more = {})
    {
        return fmt::format(
            "meshwright: 1\nname: calibrate\nmesh: {{data: {}, model: {}}}\nmodel:\n  mlp: {{layers: {}, bias: true}}\n"
            "batch: {}\nsharding:\n  x: P('data', None)\n  y: P('data', None)\n{}optimizer: {{{}}}\n"
            "{}train: {{steps: 1, seed: 0, data: random}}\n",
            data, model, layers, batch, sharding, optimizer, more);
    }

    static std::string transformer(
        int data, int model, int layers, int hidden, int heads, std::int64_t batch, const char* position)
    {
        return fmt::format("meshwright: 1\nname: calibrate\nmesh: {{data: {}, model: {}}}\nmodel:\n"
                           "  transformer: {{layers: {}, hidden: {}, heads: {}, ffn: {}, vocabulary: 32, position: {}, "
                           "activation: gelu_tanh, predict: last_token}}\nsequence: 64\nbatch: {}\nsharding:\n"
                           "  x: P('data', None)\n  y: P('data')\n"
                           "  layers.attention: {{q.w: \"P(None, None, 'model', None)\", k.w: \"P(None, None, 'model', None)\", "
                           "v.w: \"P(None, None, 'model', None)\", o.w: \"P(None, 'model', None, None)\"}}\n"
                           "  layers.ffn: {{up.w: \"P(None, None, 'model')\", down.w: \"P(None, 'model', None)\"}}\n"
                           "optimizer: {{adam: {{learning_rate: 1.0e-3}}}}\ntrain: {{steps: 1, seed: 0, data: digits}}\n",
            data, model, layers, hidden, heads, 3 * hidden, position, batch);
    }

    /// From what all runs took to what each thing costs. Passes come first: updates within all-reduces are of their kind.
    void fit()
    {
        constexpr std::pair<HostCost, HostCost> kGroups[] = {{HostCost::PassStart, HostCost::PassMemory},
            {HostCost::ReduceStart, HostCost::ReduceMemory}, {HostCost::ProductStart, HostCost::ProductMemory},
            {HostCost::NarrowStart, HostCost::NarrowMemory}, {HostCost::MoveStart, HostCost::MoveMemory},
            {HostCost::MeetStart, HostCost::MeetMemory}, {HostCost::WaitShare, HostCost::WaitMeeting}};
        for (const auto& [first, last] : kGroups) {
            std::vector<HostSample> group;
            std::ranges::copy_if(m_samples, std::back_inserter(group), [first = first, last = last](const HostSample& sample) {
                // The last of a sample's kinds is what it is: of an all-reduce with an update, the all-reduce.
                const auto* from = sample.amounts.begin() + static_cast<std::ptrdiff_t>(first);
                const auto* to = sample.amounts.begin() + static_cast<std::ptrdiff_t>(last) + 1;
                const auto isThere = [](double amount) { return amount > 0.0; };
                return std::any_of(from, to, isThere) && std::none_of(to, sample.amounts.end(), isThere);
            });
            fitCosts(group, first, last, m_profile.costs, first != HostCost::WaitShare);
        }
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
        m_profile.sides = m_quick ? std::vector<std::int64_t>{16, 256} : std::vector<std::int64_t>{8, 48, 256, 768};
        for (const std::int64_t m : m_profile.sides) {
            for (const std::int64_t n : m_profile.sides) {
                for (const std::int64_t k : m_profile.sides) {
                    const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
                    // Short ones are run until caches and threads are warm, as in a training that goes on.
                    const int runs = static_cast<int>(std::clamp(5e7 / flops, 3.0, m_quick ? 5.0 : 12.0));
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
            What::Compute, elements > (1 << 18) ? 5 : 20);
    }

    void passes()
    {
        constexpr double kBytes = 12.0; // of an addition: two read, one written
        m_profile.kernelSeconds = additionSeconds(8, "add", true);
        for (const std::int64_t elements :
            {std::int64_t{1} << 12, std::int64_t{1} << 15, std::int64_t{1} << 18, std::int64_t{1} << 20}) {
            const double seconds = additionSeconds(elements, "add", true);
            m_profile.streams.push_back({kBytes * static_cast<double>(elements), seconds});
        }
        constexpr std::int64_t kInCache = 1 << 14;
        additionSeconds(kInCache, "exponential", false);
        additionSeconds(kInCache, "log", false);
        additionSeconds(kInCache, "divide", true);
        reductionSeconds(true);
        reductionSeconds(false);
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
            {std::int64_t{1} << 12, std::int64_t{1} << 16, std::int64_t{1} << 19, std::int64_t{1} << 22}) {
            const std::int64_t elements = bytes / 4;
            const std::string rows = fmt::format("tensor<{}x{}xf32>", 2 * devices, elements);
            const std::string whole = fmt::format("tensor<{}xf32>", elements);
            m_profile.allReduce.push_back({static_cast<double>(bytes),
                typical(
                    pooled(devices, rowsOverDevices("x", rows, 2), whole,
                        fmt::format("    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
                                    "    %0 = stablehlo.reduce(%x init: %cst) applies stablehlo.add across dimensions = [0] : "
                                    "({}, tensor<f32>) -> {}\n",
                            rows, whole)),
                    What::Collectives, bytes > (1 << 19) ? 6 : 12)});
            const std::string parts = fmt::format("tensor<{}xf32>", elements / devices * devices);
            m_profile.allGather.push_back({static_cast<double>(bytes),
                typical(pooled(devices, rowsOverDevices("x", parts, 1), parts,
                            fmt::format("    %0 = sdy.sharding_constraint %x <@mesh, [{{}}]> : {}\n", parts)),
                    What::Collectives, bytes > (1 << 19) ? 6 : 12)});
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

    static constexpr double kMostSeconds = 8.0; ///< after which no further round is begun
    static constexpr double kSingleOps = 0.1; ///< how much an op on its own counts beside one in a training

    bool m_quick;
    int m_many = 2; ///< devices of products and passes
    double m_start = wallSeconds();
    std::stop_token m_stop;
    Prober m_prober;
    HostProfile m_profile;
    std::vector<HostSample> m_samples;
    Problems m_problems;
};

} // namespace

Result<HostProfile> measureHost(const HostMeasurement& measurement, const std::stop_token& stop)
{
    return Measurer(measurement, stop).run();
}

} // namespace meshwright::sim
