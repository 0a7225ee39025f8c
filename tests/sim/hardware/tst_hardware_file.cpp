// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/hardware_file.h"
#include "tests/test_class.h"

namespace tst_hardware_file {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

const Catalogue& catalogue()
{
    static const Catalogue loaded = valueOf(Catalogue::load(MESHWRIGHT_SOURCE_DIR "/resources/hardware/catalogue.json"));
    return loaded;
}

constexpr const char* kChip = "chip: {name: Mine, memory_bytes: 64e9, memory_bytes_per_s: 2e12, flops: {bf16: 5e14}}\n";
constexpr const char* kTorus = "topology:\n"
                               "  - {name: x, kind: torus, length: 4, wraps: true, bytes_per_s: 4e10, latency_s: 1e-6}\n"
                               "  - {name: y, kind: torus, length: 2, bytes_per_s: 4e10}\n";

} // namespace

class TestHardwareFile : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void example();
    void baseIsOverridden();
    void faults();
    void problems_data();
    void problems();
};

void TestHardwareFile::example()
{
    const auto machine = readHardware(MESHWRIGHT_SOURCE_DIR "/resources/hardware/example.yaml", catalogue());
    QVERIFY2(machine, machine ? "" : describe(machine.error()).c_str());
    QCOMPARE(machine->deviceCount(), 64);
    QCOMPARE(machine->topology.axes()[0].kind, AxisKind::Network);
    QCOMPARE(machine->topology.axes()[0].perLeaf, 4);
    QCOMPARE(machine->topology.axes()[0].oversubscription, 2.0);
    QCOMPARE(machine->topology.axes()[1].inSwitchBytesPerSecond, 260e9);
    QCOMPARE(machine->topology.stride(0), 8);
    QCOMPARE(machine->faults.devices.size(), std::size_t(1));
    QCOMPARE(machine->faults.links.size(), std::size_t(1));
}

void TestHardwareFile::baseIsOverridden()
{
    const std::string text
        = std::string("meshwright_hardware: 1\nchip: {base: H100, name: H100 at 600 W, flops: {bf16: 8e14}}\n") + kTorus;
    const auto machine = parseHardware(text, "mine.yaml", catalogue());
    QVERIFY2(machine, machine ? "" : describe(machine.error()).c_str());
    QCOMPARE(machine->chip.name, std::string("H100 at 600 W"));
    QCOMPARE(machine->chip.peakFlopsPerSecond.at(MathFormat::Bf16).value, 8e14);
    QVERIFY(machine->hbmBytesPerDevice > 79'000'000'000);
    QCOMPARE(machine->text(), std::string("H100 at 600 W, 4x2 chips, wraparound on x"));
}

void TestHardwareFile::faults()
{
    const std::string text = std::string("meshwright_hardware: 1\n") + kChip + kTorus
        + "faults:\n  slow: [{device: 3, speed: 0.5}]\n  links: [{device: 6, axis: x, share: 0.25}, {device: 0, axis: y}]\n";
    const auto machine = parseHardware(text, "mine.yaml", catalogue());
    QVERIFY2(machine, machine ? "" : describe(machine.error()).c_str());
    QVERIFY(machine->faults.devices == std::vector<SlowDevice>({{3, 0.5}}));
    QVERIFY(machine->faults.links == std::vector<LinkFault>({{6, 0, 0.25}, {0, 1, 0.0}}));
}

void TestHardwareFile::problems_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("message");
    QTest::addColumn<int>("line");

    const QString head = QString("meshwright_hardware: 1\n") + kChip;
    QTest::newRow("no mapping") << "- 1"
                                << "MW1742"
                                << "the file must be a mapping, got a list" << 1;
    QTest::newRow("no topology") << head << "MW1745"
                                 << "the file has no topology" << 1;
    QTest::newRow("another version") << QString("meshwright_hardware: 2\n") + kChip + kTorus << "MW1744"
                                     << "this program reads version 1, got: 2" << 1;
    QTest::newRow("unknown key") << head + kTorus + "fault: {}\n"
                                 << "MW1743"
                                 << "unknown key \"fault\"" << 6;
    QTest::newRow("no figure") << QString("meshwright_hardware: 1\nchip: {name: a, memory_bytes: 1e9, flops: {bf16: 1e12}}\n")
            + kTorus << "MW1745"
                               << "chip has no memory_bytes_per_s" << 2;
    QTest::newRow("no such chip") << QString("meshwright_hardware: 1\nchip: {base: h1000}\n") + kTorus << "MW1701"
                                  << "unknown chip: \"h1000\"" << 2;
    QTest::newRow("text for a number") << head + "topology: [{name: x, kind: torus, length: 4, bytes_per_s: fast}]\n"
                                       << "MW1742"
                                       << "topology[0].bytes_per_s must be a number, got \"fast\"" << 3;
    QTest::newRow("length 0") << head + "topology: [{name: x, kind: torus, length: 0, bytes_per_s: 1e9}]\n"
                              << "MW1744"
                              << "topology[0].length must be 1 to 16777216, got: 0" << 3;
    QTest::newRow("unknown kind") << head + "topology: [{name: x, kind: ring, length: 4, bytes_per_s: 1e9}]\n"
                                  << "MW1744"
                                  << "unknown kind of axis: \"ring\"" << 3;
    QTest::newRow("a short ring") << head + "topology: [{name: x, kind: torus, length: 2, wraps: true, bytes_per_s: 1e9}]\n"
                                  << "MW1744"
                                  << "only a torus axis of 3 or more wraps; x has kind torus and length 2" << 3;
    QTest::newRow("too many devices") << head
            + "topology: [{name: x, kind: torus, length: 5000, bytes_per_s: 1e9}, {name: y, kind: torus, length: 5000, "
              "bytes_per_s: 1e9}]\n"
                                      << "MW1707"
                                      << "the topology has more than 16777216 devices" << 3;
    QTest::newRow("two switches") << head
            + "topology: [{name: a, kind: switch, length: 2, bytes_per_s: 1e9}, {name: b, kind: torus, length: 2, bytes_per_s: "
              "1e9}]\n"
                                  << "MW1744"
                                  << "a machine has at most one network, and in it one switch or full mesh or torus axes; got 0 "
                                     "networks, 1 switches or meshes and 1 "
                                     "torus axes"
                                  << 3;
    QTest::newRow("a device that is not there") << head + kTorus + "faults: {slow: [{device: 8, speed: 0.5}]}\n"
                                                << "MW1744"
                                                << "faults.slow[0].device must be 0 to 7, got: 8" << 6;
    QTest::newRow("an axis that is not there") << head + kTorus + "faults: {links: [{device: 0, axis: z}]}\n"
                                               << "MW1744"
                                               << "the topology has no axis \"z\"" << 6;
    QTest::newRow("the end of a line") << head + kTorus + "faults: {links: [{device: 1, axis: y}]}\n"
                                       << "MW1744"
                                       << "device 1 is the last along y, which does not wrap: it has no link to a next one" << 6;
}

void TestHardwareFile::problems()
{
    QFETCH(QString, text);
    QFETCH(QString, id);
    QFETCH(QString, message);
    QFETCH(int, line);

    const auto found = parseHardware(text.toStdString(), "mine.yaml", catalogue());
    QVERIFY(!found);
    QCOMPARE(QString::fromStdString(found.error().front().message), message);
    QCOMPARE(QString::fromStdString(found.error().front().id), id);
    QCOMPARE(found.error().front().place.line, line);
    QCOMPARE(found.error().front().place.file, std::string("mine.yaml"));
}

MESHWRIGHT_TEST(TestHardwareFile)

} // namespace tst_hardware_file

#include "tst_hardware_file.moc"
