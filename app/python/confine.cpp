// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/python/confine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace meshwright::python {

namespace {

Problem refused(const char* what)
{
    return {"MW1562", fmt::format("the kernel does not confine pages: {}: {}", what, std::strerror(errno)),
        "run on Linux 5.13 or later with Landlock, or use --unsafe for a page whose every line is known"};
}

/// The version of Landlock; 0: none.
int landlockVersion()
{
    const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version < 0 ? 0 : static_cast<int>(version);
}

constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kRefer = std::uint64_t{1} << 13; ///< since version 2
constexpr std::uint64_t kTruncate = std::uint64_t{1} << 14; ///< since version 3
constexpr std::uint64_t kFirstVersion = (std::uint64_t{1} << 13) - 1; ///< all rights of version 1

std::uint64_t allRights(int version)
{
    return kFirstVersion | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0);
}

Result<Done> allow(int ruleset, const std::string& path, std::uint64_t rights)
{
    const int file = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (file < 0)
        return Done{};
    struct stat status = {};
    if (fstat(file, &status) == 0 && !S_ISDIR(status.st_mode))
        rights &= LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;
    landlock_path_beneath_attr rule = {};
    rule.allowed_access = rights;
    rule.parent_fd = file;
    const long added = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(file);
    return added == 0 ? Result<Done>(Done{}) : refused("landlock_add_rule");
}

Result<Done> confineFiles(const Confinement& confinement)
{
    const int version = landlockVersion();
    if (version == 0)
        return refused("Landlock");
    const std::uint64_t rights = allRights(version);
    landlock_ruleset_attr attributes = {};
    attributes.handled_access_fs = rights;
    const int ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0));
    if (ruleset < 0)
        return refused("landlock_create_ruleset");
    Result<Done> done = Done{};
    for (const std::string& path : confinement.readable)
        done = done ? allow(ruleset, path, kRead) : done;
    for (const std::string& path : confinement.writable)
        done = done ? allow(ruleset, path, rights) : done;
    if (done && syscall(SYS_landlock_restrict_self, ruleset, 0) != 0)
        done = refused("landlock_restrict_self");
    close(ruleset);
    return done;
}

/// What no page needs.
constexpr std::array kDenied = {SCMP_SYS(fork), SCMP_SYS(vfork), SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(socket),
    SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(bind), SCMP_SYS(listen), SCMP_SYS(accept), SCMP_SYS(accept4),
    SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(rt_sigqueueinfo), SCMP_SYS(rt_tgsigqueueinfo), SCMP_SYS(pidfd_getfd),
    SCMP_SYS(process_madvise), SCMP_SYS(pidfd_open), SCMP_SYS(pidfd_send_signal), SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev), SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(unshare), SCMP_SYS(setns), SCMP_SYS(pivot_root),
    SCMP_SYS(chroot), SCMP_SYS(bpf), SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register),
    SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd), SCMP_SYS(keyctl), SCMP_SYS(add_key), SCMP_SYS(request_key),
    SCMP_SYS(setrlimit), SCMP_SYS(open_by_handle_at), SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(kexec_load),
    SCMP_SYS(reboot), SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(shmget), SCMP_SYS(msgget), SCMP_SYS(semget),
    SCMP_SYS(mq_open), SCMP_SYS(personality)};

Result<Done> confineCalls()
{
    const std::unique_ptr<void, decltype(&seccomp_release)> filter(seccomp_init(SCMP_ACT_ALLOW), seccomp_release);
    if (filter == nullptr)
        return refused("seccomp_init");
    bool isGood = true;
    const auto add = [&](std::uint32_t action, int call, std::initializer_list<scmp_arg_cmp> when) {
        isGood
            = isGood && seccomp_rule_add_array(filter.get(), action, call, static_cast<unsigned>(when.size()), when.begin()) == 0;
    };
    for (const int call : kDenied)
        add(SCMP_ACT_ERRNO(EPERM), call, {});
    // A thread shares its process, a new process does not. What clone3 asks for is not to be seen: libraries fall back to clone.
    add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0)});
    add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), {});
    add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), {SCMP_A0(SCMP_CMP_NE, static_cast<scmp_datum_t>(getpid()))});
    add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), {SCMP_A2(SCMP_CMP_NE, 0)}); // reading limits is harmless
    if (!isGood || seccomp_load(filter.get()) != 0)
        return refused("seccomp");
    return Done{};
}

Result<Done> dropCapabilities()
{
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> none = {};
    return syscall(SYS_capset, &header, none.data()) == 0 ? Result<Done>(Done{}) : refused("capset");
}

} // namespace

Result<Done> canConfine()
{
    return landlockVersion() > 0 ? Result<Done>(Done{}) : refused("Landlock");
}

Result<Done> confine(const Confinement& confinement)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return refused("no_new_privs");
    Result<Done> done = confineFiles(confinement);
    done = done ? dropCapabilities() : done;
    return done ? confineCalls() : done;
}

} // namespace meshwright::python
