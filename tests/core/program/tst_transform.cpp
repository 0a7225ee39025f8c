// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/transform.h"
#include "core/program/verify.h"

#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_transform {

using namespace meshwright;
using namespace meshwright::tests;

namespace {

const TensorType kVector{DType::F32, {3}};

/// Names of the live ops in program order: "exponential add".
QString opsOf(const Function& f)
{
    QString names;
    forEachOp(f, [&](OpId id) { names += QString(names.isEmpty() ? "" : " ") + opName(f[id].kind); });
    return names;
}

/// f(x, y) = (exp x, tanh y), in phases and with names.
Function twoResults()
{
    Function f;
    f.name = "f";
    Builder b(f);
    const ValueId x = b.argument(kVector, "x");
    const ValueId y = b.argument(kVector, "y");
    const ValueId e = b.named(b.unary(OpKind::Exp, x), "e");
    b.setPhase(Phase::Update);
    const ValueId t = b.unary(OpKind::Tanh, y);
    b.setResults({e, t}, {"first", "second"});
    f.donations = {{0, 0}, {1, 1}};
    f.shardingGroups = {{x, e}, {y, t}};
    return f;
}

/// Two chains in one loop: a' = a * w (stacked), b' = exp(b); both carries and the stacked squares of a are results.
Function twoChains()
{
    Function f;
    f.name = "chains";
    Builder b(f);
    const ValueId a = b.argument(kVector, "a");
    const ValueId c = b.argument(kVector, "c");
    const ValueId ws = b.argument({DType::F32, {4, 3}}, "ws");
    const ValueId k = b.argument(kVector, "k");
    const OpId loop = b.beginRepeat({4, 2, 1, true}, {a, c, ws, k});
    const auto inner = f[b.block()].arguments;
    const ValueId nextA = b.binary(OpKind::Multiply, inner[0], inner[2]);
    const ValueId nextC = b.binary(OpKind::Add, b.unary(OpKind::Exp, inner[1]), inner[3]);
    b.setResults({nextA, nextC, b.binary(OpKind::Multiply, nextA, nextA)});
    b.setResults(b.endRepeat(loop), {"a", "c", "squares"});
    return f;
}

} // namespace

class TestTransform : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void inlining();
    void inliningALoop();
    void dead();
    void sendsStay();
    void replace();
    void compaction();
    void restricted();
    void restrictedLoop_data();
    void restrictedLoop();
    void restrictedBlocks_data();
    void restrictedBlocks();
    void carriesInARow();
    void nestedLoops();
    void counts();
};

void TestTransform::inlining()
{
    Function g;
    Builder b(g);
    const ValueId u = b.argument(kVector, "u");
    b.setPhase(Phase::Backward);
    const auto results = inlineCall(b, twoResults(), {u, u});
    b.setResults({b.binary(OpKind::Add, results[0], results[1])});
    QCOMPARE(opsOf(g), QString("exponential tanh add"));
    QVERIFY(g.ops[0].phase == Phase::Forward && g.ops[1].phase == Phase::Update && g.ops[2].phase == Phase::Backward);
    QCOMPARE(text(g[results[0]].name), QString("e"));
    QCOMPARE(g.shardingGroups.size(), std::size_t{2});
    QVERIFY((g.shardingGroups[0] == std::vector<ValueId>{u, results[0]}));
    QVERIFY(verify(g, {}).empty());
}

void TestTransform::inliningALoop()
{
    Function g;
    Builder b(g);
    const ValueId v = b.argument(kVector, "v");
    const ValueId stack = b.argument({DType::F32, {4, 3}}, "stack");
    const auto once = inlineCall(b, twoChains(), {v, v, stack, v});
    const auto twice = inlineCall(b, twoChains(), {once[0], once[1], stack, v});
    b.setResults(twice);
    QVERIFY2(verify(g, {}).empty(), qPrintable(text(describe(verify(g, {})))));
    QCOMPARE(g.body().ops.size(), std::size_t{2});
    QVERIFY(g[g.body().ops[0]].as<RepeatAttributes>().reversed);
}

void TestTransform::dead()
{
    Function f = twoResults();
    f.body().results.pop_back();
    QCOMPARE(eraseDeadOps(f), std::size_t{1});
    QCOMPARE(opsOf(f), QString("exponential"));
    QCOMPARE(f.shardingGroups.size(), std::size_t{1}); // the other one has lost a member
    QCOMPARE(eraseDeadOps(f), std::size_t{0});
}

void TestTransform::sendsStay()
{
    Function f;
    Builder b(f);
    const ValueId x = b.argument(kVector);
    b.addMany(OpKind::Send, {b.unary(OpKind::Exp, x)}, TransferAttributes{kVector, 1, 0});
    b.setResults({});
    QCOMPARE(eraseDeadOps(f), std::size_t{0});
    QCOMPARE(opsOf(f), QString("exponential send"));
}

void TestTransform::replace()
{
    Function f = twoResults();
    replaceUses(f, f.arguments()[1], f.arguments()[0]);
    replaceUses(f, f.results()[0], f.results()[1]);
    QVERIFY(f.ops[1].operands[0] == f.arguments()[0]);
    QVERIFY(f.results()[0] == f.results()[1]);
    QCOMPARE(eraseDeadOps(f), std::size_t{1});
}

void TestTransform::compaction()
{
    Function f = twoResults();
    f.body().results.pop_back();
    f.resultNames.pop_back();
    f.donations.pop_back();
    eraseDeadOps(f);
    QCOMPARE(f.ops.size(), std::size_t{2});
    const Function small = compacted(f);
    QCOMPARE(small.ops.size(), std::size_t{1});
    QCOMPARE(small.values.size(), std::size_t{3});
    QCOMPARE(text(small[small.results()[0]].name), QString("e"));
    QCOMPARE(text(small.name), QString("f"));
    QVERIFY(verify(small, {}).empty());
}

void TestTransform::restricted()
{
    const Function second = restrictedTo(twoResults(), {1});
    QCOMPARE(opsOf(second), QString("tanh"));
    QCOMPARE(second.arguments().size(), std::size_t{2}); // arguments stay, so that calls fit
    QCOMPARE(text(second.resultNames.at(0)), QString("second"));
    QCOMPARE(second.donations.size(), std::size_t{1});
    QCOMPARE(second.donations[0].argument, std::size_t{1});
    QCOMPARE(second.donations[0].result, std::size_t{0});
    QCOMPARE(second.shardingGroups.size(), std::size_t{1});

    const Function swapped = restrictedTo(twoResults(), {1, 0});
    QCOMPARE(text(swapped.resultNames.at(0)), QString("second"));
    QCOMPARE(opsOf(swapped), QString("exponential tanh"));
}

void TestTransform::restrictedLoop_data()
{
    QTest::addColumn<std::vector<std::size_t>>("results");
    QTest::addColumn<QString>("ops");
    QTest::addColumn<int>("operands");
    QTest::addColumn<int>("carries");
    QTest::addColumn<int>("stacked");

    QTest::newRow("all") << std::vector<std::size_t>{0, 1, 2} << "repeat multiply exponential add multiply" << 4 << 2 << 1;
    QTest::newRow("a") << std::vector<std::size_t>{0} << "repeat multiply" << 2 << 1 << 1;
    QTest::newRow("c") << std::vector<std::size_t>{1} << "repeat exponential add" << 2 << 1 << 0;
    QTest::newRow("squares need a") << std::vector<std::size_t>{2} << "repeat multiply multiply" << 2 << 1 << 1;
    QTest::newRow("none") << std::vector<std::size_t>{} << "" << 0 << 0 << 0;
}

void TestTransform::restrictedLoop()
{
    QFETCH(std::vector<std::size_t>, results);
    QFETCH(QString, ops);
    QFETCH(int, operands);
    QFETCH(int, carries);
    QFETCH(int, stacked);
    const Function f = restrictedTo(twoChains(), results);
    QCOMPARE(opsOf(f), ops);
    QVERIFY2(verify(f, {}).empty(), qPrintable(text(describe(verify(f, {})))));
    if (!f.body().ops.empty()) {
        const Op& loop = f[f.body().ops.front()];
        QCOMPARE(loop.operands.size(), static_cast<std::size_t>(operands));
        QCOMPARE(loop.as<RepeatAttributes>().carries, static_cast<std::size_t>(carries));
        QCOMPARE(loop.as<RepeatAttributes>().stacked, static_cast<std::size_t>(stacked));
        QVERIFY(loop.as<RepeatAttributes>().reversed);
    }
}

void TestTransform::restrictedBlocks_data()
{
    QTest::addColumn<bool>("isLoop");
    QTest::addColumn<std::vector<std::size_t>>("results");
    QTest::addColumn<QString>("ops");
    QTest::addColumn<int>("operands");

    QTest::newRow("while: both") << true << std::vector<std::size_t>{0, 1} << "while exponential add" << 4;
    QTest::newRow("while: what needs another carry") << true << std::vector<std::size_t>{1} << "while exponential add" << 4;
    QTest::newRow("while: what needs none") << true << std::vector<std::size_t>{0} << "while exponential" << 2;
    QTest::newRow("case: both") << false << std::vector<std::size_t>{0, 1} << "case exponential add" << 4;
    QTest::newRow("case: the first") << false << std::vector<std::size_t>{0} << "case exponential" << 2;
    QTest::newRow("case: the second") << false << std::vector<std::size_t>{1} << "case exponential add" << 4;
}

/// A while with carries (a, b, go on) and a vector k: a' = exp a, b' = b + a + k. A case with the same two results of a, b and k, or a and b.
void TestTransform::restrictedBlocks()
{
    QFETCH(bool, isLoop);
    QFETCH(std::vector<std::size_t>, results);
    QFETCH(QString, ops);
    QFETCH(int, operands);
    Function f;
    Builder b(f);
    const ValueId x = b.argument(kVector);
    const ValueId y = b.argument(kVector);
    const TensorType choice{isLoop ? DType::Pred : DType::S32, {}};
    const ValueId number = b.argument(choice);
    const ValueId k = b.argument(kVector);
    if (isLoop) {
        const OpId loop = b.beginOp(OpKind::While, {number, x, y, k}, WhileAttributes{3});
        const std::vector<TensorType> types{choice, kVector, kVector, kVector};
        const auto before = b.beginBody(loop, types);
        b.setResults({before[0]});
        const auto inner = b.beginBody(loop, types);
        const ValueId next = b.unary(OpKind::Exp, inner[1]);
        b.setResults({inner[0], next, b.binary(OpKind::Add, inner[2], b.binary(OpKind::Add, next, inner[3]))});
        const auto made = b.endOp(loop, {choice, kVector, kVector});
        b.setResults({made[1], made[2]});
    } else {
        const OpId branch = b.beginOp(OpKind::Case, {number, x, y, k}, {});
        const std::vector<TensorType> types(3, kVector);
        const auto first = b.beginBody(branch, types);
        b.setResults({first[0], first[1]});
        const auto second = b.beginBody(branch, types);
        const ValueId next = b.unary(OpKind::Exp, second[0]);
        b.setResults({next, b.binary(OpKind::Add, next, second[2])});
        b.setResults(b.endOp(branch, {kVector, kVector}));
    }
    QVERIFY2(verify(f, {}).empty(), qPrintable(text(describe(verify(f, {})))));
    const Function part = restrictedTo(f, results);
    QVERIFY2(verify(part, {}).empty(), qPrintable(text(describe(verify(part, {})))));
    QString names = opsOf(part);
    QCOMPARE(names.replace("add add", "add"), ops);
    QCOMPARE(part[part.body().ops.front()].operands.size(), static_cast<std::size_t>(operands));
}

/// Each carry takes the place of the one before it, so that one result needs all three in the end.
void TestTransform::carriesInARow()
{
    Function f;
    Builder b(f);
    std::vector<ValueId> first;
    for (int i = 0; i < 4; ++i)
        first.push_back(b.argument(kVector));
    const OpId loop = b.beginRepeat({4, 4, 0, false}, first);
    const auto inner = f[b.block()].arguments;
    b.setResults({inner[1], inner[2], b.unary(OpKind::Exp, inner[2]), b.unary(OpKind::Negate, inner[3])});
    b.setResults(b.endRepeat(loop));
    const Function one = restrictedTo(f, {0});
    QVERIFY2(verify(one, {}).empty(), qPrintable(text(describe(verify(one, {})))));
    QCOMPARE(opsOf(one), QString("repeat exponential"));
    QCOMPARE(one[one.body().ops.front()].operands.size(), std::size_t{3});
}

// A loop around the two chains, of which the outer one gives one: the inner loop loses the other.
void TestTransform::nestedLoops()
{
    Function f;
    Builder b(f);
    const ValueId a = b.argument(kVector);
    const ValueId c = b.argument(kVector);
    const ValueId ws = b.argument({DType::F32, {4, 3}});
    const OpId outer = b.beginRepeat({2, 2, 0, false}, {a, c, ws});
    const auto inner = f[b.block()].arguments;
    const auto results = inlineCall(b, twoChains(), {inner[0], inner[1], inner[2], inner[1]});
    b.setResults({results[0], results[1]});
    b.setResults(b.endRepeat(outer));
    const Function one = restrictedTo(f, {0});
    QCOMPARE(opsOf(one), QString("repeat repeat multiply"));
    const Op& loop = one[one.body().ops.front()];
    QCOMPARE(loop.operands.size(), std::size_t{2});
    QVERIFY2(verify(one, {}).empty(), qPrintable(text(describe(verify(one, {})))));
}

void TestTransform::counts()
{
    const Function f = twoChains();
    const auto uses = useCounts(f);
    for (const ValueId argument : f.arguments())
        QCOMPARE(uses[argument.at()], std::size_t{1});
    const Block& body = f.blocks[1];
    QCOMPARE(uses[body.results[0].at()], std::size_t{3}); // yielded, and twice in its square
    QCOMPARE(uses[body.results[2].at()], std::size_t{1});
}

MESHWRIGHT_TEST(TestTransform)

} // namespace tst_transform

#include "tst_transform.moc"
