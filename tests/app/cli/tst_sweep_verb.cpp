// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QElapsedTimer>
#include <QRegularExpression>
#include <QTemporaryDir>

#include <csignal>

namespace tst_sweep_verb {

using namespace meshwright::tests;

/// `sweep` and `report --sweep` as processes: kept results, kills, interrupts, formats, exit codes.
class TestSweepVerb : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void exitCodes_data();
    void exitCodes();
    void formats_data();
    void formats();
    void dryRunAsJson();
    void sameForAnyJobs();
    void agreesWithSimulate();
    void killsLoseNothing();
    void interruptKeepsWhatIsDone();
    void sweepFile();
    void dryRun();
    void reports();
    void changedStudyIsSimulatedAgain();
};

namespace {

Outcome run(const QStringList& arguments, const QByteArray& input = {})
{
    return runProgram(MESHWRIGHT_PROGRAM, arguments, input);
}

QJsonObject objectOf(const QByteArray& json)
{
    return QJsonDocument::fromJson(json).object();
}

/// So many kills of a sweep as MESHWRIGHT_KILLS says; three otherwise.
int kills()
{
    const int asked = qEnvironmentVariableIntValue("MESHWRIGHT_KILLS");
    return asked > 0 ? asked : 3;
}

} // namespace

void TestSweepVerb::exitCodes_data()
{
    meshwright::tests::addExitCodeColumns();
    const QString digits = example("digits.yaml");
    QTest::newRow("good") << QStringList{digits, "--vary", "mesh=data*model=8"} << 0 << "4 points: 4 simulated, 0 known before";
    QTest::newRow("some refused") << QStringList{digits, "--vary", "batch=100,101"} << 0 << "";
    QTest::newRow("some refused, which is not wanted")
        << QStringList{digits, "--vary", "batch=100,101", "--fail-on", "refused"} << 1 << "";
    QTest::newRow("some do not fit, which is not wanted")
        << QStringList{example("wide_mlp.yaml"), "--vary", "batch=1k,4M", "--fail-on", "unfit"} << 1 << "";
    QTest::newRow("that is no refusal") << QStringList{example("wide_mlp.yaml"), "--vary", "batch=1k,4M", "--fail-on", "refused"}
                                        << 0 << "";
    QTest::newRow("none fits") << QStringList{example("wide_mlp.yaml"), "--vary", "batch=4M,8M"} << 4 << "";
    QTest::newRow("all refused") << QStringList{digits, "--vary", "mesh=data*model=64"} << 4 << "";
    QTest::newRow("nothing varied") << QStringList{digits} << 3 << "MW1781";
    QTest::newRow("no values") << QStringList{digits, "--vary", "batch"} << 3 << "MW1775";
    QTest::newRow("no study") << QStringList{} << 2 << "MW1904";
    QTest::newRow("no such file") << QStringList{"nowhere.yaml", "--vary", "batch=1"} << 3 << "MW1001";
    QTest::newRow("no document") << QStringList{"-", "--vary", "batch=1"} << 3 << "MW1412";
    QTest::newRow("no database") << QStringList{digits, "--vary", "batch=1", "--db", digits} << 3 << "MW1785";
    QTest::newRow("no jobs") << QStringList{digits, "--vary", "batch=1", "--jobs", "-1"} << 2 << "MW1903";
    QTest::newRow("fails on nothing") << QStringList{digits, "--vary", "batch=1", "--fail-on", "x"} << 2 << "MW1903";
    QTest::newRow("no format") << QStringList{digits, "--vary", "batch=1", "-o", "x.pdf"} << 2 << "names no format";
}

void TestSweepVerb::exitCodes()
{
    QFETCH(QStringList, arguments);
    const Outcome outcome = run(QStringList{"sweep"} + arguments);
    meshwright::tests::checkExitCode(outcome);
}

void TestSweepVerb::formats_data()
{
    QTest::addColumn<QString>("format");
    QTest::addColumn<QString>("begins");
    QTest::newRow("text") << "text"
                          << "mesh ";
    QTest::newRow("json") << "json"
                          << "{\n  \"schema\": \"meshwright.sweep/1\"";
    QTest::newRow("jsonl") << "jsonl"
                           << "{\"point\":{\"mesh\":\"data=1,model=8\",\"batch\":\"100\"}";
    QTest::newRow("csv") << "csv"
                         << "mesh,batch,state,step_time_s,";
    QTest::newRow("md") << "md"
                        << "# Sweep of digits";
    QTest::newRow("html") << "html"
                          << "<!DOCTYPE html>";
}

void TestSweepVerb::formats()
{
    QFETCH(QString, format);
    QFETCH(QString, begins);
    const QStringList arguments
        = {"sweep", example("digits.yaml"), "--vary", "mesh=data*model=8", "--vary", "batch=100,200,50,7"};
    const Outcome outcome = run(arguments + QStringList{"--format", format});
    QCOMPARE(outcome.code, 0);
    QVERIFY2(outcome.out.startsWith(begins.toUtf8()), outcome.out.left(200));
    QCOMPARE(run(arguments + QStringList{"--format", format, "--jobs", "1"}).out, outcome.out);
    if (format == "json")
        QCOMPARE(resultErrors(outcome.out), QString());
    if (format == "jsonl")
        QCOMPARE(outcome.out.count('\n'), 16);
    if (format == "csv") {
        QCOMPARE(outcome.out.count('\n'), 17);
        for (const QByteArray& line : outcome.out.trimmed().split('\n'))
            QCOMPARE(QString::fromUtf8(line).remove(QRegularExpression("\"[^\"]*\"")).count(','), 17);
    }
    QTemporaryDir folder;
    const QString file = folder.filePath("sweep." + (format == "text" ? QString("txt") : format));
    QCOMPARE(run(arguments + QStringList{"-o", file}).code, 0);
    QFile written(file);
    QVERIFY(written.open(QIODevice::ReadOnly));
    if (format != "html" && format != "md") // whose command names the file
        QCOMPARE(written.readAll(), outcome.out);
}

/// The points as scripts read them.
void TestSweepVerb::dryRunAsJson()
{
    const QStringList arguments = {"sweep", example("digits.yaml"), "--vary", "mesh=data*model=8", "--dry-run"};
    const Outcome json = run(arguments + QStringList{"--format", "json"});
    QCOMPARE(json.code, 0);
    QCOMPARE(errorsAgainst("points-1.json", json.out), QStringList());
    QCOMPARE(run(arguments + QStringList{"--format", "jsonl"}).out.count('\n'), 4);
}

void TestSweepVerb::sameForAnyJobs()
{
    const QStringList arguments
        = {"sweep", example("digits.yaml"), "--vary", "mesh=data*model=8", "--vary", "batch=96..104", "--format", "json"};
    const QByteArray one = run(arguments + QStringList{"--jobs", "1"}).out;
    QVERIFY(!one.isEmpty());
    for (const char* jobs : {"2", "7"})
        QCOMPARE(run(arguments + QStringList{"--jobs", jobs}).out, one);
}

void TestSweepVerb::agreesWithSimulate()
{
    const QJsonArray rows
        = objectOf(run({"sweep", example("digits.yaml"), "--vary", "mesh=data*model=8", "--format", "json"}).out)["rows"]
              .toArray();
    QCOMPARE(rows.size(), 4);
    for (const auto& row : rows) {
        QStringList arguments = {"simulate", example("digits.yaml"), "--format", "json"};
        for (const auto& setting : row.toObject()["settings"].toArray())
            arguments << "--set" << setting.toString();
        const QJsonObject alone = objectOf(run(arguments).out);
        const QJsonObject problems = alone["problems"].toArray().first().toObject();
        if (row.toObject()["state"] == "refused") {
            QCOMPARE(row.toObject()["problem"].toObject()["id"], problems["id"]);
            continue;
        }
        for (const char* figure :
            {"step_time_s", "compute_s", "exposed_communication_s", "mfu", "peak_bytes_per_device", "fits", "bound_by"})
            QCOMPARE(row.toObject()[figure], alone[figure]);
    }
}

void TestSweepVerb::killsLoseNothing()
{
    QTemporaryDir folder;
    const QString file = folder.filePath("runs.sqlite");
    const QStringList arguments
        = {"sweep", example("digits.yaml"), "--vary", "mesh=data*model=8", "--vary", "batch=4..103", "--format", "json"};
    const QStringList kept = arguments + QStringList{"--db", file, "-q"};
    // Moments all over a run, from the first instants on, as this machine runs now.
    QElapsedTimer timer;
    timer.start();
    const QByteArray expected = run(arguments).out;
    const qint64 whole = timer.elapsed();
    QCOMPARE(objectOf(expected)["rows"].toArray().size(), 400);
    int killed = 0;
    for (int i = 0; i < kills(); ++i) {
        QProcess process;
        process.start(MESHWRIGHT_PROGRAM, kept);
        QVERIFY(process.waitForStarted());
        QTest::qSleep(static_cast<int>(10 + whole * ((i * 7) % kills()) / (kills() * 3)));
        killed += process.state() == QProcess::Running ? 1 : 0;
        process.kill();
        QVERIFY(process.waitForFinished());
    }
    QVERIFY(killed > 0);
    const Outcome rest = run(arguments + QStringList{"--db", file});
    QCOMPARE(rest.code, 0);
    QCOMPARE(rest.out, expected);
    // And with everything known nothing is done again.
    const Outcome again = run(arguments + QStringList{"--db", file});
    QCOMPARE(again.out, expected);
    QVERIFY2(again.err.contains("400 points: 0 simulated, 400 known before"), again.err);
}

void TestSweepVerb::interruptKeepsWhatIsDone()
{
    QTemporaryDir folder;
    const QString file = folder.filePath("runs.sqlite");
    const QStringList arguments = {"sweep", example("digits.yaml"), "--vary", "mesh=data*model=8", "--vary", "batch=4..1003",
        "--format", "json", "--db", file, "--jobs", "1"};
    QProcess process;
    process.start(MESHWRIGHT_PROGRAM, arguments);
    QVERIFY(process.waitForStarted());
    // Its first words are of the first tenth of the points.
    while (!process.readAllStandardError().contains("points") && process.state() == QProcess::Running)
        process.waitForReadyRead(1000);
    QVERIFY(process.state() == QProcess::Running);
    ::kill(static_cast<pid_t>(process.processId()), SIGINT);
    QVERIFY(process.waitForFinished());
    QCOMPARE(process.exitCode(), 130);
    const QByteArray out = process.readAllStandardOutput();
    QCOMPARE(resultErrors(out), QString());
    const QJsonObject part = objectOf(out);
    QCOMPARE(part["complete"].toBool(), false);
    const auto done = part["rows"].toArray().size();
    QVERIFY(done > 0 && done < 4000);
    const Outcome report = run({"report", "--sweep", file, "--format", "md"});
    QVERIFY2(report.out.contains("interrupted: " + QByteArray::number(done) + " of its 4000 points"), report.out.left(2000));
}

void TestSweepVerb::sweepFile()
{
    QTemporaryDir folder;
    QVERIFY(QFile::copy(example("digits.yaml"), folder.filePath("digits.yaml")));
    QFile file(folder.filePath("sweep.yaml"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("sweep: 1\nstudy: digits.yaml\nset: {dtype.matmul: bf16}\nvary:\n  mesh: data*model=8\n  batch: [100, 200]\n");
    file.close();
    const Outcome written = run({"sweep", file.fileName(), "--format", "csv"});
    QCOMPARE(written.code, 0);
    QCOMPARE(written.out,
        run({"sweep", example("digits.yaml"), "--set", "dtype.matmul=bf16", "--vary", "mesh=data*model=8", "--vary",
                "batch=100,200", "--format", "csv"})
            .out);
    // The command line replaces what the file varies.
    const Outcome other = run({"sweep", file.fileName(), "--format", "json", "--vary", "batch=300"});
    QCOMPARE(objectOf(other.out)["points"].toInt(), 4);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("sweep: 1\nstudy: digits.yaml\nvari: 1\n");
    file.close();
    const Outcome wrong = run({"sweep", file.fileName(), "--format", "json"});
    QCOMPARE(wrong.code, 3);
    QCOMPARE(resultErrors(wrong.out), QString());
    QVERIFY(wrong.out.contains("did you mean \\\"vary\\\"?"));
}

void TestSweepVerb::dryRun()
{
    const Outcome outcome
        = run({"sweep", example("digits.yaml"), "--vary", "mesh=data*model=4", "--vary", "batch=1k", "--dry-run"});
    QCOMPARE(outcome.code, 0);
    QCOMPARE(
        outcome.out, QByteArray("mesh            batch\ndata=1,model=4  1024\ndata=2,model=2  1024\ndata=4,model=1  1024\n"));
    QVERIFY(outcome.err.contains("3 points; nothing was simulated"));
}

void TestSweepVerb::reports()
{
    QTemporaryDir folder;
    const QString file = folder.filePath("runs.sqlite");
    QCOMPARE(
        run({"sweep", example("digits.yaml"), "--vary", "mesh=data*model=8", "--vary", "batch=96..104", "--db", file}).code, 0);
    const Outcome page = run({"report", "--sweep", file, "--format", "html"});
    QCOMPARE(page.code, 0);
    QVERIFY(page.out.contains("picture-heat-map") && page.out.contains("picture-pareto"));
    QVERIFY(page.out.contains("How many fit?"));
    const Outcome json = run({"report", "--sweep", file, "--format", "json"});
    QCOMPARE(resultErrors(json.out), QString());
    // The page carries the study of the best point.
    const QString saved = folder.filePath("page.html");
    QCOMPARE(run({"report", "--sweep", file, "-o", saved}).code, 0);
    QVERIFY(QFile::copy(example("digits.yaml"), folder.filePath("digits.yaml")));
    QVERIFY(run({"report", saved, "--format", "md"}).out.startsWith("# digits, data x model"));
    QCOMPARE(run({"report", "--sweep", folder.filePath("nowhere")}).code, 3);
    const Outcome both = run({"report", example("digits.yaml"), "--sweep", file});
    QCOMPARE(both.code, 2);
    QVERIFY(both.err.contains("MW1940"));
}

void TestSweepVerb::changedStudyIsSimulatedAgain()
{
    QTemporaryDir folder;
    const QString file = folder.filePath("runs.sqlite");
    const auto sweep = [&](const QByteArray& study) {
        return run({"sweep", "-", "--vary", "batch=100,200", "--db", file}, study).err;
    };
    QFile source(example("digits.yaml"));
    QVERIFY(source.open(QIODevice::ReadOnly));
    const QByteArray study = source.readAll();
    QVERIFY(sweep(study).contains("2 simulated"));
    QVERIFY(sweep("# a comment changes nothing\n" + study).contains("0 simulated, 2 known before"));
    QVERIFY(sweep(QByteArray(study).replace("64, 256,", "64, 512,")).contains("2 simulated"));
}

MESHWRIGHT_TEST(TestSweepVerb)

} // namespace tst_sweep_verb

#include "tst_sweep_verb.moc"
