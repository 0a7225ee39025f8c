// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QTemporaryDir>
#include <QXmlStreamReader>

namespace tst_diff_verb {

using namespace meshwright::tests;

/// `diff` and what `check` writes for CI servers, as processes.
class TestDiffVerb : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init();
    void exitCodes_data();
    void exitCodes();
    void findingsOnce();
    void budget();
    void trainingAgainstStudy();
    void pipelines_data();
    void pipelines();
    void formats_data();
    void formats();
    void checkForServers();

private:
    QString written(const QString& name, const QByteArray& content) const;

    std::unique_ptr<QTemporaryDir> m_folder;
};

namespace {

Outcome run(const QStringList& arguments, const QByteArray& input = {})
{
    return runProgram(MESHWRIGHT_PROGRAM, arguments, input);
}

QString xmlError(const QByteArray& xml)
{
    QXmlStreamReader reader(xml);
    while (!reader.atEnd())
        reader.readNext();
    return reader.errorString();
}

} // namespace

void TestDiffVerb::init()
{
    m_folder = std::make_unique<QTemporaryDir>();
}

QString TestDiffVerb::written(const QString& name, const QByteArray& content) const
{
    QFile file(m_folder->filePath(name));
    if (!file.open(QIODevice::WriteOnly))
        return {};
    file.write(content);
    return file.fileName();
}

void TestDiffVerb::exitCodes_data()
{
    meshwright::tests::addExitCodeColumns();
    const QString digits = example("digits.yaml");
    QTest::newRow("the same") << QStringList{digits, digits} << 0 << "no difference";
    QTest::newRow("the same passes all") << QStringList{digits, digits, "--fail-on",
        "any,sharding,collectives,bytes,time,memory,fits"}
                                         << 0 << "gate bytes: passes";
    QTest::newRow("two studies") << QStringList{example("fsdp.yaml"), example("tensor_parallel.yaml")} << 0 << "why: ";
    QTest::newRow("a gate fails") << QStringList{digits, "--set-b", "mesh.data=2", "--set-b", "mesh.model=4", "--fail-on",
        "sharding"} << 1 << "gate sharding: FAILS";
    QTest::newRow("a gate passes") << QStringList{digits, "--set-b", "mesh.data=2", "--set-b", "mesh.model=4", "--fail-on",
        "memory>100%"} << 0 << "gate memory>100%: passes";
    QTest::newRow("no longer fits") << QStringList{example("wide_mlp.yaml"), "--set-b", "batch=4194304", "--fail-on", "fits"} << 1
                                    << "it no longer fits";
    QTest::newRow("a new problem of a study") << QStringList{digits, "--set-b", "mesh.data=2", "--set-b", "mesh.spare=2",
        "--fail-on", "problems"} << 1 << "new problem MW1270";
    QTest::newRow("no new problem") << QStringList{digits, digits, "--fail-on", "problems"} << 0 << "gate problems: passes";
    QTest::newRow("problems of a study alone")
        << QStringList{digits, example("mlp.mlir"), "--fail-on", "problems"} << 2 << "what `check --format json` wrote of both";
    QTest::newRow("programs") << QStringList{example("tensor_parallel_matmul.mlir"), example("fsdp_matmul.mlir")} << 0
                              << "collectives: ";
    QTest::newRow("programs fail") << QStringList{example("tensor_parallel_matmul.mlir"), example("fsdp_matmul.mlir"),
        "--fail-on", "any"} << 1 << "gate any: FAILS";
    QTest::newRow("a mesh larger than the slice")
        << QStringList{digits, "--set-b", "mesh.data=100", "--set", "sharding={}"} << 4 << "MW1430";
    QTest::newRow("no second") << QStringList{digits} << 2 << "MW1904";
    QTest::newRow("no such gate") << QStringList{digits, digits, "--fail-on", "speed"} << 2 << "MW1941";
    QTest::newRow("a gate on the unknown") << QStringList{digits, example("mlp.mlir"), "--fail-on", "time"} << 2 << "MW1942";
    QTest::newRow("an empty gate") << QStringList{digits, digits, "--fail-on", ""} << 2 << "MW1941";
    QTest::newRow("a limit without a unit") << QStringList{digits, digits, "--fail-on", "time>5"} << 2 << "write time>5%";
    QTest::newRow("no such file") << QStringList{digits, "nowhere.yaml"} << 3 << "MW1001";
    QTest::newRow("a wrong study") << QStringList{digits, digits, "--set", "sharding.x=P('dat')"} << 3 << "MW1102";
    QTest::newRow("standard input twice") << QStringList{"-", "-"} << 2 << "MW1903";
    QTest::newRow("another format") << QStringList{digits, digits, "-o", "x.pdf"} << 2 << "names no format";
}

void TestDiffVerb::exitCodes()
{
    QFETCH(QStringList, arguments);
    const Outcome outcome = run(QStringList{"diff"} + arguments);
    meshwright::tests::checkExitCode(outcome, outcome.out + outcome.err);
}

/// Both sides are the same study, with the same finding.
void TestDiffVerb::findingsOnce()
{
    const Outcome outcome
        = run({"diff", example("digits.yaml"), "--set", "mesh.data=100", "--set", "sharding={}", "--set-b", "train.steps=7"});
    QVERIFY2(outcome.err.contains("MW1430"), outcome.err);
    QCOMPARE(outcome.err.count("MW1430"), 1);
}

void TestDiffVerb::budget()
{
    // What simulate wrote of a study is a budget for it, whenever it was written.
    const Outcome simulated = run({"simulate", example("digits.yaml"), "--format", "json"});
    QCOMPARE(resultErrors(simulated.out), QString());
    const QString budget = written("budget.json", simulated.out);
    const QStringList gates = {"--fail-on", "any,sharding,new-collectives,bytes,time>1%,memory>1%,fits"};
    const Outcome same = run(QStringList{"diff", budget, example("digits.yaml")} + gates);
    QVERIFY2(same.code == 0, same.out + same.err);
    const Outcome other = run(
        QStringList{"diff", budget, example("digits.yaml"), "--set-b", "sharding.layers.1.w=P()", "--format", "json"} + gates);
    QCOMPARE(other.code, 1);
    QCOMPARE(resultErrors(other.out), QString());
    QCOMPARE(
        run(QStringList{"diff", budget, example("digits.yaml"), "--set-b", "sharding.layers.1.w=P()", "--format", "json"} + gates)
            .out,
        other.out);
    // And as JSON on both sides.
    const QString second
        = written("second.json", run({"simulate", example("digits.yaml"), "--set", "batch=200", "--format", "json"}).out);
    QVERIFY(run({"diff", budget, second}).out.contains("step time "));
}

void TestDiffVerb::trainingAgainstStudy()
{
    // What was counted while it really ran: the same collectives, byte for byte.
    const Outcome trained = run({"train", example("digits.yaml"), "--set", "train.steps=1", "--format", "json", "-q"});
    QCOMPARE(trained.code, 0);
    const Outcome outcome
        = run({"diff", written("trained.json", trained.out), example("digits.yaml"), "--fail-on", "collectives,mesh"});
    QVERIFY2(outcome.code == 0, outcome.out + outcome.err);
}

void TestDiffVerb::pipelines_data()
{
    QTest::addColumn<QString>("study");
    QTest::addColumn<QStringList>("settings");
    QTest::addColumn<QString>("gates"); // between a training and a simulation
    QTest::addColumn<bool>("sends");
    const QStringList once{"--set", "train.steps=1"};
    QTest::newRow("gpipe") << "pipeline_gpipe.yaml" << once << "collectives,bytes,mesh" << true;
    // A training also adds up the gradient's norm over stages.
    QTest::newRow("interleaved") << "pipeline_interleaved.yaml" << once << "bytes,mesh" << true;
    QTest::newRow("microbatches without stages")
        << "pipeline_gpipe.yaml" << once + QStringList{"--set", "pipeline={microbatches: 4}", "--set", "mesh={data: 1}"}
        << "collectives,bytes,mesh" << false;
}

/// A study with a pipeline is what its stages do: as simulated, and as trained.
void TestDiffVerb::pipelines()
{
    QFETCH(QString, study);
    QFETCH(QStringList, settings);
    QFETCH(QString, gates);
    QFETCH(bool, sends);
    const QStringList file = QStringList{example(study)} + settings;
    const QString simulated = written("simulated.json", run(QStringList{"simulate", "--format", "json"} + file).out);
    const Outcome same = run(QStringList{"diff", simulated} + file + QStringList{"--fail-on", "any,bytes"});
    QVERIFY2(same.code == 0, same.out + same.err);
    const QString trained = written("trained.json", run(QStringList{"train", "-q", "--format", "json"} + file).out);
    const Outcome counted = run({"diff", trained, simulated, "--fail-on", gates});
    QVERIFY2(counted.code == 0, counted.out + counted.err);
    const Outcome more
        = run(QStringList{"diff"} + file + QStringList{"--set-b", "pipeline.microbatches=12", "--fail-on", "collectives"});
    QVERIFY2(more.code == (sends ? 1 : 0), more.out + more.err);
}

void TestDiffVerb::formats_data()
{
    QTest::addColumn<QString>("format");
    QTest::addColumn<QString>("ending");
    QTest::addColumn<QString>("begins");
    QTest::newRow("text") << "text"
                          << "txt"
                          << "A: ";
    QTest::newRow("json") << "json"
                          << "json"
                          << "{\n  \"schema\": \"meshwright.diff/1\"";
    QTest::newRow("md") << "md"
                        << "md"
                        << "### `";
    QTest::newRow("sarif") << "sarif"
                           << "sarif"
                           << "{\n  \"$schema\"";
    QTest::newRow("junit") << "junit"
                           << "xml"
                           << "<?xml";
}

void TestDiffVerb::formats()
{
    QFETCH(QString, format);
    QFETCH(QString, ending);
    QFETCH(QString, begins);
    const QStringList arguments = {"diff", example("fsdp.yaml"), example("tensor_parallel.yaml")};
    const Outcome outcome = run(arguments + QStringList{"--format", format});
    QCOMPARE(outcome.code, 0); // without --fail-on nothing fails
    QVERIFY2(outcome.out.startsWith(begins.toUtf8()), outcome.out.left(100));
    const QString file = m_folder->filePath("out." + ending);
    QCOMPARE(run(arguments + QStringList{"-o", file}).code, 0);
    QFile result(file);
    QVERIFY(result.open(QIODevice::ReadOnly));
    QCOMPARE(result.readAll(), outcome.out);
    if (format == "json")
        QCOMPARE(resultErrors(outcome.out), QString());
    if (format == "junit") {
        QCOMPARE(xmlError(outcome.out), QString());
        QVERIFY(outcome.out.contains("tests=\"1\" failures=\"1\""));
    }
    if (format == "sarif")
        QVERIFY(!QJsonDocument::fromJson(outcome.out).object()["runs"].toArray().at(0).toObject()["results"].toArray().isEmpty());
}

void TestDiffVerb::checkForServers()
{
    const QStringList arguments = {"check", example("digits.yaml"), example("fsdp.yaml"), "--set", "sharding.x=P('dat')"};
    const Outcome sarif = run(arguments + QStringList{"--format", "sarif"});
    QCOMPARE(sarif.code, 3);
    const QJsonObject first
        = QJsonDocument::fromJson(sarif.out).object()["runs"].toArray().at(0).toObject()["results"].toArray().at(0).toObject();
    QCOMPARE(first["ruleId"].toString(), "MW1102");
    QCOMPARE(first["level"].toString(), "error");
    const Outcome junit = run(arguments + QStringList{"--format", "junit"});
    QCOMPARE(junit.code, 3);
    QCOMPARE(xmlError(junit.out), QString());
    QVERIFY(junit.out.contains("<testsuite name=\"check\" tests=\"2\" failures=\"2\""));
    const Outcome good = run({"check", example("digits.yaml"), "--format", "junit"});
    QCOMPARE(good.code, 0);
    QVERIFY(good.out.contains("tests=\"1\" failures=\"0\""));
    const Outcome spec = run({"check", "--mesh", "x=4", "--shape", "8x3", "--spec", "P(None, 'x')", "--format", "sarif"});
    QVERIFY(spec.out.contains("MW1104"));
}

MESHWRIGHT_TEST(TestDiffVerb)

} // namespace tst_diff_verb

#include "tst_diff_verb.moc"
