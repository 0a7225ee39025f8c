// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ranks/ranks.h"

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

/// The ranks of a job as threads of one process, with messages in memory: all that is above MPI, without it.
namespace meshwright::tests {

class MemoryMessages {
public:
    explicit MemoryMessages(int ranks)
        : m_size(ranks)
    {
    }
    int size() const { return m_size; }

    std::size_t send(int from, int to, int tag, const std::byte* data, std::int64_t bytes)
    {
        const std::lock_guard lock(m_mutex);
        m_sent[{from, to, tag}].emplace_back(data, data + bytes);
        m_states.push_back(true);
        return m_states.size() - 1;
    }

    std::size_t receive(int from, int to, int tag, std::byte* data, std::int64_t bytes)
    {
        const std::lock_guard lock(m_mutex);
        m_states.push_back(false);
        m_wanted[{from, to, tag}].push_back({m_states.size() - 1, data, bytes});
        return m_states.size() - 1;
    }

    bool isDone(std::size_t message, int rank)
    {
        const std::lock_guard lock(m_mutex);
        for (auto& [key, wanted] : m_wanted) {
            auto& sent = m_sent[key];
            while (std::get<1>(key) == rank && !wanted.empty() && !sent.empty()) {
                const Wanted& next = wanted.front();
                sizesAgree = sizesAgree && static_cast<std::int64_t>(sent.front().size()) == next.bytes;
                if (!sent.front().empty())
                    std::memcpy(
                        next.data, sent.front().data(), std::min(sent.front().size(), static_cast<std::size_t>(next.bytes)));
                m_states[next.message] = true;
                sent.pop_front();
                wanted.pop_front();
            }
        }
        return m_states[message];
    }

    bool sizesAgree = true;

private:
    struct Wanted {
        std::size_t message = 0;
        std::byte* data = nullptr;
        std::int64_t bytes = 0;
    };
    using Key = std::tuple<int, int, int>; ///< from, to, tag
    int m_size;
    std::mutex m_mutex;
    std::map<Key, std::deque<std::vector<std::byte>>> m_sent;
    std::map<Key, std::deque<Wanted>> m_wanted;
    std::vector<bool> m_states;
};

class MemoryPort final : public RankPort {
public:
    MemoryPort(std::shared_ptr<MemoryMessages> messages, int rank)
        : m_messages(std::move(messages))
        , m_rank(rank)
    {
    }
    int rank() const override { return m_rank; }
    int size() const override { return m_messages->size(); }
    int largestTag() const override { return 32767; }
    std::size_t send(int to, int tag, const std::byte* data, std::int64_t bytes) override
    {
        return m_messages->send(m_rank, to, tag, data, bytes);
    }
    std::size_t receive(int from, int tag, std::byte* data, std::int64_t bytes) override
    {
        return m_messages->receive(from, m_rank, tag, data, bytes);
    }
    State stateOf(std::size_t message) override { return m_messages->isDone(message, m_rank) ? State::Done : State::UnderWay; }
    void leave() override { }

private:
    std::shared_ptr<MemoryMessages> m_messages;
    int m_rank;
};

/// Calls `program` on so many ranks at once. When one returns false, what the others wait for fails. True when all returned true and all
/// messages had the sizes that were waited for.
inline bool onRanks(int count, const std::function<bool(const std::shared_ptr<Ranks>&)>& program)
{
    const auto messages = std::make_shared<MemoryMessages>(count);
    std::vector<std::shared_ptr<Ranks>> ranks;
    for (int rank = 0; rank < count; ++rank)
        ranks.push_back(std::make_shared<Ranks>(std::make_unique<MemoryPort>(messages, rank)));
    std::vector<char> fine(static_cast<std::size_t>(count), 0);
    {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < count; ++rank) {
            threads.emplace_back([&, rank] {
                const bool isFine = program(ranks[static_cast<std::size_t>(rank)]);
                fine[static_cast<std::size_t>(rank)] = isFine ? 1 : 0;
                for (const auto& other : ranks) {
                    if (!isFine && other->rank() != rank)
                        other->raise({"MW1551", other->nameOf(rank) + " has failed"});
                }
            });
        }
    }
    return messages->sizesAgree && std::find(fine.begin(), fine.end(), 0) == fine.end();
}

} // namespace meshwright::tests
