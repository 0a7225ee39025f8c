// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/device_engine.h"
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QElapsedTimer>
#include <QTemporaryDir>

namespace tst_fault_flags {

namespace {

using meshwright::tests::example;
using meshwright::tests::Outcome;

Outcome run(const QStringList& arguments)
{
    return meshwright::tests::runProgram(MESHWRIGHT_PROGRAM, arguments);
}

QStringList training(const QStringList& more)
{
    return QStringList{"train", example("tensor_parallel.yaml"), "--set", "train.steps=6"} + more;
}

} // namespace

/// What a user sees of a device that fails: `train` and `run` with --inject, --check-numerics and --stall-timeout.
class TestFaultFlags : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void endsCleanly_data();
    void endsCleanly();
    void saysHowToGoOn();
    void enginesAgree();
    void stragglerIsInTheTrace();
};

void TestFaultFlags::endsCleanly_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("code");
    QTest::addColumn<QStringList>("said");
    QTest::newRow("fail") << training({"--inject", "fail:device=3,step=4"}) << 6
                          << QStringList{"MW1508", "device 3 failed in step 5, in "};
    QTest::newRow("memory") << training({"--inject", "memory:device=0,step=1"}) << 6
                            << QStringList{"MW1521", "device 0 ran out of memory in step 2, in "};
    QTest::newRow("nan, checked") << training({"--check-numerics", "--inject", "nan:device=1,step=4"}) << 6
                                  << QStringList{"MW1523", "device 1 in step 5, in ", " is NaN at ["};
    QTest::newRow("stall") << training({"--stall-timeout", "0.5", "--inject", "stall:device=2,step=3"}) << 6
                           << QStringList{"MW1522", "device 2 has not arrived for 500 ms"};
    if (meshwright::hasFibers()) {
        const QStringList oneWorker{"--engine", "fibers", "--permits", "1"};
        QTest::newRow("a fiber fails") << training(oneWorker + QStringList{"--inject", "fail:device=3,step=4"}) << 6
                                       << QStringList{"MW1508", "device 3 failed in step 5, in "};
        QTest::newRow("a fiber stalls") << training(
            oneWorker + QStringList{"--stall-timeout", "0.5", "--inject", "stall:device=2,step=3"})
                                        << 6 << QStringList{"MW1522", "device 2 has not arrived for 500 ms"};
    }
    QTest::newRow("slow") << training({"--inject", "slow:device=2,factor=3"}) << 0 << QStringList{};
    QTest::newRow("checked, nothing wrong") << training({"--check-numerics", "--verify"}) << 0 << QStringList{};
    // Where a sum goes on into the passes behind it, their masks of -inf are among what it makes.
    for (const char* study : {"digits.yaml", "pipeline_interleaved.yaml"})
        QTest::newRow(study) << QStringList{"train", example(study), "--set", "train.steps=2", "--check-numerics"} << 0
                             << QStringList{};
    QTest::newRow("no such device") << training({"--inject", "fail:device=64,step=4"}) << 2 << QStringList{"MW1520", "device 64"};
    QTest::newRow("no such fault") << training({"--inject", "explode:device=1"}) << 2 << QStringList{"MW1520"};
    QTest::newRow("nothing of it") << training({"--inject", "fail"}) << 2 << QStringList{"MW1520", "it does not name a device"};
    QTest::newRow("no clock counts it") << training({"--stall-timeout", "1e300"}) << 2 << QStringList{"--stall-timeout"};
    QTest::newRow("no such engine") << training({"--engine", "fibres"}) << 2
                                    << QStringList{"MW1526", "unknown engine \"fibres\"", "did you mean \"fibers\"?"};
    QTest::newRow("no number") << training({"--stall-timeout", "-1"}) << 2 << QStringList{"--stall-timeout"};
}

void TestFaultFlags::endsCleanly()
{
    QFETCH(QStringList, arguments);
    QFETCH(int, code);
    QFETCH(QStringList, said);
    const Outcome outcome = run(arguments);
    QVERIFY2(outcome.code == code, outcome.err);
    for (const QString& words : said)
        QVERIFY2(outcome.err.contains(words.toUtf8()), outcome.err);
    QCOMPARE(outcome.err.count("error MW"), code == 6 ? 1 : outcome.err.count("error MW")); // once
}

void TestFaultFlags::saysHowToGoOn()
{
    const QTemporaryDir folder;
    const QString checkpoints = folder.path() + "/a folder";
    const Outcome failed = run(training({"--checkpoint", checkpoints, "--every", "2", "--inject", "fail:device=1,step=5"}));
    QCOMPARE(failed.code, 6);
    QVERIFY2(failed.err.contains("the last complete checkpoint is " + checkpoints.toUtf8() + "/step-000000004 (after 4 steps)"),
        failed.err);
    const QByteArray command = "resume with: meshwright train " + example("tensor_parallel.yaml").toUtf8()
        + " --set train.steps=6 --checkpoint '" + checkpoints.toUtf8() + "' --every 2 --resume '" + checkpoints.toUtf8() + "'";
    QVERIFY2(failed.err.contains(command), failed.err);
    const QStringList resumed{"--checkpoint", checkpoints, "--every", "2", "--resume", checkpoints, "--format", "json"};
    const Outcome done = run(training(resumed));
    QVERIFY2(done.code == 0, done.err);
    const QJsonObject whole = QJsonDocument::fromJson(run(training({"--format", "json"})).out).object();
    QCOMPARE(QJsonDocument::fromJson(done.out).object()["losses"], whole["losses"]);
}

/// The result is the same whatever the devices are, and says what they were.
void TestFaultFlags::enginesAgree()
{
    if (!meshwright::hasFibers())
        QSKIP("no fibers in this build");
    QJsonArray losses;
    for (const QString engine : {"threads", "fibers"}) {
        const Outcome outcome = run(training({"--engine", engine, "--verify", "--format", "json"}));
        QVERIFY2(outcome.code == 0, outcome.err);
        const QJsonObject result = QJsonDocument::fromJson(outcome.out).object();
        QCOMPARE(result["engine"].toString(), engine);
        if (losses.isEmpty())
            losses = result["losses"].toArray();
        QCOMPARE(result["losses"].toArray(), losses);
    }
    const Outcome text = run(training({"--engine", "fibers"}));
    QVERIFY2(text.out.contains("6 steps on 8 devices (fibers): loss "), text.out);
    QCOMPARE(run({"run", example("mlp.mlir"), "--engine", "fibers", "--verify"}).code, 0);
}

void TestFaultFlags::stragglerIsInTheTrace()
{
    const QTemporaryDir folder;
    const QString file = folder.path() + "/trace.json";
    QCOMPARE(run(training({"--inject", "slow:device=2,factor=50", "--trace", file})).code, 0);
    QFile trace(file);
    QVERIFY(trace.open(QIODevice::ReadOnly));
    const QJsonArray events = QJsonDocument::fromJson(trace.readAll()).object()["traceEvents"].toArray();
    QVERIFY(!events.isEmpty());
}

MESHWRIGHT_TEST(TestFaultFlags)

} // namespace tst_fault_flags

#include "tst_fault_flags.moc"
