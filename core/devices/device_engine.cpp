// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/device_engine.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <cstdlib>

namespace meshwright {

std::string engineName(EngineKind kind)
{
    switch (kind) {
    case EngineKind::Auto:
        return "auto";
    case EngineKind::Threads:
        return "threads";
    case EngineKind::Fibers:
        break;
    }
    return "fibers";
}

Result<EngineKind> parseEngine(const std::string& name)
{
    std::vector<std::string> names;
    for (const EngineKind kind : {EngineKind::Auto, EngineKind::Threads, EngineKind::Fibers}) {
        names.push_back(engineName(kind));
        if (name == names.back())
            return kind;
    }
    const auto near = nearestName(name, names);
    return Problem{"MW1526", fmt::format("unknown engine \"{}\" for virtual devices", name),
        near ? fmt::format("did you mean \"{}\"?", *near) : "use auto, threads or fibers"};
}

Result<EngineKind> engineFromEnvironment()
{
    const char* name = std::getenv(kEngineVariable);
    return name == nullptr || *name == '\0' ? EngineKind::Auto : parseEngine(name);
}

Result<EngineKind> chooseEngine(EngineKind wanted, std::int64_t devicesHere, bool severalProcesses, bool buildHasFibers)
{
    if (wanted == EngineKind::Auto)
        return buildHasFibers && !severalProcesses && devicesHere > kMostThreadDevices ? EngineKind::Fibers : EngineKind::Threads;
    if (wanted == EngineKind::Fibers && !buildHasFibers)
        return Problem{"MW1524", "this build of Meshwright has no fibers",
            "use --engine threads, or build again with Boost.Context (Debian: libboost-context-dev)"};
    if (wanted == EngineKind::Fibers && severalProcesses)
        return Problem{"MW1525", "devices that several processes share cannot be fibers",
            "use --engine threads: a device that waits for another process would keep all of its core's devices waiting"};
    return wanted;
}

} // namespace meshwright
