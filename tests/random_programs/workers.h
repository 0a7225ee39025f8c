// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <fmt/format.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <poll.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

/// Work on many numbered things in processes of their own, so that one that crashes or hangs is named and the others go on.
namespace meshwright::tests {

class Workers {
public:
    using Work = std::function<std::string(std::uint64_t)>; ///< in a worker
    using Take = std::function<bool(std::uint64_t, const std::string&)>; ///< in this process; false: enough

    /// Every answer that says that there is none begins so; what the worker wrote to its standard error follows.
    static constexpr const char* kCrash = "crashed";

    /// The thread sanitizer does not follow a process that was forked into its threads: there the work is done in this one.
#if defined(__SANITIZE_THREAD__)
    static constexpr bool kInProcesses = false;
#else
    static constexpr bool kInProcesses = true;
#endif

    /// Gives the numbers first .. first + count - 1 to `count of processes` workers, and takes their answers as they come.
    static void run(std::uint64_t first, std::uint64_t count, int processes, const Work& work, const Take& take)
    {
        if constexpr (!kInProcesses) {
            for (std::uint64_t number = first; number < first + count; ++number) {
                if (!take(number, work(number)))
                    return;
            }
            return;
        }
        Workers workers(first + count, static_cast<std::uint64_t>(processes), work);
        for (int i = 0; i < processes; ++i)
            workers.start(first + static_cast<std::uint64_t>(i));
        workers.listen(take);
    }

    /// The answer of one piece of work.
    static std::string once(const std::function<std::string()>& work)
    {
        std::string answer;
        run(
            0, 1, 1, [&](std::uint64_t) { return work(); },
            [&](std::uint64_t, const std::string& text) {
                answer = text;
                return true;
            });
        return answer;
    }

private:
    static constexpr unsigned kMostSeconds = 20; ///< for one piece of work

    struct Worker {
        pid_t process = -1;
        int pipe = -1;
        std::FILE* errors = nullptr;
        std::uint64_t current = 0; ///< what it works on
    };

    Workers(std::uint64_t end, std::uint64_t stride, const Work& work)
        : m_end(end)
        , m_stride(stride)
        , m_work(work)
    {
    }

    static bool writeAll(int file, const void* data, std::size_t size)
    {
        const char* at = static_cast<const char*>(data);
        while (size > 0) {
            const ssize_t written = write(file, at, size);
            if (written <= 0)
                return false;
            at += written;
            size -= static_cast<std::size_t>(written);
        }
        return true;
    }

    static bool readAll(int file, void* data, std::size_t size)
    {
        char* at = static_cast<char*>(data);
        while (size > 0) {
            const ssize_t got = read(file, at, size);
            if (got <= 0)
                return false;
            at += got;
            size -= static_cast<std::size_t>(got);
        }
        return true;
    }

    void start(std::uint64_t from)
    {
        if (from >= m_end)
            return;
        int ends[2];
        std::FILE* errors = std::tmpfile();
        if (errors == nullptr || pipe(ends) != 0)
            return;
        std::fflush(nullptr);
        const pid_t process = fork();
        if (process == 0) {
            close(ends[0]);
            dup2(fileno(errors), STDERR_FILENO);
            for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGALRM}) // not as the test framework has them
                std::signal(signal, SIG_DFL);
            for (std::uint64_t number = from; number < m_end; number += m_stride) {
                alarm(kMostSeconds);
                const std::string answer = m_work(number);
                const std::uint64_t size = answer.size();
                if (!writeAll(ends[1], &size, sizeof size) || !writeAll(ends[1], answer.data(), size))
                    break;
            }
            _exit(0);
        }
        close(ends[1]);
        m_workers.push_back({process, ends[0], errors, from});
    }

    static std::string endOf(const Worker& worker, int status)
    {
        std::fseek(worker.errors, 0, SEEK_END);
        const long size = std::ftell(worker.errors);
        std::fseek(worker.errors, std::max(0L, size - 600), SEEK_SET);
        std::string said(600, '\0');
        said.resize(std::fread(said.data(), 1, said.size(), worker.errors));
        const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        if (signal == SIGALRM)
            return fmt::format("{}: no answer after {} s {}", kCrash, kMostSeconds, said);
        return fmt::format("{}: {} {}", kCrash,
            signal != 0 ? fmt::format("signal {} ({})", signal, strsignal(signal)) : fmt::format("exit {}", WEXITSTATUS(status)),
            said);
    }

    void listen(const Take& take)
    {
        while (!m_workers.empty()) {
            std::vector<pollfd> pipes;
            for (const Worker& worker : m_workers)
                pipes.push_back({worker.pipe, POLLIN, 0});
            poll(pipes.data(), pipes.size(), -1);
            for (std::size_t i = pipes.size(); i-- > 0;) {
                if (pipes[i].revents == 0)
                    continue;
                Worker& worker = m_workers[i];
                std::uint64_t size = 0;
                std::string answer;
                bool isThere = readAll(worker.pipe, &size, sizeof size);
                if (isThere) {
                    answer.resize(size);
                    isThere = readAll(worker.pipe, answer.data(), size);
                }
                if (isThere) {
                    const std::uint64_t number = worker.current;
                    worker.current += m_stride;
                    if (!take(number, answer))
                        return stop();
                    continue;
                }
                const Worker ended = worker;
                m_workers.erase(m_workers.begin() + static_cast<std::ptrdiff_t>(i));
                int status = 0;
                waitpid(ended.process, &status, 0);
                const bool isDone = ended.current >= m_end;
                const std::string last = isDone ? "" : endOf(ended, status);
                close(ended.pipe);
                std::fclose(ended.errors);
                if (isDone)
                    continue;
                if (!take(ended.current, last))
                    return stop();
                start(ended.current + m_stride);
            }
        }
    }

    void stop()
    {
        for (const Worker& worker : m_workers) {
            kill(worker.process, SIGKILL);
            waitpid(worker.process, nullptr, 0);
            close(worker.pipe);
            std::fclose(worker.errors);
        }
        m_workers.clear();
    }

    std::uint64_t m_end;
    std::uint64_t m_stride;
    const Work& m_work;
    std::vector<Worker> m_workers;
};

} // namespace meshwright::tests
