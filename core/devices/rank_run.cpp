// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/rank_run.h"

#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace meshwright {

namespace {

// The first word of a letter.
constexpr std::int64_t kMessage = 0; ///< then: mailbox, sender, piece, microbatch, backward
constexpr std::int64_t kReport = 1;

constexpr char kPartEnd = '\x1d';

/// For so long devices are idle before it is worth a message: they often are, for moments.
constexpr std::chrono::milliseconds kSettling(20);

AlignedBytes bytesOf(const std::string& text)
{
    AlignedBytes bytes(static_cast<std::int64_t>(text.size()));
    if (!text.empty())
        std::memcpy(bytes.data(), text.data(), text.size());
    return bytes;
}

std::vector<std::int64_t> numbersIn(const std::string& text)
{
    std::vector<std::int64_t> numbers;
    for (const std::string& word : split(text, ' '))
        numbers.push_back(parseInteger(word).value_or(0));
    return numbers;
}

std::string writtenMeetings(std::span<const Meeting> meetings)
{
    std::vector<std::int64_t> numbers;
    for (const Meeting& meeting : meetings)
        numbers.insert(numbers.end(), {meeting.number, meeting.begun, meeting.isAwaited ? 1 : 0});
    return fmt::format("{}", fmt::join(numbers, " "));
}

std::vector<Meeting> readMeetings(const std::string& text)
{
    const std::vector<std::int64_t> numbers = numbersIn(text);
    std::vector<Meeting> meetings;
    for (std::size_t at = 0; at + 2 < numbers.size(); at += 3)
        meetings.push_back({numbers[at], numbers[at + 1], numbers[at + 2] != 0});
    return meetings;
}

} // namespace

RankRun::RankRun(Ranks& ranks, RankPost& post, Devices devices, double stallSeconds)
    : m_ranks(ranks)
    , m_post(post)
    , m_devices(std::move(devices))
    , m_watch(stallSeconds)
    , m_interval(stallSeconds / 8)
    , m_reports(static_cast<std::size_t>(ranks.size()))
{
}

void RankRun::send(RankPost& post, int to, std::int64_t mailbox, const MessageTag& tag, AlignedBytes message)
{
    post.send(to, {{kMessage, mailbox, tag.sender, tag.piece, tag.microbatch, tag.backward ? 1 : 0}, std::move(message)});
}

void RankRun::untilEnd()
{
    Patience patience;
    bool hasEnded = false;
    for (;;) {
        const auto moved = m_post.poll([this](int from, RankPost::Letter letter) {
            const auto& words = letter.words;
            if (words[0] == kMessage)
                m_devices.deliver(words[1], {words[2], words[3], words[4], words[5] != 0}, std::move(letter.body));
            else
                take(from, letter);
        });
        if (!moved)
            m_devices.fail(moved.error().front());
        if (m_devices.hasEnded()) {
            if (m_devices.hasFailed())
                return;
            if (!hasEnded) {
                if (!m_ranks.isFirst())
                    report(own());
                m_post.endRound();
            }
            hasEnded = true;
            if (m_post.isOver())
                return;
        }
        if (!hasEnded || m_ranks.isFirst())
            look();
        if (moved && *moved)
            patience = Patience();
        else
            pause(patience, hasEnded);
    }
}

/// Where no device waits for messages, there is nothing to be quick for but the end.
void RankRun::pause(Patience& patience, bool hasEnded) const
{
    constexpr std::chrono::milliseconds kBetweenReports(20);
    if (hasEnded)
        patience.wait();
    else if (m_devices.haveMailboxes)
        patience.wait(m_devices.awaitEnd);
    else
        m_devices.awaitEnd(kBetweenReports);
}

void RankRun::take(int from, const RankPost::Letter& letter)
{
    const std::string text(reinterpret_cast<const char*>(letter.body.data()), static_cast<std::size_t>(letter.body.size()));
    const std::vector<std::string> parts = split(text, kPartEnd);
    m_reports[static_cast<std::size_t>(from)] = {
        letter.words[1] != 0, numbersIn(parts.at(0)), numbersIn(parts.at(1)), readStates(parts.at(2)), readMeetings(parts.at(3))};
    m_hasNews = true;
}

RankRun::Report RankRun::own() const
{
    // Before all else: then nothing that follows changes but by what is delivered here, and by the end of a meeting, which is noticed. After a
    // failure waiting ends without being counted.
    const std::int64_t met = m_devices.met();
    const bool isIdle = m_devices.isIdle() && !m_devices.hasFailed();
    Report report{isIdle, m_post.sent(), m_post.received(), m_devices.states(), m_devices.meetings()};
    report.isIdle = isIdle && m_devices.met() == met;
    return report;
}

void RankRun::report(const Report& report)
{
    const std::string text = fmt::format("{}{}{}{}{}{}{}", fmt::join(report.sent, " "), kPartEnd, fmt::join(report.received, " "),
        kPartEnd, writtenStates(report.states), kPartEnd, writtenMeetings(report.meetings));
    m_post.send(0, {{kReport, report.isIdle ? 1 : 0}, bytesOf(text), false});
}

void RankRun::look()
{
    const auto now = StallWatch::Clock::now();
    const bool isTime = m_interval.count() > 0.0 && now - m_looked >= m_interval;
    if (isTime)
        m_looked = now;
    if (m_ranks.isFirst()) {
        lookAtAll(now, isTime);
        return;
    }
    const bool isSettledNews = isSettled(now) && m_hasNews;
    if ((!isTime && !isSettledNews) || m_devices.hasFailed())
        return;
    const Report mine = own();
    m_hasNews = !mine.isIdle;
    report(mine);
}

/// True when all here have been idle for a while. What moved between two looks has made news.
bool RankRun::isSettled(StallWatch::Clock::time_point now)
{
    const std::int64_t met = m_devices.met();
    if (m_devices.isIdle() && met == m_met && m_post.received() == m_received)
        return now - m_changed >= kSettling;
    m_met = met;
    m_received = m_post.received();
    m_changed = now;
    m_hasNews = true;
    return false;
}

void RankRun::lookAtAll(StallWatch::Clock::time_point now, bool isTime)
{
    if (isSettled(now) && m_hasNews) {
        const Report mine = own();
        m_hasNews = !mine.isIdle;
        if (isStuck(mine)) {
            m_devices.fail(stuckProblem(statesOfAll(mine)));
            return;
        }
    }
    if (!isTime || m_devices.hasFailed())
        return;
    const std::vector<DeviceState> states = statesOfAll(own());
    if (!m_watch.look(states))
        return;
    if (auto problem = m_watch.problem(states))
        m_devices.fail(*std::move(problem));
}

/// Who is idle moves again only when a message comes, and none is under way where each had got from every other what that one had sent. It does not
/// matter that the processes report at different times: the first to move after its report would have got a message that another one had sent
/// before its own report, and that would be missing in the counts. In the same way it could only have met others who had come before their reports.
bool RankRun::isStuck(const Report& mine) const
{
    const auto size = static_cast<std::size_t>(m_ranks.size());
    for (std::size_t rank = 0; rank < size; ++rank) {
        if (!reportOf(rank, mine).isIdle)
            return false;
    }
    for (std::size_t from = 0; from < size; ++from) {
        for (std::size_t to = 0; to < size; ++to) {
            if (from != to && reportOf(from, mine).sent.at(to) != reportOf(to, mine).received.at(from))
                return false;
        }
    }
    for (std::size_t rank = 0; rank < size; ++rank) {
        const std::vector<Meeting>& meetings = reportOf(rank, mine).meetings;
        if (std::any_of(meetings.begin(), meetings.end(),
                [&](const Meeting& meeting) { return meeting.isAwaited && canMeet(meeting, mine); }))
            return false;
    }
    const std::vector<DeviceState> states = statesOfAll(mine);
    return std::any_of(states.begin(), states.end(), [](const DeviceState& state) { return !state.hasFinished; });
}

/// Whether all who take part have come, so that whoever waits goes on.
bool RankRun::canMeet(const Meeting& meeting, const Report& mine) const
{
    for (std::size_t rank = 0; rank < m_reports.size(); ++rank) {
        for (const Meeting& other : reportOf(rank, mine).meetings) {
            if (other.number == meeting.number && other.begun < meeting.begun)
                return false;
        }
    }
    return true;
}

/// Of a device whose process has said nothing yet nothing is known: it has not arrived.
std::vector<DeviceState> RankRun::statesOfAll(const Report& mine) const
{
    std::vector<DeviceState> states(static_cast<std::size_t>(m_devices.count));
    for (std::size_t device = 0; device < states.size(); ++device)
        states[device].device = static_cast<std::int64_t>(device);
    for (std::size_t rank = 0; rank < m_reports.size(); ++rank) {
        for (const DeviceState& state : reportOf(rank, mine).states)
            states.at(static_cast<std::size_t>(state.device)) = state;
    }
    return states;
}

} // namespace meshwright
