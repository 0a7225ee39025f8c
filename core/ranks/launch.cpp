// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ranks/launch.h"

#include "core/support/text.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>

namespace meshwright {

namespace fs = std::filesystem;

std::optional<Launch> launchedAs(const std::function<const char*(const char*)>& variable)
{
    constexpr std::array<std::array<const char*, 2>, 3> kLaunchers = {{{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
        {"PMI_SIZE", "PMI_RANK"}, {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"}}};
    for (const auto& [sizeName, rankName] : kLaunchers) {
        const char* size = variable(sizeName);
        const char* rank = variable(rankName);
        if (size == nullptr || rank == nullptr)
            continue;
        const auto count = parseInteger(size);
        const auto number = parseInteger(rank);
        if (count && number && *count > 1 && *number >= 0 && *number < *count)
            return Launch{static_cast<int>(*number), static_cast<int>(*count)};
    }
    return std::nullopt;
}

std::optional<Launch> launched()
{
    return launchedAs([](const char* name) { return static_cast<const char*>(std::getenv(name)); });
}

std::optional<fs::path> rankModule()
{
    constexpr const char* kModule = "meshwright-mpi.so";
    std::error_code error;
    const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (const fs::path& path : {folder / kModule, folder / "../lib/meshwright" / kModule}) {
        if (fs::exists(path, error))
            return path;
    }
    return std::nullopt;
}

Result<RankJob> joinJob(const Launch& launch)
{
    const auto path = rankModule();
    // MPI loads modules of its own, which look for its symbols everywhere.
    void* module = path ? ::dlopen(path->c_str(), RTLD_NOW | RTLD_GLOBAL) : nullptr;
    void* symbol = module != nullptr ? ::dlsym(module, kOpenRankPort) : nullptr;
    if (symbol == nullptr) {
        const char* error = path ? ::dlerror() : nullptr;
        return Problem{"MW1550",
            fmt::format("{} processes were started together, but this meshwright was built without MPI{}", launch.size,
                error != nullptr ? fmt::format(" that can be loaded ({})", error) : ""),
            "start it without mpirun, or build it where MPI is installed (Debian: libopenmpi-dev)"};
    }
    std::array<char, 256> why{};
    std::unique_ptr<RankPort> port(reinterpret_cast<OpenRankPort>(symbol)(why.data(), why.size()));
    if (port == nullptr)
        return Problem{"MW1555", fmt::format("MPI does not start: {}", why.data()), "see MPI's messages"};
    if (port->size() != launch.size)
        return Problem{"MW1555", fmt::format("the launcher started {} processes, but MPI knows of {}", launch.size, port->size()),
            "use the mpirun of the MPI that meshwright was built with"};
    RankJob job;
    job.ranks = std::make_shared<Ranks>(std::move(port));
    auto watch = RankWatch::start(*job.ranks);
    if (!watch)
        return watch.error();
    job.watch = *std::move(watch);
    return job;
}

} // namespace meshwright
