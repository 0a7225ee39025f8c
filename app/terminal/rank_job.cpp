// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/rank_job.h"

#include "core/ranks/launch.h"
#include "core/support/file.h"

#include <fmt/format.h>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <span>

namespace meshwright::cli {

namespace {

/// Threads that are made meanwhile leave the signals that end a program to those who watch for them.
class SignalsLeftAlone {
public:
    SignalsLeftAlone()
    {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &set, &m_before);
    }
    ~SignalsLeftAlone() { pthread_sigmask(SIG_SETMASK, &m_before, nullptr); }
    SignalsLeftAlone(const SignalsLeftAlone&) = delete;
    SignalsLeftAlone& operator=(const SignalsLeftAlone&) = delete;

private:
    sigset_t m_before{};
};

Result<RankJob> joinRanks(const Launch& launch)
{
    const SignalsLeftAlone alone;
    return joinJob(launch);
}

/// Puts what the first process reads from standard input there on all of them.
Result<Done> shareStandardInput(Ranks& ranks)
{
    auto text = ranks.isFirst() ? readFile("-") : Result<std::string>(std::string());
    if (!text)
        return text.error();
    auto size = static_cast<std::int64_t>(text->size());
    const Ranks::Shared sizes{0, std::as_writable_bytes(std::span(&size, 1))};
    if (const auto shared = ranks.share({&sizes, 1}, Ranks::Readers::All); !shared)
        return shared;
    text->resize(static_cast<std::size_t>(size));
    const Ranks::Shared content{0, std::as_writable_bytes(std::span(*text))};
    if (const auto shared = ranks.share({&content, 1}, Ranks::Readers::All); !shared)
        return shared;
    const int file = ::memfd_create("standard input", MFD_CLOEXEC);
    const bool isThere = file >= 0 && ::write(file, text->data(), text->size()) == static_cast<ssize_t>(text->size())
        && ::lseek(file, 0, SEEK_SET) == 0 && ::dup2(file, STDIN_FILENO) == STDIN_FILENO;
    if (file >= 0)
        ::close(file);
    if (!isThere)
        return Problem{"MW1001", fmt::format("cannot store standard input: {}", std::strerror(errno)), "give the name of a file"};
    std::clearerr(stdin); // the first one has read it to its end
    return Done{};
}

} // namespace

int runTogether(
    Output& output, const std::string& input, const std::function<int(const std::shared_ptr<Ranks>& ranks, Output& output)>& verb)
{
    const auto launch = launched();
    if (!launch)
        return verb(nullptr, output);
    output.silent = launch->rank != 0;
    auto job = joinRanks(*launch);
    if (!job)
        return fail(job.error(), output);
    bool hasFailed = false;
    output.onFailure = [&](const Problems& problems) {
        hasFailed = true;
        if (!job->ranks->isFirst())
            job->watch->report(problems);
        output.silent = !job->ranks->speaks();
    };
    const auto shared = input == "-" ? shareStandardInput(*job->ranks) : Result<Done>(Done{});
    const int code = shared ? verb(job->ranks, output) : fail(shared.error(), output);
    output.onFailure = {};
    if (hasFailed) // the others hear it from the watch's end, now that all has been said
        job->ranks->raise({"MW1551", "this process has failed"});
    return code;
}

std::string launcherText(const Ranks* ranks)
{
    return ranks == nullptr ? "" : fmt::format("mpirun -n {} ", ranks->size());
}

} // namespace meshwright::cli
