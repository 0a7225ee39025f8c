// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/cost/device_cost.h"
#include "tests/test_class.h"

#include <cmath>

namespace tst_device_cost {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

const Catalogue& catalogue()
{
    static const Catalogue loaded = valueOf(Catalogue::load(MESHWRIGHT_SOURCE_DIR "/resources/hardware/catalogue.json"));
    return loaded;
}

DeviceCost cost(const HardwareChoice& choice)
{
    const Machine machine = valueOf(buildMachine(catalogue(), choice));
    return valueOf(DeviceCost::create(machine, valueOf(costOptionsOf(machine.chip))));
}

DeviceCost v3()
{
    return cost({"v3", {2, 2}});
}

DeviceCost v5e()
{
    return cost({"v5e", {4, 2}});
}

DeviceCost a100()
{
    return cost({"a100"});
}

/// [m, k] x [k, n] in two-byte numbers: operands read once, the result written once.
OpWork product(std::int64_t m, std::int64_t n, std::int64_t k, MathFormat format = MathFormat::Bf16)
{
    const auto bytes = std::int64_t(bytesPerElement(format));
    return {MatmulDims{1.0, double(m), double(n), double(k)}, bytes * (m * k + k * n), bytes * m * n, format};
}

bool near(double a, double b)
{
    return std::abs(a - b) <= 1e-12 * std::abs(b);
}

} // namespace

class TestDeviceCost : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void products();
    void precision();
    void bounds_data();
    void bounds();
    void tiles_data();
    void tiles();
    void tilesOfABatch();
    void attention();
    void scoresInMemory_data();
    void scoresInMemory();
    void fewRows_data();
    void fewRows();
    void rowsInMemory();
    void nothingTakesNoTime();
    void formula();
    void everyChip();
    void missingRate();
};

void TestDeviceCost::products()
{
    // One core of a v3: 64 of k fill the matrix unit; 2 8192^2 8256 / (61.5e12 x 0.9) + 0.5 us = 20.02 ms. Measured: 19.3 ms.
    const double v3Seconds = v3().time(product(8192, 8192, 8192)).seconds;
    QVERIFY(near(v3Seconds, 2.0 * 8192.0 * 8192.0 * 8256.0 / (61.5e12 * 0.9) + 5e-7));
    QVERIFY(std::abs(v3Seconds / 19.3e-3 - 1.0) < 0.05);
    QVERIFY(near(v5e().time(product(8192, 8192, 8192)).seconds, 2.0 * 8192.0 * 8192.0 * 8256.0 / (197e12 * 0.9) + 5e-7));
    // A100: 32 x 64 tiles of 256 x 128 on 108 multiprocessors: 18.96 waves, 19 run; 96 of k fill a tile; 0.87 x 0.86 of 312e12.
    const double waves = 2048.0 / (19.0 * 108.0);
    QVERIFY(near(
        a100().time(product(8192, 8192, 8192)).seconds, 2.0 * 8192.0 * 8192.0 * 8288.0 / (312e12 * 0.87 * 0.86 * waves) + 3e-6));
    // A batch is that many products.
    OpWork batch = product(512, 512, 512);
    batch.matmul->batch = 64;
    QVERIFY(near(v3().time(batch).computeSeconds, 64.0 * v3().time(product(512, 512, 512)).computeSeconds));
}

// FlashAttention 2 on an A100 in the catalogue's shares of 312 TFLOP/s, heads of 128, 2,048 keys: 2048 / (2048 + 192) of the share.
void TestDeviceCost::attention()
{
    OpWork work;
    work.format = MathFormat::Bf16;
    work.attention = AttentionWork{1e12, 128.0, 2048.0, false};
    const double forward = a100().time(work).computeSeconds;
    QVERIFY(near(forward, a100().fusedAttentionSeconds(1e12, 128.0, 2048.0, AttentionKernel::Flash2, false)));
    QVERIFY(forward > 1e12 / 312e12 && forward < 3e12 / 312e12);
    work.attention->headDim = 64.0; // the softmax of more rows for the same products
    QVERIFY(a100().time(work).computeSeconds > forward);
    work.attention->headDim = 128.0;
    work.attention->isBackward = true;
    QVERIFY(a100().time(work).computeSeconds > forward);
    QCOMPARE(a100().time(work).overheadSeconds, 3.0 * a100().kernelSeconds());
    work.format = MathFormat::Fp32;
    QVERIFY(a100().time(work).computeSeconds > 2.0 * forward);
    const std::string formula = a100().formula(work);
    QVERIFY2(formula.find("1.00 TFLOP of fused attention over 2048 keys") != std::string::npos, formula.c_str());
}

/// Bytes of the passes over 16 heads' 1,024 x 1,024 scores (16,777,216), and of q, k, v and the result, which heads bring to the front and back (64 of
/// each: 16 x 1024 x 64 x 16 = 16,777,216 bytes).
void TestDeviceCost::scoresInMemory_data()
{
    QTest::addColumn<AttentionKernel>("kernel");
    QTest::addColumn<bool>("dropout");
    QTest::addColumn<bool>("backward");
    QTest::addColumn<double>("bytesOfScore");
    QTest::addColumn<double>("kernels");
    QTest::newRow("softmax in one kernel") << AttentionKernel::FusedSoftmax << false << false << 4.0 << 2.0 + 1.0 + 4.0;
    QTest::newRow("its gradient") << AttentionKernel::FusedSoftmax << false << true << 6.0 << 4.0 + 1.0 + 4.0;
    QTest::newRow("with dropout") << AttentionKernel::FusedSoftmax << true << false << 9.0 << 2.0 + 2.0 + 4.0;
    QTest::newRow("every op a kernel") << AttentionKernel::Unfused << false << false << 24.0 << 2.0 + 6.0 + 4.0;
    QTest::newRow("every op a kernel, dropout, gradient") << AttentionKernel::Unfused << true << true << 29.0 << 4.0 + 6.0 + 4.0;
}

void TestDeviceCost::scoresInMemory()
{
    QFETCH(AttentionKernel, kernel);
    QFETCH(bool, dropout);
    QFETCH(bool, backward);
    QFETCH(double, bytesOfScore);
    QFETCH(double, kernels);
    const AttentionShape shape{16.0, 1024.0, 1024.0, 64.0, 64.0};
    const ScoredAttention made = a100().scoredAttention(shape, MathFormat::Bf16, kernel, dropout, backward);
    QVERIFY(near(made.bytes, 16'777'216.0 * (bytesOfScore + 1.0)));
    QCOMPARE(made.kernels, kernels);
    const double product = a100().productSeconds({16.0, 1024.0, 1024.0, 64.0}, MathFormat::Bf16);
    QVERIFY(made.productSeconds > (backward ? 3.0 : 1.5) * product);

    // An op of fused attention takes these kernels' time where the stack has no other: products and passes come after one another.
    if (dropout)
        return;
    CostOptions options;
    options.attention = kernel;
    const Machine machine = valueOf(buildMachine(catalogue(), {"a100"}));
    OpWork work;
    work.format = MathFormat::Bf16;
    work.attention = AttentionWork{1e9, 64.0, 512.5, backward, shape};
    const DeviceCost cost = valueOf(DeviceCost::create(machine, options));
    const ScoredAttention own = cost.scoredAttention(shape, MathFormat::Bf16, kernel, dropout, backward);
    QVERIFY(near(cost.time(work).seconds, own.productSeconds + cost.streamSeconds(own.bytes) + kernels * cost.kernelSeconds()));
    QVERIFY(cost.formula(work).find("1024 x 1024 scores in memory for each of 16 heads") != std::string::npos);
}

void TestDeviceCost::precision()
{
    OpWork work = product(8192, 8192, 8192, MathFormat::Fp32);
    const double once = v3().time(work).computeSeconds;
    work.precision = MatmulPrecision::High;
    QVERIFY(near(v3().time(work).computeSeconds, 3.0 * once));
    work.precision = MatmulPrecision::Highest;
    QVERIFY(near(v3().time(work).computeSeconds, 6.0 * once));
}

void TestDeviceCost::bounds_data()
{
    QTest::addColumn<qint64>("m");
    QTest::addColumn<qint64>("bytes");
    QTest::addColumn<QString>("bound");

    // v5e: 810 GB/s x 0.87 = 704.7 GB/s.
    QTest::newRow("large product") << qint64(8192) << qint64(1 << 20) << "compute";
    QTest::newRow("thin product") << qint64(8) << qint64(1 << 28) << "memory";
    QTest::newRow("element-wise") << qint64(0) << qint64(1 << 28) << "memory";
    QTest::newRow("small") << qint64(0) << qint64(1024) << "overhead";
    QTest::newRow("small product") << qint64(16) << qint64(1024) << "overhead";
}

void TestDeviceCost::bounds()
{
    QFETCH(qint64, m);
    QFETCH(qint64, bytes);
    QFETCH(QString, bound);

    OpWork work{{}, bytes / 2, bytes / 2};
    if (m > 0)
        work.matmul = MatmulDims{1.0, double(m), double(m), double(m)};
    work.format = MathFormat::Bf16;
    const OpTime time = v5e().time(work);
    const QString names[] = {"compute", "memory", "overhead"};
    QCOMPARE(names[static_cast<std::size_t>(time.bound)], bound);
    QVERIFY(near(time.memorySeconds, double(bytes) / (810e9 * 0.87)));
    QVERIFY(near(time.seconds, time.overheadSeconds + std::max(time.computeSeconds, time.memorySeconds)));
}

void TestDeviceCost::tiles_data()
{
    QTest::addColumn<QString>("chip");
    QTest::addColumn<qint64>("m");
    QTest::addColumn<qint64>("n");
    QTest::addColumn<qint64>("k");
    QTest::addColumn<double>("expected");

    const auto row = [](const char* name, const char* chip, qint64 m, qint64 n, qint64 k, double expected) {
        QTest::newRow(name) << chip << m << n << k << expected;
    };
    // TPU: the depth is padded to the unit and filled (64).
    row("v3 full", "v3", 8192, 8192, 8192, 8192.0 / 8256.0);
    row("v3 784 deep: 7 x 128 = 896", "v3", 8192, 8192, 784, 784.0 / 960.0);
    row("v3 10 wide, turned: 10 of 16 rows", "v3", 8192, 10, 8192, 10.0 / 16.0 * 8192.0 / 8256.0);
    row("v3 all small", "v3", 10, 10, 10, 10.0 / 16.0 * 10.0 / 128.0 * 10.0 / 192.0);
    row("v6e 256: half of the unit", "v6e", 8192, 8192, 128, 128.0 / 320.0);
    // A100: the best of six tiles, each filled (96 of k).
    row("a100 54 tiles of 256 x 128, k in two", "a100", 128 * 108, 128, 4096, 4096.0 / 4192.0);
    row("a100 218 tiles of 128 x 64 in three waves", "a100", 128 * 109, 128, 4096, 218.0 * 0.8 / 324.0 * 4096.0 / 4192.0);
    row("a100 one tile of 128 x 128, deep: k in 108", "a100", 128, 128, 512 * 200, 0.96 * 102400.0 / 102496.0);
    row("a100 four tiles of 64 x 64, shallow", "a100", 128, 128, 512, 4.0 * 0.62 / 108.0 * 512.0 / 608.0);
    row("a100, rows of not whole 16 bytes", "a100", 128 * 108, 128, 4092, 0.5 * 4092.0 / 4188.0);
    row("a100, rows of not whole 128 bytes", "a100", 128 * 108, 128, 4104, 0.88 * 4104.0 / 4200.0);
    row("empty", "a100", 0, 128, 128, 1.0);
}

void TestDeviceCost::tiles()
{
    QFETCH(QString, chip);
    QFETCH(qint64, m);
    QFETCH(qint64, n);
    QFETCH(qint64, k);
    QFETCH(double, expected);

    HardwareChoice choice{chip.toStdString()};
    if (chip.startsWith("v"))
        choice.topology = {2, 2};
    QVERIFY(near(cost(choice).shapeEfficiency({1.0, double(m), double(n), double(k)}, MathFormat::Bf16), expected));
}

/// The products of a batch fill the multiprocessors together.
void TestDeviceCost::tilesOfABatch()
{
    const DeviceCost a100 = cost(HardwareChoice{"a100"});
    constexpr double kFilled = 512.0 / 608.0;
    const auto share = [&](const MatmulDims& dims) { return a100.shapeEfficiency(dims, MathFormat::Bf16); };
    QVERIFY(near(share({108, 128, 128, 512}), 0.96 * kFilled)); // a tile of 128 x 128 each
    QVERIFY(near(share({109, 128, 128, 512}), 218.0 * 0.8 / 324.0 * kFilled)); // of 128 x 64, three waves
    QVERIFY(near(share({54, 256, 128, 512}), 0.96 * kFilled));
    QVERIFY(near(share({27, 128, 128, 512}), 0.62 * kFilled)); // four of 64 x 64 each
    QVERIFY(near(share({108, 128, 128, 508}), 0.12 * 0.96 * 508.0 / 604.0)); // rows of not whole 16 bytes
}

void TestDeviceCost::fewRows_data()
{
    QTest::addColumn<MatmulDims>("product");
    QTest::addColumn<bool>("isSum");
    QTest::newRow("a weighted sum of rows for each token") << MatmulDims{4096, 1, 3072, 8} << true;
    QTest::newRow("its weights' gradients") << MatmulDims{4096, 1, 8, 3072} << true;
    QTest::newRow("its rows' gradients") << MatmulDims{4096, 8, 3072, 1} << true;
    QTest::newRow("a vector by a matrix") << MatmulDims{1, 1, 8192, 8192} << true;
    QTest::newRow("many rows") << MatmulDims{64, 64, 64, 64} << false;
}

/// Products of few rows or columns take as long as their bytes: sums of products need no matrix units, which they would leave empty.
void TestDeviceCost::fewRows()
{
    QFETCH(MatmulDims, product);
    QFETCH(bool, isSum);
    for (const char* chip : {"a100", "h100", "b200", "mi300x"}) {
        const DeviceCost device = cost({chip});
        const double bytes = 2.0 * product.batch * (product.m * product.k + product.k * product.n + product.m * product.n);
        const double moving = device.streamSeconds(bytes);
        QVERIFY2(!isSum || device.productSeconds(product, MathFormat::Bf16) <= 1.0001 * moving, chip);
        QVERIFY2(isSum || device.shapeEfficiency(product, MathFormat::Bf16) < 0.5, chip);
    }
}

/// Rows of whole 16 bytes in memory let a GPU load directly; how many rows there are does not matter.
void TestDeviceCost::rowsInMemory()
{
    const DeviceCost h100 = cost({"h100"});
    const auto seconds = [&](double tokens, double row) {
        return h100.productSeconds({1.0, 4096.0, 14336.0, tokens, row}, MathFormat::Bf16);
    };
    QVERIFY(seconds(8194.0, 2048.0) < 1.02 * seconds(8192.0, 2048.0)); // a weight's gradient: tokens are summed over
    QVERIFY(seconds(8194.0, 0.0) > 2.0 * seconds(8192.0, 0.0)); // where they are the rows
    QCOMPARE(seconds(8192.0, 2048.0), seconds(8192.0, 0.0));
}

void TestDeviceCost::nothingTakesNoTime()
{
    QCOMPARE(v3().time({}).seconds, 0.0);
    QCOMPARE(v3().time({MatmulDims{1, 0, 5, 5}, 0, 0}).seconds, 0.0);
    // An empty product still writes its zeros.
    QVERIFY(v3().time({MatmulDims{1, 5, 5, 0}, 0, 50}).seconds > 0.0);
}

void TestDeviceCost::formula()
{
    const std::string text = v3().formula(product(8192, 8192, 8192));
    for (const char* piece :
        {"1.10 TFLOP", "61.5 TFLOP/s", "bf16 peak", "0.9 achievable", "384 MiB", "391.5 GB/s", "20.0 ms", "500 ns"})
        QVERIFY2(text.find(piece) != std::string::npos, (text + " lacks " + piece).c_str());
    QVERIFY(v3().formula({{}, 512, 512}).starts_with("1.00 KiB / 391.5 GB/s of HBM"));
}

void TestDeviceCost::everyChip()
{
    for (const Chip& chip : catalogue().chips()) {
        HardwareChoice choice{chip.key};
        choice.topology.assign(std::size_t(chip.interconnect.torusRank), 1);
        const Machine machine = valueOf(buildMachine(catalogue(), choice));
        const auto made = DeviceCost::create(machine, valueOf(costOptionsOf(machine.chip)));
        QVERIFY2(made, chip.key.c_str());
        const double seconds = made->time(product(8192, 8192, 8192)).seconds;
        QVERIFY2(seconds > 1e-4 && seconds < 0.2, chip.key.c_str());
    }
}

void TestDeviceCost::missingRate()
{
    Machine machine = valueOf(buildMachine(catalogue(), {"a100"}));
    machine.chip.peakFlopsPerSecond.clear();
    const auto made = DeviceCost::create(machine, {});
    QVERIFY(!made);
    QCOMPARE(made.error().front().id, std::string("MW1709"));
}

MESHWRIGHT_TEST(TestDeviceCost)

} // namespace tst_device_cost

#include "tst_device_cost.moc"
