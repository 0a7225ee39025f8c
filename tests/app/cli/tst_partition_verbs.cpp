// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

namespace tst_partition_verbs {

using namespace meshwright;
using tests::errorsAgainst;
using tests::example;
using tests::Outcome;

namespace {

Outcome run(const QStringList& arguments, const QByteArray& input = {})
{
    return tests::runProgram(MESHWRIGHT_PROGRAM, arguments, input);
}

QJsonObject jsonOf(const Outcome& outcome)
{
    return QJsonDocument::fromJson(outcome.out).object();
}

/// `all_to_all x 2->1` for each step.
QStringList stepsOf(const QJsonObject& plan)
{
    const auto dims = [](const QJsonValue& value) {
        if (!value.isArray())
            return value.isNull() ? QString("-") : QString::number(value.toInt());
        QStringList list;
        for (const QJsonValue dim : value.toArray())
            list << QString::number(dim.toInt());
        return list.join('+');
    };
    QStringList steps;
    for (const QJsonValue step : plan["steps"].toArray())
        steps << QString("%1 %2 %3->%4")
                     .arg(step["op"].toString(), step["axes"].toString(), dims(step["from_dim"]), dims(step["to_dim"]));
    return steps;
}

/// A product whose operands disagree with what is asked of its result.
const QByteArray kProduct = R"(
module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%lhs: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>},
      %rhs: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
      -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
    %0 = stablehlo.dot_general %lhs, %rhs, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
)";

} // namespace

/// reshard, propagate and partition, as processes.
class TestPartitionVerbs : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void exitCodes_data();
    void exitCodes();
    void helpBeginsWithExamples();
    void reshardSteps_data();
    void reshardSteps();
    void reshardText();
    void typesTellTheMesh_data();
    void typesTellTheMesh();
    void reshardPictures();
    void reshardTimes();
    void propagateWritesAProgram();
    void propagateExplains();
    void propagateSteps();
    void everyStrategy_data();
    void everyStrategy();
    void explicitTypes();
    void explicitErrors();
    void tiles();
    void partitionNarrates();
    void partitionJson();
    void proves();
    void passByPass();
    void writesFiles();
    void reportsUnknownOps_data();
    void reportsUnknownOps();
    void checksPrograms();
};

void TestPartitionVerbs::exitCodes_data()
{
    tests::addExitCodeColumns();
    const auto reshard = [](const QStringList& more, const QString& from = "P('x')", const QString& to = "P(None, 'x')") {
        return QStringList{"reshard", "--from", from, "--to", to} + more;
    };
    const QStringList usual = {"--mesh", "x=4,y=2", "--shape", "8x8"};

    QTest::newRow("reshard") << reshard(usual) << 0 << "";
    QTest::newRow("nothing given") << QStringList{"reshard"} << 2 << "MW1904";
    QTest::newRow("no shape") << reshard({"--mesh", "x=4"}) << 2 << "--shape is missing";
    QTest::newRow("wrong shape") << reshard({"--mesh", "x=4", "--shape", "8y8"}) << 2 << "MW1906";
    QTest::newRow("wrong mesh") << reshard({"--mesh", "x:4", "--shape", "8x8"}) << 2 << "MW1117";
    QTest::newRow("wrong type") << reshard(usual + QStringList{"--dtype", "f33"}) << 2 << "MW1903";
    QTest::newRow("unknown flag") << reshard(usual + QStringList{"--shardie"}) << 2 << "did you mean \"--shardy\"?";
    QTest::newRow("no mesh") << reshard({"--shape", "8x8"}) << 3 << "MW1157";
    QTest::newRow("unknown axis") << reshard(usual, "P('z')") << 3 << "--from: error MW1102";
    QTest::newRow("no sharding") << reshard(usual, "P('x')", "???") << 3 << "error MW1158";
    QTest::newRow("does not divide") << reshard({"--mesh", "x=4", "--shape", "10x10"}) << 3
                                     << "dim 0 of size 10 is not divisible by 4";
    QTest::newRow("wrong rank") << reshard(usual, "{devices=[4,2,1]<=[8]}") << 3 << "MW1154";
    QTest::newRow("two meshes") << QStringList{"reshard", "--shape", "8x8", "--from", "{mesh['a'=4], [{'a'}, {}]}", "--to",
        "{mesh['b'=2], [{'b'}, {}]}"}
                                << 2 << "MW1920";
    QTest::newRow("too many devices") << reshard({"--mesh", "x=1048576", "--shape", "1048576x1048576"}) << 2 << "MW1921";
    QTest::newRow("becomes partial") << reshard(usual, "P()", "[{}, {}], unreduced={\"x\"}") << 3 << "MW1220";
    QTest::newRow("topology without a chip") << reshard(usual + QStringList{"--topology", "4x2"}) << 2 << "--hw is missing";
    QTest::newRow("wrong topology") << reshard(usual + QStringList{"--hw", "v5e", "--topology", "4by2"}) << 2 << "MW1910";
    QTest::newRow("no topology") << reshard(usual + QStringList{"--hw", "v5e"}) << 3 << "MW1703";
    QTest::newRow("types say the shape") << QStringList{"reshard", "--mesh", "x=4,y=2", "--from", "bf16[8@x,8]", "--to",
        "bf16[8,8@x]"} << 0 << "";
    QTest::newRow("types in place of flags")
        << QStringList{"reshard", "f32[512@x,512@y,512]", "f32[512,512@x,512@y]", "--hw", "h100x16"} << 0 << "mesh x=4,y=4";
    QTest::newRow("types of another mesh") << QStringList{"reshard", "f32[8@x,8]", "f32[8,8@x]", "--hw", "h100x16", "--mesh",
        "x=8"} << 0 << "";
    QTest::newRow("sizes that its devices do not divide")
        << QStringList{"reshard", "f32[9@x,8]", "f32[9,8@x]", "--hw", "h100x8"} << 3 << "dim 0 of size 9 is not divisible by 8";
    QTest::newRow("types without a mesh") << QStringList{"reshard", "f32[8@x,8]", "f32[8,8@x]"} << 3 << "MW1157";
    QTest::newRow("one type") << QStringList{"reshard", "f32[8@x,8]"} << 2 << "MW1904";
    QTest::newRow("two arrays") << QStringList{"reshard", "--mesh", "x=4,y=2", "--from", "f32[8@x,8]", "--to", "f32[8,16@x]"} << 2
                                << "MW1915";
    QTest::newRow("no such checkpoint") << QStringList{"reshard", "--from", "/nowhere", "--to", "study.yaml", "--dry-run"} << 3
                                        << "MW1001";
    QTest::newRow("unknown chip") << reshard(usual + QStringList{"--hw", "v55", "--topology", "4x2"}) << 3 << "MW1701";
    QTest::newRow("slice too small") << reshard(usual + QStringList{"--hw", "v5e", "--topology", "2x2"}) << 4 << "MW1720";

    QTest::newRow("propagate") << QStringList{"propagate", example("mlp.mlir")} << 0 << "";
    QTest::newRow("no file") << QStringList{"propagate"} << 2 << "MW1904";
    QTest::newRow("missing file") << QStringList{"propagate", "nowhere.mlir"} << 3 << "MW1001";
    QTest::newRow("a directory") << QStringList{"propagate", "/"} << 3 << "MW1002";
    QTest::newRow("no program") << QStringList{"propagate", example("digits.yaml")} << 3 << "MW1320";
    QTest::newRow("no such strategy") << QStringList{"propagate", example("mlp.mlir"), "--strategy", "bsic"} << 2
                                      << "one of: pipeline, basic";
    QTest::newRow("no such value") << QStringList{"propagate", example("mlp.mlir"), "--explain", "%arg9"} << 2 << "MW1923";
    QTest::newRow("unwritable") << QStringList{"propagate", example("mlp.mlir"), "-o", "/no/such/folder/x.mlir"} << 3 << "MW1005";

    QTest::newRow("partition") << QStringList{"partition", example("mlp.mlir"), "-q"} << 0 << "";
    QTest::newRow("shardy") << QStringList{"partition", example("mlp.mlir"), "-q", "--shardy"} << 0 << "";
    QTest::newRow("no such pass") << QStringList{"partition", example("mlp.mlir"), "--only", "everything"} << 2 << "MW1903";
    QTest::newRow("prove") << QStringList{"prove", example("mlp.mlir"), "-q"} << 0 << "";
    QTest::newRow("prove a study") << QStringList{"prove", example("two_d.yaml"), "-q"} << 0 << "";
    QTest::newRow("prove without a mesh") << QStringList{"prove", example("copy.mlir")} << 3 << "MW1222";
    QTest::newRow("no mesh in the program") << QStringList{"partition", example("copy.mlir")} << 3 << "MW1222";
    QTest::newRow("needs reshards") << QStringList{"partition", "-", "--only", "global-to-local"} << 3 << "MW1221";
    QTest::newRow("partition a directory") << QStringList{"partition", "/"} << 3 << "MW1002";
}

void TestPartitionVerbs::exitCodes()
{
    QFETCH(QStringList, arguments);
    QFETCH(int, code);
    QFETCH(QString, said);
    QByteArray noMesh = "module { func.func public @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> } }";
    QStringList words = arguments;
    if (said == "MW1222")
        words[1] = "-";
    const Outcome outcome = run(words, said == "MW1222" ? noMesh : kProduct);
    tests::checkExitCode(outcome);
    QCOMPARE(outcome.out.isEmpty(), code != 0);
    if (code != 0) {
        const Outcome json = run(words + QStringList{"--format", "json"}, said == "MW1222" ? noMesh : kProduct);
        QCOMPARE(json.code, code);
    }
}

void TestPartitionVerbs::helpBeginsWithExamples()
{
    for (const char* verb : {"reshard", "propagate", "partition", "prove"}) {
        const Outcome outcome = run({verb, "--help"});
        QCOMPARE(outcome.code, 0);
        QVERIFY(outcome.out.indexOf("Examples:") < outcome.out.indexOf("Usage:"));
    }
}

void TestPartitionVerbs::reshardSteps_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QStringList>("steps");
    QTest::addColumn<int>("bytes");
    QTest::addColumn<int>("gatherBytes");

    // From users.md: XLA replicates here. 64 * 64 * 64 * 4 bytes / 8 devices = 128 KiB, moved twice.
    const QStringList rematerialized
        = {"--mesh", "x=4,y=2", "--shape", "64x64x64", "--from", "P('y', None, 'x')", "--to", "P(None, ('x', 'y'), None)"};
    QTest::newRow("no replication") << rematerialized << QStringList{"all_to_all x 2->1", "all_to_all y 0->1"} << 2 * 131072
                                    << 1048576;
    QTest::newRow("no replication, Shardy's way")
        << rematerialized + QStringList{"--shardy"} << QStringList{"all_to_all x 2->1", "all_to_all y 0->1"} << 2 * 131072
        << 1048576;
    QTest::newRow("slice and gather") << QStringList{"--mesh", "x=4,y=2", "--shape", "8x8", "--dtype", "bf16", "--from", "P('x')",
        "--to", "P(None, 'y')"} << QStringList{"all_slice y -->1", "all_gather x 0->-"}
                                      << 64 << 128;
    QTest::newRow("two dimensions at once") << QStringList{"--mesh", "x=4,y=2", "--shape", "8x8", "--from", "P('x', 'y')", "--to",
        "P()"} << QStringList{"all_gather x,y 0+1->-"}
                                            << 256 << 256;
    QTest::newRow("partial sums") << QStringList{"--mesh", "x=4,y=2", "--shape", "8x8", "--from", "[{}, {}], unreduced={\"x\"}",
        "--to", "P('x')"} << QStringList{"reduce_scatter x -->0"}
                                  << 256 << 256;
    QTest::newRow("tile strings") << QStringList{"--mesh", "x=4,y=2", "--shape", "8x8", "--from",
        "{devices=[4,1,2]<=[8] last_tile_dim_replicate}", "--to", "{devices=[1,4,2]<=[8] last_tile_dim_replicate}"}
                                  << QStringList{"all_to_all x 0->1"} << 64 << 256;
    QTest::newRow("another order of devices") << QStringList{"--shape", "8x8", "--from", "{mesh['x'=2,'y'=2], [{'x'}, {'y'}]}",
        "--to", "{mesh['x'=2,'y'=2], device_ids=(3,2,1,0), [{'x'}, {'y'}]}"}
                                              << QStringList{"collective_permute x,y -->-"} << 64 << 256;
    QTest::newRow("a scalar stays") << QStringList{"--mesh", "x=4", "--shape", "scalar", "--from", "P()", "--to", "P()"}
                                    << QStringList() << 0 << 0;
}

void TestPartitionVerbs::reshardSteps()
{
    QFETCH(QStringList, arguments);
    QFETCH(QStringList, steps);
    QFETCH(int, bytes);
    QFETCH(int, gatherBytes);
    const Outcome outcome = run(QStringList{"reshard", "--format", "json"} + arguments);
    QVERIFY2(outcome.code == 0, outcome.err);
    QCOMPARE(errorsAgainst("reshard-1.json", outcome.out), QStringList());
    const QJsonObject result = jsonOf(outcome);
    QCOMPARE(stepsOf(result), steps);
    QCOMPARE(result["bytes_per_device"].toInt(), bytes);
    QCOMPARE(result["full_gather"]["bytes_per_device"].toInt(), gatherBytes);
    QVERIFY(result["peak_bytes_per_device"].toInt() <= result["full_gather"]["peak_bytes_per_device"].toInt());
    QVERIFY(!result.contains("time_s"));
}

void TestPartitionVerbs::reshardText()
{
    const Outcome outcome = run(
        {"reshard", "--mesh", "x=4,y=2", "--shape", "64x64x64", "--from", "P('y', None, 'x')", "--to", "P(None, ('x', 'y'))"});
    QCOMPARE(outcome.code, 0);
    QVERIFY2(outcome.out.contains("moves 256 KiB a device, at most 256 KiB in use\n"), outcome.out);
    QVERIFY2(outcome.out.contains("a full gather first would move 1.00 MiB a device"), outcome.out);
    const Outcome nothing = run({"reshard", "--mesh", "x=4", "--shape", "8", "--from", "P('x')", "--to", "[{\"x\"}]"});
    QVERIFY2(nothing.out.contains("nothing to do"), nothing.out);
}

/// Types name the axes, and the machine says how many devices there are.
void TestPartitionVerbs::typesTellTheMesh_data()
{
    QTest::addColumn<QString>("type");
    QTest::addColumn<QString>("hardware");
    QTest::addColumn<QString>("mesh");

    QTest::newRow("a square") << "f32[512@x,512@y]"
                              << "h100x16"
                              << "x=4,y=4";
    QTest::newRow("the larger first") << "f32[512@x,512@y]"
                                      << "v5e-32"
                                      << "x=8,y=4";
    QTest::newRow("three") << "f32[512@a,512@b,512@c]"
                           << "h100x64"
                           << "a=4,b=4,c=4";
    QTest::newRow("factors other than 2") << "f32[360@x,360@y]"
                                          << "h100x24"
                                          << "x=6,y=4";
    QTest::newRow("several of one dimension") << "f32[512@(x,y),512]"
                                              << "h100x8"
                                              << "x=4,y=2";
    QTest::newRow("one axis") << "bf16[512@data,512]"
                              << "h100x8"
                              << "data=8";
    QTest::newRow("a prime") << "f32[7@x,8@y]"
                             << "h100x7"
                             << "x=7,y=1";
}

void TestPartitionVerbs::typesTellTheMesh()
{
    QFETCH(const QString, type);
    QFETCH(const QString, hardware);
    QFETCH(const QString, mesh);
    const Outcome outcome = run({"reshard", type, type, "--hw", hardware});
    QVERIFY2(outcome.code == 0, outcome.err);
    QVERIFY2(outcome.err.contains(("mesh " + mesh + ", as the machine has ").toUtf8()), outcome.err);
}

/// One frame before, and one for each of the two collectives, which say what they move.
void TestPartitionVerbs::reshardPictures()
{
    const QTemporaryDir folder;
    const QString file = folder.filePath("moves.svg");
    const Outcome outcome = run({"reshard", "--mesh", "x=4,y=2", "--shape", "64x64x64", "--from", "P('y', None, 'x')", "--to",
        "P(None, ('x', 'y'))", "--format", "svg", "-o", file});
    QVERIFY2(outcome.code == 0, outcome.err);
    QFile written(file);
    QVERIFY(written.open(QIODevice::ReadOnly));
    const QByteArray svg = written.readAll();
    QCOMPARE(svg.count("<animate "), 3);
    QVERIFY(svg.contains(">2. all_to_all over y<"));
    QVERIFY(svg.contains(">128 KiB a device, then P(None, ("));
}

void TestPartitionVerbs::reshardTimes()
{
    const Outcome outcome = run({"reshard", "--mesh", "x=4,y=2", "--shape", "8192x8192", "--from", "P('x')", "--to",
        "P(None, 'x')", "--hw", "v5e", "--topology", "4x2", "--format", "json"});
    QVERIFY2(outcome.code == 0, outcome.err);
    QCOMPARE(errorsAgainst("reshard-1.json", outcome.out), QStringList());
    const QJsonObject result = jsonOf(outcome);
    QCOMPARE(result["collective_cost"].toString(), QString("network"));
    double sum = 0.0;
    for (const QJsonValue step : result["steps"].toArray())
        sum += step["time_s"].toDouble();
    QVERIFY(sum > 0.0 && qAbs(sum - result["time_s"].toDouble()) < 1e-12);
    QVERIFY(sum < result["full_gather"]["time_s"].toDouble());
    QCOMPARE(run({"reshard", "--mesh", "x=8", "--shape", "64x64", "--from", "P('x')", "--to", "P()", "--hw", "h100"}).code, 0);
}

void TestPartitionVerbs::propagateWritesAProgram()
{
    const Outcome outcome = run({"propagate", "-"}, kProduct);
    QVERIFY2(outcome.code == 0, outcome.err);
    QVERIFY2(outcome.out.contains("stablehlo.dot_general %arg0, %arg1"), outcome.out);
    QVERIFY2(outcome.out.contains("{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"y\"}, {}]>]>}"), outcome.out);
    // What is written is read again, and says the same.
    QCOMPARE(run({"propagate", "-"}, outcome.out).out, outcome.out);
    // Less far: nothing closes what nothing reached.
    QVERIFY(run({"propagate", "-", "--strategy", "basic"}, kProduct).out.contains("[{\"y\", ?}, {?}]"));
    const Outcome json = run({"propagate", "-", "--format", "json"}, kProduct);
    QCOMPARE(errorsAgainst("propagation-1.json", json.out), QStringList());
    QCOMPARE(jsonOf(json)["functions"][0]["values"].toArray().size(), 3);
}

void TestPartitionVerbs::propagateExplains()
{
    for (const char* name : {"%0", "0"}) {
        const Outcome outcome = run({"propagate", "-", "--explain", name}, kProduct);
        QVERIFY2(outcome.code == 0, outcome.err);
        QVERIFY2(outcome.out.startsWith("%0 of main: f32[8,16] P('y',)"), outcome.out);
        QVERIFY2(outcome.out.contains("dim 0 by y"), outcome.out);
    }
    const Outcome argument = run({"propagate", "-", "--explain", "lhs"}, kProduct);
    QVERIFY2(argument.out.contains("lhs (%arg0): annotated (sdy.sharding of %lhs) at standard input:"), argument.out);
    const Outcome chain = run({"propagate", example("mlp.mlir"), "--explain", "%3"});
    QVERIFY2(chain.out.contains("    x (%arg3): annotated (sdy.sharding of %arg3) at "), chain.out);
    QVERIFY2(chain.out.contains(
                 "\n    -> %0 by dot_general, factor i, basic, pass-through, forward, op priority 2, user priority 0 at "),
        chain.out);
    const Outcome json = run({"propagate", example("mlp.mlir"), "--explain", "%3", "--format", "json"});
    QCOMPARE(errorsAgainst("propagation-1.json", json.out), QStringList());
    QCOMPARE(jsonOf(json)["functions"][0]["values"].toArray().size(), 1);
    QCOMPARE(jsonOf(json)["functions"][0]["steps"].toArray().size(), 6);
}

void TestPartitionVerbs::propagateSteps()
{
    const Outcome outcome = run({"propagate", example("mlp.mlir"), "--steps"});
    QCOMPARE(outcome.code, 0);
    QCOMPARE(errorsAgainst("propagation-1.json", outcome.out), QStringList());
    const QJsonArray steps = jsonOf(outcome)["functions"][0]["steps"].toArray();
    QVERIFY(steps.size() > 10);
    QCOMPARE(steps[0]["step"].toString(), QString("by the user"));
    QVERIFY(!jsonOf(outcome)["functions"][0].toObject().contains("values"));
}

void TestPartitionVerbs::everyStrategy_data()
{
    QTest::addColumn<QString>("strategy");
    for (const char* name : {"pipeline", "basic", "basic-conservative", "aggressive", "op-priority", "user-priority"})
        QTest::newRow(name) << name;
}

void TestPartitionVerbs::everyStrategy()
{
    QFETCH(QString, strategy);
    const Outcome outcome = run({"propagate", example("mlp.mlir"), "--strategy", strategy, "--format", "json"});
    QCOMPARE(outcome.code, 0);
    QCOMPARE(errorsAgainst("propagation-1.json", outcome.out), QStringList());
    QCOMPARE(jsonOf(outcome)["strategy"].toString(), strategy);
    // The whole pipeline is what nobody has to ask for.
    if (strategy == "pipeline")
        QCOMPARE(run({"propagate", example("mlp.mlir"), "--format", "json"}).out, outcome.out);
}

namespace {

constexpr const char* kAmbiguous = R"(sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%lhs: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %rhs: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %lhs, %rhs, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
)";

} // namespace

void TestPartitionVerbs::explicitTypes()
{
    const QByteArray good = QByteArray(kAmbiguous).replace("[{\"y\"}, {}]", "[{}, {}]");
    const Outcome outcome = run({"propagate", "-", "--mode", "explicit"}, good);
    QVERIFY2(outcome.code == 0, outcome.err);
    QVERIFY2(outcome.out.contains("[{\"x\"}, {}]"), outcome.out);
    const Outcome why = run({"propagate", "-", "--mode", "explicit", "--explain", "%0"}, good);
    QVERIFY2(why.out.contains("%0 of main: f32[8@x,8]\n  by dot_general of lhs (%arg0) f32[8@x,16@y]"), why.out);
    const Outcome json = run({"propagate", "-", "--mode", "explicit", "--format", "json"}, good);
    QCOMPARE(errorsAgainst("types-1.json", json.out), QStringList());
    QCOMPARE(run({"propagate", "-", "--mode", "explicit", "--explain", "%9"}, good).code, 2);
    QCOMPARE(run({"propagate", "-", "--mode", "implicit"}, good).code, 2);
}

void TestPartitionVerbs::explicitErrors()
{
    const Outcome outcome = run({"propagate", "-", "--mode", "explicit"}, kAmbiguous);
    QCOMPARE(outcome.code, 3);
    QVERIFY(outcome.out.isEmpty());
    QVERIFY2(outcome.err.contains("standard input:3:"), outcome.err);
    QVERIFY2(outcome.err.contains("MW1252: Contracting dimensions are sharded"), outcome.err);
    // 4 x 8 floats on each device.
    QVERIFY2(outcome.err.contains("P('x', 'y'): reduce-scatter over y of the result, 128 B per device"), outcome.err);
    const Outcome json = run({"propagate", "-", "--mode", "explicit", "--format", "json"}, kAmbiguous);
    QCOMPARE(json.code, 3);
    QCOMPARE(errorsAgainst("types-1.json", json.out), QStringList());
    const QJsonValue problem = jsonOf(json)["functions"][0]["problems"][0];
    QCOMPARE(problem["line"].toInt(), 3);
    QVERIFY(problem["choices"].toArray().size() >= 4);
    const Outcome checked = run({"check", "--explicit", "-"}, kAmbiguous);
    QCOMPARE(checked.code, 3);
    QVERIFY2(checked.err.contains("standard input:3:8: error MW1252"), checked.err);
    QCOMPARE(run({"check", "--explicit", "-"}, QByteArray(kAmbiguous).replace("[{\"y\"}, {}]", "[{}, {}]")).code, 0);
}

void TestPartitionVerbs::tiles()
{
    constexpr const char* kTiled
        = R"(func.func @main(%x: tensor<7x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> tensor<4x7xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<7x4xf32>) -> tensor<4x7xf32>
  return %0 : tensor<4x7xf32>
}
)";
    const Outcome outcome = run({"propagate", "-", "--mode", "gspmd"}, kTiled);
    QVERIFY2(outcome.code == 0, outcome.err);
    QVERIFY2(outcome.out.contains("mhlo.sharding = \"{devices=[1,2]<=[2]}\""), outcome.out); // 7 does not divide: it stays
    const Outcome why = run({"propagate", "-", "--mode", "gspmd", "--explain", "%0"}, kTiled);
    QVERIFY2(why.out.contains("annotated {devices=[2,1]<=[2]}\n  -> %0 {devices=[1,2]<=[2]} by transpose, forward"), why.out);
    QCOMPARE(
        errorsAgainst("tiles-1.json", run({"propagate", "-", "--mode", "gspmd", "--format", "json"}, kTiled).out), QStringList());
    const Outcome bad = run({"propagate", "-", "--mode", "gspmd"}, QByteArray(kTiled).replace("[2,1]<=[2]", "[2]<=[2]"));
    QCOMPARE(bad.code, 3);
    QVERIFY2(bad.err.contains("MW1154"), bad.err);
    QCOMPARE(run({"propagate", "-", "--mode", "gspmd", "--explain", "%9"}, kTiled).code, 2);
}

void TestPartitionVerbs::partitionNarrates()
{
    const Outcome outcome = run({"partition", "-"}, kProduct);
    QVERIFY2(outcome.code == 0, outcome.err);
    // 8 x 16 x 4 bytes, scattered while they are added up
    QVERIFY2(outcome.err.contains("reduce_scatter  y         1         512 B"), outcome.err);
    QVERIFY2(outcome.out.contains("sdy.reduce_scatter [{\"y\"}, {}] %0 out_sharding=<@mesh, [{\"y\"}, {}]>"), outcome.out);
    QVERIFY2(outcome.out.contains("tensor<4x16xf32>"), outcome.out);
    QVERIFY2(outcome.err.contains("proved: "), outcome.err);
    QVERIFY(run({"partition", "-", "-q"}, kProduct).err.isEmpty());
    QVERIFY(!run({"partition", "-", "--no-prove"}, kProduct).err.contains("proved"));
}

void TestPartitionVerbs::partitionJson()
{
    for (const QStringList& more : {QStringList(), QStringList{"--shardy"}, QStringList{"--only", "insert-reshards"}}) {
        const Outcome outcome = run(QStringList{"partition", "-", "--format", "json"} + more, kProduct);
        QVERIFY2(outcome.code == 0, outcome.err);
        QCOMPARE(errorsAgainst("partition-1.json", outcome.out), QStringList());
    }
    const QJsonObject result = jsonOf(run({"partition", example("mlp.mlir"), "--format", "json"}));
    const QJsonArray collectives = result["functions"][0]["collectives"].toArray();
    QCOMPARE(collectives.size(), 2);
    QCOMPARE(collectives[0]["op"].toString(), QString("all_reduce"));
    QCOMPARE(collectives[0]["axes"].toString(), QString("model"));
    QCOMPARE(collectives[0]["bytes_per_device"].toInt(), 64 * 16 * 4);
    QCOMPARE(collectives[0]["cause"]["annotation"].toString(), QString("sdy.sharding of %arg0"));
}

void TestPartitionVerbs::proves()
{
    const Outcome text = run({"prove", "-"}, kProduct);
    QVERIFY2(text.code == 0, text.err);
    QVERIFY2(text.out.startsWith("proved: 2 ops on 8 devices, 1 function"), text.out);
    QVERIFY2(text.err.contains("proved in"), text.err);
    const Outcome json = run({"prove", "-", "--format", "json"}, kProduct);
    QCOMPARE(errorsAgainst("proof-1.json", json.out), QStringList());
    QVERIFY(jsonOf(json)["proved"].toBool());

    // Nobody knows what numbers it draws.
    QByteArray unknown = kProduct;
    unknown.replace("    return %0", R"(    %a = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.constant dense<[8, 16]> : tensor<2xi64>
    %1 = "stablehlo.rng"(%a, %a, %s) {rng_distribution = #stablehlo<rng_distribution UNIFORM>} : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<8x16xf32>
    return %1)");
    const Outcome unproved = run({"prove", "-"}, unknown);
    QCOMPARE(unproved.code, 5);
    QVERIFY2(unproved.out.startsWith("not proved: "), unproved.out);
    QVERIFY2(unproved.out.contains("main, stablehlo.rng"), unproved.out);
    const Outcome unknownJson = run({"prove", "-", "--format", "json"}, unknown);
    QCOMPARE(errorsAgainst("proof-1.json", unknownJson.out), QStringList());
    QVERIFY(!jsonOf(unknownJson)["proved"].toBool());
    // Whichever of the whole program and the devices' is named first.
    const QTemporaryDir folder;
    const QString device = folder.filePath("device.mlir");
    QCOMPARE(run({"partition", example("mlp.mlir"), "-q", "-o", device}).code, 0);
    for (const QStringList& order :
        {QStringList{device, "--against", example("mlp.mlir")}, QStringList{example("mlp.mlir"), "--against", device}}) {
        const Outcome against = run(QStringList{"prove"} + order);
        QVERIFY2(against.code == 0 && against.out.startsWith("proved: "), against.out + against.err);
        QCOMPARE(against.err.contains("has the whole arrays"), order.front() != device);
    }
    const Outcome study = run({"prove", example("fsdp.yaml"), "--against", example("mlp.mlir")});
    QCOMPARE(study.code, 2);
    QVERIFY2(study.err.contains("MW1903"), study.err);
    const Outcome pipeline = run({"prove", example("pipeline_1f1b.yaml")});
    QVERIFY2(pipeline.code == 0 && pipeline.out.startsWith("proved: ") && pipeline.out.contains(" ops on 4 devices, 3 functions"),
        pipeline.out);
}

/// The passes one after the other, each reading what the one before wrote, are what --shardy does in one go.
void TestPartitionVerbs::passByPass()
{
    const Outcome propagated = run({"propagate", example("mlp.mlir")});
    const Outcome inserted = run({"partition", "-", "-q", "--only", "insert-reshards"}, propagated.out);
    QVERIFY2(inserted.code == 0, inserted.err);
    QVERIFY2(inserted.out.contains("sdy.all_reduce {\"model\"}"), inserted.out);
    const Outcome collective = run({"partition", "-", "-q", "--only", "reshard-to-collectives", "--shardy"}, inserted.out);
    QVERIFY2(collective.code == 0, collective.err);
    const Outcome local = run({"partition", "-", "-q", "--only", "global-to-local"}, collective.out);
    QVERIFY2(local.code == 0, local.err);
    QCOMPARE(local.out, run({"partition", example("mlp.mlir"), "-q", "--shardy"}).out);

    const Outcome reshards = run({"partition", "-", "-q", "--only", "insert-reshards"}, run({"propagate", "-"}, kProduct).out);
    QVERIFY2(reshards.out.contains("sdy.reshard %1 <@mesh, [{\"y\"}, {}]>"), reshards.out);
    const Outcome sliced = run({"partition", "-", "-q", "--only", "reshard-to-collectives"}, reshards.out);
    QVERIFY2(sliced.out.contains("sdy.all_slice [{\"y\"}, {}] %1 out_sharding=<@mesh, [{\"y\"}, {}]>"), sliced.out);
    QVERIFY2(
        run({"partition", "-", "-q", "--only", "global-to-local"}, sliced.out).out.contains("-> tensor<4x16xf32>"), sliced.out);
}

void TestPartitionVerbs::writesFiles()
{
    QTemporaryDir folder;
    const QString target = folder.filePath("device.mlir");
    const Outcome outcome = run({"partition", example("mlp.mlir"), "-o", target});
    QCOMPARE(outcome.code, 0);
    QVERIFY(outcome.out.isEmpty());
    QVERIFY2(outcome.err.contains("wrote "), outcome.err);
    QFile file(target);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QCOMPARE(file.readAll(), run({"partition", example("mlp.mlir"), "-q"}).out);
}

namespace {

/// One op that nobody knows, beside one that is.
const QByteArray kUnknownOp = R"(
module {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    %0 = stablehlo.cosin %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
)";

} // namespace

void TestPartitionVerbs::reportsUnknownOps_data()
{
    QTest::addColumn<QString>("verb");
    QTest::addColumn<int>("code");
    for (const char* verb : {"propagate", "partition"})
        QTest::newRow(verb) << QString(verb) << 0;
    QTest::newRow("check") << QString("check") << 1; // what `run` refuses
}

/// A program with an op that is not known is taken, and the user is told of the op and where it stands.
void TestPartitionVerbs::reportsUnknownOps()
{
    QFETCH(QString, verb);
    QFETCH(int, code);
    const Outcome outcome = run({verb, "-"}, kUnknownOp);
    QCOMPARE(outcome.code, code);
    QVERIFY2(outcome.err.contains("MW1331"), outcome.err);
    QVERIFY2(outcome.err.contains("stablehlo.cosin"), outcome.err);
    QVERIFY2(outcome.err.contains("standard input:5:10"), outcome.err);
}

/// `check` takes programs too: it reads, propagates and partitions them.
void TestPartitionVerbs::checksPrograms()
{
    const Outcome good = run({"check", "-"}, kProduct);
    QCOMPARE(good.code, 0);
    QVERIFY2(good.out.contains("0 errors, 1 warning"), good.out); // nothing uses x
    QVERIFY2(good.err.contains("MW1270"), good.err);

    QByteArray uneven = kProduct;
    uneven.replace("tensor<8x32xf32>", "tensor<8x33xf32>");
    uneven.replace("tensor<32x16xf32>", "tensor<33x16xf32>");
    const Outcome bad = run({"check", "-"}, uneven);
    QCOMPARE(bad.code, 3);
    QVERIFY2(bad.err.contains("MW1104"), bad.err);
    QVERIFY2(bad.err.contains("33 is not divisible by 2"), bad.err);
}

MESHWRIGHT_TEST(TestPartitionVerbs)

} // namespace tst_partition_verbs

#include "tst_partition_verbs.moc"
