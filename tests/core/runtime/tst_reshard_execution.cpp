// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partition.h"
#include "core/runtime/executor.h"
#include "core/sharding/shardy_text.h"
#include "tests/random_shardings.h"
#include "tests/runtime_test.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <numeric>

namespace tst_reshard_execution {

using namespace meshwright;
using namespace meshwright::test;

namespace {

/// A change of layout as a function of one argument. Partial sums are made of a leading dimension that the unreduced axes split.
DeviceFunction functionOf(const ReshardPlan& plan, const Shape& shape, const TensorSharding& from)
{
    DeviceFunction device;
    device.function.name = "reshard";
    Builder b(device.function);
    const auto describe = [&](ValueId value, const TensorSharding& layout, const Shape& whole) {
        device.function[value].sharding = layout;
        device.globalShapes.resize(device.function.values.size());
        device.globalShapes[value.at()] = whole;
    };
    TensorSharding spread = from;
    spread.unreduced.clear();
    Shape wide = shape;
    if (!from.unreduced.empty()) {
        spread.dims.insert(spread.dims.begin(), {from.unreduced, false, 0});
        wide.insert(wide.begin(), shardCount(from.unreduced));
    }
    ValueId value = b.argument({DType::F32, localShape(wide, spread)}, "x");
    describe(value, spread, wide);
    if (!from.unreduced.empty()) {
        value = b.reduce(ReduceKind::Sum, value, {0});
        describe(value, from, shape);
    }
    for (const ReshardStep& step : plan.steps) {
        value = b.add(step.kind, {value}, step.attributes);
        describe(value, step.result, shape);
    }
    b.setResults({value});
    return device;
}

/// What comes out, and what the devices counted.
struct Ran {
    HostArray result;
    std::vector<CountedCalls> calls;
};

Ran run(const DeviceFunction& device, const Mesh& mesh, VirtualDevices& devices, const HostArray& argument)
{
    const auto loaded = LoadedFunction::load(schedule(device, SchedulePolicy::Host), {{"mesh", mesh}}, devices);
    if (!loaded)
        qFatal("%s", describe(loaded.error()).c_str());
    for (const Result<Done>& done : {(*loaded)->writeArgument(0, argument), (*loaded)->run()}) {
        if (!done)
            qFatal("%s", describe(done.error()).c_str());
    }
    return {(*loaded)->readResult(0), (*loaded)->countedCalls()};
}

/// Pieces of one size on every device all the way: what the devices can run.
bool isEven(const ReshardPlan& plan, const Shape& shape)
{
    return std::all_of(plan.steps.begin(), plan.steps.end(), [&](const ReshardStep& step) {
        for (std::size_t dim = 0; dim < shape.size(); ++dim) {
            if (shape[dim] % shardCount(step.result.dims[dim].axes) != 0)
                return false;
        }
        return true;
    });
}

} // namespace

/// Sequences of collectives on real data.
class TestReshardExecution : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void movesOfOneAxis_data();
    void movesOfOneAxis();
    void bothSequencesGiveTheSameValues_data();
    void bothSequencesGiveTheSameValues();
    void programsInBothStyles_data();
    void programsInBothStyles();
};

void TestReshardExecution::movesOfOneAxis_data()
{
    QTest::addColumn<QString>("mesh");
    for (const char* mesh :
        {"a=2,b=2,c=2", "a=4,b=2,c=4", "a=2,b=4,c=2", "a=2,b=3,c=2", "a=3,b=2,c=4", "a=2,b=2,c=6", "b=2,a=4,c=4"})
        QTest::newRow(mesh) << QString(mesh);
}

/// Each layout with at most one axis to each other one: the replicas along the axes that neither names stay among themselves.
void TestReshardExecution::movesOfOneAxis()
{
    QFETCH(QString, mesh);
    const Mesh on = valueOf(parseMesh(mesh.toStdString()));
    const BytesThenStepsCost cost;
    auto devices = VirtualDevices::create(on.deviceCount(), {});
    QVERIFY(devices);
    const Shape shape{12, 12};
    std::vector<TensorSharding> layouts{TensorSharding::replicatedOf(2)};
    for (std::size_t dim = 0; dim < 2; ++dim) {
        for (std::size_t axis = 0; axis < on.axes().size(); ++axis) {
            layouts.push_back(TensorSharding::replicatedOf(2));
            layouts.back().dims[dim].axes = {wholeAxis(on, axis)};
        }
    }
    std::vector<double> values(static_cast<std::size_t>(elementCount(shape)));
    std::iota(values.begin(), values.end(), 0.0);
    const HostArray argument = HostArray::of({DType::F32, shape}, values);
    for (const TensorSharding& from : layouts) {
        for (const TensorSharding& to : layouts) {
            const ReshardPlan plans[]
                = {planReshard(shape, 4, from, to, on, cost), *planShardyReshard(shape, 4, from, on, to, on, cost)};
            for (const ReshardPlan& plan : plans) {
                if (!isEven(plan, shape))
                    continue;
                const Ran ran = run(functionOf(plan, shape, from), on, **devices, argument);
                QVERIFY2(difference(ran.result, values, 0.0).empty(),
                    fmt::format("{} -> {}", shardyText(from, on), shardyText(to, on)).c_str());
            }
        }
    }
}

void TestReshardExecution::bothSequencesGiveTheSameValues_data()
{
    tests::addSeeds({23, 24, 25});
}

void TestReshardExecution::bothSequencesGiveTheSameValues()
{
    QFETCH(quint64, seed);
    tests::Random random(seed);
    const tests::RandomLimits limits{.open = false, .replicated = false};
    const BytesThenStepsCost cost;
    int ranShardy = 0;
    for (int round = 0; round < 150; ++round) {
        Mesh mesh = tests::randomMesh(random, limits);
        if (mesh.deviceCount() > 24)
            mesh = valueOf(parseMesh("x=2,y=3,z=4"));
        const auto rank = static_cast<std::size_t>(tests::pick(random, 1, 3));
        const TensorSharding from = tests::randomSharding(random, rank, mesh, limits);
        TensorSharding to = tests::randomSharding(random, rank, mesh, limits);
        to.unreduced.clear();
        const Shape shape = tests::dividedBy(random, from, to);
        const std::string what = fmt::format(
            "seed {}, round {}: {} {} -> {}", seed, round, mesh.text(), shardyText(from, mesh), shardyText(to, mesh));

        // Whole numbers, so that sums are exact in any order.
        Shape wide = shape;
        const std::int64_t terms = shardCount(from.unreduced);
        if (!from.unreduced.empty())
            wide.insert(wide.begin(), terms);
        std::vector<double> values(static_cast<std::size_t>(elementCount(wide)));
        for (double& value : values)
            value = static_cast<double>(tests::pick(random, -100, 100));
        std::vector<double> expected(static_cast<std::size_t>(elementCount(shape)), 0.0);
        for (std::size_t i = 0; i < values.size(); ++i)
            expected[i % expected.size()] += values[i];
        const HostArray argument = HostArray::of({DType::F32, wide}, values);

        auto devices = VirtualDevices::create(mesh.deviceCount(), {});
        QVERIFY(devices);
        const ReshardPlan cheapest = planReshard(shape, 4, from, to, mesh, cost);
        const ReshardPlan shardy = *planShardyReshard(shape, 4, from, mesh, to, mesh, cost);
        QVERIFY2(isEven(cheapest, shape), what.c_str());
        for (const ReshardPlan* plan : {&cheapest, &shardy}) {
            if (!isEven(*plan, shape))
                continue;
            const Ran ran = run(functionOf(*plan, shape, from), mesh, **devices, argument);
            QVERIFY2(difference(ran.result, expected, 0.0).empty(), what.c_str());
            std::int64_t planned = 0;
            for (const ReshardStep& step : plan->steps)
                planned += step.kind == OpKind::AllSlice ? 0 : step.payloadBytes;
            std::int64_t counted = 0;
            for (const CountedCalls& calls : ran.calls)
                counted += calls.totalPayloadBytes;
            QVERIFY2(counted == planned, fmt::format("{}: {} bytes counted, {} planned", what, counted, planned).c_str());
            ranShardy += plan == &shardy ? 1 : 0;
        }
    }
    QVERIFY(ranShardy > 100);
}

void TestReshardExecution::programsInBothStyles_data()
{
    tests::addSeeds({5, 6});
}

/// Two layers with a reduction, annotated at random: placed as Shardy does and by the least bytes they give what one device gives, and the
/// least bytes are no more than Shardy's. Whole numbers, so that sums are exact in any order.
void TestReshardExecution::programsInBothStyles()
{
    QFETCH(quint64, seed);
    tests::Random random(seed);
    const NamedMesh mesh{"mesh", valueOf(parseMesh("x=2,y=2,z=2"))};
    const tests::RandomLimits limits{.open = false, .unreduced = false, .replicated = false};
    auto devices = VirtualDevices::create(mesh.mesh.deviceCount(), {});
    QVERIFY(devices);
    for (int round = 0; round < 60; ++round) {
        Function function;
        function.name = "f";
        Builder b(function);
        std::vector<HostArray> arguments;
        const auto argument = [&](const char* name, Shape shape) {
            const ValueId value = b.argument({DType::F32, shape}, name);
            if (tests::chance(random, 70)) {
                function[value].sharding = tests::randomSharding(random, shape.size(), mesh.mesh, limits);
                function[value].annotation = name;
            }
            std::vector<double> values(static_cast<std::size_t>(elementCount(shape)));
            for (double& each : values)
                each = static_cast<double>(tests::pick(random, -3, 3));
            arguments.push_back(HostArray::of({DType::F32, shape}, values));
            return value;
        };
        const ValueId x = argument("x", {16, 8});
        const ValueId w = argument("w", {8, 16});
        const ValueId v = argument("v", {16, 8});
        const ValueId h = b.matmul(x, w, DType::F32);
        const ValueId r = b.reshape(b.transpose(b.binary(OpKind::Maximum, h, b.unary(OpKind::Negate, h)), {1, 0}), {4, 4, 16});
        const ValueId y = b.matmul(b.reshape(r, {16, 16}), v, DType::F32);
        const ValueId constrained = b.constrain(y, tests::randomSharding(random, 2, mesh.mesh, limits), "constraint");
        b.setResults({constrained, b.reduce(ReduceKind::Sum, r, {0, 2})});
        const auto expected = evaluate(function, arguments);
        QVERIFY(expected);
        QVERIFY(propagate(function, {mesh}));
        for (const ReshardStyle style : {ReshardStyle::Cheapest, ReshardStyle::Shardy}) {
            const auto device = partition(function, {mesh}, {.style = style});
            QVERIFY2(device, device ? "" : describe(device.error()).c_str());
            const auto loaded = LoadedFunction::load(schedule(*device, SchedulePolicy::Host), {mesh}, **devices);
            QVERIFY2(loaded, loaded ? "" : fmt::format("round {}: {}", round, describe(loaded.error())).c_str());
            for (std::size_t i = 0; i < arguments.size(); ++i)
                QVERIFY((*loaded)->writeArgument(i, arguments[i]));
            QVERIFY((*loaded)->run());
            for (std::size_t i = 0; i < expected->size(); ++i)
                QCOMPARE(difference((*loaded)->readResult(i), (*expected)[i].values(), 0.0), std::string());
        }
    }
}

MESHWRIGHT_TEST(TestReshardExecution)

} // namespace tst_reshard_execution

#include "tst_reshard_execution.moc"
