// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/simulation.h"

#include "core/program/builder.h"
#include "core/support/resources.h"
#include "sim/session/engine.h"
#include "sim/simulate/instruction_work.h"
#include "tests/test_class.h"

namespace tst_simulation {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

Machine machineFor(const std::string& chip, std::vector<std::int64_t> topology, std::int64_t hosts = 0)
{
    return valueOf(buildMachine(valueOf(defaultCatalogue()), {chip, std::move(topology), hosts, 0}));
}

/// `layers` products of [1024, 1024] with an all-reduce over data after each, on data=4 (local shapes throughout).
Function chain(int layers, bool useResult)
{
    Function function;
    function.name = "step";
    Builder builder(function);
    const ValueId w = builder.argument({DType::F32, {1024, 1024}}, "w", Role::Parameter);
    ValueId h = w;
    std::vector<ValueId> reduced;
    for (int i = 0; i < layers; ++i) {
        h = builder.matmul(h, w, DType::BF16);
        CollectiveAttributes attributes;
        attributes.axes = {{0, 1, 4}};
        reduced.push_back(builder.add(OpKind::AllReduce, {h}, attributes));
        if (useResult)
            h = reduced.back();
    }
    builder.setResults(useResult ? std::vector<ValueId>{h} : reduced);
    return function;
}

DeviceFunction onDevices(const Function& function)
{
    DeviceFunction device;
    device.function = function;
    for (const Value& value : function.values)
        device.globalShapes.push_back(value.type.shape);
    return device;
}

/// On a machine as its usual software drives it.
Result<Simulation> simulateOn(const ScheduledFunction& scheduled, const char* mesh, const Function& function,
    const Machine& machine, const NetworkOptions& network = {})
{
    return simulate(scheduled, valueOf(parseMesh(mesh)), function, machine, valueOf(costOptionsOf(machine.chip)), network,
        {.timeline = true});
}

Result<Simulation> simulatedWith(
    const Function& function, SchedulePolicy policy, const Machine& machine, const NetworkOptions& network)
{
    return simulateOn(schedule(onDevices(function), policy), "data=4", function, machine, network);
}

Simulation simulated(const Function& function, SchedulePolicy policy, const Machine& machine)
{
    return valueOf(simulatedWith(function, policy, machine, {}));
}

} // namespace

class TestSimulation : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void dependentCollectivesAreExposed();
    void independentCollectivesOverlap();
    void stepIsBoundedByItsStreams_data();
    void stepIsBoundedByItsStreams();
    void loopEqualsUnrolled();
    void workOfInstructions();
    void workOfPickedRows();
    void modelFlopsCountLoops();
    void meshLargerThanTheMachine();
    void productsWithoutARate();
    void predictsPublishedTimes_data();
    void predictsPublishedTimes();
    void oldTpusWaitForCollectives();
    void stacksMayWaitForSums();
    void productsHideTheirCollectives();
    void hostStartsKernels_data();
    void hostStartsKernels();
    void hostStartsTurns_data();
    void hostStartsTurns();
    void memoryFollowsThePlan();
    void fidelitiesAgree_data();
    void fidelitiesAgree();
    void fidelitiesAgreeOverHosts_data();
    void fidelitiesAgreeOverHosts();
    void slowDeviceIsWaitedFor();
    void failedLink();
    void forcedAlgorithms();
    void collectivesShareLinks_data();
    void collectivesShareLinks();
    void neverBelowTheBounds_data();
    void neverBelowTheBounds();
    void jumpedLoopIsUnrolled();
    void overlappedTurns_data();
    void overlappedTurns();
    void stragglersAreShown();
};

void TestSimulation::dependentCollectivesAreExposed()
{
    const Simulation s = simulated(chain(3, true), SchedulePolicy::Overlapped, machineFor("v5e", {4, 1}));
    QCOMPARE(s.collectives.size(), std::size_t{3});
    double communication = 0.0;
    for (const SimulatedCollective& collective : s.collectives) {
        QCOMPARE(collective.use.payloadBytes, std::int64_t{1024 * 1024 * 4});
        QVERIFY(qAbs(collective.exposedSeconds - collective.seconds) < 1e-12);
        communication += collective.seconds;
    }
    QVERIFY(qAbs(s.stepSeconds - (s.computeSeconds + communication)) < 1e-12);
}

void TestSimulation::independentCollectivesOverlap()
{
    const Machine machine = machineFor("v5e", {4, 1});
    const Simulation overlapped = simulated(chain(4, false), SchedulePolicy::Overlapped, machine);
    const Simulation eager = simulated(chain(4, false), SchedulePolicy::Eager, machine);
    QVERIFY(overlapped.stepSeconds < eager.stepSeconds);
    QVERIFY(overlapped.exposedSeconds < overlapped.collectiveSeconds);
}

void TestSimulation::stepIsBoundedByItsStreams_data()
{
    QTest::addColumn<int>("layers");
    QTest::addColumn<bool>("useResult");
    QTest::addColumn<int>("policy");
    for (const int layers : {1, 2, 5}) {
        for (const bool useResult : {false, true}) {
            for (int policy = 0; policy < 3; ++policy)
                QTest::newRow(qPrintable(QString("%1 layers, %2, %3").arg(layers).arg(useResult).arg(policy)))
                    << layers << useResult << policy;
        }
    }
}

/// max(sum of computing, sum of communicating) <= step <= their sum.
void TestSimulation::stepIsBoundedByItsStreams()
{
    QFETCH(int, layers);
    QFETCH(bool, useResult);
    QFETCH(int, policy);
    const Simulation s = simulated(chain(layers, useResult), static_cast<SchedulePolicy>(policy), machineFor("v4", {4, 4, 4}));
    const double slack = 1e-12;
    QVERIFY(s.stepSeconds + slack >= std::max(s.computeSeconds, s.collectiveSeconds));
    QVERIFY(s.stepSeconds <= s.computeSeconds + s.collectiveSeconds + slack);
    QVERIFY(qAbs(s.stepSeconds - (s.computeSeconds + s.exposedSeconds)) < slack);
    QVERIFY(qAbs(s.timeline.endSeconds() - s.stepSeconds) < slack);
}

void TestSimulation::loopEqualsUnrolled()
{
    const TensorType square{DType::F32, {512, 512}};
    Function unrolled;
    Builder plain(unrolled);
    ValueId h = plain.argument(square, "h");
    const ValueId w = plain.argument(square, "w", Role::Parameter);
    for (int i = 0; i < 7; ++i)
        h = plain.matmul(h, w, DType::BF16);
    plain.setResults({h});

    Function folded;
    Builder loop(folded);
    const ValueId h0 = loop.argument(square, "h");
    const ValueId w0 = loop.argument(square, "w", Role::Parameter);
    const OpId repeat = loop.beginRepeat({7, 1, 0, false}, {h0, w0});
    const auto arguments = folded[loop.block()].arguments;
    loop.setResults({loop.matmul(arguments[0], arguments[1], DType::BF16)});
    loop.setResults(loop.endRepeat(repeat));

    const Machine machine = machineFor("h100", {}, 1);
    const Simulation a = simulated(unrolled, SchedulePolicy::Overlapped, machine);
    const Simulation b = simulated(folded, SchedulePolicy::Overlapped, machine);
    QVERIFY(qAbs(a.stepSeconds - b.stepSeconds) < 1e-12);
    QCOMPARE(a.modelFlops, b.modelFlops);
}

void TestSimulation::workOfInstructions()
{
    Function function;
    Builder builder(function);
    const ValueId a = builder.argument({DType::F32, {8, 64, 32}}, "a");
    const ValueId b = builder.argument({DType::F32, {8, 32, 16}}, "b");
    DotAttributes attributes;
    attributes.lhsBatch = attributes.rhsBatch = {0};
    attributes.lhsContracting = {2};
    attributes.rhsContracting = {1};
    attributes.operandType = DType::BF16;
    builder.setResults({builder.dot(a, b, attributes)});
    const auto scheduled = schedule(onDevices(function), SchedulePolicy::Host);
    const OpWork work = workOf(function, scheduled.instructions.front());
    QCOMPARE(work.matmul->batch, std::int64_t{8});
    QCOMPARE(work.matmul->m, std::int64_t{64});
    QCOMPARE(work.matmul->n, std::int64_t{16});
    QCOMPARE(work.matmul->k, std::int64_t{32});
    QCOMPARE(work.bytesRead, std::int64_t{4 * 8 * (64 * 32 + 32 * 16)});
    QCOMPARE(work.bytesWritten, std::int64_t{4 * 8 * 64 * 16});
    QCOMPARE(work.format, MathFormat::Bf16);
}

/// A gather reads the rows that it takes, a scatter those that it adds to: on TPUs the tiles that they lie in.
void TestSimulation::workOfPickedRows()
{
    Function function;
    Builder builder(function);
    const ValueId table = builder.argument({DType::F32, {1000, 64}}, "table");
    const ValueId indices = builder.argument({DType::S32, {10, 1}}, "indices");
    GatherAttributes take;
    take.dims = {{1}, {0}, {}, {}, {0}, 1};
    take.sliceSizes = {1, 64};
    const ValueId rows = builder.add(OpKind::Gather, {table, indices}, take);
    ScatterAttributes put;
    put.dims = take.dims;
    put.combiner = ReduceKind::Sum;
    builder.setResults({builder.add(OpKind::Scatter, {table, indices, rows}, put)});
    const auto scheduled = schedule(onDevices(function), SchedulePolicy::Host);
    const std::int64_t ofRows = 10 * 64 * 4;
    const std::int64_t ofTable = 1000 * 64 * 4;
    for (const std::int64_t tile : {1, 8}) {
        const auto workAt = [&](std::size_t i) {
            return workOf(function, scheduled.instructions[i], MatmulPrecision::Highest, static_cast<double>(tile));
        };
        QCOMPARE(workAt(0).bytesRead, 10 * 4 + tile * ofRows);
        QCOMPARE(workAt(0).bytesWritten, ofRows);
        QCOMPARE(workAt(1).bytesRead, ofTable + 10 * 4 + ofRows + tile * ofRows);
        QCOMPARE(workAt(1).bytesWritten, ofTable);
    }
}

void TestSimulation::modelFlopsCountLoops()
{
    QCOMPARE(productFlops(chain(3, true)), 3 * 2.0 * 1024 * 1024 * 1024);

    Function nested; // 5 times 3 times one product
    Builder builder(nested);
    const TensorType square{DType::F32, {64, 64}};
    const ValueId h = builder.argument(square, "h");
    const OpId outer = builder.beginRepeat({5, 1, 0, false}, {h});
    const OpId inner = builder.beginRepeat({3, 1, 0, false}, {nested[builder.block()].arguments[0]});
    const ValueId carried = nested[builder.block()].arguments[0];
    builder.setResults({builder.matmul(carried, carried, DType::F32)});
    builder.setResults(builder.endRepeat(inner));
    builder.setResults(builder.endRepeat(outer));
    QCOMPARE(productFlops(nested), 5 * 3 * 2.0 * 64 * 64 * 64);
}

void TestSimulation::meshLargerThanTheMachine()
{
    const Function function = chain(1, true);
    const auto result
        = simulateOn(schedule(onDevices(function), SchedulePolicy::Overlapped), "data=16", function, machineFor("v5e", {4, 2}));
    QVERIFY(!result);
    QCOMPARE(result.error().front().id, std::string("MW1720"));
}

void TestSimulation::productsWithoutARate()
{
    Function function;
    Builder builder(function);
    const ValueId x = builder.argument({DType::S32, {8, 8}}, "x");
    DotAttributes attributes;
    attributes.lhsContracting = {1};
    attributes.rhsContracting = {0};
    attributes.resultType = attributes.operandType = DType::S32;
    builder.setResults({builder.dot(x, x, attributes)});
    const auto result
        = simulateOn(schedule(onDevices(function), SchedulePolicy::Overlapped), "data=4", function, machineFor("v5e", {4, 1}));
    QVERIFY(!result);
    QCOMPARE(result.error().front().id, std::string("MW1730"));
}

void TestSimulation::predictsPublishedTimes_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QStringList>("settings");
    QTest::addColumn<double>("measuredSeconds");

    // JAX's page on distributed arrays, printed on a TPU v3-8; `%timeit` of a call that is waited for.
    const QStringList oneCore{"hardware={chip: v3, topology: [1, 1]}"};
    QTest::newRow("gradient, 8-way data parallel") << "jax_gradient" << QStringList{} << 26.3e-3;
    QTest::newRow("gradient, one core") << "jax_gradient" << oneCore + QStringList{"mesh={data: 1}"} << 122e-3;
    QTest::newRow("product, 4x2") << "jax_product" << QStringList{} << 3.25e-3;
    QTest::newRow("product, one core") << "jax_product" << oneCore + QStringList{"mesh={a: 1, b: 1}"} << 19.3e-3;
}

/// Within a tenth, from the catalogue alone.
void TestSimulation::predictsPublishedTimes()
{
    QFETCH(QString, file);
    QFETCH(QStringList, settings);
    QFETCH(double, measuredSeconds);
    std::vector<std::string> overrides;
    for (const QString& setting : settings)
        overrides.push_back(setting.toStdString());
    const auto study = loadStudy(resourcesDirectory() / "examples" / (file.toStdString() + ".yaml"), overrides);
    QVERIFY2(study, study ? "" : describe(study.error()).c_str());
    const auto result = simulateStudy(*study, valueOf(defaultCatalogue()));
    QVERIFY2(result, result ? "" : describe(result.error()).c_str());
    const double ratio = result->simulation.callSeconds / measuredSeconds;
    QVERIFY2(ratio > 0.9 && ratio < 1.1, qPrintable(QString("predicted / measured = %1").arg(ratio)));
}

/// An all-reduce of v3 takes the axes of the torus one after the other and nothing is computed meanwhile; v4 does neither.
void TestSimulation::oldTpusWaitForCollectives()
{
    const auto step = [](const std::string& chip) {
        const std::vector<std::string> settings{
            "batch=512", "model.mlp.layers=[256, 256, 256]", "hardware={chip: " + chip + ", topology: [2, 2]}", "mesh={data: 4}"};
        return valueOf(simulateStudy(valueOf(loadStudy(resourcesDirectory() / "examples/jax_gradient.yaml", settings)),
                           valueOf(defaultCatalogue())))
            .simulation;
    };
    const Simulation old = step("v2");
    QVERIFY(old.collectiveSeconds > 0.0);
    QVERIFY(qAbs(old.exposedSeconds - old.collectiveSeconds) < 1e-12);
    const Simulation recent = step("v5e");
    QVERIFY(recent.exposedSeconds < recent.collectiveSeconds);
}

/// Old Megatron-LM waits for a sum of activations where it starts; else a product that does not need it runs beside.
void TestSimulation::stacksMayWaitForSums()
{
    const auto step = [](Role role, bool waits) {
        Function function;
        function.name = "step";
        Builder builder(function);
        const ValueId x = builder.argument({DType::BF16, {4096, 4096}}, "x");
        const ValueId w = builder.argument({DType::BF16, {4096, 4096}}, "w", Role::Parameter);
        CollectiveAttributes over;
        over.axes = {{0, 1, 4}};
        const ValueId sum = builder.add(OpKind::AllReduce, {builder.matmul(x, w, DType::BF16)}, over);
        function[sum].role = role;
        const ValueId other = builder.matmul(w, x, DType::BF16);
        builder.setResults({builder.binary(OpKind::Multiply, sum, other)});
        const Machine machine = machineFor("a100", {}, 1);
        CostOptions options = valueOf(costOptionsOf(machine.chip));
        options.waitsForSums = waits;
        return valueOf(simulate(
            schedule(onDevices(function), SchedulePolicy::Overlapped), valueOf(parseMesh("data=4")), function, machine, options));
    };
    const Simulation beside = step(Role::Activation, false);
    QVERIFY(beside.exposedSeconds < 0.9 * beside.collectiveSeconds);
    const Simulation waiting = step(Role::Activation, true);
    QVERIFY(qAbs(waiting.exposedSeconds - waiting.collectiveSeconds) < 1e-9);
    QCOMPARE(step(Role::Gradient, true).exposedSeconds, beside.exposedSeconds);
}

/// A product that is taken part by part begins before its operand is gathered, and its result leaves before it ends: a step of a gather, a product and a
/// scatter, of which the product is the longest, takes the product's time. One whose gather is the longest takes that and the last part.
void TestSimulation::productsHideTheirCollectives()
{
    constexpr double kDevices = 4.0;
    const auto step = [](std::int64_t width, bool hides) {
        Function function;
        function.name = "step";
        Builder builder(function);
        const ValueId x = builder.argument({DType::BF16, {2048, 4096}}, "x");
        const ValueId w = builder.argument({DType::BF16, {4096, width}}, "w", Role::Parameter);
        CollectiveAttributes along;
        along.axes = {{0, 1, 4}};
        along.perDim = {along.axes, {}};
        const ValueId whole = builder.add(OpKind::AllGather, {x}, along);
        builder.setResults({builder.add(OpKind::ReduceScatter, {builder.matmul(whole, w, DType::BF16)}, along)});
        const Machine machine = machineFor("v5e", {4, 1});
        CostOptions options = valueOf(costOptionsOf(machine.chip));
        options.hidesInProducts = hides;
        return valueOf(simulate(
            schedule(onDevices(function), SchedulePolicy::Overlapped), valueOf(parseMesh("data=4")), function, machine, options));
    };
    const Simulation apart = step(16384, false);
    const Simulation within = step(16384, true);
    QVERIFY(qAbs(apart.stepSeconds - apart.computeSeconds - apart.collectiveSeconds) < 1e-9);
    QVERIFY(qAbs(within.computeSeconds - apart.computeSeconds) < 1e-9);
    QVERIFY(apart.computeSeconds > apart.collectiveSeconds);
    QVERIFY2(within.stepSeconds < 1.25 * within.computeSeconds && within.stepSeconds >= within.computeSeconds,
        qPrintable(QString("%1 s for %2 s of computing").arg(within.stepSeconds).arg(within.computeSeconds)));

    const Simulation narrow = step(64, true);
    const double gather = narrow.collectives[0].seconds;
    QVERIFY(gather > narrow.computeSeconds);
    const double least = gather + narrow.computeSeconds / kDevices;
    QVERIFY2(narrow.stepSeconds >= least && narrow.stepSeconds < least + narrow.collectives[1].seconds + 1e-9,
        qPrintable(QString("%1 s, not %2").arg(narrow.stepSeconds).arg(least)));
}

namespace {

CostOptions withHost(const Machine& machine, double secondsPerKernel)
{
    CostOptions options = valueOf(costOptionsOf(machine.chip));
    options.constants.hostKernelSeconds = secondsPerKernel;
    return options;
}

} // namespace

void TestSimulation::hostStartsKernels_data()
{
    QTest::addColumn<QList<int>>("widths");
    QTest::newRow("the device decides") << QList<int>{2048, 2048, 2048, 2048};
    QTest::newRow("the host decides") << QList<int>{64, 64, 64, 64, 64};
    QTest::newRow("a long one lets the host get ahead") << QList<int>{4096, 64, 64, 64, 64, 64, 64};
    QTest::newRow("what the host lost stays lost") << QList<int>{64, 64, 64, 64, 4096, 64};
    QTest::newRow("in turn") << QList<int>{64, 2048, 64, 64, 2048, 64, 64, 64, 64, 64, 64, 2048};
}

/// Products of some widths one after the other: each begins when the one before is over and the host, which waits for nothing, has started it.
void TestSimulation::hostStartsKernels()
{
    constexpr double kHost = 20e-6;
    QFETCH(QList<int>, widths);
    const Machine machine = machineFor("a100", {}, 1);
    Function function;
    Builder builder(function);
    std::vector<ValueId> results;
    for (const int width : widths) {
        const ValueId x = builder.argument({DType::BF16, {width, width}}, "x");
        results.push_back(builder.matmul(x, x, DType::BF16));
    }
    builder.setResults(results);
    const ScheduledFunction scheduled = schedule(onDevices(function), SchedulePolicy::Overlapped);
    const auto simulatedBy = [&](double host) {
        return valueOf(simulate(
            scheduled, valueOf(parseMesh("data=1")), function, machine, withHost(machine, host), {}, {.timeline = true}));
    };
    const Simulation free = simulatedBy(0.0);
    double started = 0.0;
    double end = 0.0;
    for (const Slice& slice : free.timeline.slices()) {
        started += kHost;
        end = std::max(end, started) + slice.durationSeconds;
    }
    QCOMPARE(free.timeline.slices().size(), static_cast<std::size_t>(widths.size()));
    const Simulation s = simulatedBy(kHost);
    QVERIFY2(qAbs(s.stepSeconds - end) < 1e-9, qPrintable(QString("%1 s, not %2").arg(s.stepSeconds).arg(end)));
    QVERIFY(qAbs(s.computeSeconds + s.launchSeconds - s.stepSeconds) < 1e-12);
    QVERIFY(qAbs(s.launchSeconds - (end - free.stepSeconds)) < 1e-9);
}

void TestSimulation::hostStartsTurns_data()
{
    QTest::addColumn<int>("small");
    QTest::addColumn<int>("large");
    QTest::addColumn<double>("leastWaiting"); // of the step
    QTest::addColumn<double>("mostWaiting");
    QTest::newRow("the device decides") << 1 << 4 << 0.0 << 0.01;
    QTest::newRow("the host decides") << 30 << 1 << 0.3 << 1.0;
    QTest::newRow("the host decides at times") << 6 << 2 << 0.001 << 0.3;
}

/// Turns of some small products and some large ones, with a collective at the end, behind a long product that lets the host get ahead: the same step as
/// a loop and written out.
void TestSimulation::hostStartsTurns()
{
    QFETCH(int, small);
    QFETCH(int, large);
    constexpr int kTurns = 60;
    const TensorType little{DType::BF16, {64, 64}};
    const TensorType big{DType::BF16, {2048, 2048}};
    const TensorType huge{DType::BF16, {8192, 8192}};
    const auto turn = [&](Builder& builder, ValueId h, ValueId w, ValueId x) {
        for (int i = 0; i < large; ++i)
            x = builder.matmul(x, x, DType::BF16);
        for (int i = 0; i < small; ++i)
            h = builder.matmul(h, w, DType::BF16);
        CollectiveAttributes over;
        over.axes = {{0, 1, 4}};
        return std::vector<ValueId>{builder.add(OpKind::AllReduce, {h}, over), x};
    };
    const auto before = [&](Builder& builder) {
        const ValueId first = builder.argument(huge, "first");
        return std::vector<ValueId>{builder.matmul(first, first, DType::BF16), builder.argument(little, "h"),
            builder.argument(big, "x"), builder.argument(little, "w")};
    };
    Function unrolled;
    Builder plain(unrolled);
    const auto from = before(plain);
    std::vector<ValueId> carried{from[1], from[2]};
    for (int i = 0; i < kTurns; ++i)
        carried = turn(plain, carried[0], from[3], carried[1]);
    plain.setResults({from[0], carried[0], carried[1], plain.matmul(carried[0], from[3], DType::BF16)});

    Function folded;
    Builder loop(folded);
    const auto values = before(loop);
    const OpId repeat = loop.beginRepeat({kTurns, 2, 0, false}, {values[1], values[2], values[3]});
    const auto arguments = folded[loop.block()].arguments;
    loop.setResults(turn(loop, arguments[0], arguments[2], arguments[1]));
    const auto results = loop.endRepeat(repeat);
    loop.setResults({values[0], results[0], results[1], loop.matmul(results[0], values[3], DType::BF16)});

    const Machine machine = machineFor("a100", {}, 1);
    const auto step = [&](const Function& function, double host) {
        return valueOf(simulate(schedule(onDevices(function), SchedulePolicy::Eager), valueOf(parseMesh("data=4")), function,
            machine, withHost(machine, host)));
    };
    constexpr double kHost = 40e-6;
    const Simulation a = step(unrolled, kHost);
    const Simulation b = step(folded, kHost);
    QVERIFY2(
        qAbs(a.stepSeconds - b.stepSeconds) < 1e-9, qPrintable(QString("%1 s, not %2").arg(b.stepSeconds).arg(a.stepSeconds)));
    QVERIFY(qAbs(a.launchSeconds - b.launchSeconds) < 1e-9);
    QVERIFY(a.stepSeconds >= kHost * (2 + kTurns * (small + large)));
    QFETCH(double, leastWaiting);
    QFETCH(double, mostWaiting);
    const double waiting = a.launchSeconds / a.stepSeconds;
    QVERIFY2(waiting >= leastWaiting && waiting <= mostWaiting, qPrintable(QString::number(waiting)));
}

void TestSimulation::memoryFollowsThePlan()
{
    const Function function = chain(3, true);
    const auto scheduled = schedule(onDevices(function), SchedulePolicy::Overlapped);
    const Simulation s = valueOf(simulateOn(scheduled, "data=4", function, machineFor("v5e", {4, 1})));
    std::int64_t peak = 0;
    for (const MemoryPoint& point : s.memory)
        peak = std::max(peak, point.total);
    QCOMPARE(peak, scheduled.buffers.peakLiveBytes);
    QCOMPARE(s.peakBytes, scheduled.buffers.arenaBytes);
    const auto live = liveAtPeak(scheduled);
    std::int64_t listed = 0;
    for (const LiveValue& value : live)
        listed += value.bytes;
    QCOMPARE(listed, scheduled.buffers.peakLiveBytes);
}

void TestSimulation::fidelitiesAgree_data()
{
    QTest::addColumn<QString>("chip");
    QTest::addColumn<std::vector<std::int64_t>>("topology");
    QTest::addColumn<qint64>("hosts");

    using Sizes = std::vector<std::int64_t>;
    QTest::newRow("a line") << "v5e" << Sizes{4, 1} << qint64(0);
    QTest::newRow("a ring") << "v4" << Sizes{4, 4, 4} << qint64(0);
    QTest::newRow("a switch") << "a100" << Sizes{} << qint64(1);
    QTest::newRow("in-switch reduction") << "h100" << Sizes{} << qint64(1);
    QTest::newRow("a full mesh") << "mi300x" << Sizes{} << qint64(1);
}

/// One collective at a time, all groups alike: a tick of difference for each step at most.
void TestSimulation::fidelitiesAgree()
{
    QFETCH(QString, chip);
    QFETCH(std::vector<std::int64_t>, topology);
    QFETCH(qint64, hosts);

    const Machine machine = machineFor(chip.toStdString(), topology, hosts);
    const Function function = chain(3, true);
    const auto with = [&](Fidelity fidelity) {
        return valueOf(simulatedWith(function, SchedulePolicy::Overlapped, machine, {fidelity, {}}));
    };
    const Simulation closed = with(Fidelity::Closed);
    const Simulation message = with(Fidelity::Message);
    QCOMPARE(with(Fidelity::Fluid).stepSeconds, closed.stepSeconds);
    QVERIFY2(qAbs(message.stepSeconds - closed.stepSeconds) < 100e-12,
        qPrintable(QString("%1 %2").arg(message.stepSeconds).arg(closed.stepSeconds)));
    QVERIFY(message.events > closed.events);
    QCOMPARE(closed.classes, 1);
}

void TestSimulation::fidelitiesAgreeOverHosts_data()
{
    QTest::addColumn<QString>("chip");
    QTest::addColumn<qint64>("hosts");
    QTest::addColumn<OpKind>("kind");
    for (const auto& [kind, name] : {std::pair(OpKind::AllGather, "all-gather"), {OpKind::ReduceScatter, "reduce-scatter"},
             {OpKind::AllReduce, "all-reduce"}}) {
        QTest::addRow("%s, 2 hosts of A100", name) << "a100" << qint64(2) << kind;
        QTest::addRow("%s, 4 hosts of H100", name) << "h100" << qint64(4) << kind;
    }
}

/// A library moves large messages inside hosts and between them at once: as flows and as messages as by its formula.
void TestSimulation::fidelitiesAgreeOverHosts()
{
    QFETCH(QString, chip);
    QFETCH(qint64, hosts);
    QFETCH(OpKind, kind);

    Machine machine = machineFor(chip.toStdString(), {}, hosts);
    machine.faults.links.push_back({0, 0, 1.0}); // as whole as the others, but every collective is played on links
    const std::int64_t devices = 8 * hosts;
    Function function;
    function.name = "step";
    Builder builder(function);
    const bool gathers = kind == OpKind::AllGather;
    const ValueId x = builder.argument({DType::F32, {gathers ? 16384 / devices : 16384, 8192}}, "x", Role::Input);
    CollectiveAttributes attributes;
    attributes.axes = {{0, 1, devices}};
    if (kind != OpKind::AllReduce)
        attributes.perDim = {attributes.axes, {}};
    builder.setResults({builder.add(kind, {x}, attributes)});
    const auto scheduled = schedule(onDevices(function), SchedulePolicy::Overlapped);
    const std::string mesh = "data=" + std::to_string(devices);
    const auto seconds = [&](Fidelity fidelity) {
        return valueOf(simulate(scheduled, valueOf(parseMesh(mesh)), chain(1, true), machine,
                           valueOf(costOptionsOf(machine.chip)), {fidelity, {}}, {.timeline = true}))
            .collectiveSeconds;
    };
    const double closed = seconds(Fidelity::Closed);
    for (const Fidelity fidelity : {Fidelity::Fluid, Fidelity::Message})
        QVERIFY2(qAbs(seconds(fidelity) / closed - 1.0) < 0.05, qPrintable(QString("%1 %2").arg(seconds(fidelity)).arg(closed)));
}

void TestSimulation::slowDeviceIsWaitedFor()
{
    Machine machine = machineFor("v5e", {4, 1});
    const Simulation whole = simulated(chain(3, true), SchedulePolicy::Overlapped, machine);
    machine.faults.devices.push_back({2, 0.5});
    const Simulation slow = simulated(chain(3, true), SchedulePolicy::Overlapped, machine);
    QVERIFY(qAbs(slow.computeSeconds - 2.0 * whole.computeSeconds) < 1e-12);
    QVERIFY(qAbs(slow.collectiveSeconds - whole.collectiveSeconds) < 1e-10);
    QCOMPARE(slow.classes, 2);
    machine.faults.devices.front().device = 3;
    QCOMPARE(simulated(chain(3, true), SchedulePolicy::Overlapped, machine).stepSeconds, slow.stepSeconds);
}

void TestSimulation::failedLink()
{
    Machine machine = machineFor("v5e", {4, 1});
    machine.faults.links.push_back({1, 0, 0.25});
    const Simulation whole = simulated(chain(3, true), SchedulePolicy::Overlapped, machineFor("v5e", {4, 1}));
    for (const Fidelity fidelity : {Fidelity::Fluid, Fidelity::Message}) {
        const Simulation slow = valueOf(simulatedWith(chain(3, true), SchedulePolicy::Overlapped, machine, {fidelity, {}}));
        QVERIFY(slow.collectiveSeconds > 2.0 * whole.collectiveSeconds);
        QVERIFY(slow.collectiveSeconds < 4.0 * whole.collectiveSeconds);
    }
    machine.faults.links.front().share = 0.0;
    const auto blocked = simulatedWith(chain(3, true), SchedulePolicy::Overlapped, machine, {});
    QVERIFY(!blocked);
    QCOMPARE(blocked.error().front().id, std::string("MW1741"));
}

void TestSimulation::forcedAlgorithms()
{
    const Machine machine = machineFor("h100", {}, 1);
    const auto with = [&](const char* text) {
        return simulatedWith(
            chain(2, true), SchedulePolicy::Overlapped, machine, {Fidelity::Fluid, valueOf(parseAlgorithms(text))});
    };
    QCOMPARE(valueOf(with("all_reduce=ring")).collectives.front().algorithm, std::string("ring"));
    QCOMPARE(valueOf(with("nvls,all_to_all=pairwise")).collectives.front().algorithm, std::string("in-switch reduction"));
    QCOMPARE(valueOf(with("all_reduce=tree")).collectives.front().algorithm, std::string("double binary tree"));
    const auto torus = with("all_axes");
    QVERIFY(!torus);
    QCOMPARE(torus.error().front().id, std::string("MW1740"));
    QCOMPARE(torus.error().front().message,
        std::string("no all-reduce of the step can be done by the algorithm \"all_axes\" on this hardware"));

    const auto unknown = parseAlgorithms("all_reduce=rings,reduce=ring");
    QVERIFY(!unknown);
    QCOMPARE(unknown.error().size(), std::size_t(2));
    QCOMPARE(unknown.error()[0].message, std::string("unknown algorithm: \"rings\""));
    QCOMPARE(unknown.error()[1].message, std::string("unknown kind of collective: \"reduce\""));
}

namespace {

/// `count` products, and after each an all-reduce over one and one over the other of two axes of 4 (or parts of one axis of 16); nothing waits for them.
Function twoAxes(int count, bool useResults)
{
    Function function;
    function.name = "step";
    Builder builder(function);
    const ValueId w = builder.argument({DType::F32, {1024, 1024}}, "w", Role::Parameter);
    ValueId h = w;
    std::vector<ValueId> results;
    for (int i = 0; i < count; ++i) {
        h = builder.matmul(h, w, DType::BF16);
        for (const std::int32_t axis : {0, 1}) {
            CollectiveAttributes attributes;
            attributes.axes = {{axis, 1, 4}};
            results.push_back(builder.add(OpKind::AllReduce, {h}, attributes));
        }
        if (useResults)
            h = builder.binary(OpKind::Add, results.back(), results[results.size() - 2]);
    }
    if (useResults)
        results = {h};
    builder.setResults(std::move(results));
    return function;
}

Simulation onTwoAxes(const Function& function, const Machine& machine, Fidelity fidelity)
{
    return valueOf(
        simulateOn(schedule(onDevices(function), SchedulePolicy::Overlapped), "a=4,b=4", function, machine, {fidelity, {}}));
}

} // namespace

void TestSimulation::collectivesShareLinks_data()
{
    QTest::addColumn<QString>("chip");
    QTest::addColumn<std::vector<std::int64_t>>("topology");
    QTest::addColumn<bool>("shares");

    using Sizes = std::vector<std::int64_t>;
    QTest::newRow("an axis each") << "v5e" << Sizes{4, 4} << false;
    QTest::newRow("two parts of one line") << "v5e" << Sizes{16, 1} << true;
    QTest::newRow("two parts of one ring") << "v5e" << Sizes{16, 16} << false;
}

/// On links of their own the three fidelities agree to a tick a step. On the same links formulas do not see it; flows and messages do, and
/// take no more than one after the other.
void TestSimulation::collectivesShareLinks()
{
    QFETCH(QString, chip);
    QFETCH(std::vector<std::int64_t>, topology);
    QFETCH(bool, shares);

    const Machine machine = machineFor(chip.toStdString(), topology);
    const Function function = twoAxes(3, true);
    const Simulation closed = onTwoAxes(function, machine, Fidelity::Closed);
    const Simulation fluid = onTwoAxes(function, machine, Fidelity::Fluid);
    const Simulation message = onTwoAxes(function, machine, Fidelity::Message);
    QCOMPARE(closed.contentionSeconds, 0.0);
    if (!shares) {
        QVERIFY(qAbs(fluid.stepSeconds - closed.stepSeconds) < 30e-12);
        QVERIFY(qAbs(message.stepSeconds - closed.stepSeconds) < 200e-12);
        return;
    }
    double alone = 0.0;
    for (const SimulatedCollective& collective : fluid.collectives)
        alone += collective.aloneSecondsPerCall;
    QVERIFY(fluid.contentionSeconds > 0.1 * alone);
    QVERIFY(fluid.stepSeconds > closed.stepSeconds);
    QVERIFY(fluid.stepSeconds <= fluid.computeSeconds + alone + 1e-9);
    // Interleaved groups on a line: messages of several pieces queue behind each other, flows do not.
    QVERIFY(message.stepSeconds > closed.stepSeconds);
    QVERIFY2(message.stepSeconds > 0.98 * fluid.stepSeconds && message.stepSeconds < 1.5 * fluid.stepSeconds,
        qPrintable(QString("%1 %2").arg(message.stepSeconds).arg(fluid.stepSeconds)));
    // Each waits in turn for both: what is exposed is charged once.
    double exposed = 0.0;
    for (const SimulatedCollective& collective : fluid.collectives)
        exposed += collective.exposedSeconds;
    QVERIFY(qAbs(exposed - fluid.exposedSeconds) < 1e-12);
    QVERIFY(qAbs(fluid.stepSeconds - fluid.computeSeconds - fluid.exposedSeconds) < 1e-12);
}

void TestSimulation::neverBelowTheBounds_data()
{
    QTest::addColumn<QString>("chip");
    QTest::addColumn<std::vector<std::int64_t>>("topology");
    QTest::addColumn<qint64>("hosts");

    using Sizes = std::vector<std::int64_t>;
    QTest::newRow("torus") << "v4" << Sizes{4, 4, 1} << qint64(0);
    QTest::newRow("line") << "v5e" << Sizes{16, 1} << qint64(0);
    QTest::newRow("two hosts") << "a100" << Sizes{} << qint64(2);
    QTest::newRow("in-switch reduction, two hosts") << "h100" << Sizes{} << qint64(2);
    QTest::newRow("full meshes") << "mi300x" << Sizes{} << qint64(2);
}

/// No fidelity is quicker than any schedule could be, with or without contention.
void TestSimulation::neverBelowTheBounds()
{
    QFETCH(QString, chip);
    QFETCH(std::vector<std::int64_t>, topology);
    QFETCH(qint64, hosts);

    const Machine machine = machineFor(chip.toStdString(), topology, hosts);
    for (const bool useResults : {false, true}) {
        for (const Fidelity fidelity : {Fidelity::Closed, Fidelity::Fluid, Fidelity::Message}) {
            const Simulation s = onTwoAxes(twoAxes(3, useResults), machine, fidelity);
            QCOMPARE(s.collectives.size(), std::size_t(6));
            for (const SimulatedCollective& collective : s.collectives) {
                QVERIFY(collective.lowerBoundSeconds > 0.0);
                QVERIFY2(collective.secondsPerCall >= collective.lowerBoundSeconds * (1.0 - 1e-9),
                    qPrintable(QString("%1: %2 < %3")
                                   .arg(fidelityName(fidelity))
                                   .arg(collective.secondsPerCall)
                                   .arg(collective.lowerBoundSeconds)));
            }
        }
    }
}

/// A loop of 200 turns, each with a collective that the next turn needs: the same step, memory and slices as when written out.
void TestSimulation::jumpedLoopIsUnrolled()
{
    const TensorType square{DType::F32, {512, 512}};
    constexpr int kTurns = 200;
    const auto turn = [&](Builder& builder, ValueId h, ValueId w) {
        CollectiveAttributes attributes;
        attributes.axes = {{0, 1, 4}};
        return builder.add(OpKind::AllReduce, {builder.matmul(h, w, DType::BF16)}, attributes);
    };
    Function unrolled;
    Builder plain(unrolled);
    ValueId h = plain.argument(square, "h");
    const ValueId w = plain.argument(square, "w", Role::Parameter);
    for (int i = 0; i < kTurns; ++i)
        h = turn(plain, h, w);
    plain.setResults({plain.matmul(h, w, DType::BF16)});

    Function folded;
    Builder loop(folded);
    const ValueId h0 = loop.argument(square, "h");
    const ValueId w0 = loop.argument(square, "w", Role::Parameter);
    const OpId repeat = loop.beginRepeat({kTurns, 1, 0, false}, {h0, w0});
    const auto arguments = folded[loop.block()].arguments;
    loop.setResults({turn(loop, arguments[0], arguments[1])});
    loop.setResults({loop.matmul(loop.endRepeat(repeat).front(), w0, DType::BF16)});

    const Machine machine = machineFor("v5e", {4, 1});
    const Simulation a = simulated(unrolled, SchedulePolicy::Overlapped, machine);
    const Simulation b = simulated(folded, SchedulePolicy::Overlapped, machine);
    QCOMPARE(b.stepSeconds, a.stepSeconds);
    QVERIFY(qAbs(b.computeSeconds - a.computeSeconds) < 1e-12);
    QVERIFY(qAbs(b.exposedSeconds - a.exposedSeconds) < 1e-12);
    QCOMPARE(b.collectives.front().use.count, std::int64_t{kTurns});
    QCOMPARE(b.timeline.slices().size(), a.timeline.slices().size());
    QVERIFY2(b.events < a.events / 4, "most turns are jumped");
    QCOMPARE(b.memory.back().seconds, b.stepSeconds);
}

void TestSimulation::overlappedTurns_data()
{
    QTest::addColumn<int>("width");
    QTest::newRow("computing is longer") << 4096;
    QTest::newRow("about as long") << 512;
    QTest::newRow("moving is longer") << 128;
}

/// Layers whose weights are gathered, as FSDP has them: a loop takes hardly longer than the layers written out, which gather ahead too, and moves the same.
void TestSimulation::overlappedTurns()
{
    QFETCH(int, width);
    constexpr std::int64_t kTurns = 24;
    const TensorType x{DType::BF16, {width, 1024}};
    CollectiveAttributes gather;
    gather.axes = {{0, 1, 4}};
    gather.perDim = {{}, gather.axes};
    const auto layer = [&](Builder& builder, ValueId h, ValueId row) {
        return builder.matmul(h, builder.add(OpKind::AllGather, {row}, gather), DType::BF16);
    };
    Function unrolled;
    Builder plain(unrolled);
    ValueId h = plain.argument(x, "h");
    for (int i = 0; i < kTurns; ++i)
        h = layer(plain, h, plain.argument({DType::BF16, {1024, 256}}, fmt::format("w{}", i), Role::Parameter));
    plain.setResults({h});

    Function folded;
    Builder loop(folded);
    const ValueId h0 = loop.argument(x, "h");
    const ValueId rows = loop.argument({DType::BF16, {kTurns, 1024, 256}}, "w", Role::Parameter);
    const OpId repeat = loop.beginRepeat({kTurns, 1, 1, false}, {h0, rows});
    const auto arguments = folded[loop.block()].arguments;
    loop.setResults({layer(loop, arguments[0], arguments[1])});
    loop.setResults(loop.endRepeat(repeat));

    const Machine machine = machineFor("v5e", {4, 1});
    const Simulation a = simulated(unrolled, SchedulePolicy::Overlapped, machine);
    const Simulation b = simulated(folded, SchedulePolicy::Overlapped, machine);
    QCOMPARE(b.collectives.front().use.count, kTurns);
    QVERIFY(qAbs(b.computeSeconds - a.computeSeconds) < 1e-12);
    QVERIFY2(qAbs(b.stepSeconds - a.stepSeconds) < 0.02 * a.stepSeconds,
        qPrintable(QString("%1 s and %2 s").arg(b.stepSeconds).arg(a.stepSeconds)));
}

/// One row of computing for each speed that devices have; the slow one is told of, the others wait.
void TestSimulation::stragglersAreShown()
{
    Machine machine = machineFor("v5e", {4, 1});
    machine.faults.devices = {{2, 0.5}};
    const Simulation slow = simulated(chain(3, true), SchedulePolicy::Overlapped, machine);
    std::set<std::int64_t> devices;
    for (const TimelineRow& row : slow.timeline.rows())
        devices.insert(row.device);
    QCOMPARE(devices, (std::set<std::int64_t>{0, 2}));
    double waits = 0.0;
    for (const Slice& slice : slow.timeline.slices()) {
        if (slice.category == SliceCategory::Wait && slow.timeline.rows()[slice.row].device == 0)
            waits += slice.durationSeconds;
    }
    QVERIFY(qAbs(waits - (slow.exposedSeconds + 0.5 * slow.computeSeconds)) < 1e-11);
}

MESHWRIGHT_TEST(TestSimulation)

} // namespace tst_simulation

#include "tst_simulation.moc"
