// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/hardware_name.h"
#include "sim/hardware/machine.h"
#include "tests/test_class.h"

namespace tst_machine {

using namespace meshwright;
using namespace meshwright::sim;

using Sizes = std::vector<std::int64_t>;

namespace {

const Catalogue& catalogue()
{
    static const Catalogue loaded = valueOf(Catalogue::load(MESHWRIGHT_SOURCE_DIR "/resources/hardware/catalogue.json"));
    return loaded;
}

} // namespace

class TestMachine : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void wrapRules_data();
    void wrapRules();
    void corePairs();
    void oneCore();
    void gpus();
    void slices();
    void badSlices_data();
    void badSlices();
    void defaults();
    void assumptions();
    void badChoices_data();
    void badChoices();
    void allProblems();
    void missingFigure();
    void names_data();
    void names();
    void instances_data();
    void instances();
    void shapes_data();
    void shapes();
    void nameProblems_data();
    void nameProblems();
};

/// The network is the machine's, the rest the chip's; the fast links end at the machine, but where it is part of a rack.
void TestMachine::instances_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<qint64>("hosts");
    QTest::addColumn<qint64>("perHost");
    QTest::addColumn<double>("networkBytesPerSecond"); // of a GPU
    QTest::newRow("EFA v2: 32 x 100 Gb/s for 8") << "p5.48xlarge x 4" << qint64{4} << qint64{8} << 50e9;
    QTest::newRow("EFA v1: 4 x 100 Gb/s for 8") << "p4d x 2" << qint64{2} << qint64{8} << 6.25e9;
    QTest::newRow("TCPX: 4 x 200 Gb/s for 8") << "a3-high x 2" << qint64{2} << qint64{8} << 12.5e9;
    QTest::newRow("TCPXO: 8 x 200 Gb/s for 8") << "a3-mega x 2" << qint64{2} << qint64{8} << 25e9;
    QTest::newRow("PCIe: all GPUs of the instance") << "g6e.48xlarge x 2" << qint64{2} << qint64{8} << 6.25e9;
    QTest::newRow("hosts of four") << "16 nodes of 4 H100" << qint64{16} << qint64{4} << 50e9;
    QTest::newRow("four instances of one rack") << "ND GB200 v6 x 4" << qint64{1} << qint64{16} << 1.0;
    QTest::newRow("36 instances of two racks") << "ND GB200 v6 x 36" << qint64{2} << qint64{72} << 50e9;
}

void TestMachine::instances()
{
    QFETCH(QString, name);
    QFETCH(qint64, hosts);
    QFETCH(qint64, perHost);
    QFETCH(double, networkBytesPerSecond);
    const auto machine = buildMachine(catalogue(), {name.toStdString()});
    QVERIFY2(machine, machine ? "" : describe(machine.error()).c_str());
    const auto& axes = machine->topology.axes();
    QCOMPARE(qint64{axes[0].length}, hosts);
    QCOMPARE(qint64{axes[1].length}, perHost);
    QCOMPARE(axes[0].link.bytesPerSecond, networkBytesPerSecond);
    const Chip& chip = *valueOf(catalogue().find(machine->chip.key)).chip;
    QVERIFY(chip.instance.empty());
    QCOMPARE(machine->chip.hbmBytes->value, chip.hbmBytes->value);
    QCOMPARE(machine->chip.peakFlopsPerSecond.at(MathFormat::Bf16).value, chip.peakFlopsPerSecond.at(MathFormat::Bf16).value);
    // What a study says of it means the same.
    const auto again = buildMachine(catalogue(), {machine->chip.catalogueName(), {}, hosts, perHost});
    QVERIFY(again && again->text() == machine->text());
}

void TestMachine::nameProblems_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("words"); // of the message or the fix
    QTest::newRow("misspelt instance") << "p5.84xlarge x 4"
                                       << "MW1701"
                                       << "did you mean \"p5.48xlarge x 4\"?";
    QTest::newRow("misspelt slices") << "v5ee-256x2"
                                     << "MW1701"
                                     << "did you mean \"v5e-256 x 2\"?";
    QTest::newRow("misspelt rack") << "GB200 NVL27"
                                   << "MW1701"
                                   << "did you mean \"gb200 nvl72\"?";
    QTest::newRow("a word too many") << "64 H100 bananas"
                                     << "MW1701"
                                     << "\"bananas\" in \"64 H100 bananas\" says nothing about a number of H100 SXM 80GB";
    QTest::newRow("a word beside several") << "DGX A100 SuperPOD"
                                           << "MW1701"
                                           << "\"SuperPOD\" in \"DGX A100 SuperPOD\"";
    QTest::newRow("hosts that are not full") << "12 H100"
                                             << "MW1914"
                                             << "name 16, or the hosts: 2 nodes of 6 H100";
    QTest::newRow("beyond the largest slice") << "v5e-257"
                                              << "MW1914"
                                              << "the largest one has 256; several are joined as in v5e-256x2";
    QTest::newRow("no chip") << "8 gpus"
                             << "MW1701"
                             << "\"8 gpus\" names no chip";
    QTest::newRow("a pod of GPUs") << "2 H100 pods"
                                   << "MW1914"
                                   << "a pod of H100 SXM 80GB has no fixed size";
    QTest::newRow("a memory that the chip has not") << "8 x H200 80GB"
                                                    << "MW1701"
                                                    << "\"80GB\" in";
    QTest::newRow("hosts that there are not") << "2 nodes of 16 H100"
                                              << "MW1708"
                                              << "has hosts of 16, but 8 of H100 SXM 80GB share the fast links";
    QTest::newRow("a part of a host") << "p5.48xlargex1.5"
                                      << "MW1914"
                                      << "\"1.5\" is not a number of chips";
    QTest::newRow("hosts beside a count") << "h100xx8"
                                          << "MW1701"
                                          << "unknown chip";
}

void TestMachine::nameProblems()
{
    QFETCH(QString, name);
    QFETCH(QString, id);
    QFETCH(QString, words);
    const auto choice = namedChoice(catalogue(), {name.toStdString(), {}, 0, 0});
    QVERIFY(!choice);
    const Problem& problem = choice.error().front();
    QCOMPARE(QString::fromStdString(problem.id), id);
    const QString said = QString::fromStdString(problem.message + " / " + problem.fix);
    QVERIFY2(said.contains(words), qPrintable(said));
}

void TestMachine::names_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<qint64>("devices");
    QTest::newRow("as the catalogue has it") << "h100x64" << qint64{64};
    QTest::newRow("count first") << "512xH100" << qint64{512};
    QTest::newRow("with spaces") << " 64 x A100-40GB " << qint64{64};
    QTest::newRow("count last, with spaces") << "h100 x 16" << qint64{16};
    QTest::newRow("a count behind a size of memory") << "a100-80x4" << qint64{4};
    QTest::newRow("cores") << "v4-16" << qint64{8};
    QTest::newRow("slices") << "2 slices of v5e-256" << qint64{512};
    QTest::newRow("instances of a cloud") << "p5.48xlarge x 64" << qint64{512};
    QTest::newRow("an instance alone is one") << "p5.48xlarge" << qint64{8};
    QTest::newRow("instances, count first") << "16 x a3-highgpu-8g" << qint64{128};
    QTest::newRow("spaces in the name") << "ND H100 v5 x 8" << qint64{64};
    QTest::newRow("several") << "64 H100s" << qint64{64};
    QTest::newRow("hosts") << "8 nodes of 8 H100" << qint64{64};
    QTest::newRow("hosts times chips") << "8x8 H100" << qint64{64};
    QTest::newRow("a colon") << "H100:64" << qint64{64};
    QTest::newRow("a space for a dash") << "64 x H100 SXM" << qint64{64};
    QTest::newRow("memory in GB") << "h100-80gb x 16" << qint64{16};
    QTest::newRow("memory behind a space") << "A100 40GB x 64" << qint64{64};
    QTest::newRow("instances without an x") << "8 DGX H100" << qint64{64};
    QTest::newRow("k") << "1k H100" << qint64{1024};
    QTest::newRow("thousands apart") << "1,024 H100" << qint64{1024};
    QTest::newRow("a chip and a number") << "v5e 256" << qint64{256};
    QTest::newRow("its maker") << "TPU v5e-256" << qint64{256};
    QTest::newRow("a chip of numbers") << "4 x RTX 5090" << qint64{4};
    QTest::newRow("a driver's name") << "8x NVIDIA H100 80GB HBM3" << qint64{8};
    QTest::newRow("a driver's name with its socket") << "16 x NVIDIA A100-SXM4-40GB" << qint64{16};
    QTest::newRow("a driver's name of AMD") << "8x AMD Instinct MI300X OAM" << qint64{8};
    QTest::newRow("a driver's name of another time") << "Tesla V100-SXM2-32GB x 8" << qint64{8};
    QTest::newRow("a card's name") << "2 x NVIDIA GeForce RTX 4090" << qint64{2};
    QTest::newRow("a resource of Slurm") << "gpu:h100:8" << qint64{8};
    QTest::newRow("a board of 8") << "HGX H200 x 2" << qint64{16};
    QTest::newRow("the socket's number") << "H100 SXM5 x 8" << qint64{8};
    QTest::newRow("racks") << "GB200 NVL72 x 4" << qint64{288};
    QTest::newRow("racks, count first") << "4 x GB200 NVL72" << qint64{288};
    QTest::newRow("part of a rack") << "a4x-highgpu-4g x 9" << qint64{36};
    QTest::newRow("an instance that the catalogue lacks") << "p9.48xlarge x 4" << qint64{0};
    QTest::newRow("no instances") << "p5.48xlarge x 0" << qint64{0};
    QTest::newRow("more instances than can be counted") << "p5.48xlarge x 9223372036854775807" << qint64{0};
    QTest::newRow("a topology is no name") << "4x4" << qint64{0};
    QTest::newRow("none") << "" << qint64{0};
    QTest::newRow("instances in words") << "4 nodes of DGX H100" << qint64{32};
    QTest::newRow("a number as a word") << "one DGX A100" << qint64{8};
    QTest::newRow("a chip that is a number") << "2x4090" << qint64{2};
    QTest::newRow("whole hosts of a chip") << "4 H100 nodes" << qint64{32};
    QTest::newRow("hosts and an x") << "4 nodes x 8 H100" << qint64{32};
    QTest::newRow("hosts behind") << "8 H100 per node, 4 nodes" << qint64{32};
    QTest::newRow("what is counted is said") << "64 H100 GPUs" << qint64{64};
    QTest::newRow("several") << "8 H100s" << qint64{8};
    QTest::newRow("a star") << "64*h100" << qint64{64};
    QTest::newRow("the sign of multiplication") << QString::fromUtf8("H100\xc3\x97"
                                                                     "64")
                                                << qint64{64};
    QTest::newRow("brackets") << "H100 (64)" << qint64{64};
    QTest::newRow("a machine type of a TPU") << "ct5lp-hightpu-4t" << qint64{4};
    QTest::newRow("machine types that make a slice") << "ct5lp-hightpu-4t x 16" << qint64{64};
    QTest::newRow("Azure's name") << "Standard_ND96isr_H100_v5" << qint64{8};
    QTest::newRow("16 GPUs of one machine") << "a2-megagpu-16g" << qint64{16};
    QTest::newRow("a word that counts nothing") << "64 H100 bananas" << qint64{0};
    QTest::newRow("a pod") << "one v5e pod" << qint64{256};
    QTest::newRow("pods") << "2 v6e pods" << qint64{512};
    QTest::newRow("a pod of another size") << "v5p pod" << qint64{8960};
    QTest::newRow("a part of a pod") << "a v5e-64 pod slice" << qint64{64};
    QTest::newRow("pods of GPUs") << "2 H100 pods" << qint64{0};
    QTest::newRow("racks in words") << "two GB200 racks" << qint64{144};
    QTest::newRow("racks of an instance") << "one rack of GB200 NVL72" << qint64{72};
    QTest::newRow("racks of hosts") << "one rack of H100" << qint64{0};
    QTest::newRow("a driver's name alone is one host") << "NVIDIA H100 80GB HBM3" << qint64{8};
    QTest::newRow("nothing behind the x") << "H100 x" << qint64{8};
    QTest::newRow("memory before the socket") << "64x A100-80GB-SXM" << qint64{64};
    QTest::newRow("memory that the catalogue's name lacks") << "8 x H200 141GB" << qint64{8};
    QTest::newRow("square brackets") << "h100[8]" << qint64{8};
    QTest::newRow("a power of ten") << "1e3 H100" << qint64{1000};
    QTest::newRow("what each host has") << "4 nodes, 8 H100 each" << qint64{32};
    QTest::newRow("an odd shape of GPUs") << "4x8 x H100" << qint64{32};
    QTest::newRow("too large a host") << "2 nodes of 16 H100" << qint64{0};
}

void TestMachine::names()
{
    QFETCH(QString, name);
    QFETCH(qint64, devices);
    const auto choice = namedChoice(catalogue(), {name.toStdString(), {}, 0, 0});
    const auto machine = choice ? buildMachine(catalogue(), *choice) : Result<Machine>(choice.error());
    QCOMPARE(machine ? qint64{machine->deviceCount()} : qint64{0}, devices);
}

/// Two numbers behind a dash are the shape of a slice where they do not fall, and else slices of so many chips.
void TestMachine::shapes_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("machine");
    QTest::newRow("behind a space") << "v5e 4x2"
                                    << "TPU v5e, 4x2 chips, no wraparound";
    QTest::newRow("behind a dash") << "v5e-8x16"
                                   << "TPU v5e, 8x16 chips, wraparound on y";
    QTest::newRow("three sizes") << "v4-4x4x8"
                                 << "TPU v4 (v4p), 4x4x8 chips, wraparound on x, y, z";
    QTest::newRow("before the chip") << "4x4x4 v5p"
                                     << "TPU v5p, 4x4x4 chips, wraparound on x, y, z";
    QTest::newRow("slices of a shape") << "2 x v6e 16x16"
                                       << "TPU v6e (Trillium), 2 slices of 16x16 chips, wraparound on x, y";
    QTest::newRow("slices of a shape, in words") << "4 slices of v5p 4x4x4"
                                                 << "TPU v5p, 4 slices of 4x4x4 chips, wraparound on x, y, z";
    QTest::newRow("slices of a number") << "v5e-16x2"
                                        << "TPU v5e, 2 slices of 4x4 chips, no wraparound";
    QTest::newRow("slices of cores") << "v3-32x2"
                                     << "TPU v3, 2 slices of 4x4 chips, no wraparound, 2 devices a chip";
    QTest::newRow("slices of a chip of three axes") << "v5p-8x16"
                                                    << "TPU v5p, 16 slices of 2x2x1 chips, no wraparound";
}

void TestMachine::shapes()
{
    QFETCH(QString, name);
    QFETCH(QString, machine);
    const auto built = buildMachine(catalogue(), {name.toStdString()});
    QVERIFY2(built, built ? "" : describe(built.error()).c_str());
    QCOMPARE(QString::fromStdString(built->text()), machine);
}

void TestMachine::wrapRules_data()
{
    QTest::addColumn<QString>("chip");
    QTest::addColumn<Sizes>("topology");
    QTest::addColumn<QString>("wrapped"); // names of the axes that close to a ring

    QTest::newRow("v5e 4x2") << "v5e" << Sizes{4, 2} << "";
    QTest::newRow("v5e 8x8: no ring at all") << "v5e" << Sizes{8, 8} << "";
    QTest::newRow("v5e 8x16: the full axis only") << "v5e" << Sizes{8, 16} << "y";
    QTest::newRow("v5e 16x16") << "v5e" << Sizes{16, 16} << "xy";
    QTest::newRow("v6e 16x4") << "v6e" << Sizes{16, 4} << "x";
    QTest::newRow("v3 2x2") << "v3" << Sizes{2, 2} << "";
    QTest::newRow("v3 16x32") << "v3" << Sizes{16, 32} << "";
    QTest::newRow("v3 pod") << "v3" << Sizes{32, 32} << "xy";
    QTest::newRow("v2 pod") << "v2" << Sizes{16, 16} << "xy";
    QTest::newRow("v4 2x2x1") << "v4" << Sizes{2, 2, 1} << "";
    QTest::newRow("v4 4x4x4") << "v4" << Sizes{4, 4, 4} << "xyz";
    QTest::newRow("v4 2x4x4") << "v4" << Sizes{2, 4, 4} << "";
    QTest::newRow("v4 4x4x6") << "v4" << Sizes{4, 4, 6} << "xy";
    QTest::newRow("v5p 4x8x12") << "v5p" << Sizes{4, 8, 12} << "xyz";
    QTest::newRow("v5p turned in the pod") << "v5p" << Sizes{28, 16, 20} << "xyz";
    QTest::newRow("v7x 4x4x8") << "v7x" << Sizes{4, 4, 8} << "xyz";
}

void TestMachine::wrapRules()
{
    QFETCH(QString, chip);
    QFETCH(Sizes, topology);
    QFETCH(QString, wrapped);

    const auto machine = buildMachine(catalogue(), {chip.toStdString(), topology});
    QVERIFY2(machine, machine ? "" : describe(machine.error()).c_str());
    QString found;
    for (const PhysicalAxis& axis : machine->topology.axes()) {
        if (axis.wraps)
            found += QString::fromStdString(axis.name);
    }
    QCOMPARE(found, wrapped);
}

void TestMachine::corePairs()
{
    const auto machine = buildMachine(catalogue(), {"v3", {2, 2}});
    QVERIFY(machine);
    QCOMPARE(machine->deviceCount(), 8);
    QCOMPARE(machine->hbmBytesPerDevice, std::int64_t(16) << 30);
    QCOMPARE(machine->hbmBytesPerSecondPerDevice, 450e9);
    const auto& axes = machine->topology.axes();
    QCOMPARE(axes.size(), std::size_t(3));
    QCOMPARE(axes[2].name, std::string("core"));
    QCOMPARE(axes[0].link.bytesPerSecond, 41e9); // half of the chip's link each
    QCOMPARE(axes[2].link.bytesPerSecond, 6 * 82e9);
    // JAX's ids on a v3 2x2: chip (1, 0) holds 2 and 3, chip (0, 1) holds 4 and 5.
    QCOMPARE(machine->topology.coordinates(3), (Sizes{1, 0, 1}));
    QCOMPARE(machine->topology.coordinates(4), (Sizes{0, 1, 0}));
    QCOMPARE(machine->topology.deviceAt(Sizes{1, 1, 1}), 7);
    QCOMPARE(machine->text(), std::string("TPU v3, 2x2 chips, no wraparound, 2 devices a chip"));
}

void TestMachine::oneCore()
{
    const auto machine = buildMachine(catalogue(), {"tpu-v3-core"});
    QVERIFY(machine);
    QCOMPARE(machine->deviceCount(), 1);
    QCOMPARE(machine->hbmBytesPerSecondPerDevice, 450e9);
}

void TestMachine::gpus()
{
    const auto machine = buildMachine(catalogue(), {"h100", {}, 4, 8});
    QVERIFY(machine);
    QCOMPARE(machine->deviceCount(), 32);
    const auto& axes = machine->topology.axes();
    QCOMPARE(axes.size(), std::size_t(2));
    QVERIFY(axes[0].kind == AxisKind::Network && axes[1].kind == AxisKind::Switch);
    QCOMPARE(axes[0].link.bytesPerSecond, 50e9);
    QCOMPARE(axes[0].link.latencySeconds, 9.6e-6);
    QCOMPARE(axes[1].link.bytesPerSecond, 450e9 * 0.81);
    QCOMPARE(axes[1].inSwitchBytesPerSecond, 450e9 * 0.81 * 5.0 / 7.0);
    QCOMPARE(machine->topology.coordinates(13), (Sizes{1, 5}));
    QCOMPARE(machine->text(), std::string("H100 SXM 80GB, 4 hosts of 8 GPUs"));

    QCOMPARE(valueOf(buildMachine(catalogue(), {"a100", {}, 1, 8})).topology.axes()[1].inSwitchBytesPerSecond, 0.0);
    const auto peers = valueOf(buildMachine(catalogue(), {"mi300x", {}, 1, 8}));
    QVERIFY(peers.topology.axes()[1].kind == AxisKind::FullMesh);
    QCOMPARE(peers.topology.axes()[1].link.bytesPerSecond, 64e9 * 0.7);
    const auto cards = valueOf(buildMachine(catalogue(), {"a100-pcie", {}, 2, 4}));
    QVERIFY(cards.topology.axes()[1].link.kind == LinkKind::Pcie);
    QCOMPARE(valueOf(buildMachine(catalogue(), {"mi250x", {}, 1, 4})).deviceCount(), 8);
}

void TestMachine::slices()
{
    const auto machine = valueOf(buildMachine(catalogue(), {"v5e", {16, 16}, 0, 0, 2}));
    QCOMPARE(machine.deviceCount(), 512);
    QCOMPARE(machine.text(), std::string("TPU v5e, 2 slices of 16x16 chips, wraparound on x, y"));
    const PhysicalAxis& network = machine.topology.axes().front();
    QVERIFY(network.kind == AxisKind::Network && machine.topology.network() == &network);
    QCOMPARE(network.link.bytesPerSecond, valueOf(catalogue().find("v5e")).chip->dcnBytesPerSecond->value);
    QCOMPARE(machine.topology.coordinates(256), (Sizes{1, 0, 0})); // slice by slice
    const auto pairs = valueOf(buildMachine(catalogue(), {"v3", {2, 2}, 0, 0, 3}));
    QCOMPARE(pairs.deviceCount(), 24);
    QCOMPARE(pairs.topology.coordinates(11), (Sizes{1, 1, 0, 1}));
    QCOMPARE(valueOf(buildMachine(catalogue(), {"v5e", {4, 4}, 0, 0, 1})).topology,
        valueOf(buildMachine(catalogue(), {"v5e", {4, 4}})).topology);
}

void TestMachine::badSlices_data()
{
    QTest::addColumn<QString>("chip");
    QTest::addColumn<Sizes>("topology");
    QTest::addColumn<qint64>("slices");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("message");
    QTest::newRow("of GPUs") << "h100" << Sizes{} << qint64{2} << "MW1706"
                             << "H100 SXM 80GB comes in hosts, not in slices";
    QTest::newRow("negative") << "v5e" << Sizes{4, 4} << qint64{-2} << "MW1704"
                              << "slices must be at least 1, got: -2";
    QTest::newRow("too many") << "v5e" << Sizes{16, 16} << qint64{1} * (qint64{1} << 40) << "MW1707"
                              << "1099511627776 times a slice of 16x16 chips has more than 16777216 devices";
    QTest::newRow("twice") << "v5e-256x2" << Sizes{} << qint64{2} << "MW1914"
                           << "\"v5e-256x2\" states the number of slices, and so does `slices`";
}

void TestMachine::badSlices()
{
    QFETCH(QString, chip);
    QFETCH(Sizes, topology);
    QFETCH(qint64, slices);
    QFETCH(QString, id);
    QFETCH(QString, message);
    const auto machine = buildMachine(catalogue(), {chip.toStdString(), topology, 0, 0, slices});
    QVERIFY(!machine);
    QCOMPARE(QString::fromStdString(machine.error().front().id), id);
    QCOMPARE(QString::fromStdString(machine.error().front().message), message);
}

void TestMachine::defaults()
{
    QCOMPARE(valueOf(buildMachine(catalogue(), {"h100"})).deviceCount(), 8);
    QCOMPARE(valueOf(buildMachine(catalogue(), {"gb200", {}, 2})).deviceCount(), 144);
    QCOMPARE(valueOf(buildMachine(catalogue(), {"gh200", {}, 4})).deviceCount(), 4);
}

void TestMachine::assumptions()
{
    QVERIFY(valueOf(buildMachine(catalogue(), {"v5e", {4, 4}})).assumptions.empty());
    QVERIFY(valueOf(buildMachine(catalogue(), {"h100", {}, 4, 8})).assumptions.empty());
    // v2: hop latency, shared links, link between the cores.
    QCOMPARE(valueOf(buildMachine(catalogue(), {"v2", {4, 4}})).assumptions.size(), std::size_t(3));
    QCOMPARE(valueOf(buildMachine(catalogue(), {"a100", {}, 1, 8})).assumptions.size(), std::size_t(1));
    // V100: the cube mesh taken as a switch.
    QCOMPARE(valueOf(buildMachine(catalogue(), {"v100", {}, 1, 8})).assumptions.size(), std::size_t(1));
}

void TestMachine::badChoices_data()
{
    QTest::addColumn<QString>("chip");
    QTest::addColumn<Sizes>("topology");
    QTest::addColumn<qint64>("hosts");
    QTest::addColumn<qint64>("perHost");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("message");

    const auto row = [](const char* name, const char* chip, Sizes topology, qint64 hosts, qint64 perHost, const char* id,
                         const char* message) { QTest::newRow(name) << chip << topology << hosts << perHost << id << message; };
    row("no such chip", "v9", {2, 2}, 0, 0, "MW1701", "unknown chip: \"v9\"");
    row("no topology", "v3", {}, 0, 0, "MW1703", "the topology of TPU v3 has 2 axes; none is given");
    row("rank", "v4", {2, 2}, 0, 0, "MW1703", "the topology of TPU v4 (v4p) has 3 axes; 2x2 has 2");
    row("zero", "v3", {0, 2}, 0, 0, "MW1704", "every size of a topology must be at least 1, got: 0x2");
    row("negative", "v3", {2, -2}, 0, 0, "MW1704", "every size of a topology must be at least 1, got: 2x-2");
    row("too long", "v5e", {32, 8}, 0, 0, "MW1705", "a slice of 32x8 chips is larger than the largest of TPU v5e: 16x16");
    row("too many", "v7x", {32, 32, 32}, 0, 0, "MW1705",
        "a slice of 32x32x32 chips is larger than the largest of TPU7x (Ironwood): 9216 chips");
    row("overflow", "v3", {qint64(1) << 40, qint64(1) << 40}, 0, 0, "MW1707",
        "a slice of 1099511627776x1099511627776 chips has more than 16777216 devices");
    row("hosts for a torus", "v3", {2, 2}, 2, 0, "MW1706", "TPU v3 is a torus; hosts and per_host are for GPUs");
    row("topology for GPUs", "h100", {8}, 0, 0, "MW1706",
        "H100 SXM 80GB is not a torus; it takes hosts and per_host, not the topology 8");
    row("topology for a core", "v3-core", {2, 2}, 0, 0, "MW1706",
        "\"v3-core\" means 1 of the 2 devices of one chip; it takes no topology");
    row("hosts for a part", "mi250x-gcd", {}, 2, 1, "MW1706",
        "\"mi250x-gcd\" means 1 of the 2 devices of one chip; it takes no hosts");
    row("negative hosts", "h100", {}, -1, 8, "MW1704", "hosts must be at least 1, got: -1");
    row("negative per host", "h100", {}, 1, -8, "MW1704", "per_host must be at least 1, got: -8");
    row("host too large", "h100", {}, 1, 16, "MW1708", "per_host is 16, but 8 of H100 SXM 80GB share the fast links");
    row("too many hosts", "h100", {}, qint64(1) << 60, 8, "MW1707",
        "1152921504606846976 hosts of 8 chips have more than 16777216 devices");
    row("no network figure", "mi210", {}, 2, 1, "MW1709",
        "the catalogue has no figure for the network between hosts of amd-mi210");
}

void TestMachine::badChoices()
{
    QFETCH(QString, chip);
    QFETCH(Sizes, topology);
    QFETCH(qint64, hosts);
    QFETCH(qint64, perHost);
    QFETCH(QString, id);
    QFETCH(QString, message);

    const auto machine = buildMachine(catalogue(), {chip.toStdString(), topology, hosts, perHost});
    QVERIFY(!machine);
    QCOMPARE(QString::fromStdString(machine.error().front().id), id);
    QVERIFY(id != "MW1705" || !machine.error().front().fix.empty());
    QCOMPARE(QString::fromStdString(machine.error().front().message), message);
}

void TestMachine::allProblems()
{
    const auto machine = buildMachine(catalogue(), {"v3", {0}, 2, 2});
    QVERIFY(!machine);
    QCOMPARE(machine.error().size(), std::size_t(3)); // hosts, rank, size
}

void TestMachine::missingFigure()
{
    const auto bare = valueOf(Catalogue::parse(
        R"({"chips": {"c": {"name": "C", "class": "gpu", "peak_flops_per_s": {}, "interconnect": {"kind": "pcie"}}}})",
        "hw.json"));
    const auto machine = buildMachine(bare, {"c"});
    QVERIFY(!machine);
    QCOMPARE(machine.error().size(), std::size_t(3)); // links, memory, its bandwidth
    for (const Problem& problem : machine.error())
        QCOMPARE(problem.id, std::string("MW1709"));
}

MESHWRIGHT_TEST(TestMachine)

} // namespace tst_machine

#include "tst_machine.moc"
