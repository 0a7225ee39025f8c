// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/explain.h"
#include "core/support/text.h"
#include "core/text/program_text.h"
#include "tests/test_class.h"

#include <QTest>

namespace tst_explain {

using namespace meshwright;

namespace {

/// What is told of a value: `dim 0 x: a <- ..` for each axis the way back, then the conflicts.
QStringList storyOf(const Program& program, const PropagationReport& report, ValueId value)
{
    const Function& function = program.functions.front();
    const auto names = valueNames(program, function);
    const Mesh& mesh = program.meshes.front().mesh;
    const auto nameOf = [&](ValueId each) {
        const std::string& name = function[each].name;
        return QString::fromStdString(name.empty() ? names[each.at()] : name);
    };
    QStringList story;
    for (const auto& way : shardingWays(function, report, value)) {
        QStringList links;
        for (const ShardingReason& link : way) {
            QString text = nameOf(link.value);
            if (!link.from.valid())
                text += QString(" (%1)").arg(QString::fromStdString(link.annotation));
            else if (link.through.valid())
                text += QString(" %1 %2 %3%4 o%5 u%6")
                            .arg(QString::fromStdString(std::string(opName(function[link.through]))),
                                QString::fromStdString(link.factor), QString(stepDirectionName(link.direction)),
                                QString(link.aggressive ? " aggressive" : ""))
                            .arg(link.opPriority)
                            .arg(link.userPriority);
            else
                text += " " + QString::fromStdString(link.step);
            links += text;
        }
        story += QString("dim %1 %2: %3")
                     .arg(way.front().dim)
                     .arg(QString::fromStdString(axisText(way.front().axis, mesh)), links.join(" <- "));
    }
    for (const ShardingConflict& conflict : report.conflicts) {
        if (conflict.value == value)
            story += QString("dim %1 without %2: loser %3, winner %4")
                         .arg(conflict.dim)
                         .arg(QString::fromStdString(axisText(conflict.axis, mesh)), QString::fromStdString(conflict.loser),
                             QString::fromStdString(conflict.winner));
    }
    return story.replaceInStrings("\"", "");
}

} // namespace

class TestExplain : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void stories_data();
    void stories();
    void places();
    void stepsAreInOrder();
};

void TestExplain::stories_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QStringList>("story");

    const QString product
        = "stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>";
    QTest::newRow("a chain of ops")
        << "func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {}]>}, %w: tensor<4x16xf32>) -> "
           "tensor<16x8xf32> {\n%0 = "
            + product
            + "\n%1 = stablehlo.tanh %0 : tensor<8x16xf32>\n%2 = stablehlo.transpose %1, dims = [1, 0] : "
              "(tensor<8x16xf32>) -> tensor<16x8xf32>\nreturn %2 : tensor<16x8xf32>\n}"
        << "2"
        << QStringList{"dim 1 a: %2 transpose j forward o2 u0 <- %1 tanh i forward o2 u0 <- %0 dot_general i forward o2 u0 <- x "
                       "(sdy.sharding of %x)"};
    QTest::newRow("backward, from what is asked of the result")
        << "func.func @main(%x: tensor<8x4xf32>) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {}]>}) {\n%0 "
           "= "
           "stablehlo.tanh %x : tensor<8x4xf32>\nreturn %0 : tensor<8x4xf32>\n}"
        << "x" << QStringList{"dim 0 a: x tanh i backward o0 u0 <- %0 (result 0)"};
    QTest::newRow("a conflict")
        << "func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {}]>}, %w: tensor<8x4xf32> "
           "{sdy.sharding = "
           "#sdy.sharding<@mesh, [{\"b\"}, {}]>}) -> tensor<8x4xf32> {\n%0 = stablehlo.add %x, %w : tensor<8x4xf32>\nreturn %0 : "
           "tensor<8x4xf32>\n}"
        << "w"
        << QStringList{"dim 0 b: w (sdy.sharding of %w)", "dim 0 without a: loser sdy.sharding of %x, winner sdy.sharding of %w"};
    QTest::newRow("user priorities") << "func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, "
                                        "{?}]>}, %w: tensor<4x16xf32> {sdy.sharding = "
                                        "#sdy.sharding<@mesh, [{?}, {\"b\"}p1]>}) -> tensor<8x16xf32> {\n%0 = "
            + product + "\nreturn %0 : tensor<8x16xf32>\n}"
                                     << "0"
                                     << QStringList{"dim 0 a: %0 dot_general i forward o2 u0 <- x (sdy.sharding of %x)",
                                            "dim 1 b: %0 dot_general j forward o2 u1 <- w (sdy.sharding of %w)"};
    QTest::newRow("a constraint reaches back")
        << "func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {\n%0 = stablehlo.tanh %x : tensor<8x4xf32>\n%1 = "
           "sdy.sharding_constraint %0 <@mesh, [{\"b\"}, {}]> : tensor<8x4xf32>\nreturn %1 : tensor<8x4xf32>\n}"
        << "x" << QStringList{"dim 0 b: x tanh i backward o0 u0 <- %0 (sdy.sharding_constraint of %0)"};
    QTest::newRow("a loop")
        << "func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {}]>}) -> tensor<8x4xf32> {\n"
           "%c = stablehlo.constant dense<0> : tensor<i32>\n%n = stablehlo.constant dense<3> : tensor<i32>\n%one = "
           "stablehlo.constant "
           "dense<1> : tensor<i32>\n"
           "%0:2 = stablehlo.while(%i = %c, %h = %x) : tensor<i32>, tensor<8x4xf32>\n cond {\n  %p = stablehlo.compare LT, %i, "
           "%n : "
           "(tensor<i32>, tensor<i32>) -> tensor<i1>\n  stablehlo.return %p : tensor<i1>\n } do {\n  %next = stablehlo.add %i, "
           "%one : "
           "tensor<i32>\n  %t = stablehlo.tanh %h : tensor<8x4xf32>\n  stablehlo.return %next, %t : tensor<i32>, "
           "tensor<8x4xf32>\n }\n"
           "return %0#1 : tensor<8x4xf32>\n}"
        << "result" << QStringList{"dim 0 a: %0#1 loop carry <- %iterArg_0 loop carry <- x (sdy.sharding of %x)"};
    QTest::newRow("nothing reaches it") << "func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {\n%0 = stablehlo.tanh %x : "
                                           "tensor<8x4xf32>\nreturn %0 : tensor<8x4xf32>\n}"
                                        << "0" << QStringList{};
}

void TestExplain::stories()
{
    QFETCH(QString, text);
    QFETCH(QString, value);
    QFETCH(QStringList, story);
    auto program = readProgram(("sdy.mesh @mesh = <[\"a\"=2, \"b\"=2]>\n" + text).toStdString(), "f.mlir");
    QVERIFY2(program, program ? "" : describe(program.error()).c_str());
    Function& function = program->functions.front();
    const auto report = propagate(function, program->meshes);
    QVERIFY2(report, report ? "" : describe(report.error()).c_str());
    const auto names = valueNames(*program, function);
    ValueId found = function.results().front();
    if (value == "x" || value == "w")
        found = value == "x" ? function.arguments().front() : function.arguments().back();
    for (std::size_t i = 0; value != "result" && value != "x" && value != "w" && i < names.size(); ++i) {
        if (names[i] == "%" + value.toStdString())
            found = ValueId(i);
    }
    QCOMPARE(storyOf(*program, *report, found), story);
}

void TestExplain::places()
{
    ProgramPlaces places;
    const auto program
        = readProgram("sdy.mesh @mesh = <[\"a\"=2]>\nfunc.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
                      "  %0 = stablehlo.tanh %x : tensor<8xf32>\n\n  %1 = func.call @f(%0) : (tensor<8xf32>) -> tensor<8xf32>\n"
                      "  return %1 : tensor<8xf32>\n}\nfunc.func private @f(%y: tensor<8xf32>) -> tensor<8xf32> {\n"
                      "  %0 = stablehlo.abs %y : tensor<8xf32>\n  return %0 : tensor<8xf32>\n}\n",
            "f.mlir", nullptr, &places);
    QVERIFY2(program, program ? "" : describe(program.error()).c_str());
    const Function& function = program->functions.front();
    QCOMPARE(function.body().ops.size(), std::size_t{2});
    const Place argument = places.ofValue(*program, 0, function.arguments().front());
    QCOMPARE(argument.line, 2);
    QCOMPARE(argument.column, 21);
    QCOMPARE(places.ofOp(0, function.body().ops[0]).line, 3);
    QCOMPARE(places.ofValue(*program, 0, function.results().front()).line, 9); // where it stands in the function that was inlined
    QCOMPARE(QString::fromStdString(places.ofOp(0, function.body().ops[1]).file), QString("f.mlir"));
    QCOMPARE(places.ofOp(1, OpId(std::size_t{0})).line, 0);
    QCOMPARE(places.ofOp(0, OpId()).line, 0);
}

/// A step comes after the step that it builds on.
void TestExplain::stepsAreInOrder()
{
    auto program
        = readProgram("sdy.mesh @mesh = <[\"a\"=2]>\nfunc.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, "
                      "[{\"a\"}]>}) -> tensor<8xf32> {\n%0 = stablehlo.tanh %x : tensor<8xf32>\n%1 = stablehlo.abs %0 : "
                      "tensor<8xf32>\n%2 = stablehlo.add %1, %0 : tensor<8xf32>\nreturn %2 : tensor<8xf32>\n}\n",
            "f.mlir");
    QVERIFY(program);
    Function& function = program->functions.front();
    const auto report = propagate(function, program->meshes);
    QVERIFY(report);
    QCOMPARE(report->reasons.size(), std::size_t{4});
    std::vector<ValueId> known;
    for (const ShardingReason& reason : report->reasons) {
        QVERIFY(!reason.from.valid() || std::find(known.begin(), known.end(), reason.from) != known.end());
        known.push_back(reason.value);
    }
}

MESHWRIGHT_TEST(TestExplain)

} // namespace tst_explain

#include "tst_explain.moc"
