// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/collective.h"
#include "sim/collective/placement.h"
#include "tests/test_class.h"

#include <algorithm>
#include <cmath>

namespace tst_collective {

using namespace meshwright;
using namespace meshwright::sim;

using Sizes = std::vector<std::int64_t>;

namespace {

const Catalogue& catalogue()
{
    static const Catalogue loaded = valueOf(Catalogue::load(MESHWRIGHT_SOURCE_DIR "/resources/hardware/catalogue.json"));
    return loaded;
}

constexpr CollectiveKind kAllKinds[] = {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
    CollectiveKind::AllToAll, CollectiveKind::Permute, CollectiveKind::Broadcast};

CollectiveEstimate estimate(const HardwareChoice& hardware, const char* mesh, std::vector<std::size_t> axes, CollectiveKind kind,
    std::int64_t bytes, PermutePattern pattern = PermutePattern::Shift)
{
    const auto machine = valueOf(buildMachine(catalogue(), hardware));
    const auto placement = valueOf(placeMesh(valueOf(parseMesh(mesh)), machine));
    AxisRefs refs;
    for (const std::size_t axis : axes)
        refs.push_back(wholeAxis(placement.mesh(), axis));
    return estimateCollective({kind, bytes, placement.groupAxes(refs), pattern});
}

const HardwareChoice kV5e{"v5e", {4, 2}};
const HardwareChoice kV5eRing{"v5e", {16, 16}};
const HardwareChoice kV4{"v4", {4, 4, 4}};
const HardwareChoice kV3{"v3", {2, 2}};
const HardwareChoice kA100{"a100", {}, 1, 8};
const HardwareChoice kH100{"h100", {}, 1, 8};
const HardwareChoice kH100s{"h100", {}, 4, 8};
const HardwareChoice kMi300x{"mi300x", {}, 1, 8};

constexpr std::int64_t kMiB = std::int64_t(1) << 20;

} // namespace

class TestCollective : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void values_data();
    void values();
    void formulaHasItsInputs();
    void groupOfOne();
    void neverUnderTheBound_data();
    void neverUnderTheBound();
    void boundIsMetOnEqualRings();
    void boundWhileOtherGroupsRest();
    void moreBytesTakeLonger();
    void inSwitchOnlyWhereItHelps();
    void scattered();
    void opposite();
};

void TestCollective::values_data()
{
    QTest::addColumn<double>("seconds");
    QTest::addColumn<double>("expected");
    QTest::addColumn<qint64>("wire");
    QTest::addColumn<qint64>("expectedWire");
    QTest::addColumn<QString>("algorithm");
    QTest::addColumn<QString>("expectedAlgorithm");

    const auto row
        = [](const char* name, const CollectiveEstimate& found, double seconds, std::int64_t wire, const char* algorithm) {
              QTest::newRow(name) << found.seconds << seconds << qint64(found.wireBytes) << qint64(wire)
                                  << QString::fromStdString(found.algorithm) << algorithm;
          };
    using enum CollectiveKind;
    const double b = 16.0 * kMiB;
    const std::int64_t bytes = 16 * kMiB;

    // v5e 4x2: x is a line of 4, y of 2; 45 GB/s, 1 us.
    row("v5e all-gather over data", estimate(kV5e, "data=4,model=2", {0}, AllGather, bytes), 3 * (1e-6 + b / (4 * 45e9)),
        bytes * 3 / 4, "line");
    row("v5e reduce-scatter over data", estimate(kV5e, "data=4,model=2", {0}, ReduceScatter, bytes), 3 * (1e-6 + b / (4 * 45e9)),
        bytes * 3 / 4, "line");
    row("v5e all-reduce over model", estimate(kV5e, "data=4,model=2", {1}, AllReduce, bytes), 2e-6 + b / 45e9, bytes,
        "reduce-scatter and all-gather, line");
    row("v5e all-to-all over data", estimate(kV5e, "data=4,model=2", {0}, AllToAll, bytes), 3e-6 + b / 45e9, bytes * 3 / 4,
        "dimension order, both directions");
    row("v5e shift over data", estimate(kV5e, "data=4,model=2", {0}, Permute, bytes), 3e-6 + b / 45e9, bytes,
        "shift to the neighbour");
    row("v5e any permute over data", estimate(kV5e, "data=4,model=2", {0}, Permute, bytes, PermutePattern::Any),
        3e-6 + 2 * b / 45e9, bytes, "half to half");
    row("v5e broadcast over data, 256 chunks", estimate(kV5e, "data=4,model=2", {0}, Broadcast, bytes),
        3e-6 + 258 * b / (256 * 45e9), bytes, "pipelined tree along the axes");
    // The published ideal of an all-gather of 33.5 MB over an axis of 4 without wraparound is 560 us.
    row("v5e all-gather, 560 us", estimate(kV5e, "data=4,model=2", {0}, AllGather, 33500000), 3e-6 + 0.75 * 33.5e6 / 45e9,
        25125000, "line");

    // v5e 16x16: rings.
    row("v5e ring all-gather", estimate(kV5eRing, "data=16,model=16", {1}, AllGather, bytes), 8e-6 + 15.0 / 32 * b / 45e9,
        bytes * 15 / 16, "ring, both directions");
    row("v5e ring shift", estimate(kV5eRing, "data=16,model=16", {1}, Permute, bytes), 1e-6 + b / 45e9, bytes,
        "shift to the neighbour");
    row("v5e both rings", estimate(kV5eRing, "a=256", {0}, AllReduce, bytes), 2 * (16e-6 + 255.0 / 256 * b / (4 * 45e9)),
        std::int64_t(std::ceil(2.0 * 255 / 256 * b)), "reduce-scatter and all-gather, all 2 axes at once");

    // v4 4x4x4: three rings, each floor(4/2) hops.
    row("v4 all-reduce", estimate(kV4, "a=64", {0}, AllReduce, bytes), 2 * (6e-6 + 63.0 / 64 * b / (6 * 45e9)),
        std::int64_t(std::ceil(2.0 * 63 / 64 * b)), "reduce-scatter and all-gather, all 3 axes at once");
    row("v4 all-to-all", estimate(kV4, "a=64", {0}, AllToAll, bytes), 6e-6 + b / (2 * 45e9), bytes * 63 / 64,
        "dimension order, both directions");

    // v3 2x2: over the pair of a chip first (6 x 82 GB/s), then the two lines at once with half of the data, 41 GB/s each.
    row("v3 all-gather", estimate(kV3, "a=8", {0}, AllGather, bytes),
        (1e-6 + b / 2 / 492e9) + (1e-6 + b / 4 / 2 / 41e9) + (1e-6 + b / 8 / 2 / 41e9), bytes * 7 / 8,
        "core, then 2 axes at once");

    // A100: 300 GB/s x .78 a port, 3.4 us.
    row("a100 all-reduce", estimate(kA100, "a=8", {0}, AllReduce, bytes), 14 * (3.4e-6 + b / (8 * 234e9)), bytes * 7 / 4, "ring");
    row("a100 all-gather", estimate(kA100, "a=8", {0}, AllGather, bytes), 7 * (3.4e-6 + b / (8 * 234e9)), bytes * 7 / 8, "ring");
    row("a100 all-to-all", estimate(kA100, "a=8", {0}, AllToAll, bytes), 7 * (3.4e-6 + b / (8 * 234e9)), bytes * 7 / 8,
        "pairwise");
    row("a100 permute", estimate(kA100, "a=8", {0}, Permute, bytes), 3.4e-6 + b / 234e9, bytes, "direct");
    row("h100 all-reduce", estimate(kH100, "a=8", {0}, AllReduce, bytes), 3.4e-6 + b / (450e9 * 0.81 * 5 / 7), bytes,
        "in-switch reduction");
    row("h100 all-reduce over 2", estimate(kH100, "a=4,b=2", {1}, AllReduce, bytes), 2 * (3.4e-6 + b / (2 * 450e9 * 0.81)), bytes,
        "ring");
    row("h100 all-gather", estimate(kH100, "a=8", {0}, AllGather, bytes), 7 * (3.4e-6 + b / (8 * 450e9 * 0.81)), bytes * 7 / 8,
        "ring");
    // 4 hosts of 8: 14 steps inside, then 6 between with an eighth.
    row("h100 hosts all-gather", estimate(kH100s, "a=32", {0}, AllGather, bytes),
        7 * (3.4e-6 + b / (8 * 364.5e9)) + 3 * (9.6e-6 + b / (32 * 50e9)), bytes * 31 / 32,
        "ring between hosts and in the host, one after the other");
    row("h100 hosts all-reduce", estimate(kH100s, "a=32", {0}, AllReduce, bytes),
        14 * (3.4e-6 + b / (8 * 364.5e9)) + 6 * (9.6e-6 + b / (32 * 50e9)), bytes * 31 / 16,
        "reduce-scatter in the host, ring between hosts, all-gather in the host");
    row("h100 rails only", estimate(kH100s, "data=4,model=8", {0}, AllGather, bytes), 3 * (9.6e-6 + b / (4 * 50e9)),
        bytes * 3 / 4, "ring");
    row("h100 hosts permute", estimate(kH100s, "a=32", {0}, Permute, bytes), 9.6e-6 + b / 50e9, bytes, "direct");
    row("mi300x all-reduce", estimate(kMi300x, "a=8", {0}, AllReduce, bytes), 2 * (3.4e-6 + b / (8 * 44.8e9)), bytes * 7 / 4,
        "direct");
    row("mi300x pair: one link of 64 GB/s x .7", estimate(kMi300x, "a=4,b=2", {1}, AllReduce, bytes),
        2 * (3.4e-6 + b / (2 * 44.8e9)), bytes, "direct");
}

void TestCollective::values()
{
    QFETCH(double, seconds);
    QFETCH(double, expected);
    QFETCH(qint64, wire);
    QFETCH(qint64, expectedWire);
    QFETCH(QString, algorithm);
    QFETCH(QString, expectedAlgorithm);

    QVERIFY2(std::abs(seconds - expected) <= 1e-12 * expected, qPrintable(QString("%1 %2").arg(seconds).arg(expected)));
    QCOMPARE(algorithm, expectedAlgorithm);
    QCOMPARE(wire, expectedWire);
}

void TestCollective::formulaHasItsInputs()
{
    QCOMPARE(estimate(kV5e, "data=4,model=2", {0}, CollectiveKind::AllReduce, 16 * kMiB).formula,
        std::string("2 x (k-1)(alpha + B/(k w)), B=16.0 MiB; x: k=4 (line), w=45 GB/s, alpha=1.00 µs"));
    QCOMPARE(estimate(kA100, "a=8", {0}, CollectiveKind::AllReduce, 16 * kMiB).formula,
        std::string("2 (n-1)(alpha + B/(n w)), n=8, B=16.0 MiB, w=234 GB/s, alpha=3.40 µs"));
}

void TestCollective::groupOfOne()
{
    for (const CollectiveKind kind : kAllKinds) {
        const auto found = estimateCollective({kind, kMiB, {}});
        QCOMPARE(found.seconds, 0.0);
        QCOMPARE(found.wireBytes, 0);
        QCOMPARE(found.algorithm, std::string("none"));
        QCOMPARE(estimate(kV5e, "data=8,model=1", {1}, kind, kMiB).seconds, 0.0);
    }
}

void TestCollective::neverUnderTheBound_data()
{
    QTest::addColumn<QString>("chip");
    QTest::addColumn<Sizes>("size");
    QTest::addColumn<QStringList>("meshes");

    QTest::newRow("v5e 4x2") << "v5e" << Sizes{4, 2} << QStringList{"a=8", "a=4,b=2", "a=2,b=4", "a=2,b=2,c=2", "a=6"};
    QTest::newRow("v5e 16x16") << "v5e" << Sizes{16, 16}
                               << QStringList{"a=256", "a=16,b=16", "a=4,b=64", "a=2,b=8,c=16", "a=32,b=4,c=2"};
    QTest::newRow("v5e 3x5") << "v5e" << Sizes{3, 5} << QStringList{"a=15", "a=3,b=5"};
    QTest::newRow("v2 16x16") << "v2" << Sizes{16, 16} << QStringList{"a=512", "a=8,b=64"};
    QTest::newRow("v3 4x2") << "v3" << Sizes{4, 2} << QStringList{"a=16", "a=4,b=4", "a=8,b=2", "a=2,b=8"};
    QTest::newRow("v4 4x4x4") << "v4" << Sizes{4, 4, 4}
                              << QStringList{"a=64", "a=2,b=32", "a=8,b=8", "a=4,b=4,c=4", "a=2,b=2,c=16"};
    QTest::newRow("v4 4x8x12") << "v4" << Sizes{4, 8, 12} << QStringList{"a=384", "a=6,b=64", "a=32,b=12", "a=3,b=128"};
    QTest::newRow("v5p 2x2x1") << "v5p" << Sizes{2, 2, 1} << QStringList{"a=4", "a=2,b=2"};
    QTest::newRow("v7x 2x2x4") << "v7x" << Sizes{2, 2, 4} << QStringList{"a=32", "a=4,b=8", "a=16,b=2", "a=2,b=4,c=4"};
    QTest::newRow("a100 8") << "a100" << Sizes{1, 8} << QStringList{"a=8", "a=4,b=2", "a=7"};
    QTest::newRow("h100 4x8") << "h100" << Sizes{4, 8} << QStringList{"a=32", "a=4,b=8", "a=8,b=4", "a=2,b=16", "a=24"};
    QTest::newRow("h100 512x8") << "h100" << Sizes{512, 8} << QStringList{"a=4096", "a=512,b=8", "a=64,b=64"};
    QTest::newRow("gb200 4x72") << "gb200" << Sizes{4, 72} << QStringList{"a=288", "a=4,b=72", "a=8,b=36"};
    QTest::newRow("gh200 8x1") << "gh200" << Sizes{8, 1} << QStringList{"a=8", "a=2,b=4"};
    QTest::newRow("mi300x 2x8") << "mi300x" << Sizes{2, 8} << QStringList{"a=16", "a=4,b=4", "a=8,b=2"};
    QTest::newRow("a100-pcie 2x4") << "a100-pcie" << Sizes{2, 4} << QStringList{"a=8", "a=2,b=4"};
    QTest::newRow("mi250x 2x4") << "mi250x" << Sizes{2, 4} << QStringList{"a=16", "a=2,b=8"};
}

void TestCollective::neverUnderTheBound()
{
    QFETCH(QString, chip);
    QFETCH(Sizes, size);
    QFETCH(QStringList, meshes);

    HardwareChoice choice{chip.toStdString()};
    if (valueOf(catalogue().find(choice.chip)).chip->interconnect.kind == InterconnectKind::Torus) {
        choice.topology = size;
    } else {
        choice.hosts = size[0];
        choice.perHost = size[1];
    }
    const auto machine = buildMachine(catalogue(), choice);
    QVERIFY2(machine, machine ? "" : describe(machine.error()).c_str());
    for (const QString& mesh : meshes) {
        const auto placement = valueOf(placeMesh(valueOf(parseMesh(mesh.toStdString())), *machine));
        const std::size_t count = placement.mesh().axes().size();
        for (std::size_t subset = 1; subset < (std::size_t(1) << count); ++subset) {
            AxisRefs axes;
            for (std::size_t axis = 0; axis < count; ++axis) {
                if (subset >> axis & 1)
                    axes.push_back(wholeAxis(placement.mesh(), axis));
            }
            const auto group = placement.groupAxes(axes);
            for (const CollectiveKind kind : kAllKinds) {
                for (const PermutePattern pattern : {PermutePattern::Shift, PermutePattern::Any}) {
                    for (const std::int64_t bytes :
                        {std::int64_t(0), std::int64_t(1), std::int64_t(4096), kMiB, std::int64_t(1) << 33}) {
                        const auto found = estimateCollective({kind, bytes, group, pattern});
                        QVERIFY(std::isfinite(found.seconds) && found.seconds > 0.0);
                        QVERIFY2(
                            found.lowerBoundSeconds > 0.0 && found.lowerBoundSeconds <= found.seconds, found.formula.c_str());
                        QVERIFY(found.wireBytes >= 0 && found.wireBytes <= 2 * bytes + 1);
                        QVERIFY(bytes == 0 || found.wireBytes > 0);
                        QVERIFY(!found.algorithm.empty() && !found.formula.empty());
                    }
                }
            }
        }
    }
}

void TestCollective::boundIsMetOnEqualRings()
{
    const std::int64_t large = std::int64_t(1) << 40; // latency is nothing
    for (const CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::AllToAll}) {
        const auto found = estimate(kV4, "a=64", {0}, kind, large);
        QVERIFY2(found.seconds < found.lowerBoundSeconds * 1.0001, collectiveKindName(kind));
    }
}

/// Pairs two places apart share the links between with other pairs, which rest where they are other stages of a pipeline.
void TestCollective::boundWhileOtherGroupsRest()
{
    const auto over = [](std::size_t axis) { return estimate(kV5e, "a=2,b=2,c=2", {axis}, CollectiveKind::AllToAll, 64 * kMiB); };
    const auto isQuicker = [](const CollectiveEstimate& a, const CollectiveEstimate& b) { return a.seconds < b.seconds; };
    const auto [near, far] = std::minmax({over(0), over(1), over(2)}, isQuicker);
    QVERIFY(far.seconds > 1.9 * near.seconds);
    QVERIFY(far.lowerBoundSeconds <= near.seconds);
}

void TestCollective::moreBytesTakeLonger()
{
    for (const HardwareChoice& choice : {kV5e, kV3, kA100, kH100, kMi300x}) {
        for (const CollectiveKind kind : kAllKinds) {
            double before = 0.0;
            for (std::int64_t bytes = 1024; bytes <= (std::int64_t(1) << 32); bytes *= 4) {
                const double seconds = estimate(choice, "a=8", {0}, kind, bytes).seconds;
                QVERIFY2(seconds >= before, collectiveKindName(kind));
                before = seconds;
            }
        }
    }
}

void TestCollective::inSwitchOnlyWhereItHelps()
{
    const auto algorithm = [](const HardwareChoice& choice, const char* mesh) {
        return estimate(choice, mesh, {0}, CollectiveKind::AllReduce, 1024 * kMiB).algorithm;
    };
    QCOMPARE(algorithm(kH100, "a=8"), std::string("in-switch reduction"));
    QCOMPARE(algorithm(kH100, "a=6"), std::string("in-switch reduction"));
    QCOMPARE(algorithm(kH100, "a=3"), std::string("ring")); // 4/3 against 7/5
    QCOMPARE(algorithm(kA100, "a=8"), std::string("ring"));
    // On 8 GPUs 1.25 times a ring's speed.
    const double ring = 14 * (3.4e-6 + 1024.0 * kMiB / (8 * 364.5e9));
    const double switched = estimate(kH100, "a=8", {0}, CollectiveKind::AllReduce, 1024 * kMiB).seconds;
    QVERIFY(ring / switched > 1.24 && ring / switched < 1.27);
    // Few bytes over many hosts: a tree instead of 1022 steps.
    const auto tree = estimate({"h100", {}, 512, 8}, "data=512,model=8", {0}, CollectiveKind::AllReduce, 4096);
    QCOMPARE(tree.algorithm, std::string("double binary tree"));
    QVERIFY(tree.seconds < 400e-6);
}

void TestCollective::scattered()
{
    GroupAxis axis;
    axis.kind = GroupKind::Scattered;
    axis.size = 4;
    axis.link = {10e9, 3e-6, LinkKind::Ici};
    axis.enteringBytesPerSecond = 180e9;
    axis.name = "scattered";
    const auto seconds = [&](CollectiveKind kind, PermutePattern pattern = PermutePattern::Shift) {
        const auto found = estimateCollective({kind, 1000000, {axis}, pattern});
        return found.lowerBoundSeconds <= found.seconds ? found.seconds : -1.0;
    };
    const auto near = [](double a, double b) { return std::abs(a - b) < 1e-15; };
    QVERIFY(near(seconds(CollectiveKind::AllGather), 3 * (3e-6 + 25e-6)));
    QVERIFY(near(seconds(CollectiveKind::AllReduce), 6 * (3e-6 + 25e-6)));
    QVERIFY(near(seconds(CollectiveKind::AllToAll), 9e-6 + 150e-6));
    QVERIFY(near(seconds(CollectiveKind::Permute), 103e-6));
    QVERIFY(near(seconds(CollectiveKind::Permute, PermutePattern::Any), 206e-6));
}

void TestCollective::opposite()
{
    // a=2 of a split ring of 4 has both ways round: the bandwidth of one link, two hops.
    const auto found = estimate(kV4, "a=2,b=32", {0}, CollectiveKind::AllGather, 16 * kMiB);
    QVERIFY(std::abs(found.seconds - (2e-6 + 8.0 * kMiB / 45e9)) < 1e-15);
}

MESHWRIGHT_TEST(TestCollective)

} // namespace tst_collective

#include "tst_collective.moc"
