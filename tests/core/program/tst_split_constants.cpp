// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/program/verify.h"
#include "tests/test_class.h"

#include <QTest>

namespace tst_split_constants {

using namespace meshwright;

class TestSplitConstants : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void splitsChains();
    void splitsRecurrences();
    void splitsWhatConstantsShare();
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
    // One more mask, and one iota for both of its operands.
    QCOMPARE(copies.size(), std::size_t{2});
    QCOMPARE(operand(function, u, 1), mask);
    const ValueId other = operand(function, v, 1);
    QVERIFY(other != mask && function[other].name.empty());
    QCOMPARE(operand(function, mask, 0), rows);
    QCOMPARE(operand(function, mask, 1), rows);
    QVERIFY(operand(function, other, 0) != rows);
    QCOMPARE(operand(function, other, 1), operand(function, other, 0));
}

/// Each value of a constant recurrence is used by the next two, and every third by something else: copies grow with the uses outside, not as
/// the ways through the recurrence do.
void TestSplitConstants::splitsRecurrences()
{
    Function function;
    Builder b(function);
    ValueId sum = b.argument(kMatrix, "x");
    ValueId last = b.iota(kMatrix, 0);
    ValueId next = b.iota(kMatrix, 1);
    int uses = 0;
    for (int i = 0; i < 60; ++i) {
        const ValueId after = b.binary(OpKind::Subtract, b.binary(OpKind::Multiply, next, next), last);
        last = std::exchange(next, after);
        if (i % 20 == 0) {
            sum = b.binary(OpKind::Add, sum, next);
            ++uses;
        }
    }
    b.setResults({sum});
    const std::size_t before = function.ops.size();
    const auto copies = splitConstantsPerUse(function);
    QVERIFY(verify(function, {}).empty());
    QVERIFY(copies.size() <= static_cast<std::size_t>(uses) * before);
    for (const ConstantCopy& copy : copies)
        QVERIFY(copy.original.at() < before && copy.copy.at() >= before);
    // All agree: everything is made once again.
    QCOMPARE(mergeEqualCopies(function, copies).size(), copies.size());
    QVERIFY(verify(function, {}).empty());
    QCOMPARE(function.body().ops.size(), before);
}

/// A value that two constants are made of is one of each; where the two differ, so does it.
void TestSplitConstants::splitsWhatConstantsShare()
{
    Function function;
    Builder b(function);
    const ValueId x = b.argument(kMatrix, "x");
    const ValueId rows = b.iota(kMatrix, 0);
    const ValueId negated = b.unary(OpKind::Negate, rows);
    const ValueId squared = b.binary(OpKind::Multiply, rows, rows);
    const ValueId u = b.binary(OpKind::Add, x, negated);
    b.setResults({b.binary(OpKind::Add, u, squared)});
    const auto copies = splitConstantsPerUse(function);
    QVERIFY(verify(function, {}).empty());
    QCOMPARE(copies.size(), std::size_t{1});
    QCOMPARE(operand(function, negated, 0), rows);
    const ValueId own = operand(function, squared, 0);
    QVERIFY(own != rows);
    QCOMPARE(operand(function, squared, 1), own);
    Function apart = function;
    apart[own].sharding = TensorSharding::replicatedOf(2);
    QVERIFY(mergeEqualCopies(apart, copies).empty());
    QCOMPARE(mergeEqualCopies(function, copies).size(), std::size_t{1});
    QCOMPARE(operand(function, squared, 0), rows);
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

MESHWRIGHT_TEST(TestSplitConstants)

} // namespace tst_split_constants

#include "tst_split_constants.moc"
