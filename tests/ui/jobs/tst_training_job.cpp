// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/resources.h"
#include "tests/test_class.h"
#include "ui/jobs/training_job.h"

namespace tst_training_job {

using namespace meshwright;
using sim::TrainingState;

/// A run says where it is, and obeys, on the UI thread.
class TestTrainingJob : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void saysHowItGoesOn();
    void pausesAndResumes();
    void cancels();
    void anotherRunReplacesIt();
    void failureHasProblems();
    void goesAwayWhileItRuns();
};

namespace {

std::shared_ptr<const Study> digits(std::int64_t steps)
{
    Study study = valueOf(loadStudy(resourcesDirectory() / "examples" / "digits.yaml"));
    study.train.steps = steps;
    return std::make_shared<const Study>(study);
}

constexpr std::int64_t kEndless = 100'000'000;

} // namespace

void TestTrainingJob::saysHowItGoesOn()
{
    ui::TrainingJob job;
    QVERIFY(!job.hasRun());
    QVERIFY(!job.isActive());
    QStringList said;
    std::int64_t last = 0;
    connect(&job, &ui::TrainingJob::started, this, [&] { said << "started"; });
    connect(&job, &ui::TrainingJob::progressed, this, [&](const sim::TrainingSnapshot& snapshot) {
        QVERIFY(snapshot.step >= last);
        last = snapshot.step;
        QVERIFY(static_cast<std::int64_t>(job.curves().loss.size()) >= snapshot.step);
        if (said.back() != "progressed")
            said << "progressed";
    });
    std::shared_ptr<const TrainingResult> result;
    connect(&job, &ui::TrainingJob::finished, this, [&](const std::shared_ptr<const TrainingResult>& made) {
        said << "finished";
        result = made;
    });
    job.start(digits(20), {});
    QVERIFY(job.isActive());
    QTRY_COMPARE_WITH_TIMEOUT(said, (QStringList{"started", "progressed", "finished"}), 60'000);
    QVERIFY(!job.isActive());
    QCOMPARE(last, 20);
    QCOMPARE(job.curves().loss, result->losses);
    QCOMPARE(job.curves().oneDeviceLoss.size(), std::size_t{21});
    QCOMPARE(job.snapshot().state, TrainingState::Finished);
    QCOMPARE(job.study().train.steps, 20);
    QCOMPARE(job.result(), result);
    QVERIFY(job.oneDeviceResult() != nullptr);
}

void TestTrainingJob::pausesAndResumes()
{
    ui::TrainingJob job;
    job.start(digits(kEndless), {.besideOneDevice = false});
    QTRY_VERIFY(job.snapshot().step > 2);
    job.pause();
    QTRY_COMPARE(job.snapshot().state, TrainingState::Paused);
    const std::int64_t step = job.snapshot().step;
    QSignalSpy progressed(&job, &ui::TrainingJob::progressed);
    QTest::qWait(3 * ui::TrainingJob::kLookMilliseconds);
    QCOMPARE(progressed.size(), 0); // nothing goes on, so nothing is said
    QVERIFY(job.isActive());
    job.resume();
    QTRY_VERIFY(job.snapshot().step > step);
}

void TestTrainingJob::cancels()
{
    ui::TrainingJob job;
    QSignalSpy finished(&job, &ui::TrainingJob::finished);
    job.start(digits(kEndless), {});
    QTRY_VERIFY(job.snapshot().step > 2);
    job.cancel();
    QTRY_COMPARE(finished.size(), 1);
    QCOMPARE(job.snapshot().state, TrainingState::Cancelled);
    QVERIFY(job.result()->interrupted);
    QCOMPARE(job.curves().loss, job.result()->losses);
    job.cancel(); // nothing to do any more
    job.resume();
    QTest::qWait(2 * ui::TrainingJob::kLookMilliseconds);
    QCOMPARE(finished.size(), 1);
}

void TestTrainingJob::anotherRunReplacesIt()
{
    ui::TrainingJob job;
    QSignalSpy finished(&job, &ui::TrainingJob::finished);
    job.start(digits(kEndless), {});
    QTRY_VERIFY(job.snapshot().step > 2);
    job.start(digits(2), {});
    QVERIFY(job.curves().loss.empty());
    QTRY_COMPARE(finished.size(), 1);
    QCOMPARE(job.snapshot().state, TrainingState::Finished);
    QCOMPARE(job.curves().loss.size(), std::size_t{3});
    QVERIFY(QThreadPool::globalInstance()->waitForDone());
}

void TestTrainingJob::failureHasProblems()
{
    ui::TrainingJob job;
    QSignalSpy finished(&job, &ui::TrainingJob::finished);
    job.start(digits(5), {.memoryBytes = 1000});
    QTRY_COMPARE(finished.size(), 1);
    QCOMPARE(job.snapshot().state, TrainingState::Failed);
    QCOMPARE(job.snapshot().problems.front().id, std::string("MW1630"));
    QVERIFY(!job.result());
    QVERIFY(!job.oneDeviceResult());
}

void TestTrainingJob::goesAwayWhileItRuns()
{
    for (int i = 0; i < 6; ++i) {
        ui::TrainingJob job;
        job.start(digits(kEndless), {.verify = true});
        QTest::qWait(10 * i);
        if (i % 2 == 1)
            job.pause();
    }
}

MESHWRIGHT_TEST(TestTrainingJob)

} // namespace tst_training_job

#include "tst_training_job.moc"
