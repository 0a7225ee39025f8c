// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/builder.h"
#include "core/propagate/rule.h"
#include "tests/rule_text.h"
#include "tests/test_class.h"

#include <QTest>

namespace tst_rule {

using namespace meshwright;
using namespace meshwright::tests;

namespace {

TensorType f32(Shape shape)
{
    return {DType::F32, std::move(shape)};
}

struct RuleCase {
    OpKind kind;
    OpAttributes attributes;
    std::vector<TensorType> operands;
    std::vector<TensorType> results;
};

DotAttributes dotOf(std::vector<std::size_t> lhsBatch, std::vector<std::size_t> rhsBatch, std::vector<std::size_t> lhs,
    std::vector<std::size_t> rhs)
{
    DotAttributes attributes;
    attributes.lhsBatch = std::move(lhsBatch);
    attributes.rhsBatch = std::move(rhsBatch);
    attributes.lhsContracting = std::move(lhs);
    attributes.rhsContracting = std::move(rhs);
    return attributes;
}

} // namespace

class TestRule : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void rule_data();
    void rule();
    void factorsFillTheirDimensions_data();
    void factorsFillTheirDimensions();
    void updateAtAKnownPlace();
    void noRule();
};

void TestRule::rule_data()
{
    QTest::addColumn<RuleCase>("op");
    QTest::addColumn<QString>("expected");

    const auto row = [](const char* title, RuleCase op, const char* expected) { QTest::newRow(title) << op << expected; };
    row("add", {OpKind::Add, {}, {f32({2, 4}), f32({2, 4})}, {f32({2, 4})}}, "([i, j], [i, j])->([i, j]) {i=2, j=4}");
    row("add of scalars", {OpKind::Add, {}, {f32({}), f32({})}, {f32({})}}, "([], [])->([])");
    row("select with a scalar predicate", {OpKind::Select, {}, {{DType::Pred, {}}, f32({4, 8}), f32({4, 8})}, {f32({4, 8})}},
        "([], [i, j], [i, j])->([i, j]) {i=4, j=8}");
    row("constraint", {OpKind::ShardingConstraint, {}, {f32({4})}, {f32({4})}}, "([i])->([i]) {i=4}");
    row("matmul", {OpKind::DotGeneral, dotOf({}, {}, {1}, {0}), {f32({8, 32}), f32({32, 16})}, {f32({8, 16})}},
        "([i, k], [k, j])->([i, j]) {i=8, j=16, k=32} reduction={k}");
    row("batched dot", {OpKind::DotGeneral, dotOf({0}, {1}, {2}, {0}), {f32({3, 8, 32}), f32({32, 3, 16})}, {f32({3, 8, 16})}},
        "([i, j, l], [l, i, k])->([i, j, k]) {i=3, j=8, k=16, l=32} reduction={l}");
    row("reduce", {OpKind::Reduce, ReduceAttributes{ReduceKind::Sum, {1}}, {f32({2, 64, 13})}, {f32({2, 13})}},
        "([i, j, k])->([i, k]) {i=2, j=64, k=13} reduction={j}");
    row("transpose", {OpKind::Transpose, TransposeAttributes{{1, 0}}, {f32({2, 3})}, {f32({3, 2})}},
        "([j, i])->([i, j]) {i=3, j=2}");
    row("transpose that turns", {OpKind::Transpose, TransposeAttributes{{2, 0, 1}}, {f32({2, 3, 4})}, {f32({4, 2, 3})}},
        "([j, k, i])->([i, j, k]) {i=4, j=2, k=3}");
    row("broadcast", {OpKind::BroadcastInDim, BroadcastAttributes{{2, 64, 13}, {0, 2}}, {f32({1, 13})}, {f32({2, 64, 13})}},
        "([i, l])->([j, k, l]) {i=1, j=2, k=64, l=13}");
    row("iota", {OpKind::Iota, IotaAttributes{f32({4, 6}), 1}, {}, {f32({4, 6})}}, "()->([i, j]) {i=4, j=6}");
    row("random bits",
        {OpKind::RandomBits, RandomBitsAttributes{{DType::U32, {4}}, true}, {{DType::U32, {2}}}, {{DType::U32, {4}}}},
        "([i])->([j]) {i=2, j=4} need_replication={i} blocked_propagation={i}");

    const TensorType at{DType::S32, {}};
    row("dynamic_slice",
        {OpKind::DynamicSlice, DynamicSliceAttributes{{32, 1, 2}}, {f32({32, 4, 8}), at, at, at}, {f32({32, 1, 2})}},
        "([i, j, k], [], [], [])->([i, j, k]) {i=32, j=4, k=8} need_replication={j, k} blocked_propagation={j, k}");
    row("dynamic_update_slice",
        {OpKind::DynamicUpdateSlice, {}, {f32({32, 4, 8}), f32({32, 1, 2}), at, at, at}, {f32({32, 4, 8})}},
        "([i, j, l], [i, k, m], [], [], [])->([i, j, l]) {i=32, j=4, k=1, l=8, m=2} need_replication={k, m}");

    const auto reshape = [&](const char* title, Shape from, Shape to, const char* expected) {
        row(title, {OpKind::Reshape, ReshapeAttributes{to}, {f32(std::move(from))}, {f32(to)}}, expected);
    };
    reshape("reshape: merge and split at once", {8, 4}, {2, 16}, "([ij, k])->([i, jk]) {i=2, j=4, k=4}");
    reshape("reshape: split", {8, 32}, {2, 4, 32}, "([ij, k])->([i, j, k]) {i=2, j=4, k=32}");
    reshape("reshape: co-prime", {3, 2}, {2, 3}, "([i, l])->([j, k]) {i=3, j=2, k=3, l=2}");
    reshape("reshape: meets again after a co-prime part", {2, 3, 8}, {3, 4, 4},
        "([i, k, mn])->([j, lm, n]) {i=2, j=3, k=3, l=2, m=2, n=4}");
    reshape("reshape: sizes of one", {1, 8, 1}, {8, 1}, "([i, j, k])->([j, l]) {i=1, j=8, k=1, l=1}");
    reshape("reshape: to a scalar", {1, 1}, {}, "([i, j])->([]) {i=1, j=1}");
    reshape("reshape: no elements", {4, 0, 2}, {4, 5, 0}, "([i, j, l])->([i, k, m]) {i=4, j=0, k=5, l=2, m=0}");
}

void TestRule::rule()
{
    QFETCH(RuleCase, op);
    QFETCH(QString, expected);
    const auto found = shardingRule(op.kind, op.attributes, op.operands, op.results);
    QVERIFY(found);
    QCOMPARE(QString::fromStdString(ruleText(*found)), expected);
}

void TestRule::factorsFillTheirDimensions_data()
{
    QTest::addColumn<RuleCase>("op");
    const std::vector<Shape> shapes
        = {{24}, {2, 12}, {12, 2}, {4, 6}, {6, 4}, {2, 3, 4}, {3, 8}, {8, 3}, {1, 24, 1}, {2, 2, 2, 3}, {3, 2, 4}};
    for (const Shape& from : shapes) {
        for (const Shape& to : shapes)
            QTest::addRow("%s to %s", shapeText(from).c_str(), shapeText(to).c_str())
                << RuleCase{OpKind::Reshape, ReshapeAttributes{to}, {f32(from)}, {f32(to)}};
    }
}

void TestRule::factorsFillTheirDimensions()
{
    QFETCH(RuleCase, op);
    const auto rule = shardingRule(op.kind, op.attributes, op.operands, op.results);
    QVERIFY(rule);
    // A factor means the same stretch of elements in both: equal strides.
    std::vector<std::int64_t> stride(rule->factors.size(), 0);
    const auto check = [&](const Shape& shape, const DimFactors& dims) {
        std::int64_t at = 1;
        for (std::size_t dim = shape.size(); dim-- > 0;) {
            std::int64_t size = 1;
            for (std::size_t i = dims[dim].size(); i-- > 0;) {
                const std::size_t factor = dims[dim][i];
                QVERIFY(stride[factor] == 0 || stride[factor] == at * size);
                stride[factor] = at * size;
                size *= rule->factors[factor].size;
            }
            QCOMPARE(size, shape[dim]);
            at *= size;
        }
    };
    check(op.operands.front().shape, rule->operands.front());
    check(op.results.front().shape, rule->results.front());
}

/// Where all starts are constants, the update may be split along its own dimensions too.
void TestRule::updateAtAKnownPlace()
{
    for (const bool isKnown : {true, false}) {
        Function function;
        Builder b(function);
        const ValueId cache = b.argument(f32({32, 4, 8}));
        const ValueId update = b.argument(f32({32, 1, 2}));
        const ValueId given = b.argument({DType::S32, {}});
        const ValueId zero = b.splat({DType::S32, {}}, 0.0);
        const ValueId made = b.add(OpKind::DynamicUpdateSlice, {cache, update, zero, isKnown ? zero : given, zero});
        b.setResults({made});
        const auto rule = shardingRule(function, function[made].producer);
        QVERIFY(rule);
        const QString expected = "([i, j, l], [i, k, m], [], [], [])->([i, j, l]) {i=32, j=4, k=1, l=8, m=2}";
        QCOMPARE(QString::fromStdString(ruleText(*rule)), expected + (isKnown ? "" : " need_replication={k, m}"));
    }
}

void TestRule::noRule()
{
    QVERIFY(!shardingRule(OpKind::Constant, ConstantAttributes{f32({}), {1.0}}, {}, std::vector{f32({})}));
    QVERIFY(!shardingRule(OpKind::AllReduce, CollectiveAttributes{}, std::vector{f32({4})}, std::vector{f32({4})}));
    QVERIFY(!shardingRule(OpKind::Repeat, RepeatAttributes{}, {}, {}));
}

MESHWRIGHT_TEST(TestRule)

} // namespace tst_rule

#include "tst_rule.moc"
