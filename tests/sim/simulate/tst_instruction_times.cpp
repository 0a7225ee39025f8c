// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/instruction_work.h"

#include "core/program/builder.h"
#include "core/schedule/schedule.h"
#include "sim/hardware/catalogue.h"
#include "tests/test_class.h"

#include <functional>

namespace tst_instruction_times {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

Machine machineFor(const std::string& chip, std::vector<std::int64_t> topology, std::int64_t hosts = 0)
{
    return valueOf(buildMachine(valueOf(defaultCatalogue()), {chip, std::move(topology), hosts, 0}));
}

DeviceFunction onDevices(const Function& function)
{
    DeviceFunction device;
    device.function = function;
    for (const Value& value : function.values)
        device.globalShapes.push_back(value.type.shape);
    return device;
}

/// What the kernels of a function do together.
struct Totals {
    double kernels = 0.0;
    std::int64_t bytes = 0;
    double seconds = 0.0;
};

using Change = std::function<void(CostOptions&)>;

Totals totalsOf(const Function& function, const Machine& machine, const Change& change = {})
{
    const ScheduledFunction scheduled = schedule(onDevices(function), SchedulePolicy::Eager);
    CostOptions options = valueOf(costOptionsOf(machine.chip));
    if (change)
        change(options);
    const DeviceCost cost = valueOf(DeviceCost::create(machine, options));
    InstructionTimes times(scheduled, cost, options.unstated);
    Totals totals;
    for (const Instruction& instruction : scheduled.instructions) {
        if (instruction.kind != InstructionKind::Compute)
            continue;
        const InstructionTimes::Kernel kernel = times.of(instruction);
        totals.kernels += kernel.time.kernels;
        totals.bytes += kernel.work.bytesRead + kernel.work.bytesWritten;
        totals.seconds += kernel.time.seconds;
    }
    return totals;
}

} // namespace

class TestInstructionTimes : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void elementwiseWorkJoinsItsProduct();
    void smallPassesArePartsOfTheirReaders();
    void passesShareKernels_data();
    void passesShareKernels();
    void productsOfOneArrayAreOneKernel_data();
    void productsOfOneArrayAreOneKernel();
    void productsOfOneSumAreOneKernel();
};

/// An element-wise pass on a product's result is part of the product on a TPU; on a GPU one that adds is, and others are kernels of their own. What it
/// needs besides is hidden while the product computes.
void TestInstructionTimes::elementwiseWorkJoinsItsProduct()
{
    const auto seconds = [](OpKind kind, const Machine& machine, bool addsGradients = false) {
        Function function;
        Builder builder(function);
        const ValueId x = builder.argument({DType::F32, {4096, 4096}}, "x");
        const ValueId y = builder.argument({DType::F32, {4096, 4096}}, "y");
        builder.setResults({builder.binary(kind, builder.matmul(x, y, DType::BF16), y)});
        const auto scheduled = schedule(onDevices(function), SchedulePolicy::Overlapped);
        CostOptions options = valueOf(costOptionsOf(machine.chip));
        options.addsGradients = addsGradients;
        const DeviceCost cost = valueOf(DeviceCost::create(machine, options));
        InstructionTimes times(scheduled, cost, MatmulPrecision::Default);
        std::vector<double> result;
        for (const Instruction& instruction : scheduled.instructions)
            result.push_back(times.of(instruction).time.seconds);
        return result;
    };
    for (const OpKind kind : {OpKind::Add, OpKind::Multiply}) {
        const auto onTpu = seconds(kind, machineFor("v5e", {1, 1}));
        QCOMPARE(onTpu.size(), std::size_t{2});
        QVERIFY(onTpu[0] > 0.0);
        QCOMPARE(onTpu[1], 0.0);
    }
    const Machine gpu = machineFor("a100", {}, 1);
    QVERIFY(seconds(OpKind::Multiply, gpu)[1] > 0.0);
    QCOMPARE(seconds(OpKind::Add, gpu)[1], 0.0);
    QVERIFY(seconds(OpKind::Add, gpu, true)[1] > 0.0);
}

/// What is computed of sums of rows, as norms do, costs no kernel where the next pass reads it; where a product does, it costs one.
void TestInstructionTimes::smallPassesArePartsOfTheirReaders()
{
    Function function;
    Builder builder(function);
    const ValueId x = builder.argument({DType::F32, {1024, 1024}}, "x");
    const ValueId sums = builder.reduce(ReduceKind::Sum, x, {1});
    const ValueId part = builder.unary(OpKind::Rsqrt, sums);
    const ValueId alone = builder.unary(OpKind::Tanh, builder.argument({DType::F32, {1024}}, "y"));
    const ValueId scaled = builder.binary(OpKind::Multiply, x, builder.broadcast(part, {1024, 1024}, {0}));
    builder.setResults({scaled, builder.matmul(scaled, builder.reshape(alone, {1024, 1}), DType::F32)});
    const DeviceFunction device = onDevices(function);
    const ScheduledFunction scheduled = schedule(device, SchedulePolicy::Eager);
    const Machine machine = machineFor("h100", {}, 1);
    const CostOptions options = valueOf(costOptionsOf(machine.chip));
    const DeviceCost cost = valueOf(DeviceCost::create(machine, options));
    InstructionTimes times(scheduled, cost, options.unstated);
    int parts = 0;
    int kernels = 0;
    for (const Instruction& instruction : scheduled.instructions) {
        const bool isSmall = std::ranges::any_of(instruction.ops,
            [&](OpId id) { return device.function[id].kind == OpKind::Rsqrt || device.function[id].kind == OpKind::Tanh; });
        const OpTime time = times.of(instruction).time;
        if (isSmall && time.kernels == 0.0) {
            ++parts;
            QVERIFY(time.seconds < cost.kernelSeconds());
        } else if (isSmall) {
            ++kernels;
            QVERIFY(time.seconds >= cost.kernelSeconds());
        }
    }
    QCOMPARE(parts, 1);
    QCOMPARE(kernels, 1);
}

using Body = std::function<std::vector<ValueId>(Builder&, ValueId x)>;
constexpr std::int64_t kRows = 4096;

void TestInstructionTimes::passesShareKernels_data()
{
    QTest::addColumn<Body>("body");
    QTest::addColumn<qint64>("length"); // of a row of x, f32
    QTest::addColumn<QString>("chip");
    QTest::addColumn<Change>("change");
    QTest::addColumn<double>("kernels");
    QTest::addColumn<double>("arrays"); // as large as x, that are read or written

    const auto row
        = [](const char* name, Body body, std::int64_t length, const char* chip, Change change, double kernels, double arrays) {
              QTest::newRow(name) << body << qint64{length} << QString(chip) << change << kernels << arrays;
          };
    const Body chain = [](Builder& b, ValueId x) -> std::vector<ValueId> {
        return {b.unary(OpKind::Exp, b.unary(OpKind::Negate, b.unary(OpKind::Tanh, x)))};
    };
    row("element by element", chain, 1024, "h100", {}, 1, 2);
    row(
        "op by op", chain, 1024, "h100", [](CostOptions& o) { o.joinsPasses = false; }, 3, 6);
    row(
        "kept for a product", // tanh(x) is written, too, and the product reads it and makes nothing large
        [](Builder& b, ValueId x) -> std::vector<ValueId> {
            const ValueId kept = b.unary(OpKind::Tanh, x);
            const ValueId y = b.unary(OpKind::Exp, kept);
            const ValueId ones = b.argument({DType::F32, {1024, 8}}, "ones");
            return {y, b.matmul(kept, ones, DType::F32)};
        },
        1024, "h100", {}, 2, 4);

    const Body norm = [](Builder& b, ValueId x) -> std::vector<ValueId> {
        const Shape shape = b.function()[x].type.shape;
        const ValueId scale = b.unary(OpKind::Rsqrt, b.reduce(ReduceKind::Sum, b.binary(OpKind::Multiply, x, x), {1}));
        return {b.binary(OpKind::Multiply, x, b.broadcast(scale, shape, {0}))};
    };
    row("a norm", norm, 1024, "h100", {}, 1, 2);
    row("rows of 48 KiB", norm, 12 * 1024, "h100", {}, 1, 2);
    row("longer rows are read again", norm, 16 * 1024, "h100", {}, 2, 3);
    row(
        "no kernel for norms", norm, 1024, "h100", [](CostOptions& o) { o.joinsRows = false; }, 3, 5);
    row(
        "a norm op by op", norm, 1024, "h100", // its square is written and read again
        [](CostOptions& o) {
            o.joinsRows = false;
            o.splitsNorms = true;
        },
        4, 5);
    row("reductions end kernels on TPUs", norm, 1024, "v5e", {}, 3, 5);
    row(
        "a mean of columns needs all rows",
        [](Builder& b, ValueId x) -> std::vector<ValueId> {
            const Shape shape = b.function()[x].type.shape;
            const ValueId scale = b.unary(OpKind::Rsqrt, b.reduce(ReduceKind::Sum, b.binary(OpKind::Multiply, x, x), {0}));
            return {b.binary(OpKind::Multiply, x, b.broadcast(scale, shape, {1}))};
        },
        1024, "h100", {}, 2, 3);

    const Body rotation = [](Builder& b, ValueId x) -> std::vector<ValueId> {
        const Shape shape = b.function()[x].type.shape;
        const std::int64_t half = shape[1] / 2;
        const auto part = [&](std::int64_t from) {
            return b.add(OpKind::Slice, {x}, SliceAttributes{{0, from}, {shape[0], from + half}, {1, 1}});
        };
        const ValueId turned
            = b.add(OpKind::Concatenate, {b.unary(OpKind::Negate, part(half)), part(0)}, ConcatenateAttributes{1});
        return {b.binary(OpKind::Add, x, turned)};
    };
    row("a rotation", rotation, 1024, "h100", {}, 1, 2);
    row(
        "slices are kernels", rotation, 1024, "h100", [](CostOptions& o) { o.joinsMoves = false; }, 5, 1 + 1 + 1 + 2 + 3);
    row(
        "barriers move nothing",
        [](Builder& b, ValueId x) -> std::vector<ValueId> {
            const std::vector<ValueId> passed
                = b.addMany(OpKind::OptimizationBarrier, {b.unary(OpKind::Tanh, x), b.unary(OpKind::Negate, x)}, {});
            return {b.binary(OpKind::Add, passed[0], passed[1])};
        },
        1024, "h100", {}, 1, 2);
    row(
        "what a collective gives begins a kernel",
        [](Builder& b, ValueId x) -> std::vector<ValueId> {
            const ValueId y = b.unary(OpKind::Tanh, x);
            CollectiveAttributes over;
            over.axes = {{0, 1, 4}};
            const ValueId sum = b.add(OpKind::AllReduce, {y}, over);
            return {b.binary(OpKind::Add, y, sum)};
        },
        1024, "h100", {}, 2, 2 + 3);
}

/// What is read and written, and by how many kernels.
void TestInstructionTimes::passesShareKernels()
{
    QFETCH(Body, body);
    QFETCH(qint64, length);
    QFETCH(QString, chip);
    QFETCH(Change, change);
    QFETCH(double, kernels);
    QFETCH(double, arrays);
    Function function;
    Builder builder(function);
    const TensorType x{DType::F32, {kRows, length}};
    builder.setResults(body(builder, builder.argument(x, "x")));
    const bool isTpu = chip.startsWith('v');
    const Machine machine = isTpu ? machineFor(chip.toStdString(), {1, 1}) : machineFor(chip.toStdString(), {}, 1);
    const Totals totals = totalsOf(function, machine, change);
    QCOMPARE(totals.kernels, kernels);
    const double found = static_cast<double>(totals.bytes) / static_cast<double>(x.bytes());
    QVERIFY2(qAbs(found - arrays) < 0.02, qPrintable(QString::number(found))); // sums and scales of rows are small
}

void TestInstructionTimes::productsOfOneArrayAreOneKernel_data()
{
    QTest::addColumn<bool>("left");
    QTest::newRow("forward: x times three weights") << true;
    QTest::newRow("weights' gradients: three arrays times x") << false;
}

/// Queries, keys and values take as long as one product with all their columns where a stack has their weights in one array.
void TestInstructionTimes::productsOfOneArrayAreOneKernel()
{
    QFETCH(bool, left);
    const TensorType x{DType::BF16, {512, 512}};
    const auto seconds = [&](const std::vector<std::int64_t>& widths, bool merges) {
        Function function;
        Builder builder(function);
        const ValueId shared = builder.argument(x, "x");
        std::vector<ValueId> results;
        for (const std::int64_t width : widths) {
            const ValueId other = builder.argument({DType::BF16, left ? Shape{512, width} : Shape{width, 512}}, "w");
            results.push_back(left ? builder.matmul(shared, other, DType::BF16) : builder.matmul(other, shared, DType::BF16));
        }
        builder.setResults(results);
        return totalsOf(function, machineFor("a100", {}, 1), [&](CostOptions& options) {
            options.mergesProducts = merges;
        }).seconds;
    };
    const double one = seconds({1024}, false);
    QVERIFY(qAbs(seconds({512, 256, 256}, true) - one) < 1e-12);
    QVERIFY(seconds({512, 256, 256}, false) > 1.5 * one);
}

/// Gradients of queries', keys' and values' input: three products and their sum are one product over all three, where a stack has their weights in one
/// array.
void TestInstructionTimes::productsOfOneSumAreOneKernel()
{
    const auto seconds = [](const std::vector<std::int64_t>& depths, bool merges) {
        Function function;
        Builder builder(function);
        ValueId sum;
        for (const std::int64_t depth : depths) {
            const ValueId product = builder.matmul(builder.argument({DType::BF16, {512, depth}}, "g"),
                builder.argument({DType::BF16, {depth, 512}}, "w"), DType::BF16);
            sum = sum.valid() ? builder.binary(OpKind::Add, sum, product) : product;
        }
        builder.setResults({sum});
        return totalsOf(function, machineFor("a100", {}, 1), [&](CostOptions& options) {
            options.mergesProducts = merges;
        }).seconds;
    };
    const double one = seconds({1024}, false);
    QVERIFY(qAbs(seconds({512, 512}, true) - one) < 1e-12);
    QVERIFY(seconds({512, 512}, false) > 1.2 * one);
}

MESHWRIGHT_TEST(TestInstructionTimes)

} // namespace tst_instruction_times

#include "tst_instruction_times.moc"
