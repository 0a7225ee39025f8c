// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/resources.h"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>

namespace meshwright {

std::filesystem::path resourcesDirectory()
{
    if (const char* named = std::getenv("MESHWRIGHT_RESOURCES"); named != nullptr && *named != '\0')
        return named;
    std::error_code error;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (!error) {
        std::filesystem::path installed = program.parent_path().parent_path() / "share" / "meshwright";
        if (std::filesystem::exists(installed / "problems.yaml", error))
            return installed;
    }
    return MESHWRIGHT_RESOURCES_DIR;
}

Result<std::filesystem::path> findResource(std::string_view relativePath)
{
    std::filesystem::path path = resourcesDirectory() / relativePath;
    std::error_code error;
    if (!std::filesystem::exists(path, error))
        return Problem{"MW1006", fmt::format("\"{}\" is not among the files that come with Meshwright", path.string()),
            "install Meshwright again, or set MESHWRIGHT_RESOURCES to the folder \"resources\" of its sources",
            Place{path.string()}};
    return path;
}

} // namespace meshwright
