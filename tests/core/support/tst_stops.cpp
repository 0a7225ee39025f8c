// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/host_memory.h"
#include "core/support/stop_scope.h"
#include "core/support/thread_failure.h"
#include "core/support/timed_stop.h"
#include "tests/test_class.h"

#include <QElapsedTimer>

#include <new>
#include <thread>
#include <vector>

namespace tst_stops {

using namespace meshwright;

/// How work ends before its time: by a clock, by somebody, by memory that runs out on a thread.
class TestStops : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void byTheClock();
    void bySomebody();
    void neither();
    void workInAScope();
    void whatAThreadThrew();
};

void TestStops::byTheClock()
{
    QElapsedTimer timer;
    timer.start();
    const TimedStop stop({}, 0.05);
    QVERIFY(!stop.token().stop_requested() || timer.elapsed() >= 50);
    QTRY_VERIFY(stop.token().stop_requested());
    QVERIFY(timer.elapsed() >= 50);
    const TimedStop atOnce({}, 0.0);
    QTRY_VERIFY(atOnce.token().stop_requested());
}

void TestStops::bySomebody()
{
    std::stop_source somebody;
    const TimedStop stop(somebody.get_token(), 1e300); // a clock that never strikes
    QVERIFY(!stop.token().stop_requested());
    somebody.request_stop();
    QVERIFY(stop.token().stop_requested());
    QVERIFY(TimedStop(somebody.get_token()).token().stop_requested());
}

void TestStops::neither()
{
    std::stop_token kept;
    {
        const TimedStop stop({}, 1000.0);
        kept = stop.token();
    }
    QVERIFY(!kept.stop_requested()); // its end is not a stop, and does not wait for the clock
}

/// Work ends where it heeds the stop of the innermost scope; outside of scopes nothing ends it.
void TestStops::workInAScope()
{
    std::stop_source source;
    const auto work = [&](int until) {
        for (int i = 0; i < until; ++i) {
            heedStop();
            if (i == 3)
                source.request_stop();
        }
        return until;
    };
    QCOMPARE(unlessStopped({}, [&] { return work(3); }), std::optional(3));
    QCOMPARE(unlessStopped({}, [&] { return work(9); }), std::optional(9)); // nobody asks in this scope
    QCOMPARE(unlessStopped(source.get_token(), [&] { return work(9); }), std::optional<int>());
    const auto inner = [&] { return unlessStopped({}, [&] { return work(9); }).value_or(0) + 1; };
    QCOMPARE(unlessStopped(source.get_token(), inner), std::optional(10)); // not the outer scope's stop
    heedStop();
}

void TestStops::whatAThreadThrew()
{
    ThreadFailure failure;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&failure, i] {
                failure.guard([i] {
                    if (i > 0)
                        throw std::bad_alloc();
                });
            });
    }
    QVERIFY_EXCEPTION_THROWN(failure.rethrow(), std::bad_alloc);
    failure.rethrow(); // once
    QCOMPARE(notEnoughMemory().id, std::string("MW1515"));
}

MESHWRIGHT_TEST(TestStops)

} // namespace tst_stops

#include "tst_stops.moc"
