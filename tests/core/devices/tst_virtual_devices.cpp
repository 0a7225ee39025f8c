// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/clocks.h"
#include "core/devices/virtual_devices.h"
#include "tests/test_class.h"

#include <new>
#include <numeric>
#include <stdexcept>
#include <sys/resource.h>
#include <thread>

namespace tst_virtual_devices {

using namespace meshwright;

namespace {

std::unique_ptr<VirtualDevices> devicesOf(std::int64_t count, int permits = 0)
{
    auto devices = VirtualDevices::create(count, {permits});
    if (!devices)
        qFatal("%s", describe(devices.error()).c_str());
    return *std::move(devices);
}

std::string idOf(const Result<Done>& result)
{
    return result ? "" : result.error().front().id;
}

} // namespace

class TestVirtualDevices : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void runsOnEveryDevice();
    void barriersKeepEverybodyInStep_data();
    void barriersKeepEverybodyInStep();
    void permitsBoundHowManyCompute();
    void failureStopsTheOthers();
    void exceptionIsAProblem();
    void nobodyCanMove_data();
    void nobodyCanMove();
    void stops();
    void stopsWithinAnInstruction();
    void barrierArrivesWithoutWaiting();
    void barrierAbortWakesEverybody();
    void tooManyStacks();
};

void TestVirtualDevices::runsOnEveryDevice()
{
    const auto devices = devicesOf(5);
    std::vector<int> visits(5, 0);
    for (int round = 0; round < 100; ++round) {
        QVERIFY(devices->run([&](std::int64_t device) -> Result<Done> {
            ++visits[static_cast<std::size_t>(device)];
            return Done{};
        }));
    }
    QCOMPARE(visits, std::vector<int>(5, 100));
}

void TestVirtualDevices::barriersKeepEverybodyInStep_data()
{
    QTest::addColumn<int>("count");
    QTest::addColumn<int>("rounds");
    QTest::newRow("2") << 2 << 2000;
    QTest::newRow("8") << 8 << 500;
    QTest::newRow("256") << 256 << 10;
}

void TestVirtualDevices::barriersKeepEverybodyInStep()
{
    QFETCH(int, count);
    QFETCH(int, rounds);
    const auto devices = devicesOf(count);
    const auto barrier = devices->makeBarrier(count);
    std::vector<std::int64_t> values(static_cast<std::size_t>(count), 0);
    std::atomic<int> wrong{0};
    const auto result = devices->run([&](std::int64_t device) -> Result<Done> {
        const VirtualDevices::Place place = [] { return std::string("a round"); };
        for (std::int64_t round = 1; round <= rounds; ++round) {
            values[static_cast<std::size_t>(device)] = round;
            if (!devices->wait(device, *barrier, place))
                return VirtualDevices::interrupted();
            if (std::accumulate(values.begin(), values.end(), std::int64_t{0}) != round * count)
                ++wrong;
            if (!devices->wait(device, *barrier, place))
                return VirtualDevices::interrupted();
        }
        return Done{};
    });
    QVERIFY2(result, result ? "" : describe(result.error()).c_str());
    QCOMPARE(wrong.load(), 0);
}

void TestVirtualDevices::permitsBoundHowManyCompute()
{
    const auto devices = devicesOf(8, 2);
    std::atomic<int> computing{0};
    std::atomic<int> most{0};
    QVERIFY(devices->run([&](std::int64_t) -> Result<Done> {
        for (int i = 0; i < 50; ++i) {
            Scratch& scratch = devices->permits().acquire();
            const int now = ++computing;
            int before = most.load();
            while (before < now && !most.compare_exchange_weak(before, now)) { }
            scratch.allocate(100);
            scratch.reset();
            std::this_thread::yield();
            --computing;
            devices->permits().release(scratch);
        }
        return Done{};
    }));
    QVERIFY(most.load() <= 2);
    QCOMPARE(devices->permits().count(), 2);
    QCOMPARE(devices->permits().peakScratchBytes(), 128);
}

void TestVirtualDevices::failureStopsTheOthers()
{
    const auto devices = devicesOf(8);
    const auto barrier = devices->makeBarrier(8);
    const VirtualDevices::Place place = [] { return std::string("the barrier"); };
    const double start = wallSeconds();
    const auto result = devices->run([&](std::int64_t device) -> Result<Done> {
        if (device == 3) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            return Problem{"MW9999", "device 3 has a fault"};
        }
        return devices->wait(device, *barrier, place) ? Result<Done>(Done{}) : Result<Done>(VirtualDevices::interrupted());
    });
    QCOMPARE(idOf(result), std::string("MW9999"));
    QCOMPARE(result.error().size(), std::size_t{1});
    QVERIFY(wallSeconds() - start < 1.0);
    // Ready for the next run.
    QVERIFY(devices->run([&](std::int64_t device) -> Result<Done> {
        return devices->wait(device, *barrier, place) ? Result<Done>(Done{}) : Result<Done>(VirtualDevices::interrupted());
    }));
}

void TestVirtualDevices::exceptionIsAProblem()
{
    const auto devices = devicesOf(4);
    const auto barrier = devices->makeBarrier(4);
    const VirtualDevices::Place place = [] { return std::string("the barrier"); };
    const auto result = devices->run([&](std::int64_t device) -> Result<Done> {
        if (device == 1)
            throw std::runtime_error("a library's");
        return devices->wait(device, *barrier, place) ? Result<Done>(Done{}) : Result<Done>(VirtualDevices::interrupted());
    });
    QCOMPARE(idOf(result), std::string("MW1508"));
    QVERIFY(result.error().front().message.starts_with("device 1 failed"));
    const auto starved = devices->run([](std::int64_t) -> Result<Done> { throw std::bad_alloc(); });
    QCOMPARE(idOf(starved), std::string("MW1515"));
}

void TestVirtualDevices::nobodyCanMove_data()
{
    QTest::addColumn<bool>("crossed");
    QTest::newRow("one has finished") << false;
    QTest::newRow("two wait for each other elsewhere") << true;
}

void TestVirtualDevices::nobodyCanMove()
{
    QFETCH(bool, crossed);
    const auto devices = devicesOf(4);
    const auto one = devices->makeBarrier(crossed ? 3 : 4);
    const auto other = devices->makeBarrier(3);
    const VirtualDevices::Place place = [] { return std::string("all_reduce of loss"); };
    const double start = wallSeconds();
    for (int round = 0; round < 20; ++round) {
        const auto result = devices->run([&](std::int64_t device) -> Result<Done> {
            if (!crossed && device == 0)
                return Done{};
            Barrier& barrier = crossed && device >= 2 ? *other : *one;
            return devices->wait(device, barrier, place) ? Result<Done>(Done{}) : Result<Done>(VirtualDevices::interrupted());
        });
        QCOMPARE(idOf(result), std::string("MW1506"));
        QVERIFY2(result.error().front().message.find("2 and 3 wait in all_reduce of loss") != std::string::npos,
            result.error().front().message.c_str());
    }
    QVERIFY(wallSeconds() - start < 1.0);
}

void TestVirtualDevices::stops()
{
    const auto devices = devicesOf(3);
    const auto barrier = devices->makeBarrier(3);
    const VirtualDevices::Place place = [] { return std::string("the barrier"); };
    std::stop_source source;
    const auto result = devices->run(
        [&](std::int64_t device) -> Result<Done> {
            for (int i = 0;; ++i) {
                if (device == 0 && i == 100)
                    source.request_stop();
                if (!devices->wait(device, *barrier, place))
                    return VirtualDevices::interrupted();
            }
        },
        source.get_token());
    QCOMPARE(idOf(result), std::string("MW1507"));
}

/// A stop from another thread: what a device begins after it returned is at most the one instruction that it was about to begin.
void TestVirtualDevices::stopsWithinAnInstruction()
{
    constexpr std::size_t kDevices = 8;
    const auto devices = devicesOf(kDevices);
    const auto barrier = devices->makeBarrier(kDevices);
    std::array<std::atomic<std::int64_t>, kDevices> begun{};
    std::array<std::int64_t, kDevices> begunBefore{};
    std::stop_source stop;
    std::thread stopper([&] {
        while (begun[1].load() < 100)
            std::this_thread::yield();
        stop.request_stop();
        for (std::size_t device = 0; device < kDevices; ++device)
            begunBefore[device] = begun[device].load();
    });
    const auto result = devices->run(
        [&](std::int64_t device) -> Result<Done> {
            const VirtualDevices::Place place = [] { return std::string("an instruction"); };
            for (;;) {
                if (devices->stopFlag().isSet())
                    return VirtualDevices::interrupted();
                ++begun[static_cast<std::size_t>(device)];
                if (device % 2 == 0 && !devices->wait(device, *barrier, place)) // half of them wait for the others, in vain
                    return VirtualDevices::interrupted();
            }
        },
        stop.get_token());
    stopper.join();
    QCOMPARE(idOf(result), std::string("MW1507"));
    for (std::size_t device = 0; device < kDevices; ++device)
        QVERIFY(begun[device].load() - begunBefore[device] <= 1);
    QVERIFY(devices->run([&](std::int64_t) -> Result<Done> { return Done{}; }));
    QVERIFY(!devices->stopFlag().isSet());
}

void TestVirtualDevices::barrierArrivesWithoutWaiting()
{
    Barrier barrier(3);
    const std::uint32_t round = barrier.round();
    QVERIFY(!barrier.arrive().isLast);
    QVERIFY(!barrier.arrive().isLast);
    QCOMPARE(barrier.round(), round);
    int called = 0;
    QVERIFY(barrier.arrive([&] { ++called; }).isLast);
    QCOMPARE(called, 1);
    QCOMPARE(barrier.round(), round + 1);
    QCOMPARE(barrier.await(round), Barrier::Outcome::Passed);
    std::jthread waiting([&] { barrier.await(round + 1); });
    for (int i = 0; i < 3; ++i)
        QCOMPARE(barrier.arrive().round, round + 1);
}

void TestVirtualDevices::barrierAbortWakesEverybody()
{
    Barrier barrier(4);
    std::vector<std::jthread> threads;
    std::atomic<int> aborted{0};
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&] { aborted += barrier.wait() == Barrier::Outcome::Aborted ? 1 : 0; });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    barrier.abort();
    threads.clear();
    QCOMPARE(aborted.load(), 3);
    QCOMPARE(barrier.wait(), Barrier::Outcome::Aborted);
    barrier.reset();
    std::jthread last([&] { barrier.wait(); });
    std::jthread more([&] { barrier.wait(); });
    std::jthread most([&] { barrier.wait(); });
    QCOMPARE(barrier.wait(), Barrier::Outcome::Passed);
}

void TestVirtualDevices::tooManyStacks()
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    QSKIP("sanitizers keep books on every thread");
#endif
    // Twice as much as the address space that is left.
    rlimit old{};
    getrlimit(RLIMIT_AS, &old);
    rlimit tight = old;
    tight.rlim_cur = rlim_t{1} << 31;
    setrlimit(RLIMIT_AS, &tight);
    const auto devices = VirtualDevices::create(4000);
    setrlimit(RLIMIT_AS, &old);
    QVERIFY(!devices);
    QCOMPARE(devices.error().front().id, std::string("MW1509"));
}

MESHWRIGHT_TEST(TestVirtualDevices)

} // namespace tst_virtual_devices

#include "tst_virtual_devices.moc"
