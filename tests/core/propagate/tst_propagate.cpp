// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/program/verify.h"
#include "core/propagate/explain.h"
#include "core/propagate/propagate.h"
#include "tests/core/propagate/sharding_text.h"
#include "tests/test_class.h"

#include <QTest>

#include <map>

namespace tst_propagate {

using namespace meshwright;
using namespace meshwright::testing;

namespace {

TensorType f32(Shape shape)
{
    return {DType::F32, std::move(shape)};
}

/// A function under construction on one mesh.
struct Sketch {
    Function function;
    Builder b{function};
    std::vector<NamedMesh> meshes;

    explicit Sketch(const char* mesh) { meshes.push_back({"mesh", valueOf(parseMesh(mesh))}); }

    const Mesh& mesh() const { return meshes.front().mesh; }
    ValueId arg(const char* name, Shape shape, const char* sharding = nullptr)
    {
        const ValueId value = b.argument(f32(std::move(shape)), name);
        if (sharding != nullptr)
            annotate(function, value, sharding, mesh());
        return value;
    }
    void given(ValueId value, const char* sharding) { annotate(function, value, sharding, mesh()); }
    ValueId matmul(ValueId lhs, ValueId rhs) { return b.matmul(lhs, rhs, DType::F32); }
    ValueId addBias(ValueId value, ValueId bias)
    {
        return b.binary(OpKind::Add, value, b.broadcast(bias, b.type(value).shape, {1}));
    }

    PropagationReport run(PropagationStrategy strategy = PropagationStrategy::Pipeline)
    {
        const Problems before = verify(function, meshes);
        if (!before.empty())
            qFatal("%s", describe(before).c_str());
        auto report = propagate(function, meshes, strategy);
        if (!report)
            qFatal("%s", describe(report.error()).c_str());
        const Problems after = verify(function, meshes);
        if (!after.empty())
            qFatal("%s", describe(after).c_str());
        return *std::move(report);
    }
    QString text(ValueId value) const { return QString::fromStdString(textOf(function[value].sharding, mesh())); }
    QString explain(const PropagationReport& report, ValueId value) const
    {
        return QString::fromStdString(explainSharding(function, report, mesh(), value));
    }
};

} // namespace

class TestPropagate : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void waysBackToTheUser();
    void vectors_data();
    void vectors();
    void megatron();
    void fullyShardedWithPriorities();
    void group();
    void groupOfDifferentAnnotations();
    void groupProblems();
    void constantsDoNotTieTheirUsers();
    void constantsMergeAgain();
    void repeatCarries();
    void repeatStacks();
    void nestedRepeat();
    void constraintReachesItsInput();
    void constraintChain();
    void resultShardings();
    void partialKinds_data();
    void partialKinds();
    void wrongSharding();
    void partialResultOnAnotherMesh();
    void wholeValueOnAnotherMesh();
    void noMesh();
    void cacheStaysSplit();
    void conflicts();
    void partialSumOfAProduct();
    void reasonsLeadBack();
};

void TestPropagate::vectors_data()
{
    QTest::addColumn<int>("strategy");
    QTest::addColumn<QString>("op"); // dot, dotRhsTransposed, add, reshape
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QStringList>("before"); // lhs, rhs, result; "-" or nothing for none
    QTest::addColumn<QStringList>("after"); // lhs, rhs, result
    const int basic = static_cast<int>(PropagationStrategy::Basic);
    const int aggressive = static_cast<int>(PropagationStrategy::Aggressive);

    QTest::newRow("dot: each factor goes its way") << basic << "dot"
                                                   << "a=2,b=2,c=2" << QStringList{"[{a, ?}, {b, ?}]", "[{?}, {c, ?}]"}
                                                   << QStringList{"[{a, ?}, {b, ?}]", "[{b, ?}, {c, ?}]", "[{a, ?}, {c, ?}]"};
    QTest::newRow("a conflict in the contraction does not hinder the result")
        << aggressive << "dotRhsTransposed"
        << "a=2,b=2,c=2" << QStringList{"[{a}, {b, c}]", "[{c, b}, {a}]"}
        << QStringList{"[{a}, {b, c}]", "[{c, b}, {a}]", "[{a, ?}, {c, b, ?}]"};
    QTest::newRow("closed dimensions stay") << aggressive << "add"
                                            << "a=2,b=2,c=2" << QStringList{"[{a, ?}, {b}]", "[{}, {b, c, ?}]"}
                                            << QStringList{"[{a, ?}, {b}]", "[{}, {b, c, ?}]", "[{a, ?}, {b, c, ?}]"};
    QTest::newRow("basic never chooses") << basic << "add"
                                         << "a=2" << QStringList{"[{a, ?}, {?}]", "[{?}, {a, ?}]"}
                                         << QStringList{"[{a, ?}, {?}]", "[{?}, {a, ?}]", "-"};
    QTest::newRow("aggressive does") << aggressive << "add"
                                     << "a=2" << QStringList{"[{a, ?}, {?}]", "[{?}, {a, ?}]"}
                                     << QStringList{"[{a, ?}, {?}]", "[{?}, {a, ?}]", "[{a, ?}, {?}]"};
    QTest::newRow("replicated axes are not taken")
        << basic << "add"
        << "a=2,b=2" << QStringList{"[{a, ?}, {b, ?}]", "[{?}, {?}] replicated={a}"}
        << QStringList{"[{a, ?}, {b, ?}]", "[{?}, {b, ?}], replicated={a}", "[{?}, {b, ?}]"};
    QTest::newRow("reshape cuts an axis") << basic << "reshape"
                                          << "x=4" << QStringList{"[{x, ?}, {?}]", "-"}
                                          << QStringList{"[{x, ?}, {?}]", "-", "[{x:(1)2, ?}, {x:(2)2, ?}, {?}]"};
    QTest::newRow("reshape: without parts of axes")
        << static_cast<int>(PropagationStrategy::BasicConservative) << "reshape"
        << "x=4" << QStringList{"[{x, ?}, {?}]", "-"} << QStringList{"[{x, ?}, {?}]", "-", "-"};
    QTest::newRow("reshape: co-prime sizes")
        << aggressive << "reshape"
        << "x=3" << QStringList{"[{x, ?}, {?}]", "-"} << QStringList{"[{x, ?}, {?}]", "-", "-"};
    // The operand has x on rows that are not a multiple of 3: of what comes from the result it takes y, which is before x.
    QTest::newRow("reshape: up to an axis that co-prime sizes have")
        << basic << "reshape"
        << "x=3,y=2" << QStringList{"[{x, ?}, {?}]", "-", "[{?}, {?}, {y, x, ?}]"}
        << QStringList{"[{x, ?}, {y, ?}]", "-", "[{?}, {?}, {y, x, ?}]"};
}

void TestPropagate::vectors()
{
    QFETCH(int, strategy);
    QFETCH(QString, op);
    QFETCH(QString, mesh);
    QFETCH(QStringList, before);
    QFETCH(QStringList, after);
    Sketch s(mesh.toUtf8().constData());
    const ValueId lhs = s.arg("lhs", {8, 32});
    const ValueId rhs = s.arg("rhs", op == "dot" ? Shape{32, 16} : Shape{8, 32});
    ValueId result;
    if (op == "dot") {
        result = s.matmul(lhs, rhs);
    } else if (op == "dotRhsTransposed") {
        DotAttributes attributes;
        attributes.lhsContracting = {1};
        attributes.rhsContracting = {1};
        result = s.b.dot(lhs, rhs, attributes);
    } else if (op == "add") {
        result = s.b.binary(OpKind::Add, lhs, rhs);
    } else {
        result = s.b.reshape(lhs, {2, 4, 32});
    }
    s.b.setResults({result});
    for (const auto& [value, sharding] :
        {std::pair(lhs, before.value(0)), std::pair(rhs, before.value(1)), std::pair(result, before.value(2, "-"))}) {
        if (sharding != "-")
            s.given(value, sharding.toUtf8().constData());
    }
    s.run(static_cast<PropagationStrategy>(strategy));
    QCOMPARE((QStringList{s.text(lhs), s.text(rhs), s.text(result)}), after);
}

void TestPropagate::megatron()
{
    // Only w1 is annotated; the rest of tensor parallelism follows.
    Sketch s("model=4");
    const ValueId x = s.arg("x", {32, 64});
    const ValueId w1 = s.arg("w1", {64, 256}, "[{?}, {model}]");
    const ValueId b1 = s.arg("b1", {256});
    const ValueId w2 = s.arg("w2", {256, 64});
    const ValueId hidden = s.b.named(s.b.unary(OpKind::Tanh, s.addBias(s.matmul(x, w1), b1)), "hidden");
    const ValueId y = s.matmul(hidden, w2);
    s.b.setResults({y});
    const PropagationReport report = s.run();
    QCOMPARE(s.text(x), QString("[{}, {}]"));
    QCOMPARE(s.text(w1), QString("[{}, {model}]"));
    QCOMPARE(s.text(b1), QString("[{model}]"));
    QCOMPARE(s.text(hidden), QString("[{}, {model}]"));
    QCOMPARE(s.text(w2), QString("[{model}, {}]"));
    QCOMPARE(s.text(y), QString("[{}, {}]"));
    QVERIFY(report.conflicts.empty());
    QCOMPARE(s.explain(report, w2),
        QString("P('model',): dim 0 by model, from w1 (sharding.w1) through dot_general, add, tanh and dot_general"));
    QCOMPARE(s.explain(report, x), QString("P(): no annotation reaches it"));
}

void TestPropagate::fullyShardedWithPriorities()
{
    // Batch first, then Megatron, then ZeRO.
    Sketch s("fsdp=4,tp=2");
    const ValueId x = s.arg("x", {32, 16, 64}, "[{fsdp}, {}, {}]");
    const ValueId w1 = s.arg("w1", {64, 256}, "[{fsdp}p2, {tp}p1]");
    DotAttributes attributes;
    attributes.lhsContracting = {2};
    attributes.rhsContracting = {0};
    const ValueId h = s.b.named(s.b.dot(x, w1, attributes), "h");
    const ValueId y = s.b.unary(OpKind::Tanh, h);
    s.b.setResults({y});
    const PropagationReport report = s.run();
    QCOMPARE(s.text(h), QString("[{fsdp}, {}, {tp}]"));
    QCOMPARE(s.text(y), QString("[{fsdp}, {}, {tp}]"));
    QCOMPARE(s.text(w1), QString("[{fsdp}, {tp}]"));
    QCOMPARE(s.text(x), QString("[{fsdp}, {}, {}]"));
    // What the partitioner has to resolve: x lacks fsdp along the contraction.
    QCOMPARE(report.conflicts.size(), std::size_t{1});
    QCOMPARE(report.conflicts.front().value, x);
    QCOMPARE(report.conflicts.front().dim, std::size_t{2});
    QCOMPARE(QString::fromStdString(report.conflicts.front().reason), QString("w1 has it; dim 0 holds it (sharding.x)"));
}

void TestPropagate::group()
{
    Sketch s("a=2,b=2");
    const ValueId x = s.arg("x", {8, 8}, "[{a, ?}, {?}]");
    const ValueId y = s.arg("y", {8, 8});
    const ValueId z = s.b.unary(OpKind::Tanh, y);
    s.function.shardingGroups = {{x, y}};
    s.b.setResults({x, z});
    const PropagationReport report = s.run();
    QCOMPARE(s.text(y), QString("[{a}, {}]"));
    QCOMPARE(s.text(z), QString("[{a}, {}]"));
    QCOMPARE(s.explain(report, z), QString("P('a',): dim 0 by a, from x (sharding.x) through sharding group and tanh"));
}

/// Members that are annotated differently keep that: the group has what is behind them, where it is open.
void TestPropagate::groupOfDifferentAnnotations()
{
    Sketch s("a=2,b=2");
    const ValueId x = s.arg("x", {8, 8}, "[{a}, {?}]");
    const ValueId y = s.arg("y", {8, 8}, "[{?}, {b}]");
    const ValueId z = s.b.unary(OpKind::Tanh, y);
    s.function.shardingGroups = {{x, y}};
    s.b.setResults({s.b.unary(OpKind::Exp, x), z});
    s.run();
    QCOMPARE(s.text(x), QString("[{a}, {b}]"));
    QCOMPARE(s.text(y), QString("[{a}, {b}]"));
    QCOMPARE(s.text(z), QString("[{a}, {b}]"));
    const std::vector<ValueId>& group = s.function.shardingGroups.front();
    for (std::size_t i = 0; i < group.size(); ++i) {
        const Op& constraint = s.function[s.function[group[i]].producer];
        QCOMPARE(constraint.kind, OpKind::ShardingConstraint);
        QCOMPARE(constraint.operands.front(), i == 0 ? x : y);
    }
}

void TestPropagate::groupProblems()
{
    Sketch s("a=2,b=2");
    const ValueId x = s.arg("x", {8, 8}, "[{a}, {}]");
    const ValueId y = s.arg("y", {8, 8}, "[{b}, {}]");
    const ValueId z = s.arg("z", {8});
    s.b.setResults({x, y, z});
    s.function.shardingGroups = {{x, z}};
    const auto shapes = propagate(s.function, s.meshes);
    QVERIFY(!shapes);
    QCOMPARE(shapes.error().front().id, std::string("MW1202"));
}

void TestPropagate::constantsDoNotTieTheirUsers()
{
    Sketch s("a=2");
    const ValueId x = s.arg("x", {8, 8}, "[{a}, {}]");
    const ValueId y = s.arg("y", {8, 8});
    const ValueId one = s.b.broadcastScalar(s.b.splat(f32({}), 1.0), {8, 8});
    const ValueId u = s.b.binary(OpKind::Add, x, one);
    const ValueId v = s.b.binary(OpKind::Add, y, one);
    s.b.setResults({u, v});
    s.run();
    QCOMPARE(s.text(u), QString("[{a}, {}]"));
    QCOMPARE(s.text(v), QString("[{}, {}]"));
    QCOMPARE(s.text(y), QString("[{}, {}]"));
    QCOMPARE(s.text(one), QString("[{a}, {}]"));
    const ValueId other = s.function[s.function[v].producer].operands[1];
    QVERIFY(other != one);
    QCOMPARE(s.text(other), QString("[{}, {}]"));
    QCOMPARE(s.function.body().ops.size(), std::size_t{5}); // the scalar, two broadcasts, two adds
}

void TestPropagate::constantsMergeAgain()
{
    Sketch s("a=2");
    const ValueId x = s.arg("x", {8, 8}, "[{a}, {}]");
    const ValueId rows = s.b.iota(f32({8, 8}), 0);
    const ValueId mask = s.b.binary(OpKind::Multiply, rows, rows);
    const ValueId u = s.b.binary(OpKind::Add, x, mask);
    const ValueId v = s.b.binary(OpKind::Multiply, u, mask);
    s.b.setResults({v});
    const std::vector<OpId> before = s.function.body().ops;
    s.run();
    QCOMPARE(s.function.body().ops, before);
    QCOMPARE(s.text(mask), QString("[{a}, {}]"));
    QCOMPARE(s.text(rows), QString("[{a}, {}]"));
}

void TestPropagate::repeatCarries()
{
    Sketch s("data=2,model=2");
    const ValueId x = s.arg("x", {8, 16}, "[{data, ?}, {?}]");
    const ValueId w = s.arg("w", {16, 16}, "[{?}, {model, ?}]");
    const OpId repeat = s.b.beginRepeat({3, 1, 0, false}, {x, w});
    const std::vector<ValueId> inner = s.function[s.b.block()].arguments;
    const ValueId h = s.b.unary(OpKind::Tanh, s.matmul(inner[0], inner[1]));
    s.b.setResults({h});
    const ValueId out = s.b.endRepeat(repeat).front();
    const ValueId y = s.b.unary(OpKind::Negate, out);
    s.b.setResults({y});
    const PropagationReport report = s.run();
    QCOMPARE(s.text(inner[1]), s.text(w)); // an invariant
    QCOMPARE(s.text(out), s.text(inner[0]));
    QCOMPARE(s.text(out), QString("[{data}, {model}]"));
    QCOMPARE(s.text(y), QString("[{data}, {model}]"));
    QVERIFY(s.explain(report, y).startsWith("P('data', 'model'): dim 0 by data, from x (sharding.x) through loop carry"));
}

void TestPropagate::repeatStacks()
{
    // Twelve layers' weights in one array: their dimensions are the slices', the first stays whole.
    Sketch s("data=2,model=2");
    const ValueId x = s.arg("x", {8, 16}, "[{data, ?}, {?}]");
    const ValueId w1 = s.arg("w1", {12, 16, 32}, "[{?}, {?}, {model, ?}]");
    const ValueId w2 = s.arg("w2", {12, 32, 16});
    const OpId repeat = s.b.beginRepeat({12, 1, 2, false}, {x, w1, w2});
    const std::vector<ValueId> inner = s.function[s.b.block()].arguments;
    const ValueId h = s.b.unary(OpKind::Tanh, s.matmul(inner[0], inner[1]));
    const ValueId out = s.b.binary(OpKind::Add, inner[0], s.matmul(h, inner[2]));
    s.b.setResults({out, h});
    const std::vector<ValueId> results = s.b.endRepeat(repeat);
    s.b.setResults(results);
    s.run();
    QCOMPARE(s.text(inner[1]), QString("[{}, {model}]"));
    QCOMPARE(s.text(inner[2]), QString("[{model}, {}]"));
    QCOMPARE(s.text(w2), QString("[{}, {model}, {}]"));
    QCOMPARE(s.text(results[0]), QString("[{data}, {}]"));
    QCOMPARE(s.text(results[1]), QString("[{}, {data}, {model}]"));

    // Nothing reaches dimension 0, even from outside.
    Sketch t("data=2");
    const ValueId p = t.arg("p", {4, 8});
    const ValueId g = t.arg("g", {4, 8}, "[{data}, {?}]");
    const ValueId sum = t.b.binary(OpKind::Add, p, g);
    const ValueId start = t.arg("start", {8});
    const OpId loop = t.b.beginRepeat({4, 1, 1, false}, {start, p});
    const std::vector<ValueId> in = t.function[t.b.block()].arguments;
    t.b.setResults({t.b.binary(OpKind::Add, in[0], in[1])});
    t.b.setResults({t.b.endRepeat(loop).front(), sum});
    t.run();
    QCOMPARE(t.text(p), QString("[{}, {}]"));
    QCOMPARE(t.text(g), QString("[{data}, {}]"));
}

void TestPropagate::nestedRepeat()
{
    Sketch s("a=2");
    const ValueId x = s.arg("x", {8});
    const ValueId stack = s.arg("stack", {3, 2, 8}, "[{?}, {?}, {a}]");
    const OpId outer = s.b.beginRepeat({3, 1, 1, false}, {x, stack});
    const std::vector<ValueId> outerArgs = s.function[s.b.block()].arguments;
    const OpId inner = s.b.beginRepeat({2, 1, 1, false}, {outerArgs[0], outerArgs[1]});
    const std::vector<ValueId> innerArgs = s.function[s.b.block()].arguments;
    const ValueId sum = s.b.binary(OpKind::Add, innerArgs[0], innerArgs[1]);
    s.b.setResults({sum});
    s.b.setResults({s.b.endRepeat(inner).front()});
    const ValueId out = s.b.endRepeat(outer).front();
    s.b.setResults({out});
    s.run();
    QCOMPARE(s.text(innerArgs[1]), QString("[{a}]"));
    QCOMPARE(s.text(outerArgs[1]), QString("[{}, {a}]"));
    QCOMPARE(s.text(out), QString("[{a}]"));
    QCOMPARE(s.text(x), QString("[{a}]"));
}

void TestPropagate::constraintReachesItsInput()
{
    Sketch s("a=2,b=2");
    const ValueId x = s.arg("x", {8, 8}, "[{?}, {b, ?}]");
    const ValueId h = s.b.unary(OpKind::Tanh, x);
    const ValueId c = s.b.constrain(h, shardingOf("[{a}, {}]", s.mesh()), "constraint.h");
    s.b.setResults({c});
    const PropagationReport report = s.run();
    QCOMPARE(s.text(h), QString("[{a}, {}]"));
    QCOMPARE(s.text(c), QString("[{a}, {}]"));
    QCOMPARE(s.text(x), QString("[{a}, {b}]"));
    QVERIFY(
        s.explain(report, x).startsWith("P('a', 'b'): dim 0 by a, from %2 (constraint.h) through tanh; dim 1 by b, by sharding.x")
        || s.explain(report, x).contains("constraint.h"));
}

void TestPropagate::constraintChain()
{
    Sketch s("a=2,b=2");
    const ValueId x = s.arg("x", {8, 8});
    const ValueId c1 = s.b.constrain(x, shardingOf("[{a}, {}]", s.mesh()), "first");
    const ValueId c2 = s.b.constrain(c1, shardingOf("[{}, {b}]", s.mesh()), "second");
    const ValueId y = s.b.unary(OpKind::Tanh, x);
    s.b.setResults({c2, y});
    s.run();
    QCOMPARE(s.function[s.function[y].producer].operands.front(), c2);
    QCOMPARE(s.text(x), QString("[{a}, {}]"));
    QCOMPARE(s.text(y), QString("[{}, {b}]"));
}

void TestPropagate::resultShardings()
{
    Sketch s("a=2,b=2");
    const ValueId x = s.arg("x", {8, 8}, "[{a, ?}, {?}]");
    const ValueId y = s.b.unary(OpKind::Tanh, x);
    const ValueId z = s.b.unary(OpKind::Negate, x);
    s.b.setResults({y, z}, {"y", "z"});
    s.function.resultShardings = {shardingOf("[{?}, {b}]", s.mesh()), std::nullopt};
    const PropagationReport report = s.run();
    QCOMPARE(s.text(y), QString("[{a}, {b}]"));
    QCOMPARE(textOf(s.function.resultShardings[0], s.mesh()), std::string("[{a}, {b}]"));
    QCOMPARE(textOf(s.function.resultShardings[1], s.mesh()), std::string("[{a}, {b}]"));
    QVERIFY(s.explain(report, y).contains("dim 1 by b, asked of result y"));
    QVERIFY(s.explain(report, x).contains("dim 1 by b, asked of result y, through tanh"));
}

void TestPropagate::partialKinds_data()
{
    QTest::addColumn<int>("dtype");
    QTest::addColumn<int>("kind");
    QTest::addColumn<QString>("message"); // empty: this kind combines values of this type
    const auto row = [](DType dtype, ReduceKind kind, const char* message) {
        QTest::addRow("%s of %s", reduceKindName(kind), dtypeName(dtype))
            << static_cast<int>(dtype) << static_cast<int>(kind) << QString(message);
    };
    row(DType::F32, ReduceKind::Max, "");
    row(DType::F32, ReduceKind::And,
        "the sharding of x makes it partial by and; floating and complex numbers combine by sum, product, max or min");
    row(DType::BF16, ReduceKind::Or,
        "the sharding of x makes it partial by or; floating and complex numbers combine by sum, product, max or min");
    row(DType::C64, ReduceKind::And,
        "the sharding of x makes it partial by and; floating and complex numbers combine by sum, product, max or min");
    row(DType::S32, ReduceKind::And, "");
    row(DType::S32, ReduceKind::Sum, "");
    row(DType::Pred, ReduceKind::Or, "");
    row(DType::Pred, ReduceKind::Sum, "");
    row(DType::Pred, ReduceKind::Max, "");
}

void TestPropagate::partialKinds()
{
    QFETCH(int, dtype);
    QFETCH(int, kind);
    QFETCH(QString, message);
    Sketch s("a=2");
    const ValueId x = s.b.argument({static_cast<DType>(dtype), {8}}, "x");
    s.b.setResults({x});
    s.function[x].sharding = TensorSharding::openOf(1);
    s.function[x].sharding->unreduced = {{0, 1, 2}};
    s.function[x].sharding->unreducedKind = static_cast<ReduceKind>(kind);
    const auto report = propagate(s.function, s.meshes);
    QCOMPARE(report.has_value(), message.isEmpty());
    if (!report) {
        QCOMPARE(report.error().front().id, std::string("MW1203"));
        QCOMPARE(QString::fromStdString(report.error().front().message), message);
    }
}

void TestPropagate::wrongSharding()
{
    Sketch s("a=2");
    const ValueId x = s.arg("x", {8, 8});
    s.b.setResults({x});
    s.function[x].sharding = TensorSharding::openOf(1);
    auto report = propagate(s.function, s.meshes);
    QVERIFY(!report);
    QCOMPARE(report.error().front().id, std::string("MW1203"));
    QCOMPARE(report.error().front().message, std::string("the sharding of x has 1 dimensions, the value has 2"));
    s.function[x].sharding = TensorSharding::openOf(2);
    s.function[x].sharding->mesh = 3;
    report = propagate(s.function, s.meshes);
    QVERIFY(!report);
    QCOMPARE(report.error().front().message, std::string("the sharding of x names a mesh that is not there"));
    s.function[x].sharding = TensorSharding::openOf(2);
    s.function[x].sharding->dims[1].axes = {{7, 1, 2}};
    report = propagate(s.function, s.meshes);
    QVERIFY(!report);
    QCOMPARE(report.error().front().message, std::string("the sharding of x names an axis that its mesh does not have"));

    Sketch t("a=2");
    const ValueId token = t.b.argument({DType::Token, {}}, "t");
    t.b.setResults({token});
    t.function[token].sharding = TensorSharding::openOf(0);
    t.function[token].sharding->unreduced = {{0, 1, 2}};
    report = propagate(t.function, t.meshes);
    QVERIFY(!report);
    QCOMPARE(
        report.error().front().message, std::string("the sharding of t makes it partial, and a token has nothing to combine"));
}

/// A result that leaves as parts is on the mesh of the value that it returns, not on the module's first.
void TestPropagate::partialResultOnAnotherMesh()
{
    Sketch s("a=2");
    s.meshes.push_back({"wide", valueOf(parseMesh("x=2,y=2,z=2"))});
    TensorSharding parts = TensorSharding::openOf(2);
    for (DimSharding& dim : parts.dims)
        dim.open = false;
    parts.mesh = 1;
    parts.unreduced = {{2, 1, 2}};
    s.b.setResults({s.b.add(OpKind::ShardingConstraint, {s.arg("x", {8, 8})}, ConstraintAttributes{parts, {}})});
    s.run();
    const auto& result = s.function.resultShardings.front();
    QVERIFY(result);
    QCOMPARE(result->mesh, 1);
    QCOMPARE(result->unreduced, parts.unreduced);
}

/// A value that gets no axes is on the mesh that the function speaks of, not on the module's first.
void TestPropagate::wholeValueOnAnotherMesh()
{
    Sketch s("a=2");
    s.meshes.push_back({"wide", valueOf(parseMesh("x=2,y=2,z=2"))});
    const ValueId x = s.arg("x", {8, 8});
    const ValueId y = s.arg("y", {8, 8});
    annotate(s.function, x, "[{x}, {}]", s.meshes.back().mesh);
    annotate(s.function, y, "[{y}, {}]", s.meshes.back().mesh);
    for (const ValueId value : {x, y})
        s.function[value].sharding->mesh = 1;
    const ValueId sum = s.b.add(OpKind::Add, {x, y});
    s.b.setResults({sum});
    s.run();
    QVERIFY(s.function[sum].sharding);
    QCOMPARE(s.function[sum].sharding->mesh, 1);
    QCOMPARE(s.function.resultShardings.front()->mesh, 1);
}

void TestPropagate::noMesh()
{
    Sketch s("a=2");
    const ValueId x = s.arg("x", {8});
    s.b.setResults({s.b.unary(OpKind::Tanh, x)});
    QVERIFY(propagate(s.function, {}).has_value());
    QVERIFY(!s.function[x].sharding);
}

/// A cache that is written a position at a time stays split along its positions, from one step to the next.
void TestPropagate::cacheStaysSplit()
{
    Sketch s("x=4,y=2");
    const ValueId cache = s.arg("cache", {8, 64, 16}, "[{y}, {x}, {}]");
    const ValueId entry = s.arg("entry", {8, 1, 16});
    const ValueId position = s.b.argument({DType::S32, {}}, "position");
    const ValueId zero = s.b.splat({DType::S32, {}}, 0.0);
    const ValueId written = s.b.add(OpKind::DynamicUpdateSlice, {cache, entry, zero, position, zero});
    const ValueId read = s.b.unary(OpKind::Negate, written);
    s.b.setResults({read});
    s.run();
    QCOMPARE(s.text(written), QString("[{y}, {x}, {}]"));
    QCOMPARE(s.text(read), QString("[{y}, {x}, {}]"));
    QCOMPARE(s.text(entry), QString("[{y}, {}, {}]"));
}

void TestPropagate::conflicts()
{
    Sketch s("a=2,b=2");
    const ValueId x = s.arg("x", {8, 8}, "[{a}, {}]");
    const ValueId y = s.arg("y", {8, 8}, "[{b}, {}]");
    const ValueId z = s.b.binary(OpKind::Add, x, y);
    s.b.setResults({z});
    const PropagationReport report = s.run();
    // Nobody chooses between two axes of one factor.
    QCOMPARE(s.text(z), QString("[{}, {}]"));
    QCOMPARE(report.conflicts.size(), std::size_t{2});
    QCOMPARE(report.conflicts[0].value, y);
    QCOMPARE(report.conflicts[1].value, z);
    QCOMPARE(s.explain(report, y),
        QString("P('b',): dim 0 by b, by sharding.y; dim 0 does not have a: x has it; dim 0 is split by \"b\" (sharding.y) and "
                "closed"));
}

void TestPropagate::reasonsLeadBack()
{
    Sketch s("a=2,b=2");
    const ValueId x = s.arg("x", {8, 8}, "[{a, ?}, {?}]");
    const ValueId w = s.arg("w", {8, 8}, "[{?}, {b, ?}]");
    const ValueId h = s.matmul(x, w);
    const ValueId t = s.b.unary(OpKind::Tanh, h);
    s.b.setResults({t});
    const PropagationReport report = s.run();
    const auto reasons = report.reasonsOf(t);
    QCOMPARE(reasons.size(), std::size_t{2});
    QCOMPARE(reasons[0].annotation, std::string("sharding.x"));
    QCOMPARE(reasons[0].from, h);
    QCOMPARE(reasons[0].through, s.function[t].producer);
    QCOMPARE(reasons[1].annotation, std::string("sharding.w"));
    QCOMPARE(report.reasonsOf(h)[1].step, std::string("dot_general, factor j, basic, pass-through"));
    QCOMPARE(report.reasonsOf(x).front().step, std::string("by the user"));
    QVERIFY(report.rounds > 0);
}

/// The way back to the annotation link by link, for every axis.
/// Z = X + Y, R = Z W; everything follows from X.
void TestPropagate::partialSumOfAProduct()
{
    Sketch s("a=2,b=2");
    const ValueId x = s.arg("x", {8, 8}, "[{a}, {b}]");
    const ValueId y = s.arg("y", {8, 8});
    const ValueId w = s.arg("w", {8, 8});
    const ValueId z = s.b.binary(OpKind::Add, x, y);
    const ValueId r = s.matmul(z, w);
    s.b.setResults({r});
    s.run();
    QCOMPARE(s.text(y), QString("[{a}, {b}]"));
    QCOMPARE(s.text(z), QString("[{a}, {b}]"));
    QCOMPARE(s.text(w), QString("[{b}, {}]"));
    QCOMPARE(s.text(r), QString("[{a}, {}]"));
}

void TestPropagate::waysBackToTheUser()
{
    Sketch s("data=4,model=2");
    const ValueId x = s.arg("x", {8, 16}, "[{data}, {}]");
    const ValueId w = s.arg("w", {16, 32}, "[{}, {model}]");
    const ValueId h = s.b.unary(OpKind::Tanh, s.matmul(x, w));
    s.b.setResults({h});
    const PropagationReport report = s.run();
    const auto ways = shardingWays(s.function, report, h);
    QCOMPARE(ways.size(), std::size_t{2});
    QCOMPARE(ways[0].size(), std::size_t{3});
    QCOMPARE(ways[0].back().value, x);
    QVERIFY(!ways[0].back().from.valid());
    QCOMPARE(ways[1].back().value, w);
    QCOMPARE(ways[1].front().value, h);
    QCOMPARE(ways[1].front().from, ways[1][1].value);
    QVERIFY(shardingWays(s.function, report, x).front().size() == 1);
}

MESHWRIGHT_TEST(TestPropagate)

} // namespace tst_propagate

#include "tst_propagate.moc"
