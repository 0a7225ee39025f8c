// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace meshwright {

namespace fs = std::filesystem;

namespace {

// ---- reading

Problem tooLarge(const std::string& name, std::uint64_t largestBytes)
{
    return Problem{
        "MW1004", fmt::format("\"{}\" is larger than {} bytes", name, largestBytes), "name another file, or split this one"};
}

using Stream = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// `content`: an empty one, with room for what is expected.
Result<std::string> readStream(std::FILE* stream, const std::string& name, std::uint64_t largestBytes, std::string content = {})
{
    char chunk[1 << 16];
    std::size_t got = 0;
    while ((got = std::fread(chunk, 1, sizeof chunk, stream)) > 0) {
        content.append(chunk, got);
        if (content.size() > largestBytes)
            return tooLarge(name, largestBytes);
    }
    if (std::ferror(stream) != 0)
        return Problem{"MW1003", fmt::format("cannot read \"{}\": {}", name, std::strerror(errno))};
    return content;
}

// ---- writing

Problem cannotWrite(const fs::path& path, const std::string& reason)
{
    return Problem{"MW1005", fmt::format("cannot write \"{}\": {}", path.string(), reason),
        "name a file in a folder that exists and that you may write to", Place{path.string()}};
}

Problem cannotWriteInto(const fs::path& folder, const std::string& reason)
{
    Problem problem = cannotWrite(folder, reason);
    problem.fix = "name a folder that you may write to, or one that can be made";
    return problem;
}

/// 0, or the system's error. The descriptor is a file's, a device's or a pipe's.
int writeAll(int descriptor, const void* bytes, std::size_t count)
{
    const char* next = static_cast<const char*>(bytes);
    while (count > 0) {
        const ::ssize_t written = ::write(descriptor, next, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written == 0 ? ENOSPC : errno;
        next += written;
        count -= static_cast<std::size_t>(written);
    }
    return 0;
}

bool isDeviceOrPipe(const fs::file_status& status)
{
    return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

Result<Done> writeInPlace(const fs::path& path, std::string_view content)
{
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    const int error = descriptor < 0 ? errno : writeAll(descriptor, content.data(), content.size());
    if (descriptor >= 0)
        ::close(descriptor);
    if (error != 0)
        return cannotWriteFile(path, error);
    return Done{};
}

/// Where the links that begin at `path` end, whether or not something is there.
fs::path endOfLinks(fs::path path)
{
    constexpr int kMostLinks = 40;
    std::error_code error;
    for (int i = 0; i < kMostLinks && fs::is_symlink(fs::symlink_status(path, error)); ++i) {
        const fs::path next = fs::read_symlink(path, error);
        if (error)
            break;
        path = next.is_absolute() ? next : path.parent_path() / next;
    }
    return path;
}

fs::path folderOf(const fs::path& file)
{
    return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

// ---- temporary files

constexpr std::string_view kTemporaryPrefix = ".meshwright-";
constexpr std::string_view kTemporarySuffix = ".part";
constexpr std::size_t kTokenLetters = 16;

fs::path newTemporaryName(const fs::path& folder)
{
    std::uint64_t token = 0;
    if (::getrandom(&token, sizeof token, 0) != sizeof token)
        token = (static_cast<std::uint64_t>(::getpid()) << 32U) ^ static_cast<std::uint64_t>(::clock());
    return folder / fmt::format("{}{:0{}x}{}", kTemporaryPrefix, token, kTokenLetters, kTemporarySuffix);
}

bool isTemporaryName(std::string_view name)
{
    if (name.size() != kTemporaryPrefix.size() + kTokenLetters + kTemporarySuffix.size() || !name.starts_with(kTemporaryPrefix)
        || !name.ends_with(kTemporarySuffix))
        return false;
    return name.substr(kTemporaryPrefix.size(), kTokenLetters).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// A temporary file that its writer holds a lock on, which the system gives back when the writer dies. False: it was taken for an
/// abandoned one in the moment before, and is gone.
bool holdTemporary(int descriptor)
{
    struct stat status { };
    const bool isTaken = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; // some file systems have no locks
    return !isTaken && ::fstat(descriptor, &status) == 0 && status.st_nlink > 0;
}

/// A temporary file for what messages call `named`.
Result<NewFile> createTemporary(const fs::path& folder, mode_t mode, const fs::path& named)
{
    while (true) {
        auto file = NewFile::create(newTemporaryName(folder), mode, named);
        if (!file || holdTemporary(file->descriptor()))
            return file;
    }
}

/// Removes the temporary files of this user in a folder whose writers are gone.
void removeAbandoned(const fs::path& folder)
{
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        if (!isTemporaryName(entry->path().filename().native()))
            continue;
        const int descriptor = ::open(entry->path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (descriptor < 0)
            continue;
        struct stat status { };
        if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid()
            && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0)
            ::unlink(entry->path().c_str());
        ::close(descriptor);
    }
}

/// Gives a file the owner and permissions of the one that it replaces. Where the group cannot be kept, its members get no more than others.
void keepPermissions(int descriptor, const struct stat& replaced)
{
    mode_t mode = replaced.st_mode & 0777U;
    if (::fchown(descriptor, replaced.st_uid, replaced.st_gid) != 0
        && ::fchown(descriptor, static_cast<uid_t>(-1), replaced.st_gid) != 0)
        mode = (mode & 0707U) | ((mode & 0007U) << 3U);
    ::fchmod(descriptor, mode);
}

/// New content for a file, gathered beside it until `putInPlace`. What was not put in place is removed.
class Replacement {
public:
    /// `target`: no link. Problems: those of `cannotWriteFile`, about `path`.
    static Result<Replacement> begin(const fs::path& path, fs::path target)
    {
        std::optional<struct stat> replaced;
        if (struct stat status{}; ::stat(target.c_str(), &status) == 0)
            replaced = status;
        // A file that its owner has protected is not replaced, although the folder would allow it.
        if (replaced && ::access(target.c_str(), W_OK) != 0)
            return cannotWriteFile(path, errno);
        auto temporary = createTemporary(folderOf(target), replaced ? 0600 : 0666, path);
        if (!temporary)
            return temporary.error();
        return Replacement(path, std::move(target), *std::move(temporary), replaced);
    }

    Replacement(Replacement&&) = default;
    Replacement& operator=(Replacement&&) = delete;
    ~Replacement()
    {
        if (m_temporary.descriptor() >= 0 && !m_isInPlace)
            ::unlink(m_temporary.path().c_str());
    }

    Result<Done> write(std::string_view content) { return m_temporary.write(content.data(), content.size()); }

    Result<Done> putInPlace()
    {
        if (m_replaced)
            keepPermissions(m_temporary.descriptor(), *m_replaced);
        if (auto flushed = m_temporary.flush(); !flushed)
            return flushed;
        if (::rename(m_temporary.path().c_str(), m_target.c_str()) != 0)
            return cannotWriteFile(m_path, errno);
        m_isInPlace = true;
        flushFolder(folderOf(m_target));
        return Done{};
    }

private:
    Replacement(fs::path path, fs::path target, NewFile temporary, std::optional<struct stat> replaced)
        : m_path(std::move(path))
        , m_target(std::move(target))
        , m_temporary(std::move(temporary))
        , m_replaced(replaced)
    {
    }

    fs::path m_path;
    fs::path m_target;
    NewFile m_temporary;
    std::optional<struct stat> m_replaced;
    bool m_isInPlace = false;
};

/// What `path` is or points at; nothing for a device or a pipe, which is written to as it is. Problems: MW1005 it is a directory.
Result<std::optional<fs::path>> replaceableFile(const fs::path& path)
{
    std::error_code error;
    const auto status = fs::status(path, error);
    if (fs::is_directory(status))
        return cannotWrite(path, "it is a directory");
    if (isDeviceOrPipe(status))
        return std::optional<fs::path>();
    return std::optional(endOfLinks(path));
}

} // namespace

Problem cannotWriteFile(const fs::path& path, int error)
{
    const bool isFull = error == ENOSPC || error == EDQUOT || error == EFBIG;
    Problem problem = cannotWrite(path, std::strerror(error));
    if (isFull) {
        problem.id = "MW1007";
        problem.fix = "make room, or name a file on another disk";
    }
    return problem;
}

Result<std::string> readFile(const fs::path& path, std::uint64_t largestBytes)
{
    if (path == "-")
        return readStream(stdin, "standard input", largestBytes);

    const Place place{path.string()};
    std::error_code error;
    const auto status = fs::status(path, error);
    if (!fs::exists(status))
        return Problem{"MW1001", fmt::format("no such file: \"{}\"", path.string()), "check the path", place};
    if (fs::is_directory(status))
        return Problem{"MW1002", fmt::format("\"{}\" is a directory, not a file", path.string()), "name a file in it", place};

    // A regular file is judged before it is read; what grows or has no size (a pipe) is while it is.
    const auto size = fs::file_size(path, error);
    if (!error && size > largestBytes)
        return inFile({tooLarge(path.string(), largestBytes)}, path.string());
    if (fs::is_character_file(status))
        largestBytes = std::min(largestBytes, kLargestDeviceBytes);
    const Stream stream(std::fopen(path.c_str(), "rbe"), &std::fclose);
    if (!stream)
        return Problem{"MW1003", fmt::format("cannot read \"{}\": {}", path.string(), std::strerror(errno)),
            "check the file's permissions", place};
    std::string expected;
    if (!error)
        expected.reserve(size);
    auto content = readStream(stream.get(), path.string(), largestBytes, std::move(expected));
    if (!content)
        return inFile(content.error(), path.string());
    return content;
}

Result<NewFile> NewFile::create(fs::path path, mode_t mode, fs::path named)
{
    if (named.empty())
        named = path;
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (descriptor < 0)
        return cannotWriteFile(named, errno);
    return NewFile(std::move(path), std::move(named), descriptor);
}

NewFile::NewFile(fs::path path, fs::path named, int descriptor)
    : m_path(std::move(path))
    , m_named(std::move(named))
    , m_descriptor(descriptor)
{
}

NewFile::NewFile(NewFile&& other) noexcept
    : m_path(std::move(other.m_path))
    , m_named(std::move(other.m_named))
    , m_descriptor(std::exchange(other.m_descriptor, -1))
{
}

NewFile::~NewFile()
{
    if (m_descriptor >= 0)
        ::close(m_descriptor);
}

Result<Done> NewFile::write(const void* bytes, std::size_t count)
{
    if (const int error = writeAll(m_descriptor, bytes, count); error != 0)
        return cannotWriteFile(m_named, error);
    return Done{};
}

Result<Done> NewFile::flush()
{
    if (::fsync(m_descriptor) != 0)
        return cannotWriteFile(m_named, errno);
    return Done{};
}

void flushFolder(const fs::path& folder)
{
    if (const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); descriptor >= 0) {
        ::fsync(descriptor);
        ::close(descriptor);
    }
}

Result<Done> writeFileAtomically(const fs::path& path, std::string_view content)
{
    if (path == "-") {
        if (std::fwrite(content.data(), 1, content.size(), stdout) != content.size() || std::fflush(stdout) != 0)
            return cannotWriteFile("standard output", errno);
        return Done{};
    }
    auto target = replaceableFile(path);
    if (!target)
        return target.error();
    if (!*target)
        return writeInPlace(path, content);
    removeAbandoned(folderOf(**target));
    auto replacement = Replacement::begin(path, **std::move(target));
    if (!replacement)
        return replacement.error();
    if (auto written = replacement->write(content); !written)
        return written;
    return replacement->putInPlace();
}

Result<GrowingFile> GrowingFile::open(fs::path path, bool isNew)
{
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (isNew ? O_TRUNC : 0), 0666);
    if (descriptor < 0)
        return cannotWriteFile(path, errno);
    return GrowingFile(std::move(path), descriptor);
}

GrowingFile::GrowingFile(fs::path path, int descriptor)
    : m_path(std::move(path))
    , m_descriptor(descriptor)
{
}

GrowingFile::GrowingFile(GrowingFile&& other) noexcept
    : m_path(std::move(other.m_path))
    , m_descriptor(std::exchange(other.m_descriptor, -1))
{
}

GrowingFile::~GrowingFile()
{
    if (m_descriptor >= 0)
        ::close(m_descriptor);
}

Result<Done> GrowingFile::append(std::string_view line)
{
    struct stat before { };
    const bool isFile = ::fstat(m_descriptor, &before) == 0 && S_ISREG(before.st_mode);
    const int error = writeAll(m_descriptor, line.data(), line.size());
    if (error == 0)
        return Done{};
    if (isFile) // half a line is worse than none
        static_cast<void>(::ftruncate(m_descriptor, before.st_size) == 0);
    return cannotWriteFile(m_path, error);
}

Result<Done> checkWritable(const fs::path& path)
{
    if (path.empty() || path == "-")
        return Done{};
    auto target = replaceableFile(path);
    if (!target)
        return target.error();
    if (!*target)
        return ::access(path.c_str(), W_OK) == 0 ? Result<Done>(Done{}) : cannotWriteFile(path, errno);
    if (const auto replacement = Replacement::begin(path, **std::move(target)); !replacement)
        return replacement.error();
    return Done{};
}

Result<Done> checkFolderWritable(const fs::path& folder)
{
    if (folder.empty())
        return Done{};
    std::error_code error;
    fs::path there = fs::absolute(folder, error).lexically_normal();
    while (there.has_relative_path() && !fs::exists(there, error))
        there = there.parent_path();
    if (!fs::is_directory(there, error))
        return cannotWriteInto(folder, fmt::format("\"{}\" is not a folder", there.string()));
    if (::access(there.c_str(), W_OK | X_OK) != 0)
        return cannotWriteInto(folder, fmt::format("{} (\"{}\")", std::strerror(errno), there.string()));
    return Done{};
}

void reserveStandardStreams()
{
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF)
            continue;
        // Opened the other way round: what is read or written there fails, and is not lost in silence.
        const int descriptor = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        if (descriptor >= 0 && descriptor != stream) {
            ::dup2(descriptor, stream);
            ::close(descriptor);
        }
    }
}

} // namespace meshwright
