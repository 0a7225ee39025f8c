// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"

#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

namespace meshwright {

namespace {

Problem tooLarge(const std::string& name)
{
    return Problem{"MW1004", fmt::format("\"{}\" is larger than {} bytes", name, kLargestTextFileBytes), "split the file"};
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

Result<std::string> readStream(std::FILE* stream, const std::string& name)
{
    std::string content;
    char chunk[1 << 16];
    std::size_t got = 0;
    while ((got = std::fread(chunk, 1, sizeof chunk, stream)) > 0) {
        content.append(chunk, got);
        if (content.size() > kLargestTextFileBytes)
            return tooLarge(name);
    }
    if (std::ferror(stream) != 0)
        return Problem{"MW1003", fmt::format("cannot read \"{}\": {}", name, std::strerror(errno))};
    return content;
}

Problem cannotWrite(const std::filesystem::path& path, const std::string& reason)
{
    return Problem{"MW1005", fmt::format("cannot write \"{}\": {}", path.string(), reason),
        "name a file in a folder that exists and that you may write to", Place{path.string()}};
}

} // namespace

Result<std::string> readFile(const std::filesystem::path& path)
{
    if (path == "-")
        return readStream(stdin, "standard input");

    const Place place{path.string()};
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status))
        return Problem{"MW1001", fmt::format("there is no file \"{}\"", path.string()), "check the path", place};
    if (std::filesystem::is_directory(status))
        return Problem{"MW1002", fmt::format("\"{}\" is a directory, not a file", path.string()), "name a file in it", place};

    // A regular file is judged before it is read; what grows or has no size (a pipe) is while it is.
    const auto size = std::filesystem::file_size(path, error);
    if (!error && size > kLargestTextFileBytes)
        return inFile({tooLarge(path.string())}, path.string());
    const File stream(std::fopen(path.c_str(), "rb"), &std::fclose);
    if (!stream)
        return Problem{"MW1003", fmt::format("cannot read \"{}\": {}", path.string(), std::strerror(errno)),
            "check the file's permissions", place};
    auto content = readStream(stream.get(), path.string());
    if (!content)
        return inFile(content.error(), path.string());
    return content;
}

Result<Done> writeFileAtomically(const std::filesystem::path& path, std::string_view content)
{
    if (path == "-") {
        if (std::fwrite(content.data(), 1, content.size(), stdout) != content.size() || std::fflush(stdout) != 0)
            return cannotWrite("standard output", std::strerror(errno));
        return Done{};
    }

    std::error_code error;
    if (std::filesystem::is_directory(path, error))
        return cannotWrite(path, "it is a directory");
    std::filesystem::path temporary = path;
    temporary += fmt::format(".{}.part", ::getpid());
    const auto fail = [&](int code) {
        const std::string reason = std::strerror(code);
        std::filesystem::remove(temporary, error);
        return cannotWrite(path, reason);
    };

    File stream(std::fopen(temporary.c_str(), "wb"), &std::fclose);
    if (!stream)
        return cannotWrite(path, std::strerror(errno));
    if (std::fwrite(content.data(), 1, content.size(), stream.get()) != content.size() || std::fflush(stream.get()) != 0
        || ::fsync(::fileno(stream.get())) != 0)
        return fail(errno);
    if (std::fclose(stream.release()) != 0)
        return fail(errno);
    std::filesystem::rename(temporary, path, error);
    if (error)
        return fail(error.value());
    return Done{};
}

} // namespace meshwright
