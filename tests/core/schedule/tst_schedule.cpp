// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/schedule.h"

#include "core/program/builder.h"
#include "core/program/placement.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace tst_schedule {

using namespace meshwright;

namespace {

/// A function on one device: local types are global types.
DeviceFunction onOneDevice(const Function& function)
{
    DeviceFunction device;
    device.function = function;
    for (const Value& value : function.values)
        device.globalShapes.push_back(value.type.shape);
    return device;
}

QStringList describe(const ScheduledFunction& scheduled)
{
    QStringList lines;
    for (const Instruction& instruction : scheduled.instructions) {
        std::string line = instruction.kind == InstructionKind::CollectiveStart ? "start"
            : instruction.kind == InstructionKind::CollectiveDone               ? "done"
                                                                                : "";
        for (const OpId op : instruction.ops)
            line += (line.empty() ? "" : " ") + std::string(opName(scheduled.device.function[op].kind));
        lines << QString::fromStdString(line);
    }
    return lines;
}

CollectiveAttributes reduceOver(std::int64_t devices)
{
    CollectiveAttributes attributes;
    attributes.axes = {{0, 1, devices}};
    return attributes;
}

/// Over dimension 0.
CollectiveAttributes gatherOver(std::int64_t devices)
{
    CollectiveAttributes attributes = reduceOver(devices);
    attributes.perDim = {attributes.axes, {}};
    return attributes;
}

ValueId moved(Builder& builder, ValueId value, Placement to)
{
    return builder.add(OpKind::Other, {value}, moveCall(to, builder.type(value)));
}

constexpr std::int64_t kBytes = 64 * 64 * 4;

struct Sketch {
    Function function;
    Builder builder{function};
    TensorType square{DType::F32, {64, 64}};

    ValueId argument(const std::string& name, Role role = Role::Activation) { return builder.argument(square, name, role); }
    ValueId zeros() { return builder.broadcastScalar(builder.splat({DType::F32, {}}, 0.0), square.shape); }
};

/// A parameter with momentum, whose gradient is summed over four devices.
struct Updated : Sketch {
    ValueId p = argument("p", Role::Parameter);
    ValueId m = argument("opt.m", Role::OptimizerState);
    ValueId x = argument("x");
    ValueId gradient = builder.matmul(x, x, DType::F32);
    ValueId sum = builder.add(OpKind::AllReduce, {gradient}, reduceOver(4));
    ValueId inputGradient = builder.matmul(gradient, p, DType::F32);
    ValueId newM = builder.binary(OpKind::Add, m, sum);
    ValueId newP = builder.binary(OpKind::Subtract, p, newM);

    Updated()
    {
        builder.setResults({newP, newM, inputGradient});
        function.donations = {{0, 0}, {1, 1}};
        for (Value& value : function.values)
            value.sharding = TensorSharding::replicatedOf(value.type.shape.size());
        function[gradient].sharding->unreduced = {{0, 1, 4}};
    }

    ScheduledFunction scheduled(SchedulePolicy policy) const { return schedule(onOneDevice(function), policy); }
};

} // namespace

class TestSchedule : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void fusesElementwiseChains();
    void eagerRunsOpByOp();
    void doesNotFuseAroundAnotherOp();
    void doesNotFuseIntoACircle();
    void materialisesConstantsForOthers();
    void drawsOnlyTheBitsThatAreWanted_data();
    void drawsOnlyTheBitsThatAreWanted();
    void overlapDelaysDone();
    void reductionsFollowTheirOperand();
    void parametersAreGatheredAhead();
    void fewCollectivesAreUnderWay();
    void sumsOfGradientsWait();
    void productsRunBesideSums_data();
    void productsRunBesideSums();
    void gathersBeginInTime();
    void nothingJoinedHoldsUpAGather();
    void masksAreMadeAgain();
    void turnsOverlap();
    void movesRunBesideLoops();
    void overlappedTurnsAreComplete_data();
    void overlappedTurnsAreComplete();
    void updatesAreFusedWithTheirReduction();
    void updatesStayOnAllDevices_data();
    void updatesStayOnAllDevices();
    void donatedResultTakesTheArgumentsPlace();
    void donatedResultIsCopiedWhenTheArgumentIsStillRead();
    void elementwiseResultReusesItsOperand();
    void loopBodiesHaveBuffers();
    void buffersNeverShareMemoryWhileBothAreInUse_data();
    void buffersNeverShareMemoryWhileBothAreInUse();
};

void TestSchedule::fusesElementwiseChains()
{
    Sketch s;
    const ValueId x = s.argument("x");
    const ValueId bias = s.builder.argument({DType::F32, {64}}, "b");
    const ValueId h = s.builder.matmul(x, x, DType::F32);
    const ValueId sum = s.builder.binary(OpKind::Add, h, s.builder.broadcast(bias, {64, 64}, {1}));
    const ValueId relu = s.builder.binary(OpKind::Maximum, sum, s.zeros());
    s.builder.setResults({s.builder.matmul(relu, x, DType::F32)});
    const auto scheduled = schedule(onOneDevice(s.function), SchedulePolicy::Host);
    QCOMPARE(describe(scheduled),
        (QStringList{"dot_general", "broadcast_in_dim add constant broadcast_in_dim maximum", "dot_general"}));
    QCOMPARE(scheduled.instructions[1].reads, (std::vector<ValueId>{bias, h}));
    QCOMPARE(scheduled.instructions[1].writes, std::vector<ValueId>{relu});
    QCOMPARE(scheduled.buffers.bufferOf[sum.at()], -1);
}

void TestSchedule::eagerRunsOpByOp()
{
    Sketch s;
    const ValueId x = s.argument("x");
    s.builder.setResults({s.builder.unary(OpKind::Exp, s.builder.unary(OpKind::Negate, x))});
    QCOMPARE(describe(schedule(onOneDevice(s.function), SchedulePolicy::Eager)), (QStringList{"negate", "exponential"}));
}

/// a -> dot -> c with a -> c: joining a and c would need the dot inside the pass.
void TestSchedule::doesNotFuseAroundAnotherOp()
{
    Sketch s;
    const ValueId x = s.argument("x");
    const ValueId a = s.builder.unary(OpKind::Exp, x);
    const ValueId dot = s.builder.matmul(a, x, DType::F32);
    s.builder.setResults({s.builder.binary(OpKind::Add, a, dot)});
    QCOMPARE(
        describe(schedule(onOneDevice(s.function), SchedulePolicy::Host)), (QStringList{"exponential", "dot_general", "add"}));
}

/// y + m and y are one pass, which needs tanh through m: the last sum, which needs that pass through the product of y, cannot join tanh.
void TestSchedule::doesNotFuseIntoACircle()
{
    Sketch s;
    const ValueId x = s.argument("x");
    const ValueId y = s.builder.unary(OpKind::Exp, x);
    const ValueId product = s.builder.matmul(y, x, DType::F32);
    const ValueId tanh = s.builder.unary(OpKind::Tanh, x);
    const ValueId m = s.builder.matmul(tanh, x, DType::F32);
    const ValueId joined = s.builder.binary(OpKind::Add, y, m);
    s.builder.setResults({joined, s.builder.binary(OpKind::Add, tanh, product)});
    QCOMPARE(describe(schedule(onOneDevice(s.function), SchedulePolicy::Host)),
        (QStringList{"tanh", "dot_general", "exponential add", "dot_general", "add"}));
}

void TestSchedule::materialisesConstantsForOthers()
{
    Sketch s;
    const ValueId x = s.argument("x");
    s.builder.setResults({s.builder.matmul(x, s.zeros(), DType::F32)});
    QCOMPARE(describe(schedule(onOneDevice(s.function), SchedulePolicy::Host)),
        (QStringList{"constant broadcast_in_dim", "dot_general"}));
}

void TestSchedule::drawsOnlyTheBitsThatAreWanted_data()
{
    QTest::addColumn<bool>("usedOnce");
    QTest::addColumn<QStringList>("expected");
    QTest::newRow("one slice") << true << QStringList{"constant", "random_bits dynamic_slice"};
    QTest::newRow("all of them too") << false << QStringList{"random_bits", "constant", "dynamic_slice"};
}

void TestSchedule::drawsOnlyTheBitsThatAreWanted()
{
    QFETCH(bool, usedOnce);
    QFETCH(QStringList, expected);
    Sketch s;
    const ValueId key = s.builder.argument({DType::U32, {2}}, "key");
    const ValueId part = s.builder.argument({DType::S32, {}}, "part");
    const ValueId bits = s.builder.add(OpKind::RandomBits, {key}, RandomBitsAttributes{{DType::U32, {8, 64}}, true});
    const ValueId start = s.builder.splat({DType::S32, {}}, 0.0);
    const ValueId slice = s.builder.add(OpKind::DynamicSlice, {bits, part, start}, DynamicSliceAttributes{{1, 64}});
    s.builder.setResults(usedOnce ? std::vector<ValueId>{slice} : std::vector<ValueId>{slice, bits});
    const auto scheduled = schedule(onOneDevice(s.function), SchedulePolicy::Host);
    QStringList ops = describe(scheduled);
    ops.sort();
    expected.sort();
    QCOMPARE(ops, expected);
    QCOMPARE(scheduled.buffers.bufferOf[bits.at()] == -1, usedOnce);
}

void TestSchedule::overlapDelaysDone()
{
    Sketch s;
    const ValueId x = s.argument("x");
    const ValueId g = s.builder.matmul(x, x, DType::F32);
    const ValueId reduced = s.builder.add(OpKind::AllReduce, {g}, reduceOver(4));
    const ValueId other = s.builder.matmul(g, x, DType::F32);
    s.builder.setResults({s.builder.binary(OpKind::Add, reduced, other)});
    QCOMPARE(describe(schedule(onOneDevice(s.function), SchedulePolicy::Overlapped)),
        (QStringList{"dot_general", "start all_reduce", "dot_general", "done all_reduce", "add"}));
    QCOMPARE(describe(schedule(onOneDevice(s.function), SchedulePolicy::Host)),
        (QStringList{"dot_general", "start all_reduce", "dot_general", "done all_reduce", "add"}));
    // The sum does not take the place of what is still read while it is under way.
    for (const SchedulePolicy policy : {SchedulePolicy::Host, SchedulePolicy::Overlapped}) {
        const auto bufferOf = schedule(onOneDevice(s.function), policy).buffers.bufferOf;
        QVERIFY(bufferOf[reduced.at()] != bufferOf[g.at()]);
    }
}

void TestSchedule::reductionsFollowTheirOperand()
{
    Sketch s;
    const ValueId x = s.argument("x");
    const ValueId g = s.builder.matmul(x, x, DType::F32);
    const ValueId other = s.builder.matmul(g, x, DType::F32);
    const ValueId reduced = s.builder.add(OpKind::AllReduce, {g}, reduceOver(4));
    s.builder.setResults({s.builder.binary(OpKind::Add, reduced, other)});
    QCOMPARE(describe(schedule(onOneDevice(s.function), SchedulePolicy::Host)),
        (QStringList{"dot_general", "start all_reduce", "dot_general", "done all_reduce", "add"}));
}

void TestSchedule::parametersAreGatheredAhead()
{
    Sketch s;
    const ValueId x = s.argument("x");
    CollectiveAttributes attributes;
    attributes.axes = {{0, 1, 4}};
    attributes.perDim = {attributes.axes, {}};
    ValueId h = x;
    for (int layer = 0; layer < 5; ++layer) {
        const ValueId shard = s.builder.argument({DType::F32, {16, 64}}, "w" + std::to_string(layer), Role::Parameter);
        h = s.builder.matmul(h, s.builder.add(OpKind::AllGather, {shard}, attributes), DType::F32);
    }
    s.builder.setResults({h});
    QCOMPARE(describe(schedule(onOneDevice(s.function), SchedulePolicy::Overlapped)),
        (QStringList{"start all_gather", "start all_gather", "start all_gather", "done all_gather", "dot_general",
            "start all_gather", "done all_gather", "dot_general", "start all_gather", "done all_gather", "dot_general",
            "done all_gather", "dot_general", "done all_gather", "dot_general"}));
}

/// Their operands take memory: two of the largest at a time on the host, three on an accelerator.
void TestSchedule::fewCollectivesAreUnderWay()
{
    Sketch s;
    ValueId h = s.argument("x");
    std::vector<ValueId> results;
    for (int i = 0; i < 3; ++i) {
        h = s.builder.matmul(h, h, DType::F32);
        results.push_back(s.builder.add(OpKind::AllReduce, {h}, reduceOver(4)));
    }
    s.builder.setResults(results);
    QCOMPARE(describe(schedule(onOneDevice(s.function), SchedulePolicy::Host)),
        (QStringList{"dot_general", "start all_reduce", "dot_general", "start all_reduce", "dot_general", "done all_reduce",
            "start all_reduce", "done all_reduce", "done all_reduce"}));
    QCOMPARE(describe(schedule(onOneDevice(s.function), SchedulePolicy::Overlapped)),
        (QStringList{"dot_general", "start all_reduce", "dot_general", "start all_reduce", "dot_general", "start all_reduce",
            "done all_reduce", "done all_reduce", "done all_reduce"}));
    h = s.builder.matmul(h, h, DType::F32);
    results.push_back(s.builder.add(OpKind::AllReduce, {h}, reduceOver(4)));
    s.builder.setResults(results);
    QCOMPARE(describe(schedule(onOneDevice(s.function), SchedulePolicy::Overlapped)),
        (QStringList{"dot_general", "start all_reduce", "dot_general", "start all_reduce", "dot_general", "start all_reduce",
            "dot_general", "done all_reduce", "start all_reduce", "done all_reduce", "done all_reduce", "done all_reduce"}));
}

/// A mask of labels, and what is spread where it holds, is made in each pass that reads it: none of it takes memory.
void TestSchedule::masksAreMadeAgain()
{
    Sketch s;
    const TensorType whole{DType::S32, {64, 64}};
    const ValueId labels = s.builder.argument({DType::S32, {64}}, "labels", Role::Input);
    const ValueId each = s.builder.argument({DType::F32, {}}, "each", Role::Input);
    const ValueId mask
        = s.builder.compare(CompareDirection::Equal, s.builder.broadcast(labels, whole.shape, {0}), s.builder.iota(whole, 1));
    const TensorType type{DType::F32, {64, 64}};
    const ValueId masked = s.builder.select(mask, s.builder.broadcastScalar(each, type.shape), s.builder.splat(type, 0.0));
    const ValueId x = s.builder.argument(type, "x", Role::Input);
    s.builder.setResults({s.builder.reduce(ReduceKind::Sum, masked, {1}), s.builder.binary(OpKind::Add, x, masked)});
    std::int64_t written = 0;
    const ScheduledFunction scheduled = schedule(onOneDevice(s.function), SchedulePolicy::Overlapped);
    for (const Instruction& instruction : scheduled.instructions)
        written += std::ssize(instruction.writes);
    QCOMPARE(written, 2);
}

/// On an accelerator a sum that only leaves the block holds nothing up: it follows its reduction when there is no room for another, or at the end. The
/// host adds at once, where the numbers are still in its cache.
void TestSchedule::sumsOfGradientsWait()
{
    Sketch s;
    ValueId h = s.argument("x");
    std::vector<ValueId> results;
    for (int i = 0; i < 4; ++i) {
        h = s.builder.matmul(h, h, DType::F32);
        const ValueId reduced = s.builder.add(OpKind::AllReduce, {h}, reduceOver(4));
        results.push_back(s.builder.binary(OpKind::Add, s.argument("sum" + std::to_string(i)), reduced));
    }
    s.builder.setResults(results);
    QCOMPARE(describe(schedule(onOneDevice(s.function), SchedulePolicy::Overlapped)),
        (QStringList{"dot_general", "start all_reduce", "dot_general", "start all_reduce", "dot_general", "start all_reduce",
            "dot_general", "done all_reduce", "add", "start all_reduce", "done all_reduce", "done all_reduce", "done all_reduce",
            "add", "add", "add"}));
    QCOMPARE(describe(schedule(onOneDevice(s.function), SchedulePolicy::Host)).mid(0, 4),
        (QStringList{"dot_general", "start all_reduce", "done all_reduce", "add"}));
}

void TestSchedule::productsRunBesideSums_data()
{
    QTest::addColumn<bool>("readsTheSameGradient");
    QTest::addColumn<bool>("comesFirst");
    QTest::newRow("the product for the weights comes first in the program") << true << true;
    QTest::newRow("the product for the weights comes last") << true << false;
    QTest::newRow("another product comes last") << false << false;
}

/// A sum of activations, or of their gradients, runs beside a product that does not need it, wherever the program has that.
void TestSchedule::productsRunBesideSums()
{
    QFETCH(bool, readsTheSameGradient);
    QFETCH(bool, comesFirst);
    Sketch s;
    const ValueId gradient = s.argument("gradient");
    const ValueId w = s.argument("w", Role::Parameter);
    const ValueId x = s.argument("x");
    const ValueId read = s.builder.unary(OpKind::Tanh, readsTheSameGradient ? gradient : x);
    const auto other = [&] { return s.builder.matmul(x, read, DType::F32); };
    ValueId weights = comesFirst ? other() : ValueId{};
    const ValueId input = s.builder.matmul(readsTheSameGradient ? read : gradient, w, DType::F32);
    const ValueId sum = s.builder.add(OpKind::AllReduce, {input}, reduceOver(4));
    const ValueId before = s.builder.unary(OpKind::Exp, sum);
    if (!comesFirst)
        weights = other();
    s.builder.setResults({s.builder.matmul(before, w, DType::F32), weights});
    QStringList described = describe(schedule(onOneDevice(s.function), SchedulePolicy::Overlapped));
    described.removeAll("stablehlo.tanh");
    described.removeAll("tanh");
    QCOMPARE(described.mid(0, 4), (QStringList{"dot_general", "start all_reduce", "dot_general", "done all_reduce"}));
}

/// What is gathered again for the gradients of weights begins when the gather before it is used, with the element-wise work that makes it.
void TestSchedule::gathersBeginInTime()
{
    Sketch s;
    const TensorType part{DType::F32, {16, 64}};
    const ValueId gradient = s.builder.argument(part, "gradient", Role::Activation);
    const ValueId kept = s.builder.argument(part, "kept", Role::Activation);
    const ValueId w = s.argument("w", Role::Parameter);
    const ValueId whole = s.builder.add(OpKind::AllGather, {s.builder.unary(OpKind::Exp, gradient)}, gatherOver(4));
    const ValueId input = s.builder.matmul(whole, w, DType::F32);
    const ValueId again = s.builder.add(OpKind::AllGather, {s.builder.unary(OpKind::Tanh, kept)}, gatherOver(4));
    s.builder.setResults({input, s.builder.matmul(again, whole, DType::F32)});
    const QStringList described = describe(schedule(onOneDevice(s.function), SchedulePolicy::Overlapped));
    QCOMPARE(described.filter("start").size(), 2);
    QVERIFY2(described.lastIndexOf("start all_gather") < described.indexOf("dot_general"), qPrintable(described.join(", ")));
}

/// An activation that is gathered is not made in one pass with what waits for a sum.
void TestSchedule::nothingJoinedHoldsUpAGather()
{
    Sketch s;
    const TensorType part{DType::F32, {16, 64}};
    const ValueId x = s.builder.argument(part, "x", Role::Activation);
    const ValueId w = s.argument("w", Role::Parameter);
    const ValueId sum = s.builder.add(OpKind::AllReduce, {s.builder.matmul(x, w, DType::F32)}, reduceOver(4));
    const ValueId made = s.builder.unary(OpKind::Exp, x);
    const ValueId whole = s.builder.add(OpKind::AllGather, {made}, gatherOver(4));
    const ValueId late = s.builder.binary(OpKind::Multiply, made, sum);
    s.builder.setResults({late, s.builder.matmul(whole, w, DType::F32)});
    const QStringList described = describe(schedule(onOneDevice(s.function), SchedulePolicy::Overlapped));
    QVERIFY2(described.indexOf("start all_gather") < described.indexOf("done all_reduce"), qPrintable(described.join(", ")));
}

/// p' = p - m', m' = m + sum of g, with p and m donated: one pass, in their places, and the sum is never in memory. It starts only when p is
/// no longer read.
void TestSchedule::updatesAreFusedWithTheirReduction()
{
    Updated u;
    const auto scheduled = u.scheduled(SchedulePolicy::Host);
    QCOMPARE(describe(scheduled), (QStringList{"dot_general", "dot_general", "start all_reduce", "done all_reduce"}));
    const Instruction& done = scheduled.instructions.back();
    QCOMPARE(done.update.size(), std::size_t{2});
    QCOMPARE(done.reads, (std::vector<ValueId>{u.gradient, u.m, u.p}));
    QCOMPARE(done.writes, (std::vector<ValueId>{u.newM, u.newP}));
    const auto& bufferOf = scheduled.buffers.bufferOf;
    QCOMPARE(bufferOf[u.sum.at()], -1);
    QCOMPARE(bufferOf[u.newP.at()], bufferOf[u.p.at()]);
    QCOMPARE(bufferOf[u.newM.at()], bufferOf[u.m.at()]);
    QVERIFY(scheduled.finalCopies.empty());
    for (const SchedulePolicy policy : {SchedulePolicy::Overlapped, SchedulePolicy::Eager}) {
        for (const Instruction& instruction : u.scheduled(policy).instructions)
            QVERIFY(instruction.update.empty());
    }
}

void TestSchedule::updatesStayOnAllDevices_data()
{
    QTest::addColumn<int>("what");
    QTest::newRow("a moment that is split over the group") << 0;
    QTest::newRow("a moment whose layout is not known") << 1;
    QTest::newRow("a sum that something else reads too") << 2;
    QTest::newRow("a sum that is a result") << 3;
}

void TestSchedule::updatesStayOnAllDevices()
{
    QFETCH(int, what);
    Updated u;
    if (what == 0)
        u.function[u.m].sharding->dims[0].axes = {{0, 1, 4}};
    else if (what == 1)
        u.function[u.m].sharding.reset();
    else if (what == 2)
        u.builder.setResults({u.newP, u.newM, u.builder.matmul(u.sum, u.p, DType::F32)});
    else
        u.builder.setResults({u.newP, u.newM, u.sum});
    for (const Instruction& instruction : u.scheduled(SchedulePolicy::Host).instructions)
        QVERIFY(instruction.update.empty());
}

void TestSchedule::donatedResultTakesTheArgumentsPlace()
{
    Sketch s;
    const ValueId p = s.argument("p", Role::Parameter);
    const ValueId g = s.builder.matmul(p, p, DType::F32);
    const ValueId updated = s.builder.binary(OpKind::Subtract, p, g);
    s.builder.setResults({updated});
    s.function.donations = {{0, 0}};
    const auto scheduled = schedule(onOneDevice(s.function), SchedulePolicy::Host);
    QCOMPARE(scheduled.buffers.bufferOf[updated.at()], scheduled.buffers.bufferOf[p.at()]);
    QVERIFY(scheduled.finalCopies.empty());
    QCOMPARE(scheduled.buffers.arenaBytes, 2 * kBytes);
}

void TestSchedule::donatedResultIsCopiedWhenTheArgumentIsStillRead()
{
    Sketch s;
    const ValueId p = s.argument("p", Role::Parameter);
    const ValueId updated = s.builder.unary(OpKind::Negate, p);
    const ValueId later = s.builder.matmul(updated, p, DType::F32);
    s.builder.setResults({updated, later});
    s.function.donations = {{0, 0}};
    const auto scheduled = schedule(onOneDevice(s.function), SchedulePolicy::Host);
    QCOMPARE(scheduled.finalCopies.size(), std::size_t{1});
    QCOMPARE(scheduled.finalCopies.front().from, updated);
    QCOMPARE(scheduled.finalCopies.front().to, p);
}

void TestSchedule::elementwiseResultReusesItsOperand()
{
    Sketch s;
    const ValueId x = s.argument("x");
    const ValueId h = s.builder.matmul(x, x, DType::F32);
    const ValueId e = s.builder.unary(OpKind::Exp, h);
    s.builder.setResults({s.builder.matmul(e, x, DType::F32)});
    const auto scheduled = schedule(onOneDevice(s.function), SchedulePolicy::Host);
    QCOMPARE(scheduled.buffers.bufferOf[e.at()], scheduled.buffers.bufferOf[h.at()]);
    QCOMPARE(scheduled.buffers.arenaBytes, 3 * kBytes);
    QCOMPARE(scheduled.buffers.peakLiveBytes, 3 * kBytes);
    // Of memory that the caller gives for x and the result, h and e need one place beside it.
    const auto beside = schedule(onOneDevice(s.function), SchedulePolicy::Host, ArgumentPlace::Callers);
    QCOMPARE(beside.buffers.arenaBytes, kBytes);
    QCOMPARE(beside.buffers.peakLiveBytes, kBytes);
    QCOMPARE(beside.buffers.bufferOf, scheduled.buffers.bufferOf);
}

void TestSchedule::loopBodiesHaveBuffers()
{
    Sketch s;
    const ValueId x = s.argument("x");
    const OpId loop = s.builder.beginRepeat({3, 1, 0, false}, {x, x});
    const auto arguments = s.function[s.builder.block()].arguments;
    const ValueId next = s.builder.matmul(arguments[0], arguments[1], DType::F32);
    s.builder.setResults({next});
    s.builder.setResults(s.builder.endRepeat(loop));
    const auto scheduled = schedule(onOneDevice(s.function), SchedulePolicy::Host);
    QCOMPARE(scheduled.instructions.size(), std::size_t{1});
    QCOMPARE(scheduled.instructions.front().kind, InstructionKind::Loop);
    QCOMPARE(scheduled.instructions.front().body.size(), std::size_t{1});
    for (const ValueId value : {x, arguments[0], arguments[1], next})
        QVERIFY(scheduled.buffers.bufferOf[value.at()] >= 0);
    QVERIFY(scheduled.buffers.bufferOf[next.at()] != scheduled.buffers.bufferOf[arguments[0].at()]);
}

/// The layers of FSDP forward and backward at once: a row is gathered, and what it gives is scattered into a row of the results.
void TestSchedule::turnsOverlap()
{
    Sketch s;
    const ValueId x = s.argument("x");
    const ValueId rows = s.builder.argument({DType::F32, {8, 16, 64}}, "w", Role::Parameter);
    const OpId loop = s.builder.beginRepeat({8, 1, 1, false}, {x, rows});
    const auto arguments = s.function[s.builder.block()].arguments;
    const CollectiveAttributes gather = gatherOver(4);
    const ValueId w = s.builder.add(OpKind::AllGather, {arguments[1]}, gather);
    const ValueId next = s.builder.matmul(arguments[0], w, DType::F32);
    const ValueId gradient = s.builder.matmul(next, next, DType::F32);
    const ValueId sum = s.builder.add(OpKind::ReduceScatter, {gradient}, gather);
    s.builder.setResults({next, sum});
    s.builder.setResults(s.builder.endRepeat(loop));
    const auto scheduled = schedule(onOneDevice(s.function), SchedulePolicy::Overlapped);
    QStringList turns;
    for (const Instruction& inner : scheduled.instructions.front().body) {
        if (inner.turn != 0)
            turns << QString("%1 %2 %3").arg(opName(s.function[inner.ops.front()].kind)).arg(int(inner.kind)).arg(inner.turn);
    }
    std::sort(turns.begin(), turns.end());
    QCOMPARE(turns,
        QStringList({QString("all_gather %1 1").arg(int(InstructionKind::CollectiveStart)),
            QString("reduce_scatter %1 -1").arg(int(InstructionKind::CollectiveDone))}));
    const auto alone = schedule(onOneDevice(s.function), SchedulePolicy::Host);
    for (const Instruction& inner : alone.instructions.front().body)
        QCOMPARE(inner.turn, 0);
}

/// A loop stacks what it makes in the host's memory, and another one reads it there: what leaves is waited for a turn later, what comes back begins a
/// turn ahead, and the device has no stack.
void TestSchedule::movesRunBesideLoops()
{
    constexpr std::int64_t kTurns = 6;
    Sketch s;
    const ValueId x = s.argument("x");
    const OpId forward = s.builder.beginRepeat({kTurns, 1, 0, false}, {x});
    const ValueId carried = s.function[s.builder.block()].arguments.front();
    const ValueId made = s.builder.matmul(carried, carried, DType::F32);
    s.builder.setResults({s.builder.matmul(made, carried, DType::F32), moved(s.builder, made, Placement::Host)});
    const std::vector<ValueId> passed = s.builder.endRepeat(forward);
    const OpId backward = s.builder.beginRepeat({kTurns, 1, 1, true}, passed);
    const std::vector<ValueId> inside = s.function[s.builder.block()].arguments;
    s.builder.setResults({s.builder.matmul(inside[0], moved(s.builder, inside[1], Placement::Device), DType::F32)});
    s.builder.setResults(s.builder.endRepeat(backward));

    const ScheduledFunction overlapped = schedule(onOneDevice(s.function), SchedulePolicy::Overlapped);
    const auto turnsOf = [&](std::size_t loop, Stream stream) {
        QStringList turns;
        for (const Instruction& inner : overlapped.instructions[loop].body) {
            if (inner.stream == stream)
                turns << QString("%1 %2").arg(inner.kind == InstructionKind::CollectiveStart ? "start" : "done").arg(inner.turn);
        }
        return turns;
    };
    QCOMPARE(turnsOf(0, Stream::ToHost), QStringList({"done -1", "start 0"}));
    QCOMPARE(turnsOf(1, Stream::ToDevice), QStringList({"done 0", "start 1"}));

    const ScheduledFunction alone = schedule(onOneDevice(s.function), SchedulePolicy::Host);
    for (const auto* scheduled : {&overlapped, &alone}) {
        QVERIFY(scheduled->buffers.hostBytes >= kTurns * kBytes);
        QVERIFY(scheduled->buffers.hostBytes <= (kTurns + 2) * kBytes);
        QVERIFY(scheduled->buffers.arenaBytes < kTurns * kBytes + 2 * kBytes);
        for (const Buffer& buffer : scheduled->buffers.buffers)
            QVERIFY(
                buffer.offset + buffer.bytes <= (buffer.onHost ? scheduled->buffers.hostBytes : scheduled->buffers.arenaBytes));
        std::int64_t mostOnHost = 0;
        for (const MemoryMoment& moment : memoryOverTime(*scheduled))
            mostOnHost = std::max(mostOnHost, moment.hostBytes);
        QVERIFY(mostOnHost >= kTurns * kBytes && mostOnHost <= scheduled->buffers.hostBytes);
    }
    for (const Instruction& inner : alone.instructions.front().body)
        QVERIFY(inner.kind == InstructionKind::Compute);
}

void TestSchedule::overlappedTurnsAreComplete_data()
{
    tests::addSeeds({5, 6, 1964921856});
}

/// Random loops, played turn by turn: each op is done once for each turn, what it reads was made for that turn (the carries by the turn before), a
/// collective ends after its start, and the memory of the loop holds at least what lives at one time.
void TestSchedule::overlappedTurnsAreComplete()
{
    QFETCH(quint64, seed);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    int ahead = 0;
    int late = 0;
    for (int round = 0; round < 300; ++round) {
        Sketch s;
        const std::int64_t count = 1 + static_cast<std::int64_t>(random() % 5);
        std::vector<ValueId> operands{s.argument("x"), s.argument("constant")};
        for (int row = 0; row < 3; ++row)
            operands.push_back(s.builder.argument({DType::F32, {count, 64, 64}}, "rows"));
        std::swap(operands[1], operands.back());
        const OpId loop = s.builder.beginRepeat({count, 1, 3, false}, operands);
        const BlockId block = s.builder.block();
        std::vector<ValueId> values(s.function[block].arguments);
        const std::size_t arguments = values.size();
        for (int i = 0; i < 16; ++i) {
            const ValueId a = values[random() % values.size()];
            const ValueId b = values[random() % values.size()];
            switch (random() % 8) {
            case 0:
                values.push_back(s.builder.matmul(a, b, DType::F32));
                break;
            case 1:
                values.push_back(s.builder.add(OpKind::AllGather, {values[random() % arguments]}, gatherOver(1)));
                break;
            case 5:
                values.push_back(moved(s.builder, a, Placement::Host));
                break;
            case 6:
                values.push_back(moved(s.builder, values[random() % arguments], Placement::Device));
                break;
            case 2:
                values.push_back(s.builder.add(OpKind::AllReduce, {a}, reduceOver(4)));
                break;
            case 3:
                values.push_back(s.builder.unary(OpKind::Tanh, a));
                break;
            default:
                values.push_back(s.builder.binary(OpKind::Add, a, b));
            }
        }
        s.builder.setResults({values.back(), values[values.size() - 2], values[values.size() - 3]});
        s.builder.setResults(s.builder.endRepeat(loop));
        const auto scheduled = schedule(onOneDevice(s.function), SchedulePolicy::Overlapped);
        const Instruction& outer = scheduled.instructions.front();
        const Block& body = s.function[block];

        std::map<std::pair<std::int64_t, ValueId>, int> made; // by turn
        std::map<std::pair<std::int64_t, OpId>, int> begun;
        std::map<std::pair<std::int64_t, const Instruction*>, int> done;
        const auto play = [&](const Instruction& inner, std::int64_t turn) {
            QVERIFY(turn >= 0 && turn < count);
            QCOMPARE(++done[std::pair(turn, &inner)], 1);
            for (const ValueId value : inner.reads) {
                if (value == body.arguments.front()) {
                    QVERIFY(turn == 0 || made.contains({turn - 1, body.results.front()}));
                } else if (s.function[value].producer.valid()) {
                    QVERIFY(made.contains({turn, value}));
                }
            }
            if (inner.kind == InstructionKind::CollectiveStart)
                QCOMPARE(++begun[std::pair(turn, inner.ops.front())], 1);
            if (inner.kind == InstructionKind::CollectiveDone)
                QVERIFY(begun.contains({turn, inner.ops.front()}));
            for (const ValueId value : inner.writes)
                QCOMPARE(++made[std::pair(turn, value)], 1);
        };
        for (const Instruction& inner : outer.body) {
            ahead += inner.turn > 0 ? 1 : 0;
            late += inner.turn < 0 ? 1 : 0;
            if (inner.turn > 0)
                play(inner, 0);
        }
        for (std::int64_t turn = 0; turn < count; ++turn) {
            for (const Instruction& inner : outer.body) {
                const std::int64_t of = turn + inner.turn;
                if (of >= 0 && of < count)
                    play(inner, of);
            }
        }
        for (const Instruction& inner : outer.body) {
            if (inner.turn < 0)
                play(inner, count - 1);
        }
        for (std::int64_t turn = 0; turn < count; ++turn) {
            for (const Instruction& inner : outer.body)
                QCOMPARE((done[std::pair(turn, &inner)]), 1);
            for (const ValueId result : body.results)
                QVERIFY(!s.function[result].producer.valid() || made.contains({turn, result}));
        }

        // In a turn in the middle: a value lives from when it is made, or its collective starts, until it is read last, in whatever turn that is.
        const auto length = static_cast<std::int64_t>(outer.body.size());
        std::map<ValueId, std::pair<std::int64_t, std::int64_t>> lives;
        std::map<OpId, std::int64_t> starts;
        for (std::int64_t at = 0; at < length; ++at) {
            const Instruction& inner = outer.body[static_cast<std::size_t>(at)];
            if (inner.kind == InstructionKind::CollectiveStart)
                starts[inner.ops.front()] = at - inner.turn * length;
        }
        for (std::int64_t at = 0; at < length; ++at) {
            const Instruction& inner = outer.body[static_cast<std::size_t>(at)];
            const bool isDone = inner.kind == InstructionKind::CollectiveDone;
            for (const ValueId value : inner.writes) {
                const std::int64_t first = isDone ? starts.at(inner.ops.front()) : at - inner.turn * length;
                lives[value] = {first, at - inner.turn * length};
            }
        }
        for (std::int64_t at = 0; at < length; ++at) {
            const Instruction& inner = outer.body[static_cast<std::size_t>(at)];
            for (const ValueId value : inner.reads) {
                if (const auto life = lives.find(value); life != lives.end())
                    life->second.second = std::max(life->second.second, at - inner.turn * length);
            }
        }
        // Values that are made one in another's place count once.
        std::map<std::int32_t, std::pair<std::int64_t, std::int64_t>> together;
        for (const auto& [value, life] : lives) {
            if (scheduled.buffers.buffers[static_cast<std::size_t>(scheduled.buffers.bufferOf[value.at()])].onHost)
                continue;
            const auto [buffer, isNew] = together.emplace(scheduled.buffers.bufferOf[value.at()], life);
            if (!isNew)
                buffer->second = {std::min(buffer->second.first, life.first), std::max(buffer->second.second, life.second)};
        }
        std::int64_t stretch = 0;
        for (const Buffer& buffer : scheduled.buffers.buffers) {
            if (!buffer.value.valid() && !buffer.onHost)
                stretch = buffer.bytes;
        }
        for (std::int64_t at = 0; at < length; ++at) {
            std::int64_t live = 0;
            for (const auto& [buffer, life] : together) {
                for (std::int64_t shift = -2 * length; shift <= 2 * length; shift += length)
                    live += life.first <= at + shift && at + shift <= life.second ? kBytes : 0;
            }
            QVERIFY2(live <= stretch, qPrintable(QString("%1 of %2 bytes").arg(live).arg(stretch)));
        }
    }
    QVERIFY(ahead > 50);
    QVERIFY(late > 50);
}

void TestSchedule::buffersNeverShareMemoryWhileBothAreInUse_data()
{
    tests::addSeeds({3, 4});
}

/// Random programs: two buffers that are in use at one instruction never overlap in the arena, and everything fits it that is to lie there.
void TestSchedule::buffersNeverShareMemoryWhileBothAreInUse()
{
    QFETCH(quint64, seed);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    for (int round = 0; round < 600; ++round) {
        Sketch s;
        std::vector<ValueId> values{s.argument("x"), s.argument("y")};
        for (int i = 0; i < 30; ++i) {
            const ValueId a = values[random() % values.size()];
            const ValueId b = values[random() % values.size()];
            switch (random() % 4) {
            case 0:
                values.push_back(s.builder.matmul(a, b, DType::F32));
                break;
            case 1:
                values.push_back(s.builder.add(OpKind::AllReduce, {a}, reduceOver(4)));
                break;
            case 2:
                values.push_back(s.builder.unary(OpKind::Tanh, a));
                break;
            default:
                values.push_back(s.builder.binary(OpKind::Add, a, b));
            }
        }
        s.builder.setResults({values.back(), values[values.size() / 2]});
        const SchedulePolicy policy = static_cast<SchedulePolicy>(random() % 3);
        const ArgumentPlace place = random() % 2 == 0 ? ArgumentPlace::Arena : ArgumentPlace::Callers;
        const auto scheduled = schedule(onOneDevice(s.function), policy, place);
        // What an instruction reads was made before.
        std::set<ValueId> made(s.function[s.builder.block()].arguments.begin(), s.function[s.builder.block()].arguments.end());
        for (const Instruction& instruction : scheduled.instructions) {
            for (const ValueId value : instruction.reads)
                QVERIFY(made.contains(value));
            made.insert(instruction.writes.begin(), instruction.writes.end());
        }
        for (const ValueId result : s.function[s.builder.block()].results)
            QVERIFY(made.contains(result));
        const auto& buffers = scheduled.buffers.buffers;
        std::set<std::size_t> elsewhere;
        if (place == ArgumentPlace::Callers) {
            const Block& block = s.function[s.builder.block()];
            for (const std::vector<ValueId>* outer : {&block.arguments, &block.results}) {
                for (const ValueId value : *outer)
                    elsewhere.insert(static_cast<std::size_t>(scheduled.buffers.bufferOf[value.at()]));
            }
        }
        for (std::size_t i = 0; i < buffers.size(); ++i) {
            if (elsewhere.contains(i))
                continue;
            QVERIFY(buffers[i].offset % kBufferAlignment == 0);
            QVERIFY(buffers[i].offset + buffers[i].bytes <= scheduled.buffers.arenaBytes);
            for (std::size_t j = 0; j < i; ++j) {
                if (elsewhere.contains(j))
                    continue;
                const bool together = buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
                const bool overlap = buffers[i].offset < buffers[j].offset + buffers[j].bytes
                    && buffers[j].offset < buffers[i].offset + buffers[i].bytes;
                QVERIFY(!(together && overlap));
            }
        }
        QVERIFY(scheduled.buffers.peakLiveBytes <= scheduled.buffers.arenaBytes);
        // A collective reads its operand and writes its result from its start to its end.
        std::map<OpId, std::size_t> starts;
        for (std::size_t at = 0; at < scheduled.instructions.size(); ++at) {
            const Instruction& instruction = scheduled.instructions[at];
            const auto bufferOf
                = [&](ValueId value) { return buffers[static_cast<std::size_t>(scheduled.buffers.bufferOf[value.at()])]; };
            if (instruction.kind == InstructionKind::CollectiveStart)
                starts[instruction.ops.front()] = at;
            if (instruction.kind != InstructionKind::CollectiveDone)
                continue;
            for (const ValueId value : instruction.writes) // what is made of the result at once, where that is fused with it
                QVERIFY(bufferOf(value).first <= starts.at(instruction.ops.front()));
            for (const ValueId value : scheduled.device.function[instruction.ops.front()].operands)
                QVERIFY(bufferOf(value).last >= at);
        }
    }
}

MESHWRIGHT_TEST(TestSchedule)

} // namespace tst_schedule

#include "tst_schedule.moc"
