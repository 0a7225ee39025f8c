// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/machine.h"
#include "tests/test_class.h"

namespace tst_topology {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

const Catalogue& catalogue()
{
    static const Catalogue loaded = valueOf(Catalogue::load(MESHWRIGHT_SOURCE_DIR "/resources/hardware/catalogue.json"));
    return loaded;
}

struct Shape {
    const char* name;
    HardwareChoice choice;
    std::int64_t devices;
    std::int64_t links; ///< directed, those that leave a device
};

/// Worked by hand. A line of k has 2 (k - 1) directed links, a ring 2 k, a switch one from each device.
const std::vector<Shape> kShapes = {
    {"v5e 1x1", {"v5e", {1, 1}}, 1, 0},
    {"v5e 4x2: 2 lines of 4, 4 of 2", {"v5e", {4, 2}}, 8, 2 * 6 + 4 * 2},
    {"v5e 16x4: 4 rings of 16, 16 lines of 4", {"v5e", {16, 4}}, 64, 4 * 32 + 16 * 6},
    {"v3 2x2: 8 links for each core, 4 pairs", {"v3", {2, 2}}, 8, 2 * 8 + 4 * 2},
    {"v4 4x4x4: 48 rings of 4", {"v4", {4, 4, 4}}, 64, 48 * 8},
    {"v4 2x2x2", {"v4", {2, 2, 2}}, 8, 24},
    {"one host", {"h100", {}, 1, 8}, 8, 8},
    {"four hosts: islands, rails", {"h100", {}, 4, 8}, 32, 32 + 32},
    {"full mesh", {"mi300x", {}, 1, 8}, 8, 56},
    {"two full meshes", {"mi300x", {}, 2, 8}, 16, 112 + 16},
    {"hosts of one", {"gh200", {}, 4}, 4, 4},
};

/// The bandwidth of the links from a device along an axis, counted at its neighbours.
double leavingAlong(const Topology& topology, DeviceId device, std::size_t axis, std::int64_t& links)
{
    const PhysicalAxis& along = topology.axes()[axis];
    const std::int64_t place = topology.coordinate(device, axis);
    std::int64_t count = 0;
    for (std::int64_t other = 0; other < along.length; ++other) {
        const std::int64_t far = std::abs(other - place);
        const bool next = far == 1 || (along.wraps && far == along.length - 1);
        if (other != place && (along.kind == AxisKind::FullMesh || (along.kind == AxisKind::Torus && next)))
            ++count;
    }
    if (along.length > 1 && (along.kind == AxisKind::Switch || along.kind == AxisKind::Network))
        count = 1;
    links += count;
    return static_cast<double>(count) * along.link.bytesPerSecond;
}

} // namespace

class TestTopology : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void linksThatLeaveADevice_data();
    void linksThatLeaveADevice();
};

void TestTopology::linksThatLeaveADevice_data()
{
    QTest::addColumn<int>("index");
    for (std::size_t i = 0; i < kShapes.size(); ++i)
        QTest::newRow(kShapes[i].name) << int(i);
}

void TestTopology::linksThatLeaveADevice()
{
    QFETCH(int, index);
    const Shape& shape = kShapes[std::size_t(index)];
    const auto machine = buildMachine(catalogue(), shape.choice);
    QVERIFY2(machine, machine ? "" : describe(machine.error()).c_str());
    const Topology& topology = machine->topology;
    QCOMPARE(topology.deviceCount(), shape.devices);

    std::int64_t links = 0;
    for (DeviceId device = 0; device < topology.deviceCount(); ++device) {
        double leaving = 0.0;
        for (std::size_t axis = 0; axis < topology.axes().size(); ++axis)
            leaving += leavingAlong(topology, device, axis, links);
        QCOMPARE(topology.injectionBytesPerSecond(device), leaving);
        QCOMPARE(topology.deviceAt(topology.coordinates(device)), device);
    }
    QCOMPARE(links, shape.links);
}

MESHWRIGHT_TEST(TestTopology)

} // namespace tst_topology

#include "tst_topology.moc"
