// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/sweep/run_sweep.h"

#include "sim/sweep/rank_sweep.h"
#include "tests/rank_threads.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <QTemporaryDir>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>

namespace tst_run_sweep {

using namespace meshwright;
using namespace meshwright::sim;

/// Running the points of a plan on threads, with an engine that only counts.
class TestRunSweep : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void sameForAnyThreads_data();
    void sameForAnyThreads();
    void sameForAnyProcesses_data();
    void sameForAnyProcesses();
    void outcomesAsText();
    void equalStudiesOnce();
    void goesOn();
    void stops();
    void twoAtOnce();
    void failsWithTheDatabase();
    void progress();
};

namespace {

/// The time of a point is the number in its last setting; every seventh is refused. The key leaves out what `sameKey` says.
class CountingEngine {
public:
    SweepEngine engine(int modulus = 1'000'000)
    {
        return {[modulus](const std::vector<std::string>& settings) { return std::to_string(numberOf(settings) % modulus); },
            [this, modulus](const std::vector<std::string>& settings) {
                ++simulated;
                const int number = numberOf(settings) % modulus;
                SweepOutcome outcome;
                if (number % 7 == 0) {
                    outcome.problem = "MW1104";
                    outcome.message = "no";
                    return outcome;
                }
                outcome.state = number % 5 == 0 ? SweepState::TooLarge : SweepState::Fits;
                outcome.batch = 1;
                outcome.stepSeconds = (number * 37) % 101;
                outcome.peakBytes = (number * 53) % 97;
                return outcome;
            }};
    }

    std::atomic<int> simulated = 0;

private:
    static int numberOf(const std::vector<std::string>& settings)
    {
        return std::stoi(settings.back().substr(settings.back().find('=') + 1));
    }
};

/// Holds the first points until every process has one, so that none finds all the work done before it came.
class EveryoneBegins {
public:
    explicit EveryoneBegins(int processes)
        : m_missing(processes)
    {
    }

    SweepEngine held(const SweepEngine& engine)
    {
        const auto first = std::make_shared<std::once_flag>();
        return {engine.keyOf, [this, first, outcomeOf = engine.outcomeOf](const std::vector<std::string>& settings) {
                    std::call_once(*first, [this] { oneBegan(); });
                    waitForAll();
                    return outcomeOf(settings);
                }};
    }

private:
    void oneBegan()
    {
        const std::lock_guard lock(m_mutex);
        --m_missing;
        m_changed.notify_all();
    }

    void waitForAll()
    {
        std::unique_lock lock(m_mutex);
        m_changed.wait_for(lock, std::chrono::seconds(30), [this] { return m_missing == 0; });
    }

    std::mutex m_mutex;
    std::condition_variable m_changed;
    int m_missing;
};

SweepPlan plan(const char* vary = "x=1..200")
{
    SweepPlan plan;
    plan.parameters = {valueOf(parseVary(vary))};
    return plan;
}

} // namespace

void TestRunSweep::sameForAnyThreads_data()
{
    QTest::addColumn<int>("jobs");
    for (const int jobs : {1, 2, 3, 8})
        QTest::addRow("%d", jobs) << jobs;
}

void TestRunSweep::sameForAnyThreads()
{
    QFETCH(int, jobs);
    CountingEngine counting;
    auto database = valueOf(SweepDatabase::inMemory());
    const auto run = valueOf(runSweep(plan(), counting.engine(), database, jobs, {}, {}));
    QCOMPARE(counting.simulated.load(), 200);
    QCOMPARE(run.simulated, 200);
    QVERIFY(!run.stopped && run.result.complete());
    CountingEngine other;
    auto second = valueOf(SweepDatabase::inMemory());
    QVERIFY(run.result == valueOf(runSweep(plan(), other.engine(), second, 1, {}, {})).result);
}

void TestRunSweep::sameForAnyProcesses_data()
{
    QTest::addColumn<int>("ranks");
    for (const int ranks : {2, 3})
        QTest::addRow("%d", ranks) << ranks;
}

/// The first one has the database; the others do their part. Here processes are threads.
void TestRunSweep::sameForAnyProcesses()
{
    QFETCH(int, ranks);
    CountingEngine alone;
    auto database = valueOf(SweepDatabase::inMemory());
    const auto expected = valueOf(runSweep(plan(), alone.engine(), database, 1, {}, {}));
    std::vector<CountingEngine> engines(static_cast<std::size_t>(ranks));
    EveryoneBegins everyone(ranks);
    QVERIFY(tests::onRanks(ranks, [&](const std::shared_ptr<Ranks>& own) {
        const SweepEngine engine = everyone.held(engines[static_cast<std::size_t>(own->rank())].engine());
        const auto shared = RankSweep::start(own, own->rank() + 1);
        if (!shared)
            return false;
        if (!own->isFirst())
            return shared->serve(engine).has_value();
        auto kept = valueOf(SweepDatabase::inMemory());
        const auto run = runSweep(plan(), shared->engineOver(engine), kept, shared->jobs(), {}, {});
        return shared->end() && run && run->simulated == 200 && run->result == expected.result
            && valueOf(kept.outcomes()) == valueOf(database.outcomes());
    }));
    int simulated = 0;
    for (const CountingEngine& engine : engines) {
        QVERIFY(engine.simulated.load() > 0);
        simulated += engine.simulated.load();
    }
    QCOMPARE(simulated, 200);
}

void TestRunSweep::outcomesAsText()
{
    SweepOutcome outcome;
    outcome.state = SweepState::TooLarge;
    outcome.mesh = "data=8,model=8";
    outcome.devices = 64;
    outcome.stepSeconds = 0.1;
    outcome.mfu = -0.0;
    outcome.exposedSeconds = std::numeric_limits<double>::infinity();
    outcome.message = "words, with \n lines";
    QVERIFY(readOutcomeLine(outcomeLine(outcome)) == outcome);
    QVERIFY(readOutcomeLine(outcomeLine({})) == SweepOutcome{});
    for (const char* text : {"", "9", "0\x1f"})
        QVERIFY(!readOutcomeLine(text));
}

void TestRunSweep::equalStudiesOnce()
{
    CountingEngine counting;
    auto database = valueOf(SweepDatabase::inMemory());
    const auto run = valueOf(runSweep(plan(), counting.engine(10), database, 4, {}, {}));
    QCOMPARE(counting.simulated.load(), 10);
    QCOMPARE(run.result.rows.size(), std::size_t(200)); // a row for each point all the same
    QVERIFY(run.result.rows[3].outcome == run.result.rows[13].outcome);
}

void TestRunSweep::goesOn()
{
    QTemporaryDir folder;
    const std::string file = folder.filePath("runs.sqlite").toStdString();
    CountingEngine counting;
    {
        auto database = valueOf(SweepDatabase::open(file));
        QCOMPARE(valueOf(runSweep(plan("x=1..50"), counting.engine(), database, 2, {}, {})).simulated, 50);
    }
    auto database = valueOf(SweepDatabase::open(file));
    const auto run = valueOf(runSweep(plan(), counting.engine(), database, 2, {}, {}));
    QCOMPARE(run.known, 50);
    QCOMPARE(run.simulated, 150);
    QCOMPARE(counting.simulated.load(), 200);
    QVERIFY(valueOf(database.lastSweep()) == run.result);
}

void TestRunSweep::stops()
{
    CountingEngine counting;
    auto database = valueOf(SweepDatabase::inMemory());
    std::stop_source source;
    const auto run = valueOf(runSweep(
        plan(), counting.engine(), database, 2,
        [&](const SweepProgress& progress) {
            if (progress.done == 20)
                source.request_stop();
        },
        source.get_token()));
    QVERIFY(run.stopped);
    // What was begun is finished and kept; nothing else is begun.
    QVERIFY(counting.simulated.load() >= 20 && counting.simulated.load() <= 22);
    QCOMPARE(valueOf(database.outcomes()).size(), static_cast<std::size_t>(counting.simulated.load()));
    QCOMPARE(run.result.rows.size(), static_cast<std::size_t>(counting.simulated.load()));
    const auto rest = valueOf(runSweep(plan(), counting.engine(), database, 2, {}, {}));
    QCOMPARE(counting.simulated.load(), 200);
    QVERIFY(!rest.stopped);
}

void TestRunSweep::twoAtOnce()
{
    QTemporaryDir folder;
    const std::string file = folder.filePath("runs.sqlite").toStdString();
    CountingEngine counting;
    std::vector<SweepResult> results(3);
    {
        std::vector<std::jthread> sweeps;
        for (std::size_t i = 0; i < results.size(); ++i) {
            sweeps.emplace_back([&, i] {
                auto database = valueOf(SweepDatabase::open(file));
                results[i] = valueOf(runSweep(plan(), counting.engine(), database, 2, {}, {})).result;
            });
        }
    }
    QCOMPARE(counting.simulated.load(), 200); // each point once, by one of them
    QVERIFY(results[0].complete());
    QVERIFY(results[0] == results[1] && results[0] == results[2]);
}

void TestRunSweep::failsWithTheDatabase()
{
    QTemporaryDir folder;
    CountingEngine counting;
    auto database = valueOf(SweepDatabase::open(folder.filePath("runs.sqlite").toStdString(), {.mostPages = 12}));
    QCOMPARE(tests::idsOf(runSweep(plan("x=1..2000"), counting.engine(), database, 2, {}, {})), "MW1789");
}

void TestRunSweep::progress()
{
    CountingEngine counting;
    auto database = valueOf(SweepDatabase::inMemory());
    std::int64_t last = 0;
    double best = 1e9;
    const auto run = valueOf(runSweep(plan("x=1..30"), counting.engine(), database, 3,
        [&](const SweepProgress& progress) {
            QCOMPARE(progress.done, last + 1);
            QCOMPARE(progress.points, 30);
            last = progress.done;
            if (progress.best != nullptr) {
                QVERIFY(progress.best->stepSeconds <= best);
                best = progress.best->stepSeconds;
            }
        },
        {}));
    QCOMPARE(last, 30);
    QCOMPARE(best, run.result.rows[*run.result.best].outcome.stepSeconds);
}

MESHWRIGHT_TEST(TestRunSweep)

} // namespace tst_run_sweep

#include "tst_run_sweep.moc"
