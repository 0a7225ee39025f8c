// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/global_values.h"
#include "core/prove/prove.h"

#include "core/partition/partition.h"
#include "core/text/program_text.h"
#include "tests/core/prove/why_not.h"
#include "tests/core/prove/written_programs.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <QDir>
#include <QFile>

namespace tst_prove {

using namespace meshwright;
using namespace meshwright::tests;

/// Programs that are proved, and what is said of those that are wrong.
class TestProve : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void examplesAreProved_data();
    void examplesAreProved();
    void dimensionsOfOneElement_data();
    void dimensionsOfOneElement();
    void partitionedTextsAreProved_data();
    void partitionedTextsAreProved();
    void writtenProgramsAreProved_data();
    void writtenProgramsAreProved();
    void faultsAreRejected_data();
    void faultsAreRejected();
    void faultyRingsAreRejected_data();
    void faultyRingsAreRejected();
    void programsOfOthersAreRejected();
    void claimsAreNotTrusted();
    void sumsOfManyTerms_data();
    void sumsOfManyTerms();
    void devicesAgreeOnResults_data();
    void devicesAgreeOnResults();
};

namespace {

std::string textOf(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll().toStdString() : std::string();
}

} // namespace

void TestProve::examplesAreProved_data()
{
    QTest::addColumn<QString>("path");
    const QDir examples(QString(MESHWRIGHT_SOURCE_DIR) + "/resources/examples");
    for (const QString& name : examples.entryList({"*.mlir"}, QDir::Files, QDir::Name))
        QTest::newRow(qPrintable(name)) << examples.filePath(name);
}

void TestProve::examplesAreProved()
{
    QFETCH(QString, path);
    const auto program = readProgram(textOf(path), path.toStdString());
    QVERIFY(program);
    if (program->meshes.empty())
        QSKIP("it has no mesh");
    const auto made = propagateAndPartition(*program);
    QVERIFY2(made, made ? "" : made.error().front().message.c_str());
    const Proof proof = prove(made->propagated, made->device);
    QVERIFY2(proof.isProved(), whyNot(proof).c_str());
}

void TestProve::dimensionsOfOneElement_data()
{
    QTest::addColumn<QString>("array");
    QTest::addColumn<QString>("change"); // attributes of the pad, or ranges of the slice
    QTest::addColumn<QString>("made");
    QTest::newRow("sliced") << "4x3"
                            << "[0:4, 1:2]"
                            << "4x1";
    QTest::newRow("cut off on both sides") << "4x3"
                                           << "low = [0, -1], high = [0, -1], interior = [0, 0]"
                                           << "4x1";
    QTest::newRow("cut off in front") << "4x3"
                                      << "low = [0, -2], high = [0, 0], interior = [0, 0]"
                                      << "4x1";
    QTest::newRow("padded and cut off") << "4x3"
                                        << "low = [0, 1], high = [0, -3], interior = [0, 0]"
                                        << "4x1";
    QTest::newRow("one element in place of another") << "4x1"
                                                     << "low = [0, 1], high = [0, -1], interior = [0, 0]"
                                                     << "4x1";
    QTest::newRow("padded from none") << "4x0"
                                      << "low = [0, 1], high = [0, 0], interior = [0, 0]"
                                      << "4x1";
    QTest::newRow("two elements remain") << "4x4"
                                         << "low = [0, -1], high = [0, -1], interior = [0, 0]"
                                         << "4x2";
}

/// An array whose rows are split, with columns that become one: as they are, computed with, and without the dimension.
void TestProve::dimensionsOfOneElement()
{
    QFETCH(QString, array);
    QFETCH(QString, change);
    QFETCH(QString, made);
    const QString from = "tensor<" + array + "xf32>";
    const QString to = "tensor<" + made + "xf32>";
    const QString flat = QString("tensor<%1xf32>").arg(4 * made.section('x', 1).toInt());
    const QString op = change.startsWith('[')
        ? QString("stablehlo.slice %x %1 : (%2) -> %3").arg(change, from, to)
        : QString("stablehlo.pad %x, %z, %1 : (%2, tensor<f32>) -> %3").arg(change, from, to);
    const QString text
        = QString("sdy.mesh @mesh = <[\"d\"=2]>\n"
                  "func.func @main(%x: %1 {sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}, {}]>}) -> (%2, %2, %3) {\n"
                  "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%p = %4\n%n = stablehlo.negate %p : %2\n"
                  "%f = stablehlo.reshape %n : (%2) -> %3\nreturn %p, %n, %f : %2, %2, %3\n}")
              .arg(from, to, flat, op);
    const auto program = readProgram(text.toStdString(), "a.mlir");
    QVERIFY2(program, qPrintable(described(program)));
    const auto partitioned = propagateAndPartition(*program);
    QVERIFY2(partitioned, qPrintable(described(partitioned)));
    const Proof proof = prove(partitioned->propagated, partitioned->device);
    QVERIFY2(proof.isProved(), whyNot(proof).c_str());
}

void TestProve::partitionedTextsAreProved_data()
{
    QTest::addColumn<QString>("size"); ///< of the axis d
    QTest::addColumn<QString>("function"); ///< from its arguments on; ROWS: the sharding of the first dimension of two
    const auto joined = [](const char* array, const char* parts, const char* result, const char* order) {
        const QString to = QString(result) + "x4xf32";
        return QString("(%x: tensor<%1x4xf32> ROWS) -> tensor<%2> {\n%3%r = stablehlo.concatenate %4, dim = 0 : (%5) -> "
                       "tensor<%2>\nreturn %r : tensor<%2>\n}")
            .arg(array, to, parts, QString(order).section(':', 0, 0), QString(order).section(':', 1));
    };
    const auto slice = [](const char* name, int from, int to, int of) {
        return QString("%%1 = stablehlo.slice %x [%2:%3, 0:4] : (tensor<%4x4xf32>) -> tensor<%5x4xf32>\n")
            .arg(name, QString::number(from), QString::number(to), QString::number(of), QString::number(to - from));
    };
    const QByteArray head = slice("h", 0, 2, 6).toLatin1();
    const QByteArray both = head + slice("t", 4, 6, 6).toLatin1();
    QTest::newRow("the first rows again behind the last")
        << "2" << joined("6", head, "8", "%x, %h: tensor<6x4xf32>, tensor<2x4xf32>");
    QTest::newRow("wrapped around at both ends")
        << "2" << joined("6", both, "10", "%t, %x, %h: tensor<2x4xf32>, tensor<6x4xf32>, tensor<2x4xf32>");
    QTest::newRow("both ends again behind the last")
        << "2" << joined("6", both, "10", "%x, %h, %t: tensor<6x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>");
    QTest::newRow("both ends again, on many devices") << "8"
                                                      << joined("8", (slice("h", 0, 3, 8) + slice("t", 5, 8, 8)).toLatin1(), "14",
                                                             "%x, %h, %t: tensor<8x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>");
}

void TestProve::partitionedTextsAreProved()
{
    QFETCH(QString, size);
    QFETCH(QString, function);
    function.replace("ROWS", "{sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}, {}]>}");
    const QString text = "sdy.mesh @mesh = <[\"d\"=" + size + "]>\nfunc.func @main" + function;
    const auto program = readProgram(text.toStdString(), "a.mlir");
    QVERIFY2(program, qPrintable(described(program)));
    const auto partitioned = propagateAndPartition(*program);
    QVERIFY2(partitioned, qPrintable(described(partitioned)));
    const Proof proof = prove(partitioned->propagated, partitioned->device);
    QVERIFY2(proof.isProved(), whyNot(proof).c_str());
}

void TestProve::writtenProgramsAreProved_data()
{
    QTest::addColumn<int>("program");
    QTest::addColumn<int>("fault"); ///< -1: none
    const std::vector<WrittenProgram> programs = writtenPrograms();
    for (std::size_t i = 0; i < programs.size(); ++i) {
        QTest::newRow(programs[i].name) << static_cast<int>(i) << -1;
        for (std::size_t fault = 0; fault < programs[i].faults.size(); ++fault)
            QTest::addRow("%s: %s", programs[i].name, programs[i].faults[fault].name)
                << static_cast<int>(i) << static_cast<int>(fault);
    }
}

/// What is partitioned, written and read again is proved against the program as its author wrote it; and is not with a fault in it.
void TestProve::writtenProgramsAreProved()
{
    QFETCH(int, program);
    QFETCH(int, fault);
    const WrittenProgram row = writtenPrograms()[static_cast<std::size_t>(program)];
    const QString mesh(row.mesh);
    const QString text = (mesh.startsWith("sdy") ? mesh : "sdy.mesh @mesh = <[" + mesh + "]>\n") + "func.func @main"
        + row.signature + " {\n" + row.ops + "\n}";
    const auto source = readProgram(text.toStdString(), "a.mlir");
    QVERIFY2(source, qPrintable(described(source)));
    const auto partitioned = propagateAndPartition(*source);
    QVERIFY2(partitioned, qPrintable(described(partitioned)));
    const DeviceStage& stage = partitioned->device.stages.front();
    QString written
        = QString::fromStdString(writeProgram({stage.meshes, {stage.functions.front().function}, {}, {}, {}, {}, {}}));
    if (fault >= 0) {
        const WrittenFault& planted = row.faults[static_cast<std::size_t>(fault)];
        QVERIFY2(written.contains(planted.right), qPrintable(written));
        written.replace(planted.right, planted.wrong);
    }
    auto device = readProgram(written.toStdString(), "device.mlir");
    QVERIFY2(device, qPrintable(described(device) + written));
    const auto whole = asPartitioned(*source, *device);
    QVERIFY2(whole, qPrintable(described(whole)));
    const Proof proof = prove(*whole, deviceProgramOf(*std::move(device)));
    QVERIFY2(proof.isProved() == (fault < 0), qPrintable(QString::fromStdString(whyNot(proof)) + written));
}

namespace {

/// A program, how devices compute it, and a fault that a parallel implementation of it had: a line of the device program in place of another.
struct FaultyPair {
    const char* name;
    const char* signature; ///< arguments and results of the source
    const char* source; ///< its ops
    const char* localSignature; ///< the same of one device
    const char* device;
    const char* right; ///< a part of `device`, and ..
    const char* wrong; ///< .. what stands in its place
    const char* op; ///< that the message names; empty: the result
    const char* mesh = "\"d\"=2, \"t\"=2";
    const char* wrongSignature = nullptr; ///< of the wrong device program, where it is another one
};

#define S(dims) "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [" dims "]>]>}"
#define A(dims) "{sdy.sharding = #sdy.sharding<@mesh, [" dims "]>}"

#define ZERO "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
#define SUM(of, dims, from, to)                                                                                                  \
    "stablehlo.reduce(" of " init: %z) applies stablehlo.add across dimensions = [" dims "] : (tensor<" from                     \
    "xf32>, tensor<f32>) -> "                                                                                                    \
    "tensor<" to "f32>\n"
#define ROWS(a, b, typeA, typeB, to)                                                                                             \
    "stablehlo.dot_general " a ", " b ", contracting_dims = [0] x [0] : (tensor<" typeA "xf32>, tensor<" typeB                   \
    "xf32>) -> tensor<" to "xf32>\n"

// The faults are those of published issues of Megatron-LM, DeepSpeed, torchtitan, nnScaler and JAX, in small programs of our own.
#define SCATTERED(to, from, layout)                                                                                              \
    "%0 = \"stablehlo.scatter\"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], "         \
    "input_batching_dims = [1], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = "    \
    "2>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%s = stablehlo.add %a, %b : tensor<f32>\n"                                \
    "stablehlo.return %s : tensor<f32>\n}) " layout " : (tensor<" to "xf32>, tensor<" from "xi32>, tensor<" from "xf32>) -> "    \
    "tensor<" to "xf32>\nreturn %0 : tensor<" to "xf32>"

constexpr FaultyPair kPairs[] = {
    {"row-parallel product that is not reduced",
        "(%x: tensor<8x16xf32> " A("{}, {\"t\"}") ", %w: tensor<16x4xf32> " A("{\"t\"}, {}") ") -> (tensor<8x4xf32> " A(
            "{}, {}") ")",
        "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> "
        "tensor<8x4xf32>\n"
        "return %0 : tensor<8x4xf32>",
        "(%x: tensor<8x8xf32> " A("{}, {\"t\"}") ", %w: tensor<8x4xf32> " A("{\"t\"}, {}") ") -> (tensor<8x4xf32> " A(
            "{}, {}") ")",
        "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x4xf32>) -> "
        "tensor<8x4xf32>\n"
        "%1 = sdy.all_reduce {\"t\"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>\n"
        "return %1 : tensor<8x4xf32>",
        "return %1", "return %0", "dot_general"},
    {"row-parallel product that is reduced over the data axis",
        "(%x: tensor<8x16xf32> " A("{}, {\"t\"}") ", %w: tensor<16x4xf32> " A("{\"t\"}, {}") ") -> (tensor<8x4xf32> " A(
            "{}, {}") ")",
        "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> "
        "tensor<8x4xf32>\n"
        "return %0 : tensor<8x4xf32>",
        "(%x: tensor<8x8xf32> " A("{}, {\"t\"}") ", %w: tensor<8x4xf32> " A("{\"t\"}, {}") ") -> (tensor<8x4xf32> " A(
            "{}, {}") ")",
        "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x4xf32>) -> "
        "tensor<8x4xf32>\n"
        "%1 = sdy.all_reduce {\"t\"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>\n"
        "return %1 : tensor<8x4xf32>",
        "sdy.all_reduce {\"t\"}", "sdy.all_reduce {\"d\"}", "all_reduce"},
    {"bias that every rank adds before the reduction",
        "(%x: tensor<8x16xf32> " A("{}, {\"t\"}") ", %w: tensor<16x4xf32> " A("{\"t\"}, {}") ", %b: tensor<8x4xf32> " A(
            "{}, {}") ") -> (tensor<8x4xf32> " A("{}, {}") ")",
        "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> "
        "tensor<8x4xf32>\n"
        "%1 = stablehlo.add %0, %b : tensor<8x4xf32>\n"
        "return %1 : tensor<8x4xf32>",
        "(%x: tensor<8x8xf32> " A("{}, {\"t\"}") ", %w: tensor<8x4xf32> " A("{\"t\"}, {}") ", %b: tensor<8x4xf32> " A(
            "{}, {}") ") -> (tensor<8x4xf32> " A("{}, {}") ")",
        "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x4xf32>) -> "
        "tensor<8x4xf32>\n"
        "%1 = sdy.all_reduce {\"t\"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>\n%2 = stablehlo.add %1, %b : "
        "tensor<8x4xf32>\n"
        "return %2 : tensor<8x4xf32>",
        "%1 = sdy.all_reduce {\"t\"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>\n%2 = stablehlo.add %1, %b : "
        "tensor<8x4xf32>\n",
        "%1 = stablehlo.add %0, %b : tensor<8x4xf32>\n%2 = sdy.all_reduce {\"t\"} %1 out_sharding=<@mesh, [{}, {}]> : "
        "tensor<8x4xf32>\n",
        "add"},
    {"residual that comes back from the host for another one",
        "(%x: tensor<8x4xf32> " A("{\"t\"}, {}") ", %y: tensor<8x4xf32> " A("{\"t\"}, {}") ") -> (tensor<8x4xf32> " A(
            "{\"t\"}, {}") ")",
        "%0 = stablehlo.custom_call @MoveToHost(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>\n"
        "%1 = stablehlo.custom_call @MoveToHost(%y) : (tensor<8x4xf32>) -> tensor<8x4xf32>\n"
        "%2 = stablehlo.custom_call @MoveToDevice(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>\n"
        "%3 = stablehlo.add %2, %y : tensor<8x4xf32>\n"
        "return %3 : tensor<8x4xf32>",
        "(%x: tensor<4x4xf32> " A("{\"t\"}, {}") ", %y: tensor<4x4xf32> " A("{\"t\"}, {}") ") -> (tensor<4x4xf32> " A(
            "{\"t\"}, {}") ")",
        "%0 = stablehlo.custom_call @MoveToHost(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>\n"
        "%1 = stablehlo.custom_call @MoveToHost(%y) : (tensor<4x4xf32>) -> tensor<4x4xf32>\n"
        "%2 = stablehlo.custom_call @MoveToDevice(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>\n"
        "%3 = stablehlo.add %2, %y " S("{\"t\"}, {}") " : tensor<4x4xf32>\n"
                                                      "return %3 : tensor<4x4xf32>",
        "@MoveToDevice(%0)", "@MoveToDevice(%1)", ""},
    {"gradient of a norm's scale that is not reduced over the ranks that split the sequence",
        "(%g: tensor<8x16xf32> " A("{\"t\"}, {}") ") -> (tensor<16xf32> " A("{}") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%g init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x16xf32>, tensor<f32>) -> "
        "tensor<16xf32>\n"
        "return %0 : tensor<16xf32>",
        "(%g: tensor<4x16xf32> " A("{\"t\"}, {}") ") -> (tensor<16xf32> " A("{}") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%g init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x16xf32>, tensor<f32>) -> "
        "tensor<16xf32>\n"
        "%1 = sdy.all_reduce {\"t\"} %0 out_sharding=<@mesh, [{}]> : tensor<16xf32>\n"
        "return %1 : tensor<16xf32>",
        "return %1", "return %0", "reduce"},
    {"gradient that is summed twice under context parallelism",
        "(%g: tensor<8x16xf32> " A("{\"t\"}, {}") ") -> (tensor<16xf32> " A("{}") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%g init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x16xf32>, tensor<f32>) -> "
        "tensor<16xf32>\n"
        "return %0 : tensor<16xf32>",
        "(%g: tensor<4x16xf32> " A("{\"t\"}, {}") ") -> (tensor<16xf32> " A("{}") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%g init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x16xf32>, tensor<f32>) -> "
        "tensor<16xf32>\n"
        "%1 = sdy.all_reduce {\"t\"} %0 out_sharding=<@mesh, [{}]> : tensor<16xf32>\n"
        "return %1 : tensor<16xf32>",
        "return %1", "%2 = sdy.all_reduce {\"t\"} %1 out_sharding=<@mesh, [{}]> : tensor<16xf32>\nreturn %2", "all_reduce"},
    {"rows of a rotary table that every rank takes from the beginning",
        "(%table: tensor<8x4xf32> " A("{}, {}") ") -> (tensor<8x4xf32> " A("{\"t\"}, {}") ")",
        "%0 = stablehlo.cosine %table : tensor<8x4xf32>\nreturn %0 : tensor<8x4xf32>",
        "(%table: tensor<8x4xf32> " A("{}, {}") ") -> (tensor<4x4xf32> " A("{\"t\"}, {}") ")",
        "%0 = sdy.all_slice [{\"t\"}, {}] %table out_sharding=<@mesh, [{\"t\"}, {}]> : (tensor<8x4xf32>) -> tensor<4x4xf32>\n"
        "%1 = stablehlo.cosine %0 " S("{\"t\"}, {}") " : tensor<4x4xf32>\nreturn %1 : tensor<4x4xf32>",
        "sdy.all_slice [{\"t\"}, {}] %table out_sharding=<@mesh, [{\"t\"}, {}]> : (tensor<8x4xf32>) -> tensor<4x4xf32>",
        "stablehlo.slice %table [0:4, 0:4] " S("{\"t\"}, {}") " : (tensor<8x4xf32>) -> tensor<4x4xf32>", "slice"},
    {"random bits of a piece of the state", "(%k: tensor<2xui64> " A("{\"t\"}") ") -> (tensor<4xui32> " A("{}") ")",
        "%n, %b = stablehlo.rng_bit_generator %k, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)\n"
        "return %b : tensor<4xui32>",
        "(%k: tensor<1xui64> " A("{\"t\"}") ") -> (tensor<4xui32> " A("{}") ")",
        "%0 = sdy.all_gather [{\"t\"}] %k out_sharding=<@mesh, [{}]> : (tensor<1xui64>) -> tensor<2xui64>\n"
        "%n, %b = stablehlo.rng_bit_generator %0, algorithm = THREE_FRY {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>, "
        "<@mesh, [{}]>]>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)\nreturn %b : tensor<4xui32>",
        "%0, algorithm = THREE_FRY {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{}]>]>} : (tensor<2xui64>) "
        "-> "
        "(tensor<2xui64>,",
        "%k, algorithm = THREE_FRY {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"t\"}]>, <@mesh, [{}]>]>} : "
        "(tensor<1xui64>) "
        "-> (tensor<1xui64>,",
        "stablehlo.rng_bit_generator"},
    {"result that is split over another axis than it is declared",
        "(%x: tensor<8xf32> " A("{}") ") -> (tensor<8xf32> " A("{\"t\"}") ")",
        "%0 = stablehlo.cosine %x : tensor<8xf32>\nreturn %0 : tensor<8xf32>",
        "(%x: tensor<8xf32> " A("{}") ") -> (tensor<4xf32> " A("{\"t\"}") ")",
        "%0 = sdy.all_slice [{\"t\"}] %x out_sharding=<@mesh, [{\"t\"}]> : (tensor<8xf32>) -> tensor<4xf32>\n"
        "%1 = stablehlo.cosine %0 " S("{\"t\"}") " : tensor<4xf32>\nreturn %1 : tensor<4xf32>",
        "[{\"t\"}] %x out_sharding=<@mesh, [{\"t\"}]> : (tensor<8xf32>) -> tensor<4xf32>\n%1 = stablehlo.cosine %0 " S("{\"t\"}"),
        "[{\"d\"}] %x out_sharding=<@mesh, [{\"d\"}]> : (tensor<8xf32>) -> tensor<4xf32>\n%1 = stablehlo.cosine %0 " S("{\"d\"}"),
        ""},
    {"loss of a microbatch that is averaged twice", "(%l: tensor<8xf32> " A("{\"d\"}") ") -> (tensor<f32> " A("") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%n = stablehlo.constant dense<8.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> "
        "tensor<f32>\n"
        "%1 = stablehlo.divide %0, %n : tensor<f32>\nreturn %1 : tensor<f32>",
        "(%l: tensor<4xf32> " A("{\"d\"}") ") -> (tensor<f32> " A("") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%n = stablehlo.constant dense<8.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> "
        "tensor<f32>\n"
        "%1 = stablehlo.divide %0, %n : tensor<f32>\n%2 = sdy.all_reduce {\"d\"} %1 out_sharding=<@mesh, []> : tensor<f32>\n"
        "return %2 : tensor<f32>",
        "return %2", "%3 = stablehlo.divide %2, %n : tensor<f32>\nreturn %3", "divide"},
    {"loss that is divided by the tokens of one rank", "(%l: tensor<8xf32> " A("{\"d\"}") ") -> (tensor<f32> " A("") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%n = stablehlo.constant dense<8.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> "
        "tensor<f32>\n"
        "%1 = stablehlo.divide %0, %n : tensor<f32>\nreturn %1 : tensor<f32>",
        "(%l: tensor<4xf32> " A("{\"d\"}") ") -> (tensor<f32> " A("") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%n = stablehlo.constant dense<8.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> "
        "tensor<f32>\n"
        "%1 = stablehlo.divide %0, %n : tensor<f32>\n%2 = sdy.all_reduce {\"d\"} %1 out_sharding=<@mesh, []> : tensor<f32>\n"
        "return %2 : tensor<f32>",
        "dense<8.0>", "dense<4.0>", "divide"},
    {"maximum over a split vocabulary that is a sum of maxima",
        "(%l: tensor<8x16xf32> " A("{}, {\"t\"}") ") -> (tensor<8xf32> " A("{}") ")",
        "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) "
        "-> tensor<8xf32>\n"
        "return %0 : tensor<8xf32>",
        "(%l: tensor<8x8xf32> " A("{}, {\"t\"}") ") -> (tensor<8xf32> " A("{}") ")",
        "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) "
        "-> tensor<8xf32>\n"
        "%1 = sdy.all_reduce max {\"t\"} %0 out_sharding=<@mesh, [{}]> : tensor<8xf32>\nreturn %1 : tensor<8xf32>",
        "sdy.all_reduce max", "sdy.all_reduce", "all_reduce"},
    {"maximum that is rounded before devices combine theirs, and combined wrongly",
        "(%l: tensor<8x16xf32> " A("{}, {\"t\"}") ") -> (tensor<8xbf16> " A("{}") ")",
        "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) "
        "-> tensor<8xf32>\n"
        "%1 = stablehlo.convert %0 : (tensor<8xf32>) -> tensor<8xbf16>\nreturn %1 : tensor<8xbf16>",
        "(%l: tensor<8x8xf32> " A("{}, {\"t\"}") ") -> (tensor<8xbf16> " A("{}") ")",
        "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) "
        "-> tensor<8xf32>\n"
        "%1 = stablehlo.convert %0 : (tensor<8xf32>) -> tensor<8xbf16>\n"
        "%2 = sdy.all_reduce max {\"t\"} %1 out_sharding=<@mesh, [{}]> : tensor<8xbf16>\nreturn %2 : tensor<8xbf16>",
        "sdy.all_reduce max", "sdy.all_reduce", "all_reduce"},
    {"maximum that is rounded to a type without infinities before devices combine theirs",
        "(%l: tensor<8x16xf32> " A("{}, {\"t\"}") ") -> (tensor<8xf8E4M3FN> " A("{}") ")",
        "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) "
        "-> tensor<8xf32>\n"
        "%1 = stablehlo.convert %0 : (tensor<8xf32>) -> tensor<8xf8E4M3FN>\nreturn %1 : tensor<8xf8E4M3FN>",
        "(%l: tensor<8x8xf32> " A("{}, {\"t\"}") ") -> (tensor<8xf8E4M3FN> " A("{}") ")",
        "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) "
        "-> tensor<8xf32>\n"
        "%1 = sdy.all_reduce max {\"t\"} %0 out_sharding=<@mesh, [{}]> : tensor<8xf32>\n"
        "%2 = stablehlo.convert %1 : (tensor<8xf32>) -> tensor<8xf8E4M3FN>\nreturn %2 : tensor<8xf8E4M3FN>",
        "%1 = sdy.all_reduce max {\"t\"} %0 out_sharding=<@mesh, [{}]> : tensor<8xf32>\n"
        "%2 = stablehlo.convert %1 : (tensor<8xf32>) -> tensor<8xf8E4M3FN>\n",
        "%1 = stablehlo.convert %0 : (tensor<8xf32>) -> tensor<8xf8E4M3FN>\n"
        "%2 = sdy.all_reduce max {\"t\"} %1 out_sharding=<@mesh, [{}]> : tensor<8xf8E4M3FN>\n",
        "convert"},
    {"norm of clipped gradients: square roots of parts are summed",
        "(%g: tensor<16xf32> " A("{\"t\"}") ") -> (tensor<f32> " A("") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%0 = stablehlo.multiply %g, %g : tensor<16xf32>\n"
        "%1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> "
        "tensor<f32>\n"
        "%2 = stablehlo.sqrt %1 : tensor<f32>\nreturn %2 : tensor<f32>",
        "(%g: tensor<8xf32> " A("{\"t\"}") ") -> (tensor<f32> " A("") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%0 = stablehlo.multiply %g, %g " S(
            "{\"t\"}") " : tensor<8xf32>\n"
                       "%1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, "
                       "tensor<f32>) -> tensor<f32>\n"
                       "%2 = sdy.all_reduce {\"t\"} %1 out_sharding=<@mesh, []> : tensor<f32>\n%3 = stablehlo.sqrt %2 : "
                       "tensor<f32>\nreturn %3 : tensor<f32>",
        "%2 = sdy.all_reduce {\"t\"} %1 out_sharding=<@mesh, []> : tensor<f32>\n%3 = stablehlo.sqrt %2 : tensor<f32>",
        "%2 = stablehlo.sqrt %1 : tensor<f32>\n%3 = sdy.all_reduce {\"t\"} %2 out_sharding=<@mesh, []> : tensor<f32>", "sqrt"},
    {"gathered columns that are taken for rows",
        "(%w: tensor<4x4xf32> " A("{}, {\"t\"}") ") -> (tensor<4x4xf32> " A("{}, {}") ")",
        "%0 = stablehlo.negate %w : tensor<4x4xf32>\nreturn %0 : tensor<4x4xf32>",
        "(%w: tensor<4x2xf32> " A("{}, {\"t\"}") ") -> (tensor<4x4xf32> " A("{}, {}") ")",
        "%0 = sdy.all_gather [{}, {\"t\"}] %w out_sharding=<@mesh, [{}, {}]> : (tensor<4x2xf32>) -> tensor<4x4xf32>\n"
        "%1 = stablehlo.negate %0 : tensor<4x4xf32>\nreturn %1 : tensor<4x4xf32>",
        "%1 = stablehlo.negate %0 : tensor<4x4xf32>",
        "%2 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>\n%1 = stablehlo.negate %2 : "
        "tensor<4x4xf32>",
        ""},
    {"update of the weights by the wrong sign",
        "(%w: tensor<8xf32> " A("{\"d\"}") ", %g: tensor<8xf32> " A("{\"d\"}") ") -> (tensor<8xf32> " A("{\"d\"}") ")",
        "%0 = stablehlo.subtract %w, %g : tensor<8xf32>\nreturn %0 : tensor<8xf32>",
        "(%w: tensor<4xf32> " A("{\"d\"}") ", %g: tensor<4xf32> " A("{\"d\"}") ") -> (tensor<4xf32> " A("{\"d\"}") ")",
        "%0 = stablehlo.subtract %w, %g " S("{\"d\"}") " : tensor<4xf32>\nreturn %0 : tensor<4xf32>", "%w, %g " S("{\"d\"}"),
        "%g, %w " S("{\"d\"}"), "subtract"},
    {"auxiliary loss of a router: means of each rank are multiplied before they are summed",
        "(%f: tensor<8x4xf32> " A("{\"t\"}, {}") ", %p: tensor<8x4xf32> " A("{\"t\"}, {}") ") -> (tensor<f32> " A("") ")",
        ZERO "%0 = " SUM("%f", "0", "8x4", "4x") "%1 = " SUM("%p", "0", "8x4",
            "4x") "%2 = stablehlo.multiply %0, %1 : tensor<4xf32>\n%3 = " SUM("%2", "0", "4", "") "return %3 : tensor<f32>",
        "(%f: tensor<4x4xf32> " A("{\"t\"}, {}") ", %p: tensor<4x4xf32> " A("{\"t\"}, {}") ") -> (tensor<f32> " A("") ")",
        ZERO "%0 = " SUM("%f", "0", "4x4", "4x") "%1 = " SUM("%p", "0", "4x4",
            "4x") "%2 = sdy.all_reduce {\"t\"} %0 out_sharding=<@mesh, [{}]> : tensor<4xf32>\n"
                  "%3 = sdy.all_reduce {\"t\"} %1 out_sharding=<@mesh, [{}]> : tensor<4xf32>\n"
                  "%4 = stablehlo.multiply %2, %3 : tensor<4xf32>\n%5 = " SUM("%4", "0", "4", "") "return %5 : tensor<f32>",
        "%4 = stablehlo.multiply %2, %3 : tensor<4xf32>\n",
        "%6 = stablehlo.multiply %0, %1 : tensor<4xf32>\n%4 = sdy.all_reduce {\"t\"} %6 out_sharding=<@mesh, [{}]> : "
        "tensor<4xf32>\n",
        "multiply"},
    {"gradients of a tied table: only one of the two uses is summed over the ranks",
        "(%x: tensor<8x4xf32> " A("{\"d\"}, {}") ", %g: tensor<8x6xf32> " A("{\"d\"}, {}") ", %y: tensor<8x4xf32> " A(
            "{\"d\"}, {}") ", %h: tensor<8x6xf32> " A("{\"d\"}, {}") ") -> (tensor<4x6xf32> " A("{}, {}") ")",
        "%0 = " ROWS("%x", "%g", "8x4", "8x6", "4x6") "%1 = " ROWS(
            "%y", "%h", "8x4", "8x6", "4x6") "%2 = stablehlo.add %0, %1 : tensor<4x6xf32>\nreturn %2 : tensor<4x6xf32>",
        "(%x: tensor<4x4xf32> " A("{\"d\"}, {}") ", %g: tensor<4x6xf32> " A("{\"d\"}, {}") ", %y: tensor<4x4xf32> " A(
            "{\"d\"}, {}") ", %h: tensor<4x6xf32> " A("{\"d\"}, {}") ") -> (tensor<4x6xf32> " A("{}, {}") ")",
        "%0 = " ROWS("%x", "%g", "4x4", "4x6", "4x6") "%1 = " ROWS(
            "%y", "%h", "4x4", "4x6", "4x6") "%2 = sdy.all_reduce {\"d\"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<4x6xf32>\n"
                                             "%3 = sdy.all_reduce {\"d\"} %1 out_sharding=<@mesh, [{}, {}]> : tensor<4x6xf32>\n"
                                             "%4 = stablehlo.add %2, %3 : tensor<4x6xf32>\nreturn %4 : tensor<4x6xf32>",
        "add %2, %3", "add %2, %1", "add"},
    {"norm of gradients that counts what every rank has once a rank",
        "(%w: tensor<16xf32> " A("{\"t\"}") ", %b: tensor<4xf32> " A("{}") ") -> (tensor<f32> " A("") ")",
        ZERO "%0 = stablehlo.multiply %w, %w : tensor<16xf32>\n%1 = " SUM(
            "%0", "0", "16", "") "%2 = stablehlo.multiply %b, %b : tensor<4xf32>\n%3 = " SUM("%2", "0", "4",
            "") "%4 = stablehlo.add %1, %3 : tensor<f32>\nreturn %4 : tensor<f32>",
        "(%w: tensor<8xf32> " A("{\"t\"}") ", %b: tensor<4xf32> " A("{}") ") -> (tensor<f32> " A("") ")",
        ZERO "%0 = stablehlo.multiply %w, %w " S("{\"t\"}") " : tensor<8xf32>\n%1 = " SUM(
            "%0", "0", "8", "") "%2 = stablehlo.multiply %b, %b : tensor<4xf32>\n%3 = " SUM("%2", "0", "4",
            "") "%4 = sdy.all_reduce {\"t\"} %1 out_sharding=<@mesh, []> : tensor<f32>\n"
                "%5 = stablehlo.add %4, %3 : tensor<f32>\nreturn %5 : tensor<f32>",
        "%4 = sdy.all_reduce {\"t\"} %1 out_sharding=<@mesh, []> : tensor<f32>\n%5 = stablehlo.add %4, %3 : tensor<f32>\n",
        "%4 = stablehlo.add %1, %3 : tensor<f32>\n%5 = sdy.all_reduce {\"t\"} %4 out_sharding=<@mesh, []> : tensor<f32>\n",
        "add"},
    {"norm of gradients that misses the shards of the other ranks",
        "(%g: tensor<16xf32> " A("{\"t\"}") ") -> (tensor<f32> " A("") ")",
        ZERO "%0 = stablehlo.multiply %g, %g : tensor<16xf32>\n%1 = " SUM(
            "%0", "0", "16", "") "%2 = stablehlo.sqrt %1 : tensor<f32>\nreturn %2 : tensor<f32>",
        "(%g: tensor<8xf32> " A("{\"t\"}") ") -> (tensor<f32> " A("") ")",
        ZERO "%0 = stablehlo.multiply %g, %g " S("{\"t\"}") " : tensor<8xf32>\n%1 = " SUM("%0", "0", "8",
            "") "%2 = sdy.all_reduce {\"t\"} %1 out_sharding=<@mesh, []> : tensor<f32>\n%3 = stablehlo.sqrt %2 : tensor<f32>\n"
                "return %3 : tensor<f32>",
        "sqrt %2", "sqrt %1", "sqrt"},
    {"bias that every rank adds before the sums are scattered along the sequence",
        "(%x: tensor<8x16xf32> " A("{}, {\"t\"}") ", %w: tensor<16x4xf32> " A("{\"t\"}, {}") ", %b: tensor<8x4xf32> " A(
            "{}, {}") ") -> (tensor<8x4xf32> " A("{\"t\"}, {}") ")",
        "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> "
        "tensor<8x4xf32>\n%1 = stablehlo.add %0, %b : tensor<8x4xf32>\nreturn %1 : tensor<8x4xf32>",
        "(%x: tensor<8x8xf32> " A("{}, {\"t\"}") ", %w: tensor<8x4xf32> " A("{\"t\"}, {}") ", %b: tensor<8x4xf32> " A(
            "{}, {}") ") -> (tensor<4x4xf32> " A("{\"t\"}, {}") ")",
        "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x4xf32>) -> "
        "tensor<8x4xf32>\n"
        "%1 = sdy.reduce_scatter [{\"t\"}, {}] %0 out_sharding=<@mesh, [{\"t\"}, {}]> : (tensor<8x4xf32>) -> tensor<4x4xf32>\n"
        "%2 = sdy.all_slice [{\"t\"}, {}] %b out_sharding=<@mesh, [{\"t\"}, {}]> : (tensor<8x4xf32>) -> tensor<4x4xf32>\n"
        "%3 = stablehlo.add %1, %2 " S("{\"t\"}, {}") " : tensor<4x4xf32>\nreturn %3 : tensor<4x4xf32>",
        "%1 = sdy.reduce_scatter [{\"t\"}, {}] %0 out_sharding=<@mesh, [{\"t\"}, {}]> : (tensor<8x4xf32>) -> tensor<4x4xf32>\n"
        "%2 = sdy.all_slice [{\"t\"}, {}] %b out_sharding=<@mesh, [{\"t\"}, {}]> : (tensor<8x4xf32>) -> tensor<4x4xf32>\n"
        "%3 = stablehlo.add %1, %2 " S("{\"t\"}, {}") " : tensor<4x4xf32>\n",
        "%1 = stablehlo.add %0, %b : tensor<8x4xf32>\n"
        "%3 = sdy.reduce_scatter [{\"t\"}, {}] %1 out_sharding=<@mesh, [{\"t\"}, {}]> : (tensor<8x4xf32>) -> tensor<4x4xf32>\n",
        "add"},
    {"padded vocabulary: every rank masks by numbers that it counts from zero",
        "(%l: tensor<8x12xf32> " A("{}, {\"t\"}") ") -> (tensor<8x12xf32> " A("{}, {\"t\"}") ")",
        "%i = stablehlo.iota dim = 1 : tensor<8x12xi32>\n%n = stablehlo.constant dense<10> : tensor<8x12xi32>\n"
        "%m = stablehlo.constant dense<0xFF800000> : tensor<8x12xf32>\n"
        "%0 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<8x12xi32>, tensor<8x12xi32>) -> tensor<8x12xi1>\n"
        "%1 = stablehlo.select %0, %l, %m : tensor<8x12xi1>, tensor<8x12xf32>\nreturn %1 : tensor<8x12xf32>",
        "(%l: tensor<8x6xf32> " A("{}, {\"t\"}") ") -> (tensor<8x6xf32> " A("{}, {\"t\"}") ")",
        "%i = stablehlo.iota dim = 1 " S(
            "{}, {\"t\"}") " : tensor<8x6xi32>\n%n = stablehlo.constant dense<10> : tensor<8x6xi32>\n"
                           "%m = stablehlo.constant dense<0xFF800000> : tensor<8x6xf32>\n"
                           "%0 = stablehlo.compare LT, %i, %n, SIGNED " S(
                               "{}, {\"t\"}") " : (tensor<8x6xi32>, tensor<8x6xi32>) -> tensor<8x6xi1>\n"
                                              "%1 = stablehlo.select %0, %l, %m " S(
                                                  "{}, {\"t\"}") " : tensor<8x6xi1>, tensor<8x6xf32>\nreturn %1 : "
                                                                 "tensor<8x6xf32>",
        "iota dim = 1 " S("{}, {\"t\"}"), "iota dim = 1 " S("{}, {}"), ""},
    {"gathered weights in the wrong order of ranks",
        "(%w: tensor<8x4xf32> " A("{\"d\", \"t\"}, {}") ") -> (tensor<8x4xf32> " A("{}, {}") ")",
        "%0 = stablehlo.negate %w : tensor<8x4xf32>\nreturn %0 : tensor<8x4xf32>",
        "(%w: tensor<2x4xf32> " A("{\"d\", \"t\"}, {}") ") -> (tensor<8x4xf32> " A("{}, {}") ")",
        "%0 = sdy.collective_permute %w out_sharding=<@mesh, [{\"t\", \"d\"}, {}]> {mw.axes = #sdy<axis_ref_list{\"d\", \"t\"}>, "
        "mw.sources = array<i64: 0, 2, 1, 3>} : tensor<2x4xf32>\n"
        "%1 = sdy.all_gather [{\"t\", \"d\"}, {}] %0 out_sharding=<@mesh, [{}, {}]> : (tensor<2x4xf32>) -> tensor<8x4xf32>\n"
        "%2 = stablehlo.negate %1 : tensor<8x4xf32>\nreturn %2 : tensor<8x4xf32>",
        "0, 2, 1, 3", "0, 1, 2, 3", "collective_permute"},
    {"updates of a scatter in another order of ranks than its batch",
        "(%x: tensor<3x8xf32> " A("{}, {\"d\", \"t\"}") ") -> (tensor<3x8xf32> " A("{}, {\"d\", \"t\"}") ")",
        "%i = stablehlo.constant dense<1> : tensor<8x4x1xi32>\n%u = stablehlo.iota dim = 0 : tensor<8x4x1xf32>\n" //
        SCATTERED("3x8", "8x4x1", ""),
        "(%x: tensor<3x2xf32> " A("{}, {\"d\", \"t\"}") ") -> (tensor<3x2xf32> " A("{}, {\"d\", \"t\"}") ")",
        "%i = stablehlo.constant dense<1> : tensor<2x4x1xi32>\n"
        "%u = stablehlo.iota dim = 0 " S("{\"d\", \"t\"}, {}, {}") " : tensor<2x4x1xf32>\n" //
        SCATTERED("3x2", "2x4x1", S("{}, {\"d\", \"t\"}")),
        S("{\"d\", \"t\"}, {}, {}"), S("{\"t\", \"d\"}, {}, {}"), "scatter"},
    {"query rows of a fused projection that are cut from each rank's own rows",
        "(%w: tensor<12x4xf32> " A("{\"t\"}, {}") ") -> (tensor<4x4xf32> " A("{\"t\"}, {}") ")",
        "%0 = stablehlo.slice %w [0:4, 0:4] : (tensor<12x4xf32>) -> tensor<4x4xf32>\nreturn %0 : tensor<4x4xf32>",
        "(%w: tensor<6x4xf32> " A("{\"t\"}, {}") ") -> (tensor<2x4xf32> " A("{\"t\"}, {}") ")",
        "%0 = sdy.all_gather [{\"t\"}, {}] %w out_sharding=<@mesh, [{}, {}]> : (tensor<6x4xf32>) -> tensor<12x4xf32>\n"
        "%1 = stablehlo.slice %0 [0:4, 0:4] : (tensor<12x4xf32>) -> tensor<4x4xf32>\n"
        "%2 = sdy.all_slice [{\"t\"}, {}] %1 out_sharding=<@mesh, [{\"t\"}, {}]> : (tensor<4x4xf32>) -> tensor<2x4xf32>\n"
        "return %2 : tensor<2x4xf32>",
        "%2 = sdy.all_slice [{\"t\"}, {}] %1 out_sharding=<@mesh, [{\"t\"}, {}]> : (tensor<4x4xf32>) -> tensor<2x4xf32>\n",
        "%2 = stablehlo.slice %w [0:2, 0:4] " S("{\"t\"}, {}") " : (tensor<6x4xf32>) -> tensor<2x4xf32>\n", "slice"},
    {"softmax over a split dimension by each rank's own sum",
        "(%e: tensor<8x16xf32> " A("{}, {\"t\"}") ") -> (tensor<8x16xf32> " A("{}, {\"t\"}") ")",
        ZERO "%0 = " SUM("%e", "1", "8x16",
            "8x") "%1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<8xf32>) -> "
                  "tensor<8x16xf32>\n%2 = stablehlo.divide %e, %1 : tensor<8x16xf32>\nreturn %2 : tensor<8x16xf32>",
        "(%e: tensor<8x8xf32> " A("{}, {\"t\"}") ") -> (tensor<8x8xf32> " A("{}, {\"t\"}") ")",
        ZERO "%0 = " SUM(
            "%e", "1", "8x8", "8x") "%1 = sdy.all_reduce {\"t\"} %0 out_sharding=<@mesh, [{}]> : tensor<8xf32>\n"
                                    "%2 = stablehlo.broadcast_in_dim %1, dims = [0] " S(
                                        "{}, {\"t\"}") " : (tensor<8xf32>) -> tensor<8x8xf32>\n"
                                                       "%3 = stablehlo.divide %e, %2 " S(
                                                           "{}, {\"t\"}") " : tensor<8x8xf32>\nreturn %3 : tensor<8x8xf32>",
        "broadcast_in_dim %1", "broadcast_in_dim %0", "divide"},
    {"gradients of experts that are divided by ranks which have other experts",
        "(%x: tensor<2x8x4xf32> " A("{\"t\"}, {\"d\"}, {}") ", %n: tensor<2x4xf32> " A("{}, {}") ") -> (tensor<2x4xf32> " A(
            "{\"t\"}, {}") ")",
        ZERO "%c = stablehlo.constant dense<8.0> : tensor<2x4xf32>\n%0 = " SUM(
            "%x", "1", "2x8x4", "2x4x") "%1 = stablehlo.divide %0, %c : tensor<2x4xf32>\nreturn %1 : tensor<2x4xf32>",
        "(%x: tensor<1x4x4xf32> " A("{\"t\"}, {\"d\"}, {}") ", %n: tensor<2x4xf32> " A("{}, {}") ") -> (tensor<1x4xf32> " A(
            "{\"t\"}, {}") ")",
        ZERO
        "%c = stablehlo.constant dense<8.0> : tensor<1x4xf32>\n"
        "%0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] " S(
            "{\"t\"}, {}") " : "
                           "(tensor<1x4x4xf32>, tensor<f32>) -> tensor<1x4xf32>\n"
                           "%1 = sdy.all_reduce {\"d\"} %0 out_sharding=<@mesh, [{\"t\"}, {}]> : tensor<1x4xf32>\n"
                           "%2 = stablehlo.divide %1, %c " S("{\"t\"}, {}") " : tensor<1x4xf32>\nreturn %2 : tensor<1x4xf32>",
        "dense<8.0>", "dense<16.0>", "divide"},
    {"momentum that takes in gradients before they are summed",
        "(%m: tensor<4xf32> " A("{}") ", %g: tensor<8x4xf32> " A("{\"d\"}, {}") ") -> (tensor<4xf32> " A("{}") ")",
        ZERO "%0 = " SUM("%g", "0", "8x4", "4x") "%1 = stablehlo.add %m, %0 : tensor<4xf32>\nreturn %1 : tensor<4xf32>",
        "(%m: tensor<4xf32> " A("{}") ", %g: tensor<4x4xf32> " A("{\"d\"}, {}") ") -> (tensor<4xf32> " A("{}") ")",
        ZERO "%0 = " SUM("%g", "0", "4x4", "4x") "%1 = sdy.all_reduce {\"d\"} %0 out_sharding=<@mesh, [{}]> : tensor<4xf32>\n"
                                                 "%2 = stablehlo.add %m, %1 : tensor<4xf32>\nreturn %2 : tensor<4xf32>",
        "%1 = sdy.all_reduce {\"d\"} %0 out_sharding=<@mesh, [{}]> : tensor<4xf32>\n%2 = stablehlo.add %m, %1 : tensor<4xf32>\n",
        "%1 = stablehlo.add %m, %0 : tensor<4xf32>\n%2 = sdy.all_reduce {\"d\"} %1 out_sharding=<@mesh, [{}]> : tensor<4xf32>\n",
        "add"},

    // What this partitioner itself has got wrong, put back.
    {"bias that only the first device has where each has one row",
        "(%x: tensor<8x4xf32> " A("{\"d\"}, {}") ", %b: tensor<4xf32> " A("{}") ") -> (tensor<8x4xf32> " A("{\"d\"}, {}") ")",
        "%0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>\n"
        "%1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<8x4xf32>\n"
        "%2 = stablehlo.add %x, %1 : tensor<8x4xf32>\nreturn %2 : tensor<8x4xf32>",
        "(%x: tensor<1x4xf32> " A("{\"d\"}, {}") ", %b: tensor<4xf32> " A("{}") ") -> (tensor<1x4xf32> " A("{\"d\"}, {}") ")",
        ZERO "%0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>\n"
             "%2 = stablehlo.add %x, %0 " S("{\"d\"}, {}") " : tensor<1x4xf32>\nreturn %2 : tensor<1x4xf32>",
        "%2 = stablehlo.add %x, %0",
        "%3 = stablehlo.pad %0, %z, low = [0, 0], high = [7, 0], interior = [0, 0] : (tensor<1x4xf32>, tensor<f32>) -> "
        "tensor<8x4xf32>\n"
        "%1 = sdy.all_slice [{\"d\"}, {}] %3 out_sharding=<@mesh, [{\"d\"}, {}]> : (tensor<8x4xf32>) -> tensor<1x4xf32>\n"
        "%2 = stablehlo.add %x, %1",
        "pad", "\"d\"=8"},
    {"result that is left as it was made", "(%x: tensor<8xf32> " A("{\"d\"}") ") -> (tensor<8xf32> " A("{}") ")",
        "%0 = stablehlo.sine %x : tensor<8xf32>\nreturn %0 : tensor<8xf32>",
        "(%x: tensor<4xf32> " A("{\"d\"}") ") -> (tensor<8xf32> " A("{}") ")",
        "%0 = stablehlo.sine %x " S(
            "{\"d\"}") " : tensor<4xf32>\n"
                       "%1 = sdy.all_gather [{\"d\"}] %0 out_sharding=<@mesh, [{}]> : (tensor<4xf32>) -> tensor<8xf32>\n"
                       "return %1 : tensor<8xf32>",
        "return %1 : tensor<8xf32>", "return %0 : tensor<4xf32>", "", "\"d\"=2, \"t\"=2",
        "(%x: tensor<4xf32> " A("{\"d\"}") ") -> (tensor<4xf32> " A("{\"d\"}") ")"},
    {"pieces that stay where they are when the order of axes changes",
        "(%x: tensor<8xf32> " A("{\"d\", \"t\"}") ") -> (tensor<8xf32> " A("{\"t\", \"d\"}") ")",
        "%0 = stablehlo.sine %x : tensor<8xf32>\nreturn %0 : tensor<8xf32>",
        "(%x: tensor<2xf32> " A("{\"d\", \"t\"}") ") -> (tensor<2xf32> " A("{\"t\", \"d\"}") ")",
        "%0 = stablehlo.sine %x " S(
            "{\"d\", \"t\"}") " : tensor<2xf32>\n"
                              "%1 = sdy.collective_permute %0 out_sharding=<@mesh, [{\"t\", \"d\"}]> {mw.axes = "
                              "#sdy<axis_ref_list{\"d\", \"t\"}>, "
                              "mw.sources = array<i64: 0, 2, 1, 3>} : tensor<2xf32>\nreturn %1 : tensor<2xf32>",
        "0, 2, 1, 3", "0, 1, 2, 3", "collective_permute"},
    {"table of a permute that exchanges the wrong two of three axes",
        "(%x: tensor<8xf32> " A("{\"c\"}") ") -> (tensor<8xf32> " A("{\"a\"}") ")",
        "%0 = stablehlo.sine %x : tensor<8xf32>\nreturn %0 : tensor<8xf32>",
        "(%x: tensor<4xf32> " A("{\"c\"}") ") -> (tensor<4xf32> " A("{\"a\"}") ")",
        "%0 = stablehlo.sine %x " S(
            "{\"c\"}") " : tensor<4xf32>\n"
                       "%1 = sdy.collective_permute %0 out_sharding=<@mesh, [{\"a\"}]> {mw.axes = #sdy<axis_ref_list{\"a\", "
                       "\"b\", \"c\"}>, "
                       "mw.sources = array<i64: 0, 4, 2, 6, 1, 5, 3, 7>} : tensor<4xf32>\nreturn %1 : tensor<4xf32>",
        "0, 4, 2, 6, 1, 5, 3, 7", "0, 2, 1, 3, 4, 6, 5, 7", "collective_permute", "\"a\"=2, \"b\"=2, \"c\"=2"},
    {"maxima that are left for a sum",
        "(%x: tensor<8x16xf32> " A("{}, {\"t\"}") ") -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], "
                                                  "unreduced=max{\"t\"}>})",
        "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) "
        "-> tensor<8xf32>\nreturn %0 : tensor<8xf32>",
        "(%x: tensor<8x8xf32> " A("{}, {\"t\"}") ") -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], "
                                                 "unreduced=max{\"t\"}>})",
        "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [1] {sdy.sharding = "
        "#sdy.sharding_per_value<[<@mesh, [{}], unreduced=max{\"t\"}>]>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>\n"
        "return %0 : tensor<8xf32>",
        "unreduced=max{", "unreduced={", ""},
    {"partial sum over a free axis inside of a manual computation",
        "(%x: tensor<8x16xf32> " A("{\"d\"}, {\"t\"}") ", %w: tensor<16x4xf32> " A("{\"t\"}, {}") ") -> (tensor<8x4xf32> " A(
            "{\"d\"}, {}") ")",
        "%0 = sdy.manual_computation(%x, %w) in_shardings=[<@mesh, [{\"d\"}, {\"t\"}]>, <@mesh, [{\"t\"}, {}]>] "
        "out_shardings=[<@mesh, [{\"d\"}, {}]>] manual_axes={\"d\"} (%a: tensor<4x16xf32>, %b: tensor<16x4xf32>) {\n"
        "%1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x4xf32>) -> "
        "tensor<4x4xf32>\nsdy.return %1 : tensor<4x4xf32>\n} : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>\n"
        "return %0 : tensor<8x4xf32>",
        "(%x: tensor<4x8xf32> " A("{\"d\"}, {\"t\"}") ", %w: tensor<8x4xf32> " A("{\"t\"}, {}") ") -> (tensor<4x4xf32> " A(
            "{\"d\"}, {}") ")",
        "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] " S(
            "{\"d\"}, {}") " : (tensor<4x8xf32>, "
                           "tensor<8x4xf32>) -> tensor<4x4xf32>\n"
                           "%1 = sdy.all_reduce {\"t\"} %0 out_sharding=<@mesh, [{\"d\"}, {}]> : tensor<4x4xf32>\nreturn %1 : "
                           "tensor<4x4xf32>",
        "return %1", "return %0", "dot_general"},
    {"pieces of a matrix that are taken for pieces of one of another shape",
        "(%x: tensor<3x4xf32> " A("{}, {\"d\"}") ") -> (tensor<2x6xf32> " A("{\"d\"}, {}") ")",
        "%0 = stablehlo.reshape %x : (tensor<3x4xf32>) -> tensor<2x6xf32>\nreturn %0 : tensor<2x6xf32>",
        "(%x: tensor<3x2xf32> " A("{}, {\"d\"}") ") -> (tensor<1x6xf32> " A("{\"d\"}, {}") ")",
        "%0 = sdy.all_gather [{}, {\"d\"}] %x out_sharding=<@mesh, [{}, {}]> : (tensor<3x2xf32>) -> tensor<3x4xf32>\n"
        "%1 = stablehlo.reshape %0 : (tensor<3x4xf32>) -> tensor<2x6xf32>\n"
        "%2 = sdy.all_slice [{\"d\"}, {}] %1 out_sharding=<@mesh, [{\"d\"}, {}]> : (tensor<2x6xf32>) -> tensor<1x6xf32>\n"
        "return %2 : tensor<1x6xf32>",
        "%2 = sdy.all_slice [{\"d\"}, {}] %1 out_sharding=<@mesh, [{\"d\"}, {}]> : (tensor<2x6xf32>) -> tensor<1x6xf32>\n",
        "%2 = stablehlo.reshape %x " S("{\"d\"}, {}") " : (tensor<3x2xf32>) -> tensor<1x6xf32>\n", "reshape"},
    {"constant of which each device has the first numbers",
        "(%x: tensor<4xf32> " A("{\"d\"}") ") -> (tensor<4xf32> " A("{\"d\"}") ")",
        "%c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>\n%0 = stablehlo.add %x, %c : tensor<4xf32>\n"
        "return %0 : tensor<4xf32>",
        "(%x: tensor<2xf32> " A("{\"d\"}") ") -> (tensor<2xf32> " A("{\"d\"}") ")",
        "%c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>\n"
        "%0 = sdy.all_slice [{\"d\"}] %c out_sharding=<@mesh, [{\"d\"}]> : (tensor<4xf32>) -> tensor<2xf32>\n"
        "%1 = stablehlo.add %x, %0 " S("{\"d\"}") " : tensor<2xf32>\nreturn %1 : tensor<2xf32>",
        "%0 = sdy.all_slice [{\"d\"}] %c out_sharding=<@mesh, [{\"d\"}]> : (tensor<4xf32>) -> tensor<2xf32>\n",
        "%0 = stablehlo.slice %c [0:2] " S("{\"d\"}") " : (tensor<4xf32>) -> tensor<2xf32>\n", "add"},
    {"carry of a loop that is right only if another carry is", "(%x: tensor<8xf32> " A("{}") ") -> (tensor<8xf32> " A("{}") ")",
        "%c = stablehlo.constant dense<0> : tensor<i32>\n"
        "%r:3 = stablehlo.while(%i = %c, %a = %x, %b = %x) : tensor<i32>, tensor<8xf32>, tensor<8xf32>\n"
        "cond {\n%n = stablehlo.constant dense<3> : tensor<i32>\n"
        "%p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "stablehlo.return %p : tensor<i1>\n} do {\n%k = stablehlo.constant dense<1> : tensor<i32>\n"
        "%j = stablehlo.add %i, %k : tensor<i32>\n%s = stablehlo.sine %b : tensor<8xf32>\n"
        "%e = stablehlo.cosine %b : tensor<8xf32>\nstablehlo.return %j, %s, %e : tensor<i32>, tensor<8xf32>, tensor<8xf32>\n}\n"
        "return %r#1 : tensor<8xf32>",
        "(%x: tensor<8xf32> " A("{}") ") -> (tensor<8xf32> " A("{}") ")",
        "%c = stablehlo.constant dense<0> : tensor<i32>\n"
        "%r:3 = stablehlo.while(%i = %c, %a = %x, %b = %x) : tensor<i32>, tensor<8xf32>, tensor<8xf32>\n"
        "cond {\n%n = stablehlo.constant dense<3> : tensor<i32>\n"
        "%p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "stablehlo.return %p : tensor<i1>\n} do {\n%k = stablehlo.constant dense<1> : tensor<i32>\n"
        "%j = stablehlo.add %i, %k : tensor<i32>\n%s = stablehlo.sine %b : tensor<8xf32>\n"
        "%e = stablehlo.cosine %b : tensor<8xf32>\nstablehlo.return %j, %s, %e : tensor<i32>, tensor<8xf32>, tensor<8xf32>\n}\n"
        "return %r#1 : tensor<8xf32>",
        "stablehlo.cosine", "stablehlo.tanh", ""},
    {"random bits of another shape, of another key",
        "(%k: tensor<2xui32> " A("{}") ", %l: tensor<2xui32> " A("{}") ") -> (tensor<8x4xui32> " A("{\"d\"}, {}") ")",
        "%0 = stablehlo.custom_call @meshwright.random_bits(%k) {mw.partitionable = true} : (tensor<2xui32>) -> "
        "tensor<8x4xui32>\nreturn %0 : tensor<8x4xui32>",
        "(%k: tensor<2xui32> " A("{}") ", %l: tensor<2xui32> " A("{}") ") -> (tensor<4x4xui32> " A("{\"d\"}, {}") ")",
        "%0 = stablehlo.custom_call @meshwright.random_bits(%k) {mw.partitionable = true, sdy.sharding = "
        "#sdy.sharding_per_value<[<@mesh, [{\"d\"}, {}, {}]>]>} : (tensor<2xui32>) -> tensor<1x4x4xui32>\n"
        "%1 = stablehlo.reshape %0 " S("{\"d\"}, {}") " : (tensor<1x4x4xui32>) -> tensor<4x4xui32>\nreturn %1 : tensor<4x4xui32>",
        "random_bits(%k)", "random_bits(%l)", "random_bits"},
};

constexpr char kTwoMeshes[] = R"("d"=2, "t"=2]>
  sdy.mesh @other = <["d"=2, "t"=2], device_ids=[0, 2, 1, 3)";

// What lemmas have taken for granted.
constexpr FaultyPair kGranted[] = {
    {"columns that are masked before rows of another number are added",
        "(%x: tensor<2x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<3xf32> {sdy.sharding = "
        "#sdy.sharding<@mesh, [{}]>})",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%o = stablehlo.constant dense<1.0> : tensor<f32>
%0 = stablehlo.pad %x, %o, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<3x5xf32>
%1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>
return %1 : tensor<3xf32>)",
        "(%x: tensor<2x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<3xf32> {sdy.sharding = "
        "#sdy.sharding<@mesh, [{}]>})",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%o = stablehlo.constant dense<1.0> : tensor<f32>
%p = stablehlo.pad %x, %o, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<3x5xf32>
%0 = stablehlo.pad %p, %z, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<3x5xf32>, tensor<f32>) -> tensor<3x6xf32>
%1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x6xf32>, tensor<f32>) -> tensor<3xf32>
return %1 : tensor<3xf32>)",
        R"(%p = stablehlo.pad %x, %o, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<3x5xf32>
%0 = stablehlo.pad %p, %z, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<3x5xf32>, tensor<f32>) -> tensor<3x6xf32>)",
        R"(%p = stablehlo.pad %x, %z, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x6xf32>
%0 = stablehlo.pad %p, %o, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<2x6xf32>, tensor<f32>) -> tensor<3x6xf32>)",
        "reduce"},
    {"windows of which the first piece has nothing but padding",
        R"((%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}))",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%r = "stablehlo.reduce_window"(%x, %z) <{padding = dense<[[1, 1]]> : tensor<1x2xi64>, window_dimensions = array<i64: 3>}> ({
^bb0(%u: tensor<f32>, %v: tensor<f32>):
%w = stablehlo.add %u, %v : tensor<f32>
stablehlo.return %w : tensor<f32>
})  : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
return %r : tensor<4xf32>)",
        R"((%x: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}))",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%l = stablehlo.slice %x [1:2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : (tensor<2xf32>) -> tensor<1xf32>
%a = sdy.collective_permute %l out_sharding=<@mesh, [{"d"}]> {mw.axes = #sdy<axis_ref_list{"d"}>, mw.pieces = array<i64: 0, 0>, mw.sources = array<i64: -1, 0>} : tensor<1xf32>
%m = stablehlo.slice %x [0:1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : (tensor<2xf32>) -> tensor<1xf32>
%b = sdy.collective_permute %m out_sharding=<@mesh, [{"d"}]> {mw.axes = #sdy<axis_ref_list{"d"}>, mw.pieces = array<i64: 0, 0>, mw.sources = array<i64: 1, -1>} : tensor<1xf32>
%c = stablehlo.concatenate %a, %x, %b, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : (tensor<1xf32>, tensor<2xf32>, tensor<1xf32>) -> tensor<4xf32>
%t = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
%k = sdy.all_slice [{"d"}] %t out_sharding=<@mesh, [{"d"}]> : (tensor<2xi32>) -> tensor<1xi32>
%n = stablehlo.reshape %k {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : (tensor<1xi32>) -> tensor<i32>
%te = stablehlo.constant dense<[4, 3]> : tensor<2xi32>
%ke = sdy.all_slice [{"d"}] %te out_sharding=<@mesh, [{"d"}]> : (tensor<2xi32>) -> tensor<1xi32>
%ne = stablehlo.reshape %ke {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : (tensor<1xi32>) -> tensor<i32>
%i = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<4xi32>
%p = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i32>) -> tensor<4xi32>
%q = stablehlo.broadcast_in_dim %ne, dims = [] : (tensor<i32>) -> tensor<4xi32>
%g = stablehlo.compare GE, %i, %p, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
%h = stablehlo.compare LT, %i, %q, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
%j = stablehlo.and %g, %h : tensor<4xi1>
%o = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<4xf32>
%s = stablehlo.select %j, %c, %o {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : tensor<4xi1>, tensor<4xf32>
%r = "stablehlo.reduce_window"(%s, %z) <{padding = dense<[[0, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 3>}> ({
^bb0(%u: tensor<f32>, %v: tensor<f32>):
%w = stablehlo.add %u, %v : tensor<f32>
stablehlo.return %w : tensor<f32>
}) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : (tensor<4xf32>, tensor<f32>) -> tensor<2xf32>
return %r : tensor<2xf32>)",
        "dense<[1, 0]> : tensor<2xi32>", "dense<[4, 0]> : tensor<2xi32>", "stablehlo.reduce_window", R"("d"=2)"},
    {"constants whose sum does not fit their type",
        "(%x: tensor<4xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<4xbf16> {sdy.sharding = "
        "#sdy.sharding<@mesh, [{}]>})",
        R"(%a = stablehlo.constant dense<256.0> : tensor<4xbf16>
%b = stablehlo.constant dense<1.0> : tensor<4xbf16>
%c = stablehlo.add %a, %b : tensor<4xbf16>
%d = stablehlo.subtract %c, %a : tensor<4xbf16>
%r = stablehlo.multiply %x, %d : tensor<4xbf16>
return %r : tensor<4xbf16>)",
        "(%x: tensor<4xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<4xbf16> {sdy.sharding = "
        "#sdy.sharding<@mesh, [{}]>})",
        R"(%a = stablehlo.constant dense<256.0> : tensor<4xbf16>
%b = stablehlo.constant dense<1.0> : tensor<4xbf16>
%c = stablehlo.add %a, %b : tensor<4xbf16>
%d = stablehlo.subtract %c, %a : tensor<4xbf16>
%r = stablehlo.multiply %x, %d : tensor<4xbf16>
return %r : tensor<4xbf16>)",
        R"(%a = stablehlo.constant dense<256.0> : tensor<4xbf16>
%b = stablehlo.constant dense<1.0> : tensor<4xbf16>
%c = stablehlo.add %a, %b : tensor<4xbf16>
%d = stablehlo.subtract %c, %a : tensor<4xbf16>
%r = stablehlo.multiply %x, %d : tensor<4xbf16>
return %r)",
        "return %x", ""},
    {"factors that leave the range of their type",
        "(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, "
        "[{}]>})",
        R"(%k = stablehlo.constant dense<8.0> : tensor<4xf32>
%m = stablehlo.maximum %x, %k : tensor<4xf32>
%n = stablehlo.negate %m : tensor<4xf32>
%v = stablehlo.multiply %n, %k : tensor<4xf32>
%e = stablehlo.exponential %v : tensor<4xf32>
%b = stablehlo.constant dense<1.0e30> : tensor<4xf32>
%c = stablehlo.constant dense<1.0e35> : tensor<4xf32>
%f = stablehlo.multiply %e, %b : tensor<4xf32>
%r = stablehlo.multiply %f, %b : tensor<4xf32>
return %r : tensor<4xf32>)",
        "(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, "
        "[{}]>})",
        R"(%k = stablehlo.constant dense<8.0> : tensor<4xf32>
%m = stablehlo.maximum %x, %k : tensor<4xf32>
%n = stablehlo.negate %m : tensor<4xf32>
%v = stablehlo.multiply %n, %k : tensor<4xf32>
%e = stablehlo.exponential %v : tensor<4xf32>
%b = stablehlo.constant dense<1.0e30> : tensor<4xf32>
%c = stablehlo.constant dense<1.0e35> : tensor<4xf32>
%f = stablehlo.multiply %e, %b : tensor<4xf32>
%r = stablehlo.multiply %f, %b : tensor<4xf32>
return %r : tensor<4xf32>)",
        "%r = stablehlo.multiply %f, %b", "%r = stablehlo.multiply %f, %c", "multiply"},
    {"factor that is one but for the digits of its type",
        "(%x: tensor<4xf64> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<4xf64> {sdy.sharding = #sdy.sharding<@mesh, "
        "[{}]>})",
        "return %x : tensor<4xf64>",
        "(%x: tensor<4xf64> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<4xf64> {sdy.sharding = #sdy.sharding<@mesh, "
        "[{}]>})",
        "return %x : tensor<4xf64>", "return %x", R"(%b = stablehlo.constant dense<1.00000001> : tensor<4xf64>
%r = stablehlo.multiply %x, %b : tensor<4xf64>
return %r)",
        ""},
    {"maximum of 64 bits over padding that is nearly the least number",
        "(%x: tensor<3xi64> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<i64> {sdy.sharding = #sdy.sharding<@mesh, "
        "[]>})",
        R"(%m = stablehlo.constant dense<-9223372036854775808> : tensor<3xi64>
%i = stablehlo.constant dense<-9223372036854775808> : tensor<i64>
%v = stablehlo.minimum %x, %m : tensor<3xi64>
%r = stablehlo.reduce(%v init: %i) applies stablehlo.maximum across dimensions = [0] : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
%q = stablehlo.subtract %r, %i : tensor<i64>
return %q : tensor<i64>)",
        "(%x: tensor<3xi64> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<i64> {sdy.sharding = #sdy.sharding<@mesh, "
        "[]>})",
        R"(%m = stablehlo.constant dense<-9223372036854775808> : tensor<3xi64>
%i = stablehlo.constant dense<-9223372036854775808> : tensor<i64>
%v = stablehlo.minimum %x, %m : tensor<3xi64>
%j = stablehlo.constant dense<-9223372036854775808> : tensor<i64>
%p = stablehlo.pad %v, %j, low = [0], high = [1], interior = [0] : (tensor<3xi64>, tensor<i64>) -> tensor<4xi64>
%r = stablehlo.reduce(%p init: %i) applies stablehlo.maximum across dimensions = [0] : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
%q = stablehlo.subtract %r, %i : tensor<i64>
return %q : tensor<i64>)",
        "%j = stablehlo.constant dense<-9223372036854775808>", "%j = stablehlo.constant dense<-9223372036854775807>", ""},
    {"bits that are taken for numbers without a sign",
        "(%x: tensor<4x4xui8> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<4xf32> {sdy.sharding = "
        "#sdy.sharding<@mesh, [{}]>})",
        R"(%n = stablehlo.not %x : tensor<4x4xui8>
%b = stablehlo.bitcast_convert %n : (tensor<4x4xui8>) -> tensor<4xi32>
%r = stablehlo.convert %b : (tensor<4xi32>) -> tensor<4xf32>
return %r : tensor<4xf32>)",
        "(%x: tensor<4x4xui8> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<4xf32> {sdy.sharding = "
        "#sdy.sharding<@mesh, [{}]>})",
        R"(%n = stablehlo.not %x : tensor<4x4xui8>
%b = stablehlo.bitcast_convert %n : (tensor<4x4xui8>) -> tensor<4xi32>
%r = stablehlo.convert %b : (tensor<4xi32>) -> tensor<4xf32>
return %r : tensor<4xf32>)",
        R"((tensor<4x4xui8>) -> tensor<4xi32>
%r = stablehlo.convert %b : (tensor<4xi32>))",
        R"((tensor<4x4xui8>) -> tensor<4xui32>
%r = stablehlo.convert %b : (tensor<4xui32>))",
        "stablehlo.bitcast_convert"},
    {"pieces that are gathered in another order than they have behind a barrier",
        R"((%p: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d", "t"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}))",
        R"(%r = stablehlo.sine %p : tensor<8xf32>
return %r : tensor<8xf32>)",
        R"((%p: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d", "t"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}))",
        R"(%s = stablehlo.sine %p {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d", "t"}]>]>} : tensor<2xf32>
%b = stablehlo.optimization_barrier %s {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d", "t"}]>]>} : tensor<2xf32>
%r = sdy.all_gather [{"d", "t"}] %b out_sharding=<@mesh, [{}]> : (tensor<2xf32>) -> tensor<8xf32>
return %r : tensor<8xf32>)",
        R"(optimization_barrier %s {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d", "t"}]>]>})",
        R"(optimization_barrier %s {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"t", "d"}]>]>})", "all_gather"},
    {"sum that is scattered over fewer devices than it is summed over",
        R"((%p: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}))",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%r = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
return %r : tensor<4xf32>)",
        R"((%p: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}))",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%a = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x4xf32>, tensor<f32>) -> tensor<4xf32>
%r = sdy.reduce_scatter [{"d"}] %a out_sharding=<@mesh, [{"d"}]> {mw.axes = #sdy<axis_ref_list{"d"}>} : (tensor<4xf32>) -> tensor<2xf32>
return %r : tensor<2xf32>)",
        R"({"d"}>)", R"({"d", "t"}>)", "reduce_scatter"},
    {"partial sums over devices in different orders",
        R"((%p: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}, %q: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> (tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}))",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%a = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
%b = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
%r = stablehlo.add %a, %b : tensor<f32>
return %r : tensor<f32>)",
        R"((%p: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}, %q: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> (tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}))",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%a = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
%b = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
%s = stablehlo.add %b, %a : tensor<f32>
%r = sdy.all_reduce {"d"} %s out_sharding=<@mesh, []> : tensor<f32>
return %r : tensor<f32>)",
        "return %r", "return %r", "add", kTwoMeshes,
        R"((%p: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}, %q: tensor<2xf32> {sdy.sharding = #sdy.sharding<@other, [{"d"}]>}) -> (tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}))"},
    {"partial sums over devices in different orders, side by side",
        R"((%p: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}, %q: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}))",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%a = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x2xf32>, tensor<f32>) -> tensor<2xf32>
%b = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x2xf32>, tensor<f32>) -> tensor<2xf32>
%r = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
return %r : tensor<4xf32>)",
        R"((%p: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}, %q: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}))",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%a = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
%b = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
%s = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
%r = sdy.all_reduce {"d"} %s out_sharding=<@mesh, [{}]> : tensor<4xf32>
return %r : tensor<4xf32>)",
        "return %r", "return %r", "concatenate", kTwoMeshes,
        R"((%p: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}, %q: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@other, [{"d"}, {}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}))"},
    {"product of a partial sum and of pieces on devices in another order",
        R"((%p: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d"}]>}, %w: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}, %q: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"t"}]>}) -> (tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"t"}]>}))",
        R"(%a = stablehlo.dot_general %p, %w, contracting_dims = [1] x [0]  : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
%r = stablehlo.dot_general %a, %q, contracting_dims = [1] x [0]  : (tensor<2x2xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
return %r : tensor<2x4xf32>)",
        R"((%p: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d"}]>}, %w: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}, %q: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"t"}]>}) -> (tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"t"}]>}))",
        R"(%a = stablehlo.dot_general %p, %w, contracting_dims = [1] x [0]  : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
%b = stablehlo.dot_general %a, %q, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"t"}]>]>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
%r = sdy.all_reduce {"d"} %b out_sharding=<@mesh, [{}, {"t"}]> : tensor<2x2xf32>
return %r : tensor<2x2xf32>)",
        "return %r", "return %r", "dot_general", kTwoMeshes,
        R"((%p: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d"}]>}, %w: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}, %q: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@other, [{}, {"t"}]>}) -> (tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"t"}]>}))"},
    {"numbers of each device that are gathered for copies of one",
        R"((%x: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}))",
        R"(%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"d"}]>] out_shardings=[<@mesh, [{"d"}]>] manual_axes={"d"} (%a: tensor<1xf32>) {
%r = stablehlo.reshape %a : (tensor<1xf32>) -> tensor<f32>
%b = stablehlo.broadcast_in_dim %r, dims = [] : (tensor<f32>) -> tensor<2xf32>
%g = "stablehlo.all_gather"(%b) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<2xf32>) -> tensor<4xf32>
%s = stablehlo.slice %g [1:2] : (tensor<4xf32>) -> tensor<1xf32>
sdy.return %s : tensor<1xf32>
} : (tensor<2xf32>) -> tensor<2xf32>
return %0 : tensor<2xf32>)",
        R"((%arg0: tensor<1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> tensor<1xf32>)",
        R"(%0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<1xf32>) -> tensor<1xf32>
%1 = stablehlo.reshape %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : (tensor<1xf32>) -> tensor<f32>
%2 = stablehlo.broadcast_in_dim %1, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<f32>) -> tensor<2xf32>
%3 = sdy.all_gather [] %2 out_sharding=<@mesh, [{}]> {mw.axes = #sdy<axis_ref_list{"d"}>, mw.pieces = array<i64: 0, 0>} : (tensor<2xf32>) -> tensor<4xf32>
%4 = stablehlo.slice %3 [1:2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<4xf32>) -> tensor<1xf32>
%5 = stablehlo.reshape %4 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : (tensor<1xf32>) -> tensor<1xf32>
return %5 : tensor<1xf32>)",
        R"({sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<f32>) -> tensor<2xf32>
%3 = sdy.all_gather [] %2 out_sharding=<@mesh, [{}]> {mw.axes = #sdy<axis_ref_list{"d"}>, mw.pieces = array<i64: 0, 0>} : (tensor<2xf32>) -> tensor<4xf32>
%4 = stablehlo.slice %3 [1:2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<4xf32>))",
        R"({sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"t"}]>]>} : (tensor<f32>) -> tensor<1xf32>
%3 = sdy.all_gather [] %2 out_sharding=<@mesh, [{"t"}]> {mw.axes = #sdy<axis_ref_list{"d"}>, mw.pieces = array<i64: 0, 0>} : (tensor<1xf32>) -> tensor<2xf32>
%4 = stablehlo.slice %3 [1:2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<2xf32>))",
        "all_gather"},
    {"maximum over the devices of a manual computation, which differ",
        R"((%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}))",
        R"(%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"d"}]>] out_shardings=[<@mesh, [{"d"}]>] manual_axes={"d"} (%a: tensor<2xf32>) {
%m = stablehlo.sine %a : tensor<2xf32>
sdy.return %m : tensor<2xf32>
} : (tensor<4xf32>) -> tensor<4xf32>
return %0 : tensor<4xf32>)",
        R"((%arg0: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> tensor<2xf32>)",
        R"(%0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<2xf32>) -> tensor<2xf32>
%1 = stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<2xf32>
%r = stablehlo.reshape %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<2xf32>) -> tensor<2xf32>
%2 = stablehlo.reshape %r {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : (tensor<2xf32>) -> tensor<2xf32>
return %2 : tensor<2xf32>)",
        "%r = stablehlo.reshape %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<2xf32>) -> tensor<2xf32>",
        R"(%r = sdy.all_reduce max {"d"} %1 out_sharding=<@mesh, [{}]> {mw.reduction="max"} : tensor<2xf32>)", "all_reduce"},
    {"values of a manual computation that go to other devices",
        R"((%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}))",
        R"(%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"d"}]>] out_shardings=[<@mesh, [{"d"}]>] manual_axes={"d"} (%a: tensor<2xf32>) {
%m = stablehlo.sine %a : tensor<2xf32>
sdy.return %m : tensor<2xf32>
} : (tensor<4xf32>) -> tensor<4xf32>
return %0 : tensor<4xf32>)",
        R"((%arg0: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> tensor<2xf32>)",
        R"(%0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<2xf32>) -> tensor<2xf32>
%1 = stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<2xf32>
%r = stablehlo.reshape %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<2xf32>) -> tensor<2xf32>
%2 = stablehlo.reshape %r {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : (tensor<2xf32>) -> tensor<2xf32>
return %2 : tensor<2xf32>)",
        "%r = stablehlo.reshape %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<2xf32>) -> tensor<2xf32>",
        "%r = sdy.collective_permute %1 out_sharding=<@mesh, [{}]> {mw.sources = array<i64: 2, 3, 0, 1>} : tensor<2xf32>",
        "collective_permute"},
    {"value of one device of a manual computation for all",
        R"((%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}))",
        R"(%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"d"}]>] out_shardings=[<@mesh, [{"d"}]>] manual_axes={"d"} (%a: tensor<2xf32>) {
%m = stablehlo.sine %a : tensor<2xf32>
sdy.return %m : tensor<2xf32>
} : (tensor<4xf32>) -> tensor<4xf32>
return %0 : tensor<4xf32>)",
        R"((%arg0: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> tensor<2xf32>)",
        R"(%0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<2xf32>) -> tensor<2xf32>
%1 = stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<2xf32>
%i = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : tensor<1xi32>
%j = stablehlo.reshape %i {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : (tensor<1xi32>) -> tensor<i32>
%z = stablehlo.constant dense<0> : tensor<i32>
%p = stablehlo.compare EQ, %j, %z, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%m = stablehlo.broadcast_in_dim %p, dims = [] : (tensor<i1>) -> tensor<2xi1>
%o = stablehlo.constant dense<0.0> : tensor<2xf32>
%s = stablehlo.select %m, %1, %o : tensor<2xi1>, tensor<2xf32>
%r = stablehlo.reshape %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<2xf32>) -> tensor<2xf32>
%2 = stablehlo.reshape %r {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : (tensor<2xf32>) -> tensor<2xf32>
return %2 : tensor<2xf32>)",
        "%r = stablehlo.reshape %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<2xf32>) -> tensor<2xf32>",
        R"(%r = sdy.all_reduce {"d"} %s out_sharding=<@mesh, [{}]> : tensor<2xf32>)", "all_reduce"},
    {"copies of a manual computation that are counted over its devices",
        R"((%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}))",
        R"(%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"d"}]>] out_shardings=[<@mesh, [{"d"}]>] manual_axes={"d"} (%a: tensor<2xf32>) {
%z = stablehlo.constant dense<0.0> : tensor<f32>
%k = stablehlo.slice %a [0:1] : (tensor<2xf32>) -> tensor<1xf32>
%q = stablehlo.reshape %k : (tensor<1xf32>) -> tensor<f32>
%b = stablehlo.broadcast_in_dim %q, dims = [] : (tensor<f32>) -> tensor<4xf32>
%t = stablehlo.reduce(%b init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
%m = stablehlo.broadcast_in_dim %t, dims = [] : (tensor<f32>) -> tensor<2xf32>
sdy.return %m : tensor<2xf32>
} : (tensor<4xf32>) -> tensor<4xf32>
return %0 : tensor<4xf32>)",
        R"((%arg0: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> tensor<2xf32>)",
        R"(%0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<2xf32>) -> tensor<2xf32>
%z = stablehlo.constant dense<0.0> : tensor<f32>
%k = stablehlo.slice %0 [0:1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<2xf32>) -> tensor<1xf32>
%q = stablehlo.reshape %k {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : (tensor<1xf32>) -> tensor<f32>
%b = stablehlo.broadcast_in_dim %q, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<f32>) -> tensor<4xf32>
%t = stablehlo.reduce(%b init: %z) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
%u = stablehlo.reshape %t : (tensor<f32>) -> tensor<f32>
%m = stablehlo.broadcast_in_dim %u, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<f32>) -> tensor<2xf32>
%2 = stablehlo.reshape %m {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : (tensor<2xf32>) -> tensor<2xf32>
return %2 : tensor<2xf32>)",
        R"({sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<f32>) -> tensor<4xf32>
%t = stablehlo.reduce(%b init: %z) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
%u = stablehlo.reshape %t : (tensor<f32>) -> tensor<f32>)",
        R"({sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : (tensor<f32>) -> tensor<2xf32>
%t = stablehlo.reduce(%b init: %z) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
%u = sdy.all_reduce {"d"} %t out_sharding=<@mesh, []> : tensor<f32>)",
        ""},
    {"rows of which some have other columns behind their end",
        "(%x: tensor<2x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<2xf32> {sdy.sharding = "
        "#sdy.sharding<@mesh, [{}]>})",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2xf32>
return %r : tensor<2xf32>)",
        "(%x: tensor<2x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<2xf32> {sdy.sharding = "
        "#sdy.sharding<@mesh, [{}]>})",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%o = stablehlo.constant dense<1.0> : tensor<f32>
%a = stablehlo.pad %x, %z, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x6xf32>
%b = stablehlo.pad %x, %z, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x6xf32>
%i = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : tensor<2x6xi32>
%k = stablehlo.constant dense<1> : tensor<2x6xi32>
%m = stablehlo.compare LT, %i, %k, SIGNED : (tensor<2x6xi32>, tensor<2x6xi32>) -> tensor<2x6xi1>
%s = stablehlo.select %m, %a, %b : tensor<2x6xi1>, tensor<2x6xf32>
%r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x6xf32>, tensor<f32>) -> tensor<2xf32>
return %r : tensor<2xf32>)",
        "%b = stablehlo.pad %x, %z,", "%b = stablehlo.pad %x, %o,", ""},
    {"rows of two arrays of which one has other columns behind its end",
        R"((%x: tensor<4x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}))",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<4xf32>
return %r : tensor<4xf32>)",
        R"((%x: tensor<2x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}))",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%o = stablehlo.constant dense<1.0> : tensor<f32>
%a = stablehlo.pad %x, %z, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x6xf32>
%b = stablehlo.pad %x, %z, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x6xf32>
%e = stablehlo.slice %a [0:1, 0:6] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}, {}]>]>} : (tensor<2x6xf32>) -> tensor<1x6xf32>
%f = stablehlo.slice %b [1:2, 0:6] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}, {}]>]>} : (tensor<2x6xf32>) -> tensor<1x6xf32>
%s = stablehlo.concatenate %e, %f, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}, {}]>]>} : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<2x6xf32>
%r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : (tensor<2x6xf32>, tensor<f32>) -> tensor<2xf32>
return %r : tensor<2xf32>)",
        "%b = stablehlo.pad %x, %z,", "%b = stablehlo.pad %x, %o,", "reduce", R"("d"=2)"},
    {"rows of another number that each device has some of",
        R"((%x: tensor<2x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}))",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%o = stablehlo.constant dense<1.0> : tensor<f32>
%p = stablehlo.pad %x, %o, low = [0, 0], high = [2, 0], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<4x5xf32>
%r = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<4xf32>
return %r : tensor<4xf32>)",
        R"((%x: tensor<2x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}))",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%o = stablehlo.constant dense<1.0> : tensor<f32>
%a = stablehlo.pad %x, %z, low = [0, 0], high = [0, 0], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x5xf32>
%b = stablehlo.pad %a, %o, low = [0, 0], high = [2, 0], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<4x5xf32>
%s = sdy.all_slice [{"d"}, {}] %b out_sharding=<@mesh, [{"d"}, {}]> : (tensor<4x5xf32>) -> tensor<2x5xf32>
%r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : (tensor<2x5xf32>, tensor<f32>) -> tensor<2xf32>
return %r : tensor<2xf32>)",
        R"(%a = stablehlo.pad %x, %z, low = [0, 0], high = [0, 0], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x5xf32>
%b = stablehlo.pad %a, %o, low = [0, 0], high = [2, 0], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<4x5xf32>
%s = sdy.all_slice [{"d"}, {}] %b out_sharding=<@mesh, [{"d"}, {}]> : (tensor<4x5xf32>) -> tensor<2x5xf32>
%r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : (tensor<2x5xf32>,)",
        R"(%a = stablehlo.pad %x, %z, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x6xf32>
%b = stablehlo.pad %a, %o, low = [0, 0], high = [2, 0], interior = [0, 0] : (tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf32>
%s = sdy.all_slice [{"d"}, {}] %b out_sharding=<@mesh, [{"d"}, {}]> : (tensor<4x6xf32>) -> tensor<2x6xf32>
%r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>} : (tensor<2x6xf32>,)",
        "reduce", R"("d"=2)"},
    {"partial sum that is put into one over devices in another order",
        R"((%p: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}, %q: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}))",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%a = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
%b = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x2xf32>, tensor<f32>) -> tensor<2xf32>
%c = stablehlo.constant dense<1> : tensor<i32>
%s = stablehlo.dynamic_update_slice %a, %b, %c : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
return %s : tensor<4xf32>)",
        R"((%p: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}, %q: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}))",
        R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
%a = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x4xf32>, tensor<f32>) -> tensor<4xf32>
%b = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
%c = stablehlo.constant dense<1> : tensor<i32>
%s = stablehlo.dynamic_update_slice %a, %b, %c : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
%r = sdy.all_reduce {"d"} %s out_sharding=<@mesh, [{}]> : tensor<4xf32>
return %r : tensor<4xf32>)",
        "return %r", "return %r", "dynamic_update_slice", kTwoMeshes,
        R"((%p: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@other, [{"d"}, {}]>}, %q: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}))"},
};

#undef S
#undef A
#undef ZERO
#undef SUM
#undef ROWS

const FaultyPair& pairAt(std::size_t index)
{
    return index < std::size(kPairs) ? kPairs[index] : kGranted[index - std::size(kPairs)];
}

Program programOf(const char* mesh, const char* signature, const std::string& ops)
{
    const std::string text = fmt::format(
        "module {{\n  sdy.mesh @mesh = <[{}]>\n  func.func public @main{} {{\n{}\n  }}\n}}\n", mesh, signature, ops);
    auto program = readProgram(text, "pair");
    if (!program)
        qWarning("%s", program.error().front().message.c_str());
    return program ? *std::move(program) : Program();
}

} // namespace

namespace {

/// Attention and its derivative, whose sequences of 8 lie on four devices; keys and values go round. `sharesKeys`: two devices have one head each of
/// those that share keys and values, so that the cotangents of these are parts of sums.
Program ringProgram(const char* type, bool sharesKeys)
{
    const std::string t = type;
    const auto attributes = std::string(" {causal = true, context = \"ring\", operand_type = f32, scale = 5.0e-1 : f64, "
                                        "segmented = false, softcap = 0.0e+0 : f64, "
                                        "windowed = false, sdy.sharding = #sdy.sharding_per_value<[");
    const std::string split5 = sharesKeys ? "<@mesh, [{}, {\"d\"}, {}, {\"h\"}, {}]>" : "<@mesh, [{}, {\"d\"}, {}, {}, {}]>";
    const std::string split4 = "<@mesh, [{}, {\"d\"}, {}, {}]>";
    const std::string splitRows = sharesKeys ? "<@mesh, [{}, {\"d\"}, {}, {\"h\"}]>" : split4;
    const std::string heads = sharesKeys ? "1x2" : "2x1"; // of keys, and of queries for each
    const std::string q = "tensor<1x8x" + heads + "x2x" + t + ">";
    const std::string k = "tensor<1x8x" + heads.substr(0, 1) + "x2x" + t + ">";
    const std::string rows = "tensor<1x8x" + heads + "xf32>";
    const std::string five = " {sdy.sharding = #sdy.sharding" + split5 + "}";
    const std::string four = " {sdy.sharding = #sdy.sharding" + split4 + "}";
    const std::string ops = "%p = stablehlo.iota dim = 0 : tensor<8xi32>\n%i = stablehlo.iota dim = 0 : tensor<8xi32>\n"
                            "%r:2 = \"mw.attention\"(%q, %k, %v, %p, %i)"
        + attributes + split5 + ", " + splitRows + "]>} : (" + q + ", " + k + ", " + k + ", tensor<8xi32>, tensor<8xi32>) -> ("
        + q + ", " + rows + ")\n%g:3 = \"mw.attention_grad\"(%q, %k, %v, %p, %i, %r#0, %r#1, %c)" + attributes + split5 + ", "
        + split4 + ", " + split4 + "]>} : (" + q + ", " + k + ", " + k + ", tensor<8xi32>, tensor<8xi32>, " + q + ", " + rows
        + ", " + q + ") -> (" + q + ", " + k + ", " + k + ")\nreturn %r#0, %g#0, %g#1, %g#2 : " + q + ", " + q + ", " + k + ", "
        + k;
    const std::string signature = "(%q: " + q + five + ", %k: " + k + four + ", %v: " + k + four + ", %c: " + q + five + ") -> ("
        + q + five + ", " + q + five + ", " + k + four + ", " + k + four + ")";
    return programOf(sharesKeys ? "\"d\"=4, \"h\"=2" : "\"d\"=4", signature.c_str(), ops);
}

/// The ops of a kind, in their order.
std::vector<OpId> opsOf(const Function& function, OpKind kind)
{
    std::vector<OpId> ops;
    for (const OpId op : function.body().ops) {
        if (function[op].kind == kind)
            ops.push_back(op);
    }
    return ops;
}

} // namespace

void TestProve::faultyRingsAreRejected_data()
{
    QTest::addColumn<QString>("type");
    QTest::addColumn<bool>("sharesKeys");
    QTest::addColumn<QString>("fault");
    for (const auto& [type, sharesKeys] : {std::pair{"f32", false}, {"bf16", false}, {"f32", true}}) {
        for (const char* fault : {"", "the same keys twice", "keys of one part with values of another", "positions of other keys",
                 "statistics of an earlier part", "a part less", "keys that go the other way", "cotangents that stay away",
                 "a part of a gradient twice"})
            QTest::addRow("%s%s: %s", type, sharesKeys ? ", shared keys" : "", *fault == '\0' ? "right" : fault)
                << QString(type) << sharesKeys << QString(fault);
    }
}

void TestProve::faultyRingsAreRejected()
{
    QFETCH(QString, type);
    QFETCH(bool, sharesKeys);
    QFETCH(QString, fault);
    auto made = propagateAndPartition(ringProgram(qPrintable(type), sharesKeys));
    QVERIFY2(made, made ? "" : made.error().front().message.c_str());
    Function& device = made->device.stages.front().functions.front().function;
    const std::vector<OpId> parts = opsOf(device, OpKind::Attention);
    const std::vector<OpId> moves = opsOf(device, OpKind::CollectivePermute);
    const std::vector<OpId> adds = opsOf(device, OpKind::Add);
    QCOMPARE(parts.size(), std::size_t{4});
    QCOMPARE(opsOf(device, OpKind::AttentionGrad).size(), std::size_t{4});
    QCOMPARE(moves.size(), std::size_t{3 * 2 + 3 * 2 + 4 * 2}); // keys and values, again, and their cotangents
    const auto copy = [&](std::size_t from, std::size_t to, std::size_t operand) {
        device[parts[to]].operands[operand] = device[parts[from]].operands[operand];
    };
    const auto replace = [&](ValueId value, ValueId by) {
        for (const OpId op : device.body().ops)
            std::replace(device[op].operands.begin(), device[op].operands.end(), value, by);
        std::replace(device.body().results.begin(), device.body().results.end(), value, by);
    };
    if (fault == "the same keys twice") {
        for (const std::size_t operand : {std::size_t{1}, std::size_t{2}, std::size_t{4}})
            copy(1, 2, operand);
    } else if (fault == "keys of one part with values of another") {
        copy(1, 2, 1);
    } else if (fault == "positions of other keys") {
        copy(0, 1, 4);
    } else if (fault == "statistics of an earlier part") {
        copy(1, 2, 6);
    } else if (fault == "a part less") {
        for (const std::size_t result : {std::size_t{0}, std::size_t{1}})
            replace(device[parts[3]].results[result], device[parts[2]].results[result]);
    } else if (fault == "keys that go the other way") {
        auto& sources = device[moves.front()].as<CollectiveAttributes>().sources;
        std::rotate(sources.begin(), sources.begin() + 2, sources.end());
    } else if (fault == "cotangents that stay away") {
        replace(device[moves.back()].results.front(), device[moves.back()].operands.front());
    } else if (fault == "a part of a gradient twice") {
        device[adds.front()].operands[0] = device[adds.front()].operands[1];
    }
    const Proof proof = prove(made->propagated, made->device);
    QVERIFY2(proof.isProved() == fault.isEmpty(), proof.isProved() ? "proved" : whyNot(proof).c_str());
}

void TestProve::faultsAreRejected_data()
{
    QTest::addColumn<int>("index");
    for (std::size_t i = 0; i < std::size(kPairs) + std::size(kGranted); ++i)
        QTest::newRow(pairAt(i).name) << static_cast<int>(i);
}

void TestProve::faultsAreRejected()
{
    QFETCH(int, index);
    const FaultyPair& pair = pairAt(static_cast<std::size_t>(index));
    const Program source = programOf(pair.mesh, pair.signature, pair.source);
    QCOMPARE(source.functions.size(), std::size_t{1});
    const Program right = programOf(pair.mesh, pair.localSignature, pair.device);
    QCOMPARE(right.functions.size(), std::size_t{1});
    const Proof proof = prove(source, deviceProgramOf(right));
    QVERIFY2(proof.isProved(), whyNot(proof).c_str());

    std::string changed = pair.device;
    const std::size_t place = changed.find(pair.right);
    QVERIFY(place != std::string::npos);
    changed.replace(place, std::string_view(pair.right).size(), pair.wrong);
    const Program wrong
        = programOf(pair.mesh, pair.wrongSignature != nullptr ? pair.wrongSignature : pair.localSignature, changed);
    QCOMPARE(wrong.functions.size(), std::size_t{1});
    const Proof refuted = prove(source, deviceProgramOf(wrong));
    QVERIFY(!refuted.isProved());
    const ProofObstacle& obstacle = refuted.functions.front().obstacles.front();
    QVERIFY2(*pair.op == '\0' || obstacle.opName == pair.op, whyNot(refuted).c_str());
    if (!obstacle.op.valid())
        return;
    // The programs that show it have the op and no more than it takes.
    const auto& ops = obstacle.device.body().ops;
    QVERIFY(std::any_of(ops.begin(), ops.end(), [&](OpId op) { return opName(obstacle.device[op]) == obstacle.opName; }));
    QVERIFY(ops.size() <= wrong.functions.front().body().ops.size());
    QVERIFY(!obstacle.has.empty() && !obstacle.has.front().pieces.empty());
    QVERIFY(!obstacle.source.blocks.empty());
}

/// A device program of another mesh, of other arguments or of other functions is not the source's.
void TestProve::programsOfOthersAreRejected()
{
    const FaultyPair& pair = kPairs[0];
    const Program source = programOf(pair.mesh, pair.signature, pair.source);
    const Program device = programOf(pair.mesh, pair.localSignature, pair.device);
    QVERIFY(prove(source, deviceProgramOf(device)).isProved());

    const auto saysOf = [&](const Program& other) {
        const Proof proof = prove(source, deviceProgramOf(other));
        return proof.isProved() ? QString("proved") : QString::fromStdString(whyNot(proof));
    };
    Program renamed = device;
    renamed.functions.front().name = "other";
    QVERIFY2(saysOf(renamed).contains("the source has no such function"), qPrintable(saysOf(renamed)));
    QVERIFY2(saysOf(renamed).contains("the device program has no such function"), qPrintable(saysOf(renamed)));
    Program empty = device;
    empty.functions.clear();
    QVERIFY2(saysOf(empty).contains("the device program has no such function"), qPrintable(saysOf(empty)));
    Program wider = device;
    Function& function = wider.functions.front();
    function[function.arguments().front()].type.dtype = DType::F64;
    QVERIFY2(saysOf(wider).contains("another element type"), qPrintable(saysOf(wider)));
    Program turned = device;
    turned.meshes.front().mesh = valueOf(parseMesh("t=2,d=2"));
    QVERIFY2(saysOf(turned).contains("its mesh has other axes"), qPrintable(saysOf(turned)));
}

/// Devices meet by the layout of a collective's operand, and donated memory is gone.
void TestProve::claimsAreNotTrusted()
{
    const FaultyPair& pair = kPairs[0];
    const Program source = programOf(kTwoMeshes, pair.signature, pair.source);
    const Program right = programOf(kTwoMeshes, pair.localSignature, pair.device);
    QVERIFY(prove(source, deviceProgramOf(right)).isProved());

    Program turned = right;
    Function& function = turned.functions.front();
    const auto collective = std::find_if(
        function.body().ops.begin(), function.body().ops.end(), [&](OpId op) { return function[op].kind == OpKind::AllReduce; });
    QVERIFY(collective != function.body().ops.end());
    function[function[*collective].operands.front()].sharding = TensorSharding::replicatedOf(2);
    function[function[*collective].operands.front()].sharding->mesh = 1;
    const Proof onOther = prove(source, deviceProgramOf(turned));
    QVERIFY2(QString::fromStdString(whyNot(onOther)).contains("on another mesh"), whyNot(onOther).c_str());

    Program given = right;
    given.functions.front().donations.push_back({0, 0});
    const Proof donated = prove(source, deviceProgramOf(given));
    QVERIFY2(QString::fromStdString(whyNot(donated)).contains("which stays in the source"), whyNot(donated).c_str());

    const auto moved = [](const char* signature, const char* ops) { return programOf("\"d\"=2, \"t\"=2", signature, ops); };
    Program before = moved(R"((%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"t"}]>})
        -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}))",
        "return %x : tensor<8xf32>");
    Program after = moved(R"((%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"t"}]>})
        -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}))",
        R"(%0 = sdy.all_gather [{"t"}] %x out_sharding=<@mesh, [{}]> : (tensor<4xf32>) -> tensor<8xf32>
        %1 = sdy.all_slice [{"d"}] %0 out_sharding=<@mesh, [{"d"}]> : (tensor<8xf32>) -> tensor<4xf32>
        return %1 : tensor<4xf32>)");
    const Proof apart = prove(before, deviceProgramOf(after));
    QVERIFY2(apart.isProved(), whyNot(apart).c_str());
    for (Program* program : {&before, &after})
        program->functions.front().donations.push_back({0, 0});
    const Proof inPlace = prove(before, deviceProgramOf(after));
    QVERIFY2(QString::fromStdString(whyNot(inPlace)).contains("which lies otherwise"), whyNot(inPlace).c_str());
}

void TestProve::sumsOfManyTerms_data()
{
    QTest::addColumn<int>("count");
    for (const int count : {3, 64, 127, 128, 129, 130, 300})
        QTest::addRow("%d terms", count) << count;
}

/// One after the other, from both ends, or by halves: it is one sum, whose terms are counted.
void TestProve::sumsOfManyTerms()
{
    QFETCH(int, count);
    GlobalValues values;
    std::vector<GlobalId> terms;
    for (int i = 0; i < count; ++i)
        terms.push_back(values.fresh("term", {2}, DType::F32, 0));
    const auto chain = [&](const std::vector<GlobalId>& of) {
        GlobalId sum = of.front();
        for (std::size_t i = 1; i < of.size(); ++i)
            sum = values.sum(sum, of[i]);
        return sum;
    };
    const std::vector<GlobalId> first(terms.begin(), terms.begin() + count / 2);
    const std::vector<GlobalId> second(terms.begin() + count / 2, terms.end());
    std::vector<GlobalId> reversed(terms.rbegin(), terms.rend());
    QCOMPARE(chain(reversed), chain(terms));
    QCOMPARE(values.sum(chain(second), chain(first)), chain(terms));
    reversed.front() = reversed.back(); // one twice, another one not at all
    QVERIFY(chain(reversed) != chain(terms));
    reversed.pop_back();
    QVERIFY(chain(reversed) != chain(terms));
}

void TestProve::devicesAgreeOnResults_data()
{
    QTest::addColumn<QString>("ops");
    QTest::addColumn<bool>("agree");
    // Positions 0 to 3 are (d, t) = (0, 0), (0, 1), (1, 0), (1, 1).
    QTest::newRow("the id") << "%n = stablehlo.convert %i : (tensor<ui32>) -> tensor<f32>\n" << false;
    const auto computed = [](const char* op, const char* number) {
        return QString("%c = stablehlo.constant dense<%1> : tensor<ui32>\n%k = stablehlo.%2 %i, %c : tensor<ui32>\n"
                       "%n = stablehlo.convert %k : (tensor<ui32>) -> tensor<f32>\n")
            .arg(number, op);
    };
    QTest::newRow("the place along d") << computed("divide", "2") << true;
    QTest::newRow("the place along t") << computed("remainder", "2") << false;
    QTest::newRow("nothing of the id") << computed("minimum", "0") << true;
    QTest::newRow("whether it is the first of all") << computed("minimum", "1") << false;
    for (const auto& [list, agree] : {std::pair("[5, 5, 7, 7]", true), std::pair("[5, 7, 5, 7]", false)})
        QTest::addRow("a number of %s", list) << QString("%l = stablehlo.constant dense<%1> : tensor<4xi32>\n"
                                                         "%k = stablehlo.convert %i : (tensor<ui32>) -> tensor<i32>\n"
                                                         "%s = stablehlo.dynamic_slice %l, %k, sizes = [1] : (tensor<4xi32>, "
                                                         "tensor<i32>) -> tensor<1xi32>\n"
                                                         "%r = stablehlo.reshape %s : (tensor<1xi32>) -> tensor<i32>\n"
                                                         "%n = stablehlo.convert %r : (tensor<i32>) -> tensor<f32>\n")
                                                     .arg(list)
                                              << agree;
}

/// What the devices of a manual computation compute of their ids may differ along the axes that its result is split over, and along no other.
void TestProve::devicesAgreeOnResults()
{
    QFETCH(QString, ops);
    QFETCH(bool, agree);
    const QString signature = "(%x: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}]>}) -> tensor<2xf32>";
    const QString body = "%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{\"d\"}]>] out_shardings=[<@mesh, [{\"d\"}]>] "
                         "manual_axes={\"d\"} (%a: tensor<1xf32>) {\n%i = stablehlo.partition_id : tensor<ui32>\n"
        + ops
        + "%b = stablehlo.reshape %n : (tensor<f32>) -> tensor<1xf32>\n%m = stablehlo.add %a, %b : tensor<1xf32>\n"
          "sdy.return %m : tensor<1xf32>\n} : (tensor<2xf32>) -> tensor<2xf32>\nreturn %0 : tensor<2xf32>";
    const auto made = propagateAndPartition(programOf("\"d\"=2, \"t\"=2", qPrintable(signature), body.toStdString()));
    QVERIFY2(made, made ? "" : made.error().front().message.c_str());
    const Proof proof = prove(made->propagated, made->device);
    QCOMPARE(QString::fromStdString(whyNot(proof)).contains("may differ along an axis"), !agree);
    QVERIFY2(proof.isProved() == agree, whyNot(proof).c_str());
}

MESHWRIGHT_TEST(TestProve)

} // namespace tst_prove

#include "tst_prove.moc"
