// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/attention.h"
#include "core/program/builder.h"
#include "sim/simulate/instruction_work.h"
#include "sim/simulate/simulation.h"

#include "tests/test_class.h"

#include <cstring>

namespace tst_attention_work {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

/// Attention of 2 rows, 3 groups of 2 heads, of sizes 16 and 8; in a loop over layers with these windows, where there are some.
Function attentionOf(std::int64_t queries, std::int64_t keys, bool causal, const std::vector<std::int32_t>& windows)
{
    Function function;
    function.name = "f";
    Builder builder(function);
    const std::vector<TensorType> types{
        {DType::BF16, {2, queries, 3, 2, 16}}, {DType::BF16, {2, keys, 3, 16}}, {DType::BF16, {2, keys, 3, 8}}};
    std::vector<ValueId> operands;
    for (const TensorType& type : types)
        operands.push_back(builder.argument(type));
    const AttentionForm form{0.25, 0.0, causal, !windows.empty(), false, DType::BF16};
    const auto add = [&](std::vector<ValueId> given) {
        if (causal)
            given.insert(given.begin() + 3, {builder.iota({DType::S32, {queries}}, 0), builder.iota({DType::S32, {keys}}, 0)});
        std::vector<TensorType> all;
        for (const ValueId value : given)
            all.push_back(builder.type(value));
        return builder.addMany(OpKind::Attention, given, attentionAttributes(OpKind::Attention, form, all));
    };
    if (windows.empty()) {
        builder.setResults({add(operands).front()});
        return function;
    }
    std::string bytes(windows.size() * 4, '\0');
    std::memcpy(bytes.data(), windows.data(), bytes.size());
    const auto count = static_cast<std::int64_t>(windows.size());
    const ValueId stack = builder.add(
        OpKind::Constant, {}, ConstantAttributes{{DType::S32, {count}}, {std::make_shared<const std::string>(std::move(bytes))}});
    const ValueId carry = builder.splat({DType::BF16, {2, queries, 3, 2, 8}}, 0.0);
    const OpId loop = builder.beginRepeat({count, 1, 1, false}, {carry, stack, operands[0], operands[1], operands[2]});
    const std::vector<ValueId> inside = function[builder.block()].arguments;
    builder.setResults({add({inside[2], inside[3], inside[4], inside[1]}).front()});
    builder.setResults(builder.endRepeat(loop));
    return function;
}

} // namespace

/// What fused attention is known to do: the products that its masks leave.
class TestAttentionWork : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void keys_data();
    void keys();
    void partsOfRings_data();
    void partsOfRings();
};

void TestAttentionWork::keys_data()
{
    QTest::addColumn<qint64>("queries");
    QTest::addColumn<qint64>("keys");
    QTest::addColumn<bool>("causal");
    QTest::addColumn<std::vector<std::int32_t>>("windows");
    QTest::addColumn<double>("expected"); ///< keys that a query sees, on average

    using Windows = std::vector<std::int32_t>;
    QTest::newRow("all") << qint64(10) << qint64(12) << false << Windows{} << 12.0;
    QTest::newRow("causal") << qint64(8) << qint64(8) << true << Windows{} << 4.5; // 1, 2, .. 8
    QTest::newRow("the last of a split sequence") << qint64(2) << qint64(8) << true << Windows{} << 7.5; // 7, 8
    QTest::newRow("window") << qint64(8) << qint64(8) << true << Windows{3} << (1.0 + 2.0 + 6 * 3.0) / 8.0;
    QTest::newRow("window of the last") << qint64(2) << qint64(8) << true << Windows{3} << 3.0;
    QTest::newRow("window wider than the rest") << qint64(4) << qint64(8) << true << Windows{6} << (5.0 + 6.0 + 6.0 + 6.0) / 4.0;
    QTest::newRow("window of all") << qint64(8) << qint64(8) << true << Windows{100} << 4.5;
    QTest::newRow("windows of some layers") << qint64(8) << qint64(8) << true << Windows{3, 8} << (21.0 / 8.0 + 4.5) / 2.0;
}

void TestAttentionWork::keys()
{
    QFETCH(qint64, queries);
    QFETCH(qint64, keys);
    QFETCH(bool, causal);
    QFETCH(std::vector<std::int32_t>, windows);
    QFETCH(double, expected);
    const Function function = attentionOf(queries, keys, causal, windows);
    const auto op
        = std::find_if(function.ops.begin(), function.ops.end(), [](const Op& one) { return one.kind == OpKind::Attention; });
    std::vector<TensorType> types;
    for (const ValueId operand : op->operands)
        types.push_back(function[operand].type);
    const AttentionWork work = attentionWork(function, *op, types);
    QVERIFY(qAbs(work.keys - expected) < 1e-12);
    QCOMPARE(work.headDim, 16.0);
    const double flops = 2.0 * 2 * 3 * 2 * static_cast<double>(queries) * expected * (16 + 8);
    QVERIFY(qAbs(work.flops - flops) < 1e-6);
    const double rounds = windows.empty() ? 1.0 : static_cast<double>(windows.size());
    QVERIFY(qAbs(productFlops(function) - rounds * flops) < 1e-6);
    Op gradient = *op; // of whose five products one makes the scores again
    gradient.kind = OpKind::AttentionGrad;
    QVERIFY(qAbs(attentionWork(function, gradient, types).flops - flops * (3.0 * 16 + 2.0 * 8) / (16 + 8)) < 1e-6);
}

void TestAttentionWork::partsOfRings_data()
{
    QTest::addColumn<bool>("balanced");
    QTest::addColumn<std::vector<std::int32_t>>("windows");
    QTest::addColumn<QList<double>>("expected"); ///< keys that a query of 4 sees, on average, in each of three parts of 4 keys

    using Windows = std::vector<std::int32_t>;
    QTest::newRow("the last device sees all") << false << Windows{} << QList<double>{2.5, 4.0, 4.0};
    QTest::newRow("each device sees as many") << true << Windows{} << QList<double>{2.5, 2.5, 2.5};
    QTest::newRow("a window that reaches into one part") << false << Windows{5} << QList<double>{2.5, 2.5, 0.0};
    QTest::newRow("a window, of which each device sees as much") << true << Windows{3} << QList<double>{2.25, 0.75, 0.0};
}

void TestAttentionWork::partsOfRings()
{
    QFETCH(bool, balanced);
    QFETCH(std::vector<std::int32_t>, windows);
    QFETCH(QList<double>, expected);
    const Function function = attentionOf(4, 4, true, windows);
    const auto op
        = std::find_if(function.ops.begin(), function.ops.end(), [](const Op& one) { return one.kind == OpKind::Attention; });
    std::vector<TensorType> types;
    for (const ValueId operand : op->operands)
        types.push_back(function[operand].type);
    AttentionForm form = *attentionForm(op->as<OtherAttributes>());
    form.isBalanced = balanced;
    for (form.part = 0; form.part < expected.size(); ++form.part) {
        Op part = *op;
        part.attributes = attentionAttributes(OpKind::Attention, form, types);
        QCOMPARE(attentionWork(function, part, types).keys, expected[form.part]);
    }
}

MESHWRIGHT_TEST(TestAttentionWork)

} // namespace tst_attention_work

#include "tst_attention_work.moc"
