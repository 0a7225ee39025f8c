// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/checkpoint_reader.h"

#include "core/support/file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace meshwright {

namespace fs = std::filesystem;

namespace {

/// A stretch of bytes that lies in one piece, and where it goes in the box that is read.
struct Stretch {
    std::int64_t from = 0; ///< from the piece's start
    std::int64_t to = 0; ///< from the box's start
    std::int64_t bytes = 0;
};

/// Calls `visit(Stretch)` for the part of `piece` that lies in `box`, in the piece's order. Trailing dimensions that are whole on both sides are one
/// stretch with the dimension before them.
template <typename Visit>
void forEachStretch(const IndexBox& piece, const IndexBox& box, std::int64_t width, Visit visit)
{
    const IndexBox common = intersection(piece, box);
    if (boxElements(common) == 0)
        return;
    std::size_t rows = common.size(); // dimensions before `rows` are walked, the others are one stretch
    std::int64_t run = width;
    while (rows > 0) {
        --rows;
        run *= common[rows].size();
        if (common[rows] != piece[rows] || common[rows] != box[rows])
            break;
    }
    std::vector<std::int64_t> at(common.size());
    for (std::size_t dim = 0; dim < common.size(); ++dim)
        at[dim] = common[dim].start;
    const auto offsetIn = [&](const IndexBox& in) {
        std::int64_t offset = 0;
        for (std::size_t dim = 0; dim < in.size(); ++dim)
            offset = offset * in[dim].size() + (at[dim] - in[dim].start);
        return offset * width;
    };
    while (true) {
        visit(Stretch{offsetIn(piece), offsetIn(box), run});
        std::size_t dim = rows;
        while (dim > 0 && ++at[dim - 1] == common[dim - 1].stop) {
            at[dim - 1] = common[dim - 1].start;
            --dim;
        }
        if (dim == 0)
            return;
    }
}

/// A file being read; opened at its first use.
class OpenFile {
public:
    explicit OpenFile(fs::path path)
        : m_path(std::move(path))
    {
    }
    OpenFile(OpenFile&& other) noexcept
        : m_path(std::move(other.m_path))
        , m_descriptor(std::exchange(other.m_descriptor, -1))
    {
    }
    OpenFile& operator=(OpenFile&&) = delete;
    ~OpenFile()
    {
        if (m_descriptor >= 0)
            ::close(m_descriptor);
    }

    Result<Done> read(std::byte* to, std::int64_t offset, std::int64_t bytes)
    {
        if (m_descriptor < 0)
            m_descriptor = ::open(m_path.c_str(), O_RDONLY | O_CLOEXEC);
        while (bytes > 0) {
            const ::ssize_t got = m_descriptor < 0 ? -1 : ::pread(m_descriptor, to, static_cast<std::size_t>(bytes), offset);
            if (got < 0 && m_descriptor >= 0 && errno == EINTR)
                continue;
            if (got <= 0)
                return Problem{"MW1003",
                    fmt::format("cannot read \"{}\": {}", m_path.string(), got < 0 ? std::strerror(errno) : "it ends too early"),
                    kRestore, Place{m_path.string()}};
            to += got;
            offset += got;
            bytes -= got;
        }
        return Done{};
    }

private:
    fs::path m_path;
    int m_descriptor = -1;
};

/// The block that was read last.
struct Block {
    const CheckpointPiece* piece = nullptr;
    std::int64_t index = -1;
    std::vector<std::byte> bytes;
};

std::uint32_t checksumOf(const std::vector<std::byte>& bytes)
{
    return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// The headers are for other readers: this one goes by the manifest.
Problems headerProblems(const fs::path& path, const std::vector<CheckpointFile>& files)
{
    Problems problems;
    for (const CheckpointFile& file : files) {
        if (file.headerBytes == 0)
            continue;
        const fs::path name = path / file.name;
        std::vector<std::byte> header(static_cast<std::size_t>(file.headerBytes));
        if (auto done = OpenFile(name).read(header.data(), 0, file.headerBytes); !done)
            append(problems, done.error());
        else if (const std::uint32_t sum = checksumOf(header); sum != file.headerChecksum)
            problems.push_back({"MW1642",
                fmt::format("\"{}\" is damaged: the checksum of its header, bytes 0 to {}, is {:08x}, it should be {:08x}",
                    name.string(), file.headerBytes, sum, file.headerChecksum),
                kRestore, Place{name.string()}});
    }
    return problems;
}

Result<Checkpoint> readCheckpoint(const fs::path& path)
{
    const fs::path manifest = path / kManifestName;
    const auto text = readFile(manifest);
    if (!text)
        return text.error();
    auto checkpoint = readManifest(*text, manifest.string());
    if (!checkpoint)
        return checkpoint;
    Problems problems;
    for (const CheckpointFile& file : checkpoint->files) {
        std::error_code error;
        const auto size = fs::file_size(path / file.name, error);
        if (error || size != static_cast<std::uintmax_t>(file.bytes))
            problems.push_back({"MW1645",
                error ? fmt::format("\"{}\" is missing: {}", file.name, error.message())
                      : fmt::format("\"{}\" has {} bytes, it should have {}", file.name, size, file.bytes),
                kRestore, Place{(path / file.name).string()}});
    }
    if (problems.empty())
        problems = headerProblems(path, checkpoint->files);
    if (!problems.empty())
        return problems;
    return checkpoint;
}

} // namespace

class CheckpointReader::Implementation {
public:
    Implementation(fs::path path, Checkpoint checkpoint)
        : m_path(std::move(path))
        , m_checkpoint(std::move(checkpoint))
    {
        for (const CheckpointFile& file : m_checkpoint.files)
            m_files.emplace_back(m_path / file.name);
    }

    Result<HostArray> read(std::size_t index, const IndexBox& box)
    {
        const CheckpointArray& array = m_checkpoint.arrays[index];
        HostArray result(TensorType{array.type.dtype, extentsOf(box)});
        std::int64_t filled = 0;
        for (const CheckpointPiece& piece : array.pieces) {
            Problems problems;
            forEachStretch(piece.box, box, byteSize(array.type.dtype), [&](const Stretch& stretch) {
                if (!problems.empty())
                    return;
                const Result<Done> done = copy(array, piece, stretch.from, stretch.bytes, result.data() + stretch.to);
                if (!done)
                    problems = done.error();
                filled += stretch.bytes;
            });
            if (!problems.empty())
                return problems;
        }
        if (filled != result.bytes())
            return Problem{"MW1641", fmt::format("the pieces of {} overlap, so a part of it is missing", array.name), kRestore,
                Place{(m_path / kManifestName).string()}};
        return result;
    }

    std::vector<ReadFromFile> needs(std::size_t index, const IndexBox& box) const
    {
        const CheckpointArray& array = m_checkpoint.arrays[index];
        std::vector<ReadFromFile> needed;
        for (const CheckpointPiece& piece : array.pieces) {
            ReadFromFile read{piece.file, 0, 0};
            std::int64_t end = -1;
            forEachStretch(piece.box, box, byteSize(array.type.dtype), [&](const Stretch& stretch) {
                read.ranges += stretch.from == end ? 0 : 1;
                read.bytes += stretch.bytes;
                end = stretch.from + stretch.bytes;
            });
            if (read.bytes > 0)
                needed.push_back(read);
        }
        return needed;
    }

    /// Reads every block. Problems: as `read`; the first.
    Result<Done> checkContent()
    {
        Result<Done> sound = Done{};
        for (const CheckpointArray& array : m_checkpoint.arrays) {
            for (const CheckpointPiece& piece : array.pieces) {
                for (std::size_t block = 0; sound && block < piece.checksums.size(); ++block)
                    sound = load(array, piece, static_cast<std::int64_t>(block));
            }
        }
        m_bytesRead = 0; // for nobody yet
        return sound;
    }

    fs::path m_path;
    Checkpoint m_checkpoint;
    Problems m_passedOver;
    std::int64_t m_bytesRead = 0;

private:
    /// Copies a stretch of a piece out of its blocks.
    Result<Done> copy(
        const CheckpointArray& array, const CheckpointPiece& piece, std::int64_t from, std::int64_t bytes, std::byte* to)
    {
        while (bytes > 0) {
            const std::int64_t block = from / kChecksumBlockBytes;
            if (auto loaded = load(array, piece, block); !loaded)
                return loaded;
            const std::int64_t start = from - block * kChecksumBlockBytes;
            const std::int64_t count = std::min(bytes, static_cast<std::int64_t>(m_block.bytes.size()) - start);
            std::memcpy(to, m_block.bytes.data() + start, static_cast<std::size_t>(count));
            from += count;
            to += count;
            bytes -= count;
        }
        return Done{};
    }

    Result<Done> load(const CheckpointArray& array, const CheckpointPiece& piece, std::int64_t index)
    {
        if (m_block.piece == &piece && m_block.index == index)
            return Done{};
        const std::int64_t size = boxElements(piece.box) * byteSize(array.type.dtype);
        const std::int64_t start = index * kChecksumBlockBytes;
        m_block.piece = nullptr;
        m_block.bytes.resize(static_cast<std::size_t>(std::min(kChecksumBlockBytes, size - start)));
        const auto count = static_cast<std::int64_t>(m_block.bytes.size());
        if (auto done = m_files[piece.file].read(m_block.bytes.data(), piece.offset + start, count); !done)
            return done;
        m_bytesRead += count;
        const std::uint32_t sum = checksumOf(m_block.bytes);
        if (sum != piece.checksums[static_cast<std::size_t>(index)]) {
            const std::string file = (m_path / m_checkpoint.files[piece.file].name).string();
            return Problem{"MW1642",
                fmt::format("\"{}\" is damaged: the checksum of bytes {} to {}, in {}, is {:08x}, it should be {:08x}", file,
                    piece.offset + start, piece.offset + start + count, array.name, sum,
                    piece.checksums[static_cast<std::size_t>(index)]),
                kRestore, Place{file}};
        }
        m_block.piece = &piece;
        m_block.index = index;
        return Done{};
    }

    std::vector<OpenFile> m_files;
    Block m_block;
};

CheckpointReader::CheckpointReader(std::unique_ptr<Implementation> implementation)
    : m_implementation(std::move(implementation))
{
}

CheckpointReader::~CheckpointReader() = default;

Result<std::unique_ptr<CheckpointReader>> CheckpointReader::open(const fs::path& path, CheckpointCheck check)
{
    std::error_code error;
    if (!fs::exists(path, error))
        return Problem{
            "MW1001", fmt::format("no such checkpoint: \"{}\"", path.string()), "check the path", Place{path.string()}};
    const auto opened = [](const fs::path& candidate) -> Result<std::unique_ptr<Implementation>> {
        auto checkpoint = readCheckpoint(candidate);
        if (!checkpoint)
            return checkpoint.error();
        return std::make_unique<Implementation>(candidate, *std::move(checkpoint));
    };
    const auto readerOf = [](std::unique_ptr<Implementation> implementation) {
        return std::unique_ptr<CheckpointReader>(new CheckpointReader(std::move(implementation)));
    };
    if (fs::exists(path / kManifestName, error)) {
        auto one = opened(path);
        if (!one)
            return one.error();
        return readerOf(*std::move(one));
    }
    Problems passedOver;
    for (const fs::path& candidate : checkpointsIn(path)) {
        auto found = opened(candidate);
        Problems problems;
        if (!found)
            problems = found.error();
        else if (check == CheckpointCheck::Content) {
            if (const auto sound = (*found)->checkContent(); !sound)
                problems = sound.error();
        }
        if (problems.empty()) {
            (*found)->m_passedOver = std::move(passedOver);
            return readerOf(*std::move(found));
        }
        for (Problem& problem : problems) {
            problem.severity = Severity::Warning;
            problem.message = fmt::format("{} is skipped: {}", candidate.filename().string(), problem.message);
        }
        append(passedOver, problems);
    }
    append(passedOver,
        {{"MW1644", fmt::format("\"{}\" holds no complete checkpoint", path.string()),
            "name a folder that `train --checkpoint` wrote, or one of its step- folders", Place{path.string()}}});
    return passedOver;
}

const fs::path& CheckpointReader::path() const
{
    return m_implementation->m_path;
}

const Checkpoint& CheckpointReader::checkpoint() const
{
    return m_implementation->m_checkpoint;
}

const Problems& CheckpointReader::passedOver() const
{
    return m_implementation->m_passedOver;
}

std::optional<std::size_t> CheckpointReader::find(std::string_view name) const
{
    const auto& arrays = checkpoint().arrays;
    const auto found
        = std::find_if(arrays.begin(), arrays.end(), [&](const CheckpointArray& array) { return array.name == name; });
    if (found == arrays.end())
        return std::nullopt;
    return static_cast<std::size_t>(found - arrays.begin());
}

Result<HostArray> CheckpointReader::read(std::size_t array, const IndexBox& box)
{
    return m_implementation->read(array, box);
}

std::int64_t CheckpointReader::bytesRead() const
{
    return m_implementation->m_bytesRead;
}

std::vector<ReadFromFile> CheckpointReader::needs(std::size_t array, const IndexBox& box) const
{
    return m_implementation->needs(array, box);
}

} // namespace meshwright
