// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/collectives.h"
#include "core/kernels/tile_table.h"
#include "core/runtime/executor.h"
#include "tests/rank_threads.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

namespace tst_collectives {

using namespace meshwright;
using namespace meshwright::test;

namespace {

/// A device function that is written down by hand: an argument for each device's own piece (split over all devices along a new leading
/// dimension), one collective, and its result split in the same way, so that every device's operand and result can be seen.
struct Sketch {
    DeviceFunction device;
    NamedMesh mesh;
};

TensorSharding shardedOver(std::size_t rank, const std::vector<AxisRefs>& dims)
{
    TensorSharding sharding = TensorSharding::replicatedOf(rank);
    for (std::size_t dim = 0; dim < dims.size(); ++dim)
        sharding.dims[dim].axes = dims[dim];
    return sharding;
}

AxisRefs allAxes(const Mesh& mesh)
{
    AxisRefs axes;
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        if (mesh.axes()[axis].size > 1)
            axes.push_back(wholeAxis(mesh, axis));
    }
    return axes;
}

/// `whole` is the array's shape; its layouts before and after the op are given.
Sketch sketch(const Mesh& mesh, OpKind kind, CollectiveAttributes attributes, DType dtype, const Shape& whole,
    const TensorSharding& from, const TensorSharding& to)
{
    Sketch made;
    made.mesh = {"mesh", mesh};
    Function& function = made.device.function;
    function.name = "f";
    Builder b(function);
    const Shape local = localShape(whole, from);
    Shape lead = local;
    lead.insert(lead.begin(), 1);
    const ValueId x = b.argument({dtype, lead});
    const ValueId operand = b.add(OpKind::Reshape, {x}, ReshapeAttributes{local});
    const ValueId moved = b.add(kind, {operand}, std::move(attributes));
    Shape resultLead = function[moved].type.shape;
    resultLead.insert(resultLead.begin(), 1);
    const ValueId y = b.add(OpKind::Reshape, {moved}, ReshapeAttributes{resultLead});
    b.setResults({y});

    const auto spread = [&](const Shape& shape) {
        std::vector<AxisRefs> dims(shape.size());
        dims[0] = allAxes(mesh);
        return shardedOver(shape.size(), dims);
    };
    const auto times = [&](Shape shape) {
        shape[0] = mesh.deviceCount();
        return shape;
    };
    function[x].sharding = spread(lead);
    function[operand].sharding = from;
    function[moved].sharding = to;
    function[y].sharding = spread(resultLead);
    made.device.globalShapes = {times(lead), whole, whole, times(resultLead)};
    return made;
}

struct Outcome {
    HostArray result; ///< [devices, ...]
    std::vector<CountedCalls> counts;
};

Outcome runOn(const Sketch& sketch, const HostArray& operands, VirtualDevicesOptions options)
{
    auto devices = VirtualDevices::create(sketch.mesh.mesh.deviceCount(), std::move(options));
    if (!devices)
        qFatal("%s", describe(devices.error()).c_str());
    auto loaded = LoadedFunction::load(schedule(sketch.device, SchedulePolicy::Host), {sketch.mesh}, **devices);
    if (!loaded)
        qFatal("%s", describe(loaded.error()).c_str());
    for (const Result<Done>& done : {(*loaded)->writeArgument(0, operands), (*loaded)->run()}) {
        if (!done)
            qFatal("%s", describe(done.error()).c_str());
    }
    return {(*loaded)->readResult(0), (*loaded)->countedCalls()};
}

/// What processes that share the devices have: the same bits and counts, on every one of them.
bool ranksAgree(const Sketch& sketch, const HostArray& operands, const Outcome& expected)
{
    for (const int count : {2, 3}) {
        if (count > sketch.mesh.mesh.deviceCount())
            continue;
        const bool agree = tests::onRanks(count, [&](const std::shared_ptr<Ranks>& ranks) {
            const Outcome outcome = runOn(sketch, operands, {.permits = 1, .ranks = ranks});
            return outcome.result == expected.result && outcome.counts.size() == expected.counts.size()
                && std::equal(outcome.counts.begin(), outcome.counts.end(), expected.counts.begin(),
                    [](const CountedCalls& a, const CountedCalls& b) {
                        return a.calls == b.calls && a.totalPayloadBytes == b.totalPayloadBytes;
                    });
        });
        if (!agree)
            return false;
    }
    return true;
}

Outcome run(const Sketch& sketch, const HostArray& operands, int permits = 0)
{
    Outcome outcome = runOn(sketch, operands, {permits});
    if (permits == 0 && !ranksAgree(sketch, operands, outcome))
        qFatal("several processes come to another result");
    return outcome;
}

Mesh meshOf(const std::string& text, std::vector<DeviceId> order = {})
{
    return valueOf(parseMesh(text, std::move(order)));
}

/// The element at `local` of the piece of the device at `position`, in an array [devices, piece].
double elementOf(const HostArray& pieces, std::int64_t position, const Shape& local)
{
    Shape index = local;
    index.insert(index.begin(), position);
    return pieces.at(flatOf(pieces.type().shape, index));
}

struct Case {
    std::string mesh;
    Shape whole;
    std::vector<AxisRefs> from;
    std::vector<AxisRefs> to;
    AxisRefs axes; ///< reductions: those that hold partial values
};

} // namespace

class TestCollectives : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void reductions_data();
    void reductions();
    void exchanges_data();
    void exchanges();
    void permutes();
    void reduceKinds();
    void narrowSumsRoundOnce();
    void bitsDoNotDependOnTiming();
    void largeAllReduce();
    void startsWithoutWaiting();
    void mismatch();
    void layoutsThatDoNotFit();
};

void TestCollectives::reductions_data()
{
    // Axes are (index, pre, size). `to` holds what a reduce-scatter appends; without it the op is an all-reduce.
    QTest::addColumn<Case>("test");
    QTest::newRow("1x8 all-reduce") << Case{"a=8", {5, 3}, {{}, {}}, {{}, {}}, {{0, 1, 8}}};
    QTest::newRow("4x2 major") << Case{"a=4,b=2", {100, 7}, {{}, {}}, {{}, {}}, {{0, 1, 4}}};
    QTest::newRow("4x2 minor") << Case{"a=4,b=2", {1000, 7}, {{}, {}}, {{}, {}}, {{1, 1, 2}}};
    QTest::newRow("4x2 minor, sharded over the major")
        << Case{"a=4,b=2", {8, 7}, {{{0, 1, 4}}, {}}, {{{0, 1, 4}}, {}}, {{1, 1, 2}}};
    QTest::newRow("2x2x2 outer and inner") << Case{"a=2,b=2,c=2", {33, 65}, {{}, {}}, {{}, {}}, {{0, 1, 2}, {2, 1, 2}}};
    QTest::newRow("part of an axis") << Case{"a=8", {9, 9}, {{}, {}}, {{}, {}}, {{0, 2, 2}}};
    QTest::newRow("minor part of an axis") << Case{"a=8", {16, 9}, {{{0, 1, 2}}, {}}, {{{0, 1, 2}}, {}}, {{0, 2, 4}}};
    QTest::newRow("scalar") << Case{"a=4,b=2", {}, {}, {}, {{0, 1, 4}, {1, 1, 2}}};
    QTest::newRow("nothing") << Case{"a=4,b=2", {0, 3}, {{}, {}}, {{}, {}}, {{0, 1, 4}}};
    QTest::newRow("1x8 scatter rows") << Case{"a=8", {24, 5}, {{}, {}}, {{{0, 1, 8}}, {}}, {{0, 1, 8}}};
    QTest::newRow("1x8 scatter columns") << Case{"a=8", {6, 16}, {{}, {}}, {{}, {{0, 1, 8}}}, {{0, 1, 8}}};
    QTest::newRow("4x2 scatter to both") << Case{"a=4,b=2", {8, 6}, {{}, {}}, {{{0, 1, 4}}, {{1, 1, 2}}}, {{0, 1, 4}, {1, 1, 2}}};
    QTest::newRow("4x2 scatter below a sharded axis")
        << Case{"a=4,b=2", {16, 6}, {{{0, 1, 4}}, {}}, {{{0, 1, 4}, {1, 1, 2}}, {}}, {{1, 1, 2}}};
    QTest::newRow("2x2x2 scatter the middle dim")
        << Case{"a=2,b=2,c=2", {3, 8, 5}, {{}, {}, {}}, {{}, {{1, 1, 2}, {0, 1, 2}}, {}}, {{1, 1, 2}, {0, 1, 2}}};
    QTest::newRow("scatter a long row") << Case{"a=2", {2, 8000}, {{}, {}}, {{}, {{0, 1, 2}}}, {{0, 1, 2}}};
}

void TestCollectives::reductions()
{
    QFETCH(Case, test);
    const Mesh mesh = meshOf(test.mesh);
    TensorSharding from = shardedOver(test.whole.size(), test.from);
    from.unreduced = test.axes;
    const TensorSharding to = shardedOver(test.whole.size(), test.to);
    CollectiveAttributes attributes;
    attributes.axes = test.axes;
    const bool scatters = test.from != test.to;
    if (scatters) {
        attributes.perDim.resize(test.whole.size());
        for (std::size_t dim = 0; dim < test.whole.size(); ++dim)
            attributes.perDim[dim].assign(
                test.to[dim].begin() + static_cast<std::ptrdiff_t>(test.from[dim].size()), test.to[dim].end());
    }
    for (const DType dtype : {DType::F32, DType::S64, DType::F64}) {
        const Sketch made
            = sketch(mesh, scatters ? OpKind::ReduceScatter : OpKind::AllReduce, attributes, dtype, test.whole, from, to);
        const HostArray operands = randomArray({dtype, made.device.globalShapes.front()}, 21);
        const Outcome outcome = run(made, operands);
        const Shape local = localShape(test.whole, to);
        const auto groups = deviceGroups(test.axes, mesh);
        for (const auto& group : groups) {
            for (const std::int64_t position : group) {
                const IndexBox in = shardBox(test.whole, from, mesh, position);
                const IndexBox out = shardBox(test.whole, to, mesh, position);
                for (std::int64_t i = 0; i < elementCount(local); ++i) {
                    const Shape at = indexOf(local, i);
                    Shape inOperand = at;
                    for (std::size_t dim = 0; dim < at.size(); ++dim)
                        inOperand[dim] += out[dim].start - in[dim].start;
                    double sum = 0.0; // in the group's order: f32 sums must be equal bit for bit
                    for (std::size_t m = 0; m < group.size(); ++m) {
                        const double term = elementOf(operands, group[m], inOperand);
                        sum = m == 0              ? term
                            : dtype == DType::F32 ? static_cast<double>(static_cast<float>(sum) + static_cast<float>(term))
                                                  : sum + term;
                    }
                    QCOMPARE(elementOf(outcome.result, position, at), sum);
                }
            }
        }
        QCOMPARE(outcome.counts.size(), std::size_t{1});
        QCOMPARE(outcome.counts[0].calls, 1);
        QCOMPARE(outcome.counts[0].totalPayloadBytes, elementCount(localShape(test.whole, from)) * byteSize(dtype));
    }
}

void TestCollectives::exchanges_data()
{
    QTest::addColumn<Case>("test");
    QTest::addColumn<int>("kind");
    const int gather = static_cast<int>(OpKind::AllGather);
    const int slice = static_cast<int>(OpKind::AllSlice);
    const int exchange = static_cast<int>(OpKind::AllToAll);
    QTest::newRow("1x8 gather rows") << Case{"a=8", {16, 3}, {{{0, 1, 8}}, {}}, {{}, {}}, {{0, 1, 8}}} << gather;
    QTest::newRow("1x8 gather columns") << Case{"a=8", {3, 16}, {{}, {{0, 1, 8}}}, {{}, {}}, {{0, 1, 8}}} << gather;
    QTest::newRow("4x2 gather both") << Case{"a=4,b=2", {8, 6}, {{{0, 1, 4}}, {{1, 1, 2}}}, {{}, {}}, {{0, 1, 4}, {1, 1, 2}}}
                                     << gather;
    QTest::newRow("4x2 gather the minor of two")
        << Case{"a=4,b=2", {16, 6}, {{{0, 1, 4}, {1, 1, 2}}, {}}, {{{0, 1, 4}}, {}}, {{1, 1, 2}}} << gather;
    QTest::newRow("2x2x2 gather in another order")
        << Case{"a=2,b=2,c=2", {8, 2, 4}, {{{2, 1, 2}, {0, 1, 2}}, {}, {}}, {{}, {}, {}}, {{2, 1, 2}, {0, 1, 2}}} << gather;
    QTest::newRow("gather part of an axis") << Case{"a=8", {16, 2}, {{{0, 1, 8}}, {}}, {{{0, 1, 4}}, {}}, {{0, 4, 2}}} << gather;
    QTest::newRow("4x2 slice") << Case{"a=4,b=2", {8, 6}, {{}, {}}, {{{0, 1, 4}}, {{1, 1, 2}}}, {{0, 1, 4}, {1, 1, 2}}} << slice;
    QTest::newRow("2x2x2 slice the minor") << Case{"a=2,b=2,c=2", {8, 6}, {{{0, 1, 2}}, {}}, {{{0, 1, 2}, {2, 1, 2}}, {}},
        {{2, 1, 2}}} << slice;
    QTest::newRow("1x8 all-to-all") << Case{"a=8", {16, 24}, {{{0, 1, 8}}, {}}, {{}, {{0, 1, 8}}}, {{0, 1, 8}}} << exchange;
    QTest::newRow("4x2 all-to-all over the minor")
        << Case{"a=4,b=2", {8, 4, 6}, {{{0, 1, 4}}, {{1, 1, 2}}, {}}, {{{0, 1, 4}}, {}, {{1, 1, 2}}}, {{1, 1, 2}}} << exchange;
    QTest::newRow("2x2x2 two moves") << Case{"a=2,b=2,c=2", {4, 4, 4, 4}, {{{0, 1, 2}}, {}, {{1, 1, 2}}, {}},
        {{}, {{0, 1, 2}}, {}, {{1, 1, 2}}}, {{0, 1, 2}, {1, 1, 2}}}
                                     << exchange;
}

void TestCollectives::exchanges()
{
    QFETCH(Case, test);
    QFETCH(int, kind);
    const TensorSharding from = shardedOver(test.whole.size(), test.from);
    const TensorSharding to = shardedOver(test.whole.size(), test.to);
    CollectiveAttributes attributes;
    attributes.axes = test.axes;
    attributes.perDim.resize(test.whole.size());
    for (std::size_t dim = 0; dim < test.whole.size(); ++dim) {
        const AxisRefs& longer = test.from[dim].size() > test.to[dim].size() ? test.from[dim] : test.to[dim];
        attributes.perDim[dim].assign(
            longer.begin() + static_cast<std::ptrdiff_t>(std::min(test.from[dim].size(), test.to[dim].size())), longer.end());
        if (test.from[dim] == AxisRefs{{0, 1, 8}} && test.to[dim] == AxisRefs{{0, 1, 4}})
            attributes.perDim[dim] = {{0, 4, 2}};
    }
    if (static_cast<OpKind>(kind) == OpKind::AllToAll) {
        for (std::size_t dim = 0; dim < test.whole.size(); ++dim) {
            for (std::size_t target = 0; target < test.whole.size(); ++target) {
                if (target != dim && !attributes.perDim[dim].empty() && attributes.perDim[dim] == attributes.perDim[target]
                    && !test.from[dim].empty() && test.from[dim] != test.to[dim])
                    attributes.moves.push_back({attributes.perDim[dim], dim, target});
            }
        }
        attributes.perDim.clear();
    }
    const Mesh meshes[] = {meshOf(test.mesh), meshOf(test.mesh, {3, 1, 2, 0, 7, 6, 5, 4})};
    for (const Mesh& mesh : meshes) {
        for (const DType dtype : {DType::F32, DType::BF16, DType::Pred, DType::F64}) {
            const Sketch made = sketch(mesh, static_cast<OpKind>(kind), attributes, dtype, test.whole, from, to);
            // Every device holds its piece of one array.
            const HostArray whole = randomArray({dtype, test.whole}, 22);
            HostArray operands(TensorType{dtype, made.device.globalShapes.front()});
            for (std::int64_t position = 0; position < mesh.deviceCount(); ++position) {
                HostArray piece = whole.slice(shardBox(test.whole, from, mesh, position));
                std::memcpy(operands.data() + position * piece.bytes(), piece.data(), static_cast<std::size_t>(piece.bytes()));
            }
            const Outcome outcome = run(made, operands);
            for (std::int64_t position = 0; position < mesh.deviceCount(); ++position) {
                const HostArray expected = whole.slice(shardBox(test.whole, to, mesh, position));
                QCOMPARE(std::memcmp(outcome.result.data() + position * expected.bytes(), expected.data(),
                             static_cast<std::size_t>(expected.bytes())),
                    0);
            }
            QCOMPARE(outcome.counts.size(), std::size_t{static_cast<OpKind>(kind) == OpKind::AllSlice ? 0U : 1U});
        }
    }
}

void TestCollectives::permutes()
{
    const Mesh mesh = meshOf("a=4,b=2");
    const TensorSharding sharding = shardedOver(2, {{{0, 1, 4}, {1, 1, 2}}, {}});
    CollectiveAttributes attributes;
    attributes.resultShape = {2, 3};
    attributes.sources = {7, 0, 1, 2, 3, 4, 5, 6};
    const Sketch made = sketch(mesh, OpKind::CollectivePermute, attributes, DType::F32, {16, 3}, sharding, sharding);
    const HostArray operands = randomArray({DType::F32, {8, 2, 3}}, 23);
    const Outcome outcome = run(made, operands);
    for (std::int64_t position = 0; position < 8; ++position) {
        for (std::int64_t i = 0; i < 6; ++i)
            QCOMPARE(outcome.result.at(position * 6 + i), operands.at((position + 7) % 8 * 6 + i));
    }
}

void TestCollectives::reduceKinds()
{
    const Mesh mesh = meshOf("a=4");
    TensorSharding from = TensorSharding::replicatedOf(1);
    from.unreduced = {{0, 1, 4}};
    for (const ReduceKind kind :
        {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Product, ReduceKind::And, ReduceKind::Or}) {
        const bool isLogic = kind == ReduceKind::And || kind == ReduceKind::Or;
        CollectiveAttributes attributes;
        attributes.axes = {{0, 1, 4}};
        attributes.kind = kind;
        const Sketch made = sketch(
            mesh, OpKind::AllReduce, attributes, isLogic ? DType::Pred : DType::S32, {50}, from, TensorSharding::replicatedOf(1));
        const HostArray operands = randomArray({isLogic ? DType::Pred : DType::S32, {4, 50}}, 24);
        const Outcome outcome = run(made, operands);
        for (std::int64_t i = 0; i < 50; ++i) {
            double expected = operands.at(i);
            for (std::int64_t m = 1; m < 4; ++m) {
                const double term = operands.at(m * 50 + i);
                expected = kind == ReduceKind::Sum                      ? expected + term
                    : kind == ReduceKind::Product                       ? expected * term
                    : kind == ReduceKind::Max || kind == ReduceKind::Or ? std::max(expected, term)
                                                                        : std::min(expected, term);
            }
            QCOMPARE(outcome.result.at(150 + i), expected);
        }
    }
}

void TestCollectives::narrowSumsRoundOnce()
{
    // 1 + 7 times 2^-9 in bfloat16 (8 bits): step by step nothing would be added; in f32 the sum is 1 + 7/512, rounded once to 1 + 4/256 - ..
    const Mesh mesh = meshOf("a=8");
    TensorSharding from = TensorSharding::replicatedOf(1);
    from.unreduced = {{0, 1, 8}};
    CollectiveAttributes attributes;
    attributes.axes = from.unreduced;
    const Sketch made = sketch(mesh, OpKind::AllReduce, attributes, DType::BF16, {1}, from, TensorSharding::replicatedOf(1));
    std::vector<double> operands(8, 0x1p-9);
    operands[0] = 1.0;
    const Outcome outcome = run(made, HostArray::of({DType::BF16, {8, 1}}, operands));
    // 1 + 7/512 = 1.013671875 lies between 1 + 1/128 = 1.0078125 and 1 + 2/128 = 1.015625; the latter is nearer.
    QCOMPARE(outcome.result.at(0), 1.015625);
}

void TestCollectives::bitsDoNotDependOnTiming()
{
    const Mesh mesh = meshOf("a=8");
    TensorSharding from = TensorSharding::replicatedOf(1);
    from.unreduced = {{0, 1, 8}};
    CollectiveAttributes attributes;
    attributes.axes = from.unreduced;
    const Sketch made = sketch(mesh, OpKind::AllReduce, attributes, DType::F32, {5000}, from, TensorSharding::replicatedOf(1));
    const HostArray operands = randomArray({DType::F32, {8, 5000}}, 25);
    const Outcome first = run(made, operands);
    for (const int permits : {1, 2, 8}) {
        for (int round = 0; round < 3; ++round)
            QVERIFY(run(made, operands, permits).result == first.result);
    }
}

void TestCollectives::largeAllReduce()
{
    // 64 devices, and more elements than a tile on each.
    const Mesh mesh = meshOf("a=16,b=4");
    TensorSharding from = TensorSharding::replicatedOf(1);
    from.unreduced = {{0, 1, 16}};
    CollectiveAttributes attributes;
    attributes.axes = from.unreduced;
    const Sketch made = sketch(mesh, OpKind::AllReduce, attributes, DType::F32, {40000}, from, TensorSharding::replicatedOf(1));
    const HostArray operands = HostArray::filled({DType::F32, {64, 40000}}, 0.5);
    const Outcome outcome = run(made, operands);
    QVERIFY(outcome.result == HostArray::filled({DType::F32, {64, 40000}}, 8.0));
}

/// One thread in the part of all members: who starts goes on, the last one's start moves the data, and no end waits for another one's.
void TestCollectives::startsWithoutWaiting()
{
    constexpr std::size_t kElements = 40000;
    const Mesh mesh = meshOf("a=4");
    TensorSharding from = TensorSharding::replicatedOf(1);
    from.unreduced = {{0, 1, 4}};
    CollectiveAttributes attributes;
    attributes.axes = from.unreduced;
    const Sketch made
        = sketch(mesh, OpKind::AllReduce, attributes, DType::F32, {kElements}, from, TensorSharding::replicatedOf(1));
    auto devices = VirtualDevices::create(4);
    QVERIFY(devices);
    const DevicePositions positions = valueOf(DevicePositions::create({made.mesh}, 4));
    RendezvousTable table(**devices);
    const auto collective = valueOf(Collective::create(made.device, made.device.function.body().ops[1], positions, table));
    QVERIFY(collective->canStart());

    std::vector<std::vector<float>> memory;
    std::vector<std::vector<std::byte*>> addresses;
    for (int device = 0; device < 4; ++device)
        memory.emplace_back(kElements, static_cast<float>(device + 1));
    for (std::vector<float>& own : memory)
        addresses.emplace_back(4, reinterpret_cast<std::byte*>(own.data()));
    std::vector<float> seen; // by the first member after each start
    const auto result = (*devices)->run([&](std::int64_t self) -> Result<Done> {
        std::vector<Collective::Started> started;
        for (std::int64_t device = 0; device < 4 && self == 0; ++device) {
            const auto begun = collective->start(device, addresses[static_cast<std::size_t>(device)], false);
            if (!begun)
                return begun.error();
            started.push_back(*begun);
            seen.push_back(memory[0][7]);
        }
        for (const std::int64_t device : {2, 0, 3, 1}) {
            if (self != 0)
                continue;
            if (auto done = collective->finish(device, started[static_cast<std::size_t>(device)], nullptr); !done)
                return done;
        }
        return Done{};
    });
    QVERIFY(result);
    QVERIFY((seen == std::vector<float>{1.0F, 1.0F, 1.0F, 10.0F}));
    for (const std::vector<float>& own : memory)
        QVERIFY(own == std::vector<float>(kElements, 10.0F));
}

void TestCollectives::mismatch()
{
    // Two functions over the same groups; device 1 runs the other one.
    const Mesh mesh = meshOf("a=4");
    TensorSharding from = TensorSharding::replicatedOf(1);
    from.unreduced = {{0, 1, 4}};
    CollectiveAttributes attributes;
    attributes.axes = from.unreduced;
    attributes.cause.value = "grad.w";
    const Sketch made = sketch(mesh, OpKind::AllReduce, attributes, DType::F32, {10}, from, TensorSharding::replicatedOf(1));
    attributes.cause.value = "loss";
    const Sketch other = sketch(mesh, OpKind::AllReduce, attributes, DType::F32, {10}, from, TensorSharding::replicatedOf(1));

    auto devices = VirtualDevices::create(4);
    QVERIFY(devices);
    const DevicePositions positions = valueOf(DevicePositions::create({made.mesh}, 4));
    RendezvousTable table(**devices);
    const auto collectiveOf = [&](const Sketch& s) {
        return valueOf(Collective::create(s.device, s.device.function.body().ops[1], positions, table));
    };
    const auto one = collectiveOf(made);
    const auto two = collectiveOf(other);
    std::vector<std::vector<float>> memory(4, std::vector<float>(10, 1.0F));
    const auto result = (*devices)->run([&](std::int64_t device) -> Result<Done> {
        std::byte* own = reinterpret_cast<std::byte*>(memory[static_cast<std::size_t>(device)].data());
        const std::vector<std::byte*> addresses(4, own);
        return (device == 1 ? *two : *one).run(device, addresses, nullptr);
    });
    QVERIFY(!result);
    QCOMPARE(result.error().front().id, std::string("MW1505"));
    const std::string& message = result.error().front().message;
    QVERIFY2(message.find("all_reduce of loss") != std::string::npos && message.find("all_reduce of grad.w") != std::string::npos,
        message.c_str());
}

void TestCollectives::layoutsThatDoNotFit()
{
    const Mesh mesh = meshOf("a=4,b=2");
    auto devices = VirtualDevices::create(8);
    QVERIFY(devices);
    const auto idOf = [&](const Sketch& s, std::vector<NamedMesh> meshes) {
        const auto loaded = LoadedFunction::load(schedule(s.device, SchedulePolicy::Host), std::move(meshes), **devices);
        return loaded ? std::string() : loaded.error().front().id;
    };
    // Gathers over b what lies over a.
    CollectiveAttributes gather;
    gather.axes = {{1, 1, 2}};
    gather.perDim = {{{1, 1, 2}}};
    const Sketch wrong = sketch(
        mesh, OpKind::AllGather, gather, DType::F32, {16}, shardedOver(1, {{{0, 1, 4}}}), TensorSharding::replicatedOf(1));
    QCOMPARE(idOf(wrong, {wrong.mesh}), std::string("MW1511"));

    CollectiveAttributes permute;
    permute.resultShape = {4};
    permute.sources = {0, 1, 2};
    const Sketch shortList = sketch(
        mesh, OpKind::CollectivePermute, permute, DType::F32, {16}, shardedOver(1, {{{0, 1, 4}}}), shardedOver(1, {{{0, 1, 4}}}));
    QCOMPARE(idOf(shortList, {shortList.mesh}), std::string("MW1511"));

    QCOMPARE(idOf(wrong, {{"mesh", meshOf("a=16")}}), std::string("MW1510"));
    QCOMPARE(idOf(wrong, {wrong.mesh, {"other", meshOf("c=4")}}), std::string("MW1510"));

    Sketch bare = wrong;
    bare.device.function[bare.device.function.arguments()[0]].sharding.reset();
    QCOMPARE(idOf(bare, {bare.mesh}), std::string("MW1512"));
}

MESHWRIGHT_TEST(TestCollectives)

} // namespace tst_collectives

#include "tst_collectives.moc"
