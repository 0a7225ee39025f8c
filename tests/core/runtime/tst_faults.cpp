// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/clocks.h"
#include "core/devices/collectives.h"
#include "core/partition/partition.h"
#include "core/runtime/executor.h"
#include "core/runtime/faults.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

#include <algorithm>
#include <array>
#include <limits>

namespace tst_faults {

using namespace meshwright;
using namespace meshwright::test;

namespace {

constexpr std::int64_t kDevices = 4;

std::unique_ptr<VirtualDevices> devicesOf(std::int64_t count, double stallSeconds = 0.0)
{
    return valueOf(VirtualDevices::create(count, {.stallSeconds = stallSeconds}));
}

/// tanh(x w) summed over the rows, with the rows over four devices: products, element-wise ops and an all_reduce.
struct Loaded {
    std::unique_ptr<VirtualDevices> devices;
    std::unique_ptr<LoadedFunction> function;
};

Loaded smallFunction(double stallSeconds = 0.0)
{
    const Mesh mesh = valueOf(parseMesh("data=4"));
    Function function;
    function.name = "f";
    Builder b(function);
    const ValueId x = b.argument({DType::F32, {8, 6}}, "x");
    const ValueId w = b.argument({DType::F32, {6, 5}}, "w");
    const ValueId h = b.named(b.matmul(x, w, DType::F32), "h");
    const ValueId masked = b.select(b.compare(CompareDirection::Greater, h, b.splat({DType::F32, {8, 5}}, 0.0)), h,
        b.splat({DType::F32, {8, 5}}, -std::numeric_limits<double>::infinity()));
    const ValueId best = b.named(b.reduce(ReduceKind::Max, masked, {0}), "best");
    const ValueId sum = b.named(b.reduce(ReduceKind::Sum, b.unary(OpKind::Tanh, h), {0}), "sum");
    b.setResults({sum, best});
    function[x].sharding = valueOf(toTensorSharding(valueOf(parseSpec("P('data')")), 2, mesh));
    Program program;
    program.meshes = {{"mesh", mesh}};
    program.functions = {function};
    const PartitionedProgram partitioned = valueOf(propagateAndPartition(std::move(program)));
    const ScheduledProgram scheduled = schedule(partitioned.device, SchedulePolicy::Host);
    Loaded loaded{devicesOf(kDevices, stallSeconds), nullptr};
    loaded.function
        = valueOf(LoadedFunction::load(scheduled.stages[0].functions[0], scheduled.stages[0].meshes, *loaded.devices));
    for (std::size_t i = 0; i < 2; ++i) {
        if (!loaded.function->writeArgument(
                i, randomArray(i == 0 ? TensorType{DType::F32, {8, 6}} : TensorType{DType::F32, {6, 5}}, i)))
            qFatal("cannot write");
    }
    return loaded;
}

FaultOptions optionsOf(const std::vector<std::string>& faults, bool checkNumerics = false)
{
    FaultOptions options;
    for (const std::string& fault : faults)
        options.injected.push_back(valueOf(parseInjectedFault(fault)));
    options.checkNumerics = checkNumerics;
    return options;
}

/// A function of one collective on a vector of so many elements, as one device's own program.
ScheduledFunction oneCollective(OpKind kind, DType dtype, std::int64_t elements, const std::string& value, const AxisRefs& axes)
{
    DeviceFunction device;
    device.function.name = "own";
    Builder b(device.function);
    const ValueId in = b.argument({dtype, {elements}}, value);
    CollectiveAttributes attributes;
    attributes.axes = axes;
    attributes.cause.value = value;
    if (kind == OpKind::AllGather)
        attributes.perDim = {axes};
    const ValueId out = b.add(kind, {in}, attributes);
    b.setResults({out});
    TensorSharding from = TensorSharding::replicatedOf(1);
    Shape whole = {elements};
    if (kind == OpKind::AllGather) {
        from.dims[0].axes = axes;
        whole = device.function[out].type.shape;
    } else {
        from.unreduced = axes;
    }
    device.function[in].sharding = from;
    device.function[out].sharding = TensorSharding::replicatedOf(1);
    device.globalShapes = {whole, whole};
    return schedule(device, SchedulePolicy::Host);
}

} // namespace

class TestFaults : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void parses_data();
    void parses();
    void refuses_data();
    void refuses();
    void findsWhatIsNotFinite();
    void injected_data();
    void injected();
    void strikesInItsStepOnly();
    void infinityIsFoundWhereItIsMade();
    void nanIsFoundWhereInfinityIsMeant();
    void argumentsAreChecked();
    void stalls();
    void slowDeviceShows();
    void programsThatDiffer_data();
    void programsThatDiffer();
    void programsThatAgree();
    void noMemoryForArenas();
};

void TestFaults::parses_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<int>("kind");
    QTest::addColumn<int>("device");
    QTest::addColumn<int>("step");
    QTest::addColumn<double>("factor");
    using Kind = InjectedFault::Kind;
    QTest::newRow("fail") << "fail:device=3,step=10" << static_cast<int>(Kind::Fail) << 3 << 10 << 1.0;
    QTest::newRow("order") << "fail:step=10,device=3" << static_cast<int>(Kind::Fail) << 3 << 10 << 1.0;
    QTest::newRow("no step") << "memory:device=0" << static_cast<int>(Kind::Memory) << 0 << 0 << 1.0;
    QTest::newRow("nan") << "nan:device=1,step=4" << static_cast<int>(Kind::Nan) << 1 << 4 << 1.0;
    QTest::newRow("stall") << "stall:device=1,step=4" << static_cast<int>(Kind::Stall) << 1 << 4 << 1.0;
    QTest::newRow("slow") << "slow:device=2,factor=3" << static_cast<int>(Kind::Slow) << 2 << 0 << 3.0;
}

void TestFaults::parses()
{
    QFETCH(QString, text);
    QFETCH(int, kind);
    QFETCH(int, device);
    QFETCH(int, step);
    QFETCH(double, factor);
    const auto fault = parseInjectedFault(text.toStdString());
    QVERIFY2(fault, fault ? "" : describe(fault.error()).c_str());
    QVERIFY((*fault == InjectedFault{static_cast<InjectedFault::Kind>(kind), device, step, factor}));
}

void TestFaults::refuses_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("why");
    QTest::newRow("empty") << ""
                           << "does not begin with";
    QTest::newRow("unknown") << "explode:device=1"
                             << "does not begin with";
    QTest::newRow("no device") << "fail"
                               << "does not name a device";
    QTest::newRow("step only") << "fail:step=1"
                               << "does not name a device";
    QTest::newRow("negative") << "fail:device=-1"
                              << "the device is a whole number";
    QTest::newRow("no number") << "nan:device=1,step=x"
                               << "the step is a whole number";
    QTest::newRow("slow without factor") << "slow:device=1"
                                         << "has no factor";
    QTest::newRow("factor below 1") << "slow:device=1,factor=0.5"
                                    << "at least 1";
    QTest::newRow("factor of a failure") << "fail:device=1,factor=2"
                                         << "has no \"factor\"";
}

void TestFaults::refuses()
{
    QFETCH(QString, text);
    QFETCH(QString, why);
    const auto fault = parseInjectedFault(text.toStdString());
    QVERIFY(!fault);
    QCOMPARE(fault.error().front().id, std::string("MW1520"));
    QVERIFY2(QString::fromStdString(fault.error().front().message).contains(why), fault.error().front().message.c_str());
}

void TestFaults::findsWhatIsNotFinite()
{
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double inf = std::numeric_limits<double>::infinity();
    for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
        const TensorType type{dtype, {2, 3}};
        const auto found = [&](const std::vector<double>& values, const Shape& extents) {
            const HostArray array = HostArray::of(type, values);
            return firstNotFinite(array.data(), type, extents);
        };
        QVERIFY(!found({1, -2, 3, 4, 5, 60000}, {2, 3}));
        const auto infinite = found({1, 2, 3, 4, -inf, inf}, {2, 3});
        QVERIFY(infinite && !infinite->isNan && infinite->index == (Shape{1, 1}));
        const auto both = found({inf, 2, 3, 4, nan, 6}, {2, 3});
        QVERIFY(both && both->isNan && both->index == (Shape{1, 1}));
        QVERIFY(!found({1, 2, nan, 4, 5, inf}, {2, 2})); // padding
        QVERIFY(!found({nan, nan, nan, nan, nan, nan}, {0, 3}));
        HostArray array = HostArray::filled(type, 1.0);
        QVERIFY(writeNan(array.data(), type));
        QVERIFY(std::isnan(array.at(0)) && array.at(1) == 1.0);
    }
    const HostArray scalar = HostArray::of({DType::F32, {}}, std::vector<double>{nan});
    const auto inScalar = firstNotFinite(scalar.data(), scalar.type(), {});
    QVERIFY(inScalar && inScalar->isNan && inScalar->index.empty());
    HostArray integers = HostArray::filled({DType::S32, {2}}, -1.0);
    QVERIFY(!firstNotFinite(integers.data(), integers.type(), {2}));
    QVERIFY(!writeNan(integers.data(), integers.type()));
}

void TestFaults::injected_data()
{
    QTest::addColumn<QString>("fault");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("message");
    QTest::newRow("fail") << "fail:device=2,step=5"
                          << "MW1508"
                          << "device 2 failed in step 6, in ";
    QTest::newRow("memory") << "memory:device=1,step=5"
                            << "MW1521"
                            << "device 1 ran out of memory in step 6, in ";
    QTest::newRow("nan") << "nan:device=3,step=5"
                         << "MW1523"
                         << "device 3 in step 6, in ";
}

void TestFaults::injected()
{
    QFETCH(QString, fault);
    QFETCH(QString, id);
    QFETCH(QString, message);
    const Loaded loaded = smallFunction();
    const FaultOptions options = optionsOf({fault.toStdString()}, true);
    const double start = wallSeconds();
    const auto result = loaded.function->run({.faults = &options, .step = 5});
    QVERIFY(wallSeconds() - start < 1.0);
    QVERIFY(!result);
    QCOMPARE(result.error().size(), std::size_t{1}); // reported once, whatever the others met
    QCOMPARE(result.error().front().id, id.toStdString());
    QVERIFY2(result.error().front().message.starts_with(message.toStdString()), result.error().front().message.c_str());
    if (id == "MW1523")
        QVERIFY2(
            result.error().front().message.find(" is NaN at [") != std::string::npos, result.error().front().message.c_str());
    QVERIFY(loaded.function->run()); // the devices are there for the next run
}

void TestFaults::strikesInItsStepOnly()
{
    const Loaded loaded = smallFunction();
    const FaultOptions options = optionsOf({"fail:device=0,step=3", "nan:device=1,step=3"}, true);
    for (std::int64_t step = 0; step < 6; ++step) {
        const auto result = loaded.function->run({.faults = &options, .step = step});
        QCOMPARE(result.has_value(), step != 3);
    }
    QCOMPARE(optionsOf({"fail:device=4"}).problems(kDevices, 6).front().id, std::string("MW1520"));
    QCOMPARE(optionsOf({"fail:device=3,step=6"}).problems(kDevices, 6).front().id, std::string("MW1520"));
    QVERIFY(optionsOf({"fail:device=3,step=5"}).problems(kDevices, 6).empty());
}

void TestFaults::infinityIsFoundWhereItIsMade()
{
    // Row 7, on device 3, overflows in the product; the masks of -inf before it are meant so.
    const Loaded loaded = smallFunction();
    const FaultOptions options = optionsOf({}, true);
    QVERIFY(loaded.function->run({.faults = &options}));
    std::vector<double> x(48, 1.0);
    x[7 * 6] = 3e38;
    std::vector<double> w(30, 1.0);
    w[2] = 1e10;
    QVERIFY(loaded.function->writeArgument(0, HostArray::of({DType::F32, {8, 6}}, x)));
    QVERIFY(loaded.function->writeArgument(1, HostArray::of({DType::F32, {6, 5}}, w)));
    const auto result = loaded.function->run({.faults = &options});
    QVERIFY(!result);
    QCOMPARE(result.error().front().id, std::string("MW1523"));
    QCOMPARE(result.error().front().message,
        std::string("device 3 in dot_general h: h is infinite at [7, 2], which is [1, 2] of the device's shard"));
}

void TestFaults::nanIsFoundWhereInfinityIsMeant()
{
    Function function;
    function.name = "f";
    Builder b(function);
    const ValueId x = b.argument({DType::F32, {4}}, "x");
    b.setResults(
        {b.named(b.binary(OpKind::Multiply, x, b.splat({DType::F32, {4}}, -std::numeric_limits<double>::infinity())), "scaled")});
    Program program;
    program.meshes = {{"mesh", Mesh()}};
    program.functions = {function};
    const PartitionedProgram partitioned = valueOf(propagateAndPartition(std::move(program)));
    const ScheduledProgram scheduled = schedule(partitioned.device, SchedulePolicy::Host);
    const auto devices = devicesOf(1, 0.0);
    const auto loaded = valueOf(LoadedFunction::load(scheduled.stages[0].functions[0], scheduled.stages[0].meshes, *devices));
    const FaultOptions options = optionsOf({}, true);
    QVERIFY(loaded->writeArgument(0, HostArray::of({DType::F32, {4}}, std::vector<double>{1, 2, 3, 4})));
    QVERIFY(loaded->run({.faults = &options}));
    QVERIFY(loaded->writeArgument(0, HostArray::of({DType::F32, {4}}, std::vector<double>{1, 2, 0, 4})));
    const auto result = loaded->run({.faults = &options});
    QVERIFY(!result);
    QVERIFY2(result.error().front().message.ends_with("scaled is NaN at [2]"), result.error().front().message.c_str());
}

void TestFaults::argumentsAreChecked()
{
    const Loaded loaded = smallFunction();
    std::vector<double> w(30, 1.0);
    w[13] = std::numeric_limits<double>::quiet_NaN();
    QVERIFY(loaded.function->writeArgument(1, HostArray::of({DType::F32, {6, 5}}, w)));
    const FaultOptions options = optionsOf({}, true);
    const auto result = loaded.function->run({.faults = &options});
    QVERIFY(!result);
    QVERIFY2(result.error().front().message.ends_with("w is NaN at [2, 3]"), result.error().front().message.c_str());
    QVERIFY(loaded.function->run());
}

void TestFaults::stalls()
{
    const Loaded loaded = smallFunction(0.2);
    const FaultOptions options = optionsOf({"stall:device=1,step=0"});
    for (int round = 0; round < 3; ++round) {
        const double start = wallSeconds();
        const auto result = loaded.function->run({.faults = &options, .step = 0});
        QVERIFY(!result);
        QCOMPARE(result.error().size(), std::size_t{1});
        QCOMPARE(result.error().front().id, std::string("MW1522"));
        const std::string& message = result.error().front().message;
        QVERIFY2(message.starts_with("device 1 has not arrived for 200 ms: devices 0, 2 and 3 wait in all_reduce of "),
            message.c_str());
        QVERIFY2(message.find("; device 1 is at ") != std::string::npos, message.c_str());
        QVERIFY(wallSeconds() - start < 1.2); // a second after the timeout
        QVERIFY(loaded.function->run());
    }
}

void TestFaults::slowDeviceShows()
{
    constexpr int kRuns = 5; // of each device the quickest counts: a first touch of memory costs a device more than its work
    const Loaded loaded = smallFunction();
    const FaultOptions options = optionsOf({"slow:device=2,factor=200"});
    std::array<std::vector<double>, 2> quickest; // measured and virtual
    for (int run = 0; run < kRuns; ++run) {
        QVERIFY(loaded.function->run({.record = true, .faults = &options}));
        const std::array timelines = {loaded.function->measured(), loaded.function->virtualTimeline()};
        for (std::size_t kind = 0; kind < timelines.size(); ++kind) {
            std::vector<double> busy(kDevices, 0.0);
            for (const Slice& slice : timelines[kind].slices()) {
                if (slice.category == SliceCategory::Compute)
                    busy[static_cast<std::size_t>(timelines[kind].rows()[slice.row].device)] += slice.cpuSeconds;
            }
            if (run == 0)
                quickest[kind] = busy;
            for (std::size_t device = 0; device < busy.size(); ++device)
                quickest[kind][device] = std::min(quickest[kind][device], busy[device]);
        }
    }
    for (const std::vector<double>& busy : quickest) {
        for (const std::size_t other : {0U, 1U, 3U})
            QVERIFY2(busy[2] > 5.0 * busy[other], fmt::format("{} {}", busy[2], busy[other]).c_str());
    }
}

void TestFaults::programsThatDiffer_data()
{
    QTest::addColumn<int>("kind");
    QTest::addColumn<int>("dtype");
    QTest::addColumn<int>("elements");
    QTest::addColumn<QString>("value");
    QTest::addColumn<bool>("otherAxis");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("message");
    const int sum = static_cast<int>(OpKind::AllReduce);
    const int f32 = static_cast<int>(DType::F32);
    QTest::newRow("op") << static_cast<int>(OpKind::AllGather) << f32 << 8 << "g" << false << "MW1505"
                        << "differ in op";
    QTest::newRow("type") << sum << static_cast<int>(DType::F64) << 8 << "g" << false << "MW1505"
                          << "differ in element type";
    QTest::newRow("shape") << sum << f32 << 9 << "g" << false << "MW1505"
                           << "differ in shape";
    QTest::newRow("order") << sum << f32 << 8 << "h" << false << "MW1505"
                           << "differ in order";
    QTest::newRow("group") << sum << f32 << 8 << "g" << true << "MW1506"
                           << "device 2 waits in all_reduce of g over a ";
}

/// Device 2 of a=2,b=2 has a program of its own.
void TestFaults::programsThatDiffer()
{
    QFETCH(int, kind);
    QFETCH(int, dtype);
    QFETCH(int, elements);
    QFETCH(QString, value);
    QFETCH(bool, otherAxis);
    QFETCH(QString, id);
    QFETCH(QString, message);
    const std::vector<NamedMesh> meshes{{"mesh", valueOf(parseMesh("a=2,b=2"))}};
    const AxisRefs overB{{1, 1, 2}};
    const AxisRefs overA{{0, 1, 2}};
    const auto devices = devicesOf(kDevices);
    const auto meeting = std::make_shared<RendezvousTable>(*devices);
    const auto all = valueOf(LoadedFunction::load(
        oneCollective(OpKind::AllReduce, DType::F32, 8, "g", overB), meshes, *devices, {.meeting = meeting}));
    const auto own = valueOf(LoadedFunction::load(oneCollective(static_cast<OpKind>(kind), static_cast<DType>(dtype), elements,
                                                      value.toStdString(), otherAxis ? overA : overB),
        meshes, *devices, {.meeting = meeting}));
    std::string first;
    for (int round = 0; round < 20; ++round) {
        const double start = wallSeconds();
        all->begin({});
        own->begin({});
        const auto result = devices->run([&](std::int64_t device) { return (device == 2 ? *own : *all).runOn(device); });
        all->end(false);
        own->end(false);
        QVERIFY(!result);
        QVERIFY(wallSeconds() - start < 1.0);
        QCOMPARE(result.error().size(), std::size_t{1});
        const std::string& said = result.error().front().message;
        QCOMPARE(result.error().front().id, id.toStdString());
        QVERIFY2(said.find(message.toStdString()) != std::string::npos, said.c_str());
        QVERIFY2(said.find("device 2") != std::string::npos && said.find("device 3") != std::string::npos, said.c_str());
        if (id == "MW1505") {
            if (first.empty())
                first = said;
            QCOMPARE(said, first); // whoever comes first says the same
        }
    }
}

void TestFaults::programsThatAgree()
{
    const std::vector<NamedMesh> meshes{{"mesh", valueOf(parseMesh("a=4"))}};
    const AxisRefs over{{0, 1, 4}};
    const auto devices = devicesOf(kDevices);
    const auto meeting = std::make_shared<RendezvousTable>(*devices);
    std::vector<std::unique_ptr<LoadedFunction>> programs;
    for (std::int64_t device = 0; device < kDevices; ++device) {
        programs.push_back(valueOf(LoadedFunction::load(
            oneCollective(OpKind::AllReduce, DType::F32, 8, "g", over), meshes, *devices, {.meeting = meeting})));
        programs.back()->writeArgumentPiece(0, device, HostArray::filled({DType::F32, {8}}, static_cast<double>(device + 1)));
        programs.back()->begin({});
    }
    QVERIFY(devices->run([&](std::int64_t device) { return programs[static_cast<std::size_t>(device)]->runOn(device); }));
    for (const auto& program : programs)
        program->end(true);
    QCOMPARE(programs[0]->readResult(0).at(3), 10.0); // 1 + 2 + 3 + 4
}

void TestFaults::noMemoryForArenas()
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    QSKIP("sanitizers end the program instead");
#endif
    const std::vector<NamedMesh> meshes{{"mesh", valueOf(parseMesh("a=4"))}};
    const auto devices = devicesOf(kDevices);
    const auto loaded = LoadedFunction::load(
        oneCollective(OpKind::AllReduce, DType::F32, std::int64_t{1} << 46, "g", {{0, 1, 4}}), meshes, *devices);
    QVERIFY(!loaded);
    QCOMPARE(loaded.error().front().id, std::string("MW1521"));
}

MESHWRIGHT_TEST(TestFaults)

} // namespace tst_faults

#include "tst_faults.moc"
