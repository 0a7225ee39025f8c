// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/verbs.h"

#include "core/diagnose/problem_table.h"
#include "core/ranks/launch.h"
#include "core/runtime/products.h"
#include "core/support/resources.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <fmt/format.h>

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace meshwright::cli {

namespace {

/// The cores that this process may use.
int usableCores()
{
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::string vectorUnits()
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") != 0)
        return "AVX-512";
    if (__builtin_cpu_supports("avx2") != 0)
        return "AVX2";
    return "SSE2";
#else
    return "those the compiler chose";
#endif
}

} // namespace

int runDoctor(Output& output)
{
    TextTable table({{"what"}, {"found"}, {""}});
    Problems problems;
    table.addRow({"version", kVersion, "ok"});
    const int cores = usableCores();
    table.addRow({"cores", fmt::format("{}", cores), cores >= 2 ? "ok" : "one core: virtual devices take turns"});
    const auto bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    constexpr double kEnoughBytes = 2.0 * 1024 * 1024 * 1024;
    table.addRow({"memory", formatBytes(bytes), bytes >= kEnoughBytes ? "ok" : "less than 2 GiB: keep models small"});
    table.addRow({"vector units", vectorUnits(), "ok"});
    const auto products = chooseProductsFromEnvironment();
    if (!products)
        append(problems, products.error());
    const bool isFast = productBackend() != ProductBackend::Eigen;
    table.addRow({"matrix products", productBackendText(),
        isFast || std::getenv(kProductsVariable) != nullptr ? "ok" : "slower: install libopenblas0"});
    table.addRow({"several processes", rankModule() ? "by MPI" : "no MPI in this build", "ok"});
    const std::filesystem::path resources = resourcesDirectory();
    for (const char* part : {"examples", "problems.yaml"}) {
        const auto found = findResource(part);
        table.addRow({part, (resources / part).string(), found ? "ok" : "missing"});
        if (!found)
            append(problems, found.error());
    }
    if (const auto path = findResource("problems.yaml")) {
        const auto known = ProblemTable::load(*path);
        table.addRow(
            {"problem ids", known ? fmt::format("{}", known->entries().size()) : "unreadable", known ? "ok" : "damaged"});
        if (!known)
            append(problems, known.error());
    }
    output.result(table.text());
    return problems.empty() ? int{kExitOk} : fail(problems, output);
}

} // namespace meshwright::cli
