// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/host_array.h"
#include "core/ranks/ranks.h"

#include <array>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

namespace meshwright {

/// Letters between the processes of a job, which nobody waits for: any thread sends them, and whoever polls gets those that have come. From
/// one rank to another they arrive in the order in which they were sent.
///
/// They are sent in rounds, one after the other, that all ranks take part in. A rank ends its part when it has no more to send; the round is
/// over for it when all others have done so too and everything has arrived: then nothing is under way any more.
class RankPost {
public:
    /// `ranks` must outlive it. Of several posts one at a time has a round.
    explicit RankPost(Ranks& ranks);
    ~RankPost();
    RankPost(const RankPost&) = delete;
    RankPost& operator=(const RankPost&) = delete;

    struct Letter {
        std::array<std::int64_t, 6> words{};
        AlignedBytes body = {};
        bool isCounted = true; ///< by `sent` and `received`
    };

    void beginRound();
    void endRound(); ///< from here no more comes
    bool isOver();

    /// Precondition: within a round that this rank has not ended; `to` is another rank.
    void send(int to, Letter letter);

    /// Calls `deliver` with what has come. True when anything has moved. One thread at a time. Problems: MW1555, from then on always: what has
    /// come may be anything.
    using Deliver = std::function<void(int from, Letter letter)>;
    Result<bool> poll(const Deliver& deliver);

    /// In this round, by rank: counted letters that were sent to it, and those that came from it; the latter from the thread that polls.
    std::vector<std::int64_t> sent() const;
    const std::vector<std::int64_t>& received() const { return m_received; }

private:
    /// What goes before a letter's body.
    struct Head {
        std::array<std::int64_t, 6> words{};
        std::int64_t bytes = 0; ///< of the body; kNoMore: this is not a letter, and none comes after it
        std::int64_t counted = 0;
    };
    static constexpr std::int64_t kNoMore = -1;
    struct Outgoing {
        Head head;
        AlignedBytes body;
        std::array<Ranks::UnderWay, 2> messages;
    };
    struct Incoming {
        Head head;
        AlignedBytes body;
        Ranks::UnderWay message; ///< the head, then the body
        bool isBody = false;
        bool hasEnded = true;
    };
    struct Messages {
        std::list<Outgoing> outgoing; ///< under way
        std::vector<Incoming> incoming; ///< by rank
    };

    Result<bool> pollOnce(const Deliver& deliver);
    void sendLocked(int to, const Head& head, AlignedBytes body);
    void awaitHead(int from);
    Result<bool> receiveFrom(int from, const Deliver& deliver);

    Ranks& m_ranks;
    mutable std::mutex m_mutex; ///< of `outgoing` and m_sent
    std::unique_ptr<Messages> m_messages;
    std::vector<std::int64_t> m_sent;
    std::vector<std::int64_t> m_received;
    Problems m_failure; ///< of polling
};

} // namespace meshwright
