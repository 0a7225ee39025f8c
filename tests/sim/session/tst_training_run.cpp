// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/training_run.h"

#include "core/support/resources.h"
#include "core/train/training_memory.h"
#include "tests/test_class.h"

namespace tst_training_run {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

std::shared_ptr<const Study> studyOf(const std::string& example, const std::vector<std::string>& settings)
{
    return std::make_shared<const Study>(valueOf(loadStudy(resourcesDirectory() / "examples" / example, settings)));
}

std::shared_ptr<const Study> endlessStudy()
{
    return studyOf("digits.yaml", {"train.steps=100000000"});
}

TrainingCurves curvesOf(const TrainingRun& run)
{
    TrainingCurves curves;
    run.extend(curves);
    return curves;
}

std::string idOf(const TrainingSnapshot& snapshot)
{
    return snapshot.problems.empty() ? "" : snapshot.problems.front().id;
}

} // namespace

class TestTrainingRun : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void isTheSameTraining_data();
    void isTheSameTraining();
    void pipelines();
    void withoutTheOther();
    void pauses();
    void cancelsWhilePaused();
    void cancelsAtAnyTime();
    void fails_data();
    void fails();
    void divergingKeepsItsCurve();
    void leavesOutWhatDoesNotFit();
};

void TestTrainingRun::isTheSameTraining_data()
{
    QTest::addColumn<QString>("example");
    QTest::addColumn<QString>("setting");
    QTest::newRow("one layout") << "digits.yaml"
                                << "train.steps=12";
    QTest::newRow("phases") << "phases.yaml"
                            << "train.seed=1";
    QTest::newRow("no steps") << "digits.yaml"
                              << "train.steps=0";
}

void TestTrainingRun::isTheSameTraining()
{
    QFETCH(QString, example);
    QFETCH(QString, setting);
    const auto study = studyOf(example.toStdString(), {setting.toStdString()});
    TrainingRun run(study, {.verify = true});
    run.wait();
    const TrainingSnapshot snapshot = run.snapshot();
    QCOMPARE(snapshot.state, TrainingState::Finished);
    QVERIFY2(snapshot.problems.empty(), describe(snapshot.problems).c_str());

    const TrainingResult sharded = valueOf(trainStudy(*study, {}, {}, {}));
    const TrainingResult alone = valueOf(trainStudy(unshardedStudy(*study), {}, {}, {}));
    const TrainingCurves curves = curvesOf(run);
    QCOMPARE(curves.loss, sharded.losses);
    QCOMPARE(curves.accuracy, sharded.accuracies);
    QCOMPARE(curves.oneDeviceLoss, alone.losses);
    QCOMPARE(curves.oneDeviceAccuracy, alone.accuracies);
    QCOMPARE(run.result()->losses, sharded.losses);
    QCOMPARE(run.result()->heldOutAccuracy, sharded.heldOutAccuracy);
    QCOMPARE(run.oneDeviceResult()->heldOutAccuracy, alone.heldOutAccuracy);
    QVERIFY(run.result()->verification->passed);
    QVERIFY(!run.oneDeviceResult()->verification);

    const auto steps = static_cast<std::int64_t>(sharded.accuracies.size());
    QCOMPARE(run.result()->wall.slices().empty(), steps == 0);
    QCOMPARE(run.result()->virtualTime.slices().empty(), steps == 0);
    QCOMPARE(snapshot.step, steps);
    QCOMPARE(snapshot.steps, steps);
    QCOMPARE(snapshot.batch, study->batch);
    QCOMPARE(snapshot.devices, 8);
    QCOMPARE(snapshot.stepArenaBytes, sharded.stepArenaBytes);
    QCOMPARE(snapshot.samplesPerSecond > 0.0, steps > 0);
    QCOMPARE(snapshot.secondsLeft, 0.0);
    QVERIFY(snapshot.besideOneDevice);
    QVERIFY(snapshot.elapsedSeconds > 0.0);
    QCOMPARE(run.snapshot().elapsedSeconds, snapshot.elapsedSeconds); // it is over

    run.pause(); // too late for anything
    run.cancel();
    QCOMPARE(run.snapshot().state, TrainingState::Finished);
}

/// The stages need memory of their own; the run on one device has none of them.
void TestTrainingRun::pipelines()
{
    TrainingRun run(studyOf("pipeline_gpipe.yaml", {"train.steps=3"}), {});
    run.wait();
    const TrainingSnapshot snapshot = run.snapshot();
    QCOMPARE(snapshot.state, TrainingState::Finished);
    QCOMPARE(snapshot.devices, 4);
    QVERIFY(snapshot.stepArenaBytes > 0);
    const TrainingCurves curves = curvesOf(run);
    QCOMPARE(curves.loss.size(), std::size_t{4});
    for (std::size_t i = 0; i < curves.loss.size(); ++i)
        QVERIFY(std::abs(curves.loss[i] - curves.oneDeviceLoss[i]) < 1e-5 * curves.oneDeviceLoss[i]);
}

void TestTrainingRun::withoutTheOther()
{
    TrainingRun run(studyOf("digits.yaml", {"train.steps=3"}), {.besideOneDevice = false});
    run.wait();
    QCOMPARE(run.snapshot().state, TrainingState::Finished);
    QVERIFY(!run.snapshot().besideOneDevice);
    QVERIFY(curvesOf(run).oneDeviceLoss.empty());
    QVERIFY(!run.oneDeviceResult());
    QVERIFY(!run.result()->verification);
}

void TestTrainingRun::pauses()
{
    TrainingRun run(endlessStudy(), {});
    QTRY_VERIFY(run.snapshot().step >= 3);
    QCOMPARE(run.snapshot().state, TrainingState::Running);
    QVERIFY(!run.result());
    run.pause();
    QTRY_COMPARE(run.snapshot().state, TrainingState::Paused);
    const TrainingSnapshot paused = run.snapshot();
    TrainingCurves curves = curvesOf(run);
    QCOMPARE(static_cast<std::int64_t>(curves.loss.size()), paused.step);
    QTest::qSleep(50); // many steps long
    QCOMPARE(run.snapshot().step, paused.step);
    QCOMPARE(run.snapshot().elapsedSeconds, paused.elapsedSeconds);
    QVERIFY(paused.secondsLeft > 0.0);

    run.resume();
    QTRY_VERIFY(run.snapshot().step >= paused.step + 3);
    QCOMPARE(run.snapshot().state, TrainingState::Running);
    const std::vector<double> before = curves.loss;
    run.extend(curves);
    QVERIFY(curves.loss.size() > before.size());
    QVERIFY(std::equal(before.begin(), before.end(), curves.loss.begin()));
    QVERIFY(curves.oneDeviceLoss.size() + 1 >= curves.loss.size());

    run.cancel();
    run.wait();
    const TrainingSnapshot over = run.snapshot();
    QCOMPARE(over.state, TrainingState::Cancelled);
    QVERIFY(run.result()->interrupted);
    QCOMPARE(static_cast<std::int64_t>(run.result()->losses.size()), over.step);
    QCOMPARE(curvesOf(run).loss, run.result()->losses);
    QVERIFY(!run.result()->wall.slices().empty());
    QVERIFY(!run.oneDeviceResult());
}

void TestTrainingRun::cancelsWhilePaused()
{
    TrainingRun run(endlessStudy(), {});
    run.pause();
    QTRY_COMPARE(run.snapshot().state, TrainingState::Paused);
    QCOMPARE(run.snapshot().step, 0);
    run.cancel();
    run.wait();
    QCOMPARE(run.snapshot().state, TrainingState::Cancelled);
    QVERIFY(run.result()->losses.empty());
}

/// Also by going away, and before anything has begun.
void TestTrainingRun::cancelsAtAnyTime()
{
    for (int round = 0; round < 8; ++round) {
        TrainingRun run(endlessStudy(), {.verify = round % 2 == 1});
        QTest::qSleep(3 * round);
        if (round < 4) {
            run.cancel();
            run.wait();
            QCOMPARE(run.snapshot().state, TrainingState::Cancelled);
            QCOMPARE(run.result()->losses.size(), run.result()->accuracies.size());
        }
    }
}

void TestTrainingRun::fails_data()
{
    QTest::addColumn<std::shared_ptr<const Study>>("study");
    QTest::addColumn<int>("memory");
    QTest::addColumn<QString>("id");

    QTest::newRow("no memory") << endlessStudy() << 1000 << "MW1630";
    Study program;
    program.model = ProgramFile{(resourcesDirectory() / "examples" / "mlp.mlir").string(), {}};
    QTest::newRow("a program file") << std::make_shared<const Study>(program) << 0 << "MW1733";
    Study data = *endlessStudy();
    data.train.data.kind = TrainingData::Kind::File;
    data.train.data.file = "not-there.csv";
    QTest::newRow("no data") << std::make_shared<const Study>(data) << 0 << "MW1001";
}

void TestTrainingRun::fails()
{
    QFETCH(std::shared_ptr<const Study>, study);
    QFETCH(int, memory);
    QFETCH(QString, id);
    TrainingRunOptions options;
    if (memory > 0)
        options.memoryBytes = memory;
    TrainingRun run(study, options);
    run.wait();
    QCOMPARE(run.snapshot().state, TrainingState::Failed);
    QCOMPARE(QString::fromStdString(idOf(run.snapshot())), id);
    QVERIFY(!run.result());
    QVERIFY(!run.oneDeviceResult());
}

void TestTrainingRun::divergingKeepsItsCurve()
{
    TrainingRun run(studyOf("fsdp.yaml", {"optimizer={sgd: {learning_rate: 1.0e+30}}"}), {});
    run.wait();
    QCOMPARE(run.snapshot().state, TrainingState::Failed);
    QCOMPARE(idOf(run.snapshot()), std::string("MW1620"));
    QCOMPARE(static_cast<std::int64_t>(curvesOf(run).loss.size()), run.snapshot().step);
    QVERIFY(run.snapshot().step > 0);
}

void TestTrainingRun::leavesOutWhatDoesNotFit()
{
    const auto study = studyOf("digits.yaml", {"train.steps=3"});
    const std::int64_t planned = plannedTrainingBytes(valueOf(trainingPhases(*study)));
    TrainingRun run(study, {.memoryBytes = planned + planned / 8}); // a tenth is kept free
    run.wait();
    const TrainingSnapshot snapshot = run.snapshot();
    QCOMPARE(snapshot.state, TrainingState::Finished);
    QVERIFY(!snapshot.besideOneDevice);
    QCOMPARE(idOf(snapshot), std::string("MW1631"));
    QVERIFY(snapshot.problems.front().severity == Severity::Warning);
    QVERIFY2(
        snapshot.problems.front().message.find("training needs") != std::string::npos, snapshot.problems.front().message.c_str());
}

MESHWRIGHT_TEST(TestTrainingRun)

} // namespace tst_training_run

#include "tst_training_run.moc"
