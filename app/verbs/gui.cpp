// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/verbs.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace meshwright::cli {

namespace {

constexpr const char* kProgram = "meshwright-gui";

/// The desktop program beside this one, or else the first in PATH; empty when there is none.
std::filesystem::path desktopProgram()
{
    std::error_code error;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
    std::vector<std::filesystem::path> folders;
    if (!error)
        folders.push_back(self.parent_path());
    if (const char* path = std::getenv("PATH")) {
        for (const std::string& folder : split(path, ':'))
            folders.emplace_back(folder);
    }
    for (const std::filesystem::path& folder : folders) {
        const std::filesystem::path candidate = folder / kProgram;
        if (std::filesystem::is_regular_file(candidate, error) && access(candidate.c_str(), X_OK) == 0)
            return candidate;
    }
    return {};
}

} // namespace

int runGui(const GuiOptions& options, Output& output)
{
    const std::filesystem::path program = desktopProgram();
    if (program.empty())
        return fail({Problem{"MW1827", "the desktop program, meshwright-gui, is neither next to this program nor in PATH",
                        "install it (it needs Qt 6), or build without -DMESHWRIGHT_GUI=OFF"}},
            output);
    std::string name = program.string();
    std::string file = options.file;
    char* arguments[] = {name.data(), file.empty() ? nullptr : file.data(), nullptr};
    execv(name.c_str(), arguments);
    return fail({Problem{"MW1827", fmt::format("cannot start {}: {}", name, std::strerror(errno)), "install it again"}}, output);
}

} // namespace meshwright::cli
