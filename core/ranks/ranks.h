// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ranks/rank_port.h"
#include "core/support/result.h"
#include "core/support/stop_flag.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace meshwright {

/// The first of the devices that a rank has of `devices`: ranks have contiguous blocks of them, in order, whose sizes differ by at most one.
/// `rank` may be the number of ranks: then it is the end. Precondition: 1 <= ranks <= devices.
std::int64_t firstDeviceOf(std::int64_t rank, std::int64_t ranks, std::int64_t devices);

/// The rank that has a device.
int rankOfDevice(std::int64_t device, std::int64_t ranks, std::int64_t devices);

/// The processes of one job, seen from one of them. All run the same program on the same study; each has some of the devices. What has to be
/// the same on all ranks (which step is the last) is agreed upon here, and data goes from rank to rank.
class Ranks {
public:
    explicit Ranks(std::unique_ptr<RankPort> port);

    /// Leaves the job in good order, unless something went wrong.
    ~Ranks();
    Ranks(const Ranks&) = delete;
    Ranks& operator=(const Ranks&) = delete;

    int rank() const { return m_rank; }
    int size() const { return m_size; }
    bool isFirst() const { return m_rank == 0; } ///< the one that prints and writes

    /// Of the ranks, how many share this one's computer.
    int onThisHost() const { return m_onThisHost; }
    void setOnThisHost(int ranks) { m_onThisHost = ranks; }

    struct Outgoing {
        int to = 0;
        std::span<const std::byte> bytes;
    };
    struct Incoming {
        int from = 0;
        std::span<std::byte> bytes;
    };

    /// Sends and receives, and waits for the end of all of it. For each pair of ranks the messages of one tag match in order, and so must their
    /// sizes; of size 0 there are none. Waiting gives the core away. May be called from several threads, each with tags of its own.
    ///
    /// Problems: `failure()`; MW1507 `stop`, which may be null, was set; MW1555 the library could not carry a message. After a problem the job
    /// cannot go on: messages under way are lost, and every later exchange fails.
    Result<Done> exchange(
        int tag, std::span<const Outgoing> outgoing, std::span<const Incoming> incoming, const StopFlag* stop = nullptr);

    /// Two exchanges, the second of which goes on only if `check`, called when all of the first one's messages have come, finds no problem. What
    /// it sends is on its way with the first: agreeing costs no time of its own. Problems: those of `check`, after which the job cannot go on
    /// either, and as `exchange`.
    struct Messages {
        std::span<const Outgoing> outgoing;
        std::span<const Incoming> incoming;
    };
    Result<Done> exchangeAgreed(int tag, const Messages& first, const std::function<Result<Done>()>& check,
        const Messages& second, const StopFlag* stop = nullptr);

    /// A message that has been begun and that nobody waits for; its memory stays as it is until it is done.
    struct UnderWay {
        std::vector<std::size_t> parts;
    };
    UnderWay begin(int tag, const Outgoing& message);
    UnderWay begin(int tag, const Incoming& message);

    /// False: it is still under way. Problems: MW1555, which is raised too.
    Result<bool> isDone(UnderWay& message);

    /// Messages that are under way are left to themselves: as after a problem, the job cannot go on.
    void giveUp() { m_isBroken.store(true); }

    /// A tag for whoever exchanges between two calls that all ranks make in the same order; none of the two below.
    int newTag();
    static constexpr int kHostTag = 0; ///< of what the ranks' main threads exchange
    static constexpr int kPostTag = 1; ///< of what goes to and fro while devices work

    // ---- together: all ranks call these in the same order, from their main threads

    /// True when it is on at least one rank. Problems: as `exchange`.
    Result<bool> any(bool mine);

    /// What every rank says, by rank. At most 4096 bytes each. Problems: as `exchange`.
    Result<std::vector<std::string>> all(const std::string& mine);

    /// Memory that one rank has filled and others are to have.
    struct Shared {
        int giver = 0;
        std::span<std::byte> bytes; ///< as many on the giver and the readers; on all others anything
    };
    enum class Readers : std::uint8_t { First, All };

    /// Brings what ranks have to the first one, or to all. Problems: as `exchange`.
    Result<Done> share(std::span<const Shared> pieces, Readers readers);

    // ---- when it goes wrong

    /// What ended the job, if something did: the first problem that was raised.
    std::optional<Problem> failure() const;

    /// Ends the job, here: whoever exchanges fails, and alarms are called, at once. From any thread.
    void raise(const Problem& problem);

    /// As long as it lives, `call` is called with what ends the job, from any thread, at most once.
    class Alarm {
    public:
        Alarm(Ranks& ranks, std::function<void(const Problem&)> call);
        ~Alarm();
        Alarm(const Alarm&) = delete;
        Alarm& operator=(const Alarm&) = delete;

    private:
        Ranks& m_ranks;
        std::uint64_t m_number = 0;
    };

    /// How many devices all ranks have together, to name those of a rank that is lost.
    void setDeviceCount(std::int64_t devices) { m_devices.store(devices); }

    /// "rank 2 of 4 (devices 4 to 5)".
    std::string nameOf(int rank) const;

    /// True on the rank that tells the user how the job ended: the first one, or the second when the first one is lost.
    bool speaks() const { return m_rank == (m_firstIsLost.load() ? 1 : 0); }
    void firstIsLost() { m_firstIsLost.store(true); }

private:
    Result<Done> await(std::vector<UnderWay>& underWay, const StopFlag* stop);

    std::unique_ptr<RankPort> m_port;
    int m_rank;
    int m_size;
    int m_onThisHost = 1;
    std::atomic<int> m_nextTag{1};
    std::atomic<std::int64_t> m_devices{0};
    std::atomic<bool> m_firstIsLost{false};
    std::atomic<bool> m_isBroken{false}; ///< messages are lost

    mutable std::mutex m_mutex; ///< of what follows
    std::optional<Problem> m_failure;
    std::map<std::uint64_t, std::function<void(const Problem&)>> m_alarms;
    std::uint64_t m_nextAlarm = 0;
};

} // namespace meshwright
