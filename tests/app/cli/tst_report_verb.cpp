// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

namespace tst_report_verb {

using namespace meshwright;

namespace {

using tests::example;
using tests::Outcome;

Outcome run(const QStringList& arguments, const QByteArray& input = {}, const QString& program = MESHWRIGHT_PROGRAM,
    const QProcessEnvironment& environment = tests::plainEnvironment())
{
    return tests::runProgram(program, arguments, input, environment);
}

QByteArray contentOf(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

} // namespace

/// `report`, `gui` and what `tour` writes, as processes.
class TestReportVerb : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void exitCodes_data();
    void exitCodes();
    void formats_data();
    void formats();
    void sameBytesTwice();
    void opensAReportAgain();
    void readsStandardInput();
    void training();
    void result();
    void interruptedAtAnyMoment();
    void failedFileLeavesWhatWasThere();
    void tourWritesAReport();
    void helpBeginsWithExamples();
    void guiIsStarted();
    void guiIsMissing();
};

void TestReportVerb::exitCodes_data()
{
    tests::addExitCodeColumns();
    QTest::addColumn<bool>("written"); // whether there is a report all the same

    QTest::newRow("fits") << QStringList{example("wide_mlp.yaml")} << 0 << "" << true;
    QTest::newRow("does not fit") << QStringList{example("wide_mlp.yaml"), "--set", "batch=4194304"} << 4 << "" << true;
    QTest::newRow("mesh larger than the slice")
        << QStringList{example("digits.yaml"), "--set", "mesh.data=100", "--set", "sharding={}"} << 4 << "MW1430" << true;
    QTest::newRow("no hardware") << QStringList{example("digits.yaml"), "--set", "hardware=null"} << 0 << "" << true;
    QTest::newRow("a warning") << QStringList{example("wide_mlp.yaml"), "--set",
        "sharding.match=[{path: \"nothing.*\", spec: []}]"}
                               << 0 << "MW1431" << true;
    QTest::newRow("missing file") << QStringList{"nowhere.yaml"} << 3 << "MW1001" << false;
    QTest::newRow("wrong study") << QStringList{example("digits.yaml"), "--set", "sharding.x=P('dat')"} << 3 << "MW1102" << false;
    QTest::newRow("no such chip") << QStringList{example("digits.yaml"), "--set", "hardware={chip: v5x}"} << 3 << "MW1701"
                                  << false;
    QTest::newRow("no study") << QStringList{} << 2 << "MW1904" << false;
    QTest::newRow("two ways of training") << QStringList{example("digits.yaml"), "--train", "--result", "r.json"} << 2 << "MW1903"
                                          << false;
    QTest::newRow("no result") << QStringList{example("digits.yaml"), "--result", "nowhere.json"} << 3 << "MW1001" << false;
    QTest::newRow("no training result") << QStringList{example("digits.yaml"), "--result", example("digits.yaml")} << 3
                                        << "MW1825" << false;
    QTest::newRow("a program has no training") << QStringList{"-", "--train"} << 3 << "MW1733" << false;
    QTest::newRow("training fails") << QStringList{example("fsdp.yaml"), "--train", "-q", "--set",
        "optimizer={sgd: {learning_rate: 1.0e+30}}"}
                                    << 6 << "MW1620" << false;
    QTest::newRow("unknown flag") << QStringList{example("digits.yaml"), "--trian"} << 2 << "did you mean \"--train\"?" << false;
    QTest::newRow("unknown format") << QStringList{example("digits.yaml"), "--format", "text"} << 2
                                    << "one of: html, md, csv, json" << false;
}

void TestReportVerb::exitCodes()
{
    QFETCH(QStringList, arguments);
    QFETCH(bool, written);
    QTemporaryDir folder;
    const QString file = folder.filePath("report.html");
    const QByteArray program
        = "meshwright: 1\nname: p\nmodel: {program: " + example("mlp.mlir").toUtf8() + "}\nmesh: {data: 4, model: 2}\n";
    const Outcome outcome = run(QStringList{"report"} + arguments + QStringList{"-o", file}, program);
    tests::checkExitCode(outcome);
    QCOMPARE(contentOf(file).endsWith("</html>\n"), written);
    QVERIFY(outcome.out.isEmpty());
}

void TestReportVerb::formats_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("format");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("start");

    QTest::newRow("HTML") << "r.html"
                          << "" << 0 << "<!DOCTYPE html>";
    QTest::newRow("Markdown") << "r.md"
                              << "" << 0 << "# wide MLP";
    QTest::newRow("CSV") << "r.CSV"
                         << "" << 0 << "section,item,name,value,unit,text\n";
    QTest::newRow("JSON") << "r.json"
                          << "" << 0 << "{\"schema\":\"meshwright.report/1\"";
    QTest::newRow("format before ending") << "r.html"
                                          << "md" << 0 << "# wide MLP";
    QTest::newRow("no ending") << "report"
                               << "" << 2 << "";
    QTest::newRow("no ending, but a format") << "report"
                                             << "csv" << 0 << "section,";
    QTest::newRow("standard output") << ""
                                     << "" << 0 << "<!DOCTYPE html>";
    QTest::newRow("standard output as Markdown") << "-"
                                                 << "md" << 0 << "# wide MLP";
    QTest::newRow("standard output as JSON") << ""
                                             << "json" << 0 << "{\"schema\":\"meshwright.report/1\"";
}

void TestReportVerb::formats()
{
    QFETCH(QString, file);
    QFETCH(QString, format);
    QFETCH(int, code);
    QFETCH(QString, start);
    QTemporaryDir folder;
    const QString path = file.isEmpty() || file == "-" ? file : folder.filePath(file);
    QStringList arguments = {"report", example("wide_mlp.yaml")};
    if (!path.isEmpty())
        arguments << "-o" << path;
    if (!format.isEmpty())
        arguments << "--format" << format;
    const Outcome outcome = run(arguments);
    QVERIFY2(outcome.code == code, outcome.err);
    const QByteArray written = path.isEmpty() || path == "-" ? outcome.out : contentOf(path);
    QVERIFY2(written.startsWith(start.toUtf8()), written.left(100));
    if (format == "json")
        QCOMPARE(tests::resultErrors(written), QString());
}

void TestReportVerb::sameBytesTwice()
{
    const QByteArray first = run({"report", example("three_d.yaml")}).out;
    QVERIFY(first.size() > 100'000);
    QCOMPARE(run({"report", example("three_d.yaml")}).out, first);
}

void TestReportVerb::opensAReportAgain()
{
    QTemporaryDir folder;
    const QString page = folder.filePath("first.html");
    QCOMPARE(run({"report", example("wide_mlp.yaml"), "--set", "mesh.data=8", "--set", "mesh.model=1", "-o", page}).code, 0);
    QCOMPARE(run({"report", page}).out, contentOf(page));
    // Settings come on top of those that the report has.
    const Outcome changed = run({"report", page, "--set", "batch=8192", "--format", "json"});
    const QJsonObject study = QJsonDocument::fromJson(changed.out).object()["study"].toObject();
    QCOMPARE(study["settings"].toArray(), (QJsonArray{"mesh.data=8", "mesh.model=1", "batch=8192"}));
    QCOMPARE(study["file"].toString(), "wide_mlp.yaml");
    // A page that is cut off is refused.
    QFile cut(folder.filePath("cut.html"));
    QVERIFY(cut.open(QIODevice::WriteOnly));
    cut.write(contentOf(page).left(60'000));
    cut.close();
    const Outcome refused = run({"report", cut.fileName()});
    QCOMPARE(refused.code, 3);
    QVERIFY2(refused.err.contains("MW1821"), refused.err);
}

void TestReportVerb::readsStandardInput()
{
    const Outcome outcome = run({"report", "-", "--format", "json"}, contentOf(example("wide_mlp.yaml")));
    QCOMPARE(outcome.code, 0);
    const QJsonObject report = QJsonDocument::fromJson(outcome.out).object();
    QCOMPARE(report["command"].toString(), "meshwright report study.yaml -o report.html");
    QCOMPARE(report["study"]["text"].toString().toUtf8(), contentOf(example("wide_mlp.yaml")));
}

void TestReportVerb::training()
{
    const Outcome outcome
        = run({"report", example("digits.yaml"), "--train", "-q", "--set", "train.steps=3", "--format", "json"});
    QCOMPARE(outcome.code, 0);
    QCOMPARE(tests::resultErrors(outcome.out), QString());
    const QJsonObject training = QJsonDocument::fromJson(outcome.out).object()["training"].toObject();
    QCOMPARE(training["losses"].toArray().size(), 4);
    QCOMPARE(training["verify"]["verdict"].toString(), "equal");
}

void TestReportVerb::result()
{
    QTemporaryDir folder;
    const QString result = folder.filePath("result.json");
    QCOMPARE(run({"train", example("digits.yaml"), "-q", "--set", "train.steps=3", "-o", result}).code, 0);
    const QString page = folder.filePath("page.html");
    QCOMPARE(run({"report", example("digits.yaml"), "--result", result, "-o", page}).code, 0);
    // What was measured stays in a report that is opened again, and the same result gives the same page.
    QCOMPARE(run({"report", page}).out, contentOf(page));
    QCOMPARE(run({"report", example("digits.yaml"), "--result", result}).out, contentOf(page));
}

/// Ctrl-C while `report --train` trains, from before its first step on: the report of what was reached is written, and nothing crashes.
void TestReportVerb::interruptedAtAnyMoment()
{
    const QTemporaryDir folder;
    const QString page = folder.filePath("r.json");
    int partial = 0;
    for (int i = 0; i < 12; ++i) {
        QFile::remove(page);
        QProcess process;
        process.start(MESHWRIGHT_PROGRAM,
            {"report", example("digits.yaml"), "--train", "--set", "train.steps=1000000", "-o", page, "--format", "json"});
        QVERIFY(process.waitForStarted());
        QVERIFY(tests::interruptWhen(process, [&] { return tests::waitsForInterrupts(process); }));
        if (i % 3 == 0)
            QTest::qWait(10 * i); // else before there is anything to stop
        QVERIFY(process.state() == QProcess::NotRunning || process.waitForFinished(30'000));
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QVERIFY2(process.exitCode() == 130, process.readAllStandardError());
        partial += QFile::exists(page) ? 1 : 0;
        if (QFile::exists(page))
            QCOMPARE(tests::errorsAgainst("report-1.json", contentOf(page)), QStringList());
    }
    qInfo("%d of 12 wrote a report of what was reached", partial);
}

void TestReportVerb::failedFileLeavesWhatWasThere()
{
    QTemporaryDir folder;
    const Outcome outcome = run({"report", example("wide_mlp.yaml"), "-o", folder.filePath("no/such/folder/r.html")});
    QCOMPARE(outcome.code, 3);
    QVERIFY(outcome.err.contains("MW1005"));
    QVERIFY(QDir(folder.path()).isEmpty());
}

void TestReportVerb::tourWritesAReport()
{
    QTemporaryDir folder;
    const QString page = folder.filePath("tour.html");
    const Outcome outcome = run({"tour", "--report", page});
    QCOMPARE(outcome.code, 0);
    QVERIFY(outcome.out.contains(page.toUtf8()));
    const Outcome read = run({"report", page, "--format", "json"});
    QCOMPARE(read.code, 0);
    const QJsonObject report = QJsonDocument::fromJson(read.out).object();
    QCOMPARE(report["title"].toString(), "digits, data x model");
    QCOMPARE(report["training"]["losses"].toArray().size(), 301);
}

void TestReportVerb::helpBeginsWithExamples()
{
    for (const char* verb : {"report", "gui"}) {
        const QByteArray help = run({verb, "--help"}).out;
        QVERIFY(help.indexOf("Examples:") > 0);
        QVERIFY(help.indexOf("Examples:") < help.indexOf("Usage:"));
        QVERIFY(help.contains(QByteArray("meshwright ") + verb + " study.yaml"));
    }
    QVERIFY(run({"--help"}).out.contains("report"));
}

void TestReportVerb::guiIsStarted()
{
    QTemporaryDir folder;
    const QString program = folder.filePath("meshwright");
    QVERIFY(QFile::copy(MESHWRIGHT_PROGRAM, program));
    QFile script(folder.filePath("meshwright-gui"));
    QVERIFY(script.open(QIODevice::WriteOnly));
    script.write("#!/bin/sh\necho \"$#:$*\"\nexit 7\n");
    script.close();
    QVERIFY(script.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
    const Outcome with = run({"gui", "a file.html"}, {}, program);
    QCOMPARE(with.code, 7); // it became that program
    QCOMPARE(with.out, QByteArray("1:a file.html\n"));
    QCOMPARE(run({"gui"}, {}, program).out, QByteArray("0:\n"));
    QCOMPARE(run({"gui", "a.mlir", "--hw", "v5e-8", "--mesh", "a=8", "--set", "name=b"}, {}, program).out,
        QByteArray("4:--set=mesh=a=8 --set=hardware=v5e-8 --set=name=b a.mlir\n"));
    const Outcome without = run({"gui", "--hw", "v5e-8"}, {}, program);
    QCOMPARE(without.code, 2);
    QVERIFY2(without.err.contains("MW1904"), without.err);
}

void TestReportVerb::guiIsMissing()
{
    QTemporaryDir folder;
    const QString program = folder.filePath("meshwright");
    QVERIFY(QFile::copy(MESHWRIGHT_PROGRAM, program));
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("PATH", folder.path());
    const Outcome outcome = run({"gui"}, {}, program, environment);
    QCOMPARE(outcome.code, 3);
    QVERIFY2(outcome.err.contains("MW1827"), outcome.err);
}

MESHWRIGHT_TEST(TestReportVerb)

} // namespace tst_report_verb

#include "tst_report_verb.moc"
