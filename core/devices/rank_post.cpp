// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/rank_post.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace meshwright {

namespace {

template <typename T>
std::span<std::byte> messageBytes(T& value)
{
    return std::as_writable_bytes(std::span(&value, 1));
}

std::span<std::byte> messageBytes(AlignedBytes& memory)
{
    return {memory.data(), static_cast<std::size_t>(memory.size())};
}

} // namespace

RankPost::RankPost(Ranks& ranks)
    : m_ranks(ranks)
    , m_messages(std::make_unique<Messages>())
    , m_sent(static_cast<std::size_t>(ranks.size()), 0)
    , m_received(m_sent)
{
    m_messages->incoming.resize(m_sent.size());
}

/// Where a round was given up the library still knows the memory of what is under way: it stays as long as the process does.
RankPost::~RankPost()
{
    if (isOver())
        return;
    m_ranks.giveUp();
    static std::mutex mutex;
    static auto& kept = *new std::vector<std::unique_ptr<Messages>>;
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(m_messages));
}

void RankPost::beginRound()
{
    assert(isOver());
    std::fill(m_sent.begin(), m_sent.end(), 0);
    std::fill(m_received.begin(), m_received.end(), 0);
    for (int rank = 0; rank < m_ranks.size(); ++rank) {
        if (rank != m_ranks.rank())
            awaitHead(rank);
    }
}

void RankPost::endRound()
{
    const std::lock_guard lock(m_mutex);
    for (int rank = 0; rank < m_ranks.size(); ++rank) {
        if (rank != m_ranks.rank())
            sendLocked(rank, {{}, kNoMore, 0}, {});
    }
}

bool RankPost::isOver()
{
    const std::lock_guard lock(m_mutex);
    const auto& incoming = m_messages->incoming;
    return m_messages->outgoing.empty()
        && std::all_of(incoming.begin(), incoming.end(), [](const Incoming& from) { return from.hasEnded; });
}

void RankPost::send(int to, Letter letter)
{
    const std::lock_guard lock(m_mutex);
    m_sent[static_cast<std::size_t>(to)] += letter.isCounted ? 1 : 0;
    const Head head{letter.words, letter.body.size(), letter.isCounted ? 1 : 0};
    sendLocked(to, head, std::move(letter.body));
}

void RankPost::sendLocked(int to, const Head& head, AlignedBytes body)
{
    Outgoing& letter = m_messages->outgoing.emplace_back(Outgoing{head, std::move(body), {}});
    letter.messages[0] = m_ranks.begin(Ranks::kPostTag, Ranks::Outgoing{to, messageBytes(letter.head)});
    letter.messages[1] = m_ranks.begin(Ranks::kPostTag, Ranks::Outgoing{to, messageBytes(letter.body)});
}

void RankPost::awaitHead(int from)
{
    Incoming& next = m_messages->incoming[static_cast<std::size_t>(from)];
    next.isBody = false;
    next.hasEnded = false;
    next.message = m_ranks.begin(Ranks::kPostTag, Ranks::Incoming{from, messageBytes(next.head)});
}

Result<bool> RankPost::poll(const Deliver& deliver)
{
    if (!m_failure.empty())
        return m_failure;
    Result<bool> moved = pollOnce(deliver);
    if (!moved)
        m_failure = moved.error();
    return moved;
}

Result<bool> RankPost::pollOnce(const Deliver& deliver)
{
    bool hasMoved = false;
    {
        const std::lock_guard lock(m_mutex);
        std::list<Outgoing>& outgoing = m_messages->outgoing;
        for (auto letter = outgoing.begin(); letter != outgoing.end();) {
            bool isGone = true;
            for (Ranks::UnderWay& message : letter->messages) {
                const auto done = m_ranks.isDone(message);
                if (!done)
                    return done.error();
                isGone = isGone && *done;
            }
            letter = isGone ? outgoing.erase(letter) : std::next(letter);
            hasMoved = hasMoved || isGone;
        }
    }
    for (int rank = 0; rank < m_ranks.size(); ++rank) {
        const auto received = receiveFrom(rank, deliver);
        if (!received)
            return received.error();
        hasMoved = hasMoved || *received;
    }
    return hasMoved;
}

/// All that has come from one rank.
Result<bool> RankPost::receiveFrom(int from, const Deliver& deliver)
{
    Incoming& next = m_messages->incoming[static_cast<std::size_t>(from)];
    bool hasMoved = false;
    while (!next.hasEnded) {
        const auto done = m_ranks.isDone(next.message);
        if (!done)
            return done.error();
        if (!*done)
            break;
        hasMoved = true;
        if (!next.isBody && next.head.bytes == kNoMore) {
            next.hasEnded = true;
            break;
        }
        if (!next.isBody && next.head.bytes > 0) {
            next.isBody = true;
            next.body = AlignedBytes(next.head.bytes);
            next.message = m_ranks.begin(Ranks::kPostTag, Ranks::Incoming{from, messageBytes(next.body)});
            continue;
        }
        Letter letter{next.head.words, next.isBody ? std::move(next.body) : AlignedBytes(), next.head.counted != 0};
        m_received[static_cast<std::size_t>(from)] += next.head.counted;
        awaitHead(from);
        deliver(from, std::move(letter));
    }
    return hasMoved;
}

std::vector<std::int64_t> RankPost::sent() const
{
    const std::lock_guard lock(m_mutex);
    return m_sent;
}

} // namespace meshwright
