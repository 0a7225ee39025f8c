// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/clocks.h"
#include "core/devices/virtual_devices.h"
#include "tests/test_class.h"

#include <fstream>
#include <numeric>
#include <set>
#include <stdexcept>
#include <sys/resource.h>
#include <thread>

namespace tst_device_engine {

using namespace meshwright;

namespace {

const VirtualDevices::Place kPlace = [] { return std::string("a meeting"); };

std::unique_ptr<VirtualDevices> fibersOf(std::int64_t count, int permits, double stallSeconds = 0.0)
{
    auto devices
        = VirtualDevices::create(count, {.permits = permits, .stallSeconds = stallSeconds, .engine = EngineKind::Fibers});
    if (!devices)
        qFatal("%s", describe(devices.error()).c_str());
    return *std::move(devices);
}

template <typename T>
std::string idOf(const Result<T>& result)
{
    return result ? "" : result.error().front().id;
}

Result<Done> passed(bool hasPassed)
{
    return hasPassed ? Result<Done>(Done{}) : Result<Done>(VirtualDevices::interrupted());
}

/// How many stretches of this process's memory nothing may touch.
int guardedStretches()
{
    std::ifstream maps("/proc/self/maps");
    int guarded = 0;
    for (std::string line; std::getline(maps, line);)
        guarded += line.find(" ---p ") != std::string::npos ? 1 : 0;
    return guarded;
}

/// Stands on so many bytes of the stack; the sum of what lies there.
int sumOnStack(int kibibytes)
{
    volatile char block[1024];
    for (std::size_t i = 0; i < sizeof block; i += 64)
        block[i] = 1;
    const int deeper = kibibytes > 1 ? sumOnStack(kibibytes - 1) : 0;
    return deeper + block[0];
}

} // namespace

class TestDeviceEngine : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void names();
    void environment();
    void choice_data();
    void choice();
    void neighboursShareAWorker_data();
    void neighboursShareAWorker();
    void waitingGivesTheCoreAway();
    void stacksAreDeepAndGivenBack();
    void exceptionsStayOnTheirFiber();
    void whoStandsStillKeepsNobodyWaiting();
    void readyAfterEveryEnd();
    void noLeakOverRuns();
    void refusedStacks();
};

void TestDeviceEngine::names()
{
    for (const EngineKind kind : {EngineKind::Auto, EngineKind::Threads, EngineKind::Fibers}) {
        const auto parsed = parseEngine(engineName(kind));
        QVERIFY(parsed);
        QCOMPARE(*parsed, kind);
    }
    const auto near = parseEngine("fibres");
    QCOMPARE(idOf(near), std::string("MW1526"));
    QCOMPARE(near.error().front().fix, std::string("did you mean \"fibers\"?"));
    QCOMPARE(parseEngine("rockets").error().front().fix, std::string("use auto, threads or fibers"));
}

void TestDeviceEngine::environment()
{
    qputenv(kEngineVariable, "threads");
    QCOMPARE(valueOf(VirtualDevices::create(64))->engine(), EngineKind::Threads);
    qputenv(kEngineVariable, "treads");
    QCOMPARE(idOf(VirtualDevices::create(2)), std::string("MW1526"));
    QCOMPARE(valueOf(VirtualDevices::create(2, {.engine = EngineKind::Threads}))->engine(), EngineKind::Threads); // said is said
    qputenv(kEngineVariable, "");
    QCOMPARE(valueOf(VirtualDevices::create(2))->engine(), EngineKind::Threads);
    qunsetenv(kEngineVariable);
}

void TestDeviceEngine::choice_data()
{
    QTest::addColumn<int>("wanted");
    QTest::addColumn<int>("devices");
    QTest::addColumn<bool>("several");
    QTest::addColumn<bool>("inBuild");
    QTest::addColumn<QString>("expected");
    const int any = static_cast<int>(EngineKind::Auto);
    const int threads = static_cast<int>(EngineKind::Threads);
    const int fibers = static_cast<int>(EngineKind::Fibers);
    QTest::newRow("few") << any << 32 << false << true << "threads";
    QTest::newRow("many") << any << 33 << false << true << "fibers";
    QTest::newRow("many, not in this build") << any << 33 << false << false << "threads";
    QTest::newRow("many over processes") << any << 33 << true << true << "threads";
    QTest::newRow("threads") << threads << 1024 << false << true << "threads";
    QTest::newRow("fibers") << fibers << 2 << false << true << "fibers";
    QTest::newRow("fibers, not in this build") << fibers << 2 << false << false << "MW1524";
    QTest::newRow("fibers over processes") << fibers << 64 << true << true << "MW1525";
}

void TestDeviceEngine::choice()
{
    QFETCH(int, wanted);
    QFETCH(int, devices);
    QFETCH(bool, several);
    QFETCH(bool, inBuild);
    QFETCH(QString, expected);
    const auto chosen = chooseEngine(static_cast<EngineKind>(wanted), devices, several, inBuild);
    QCOMPARE(chosen ? engineName(*chosen) : idOf(chosen), expected.toStdString());
}

void TestDeviceEngine::neighboursShareAWorker_data()
{
    QTest::addColumn<int>("devices");
    QTest::addColumn<int>("permits");
    QTest::newRow("one worker") << 7 << 1;
    QTest::newRow("two") << 7 << 2;
    QTest::newRow("three") << 7 << 3;
    QTest::newRow("more than devices") << 3 << 8;
}

/// A device never changes its thread, the threads are as many as the permits, and each has a block of devices.
void TestDeviceEngine::neighboursShareAWorker()
{
    if (!hasFibers())
        QSKIP("no fibers in this build");
    QFETCH(int, devices);
    QFETCH(int, permits);
    const auto fibers = fibersOf(devices, permits);
    QCOMPARE(fibers->engine(), EngineKind::Fibers);
    const auto barrier = fibers->makeBarrier(devices);
    std::vector<std::set<std::thread::id>> seen(static_cast<std::size_t>(devices));
    for (int round = 0; round < 3; ++round) {
        const auto done = fibers->run([&](std::int64_t device) -> Result<Done> {
            for (int i = 0; i < 20; ++i) {
                seen[static_cast<std::size_t>(device)].insert(std::this_thread::get_id());
                if (!fibers->wait(device, *barrier, kPlace))
                    return VirtualDevices::interrupted();
            }
            return Done{};
        });
        QVERIFY2(done, done ? "" : describe(done.error()).c_str());
    }
    int blocks = 0;
    std::set<std::thread::id> all;
    for (std::size_t device = 0; device < seen.size(); ++device) {
        QCOMPARE(seen[device].size(), std::size_t{1});
        blocks += device == 0 || seen[device] != seen[device - 1] ? 1 : 0;
        all.merge(std::set(seen[device]));
    }
    QCOMPARE(blocks, std::min(permits, devices));
    QCOMPARE(all.size(), static_cast<std::size_t>(blocks));
}

/// One worker: a message goes round all devices, each of which waits for it from the start.
void TestDeviceEngine::waitingGivesTheCoreAway()
{
    if (!hasFibers())
        QSKIP("no fibers in this build");
    constexpr std::int64_t kDevices = 5;
    constexpr std::int64_t kRounds = 50;
    const auto fibers = fibersOf(kDevices, 1);
    std::vector<std::shared_ptr<Mailbox>> boxes;
    for (std::int64_t device = 0; device < kDevices; ++device)
        boxes.push_back(fibers->makeMailbox(device));
    std::vector<std::int64_t> order;
    const auto done = fibers->run([&](std::int64_t device) -> Result<Done> {
        const auto sendOn = [&](std::int64_t round) {
            const std::int64_t next = (device + 1) % kDevices;
            boxes[static_cast<std::size_t>(next)]->send({device, 0, round, false}, AlignedBytes(64));
        };
        for (std::int64_t round = 0; round < kRounds; ++round) {
            if (device == 0)
                sendOn(round);
            const MessageTag tag{(device + kDevices - 1) % kDevices, 0, round, false};
            AlignedBytes message;
            if (!fibers->receive(device, *boxes[static_cast<std::size_t>(device)], tag, message, kPlace))
                return VirtualDevices::interrupted();
            order.push_back(device);
            if (device != 0)
                sendOn(round);
        }
        return Done{};
    });
    QVERIFY2(done, done ? "" : describe(done.error()).c_str());
    QCOMPARE(order.size(), static_cast<std::size_t>(kDevices * kRounds));
    for (std::size_t i = 0; i < order.size(); ++i)
        QCOMPARE(order[i], static_cast<std::int64_t>((i + 1) % kDevices));
}

void TestDeviceEngine::stacksAreDeepAndGivenBack()
{
    if (!hasFibers())
        QSKIP("no fibers in this build");
    constexpr int kDevices = 40;
    static_cast<void>(fibersOf(kDevices, 2)); // threads of this process leave stacks of their own for the next ones
    const int before = guardedStretches();
    for (int round = 0; round < 5; ++round) {
        const auto fibers = fibersOf(kDevices, 2);
        QVERIFY(guardedStretches() >= before + kDevices); // each has its page that nothing may touch
        const auto barrier = fibers->makeBarrier(kDevices);
        std::atomic<int> sum{0};
        QVERIFY(fibers->run([&](std::int64_t device) {
            sum += sumOnStack(400);
            return passed(fibers->wait(device, *barrier, kPlace));
        }));
        QCOMPARE(sum.load(), 400 * kDevices);
    }
    QVERIFY(guardedStretches() <= before + 2);
}

/// Exceptions that are on their way on one device while others throw their own.
void TestDeviceEngine::exceptionsStayOnTheirFiber()
{
    if (!hasFibers())
        QSKIP("no fibers in this build");
    const auto fibers = fibersOf(6, 2);
    const auto barrier = fibers->makeBarrier(6);
    std::atomic<int> caught{0};
    const auto work = [&](std::int64_t device, bool fails) -> Result<Done> {
        for (int i = 0; i < 20; ++i) {
            try {
                if (!fibers->wait(device, *barrier, kPlace))
                    return VirtualDevices::interrupted();
                throw static_cast<int>(device);
            } catch (int thrown) {
                caught += thrown == device ? 1 : 0;
            }
        }
        if (fails && device == 4)
            throw std::runtime_error("over");
        return passed(fibers->wait(device, *barrier, kPlace));
    };
    QVERIFY(fibers->run([&](std::int64_t device) { return work(device, false); }));
    QCOMPARE(caught.load(), 120);
    const auto failed = fibers->run([&](std::int64_t device) { return work(device, true); });
    QCOMPARE(idOf(failed), std::string("MW1508"));
    QCOMPARE(failed.error().front().message, std::string("device 4 failed: over"));
    QVERIFY(fibers->run([&](std::int64_t device) { return work(device, false); }));
}

/// A device that does nothing more, on the only worker: the others are named as waiting, not as absent.
void TestDeviceEngine::whoStandsStillKeepsNobodyWaiting()
{
    if (!hasFibers())
        QSKIP("no fibers in this build");
    const auto fibers = fibersOf(4, 1, 0.1);
    const auto barrier = fibers->makeBarrier(4);
    for (int round = 0; round < 2; ++round) {
        const auto stalled = fibers->run([&](std::int64_t device) -> Result<Done> {
            if (device == 1) {
                fibers->standStill();
                return VirtualDevices::interrupted();
            }
            return passed(fibers->wait(device, *barrier, kPlace));
        });
        QCOMPARE(idOf(stalled), std::string("MW1522"));
        QVERIFY2(stalled.error().front().message.starts_with(
                     "device 1 has not arrived for 100 ms: devices 0, 2 and 3 wait in a meeting"),
            stalled.error().front().message.c_str());
    }
    QVERIFY(fibers->run([&](std::int64_t device) { return passed(fibers->wait(device, *barrier, kPlace)); }));
}

/// Stuck, stopped, failed, thrown: the next run works.
void TestDeviceEngine::readyAfterEveryEnd()
{
    if (!hasFibers())
        QSKIP("no fibers in this build");
    for (const int permits : {1, 2, 3}) {
        const auto fibers = fibersOf(9, permits);
        const auto barrier = fibers->makeBarrier(9);
        const auto meet = [&](std::int64_t device) { return passed(fibers->wait(device, *barrier, kPlace)); };
        for (int round = 0; round < 10; ++round) {
            const auto stuck
                = fibers->run([&](std::int64_t device) { return device == 5 ? Result<Done>(Done{}) : meet(device); });
            QCOMPARE(idOf(stuck), std::string("MW1506"));
            QVERIFY(stuck.error().front().message.find("1 of 9 have finished (device 5)") != std::string::npos);
            QVERIFY(fibers->run(meet));
            std::stop_source stop;
            const auto stopped = fibers->run(
                [&](std::int64_t device) -> Result<Done> {
                    for (int i = 0;; ++i) {
                        if (device == 7 && i == 3)
                            stop.request_stop();
                        if (Result<Done> met = meet(device); !met)
                            return met;
                    }
                },
                stop.get_token());
            QCOMPARE(idOf(stopped), std::string("MW1507"));
            const auto failed = fibers->run([&](std::int64_t device) {
                return device == 0 ? Result<Done>(Problem{"MW9999", "a fault"}) : meet(device);
            });
            QCOMPARE(idOf(failed), std::string("MW9999"));
            QVERIFY(fibers->run(meet));
        }
    }
}

void TestDeviceEngine::noLeakOverRuns()
{
    if (!hasFibers())
        QSKIP("no fibers in this build");
    const auto fibers = fibersOf(64, 2);
    const auto barrier = fibers->makeBarrier(64);
    const int before = guardedStretches();
    for (int run = 0; run < 300; ++run)
        QVERIFY(fibers->run([&](std::int64_t device) { return passed(fibers->wait(device, *barrier, kPlace)); }));
    QCOMPARE(guardedStretches(), before);
}

void TestDeviceEngine::refusedStacks()
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    QSKIP("sanitizers need their address space");
#endif
    if (!hasFibers())
        QSKIP("no fibers in this build");
    rlimit old{};
    getrlimit(RLIMIT_AS, &old);
    rlimit tight = old;
    tight.rlim_cur = rlim_t{1} << 31;
    setrlimit(RLIMIT_AS, &tight);
    const auto devices = VirtualDevices::create(4000, {.permits = 2, .engine = EngineKind::Fibers});
    setrlimit(RLIMIT_AS, &old);
    QCOMPARE(idOf(devices), std::string("MW1509"));
    QVERIFY2(
        devices.error().front().message.find("refused stack ") != std::string::npos, devices.error().front().message.c_str());
}

MESHWRIGHT_TEST(TestDeviceEngine)

} // namespace tst_device_engine

#include "tst_device_engine.moc"
