// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/overwrites.h"

#include <fmt/format.h>

#include <system_error>

namespace meshwright::cli {

namespace fs = std::filesystem;

bool isSameFile(const fs::path& a, const fs::path& b)
{
    std::error_code error;
    const bool isThere = fs::exists(a, error);
    if (isThere != fs::exists(b, error))
        return false;
    if (isThere)
        return fs::is_regular_file(a, error) && fs::equivalent(a, b, error);
    return fs::weakly_canonical(fs::absolute(a, error), error) == fs::weakly_canonical(fs::absolute(b, error), error);
}

Problems overwrites(const std::vector<WrittenPath>& writes, const fs::path& input, const std::string& what)
{
    Problems problems;
    for (const WrittenPath& write : writes) {
        if (isSameFile(write.path, input))
            problems.push_back({"MW1952", fmt::format("{} would overwrite \"{}\", which {} names", write.flag, write.path, what),
                fmt::format("name another file for {}", write.flag)});
    }
    return problems;
}

Problems overwrites(const std::vector<WrittenPath>& writes, const Study& study)
{
    Problems problems;
    for (const auto& [file, path] : filesOf(study))
        append(problems, overwrites(writes, file, path));
    return problems;
}

Problems collisions(const std::vector<WrittenPath>& writes)
{
    Problems problems;
    for (std::size_t i = 0; i < writes.size(); ++i) {
        for (std::size_t j = i + 1; j < writes.size(); ++j) {
            if (isSameFile(writes[i].path, writes[j].path))
                problems.push_back(
                    {"MW1952", fmt::format("{} and {} would both write \"{}\"", writes[i].flag, writes[j].flag, writes[j].path),
                        fmt::format("name another file for {}", writes[j].flag)});
        }
    }
    return problems;
}

} // namespace meshwright::cli
