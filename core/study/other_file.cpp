// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/other_file.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

/// The file's name in a command; a placeholder for text without a file, and quotes where a shell needs them.
std::string nameForCommand(std::string_view file)
{
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,";
    if (file.empty() || file == "-" || file == "standard input")
        return "FILE";
    if (file.find_first_not_of(kPlain) == std::string_view::npos)
        return std::string(file);
    return file.find('\'') == std::string_view::npos ? fmt::format("'{}'", file) : std::string("FILE");
}

} // namespace

std::optional<OtherFile> otherFileOf(std::string_view text, std::string_view file)
{
    constexpr std::size_t kBeginning = std::size_t{64} << 10;
    constexpr std::string_view kNccl = "the output of nccl-tests";
    text = text.substr(0, kBeginning);
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n\xEF\xBB\xBF"), text.size()));
    const auto has = [text](std::string_view words) { return text.find(words) != std::string_view::npos; };
    const bool isObject = text.starts_with('{');
    const std::string name = nameForCommand(file);
    if (text.starts_with("meshwright:") || has("\nmeshwright:") || (isObject && has("\"meshwright\":") && !has("\"schema\"")))
        return std::nullopt; // a study
    if ((has("busbw") && has("algbw")) || (has("\"bus_bw\"") && has("\"alg_bw\"")))
        return OtherFile{std::string(kNccl),
            fmt::format("`meshwright calibrate --nccl {} -o links.json` makes a profile of hardware from it", name)};
    if (isObject ? has("\"traceEvents\"") : text.starts_with('[') && has("\"ph\""))
        return OtherFile{"a trace of a profiler", fmt::format("`meshwright gui {}` shows it on the timeline", name)};
    if (text.starts_with("HloModule "))
        return OtherFile{"a dump of HLO", fmt::format("`meshwright explain {}` lists its collectives", name)};
    if (isObject && has("\"weight_map\""))
        return OtherFile{"the index of a checkpoint's files",
            "the config.json beside it has the model: `meshwright plan config.json --on 64xH100 --tokens 1T`"};
    if (isObject && has("\"schema\"") && has("\"meshwright."))
        return OtherFile{"a result of Meshwright",
            fmt::format("`meshwright gui {}` opens results of simulate, check, train, search and sweep", name)};
    return std::nullopt;
}

} // namespace meshwright
