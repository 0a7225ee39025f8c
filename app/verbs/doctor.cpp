// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/verbs.h"

#include "core/devices/device_engine.h"
#include "core/diagnose/problem_table.h"
#include "core/kernels/products.h"
#include "core/ranks/launch.h"
#include "core/support/json_text.h"
#include "core/support/resources.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

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

/// What was looked at: a word for people, its name for scripts, what is there and whether that will do.
struct Finding {
    const char* title;
    const char* name;
    std::string found;
    std::string verdict; ///< "ok", or what is to be known of it
};

std::string findingsText(const std::vector<Finding>& findings)
{
    TextTable table({{"what"}, {"found"}, {""}});
    for (const Finding& finding : findings)
        table.addRow({finding.title, finding.found, finding.verdict});
    return table.text();
}

std::string findingsJson(const std::vector<Finding>& findings, const Problems& problems)
{
    Json checks = Json::array();
    for (const Finding& finding : findings)
        checks.push_back(
            {{"name", finding.name}, {"found", finding.found}, {"ok", finding.verdict == "ok"}, {"verdict", finding.verdict}});
    const Json document
        = {{"schema", "meshwright.doctor/1"}, {"meshwright", kVersion}, {"fit", problems.empty()}, {"checks", std::move(checks)}};
    return jsonText(document);
}

/// Looks for the files of the installation.
void findResources(std::vector<Finding>& findings, Problems& problems)
{
    const std::filesystem::path resources = resourcesDirectory();
    for (const char* part : {"examples", "problems.yaml"}) {
        const auto found = findResource(part);
        findings.push_back({part, part, (resources / part).string(), found ? "ok" : "missing"});
        if (!found)
            append(problems, found.error());
    }
    if (const auto path = findResource("problems.yaml")) {
        const auto known = ProblemTable::load(*path);
        findings.push_back({"problem ids", "problem_ids", known ? fmt::format("{}", known->entries().size()) : "unreadable",
            known ? "ok" : "damaged"});
        if (!known)
            append(problems, known.error());
    }
}

} // namespace

int runDoctor(Output& output)
{
    std::vector<Finding> findings;
    Problems problems;
    findings.push_back({"version", "version", kVersion, "ok"});
    const int cores = usableCores();
    findings.push_back({"cores", "cores", fmt::format("{}", cores), cores >= 2 ? "ok" : "one core: virtual devices take turns"});
    const auto bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    constexpr double kEnoughBytes = 2.0 * 1024 * 1024 * 1024;
    findings.push_back(
        {"memory", "memory", formatBytes(bytes), bytes >= kEnoughBytes ? "ok" : "less than 2 GiB: keep models small"});
    findings.push_back({"vector units", "vector_units", vectorUnits(), "ok"});
    const auto products = chooseProductsFromEnvironment();
    if (!products)
        append(problems, products.error());
    const bool isFast = productBackend() != ProductBackend::Eigen;
    findings.push_back({"matrix products", "matrix_products", productBackendText(),
        isFast || std::getenv(kProductsVariable) != nullptr ? "ok" : "slower: install libopenblas0"});
    findings.push_back({"virtual devices", "virtual_devices",
        hasFibers() ? fmt::format("threads, fibers above {}", kMostThreadDevices) : "threads",
        hasFibers() ? "ok" : "slower with many devices: built without Boost.Context"});
    findings.push_back({"several processes", "several_processes", rankModule() ? "by MPI" : "no MPI in this build", "ok"});
    findResources(findings, problems);
    output.result(output.format == Format::Json ? findingsJson(findings, problems) : findingsText(findings));
    return problems.empty() ? int{kExitOk} : fail(problems, output);
}

} // namespace meshwright::cli
