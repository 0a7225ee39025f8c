// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/npy.h"
#include "core/support/file.h"
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"
#include "tests/ways_program.h"

#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>

namespace tst_run_verb {

using namespace meshwright;

namespace {

using tests::example;
using tests::Outcome;

Outcome run(const QStringList& arguments)
{
    return tests::runProgram(MESHWRIGHT_PROGRAM, QStringList{"run"} + arguments);
}

/// The first four columns of the table of collectives: op, axes, calls, bytes.
QStringList collectives(const QByteArray& out)
{
    QStringList lines;
    bool isInTable = false;
    for (const QString& line : QString::fromUtf8(out).split('\n')) {
        const QStringList words = line.split(' ', Qt::SkipEmptyParts);
        if (!words.isEmpty() && words.front() == "collective")
            isInTable = true;
        else if (!line.startsWith("  "))
            isInTable = false;
        else if (isInTable && words.size() > 4)
            lines << words.mid(0, 5).join(' ');
    }
    lines.sort();
    return lines;
}

HostArray ramp(const Shape& shape, double step, double offset)
{
    std::vector<double> values(static_cast<std::size_t>(elementCount(shape)));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = std::sin(step * static_cast<double>(i)) + offset;
    return HostArray::of({DType::F32, shape}, values);
}

HostArray readArray(const QString& path)
{
    const auto array = readNpy(path.toStdString());
    if (!array)
        qFatal("%s", describe(array.error()).c_str());
    return *array;
}

} // namespace

/// `run`: programs with manual computations, arguments and results as files, gradients, times.
class TestRunVerb : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void examples_data();
    void examples();
    void exitCodes_data();
    void exitCodes();
    void arraysInAndOut();
    void reportsDifferingReplicas();
    void proofs_data();
    void proofs();
    void devicesThatDiffer_data();
    void devicesThatDiffer();
    void pmapEqualsSpmd();
    void smallResults();
    void wholeNumbers();
    void times();
    void deviceMemory();
    void listed();

private:
    QString path(const QString& name) const { return m_folder.filePath(name); }
    QString write(const QString& name, const HostArray& array) const
    {
        if (!writeFileAtomically(path(name).toStdString(), npyBytes(array)))
            qFatal("cannot write");
        return path(name);
    }

    QTemporaryDir m_folder;
};

void TestRunVerb::examples_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QStringList>("forward");
    QTest::addColumn<QStringList>("withGradient");
    QTest::addColumn<QString>("unused");

    QTest::newRow("FSDP") << "fsdp_matmul.mlir" << QStringList{"all_gather data 1 1.00 MiB"}
                          << QStringList{"all_gather data 1 1.00 MiB", "reduce_scatter data 1 1.00 MiB"}
                          << "the mesh axis \"model\" splits nothing";
    QTest::newRow("tensor parallel") << "tensor_parallel_matmul.mlir" << QStringList{"all_reduce model 1 128 KiB"}
                                     << QStringList{"all_reduce model 1 128 KiB"} << "the mesh axis \"data\" splits nothing";
    QTest::newRow("Megatron") << "megatron_pair.mlir"
                              << QStringList{"all_gather model 1 128 KiB", "reduce_scatter model 1 128 KiB"}
                              << QStringList{"all_gather model 1 128 KiB", "all_gather model 1 128 KiB",
                                     "reduce_scatter model 1 128 KiB", "reduce_scatter model 1 128 KiB"}
                              << "the mesh axis \"data\" splits nothing";
    QTest::newRow("pmap") << "pmap_step.mlir" << QStringList{"all_reduce data 1 4 B", "all_reduce data 1 4.00 KiB"}
                          << QStringList{} << "";
    QTest::newRow("SPMD") << "spmd_step.mlir" << QStringList{"all_reduce data 1 4 B", "all_reduce data 1 4.00 KiB"}
                          << QStringList{} << "";
}

void TestRunVerb::examples()
{
    QFETCH(QString, file);
    QFETCH(QStringList, forward);
    QFETCH(QStringList, withGradient);
    QFETCH(QString, unused);
    const Outcome once = run({example(file), "--verify"});
    QVERIFY2(once.code == 0, once.err);
    QVERIFY2(once.out.contains("verified against one device: equal"), once.out);
    QCOMPARE(collectives(once.out), forward);
    QCOMPARE(once.err.contains("MW1270"), !unused.isEmpty());
    QVERIFY2(once.err.contains(unused.toUtf8()), once.err);
    const Outcome checked = tests::runProgram(MESHWRIGHT_PROGRAM, {"check", example(file)});
    QCOMPARE(checked.code, 0);
    QCOMPARE(checked.err.contains("the mesh axis"), !unused.isEmpty());
    QVERIFY2(checked.err.contains(unused.toUtf8()), checked.err);

    const Outcome both = run({example(file), "--verify", "--grad"});
    QVERIFY2(both.code == 0, both.err);
    QVERIFY2(both.out.contains("verified against one device: equal"), both.out);
    if (!withGradient.isEmpty())
        QCOMPARE(collectives(both.out), withGradient);
}

void TestRunVerb::exitCodes_data()
{
    tests::addExitCodeColumns();

    const QString x = write("x.npy", ramp({512, 256}, 0.1, 0.0));
    const QString w = write("w.npy", ramp({256, 1024}, 0.2, 0.0));
    const QString wide = write("wide.npy", ramp({512, 256}, 0.1, 0.0).converted(DType::F64));
    const QString whole = write("whole.npy", HostArray::of({DType::S32, {2}}, std::vector<double>{1, 2}));
    QFile cut(path("cut.npy"));
    QVERIFY(cut.open(QIODevice::WriteOnly) && cut.write("\x93NUMPY\x01") > 0);
    cut.close();
    QFile integers(path("integers.mlir"));
    QVERIFY(integers.open(QIODevice::WriteOnly)
        && integers.write("func.func public @main(%x: tensor<2xi32>) -> tensor<2xi32> {\n  return %x : tensor<2xi32>\n}\n") > 0);
    integers.close();

    const QString fsdp = example("fsdp_matmul.mlir");
    QTest::newRow("arguments") << QStringList{fsdp, "--args", x + "," + w} << 0 << "";
    QTest::newRow("no such array") << QStringList{fsdp, "--args", x + ",nowhere.npy"} << 3 << "MW1001";
    QTest::newRow("no array") << QStringList{fsdp, "--args", x + "," + fsdp} << 3 << "MW1530";
    QTest::newRow("a cut array") << QStringList{fsdp, "--args", x + "," + path("cut.npy")} << 3 << "MW1531";
    QTest::newRow("too few arrays") << QStringList{fsdp, "--args", x} << 3 << "MW1534";
    QTest::newRow("another type") << QStringList{fsdp, "--args", wide + "," + w} << 3 << "MW1535";
    QTest::newRow("another shape") << QStringList{fsdp, "--args", w + "," + w} << 3
                                   << "argument 0 (x) is f32[512,256], the given array is f32[256,1024]";
    QTest::newRow("arguments and a seed") << QStringList{fsdp, "--args", x, "--seed", "1"} << 2 << "--seed";
    QTest::newRow("no times") << QStringList{fsdp, "--time", "often"} << 2 << "MW1903";
    QTest::newRow("not even once") << QStringList{fsdp, "--time", "0x5"} << 2 << "MW1903";
    QTest::newRow("into a file") << QStringList{fsdp, "--out", x} << 3 << "MW1005";
    QTest::newRow("no gradient") << QStringList{path("integers.mlir"), "--grad"} << 3 << "MW1264";
    QTest::newRow("integers") << QStringList{path("integers.mlir"), "--args", whole} << 0 << "";
}

void TestRunVerb::exitCodes()
{
    QFETCH(QStringList, arguments);
    const Outcome outcome = run(arguments);
    tests::checkExitCode(outcome);
}

/// The product of what was given, and its gradients, as files.
void TestRunVerb::arraysInAndOut()
{
    const HostArray x = ramp({512, 256}, 0.1, 0.0);
    const HostArray w = ramp({256, 1024}, 0.2, 0.5);
    const QStringList command{example("fsdp_matmul.mlir"), "--args", write("x.npy", x) + "," + write("w.npy", w), "--out",
        path("new/results"), "--grad"};
    const Outcome outcome = run(command);
    QVERIFY2(outcome.code == 0, outcome.err);
    const QStringList files = QDir(path("new/results")).entryList(QDir::Files, QDir::Name);
    QCOMPARE(files, (QStringList{"grad0.npy", "grad1.npy", "result0.npy"}));

    const HostArray result = readArray(path("new/results/result0.npy"));
    const HostArray gradX = readArray(path("new/results/grad0.npy"));
    const HostArray gradW = readArray(path("new/results/grad1.npy"));
    QVERIFY(result.type() == (TensorType{DType::F32, {512, 1024}}));
    QVERIFY(gradX.type() == x.type() && gradW.type() == w.type());
    // Some elements, by hand: a row times a column; the sums of a row and of a column.
    for (const std::int64_t i : {0, 130, 511}) {
        const std::int64_t j = (i * 7) % 1024;
        const std::int64_t k = (i * 3) % 256;
        double product = 0.0;
        double rowOfW = 0.0;
        double columnOfX = 0.0;
        for (std::int64_t n = 0; n < 256; ++n)
            product += x.at(i * 256 + n) * w.at(n * 1024 + j);
        for (std::int64_t n = 0; n < 1024; ++n)
            rowOfW += w.at(k * 1024 + n);
        for (std::int64_t n = 0; n < 512; ++n)
            columnOfX += x.at(n * 256 + k);
        QVERIFY(std::abs(result.at(i * 1024 + j) - product) < 1e-3);
        QVERIFY(std::abs(gradX.at(i * 256 + k) - rowOfW) < 1e-2);
        QVERIFY(std::abs(gradW.at(k * 1024 + j) - columnOfX) < 1e-2);
    }
    // The same again gives the same bytes, in the place of the old files.
    QVERIFY(run(command).code == 0);
    QVERIFY(readArray(path("new/results/grad1.npy")) == gradW);
}

/// A result that is said to be the same on all devices, and is not: what certainly differs is refused, what turns out to is not a proof.
void TestRunVerb::reportsDifferingReplicas()
{
    const auto program = [this](const QString& body) {
        QFile file(path("differs.mlir"));
        file.open(QIODevice::WriteOnly);
        file.write(QString(R"(module @differs {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%x: tensor<4xf32>) -> tensor<2xf32> {
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%y: tensor<2xf32>) {
      %1 = %1
      sdy.return %1 : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
)")
                       .replace("%1 = %1", "%1 = " + body)
                       .toUtf8());
    };
    program("stablehlo.negate %y : tensor<2xf32>");
    for (const QStringList& command : {QStringList{"run"}, QStringList{"check"}}) {
        const Outcome refused = tests::runProgram(MESHWRIGHT_PROGRAM, command + QStringList{path("differs.mlir")});
        QCOMPARE(refused.code, 3);
        QVERIFY2((refused.err + refused.out).contains("MW1266"), refused.err);
    }
    program("\"stablehlo.collective_permute\"(%y) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : "
            "(tensor<2xf32>) -> tensor<2xf32>");
    const Outcome outcome = run({path("differs.mlir")});
    QCOMPARE(outcome.code, 0);
    QVERIFY2(outcome.err.contains("MW1536"), outcome.err);
    const Outcome verified = run({path("differs.mlir"), "--verify"});
    QCOMPARE(verified.code, 5);
    QVERIFY2(verified.out.contains("DIFFERENT"), verified.out);
}

void TestRunVerb::proofs_data()
{
    QTest::addColumn<QString>("ops"); // of %x, 8x4 in [{"a"}, {}], as %r
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("said");

    QTest::newRow("a reshard") << "%r = sdy.reshard %x <@mesh, [{\"b\"}, {}]> : tensor<8x4xf32>" << 0 << ": equal";
    QTest::newRow("a gather") << "%r = sdy.all_gather [{\"a\"}, {}] %x out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>" << 0
                              << ": equal";
    QTest::newRow("a reduction of nothing")
        << "%r = sdy.all_reduce {\"b\"} %x out_sharding=<@mesh, [{\"a\"}, {}]> : tensor<8x4xf32>" << 0 << ": equal";
    QTest::newRow("a permute of what has no sharding yet")
        << "%s = stablehlo.sine %x : tensor<8x4xf32>\n"
           "%r = sdy.collective_permute %s out_sharding=<@mesh, [{\"a\", \"b\"}, {}]> : tensor<8x4xf32>"
        << 0 << ": equal";
    QTest::newRow("a gather of another axis")
        << "%r = sdy.all_gather [{\"b\"}, {}] %x out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>" << 3 << "MW1333";
    QTest::newRow("what nobody reads") << "%k = stablehlo.custom_call @kernel(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>\n%r = "
                                          "stablehlo.sine %x : tensor<8x4xf32>"
                                       << 0 << ": equal";
    QTest::newRow("nothing is a number")
        << "%s = stablehlo.multiply %x, %x : tensor<8x4xf32>\n%n = stablehlo.negate %s : tensor<8x4xf32>\n"
           "%r = stablehlo.log %n : tensor<8x4xf32>"
        << 0 << "nothing was proved (on one device nothing is finite";
}

/// What `--verify` says of changes of layout, and of results that prove nothing. Passes are looked at too.
void TestRunVerb::proofs()
{
    QFETCH(QString, ops);
    QFETCH(int, code);
    QFETCH(QString, said);
    QFile file(path("proof.mlir"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(("sdy.mesh @mesh = <[\"a\"=2, \"b\"=2]>\nfunc.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, "
                "[{\"a\"}, "
                "{}]>}) -> tensor<8x4xf32> {\n"
        + ops + "\nreturn %r : tensor<8x4xf32>\n}\n")
                   .toUtf8());
    file.close();
    const Outcome outcome = run({path("proof.mlir"), "--verify", "--verify-passes"});
    QVERIFY2(outcome.code == code, outcome.err);
    QVERIFY2((outcome.out + outcome.err).contains(said.toUtf8()), outcome.out + outcome.err);
}

void TestRunVerb::devicesThatDiffer_data()
{
    QTest::addColumn<QString>("first"); // what devices 0 and 2 do with %a, as %r
    QTest::addColumn<QString>("second"); // devices 1 and 3
    QTest::addColumn<QStringList>("said");
    const auto sum = [](const auto&... what) { return tests::sumLine(what...); };
    const QString all = "[[0, 1, 2, 3]]";
    const QString usual = sum("r", "a", "4x8xf32", all);
    const auto pair = [&](const QString& first, const QString& second) {
        return sum("k", "a", "4x8xf32", first) + sum("r", "k", "4x8xf32", second);
    };
    QTest::newRow("shape") << usual
                           << "%h = stablehlo.slice %a [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>\n"
            + sum("g", "h", "2x8xf32", all)
            + "%r = stablehlo.concatenate %g, %g, dim = 0 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>\n"
                           << QStringList{"MW1505", "differ in shape", "f32[4,8]", "f32[2,8]"};
    QTest::newRow("element type") << usual
                                  << "%h = stablehlo.convert %a : (tensor<4x8xf32>) -> tensor<4x8xbf16>\n"
            + sum("g", "h", "4x8xbf16", all) + "%r = stablehlo.convert %g : (tensor<4x8xbf16>) -> tensor<4x8xf32>\n"
                                  << QStringList{"MW1505", "differ in element type", "bf16[4,8]"};
    QTest::newRow("reduction") << usual << sum("r", "a", "4x8xf32", all, "maximum")
                               << QStringList{"MW1505", "all_reduce of x over", "all_reduce of x by max over"};
    QTest::newRow("order") << pair("[[0, 1], [2, 3]]", "[[0, 2], [1, 3]]") << pair("[[0, 2], [1, 3]]", "[[0, 1], [2, 3]]")
                           << QStringList{"MW1505", "differ in order"};
    QTest::newRow("groups") << usual << sum("r", "a", "4x8xf32", "[[0, 1], [2, 3]]")
                            << QStringList{"MW1506", "devices 0 and 2 wait in all_reduce of x over data (",
                                   "devices 1 and 3 wait in all_reduce of x over data, in groups [[0, 1], [2, 3]] ("};
    QTest::newRow("none") << usual << "%r = stablehlo.add %a, %a : tensor<4x8xf32>\n"
                          << QStringList{"MW1506", "devices 0 and 2 wait in all_reduce of x", "devices 1 and 3"};
}

/// Every second device goes another way, with other collectives on it.
void TestRunVerb::devicesThatDiffer()
{
    QFETCH(QString, first);
    QFETCH(QString, second);
    QFETCH(QStringList, said);
    QFile file(path("ways.mlir"));
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write(tests::waysProgram(first, second)) > 0);
    file.close();
    const Outcome outcome = run({path("ways.mlir")});
    QVERIFY2(outcome.code == 6, outcome.err);
    QCOMPARE(outcome.err.count("error MW"), 1);
    for (const QString& words : said)
        QVERIFY2(outcome.err.contains(words.toUtf8()), outcome.err);
}

/// Step by step, the same losses and the same collectives.
void TestRunVerb::pmapEqualsSpmd()
{
    const QString x = write("batch.npy", ramp({256, 64}, 0.37, 0.0));
    const QString y = write("labels.npy", ramp({256, 16}, 0.11, 0.2));
    QString w[2] = {write("w.npy", ramp({64, 16}, 0.05, 0.0)), path("w.npy")};
    double previous = 1e30;
    for (int step = 0; step < 5; ++step) {
        double loss[2] = {};
        QStringList used[2];
        for (int i = 0; i < 2; ++i) {
            const QString folder = path(QString("step%1.%2").arg(step).arg(i));
            const Outcome outcome = run(
                {example(i == 0 ? "pmap_step.mlir" : "spmd_step.mlir"), "--args", w[i] + "," + x + "," + y, "--out", folder});
            QVERIFY2(outcome.code == 0, outcome.err);
            used[i] = collectives(outcome.out);
            loss[i] = readArray(folder + "/result0.npy").at(0);
            w[i] = folder + "/result1.npy";
        }
        QCOMPARE(used[0], used[1]);
        QCOMPARE(used[0].size(), 2);
        QVERIFY2(std::abs(loss[0] - loss[1]) <= 1e-6 * loss[1], qPrintable(QString("%1 %2").arg(loss[0]).arg(loss[1])));
        QVERIFY(loss[0] < previous);
        previous = loss[0];
    }
}

/// Results of a few elements are printed, and listed as JSON.
/// No digit of an integer is lost: neither those behind the sixth, nor those that a double does not have.
void TestRunVerb::wholeNumbers()
{
    QFile program(path("whole.mlir"));
    QVERIFY(program.open(QIODevice::WriteOnly));
    program.write("func.func public @main() -> (tensor<2xi32>, tensor<i64>, tensor<ui64>) {\n"
                  "  %0 = stablehlo.constant dense<[1980450123, -7]> : tensor<2xi32>\n"
                  "  %1 = stablehlo.constant dense<-9007199254740993> : tensor<i64>\n"
                  "  %2 = stablehlo.constant dense<18446744073709551615> : tensor<ui64>\n"
                  "  return %0, %1, %2 : tensor<2xi32>, tensor<i64>, tensor<ui64>\n"
                  "}\n");
    program.close();
    const Outcome text = run({path("whole.mlir")});
    QVERIFY2(text.code == 0, text.err.constData());
    const Outcome json = run({path("whole.mlir"), "--format", "json"});
    QCOMPARE(tests::errorsAgainst("run-1.json", json.out), QStringList());
    for (const char* number : {"1980450123", "-7", "-9007199254740993", "18446744073709551615"}) {
        QVERIFY2(text.out.contains(number), text.out.constData());
        QVERIFY2(json.out.contains(number), json.out.constData());
    }
}

void TestRunVerb::smallResults()
{
    QFile program(path("small.mlir"));
    QVERIFY(program.open(QIODevice::WriteOnly));
    program.write("sdy.mesh @mesh = <[\"d\"=2]>\n"
                  "func.func public @main(%x: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}, {}]>})"
                  " -> (tensor<2x2xf32>, tensor<f32>, tensor<2x2xf32>, tensor<0x2xf32>) {\n"
                  "  %0 = stablehlo.add %x, %x : tensor<2x2xf32>\n"
                  "  %1 = stablehlo.constant dense<0.0> : tensor<f32>\n"
                  "  %2 = stablehlo.reduce(%x init: %1) applies stablehlo.add across dimensions = [0, 1] : "
                  "(tensor<2x2xf32>, tensor<f32>) -> tensor<f32>\n"
                  "  %3 = stablehlo.log %x : tensor<2x2xf32>\n"
                  "  %4 = stablehlo.slice %x [0:0, 0:2] : (tensor<2x2xf32>) -> tensor<0x2xf32>\n"
                  "  return %0, %2, %3, %4 : tensor<2x2xf32>, tensor<f32>, tensor<2x2xf32>, tensor<0x2xf32>\n"
                  "}\n");
    program.close();
    const std::vector<double> values = {1.0, 2.5, 3.0, 0.0};
    const QStringList arguments
        = {path("small.mlir"), "--args", write("small.npy", HostArray::of({DType::F32, {2, 2}}, values)), "--verify"};
    const Outcome text = run(arguments);
    QVERIFY2(text.code == 0, text.err.constData());
    QVERIFY2(text.out.contains("= [[2, 5], [6, 0]]\n"), text.out.constData());
    QVERIFY2(text.out.contains("f32[] P() = 6.5\n"), text.out.constData());
    const Outcome outcome = run(arguments + QStringList{"--format", "json"});
    QVERIFY2(outcome.code == 0, outcome.err.constData());
    QCOMPARE(tests::errorsAgainst("run-1.json", outcome.out), QStringList());
    const QJsonObject json = QJsonDocument::fromJson(outcome.out).object();
    const QJsonArray results = json["results"].toArray();
    const QJsonArray twice = {QJsonArray{2.0, 5.0}, QJsonArray{6.0, 0.0}};
    QCOMPARE(results[0].toObject()["values"].toArray(), twice);
    QCOMPARE(results[1].toObject()["values"].toDouble(), 6.5);
    QVERIFY(results[2].toObject()["values"].toArray()[1].toArray()[1].isNull()); // the logarithm of 0
    QVERIFY(results[3].toObject()["values"].isNull()); // nothing to list
    QCOMPARE(json["devices"].toInt(), 2);
    QCOMPARE(json["verify"].toObject()["verdict"].toString(), QString("equal"));
    QVERIFY(json["proof"].toObject()["proved"].toBool());
}

void TestRunVerb::times()
{
    for (const char* file : {"megatron_pair.mlir", "spmd_step.mlir"}) {
        const Outcome outcome = run({example(file), "--time", "2x3"});
        QVERIFY2(outcome.code == 0, outcome.err);
        const QRegularExpression said(
            "2 x 3 runs: best [0-9.]+ \\S+, mean [0-9.]+ \\S+\n.*: [0-9.]+ \\S+, so sharding is [0-9.]+ times as fast");
        QVERIFY2(said.match(QString::fromUtf8(outcome.out)).hasMatch(), outcome.out);
    }
}

void TestRunVerb::deviceMemory()
{
    const QString file = example("megatron_pair.mlir");
    QCOMPARE(run({file, "--device-memory", "1GiB"}).code, 0);
    const Outcome outcome = run({file, "--device-memory", "1KiB"});
    QCOMPARE(outcome.code, 4);
    QVERIFY2(outcome.err.contains("MW1513") && outcome.err.contains("may use 1.00 KiB"), outcome.err);
    QVERIFY(outcome.out.isEmpty());
    QCOMPARE(run({file, "--device-memory", "much"}).code, 2);
}

void TestRunVerb::listed()
{
    const Outcome outcome = tests::runProgram(MESHWRIGHT_PROGRAM, {"list", "examples"});
    QCOMPARE(outcome.code, 0);
    for (const char* file :
        {"fsdp_matmul.mlir", "tensor_parallel_matmul.mlir", "megatron_pair.mlir", "pmap_step.mlir", "spmd_step.mlir"})
        QVERIFY2(outcome.out.contains(file), outcome.out);
    QVERIFY2(outcome.out.contains("A matrix product with weights split over the batch's axis (FSDP)"), outcome.out);
}

MESHWRIGHT_TEST(TestRunVerb)

} // namespace tst_run_verb

#include "tst_run_verb.moc"
