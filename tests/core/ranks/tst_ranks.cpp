// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ranks/launch.h"
#include "tests/rank_threads.h"
#include "tests/test_class.h"

#include <algorithm>
#include <atomic>
#include <numeric>

namespace tst_ranks {

using namespace meshwright;
using namespace meshwright::tests;

using Variables = std::map<std::string, std::string>;

class TestRanks : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void blocks_data();
    void blocks();
    void names();
    void messagesMatchInOrder();
    void agreement();
    void disagreementEndsTheExchange();
    void tagsAreTheSame();
    void stopped();
    void failureEndsExchanges();
    void messagesThatFail();
    void alarms();
    void launchers_data();
    void launchers();
    void withoutTheModule();
    void farewellIsNoLoss();
    void failureIsReported();
};

void TestRanks::blocks_data()
{
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("devices");
    QTest::addColumn<std::vector<int>>("rankOf"); // by device

    QTest::newRow("one") << 1 << 3 << std::vector<int>{0, 0, 0};
    QTest::newRow("even") << 2 << 4 << std::vector<int>{0, 0, 1, 1};
    QTest::newRow("one each") << 3 << 3 << std::vector<int>{0, 1, 2};
    QTest::newRow("uneven: the first have one more") << 3 << 8 << std::vector<int>{0, 0, 0, 1, 1, 1, 2, 2};
    QTest::newRow("uneven: 4 over 3") << 3 << 4 << std::vector<int>{0, 0, 1, 2};
}

void TestRanks::blocks()
{
    QFETCH(int, ranks);
    QFETCH(int, devices);
    QFETCH(std::vector<int>, rankOf);
    std::vector<int> found;
    for (int device = 0; device < devices; ++device)
        found.push_back(rankOfDevice(device, ranks, devices));
    QVERIFY(found == rankOf);
    QCOMPARE(firstDeviceOf(0, ranks, devices), std::int64_t{0});
    QCOMPARE(firstDeviceOf(ranks, ranks, devices), std::int64_t{devices});
}

void TestRanks::names()
{
    const auto messages = std::make_shared<MemoryMessages>(3);
    Ranks ranks(std::make_unique<MemoryPort>(messages, 1));
    QCOMPARE(ranks.nameOf(2), std::string("rank 2 of 3"));
    ranks.setDeviceCount(4);
    QCOMPARE(ranks.nameOf(0), std::string("rank 0 of 3 (devices 0 to 1)"));
    QCOMPARE(ranks.nameOf(2), std::string("rank 2 of 3 (device 3)"));
    QVERIFY(!ranks.speaks());
    ranks.firstIsLost();
    QVERIFY(ranks.speaks());
}

void TestRanks::messagesMatchInOrder()
{
    QVERIFY(onRanks(3, [](const std::shared_ptr<Ranks>& ranks) {
        const int next = (ranks->rank() + 1) % 3;
        const int before = (ranks->rank() + 2) % 3;
        const std::vector<int> first = {ranks->rank()};
        const std::vector<int> second = {10 * ranks->rank(), 7};
        std::vector<int> got(1, -1);
        std::vector<int> gotNext(2, -1);
        std::vector<int> nothing;
        const std::vector<Ranks::Outgoing> outgoing = {{next, std::as_bytes(std::span(first))},
            {before, std::as_bytes(std::span(nothing))}, {next, std::as_bytes(std::span(second))}};
        const std::vector<Ranks::Incoming> incoming = {{before, std::as_writable_bytes(std::span(got))},
            {before, std::as_writable_bytes(std::span(gotNext))}, {next, std::as_writable_bytes(std::span(nothing))}};
        return ranks->exchange(5, outgoing, incoming).has_value() && got == std::vector<int>{before}
        && gotNext == std::vector<int>{10 * before, 7};
    }));
}

void TestRanks::agreement()
{
    QVERIFY(onRanks(3, [](const std::shared_ptr<Ranks>& ranks) {
        const auto none = ranks->any(false);
        const auto one = ranks->any(ranks->rank() == 2);
        const auto said = ranks->all(std::string(static_cast<std::size_t>(ranks->rank()), 'x'));
        return none && !*none && one && *one && said && *said == std::vector<std::string>{"", "x", "xx"};
    }));
}

/// What the check finds is the problem of the exchange; nothing of the second exchange is taken any more.
void TestRanks::disagreementEndsTheExchange()
{
    QVERIFY(onRanks(2, [](const std::shared_ptr<Ranks>& ranks) {
        const int other = 1 - ranks->rank();
        const int own = ranks->rank();
        int others = -1;
        int taken = -1;
        const std::vector<Ranks::Outgoing> outgoing = {{other, std::as_bytes(std::span(&own, 1))}};
        const std::vector<Ranks::Incoming> first = {{other, std::as_writable_bytes(std::span(&others, 1))}};
        const std::vector<Ranks::Incoming> second = {{other, std::as_writable_bytes(std::span(&taken, 1))}};
        const auto check = [&]() -> Result<Done> {
            return others == own ? Result<Done>(Done{}) : Problem{"MW1505", "they differ"};
        };
        const auto done = ranks->exchangeAgreed(5, {outgoing, first}, check, {outgoing, second});
        return !done && done.error().front().message == "they differ" && others == other && taken == -1;
    }));
}

void TestRanks::tagsAreTheSame()
{
    const auto messages = std::make_shared<MemoryMessages>(2);
    Ranks one(std::make_unique<MemoryPort>(messages, 0));
    Ranks two(std::make_unique<MemoryPort>(messages, 1));
    for (int i = 0; i < 40000; ++i) { // more than there are
        const int tag = one.newTag();
        QCOMPARE(two.newTag(), tag);
        QVERIFY(tag != Ranks::kHostTag && tag != Ranks::kPostTag && tag <= 32767);
    }
}

void TestRanks::stopped()
{
    const auto messages = std::make_shared<MemoryMessages>(2);
    Ranks ranks(std::make_unique<MemoryPort>(messages, 0));
    StopFlag stop;
    std::byte byte{};
    const std::vector<Ranks::Incoming> incoming = {{1, std::span(&byte, 1)}};
    const std::jthread stopper([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        stop.set();
    });
    const auto done = ranks.exchange(1, {}, incoming, &stop);
    QVERIFY(!done);
    QCOMPARE(done.error().front().id, std::string("MW1507"));
}

void TestRanks::failureEndsExchanges()
{
    std::atomic<int> heard = 0;
    QVERIFY(!onRanks(3, [&](const std::shared_ptr<Ranks>& ranks) {
        if (ranks->rank() == 1)
            return false; // never comes
        const auto said = ranks->any(false);
        if (!said && said.error().front().id == "MW1551" && !ranks->exchange(3, {}, {}))
            ++heard;
        return true;
    }));
    QCOMPARE(heard.load(), 2);
}

/// A library that cannot carry anything.
class BrokenPort final : public RankPort {
public:
    int rank() const override { return 0; }
    int size() const override { return 2; }
    int largestTag() const override { return 32767; }
    std::size_t send(int, int, const std::byte*, std::int64_t) override { return 0; }
    std::size_t receive(int, int, std::byte*, std::int64_t) override { return 0; }
    State stateOf(std::size_t) override { return State::Failed; }
    void leave() override { }
};

void TestRanks::messagesThatFail()
{
    Ranks ranks(std::make_unique<BrokenPort>());
    const auto said = ranks.any(true);
    QVERIFY(!said);
    QCOMPARE(said.error().front().id, std::string("MW1555"));
    QVERIFY(ranks.failure().has_value());
}

void TestRanks::alarms()
{
    const auto messages = std::make_shared<MemoryMessages>(2);
    Ranks ranks(std::make_unique<MemoryPort>(messages, 0));
    std::vector<std::string> heard;
    const auto hear = [&](const std::string& who) {
        return [&heard, who](const Problem& problem) { heard.push_back(who + problem.message); };
    };
    {
        const Ranks::Alarm gone(ranks, hear("gone: "));
    }
    const Ranks::Alarm first(ranks, hear("first: "));
    ranks.raise({"MW1551", "lost"});
    ranks.raise({"MW1551", "lost again"});
    const Ranks::Alarm late(ranks, hear("late: "));
    QVERIFY((heard == std::vector<std::string>{"first: lost", "late: lost"}));
    QCOMPARE(ranks.failure()->message, std::string("lost"));
}

void TestRanks::launchers_data()
{
    QTest::addColumn<Variables>("variables");
    QTest::addColumn<int>("rank"); // -1: alone
    QTest::addColumn<int>("size");

    QTest::newRow("alone") << Variables{} << -1 << 1;
    QTest::newRow("Open MPI") << Variables{{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}} << 3 << 4;
    QTest::newRow("MPICH") << Variables{{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}} << 0 << 2;
    QTest::newRow("the only one") << Variables{{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}} << -1 << 1;
    QTest::newRow("no rank") << Variables{{"OMPI_COMM_WORLD_SIZE", "4"}} << -1 << 1;
    QTest::newRow("no numbers") << Variables{{"PMI_SIZE", "two"}, {"PMI_RANK", "0"}} << -1 << 1;
    QTest::newRow("beyond") << Variables{{"PMI_SIZE", "2"}, {"PMI_RANK", "2"}} << -1 << 1;
}

void TestRanks::launchers()
{
    QFETCH(Variables, variables);
    QFETCH(int, rank);
    QFETCH(int, size);
    const auto launch = launchedAs([&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    });
    QCOMPARE(launch.has_value(), rank >= 0);
    if (launch) {
        QCOMPARE(launch->rank, rank);
        QCOMPARE(launch->size, size);
    }
}

/// The module lies beside the program, not beside this test.
void TestRanks::withoutTheModule()
{
    const auto job = joinJob({0, 4});
    QVERIFY(!job);
    QCOMPARE(job.error().front().id, std::string("MW1550"));
    QVERIFY(job.error().front().message.find("4 processes") != std::string::npos);
}

void TestRanks::farewellIsNoLoss()
{
    std::atomic<int> sound = 0;
    QVERIFY(onRanks(3, [&](const std::shared_ptr<Ranks>& ranks) {
        auto watch = RankWatch::start(*ranks);
        if (!watch || ranks->onThisHost() != 3)
            return false;
        if (ranks->rank() != 1) {
            // The others have left when this one looks.
            const bool isFine = ranks->any(false).has_value();
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            sound += isFine && !ranks->failure() ? 1 : 0;
            return isFine;
        }
        const bool isFine = ranks->any(false).has_value();
        watch->reset();
        return isFine;
    }));
    QCOMPARE(sound.load(), 2);
}

void TestRanks::failureIsReported()
{
    std::atomic<int> heard = 0;
    QVERIFY(onRanks(3, [&](const std::shared_ptr<Ranks>& ranks) {
        ranks->setDeviceCount(3);
        auto watch = RankWatch::start(*ranks);
        if (!watch)
            return false;
        if (ranks->rank() == 2) {
            (*watch)->report({Problem{"MW1508", "device 2 failed", "try again"}}); // waits until the first one has heard
            return ranks->failure().has_value();
        }
        std::byte byte{};
        const std::vector<Ranks::Incoming> incoming = {{2, std::span(&byte, 1)}}; // never comes
        const auto done = ranks->exchange(1, {}, incoming);
        if (done)
            return false;
        const Problem& problem = done.error().front();
        if (ranks->isFirst())
            heard += problem.id == "MW1508" && problem.fix == "try again"
                    && problem.message == "rank 2 of 3 (device 2): device 2 failed"
                ? 1
                : 0;
        else
            heard += problem.id == "MW1551" ? 1 : 0;
        return true;
    }));
    QCOMPARE(heard.load(), 2);
}

MESHWRIGHT_TEST(TestRanks)

} // namespace tst_ranks

#include "tst_ranks.moc"
