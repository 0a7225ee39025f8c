// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/device_states.h"
#include "core/devices/rank_post.h"
#include "tests/rank_threads.h"
#include "tests/test_class.h"

#include <cstring>

namespace tst_rank_post {

using namespace meshwright;
using namespace meshwright::tests;

/// Letters between the processes of a job, and what these say of their devices.
class TestRankPost : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void lettersInOrder();
    void givenUp();
    void failedForGood();
    void allWaitForTooLong();
    void statesOnTheWay();
};

namespace {

RankPost::Letter letterOf(std::int64_t sender, std::int64_t number)
{
    RankPost::Letter letter{{sender, number}, AlignedBytes(number % 3 == 0 ? 0 : 100 * number), number % 2 == 0};
    if (letter.body.size() > 0)
        std::memset(letter.body.data(), static_cast<int>(number), static_cast<std::size_t>(letter.body.size()));
    return letter;
}

bool isLetter(const RankPost::Letter& letter, std::int64_t number)
{
    const RankPost::Letter expected = letterOf(0, number);
    return letter.words[1] == number && letter.isCounted == expected.isCounted && letter.body.size() == expected.body.size()
        && (letter.body.size() == 0
            || std::memcmp(letter.body.data(), expected.body.data(), static_cast<std::size_t>(letter.body.size())) == 0);
}

} // namespace

/// Two threads of each of three processes send to both others, round after round; letters of one thread stay in order, and a round ends only
/// when all have come.
void TestRankPost::lettersInOrder()
{
    constexpr std::int64_t kLetters = 20;
    constexpr int kRanks = 3;
    QVERIFY(onRanks(kRanks, [](const std::shared_ptr<Ranks>& ranks) {
        RankPost post(*ranks);
        bool isFine = true;
        for (int round = 0; round < 3 && isFine; ++round) {
            post.beginRound();
            const auto sendAll = [&](std::int64_t sender) {
                for (std::int64_t number = 0; number < kLetters; ++number) {
                    for (int to = 0; to < kRanks; ++to) {
                        if (to != ranks->rank())
                            post.send(to, letterOf(sender, number));
                    }
                }
            };
            std::map<std::pair<int, std::int64_t>, std::int64_t> next; // by rank and sender
            std::atomic<int> senders{2};
            std::vector<std::jthread> threads;
            for (const std::int64_t sender : {0, 1}) {
                threads.emplace_back([&, sender] {
                    sendAll(sender);
                    --senders;
                });
            }
            for (bool hasEnded = false; isFine && !(hasEnded && post.isOver());) {
                const auto moved = post.poll([&](int from, const RankPost::Letter& letter) {
                    isFine = isFine && isLetter(letter, next[{from, letter.words[0]}]++);
                });
                isFine = isFine && moved;
                if (!hasEnded && senders.load() == 0) {
                    post.endRound();
                    hasEnded = true;
                }
            }
            for (int from = 0; from < kRanks; ++from) {
                const bool isOther = from != ranks->rank();
                isFine = isFine && post.sent().at(static_cast<std::size_t>(from)) == (isOther ? kLetters : 0)
                    && post.received().at(static_cast<std::size_t>(from)) == (isOther ? kLetters : 0);
            }
            isFine = isFine && next.size() == 4;
        }
        return isFine;
    }));
}

/// What nobody waits for any more is left to the library, with its memory, and the job does not end in good order.
void TestRankPost::givenUp()
{
    const auto messages = std::make_shared<MemoryMessages>(2);
    Ranks ranks(std::make_unique<MemoryPort>(messages, 0));
    {
        RankPost post(ranks);
        QVERIFY(post.isOver());
        post.beginRound();
        post.send(1, letterOf(0, 4));
        QVERIFY(!post.isOver());
    }
    Ranks other(std::make_unique<MemoryPort>(messages, 1));
    RankPost post(other);
    post.beginRound();
    int heard = 0;
    while (heard == 0)
        QVERIFY(post.poll([&](int, const RankPost::Letter& letter) { heard += isLetter(letter, 4) ? 1 : 0; }));
}

namespace {

/// Whose first message fails.
class FailingPort final : public RankPort {
public:
    int rank() const override { return 0; }
    int size() const override { return 2; }
    int largestTag() const override { return 32767; }
    std::size_t send(int, int, const std::byte*, std::int64_t) override { return m_count++; }
    std::size_t receive(int, int, std::byte*, std::int64_t) override { return m_count++; }
    State stateOf(std::size_t message) override { return message == 0 ? State::Failed : State::Done; }
    void leave() override { }

private:
    std::size_t m_count = 0;
};

} // namespace

/// After a message has failed nothing is taken for a letter.
void TestRankPost::failedForGood()
{
    Ranks ranks(std::make_unique<FailingPort>());
    RankPost post(ranks);
    post.beginRound();
    for (int i = 0; i < 3; ++i) {
        const auto moved = post.poll([](int, const RankPost::Letter&) { QFAIL("no letter has come"); });
        QVERIFY(!moved);
        QCOMPARE(moved.error().front().id, std::string("MW1555"));
    }
}

/// Where nobody is missing and still nobody moves, that is said too; not of one that has only just come.
void TestRankPost::allWaitForTooLong()
{
    std::vector<DeviceState> states = {{0, true, false, 7, "all_reduce of loss", ""}, {1, true, false, 3, "all_gather of w", ""}};
    StallWatch patient(1e6);
    QVERIFY(!patient.look(states) && !patient.problem(states));
    StallWatch watch(0.0);
    QVERIFY(watch.look(states));
    QCOMPARE(watch.problem(states).value_or(Problem{}).id, std::string("MW1506"));
    states[1].isWaiting = false;
    QVERIFY(watch.look(states));
    QCOMPARE(watch.problem(states).value_or(Problem{}).id, std::string("MW1522"));
}

void TestRankPost::statesOnTheWay()
{
    const std::vector<DeviceState> states = {{0, true, false, 7, "all_reduce of loss", "dot of x"}, {12, false, true, 0, "", ""}};
    const std::vector<DeviceState> read = readStates(writtenStates(states));
    QCOMPARE(read.size(), states.size());
    for (std::size_t i = 0; i < read.size(); ++i) {
        QCOMPARE(read[i].device, states[i].device);
        QCOMPARE(read[i].isWaiting, states[i].isWaiting);
        QCOMPARE(read[i].hasFinished, states[i].hasFinished);
        QCOMPARE(read[i].waits, states[i].waits);
        QCOMPARE(read[i].place, states[i].place);
        QCOMPARE(read[i].doing, states[i].doing);
    }
    QCOMPARE(stuckProblem(read).message,
        std::string("no device can proceed: device 0 waits in all_reduce of loss, 1 of 2 have finished (device 12)"));
}

MESHWRIGHT_TEST(TestRankPost)

} // namespace tst_rank_post

#include "tst_rank_post.moc"
