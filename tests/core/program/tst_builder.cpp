// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/builder.h"
#include "core/program/verify.h"

#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_builder {

using namespace meshwright;
using namespace meshwright::tests;

class TestBuilder : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void layer();
    void identitiesAddNothing();
    void splats();
    void matmulTypes();
    void constraint();
    void repeat();
    void find();
};

void TestBuilder::layer()
{
    Function f;
    f.name = "layer";
    Builder b(f);
    b.setPhase(Phase::Forward);
    const ValueId x = b.argument({DType::F32, {8, 3}}, "x", Role::Input);
    const ValueId w = b.argument({DType::F32, {3, 5}}, "w", Role::Parameter);
    const ValueId bias = b.argument({DType::F32, {5}}, "b", Role::Parameter);
    const ValueId product = b.matmul(x, w, DType::BF16);
    const ValueId sum = b.named(b.binary(OpKind::Add, product, b.broadcast(bias, {8, 5}, {1})), "out");
    b.setResults({sum}, {"out"});

    QCOMPARE(f.arguments().size(), std::size_t{3});
    QCOMPARE(f[w].index, std::size_t{1});
    QVERIFY(!f[w].producer.valid());
    QVERIFY(f[w].role == Role::Parameter);
    QCOMPARE(f.body().ops.size(), std::size_t{3});
    QCOMPARE(text(typeText(f[sum].type)), QString("f32[8,5]"));
    QVERIFY(f[f[product].producer].as<DotAttributes>().operandType == DType::BF16);
    QCOMPARE(text(valueText(f, sum)), QString("out"));
    QCOMPARE(text(valueText(f, product)), QString("dot_general(x, ..)"));
    QVERIFY(verify(f, {}).empty());
}

void TestBuilder::identitiesAddNothing()
{
    Function f;
    Builder b(f);
    const ValueId x = b.argument({DType::F32, {2}});
    const ValueId scalar = b.argument({DType::F32, {}});
    QVERIFY(b.convert(x, DType::F32) == x);
    QVERIFY(b.reshape(x, {2}) == x);
    QVERIFY(b.reduce(ReduceKind::Sum, x, {}) == x);
    QVERIFY(b.broadcastScalar(scalar, {}) == scalar);
    QVERIFY(f.ops.empty());
    QVERIFY(b.broadcastScalar(scalar, {3}) != scalar);
}

void TestBuilder::splats()
{
    Function f;
    Builder b(f);
    const ValueId half = b.splat({DType::F32, {2}}, 0.5);
    const ValueId two = b.splat({DType::S32, {}}, 2.0);
    QCOMPARE(std::get<double>(f[f[half].producer].as<ConstantAttributes>().data.value), 0.5);
    QCOMPARE(std::get<std::int64_t>(f[f[two].producer].as<ConstantAttributes>().data.value), std::int64_t{2});
    QVERIFY(f[f[two].producer].as<ConstantAttributes>().data.isSplat());
    const ValueId none = b.splat({DType::C64, {3}}, 0.0);
    QCOMPARE(**std::get_if<2>(&f[f[none].producer].as<ConstantAttributes>().data.value), std::string(8, '\0'));
}

void TestBuilder::matmulTypes()
{
    Function f;
    Builder b(f);
    const ValueId x = b.argument({DType::BF16, {2, 4, 3}});
    const ValueId w = b.argument({DType::BF16, {3, 5}});
    QCOMPARE(text(typeText(b.type(b.matmul(x, w, DType::BF16)))), QString("bf16[2,4,5]"));
}

void TestBuilder::constraint()
{
    const Mesh mesh = meshOf("data=4");
    Function f;
    Builder b(f);
    const ValueId x = b.argument({DType::F32, {8, 2}});
    const ValueId y = b.constrain(x, shardingOf("P('data', None)", 2, mesh), "sharding.act");
    b.setResults({y});
    QVERIFY(f[y].sharding.has_value() && !f[x].sharding);
    QCOMPARE(text(f[y].annotation), QString("sharding.act"));
    QVERIFY(verify(f, {{"mesh", mesh}}).empty());
}

void TestBuilder::repeat()
{
    Function f;
    f.name = "loop";
    Builder b(f);
    const ValueId h = b.argument({DType::F32, {2, 3}}, "h");
    const ValueId ws = b.argument({DType::F32, {4, 3, 3}}, "ws");
    const ValueId scale = b.argument({DType::F32, {2, 3}}, "scale");
    const OpId loop = b.beginRepeat({4, 1, 1, false}, {h, ws, scale});
    const auto inner = f[b.block()].arguments;
    QCOMPARE(inner.size(), std::size_t{3});
    QCOMPARE(text(typeText(b.type(inner[1]))), QString("f32[3,3]"));
    const ValueId next = b.binary(OpKind::Multiply, b.matmul(inner[0], inner[1], DType::F32), inner[2]);
    b.setResults({next, b.reduce(ReduceKind::Sum, next, {0, 1})});
    const auto results = b.endRepeat(loop);
    QVERIFY(b.block() == BlockId(std::int32_t{0}));
    QCOMPARE(results.size(), std::size_t{2});
    QCOMPARE(text(typeText(b.type(results[0]))), QString("f32[2,3]"));
    QCOMPARE(text(typeText(b.type(results[1]))), QString("f32[4]"));
    b.setResults(results, {"h", "sums"});
    QVERIFY2(verify(f, {}).empty(), qPrintable(text(describe(verify(f, {})))));
}

void TestBuilder::find()
{
    Program program;
    program.functions.resize(2);
    program.functions[1].name = "step";
    Builder b(program.functions[1]);
    const ValueId x = b.argument({DType::F32, {}}, "x");
    QVERIFY(program.find("step") == &program.functions[1]);
    QVERIFY(program.find("loss") == nullptr);
    QVERIFY(program.find("step")->findValue("x") == x);
    QVERIFY(!program.find("step")->findValue("y"));
}

MESHWRIGHT_TEST(TestBuilder)

} // namespace tst_builder

#include "tst_builder.moc"
