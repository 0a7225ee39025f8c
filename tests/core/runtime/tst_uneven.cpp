// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partition.h"
#include "core/partition/split_exchange.h"
#include "core/program/verify.h"
#include "core/text/program_text.h"
#include "tests/run_on_devices.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

namespace tst_uneven {

using namespace meshwright;
using namespace meshwright::test;

namespace {

/// A program of one function on x=4, from its arguments, its result and its ops.
std::string programText(const char* arguments, const char* result, const char* ops)
{
    return fmt::format("module {{\n  sdy.mesh @mesh = <[\"x\"=4]>\n  func.func public @main({}) -> ({}) {{\n{}\n  }}\n}}\n",
        arguments, result, ops);
}

} // namespace

/// Ops along split dimensions: sizes that the pieces do not divide, and ops whose devices need elements of each other.
class TestUneven : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void programs_data();
    void programs();
    void rounds_data();
    void rounds();
};

/// `exchanges`: the collectives in program order, each with its axes and payload in bytes. Worked out by hand; f32, 4 bytes an element.
void TestUneven::programs_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QStringList>("exchanges");

    const auto row
        = [](const char* name, const char* arguments, const char* result, const char* ops, const QStringList& exchanges) {
              QTest::newRow(name) << QString::fromStdString(programText(arguments, result, ops)) << exchanges;
          };
    const char* split12 = "%a: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}";
    const char* split12x3 = "%a: tensor<12x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}";
    const char* out12 = "tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}";

    // 10 classes in pieces of 3, 3, 3, 1: only the partial sums of 12 numbers are exchanged, never the exponentials.
    row("classes", "%a: tensor<12x10xf32>", "tensor<12xf32>",
        "    %0 = sdy.sharding_constraint %a <@mesh, [{}, {\"x\"}]> : tensor<12x10xf32>\n"
        "    %1 = stablehlo.exponential %0 : tensor<12x10xf32>\n"
        "    %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "    %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<12x10xf32>, tensor<f32>) "
        "-> tensor<12xf32>\n"
        "    return %2 : tensor<12xf32>",
        {"all_reduce x 48"});
    row("largest class", "%a: tensor<12x10xf32>", "tensor<12xf32>",
        "    %0 = sdy.sharding_constraint %a <@mesh, [{}, {\"x\"}]> : tensor<12x10xf32>\n"
        "    %e = stablehlo.exponential %0 : tensor<12x10xf32>\n"
        "    %1 = stablehlo.negate %e : tensor<12x10xf32>\n" // all of it below the zeros that padding might hold
        "    %z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "    %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<12x10xf32>, "
        "tensor<f32>) -> tensor<12xf32>\n"
        "    return %2 : tensor<12xf32>",
        {"all_reduce x 48"});
    // Only one device scatters into the sum, the others into zeros: no device may do that for another.
    row("a sum that is scattered into",
        "%a: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"x\"}]>}, %b: tensor<12x3xf32> {sdy.sharding = "
        "#sdy.sharding<@mesh, [{\"x\"}, {}]>}",
        "tensor<8x3xf32>",
        "    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x12xf32>, tensor<12x3xf32>) -> "
        "tensor<8x3xf32>\n"
        "    %1 = stablehlo.iota dim = 0 : tensor<12xi32>\n"
        "    %2 = stablehlo.constant dense<8> : tensor<12xi32>\n"
        "    %3 = stablehlo.remainder %1, %2 : tensor<12xi32>\n"
        "    %4 = \"stablehlo.scatter\"(%0, %3, %b) <{indices_are_sorted = false, scatter_dimension_numbers = "
        "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
        "index_vector_dim = 1>, unique_indices = false}> ({\n"
        "    ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
        "      %s = stablehlo.add %x, %y : tensor<f32>\n"
        "      stablehlo.return %s : tensor<f32>\n"
        "    }) : (tensor<8x3xf32>, tensor<12xi32>, tensor<12x3xf32>) -> tensor<8x3xf32>\n"
        "    return %4 : tensor<8x3xf32>",
        {"all_reduce x 96", "all_reduce x 96"});
    // Both sides of the contraction end in padding (5 numbers in pieces of 2), which is 1/0 there.
    row("contraction", "%a: tensor<6x5xf32>, %b: tensor<5x8xf32>", "tensor<6x8xf32>",
        "    %o = stablehlo.constant dense<1.0> : tensor<6x5xf32>\n"
        "    %0 = sdy.sharding_constraint %a <@mesh, [{}, {\"x\"}]> : tensor<6x5xf32>\n"
        "    %1 = sdy.sharding_constraint %b <@mesh, [{\"x\"}, {}]> : tensor<5x8xf32>\n"
        "    %2 = stablehlo.divide %o, %0 : tensor<6x5xf32>\n"
        "    %3 = stablehlo.dot_general %2, %1, contracting_dims = [1] x [0] : (tensor<6x5xf32>, tensor<5x8xf32>) -> "
        "tensor<6x8xf32>\n"
        "    return %3 : tensor<6x8xf32>",
        {"all_reduce x 192"});
    // The roll by one as text has it: one element from the next device, then one from the first to the last.
    row("shift", split12, out12,
        "    %0 = stablehlo.slice %a [1:12] : (tensor<12xf32>) -> tensor<11xf32>\n"
        "    %1 = stablehlo.slice %a [0:1] : (tensor<12xf32>) -> tensor<1xf32>\n"
        "    %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<11xf32>, tensor<1xf32>) -> tensor<12xf32>\n"
        "    return %2 : tensor<12xf32>",
        {"collective_permute x 4", "collective_permute x 4"});
    row("slice with a stride", split12, "tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}",
        "    %0 = stablehlo.slice %a [1:12:3] : (tensor<12xf32>) -> tensor<4xf32>\n    return %0 : tensor<4xf32>", {});
    row("difference of neighbours", split12x3, "tensor<11x3xf32>",
        "    %0 = stablehlo.slice %a [1:12, 0:3] : (tensor<12x3xf32>) -> tensor<11x3xf32>\n"
        "    %1 = stablehlo.slice %a [0:11, 0:3] : (tensor<12x3xf32>) -> tensor<11x3xf32>\n"
        "    %2 = stablehlo.subtract %0, %1 : tensor<11x3xf32>\n"
        "    return %2 : tensor<11x3xf32>",
        {"collective_permute x 12", "all_gather x 144"});
    row("shift with padding", split12, out12,
        "    %z = stablehlo.constant dense<7.0> : tensor<f32>\n"
        "    %0 = stablehlo.pad %a, %z, low = [2], high = [-2], interior = [0] : (tensor<12xf32>, tensor<f32>) -> "
        "tensor<12xf32>\n"
        "    return %0 : tensor<12xf32>",
        {"collective_permute x 8"});
    row("mirrored", split12, out12, "    %0 = stablehlo.reverse %a, dims = [0] : tensor<12xf32>\n    return %0 : tensor<12xf32>",
        {"collective_permute x 12"});
    row("mirrored unevenly", split12x3, "tensor<11x3xf32>",
        "    %0 = stablehlo.slice %a [0:11, 0:3] : (tensor<12x3xf32>) -> tensor<11x3xf32>\n"
        "    %1 = stablehlo.reverse %0, dims = [0] : tensor<11x3xf32>\n"
        "    return %1 : tensor<11x3xf32>",
        {"collective_permute x 24", "collective_permute x 12", "all_gather x 144"});
    // 5 and 7 elements in pieces of 2 become 12 in pieces of 3.
    row("uneven pieces put together", split12, out12,
        "    %0 = stablehlo.slice %a [0:5] : (tensor<12xf32>) -> tensor<5xf32>\n"
        "    %1 = stablehlo.slice %a [5:12] : (tensor<12xf32>) -> tensor<7xf32>\n"
        "    %2 = stablehlo.concatenate %1, %0, dim = 0 : (tensor<7xf32>, tensor<5xf32>) -> tensor<12xf32>\n"
        "    return %2 : tensor<12xf32>",
        {"*"});
    // Each device gives what of the 2 rows it has; the update needs no exchange at all.
    row("slice at a place known when it runs",
        "%a: tensor<12x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}, %i: tensor<i32>", "tensor<2x3xf32>",
        "    %z = stablehlo.constant dense<0> : tensor<i32>\n"
        "    %0 = stablehlo.dynamic_slice %a, %i, %z, sizes = [2, 3] : (tensor<12x3xf32>, tensor<i32>, tensor<i32>) -> "
        "tensor<2x3xf32>\n"
        "    return %0 : tensor<2x3xf32>",
        {"all_reduce x 24"});
    row("update at a place known when it runs",
        "%a: tensor<12x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}, %u: tensor<5x3xf32>, %i: tensor<i32>",
        "tensor<12x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}",
        "    %z = stablehlo.constant dense<0> : tensor<i32>\n"
        "    %0 = stablehlo.dynamic_update_slice %a, %u, %i, %z : (tensor<12x3xf32>, tensor<5x3xf32>, tensor<i32>, tensor<i32>) "
        "-> tensor<12x3xf32>\n"
        "    return %0 : tensor<12x3xf32>",
        {});
    // A window of 3 needs one element of each neighbour: 2 features of them.
    row("convolution", "%a: tensor<1x12x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"x\"}, {}]>}, %k: tensor<3x2x4xf32>",
        "tensor<1x12x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"x\"}, {}]>}",
        "    %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[1, "
        "1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x12x2xf32>, tensor<3x2x4xf32>) -> "
        "tensor<1x12x4xf32>\n"
        "    return %0 : tensor<1x12x4xf32>",
        {"collective_permute x 8", "collective_permute x 8"});
    // A sort along a split dimension: the other dimension takes the axis, and gives it back.
    row("sort", "%a: tensor<12x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}",
        "tensor<12x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}",
        "    %0 = \"stablehlo.sort\"(%a) <{dimension = 0 : i64, is_stable = true}> ({\n"
        "    ^bb0(%b: tensor<f32>, %c: tensor<f32>):\n"
        "      %1 = stablehlo.compare LT, %b, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "      stablehlo.return %1 : tensor<i1>\n"
        "    }) : (tensor<12x4xf32>) -> tensor<12x4xf32>\n"
        "    return %0 : tensor<12x4xf32>",
        {"all_to_all x 48", "all_to_all x 48"});
}

void TestUneven::programs()
{
    QFETCH(QString, text);
    QFETCH(QStringList, exchanges);
    const auto program = readProgram(text.toStdString(), "program.mlir");
    QVERIFY2(program, program ? "" : describe(program.error()).c_str());
    const Problems problems = verify(*program);
    QVERIFY2(problems.empty(), describe(problems).c_str());
    const Function function = program->functions.front();
    std::vector<HostArray> arguments;
    for (const ValueId argument : function.arguments())
        arguments.push_back(randomArray(function[argument].type, arguments.size() + 1));

    const auto run = tests::runOnDevices(*program, arguments);
    QVERIFY2(run, run ? "" : describe(run.error()).c_str());
    QStringList found;
    for (const CollectiveUse& use : collectivesOf(run->stage.functions.front(), run->stage.mesh()))
        found << QString("%1 %2 %3").arg(opName(use.kind), QString::fromStdString(use.axes)).arg(use.payloadBytes);
    if (exchanges != QStringList{"*"})
        QCOMPARE(found, exchanges);
    const auto expected = evaluate(function, arguments);
    QVERIFY2(expected, expected ? "" : describe(expected.error()).c_str());
    QVERIFY(run->replicasAgree);
    for (std::size_t i = 0; i < expected->size(); ++i) {
        const std::string wrong = difference(run->results[i], (*expected)[i].values(), 1e-6);
        QVERIFY2(wrong.empty(), wrong.c_str());
    }
}

/// Windows of pieces, and what every device sends for them.
void TestUneven::rounds_data()
{
    QTest::addColumn<std::vector<std::int64_t>>("window"); // first, step, length, low, high
    QTest::addColumn<int>("size");
    QTest::addColumn<int>("sent");

    QTest::newRow("its own") << std::vector<std::int64_t>{0, 3, 3, 0, 12} << 3 << 0;
    QTest::newRow("one further") << std::vector<std::int64_t>{1, 3, 3, 1, 12} << 3 << 1;
    QTest::newRow("the next piece") << std::vector<std::int64_t>{3, 3, 3, 3, 12} << 3 << 3;
    QTest::newRow("a halo of one on both sides") << std::vector<std::int64_t>{-1, 3, 5, 0, 12} << 3 << 2;
    QTest::newRow("mirrored: no piece stays") << std::vector<std::int64_t>{9, -3, 3, 0, 12} << 3 << 3;
    QTest::newRow("all in one piece") << std::vector<std::int64_t>{0, 1, 1, 0, 3} << 4
                                      << 2; // two of four windows ask piece 0 for one
    QTest::newRow("nothing") << std::vector<std::int64_t>{12, 1, 1, 12, 12} << 3 << 0;
}

void TestUneven::rounds()
{
    QFETCH(std::vector<std::int64_t>, window);
    QFETCH(int, size);
    QFETCH(int, sent);
    const PieceWindow asked{window[0], window[1], window[2], window[3], window[4]};
    const std::vector<PieceRound> rounds = roundsFor(asked, 4, size);
    QCOMPARE(sentElements(rounds), std::int64_t{sent});
    // Every element that matters comes to its window once, and nobody sends or receives twice in a round.
    std::map<std::pair<std::int64_t, std::int64_t>, int> come;
    for (const PieceRound& round : rounds) {
        std::set<std::int64_t> senders;
        std::set<std::int64_t> receivers;
        for (const PieceTransfer& transfer : round.transfers) {
            QVERIFY(senders.insert(transfer.from).second && receivers.insert(transfer.to).second);
            for (std::int64_t i = 0; i < transfer.length; ++i) {
                const std::int64_t element = transfer.from * size + transfer.start + i;
                QCOMPARE(element, asked.first + transfer.to * asked.step + transfer.at + i);
                ++come[{transfer.to, element}];
            }
        }
    }
    for (std::int64_t to = 0; to < 4; ++to) {
        for (std::int64_t i = 0; i < asked.length; ++i) {
            const std::int64_t element = asked.first + to * asked.step + i;
            if (element >= asked.low && element < asked.high && element < 4 * size)
                QCOMPARE((come[{to, element}]), 1);
        }
    }
}

MESHWRIGHT_TEST(TestUneven)

} // namespace tst_uneven

#include "tst_uneven.moc"
