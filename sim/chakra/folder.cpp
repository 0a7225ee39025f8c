// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/chakra/folder.h"

#include "core/support/file.h"
#include "core/support/folder_lock.h"
#include "core/support/json_reader.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <system_error>

namespace meshwright::sim {

namespace fs = std::filesystem;

namespace {

constexpr const char* kGroupsFile = "comm_groups.json";

struct TraceName {
    std::string step; ///< what stands before the rank
    std::int64_t rank = 0;
};

/// `step.12.et`.
std::optional<TraceName> traceNameOf(const fs::path& file)
{
    const fs::path stem = file.stem();
    if (file.extension() != ".et" || stem.extension().empty())
        return std::nullopt;
    const std::string digits = stem.extension().string().substr(1);
    const auto rank = parseInteger(digits);
    if (!rank || *rank < 0 || digits != std::to_string(*rank))
        return std::nullopt;
    return TraceName{stem.stem().string(), *rank};
}

/// The traces of a folder, by their step and rank.
std::map<std::string, std::map<std::int64_t, fs::path>> tracesIn(const fs::path& folder)
{
    std::map<std::string, std::map<std::int64_t, fs::path>> traces;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        if (const auto name = traceNameOf(entry.path()))
            traces[name->step][name->rank] = entry.path();
    }
    return traces;
}

/// The groups' file, then one of each rank, into a new folder.
Result<Done> writeAll(const StepTraces& traces, const std::vector<std::string>& names, const fs::path& folder)
{
    std::error_code error;
    if (!fs::create_directory(folder, error))
        return cannotWriteFile(folder, error ? error.value() : EEXIST);
    for (std::size_t i = 0; i < names.size(); ++i) {
        auto file = NewFile::create(folder / names[i]);
        const std::string content = i == 0 ? traces.groupsJson() : traces.bytesOf(i - 1);
        auto done = file ? file->write(content.data(), content.size()) : Result<Done>(file.error());
        if (done)
            done = file->flush();
        if (!done)
            return done;
    }
    return Done{};
}

/// Removes a folder of traces that were not put in their places. What else is in it stays, and so does the folder then; a link is none.
void removeUnfinished(const fs::path& folder)
{
    std::error_code error;
    if (!fs::is_directory(fs::symlink_status(folder, error)))
        return;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        if (traceNameOf(entry->path()) || entry->path().filename() == kGroupsFile)
            fs::remove(entry->path(), error);
    }
    fs::remove(folder, error);
}

} // namespace

Result<Done> writeChakraFolder(const StepTraces& traces, const fs::path& folder)
{
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
        return cannotWriteFile(folder, error.value());
    const auto lock = FolderLock::take(folder);
    if (!lock)
        return lock.error();
    auto there = tracesIn(folder);
    if (const auto& old = there["step"]; !old.empty() && old.rbegin()->first >= static_cast<std::int64_t>(traces.ranks()))
        return Problem{"MW1783",
            fmt::format("the folder has {} of a step of more ranks; this one has {}", old.rbegin()->second.filename().string(),
                traces.ranks()),
            "give a new folder", Place{folder.string()}};
    there.erase("step");
    if (!there.empty())
        return Problem{"MW1783",
            fmt::format("the folder has traces of another step, {}, whose groups would be replaced", there.begin()->first),
            "give a new folder", Place{folder.string()}};
    std::vector<std::string> names = {kGroupsFile};
    for (std::size_t rank = 0; rank < traces.ranks(); ++rank)
        names.push_back(fmt::format("step.{}.et", rank));
    for (const std::string& name : names) {
        if (fs::is_directory(folder / name, error))
            return Problem{"MW1005", "a folder has the name of a trace", "move it away, or give another folder",
                Place{(folder / name).string()}};
    }
    const fs::path made = folder / ".meshwright-unfinished"; // all files are there before any is put in its place
    removeUnfinished(made); // of an export that was killed: the lock says that none is running
    auto written = writeAll(traces, names, made);
    for (const std::string& name : names) {
        if (written && (fs::rename(made / name, folder / name, error), error))
            written = cannotWriteFile(folder / name, error.value());
    }
    removeUnfinished(made);
    return written;
}

Result<ChakraFolder> findChakraFolder(const fs::path& path)
{
    constexpr const char* kForm = "give a folder with STEP.0.et, STEP.1.et and so on, or FOLDER/STEP where it has several";
    std::error_code error;
    const bool isFolder = fs::is_directory(path, error);
    const fs::path folder = isFolder ? path : path.has_parent_path() ? path.parent_path() : fs::path(".");
    auto traces = tracesIn(folder);
    if (!isFolder)
        std::erase_if(traces, [&](const auto& step) { return step.first != path.filename().string(); });
    const Place place{path.string()};
    if (traces.empty())
        return Problem{"MW1783", "there are no Chakra traces", kForm, place};
    if (traces.size() > 1)
        return Problem{"MW1783",
            fmt::format("there are traces of several steps: {} and {}", traces.begin()->first, traces.rbegin()->first), kForm,
            place};
    ChakraFolder found;
    for (const auto& [rank, file] : traces.begin()->second) {
        if (rank != static_cast<std::int64_t>(found.files.size()))
            return Problem{"MW1783", fmt::format("the trace of rank {} is missing", found.files.size()),
                "ranks count from 0, each with a trace", place};
        found.files.push_back(file);
    }
    const fs::path groups = folder / kGroupsFile;
    if (!fs::exists(groups, error))
        return found;
    const auto text = readFile(groups);
    if (!text)
        return text.error();
    auto read = readProcessGroups(*text, groups.string());
    if (!read)
        return read.error();
    found.groups = *std::move(read);
    return found;
}

Result<ProcessGroups> readProcessGroups(std::string_view text, const std::string& file)
{
    constexpr const char* kForm = "write names of groups with their ranks: {\"1\": [0, 1], \"2\": [2, 3]}";
    const auto wrong = [&](std::string message) { return Problem{"MW1783", std::move(message), kForm, Place{file}}; };
    const auto json = !isWithinJsonLimits(text) ? nlohmann::json(nlohmann::json::value_t::discarded)
                                                : nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object())
        return wrong("this is not a JSON object");
    ProcessGroups groups;
    for (const auto& [name, ranks] : json.items()) {
        if (!ranks.is_array() || ranks.empty())
            return wrong(fmt::format("the group \"{}\" is not a list of ranks", name));
        std::vector<std::int64_t>& members = groups[name];
        std::set<std::int64_t> seen;
        for (const auto& rank : ranks) {
            if (!rank.is_number_integer() || rank < 0 || rank > std::int64_t{0x7fffffff})
                return wrong(fmt::format("the group \"{}\" has an entry that is not a rank", name));
            members.push_back(rank.get<std::int64_t>());
            if (!seen.insert(members.back()).second)
                return wrong(fmt::format("the group \"{}\" has rank {} twice", name, members.back()));
        }
    }
    return groups;
}

void addPyTorchGroups(std::string_view inputs, ProcessGroups& groups)
{
    const std::size_t first = inputs.find("[{");
    const std::size_t last = inputs.rfind("}]");
    if (first == std::string_view::npos || last == std::string_view::npos || last < first)
        return;
    const std::string_view text = inputs.substr(first, last + 2 - first);
    if (!isWithinJsonLimits(text))
        return;
    const auto json = nlohmann::json::parse(text, nullptr, false);
    for (const auto& entry : json.is_array() ? json : nlohmann::json::array()) {
        if (!entry.is_object() || !entry.contains("pg_name") || !entry.contains("ranks") || !entry["pg_name"].is_string())
            continue;
        const std::string name = entry["pg_name"].get<std::string>();
        if (entry["ranks"].is_array() && entry["ranks"].empty())
            groups.try_emplace(name);
        const nlohmann::json one = {{name, entry["ranks"]}};
        if (auto read = readProcessGroups(one.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), ""))
            groups.merge(*read);
    }
}

} // namespace meshwright::sim
