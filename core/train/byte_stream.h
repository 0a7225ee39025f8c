// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace meshwright {

/// A file that is closed with the last who holds it. Reading does not move anything: any thread may, anywhere.
class OpenFile {
public:
    /// Problems: MW1001 there is no such file, MW1002 it is a directory, MW1003 it cannot be read.
    static Result<std::shared_ptr<OpenFile>> open(const std::filesystem::path& path);

    /// An empty file without a name in the folder for temporary files; it is gone when it is closed. Problems: MW1608.
    static Result<std::shared_ptr<OpenFile>> temporary(const std::string& purpose);

    ~OpenFile();
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    const std::string& name() const { return m_name; } ///< for problems
    std::uint64_t bytes() const; ///< its size now

    /// Reads up to `count` bytes from `offset`, as many as there are. Problems: MW1003.
    Result<std::size_t> read(std::uint64_t offset, char* into, std::size_t count) const;

    /// Problems: MW1608 the disk is full.
    Result<Done> append(std::string_view bytes);

private:
    OpenFile(int descriptor, std::string name)
        : m_descriptor(descriptor)
        , m_name(std::move(name))
    {
    }

    int m_descriptor;
    std::string m_name;
};

/// The bytes of a file or a text from the first to the last, piece by piece; of gzip data (any number of members) what was compressed.
/// Holds 128 KiB, whatever the size.
class ByteStream {
public:
    explicit ByteStream(std::shared_ptr<OpenFile> file);
    /// `text` must outlive the stream; `name` is for problems.
    ByteStream(std::string_view text, std::string name);
    ~ByteStream();
    ByteStream(ByteStream&&) noexcept;

    /// The next bytes, until the next call; empty at the end.
    /// Problems: MW1003, MW1601 the compressed data is damaged or cut off.
    Result<std::string_view> next();

private:
    class Implementation;
    std::unique_ptr<Implementation> m_implementation;
};

/// The file itself, or what it holds compressed, unpacked once into a temporary file. Problems: those above.
Result<std::shared_ptr<OpenFile>> openUnpacked(const std::filesystem::path& path);

} // namespace meshwright
