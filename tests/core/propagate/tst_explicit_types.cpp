// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/explicit_costs.h"
#include "core/support/text.h"
#include "core/text/program_text.h"
#include "tests/test_class.h"

#include <QTest>

#include <algorithm>

namespace tst_explicit_types {

using namespace meshwright;

namespace {

/// Mesh x=2, y=4; `types` of the arguments a, b, c: `8x4 [{"x"}, {}]`.
Program programOf(const QString& arguments, const QString& result, const QString& body)
{
    QStringList list;
    for (const QString& argument : arguments.split(';', Qt::SkipEmptyParts)) {
        const QString name = QString(QChar('a' + static_cast<int>(list.size())));
        const QString text = argument.trimmed();
        const int space = static_cast<int>(text.indexOf(' '));
        const QString type = space < 0 ? text : text.left(space);
        const QString dtype = type.endsWith("xi1") || type.endsWith("xi32") ? QString() : type.isEmpty() ? "f32" : "xf32";
        list += space < 0
            ? QString("%%1: tensor<%2%3>").arg(name, type, dtype)
            : QString("%%1: tensor<%2%3> {sdy.sharding = #sdy.sharding<@mesh, %4>}").arg(name, type, dtype, text.mid(space + 1));
    }
    const QString text
        = QString("sdy.mesh @mesh = <[\"x\"=2, \"y\"=4]>\nfunc.func @main(%1) -> tensor<%2> {\n%3\nreturn %r : tensor<%2>\n}\n")
              .arg(list.join(", "), result, body);
    auto program = readProgram(text.toStdString(), "test.mlir");
    if (!program)
        qFatal("%s\n%s", describe(program.error()).c_str(), qPrintable(text));
    return *std::move(program);
}

std::vector<ExplicitFinding> findingsOf(Program& program)
{
    static const BytesThenStepsCost kCost;
    static const PricingChooser kChooser(kCost);
    return checkExplicitTypes(program.functions.front(), program.meshes, &kChooser);
}

QString resultText(const Program& program)
{
    const Function& function = program.functions.front();
    const auto& sharding = function[function.results().front()].sharding;
    return sharding ? QString::fromStdString(layoutText(*sharding, program.meshOf(*sharding))) : "none";
}

} // namespace

class TestExplicitTypes : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void types_data();
    void types();
    void errors_data();
    void errors();
    void choices_data();
    void choices();
    void everyChoiceIsLegal_data();
    void everyChoiceIsLegal();
    void goesOnAfterAnError();
};

void TestExplicitTypes::types_data()
{
    QTest::addColumn<QString>("arguments");
    QTest::addColumn<QString>("result");
    QTest::addColumn<QString>("body");
    QTest::addColumn<QString>("expected");

    QTest::newRow("element-wise") << "8x4 [{\"x\"}, {}]; 8x4 [{}, {\"y\"}]"
                                  << "8x4xf32"
                                  << "%r = stablehlo.add %a, %b : tensor<8x4xf32>"
                                  << "P('x', 'y')";
    QTest::newRow("constants fit anything") << "8x4 [{\"x\"}, {}]"
                                            << "8x4xf32"
                                            << "%c = stablehlo.constant dense<1.0> : tensor<8x4xf32>\n"
                                               "%r = stablehlo.multiply %c, %a : tensor<8x4xf32>"
                                            << "P('x',)";
    QTest::newRow("openness says nothing") << "8x4 [{\"x\", ?}, {?}]"
                                           << "4x8xf32"
                                           << "%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>"
                                           << "P(None, 'x')";
    QTest::newRow("one side of a contraction")
        << "8x4 [{\"x\"}, {\"y\"}]; 4x8"
        << "8x8xf32"
        << "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x4xf32>, "
           "tensor<4x8xf32>) -> tensor<8x8xf32>"
        << "P('x',)";
    QTest::newRow("an out_sharding settles a contraction") << "8x4 [{}, {\"y\"}]; 4x8 [{\"y\"}, {}]"
                                                           << "8x8xf32"
                                                           << "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
                                                              "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"y\"}, "
                                                              "{}]>]>} : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>"
                                                           << "P('y',)";
    QTest::newRow("so does the constraint that JAX writes behind it")
        << "8x4 [{}, {\"y\"}]; 4x8 [{\"y\"}, {}]"
        << "8x8xf32"
        << "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> "
           "tensor<8x8xf32>\n"
           "%r = sdy.sharding_constraint %0 <@mesh, [{}, {\"y\"}]> : tensor<8x8xf32>"
        << "P(None, 'y')";
    QTest::newRow("a constraint reshards") << "8x4 [{\"x\"}, {}]"
                                           << "8x4xf32"
                                           << "%0 = stablehlo.abs %a : tensor<8x4xf32>\n"
                                              "%r = sdy.sharding_constraint %0 <@mesh, [{}, {\"y\"}]> : tensor<8x4xf32>"
                                           << "P(None, 'y')";
    QTest::newRow("embedding with whole rows")
        << "16x8 [{}, {\"y\"}]; 6xi32"
        << "6x8xf32"
        << "%r = \"stablehlo.gather\"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
           "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
           "array<i64: 1, 8>}> : (tensor<16x8xf32>, tensor<6xi32>) -> tensor<6x8xf32>"
        << "P(None, 'y')";
    QTest::newRow("partial sums add up") << "8x4 [{}, {}], unreduced={\"y\"}; 8x4 [{}, {}], unreduced={\"y\"}"
                                         << "8x4xf32"
                                         << "%r = stablehlo.add %a, %b : tensor<8x4xf32>"
                                         << "P() partial over y";
}

void TestExplicitTypes::types()
{
    QFETCH(QString, arguments);
    QFETCH(QString, result);
    QFETCH(QString, body);
    QFETCH(QString, expected);
    Program program = programOf(arguments, result, body);
    const auto findings = findingsOf(program);
    QVERIFY2(findings.empty(), findings.empty() ? "" : describe(findings.front().problem).c_str());
    QCOMPARE(resultText(program), expected);
}

void TestExplicitTypes::errors_data()
{
    QTest::addColumn<QString>("arguments");
    QTest::addColumn<QString>("result");
    QTest::addColumn<QString>("body");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("phrase");

    QTest::newRow("element-wise") << "8x4 [{\"x\"}, {}]; 8x4 [{\"y\"}, {}]"
                                  << "8x4xf32"
                                  << "%r = stablehlo.add %a, %b : tensor<8x4xf32>"
                                  << "MW1250"
                                  << "add got incompatible shardings for broadcasting: P('x', None), P('y', None)";
    QTest::newRow("concatenate")
        << "8x4 [{\"x\"}, {}]; 8x4"
        << "8x8xf32"
        << "%r = stablehlo.concatenate %a, %b, dim = 1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>"
        << "MW1251"
        << "All operands should have the same sharding";
    QTest::newRow("cases of a select") << "8x4xi1; 8x4 [{\"x\"}, {}]; 8x4"
                                       << "8x4xf32"
                                       << "%r = stablehlo.select %a, %b, %c : tensor<8x4xi1>, tensor<8x4xf32>"
                                       << "MW1251"
                                       << "select cases must have the same shardings";
    QTest::newRow("predicate of a select") << "8x4xi1; 8x4 [{\"x\"}, {}]; 8x4 [{\"x\"}, {}]"
                                           << "8x4xf32"
                                           << "%r = stablehlo.select %a, %b, %c : tensor<8x4xi1>, tensor<8x4xf32>"
                                           << "MW1251"
                                           << "select `which` must be scalar or have the same sharding as cases";
    QTest::newRow("contraction")
        << "8x4 [{}, {\"y\"}]; 4x8 [{\"y\"}, {}]"
        << "8x8xf32"
        << "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> "
           "tensor<8x8xf32>"
        << "MW1252"
        << "Contracting dimensions are sharded and it is ambiguous";
    QTest::newRow("batch") << "8x4x2 [{\"x\"}, {}, {}]; 8x2x4 [{\"y\"}, {}, {}]"
                           << "8x4x4xf32"
                           << "%r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : "
                              "(tensor<8x4x2xf32>, tensor<8x2x4xf32>) -> tensor<8x4x4xf32>"
                           << "MW1253"
                           << "lhs batch dimensions and rhs batch dimensions to have the same sharding, got ('x',) and ('y',)";
    QTest::newRow("reshape") << "4x6 [{}, {\"x\"}]"
                             << "24xf32"
                             << "%r = stablehlo.reshape %a : (tensor<4x6xf32>) -> tensor<24xf32>"
                             << "MW1254"
                             << "This reshape is not supported";
    QTest::newRow("slice") << "8x4 [{\"x\"}, {}]"
                           << "3x4xf32"
                           << "%r = stablehlo.slice %a [0:3, 0:4] : (tensor<8x4xf32>) -> tensor<3x4xf32>"
                           << "MW1255"
                           << "slicing on sharded dims where out dim (3) is not divisible by mesh axes (2)";
    QTest::newRow("pad")
        << "8x4 [{\"x\"}, {}]"
        << "9x4xf32"
        << "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%r = stablehlo.pad %a, %z, low = [1, 0], high = [0, 0], "
           "interior = [0, 0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<9x4xf32>"
        << "MW1255"
        << "padding on sharded dims";
    QTest::newRow("axis twice")
        << "8x4 [{\"x\"}, {}]; 4x8 [{}, {\"x\"}]"
        << "8x8xf32"
        << "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> "
           "tensor<8x8xf32>"
        << "MW1256"
        << "can map every mesh axis to at most one positional dimension";
    QTest::newRow("rows of an embedding")
        << "16x8 [{\"y\"}, {}]; 6xi32"
        << "6x8xf32"
        << "%r = \"stablehlo.gather\"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
           "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
           "array<i64: 1, 8>}> : (tensor<16x8xf32>, tensor<6xi32>) -> tensor<6x8xf32>"
        << "MW1257"
        << ".at[...].get(out_sharding=)";
    QTest::newRow("an op without a rule")
        << "8x8 [{\"x\"}, {}]"
        << "8x8xf32"
        << "%r = \"stablehlo.cholesky\"(%a) <{lower = true}> : (tensor<8x8xf32>) -> tensor<8x8xf32>"
        << "MW1257"
        << "sharding rule for cholesky is not implemented";
    QTest::newRow("a sum and a part of one") << "8x4 [{}, {}], unreduced={\"y\"}; 8x4"
                                             << "8x4xf32"
                                             << "%r = stablehlo.add %a, %b : tensor<8x4xf32>"
                                             << "MW1258"
                                             << "lhs is unreduced while rhs is not";
    QTest::newRow("a part of a sum in a root") << "8x4 [{}, {}], unreduced={\"y\"}"
                                               << "8x4xf32"
                                               << "%r = stablehlo.sqrt %a : tensor<8x4xf32>"
                                               << "MW1258"
                                               << "unreduced rule for sqrt is not implemented";
    QTest::newRow("unreduced over what is not summed")
        << "8x4 [{}, {\"y\"}]; 4x8 [{\"y\"}, {}]"
        << "8x8xf32"
        << "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, "
           "[{}, {}], "
           "unreduced={\"x\"}>]>} : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>"
        << "MW1258"
        << "out_sharding's unreduced axes should be equal to the contracting specs";
    QTest::newRow("branches")
        << "i32; 8x4 [{\"x\"}, {}]; 8x4"
        << "8x4xf32"
        << "%r = \"stablehlo.case\"(%a) ({\n  stablehlo.return %b : tensor<8x4xf32>\n}, {\n  stablehlo.return %c : "
           "tensor<8x4xf32>\n}) : (tensor<i32>) -> tensor<8x4xf32>"
        << "MW1259"
        << "must have equal output types";
    QTest::newRow("an annotation that does not divide") << "6x4 [{\"y\"}, {}]"
                                                        << "6x4xf32"
                                                        << "%r = stablehlo.abs %a : tensor<6x4xf32>"
                                                        << "MW1104"
                                                        << "array axis 0 is partitioned 4 times, but does not evenly divide";
}

void TestExplicitTypes::errors()
{
    QFETCH(QString, arguments);
    QFETCH(QString, result);
    QFETCH(QString, body);
    QFETCH(QString, id);
    QFETCH(QString, phrase);
    arguments.replace("i32;", "i32 ;");
    Program program = arguments.startsWith("i32") ? programOf(arguments.mid(arguments.indexOf(';') + 1).prepend("8xi32;"), result,
                          QString("%s = stablehlo.slice %a [0:1] : (tensor<8xi32>) -> tensor<1xi32>\n%i = stablehlo.reshape %s : "
                                  "(tensor<1xi32>) -> "
                                  "tensor<i32>\n")
                              + QString(body).replace("(%a)", "(%i)"))
                                                  : programOf(arguments, result, body);
    const auto findings = findingsOf(program);
    QCOMPARE(findings.size(), std::size_t{1});
    QCOMPARE(QString::fromStdString(findings.front().problem.id), id);
    QVERIFY2(QString::fromStdString(findings.front().problem.message).contains(phrase), findings.front().problem.message.c_str());
    QVERIFY(!findings.front().problem.fix.empty());
}

void TestExplicitTypes::choices_data()
{
    QTest::addColumn<QString>("arguments");
    QTest::addColumn<QString>("result");
    QTest::addColumn<QString>("body");
    QTest::addColumn<QStringList>("expected"); ///< the first ones, in order

    // 8x8 floats: 256 B whole on every device; a part of the sum has as much.
    QTest::newRow("contraction")
        << "8x4 [{}, {\"y\"}]; 4x8 [{\"y\"}, {}]"
        << "8x8xf32"
        << "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> "
           "tensor<8x8xf32>"
        << QStringList{"P('y',): reduce-scatter over y of the result, 256 B per device",
               "P(None, 'y'): reduce-scatter over y of the result, 256 B per device",
               "P(): all-gather over y of operand 0, 128 B and all-gather over y of operand 1, 128 B per device",
               "P() partial over y: nothing moves"};
    // Either operand may move; a change from y to x on one dimension goes through the whole.
    QTest::newRow("element-wise")
        << "8x4 [{}, {\"x\"}]; 8x4"
        << "8x8xf32"
        << "%r = stablehlo.concatenate %a, %b, dim = 1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>"
        << QStringList{"P(None, 'x'): nothing moves", "P(): all-gather over x of operand 0, 128 B per device"};
    QTest::newRow("slice") << "8x4 [{\"x\"}, {}]"
                           << "3x4xf32"
                           << "%r = stablehlo.slice %a [0:3, 0:4] : (tensor<8x4xf32>) -> tensor<3x4xf32>"
                           << QStringList{"P(): all-gather over x of operand 0, 128 B per device"};
}

void TestExplicitTypes::choices()
{
    QFETCH(QString, arguments);
    QFETCH(QString, result);
    QFETCH(QString, body);
    QFETCH(QStringList, expected);
    Program program = programOf(arguments, result, body);
    const auto findings = findingsOf(program);
    QCOMPARE(findings.size(), std::size_t{1});
    const BytesThenStepsCost cost;
    QStringList texts;
    for (const PricedChoice& choice :
        pricedChoices(program.functions.front(), program.meshes.front().mesh, findings.front(), cost)) {
        texts += QString::fromStdString(priceText(choice, program.meshes.front().mesh));
        QVERIFY2(choice.steps.empty()
                || findings.front().problem.fix.find(priceText(choice, program.meshes.front().mesh)) != std::string::npos,
            findings.front().problem.fix.c_str());
    }
    QCOMPARE(texts, expected);
}

void TestExplicitTypes::everyChoiceIsLegal_data()
{
    errors_data();
}

/// What is offered as an out_sharding is taken, where the op has one.
void TestExplicitTypes::everyChoiceIsLegal()
{
    QFETCH(QString, arguments);
    QFETCH(QString, result);
    QFETCH(QString, body);
    if (arguments.startsWith("i32"))
        return;
    Program program = programOf(arguments, result, body);
    const auto findings = findingsOf(program);
    for (const ExplicitChoice& choice : findings.front().choices) {
        Program again = programOf(arguments, result, body);
        Function& function = again.functions.front();
        const Op& op = function[findings.front().op];
        if (!takesOutSharding(op.kind, op.attributes))
            continue;
        function[op.results.front()].sharding = choice.result;
        const auto left = findingsOf(again);
        QVERIFY2(left.empty(), left.empty() ? "" : describe(left.front().problem).c_str());
        QCOMPARE(function[op.results.front()].sharding->dims, choice.result.dims);
    }
}

void TestExplicitTypes::goesOnAfterAnError()
{
    // The product goes on as P('x'), the whole sum: that fits c, and not d.
    Program program = programOf("8x4 [{\"x\"}, {\"y\"}]; 4x8 [{\"y\"}, {}]; 8x8 [{\"x\"}, {}]; 8x8 [{\"y\"}, {}]", "8x8xf32",
        "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> "
        "tensor<8x8xf32>\n"
        "%1 = stablehlo.add %0, %c : tensor<8x8xf32>\n%r = stablehlo.add %1, %d : tensor<8x8xf32>");
    const auto findings = findingsOf(program);
    QCOMPARE(findings.size(), std::size_t{2});
    QVERIFY2(findings[0].problem.fix.ends_with("; the rest is checked with P('x',)"), findings[0].problem.fix.c_str());
    QCOMPARE(QString::fromStdString(findings[1].problem.id), QString("MW1250"));
}

MESHWRIGHT_TEST(TestExplicitTypes)

} // namespace tst_explicit_types

#include "tst_explicit_types.moc"
