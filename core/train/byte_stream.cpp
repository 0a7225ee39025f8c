// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/byte_stream.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace meshwright {

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;

Problem cannotRead(const std::string& name, int error)
{
    return {
        "MW1003", fmt::format("cannot read \"{}\": {}", name, std::strerror(error)), "check the file's permissions", Place{name}};
}

/// As POSIX has it; a folder that is not there is a problem when it is used.
std::string temporaryFolder()
{
    const char* folder = std::getenv("TMPDIR");
    return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

Problem noRoom(const std::string& name, int error)
{
    return {"MW1608", fmt::format("not enough space for {} in {}: {}", name, temporaryFolder(), std::strerror(error)),
        "set TMPDIR to a folder on a larger disk"};
}

} // namespace

Result<std::shared_ptr<OpenFile>> OpenFile::open(const std::filesystem::path& path)
{
    const std::string name = path.string();
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
        return Problem{"MW1001", fmt::format("no such file: \"{}\"", name), "check the path", Place{name}};
    if (std::filesystem::is_directory(path, ignored))
        return Problem{"MW1002", fmt::format("\"{}\" is a directory, not a file", name), "name a file in it", Place{name}};
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return cannotRead(name, errno);
    return std::shared_ptr<OpenFile>(new OpenFile(descriptor, name));
}

Result<std::shared_ptr<OpenFile>> OpenFile::temporary(const std::string& purpose)
{
    std::string path = temporaryFolder() + "/meshwright-XXXXXX";
    const int descriptor = ::mkostemp(path.data(), O_CLOEXEC);
    if (descriptor < 0)
        return noRoom(purpose, errno);
    ::unlink(path.c_str());
    return std::shared_ptr<OpenFile>(new OpenFile(descriptor, purpose));
}

OpenFile::~OpenFile()
{
    ::close(m_descriptor);
}

std::uint64_t OpenFile::bytes() const
{
    struct stat status = {};
    return ::fstat(m_descriptor, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

Result<std::size_t> OpenFile::read(std::uint64_t offset, char* into, std::size_t count) const
{
    std::size_t done = 0;
    while (done < count) {
        const ssize_t got = ::pread(m_descriptor, into + done, count - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno != EINTR)
            return cannotRead(m_name, errno);
        if (got == 0)
            break;
        done += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    return done;
}

Result<Done> OpenFile::append(std::string_view bytes)
{
    while (!bytes.empty()) {
        const ssize_t put = ::write(m_descriptor, bytes.data(), bytes.size());
        if (put < 0 && errno != EINTR)
            return noRoom(m_name, errno);
        bytes.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : 0);
    }
    return Done{};
}

class ByteStream::Implementation {
public:
    Implementation(std::shared_ptr<OpenFile> file, std::string_view text, std::string name)
        : m_file(std::move(file))
        , m_text(text)
        , m_name(std::move(name))
        , m_raw(kChunk, '\0')
        , m_out(kChunk, '\0')
    {
    }
    ~Implementation()
    {
        if (m_isOpen)
            inflateEnd(&m_stream);
    }
    Implementation(const Implementation&) = delete;
    Implementation& operator=(const Implementation&) = delete;

    Result<std::string_view> next()
    {
        if (m_given.empty() && !m_isOpen) {
            if (const auto more = fill(); !more)
                return more.error();
            if (m_isFirst)
                m_isGzip = m_given.starts_with("\x1f\x8b");
            m_isFirst = false;
        }
        if (!m_isGzip)
            return std::exchange(m_given, {});
        return inflated();
    }

private:
    /// The next bytes as they are, into m_given; none at the end.
    Result<Done> fill()
    {
        if (m_file == nullptr) {
            m_given = m_text.substr(0, kChunk);
            m_text.remove_prefix(m_given.size());
            return Done{};
        }
        const auto got = m_file->read(m_offset, m_raw.data(), m_raw.size());
        if (!got)
            return got.error();
        m_given = std::string_view(m_raw).substr(0, *got);
        m_offset += *got;
        return Done{};
    }

    Problem damaged(const char* what) const
    {
        return {"MW1601", fmt::format("the compressed data {}", what), "get the file again", Place{m_name}};
    }

    Result<std::string_view> inflated()
    {
        while (true) {
            if (m_given.empty()) {
                if (const auto more = fill(); !more)
                    return more.error();
                if (m_given.empty()) {
                    if (m_isOpen)
                        return damaged("ends too early");
                    return std::string_view{};
                }
            }
            constexpr int kGzipWindow = 16 + MAX_WBITS;
            if (!m_isOpen) {
                m_stream = {};
                if (inflateInit2(&m_stream, kGzipWindow) != Z_OK)
                    return damaged("cannot be read by zlib");
                m_isOpen = true;
            }
            m_stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(m_given.data())); // zlib does not write there
            m_stream.avail_in = static_cast<uInt>(m_given.size());
            m_stream.next_out = reinterpret_cast<Bytef*>(m_out.data());
            m_stream.avail_out = static_cast<uInt>(m_out.size());
            const int status = inflate(&m_stream, Z_NO_FLUSH);
            m_given.remove_prefix(m_given.size() - m_stream.avail_in);
            const std::size_t made = m_out.size() - m_stream.avail_out;
            if (status == Z_STREAM_END) {
                inflateEnd(&m_stream);
                m_isOpen = false;
            } else if (status != Z_OK && status != Z_BUF_ERROR) {
                return damaged("is damaged");
            }
            if (made > 0)
                return std::string_view(m_out).substr(0, made);
        }
    }

    std::shared_ptr<OpenFile> m_file;
    std::string_view m_text;
    std::string m_name;
    std::uint64_t m_offset = 0;
    std::string m_raw;
    std::string m_out;
    std::string_view m_given; ///< read and not yet used
    z_stream m_stream = {};
    bool m_isOpen = false; ///< inside of a member of gzip data
    bool m_isFirst = true;
    bool m_isGzip = false;
};

ByteStream::ByteStream(std::shared_ptr<OpenFile> file)
{
    std::string name = file->name();
    m_implementation = std::make_unique<Implementation>(std::move(file), std::string_view{}, std::move(name));
}

ByteStream::ByteStream(std::string_view text, std::string name)
    : m_implementation(std::make_unique<Implementation>(nullptr, text, std::move(name)))
{
}

ByteStream::~ByteStream() = default;
ByteStream::ByteStream(ByteStream&&) noexcept = default;

Result<std::string_view> ByteStream::next()
{
    return m_implementation->next();
}

Result<std::shared_ptr<OpenFile>> openUnpacked(const std::filesystem::path& path)
{
    auto file = OpenFile::open(path);
    if (!file)
        return file;
    char magic[2] = {};
    const auto got = (*file)->read(0, magic, 2);
    if (!got)
        return got.error();
    if (*got < 2 || magic[0] != '\x1f' || magic[1] != '\x8b')
        return file;
    auto unpacked = OpenFile::temporary(fmt::format("what \"{}\" holds", path.string()));
    if (!unpacked)
        return unpacked;
    ByteStream stream(*file);
    while (true) {
        const auto bytes = stream.next();
        if (!bytes)
            return bytes.error();
        if (bytes->empty())
            return unpacked;
        if (auto written = (*unpacked)->append(*bytes); !written)
            return written.error();
    }
}

} // namespace meshwright
