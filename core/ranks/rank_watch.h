// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ranks/ranks.h"

#include <memory>
#include <thread>

namespace meshwright {

/// Looks whether the job's other processes are alive, by a connection from each to the first one. MPI itself does not say: a message to or
/// from a process that has died never ends, and the launcher ends the others a second later without a word to them.
///
/// When a process dies, the first one raises MW1551 and tells the others; when the first one dies, the others raise it. A process that
/// ends because something went wrong says so before (`report`), and the first one raises that.
class RankWatch {
public:
    /// Together on all ranks, once; also finds out how many ranks share a computer. Where the ranks cannot reach the first one's machine by
    /// name or by one of its addresses (IPv4), nobody is watched.
    /// `ranks` must outlive it. Problems: as `Ranks::exchange`.
    static Result<std::unique_ptr<RankWatch>> start(Ranks& ranks);

    /// Says farewell: nobody raises anything because of this end.
    ~RankWatch();
    RankWatch(const RankWatch&) = delete;
    RankWatch& operator=(const RankWatch&) = delete;

    /// This process ends because of `problems`. Waits a few seconds for the first one to have ended, so that it can speak first.
    void report(const Problems& problems);

private:
    class Socket;
    RankWatch(Ranks& ranks, std::vector<std::unique_ptr<Socket>> sockets);
    void watch();
    bool readFrom(std::size_t at);
    void lose(int rank);
    void waitForFirst() const;
    void sendAll(char word);

    Ranks& m_ranks;
    std::vector<std::unique_ptr<Socket>> m_sockets; ///< the first rank: to all others; the others: to the first
    int m_wake[2] = {-1, -1}; ///< a pipe that ends the watching
    bool m_hasReported = false;
    std::thread m_thread;
};

} // namespace meshwright
