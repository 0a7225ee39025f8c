// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QDir>
#include <QJsonArray>
#include <QTemporaryDir>

namespace tst_program_studies {

using namespace meshwright::tests;

/// Verbs that take studies, given a program with --hw and --mesh.
class TestProgramStudies : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void asItsStudy_data();
    void asItsStudy();
    void searched();
    void ranAsItsStudy();
    void verbs_data();
    void verbs();
    void wrongInput_data();
    void wrongInput();
    void hardwareOfAStudy();
    void severalFunctions_data();
    void severalFunctions();
};

namespace {

Outcome run(const QStringList& arguments, const QByteArray& input = {})
{
    return runProgram(MESHWRIGHT_PROGRAM, arguments, input);
}

QJsonObject json(const Outcome& outcome)
{
    return QJsonDocument::fromJson(outcome.out).object();
}

/// Of a simulation or a report: what does not tell which file it was.
QJsonObject figures(QJsonObject result)
{
    for (const char* name : {"name", "file", "study", "simulator"})
        result.remove(name);
    return result;
}

} // namespace

void TestProgramStudies::asItsStudy_data()
{
    QTest::addColumn<QStringList>("flags");
    QTest::addColumn<QByteArray>("study");
    QTest::newRow("the mesh of its text") << QStringList{"--hw", "v3-8"} << QByteArray("hardware: v3-8\nmesh: {a: 4, b: 2}\n");
    QTest::newRow("another mesh") << QStringList{"--hw", "h100x16", "--mesh", "a=2,b=8"}
                                  << QByteArray("hardware: h100x16\nmesh: {a: 2, b: 8}\n");
    QTest::newRow("machines of a cloud") << QStringList{"--hw", "2 x p4d.24xlarge", "--mesh", "a=16,b=1"}
                                         << QByteArray("hardware: p4d.24xlarge x 2\nmesh: {a: 16, b: 1}\n");
    QTest::newRow("settings over the text") << QStringList{"--set", "mesh.b=4", "--hw", "h100x16"}
                                            << QByteArray("hardware: h100x16\nmesh: {a: 4, b: 4}\n");
}

/// The same figures, to the last digit, as a study that names the program.
void TestProgramStudies::asItsStudy()
{
    QFETCH(QStringList, flags);
    QFETCH(QByteArray, study);
    const QString program = example("matmul.mlir");
    const QByteArray wrapper = "meshwright: 1\nname: matmul\nmodel: {program: " + program.toUtf8() + "}\n" + study;
    const Outcome direct = run(QStringList{"simulate", program, "--format", "json"} + flags);
    QVERIFY2(direct.code == 0, direct.err.constData());
    QCOMPARE(errorsAgainst("simulation-1.json", direct.out), QStringList());
    const Outcome wrapped = run({"simulate", "-", "--format", "json"}, wrapper);
    QVERIFY2(wrapped.code == 0, wrapped.err.constData());
    QCOMPARE(figures(json(direct)), figures(json(wrapped)));
}

void TestProgramStudies::searched()
{
    QTemporaryDir folder;
    const QString program = folder.filePath("step.mlir");
    QVERIFY(QFile::copy(example("mlp.mlir"), program));
    const QString plan = folder.filePath("plan.yaml");
    const Outcome found = run({"search", program, "--hw", "v5e-8", "--format", "json", "-o", plan});
    QVERIFY2(found.code == 0, found.err.constData());
    const double seconds = json(found)["plans"].toArray().first().toObject()["step_time_s"].toDouble();
    const Outcome simulated = run({"simulate", plan, "--format", "json"});
    QVERIFY2(simulated.code == 0, simulated.err.constData());
    QCOMPARE(json(simulated)["step_time_s"].toDouble(), seconds);
    // The plan's program alone says all but the hardware.
    const Outcome again = run({"simulate", folder.filePath("plan.mlir"), "--hw", "v5e-8", "--format", "json"});
    QVERIFY2(again.code == 0, again.err.constData());
    QCOMPARE(json(again)["step_time_s"].toDouble(), seconds);
    // What is searched is not written over.
    const Outcome over = run({"search", program, "--hw", "v5e-8", "-o", folder.filePath("step.yaml")});
    QCOMPARE(over.code, 2);
    QVERIFY2(over.err.contains("MW1952"), over.err.constData());
}

/// A run on another mesh gives the values of the run on the program's own, in layouts of that mesh, and the step of `simulate`.
void TestProgramStudies::ranAsItsStudy()
{
    const QString program = example("mlp.mlir");
    const QStringList there = {"--hw", "h100x16", "--mesh", "data=2,model=8"};
    const Outcome own = run({"run", program, "--format", "json"});
    const Outcome other = run(QStringList{"run", program, "--verify", "--format", "json"} + there);
    QVERIFY2(other.code == 0, other.err.constData());
    QCOMPARE(errorsAgainst("run-1.json", other.out), QStringList());
    QCOMPARE(json(other)["devices"].toInt(), 16);
    QCOMPARE(json(other)["verify"].toObject()["verdict"].toString(), QString("equal"));
    QVERIFY(!json(own).contains("simulated"));
    const QJsonObject before = json(own)["results"].toArray().first().toObject();
    const QJsonObject after = json(other)["results"].toArray().first().toObject();
    QCOMPARE(after["shape"], before["shape"]);
    QCOMPARE(after["layout"], before["layout"]); // the axes have their names still
    const Outcome simulated = run(QStringList{"simulate", program, "--format", "json"} + there);
    QCOMPARE(json(other)["simulated"].toObject()["step_time_s"], json(simulated)["step_time_s"]);
}

void TestProgramStudies::verbs_data()
{
    addExitCodeColumns();
    const QString program = example("matmul.mlir");
    const auto row = [](const char* name, const QStringList& arguments, int code, const QString& said) {
        QTest::newRow(name) << arguments << code << said;
    };
    row("simulate", {"simulate", program, "--hw", "v3-8"}, 0, "matmul");
    row("report", {"report", program, "--hw", "v3-8", "--format", "md"}, 0, "matmul");
    row("check", {"check", program, "--hw", "v3-8"}, 0, "no problems");
    row("check as it stands", {"check", program}, 0, "no problems");
    row("check on another mesh", {"check", program, "--mesh", "a=2,b=2"}, 0, "on 4 devices");
    row("run", {"run", example("mlp.mlir"), "--mesh", "data=2,model=2", "--verify"}, 0, "ran on 4 devices (data=2,model=2)");
    row("run on hardware", {"run", example("mlp.mlir"), "--hw", "v3-8"}, 0, ", simulated: ");
    row("run a study", {"run", example("fsdp.yaml"), "--mesh", "data=2"}, 3, "MW1320");
    row("run on too little hardware", {"run", example("mlp.mlir"), "--hw", "v5e-4"}, 4, "MW1430");
    row("search a program for a plan", {"search", program, "--hw", "v3-8", "--plan", "FSDP"}, 2, "MW1934");
    row("search a study on a mesh", {"search", example("fsdp.yaml"), "--mesh", "data=8"}, 2, "MW1934");
    row("search a model on a mesh", {"search", "--model", "llama3_8b", "--hw", "h100x8", "--mesh", "data=8"}, 2, "MW1934");
    row("run with a setting", {"run", example("mlp.mlir"), "--set", "mesh.model=1"}, 0, "ran on 4 devices (data=4,model=1)");
    row("search on a mesh", {"search", program, "--hw", "v3-8", "--mesh", "b=2,a=4"}, 0, "1  b=2 a=4");
    row("sweep", {"sweep", program, "--hw", "v3-8", "--vary", "mesh=a*b=8", "--quiet"}, 0, "best");
    row("diff", {"diff", program, "--hw", "v3-8", "--set-b", "mesh.b=1"}, 0, "mesh");
    row("prove", {"prove", program, "--mesh", "a=2,b=2"}, 0, "on 4 devices");
    row("train", {"train", program}, 3, "MW1733");
    row("no hardware", {"simulate", program}, 3, "--hw h100x8");
}

void TestProgramStudies::verbs()
{
    QFETCH(QStringList, arguments);
    const Outcome outcome = run(arguments);
    checkExitCode(outcome, outcome.out + outcome.err);
}

void TestProgramStudies::wrongInput_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QByteArray>("said");
    const QString program = example("matmul.mlir");
    QTest::newRow("unknown chip") << QStringList{program, "--hw", "h1000x8"} << QByteArray("MW1701");
    QTest::newRow("unknown machine") << QStringList{program, "--hw", "p5.84xlarge x 4"}
                                     << QByteArray("did you mean \"p5.48xlarge x 4\"?");
    QTest::newRow("a mesh larger than the hardware") << QStringList{program, "--hw", "h100x8", "--mesh",
        "a=8,b=64"} << QByteArray("MW1430: the mesh a=8,b=64 needs 512 devices, the hardware has 8");
    QTest::newRow("a mesh without the program's axes")
        << QStringList{program, "--hw", "h100x8", "--mesh", "data=8"} << QByteArray("MW1232");
    QTest::newRow("no mesh") << QStringList{program, "--hw", "h100x8", "--mesh", "eight"} << QByteArray("mesh");
    QTest::newRow("an array that is none") << QStringList{program, "--hw", "h100x8", "--set", "sharding.w=P('a')"}
                                           << QByteArray("MW1429");
    QTest::newRow("no such file") << QStringList{"no/such.mlir", "--hw", "h100x8"} << QByteArray("MW1001");
}

/// What simulating refuses, checking finds.
void TestProgramStudies::wrongInput()
{
    QFETCH(QStringList, arguments);
    QFETCH(QByteArray, said);
    for (const char* verb : {"simulate", "report", "check"}) {
        const Outcome outcome = run(QStringList{verb} + arguments);
        QVERIFY2(outcome.code == 3 || outcome.code == 4 || outcome.code == 1, QByteArray(verb) + outcome.out + outcome.err);
        QVERIFY2((outcome.out + outcome.err).contains(said), QByteArray(verb) + ": " + outcome.out + outcome.err);
    }
}

/// --hw is in place of a study's own hardware.
void TestProgramStudies::hardwareOfAStudy()
{
    const Outcome flag = run({"simulate", example("fsdp.yaml"), "--hw", "h100x8", "--format", "json"});
    const Outcome setting = run({"simulate", example("fsdp.yaml"), "--set", "hardware=h100x8", "--format", "json"});
    QVERIFY2(flag.code == 0, flag.err.constData());
    QCOMPARE(figures(json(flag)), figures(json(setting)));
    const Outcome two = run({"search", example("fsdp.yaml"), "--hw", "h100x8,v5e-8"});
    QCOMPARE(two.code, 2);
    QVERIFY2(two.err.contains("MW1934"), two.err.constData());
}

void TestProgramStudies::severalFunctions_data()
{
    QTest::addColumn<QByteArray>("entry");
    QTest::addColumn<QStringList>("flags");
    QTest::addColumn<int>("code");
    QTest::newRow("main") << QByteArray("main") << QStringList() << 0;
    QTest::newRow("none is main") << QByteArray("first") << QStringList() << 3;
    QTest::newRow("as the message asks") << QByteArray("first") << QStringList{"--set", "model.program.function=first"} << 0;
}

/// Beside others, @main is meant; where none is main, the message's fix works.
void TestProgramStudies::severalFunctions()
{
    QFETCH(QByteArray, entry);
    QFETCH(QStringList, flags);
    QFETCH(int, code);
    QTemporaryDir folder;
    const QString file = folder.filePath("two.mlir");
    QFile text(file);
    QVERIFY(text.open(QIODevice::WriteOnly));
    text.write("sdy.mesh @mesh = <[\"a\"=2]>\nfunc.func public @" + entry
        + "(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}]>}) -> tensor<4xf32> {\n  %0 = call @square(%x) : "
          "(tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\nfunc.func @square(%a: tensor<4xf32>) -> "
          "tensor<4xf32> {\n  %0 = stablehlo.multiply %a, %a : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n");
    text.close();
    if (entry == "main")
        QCOMPARE(run({"run", file}).code, 0);
    for (const char* verb : {"simulate", "report"}) {
        const Outcome outcome = run(QStringList{verb, file, "--hw", "h100x2"} + flags);
        QVERIFY2(outcome.code == code, QByteArray(verb) + outcome.out + outcome.err);
        QCOMPARE(outcome.err.contains("name one as model.program.function"), code != 0);
    }
}

MESHWRIGHT_TEST(TestProgramStudies)

} // namespace tst_program_studies

#include "tst_program_studies.moc"
