// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QTemporaryDir>

namespace tst_calibrate_verb {

using namespace meshwright;

/// `meshwright calibrate` and `train --predict` as processes.
class TestCalibrateVerb : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void thisComputer();
    void interrupted();
    void links();
    void brokenLog();
    void badProfile();
};

namespace {

tests::Outcome run(const QStringList& arguments)
{
    return tests::runProgram(MESHWRIGHT_PROGRAM, arguments);
}

QString written(const QTemporaryDir& folder, const QString& name, const QByteArray& text)
{
    QFile file(folder.filePath(name));
    if (!file.open(QIODevice::WriteOnly))
        return {};
    file.write(text);
    return file.fileName();
}

QJsonObject objectIn(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object() : QJsonObject();
}

QStringList hardwareErrors(const QJsonObject& profile)
{
    return tests::schemaErrors(profile, objectIn(MESHWRIGHT_SOURCE_DIR "/resources/schemas/hardware-1.json"));
}

constexpr const char* kStudy = R"yaml(meshwright: 1
name: small
hardware: {profile: host.json}
mesh: {data: 2, model: 2}
model:
  mlp: {layers: [32, 64, 10], activation: relu, bias: true, loss: cross_entropy}
batch: 32
sharding:
  x: P('data', None)
  y: P('data', None)
  layers.0: {w: "P(None, 'model')", b: "P('model')"}
optimizer: {adam: {learning_rate: 1.0e-3}}
train: {steps: 4, seed: 0, data: random}
)yaml";

} // namespace

/// The profile is a hardware file that a study can name, and what --predict takes.
void TestCalibrateVerb::thisComputer()
{
    QTemporaryDir folder;
    const QString profile = folder.filePath("host.json");
    const tests::Outcome measured = run({"calibrate", "--quick", "--permits", "1", "--devices", "4", "-o", profile});
    QVERIFY2(measured.code == 0, measured.err.constData());
    QVERIFY(measured.out.contains("products of side 256"));
    QCOMPARE(hardwareErrors(objectIn(profile)), QStringList());
    QCOMPARE(objectIn(profile).value("schema").toString(), QString("meshwright.hardware/1"));

    const QString study = written(folder, "study.yaml", kStudy);
    const tests::Outcome simulated = run({"simulate", study});
    QVERIFY2(simulated.code == 0, simulated.err.constData());
    QVERIFY(simulated.out.contains("this computer"));

    const tests::Outcome trained = run({"train", study, "--predict", "--profile", profile, "--format", "json", "-q"});
    QVERIFY2(trained.code == 0, trained.err.constData());
    const QJsonObject prediction = QJsonDocument::fromJson(trained.out).object().value("prediction").toObject();
    QCOMPARE(prediction.value("mesh").toString(), QString("data=2,model=2"));
    QVERIFY(prediction.value("predicted_s").toDouble() > 0.0);
    QVERIFY(prediction.value("measured_s").toDouble() > 0.0);
    QCOMPARE(prediction.value("classes").toArray().size(), 6);
    const tests::Outcome text = run({"train", study, "--predict", "--profile", profile, "-q"});
    QVERIFY2(text.out.contains("in total"), text.out.constData());
}

/// Ctrl-C ends a measurement without a profile and without an error.
void TestCalibrateVerb::interrupted()
{
    const QTemporaryDir folder;
    for (const int signal : {SIGINT, SIGTERM}) {
        QProcess process;
        process.start(MESHWRIGHT_PROGRAM, {"calibrate", "-o", folder.filePath("host.json")});
        QVERIFY(process.waitForStarted());
        QTRY_VERIFY(tests::waitsForInterrupts(process));
        QTest::qWait(50);
        ::kill(static_cast<pid_t>(process.processId()), signal);
        QVERIFY(process.waitForFinished(30'000));
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        const QByteArray words = process.readAllStandardError();
        QVERIFY2(process.exitCode() == 128 + signal, words);
        QVERIFY2(!words.contains("error"), words);
        QVERIFY(!QFile::exists(folder.filePath("host.json")));
    }
}

void TestCalibrateVerb::links()
{
    QTemporaryDir folder;
    const QString log = written(folder, "all_reduce_perf.txt",
        "# nThread 1 nGpus 8 minBytes 8\n"
        "        1024           256     float     sum      -1    20.00    0.05    0.08      0    19.80    0.05    0.08      0\n"
        "   134217728      33554432     float     sum      -1   1020.0   131.6   197.4      0   1019.0   131.7   197.6      0\n");
    const QString profile = folder.filePath("links.json");
    const tests::Outcome read = run({"calibrate", "--nccl", log, "--base", "h100", "-o", profile});
    QVERIFY2(read.code == 0, read.err.constData());
    QVERIFY(read.out.contains("all-reduce"));
    QCOMPARE(hardwareErrors(objectIn(profile)), QStringList());
    QCOMPARE(objectIn(profile).value("chip").toObject().value("base").toString(), QString("h100"));
    QVERIFY(run({"calibrate", "--nccl", log, "--base", "bogus"}).err.contains("MW1701"));
    const tests::Outcome json = run({"calibrate", "--nccl", log, "--base", "h100", "--format", "json"});
    QCOMPARE(hardwareErrors(QJsonDocument::fromJson(json.out).object()), QStringList());
    QCOMPARE(QJsonDocument::fromJson(json.out).object().value("schema").toString(), QString("meshwright.hardware/1"));
    // The log names no GPU: its times can be read all the same, and no machine is made of another chip.
    QCOMPARE(run({"calibrate", "--nccl", log}).code, 0);
    const tests::Outcome noChip = run({"calibrate", "--nccl", log, "--format", "json"});
    QCOMPARE(noChip.code, 3);
    QVERIFY2(noChip.out.contains("MW1715"), noChip.out.constData());
}

void TestCalibrateVerb::brokenLog()
{
    QTemporaryDir folder;
    const tests::Outcome empty = run({"calibrate", "--nccl", written(folder, "a.txt", "nothing\n")});
    QCOMPARE(empty.code, 3);
    QVERIFY2(empty.err.contains("MW1712"), empty.err.constData());
    QCOMPARE(run({"calibrate", "--nccl", folder.filePath("none.txt")}).code, 3);
}

void TestCalibrateVerb::badProfile()
{
    QTemporaryDir folder;
    const QString study = written(folder, "study.yaml", kStudy);
    const QString profile = written(folder, "host.json", "{}");
    const tests::Outcome trained = run({"train", study, "--predict", "--profile", profile, "-q"});
    QCOMPARE(trained.code, 3);
    QVERIFY2(trained.err.contains("MW1711"), trained.err.constData());
}

MESHWRIGHT_TEST(TestCalibrateVerb)

} // namespace tst_calibrate_verb

#include "tst_calibrate_verb.moc"
