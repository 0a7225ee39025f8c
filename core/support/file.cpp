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

bool isDeviceOrPipe(const std::filesystem::file_status& status)
{
    return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) && !std::filesystem::is_directory(status);
}

Result<Done> writeInPlace(const std::filesystem::path& path, std::string_view content)
{
    File stream(std::fopen(path.c_str(), "wb"), &std::fclose);
    if (!stream || std::fwrite(content.data(), 1, content.size(), stream.get()) != content.size()
        || std::fflush(stream.get()) != 0)
        return cannotWrite(path, std::strerror(errno));
    return Done{};
}

/// What `path` is or points at, and the file beside it where new content is gathered; none for a device or a pipe.
struct Target {
    std::filesystem::path file;
    std::filesystem::path temporary;
};

Result<Target> targetOf(const std::filesystem::path& path)
{
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (std::filesystem::is_directory(status))
        return cannotWrite(path, "it is a directory");
    Target target{path, {}};
    if (isDeviceOrPipe(status))
        return target;
    if (std::filesystem::is_symlink(path, error)) {
        if (auto pointed = std::filesystem::canonical(path, error); !error)
            target.file = std::move(pointed);
    }
    target.temporary = target.file;
    target.temporary += fmt::format(".{}.part", ::getpid());
    return target;
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

    const auto target = targetOf(path);
    if (!target)
        return target.error();
    if (target->temporary.empty())
        return writeInPlace(path, content);
    std::error_code error;
    const auto fail = [&](int code) {
        const std::string reason = std::strerror(code);
        std::filesystem::remove(target->temporary, error);
        return cannotWrite(path, reason);
    };

    File stream(std::fopen(target->temporary.c_str(), "wb"), &std::fclose);
    if (!stream)
        return cannotWrite(path, std::strerror(errno));
    if (std::fwrite(content.data(), 1, content.size(), stream.get()) != content.size() || std::fflush(stream.get()) != 0
        || ::fsync(::fileno(stream.get())) != 0)
        return fail(errno);
    if (std::fclose(stream.release()) != 0)
        return fail(errno);
    std::filesystem::rename(target->temporary, target->file, error);
    if (error)
        return fail(error.value());
    return Done{};
}

Result<Done> checkWritable(const std::filesystem::path& path)
{
    if (path.empty() || path == "-")
        return Done{};
    const auto target = targetOf(path);
    if (!target)
        return target.error();
    if (target->temporary.empty())
        return ::access(path.c_str(), W_OK) == 0 ? Result<Done>(Done{}) : cannotWrite(path, std::strerror(errno));
    if (const File stream(std::fopen(target->temporary.c_str(), "wb"), &std::fclose); !stream)
        return cannotWrite(path, std::strerror(errno));
    std::error_code error;
    std::filesystem::remove(target->temporary, error);
    return Done{};
}

Result<Done> checkFolderWritable(const std::filesystem::path& folder)
{
    if (folder.empty())
        return Done{};
    std::error_code error;
    std::filesystem::path there = std::filesystem::absolute(folder, error).lexically_normal();
    while (there.has_relative_path() && !std::filesystem::exists(there, error))
        there = there.parent_path();
    if (!std::filesystem::is_directory(there, error))
        return cannotWrite(folder, fmt::format("\"{}\" is no folder", there.string()));
    if (::access(there.c_str(), W_OK | X_OK) != 0)
        return cannotWrite(folder, fmt::format("{} (\"{}\")", std::strerror(errno), there.string()));
    return Done{};
}

} // namespace meshwright
