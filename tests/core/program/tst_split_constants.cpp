// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/program/verify.h"

#include <QTest>

using namespace meshwright;

class TestSplitConstants : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void splitsChains();
    void keepsWhatIsAnnotated();
    void splitsResultsAndBodies();
    void mergesEqualOnes();
};

namespace {

const TensorType kMatrix{DType::F32, {4, 4}};

ValueId operand(const Function& function, ValueId of, std::size_t index)
{
    return function[function[of].producer].operands[index];
}

} // namespace

void TestSplitConstants::splitsChains()
{
    Function function;
    Builder b(function);
    const ValueId x = b.argument(kMatrix, "x");
    const ValueId rows = b.iota(kMatrix, 0);
    const ValueId mask = b.named(b.binary(OpKind::Multiply, rows, rows), "mask");
    const ValueId u = b.binary(OpKind::Add, x, mask);
    const ValueId v = b.binary(OpKind::Add, u, mask);
    b.setResults({v});
    const auto copies = splitConstantsPerUse(function);
    QVERIFY(verify(function, {}).empty());
    // One more mask, and an iota of its own for each of the four operands.
    QCOMPARE(copies.size(), std::size_t{4});
    QCOMPARE(operand(function, u, 1), mask);
    const ValueId other = operand(function, v, 1);
    QVERIFY(other != mask && function[other].name.empty());
    const std::set<ValueId> iotas
        = {operand(function, mask, 0), operand(function, mask, 1), operand(function, other, 0), operand(function, other, 1)};
    QCOMPARE(iotas.size(), std::size_t{4});
}

void TestSplitConstants::keepsWhatIsAnnotated()
{
    Function function;
    Builder b(function);
    const ValueId x = b.argument(kMatrix, "x");
    const ValueId one = b.splat(kMatrix, 1.0);
    const ValueId two = b.splat(kMatrix, 2.0);
    const ValueId three = b.splat({DType::F32, {}}, 3.0);
    const ValueId u = b.binary(OpKind::Add, b.binary(OpKind::Add, x, one), b.binary(OpKind::Add, one, two));
    b.setResults({b.binary(OpKind::Add, u, two), b.broadcast(three, {4}, {}), b.broadcast(three, {2}, {})});
    function[one].sharding = TensorSharding::openOf(2);
    function.shardingGroups = {{x, two}};
    QVERIFY(splitConstantsPerUse(function).empty());
}

void TestSplitConstants::splitsResultsAndBodies()
{
    Function function;
    Builder b(function);
    const ValueId x = b.argument(kMatrix, "x");
    const OpId repeat = b.beginRepeat({2, 1, 0, false}, {x});
    const ValueId carried = function[b.block()].arguments.front();
    const ValueId one = b.splat(kMatrix, 1.0);
    b.setResults({b.binary(OpKind::Add, b.binary(OpKind::Add, carried, one), one)});
    const ValueId out = b.endRepeat(repeat).front();
    const ValueId two = b.splat(kMatrix, 2.0);
    b.setResults({b.binary(OpKind::Add, out, two), two});
    const auto copies = splitConstantsPerUse(function);
    QVERIFY(verify(function, {}).empty());
    QCOMPARE(copies.size(), std::size_t{2});
    QVERIFY(function.results()[1] != two);
}

void TestSplitConstants::mergesEqualOnes()
{
    Function function;
    Builder b(function);
    const ValueId x = b.argument(kMatrix, "x");
    const ValueId one = b.splat(kMatrix, 1.0);
    ValueId sum = x;
    std::vector<ValueId> sums;
    for (int i = 0; i < 4; ++i)
        sums.push_back(sum = b.binary(OpKind::Add, sum, one));
    b.setResults({sum});
    const auto copies = splitConstantsPerUse(function);
    QCOMPARE(copies.size(), std::size_t{3});
    // The second and the fourth use want another layout.
    for (const std::size_t use : {1U, 3U})
        function[operand(function, sums[use], 1)].sharding = TensorSharding::replicatedOf(2);
    const auto merged = mergeEqualCopies(function, copies);
    QVERIFY(verify(function, {{"mesh", Mesh()}}).empty());
    QCOMPARE(merged.size(), std::size_t{2});
    QCOMPARE(operand(function, sums[2], 1), one);
    QCOMPARE(operand(function, sums[1], 1), operand(function, sums[3], 1));
    QVERIFY(operand(function, sums[1], 1) != one);
    QCOMPARE(function.body().ops.size(), std::size_t{6});
}

QTEST_APPLESS_MAIN(TestSplitConstants)
#include "tst_split_constants.moc"
