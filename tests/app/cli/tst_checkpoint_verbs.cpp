// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <QDir>
#include <QTemporaryDir>

#include <csignal>
#include <random>

namespace tst_checkpoint_verbs {

namespace {

using meshwright::tests::errorsAgainst;
using meshwright::tests::example;
using meshwright::tests::hasLines;
using meshwright::tests::interruptWhen;
using meshwright::tests::Outcome;

Outcome run(const QStringList& arguments)
{
    return meshwright::tests::runProgram(MESHWRIGHT_PROGRAM, arguments);
}

QStringList training(int steps, const QStringList& more)
{
    return QStringList{
               "train", example("tensor_parallel.yaml"), "-q", "--format", "json", "--set", QString("train.steps=%1").arg(steps)}
    + more;
}

QJsonObject object(const Outcome& outcome)
{
    return QJsonDocument::fromJson(outcome.out).object();
}

QStringList checkpoints(const QString& folder)
{
    return QDir(folder).entryList({"step-?????????"}, QDir::Dirs, QDir::Name); // none that is being written
}

} // namespace

/// Checkpoints as a user makes and uses them: `train --checkpoint`, `train --resume`, `reshard --from FOLDER`.
class TestCheckpointVerbs : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void resumedRunIsTheWholeOne();
    void initialValues();
    void damagedOneIsPassedOver();
    void metricsGoOn();
    void interruptedKeepsTheSteps();
    void killedAtAnyMoment_data();
    void killedAtAnyMoment();
    void fullDisk();
    void onlyCheckpointsGo();
    void reportsObstaclesBeforeTraining();
    void secondTrainingIsRefused();
    void nobodyTakesTheWords_data();
    void nobodyTakesTheWords();
    void fullDiskUnderTheMetrics();
    void otherMesh();
    void exitCodes_data();
    void exitCodes();
};

void TestCheckpointVerbs::resumedRunIsTheWholeOne()
{
    const QTemporaryDir folder;
    const Outcome whole = run(training(6, {}));
    QCOMPARE(whole.code, 0);
    QCOMPARE(run(training(4, {"--checkpoint", folder.path(), "--every", "1", "--keep", "2"})).code, 0);
    QCOMPARE(checkpoints(folder.path()), (QStringList{"step-000000003", "step-000000004"}));
    const Outcome resumed = run(training(6, {"--resume", folder.path()}));
    QCOMPARE(resumed.code, 0);
    QCOMPARE(errorsAgainst("training-1.json", resumed.out), QStringList());
    QCOMPARE(object(resumed)["losses"], object(whole)["losses"]);
    QCOMPARE(object(resumed)["metrics"], object(whole)["metrics"]);
    QCOMPARE(object(resumed)["first_step"].toInt(), 4);
}

/// No steps: the checkpoint has what the training begins with.
void TestCheckpointVerbs::initialValues()
{
    const QTemporaryDir folder;
    QCOMPARE(run(training(0, {"--checkpoint", folder.path()})).code, 0);
    QCOMPARE(checkpoints(folder.path()), QStringList{"step-000000000"});
    const Outcome resumed = run(training(2, {"--resume", folder.path()}));
    QVERIFY2(resumed.code == 0, resumed.err);
    QCOMPARE(object(resumed)["losses"], object(run(training(2, {})))["losses"]);
}

/// One flipped bit in the newest: the one before it is taken, to the same bits in the end. Named itself, it is refused.
void TestCheckpointVerbs::damagedOneIsPassedOver()
{
    const QTemporaryDir folder;
    QCOMPARE(run(training(4, {"--checkpoint", folder.path(), "--every", "2"})).code, 0);
    QFile file(folder.path() + "/step-000000004/device-00000.safetensors");
    QVERIFY(file.open(QIODevice::ReadWrite));
    QByteArray bytes = file.readAll();
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    QVERIFY(file.seek(0) && file.write(bytes) == bytes.size());
    file.close();
    QStringList resume = training(6, {"--resume", folder.path()});
    resume.removeOne("-q");
    const Outcome resumed = run(resume);
    QVERIFY2(resumed.code == 0, resumed.err);
    QVERIFY2(resumed.err.contains("warning MW1642: step-000000004 is skipped: "), resumed.err);
    QCOMPARE(object(resumed)["first_step"].toInt(), 2);
    QCOMPARE(object(resumed)["losses"], object(run(training(6, {})))["losses"]);
    const Outcome named = run(training(6, {"--resume", folder.path() + "/step-000000004"}));
    QCOMPARE(named.code, 3);
    QVERIFY2((named.out + named.err).contains("MW1642"), named.err);
}

/// A line for each step, each as the schema says; a resumed run writes those of its own steps anew.
void TestCheckpointVerbs::metricsGoOn()
{
    const QTemporaryDir folder;
    const QString file = folder.filePath("metrics.jsonl");
    const auto linesOf = [&] {
        QFile metrics(file);
        return metrics.open(QIODevice::ReadOnly) ? metrics.readAll().trimmed().split('\n') : QList<QByteArray>();
    };
    const QStringList more = {"--metrics", file, "--checkpoint", folder.filePath("checkpoints"), "--every", "2", "--set",
        "optimizer={sgd: {learning_rate: 0.1, schedule: linear, decay_steps: 10}}", "--set", "train.evaluate=4"};
    const Outcome outcome = run(training(5, more));
    QCOMPARE(outcome.code, 0);
    const QList<QByteArray> lines = linesOf();
    QCOMPARE(lines.size(), 5);
    for (int i = 0; i < 5; ++i) {
        QCOMPARE(errorsAgainst("metrics-1.json", lines[i]), QStringList());
        const QJsonObject line = QJsonDocument::fromJson(lines[i]).object();
        QCOMPARE(line["step"].toInt(), i + 1);
        QCOMPARE(line["loss"], object(outcome)["losses"][i]);
        QVERIFY(std::abs(line["learning_rate"].toDouble() - 0.1 * (1.0 - 0.1 * i)) < 1e-15);
        QVERIFY(line["grad_norm"].toDouble() > 0.0);
        QCOMPARE(line.contains("held_out_accuracy"), i >= 3);
        QCOMPARE(line.contains("held_out_loss"), i >= 3);
    }
    QCOMPARE(object(outcome)["metrics"].toObject()["held_out"].toArray().size(), 2); // after step 4, and at the end

    QCOMPARE(run(training(7, QStringList{"--resume", folder.filePath("checkpoints/step-000000004")} + more)).code, 0);
    const QList<QByteArray> longer = linesOf();
    QCOMPARE(longer.size(), 7);
    for (int i = 0; i < 4; ++i)
        QCOMPARE(longer[i], lines[i]);
    QCOMPARE(QJsonDocument::fromJson(longer[4])["loss"], QJsonDocument::fromJson(lines[4])["loss"]);
    QCOMPARE(run(training(2, {"--metrics", file, "--set", "optimizer={sgd: {loss_scale: dynamic}}"})).code, 0);
    for (const QByteArray& line : linesOf()) {
        QCOMPARE(errorsAgainst("metrics-1.json", line), QStringList());
        const QJsonObject scaled = QJsonDocument::fromJson(line).object();
        QCOMPARE(scaled["loss_scale"].toDouble(), 65536.0);
        QVERIFY(scaled.contains("skipped") && !scaled["skipped"].toBool());
    }
    QCOMPARE(run(training(1, {"--metrics", "/nonexistent/metrics.jsonl"})).code, 3);
}

/// Whenever the process dies, the folder's newest complete checkpoint can be gone on from, to the losses of the run that nobody killed.
/// MESHWRIGHT_KILLS=100 in the environment for a long run.
/// Ctrl-C with checkpoints: the step that runs ends, and a checkpoint keeps it.
void TestCheckpointVerbs::interruptedKeepsTheSteps()
{
    const QTemporaryDir folder;
    QProcess process;
    const QString metrics = folder.filePath("metrics.jsonl");
    process.start(MESHWRIGHT_PROGRAM, training(1000000, {"--checkpoint", folder.path(), "--metrics", metrics}));
    QVERIFY(process.waitForStarted());
    QVERIFY(interruptWhen(process, [&] { return hasLines(metrics, 2); }));
    QVERIFY(process.waitForFinished(30'000));
    QCOMPARE(process.exitCode(), 130);
    const QJsonObject result = QJsonDocument::fromJson(process.readAllStandardOutput()).object();
    const auto steps = result["losses"].toArray().size();
    const QStringList kept = checkpoints(folder.path());
    QVERIFY(steps > 0);
    QCOMPARE(kept, QStringList(QString("step-%1").arg(steps, 9, 10, QChar('0'))));
    QCOMPARE(run(training(static_cast<int>(steps) + 1, {"--resume", folder.path()})).code, 0);
}

void TestCheckpointVerbs::killedAtAnyMoment_data()
{
    meshwright::tests::addSeeds({11, 12});
}

void TestCheckpointVerbs::killedAtAnyMoment()
{
    const int kills = qEnvironmentVariableIsSet("MESHWRIGHT_KILLS") ? qEnvironmentVariableIntValue("MESHWRIGHT_KILLS") : 6;
    const QJsonArray losses = object(run(training(40, {})))["losses"].toArray();
    QCOMPARE(losses.size(), 41);
    const QTemporaryDir folder;
    QFETCH(quint64, seed);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    int lastStep = 0;
    for (int kill = 0; kill < kills; ++kill) {
        QProcess process;
        QStringList more = {"--checkpoint", folder.path(), "--every", "1", "--set", "train.steps=1000000"};
        if (lastStep > 0)
            more += {"--resume", folder.path()};
        process.start(MESHWRIGHT_PROGRAM, training(1, more));
        QVERIFY(process.waitForStarted());
        const int before = lastStep;
        QTRY_VERIFY_WITH_TIMEOUT(!checkpoints(folder.path()).isEmpty()
                && checkpoints(folder.path()).last() > QString("step-%1").arg(before, 9, 10, QChar('0')),
            20'000);
        QTest::qWait(static_cast<int>(random() % 60));
        ::kill(static_cast<pid_t>(process.processId()), SIGKILL);
        QVERIFY(process.waitForFinished());
        QCOMPARE(process.exitStatus(), QProcess::CrashExit);

        const Outcome dryRun = run(
            {"reshard", "--from", folder.path(), "--to", example("tensor_parallel.yaml"), "--dry-run", "--format", "json", "-q"});
        QCOMPARE(dryRun.code, 0);
        lastStep = object(dryRun)["step"].toInt();
        QVERIFY(lastStep > before);
        if (kill % 50 == 49) { // begin anew: steps that are far on take no longer, but their list of losses does
            QVERIFY(QDir(folder.path()).removeRecursively() && QDir().mkpath(folder.path()));
            lastStep = 0;
        }
    }
    if (lastStep > 0 && lastStep <= 40) {
        const Outcome resumed = run(training(40, {"--resume", folder.path()}));
        QCOMPARE(object(resumed)["losses"].toArray(), losses);
    } else if (lastStep > 40) {
        const Outcome resumed = run(training(lastStep, {"--resume", folder.path()}));
        const QJsonArray found = object(resumed)["losses"].toArray();
        for (int i = 0; i < 40; ++i)
            QCOMPARE(found[i], losses[i]);
    }
}

/// Files may not grow as large as the second checkpoint's: the first one is all there is, and can be gone on from.
void TestCheckpointVerbs::fullDisk()
{
    const QTemporaryDir folder;
    QCOMPARE(run(training(1, {"--checkpoint", folder.path()})).code, 0);
    QStringList limited = {"-c", "ulimit -f 20; exec \"$@\"", "sh", MESHWRIGHT_PROGRAM};
    limited += training(3, {"--checkpoint", folder.path(), "--every", "1", "--resume", folder.path()});
    const Outcome full = meshwright::tests::runProgram("sh", limited);
    QCOMPARE(full.code, 6);
    QVERIFY2(full.out.contains("MW1640"), full.out);
    QCOMPARE(checkpoints(folder.path()), QStringList{"step-000000001"});
    QCOMPARE(QDir(folder.path()).entryList(QDir::AllEntries | QDir::NoDotAndDotDot).size(), 1); // nothing half-written
    QCOMPARE(run(training(3, {"--resume", folder.path()})).code, 0);
}

/// `--keep` removes checkpoints, and nothing that only looks like one.
void TestCheckpointVerbs::onlyCheckpointsGo()
{
    const QTemporaryDir folder;
    const QTemporaryDir elsewhere;
    QVERIFY(QDir(folder.path()).mkpath("step-2"));
    for (const QString& path : {folder.filePath("step-2/thesis.txt"), elsewhere.filePath("thesis.txt")}) {
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write("precious") == 8);
    }
    QVERIFY(QFile::link(elsewhere.path(), folder.filePath("step-000000099")));
    const Outcome outcome = run(training(4, {"--checkpoint", folder.path(), "--every", "1", "--keep", "1"}));
    QVERIFY2(outcome.code == 0, outcome.err);
    QCOMPARE(checkpoints(folder.path()), (QStringList{"step-000000004", "step-000000099"}));
    QVERIFY(QFile::exists(folder.filePath("step-2/thesis.txt")));
    QVERIFY(QFile::exists(elsewhere.filePath("thesis.txt")));
    QCOMPARE(QDir(folder.path()).entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot).size(), 3); // no lock is left
}

void TestCheckpointVerbs::reportsObstaclesBeforeTraining()
{
    const QTemporaryDir folder;
    QVERIFY(QDir(folder.path()).mkpath("step-000000003"));
    QFile file(folder.filePath("step-000000003/thesis.txt"));
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write("precious") == 8);
    const Outcome outcome = run(training(4, {"--checkpoint", folder.path(), "--every", "1"}));
    QCOMPARE(outcome.code, 3);
    QVERIFY2(outcome.out.contains("MW1649"), outcome.out);
    QCOMPARE(checkpoints(folder.path()), QStringList{"step-000000003"}); // nothing was trained
    QVERIFY(file.exists());
}

void TestCheckpointVerbs::secondTrainingIsRefused()
{
    const QTemporaryDir folder;
    QProcess first;
    first.start(MESHWRIGHT_PROGRAM, training(1000000, {"--checkpoint", folder.path(), "--every", "1", "--keep", "2"}));
    QVERIFY(first.waitForStarted());
    QTRY_VERIFY_WITH_TIMEOUT(!checkpoints(folder.path()).isEmpty(), 20'000);
    const Outcome second = run(training(4, {"--checkpoint", folder.path()}));
    QCOMPARE(second.code, 3);
    const QByteArray words = second.out + second.err;
    QVERIFY2(words.contains("MW1008") && words.contains(QString("process %1 on ").arg(first.processId()).toUtf8()), words);
    first.kill();
    QVERIFY(first.waitForFinished());
    QDir(folder.path()).removeRecursively();
    QVERIFY(QDir().mkpath(folder.path()));
    QCOMPARE(run(training(2, {"--checkpoint", folder.path()})).code, 0); // a killed one holds nobody up
}

void TestCheckpointVerbs::nobodyTakesTheWords_data()
{
    QTest::addColumn<QString>("redirection");

    QTest::newRow("full disk") << "2>/dev/full";
    QTest::newRow("closed") << "2>&-";
    QTest::newRow("closed input too") << "0<&- 2>&-";
    QTest::newRow("a reader that is gone") << "2> >(exec true)";
}

/// Words on standard error are worth less than a training: it ends as it would, with its checkpoints, its metrics and its result.
void TestCheckpointVerbs::nobodyTakesTheWords()
{
    QFETCH(QString, redirection);
    const QTemporaryDir folder;
    QStringList loud = training(5, {"--checkpoint", folder.filePath("k"), "--every", "2", "--metrics", folder.filePath("m")});
    loud.removeOne("-q");
    const Outcome outcome = meshwright::tests::runProgram(
        "bash", QStringList{"-c", "exec \"$@\" " + redirection, "bash", MESHWRIGHT_PROGRAM} + loud);
    QCOMPARE(outcome.code, 0);
    QCOMPARE(object(outcome)["losses"].toArray().size(), 6);
    QCOMPARE(checkpoints(folder.filePath("k")).last(), QString("step-000000005"));
    QFile metrics(folder.filePath("m"));
    QVERIFY(metrics.open(QIODevice::ReadOnly));
    const QList<QByteArray> lines = metrics.readAll().trimmed().split('\n');
    QCOMPARE(lines.size(), 5);
    for (const QByteArray& line : lines)
        QCOMPARE(errorsAgainst("metrics-1.json", line), QStringList()); // no words of ours between them
}

/// The disk is full for everything that stands beside the result: the training ends, its result is shown, and the exit code says so.
void TestCheckpointVerbs::fullDiskUnderTheMetrics()
{
    for (const char* flag : {"--metrics", "--trace", "-o"}) {
        const Outcome outcome = run(training(3, {flag, "/dev/full"}));
        QVERIFY2(outcome.code == 6, flag);
        QCOMPARE(object(outcome)["losses"].toArray().size(), 4);
        QVERIFY2(outcome.err.contains("MW1007"), outcome.err);
    }
}

void TestCheckpointVerbs::otherMesh()
{
    const QTemporaryDir folder;
    QCOMPARE(run(training(2, {"--checkpoint", folder.path() + "/a"})).code, 0);
    const Outcome converted = run({"reshard", "--from", folder.path() + "/a", "--to", example("tensor_parallel.yaml"), "-o",
        folder.path() + "/b", "--format", "json"});
    QVERIFY2(converted.code == 0, converted.err);
    QCOMPARE(errorsAgainst("restore-1.json", converted.out), QStringList());
    QCOMPARE(checkpoints(folder.path() + "/b"), QStringList{"step-000000002"});
    // The same study: every device reads just what it holds, and the new checkpoint has the same bytes.
    QFile before(folder.path() + "/a/step-000000002/device-00000.safetensors");
    QFile after(folder.path() + "/b/step-000000002/device-00000.safetensors");
    QVERIFY(before.open(QIODevice::ReadOnly) && after.open(QIODevice::ReadOnly));
    QCOMPARE(after.readAll(), before.readAll());

    const Outcome planned = run({"reshard", "--from", folder.path() + "/a", "--to", example("tensor_parallel.yaml"), "--set",
        "mesh.data=2", "--set", "mesh.model=4", "--dry-run", "--format", "json"});
    QVERIFY2(planned.code == 0, planned.err);
    QCOMPARE(object(planned)["to_mesh"].toString(), QString("data=2,model=4"));

    const QStringList resumed = training(4, {"--resume", folder.path() + "/a", "--set", "mesh.data=2", "--set", "mesh.model=4"});
    const Outcome elsewhere = run(resumed);
    QVERIFY2(elsewhere.code == 0, elsewhere.err);
    const QJsonArray here = object(run(training(4, {})))["losses"].toArray();
    const QJsonArray there = object(elsewhere)["losses"].toArray();
    QCOMPARE(there.size(), here.size());
    for (int i = 0; i < here.size(); ++i)
        QVERIFY(std::abs(here[i].toDouble() - there[i].toDouble()) < 1e-5);
}

void TestCheckpointVerbs::exitCodes_data()
{
    meshwright::tests::addExitCodeColumns();
    const QString study = example("tensor_parallel.yaml");
    QTest::newRow("no checkpoint") << QStringList{"train", study, "--resume", "nowhere"} << 3 << "MW1001";
    QTest::newRow("none in it") << QStringList{"train", study, "--resume", QDir::tempPath() + "/.."} << 3 << "MW1644";
    QTest::newRow("cannot write") << QStringList{"train", study, "--set", "train.steps=1", "--checkpoint", study + "/x"} << 3
                                  << "MW1005";
    for (const char* flag : {"--checkpoint", "--resume", "--metrics", "--trace", "-o"}) // a shell variable that is not set
        QTest::newRow(flag) << QStringList{"train", study, flag, ""} << 2 << "MW1903";
    QTest::newRow("no output") << QStringList{"reshard", "--from", QDir::tempPath(), "--to", study} << 2 << "MW1904";
    QTest::newRow("no picture") << QStringList{"reshard", "--from", QDir::tempPath(), "--to", study, "--format", "svg"} << 2
                                << "MW1903";
    QTest::newRow("not every minus one") << QStringList{"train", study, "--every", "-1"} << 2 << "--every";
    QTest::newRow("no shape") << QStringList{"reshard", "--mesh", "a=2", "--from", "P('a')", "--to", "P()"} << 2 << "--shape";
}

void TestCheckpointVerbs::exitCodes()
{
    QFETCH(QStringList, arguments);
    const Outcome outcome = run(arguments);
    meshwright::tests::checkExitCode(outcome);
}

MESHWRIGHT_TEST(TestCheckpointVerbs)

} // namespace tst_checkpoint_verbs

#include "tst_checkpoint_verbs.moc"
