// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/sweep/rank_sweep.h"

#include "core/support/text.h"
#include "core/support/thread_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <numeric>
#include <thread>

namespace meshwright::sim {

namespace {

constexpr char kFieldEnd = '\x1f';
constexpr char kPoint = 'P'; ///< before the settings that are asked for
constexpr const char* kNoMore = "E";

Result<Done> sendText(Ranks& ranks, int to, int tag, const std::string& text)
{
    const auto bytes = static_cast<std::int64_t>(text.size());
    const std::vector<Ranks::Outgoing> messages
        = {{to, std::as_bytes(std::span(&bytes, 1))}, {to, std::as_bytes(std::span(text))}};
    return ranks.exchange(tag, messages, {});
}

Result<std::string> receiveText(Ranks& ranks, int from, int tag)
{
    std::int64_t bytes = 0;
    const std::vector<Ranks::Incoming> size = {{from, std::as_writable_bytes(std::span(&bytes, 1))}};
    if (const auto done = ranks.exchange(tag, {}, size); !done)
        return done.error();
    std::string text(static_cast<std::size_t>(bytes), '\0');
    const std::vector<Ranks::Incoming> content = {{from, std::as_writable_bytes(std::span(text))}};
    if (const auto done = ranks.exchange(tag, {}, content); !done)
        return done.error();
    return text;
}

/// A thread of another rank, which is asked by messages of its own tag.
struct Seat {
    int rank = 0;
    int tag = 0;
};

int tagOf(int job)
{
    return Ranks::kHostTag + 1 + job;
}

/// The threads of all ranks; each is with one who asks at a time.
class Seats {
public:
    explicit Seats(std::vector<Seat> free)
        : m_free(std::move(free))
    {
    }

    /// There are as many who ask as there are seats.
    Seat take()
    {
        const std::lock_guard lock(m_mutex);
        const Seat seat = m_free.back();
        m_free.pop_back();
        return seat;
    }

    void giveBack(const Seat& seat)
    {
        const std::lock_guard lock(m_mutex);
        m_free.push_back(seat);
    }

private:
    std::mutex m_mutex;
    std::vector<Seat> m_free;
};

std::optional<SweepOutcome> asked(Ranks& ranks, const Seat& seat, const std::vector<std::string>& settings)
{
    std::string question(1, kPoint);
    for (const std::string& setting : settings)
        question += setting + kFieldEnd;
    if (!sendText(ranks, seat.rank, seat.tag, question))
        return std::nullopt;
    const auto answer = receiveText(ranks, seat.rank, seat.tag);
    return answer ? readOutcomeLine(*answer) : std::nullopt;
}

} // namespace

RankSweep::RankSweep(std::shared_ptr<Ranks> ranks, std::vector<int> jobs)
    : m_ranks(std::move(ranks))
    , m_jobs(std::move(jobs))
{
}

Result<RankSweep> RankSweep::start(std::shared_ptr<Ranks> ranks, int jobs)
{
    const auto said = ranks->all(std::to_string(jobs));
    if (!said)
        return said.error();
    std::vector<int> byRank;
    for (const std::string& one : *said)
        byRank.push_back(static_cast<int>(parseInteger(one).value_or(1)));
    return RankSweep(std::move(ranks), std::move(byRank));
}

int RankSweep::jobs() const
{
    return std::accumulate(m_jobs.begin(), m_jobs.end(), 0);
}

SweepEngine RankSweep::engineOver(SweepEngine own) const
{
    std::vector<Seat> free;
    for (std::size_t rank = 0; rank < m_jobs.size(); ++rank) {
        for (int job = 0; job < m_jobs[rank]; ++job)
            free.push_back({static_cast<int>(rank), tagOf(job)});
    }
    const auto seats = std::make_shared<Seats>(std::move(free));
    SweepEngine engine;
    engine.keyOf = own.keyOf;
    engine.outcomeOf = [seats, ranks = m_ranks, outcomeOf = std::move(own.outcomeOf)](const std::vector<std::string>& settings) {
        const Seat seat = seats->take();
        auto outcome = seat.rank == 0 ? std::nullopt : asked(*ranks, seat, settings);
        if (!outcome)
            outcome = outcomeOf(settings);
        seats->giveBack(seat);
        return *outcome;
    };
    return engine;
}

Result<Done> RankSweep::end() const
{
    for (std::size_t rank = 1; rank < m_jobs.size(); ++rank) {
        for (int job = 0; job < m_jobs[rank]; ++job) {
            if (auto done = sendText(*m_ranks, static_cast<int>(rank), tagOf(job), kNoMore); !done)
                return done;
        }
    }
    return Done{};
}

Result<Done> RankSweep::serve(const SweepEngine& engine) const
{
    std::mutex mutex;
    Problems problems;
    const auto answer = [&](int tag) -> Result<Done> {
        for (;;) {
            const auto question = receiveText(*m_ranks, 0, tag);
            if (!question)
                return question.error();
            if (*question == kNoMore)
                return Done{};
            std::vector<std::string> settings = split(std::string_view(*question).substr(1), kFieldEnd);
            settings.pop_back(); // what stands behind the last end
            if (auto done = sendText(*m_ranks, 0, tag, outcomeLine(engine.outcomeOf(settings))); !done)
                return done;
        }
    };
    ThreadFailure failure;
    {
        std::vector<std::jthread> threads;
        for (int job = 0; job < m_jobs[static_cast<std::size_t>(m_ranks->rank())]; ++job) {
            threads.emplace_back([&, job] {
                failure.guard([&] {
                    const auto done = answer(tagOf(job));
                    const std::lock_guard lock(mutex);
                    if (!done && problems.empty())
                        problems = done.error();
                });
            });
        }
    }
    failure.rethrow();
    if (!problems.empty())
        return problems;
    return Done{};
}

namespace {

/// Calls `field` with every member of an outcome but its state, in one order.
template <typename Outcome, typename Field>
void forEachField(Outcome& outcome, const Field& field)
{
    field(outcome.mesh);
    field(outcome.hardware);
    field(outcome.devices);
    field(outcome.batch);
    field(outcome.stepSeconds);
    field(outcome.computeSeconds);
    field(outcome.exposedSeconds);
    field(outcome.bubbleSeconds);
    field(outcome.mfu);
    field(outcome.peakBytes);
    field(outcome.capacityBytes);
    field(outcome.usableBytes);
    field(outcome.boundBy);
    field(outcome.problem);
    field(outcome.message);
    field(outcome.fix);
}

/// Doubles travel as their bits.
std::string fieldText(const std::string& text)
{
    return text;
}
std::string fieldText(std::int64_t number)
{
    return std::to_string(number);
}
std::string fieldText(double number)
{
    return std::to_string(std::bit_cast<std::int64_t>(number));
}

bool readField(const std::string& text, std::string& to)
{
    to = text;
    return true;
}
bool readField(const std::string& text, std::int64_t& to)
{
    const auto number = parseInteger(text);
    to = number.value_or(0);
    return number.has_value();
}
bool readField(const std::string& text, double& to)
{
    const auto bits = parseInteger(text);
    to = std::bit_cast<double>(bits.value_or(0));
    return bits.has_value();
}

} // namespace

std::string outcomeLine(const SweepOutcome& outcome)
{
    std::string line = std::to_string(static_cast<int>(outcome.state));
    forEachField(outcome, [&](const auto& value) { line += kFieldEnd + fieldText(value); });
    return line;
}

std::optional<SweepOutcome> readOutcomeLine(std::string_view line)
{
    const std::vector<std::string> fields = split(line, kFieldEnd);
    constexpr std::size_t kFields = 17;
    const auto state = parseInteger(fields.front());
    if (fields.size() != kFields || !state || *state < 0 || *state > static_cast<int>(SweepState::Refused))
        return std::nullopt;
    SweepOutcome outcome;
    outcome.state = static_cast<SweepState>(*state);
    std::size_t at = 1;
    bool isFine = true;
    forEachField(outcome, [&](auto& value) { isFine = readField(fields[at++], value) && isFine; });
    return isFine ? std::optional(outcome) : std::nullopt;
}

} // namespace meshwright::sim
