// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "tests/test_class.h"
#include "ui/jobs/analysis_job.h"

#include <atomic>
#include <numeric>
#include <thread>

namespace tst_analysis_job {

using namespace meshwright;

/// Of many requests the last is answered, on the UI thread, and none before it after it.
class TestAnalysisJob : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void answersOnItsThread();
    void figuresComeBeforeTheirProof();
    void anEditEndsTheProofBeforeIt();
    void theLatestRequestWins();
    void endsWhileItWorks();
    void memoryRunsOut();
    void postsBeforeItsResult();
};

namespace {

sim::StudySource notebook(int batch)
{
    const auto path = resourcesDirectory() / "examples" / "notebook_mlp.yaml";
    return {valueOf(readFile(path)), path.string(), {"batch=" + std::to_string(batch)}};
}

std::shared_ptr<sim::Session> newSession()
{
    return std::make_shared<sim::Session>(valueOf(sim::defaultCatalogue()));
}

} // namespace

void TestAnalysisJob::answersOnItsThread()
{
    ui::AnalysisJob job(newSession());
    std::shared_ptr<const sim::Analysis> answer;
    QThread* thread = nullptr;
    connect(&job, &ui::AnalysisJob::finished, this, [&](const std::shared_ptr<const sim::Analysis>& analysis) {
        answer = analysis;
        thread = QThread::currentThread();
    });
    QVERIFY(!job.isBusy());
    job.request(notebook(8192));
    QVERIFY(job.isBusy());
    QTRY_VERIFY(answer != nullptr);
    QCOMPARE(thread, QThread::currentThread());
    QVERIFY(!job.isBusy());
    QVERIFY(answer->simulated != nullptr);
}

/// Of a pipeline, whose proof takes longer than its simulation.
void TestAnalysisJob::figuresComeBeforeTheirProof()
{
    const auto session = newSession();
    ui::AnalysisJob job(session);
    std::vector<std::shared_ptr<const sim::Analysis>> answers;
    const auto note = [&](const std::shared_ptr<const sim::Analysis>& analysis) { answers.push_back(analysis); };
    connect(&job, &ui::AnalysisJob::finished, this, note);
    connect(&job, &ui::AnalysisJob::proved, this, note);
    const auto path = resourcesDirectory() / "examples" / "pipeline_1f1b.yaml";
    const sim::StudySource source{valueOf(readFile(path)), path.string(), {}};
    job.request(source);
    QTRY_COMPARE(answers.size(), std::size_t{2});
    QVERIFY(answers[0]->simulated != nullptr && answers[0]->proof == nullptr);
    QVERIFY(answers[1]->proof != nullptr && answers[1]->proof->isProved());
    QCOMPARE(answers[1]->simulated.get(), answers[0]->simulated.get()); // nothing else is done again
    QVERIFY(!job.isProving());

    answers.clear();
    job.request(source); // which is remembered with its proof
    QTRY_COMPARE(answers.size(), std::size_t{1});
    QVERIFY(answers[0]->proof != nullptr && !job.isProving());
}

void TestAnalysisJob::anEditEndsTheProofBeforeIt()
{
    ui::AnalysisJob job(newSession());
    QList<int> proved;
    int edits = 0;
    connect(&job, &ui::AnalysisJob::finished, this, [&] {
        if (++edits < 10)
            job.request(notebook(512 * (edits + 1)));
    });
    connect(&job, &ui::AnalysisJob::proved, this,
        [&](const std::shared_ptr<const sim::Analysis>& analysis) { proved << static_cast<int>(analysis->study->batch); });
    job.request(notebook(512));
    QTRY_COMPARE(proved, QList<int>{5120});
}

void TestAnalysisJob::theLatestRequestWins()
{
    ui::AnalysisJob job(newSession());
    QList<int> answered;
    connect(&job, &ui::AnalysisJob::finished, this,
        [&](const std::shared_ptr<const sim::Analysis>& analysis) { answered << static_cast<int>(analysis->study->batch); });
    for (int batch = 8; batch <= 8 * 40; batch += 8)
        job.request(notebook(batch));
    QTRY_COMPARE(answered, QList<int>{320});
    QTest::qWait(50); // what is stale would come now
    QCOMPARE(answered, QList<int>{320});
}

void TestAnalysisJob::endsWhileItWorks()
{
    for (int i = 0; i < 20; ++i) {
        ui::AnalysisJob job(newSession());
        job.request(notebook(4096 + 8 * i));
    }
}

/// A job for which there is no memory delivers nothing, and the next one is done.
void TestAnalysisJob::memoryRunsOut()
{
    ui::LatestWorker worker;
    worker.start([](const std::stop_token&) -> std::function<void()> { throw std::bad_alloc(); });
    QTRY_VERIFY(!worker.isBusy());
    bool isDone = false;
    worker.start([&](const std::stop_token&) -> std::function<void()> { return [&] { isDone = true; }; });
    QTRY_VERIFY(isDone);
}

/// What a job posts comes in its order and before its result; that of one that was stopped never comes.
void TestAnalysisJob::postsBeforeItsResult()
{
    ui::LatestWorker worker;
    QList<int> came;
    const auto counting = [&](int first) {
        return [&, first](const std::stop_token&) -> std::function<void()> {
            for (int i = first; i < first + 100; ++i)
                worker.post([&, i] { came.append(i); });
            return [&, first] { came.append(first + 100); };
        };
    };
    worker.start(counting(0));
    QTRY_VERIFY(!worker.isBusy());
    QList<int> expected(101);
    std::iota(expected.begin(), expected.end(), 0);
    QCOMPARE(came, expected);

    std::atomic<bool> hasPosted = false;
    came.clear();
    worker.start([&](const std::stop_token& stop) -> std::function<void()> {
        worker.post([&] { came.append(-1); });
        hasPosted = true;
        while (!stop.stop_requested())
            std::this_thread::yield();
        worker.post([&] { came.append(-2); });
        return [&] { came.append(-3); };
    });
    while (!hasPosted) // without the event loop, which would deliver
        std::this_thread::yield();
    worker.start(counting(0));
    QTRY_VERIFY(!worker.isBusy());
    QCOMPARE(came, expected);
}

MESHWRIGHT_TEST(TestAnalysisJob)

} // namespace tst_analysis_job

#include "tst_analysis_job.moc"
