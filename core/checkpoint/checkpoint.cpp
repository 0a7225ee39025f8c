// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/checkpoint.h"

#include "core/checkpoint/safetensors.h"
#include "core/support/file.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <zlib.h>

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <system_error>

namespace meshwright {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kUnfinishedSuffix = ".part";

Problem cannotWrite(const fs::path& path, const std::string& reason)
{
    return Problem{"MW1640", fmt::format("cannot write the checkpoint \"{}\": {}", path.string(), reason),
        "name a folder that you may write to, on a disk with enough space", Place{path.string()}};
}

/// What went wrong with one of a checkpoint's files, as a problem of the checkpoint.
Problems ofCheckpoint(Problems problems)
{
    for (Problem& problem : problems) {
        if (problem.id == "MW1005" || problem.id == "MW1007")
            problem
                = {"MW1640", problem.message, "name a folder that you may write to, on a disk with enough space", problem.place};
    }
    return problems;
}

Result<Done> writeWhole(const fs::path& path, std::string_view content)
{
    auto file = NewFile::create(path);
    if (!file)
        return file.error();
    if (auto written = file->write(content.data(), content.size()); !written)
        return written;
    return file->flush();
}

std::vector<std::uint32_t> checksumsOf(const HostArray& piece)
{
    std::vector<std::uint32_t> sums;
    for (std::int64_t first = 0; first < piece.bytes(); first += kChecksumBlockBytes) {
        const auto count = static_cast<z_size_t>(std::min(kChecksumBlockBytes, piece.bytes() - first));
        sums.push_back(static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(piece.data() + first), count)));
    }
    return sums;
}

/// What one device writes.
struct Share {
    struct Part {
        std::size_t array;
        std::size_t piece;
    };
    std::vector<Part> parts;
    std::int64_t bytes = 0;
};

/// Of the devices that hold a piece, the one that has the least to write so far writes it.
std::map<std::int64_t, Share> sharesOf(const std::vector<ArrayToSave>& arrays)
{
    std::map<std::int64_t, Share> shares;
    for (std::size_t a = 0; a < arrays.size(); ++a) {
        for (std::size_t p = 0; p < arrays[a].pieces.size(); ++p) {
            const PieceToSave& piece = arrays[a].pieces[p];
            const std::int64_t bytes = boxElements(piece.box) * byteSize(arrays[a].type.dtype);
            if (bytes == 0 && arrays[a].type.elements() > 0)
                continue; // an uneven sharding leaves this device nothing
            const std::int64_t writer = *std::min_element(piece.holders.begin(), piece.holders.end(),
                [&](std::int64_t left, std::int64_t right) { return shares[left].bytes < shares[right].bytes; });
            shares[writer].parts.push_back({a, p});
            shares[writer].bytes += bytes;
        }
    }
    std::erase_if(shares, [](const auto& share) { return share.second.parts.empty(); });
    return shares;
}

std::string dataName(std::int64_t device)
{
    return fmt::format("device-{:05}.safetensors", device);
}

class Writer {
public:
    Writer(fs::path folder, const SavedState& state, const std::vector<ArrayToSave>& arrays)
        : m_folder(std::move(folder))
        , m_arrays(arrays)
    {
        m_checkpoint.state = state;
        for (const ArrayToSave& array : arrays)
            m_checkpoint.arrays.push_back({array.name, array.type, array.sharding, {}});
    }

    Result<Done> write()
    {
        for (const auto& [device, share] : sharesOf(m_arrays)) {
            if (auto written = writeShare(device, share); !written)
                return written;
        }
        return writeWhole(m_folder / kManifestName, manifestText(m_checkpoint));
    }

private:
    Result<Done> writeShare(std::int64_t device, const Share& share)
    {
        const std::string name = dataName(device);
        std::vector<SafetensorsEntry> entries;
        std::map<std::string, std::string> metadata = {{"format", "meshwright.checkpoint/1"}, {"device", std::to_string(device)},
            {"mesh", m_checkpoint.state.mesh}, {"step", std::to_string(m_checkpoint.state.step)}};
        for (const auto& [a, p] : share.parts) {
            const ArrayToSave& array = m_arrays[a];
            entries.push_back({array.name, {array.type.dtype, extentsOf(array.pieces[p].box)}, 0});
            metadata[array.name] = fmt::format("{} of {}", boxText(array.pieces[p].box), typeText(array.type));
        }
        const std::string header = safetensorsHeader(entries, metadata);
        auto file = NewFile::create(m_folder / name);
        if (!file)
            return file.error();
        if (auto written = file->write(header.data(), header.size()); !written)
            return written;
        for (std::size_t i = 0; i < entries.size(); ++i) {
            const auto& [a, p] = share.parts[i];
            const PieceToSave& piece = m_arrays[a].pieces[p];
            const Result<HostArray> content = piece.read(device);
            if (!content)
                return content.error();
            assert(content->type() == entries[i].type);
            if (auto written = file->write(content->data(), static_cast<std::size_t>(content->bytes())); !written)
                return written;
            m_checkpoint.arrays[a].pieces.push_back(
                {piece.box, m_checkpoint.files.size(), entries[i].offset, checksumsOf(*content)});
        }
        const auto headerSum = crc32_z(0, reinterpret_cast<const Bytef*>(header.data()), header.size());
        m_checkpoint.files.push_back({name, static_cast<std::int64_t>(header.size()) + share.bytes,
            static_cast<std::int64_t>(header.size()), static_cast<std::uint32_t>(headerSum)});
        return file->flush();
    }

    fs::path m_folder;
    const std::vector<ArrayToSave>& m_arrays;
    Checkpoint m_checkpoint;
};

std::string stepName(std::int64_t step)
{
    return fmt::format("{}{:09}", kStepPrefix, step);
}

/// A name beside a checkpoint that no other one has: what has it is on its way in or out.
fs::path unfinishedOf(fs::path path)
{
    static std::atomic<std::int64_t> count = std::chrono::system_clock::now().time_since_epoch().count();
    path += fmt::format(".{}{}", ++count, kUnfinishedSuffix);
    return path;
}

/// The step of a folder's name; nothing unless the name is just as `stepName` writes it.
std::optional<std::int64_t> stepOf(const std::string& name)
{
    const std::string_view digits = std::string_view(name).substr(std::min(kStepPrefix.size(), name.size()));
    const auto step = parseInteger(digits);
    return step && *step >= 0 && stepName(*step) == name ? step : std::nullopt;
}

/// `step-000000030.4711.part`: of a checkpoint that was being written or removed when its process was killed.
bool isUnfinishedName(std::string_view name)
{
    if (!name.ends_with(kUnfinishedSuffix))
        return false;
    name.remove_suffix(kUnfinishedSuffix.size());
    const std::size_t dot = name.rfind('.');
    return dot != std::string_view::npos && parseInteger(name.substr(dot + 1)) && stepOf(std::string(name.substr(0, dot)));
}

bool isDataName(std::string_view name)
{
    constexpr std::string_view kPrefix = "device-";
    constexpr std::string_view kSuffix = ".safetensors";
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.size() < kPrefix.size() + kSuffix.size())
        return false;
    const std::string_view digits = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
    const auto device = parseInteger(digits);
    return device && *device >= 0 && dataName(*device) == name;
}

/// The entries of a folder; nothing when it is none (a link to one is none), or holds anything but files.
std::optional<std::vector<std::string>> filesIn(const fs::path& folder)
{
    std::error_code error;
    if (!fs::is_directory(fs::symlink_status(folder, error)))
        return std::nullopt;
    std::vector<std::string> names;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        if (!fs::is_regular_file(entry->symlink_status(error)))
            return std::nullopt;
        names.push_back(entry->path().filename().string());
    }
    return error ? std::nullopt : std::optional(std::move(names));
}

/// Whether a folder holds a manifest, and beside it nothing but the files that the manifest names. A damaged manifest names all files that have
/// the names of checkpoints' files.
bool isOurs(const fs::path& folder)
{
    const auto files = filesIn(folder);
    if (!files || std::find(files->begin(), files->end(), kManifestName) == files->end())
        return false;
    const fs::path path = folder / kManifestName;
    const auto text = readFile(path);
    const auto manifest = text ? readManifest(*text, path.string()) : Result<Checkpoint>(text.error());
    const auto isNamed = [&](const std::string& name) {
        return manifest ? std::any_of(
                   manifest->files.begin(), manifest->files.end(), [&](const CheckpointFile& file) { return file.name == name; })
                        : isDataName(name);
    };
    return std::all_of(
        files->begin(), files->end(), [&](const std::string& name) { return name == kManifestName || isNamed(name); });
}

/// Removes the files of a checkpoint, its manifest first, and then its folder, which stays where it holds anything else.
void removeFiles(const fs::path& folder)
{
    std::error_code error;
    fs::remove(folder / kManifestName, error);
    for (const std::string& name : filesIn(folder).value_or(std::vector<std::string>())) {
        if (isDataName(name))
            fs::remove(folder / name, error);
    }
    fs::remove(folder, error); // only when it is empty
}

void removeUnfinished(const fs::path& folder)
{
    std::error_code error;
    std::vector<fs::path> remains;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        if (isUnfinishedName(entry->path().filename().string()) && filesIn(entry->path()))
            remains.push_back(entry->path());
    }
    for (const fs::path& path : remains)
        removeFiles(path);
}

/// Whether anything has this name, be it a link that leads nowhere.
bool isTaken(const fs::path& path)
{
    std::error_code error;
    return fs::exists(fs::symlink_status(path, error));
}

/// Gives a new checkpoint its name; one that has it already gets the new one's. Returns 0, or the system's error.
int putInPlace(const fs::path& unfinished, const fs::path& path)
{
    if (!isTaken(path))
        return ::rename(unfinished.c_str(), path.c_str()) == 0 ? 0 : errno;
    if (::renameat2(AT_FDCWD, unfinished.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0)
        return 0;
    // A file system that cannot exchange two folders: for a moment the name is nobody's.
    const fs::path replaced = unfinishedOf(path);
    if (::rename(path.c_str(), replaced.c_str()) != 0)
        return errno;
    if (::rename(unfinished.c_str(), path.c_str()) != 0) {
        const int reason = errno;
        ::rename(replaced.c_str(), path.c_str());
        return reason;
    }
    removeFiles(replaced);
    return 0;
}

Problem inTheWay(const fs::path& path)
{
    return Problem{"MW1649", fmt::format("\"{}\" is in the way of a checkpoint and is not one", path.string()),
        "move it away, or name another folder", Place{path.string()}, Severity::Error,
        "only folders that hold a checkpoint and nothing else are replaced"};
}

} // namespace

Result<CheckpointFolder> CheckpointFolder::open(const fs::path& path)
{
    std::error_code error;
    fs::create_directories(path, error);
    if (error)
        return cannotWrite(path, error.message());
    auto lock = FolderLock::take(path);
    if (!lock)
        return ofCheckpoint(lock.error());
    removeUnfinished(path);
    return CheckpointFolder(path, *std::move(lock));
}

Result<Done> CheckpointFolder::checkPlaces(std::int64_t first, std::int64_t last) const
{
    Problems problems;
    std::error_code error;
    for (fs::directory_iterator entry(m_path, error), end; !error && entry != end; entry.increment(error)) {
        const auto step = stepOf(entry->path().filename().string());
        if (step && *step >= first && *step <= last && !isOurs(entry->path()))
            problems.push_back(inTheWay(entry->path()));
    }
    if (!problems.empty())
        return problems;
    return Done{};
}

std::vector<std::int64_t> CheckpointFolder::steps() const
{
    std::vector<std::int64_t> found;
    for (const fs::path& path : checkpointsIn(m_path))
        found.push_back(stepOf(path.filename().string()).value());
    return found;
}

Result<fs::path> CheckpointFolder::write(
    const SavedState& state, const std::vector<ArrayToSave>& arrays, const std::function<Result<Done>()>& approve) const
{
    for (const ArrayToSave& array : arrays) {
        if (!safetensorsTypeName(array.type.dtype))
            return cannotWrite(m_path, fmt::format("safetensors has no type for {} ({})", array.name, typeText(array.type)));
    }
    const fs::path path = m_path / stepName(state.step);
    if (auto isFree = checkPlaces(state.step, state.step); !isFree)
        return isFree.error();

    const fs::path unfinished = unfinishedOf(path);
    std::error_code error;
    const auto fail = [&](Problems problems) {
        removeFiles(unfinished);
        return ofCheckpoint(std::move(problems));
    };
    if (!fs::create_directory(unfinished, error))
        return cannotWrite(unfinished, error ? error.message() : "it exists already");
    if (auto written = Writer(unfinished, state, arrays).write(); !written)
        return fail(written.error());
    if (auto approved = approve ? approve() : Result<Done>(Done{}); !approved)
        return fail(approved.error());
    flushFolder(unfinished);
    if (const int reason = putInPlace(unfinished, path); reason != 0)
        return fail({cannotWrite(path, std::strerror(reason))});
    flushFolder(m_path);
    removeFiles(unfinished); // what was replaced
    return path;
}

void CheckpointFolder::removeOld(const fs::path& written, std::size_t kept) const
{
    assert(kept >= 1);
    std::vector<fs::path> ours = checkpointsIn(m_path);
    std::erase_if(ours, [](const fs::path& path) { return !isOurs(path); });
    const auto isWritten = [&](const fs::path& one) { return one.filename() == written.filename(); };
    auto old = std::find_if(ours.begin(), ours.end(), isWritten);
    std::error_code error;
    for (old += std::min(static_cast<std::ptrdiff_t>(kept), ours.end() - old); old != ours.end(); ++old) {
        // It loses its name first, so that what has the name of a step is complete at any moment.
        const fs::path unfinished = unfinishedOf(*old);
        if (fs::rename(*old, unfinished, error), !error)
            removeFiles(unfinished);
    }
}

Result<Done> readAsWritten(const std::vector<ArrayToSave>& arrays)
{
    for (const auto& [device, share] : sharesOf(arrays)) {
        for (const auto& [a, p] : share.parts) {
            if (const auto piece = arrays[a].pieces[p].read(device); !piece)
                return piece.error();
        }
    }
    return Done{};
}

std::vector<fs::path> checkpointsIn(const fs::path& folder)
{
    std::vector<std::pair<std::int64_t, fs::path>> found;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        const auto step = stepOf(entry->path().filename().string());
        if (step && fs::is_directory(entry->path(), error))
            found.emplace_back(*step, entry->path());
    }
    std::sort(found.begin(), found.end(), std::greater<>());
    std::vector<fs::path> paths;
    for (auto& [step, path] : found)
        paths.push_back(std::move(path));
    return paths;
}

} // namespace meshwright
