// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/host_memory.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace meshwright {

std::optional<std::int64_t> availableMemoryBytes()
{
    std::ifstream in("/proc/meminfo");
    std::string name;
    std::int64_t kibibytes = 0;
    std::string unit;
    while (in >> name >> kibibytes && std::getline(in, unit)) {
        if (name == "MemAvailable:")
            return kibibytes * 1024;
    }
    return std::nullopt;
}

void growHeapInLargeSteps()
{
    rlimit limit = {};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY)
        return;
    mallopt(M_TOP_PAD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

std::optional<std::int64_t> addressSpaceLeftBytes()
{
    rlimit limit = {};
    std::ifstream in("/proc/self/statm");
    std::int64_t pages = 0;
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || !(in >> pages))
        return std::nullopt;
    return std::max<std::int64_t>(0, static_cast<std::int64_t>(limit.rlim_cur) - pages * ::sysconf(_SC_PAGESIZE));
}

Problem notEnoughMemory()
{
    return {"MW1515", "there is not enough memory for this on this computer",
        "use a smaller model, mesh or batch, close other programs, or raise the limit (`ulimit -v` shows it)"};
}

} // namespace meshwright
