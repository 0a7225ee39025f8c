// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ranks/ranks.h"

#include "core/ranks/patience.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace meshwright {

std::int64_t firstDeviceOf(std::int64_t rank, std::int64_t ranks, std::int64_t devices)
{
    assert(ranks >= 1 && ranks <= devices);
    return rank * (devices / ranks) + std::min(rank, devices % ranks);
}

int rankOfDevice(std::int64_t device, std::int64_t ranks, std::int64_t devices)
{
    std::int64_t rank = 0;
    while (firstDeviceOf(rank + 1, ranks, devices) <= device)
        ++rank;
    return static_cast<int>(rank);
}

Ranks::Ranks(std::unique_ptr<RankPort> port)
    : m_port(std::move(port))
    , m_rank(m_port->rank())
    , m_size(m_port->size())
{
}

Ranks::~Ranks()
{
    if (!m_isBroken.load() && !failure())
        m_port->leave();
}

namespace {

/// Calls `part(first, bytes)` for the pieces of a message that are small enough for the library.
template <typename Part>
void inParts(std::size_t size, const Part& part)
{
    const auto bytes = static_cast<std::int64_t>(size);
    for (std::int64_t first = 0; first < bytes; first += kMostMessageBytes)
        part(first, std::min(kMostMessageBytes, bytes - first));
}

} // namespace

Ranks::UnderWay Ranks::begin(int tag, const Outgoing& message)
{
    UnderWay begun;
    inParts(message.bytes.size(), [&](std::int64_t first, std::int64_t bytes) {
        begun.parts.push_back(m_port->send(message.to, tag, message.bytes.data() + first, bytes));
    });
    return begun;
}

Ranks::UnderWay Ranks::begin(int tag, const Incoming& message)
{
    UnderWay begun;
    inParts(message.bytes.size(), [&](std::int64_t first, std::int64_t bytes) {
        begun.parts.push_back(m_port->receive(message.from, tag, message.bytes.data() + first, bytes));
    });
    return begun;
}

Result<bool> Ranks::isDone(UnderWay& message)
{
    bool failed = false;
    std::erase_if(message.parts, [&](std::size_t part) {
        const RankPort::State state = m_port->stateOf(part);
        failed = failed || state == RankPort::State::Failed;
        return state != RankPort::State::UnderWay;
    });
    if (!failed)
        return message.parts.empty();
    const Problem problem{"MW1555", fmt::format("{} could not exchange data with the others", nameOf(m_rank)),
        "see MPI's messages, and start the job again"};
    raise(problem);
    return problem;
}

Result<Done> Ranks::exchange(
    int tag, std::span<const Outgoing> outgoing, std::span<const Incoming> incoming, const StopFlag* stop)
{
    if (const auto why = failure())
        return *why;
    std::vector<UnderWay> underWay;
    for (const Incoming& message : incoming)
        underWay.push_back(begin(tag, message));
    for (const Outgoing& message : outgoing)
        underWay.push_back(begin(tag, message));
    return await(underWay, stop);
}

Result<Done> Ranks::exchangeAgreed(
    int tag, const Messages& first, const std::function<Result<Done>()>& check, const Messages& second, const StopFlag* stop)
{
    if (const auto why = failure())
        return *why;
    std::vector<UnderWay> underWay;
    std::vector<UnderWay> later;
    for (const Incoming& message : first.incoming)
        underWay.push_back(begin(tag, message));
    for (const Messages* messages : {&first, &second}) {
        for (const Outgoing& message : messages->outgoing)
            later.push_back(begin(tag, message));
    }
    if (auto done = await(underWay, stop); !done)
        return done;
    if (auto agreed = check(); !agreed) {
        giveUp();
        return agreed;
    }
    for (const Incoming& message : second.incoming)
        later.push_back(begin(tag, message));
    return await(later, stop);
}

/// Until all are done.
Result<Done> Ranks::await(std::vector<UnderWay>& underWay, const StopFlag* stop)
{
    Patience patience;
    for (;;) {
        std::erase_if(underWay, [&](UnderWay& message) {
            const auto done = isDone(message);
            return !done || *done;
        });
        const auto why = failure();
        const bool isStopped = stop != nullptr && stop->isSet() && !underWay.empty();
        if (why || isStopped) {
            giveUp();
            return why ? *why : Problem{"MW1507", "the run was stopped"};
        }
        if (underWay.empty())
            return Done{};
        patience.wait();
    }
}

int Ranks::newTag()
{
    // All ranks count alike; when the numbers are used up, those of long ago have gone.
    const int number = m_nextTag.fetch_add(1);
    return kPostTag + 1 + (number - 1) % (std::min(m_port->largestTag(), 1 << 20) - kPostTag);
}

Result<bool> Ranks::any(bool mine)
{
    const auto said = all(mine ? "1" : "0");
    if (!said)
        return said.error();
    return std::any_of(said->begin(), said->end(), [](const std::string& one) { return one == "1"; });
}

Result<std::vector<std::string>> Ranks::all(const std::string& mine)
{
    constexpr std::size_t kMost = 4096;
    assert(mine.size() <= kMost);
    // The first message says how long the second one is.
    const auto count = static_cast<std::size_t>(m_size);
    std::vector<std::int64_t> sizes(count, 0);
    std::vector<std::string> said(count);
    const auto own = static_cast<std::int64_t>(mine.size());
    sizes[static_cast<std::size_t>(m_rank)] = own;
    const auto round = [&](const std::span<const std::byte>& sent, const auto& memoryOf) {
        std::vector<Outgoing> outgoing;
        std::vector<Incoming> incoming;
        for (int other = 0; other < m_size; ++other) {
            if (other == m_rank)
                continue;
            outgoing.push_back({other, sent});
            incoming.push_back({other, memoryOf(static_cast<std::size_t>(other))});
        }
        return exchange(kHostTag, outgoing, incoming);
    };
    if (auto done = round(std::as_bytes(std::span(&own, 1)),
            [&](std::size_t other) { return std::as_writable_bytes(std::span(&sizes[other], 1)); });
        !done)
        return done.error();
    for (std::size_t other = 0; other < count; ++other)
        said[other].resize(std::min(kMost, static_cast<std::size_t>(std::max<std::int64_t>(sizes[other], 0))));
    said[static_cast<std::size_t>(m_rank)] = mine;
    if (auto done = round(
            std::as_bytes(std::span(mine)), [&](std::size_t other) { return std::as_writable_bytes(std::span(said[other])); });
        !done)
        return done.error();
    return said;
}

Result<Done> Ranks::share(std::span<const Shared> pieces, Readers readers)
{
    std::vector<Outgoing> outgoing;
    std::vector<Incoming> incoming;
    const int end = readers == Readers::First ? 1 : m_size;
    for (const Shared& piece : pieces) {
        if (piece.giver != m_rank && m_rank < end)
            incoming.push_back({piece.giver, piece.bytes});
        for (int reader = 0; piece.giver == m_rank && reader < end; ++reader) {
            if (reader != m_rank)
                outgoing.push_back({reader, piece.bytes});
        }
    }
    return exchange(kHostTag, outgoing, incoming);
}

std::optional<Problem> Ranks::failure() const
{
    const std::lock_guard lock(m_mutex);
    return m_failure;
}

void Ranks::raise(const Problem& problem)
{
    const std::lock_guard lock(m_mutex);
    if (m_failure)
        return;
    m_failure = problem;
    for (const auto& [number, call] : m_alarms)
        call(problem);
}

Ranks::Alarm::Alarm(Ranks& ranks, std::function<void(const Problem&)> call)
    : m_ranks(ranks)
{
    const std::lock_guard lock(ranks.m_mutex);
    m_number = ranks.m_nextAlarm++;
    if (ranks.m_failure)
        call(*ranks.m_failure);
    ranks.m_alarms.emplace(m_number, std::move(call));
}

Ranks::Alarm::~Alarm()
{
    const std::lock_guard lock(m_ranks.m_mutex);
    m_ranks.m_alarms.erase(m_number);
}

std::string Ranks::nameOf(int rank) const
{
    std::string name = fmt::format("rank {} of {}", rank, m_size);
    const std::int64_t devices = m_devices.load();
    if (devices < m_size)
        return name;
    const std::int64_t first = firstDeviceOf(rank, m_size, devices);
    const std::int64_t last = firstDeviceOf(rank + 1, m_size, devices) - 1;
    return name + (first == last ? fmt::format(" (device {})", first) : fmt::format(" (devices {} to {})", first, last));
}

} // namespace meshwright
