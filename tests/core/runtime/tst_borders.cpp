// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/device_program.h"
#include "core/runtime/evaluate.h"
#include "core/text/program_text.h"
#include "tests/run_on_devices.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <fmt/ranges.h>

#include <QRandomGenerator>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace tst_borders {

using namespace meshwright;
using namespace meshwright::test;
using tests::DeviceRun;

namespace {

Program programOf(const std::string& text)
{
    auto program = readProgram(text, "program.mlir");
    if (!program)
        qFatal("%s\n%s", text.c_str(), describe(program.error()).c_str());
    return *std::move(program);
}

QString collectivesText(const DeviceStage& stage)
{
    QStringList lines;
    for (const CollectiveUse& use : collectivesOf(stage.functions.front(), stage.mesh()))
        lines << QString::fromStdString(fmt::format("{} {} {}", opName(use.kind), use.axes, use.payloadBytes));
    return lines.join("; ");
}

QString layoutsText(const DeviceStage& stage)
{
    const Function& function = stage.functions.front().function;
    QStringList layouts;
    for (const ValueId result : function.results()) {
        const TensorSharding& sharding = *function[result].sharding;
        const NamedMesh& mesh = stage.meshes[static_cast<std::size_t>(sharding.mesh)];
        layouts << QString::fromStdString(layoutText(sharding, mesh.mesh) + (sharding.mesh == 0 ? "" : " @" + mesh.name));
    }
    return layouts.join("; ");
}

/// Runs the program on devices and compares every result with that of one thread.
QString compared(const Program& program, DeviceRun& run)
{
    std::vector<HostArray> arguments;
    const Function& function = program.functions.front();
    for (std::size_t i = 0; i < function.arguments().size(); ++i)
        arguments.push_back(randomArray(function[function.arguments()[i]].type, i + 1));
    auto onDevices = tests::runOnDevices(program, arguments);
    if (!onDevices)
        return QString::fromStdString(describe(onDevices.error()));
    run = *std::move(onDevices);
    const auto whole = evaluate(function, arguments, {.meshes = program.meshes});
    if (!whole)
        return QString::fromStdString(describe(whole.error()));
    if (!run.replicasAgree)
        return "devices that should hold the same do not";
    for (std::size_t i = 0; i < whole->size(); ++i) {
        const std::string wrong = difference(run.results[i], (*whole)[i].values(), 1e-5);
        if (!wrong.empty())
            return QString::fromStdString(fmt::format("result {}: {}", i, wrong));
    }
    return {};
}

constexpr const char* kMesh = "sdy.mesh @mesh = <[\"a\"=2, \"b\"=2]>\n";

/// `%x: tensor<8x4xf32> {..}` for arguments or `tensor<8x4xf32> {..}` for results.
std::string placed(const std::string& type, const std::string& sharding)
{
    return sharding.empty() ? type : type + " {sdy.sharding = #sdy.sharding<" + sharding + ">}";
}

} // namespace

/// How arguments come and results leave: results as they are declared, partial sums, several meshes and orders of devices.
class TestBorders : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void values_data();
    void values();
    void problems_data();
    void problems();
    void zerosKeepTheirSigns_data();
    void zerosKeepTheirSigns();
    void randomMeshes_data();
    void randomMeshes();
};

void TestBorders::values_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("collectives"); ///< kind, axes, bytes
    QTest::addColumn<QString>("layouts"); ///< of the results

    const auto row = [](const char* name, const std::string& text, const char* collectives, const char* layouts) {
        QTest::newRow(name) << QString::fromStdString(text) << collectives << layouts;
    };
    const auto sine = [](const std::string& from, const std::string& to) {
        return kMesh + ("func.func @main(%x: " + placed("tensor<8x4xf32>", from)) + ") -> (" + placed("tensor<8x4xf32>", to)
            + ") {\n  %0 = stablehlo.sine %x : tensor<8x4xf32>\n  return %0 : tensor<8x4xf32>\n}\n";
    };
    row("declared whole", sine("@mesh, [{\"a\"}, {}]", "@mesh, [{}, {}]"), "all_gather a 128", "P()");
    row("declared split", sine("@mesh, [{\"a\"}, {}]", "@mesh, [{\"a\", \"b\"}, {}]"), "", "P(('a', 'b'),)");
    row("declared along another dimension", sine("@mesh, [{\"a\"}, {}]", "@mesh, [{}, {\"a\"}]"), "all_to_all a 64",
        "P(None, 'a')");
    row("declared open", sine("@mesh, [{\"a\"}, {}]", "@mesh, [{?}, {?}]"), "", "P('a',)");
    row("nothing declared", sine("@mesh, [{\"a\"}, {}]", ""), "", "P('a',)");
    row("declared partial", sine("@mesh, [{\"a\"}, {}]", "@mesh, [{\"a\"}, {}], unreduced={\"b\"}"), "",
        "P('a',) partial over b");
    row("partial by maximum comes and goes",
        sine("@mesh, [{}, {\"b\"}], unreduced=max{\"a\"}", "@mesh, [{}, {\"b\"}], unreduced=max{\"a\"}"), "all_reduce a 64",
        "P(None, 'b') partial over a");

    // Caches of keys and values stay split while rows of them are replaced or added to.
    const auto scatter = [](const std::string& cache, const std::string& rows, const char* combined) {
        const std::string arrays = "tensor<8x4xf32>, tensor<8x4xf32>";
        return kMesh + ("func.func @main(%k: " + placed("tensor<8x4xf32>", cache)) + ", %v: " + placed("tensor<8x4xf32>", cache)
            + ", %i: " + placed("tensor<6x1xi32>", rows) + ", %p: " + placed("tensor<6x4xf32>", rows)
            + ", %q: " + placed("tensor<6x4xf32>", rows) + ") -> (" + arrays
            + ") {\n  %0:2 = \"stablehlo.scatter\"(%k, %v, %i, %p, %q) <{indices_are_sorted = false, scatter_dimension_numbers = "
              "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
              "index_vector_dim = 1>, unique_indices = false}> ({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, "
              "%d: tensor<f32>):\n"
            + combined + "  }) : (" + arrays + ", tensor<6x1xi32>, tensor<6x4xf32>, tensor<6x4xf32>) -> (" + arrays
            + ")\n  return %0#0, %0#1 : " + arrays + "\n}\n";
    };
    const char* const sums = "    %s = stablehlo.add %a, %c : tensor<f32>\n    %t = stablehlo.add %b, %d : tensor<f32>\n"
                             "    stablehlo.return %s, %t : tensor<f32>, tensor<f32>\n";
    const char* const updates = "    stablehlo.return %c, %d : tensor<f32>, tensor<f32>\n";
    const char* const mixed = "    %s = stablehlo.add %a, %c : tensor<f32>\n    %t = stablehlo.maximum %b, %d : tensor<f32>\n"
                              "    stablehlo.return %s, %t : tensor<f32>, tensor<f32>\n";
    row("two caches take rows", scatter("@mesh, [{\"a\"}, {}]", "", updates), "", "P('a',); P('a',)");
    row("two caches add rows", scatter("@mesh, [{\"a\"}, {}]", "", sums), "", "P('a',); P('a',)");
    row("two caches add rows that are split", scatter("@mesh, [{\"a\"}, {}]", "@mesh, [{\"b\"}, {}]", sums),
        "all_reduce b 64; all_reduce b 64", "P('a',); P('a',)");
    row("two caches, each by a reduction of its own", scatter("@mesh, [{\"a\"}, {}]", "@mesh, [{\"b\"}, {}]", mixed),
        "all_gather b 24; all_gather b 96; all_gather b 96", "P('a',); P('a',)");

    // Factors 2, 2 and 6: a splits the second, which the result cannot have, b the third.
    row("a reshape gathers what its result cannot have",
        kMesh + ("func.func @main(%x: " + placed("tensor<2x12xf32>", "@mesh, [{}, {\"a\", \"b\"}]")) + ") -> ("
            + placed("tensor<4x6xf32>", "@mesh, [{}, {\"b\"}]")
            + ") {\n  %0 = stablehlo.reshape %x : (tensor<2x12xf32>) -> tensor<4x6xf32>\n  return %0 : tensor<4x6xf32>\n}\n",
        "all_gather a 48", "P(None, 'b')");

    const auto product = [](const std::string& to) {
        return kMesh + ("func.func @main(%x: " + placed("tensor<8x4xf32>", "@mesh, [{}, {\"a\"}]"))
            + ", %w: " + placed("tensor<4x6xf32>", "@mesh, [{\"a\"}, {}]") + ") -> (" + placed("tensor<8x6xf32>", to)
            + ") {\n  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x6xf32>) -> "
              "tensor<8x6xf32>\n  return %0 : tensor<8x6xf32>\n}\n";
    };
    row("a product leaves as parts of its sum", product("@mesh, [{}, {}], unreduced={\"a\"}"), "", "P() partial over a");
    row("a product leaves as its sum", product("@mesh, [{}, {}]"), "all_reduce a 192", "P()");
    row("a product leaves scattered", product("@mesh, [{\"a\"}, {}]"), "reduce_scatter a 192", "P('a',)");
    row("a product as parts of a maximum", product("@mesh, [{}, {}], unreduced=max{\"a\"}"), "all_reduce a 192",
        "P() partial over a");

    row("a maximum leaves as parts of it",
        std::string(kMesh)
            + R"(func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced=max{"a"}>}) {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %i) applies stablehlo.maximum across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
})",
        "", "P() partial over a");
    row("truth values leave as parts",
        std::string(kMesh)
            + R"(func.func @main(%x: tensor<8xi1> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"a"}>}, %y: tensor<8xi1> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) -> (tensor<8xi1> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"a"}>}, tensor<8xi1> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}], unreduced=min{"a"}>}) {
  return %x, %y : tensor<8xi1>, tensor<8xi1>
})",
        "", "P() partial over a; P('b',) partial over a");
    row("truth values come as parts",
        std::string(kMesh)
            + R"(func.func @main(%x: tensor<8xi1> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"a"}>}, %y: tensor<8xi1> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced=min{"a"}>}) -> (tensor<8xi1> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, tensor<8xi1> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %0 = stablehlo.not %x : tensor<8xi1>
  return %0, %y : tensor<8xi1>, tensor<8xi1>
})",
        "all_reduce a 8; all_reduce a 8", "P(); P()");
    row("an argument in two layouts",
        std::string(kMesh)
            + R"(func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}, tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  return %x, %x : tensor<8x4xf32>, tensor<8x4xf32>
})",
        "all_to_all a 64", "P(None, 'a'); P('a',)");
    row("one value in two layouts",
        std::string(kMesh)
            + R"(func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) {
  %0 = stablehlo.sine %x : tensor<8x4xf32>
  return %0, %0 : tensor<8x4xf32>, tensor<8x4xf32>
})",
        "all_gather a 128", "P(); P('b',)");
    row("a constant",
        std::string(kMesh)
            + R"(func.func @main() -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"a"}>}) {
  %0 = stablehlo.constant dense<3.0> : tensor<8xf32>
  return %0, %0 : tensor<8xf32>, tensor<8xf32>
})",
        "", "P('a',); P() partial over a");
    row("a donated argument whose result lies otherwise",
        std::string(kMesh)
            + R"(func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>, tf.aliasing_output = 0 : i32}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = stablehlo.sine %x : tensor<8x4xf32>
  %1 = stablehlo.add %0, %x : tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
})",
        "all_gather a 128", "P(); P('a',)");
    row("a loop's result",
        std::string(kMesh)
            + R"(func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %c5 = stablehlo.constant dense<5> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c0, %v = %x) : tensor<i32>, tensor<8x4xf32>
  cond {
    %2 = stablehlo.compare LT, %i, %c5 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %2 = stablehlo.sine %v : tensor<8x4xf32>
    %3 = stablehlo.add %i, %c1 : tensor<i32>
    stablehlo.return %3, %2 : tensor<i32>, tensor<8x4xf32>
  }
  return %0#1 : tensor<8x4xf32>
})",
        "all_gather a 128", "P()");
    row("a call's result",
        std::string(kMesh)
            + R"(func.func public @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = call @f(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
func.func private @f(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.sine %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
})",
        "all_gather a 128", "P()");

    // A constraint on what leaves a manual computation is a change of layout; its block keeps its pieces.
    row("a manual computation's result", std::string(kMesh) + R"(func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"a", "b"} (%p: tensor<8x4xf32>) {
    %r = stablehlo.sine %p : tensor<8x4xf32>
    sdy.return %r : tensor<8x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
})",
        "", "P('a',)");

    const auto onMeshes = [](const std::string& meshes, const std::string& x, const std::string& y, const std::string& to) {
        return meshes + "func.func @main(%x: " + placed("tensor<8x4xf32>", x) + ", %y: " + placed("tensor<8x4xf32>", y) + ") -> ("
            + placed("tensor<8x4xf32>", to)
            + ") {\n  %0 = stablehlo.subtract %x, %y : tensor<8x4xf32>\n  return %0 : tensor<8x4xf32>\n}\n";
    };
    const std::string twoOrders
        = "sdy.mesh @m = <[\"a\"=2, \"b\"=2]>\nsdy.mesh @n = <[\"a\"=2, \"b\"=2], device_ids=[3, 1, 2, 0]>\n";
    row("an argument in another order",
        onMeshes(twoOrders, "@m, [{\"a\"}, {\"b\"}]", "@n, [{\"a\"}, {\"b\"}]", "@m, [{\"a\"}, {\"b\"}]"),
        "collective_permute a,b 32", "P('a', 'b')");
    row("a result in another order",
        onMeshes(twoOrders, "@m, [{\"a\"}, {\"b\"}]", "@m, [{\"a\"}, {\"b\"}]", "@n, [{\"a\"}, {\"b\"}]"),
        "collective_permute a,b 32", "P('a', 'b') @n");
    row("whole in any order", onMeshes(twoOrders, "@m, [{}, {}]", "@n, [{}, {}]", "@n, [{}, {}]"), "", "P()");
    row("all in the other order", onMeshes(twoOrders, "@n, [{\"a\"}, {}]", "@n, [{\"a\"}, {}]", "@n, [{\"a\"}, {}]"), "",
        "P('a',)");
    const std::string finer
        = "sdy.mesh @m = <[\"a\"=4, \"b\"=2]>\nsdy.mesh @n = <[\"a\"=2, \"b\"=4]>\nsdy.mesh @l = <[\"z\"=8]>\n";
    row("4x2 beside 2x4", onMeshes(finer, "@m, [{\"a\"}, {\"b\"}]", "@n, [{\"a\", \"b\":(1)2}, {}]", "@n, [{\"a\"}, {\"b\"}]"),
        "all_to_all b 16; all_to_all a_1,b 16", "P('a_0', ('a_1', 'b'))");
    row("4x2 beside a line of 8", onMeshes(finer, "@m, [{\"a\"}, {}]", "@l, [{\"z\"}, {}]", "@l, [{\"z\"}, {}]"), "",
        "P(('a', 'b'),)");
    row("2x3 beside 3x2",
        "sdy.mesh @m = <[\"a\"=2, \"b\"=3]>\nsdy.mesh @n = <[\"a\"=3, \"b\"=2]>\nfunc.func @main(%x: "
            + placed("tensor<6x6xf32>", "@m, [{\"a\"}, {\"b\"}]") + ", %y: " + placed("tensor<6x6xf32>", "@n, [{\"b\"}, {\"a\"}]")
            + ") -> (" + placed("tensor<6x6xf32>", "@n, [{\"b\"}, {\"a\"}]")
            + ") {\n  %0 = stablehlo.subtract %x, %y : tensor<6x6xf32>\n  return %0 : tensor<6x6xf32>\n}\n",
        "collective_permute a,b 24; collective_permute a,b 24", "P('a', 'b') @n");
}

void TestBorders::values()
{
    QFETCH(QString, text);
    QFETCH(QString, collectives);
    QFETCH(QString, layouts);

    DeviceRun run;
    const QString wrong = compared(programOf(text.toStdString()), run);
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong));
    QCOMPARE(collectivesText(run.stage), collectives);
    QCOMPARE(layoutsText(run.stage), layouts);
}

void TestBorders::problems_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("message");

    QTest::newRow("a result that does not divide") << QString(kMesh)
            + R"(func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  return %x : tensor<3xf32>
})"
                                                   << "MW1104"
                                                   << "result 0: dim 0 of size 3 is not divisible by 2";
    const auto manual = [](const char* in, const char* out, const char* argument, const char* body, const char* result) {
        return QString(kMesh)
            + QString(R"(func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %m = sdy.manual_computation(%x) in_shardings=[<@mesh, %1>] out_shardings=[<@mesh, %2>] manual_axes={"a"} (%p: tensor<%3xf32>) {
    %4
  } : (tensor<8x4xf32>) -> tensor<%5xf32>
  return %x : tensor<8x4xf32>
})")
                  .arg(in, out, argument, body, result);
    };
    QTest::newRow("a constraint on a manual axis") << manual("[{\"a\"}, {}]", "[{\"a\"}, {}]", "4x4",
        "%r = sdy.sharding_constraint %p <@mesh, [{\"a\"}, {}]> : tensor<4x4xf32>\n    sdy.return %r : tensor<4x4xf32>", "8x4")
                                                   << "MW1204"
                                                   << "";
    QTest::newRow("a manual axis inside an automatic one")
        << manual("[{\"b\", \"a\"}, {}]", "[{\"a\"}, {}]", "4x4", "sdy.return %p : tensor<4x4xf32>", "8x4") << "MW1205"
        << "in_sharding 0 of a manual computation splits dim 0 by the manual axis \"a\" inside the automatic axis \"b\"";
    const QString orders = R"(sdy.mesh @m = <["a"=2, "b"=2]>
sdy.mesh @n = <["a"=2, "b"=2], device_ids=[3, 1, 2, 0]>
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@m, [{"a"}, {}]>] out_shardings=[<@m, [{"a"}, {}]>] manual_axes={"a"} (%p: tensor<4x4xf32>) {
    sdy.return %p : tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@n, [{"a"}, {}]>] out_shardings=[<@n, [{"a"}, {}]>] manual_axes={"a"} (%p: tensor<4x4xf32>) {
    sdy.return %p : tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
})";
    QTest::newRow("manual computations in two orders")
        << orders << "MW1214"
        << "manual computations are on @m and @n, which have the same devices in different orders";
}

void TestBorders::problems()
{
    QFETCH(QString, text);
    QFETCH(QString, id);
    QFETCH(QString, message);

    const auto partitioned = propagateAndPartition(programOf(text.toStdString()));
    QVERIFY(!partitioned);
    QCOMPARE(QString::fromStdString(partitioned.error().front().id), id);
    if (!message.isEmpty())
        QCOMPARE(QString::fromStdString(partitioned.error().front().message), message);
}

void TestBorders::zerosKeepTheirSigns_data()
{
    QTest::addColumn<QByteArray>("op");
    QTest::newRow("slice at a place that is computed")
        << QByteArray("stablehlo.dynamic_slice %x, %i, sizes = [4] : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>");
    QTest::newRow("gather") << QByteArray(
        "\"stablehlo.gather\"(%x, %j) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = "
        "[0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<8xf32>, tensor<4x1xi32>) -> tensor<4xf32>");
}

/// Parts of a result that lie on other devices are summed with nothing: 0 would take the sign of a -0.
void TestBorders::zerosKeepTheirSigns()
{
    QFETCH(QByteArray, op);
    const std::string mesh = "@mesh, [{\"a\", \"b\"}]";
    const Program program = programOf(std::string(kMesh) + "func.func public @main(%x: " + placed("tensor<8xf32>", mesh)
        + ", %i: tensor<i32>, %j: tensor<4x1xi32>) -> tensor<4xf32> {\n  %0 = " + op.toStdString()
        + "\n  return %0 : tensor<4xf32>\n}\n");
    const std::vector<double> numbers = {-0.0, 0.0, 1.0, -0.0, -0.0, 2.0, 0.0, -0.0};
    const std::vector<HostArray> arguments
        = {HostArray::of({DType::F32, {8}}, numbers), HostArray::of({DType::S32, {}}, std::vector<double>{2.0}),
            HostArray::of({DType::S32, {4, 1}}, std::vector<double>{2.0, 3.0, 4.0, 5.0})};
    const auto onDevices = tests::runOnDevices(program, arguments);
    QVERIFY2(onDevices, qPrintable(tests::described(onDevices)));
    for (std::size_t i = 0; i < 4; ++i) {
        const double made = onDevices->results.front().at(static_cast<std::int64_t>(i));
        QCOMPARE(made, numbers[i + 2]);
        QCOMPARE(std::signbit(made), std::signbit(numbers[i + 2]));
    }
}

void TestBorders::randomMeshes_data()
{
    QTest::addColumn<quint32>("seed");
    QTest::newRow("1") << quint32(1);
    QTest::newRow("2") << quint32(2);
    const quint32 fresh = QRandomGenerator::global()->generate();
    QTest::newRow(qPrintable(QString("fresh %1").arg(fresh))) << fresh;
}

/// Meshes of the same devices, in any shape and order, and arguments and results on any of them.
void TestBorders::randomMeshes()
{
    QFETCH(quint32, seed);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const std::vector<std::vector<std::vector<int>>> factorings = {{{8}, {4, 2}, {2, 4}, {2, 2, 2}}, {{6}, {2, 3}, {3, 2}},
        {{12}, {3, 4}, {4, 3}, {2, 6}, {6, 2}, {2, 2, 3}, {3, 2, 2}, {2, 3, 2}}};
    for (int draw = 0; draw < 60; ++draw) {
        const auto& shapes = factorings[below(factorings.size())];
        std::string text;
        std::vector<std::vector<int>> sizes;
        for (std::size_t mesh = 0; mesh < 2 + below(2); ++mesh) {
            sizes.push_back(shapes[below(shapes.size())]);
            text += fmt::format("sdy.mesh @m{} = <[", mesh);
            int devices = 1;
            for (std::size_t axis = 0; axis < sizes.back().size(); ++axis) {
                text += fmt::format("{}\"x{}\"={}", axis > 0 ? ", " : "", axis, sizes.back()[axis]);
                devices *= sizes.back()[axis];
            }
            text += "]";
            std::vector<int> order(static_cast<std::size_t>(devices));
            std::iota(order.begin(), order.end(), 0);
            if (below(2) == 0) {
                std::shuffle(order.begin(), order.end(), random);
                text += fmt::format(", device_ids=[{}]", fmt::join(order, ", "));
            }
            text += ">\n";
        }
        const auto sharding = [&] {
            const std::size_t mesh = below(sizes.size());
            std::vector<std::string> dims(2);
            std::vector<std::size_t> axes(sizes[mesh].size());
            std::iota(axes.begin(), axes.end(), std::size_t{0});
            std::shuffle(axes.begin(), axes.end(), random);
            for (const std::size_t axis : axes) {
                const std::size_t dim = below(3);
                if (dim < 2)
                    dims[dim] += fmt::format("{}\"x{}\"", dims[dim].empty() ? "" : ", ", axis);
            }
            return fmt::format("@m{}, [{{{}}}, {{{}}}]", mesh, dims[0], dims[1]);
        };
        text += "func.func @main(%x: " + placed("tensor<24x24xf32>", sharding())
            + ", %y: " + placed("tensor<24x24xf32>", sharding()) + ") -> (" + placed("tensor<24x24xf32>", sharding()) + ", "
            + placed("tensor<24x24xf32>", sharding())
            + ") {\n  %0 = stablehlo.subtract %x, %y : tensor<24x24xf32>\n  %1 = sdy.sharding_constraint %0 <" + sharding()
            + "> : tensor<24x24xf32>\n  %2 = stablehlo.dot_general %1, %x, contracting_dims = [1] x [0] : (tensor<24x24xf32>, "
              "tensor<24x24xf32>) -> tensor<24x24xf32>\n  return %2, %y : tensor<24x24xf32>, tensor<24x24xf32>\n}\n";
        DeviceRun run;
        const QString wrong = compared(programOf(text), run);
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong + "\n" + QString::fromStdString(text)));
    }
}

MESHWRIGHT_TEST(TestBorders)

} // namespace tst_borders

#include "tst_borders.moc"
