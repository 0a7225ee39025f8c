// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/training.h"
#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/program/verify.h"
#include "core/propagate/propagate.h"
#include "tests/core/propagate/sharding_text.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <QElapsedTimer>
#include <QTest>

#include <algorithm>
#include <random>

namespace tst_propagate_properties {

using namespace meshwright;
using namespace meshwright::testing;

namespace {

/// A random program of element-wise ops, dots, transposes, reductions, broadcasts and reshapes on matrices of one size.
Function randomProgram(std::mt19937& random, const Mesh& mesh)
{
    Function function;
    Builder b(function);
    const TensorType type{DType::F32, {12, 12}};
    std::vector<ValueId> values;
    for (int i = 0; i < 3; ++i)
        values.push_back(b.argument(type, "x" + std::to_string(i)));
    const auto any = [&] { return values[random() % values.size()]; };
    for (int i = 0; i < 12; ++i) {
        switch (random() % 7) {
        case 0:
            values.push_back(b.unary(OpKind::Tanh, any()));
            break;
        case 1:
            values.push_back(b.binary(OpKind::Add, any(), any()));
            break;
        case 2:
            values.push_back(b.matmul(any(), any(), DType::F32));
            break;
        case 3:
            values.push_back(b.transpose(any(), {1, 0}));
            break;
        case 4:
            values.push_back(b.broadcast(b.reduce(ReduceKind::Sum, any(), {1}), {12, 12}, {0}));
            break;
        case 5:
            values.push_back(b.reshape(b.reshape(any(), {4, 3, 12}), {12, 12}));
            break;
        default:
            values.push_back(b.binary(OpKind::Add, any(), b.broadcastScalar(b.splat({DType::F32, {}}, 1.0), {12, 12})));
            break;
        }
    }
    b.setResults({values.back(), any()});
    for (int i = 0; i < 3; ++i) {
        const ValueId value = any();
        TensorSharding sharding = TensorSharding::openOf(2);
        for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
            const std::size_t where = random() % 4;
            if (where < 2)
                sharding.dims[where].axes.push_back(wholeAxis(mesh, axis));
        }
        sharding.dims[random() % 2].open = random() % 2 == 0;
        for (DimSharding& dim : sharding.dims)
            dim.priority = dim.axes.empty() ? 0 : static_cast<int>(random() % 3);
        function[value].sharding = sharding;
        function[value].annotation = "sharding";
    }
    return function;
}

/// The sharding with the mesh's axes in another order: axis i of the old mesh is axis `to[i]` of the new one.
TensorSharding relabelled(TensorSharding sharding, const std::vector<std::int32_t>& to)
{
    const auto rename = [&](AxisRefs& axes) {
        for (AxisRef& axis : axes)
            axis.axis = to[static_cast<std::size_t>(axis.axis)];
    };
    for (DimSharding& dim : sharding.dims)
        rename(dim.axes);
    rename(sharding.replicated);
    rename(sharding.unreduced);
    std::sort(sharding.replicated.begin(), sharding.replicated.end());
    std::sort(sharding.unreduced.begin(), sharding.unreduced.end());
    return sharding;
}

/// Two functions side by side in one; the values of the second come behind those of the first.
Function together(const Function& first, const Function& second)
{
    Function both;
    Builder b(both);
    std::vector<ValueId> results;
    std::vector<std::vector<ValueId>> arguments;
    for (const Function* function : {&first, &second}) {
        arguments.emplace_back();
        for (const ValueId argument : function->arguments()) {
            arguments.back().push_back(b.argument((*function)[argument].type));
            both[arguments.back().back()].sharding = (*function)[argument].sharding;
            both[arguments.back().back()].annotation = (*function)[argument].annotation;
        }
    }
    for (std::size_t i = 0; i < 2; ++i) {
        for (const ValueId result : inlineCall(b, i == 0 ? first : second, arguments[i]))
            results.push_back(result);
    }
    b.setResults(results);
    return both;
}

} // namespace

class TestPropagateProperties : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void randomPrograms_data();
    void randomPrograms();
    void namesOfAxesDoNotMatter();
    void unrelatedOpsDoNotMatter();
    void moreIsKnownAtEachLevel();
    void largeProgram();
    void trainingSteps_data();
    void trainingSteps();
};

void TestPropagateProperties::randomPrograms_data()
{
    QTest::addColumn<int>("strategy");
    QTest::newRow("basic") << static_cast<int>(PropagationStrategy::Basic);
    QTest::newRow("aggressive") << static_cast<int>(PropagationStrategy::Aggressive);
    QTest::newRow("op priority") << static_cast<int>(PropagationStrategy::OpPriority);
    QTest::newRow("user priority") << static_cast<int>(PropagationStrategy::UserPriority);
    QTest::newRow("pipeline") << static_cast<int>(PropagationStrategy::Pipeline);
}

void TestPropagateProperties::randomPrograms()
{
    QFETCH(int, strategy);
    const std::vector<NamedMesh> meshes = {{"mesh", valueOf(parseMesh("a=2,b=3,c=4"))}};
    for (const std::uint32_t seed : tests::seedRange(0, 60)) {
        std::mt19937 random(seed);
        Function function = randomProgram(random, meshes.front().mesh);
        const Function before = function;
        const auto report = propagate(function, meshes, static_cast<PropagationStrategy>(strategy));
        QVERIFY(report);
        QVERIFY2(verify(function, meshes).empty(), describe(verify(function, meshes)).c_str());
        // Monotone: what the user wrote is still there, at the major end; closed dimensions are as they were.
        for (std::size_t i = 0; i < before.values.size(); ++i) {
            if (!before.values[i].sharding)
                continue;
            QVERIFY(function.values[i].sharding);
            for (std::size_t dim = 0; dim < 2; ++dim) {
                const AxisRefs& was = before.values[i].sharding->dims[dim].axes;
                const AxisRefs& is = function.values[i].sharding->dims[dim].axes;
                QVERIFY(was.size() <= is.size() && std::equal(was.begin(), was.end(), is.begin()));
                QVERIFY(before.values[i].sharding->dims[dim].open || was == is);
            }
        }
        // Every axis has a reason.
        for (std::size_t i = 0; i < function.values.size(); ++i) {
            const auto& sharding = function.values[i].sharding;
            if (!sharding || std::none_of(function.body().ops.begin(), function.body().ops.end(), [&](OpId op) {
                    return op == function.values[i].producer;
                }))
                continue;
            std::int64_t reasoned = 1;
            for (const ShardingReason& reason : report->reasonsOf(ValueId(i)))
                reasoned *= reason.axis.size;
            std::int64_t pieces = 1;
            for (const DimSharding& dim : sharding->dims)
                pieces *= shardCount(dim.axes);
            QCOMPARE(reasoned, pieces);
        }
        // Idempotent.
        const Function once = function;
        QVERIFY(propagate(function, meshes, static_cast<PropagationStrategy>(strategy)));
        for (std::size_t i = 0; i < once.values.size(); ++i)
            QCOMPARE(
                textOf(function.values[i].sharding, meshes.front().mesh), textOf(once.values[i].sharding, meshes.front().mesh));
    }
}

void TestPropagateProperties::namesOfAxesDoNotMatter()
{
    const std::vector<NamedMesh> meshes = {{"mesh", valueOf(parseMesh("a=2,b=3,c=4"))}};
    const std::vector<NamedMesh> others = {{"mesh", valueOf(parseMesh("z=4,x=2,y=3"))}};
    const std::vector<std::int32_t> to = {1, 2, 0};
    for (const std::uint32_t seed : tests::seedRange(100, 40)) {
        std::mt19937 random(seed);
        Function function = randomProgram(random, meshes.front().mesh);
        Function other = function;
        for (Value& value : other.values) {
            if (value.sharding)
                value.sharding = relabelled(*value.sharding, to);
        }
        QVERIFY(propagate(function, meshes));
        QVERIFY(propagate(other, others));
        for (std::size_t i = 0; i < function.values.size(); ++i)
            QCOMPARE(textOf(other.values[i].sharding, others.front().mesh),
                textOf(relabelled(*function.values[i].sharding, to), others.front().mesh));
    }
}

/// Ops of two programs that have nothing to do with each other, in any order that keeps that of each.
void TestPropagateProperties::unrelatedOpsDoNotMatter()
{
    const std::vector<NamedMesh> meshes = {{"mesh", valueOf(parseMesh("a=2,b=3,c=4"))}};
    for (const std::uint32_t seed : tests::seedRange(200, 30)) {
        std::mt19937 random(seed);
        const Function first = randomProgram(random, meshes.front().mesh);
        const Function second = randomProgram(random, meshes.front().mesh);
        Function inOrder = together(first, second);
        Function mixed = inOrder;
        std::vector<OpId> ops = mixed.body().ops;
        const auto border = ops.begin() + static_cast<std::ptrdiff_t>(first.body().ops.size());
        std::vector<OpId> shuffled;
        for (auto a = ops.begin(), b = border; a != border || b != ops.end();)
            shuffled.push_back(b == ops.end() || (a != border && random() % 2 == 0) ? *a++ : *b++);
        mixed.body().ops = shuffled;
        QVERIFY(verify(mixed, meshes).empty());
        QVERIFY(propagate(inOrder, meshes));
        QVERIFY(propagate(mixed, meshes));
        // Copies of constants are numbered in order of the ops: only what both began with is compared.
        for (const OpId op : inOrder.body().ops) {
            for (const ValueId value : inOrder[op].results) {
                if (value.at() < first.values.size() + second.values.size() && inOrder[op].kind != OpKind::Constant)
                    QCOMPARE(
                        textOf(mixed[value].sharding, meshes.front().mesh), textOf(inOrder[value].sharding, meshes.front().mesh));
            }
        }
    }
}

/// What a strategy finds is the beginning of what the next one finds, where that one only goes on from there.
void TestPropagateProperties::moreIsKnownAtEachLevel()
{
    const std::vector<NamedMesh> meshes = {{"mesh", valueOf(parseMesh("a=2,b=3,c=4"))}};
    for (const std::uint32_t seed : tests::seedRange(300, 40)) {
        std::mt19937 random(seed);
        Function basic = randomProgram(random, meshes.front().mesh);
        Function aggressive = basic;
        QVERIFY(propagate(basic, meshes, PropagationStrategy::Basic));
        QVERIFY(propagate(aggressive, meshes, PropagationStrategy::Aggressive));
        for (std::size_t i = 0; i < std::min(basic.values.size(), aggressive.values.size()); ++i) {
            if (!basic.values[i].sharding || basic.values[i].producer.valid())
                continue;
            QVERIFY(aggressive.values[i].sharding);
            for (std::size_t dim = 0; dim < 2; ++dim) {
                const AxisRefs& less = basic.values[i].sharding->dims[dim].axes;
                const AxisRefs& more = aggressive.values[i].sharding->dims[dim].axes;
                // The last axis may have grown: a:(1)2 becomes a.
                QVERIFY(less.size() <= more.size());
                for (std::size_t axis = 0; axis < less.size(); ++axis)
                    QVERIFY(isPrefixOf(less[axis], more[axis]));
            }
        }
    }
}

void TestPropagateProperties::largeProgram()
{
    // Some 20 000 ops: layers of dot, bias, tanh; data, fsdp and model parallel.
    const std::vector<NamedMesh> meshes = {{"mesh", valueOf(parseMesh("data=4,fsdp=4,model=8"))}};
    const Mesh& mesh = meshes.front().mesh;
    Function function;
    Builder b(function);
    ValueId h = b.argument({DType::F32, {256, 512}}, "x");
    annotate(function, h, "[{data, fsdp}, {}]", mesh);
    ValueId firstOutput;
    for (int layer = 0; layer < 2000; ++layer) {
        const ValueId up = b.argument({DType::F32, {512, 2048}}, "up" + std::to_string(layer));
        const ValueId bias = b.argument({DType::F32, {2048}}, "bias" + std::to_string(layer));
        const ValueId down = b.argument({DType::F32, {2048, 512}}, "down" + std::to_string(layer));
        annotate(function, up, "[{fsdp}p2, {model}p1]", mesh);
        const ValueId u = b.matmul(h, up, DType::F32);
        const ValueId hidden = b.unary(OpKind::Tanh, b.binary(OpKind::Add, u, b.broadcast(bias, {256, 2048}, {1})));
        const ValueId scaled = b.binary(OpKind::Multiply, hidden, b.broadcastScalar(b.splat({DType::F32, {}}, 0.5), {256, 2048}));
        h = b.binary(OpKind::Add, h, b.matmul(scaled, down, DType::F32));
    }
    b.setResults({h});
    const std::size_t ops = function.body().ops.size();
    QElapsedTimer timer;
    timer.start();
    const auto report = propagate(function, meshes);
    const qint64 milliseconds = timer.elapsed();
    QVERIFY(report);
    qInfo("%zu ops in %lld ms, %d rounds, %zu reasons, %zu conflicts", ops, static_cast<long long>(milliseconds), report->rounds,
        report->reasons.size(), report->conflicts.size());
    QCOMPARE(textOf(function[*function.findValue("down1999")].sharding, mesh), std::string("[{model}, {}]"));
    QCOMPARE(textOf(function[h].sharding, mesh), std::string("[{data, fsdp}, {}]"));
    QVERIFY(report->rounds < 100); // as many for 200 layers
}

void TestPropagateProperties::trainingSteps_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QStringList>("specs"); // value, sharding
    QTest::addColumn<QStringList>("expected"); // value, sharding

    const QStringList dataParallel = {"x", "[{data}, {}]", "y", "[{data}, {}]"};
    QTest::newRow("data parallel") << "data=4" << dataParallel
                                   << QStringList{"act.layers.0", "[{data}, {}]", "act.layers.1.activated", "[{data}, {}]",
                                          "layers.0.w", "[{}, {}]", "grad.layers.0.w", "[{}, {}]", "new.layers.1.w", "[{}, {}]",
                                          "loss", "[]"};
    QTest::newRow("fully sharded") << "data=4"
                                   << dataParallel
            + QStringList{"layers.0.w", "[{data}p1, {}]", "layers.1.w", "[{data}p1, {}]", "layers.2.w", "[{data}p1, {}]"}
                                   << QStringList{"act.layers.0", "[{data}, {}]", "act.layers.1.activated", "[{data}, {}]",
                                          "layers.1.w", "[{data}, {}]", "grad.layers.1.w", "[{data}, {}]", "new.layers.1.w",
                                          "[{data}, {}]", "opt.m.layers.1.w", "[{data}, {}]"};
    QTest::newRow("tensor parallel") << "data=2,model=4"
                                     << dataParallel
            + QStringList{"layers.0.w", "[{?}p1, {model}p1]", "layers.1.w", "[{model}p1, {?}p1]"}
                                     << QStringList{"act.layers.0", "[{data}, {model}]", "act.layers.0.activated",
                                            "[{data}, {model}]", "layers.0.b", "[{model}]", "act.layers.1", "[{data}, {}]",
                                            "grad.layers.0.w", "[{}, {model}]", "new.layers.1.w", "[{model}, {}]",
                                            "opt.v.layers.0.b", "[{model}]"};
}

void TestPropagateProperties::trainingSteps()
{
    QFETCH(QString, mesh);
    QFETCH(QStringList, specs);
    QFETCH(QStringList, expected);
    TrainingOptions options;
    options.batch = 32;
    options.optimizer = AdamOptimizer{};
    Program program = valueOf(buildMlpTraining({{64, 256, 128, 8}}, options));
    program.meshes = {{"mesh", valueOf(parseMesh(mesh.toStdString()))}};
    Function& step = *program.find("step");
    for (qsizetype i = 0; i < specs.size(); i += 2)
        annotate(step, *step.findValue(specs[i].toStdString()), specs[i + 1].toStdString(), program.meshes.front().mesh);
    const auto report = propagate(step, program.meshes);
    QVERIFY2(report, report ? "" : describe(report.error()).c_str());
    QVERIFY(verify(step, program.meshes).empty());
    QStringList found;
    for (qsizetype i = 0; i < expected.size(); i += 2)
        found << expected[i]
              << QString::fromStdString(
                     textOf(step[*step.findValue(expected[i].toStdString())].sharding, program.meshes.front().mesh));
    QCOMPARE(found, expected);
}

MESHWRIGHT_TEST(TestPropagateProperties)

} // namespace tst_propagate_properties

#include "tst_propagate_properties.moc"
