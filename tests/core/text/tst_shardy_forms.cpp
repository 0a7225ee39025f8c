// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/program_text.h"
#include "tests/test_class.h"

namespace tst_shardy_forms {

using namespace meshwright;

namespace {

constexpr const char* kMesh = "sdy.mesh @mesh = <[\"x\"=2, \"y\"=4]>\n";

/// A function of %a, which is split by x along dimension 0, around one op that makes %0.
QString around(const QString& op)
{
    return QString(kMesh)
        + "func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}) -> tensor<8x16xf32> {\n  "
        + op + "\n  return %0 : tensor<8x16xf32>\n}\n";
}

} // namespace

/// The forms in which Shardy prints programs, each beside a plain one that says the same; and collectives that contradict their shardings.
class TestShardyForms : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void forms_data();
    void forms();
    void reductionKinds_data();
    void reductionKinds();
    void contradictions_data();
    void contradictions();
    void dataFlowEdges();
    void differingResults_data();
    void differingResults();
    void differingPart();
};

void TestShardyForms::forms_data()
{
    QTest::addColumn<QString>("form");
    QTest::addColumn<QString>("plain");

    const QString sine
        = "%0 = stablehlo.sine %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\"}, {\"y\"}]>]>} : tensor<8x16xf32>";
    const QString plain = around(sine);
    QString form = plain;
    QTest::newRow("a mesh with its name") << form.replace("= <[\"x\"", "= #sdy.mesh<[\"x\"") << plain;
    form = plain;
    QTest::newRow("a byte order mark") << form.prepend(QChar(QChar::ByteOrderMark)) << plain;
    form = plain;
    QTest::newRow("nested attributes") << form.replace(
        "per_value<[<@mesh, [{\"x\"}, {\"y\"}]>]>", "per_value<[#sdy.sharding<@mesh, [{\"x\"}, {\"y\"}]>]>")
                                       << plain;
    form = plain;
    QTest::newRow("a mesh behind its use") << form.remove(kMesh) + kMesh << plain;
    form = plain;
    QTest::newRow("a mesh in the generic form")
        << form.replace(kMesh, "\"sdy.mesh\"() <{mesh = #sdy.mesh<[\"x\"=2, \"y\"=4]>, sym_name = \"mesh\"}> : () -> ()\n")
        << plain;
    form = plain;
    QTest::newRow("attributes on a line of their own")
        << form.replace(" {sdy.sharding = #sdy.sharding_per", "\n    {sdy.sharding = #sdy.sharding_per") << plain;
    const QString kept = around("%0 = foo.bar %a {foo.attr = 1 : i64} : tensor<8x16xf32>");
    form = kept;
    QTest::newRow("of an op that is not known too") << form.replace(" {foo", "\n    {foo") << kept;
    const QString reduced = around("%0 = sdy.all_reduce max {\"y\"} %a out_sharding=<@mesh, [{\"x\"}, {}]> : tensor<8x16xf32>");
    form = reduced;
    QTest::newRow("a reduction in the generic form")
        << form.replace("sdy.all_reduce max {\"y\"} %a out_sharding=<@mesh, [{\"x\"}, {}]> : tensor<8x16xf32>",
               "\"sdy.all_reduce\"(%a) <{out_sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>, reduction_axes = "
               "#sdy<axis_ref_list{\"y\"}>, reduction_op = #sdy<reduction_op max>}> : (tensor<8x16xf32>) -> tensor<8x16xf32>")
        << reduced;
}

void TestShardyForms::forms()
{
    QFETCH(QString, form);
    QFETCH(QString, plain);
    QVERIFY(form != plain);
    const auto read = readProgram(form.toStdString(), "form.mlir");
    QVERIFY2(read, read ? "" : describe(read.error()).c_str());
    const auto expected = readProgram(plain.toStdString(), "plain.mlir");
    QVERIFY2(expected, expected ? "" : describe(expected.error()).c_str());
    QCOMPARE(QString::fromStdString(writeProgram(*read)), QString::fromStdString(writeProgram(*expected)));
}

void TestShardyForms::reductionKinds_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<int>("kind");
    QTest::newRow("sum") << "sdy.all_reduce {\"y\"}" << static_cast<int>(ReduceKind::Sum);
    QTest::newRow("sum in words") << "sdy.all_reduce sum {\"y\"}" << static_cast<int>(ReduceKind::Sum);
    QTest::newRow("max") << "sdy.all_reduce max {\"y\"}" << static_cast<int>(ReduceKind::Max);
    QTest::newRow("min") << "sdy.all_reduce min {\"y\"}" << static_cast<int>(ReduceKind::Min);
}

/// The kind is read, and written as it is read.
void TestShardyForms::reductionKinds()
{
    QFETCH(QString, text);
    QFETCH(int, kind);
    const auto program = readProgram(
        around("%0 = " + text + " %a out_sharding=<@mesh, [{\"x\"}, {}]> : tensor<8x16xf32>").toStdString(), "kinds.mlir");
    QVERIFY2(program, program ? "" : describe(program.error()).c_str());
    const auto kindOf = [](const Program& read) {
        const Function& function = read.functions.front();
        return static_cast<int>(function[function.body().ops.front()].as<CollectiveAttributes>().kind);
    };
    QCOMPARE(kindOf(*program), kind);
    const std::string written = writeProgram(*program);
    QVERIFY(QString::fromStdString(written).contains(QString(text).remove("sum ")));
    const auto again = readProgram(written, "again.mlir");
    QVERIFY2(again, again ? "" : describe(again.error()).c_str());
    QCOMPARE(kindOf(*again), kind);
}

void TestShardyForms::contradictions_data()
{
    QTest::addColumn<QString>("op"); ///< on %a, [{"x"}, {}]
    QTest::addColumn<QString>("message"); ///< empty: it is accepted

    const auto row = [](const char* name, const char* op, const char* message) { QTest::newRow(name) << op << message; };
    row("all-gather", "sdy.all_gather [{\"x\"}, {}] %a out_sharding=<@mesh, [{}, {}]>", "");
    row("all-gather of another axis", "sdy.all_gather [{\"y\"}, {}] %a out_sharding=<@mesh, [{}, {}]>",
        "sdy.all_gather contradicts its shardings: it takes {\"y\"} off dimension 0, which is split by {\"x\"}");
    row("all-gather to something else", "sdy.all_gather [{\"x\"}, {}] %a out_sharding=<@mesh, [{}, {\"y\"}]>",
        "sdy.all_gather contradicts its shardings: it makes dimension 1 {}, out_sharding says {\"y\"}");
    row("all-slice", "sdy.all_slice [{\"y\":(1)2}, {\"y\":(2)2}] %a out_sharding=<@mesh, [{\"x\", \"y\":(1)2}, {\"y\":(2)2}]>",
        "");
    row("all-slice without an effect", "sdy.all_slice [{}, {\"y\"}] %a out_sharding=<@mesh, [{\"x\"}, {}]>",
        "sdy.all_slice contradicts its shardings: it makes dimension 1 {\"y\"}, out_sharding says {}");
    row("all-to-all", "sdy.all_to_all [{\"x\"}: 0->1] %a out_sharding=<@mesh, [{}, {\"x\"}]>", "");
    row("all-to-all the other way", "sdy.all_to_all [{\"x\"}: 1->0] %a out_sharding=<@mesh, [{}, {\"x\"}]>",
        "sdy.all_to_all contradicts its shardings: it takes {\"x\"} off dimension 1, which is split by {}");
    row("permute", "sdy.collective_permute %a out_sharding=<@mesh, [{\"y\":(1)2}, {}]>", "");
    row("permute into more pieces", "sdy.collective_permute %a out_sharding=<@mesh, [{\"y\"}, {}]>",
        "sdy.collective_permute contradicts its shardings: it keeps the number of pieces, and out_sharding makes 4 of the 2 of "
        "dimension 0");
    row("all-reduce", "sdy.all_reduce {\"y\"} %a out_sharding=<@mesh, [{\"x\"}, {}]>", "");
    row("all-reduce over what splits it", "sdy.all_reduce {\"x\"} %a out_sharding=<@mesh, [{\"x\"}, {}]>",
        "sdy.all_reduce contradicts its shardings: it reduces over {\"x\"}, and its operand is split by {\"x\"}");
    row("all-reduce that leaves a partial sum",
        "sdy.all_reduce {\"y\"} %a out_sharding=<@mesh, [{\"x\"}, {}], unreduced={\"y\"}>",
        "sdy.all_reduce contradicts its shardings: it reduces over {\"y\"}, and out_sharding leaves {\"y\"} unreduced");
    row("reduce-scatter", "sdy.reduce_scatter [{}, {\"y\"}] %a out_sharding=<@mesh, [{\"x\"}, {\"y\"}]>", "");
    row("reduce-scatter along another dimension", "sdy.reduce_scatter [{\"y\"}, {}] %a out_sharding=<@mesh, [{\"x\"}, {\"y\"}]>",
        "sdy.reduce_scatter contradicts its shardings: it makes dimension 0 {\"x\", \"y\"}, out_sharding says {\"x\"}");
    row("to a partial sum", "sdy.sharded_to_unreduced [{\"x\"}, {}] %a out_sharding=<@mesh, [{}, {}], unreduced={\"x\"}>", "");
    row("a reshard may lead anywhere", "sdy.reshard %a <@mesh, [{}, {\"y\", \"x\"}]>", "");
}

void TestShardyForms::contradictions()
{
    QFETCH(QString, op);
    QFETCH(QString, message);
    const auto program = readProgram(around("%0 = " + op + " : tensor<8x16xf32>").toStdString(), "collective.mlir");
    if (message.isEmpty()) {
        QVERIFY2(program, program ? "" : describe(program.error()).c_str());
        return;
    }
    QVERIFY(!program);
    QCOMPARE(QString::fromStdString(program.error().front().id), QString("MW1333"));
    QCOMPARE(QString::fromStdString(program.error().front().message), message);
}

/// An edge is the value that it passes on, with the sharding that it says.
void TestShardyForms::dataFlowEdges()
{
    const auto program = readProgram((QString(kMesh) + R"(func.func @main(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = stablehlo.sine %a : tensor<8x16xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"x", ?}, {?}]> : tensor<8x16xf32>
  %2 = sdy.data_flow_edge %1 : tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
})")
                                         .toStdString(),
        "edges.mlir");
    QVERIFY2(program, program ? "" : describe(program.error()).c_str());
    const Function& function = program->functions.front();
    QCOMPARE(function.body().ops.size(), std::size_t{1});
    QCOMPARE(QString::fromStdString(shardyText(*function[function.results().front()].sharding, program->meshes.front().mesh)),
        QString("[{\"x\", ?}, {?}]"));
}

void TestShardyForms::differingResults_data()
{
    QTest::addColumn<QString>("body"); ///< of %p, a piece along x, as %r
    QTest::addColumn<bool>("differs");
    const QString sum
        = "({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%s = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %s : "
          "tensor<f32>\n}) : (tensor<4xf32>) -> tensor<4xf32>";
    const QString alongX = "[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>";
    const QString alongY = "[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>";
    QTest::newRow("its own piece") << "%r = stablehlo.sine %p : tensor<4xf32>" << true;
    QTest::newRow("summed over the axis") << "%r = \"stablehlo.all_reduce\"(%p) <{replica_groups = dense<" + alongX + "}> " + sum
                                          << false;
    QTest::newRow("summed over another axis")
        << "%r = \"stablehlo.all_reduce\"(%p) <{replica_groups = dense<" + alongY + "}> " + sum << true;
    QTest::newRow("made of no piece") << "%r = stablehlo.constant dense<1.0> : tensor<4xf32>" << false;
    QTest::newRow("its number")
        << "%i = stablehlo.partition_id : tensor<ui32>\n%f = stablehlo.convert %i : (tensor<ui32>) -> tensor<f32>\n%r = "
           "stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<4xf32>"
        << true;
    QTest::newRow("passed on")
        << "%r = \"stablehlo.collective_permute\"(%p) <{source_target_pairs = dense<[[0, 4], [4, 0]]> : tensor<2x2xi64>}> "
           ": (tensor<4xf32>) -> tensor<4xf32>"
        << false; // what is known only when it runs
    QTest::newRow("broadcast by one of them") << "%r = \"stablehlo.collective_broadcast\"(%p) <{replica_groups = dense<" + alongX
            + "}> : (tensor<4xf32>) -> tensor<4xf32>"
                                              << false; // they have the same then
    QTest::newRow("by a call that nobody knows")
        << "%r = stablehlo.custom_call @exchange(%p) : (tensor<4xf32>) -> tensor<4xf32>" << false;
    QTest::newRow("inside a computation")
        << "%r = sdy.named_computation<\"f\">(%p) (%q: tensor<4xf32>) {\n%t = stablehlo.sine %q : tensor<4xf32>\nsdy.return %t : "
           "tensor<4xf32>\n} : (tensor<4xf32>) -> tensor<4xf32>"
        << true;
}

/// What leaves a manual computation as equal along x is refused where it certainly differs.
void TestShardyForms::differingResults()
{
    QFETCH(QString, body);
    QFETCH(bool, differs);
    const QString text = QString(kMesh)
        + "func.func @main(%x: tensor<8xf32>) -> tensor<4xf32> {\n%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, "
          "[{\"x\"}]>] "
          "out_shardings=[<@mesh, [{}]>] manual_axes={\"x\", \"y\"} (%p: tensor<4xf32>) {\n"
        + body + "\nsdy.return %r : tensor<4xf32>\n} : (tensor<8xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>\n}\n";
    const auto program = readProgram(text.toStdString(), "manual.mlir");
    if (!differs) {
        QVERIFY2(program, program ? "" : describe(program.error()).c_str());
        return;
    }
    QVERIFY(!program);
    QCOMPARE(QString::fromStdString(program.error().front().id), QString("MW1266"));
    QVERIFY(program.error().front().message.starts_with(
        "result 0 of a manual computation differs along x, and its out_sharding P() says"));
}

/// The same along a part of an axis, where the out_sharding names the other part.
void TestShardyForms::differingPart()
{
    const auto program = readProgram(std::string(kMesh)
            + "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, "
              "[{\"y\":(2)2}]>] out_shardings=[<@mesh, [{\"y\":(1)2}]>] manual_axes={\"x\", \"y\"} (%p: tensor<4xf32>) "
              "{\nsdy.return %p : tensor<4xf32>\n} : (tensor<8xf32>) -> tensor<8xf32>\nreturn %0 : tensor<8xf32>\n}\n",
        "manual.mlir");
    QVERIFY(!program);
    const Problem& problem = program.error().front();
    QCOMPARE(problem.id, std::string("MW1266"));
    QVERIFY2(
        problem.message.starts_with("result 0 of a manual computation differs along \"y\":(2)2, and"), problem.message.c_str());
}

MESHWRIGHT_TEST(TestShardyForms)

} // namespace tst_shardy_forms

#include "tst_shardy_forms.moc"
