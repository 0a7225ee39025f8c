// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/cost/op_cost.h"
#include "tests/test_class.h"

#include <cmath>

namespace tst_op_cost {

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
    return valueOf(DeviceCost::create(valueOf(buildMachine(catalogue(), choice))));
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
    return {MatmulDims{1, m, n, k}, bytes * (m * k + k * n), bytes * m * n, format};
}

bool near(double a, double b)
{
    return std::abs(a - b) <= 1e-12 * std::abs(b);
}

} // namespace

class TestOpCost : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void products();
    void precision();
    void bounds_data();
    void bounds();
    void tiles_data();
    void tiles();
    void tilesOfABatch();
    void nothingTakesNoTime();
    void formula();
    void everyChip();
    void missingRate();
};

void TestOpCost::products()
{
    // One core of a v3: 2 8192^3 / (61.5e12 x 0.9) + 1 us = 19.866 ms. Measured: 19.3 ms.
    const double v3Seconds = v3().time(product(8192, 8192, 8192)).seconds;
    QVERIFY(near(v3Seconds, 2.0 * std::pow(8192.0, 3) / (61.5e12 * 0.9) + 1e-6));
    QVERIFY(std::abs(v3Seconds / 19.3e-3 - 1.0) < 0.05);
    // v5e: 1.0995e12 / (197e12 x 0.9) + 1 us.
    QVERIFY(near(v5e().time(product(8192, 8192, 8192)).seconds, 2.0 * std::pow(8192.0, 3) / (197e12 * 0.9) + 1e-6));
    // A100: 64 x 64 tiles of 128 on 108 multiprocessors: 37.93 waves, 38 run; 0.87 of 312e12.
    const double waves = 4096.0 / (38.0 * 108.0);
    QVERIFY(near(a100().time(product(8192, 8192, 8192)).seconds, 2.0 * std::pow(8192.0, 3) / (312e12 * 0.87 * waves) + 4e-6));
    // A batch is that many products.
    OpWork batch = product(512, 512, 512);
    batch.matmul->batch = 64;
    QVERIFY(near(v3().time(batch).computeSeconds, 64.0 * v3().time(product(512, 512, 512)).computeSeconds));
}

void TestOpCost::precision()
{
    OpWork work = product(8192, 8192, 8192, MathFormat::Fp32);
    const double once = v3().time(work).computeSeconds;
    work.precision = MatmulPrecision::High;
    QVERIFY(near(v3().time(work).computeSeconds, 3.0 * once));
    work.precision = MatmulPrecision::Highest;
    QVERIFY(near(v3().time(work).computeSeconds, 6.0 * once));
}

void TestOpCost::bounds_data()
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

void TestOpCost::bounds()
{
    QFETCH(qint64, m);
    QFETCH(qint64, bytes);
    QFETCH(QString, bound);

    OpWork work{{}, bytes / 2, bytes / 2};
    if (m > 0)
        work.matmul = MatmulDims{1, m, m, m};
    work.format = MathFormat::Bf16;
    const OpTime time = v5e().time(work);
    const QString names[] = {"compute", "memory", "overhead"};
    QCOMPARE(names[static_cast<std::size_t>(time.bound)], bound);
    QVERIFY(near(time.memorySeconds, double(bytes) / (810e9 * 0.87)));
    QVERIFY(near(time.seconds, time.overheadSeconds + std::max(time.computeSeconds, time.memorySeconds)));
}

void TestOpCost::tiles_data()
{
    QTest::addColumn<QString>("chip");
    QTest::addColumn<qint64>("m");
    QTest::addColumn<qint64>("n");
    QTest::addColumn<qint64>("k");
    QTest::addColumn<double>("expected");

    const auto row = [](const char* name, const char* chip, qint64 m, qint64 n, qint64 k, double expected) {
        QTest::newRow(name) << chip << m << n << k << expected;
    };
    row("v3 full", "v3", 8192, 8192, 8192, 1.0);
    row("v3 784 deep: 7 x 128 = 896", "v3", 8192, 8192, 784, 784.0 / 896.0);
    row("v3 10 wide, turned: 10 of 16 rows", "v3", 8192, 10, 8192, 10.0 / 16.0);
    row("v3 all small", "v3", 10, 10, 10, 10.0 / 16.0 * 10.0 / 128.0 * 10.0 / 128.0);
    row("v6e 256: half of the unit", "v6e", 8192, 8192, 128, 0.5);
    row("a100 one wave of 108", "a100", 128 * 108, 128, 4096, 1.0);
    row("a100 109 tiles take two waves", "a100", 128 * 109, 128, 4096, 109.0 / 216.0);
    row("a100 few tiles, deep: k split", "a100", 128, 128, 512 * 200, 1.0);
    row("a100 one tile, shallow", "a100", 128, 128, 512, 1.0 / 108.0);
    row("b200, multiprocessors unknown", "b200", 8192, 8191, 8192, 8191.0 / 8192.0);
    row("empty", "a100", 0, 128, 128, 1.0);
}

void TestOpCost::tiles()
{
    QFETCH(QString, chip);
    QFETCH(qint64, m);
    QFETCH(qint64, n);
    QFETCH(qint64, k);
    QFETCH(double, expected);

    HardwareChoice choice{chip.toStdString()};
    if (chip.startsWith("v"))
        choice.topology = {2, 2};
    QVERIFY(near(cost(choice).tileEfficiency({1, m, n, k}), expected));
}

/// The products of a batch fill the multiprocessors together.
void TestOpCost::tilesOfABatch()
{
    const DeviceCost a100 = cost(HardwareChoice{"a100"});
    QVERIFY(near(a100.tileEfficiency({108, 128, 128, 512}), 1.0));
    QVERIFY(near(a100.tileEfficiency({109, 128, 128, 512}), 109.0 / 216.0));
    QVERIFY(near(a100.tileEfficiency({54, 256, 128, 512}), 1.0));
    QVERIFY(near(a100.tileEfficiency({27, 128, 128, 512}), 27.0 / 108.0));
}

void TestOpCost::nothingTakesNoTime()
{
    QCOMPARE(v3().time({}).seconds, 0.0);
    QCOMPARE(v3().time({MatmulDims{1, 0, 5, 5}, 0, 0}).seconds, 0.0);
    // An empty product still writes its zeros.
    QVERIFY(v3().time({MatmulDims{1, 5, 5, 0}, 0, 50}).seconds > 0.0);
}

void TestOpCost::formula()
{
    const std::string text = v3().formula(product(8192, 8192, 8192));
    for (const char* piece :
        {"1.10 TFLOP", "61.5 TFLOP/s", "bf16 peak", "0.9 achievable", "384 MiB", "391.5 GB/s", "19.9 ms", "1.00 µs"})
        QVERIFY2(text.find(piece) != std::string::npos, (text + " lacks " + piece).c_str());
    QVERIFY(v3().formula({{}, 512, 512}).starts_with("1.00 KiB / 391.5 GB/s of HBM"));
}

void TestOpCost::everyChip()
{
    for (const Chip& chip : catalogue().chips()) {
        HardwareChoice choice{chip.key};
        choice.topology.assign(std::size_t(chip.interconnect.torusRank), 1);
        const auto made = DeviceCost::create(valueOf(buildMachine(catalogue(), choice)));
        QVERIFY2(made, chip.key.c_str());
        const double seconds = made->time(product(8192, 8192, 8192)).seconds;
        QVERIFY2(seconds > 1e-4 && seconds < 0.2, chip.key.c_str());
    }
}

void TestOpCost::missingRate()
{
    Machine machine = valueOf(buildMachine(catalogue(), {"a100"}));
    machine.chip.peakFlopsPerSecond.clear();
    const auto made = DeviceCost::create(machine);
    QVERIFY(!made);
    QCOMPARE(made.error().front().id, std::string("MW1709"));
}

MESHWRIGHT_TEST(TestOpCost)

} // namespace tst_op_cost

#include "tst_op_cost.moc"
