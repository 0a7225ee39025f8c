// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/checkpoint.h"

#include "core/checkpoint/safetensors.h"

#include <fmt/format.h>
#include <zlib.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
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

/// A file being written, flushed to the disk when it is closed.
class NewFile {
public:
    explicit NewFile(fs::path path)
        : m_path(std::move(path))
        , m_descriptor(::open(m_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644))
    {
    }
    ~NewFile()
    {
        if (m_descriptor >= 0)
            ::close(m_descriptor);
    }
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    Result<Done> write(const void* bytes, std::size_t count)
    {
        const char* next = static_cast<const char*>(bytes);
        while (count > 0) {
            const ::ssize_t written = ::write(m_descriptor, next, count);
            if (written < 0 && errno == EINTR)
                continue;
            if (written <= 0)
                return cannotWrite(m_path, std::strerror(errno));
            next += written;
            count -= static_cast<std::size_t>(written);
        }
        return Done{};
    }

    Result<Done> close()
    {
        const bool isFlushed = ::fsync(m_descriptor) == 0;
        const int reason = errno;
        const bool isClosed = ::close(std::exchange(m_descriptor, -1)) == 0;
        if (!isFlushed || !isClosed)
            return cannotWrite(m_path, std::strerror(isFlushed ? errno : reason));
        return Done{};
    }

private:
    fs::path m_path;
    int m_descriptor;
};

Result<Done> writeWhole(const fs::path& path, std::string_view content)
{
    NewFile file(path);
    if (auto written = file.write(content.data(), content.size()); !written)
        return written;
    return file.close();
}

/// A rename lasts only when the folder's own entry is on the disk.
void flushFolder(const fs::path& folder)
{
    if (const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); descriptor >= 0) {
        ::fsync(descriptor);
        ::close(descriptor);
    }
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
        const std::string name = fmt::format("device-{:05}.safetensors", device);
        std::vector<SafetensorsEntry> entries;
        std::map<std::string, std::string> metadata = {{"format", "meshwright.checkpoint/1"}, {"device", std::to_string(device)},
            {"mesh", m_checkpoint.state.mesh}, {"step", std::to_string(m_checkpoint.state.step)}};
        for (const auto& [a, p] : share.parts) {
            const ArrayToSave& array = m_arrays[a];
            Shape shape;
            for (const IndexRange& range : array.pieces[p].box)
                shape.push_back(range.size());
            entries.push_back({array.name, {array.type.dtype, shape}, 0});
            metadata[array.name] = fmt::format("{} of {}", boxText(array.pieces[p].box), typeText(array.type));
        }
        const std::string header = safetensorsHeader(entries, metadata);
        NewFile file(m_folder / name);
        if (auto written = file.write(header.data(), header.size()); !written)
            return written;
        for (std::size_t i = 0; i < entries.size(); ++i) {
            const auto& [a, p] = share.parts[i];
            const PieceToSave& piece = m_arrays[a].pieces[p];
            const Result<HostArray> content = piece.read(device);
            if (!content)
                return content.error();
            assert(content->type() == entries[i].type);
            if (auto written = file.write(content->data(), static_cast<std::size_t>(content->bytes())); !written)
                return written;
            m_checkpoint.arrays[a].pieces.push_back(
                {piece.box, m_checkpoint.files.size(), entries[i].offset, checksumsOf(*content)});
        }
        const auto headerSum = crc32_z(0, reinterpret_cast<const Bytef*>(header.data()), header.size());
        m_checkpoint.files.push_back({name, static_cast<std::int64_t>(header.size()) + share.bytes,
            static_cast<std::int64_t>(header.size()), static_cast<std::uint32_t>(headerSum)});
        return file.close();
    }

    fs::path m_folder;
    const std::vector<ArrayToSave>& m_arrays;
    Checkpoint m_checkpoint;
};

bool isUnfinished(const fs::path& path)
{
    const std::string name = path.filename().string();
    return name.starts_with(kStepPrefix) && name.ends_with(kUnfinishedSuffix);
}

void removeUnfinished(const fs::path& folder)
{
    std::error_code error;
    std::vector<fs::path> remains;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        if (isUnfinished(entry.path()))
            remains.push_back(entry.path());
    }
    for (const fs::path& path : remains)
        fs::remove_all(path, error);
}

} // namespace

Result<fs::path> writeCheckpoint(const fs::path& folder, const SavedState& state, const std::vector<ArrayToSave>& arrays)
{
    for (const ArrayToSave& array : arrays) {
        if (!safetensorsTypeName(array.type.dtype))
            return cannotWrite(folder, fmt::format("safetensors has no type for {} ({})", array.name, typeText(array.type)));
    }
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
        return cannotWrite(folder, error.message());
    removeUnfinished(folder);

    const fs::path path = folder / fmt::format("{}{:09}", kStepPrefix, state.step);
    fs::path unfinished = path;
    unfinished += fmt::format(".{}{}", ::getpid(), kUnfinishedSuffix);
    const auto fail = [&](Problems problems) {
        fs::remove_all(unfinished, error);
        return problems;
    };
    if (!fs::create_directory(unfinished, error))
        return cannotWrite(unfinished, error ? error.message() : "it exists already");
    if (auto written = Writer(unfinished, state, arrays).write(); !written)
        return fail(written.error());
    flushFolder(unfinished);
    // A folder is renamed only over an empty one, so what is in the way leaves first: until then it is the newest complete one.
    fs::path replaced = path;
    replaced += fmt::format(".old{}", kUnfinishedSuffix);
    if (fs::exists(path)) {
        fs::remove_all(replaced, error);
        fs::rename(path, replaced, error);
        if (error)
            return fail({cannotWrite(path, error.message())});
    }
    fs::rename(unfinished, path, error);
    if (error)
        return fail({cannotWrite(path, error.message())});
    flushFolder(folder);
    fs::remove_all(replaced, error);
    return path;
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
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        const std::string digits = name.substr(std::min(kStepPrefix.size(), name.size()));
        const bool isStep = name.starts_with(kStepPrefix) && !digits.empty() && digits.size() <= 18
            && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
        if (isStep && fs::is_directory(entry.path(), error))
            found.emplace_back(std::stoll(digits), entry.path());
    }
    std::sort(found.begin(), found.end(), std::greater<>());
    std::vector<fs::path> paths;
    for (auto& [step, path] : found)
        paths.push_back(std::move(path));
    return paths;
}

void removeOldCheckpoints(const fs::path& written, std::size_t kept)
{
    assert(kept >= 1);
    const std::vector<fs::path> all = checkpointsIn(written.parent_path());
    const auto isWritten = [&](const fs::path& one) { return one.filename() == written.filename(); };
    auto old = std::find_if(all.begin(), all.end(), isWritten);
    std::error_code error;
    for (old += std::min(static_cast<std::ptrdiff_t>(kept), all.end() - old); old != all.end(); ++old) {
        // The manifest goes first, so that what a crash leaves behind is no checkpoint.
        fs::remove(*old / kManifestName, error);
        fs::remove_all(*old, error);
    }
}

} // namespace meshwright
