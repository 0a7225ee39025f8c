// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/shape_rules.h"

#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_shape_rules {

using namespace meshwright;
using namespace meshwright::tests;

using Types = std::vector<TensorType>;

namespace {

TensorType f32(Shape shape)
{
    return {DType::F32, std::move(shape)};
}

TensorType i32(Shape shape)
{
    return {DType::S32, std::move(shape)};
}

TensorType i1(Shape shape)
{
    return {DType::Pred, std::move(shape)};
}

DotAttributes dotOf(std::vector<std::size_t> lhsBatch, std::vector<std::size_t> rhsBatch, std::vector<std::size_t> lhsContracting,
    std::vector<std::size_t> rhsContracting)
{
    return {
        std::move(lhsBatch), std::move(rhsBatch), std::move(lhsContracting), std::move(rhsContracting), DType::F32, DType::F32};
}

CollectiveAttributes gather(std::vector<AxisRefs> perDim)
{
    CollectiveAttributes attributes;
    attributes.perDim = std::move(perDim);
    return attributes;
}

CollectiveAttributes move(std::size_t from, std::size_t to)
{
    CollectiveAttributes attributes;
    attributes.moves = {{{{0, 1, 4}}, from, to}};
    return attributes;
}

CollectiveAttributes permute(Shape shape)
{
    CollectiveAttributes attributes;
    attributes.resultShape = std::move(shape);
    return attributes;
}

} // namespace

class TestShapeRules : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void results_data();
    void results();
    void problems_data();
    void problems();
};

void TestShapeRules::results_data()
{
    QTest::addColumn<OpKind>("kind");
    QTest::addColumn<OpAttributes>("attributes");
    QTest::addColumn<Types>("operands");
    QTest::addColumn<TensorType>("expected");

    const auto row = [](const char* name, OpKind kind, OpAttributes attributes, Types operands, TensorType expected) {
        QTest::newRow(name) << kind << std::move(attributes) << std::move(operands) << std::move(expected);
    };
    row("splat", OpKind::Constant, ConstantAttributes{f32({2, 3}), {0.5}}, {}, f32({2, 3}));
    row("blob", OpKind::Constant, ConstantAttributes{f32({2}), {std::make_shared<const std::string>(8, '\0')}}, {}, f32({2}));
    row("iota", OpKind::Iota, IotaAttributes{i32({2, 3}), 1}, {}, i32({2, 3}));
    row("random bits", OpKind::RandomBits, RandomBitsAttributes{{DType::U32, {5}}, true}, {{DType::U32, {2}}}, {DType::U32, {5}});
    row("exp", OpKind::Exp, {}, {f32({4})}, f32({4}));
    row("negate integers", OpKind::Negate, {}, {i32({4})}, i32({4}));
    row("not", OpKind::Not, {}, {i1({4})}, i1({4}));
    row("convert", OpKind::Convert, ConvertAttributes{DType::BF16}, {f32({4})}, {DType::BF16, {4}});
    row("bitcast", OpKind::BitcastConvert, ConvertAttributes{DType::F32}, {{DType::U32, {4}}}, f32({4}));
    row("add", OpKind::Add, {}, {f32({2, 3}), f32({2, 3})}, f32({2, 3}));
    row("scalars", OpKind::Multiply, {}, {f32({}), f32({})}, f32({}));
    row("and", OpKind::And, {}, {i1({2}), i1({2})}, i1({2}));
    row("shift", OpKind::ShiftLeft, {}, {i32({2}), i32({2})}, i32({2}));
    row("compare", OpKind::Compare, CompareAttributes{CompareDirection::Less}, {f32({2}), f32({2})}, i1({2}));
    row("compare truth", OpKind::Compare, CompareAttributes{}, {i1({2}), i1({2})}, i1({2}));
    row("select", OpKind::Select, {}, {i1({2}), f32({2}), f32({2})}, f32({2}));
    row("broadcast a vector", OpKind::BroadcastInDim, BroadcastAttributes{{4, 3}, {1}}, {f32({3})}, f32({4, 3}));
    row("broadcast a scalar", OpKind::BroadcastInDim, BroadcastAttributes{{4, 3}, {}}, {f32({})}, f32({4, 3}));
    row("stretch", OpKind::BroadcastInDim, BroadcastAttributes{{4, 3}, {0, 1}}, {f32({4, 1})}, f32({4, 3}));
    row("broadcast transposing", OpKind::BroadcastInDim, BroadcastAttributes{{3, 4}, {1, 0}}, {f32({4, 3})}, f32({3, 4}));
    row("reshape", OpKind::Reshape, ReshapeAttributes{{6}}, {f32({2, 3})}, f32({6}));
    row("reshape nothing", OpKind::Reshape, ReshapeAttributes{{0, 7}}, {f32({0})}, f32({0, 7}));
    row("transpose", OpKind::Transpose, TransposeAttributes{{2, 0, 1}}, {f32({2, 3, 4})}, f32({4, 2, 3}));
    row("sum", OpKind::Reduce, ReduceAttributes{ReduceKind::Sum, {0, 2}}, {f32({2, 3, 4})}, f32({3}));
    row("sum of integers", OpKind::Reduce, ReduceAttributes{ReduceKind::Sum, {0}}, {i32({2, 3})}, i32({3}));
    row("any", OpKind::Reduce, ReduceAttributes{ReduceKind::Or, {0}}, {i1({2, 3})}, i1({3}));
    row("matrix product", OpKind::DotGeneral, dotOf({}, {}, {1}, {0}), {f32({2, 3}), f32({3, 4})}, f32({2, 4}));
    row("batched", OpKind::DotGeneral, dotOf({0}, {1}, {2}, {0}), {f32({5, 2, 3}), f32({3, 5, 4})}, f32({5, 2, 4}));
    row("outer", OpKind::DotGeneral, dotOf({}, {}, {}, {}), {f32({2}), f32({3})}, f32({2, 3}));
    row("bf16 accumulated in f32", OpKind::DotGeneral, dotOf({}, {}, {0}, {0}), {{DType::BF16, {3}}, {DType::BF16, {3}}},
        f32({}));
    row("constraint", OpKind::ShardingConstraint, ConstraintAttributes{}, {f32({2})}, f32({2}));
    row("all-reduce", OpKind::AllReduce, CollectiveAttributes{}, {f32({2})}, f32({2}));
    row("all-gather", OpKind::AllGather, gather({{{0, 1, 4}}, {}}), {f32({2, 3})}, f32({8, 3}));
    row("all-slice", OpKind::AllSlice, gather({{}, {{0, 1, 4}}}), {f32({2, 8})}, f32({2, 2}));
    row("reduce-scatter pads", OpKind::ReduceScatter, gather({{{0, 1, 4}}}), {f32({10})}, f32({3}));
    row("all-to-all", OpKind::AllToAll, move(0, 1), {f32({2, 8})}, f32({8, 2}));
    row("permute", OpKind::CollectivePermute, permute({3}), {f32({2})}, f32({3}));
    row("receive", OpKind::Receive, TransferAttributes{f32({7}), 1, 2}, {}, f32({7}));
}

void TestShapeRules::results()
{
    QFETCH(OpKind, kind);
    QFETCH(OpAttributes, attributes);
    QFETCH(Types, operands);
    QFETCH(TensorType, expected);
    const auto types = resultTypes(kind, attributes, operands);
    QVERIFY2(types, qPrintable(described(types)));
    QCOMPARE(types->size(), std::size_t{1});
    QCOMPARE(text(typeText(types->front())), text(typeText(expected)));
}

void TestShapeRules::problems_data()
{
    QTest::addColumn<OpKind>("kind");
    QTest::addColumn<OpAttributes>("attributes");
    QTest::addColumn<Types>("operands");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("message");

    const auto row
        = [](const char* name, OpKind kind, OpAttributes attributes, Types operands, const char* id, const char* message) {
              QTest::newRow(name) << kind << std::move(attributes) << std::move(operands) << QString(id) << QString(message);
          };
    row("too few operands", OpKind::Add, {}, {f32({2})}, "MW1301", "add: needs 2 operands, got 1");
    row("a constant of something", OpKind::Constant, ConstantAttributes{}, {f32({2})}, "MW1301",
        "constant: needs 0 operands, got 1");
    row("repeat without operands", OpKind::Repeat, RepeatAttributes{2, 1, 1, false}, {f32({})}, "MW1301",
        "repeat: 1 carries and 1 stacked operands, but 1 operands");

    row("shapes differ", OpKind::Add, {}, {f32({2}), f32({3})}, "MW1302", "add: the operands' shapes differ: f32[2] and f32[3]");
    row("select shapes", OpKind::Select, {}, {i1({3}), f32({2}), f32({2})}, "MW1302",
        "select: the operands differ: i1[3], f32[2] and f32[2]");
    row("cannot stretch", OpKind::BroadcastInDim, BroadcastAttributes{{4}, {0}}, {f32({3})}, "MW1302",
        "broadcast_in_dim: dim 0 of f32[3] cannot become 4");
    row("reshape count", OpKind::Reshape, ReshapeAttributes{{5}}, {f32({2, 3})}, "MW1302",
        "reshape: f32[2,3] has 6 elements, 5 has 5");
    row("dot sizes", OpKind::DotGeneral, dotOf({}, {}, {1}, {0}), {f32({2, 3}), f32({4, 5})}, "MW1302",
        "dot_general: dim 1 of f32[2,3] and dim 0 of f32[4,5] differ");
    row("stacked operand", OpKind::Repeat, RepeatAttributes{3, 0, 1, false}, {f32({2, 4})}, "MW1302",
        "repeat: stacked operand 0 is f32[2,4]: dim 0 must be the count 3");

    row("types differ", OpKind::Add, {}, {f32({2}), i32({2})}, "MW1303",
        "add: the operands' element types differ: f32[2] and i32[2]");
    row("exp of integers", OpKind::Exp, {}, {i32({2})}, "MW1303", "exponential: not for elements of type i32");
    row("not of floats", OpKind::Not, {}, {f32({2})}, "MW1303", "not: not for elements of type f32");
    row("and of floats", OpKind::And, {}, {f32({2}), f32({2})}, "MW1303", "and: not for elements of type f32");
    row("add truth", OpKind::Add, {}, {i1({2}), i1({2})}, "MW1303", "add: not for elements of type i1");
    row("shift floats", OpKind::ShiftLeft, {}, {f32({2}), f32({2})}, "MW1303", "shift_left: not for elements of type f32");
    row("predicate", OpKind::Select, {}, {f32({2}), f32({2}), f32({2})}, "MW1303", "select: the predicate is f32[2], not i1");
    row("bitcast size", OpKind::BitcastConvert, ConvertAttributes{DType::F64}, {f32({2})}, "MW1303",
        "bitcast_convert: f32 and f64 differ in size");
    row("key", OpKind::RandomBits, RandomBitsAttributes{{DType::U32, {2}}, true}, {i32({2})}, "MW1303",
        "random_bits: the key is i32[2], not ui32[2]");
    row("words", OpKind::RandomBits, RandomBitsAttributes{f32({2}), true}, {{DType::U32, {2}}}, "MW1303",
        "random_bits: makes ui32, not f32[2]");
    row("or of floats", OpKind::Reduce, ReduceAttributes{ReduceKind::Or, {0}}, {f32({2})}, "MW1303",
        "reduce: or is not for elements of type f32");
    row("sum of truth", OpKind::Reduce, ReduceAttributes{ReduceKind::Sum, {0}}, {i1({2})}, "MW1303",
        "reduce: sum is not for elements of type i1");
    row("dot of truth", OpKind::DotGeneral, dotOf({}, {}, {0}, {0}), {i1({2}), i1({2})}, "MW1303",
        "dot_general: not for elements of type i1");
    row("dot types", OpKind::DotGeneral, dotOf({}, {}, {0}, {0}), {f32({2}), {DType::BF16, {2}}}, "MW1303",
        "dot_general: the operands' element types differ: f32[2] and bf16[2]");

    row("negative size", OpKind::Constant, ConstantAttributes{f32({-1}), {0.0}}, {}, "MW1304",
        "constant: f32[-1] has a negative size");
    row("too large", OpKind::BroadcastInDim, BroadcastAttributes{{1LL << 40, 1LL << 40}, {}}, {f32({})}, "MW1304",
        "broadcast_in_dim: f32[1099511627776,1099511627776] does not fit 64 bits");
    row("bytes", OpKind::Constant, ConstantAttributes{f32({2}), {std::make_shared<const std::string>(7, '\0')}}, {}, "MW1304",
        "constant: f32[2] needs 8 bytes of data");
    row("iota dim", OpKind::Iota, IotaAttributes{i32({2}), 1}, {}, "MW1304", "iota: i32[2] has no dim 1");
    row("broadcast dims", OpKind::BroadcastInDim, BroadcastAttributes{{4, 3}, {1, 1}}, {f32({3, 3})}, "MW1304",
        "broadcast_in_dim: dims [1, 1] do not place f32[3,3] in a shape of rank 2");
    row("permutation", OpKind::Transpose, TransposeAttributes{{0, 0}}, {f32({2, 3})}, "MW1304",
        "transpose: [0, 0] is not a permutation of the dimensions of f32[2,3]");
    row("reduce dims", OpKind::Reduce, ReduceAttributes{ReduceKind::Sum, {1, 0}}, {f32({2, 3})}, "MW1304",
        "reduce: [1, 0] are not ascending dimensions of f32[2,3]");
    row("reduce dim", OpKind::Reduce, ReduceAttributes{ReduceKind::Sum, {2}}, {f32({2, 3})}, "MW1304",
        "reduce: [2] are not ascending dimensions of f32[2,3]");
    row("dot dims", OpKind::DotGeneral, dotOf({0}, {}, {1}, {0}), {f32({2, 3}), f32({3, 4})}, "MW1304",
        "dot_general: the batch and contracting dimensions do not fit f32[2,3] and f32[3,4]");
    row("count", OpKind::Repeat, RepeatAttributes{0, 0, 0, false}, {}, "MW1304", "repeat: the count must be at least 1, got 0");
    row("gather dims", OpKind::AllGather, gather({{}}), {f32({2, 3})}, "MW1304",
        "all_gather: axes for 1 dimensions, f32[2,3] has 2");
    row("move dims", OpKind::AllToAll, move(0, 2), {f32({2, 3})}, "MW1304",
        "all_to_all: cannot move axes from dim 0 to dim 2 of f32[2,3]");
    row("permute rank", OpKind::CollectivePermute, permute({2, 2}), {f32({2})}, "MW1304",
        "collective_permute: a result of rank 2 from f32[2]");
}

void TestShapeRules::problems()
{
    QFETCH(OpKind, kind);
    QFETCH(OpAttributes, attributes);
    QFETCH(Types, operands);
    QFETCH(QString, id);
    QFETCH(QString, message);
    const auto types = resultTypes(kind, attributes, operands);
    QVERIFY(!types);
    QCOMPARE(idsOf(types), id);
    QCOMPARE(text(types.error().front().message), message);
}

MESHWRIGHT_TEST(TestShapeRules)

} // namespace tst_shape_rules

#include "tst_shape_rules.moc"
