// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/devices/device_states.h"
#include "core/devices/mailbox.h"
#include "core/devices/rank_post.h"
#include "core/ranks/patience.h"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace meshwright {

/// One run of devices that several processes share, seen from the main thread of one of them: it brings messages to the mailboxes of the
/// devices that are here, and tells the first process how they are. That one finds out when no device of the whole job can move any more, or
/// when some do not arrive.
class RankRun {
public:
    /// What it asks of the devices that are here, and does to them.
    struct Devices {
        std::int64_t count = 0; ///< of all processes
        bool haveMailboxes = false; ///< messages may come for them
        std::function<std::vector<DeviceState>()> states;
        std::function<bool()> isIdle; ///< all wait or have finished; nothing but a message or the end of a meeting changes that
        std::function<std::int64_t()> met; ///< how many meetings have ended
        std::function<std::vector<Meeting>()> meetings;
        std::function<bool()> hasEnded; ///< nothing changes it any more
        std::function<void(std::chrono::microseconds)> awaitEnd; ///< for so long at most
        std::function<bool()> hasFailed;
        std::function<void(Problem)> fail;
        std::function<void(std::int64_t mailbox, const MessageTag&, AlignedBytes)> deliver;
    };

    /// `post`, in a round that has begun, and what `devices` refers to must outlive it. `stallSeconds`: see VirtualDevicesOptions.
    RankRun(Ranks& ranks, RankPost& post, Devices devices, double stallSeconds);

    /// Returns when the run has ended on all processes, or has failed on this one.
    void untilEnd();

    /// From any device, to a mailbox of one on another rank.
    static void send(RankPost& post, int to, std::int64_t mailbox, const MessageTag& tag, AlignedBytes message);

private:
    /// What a process says of itself. Two of them fit together when each has got all that the other had sent by then.
    struct Report {
        bool isIdle = false;
        std::vector<std::int64_t> sent; ///< messages, by rank
        std::vector<std::int64_t> received;
        std::vector<DeviceState> states;
        std::vector<Meeting> meetings;
    };

    void take(int from, const RankPost::Letter& letter);
    Report own() const;
    void report(const Report& report);
    void pause(Patience& patience, bool hasEnded) const;
    void look();
    void lookAtAll(StallWatch::Clock::time_point now, bool isTime);
    bool isSettled(StallWatch::Clock::time_point now);
    bool isStuck(const Report& mine) const;
    bool canMeet(const Meeting& meeting, const Report& mine) const;
    const Report& reportOf(std::size_t rank, const Report& mine) const { return rank == 0 ? mine : m_reports[rank]; }
    std::vector<DeviceState> statesOfAll(const Report& mine) const;

    Ranks& m_ranks;
    RankPost& m_post;
    Devices m_devices;
    StallWatch m_watch;
    std::chrono::duration<double> m_interval; ///< between two looks; 0: none
    StallWatch::Clock::time_point m_looked = StallWatch::Clock::now();
    std::vector<std::int64_t> m_received; ///< when it was last looked whether all here are idle
    std::int64_t m_met = 0; ///< likewise
    StallWatch::Clock::time_point m_changed = StallWatch::Clock::now(); ///< not since then
    std::vector<Report> m_reports; ///< on the first process, by rank: the last ones
    bool m_hasNews = true; ///< since it was last told that all here are idle; on the first process: looked whether all are stuck
};

} // namespace meshwright
