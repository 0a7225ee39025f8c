// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "sim/session/sweep_engine.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

using namespace meshwright;
using namespace meshwright::sim;

/// How many points of an MLP study a sweep simulates in a second, with and without a database, and how many it finds known.
///     bench_sweep [points] [threads]
int main(int argc, char** argv)
{
    const int points = argc > 1 ? std::atoi(argv[1]) : 400;
    const int jobs = argc > 2 ? std::atoi(argv[2]) : 1;
    const auto file = std::filesystem::temp_directory_path() / "bench_sweep.sqlite";
    std::filesystem::remove(file);
    SweepPlan plan;
    const std::filesystem::path study = resourcesDirectory() / "examples" / "digits.yaml";
    if (const auto taken = takeStudy(plan, {valueOf(readFile(study)), study.string(), {}}); !taken)
        return 1;
    plan.parameters = {valueOf(parseVary("mesh=data*model=8")), valueOf(parseVary(fmt::format("batch=8..{}", 7 + points / 4)))};
    const auto engine = valueOf(sweepEngine(plan));
    const auto measure = [&](const char* what, SweepDatabase database) {
        const auto start = std::chrono::steady_clock::now();
        const auto run = valueOf(runSweep(plan, engine, database, jobs, {}, {}));
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        fmt::print("{:<28} {:>6} points, {:>6} simulated, {} threads: {:.3f} s, {:.0f} points/s\n", what, plan.pointCount(),
            run.simulated, jobs, seconds, static_cast<double>(plan.pointCount()) / seconds);
    };
    measure("in memory", valueOf(SweepDatabase::inMemory()));
    measure("into a database", valueOf(SweepDatabase::open(file)));
    measure("known from a database", valueOf(SweepDatabase::open(file)));
    std::filesystem::remove(file);
    return 0;
}
