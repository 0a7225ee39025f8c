// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/pages/trusted_pages.h"

#include "core/support/file.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace meshwright::pages {

namespace {

namespace fs = std::filesystem;

/// The file that lists the pages; empty where there is no place for one.
fs::path listFile()
{
    const char* state = std::getenv("XDG_STATE_HOME");
    const char* home = std::getenv("HOME");
    if (state != nullptr && *state == '/')
        return fs::path(state) / "meshwright" / "trusted-pages";
    return home != nullptr && *home == '/' ? fs::path(home) / ".local" / "state" / "meshwright" / "trusted-pages" : fs::path();
}

std::string listed()
{
    const fs::path list = listFile();
    if (list.empty() || !fs::exists(list))
        return {};
    auto text = readFile(list);
    return text ? *std::move(text) : std::string();
}

/// What stands for a page in the list: a hash (FNV-1a) and the length of its text.
std::string markOf(const std::string& text)
{
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    return fmt::format("{:016x} {}\n", hash, text.size());
}

} // namespace

bool isTrusted(const std::string& text)
{
    return listed().find(markOf(text)) != std::string::npos;
}

Result<Done> trust(const std::string& text)
{
    const fs::path list = listFile();
    if (list.empty() || isTrusted(text))
        return Done{};
    std::error_code error;
    fs::create_directories(list.parent_path(), error);
    return writeFileAtomically(list, listed() + markOf(text));
}

} // namespace meshwright::pages
