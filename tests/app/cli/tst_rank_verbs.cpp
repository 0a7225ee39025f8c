// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"
#include "tests/ways_program.h"

#include <QElapsedTimer>
#include <QStandardPaths>
#include <QTemporaryDir>

#include <csignal>
#include <unistd.h>

namespace tst_rank_verbs {

using namespace meshwright::tests;

/// `mpirun -n 4 meshwright train ..`, where MPI is installed and the program was built with it.
class TestRankVerbs : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void sameBits_data();
    void sameBits();
    void problemsEndAllRanks_data();
    void problemsEndAllRanks();
    void lostRank_data();
    void lostRank();
    void failingDevice();
    void devicesThatDiffer_data();
    void devicesThatDiffer();
    void differentStudies();
    void standardInput();
    void programs_data();
    void programs();
    void sweep();
    void withoutMpi();

private:
    bool canRun() const
    {
        return !m_mpirun.isEmpty() && QFile::exists(QFileInfo(MESHWRIGHT_PROGRAM).dir().filePath("meshwright-mpi.so"));
    }
    QStringList launch(int ranks, const QStringList& verb) const
    {
        return QStringList{"--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", QString::number(ranks),
                   MESHWRIGHT_PROGRAM}
        + verb;
    }
    QString study(const QString& text) const
    {
        QFile file(m_folder.filePath("study.yaml"));
        if (file.open(QIODevice::WriteOnly))
            file.write(text.toUtf8());
        return file.fileName();
    }
    QString small(int steps) const
    {
        return study(QString(
            "meshwright: 1\nname: small\nmesh: {data: 2, model: 2}\nmodel: {mlp: {layers: [64, 32, 10], activation: relu, "
            "loss: cross_entropy}}\nbatch: 32\nsharding:\n  x: P('data', None)\n  y: P('data', None)\n  layers.0: {w: "
            "\"P(None, 'model')\", b: \"P('model')\"}\n  layers.1: {w: \"P('model', None)\"}\noptimizer: {adam: {learning_rate: "
            "0.01}}\ntrain: {steps: %1, data: digits}\n")
                         .arg(steps));
    }
    QString pipelined(int steps) const
    {
        return study(
            QString("meshwright: 1\nname: pipelined\nmesh: {pipe: 2, model: 2}\npipeline: {axis: pipe, stages: 2, microbatches: "
                    "4, schedule: 1f1b}\nmodel: {mlp: {layers: [64, 32, 32, 32, 10], activation: relu, loss: "
                    "cross_entropy}}\nbatch: 32\nsharding:\n  layers.0: {w: \"P(None, 'model')\"}\n  layers.1: {w: "
                    "\"P('model', None)\"}\noptimizer: {adam: {learning_rate: 0.01, clip_norm: 1.0}}\ntrain: {steps: %1, "
                    "data: digits}\n")
                .arg(steps));
    }
    static QByteArray lossesOf(const QByteArray& json)
    {
        const QJsonObject result = QJsonDocument::fromJson(json).object();
        return QJsonDocument(QJsonObject{{"losses", result["losses"]}, {"collectives", result["collectives"]}}).toJson();
    }

    QString m_mpirun;
    QTemporaryDir m_folder;
};

#define SKIP_WITHOUT_MPI                                                                                                         \
    if (!canRun())                                                                                                               \
    QSKIP("mpirun is not installed, or the program was built without MPI")

void TestRankVerbs::initTestCase()
{
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) // MPI's libraries are not built for them
    m_mpirun = QStandardPaths::findExecutable("mpirun");
#endif
}

void TestRankVerbs::sameBits_data()
{
    QTest::addColumn<bool>("isPipelined");
    QTest::addColumn<int>("ranks");
    QTest::newRow("two") << false << 2;
    QTest::newRow("three: uneven shares") << false << 3;
    QTest::newRow("four") << false << 4;
    QTest::newRow("a pipeline, three: a stage is cut") << true << 3;
}

void TestRankVerbs::sameBits()
{
    SKIP_WITHOUT_MPI;
    QFETCH(bool, isPipelined);
    QFETCH(int, ranks);
    const QString file = isPipelined ? pipelined(6) : small(6);
    const auto train = [&](const QString& folder) {
        return QStringList{"train", file, "--format", "json", "--checkpoint", m_folder.filePath(folder), "--verify", "--metrics",
            m_folder.filePath(folder + ".jsonl")};
    };
    QDir(m_folder.filePath("alone")).removeRecursively();
    const Outcome alone = runProgram(MESHWRIGHT_PROGRAM, train("alone"));
    QVERIFY2(alone.code == 0, alone.err);
    const QString folder = QString("together%1").arg(ranks);
    QDir(m_folder.filePath(folder)).removeRecursively();
    const Outcome together = runProgram(m_mpirun, launch(ranks, train(folder)));
    QVERIFY2(together.code == 0, together.err);
    QCOMPARE(lossesOf(together.out), lossesOf(alone.out));
    QVERIFY(QJsonDocument::fromJson(together.out).object()["losses"].toArray().size() == 7);
    QCOMPARE(together.err.count("step 6/6"), 1);

    const QDir step(m_folder.filePath("alone/step-000000006"));
    const QStringList files = step.entryList(QDir::Files);
    QVERIFY(files.size() >= 2);
    for (const QString& name : files) {
        QFile one(step.filePath(name));
        QFile other(m_folder.filePath(folder + "/step-000000006/" + name));
        QVERIFY(one.open(QIODevice::ReadOnly) && other.open(QIODevice::ReadOnly));
        QVERIFY2(one.readAll() == other.readAll(), qPrintable(name));
    }
    QFile metrics(m_folder.filePath(folder + ".jsonl"));
    QVERIFY(metrics.open(QIODevice::ReadOnly));
    QCOMPARE(metrics.readAll().count('\n'), 6);
}

void TestRankVerbs::problemsEndAllRanks_data()
{
    addExitCodeColumns();
    QTest::newRow("more processes than devices") << QStringList{"train", small(2)} << 6 << "MW1553";
    QTest::newRow("a function that there is not")
        << QStringList{"run", example("megatron_pair.mlir"), "--function", "none"} << 3 << "MW1732";
    QTest::newRow("a flag that there is not") << QStringList{"train", small(2), "--bogus"} << 2 << "MW1901";
    QTest::newRow("a study that is none") << QStringList{"train", m_folder.filePath("none.yaml")} << 3 << "MW1001";
}

void TestRankVerbs::problemsEndAllRanks()
{
    SKIP_WITHOUT_MPI;
    QFETCH(QStringList, arguments);
    QFETCH(QString, said);
    const Outcome outcome = runProgram(m_mpirun, launch(5, arguments));
    checkExitCode(outcome);
    QCOMPARE(outcome.err.count(said.toUtf8()), 1);
}

void TestRankVerbs::lostRank_data()
{
    QTest::addColumn<bool>("isPipelined");
    QTest::addColumn<int>("killed");
    QTest::addColumn<QString>("said");
    QTest::newRow("the last") << false << 3 << "rank 3 of 4 (device 3) was lost";
    QTest::newRow("the first") << false << 0 << "rank 0 of 4 (device 0) was lost";
    QTest::newRow("of a pipeline") << true << 2 << "rank 2 of 4 (device 2) was lost";
}

/// Killed in the middle of a long training, whenever that is.
void TestRankVerbs::lostRank()
{
    SKIP_WITHOUT_MPI;
    QFETCH(bool, isPipelined);
    QFETCH(int, killed);
    QFETCH(QString, said);
    const QString file = isPipelined ? pipelined(1'000'000) : small(1'000'000);
    const QString folder = m_folder.filePath(QString("lost%1").arg(killed));
    QProcess job;
    job.setProcessEnvironment(plainEnvironment());
    job.start(m_mpirun, launch(4, {"train", file, "--checkpoint", folder, "--every", "20", "--keep", "2"}));
    QVERIFY(job.waitForStarted());
    QTRY_VERIFY_WITH_TIMEOUT(!QDir(folder).entryList({"step-000000???"}, QDir::Dirs).isEmpty(), 30'000);

    // The process of the rank, by its environment.
    qint64 pid = 0;
    const QByteArray mark = QByteArray("OMPI_COMM_WORLD_RANK=") + QByteArray::number(killed);
    for (const QString& entry : QDir("/proc").entryList(QDir::Dirs)) {
        QFile environment("/proc/" + entry + "/environ");
        QFile command("/proc/" + entry + "/cmdline");
        if (!environment.open(QIODevice::ReadOnly) || !command.open(QIODevice::ReadOnly))
            continue;
        if (command.readAll().contains(folder.toUtf8()) && environment.readAll().split('\0').contains(mark))
            pid = entry.toLongLong();
    }
    QVERIFY(pid > 0);
    QCOMPARE(::kill(static_cast<pid_t>(pid), SIGKILL), 0);
    QVERIFY(job.waitForFinished(30'000));
    const QByteArray err = job.readAllStandardError();
    QVERIFY(job.exitCode() != 0);
    QVERIFY2(err.contains("MW1551") && err.contains(said.toUtf8()), err);
    QVERIFY2(err.contains("the last complete checkpoint is " + folder.toUtf8()), err);
    QCOMPARE(err.count("MW1551"), 1);
}

void TestRankVerbs::failingDevice()
{
    SKIP_WITHOUT_MPI;
    const Outcome outcome = runProgram(m_mpirun, launch(2, {"train", small(50), "--inject", "fail:device=3,step=4"}));
    QVERIFY2(outcome.code == 6, QByteArray::number(outcome.code) + outcome.err);
    QVERIFY2(outcome.err.contains("MW1508") && outcome.err.contains("rank 1 of 2 (devices 2 to 3): device 3"), outcome.err);
    QCOMPARE(outcome.err.count("MW1508"), 1);
}

void TestRankVerbs::devicesThatDiffer_data()
{
    QTest::addColumn<QString>("second"); // what devices 1 and 3 do
    QTest::addColumn<QString>("said");
    QTest::newRow("another reduction") << sumLine("r", "a", "4x8xf32", "[[0, 1, 2, 3]]", "maximum") << "MW1505";
    QTest::newRow("none") << "%r = stablehlo.add %a, %a : tensor<4x8xf32>\n"
                          << "no device can proceed: devices 0 and 2 wait in all_reduce of x";
}

void TestRankVerbs::devicesThatDiffer()
{
    SKIP_WITHOUT_MPI;
    QFETCH(QString, second);
    QFETCH(QString, said);
    QFile file(m_folder.filePath("ways.mlir"));
    QVERIFY(
        file.open(QIODevice::WriteOnly) && file.write(waysProgram(sumLine("r", "a", "4x8xf32", "[[0, 1, 2, 3]]"), second)) > 0);
    file.close();
    const Outcome outcome = runProgram(m_mpirun, launch(4, {"run", file.fileName()}));
    QVERIFY2(outcome.code == 6, outcome.err);
    QVERIFY2(outcome.err.contains(said.toUtf8()), outcome.err);
    QCOMPARE(outcome.err.count("error MW"), 1);
}

void TestRankVerbs::differentStudies()
{
    SKIP_WITHOUT_MPI;
    const QString file = small(2);
    const Outcome outcome = runProgram(m_mpirun,
        launch(1, {"train", file}) + QStringList{":", "-n", "1", MESHWRIGHT_PROGRAM, "train", file, "--set", "train.steps=3"});
    QVERIFY2(outcome.code == 6, outcome.err);
    QVERIFY2(outcome.err.contains("MW1554") && outcome.err.contains("rank 1 read another study"), outcome.err);
}

/// Launchers give it to the first process alone.
void TestRankVerbs::standardInput()
{
    SKIP_WITHOUT_MPI;
    QFile file(pipelined(2));
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray text = file.readAll();
    const Outcome alone = runProgram(MESHWRIGHT_PROGRAM, {"train", "-", "--format", "json"}, text);
    const Outcome together = runProgram(m_mpirun, launch(2, {"train", "-", "--format", "json"}), text);
    QVERIFY2(alone.code == 0 && together.code == 0, together.err);
    QCOMPARE(lossesOf(together.out), lossesOf(alone.out));
}

void TestRankVerbs::programs_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QStringList>("options");
    QTest::newRow("sharded") << "spmd_step.mlir" << QStringList{"--verify"};
    QTest::newRow("a manual computation, timed") << "pmap_step.mlir" << QStringList{"--time", "2x2"};
}

/// `run`: the first process alone says something and writes the results.
void TestRankVerbs::programs()
{
    SKIP_WITHOUT_MPI;
    QFETCH(QString, file);
    QFETCH(QStringList, options);
    const auto run = [&](const QString& folder) {
        return QStringList{"run", example(file), "--out", m_folder.filePath(folder)} + options;
    };
    const Outcome alone = runProgram(MESHWRIGHT_PROGRAM, run("one"));
    const Outcome together = runProgram(m_mpirun, launch(2, run("two")));
    QVERIFY2(alone.code == 0 && together.code == 0, together.err);
    QCOMPARE(together.out.count("ran on 8 devices"), 1);
    QCOMPARE(together.out.count(options.contains("--verify") ? "verified against one device: equal" : "so sharding is"), 1);
    const QStringList results = QDir(m_folder.filePath("one")).entryList(QDir::Files);
    QVERIFY(!results.isEmpty());
    for (const QString& name : results) {
        QFile one(m_folder.filePath("one/" + name));
        QFile two(m_folder.filePath("two/" + name));
        QVERIFY(one.open(QIODevice::ReadOnly) && two.open(QIODevice::ReadOnly));
        QVERIFY2(one.readAll() == two.readAll(), qPrintable(name));
    }
}

void TestRankVerbs::sweep()
{
    SKIP_WITHOUT_MPI;
    const QStringList plain = {"sweep", example("data_parallel.yaml"), "--vary", "batch=2^5..2^12", "--format", "jsonl"};
    const Outcome alone = runProgram(MESHWRIGHT_PROGRAM, plain);
    const Outcome together = runProgram(m_mpirun, launch(3, plain));
    QVERIFY2(together.code == alone.code, together.err);
    QVERIFY(alone.out.count('\n') >= 8);
    QCOMPARE(together.out, alone.out);
}

/// As an installation without the module, wherever a launcher's variables say that there are others.
void TestRankVerbs::withoutMpi()
{
    const QString program = m_folder.filePath("meshwright");
    QVERIFY(QFile::copy(MESHWRIGHT_PROGRAM, program));
    QProcessEnvironment environment = plainEnvironment();
    environment.insert("OMPI_COMM_WORLD_SIZE", "4");
    for (const QString rank : {"0", "2"}) {
        environment.insert("OMPI_COMM_WORLD_RANK", rank);
        const Outcome outcome = runProgram(program, {"train", small(1)}, {}, environment);
        QCOMPARE(outcome.code, 6);
        QCOMPARE(outcome.err.count("MW1550"), rank == "0" ? 1 : 0);
        QCOMPARE(outcome.out, QByteArray());
    }
    environment.insert("OMPI_COMM_WORLD_SIZE", "1");
    environment.insert("OMPI_COMM_WORLD_RANK", "0");
    const Outcome outcome = runProgram(program, {"train", small(1)}, {}, environment);
    QVERIFY2(outcome.code == 0, outcome.err);
}

MESHWRIGHT_TEST(TestRankVerbs)

} // namespace tst_rank_verbs

#include "tst_rank_verbs.moc"
