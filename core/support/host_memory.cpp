// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/host_memory.h"

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

} // namespace meshwright
