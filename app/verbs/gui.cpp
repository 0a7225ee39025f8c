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
    if (options.file.empty() && !options.settings.empty())
        return fail({Problem{"MW1904", "FILE is missing: --hw, --mesh and --set are of a study or a program",
                        "meshwright gui program.mlir --hw v5e-8"}},
            output);
    const std::string name = program.string();
    std::vector<std::string> words = {name};
    for (const std::string& setting : options.settings)
        words.push_back("--set=" + setting);
    if (!options.file.empty())
        words.push_back(options.file);
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(name.c_str(), arguments.data());
    return fail({Problem{"MW1827", fmt::format("cannot start {}: {}", name, std::strerror(errno)), "install it again"}}, output);
}

} // namespace meshwright::cli
