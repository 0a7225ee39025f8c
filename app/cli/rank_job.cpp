// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/rank_job.h"

#include "core/ranks/launch.h"

#include <fmt/format.h>

#include <pthread.h>

#include <csignal>

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

Result<RankJob> join(const Launch& launch)
{
    const SignalsLeftAlone alone;
    return joinJob(launch);
}

} // namespace

int runTogether(Output& output, const std::function<int(const std::shared_ptr<Ranks>& ranks, Output& output)>& verb)
{
    const auto launch = launched();
    if (!launch)
        return verb(nullptr, output);
    output.silent = launch->rank != 0;
    auto job = join(*launch);
    if (!job)
        return fail(job.error(), output);
    bool hasFailed = false;
    output.onFailure = [&](const Problems& problems) {
        hasFailed = true;
        if (!job->ranks->isFirst())
            job->watch->report(problems);
        output.silent = !job->ranks->speaks();
    };
    const int code = verb(job->ranks, output);
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
