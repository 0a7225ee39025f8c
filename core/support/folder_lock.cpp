// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/folder_lock.h"

#include "core/support/escape.h"
#include "core/support/file.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

namespace meshwright {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLockName = ".meshwright-lock";
constexpr std::string_view kHolder = "meshwright: process ";

/// This process, as the lock's file says it.
std::string holderText()
{
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0)
        host[0] = '\0';
    return fmt::format("{}{} on {}\n", kHolder, ::getpid(), host[0] == '\0' ? "an unnamed host" : host.data());
}

std::string contentOf(int descriptor)
{
    std::array<char, 512> text{};
    const ::ssize_t got = ::pread(descriptor, text.data(), text.size(), 0);
    return {text.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

Problem heldBy(const fs::path& folder, const std::string& content)
{
    const bool isNamed = content.starts_with(kHolder);
    const std::string holder
        = isNamed ? "process " + printable(trimmed(std::string_view(content).substr(kHolder.size()))) : "another process";
    Problem problem{"MW1008", fmt::format("\"{}\" is in use: {} writes to it", folder.string(), holder),
        "wait for it to end, or name another folder", Place{folder.string()}};
    problem.rule = "one process at a time writes to such a folder";
    return problem;
}

/// Whether the name still stands for the file that was opened: its last holder may have removed it in between.
bool isStillThere(const fs::path& file, int descriptor)
{
    struct stat opened { };
    struct stat named { };
    return ::fstat(descriptor, &opened) == 0 && ::lstat(file.c_str(), &named) == 0 && opened.st_ino == named.st_ino
        && opened.st_dev == named.st_dev;
}

} // namespace

Result<FolderLock> FolderLock::take(const fs::path& folder)
{
    const fs::path file = folder / kLockName;
    while (true) {
        const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
        if (descriptor < 0)
            return cannotWriteFile(file, errno);
        FolderLock lock(file, descriptor);
        const std::string content = contentOf(descriptor);
        if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            lock.m_file.clear(); // another's
            return heldBy(folder, content);
        }
        if (!isStillThere(file, descriptor)) {
            lock.m_file.clear();
            continue;
        }
        if (!content.empty() && !content.starts_with(kHolder)) {
            lock.m_file.clear();
            return cannotWriteFile(file, EEXIST); // a file of somebody else
        }
        // On a full disk the lock holds all the same, without its holder's name.
        const std::string holder = holderText();
        if (::ftruncate(descriptor, 0) == 0)
            static_cast<void>(::pwrite(descriptor, holder.data(), holder.size(), 0) > 0);
        return lock;
    }
}

FolderLock::FolderLock(fs::path file, int descriptor)
    : m_file(std::move(file))
    , m_descriptor(descriptor)
{
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : m_file(std::move(other.m_file))
    , m_descriptor(std::exchange(other.m_descriptor, -1))
{
}

FolderLock::~FolderLock()
{
    if (m_descriptor < 0)
        return;
    if (!m_file.empty())
        ::unlink(m_file.c_str()); // while it is held: nobody else's is removed
    ::close(m_descriptor);
}

} // namespace meshwright
