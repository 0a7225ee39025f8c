// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partition.h"
#include "core/runtime/evaluate.h"
#include "core/text/program_text.h"
#include "tests/manual_programs.h"
#include "tests/run_on_devices.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

namespace tst_control_flow {

using namespace meshwright;
using namespace meshwright::test;

using Numbers = std::vector<double>;

namespace {

Program programOf(const std::string& body)
{
    auto program = readProgram("sdy.mesh @mesh = <[\"x\"=4]>\n" + body, "program.mlir");
    if (!program)
        qFatal("%s\n%s", body.c_str(), describe(program.error()).c_str());
    if (const Problems problems = verify(*program); !problems.empty())
        qFatal("%s", describe(problems).c_str());
    return *std::move(program);
}

QStringList collectives(const DeviceStage& stage)
{
    QStringList lines;
    for (const CollectiveUse& use : collectivesOf(stage.functions.front(), stage.mesh()))
        lines << opName(use.kind);
    return lines;
}

Numbers filled(std::size_t count, double value)
{
    return Numbers(count, value);
}

constexpr auto kRows = R"(#sdy.sharding<@mesh, [{"x"}, {}]>)";

/// Doubles its rows until all of them sum to 1000 or more.
std::string doubling()
{
    return std::string("func.func @main(%a: tensor<8x4xf32> {sdy.sharding = ") + kRows
        + R"(}, %w: tensor<4x4xf32>) -> (tensor<i32>, tensor<8x4xf32>) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %c0, %acc = %a) : tensor<i32>, tensor<8x4xf32>
  cond {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%acc init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
    %l = stablehlo.constant dense<1000.0> : tensor<f32>
    %p = stablehlo.compare LT, %s, %l : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.add %i, %one : tensor<i32>
    %d = stablehlo.dot_general %acc, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    stablehlo.return %n, %d : tensor<i32>, tensor<8x4xf32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<8x4xf32>
})";
}

/// Twice, thrice or minus its rows, the last from where they lie the other way round.
std::string three(const char* which)
{
    return std::string("func.func @main(%a: tensor<8x4xf32> {sdy.sharding = ") + kRows + "}, %k: tensor<" + which
        + R"(>) -> tensor<8x4xf32> {
  %c = stablehlo.constant dense<3.0> : tensor<8x4xf32>
  %r = "stablehlo.case"(%k) ({
    %d = stablehlo.add %a, %a : tensor<8x4xf32>
    stablehlo.return %d : tensor<8x4xf32>
  }, {
    %d = stablehlo.multiply %a, %c : tensor<8x4xf32>
    stablehlo.return %d : tensor<8x4xf32>
  }, {
    %d = stablehlo.reverse %a, dims = [0] : tensor<8x4xf32>
    %n = stablehlo.negate %d : tensor<8x4xf32>
    stablehlo.return %n : tensor<8x4xf32>
  }) : (tensor<i32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
})";
}

/// A carry swaps places with another, so that each must be read before it is overwritten.
constexpr auto kSwaps
    = R"(func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %c0, %x = %a, %y = %b) : tensor<i32>, tensor<8xf32>, tensor<8xf32>
  cond {
    %sq = stablehlo.multiply %i, %i : tensor<i32>
    %l = stablehlo.constant dense<5> : tensor<i32>
    %p = stablehlo.compare LT, %sq, %l : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %n, %y, %x : tensor<i32>, tensor<8xf32>, tensor<8xf32>
  }
  return %r#1, %r#2 : tensor<8xf32>, tensor<8xf32>
})";

/// Each device counts down from its own number, so that devices leave the loop at different times; `inside` is what else it does.
std::string ownCounts(const std::string& inside)
{
    return R"(func.func @main(%a: tensor<4xi32>) -> tensor<4xi32> {
  %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%p: tensor<1xi32>) {
    %z = stablehlo.constant dense<0> : tensor<1xi32>
    %w:2 = stablehlo.while(%left = %p, %sum = %z) : tensor<1xi32>, tensor<1xi32>
    cond {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %s = stablehlo.reshape %left : (tensor<1xi32>) -> tensor<i32>
      %g = stablehlo.compare GT, %s, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %g : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<1xi32>
      %n = stablehlo.subtract %left, %one : tensor<1xi32>
)" + inside
        + R"(      %t = stablehlo.add %sum, %m : tensor<1xi32>
      stablehlo.return %n, %t : tensor<1xi32>, tensor<1xi32>
    }
    sdy.return %w#1 : tensor<1xi32>
  } : (tensor<4xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
})";
}

std::vector<double> twiceTheIdentity()
{
    std::vector<double> values(16, 0.0);
    for (std::size_t i = 0; i < 4; ++i)
        values[5 * i] = 2.0;
    return values;
}

} // namespace

/// Programs with `while` and `case` on four devices: what they give by hand, what one device gives, and what they exchange.
class TestControlFlow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void runs_data();
    void runs();
    void aBranchForEachNumber_data();
    void aBranchForEachNumber();
    void carriesSwap();
    void countsWhileSlicingFromTheEnd();
    void truthValuesChoose();
    void devicesThatDisagree();
};

void TestControlFlow::runs_data()
{
    QTest::addColumn<std::string>("text");
    QTest::addColumn<std::vector<HostArray>>("arguments");
    QTest::addColumn<std::vector<std::vector<double>>>("expected");
    QTest::addColumn<QStringList>("moved");

    // 32 elements of 1, 2, 4 .. 32: their sum is 1024 after five rounds.
    QTest::newRow("until a sum over devices is large")
        << doubling()
        << std::vector{HostArray::filled({DType::F32, {8, 4}}, 1.0), HostArray::of({DType::F32, {4, 4}}, twiceTheIdentity())}
        << std::vector<std::vector<double>>{{5.0}, filled(32, 32.0)} << QStringList{"all_reduce"};
    QTest::newRow("no round at all") << doubling()
                                     << std::vector{HostArray::filled({DType::F32, {8, 4}}, 50.0),
                                            HostArray::of({DType::F32, {4, 4}}, twiceTheIdentity())}
                                     << std::vector<std::vector<double>>{{0.0}, filled(32, 50.0)} << QStringList{"all_reduce"};
    QTest::newRow("each device counts for itself") << ownCounts("      %m = stablehlo.multiply %left, %left : tensor<1xi32>\n")
                                                   << std::vector{HostArray::of({DType::S32, {4}}, Numbers{0, 1, 2, 3})}
                                                   << std::vector<std::vector<double>>{{0, 1, 5, 14}} << QStringList();
}

void TestControlFlow::runs()
{
    QFETCH(std::string, text);
    QFETCH(std::vector<HostArray>, arguments);
    QFETCH(std::vector<std::vector<double>>, expected);
    QFETCH(QStringList, moved);

    const Program program = programOf(text);
    EvaluateOptions options;
    options.meshes = program.meshes;
    const auto alone = evaluate(program.functions.front(), arguments, options);
    QVERIFY2(alone, alone ? "" : describe(alone.error()).c_str());
    const auto run = tests::runOnDevices(program, arguments);
    QVERIFY2(run, run ? "" : describe(run.error()).c_str());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        QCOMPARE((*alone)[i].values(), expected[i]);
        QCOMPARE(run->results[i].values(), expected[i]);
    }
    QCOMPARE(collectives(run->stage), moved);
    QVERIFY(run->replicasAgree);
}

void TestControlFlow::aBranchForEachNumber_data()
{
    QTest::addColumn<int>("which");
    QTest::addColumn<double>("first"); // of rows that hold 1, 2 .. 8
    QTest::addColumn<double>("last");

    QTest::newRow("0") << 0 << 2.0 << 16.0;
    QTest::newRow("1") << 1 << 3.0 << 24.0;
    QTest::newRow("2") << 2 << -8.0 << -1.0;
    QTest::newRow("too large: the last one") << 7 << -8.0 << -1.0;
    QTest::newRow("negative: the last one") << -1 << -8.0 << -1.0;
}

void TestControlFlow::aBranchForEachNumber()
{
    QFETCH(int, which);
    QFETCH(double, first);
    QFETCH(double, last);
    const Program program = programOf(three("i32"));
    std::vector<double> rows;
    for (int row = 1; row <= 8; ++row)
        rows.insert(rows.end(), 4, row);
    const std::vector arguments{
        HostArray::of({DType::F32, {8, 4}}, rows), HostArray::of({DType::S32, {}}, Numbers{static_cast<double>(which)})};
    const auto alone = evaluate(program.functions.front(), arguments);
    const auto run = tests::runOnDevices(program, arguments);
    QVERIFY2(alone && run, run ? "" : describe(run.error()).c_str());
    for (const HostArray& result : {alone->front(), run->results.front()}) {
        QCOMPARE(result.values().front(), first);
        QCOMPARE(result.values().back(), last);
    }
    // What the branches use stays split; reversing exchanges pieces along x, within the one branch.
    QCOMPARE(
        run->stage.functions.front().function[run->stage.functions.front().function.results().front()].type.shape, Shape({2, 4}));
}

void TestControlFlow::carriesSwap()
{
    const Program program = programOf(kSwaps);
    const std::vector arguments{HostArray::filled({DType::F32, {8}}, 1.0), HostArray::filled({DType::F32, {8}}, 2.0)};
    const auto run = tests::runOnDevices(program, arguments); // 0, 1, 4: three rounds
    QVERIFY2(run, run ? "" : describe(run.error()).c_str());
    QCOMPARE(run->results[0].values(), filled(8, 2.0));
    QCOMPARE(run->results[1].values(), filled(8, 1.0));
}

/// Slices are taken from the end while the counter, which is a number too, goes up from 0.
void TestControlFlow::countsWhileSlicingFromTheEnd()
{
    const Program program = programOf(R"(func.func @main(%w: tensor<3x1xf32>) -> tensor<1xf32> {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<1xf32>
  %r:2 = stablehlo.while(%i = %c0, %h = %z) : tensor<i32>, tensor<1xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %last = stablehlo.constant dense<2> : tensor<i32>
    %at = stablehlo.subtract %last, %i : tensor<i32>
    %s = stablehlo.dynamic_slice %w, %at, %c0, sizes = [1, 1] : (tensor<3x1xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1xf32>
    %row = stablehlo.reshape %s : (tensor<1x1xf32>) -> tensor<1xf32>
    %f = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    %v = stablehlo.reshape %f : (tensor<f32>) -> tensor<1xf32>
    %t = stablehlo.multiply %row, %v : tensor<1xf32>
    %d = stablehlo.add %h, %h : tensor<1xf32>
    %e = stablehlo.add %d, %t : tensor<1xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %e : tensor<i32>, tensor<1xf32>
  }
  return %r#1 : tensor<1xf32>
})");
    const Function& function = program.functions.front();
    const auto loop = std::find_if(
        function.body().ops.begin(), function.body().ops.end(), [&](OpId op) { return function[op].kind == OpKind::Repeat; });
    QVERIFY(loop != function.body().ops.end());
    QVERIFY(function[*loop].as<RepeatAttributes>().reversed);
    const auto results = evaluate(function, std::vector{HostArray::of({DType::F32, {3, 1}}, Numbers{1, 10, 100})});
    QVERIFY2(results, results ? "" : describe(results.error()).c_str());
    QCOMPARE(results->front().values(), (Numbers{(2.0 * (100 * 0) + 10 * 1) * 2.0 + 1 * 2}));
}

void TestControlFlow::truthValuesChoose()
{
    const Program program = programOf(
        R"(func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %k: tensor<i1>) -> tensor<8xf32> {
  %r = "stablehlo.if"(%k) ({
    stablehlo.return %a : tensor<8xf32>
  }, {
    %d = stablehlo.negate %a : tensor<8xf32>
    stablehlo.return %d : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  return %r : tensor<8xf32>
})");
    for (const double which : {1.0, 0.0}) {
        const std::vector arguments{HostArray::filled({DType::F32, {8}}, 3.0), HostArray::of({DType::Pred, {}}, Numbers{which})};
        const auto run = tests::runOnDevices(program, arguments);
        QVERIFY2(run, run ? "" : describe(run.error()).c_str());
        QCOMPARE(run->results.front().values(), filled(8, which == 1.0 ? 3.0 : -3.0));
        QCOMPARE(collectives(run->stage), QStringList());
    }
}

void TestControlFlow::devicesThatDisagree()
{
    const Program program = programOf(ownCounts(tests::allReduce("%m", "%left", "1xi32", "[[0, 1, 2, 3]]", "1x4")));
    EvaluateOptions options;
    options.meshes = program.meshes;
    const auto result
        = evaluate(program.functions.front(), std::vector{HostArray::of({DType::S32, {4}}, Numbers{0, 1, 2, 3})}, options);
    QVERIFY(!result);
    QCOMPARE(QString::fromStdString(result.error().front().id), "MW1230");
}

MESHWRIGHT_TEST(TestControlFlow)

} // namespace tst_control_flow

#include "tst_control_flow.moc"
